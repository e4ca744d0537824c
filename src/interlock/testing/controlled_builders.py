"""ControlledJobs, their Jobs and views of them, filled in where a test does not care."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from interlock.resources.actions import (
    CreateJob,
    Decision,
    DeleteResource,
    RecordStatus,
    ReviseJob,
)
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, RefusalReason
from interlock.resources.controlled_job import (
    ControlledJob,
    ControlledJobSpec,
    ControlledJobStatus,
    EventSpec,
    EventTime,
    Override,
    OverrideAction,
    RestartStrategy,
    SpecChangePolicy,
    TimezoneSpec,
    WindowSpec,
)
from interlock.resources.job import Job, JobSpec, JobStatus
from interlock.resources.metadata import Condition, Metadata
from interlock.resources.process import ProcessSpec
from interlock.resources.schedule import (
    MANUAL_ANNOTATION,
    STOPPED_BECAUSE_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    TEMPLATE_HASH_ANNOTATION,
    USER_STOP,
    ExpectedJob,
    JobTemplate,
)
from interlock.resources.tasks import (
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    TaskState,
    TaskStatus,
)
from interlock.resources.transitions import phase_of
from interlock.resources.values.durations import parse_duration
from interlock.schedules.controlled.making import make_job, template_hash
from interlock.schedules.controlled.plan import schedule_hash, timetable_of
from interlock.schedules.controlled.view import ControlledView
from interlock.timing.calendars import Calendar
from interlock.timing.plans import Action

#: A template of another time: Jobs made of it are out of date.
OLD_HASH = "0" * 64


def moment(text: str) -> datetime:
    """A moment in UTC, as people write it: 2026-01-05 09:00."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def a_window(text: str = "09:00-17:00", days: str = "*", **more: Any) -> WindowSpec:
    """A window."""
    begin, _, end = text.partition("-")
    return WindowSpec(begin=begin, end=end, days=days, **more)


def an_event(action: str, at: str, days: str = "*", **more: Any) -> EventSpec:
    """A start or stop at a time of day, or (with spaces in it) by a cron line."""
    if " " in at:
        return EventSpec(action=Action(action), cron=at, **more)
    return EventSpec(
        action=Action(action), schedule=EventTime(time_of_day=at, days_of_week=days), **more
    )


def an_override(action: str, begin: str, until: str, **more: Any) -> Override:
    """An exception to the plan."""
    return Override(action=OverrideAction(action), begin=moment(begin), until=moment(until), **more)


def a_controlled(
    *windows: WindowSpec | EventSpec,
    name: str = "engine",
    zone: str = "UTC",
    offset: int = 0,
    created: str = "2020-01-01 00:00",
    policy: str = "Ignore",
    start_by: str | None = None,
    command: tuple[str, ...] = ("serve",),
    status: ControlledJobStatus | None = None,
    **spec: Any,
) -> ControlledJob:
    """A stored ControlledJob, open from 9 to 17 every day unless it is told otherwise."""
    given = windows or (a_window(),)
    template = spec.pop("template", None) or JobTemplate(
        spec=JobSpec(process=ProcessSpec(command=command))
    )
    return ControlledJob(
        metadata=Metadata(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            resource_version="1000",
            generation=1,
            creation_timestamp=moment(created),
        ),
        spec=ControlledJobSpec(
            job_template=template,
            timezone=TimezoneSpec(name=zone, offset=offset),
            windows=tuple(each for each in given if isinstance(each, WindowSpec)),
            events=tuple(each for each in given if isinstance(each, EventSpec)),
            restart_strategy=RestartStrategy(spec_change_policy=SpecChangePolicy(policy)),
            start_by=parse_duration(start_by) if start_by is not None else None,
            **spec,
        ),
        status=status or ControlledJobStatus(),
    )


def a_run(
    controlled: ControlledJob,
    start: str,
    number: int = 0,
    state: str = "Running",
    *,
    manual: bool = False,
    template: str | None = None,
    user_stop: bool = False,
    going: bool = False,
    ended: str | None = None,
    notes: dict[str, str] | None = None,
    metadata: Mapping[str, Any] = {},
    **spec: Any,
) -> Job:
    """A stored Job of a ControlledJob, in one of the states of `_STATES`."""
    at = moment(start)
    stop = spec.pop("stop", None)
    job = make_job(controlled, start=at, number=number, stop=moment(stop) if stop else None)
    annotations = dict(job.metadata.annotations)
    if manual:
        annotations[MANUAL_ANNOTATION] = "true"
    if template is not None:
        annotations[TEMPLATE_HASH_ANNOTATION] = template
    if user_stop:
        annotations[SUSPEND_REASON_ANNOTATION] = USER_STOP
    given = {
        "uid": f"uid-{job.metadata.name}",
        "resource_version": str(100 + number),
        "generation": 1,
        "creation_timestamp": at,
        "deletion_timestamp": at if going else None,
        "annotations": {
            key: text for key, text in (annotations | (notes or {})).items() if text != "-"
        },
    }
    given |= metadata
    return replace(
        job,
        metadata=replace(job.metadata, **given),
        spec=replace(job.spec, **spec),
        status=_status(state, at, moment(ended) if ended else at),
    )


def _status(state: str, at: datetime, ended: datetime) -> JobStatus:
    admission, execution = _STATES[state](at, ended)
    return JobStatus(phase=phase_of(admission, execution), admission=admission, execution=execution)


def _running(at: datetime, **more: Any) -> ExecutionStatus:
    task = TaskStatus(
        name="task", index=0, attempt=0, state=TaskState.RUNNING, created_at=at, started_at=at
    )
    return ExecutionStatus(total=1, started_at=at, active=(task,), **more)


def _ended(at: datetime, ended: datetime, result: str, reason: str) -> ExecutionStatus:
    return ExecutionStatus(
        total=1,
        started_at=at,
        ended_at=ended,
        result=JobResult(result),
        reason=ExecutionReason(reason),
    )


def _in(at: datetime) -> AdmissionStatus:
    return AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=1, admitted_at=at)


def _out(ended: datetime, refusal: RefusalReason) -> AdmissionStatus:
    return AdmissionStatus(
        phase=AdmissionPhase.REFUSED, sequence=1, refused_at=ended, refusal=refusal
    )


_STATES: dict[str, Any] = {
    "Waiting": lambda *_: (AdmissionStatus(), ExecutionStatus()),
    "Starting": lambda at, _: (_in(at), ExecutionStatus()),
    "Running": lambda at, _: (_in(at), _running(at)),
    "Stopping": lambda at, end: (
        _in(at),
        _running(at, stopping_at=end, stopping_for=ExecutionReason.KILLED),
    ),
    "Finishing": lambda at, end: (
        _in(at),
        _running(at, stopping_at=end, stopping_for=ExecutionReason.COMPLETED),
    ),
    "Succeeded": lambda at, end: (_in(at), _ended(at, end, "Succeeded", "Completed")),
    "Failed": lambda at, end: (_in(at), _ended(at, end, "Failed", "TaskFailed")),
    "Killed": lambda at, end: (_in(at), _ended(at, end, "Killed", "Killed")),
    "Invalid": lambda _, end: (_out(end, RefusalReason.INVALID), ExecutionStatus()),
    "KilledEarly": lambda _, end: (_out(end, RefusalReason.KILLED_BEFORE_START), ExecutionStatus()),
}


def in_books(controlled: ControlledJob, *jobs: Job) -> ControlledJob:
    """A ControlledJob that has written these Jobs down."""
    expected = tuple(
        ExpectedJob(
            name=job.metadata.name,
            uid=job.metadata.uid,
            scheduled_at=job.metadata.creation_timestamp or moment("2026-01-01 00:00"),
            job_version=job.version,
        )
        for job in jobs
    )
    books = replace(controlled.status.books, expected=expected)
    return replace(controlled, status=replace(controlled.status, books=books))


def a_view(
    controlled: ControlledJob,
    *jobs: Job,
    calendars: Mapping[str, Calendar] = {},
    **more: Any,
) -> ControlledView:
    """What is seen of a ControlledJob; all about Jobs was heard."""
    given: dict[str, Any] = {
        "template_hash": template_hash(controlled.spec.job_template.spec),
        "schedule_hash": schedule_hash(controlled.spec),
        "timetable": timetable_of(controlled, calendars),
        "heard_to": 10**9,
    }
    return ControlledView(controlled=controlled, jobs=jobs, **(given | more))


# What a decision says


def told_to_stop(decision: Decision) -> list[str]:
    """The names of the Jobs that are told to stop now, in order."""
    return sorted(
        action.job.metadata.name
        for action in decision.actions
        if isinstance(action, ReviseJob) and STOPPED_BECAUSE_ANNOTATION in action.annotations
    )


def made(decision: Decision) -> list[Job]:
    """The Jobs that are made."""
    return [action.job for action in decision.actions if isinstance(action, CreateJob)]


def moved(decision: Decision) -> dict[str, JobSpec]:
    """What Jobs are changed to that are not told to stop, by name."""
    return {
        action.job.metadata.name: action.spec
        for action in decision.actions
        if isinstance(action, ReviseJob) and STOPPED_BECAUSE_ANNOTATION not in action.annotations
    }


def removed(decision: Decision) -> list[str]:
    """The names of what is deleted."""
    return [
        action.resource.metadata.name
        for action in decision.actions
        if isinstance(action, DeleteResource)
    ]


def status_in(decision: Decision) -> ControlledJobStatus | None:
    """The status that is written."""
    for action in decision.actions:
        if isinstance(action, RecordStatus):
            assert isinstance(action.status, ControlledJobStatus)
            return action.status
    return None


def written(controlled: ControlledJob, decision: Decision) -> ControlledJob:
    """The ControlledJob once the decision is carried out."""
    status = status_in(decision)
    return controlled if status is None else replace(controlled, status=status)


def conditions_of(status: ControlledJobStatus) -> dict[str, Condition]:
    """Conditions by their type."""
    return {condition.type: condition for condition in status.conditions}


def so(status: ControlledJobStatus, types: Iterable[str]) -> dict[str, str]:
    """What some conditions say."""
    conditions = conditions_of(status)
    return {kind: conditions[kind].status.value for kind in types if kind in conditions}
