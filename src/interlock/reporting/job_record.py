"""The job status record: what the status API says of a Job, in the words of its users.

It is worked out for every Job, with steps or without; docs/reference/job-status.md tells of each
attribute. What people filter by is here too, so that a list finds what its items say.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from interlock.execution.children import Children
from interlock.reporting.summaries import TaskCounts, summary_of
from interlock.resources.job import CREATOR_ANNOTATION, Job, JobPhase
from interlock.resources.operation import CompletionState, OperationState, OperationStatus
from interlock.resources.steps import Target
from interlock.resources.tasks import JobResult, number_in_round
from interlock.resources.transitions import ended_at, has_ended

#: Phases of Jobs without steps in which nothing of them runs, and they are not over.
_QUEUED = frozenset({JobPhase.QUEUED, JobPhase.STARTING, JobPhase.PENDING, JobPhase.RETRY_BACKOFF})


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a Job: not there as long as there is nothing to tell."""

    #: What it returned.
    output: Any = None
    #: The last error that came from running it, not from undoing it.
    error: str | None = None
    #: How attempts failed, to run a step and to undo one: the newest, bounded.
    failures: tuple[str, ...] = ()


class JobRecord(Struct, frozen=True, kw_only=True):
    """The status of a Job."""

    #: What it is asked for by, for ever: the Job's uid.
    job_id: str
    #: What sort of operation it is.
    type: str | None
    #: A line, and more, for people.
    title: str
    description: str | None
    #: What it was asked to do it with.
    args: dict[str, Any]
    #: The ids of the Jobs that are parts of it, and of the one that it is a part of.
    child_jobs: tuple[str, ...]
    parent_job: str | None
    #: Where it is; and what it came to, given exactly when it is complete.
    state: OperationState
    completion_state: CompletionState | None
    #: The retries of the step that is being tried again, to run it and to undo it.
    retry_count: int
    rollback_retry_count: int
    #: From 0 to 100; null when it cannot be told.
    percentage_complete: float | None
    #: What came of it, and how attempts failed so far.
    result: Outcome | None
    #: What it is done to.
    object_type: str | None
    application_id: str | None
    application_name: str | None
    domain_name: str | None
    object_url: str | None
    #: Whose that is, and who asked.
    owner_login: str | None
    creator_login: str | None
    created_at: datetime | None
    #: When any of this changed last, as far as it was recorded.
    updated_at: datetime | None
    #: When it is tried again.
    next_attempt_at: datetime | None
    #: Since when nobody acts but a person, and why.
    stuck_at: datetime | None
    stuck_message: str | None


class JobView(JobRecord, frozen=True, kw_only=True):
    """The status of a Job, and beside it what lists and streams have always told."""

    id: str
    name: str
    namespace: str
    phase: str
    version: str
    created: datetime | None = field(name="createdAt")
    tasks: TaskCounts
    creator: str | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    locks: tuple[str, ...] | UnsetType = UNSET
    waits: tuple[str, ...] | UnsetType = UNSET
    started: datetime | UnsetType = field(name="startedAt", default=UNSET)
    ended: datetime | UnsetType = field(name="endedAt", default=UNSET)
    exit_code: int | UnsetType = field(name="exitCode", default=UNSET)
    message: str | UnsetType = UNSET
    target_path: str | UnsetType = UNSET
    #: The name of the Job that it is a part of.
    parent: str | UnsetType = UNSET

    @property
    def last_error(self) -> str:
        """How running it failed last; empty when it did not."""
        return (self.result.error if self.result is not None else None) or ""


class Facets(NamedTuple):
    """What a Job is found by in lists."""

    state: OperationState
    completion: str
    creator: str
    owner: str
    #: Every path that it is listed under: of its target, and of all that this is a part of.
    paths: tuple[str, ...]
    #: The namespace and name of its parent.
    parent: str


def facets_of(job: Job) -> Facets:
    """What a Job is found by."""
    completion = completion_of(job)
    creator = creator_of(job)
    parent = job.spec.parent
    return Facets(
        state=state_of(job),
        completion=completion.value if completion is not None else "",
        creator=creator,
        owner=job.spec.owner or creator,
        paths=paths_of(job.spec.target),
        parent="" if parent is None else f"{job.metadata.namespace}/{parent}",
    )


def creator_of(job: Job) -> str:
    """Who asked for it; empty when nobody knows."""
    return job.metadata.annotations.get(CREATOR_ANNOTATION, "")


def paths_of(target: Target | None) -> tuple[str, ...]:
    """The paths under which what is done to a target is listed."""
    if target is None:
        return ()
    words = target.path.split("/")
    paths = ["/".join(words[: at + 1]) for at in range(len(words))]
    if target.id and target.type in ("", "application"):
        paths.append(f"applications/{target.id}")
    return tuple(dict.fromkeys(paths))


def state_of(job: Job) -> OperationState:
    """Where a Job is, in one of four words."""
    if has_ended(job):
        return OperationState.COMPLETE
    operation = job.status.execution.operation
    if operation is not None:
        return operation.state
    return OperationState.QUEUED if job.status.phase in _QUEUED else OperationState.EXECUTING


def completion_of(job: Job) -> CompletionState | None:
    """What a Job came to; None exactly as long as it is not over."""
    if not has_ended(job):
        return None
    operation = job.status.execution.operation
    if operation is not None and operation.completion_state is not None:
        return operation.completion_state
    done = job.status.execution.result is JobResult.SUCCEEDED
    return CompletionState.SUCCESS if done else CompletionState.FAILED


def is_stuck(job: Job) -> bool:
    """Whether nobody acts but a person."""
    operation = job.status.execution.operation
    return operation is not None and operation.stuck_at is not None and not has_ended(job)


def record_of(
    job: Job,
    child_jobs: Sequence[str] = (),
    parent_job: str | None = None,
    children: Children = Children(),  # noqa: B008 (it cannot be changed)
) -> JobRecord:
    """The status of a Job, with the ids of its children and of its parent, and how they are."""
    operation = job.status.execution.operation
    completion = completion_of(job)
    counts = _counts(job, operation, completion)
    spec = job.spec
    return JobRecord(
        job_id=job.metadata.uid,
        type=spec.type or None,
        title=spec.title,
        description=spec.description or None,
        args={**spec.args, **(spec.python.args if spec.python is not None else {})},
        child_jobs=tuple(child_jobs),
        parent_job=parent_job,
        state=state_of(job),
        completion_state=completion,
        retry_count=counts[0],
        rollback_retry_count=counts[1],
        percentage_complete=_percentage(job, operation, completion, children),
        result=_result(job, operation, completion),
        owner_login=spec.owner or creator_of(job) or None,
        creator_login=creator_of(job) or None,
        created_at=job.metadata.creation_timestamp,
        updated_at=_updated_at(job, operation),
        next_attempt_at=_next_attempt_at(job, operation),
        stuck_at=operation.stuck_at if operation is not None else None,
        stuck_message=(operation.stuck_message or None) if operation is not None else None,
        **_about(spec.target),
    )


def view_of(job: Job, record: JobRecord) -> JobView:
    """The record, and what lists and streams tell of the Job."""
    told = summary_of(job)
    return JobView(
        **{name: getattr(record, name) for name in JobRecord.__struct_fields__},
        id=told.id,
        name=told.name,
        namespace=told.namespace,
        phase=told.state,
        version=told.version,
        created=told.created_at,
        tasks=told.tasks,
        creator=told.creator or UNSET,
        labels=told.labels or UNSET,
        priority=told.priority or UNSET,
        locks=told.locks or UNSET,
        waits=told.waits or UNSET,
        started=told.started_at or UNSET,
        ended=told.ended_at or UNSET,
        exit_code=UNSET if told.exit_code is None else told.exit_code,
        message=told.message or UNSET,
        target_path=job.spec.target.path if job.spec.target is not None else UNSET,
        parent=job.spec.parent or UNSET,
    )


def _about(target: Target | None) -> dict[str, str | None]:
    """What is said of the target: as it says itself, or as its path shows."""
    if target is None:
        names = ("object_type", "application_id", "application_name", "domain_name", "object_url")
        return dict.fromkeys(names)
    words = target.path.split("/")
    named = dict(zip(words[::2], words[1::2], strict=False))
    is_application = target.type == "application"
    is_domain = target.type == "domain"
    return {
        "object_type": target.type or None,
        "application_id": (target.id or None) if is_application else None,
        "application_name": (target.name if is_application else "") or named.get("applications"),
        "domain_name": (target.name if is_domain else "") or named.get("domains"),
        "object_url": target.url or None,
    }


def _counts(
    job: Job, operation: OperationStatus | None, completion: CompletionState | None
) -> tuple[int, int]:
    """Retries of running and of undoing."""
    if operation is not None:
        return operation.retry_count, operation.rollback_retry_count
    execution = job.status.execution
    if completion is CompletionState.SUCCESS:
        return 0, 0
    tried = [number_in_round(task.attempt) for task in execution.active]
    # What waits for its next attempt has made one retry less than that one's number.
    tried += [number_in_round(wait.attempt) - 1 for wait in execution.retrying]
    if completion is not None:
        tried += [number_in_round(task.attempt) for task in execution.ended]
    return max(tried, default=0), 0


def _percentage(
    job: Job,
    operation: OperationStatus | None,
    completion: CompletionState | None,
    children: Children,
) -> float | None:
    if completion in (CompletionState.SUCCESS, CompletionState.PARTIAL_SUCCESS):
        return 100.0
    if completion is None and children.total:
        return round(100 * (children.total - children.unfinished) / children.total, 1)
    if operation is not None:
        return operation.percentage
    execution = job.status.execution
    if not execution.total:
        return None
    return round(100 * len(execution.succeeded) / execution.total, 1)


def _result(
    job: Job, operation: OperationStatus | None, completion: CompletionState | None
) -> Outcome | None:
    failed = completion is CompletionState.FAILED
    execution, admission = job.status.execution, job.status.admission
    if operation is None:
        message = execution.message or admission.message or job.status.phase.value
        return Outcome(error=message) if failed else None
    error = operation.error if failed or completion is None else ""
    if failed:
        error = error or execution.message or admission.message or job.status.phase.value
    output = _value(operation.result) if completion is not None and not failed else None
    if not (error or output is not None or operation.failures):
        return None
    return Outcome(output=output, error=error or None, failures=operation.failures)


def _value(text: str) -> Any:
    """What JSON stands for; what is none stands for itself."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _updated_at(job: Job, operation: OperationStatus | None) -> datetime | None:
    execution = job.status.execution
    moments = [
        job.metadata.creation_timestamp,
        operation.updated_at if operation is not None else None,
        execution.started_at,
        execution.stopping_at,
        ended_at(job),
        *(task.ended_at for task in execution.ended[-1:]),
        *(condition.last_transition_time for condition in job.status.conditions),
    ]
    return max((moment for moment in moments if moment is not None), default=None)


def _next_attempt_at(job: Job, operation: OperationStatus | None) -> datetime | None:
    if operation is not None:
        return operation.next_attempt_at
    execution = job.status.execution
    if execution.active:
        return None
    return min((wait.not_before for wait in execution.retrying), default=None)
