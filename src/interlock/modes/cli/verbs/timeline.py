"""Windows, runs, skips and exceptions as a picture: a row for each object and day.

A row is a day in the object's own zone, from midnight to midnight as its wall clock shows it. On a
day on which clocks change the row tells how long the day is: an hour that is skipped is marked, and
both passes of an hour that comes twice share its place.

  interlock timeline
  interlock timeline --days 7
  interlock timeline controlledjob/pricing-engine --from 2026-12-20 --to 2027-01-05
  interlock timeline -o svg > week.svg
"""

from __future__ import annotations

import argparse
import shutil
from datetime import date, datetime, timedelta

from interlock.client.errors import BAD_INPUT, OK, CommandError
from interlock.client.kinds import Kind, parse_names
from interlock.client.moments import server_now
from interlock.client.refusals import refusals
from interlock.commands.dates import DayWords
from interlock.forecast.rehearsal.times import read_moment
from interlock.modes.cli.flags import add_namespace, add_output, number_from
from interlock.modes.cli.session import Session
from interlock.timing.local_time import day_at
from interlock.timing.zones import Zone, find_zone

#: A chart of more days is no picture any more.
MOST_DAYS = 400
_IN_A_PIPE = 100


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="KIND NAME | KIND/NAME", nargs="*", help="only these")
    parser.add_argument(
        "--days", metavar="N", type=number_from(1), help="so many days, up to today"
    )
    parser.add_argument("--from", dest="begin", metavar="WHEN", help="from this day on (yesterday)")
    parser.add_argument("--to", metavar="WHEN", help="up to this day (tomorrow)")
    parser.add_argument(
        "--width", metavar="N", type=number_from(40), help="characters, or pixels of an SVG"
    )
    parser.add_argument(
        "--ascii", action=argparse.BooleanOptionalAction, default=None,
        help="plain characters; in a pipe by default",
    )  # fmt: skip
    add_namespace(parser, every=True)
    add_output(parser, "text", "svg", "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Read what there is, and draw it."""
    from interlock.forecast.timeline.chart import chart_of
    from interlock.modes.cli.output.timelines.reading import read_all
    from interlock.resources.codec import to_builtins

    named = _named(args.names)
    if args.days and (args.begin or args.to):
        message = "either --days, or --from and --to"
        raise CommandError(message, code=BAD_INPUT)
    definitions, jobs = read_all(session, named)
    now = server_now(session.api)
    days_in(find_zone("UTC"), args, now)  # Bad days are told also when there is nothing to show.
    chart = chart_of(definitions, jobs, lambda zone: days_in(zone, args, now), now)
    terminal = session.terminal
    if args.output == "json":
        terminal.data(to_builtins(chart.data()), "json")
    elif args.output == "svg":
        from interlock.modes.cli.output.timelines import svg

        terminal.print(svg.drawn(chart, width=args.width or 1200).rstrip("\n"))
    else:
        from interlock.modes.cli.output.timelines import terminal as text

        width = args.width or (
            shutil.get_terminal_size().columns if terminal.is_tty else _IN_A_PIPE
        )
        plain = args.ascii if args.ascii is not None else not terminal.is_tty
        is_cut = terminal.is_tty or bool(args.width)
        for line in text.drawn(
            chart, width=width, plain=plain, paint=terminal.paint, is_cut=is_cut
        ):
            terminal.print(line)
    return OK


def _named(words: list[str]) -> list[tuple[Kind, str]]:
    from interlock.modes.cli.output.timelines.reading import SHOWN

    named = parse_names(words) if words else []
    for kind, _ in named:
        if kind not in SHOWN:
            known = ", ".join(one.plural for one in SHOWN)
            raise CommandError(
                f"{kind.plural} have no timeline", hint=f"there are: {known}", code=BAD_INPUT
            )
    return named


def days_in(zone: Zone, args: argparse.Namespace, now: datetime) -> tuple[date, date]:
    """The first and the last day to show in a zone."""
    today = day_at(now, zone)
    if args.days:
        first, last = today - timedelta(days=args.days - 1), today
    else:
        one = timedelta(days=1)
        first = _day(args.begin, zone, now) if args.begin else today - one
        last = _day(args.to, zone, now) if args.to else max(today + one, first)
    if last < first:
        raise CommandError(f"--to {args.to} is before --from", code=BAD_INPUT)
    if (last - first).days >= MOST_DAYS:
        raise CommandError(f"expected at most {MOST_DAYS} days", code=BAD_INPUT)
    return first, last


def _day(text: str, zone: Zone, now: datetime) -> date:
    """The day of what was typed; words such as friday are those of the days to come."""
    near = {"yesterday": -1, "today": 0}.get(text.strip().lower())
    if near is not None:
        return day_at(now, zone) + timedelta(days=near)
    try:
        moment = read_moment(text, zone, now)
    except ValueError:
        with refusals():
            moment = DayWords(zone, now).moment(text)
    return day_at(moment, zone)
