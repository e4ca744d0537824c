"""What was done, and which ended Jobs are kept."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from interlock.resources.controlled_job import (
    ActionRecord,
    ControlledAction,
    WindowOutcome,
    WindowRecord,
)
from interlock.resources.metadata import ConditionStatus
from interlock.schedules.controlled.choosing import Choice
from interlock.schedules.controlled.conditions import Failures
from interlock.schedules.controlled.gaps import skips_told
from interlock.schedules.controlled.runs import Fate, Run
from interlock.schedules.controlled.situation import Situation
from interlock.schedules.controlled.stops import Stop

#: How many actions are kept.
KEPT_ACTIONS = 16
#: How many Jobs one decision clears away at most.
CLEARED_AT_ONCE = 20


def history_after(
    situation: Situation,
    choice: Choice,
    stopped: tuple[Stop, ...],
    window: WindowRecord | None,
    failures: Failures,
) -> tuple[ActionRecord, ...]:
    """The newest actions, newest first.

    Each is told when something turns into something else, never because it is still so: whoever
    looks twice writes it once.
    """
    held = list(situation.controlled.status.action_history)
    for new in (
        *skips_told(situation),
        *_stopped(situation, stopped, window),
        *_started(situation, choice),
        *_failed(situation, failures),
    ):
        is_repeated = held and replace(held[0], timestamp=new.timestamp) == new
        if not is_repeated:
            held.insert(0, new)
    return tuple(held[:KEPT_ACTIONS])


def _started(situation: Situation, choice: Choice) -> Iterator[ActionRecord]:
    for run in choice.kept:
        if not run.is_unwritten:
            continue
        old = run.takes_over_from
        yield _action(
            situation,
            ControlledAction.JOB_RESTARTED if old else ControlledAction.JOB_STARTED,
            run,
            f"the template changed: it takes the place of job/{old}" if old else "",
        )


def _stopped(
    situation: Situation, stopped: tuple[Stop, ...], window: WindowRecord | None
) -> Iterator[ActionRecord]:
    told = {stop.run.uid for stop in stopped}
    for stop in stopped:
        # What a person ordered stands on the Jobs, whoever wrote it there first.
        if not stop.is_of_person:
            yield _action(situation, ControlledAction.JOB_STOPPED, stop.run, stop.because)
    before = situation.controlled.status.window
    if before is None or before.job is None or before.outcome is not WindowOutcome.STARTED:
        return
    is_open = window is not None and window.start == before.start
    if is_open and window is not None and window.outcome is WindowOutcome.STARTED:
        return
    for run in situation.runs:
        if run.uid == before.job.uid and run.uid not in told and run.fate is Fate.STOPPED:
            yield _action(situation, ControlledAction.JOB_STOPPED, run, "its window closed")


def _failed(situation: Situation, failures: Failures) -> Iterator[ActionRecord]:
    held = {each.type: each for each in situation.controlled.status.conditions}
    for kind, message in (
        ("FailedToCreateJob", failures.creating),
        ("FailedToDeleteJob", failures.stopping),
        ("FailedToUnsuspendJob", failures.resuming),
    ):
        before = held.get(kind)
        was = before.message if before and before.status is ConditionStatus.TRUE else ""
        if message and message != was:
            yield ActionRecord(
                type=ControlledAction.FAILED, timestamp=situation.now, message=message
            )


def _action(situation: Situation, kind: ControlledAction, run: Run, message: str) -> ActionRecord:
    return ActionRecord(
        type=kind,
        timestamp=situation.now,
        message=message,
        job_name=run.name,
        job_index=max(run.number, 0),
        scheduled_start_time=run.nominal,
    )


def surplus(situation: Situation, window: WindowRecord | None) -> tuple[Run, ...]:
    """Ended Jobs beyond the limits, the oldest first; never one whose end is not written down."""
    limits = situation.controlled.spec.history
    uid = ""
    if window is not None and window.job is not None and window.outcome is WindowOutcome.STARTED:
        uid = window.job.uid
    ended = [
        run for run in situation.runs if run.is_over and not run.job.is_going and run.uid != uid
    ]
    ended.sort(key=lambda run: (run.ended_at or situation.now, run.rank))
    well = [run for run in ended if run.fate is Fate.FINISHED]
    other = [run for run in ended if run.fate is not Fate.FINISHED]
    beyond = (
        *well[: max(0, len(well) - limits.succeeded)],
        *other[: max(0, len(other) - limits.failed)],
    )
    return beyond[:CLEARED_AT_ONCE]
