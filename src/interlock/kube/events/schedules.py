"""Events of JobConfigs and ControlledJobs: what a change is worth telling, pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from interlock.kube.events.jobs import LONGEST, NORMAL, WARNING, Told, trouble_between
from interlock.resources.controlled_job import ActionRecord, ControlledAction, ControlledJob
from interlock.resources.job_config import JobConfig, Skip
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.schedule import written_moment

#: So many Jobs and skips are told of one by one; after an outage there may be many.
_TOLD = 5
#: Conditions of a ControlledJob that nobody should have to look for.
_ALARMS = (
    "FailedToCreateJob",
    "FailedToDeleteJob",
    "FailedToUnsuspendJob",
    "StartingDeadlineExceeded",
    "DrainOverdue",
)


def config_told(before: JobConfig, after: JobConfig) -> list[Told]:
    """What happened to a JobConfig between two of its states: Jobs, skips, and what went wrong."""
    if before.metadata.uid != after.metadata.uid or before.status == after.status:
        return []
    told = chain(_made(before, after), _skipped(before, after), _config_trouble(before, after))
    return _cut(told)


def controlled_told(before: ControlledJob, after: ControlledJob) -> list[Told]:
    """What happened to a ControlledJob between two of its states, in the order it happened."""
    if before.metadata.uid != after.metadata.uid or before.status == after.status:
        return []
    told = chain(_done(before, after), _alarms(before, after), trouble_between(before, after))
    return _cut(told)


def _cut(told: Iterator[Told]) -> list[Told]:
    return [Told(each.type, each.reason, each.message[:LONGEST]) for each in told]


# JobConfigs


def _made(before: JobConfig, after: JobConfig) -> Iterator[Told]:
    """Jobs that were written down: from here on they may start."""
    known = {each.uid for each in before.status.books.expected}
    made = [each for each in after.status.books.expected if each.uid not in known]
    for each in made[:_TOLD]:
        due = f"due at {written_moment(each.scheduled_at)}"
        yield Told(NORMAL, "CreatedJob", f"job/{each.name}, {due}")
    if len(made) > _TOLD:
        yield Told(NORMAL, "CreatedJob", f"and {len(made) - _TOLD} more Jobs")


def _skipped(before: JobConfig, after: JobConfig) -> Iterator[Told]:
    """Due times that became no Job. A stretch that grows is told in the same words each time."""
    known = {(skip.at, skip.reason): skip for skip in before.status.skips}
    for skip in after.status.skips:
        held = known.get((skip.at, skip.reason))
        if held != skip:
            yield Told(WARNING, "SkippedSchedule", _skip(skip, is_longer=held is not None))


def _skip(skip: Skip, *, is_longer: bool) -> str:
    why = f"{skip.reason}: {skip.message}" if skip.message else str(skip.reason)
    if is_longer:
        return f"due since {written_moment(skip.at)}: {why}"
    if skip.until is None or skip.until == skip.at:
        return f"due at {written_moment(skip.at)}: {why}"
    many = f"{skip.count} times" if skip.count else "too many times to be counted"
    span = f"{written_moment(skip.at)} to {written_moment(skip.until)}"
    return f"due from {span}, {many}: {why}"


def _config_trouble(before: JobConfig, after: JobConfig) -> Iterator[Told]:
    condition = _turned_bad(before.status.conditions, after.status.conditions, "Schedulable")
    if condition is not None:
        yield Told(WARNING, condition.reason, condition.message)
    was, now = before.status.trouble, after.status.trouble
    if now is None or (was is not None and was.message == now.message):
        return
    # What is due and not accounted for has no Job yet: that is what went wrong.
    due = after.status.next_schedule
    is_new = after.status.books.accounted_to is None and bool(after.spec.schedules)
    is_waiting = is_new if due is None else due <= now.since
    if now.room == "schedules" and is_waiting:
        yield Told(WARNING, "CreateJobFailed", now.message)
    else:
        yield Told(WARNING, "Trouble", f"{now.room}: {now.message}")


def _turned_bad(
    before: tuple[Condition, ...], after: tuple[Condition, ...], type: str
) -> Condition | None:
    was = next((each for each in before if each.type == type), None)
    now = next((each for each in after if each.type == type), None)
    if now is None or now.status is not ConditionStatus.FALSE:
        return None
    is_news = was is None or was.status is not now.status or was.message != now.message
    return now if is_news else None


# ControlledJobs


def _done(before: ControlledJob, after: ControlledJob) -> Iterator[Told]:
    """What was done since. The newest is first in the record, and last here."""
    held = set(before.status.action_history)
    done = [each for each in after.status.action_history if each not in held]
    for each in reversed(done):
        # What failed is told by its condition, which says what.
        if each.type is not ControlledAction.FAILED:
            is_lost = each.type is ControlledAction.SKIPPED
            yield Told(WARNING if is_lost else NORMAL, each.type.value, _action(each))


def _action(record: ActionRecord) -> str:
    if not record.job_name:
        return record.message
    told = f"job/{record.job_name}"
    if record.type is ControlledAction.JOB_STARTED and record.scheduled_start_time is not None:
        told = f"{told}, for the start at {written_moment(record.scheduled_start_time)}"
    return f"{told}: {record.message}" if record.message else told


def _alarms(before: ControlledJob, after: ControlledJob) -> Iterator[Told]:
    held = {each.type: each for each in before.status.conditions}
    for now in after.status.conditions:
        if now.status is not ConditionStatus.TRUE or now.type not in (*_ALARMS, "Error"):
            continue
        was = held.get(now.type)
        if was is None or was.status is not now.status or was.message != now.message:
            reason = now.reason if now.type == "Error" else now.type
            yield Told(WARNING, reason, now.message)
