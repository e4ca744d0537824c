"""What will start, stop, run and be skipped, and why.

Without names everything of the namespace is told, in order, the next 20 unless --to or --limit
says otherwise. Times are those of each schedule's own zone. With -f the files are read instead,
and no server is asked.

  interlock next
  interlock next controlledjob/pricing-engine --to friday
  interlock next jobconfig nightly-report --from 2026-12-20 --to 2027-01-05
  interlock next -f nightly.yaml --limit 5
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from interlock.client.errors import BAD_INPUT, OK, CommandError
from interlock.client.kinds import Kind, parse_names
from interlock.client.moments import server_now
from interlock.client.refusals import refusals
from interlock.commands.dates import DayWords
from interlock.forecast.rehearsal.times import read_moment
from interlock.forecast.upcoming import (
    RUN,
    START,
    STOP,
    Coming,
    Definitions,
    bounded,
    why_nothing,
)
from interlock.modes.cli.flags import add_files, add_namespace, add_output, number_from
from interlock.modes.cli.rehearsal.definitions import SCHEDULED, from_files, from_server
from interlock.modes.cli.session import Session
from interlock.resources.codec import to_builtins
from interlock.timing.local_time import day_at, start_of_day, told_in, told_time
from interlock.timing.zones import Zone, find_zone

#: So many are told when neither an end nor a number was asked for.
USUAL = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="KIND NAME | KIND/NAME", nargs="*", help="only these")
    parser.add_argument("--from", dest="begin", metavar="WHEN", help="from this moment on (now)")
    parser.add_argument("--to", metavar="WHEN", help="up to this moment; a day counts whole")
    parser.add_argument("--limit", metavar="N", type=number_from(1), help=f"so many ({USUAL})")
    add_files(parser)
    add_namespace(parser, every=True)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Work it out, and print it."""
    named = _named(args.names)
    if args.filename:
        definitions = from_files(
            args.filename, args.namespace or "default", recursive=args.recursive
        )
        definitions = _only(definitions, named)
        now = _now()
    else:
        definitions = from_server(session, named)
        now = server_now(session.api)
    begin, end = _span(definitions, args, now)
    coming = definitions.coming(begin, brief=not args.output)
    limit = args.limit or (None if end is not None else USUAL)
    if args.output:
        found = [each.data() for each in bounded(coming, end, limit)]
        session.terminal.data(to_builtins(found), "json")
        return OK
    shown = list(bounded(_without_told_ends(coming), end, limit))
    _show(session, shown, now, namespaces=bool(args.all_namespaces))
    _tell(session, definitions, begin, named=any(name for _, name in named))
    return OK


def _named(words: list[str]) -> list[tuple[Kind, str]]:
    named = parse_names(words) if words else []
    for kind, _ in named:
        if kind not in SCHEDULED:
            known = ", ".join(one.plural for one in SCHEDULED)
            raise CommandError(
                f"nothing is due for {kind.plural}", hint=f"there are: {known}", code=BAD_INPUT
            )
    return named


def _only(definitions: Definitions, named: list[tuple[Kind, str]]) -> Definitions:
    """What was named of what files define."""
    if not named:
        return definitions
    held: tuple[dict[tuple[str, str], Any], ...] = (
        definitions.configs,
        definitions.controlled,
        definitions.jobs,
    )
    for kind, objects in zip(SCHEDULED, held, strict=True):
        names = {name for one, name in named if one is kind}
        missing = names - {"", *(name for _, name in objects)}
        if missing:
            raise CommandError(f"no file defines {kind.singular}/{missing.pop()}", code=BAD_INPUT)
        if "" not in names:
            for place in [place for place in objects if place[1] not in names]:
                objects.pop(place)
    return definitions


def _now() -> datetime:
    from interlock.control.clock import SystemClock

    return SystemClock().now()


def _span(
    definitions: Definitions, args: argparse.Namespace, now: datetime
) -> tuple[datetime, datetime | None]:
    zones = definitions.zones()
    zone = find_zone(zones.pop() if len(zones) == 1 else "UTC")
    begin = _moment(args.begin, zone, now) if args.begin else now
    # What is due at the first moment itself is to be told too.
    after = begin - timedelta(microseconds=1) if args.begin else begin
    if args.to is None:
        return after, None
    end = _moment(args.to, zone, now)
    if end == start_of_day(day_at(end, zone), zone) and ":" not in args.to:
        end = start_of_day(day_at(end, zone) + timedelta(days=1), zone) - timedelta(microseconds=1)
    if end <= begin:
        raise CommandError(f"--to {args.to} is not after --from", code=BAD_INPUT)
    return after, end


def _moment(text: str, zone: Zone, now: datetime) -> datetime:
    """A moment, past ones included; words such as friday are those of the days to come."""
    if text.strip().lower() == "today":
        return start_of_day(day_at(now, zone), zone)
    try:
        return read_moment(text, zone, now)
    except ValueError:
        with refusals():
            return DayWords(zone, now).moment(text)


def _without_told_ends(coming: Iterator[Coming]) -> Iterator[Coming]:
    """A start tells its end; a stop is told when its start is not."""
    started: set[tuple[str, str, str]] = set()
    for each in coming:
        key = (each.kind, each.namespace, each.name)
        if each.action == START:
            started.add(key)
        if each.action != STOP or key not in started:
            yield each


def _show(session: Session, found: list[Coming], now: datetime, *, namespaces: bool) -> None:
    rows = []
    for each in found:
        place = f"{each.namespace}/" if namespaces else ""
        name = f"{place}{each.kind.lower()}/{each.name}"
        reason = "" if each.action == RUN else told_in(each.reason, each.zone, now)
        time = told_time(each.at, each.zone)
        rows.append([_day(each, found, now), time, each.action, name, reason])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        session.terminal.print("  ".join(cells).rstrip())


def _day(each: Coming, found: list[Coming], now: datetime) -> str:
    """The day on the schedule's own wall, as short as this list allows."""
    day = day_at(each.at, each.zone)
    last = found[-1].at.astimezone(UTC)
    if (last.year, last.month) == (now.year, now.month):
        return f"{day:%a} {day.day:>2}"
    year = f" {day.year}" if last.year != now.year else ""
    return f"{day:%a} {day.day:>2} {day:%b}{year}"


def _tell(session: Session, definitions: Definitions, after: datetime, *, named: bool) -> None:
    """Say what cannot be read, and why there is nothing to come of what was asked for by name."""
    for trouble in definitions.troubles():
        session.terminal.print(trouble)
    for one in definitions.all() if named else ():
        if next(definitions.of(one, after), None) is None:
            word = f"{one.kind.lower()}/{one.metadata.name}"
            session.terminal.print(f"nothing is to come of {word}: {why_nothing(one)}")
