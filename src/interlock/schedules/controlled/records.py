"""Window records: which windows there were, and what became of each."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.resources.controlled_job import WindowOutcome, WindowRecord
from interlock.resources.schedule import JobReference
from interlock.schedules.controlled.choosing import Verdict, could_have, start_deadline
from interlock.schedules.controlled.overrides import Period
from interlock.schedules.controlled.runs import Fate, Run
from interlock.schedules.controlled.situation import Situation, fate_of_record

#: How many windows are kept beside the newest.
KEPT_WINDOWS = 10

Records = tuple[WindowRecord | None, tuple[WindowRecord, ...]]


def records_after(
    situation: Situation, verdict: Verdict | None, message: str, is_same_plan: bool
) -> Records:
    """The newest window and those before it, newest first.

    `message` says why no Job could be made. With `is_same_plan`, windows that opened and closed
    since the last look are told too; at the first look, those since it was made as it is.
    """
    status, window = situation.controlled.status, situation.window
    if situation.standing is None:
        return status.window, status.past_windows
    current = situation.record
    others = [_closed(each, situation) for each in situation.other_records]
    if is_same_plan or _is_first_look(situation):
        others += _missed(situation)
    others.sort(key=lambda each: each.start, reverse=True)
    if window is None:
        # The one that was open last stays in its place until another opens.
        return (others[0] if others else None), tuple(others[1 : KEPT_WINDOWS + 1])
    record = current or WindowRecord(start=window.start)
    record = replace(record, start=window.start, stop=window.stop)
    record = _judged(record, verdict, message) if verdict else _on_hold(record, situation)
    return record, tuple(others)[:KEPT_WINDOWS]


def with_run(record: WindowRecord, run: Run) -> WindowRecord:
    """The record with its newest Job."""
    if record.job is not None and record.job.uid == run.uid:
        return record
    return replace(
        record,
        job=JobReference(name=run.name, uid=run.uid),
        run_id=run.number,
        template_hash=run.template_hash,
        job_version=run.job.version,
        runs=record.runs + 1,
    )


def _judged(record: WindowRecord, verdict: Verdict, message: str) -> WindowRecord:
    if verdict.run is not None:
        record = with_run(record, verdict.run)
    return replace(record, outcome=verdict.outcome, message=message or verdict.message)


def _on_hold(record: WindowRecord, situation: Situation) -> WindowRecord:
    """An open window in which nothing may run at present."""
    fate = fate_of_record(record, situation)
    if fate in _ENDS:
        return replace(record, outcome=_ENDS[fate])
    is_new = record.job is None
    outcome = WindowOutcome.NEVER_STARTED if is_new else WindowOutcome.STOPPED
    return replace(record, outcome=outcome, message=situation.held)


def _closed(record: WindowRecord, situation: Situation) -> WindowRecord:
    """A window that is not open any more: what became of its Job, and when it closed."""
    now = situation.now
    if record.start > now:
        return _to_come_again(record, situation)
    if record.stop is None or record.stop > now:
        last = situation.last_stop
        record = replace(record, stop=last if last is not None and last > record.start else now)
    if record.outcome in _FINAL:
        return record
    fate = fate_of_record(record, situation)
    if fate is None:
        return record
    outcome = _ENDS.get(fate, WindowOutcome.STOPPED)
    if record.outcome is outcome and not record.message:
        return record
    return replace(record, outcome=outcome, message="")


def _to_come_again(record: WindowRecord, situation: Situation) -> WindowRecord:
    """A window that clocks were set back before.

    What became of its Job by itself, or by a person's word, is kept, for the window will open once
    more, and the Job may be gone by then. Only what the schedule stopped is made again.
    """
    if record.outcome in _FINAL:
        return record
    fate = fate_of_record(record, situation)
    if fate in _ENDS:
        return replace(record, outcome=_ENDS[fate], message="")
    if record.outcome is not WindowOutcome.STARTED:
        return record
    told = "clocks were set back before it"
    return replace(record, outcome=WindowOutcome.STOPPED, message=told)


_ENDS = {
    Fate.FINISHED: WindowOutcome.FINISHED,
    Fate.FAILED: WindowOutcome.FAILED,
    Fate.STOPPED_BY_USER: WindowOutcome.STOPPED_BY_USER,
}
_FINAL = frozenset({*_ENDS.values(), WindowOutcome.REMOVED_BY_USER, WindowOutcome.TOO_LATE})


def _is_first_look(situation: Situation) -> bool:
    """Whether nobody looked before, and the plan is the one that it was made with."""
    controlled = situation.controlled
    return not controlled.status.books.schedule_hash and controlled.metadata.generation == 1


def _missed(situation: Situation) -> list[WindowRecord]:
    """Windows that nobody looked at while they were open, newest first."""
    timetable, controlled = situation.view.timetable, situation.controlled
    since = controlled.status.books.accounted_to or controlled.metadata.creation_timestamp
    if timetable is None or since is None:
        return []
    if situation.last_stop is None or situation.last_stop <= since:
        return []  # Nothing closed since the last look, so nothing was missed.
    known = {each.start for each in (*situation.open_records, *situation.other_records)}
    window = situation.window
    at = window.start if window is not None else situation.now
    missed: list[WindowRecord] = []
    while len(missed) <= KEPT_WINDOWS:
        period = timetable.window_before(at)
        if period is None or period.start <= since or period.start in known:
            break
        told = f"it opened and closed, and nobody looked{_deadline(period, situation)}"
        missed.append(WindowRecord(start=period.start, stop=period.stop, message=told))
        at = period.start
    return missed


def _deadline(period: Period, situation: Situation) -> str:
    """Until when a window that is over could have started, if that was before it closed."""
    deadline = start_deadline(situation.controlled.spec, period.start, period.start)
    is_earlier = deadline is not None and (period.stop is None or deadline < period.stop)
    return f"; {could_have(deadline)}" if deadline is not None and is_earlier else ""
