"""Status changes worth telling: what a status says that the one before it did not."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.resources.controlled_job import (
    ActionRecord,
    ControlledAction,
    ControlledJobStatus,
    WindowOutcome,
    WindowRecord,
)
from interlock.resources.schedule import written_moment

#: So many are told in one line.
_TOLD = 3
#: What a window is before anything became of it.
_OPEN = (WindowOutcome.NEVER_STARTED, WindowOutcome.STARTED)
_DID = {
    ControlledAction.JOB_STARTED: "lets {job} start",
    ControlledAction.JOB_RESTARTED: "lets {job} start",
    ControlledAction.JOB_STOPPED: "{job} is stopped",
    ControlledAction.SKIPPED: "skips",
    ControlledAction.FAILED: "failed",
}


def news_of(before: ControlledJobStatus, after: ControlledJobStatus) -> str:
    """What was done and what became of windows; empty when only numbers and times moved on."""
    held = set(before.action_history)
    done = [each for each in after.action_history if each not in held]
    parts = [*map(_done, reversed(done)), *_let_in(before, after, done), *_outcomes(before, after)]
    return "; ".join(parts[:_TOLD])


def _done(record: ActionRecord) -> str:
    did = _DID[record.type].format(job=f"job/{record.job_name}")
    return f"{did}: {record.message}" if record.message else did


def _let_in(
    before: ControlledJobStatus, after: ControlledJobStatus, done: list[ActionRecord]
) -> Iterator[str]:
    """Jobs that were written down and that no action tells of."""
    known = {each.uid for each in before.books.expected}
    told = {each.job_name for each in done}
    for each in after.books.expected:
        if each.uid not in known and each.name not in told:
            yield f"lets job/{each.name} start"


def _outcomes(before: ControlledJobStatus, after: ControlledJobStatus) -> Iterator[str]:
    held = {each.start: each.outcome for each in _windows(before)}
    for each in _windows(after):
        if each.outcome not in _OPEN and held.get(each.start) is not each.outcome:
            said = f" ({each.message})" if each.message else ""
            yield f"the window of {written_moment(each.start)} is {_WORDS[each.outcome]}{said}"


_WORDS = {
    WindowOutcome.FINISHED: "done with: its Job ended well",
    WindowOutcome.FAILED: "done with: its Job failed",
    WindowOutcome.STOPPED: "over: its Job was stopped",
    WindowOutcome.STOPPED_BY_USER: "done with: a person stopped its Job",
    WindowOutcome.REMOVED_BY_USER: "done with: a person deleted its Job",
    WindowOutcome.TOO_LATE: "lost: no Job could be made in time",
}


def _windows(status: ControlledJobStatus) -> Iterator[WindowRecord]:
    if status.window is not None:
        yield status.window
    yield from status.past_windows
