"""Conditions of a ControlledJob: one observation each, and none that is not so.

A condition's time moves only when its status does, so that two looks at the same things write the
same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from interlock.resources.controlled_job import ControlledAction, WindowOutcome
from interlock.resources.job import JobPhase
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.values.durations import format_duration
from interlock.schedules.controlled.choosing import Choice, Verdict, why_out_of_date
from interlock.schedules.controlled.draining import time_to_go
from interlock.schedules.controlled.runs import Fate, Run
from interlock.schedules.controlled.situation import Situation

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


class Failures(Struct, frozen=True):
    """What could not be done, each with what was said about it; empty when all went well."""

    creating: str = ""
    stopping: str = ""
    resuming: str = ""


class Told(Struct, frozen=True):
    """One observation."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


class Findings(Struct, frozen=True, kw_only=True):
    """What the conditions are made of: how things are once the decision is carried out."""

    situation: Situation
    choice: Choice
    verdict: Verdict | None
    failures: Failures
    #: Jobs that were told to stop and are not gone when they should be.
    overdue: tuple[Run, ...] = ()
    #: The Job that is told about: the chosen one, or the last.
    current: Run | None = None


def conditions_after(findings: Findings) -> tuple[Condition, ...]:
    """All conditions, in a fixed order."""
    controlled = findings.situation.controlled
    held = {condition.type: condition for condition in controlled.status.conditions}
    generation, now = controlled.metadata.generation, findings.situation.now
    return tuple(_kept(held.get(told.type), told, generation, now) for told in _all(findings))


def _kept(held: Condition | None, told: Told, generation: int, now: datetime) -> Condition:
    is_same = held is not None and held.status is told.status
    return Condition(
        type=told.type,
        status=told.status,
        reason=told.reason,
        message=told.message,
        last_transition_time=held.last_transition_time if held is not None and is_same else now,
        observed_generation=held.observed_generation
        if held is not None and is_same
        else generation,
    )


def _all(findings: Findings) -> Iterator[Told]:
    yield _should_be_running(findings.situation)
    yield _suspended(findings.situation)
    yield from _of_job(findings)
    yield from _attempts(findings)
    yield _deadline(findings.verdict)
    yield _draining(findings)
    yield from _verdicts(verdict_of(findings))
    yield _error(findings.situation)


def _should_be_running(situation: Situation) -> Told:
    kind, timetable = "ShouldBeRunning", situation.view.timetable
    if timetable is None:
        return Told(kind, UNKNOWN, "ScheduleUnreadable", situation.view.flaw)
    if situation.held:
        reason = "Suspended" if situation.controlled.spec.suspend else "OnHold"
        return Told(kind, FALSE, reason, situation.held)
    if not timetable.has_starts:
        return Told(kind, UNKNOWN, "NoStartEvent")
    if situation.is_inside:
        return Told(kind, TRUE, "InsideRunPeriod")
    return Told(kind, FALSE, "OutsideRunPeriod")


def _suspended(situation: Situation) -> Told:
    is_so = situation.controlled.spec.suspend
    return Told("Suspended", TRUE if is_so else FALSE, "Suspended" if is_so else "NotSuspended")


def _of_job(findings: Findings) -> Iterator[Told]:
    run, runs = findings.current, findings.situation.runs
    yield _out_of_date(findings)
    open_runs = [each for each in runs if not each.is_over]
    yield _plainly(
        "JobManuallyScheduled",
        any(each.is_manual for each in open_runs) if open_runs else None,
        ("CreatedByUser", "NoManuallyScheduledJobs"),
    )
    yield _plainly(
        "JobBeingDeleted",
        any(each.job.is_going for each in open_runs) if open_runs else None,
        ("JobBeingDeleted", "JobNotBeingDeleted"),
    )
    exists = run is not None
    yield Told("JobExists", TRUE if exists else FALSE, "JobExists" if exists else "NoCurrentJob")
    yield _running(run)
    is_done = run is not None and run.fate is Fate.FINISHED
    is_bad = run is not None and run.is_over and run.fate is Fate.FAILED
    yield _plainly("JobComplete", is_done if run else None, ("JobCompleteTrue", "JobCompleteFalse"))
    yield _plainly("JobFailed", is_bad if run else None, ("JobFailedTrue", "JobFailedFalse"))
    is_held_back = run is not None and run.job.spec.suspend and not run.is_over
    yield _plainly(
        "JobSuspended", is_held_back if run else None, ("JobSuspended", "JobNotSuspended")
    )
    by_user = run is not None and (run.is_paused or run.fate is Fate.STOPPED_BY_USER)
    yield _plainly(
        "JobStoppedByUser", by_user if run else None, ("JobStoppedByUser", "JobNotStoppedByUser")
    )


def _plainly(kind: str, is_so: bool | None, reasons: tuple[str, str]) -> Told:
    """True or false, or unknown while there is no Job to speak of."""
    if is_so is None:
        return Told(kind, UNKNOWN, "NoCurrentJob")
    return Told(kind, TRUE, reasons[0]) if is_so else Told(kind, FALSE, reasons[1])


def _out_of_date(findings: Findings) -> Told:
    run = findings.current
    if run is None:
        return Told("OutOfDate", FALSE, "NoRunningJob")
    why = why_out_of_date(findings.situation, run)
    if why is None:
        return Told("OutOfDate", FALSE, "NotOutOfDate")
    return Told("OutOfDate", TRUE, why or "ToBeReplaced")


#: Phases in which tasks may run.
_RUNNING = frozenset({JobPhase.RUNNING, JobPhase.KILLING, JobPhase.TERMINATING, JobPhase.EVICTING})


def _running(run: Run | None) -> Told:
    kind = "JobRunning"
    if run is None:
        return Told(kind, UNKNOWN, "NoCurrentJob")
    phase = run.job.status.phase
    if phase is JobPhase.UNKNOWN:
        return Told(kind, UNKNOWN, "CannotDetermine", f"what became of job/{run.name} is not known")
    runs = phase in _RUNNING
    if runs:
        return Told(kind, TRUE, "ReadyCountSufficient")
    return Told(kind, FALSE, "ReadyCountNotSufficient")


def _attempts(findings: Findings) -> Iterator[Told]:
    """Whether the last attempts to do something went well; silent about what was never tried."""
    status, failures = findings.situation.controlled.status, findings.failures
    known = {condition.type for condition in status.conditions}
    done = {record.type for record in status.action_history}
    tries = (
        ("FailedToCreateJob", failures.creating, "CreatedJob", ControlledAction.JOB_STARTED),
        ("FailedToDeleteJob", failures.stopping, "DeletedJob", ControlledAction.JOB_STOPPED),
        ("FailedToUnsuspendJob", failures.resuming, "UnsuspendedJob", None),
    )
    for kind, failure, well, action in tries:
        if failure:
            yield Told(kind, TRUE, kind, failure)
        elif kind in known or action in done:
            yield Told(kind, FALSE, well)


def _deadline(verdict: Verdict | None) -> Told:
    kind = "StartingDeadlineExceeded"
    if verdict is not None and verdict.is_late:
        return Told(kind, TRUE, kind, verdict.message)
    if verdict is not None and verdict.outcome is WindowOutcome.STARTED:
        return Told(kind, FALSE, "StartingDeadlineNotExceeded")
    return Told(kind, UNKNOWN, "NoNewJobRequired")


def _draining(findings: Findings) -> Told:
    if findings.overdue:
        limit = format_duration(time_to_go(findings.overdue[0], findings.situation))
        names = ", ".join(f"job/{run.name}" for run in findings.overdue[:3])
        message = (
            f"{names} was told to stop and is not gone after {limit}; nothing starts until it is"
        )
        return Told("DrainOverdue", TRUE, "NotGone", message)
    return Told("DrainOverdue", FALSE, "NothingOverdue")


def verdict_of(findings: Findings) -> tuple[str, str, str]:
    """Which of the four verdicts is so, why, and in words."""
    situation, verdict = findings.situation, findings.verdict
    busy = [run for run in situation.runs if run.is_admitted and not run.is_over]
    kept = {run.uid for run in findings.choice.kept}
    if findings.overdue:
        return (
            "RunningUnexpectedly",
            "DrainOverdue",
            f"job/{findings.overdue[0].name} does not stop",
        )
    if any(run.uid in kept for run in busy):
        is_plan = situation.is_inside or situation.standing is None
        return "RunningExpectedly", "RunningBasedOnSchedule" if is_plan else "RunningManually", ""
    if busy and not situation.is_inside:
        return "RunningExpectedly", "Stopping", f"job/{busy[0].name} was told to stop"
    if verdict is None:
        return "NotRunningExpectedly", "NotRunningExpectedly", situation.held
    return _verdict_inside(findings, verdict)


def _verdict_inside(findings: Findings, verdict: Verdict) -> tuple[str, str, str]:
    """Why nothing runs though a window is open."""
    expectedly, unexpectedly = "NotRunningExpectedly", "NotRunningUnexpectedly"
    chosen = findings.choice.chosen
    if chosen is not None:
        if chosen.is_paused:
            return expectedly, "JobStoppedByUser", f"a person holds job/{chosen.name} back"
        return expectedly, "JobStarting", f"job/{chosen.name} waits to start"
    match verdict.outcome:
        case WindowOutcome.FINISHED:
            return expectedly, "JobComplete", "its work is done"
        case WindowOutcome.STOPPED_BY_USER:
            return expectedly, "JobStoppedByUser", "a person stopped it"
        case WindowOutcome.FAILED:
            return unexpectedly, "JobFailed", verdict.message
        case WindowOutcome.TOO_LATE:
            return unexpectedly, "StartingDeadlineExceeded", verdict.message
        case _:
            why = findings.failures.creating or findings.situation.view.calendar_problem
            return unexpectedly, "NoJobExists", why or verdict.message


def _verdicts(verdict: tuple[str, str, str]) -> Iterable[Told]:
    so, reason, message = verdict
    for kind in _VERDICTS:
        yield Told(kind, TRUE, reason, message) if kind == so else Told(kind, FALSE, so)


_VERDICTS = (
    "RunningExpectedly",
    "RunningUnexpectedly",
    "NotRunningExpectedly",
    "NotRunningUnexpectedly",
)


def _error(situation: Situation) -> Told:
    view = situation.view
    if view.flaw:
        return Told("Error", TRUE, "ScheduleUnreadable", view.flaw)
    if view.calendar_problem:
        return Told("Error", TRUE, "CalendarMissing", view.calendar_problem)
    return Told("Error", FALSE, "NoError")
