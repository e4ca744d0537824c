"""The coming days with a change beside those without it, and what it would start or stop now.

Nothing is stored. The real decisions are made on a copy of what the server stores.
The exit code is 0 when nothing would change, and 1 when something would.

  interlock plan -f pricing.yaml
  interlock plan -f pricing.yaml --days 14
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from interlock.client.errors import FAILED, OK
from interlock.client.moments import server_now
from interlock.forecast.plan import DAYS, Day, Plan, Planned, Proposal, Verdict, planned, tried
from interlock.forecast.trial import AtOnce
from interlock.modes.cli.flags import add_files, add_namespace, add_output, number_from
from interlock.modes.cli.rehearsal.proposals import read_proposals, read_surroundings
from interlock.modes.cli.session import Session
from interlock.resources.codec import to_builtins
from interlock.resources.controlled_job import Override, OverrideAction
from interlock.resources.modes import Mode
from interlock.timing.local_time import day_at, told_in, told_time
from interlock.timing.zones import find_zone

_VERDICTS = {
    Verdict.CREATED: "new",
    Verdict.AFFECTED: "names a calendar that would change",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser)
    parser.add_argument(
        "--days", metavar="N", type=number_from(1), default=DAYS, help=f"so many days ({DAYS})"
    )
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Compare, try the change on a copy, and tell."""
    code, proposals = read_proposals(session, args)
    around = read_surroundings(session, proposals)
    proposals = around.affected(proposals)
    now = server_now(session.api)
    mode = Mode.CLUSTER if session.on_cluster else Mode.EMBEDDED
    jobs = tried(proposals, around, now, mode)
    told = planned(proposals, around, jobs, now, days=args.days)
    if args.output:
        plan = Plan(tuple(one.data() for one in told))
        session.terminal.data(to_builtins(plan), "json")
    else:
        for one in told:
            _show(session, now, one)
        _tell_end(session, args, any(one.is_changed for one in proposals))
    return code or (FAILED if any(one.is_changed for one in proposals) else OK)


# For people


def _show(session: Session, now: datetime, one: Planned) -> None:
    terminal = session.terminal
    proposal, jobs, days = one.proposal, one.jobs, one.days
    for line in _head(proposal):
        terminal.print(line)
    if proposal.verdict is Verdict.UNCHANGED:
        return
    zone = days[0].zone if days else find_zone("UTC")
    because = [told_in(_because(one), zone, now) for one in jobs]
    rows = [
        ("now", f"{one.job} would be {one.action}{why}")
        for one, why in zip(jobs, because, strict=True)
    ]
    rows += list(_day_rows(days, now))
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        terminal.print(f"  {name:<{width}}   {text}")


def _head(proposal: Proposal) -> Iterator[str]:
    word = proposal.word
    if proposal.verdict is not Verdict.CONFIGURED:
        told = _VERDICTS.get(proposal.verdict, proposal.verdict)
        yield f"{word}   {told}"
        return
    width = max(len(field.path) for field in proposal.fields) if proposal.fields else 0
    for at, field in enumerate(proposal.fields):
        start = word if not at else " " * len(word)
        yield f"{start}   {field.path:<{width}}  {_value(field.old)} -> {_value(field.new)}"


def _because(one: AtOnce) -> str:
    return f" ({one.reason})" if one.reason else ""


def _value(value: Any) -> str:
    return "(none)" if value is None else json.dumps(value, ensure_ascii=False)


def _day_rows(days: Sequence[Day], now: datetime) -> Iterator[tuple[str, str]]:
    """A line for each day; neighbours that stay as they are share one."""
    for is_plain, group in groupby(days, key=lambda day: not day.told and not day.overrides):
        some = list(group)
        if is_plain and len(some) > 1:
            yield f"{_day_name(some[0], now)} - {_day_name(some[-1], now)}", "unchanged"
            continue
        for day in some:
            yield _day_name(day, now), (day.told or "unchanged") + _exceptions(day)


def _day_name(day: Day, now: datetime) -> str:
    if day.day == day_at(now, day.zone):
        return "today"
    return f"{day.day:%a} {day.day.day}"


def _exceptions(day: Day) -> str:
    if not day.overrides:
        return ""
    return f" ({'; '.join(_exception(one, day) for one in day.overrides)})"


def _exception(one: Override, day: Day) -> str:
    until = told_time(one.until, day.zone, named=False)
    ends = f"{day_at(one.until, day.zone):%a} {until}"
    what = {
        OverrideAction.EXTEND: f'override "until {until}"',
        OverrideAction.SKIP: 'override "skip"',
        OverrideAction.HOLD: f'override "hold until {ends}"',
    }[one.action]
    by = f", set by {one.by}" if one.by else ""
    return f"{what}{by}, expires {ends}"


def _tell_end(session: Session, args: argparse.Namespace, changed: bool) -> None:
    if not changed:
        session.terminal.print("Nothing would change.")
        return
    files = " ".join(f"-f {shlex.quote(name)}" for name in args.filename)
    more = f" -n {shlex.quote(args.namespace)}" if args.namespace else ""
    recursive = " -R" if args.recursive else ""
    told = f"interlock apply {files}{recursive}{more}"
    session.terminal.print(f"Nothing was changed. Apply it with: {told}")
