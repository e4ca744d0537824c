"""What becomes of a ControlledJob and its Jobs at one look."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from interlock.resources.actions import (
    Action,
    CreateJob,
    Decision,
    DropOverrides,
    RecordStatus,
    ReviseJob,
)
from interlock.resources.controlled_job import ControlledJobStatus
from interlock.resources.door.checking import problems_of
from interlock.resources.job import Job
from interlock.resources.metadata import Trouble
from interlock.schedules.controlled.choosing import (
    Choice,
    Need,
    Verdict,
    choose,
    judge,
    replacement,
)
from interlock.schedules.controlled.conditions import Failures
from interlock.schedules.controlled.draining import gone_by
from interlock.schedules.controlled.history import CLEARED_AT_ONCE, surplus
from interlock.schedules.controlled.making import job_name, make_job, needing_books
from interlock.schedules.controlled.news import news_of
from interlock.schedules.controlled.runs import Run
from interlock.schedules.controlled.situation import Situation, moment_of_look, read_situation
from interlock.schedules.controlled.status import status_after
from interlock.schedules.controlled.stops import (
    Stop,
    removals,
    revisions,
    stop_order,
    stops,
    strays,
)
from interlock.schedules.controlled.view import ControlledView

#: How soon to look again for a Job that should be there and was not heard of.
_SOON = timedelta(seconds=1)


class _Making(Struct, frozen=True):
    """The Job to be made, or what speaks against it."""

    job: Job | None = None
    why: str = ""
    problem: str = ""
    #: When it may be made; None is now.
    not_before: datetime | None = None


def decide_controlled(view: ControlledView, now: datetime) -> Decision:
    """Stop what must not run, see to it that what should run does, and tell how it goes.

    The order of the rules:

    1. Suspended or on hold, nothing runs: everyone is told to stop.
    2. Whoever was made for a time before the last stop is told to stop.
    3. Outside a window only what a person started is left alone; inside, one Job is: the newest of
       those made of the template, else the newest. The others are told to stop.
    4. What is left alone carries the next stop and the lock. One that a person suspended stays so.
    5. A Job is made if a window is open and its newest Job was removed, was stopped by the
       schedule, or never was. Not if it finished, failed, or a person stopped it, nor later than
       spec.startBy. A template that changed replaces a Job under Recreate, also a failed one, but
       none that a person holds back.
    6. The status is written once the Job is there, which lets it start; then strays, Jobs beyond
       the history limits and exceptions that are over are removed.

    Stops come before anything that can fail, and what failed at the last look comes after what
    did not: neither a bad template nor one Job that cannot be written keeps another from stopping.
    """
    now = moment_of_look(view, now)
    situation = read_situation(view, now)
    choice = choose(situation)
    told = stops(situation, choice)
    orders: list[ReviseJob] = [stop_order(stop, now) for stop in told]
    if view.controlled.is_going or situation.is_blind:
        # Nothing is made for what is being deleted, nor while a Job of ours was not heard of yet.
        return Decision(tuple(orders), _wake_at(situation), _reason(told, _Making()))
    moves = tuple(revisions(situation, choice))
    verdict = judge(situation, choice)
    making = _make(situation, choice, verdict)
    failures = _failures(situation, orders, moves, making)
    status = status_after(situation, choice, verdict, failures, told)
    first, last = _apart(situation, (*orders, *moves))
    actions: list[Action] = [*first]
    old: tuple[Run, ...] = ()
    if making.job is None or failures.creating:
        actions += _record(situation, status)
    if making.job is not None:
        # The status is written when the Job is there: only then may it start.
        actions.append(CreateJob(making.job))
    else:
        old = surplus(situation, status.window)
        actions += removals((*strays(situation, choice), *old))
        actions += _without_past(situation)
    actions += last
    wake_at = _wake_at(situation)
    if making.not_before is not None:
        wake_at = min(making.not_before, wake_at or making.not_before)
    if len(old) == CLEARED_AT_ONCE:
        # There may be more of them, and nobody is woken for what goes.
        wake_at = now
    news = news_of(view.controlled.status, status) if making.job is None else ""
    reason = (_reason(told, making) or news) if actions else ""
    is_notable = bool(reason) or any(type(action) is not RecordStatus for action in actions)
    return Decision(tuple(actions), wake_at, reason, is_notable=is_notable)


def _record(situation: Situation, status: ControlledJobStatus) -> list[Action]:
    controlled = situation.controlled
    return [RecordStatus(controlled, status)] if status != controlled.status else []


def _make(situation: Situation, choice: Choice, verdict: Verdict | None) -> _Making:
    """Make the Job that is needed, unless something speaks against it."""
    need = verdict.need if verdict is not None else replacement(situation, choice)
    if need is None or situation.standing is None:
        return _Making()
    if need.not_before is not None and situation.now < need.not_before:
        return _Making(not_before=need.not_before)
    if situation.view.calendar_problem:
        return _Making(problem=situation.view.calendar_problem)
    job = _next_job(situation, need)
    problems = problems_of(job)
    if problems:
        told = "; ".join(map(str, problems[:3]))
        return _Making(problem=f"no Job can be made of the template: {told}")
    return _Making(job=job, why=need.why)


def _next_job(situation: Situation, need: Need) -> Job:
    """The Job that is needed, of the next number whose name nobody else has."""
    controlled, standing = situation.controlled, situation.standing
    number = max((controlled.status.last_run_id, *(run.number for run in situation.runs))) + 1
    while job_name(controlled, need.start, number) in situation.view.foreign:
        number += 1
    job = make_job(
        controlled,
        start=need.start,
        number=number,
        stop=standing.next_stop if standing is not None else None,
        is_manual=need.is_manual,
        takes_over_from=need.takes_over_from,
    )
    return needing_books(job) if need.is_manual else job


def _failures(
    situation: Situation, orders: Iterable[ReviseJob], moves: Iterable[ReviseJob], making: _Making
) -> Failures:
    """What could not be done: what the loop wrote down about the last look, and what is plain."""
    held = _trouble(situation)
    trouble = held.message if held is not None else ""
    stopping = any(_is_blamed(order, held) for order in orders)
    revising = any(_is_blamed(order, held) for order in moves)
    creating = making.problem if not situation.view.calendar_problem else ""
    if trouble and not stopping and not revising and making.job is not None:
        creating = trouble
    return Failures(
        creating=creating,
        stopping=trouble if stopping else "",
        resuming=trouble if revising and not stopping else "",
    )


def _trouble(situation: Situation) -> Trouble | None:
    """What went wrong when the last decision of this room was carried out."""
    trouble = situation.controlled.status.trouble
    return trouble if trouble is not None and trouble.room == "schedules" else None


def _is_blamed(order: ReviseJob, trouble: Trouble | None) -> bool:
    """Whether it was the change of this Job that went wrong."""
    return trouble is not None and trouble.about is not None and trouble.about.key == order.job.key


def _apart(
    situation: Situation, orders: tuple[ReviseJob, ...]
) -> tuple[list[ReviseJob], list[ReviseJob]]:
    """The orders, apart from those that were in the way of all others at the last look."""
    trouble = _trouble(situation)
    blamed = [order for order in orders if _is_blamed(order, trouble)]
    return [order for order in orders if order not in blamed], blamed


def _without_past(situation: Situation) -> list[Action]:
    controlled, timetable = situation.controlled, situation.view.timetable
    if timetable is None or not controlled.spec.overrides:
        return []
    left = timetable.overrides_left(situation.now)
    if left == controlled.spec.overrides:
        return []
    return [DropOverrides(controlled, replace(controlled.spec, overrides=left))]


def _wake_at(situation: Situation) -> datetime | None:
    """The next turn of the plan, or the end of somebody's time to stop."""
    now = situation.now
    moments = [by for run in situation.runs if (by := gone_by(run, situation)) is not None]
    if situation.standing is not None and situation.standing.next_turn is not None:
        moments.append(situation.standing.next_turn)
    if situation.view.timetable is not None and situation.standing is not None:
        until = situation.standing.next_turn
        moments += (turn.at for turn in situation.view.timetable.next_in_gap(now, until))
    for one in situation.controlled.spec.overrides if situation.standing is None else ():
        moments += (one.begin, one.until)
    if situation.is_blind:
        moments.append(now + _SOON)
    return min((moment for moment in moments if moment > now), default=None)


def _reason(told: tuple[Stop, ...], making: _Making) -> str:
    parts = [f"stops job/{stop.run.name}: {stop.because}" for stop in told[:3]]
    if making.job is not None:
        parts.append(f"makes job/{making.job.metadata.name}: {making.why}")
    elif making.problem:
        parts.append(making.problem)
    return "; ".join(parts)
