"""Descriptions of actions: each in a few words, for the log, the journal and people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import assert_never

from interlock.resources.actions import (
    Action,
    AddFinalizer,
    CreateJob,
    CreateResource,
    DeleteResource,
    DropOverrides,
    DropOwner,
    ForgetTask,
    LaunchTask,
    RecordAdmission,
    RecordExecution,
    RecordStatus,
    RemoveFinalizer,
    ReviseJob,
    StopTask,
)
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobSpec
from interlock.resources.kinds import KINDS
from interlock.resources.schedule import STOPS_AT_ANNOTATION
from interlock.resources.tasks import ExecutionStatus, TaskId, task_name

#: So many actions of one sort in a row are told one by one.
_TOLD = 3


def describe_action(action: Action) -> str:
    """One short line: a verb, and what it is done to."""
    match action:
        case RecordAdmission(_, admission):
            return _describe_admission(admission)
        case RecordExecution(_, execution):
            return _describe_execution(execution)
        case CreateJob(resource) | CreateResource(resource):
            return f"create {KINDS[resource.kind].title(resource)}"
        case ReviseJob(job, spec, notes):
            return _describe_revision(job, spec, notes)
        case RecordStatus(resource, status):
            return KINDS[resource.kind].status_line(resource, status)
        case DropOverrides(controlled, _):
            return f"drop overrides of {controlled.key} that are over"
        case LaunchTask(_, order):
            return f"launch {order.name}"
        case StopTask(job, task, grace_s, _):
            return f"stop {_name(job, task)} within {grace_s:g} s"
        case ForgetTask(job, task):
            return f"forget {_name(job, task)}"
        case AddFinalizer(_, finalizer):
            return f"add finalizer {finalizer}"
        case RemoveFinalizer(_, finalizer):
            return f"remove finalizer {finalizer}"
        case DropOwner(resource, owner_uid):
            return f"drop owner {owner_uid} of {resource.key}"
        case DeleteResource(resource):
            return f"delete {resource.key}"
        case _:
            assert_never(action)


def describe_actions(actions: Sequence[Action]) -> tuple[str, ...]:
    """A line per action; many of one sort in a row are told as the first and a number."""
    if len(actions) <= _TOLD:
        return tuple(map(describe_action, actions))
    lines: list[str] = []
    for _, group in groupby(actions, type):
        run = tuple(group)
        if len(run) <= _TOLD:
            lines.extend(map(describe_action, run))
        else:
            lines.append(f"{describe_action(run[0])} … and {len(run) - 1} more")
    return tuple(lines)


def _describe_revision(job: Job, spec: JobSpec, notes: dict[str, str]) -> str:
    if spec.kill_at == job.spec.kill_at:
        return f"revise {job.key}"
    if STOPS_AT_ANNOTATION not in notes:
        return f"stop {job.key}"
    at = f" to {spec.kill_at:%Y-%m-%dT%H:%M:%SZ}" if spec.kill_at is not None else ": none"
    return f"move the stop of {job.key}{at}"


def _name(job: Job | None, task: TaskId) -> str:
    return str(task) if job is None else task_name(job.metadata.name, task.task, task.attempt)


def _describe_admission(admission: AdmissionStatus) -> str:
    match admission.phase:
        case AdmissionPhase.ADMITTED:
            tokens = ", ".join(f"{grant.key} fence {grant.token}" for grant in admission.grants)
            return f"admit ({tokens})" if tokens else "admit"
        case AdmissionPhase.EVICTING:
            return "evict"
        case AdmissionPhase.REFUSED:
            return f"refuse: {admission.refusal}"
        case AdmissionPhase.WAITING:
            waits = ", ".join(f"{w.reason} {w.key}".rstrip() for w in admission.waits)
            return f"hold: {waits}" if waits else "hold"
        case _:
            assert_never(admission.phase)


def _describe_execution(execution: ExecutionStatus) -> str:
    if execution.result is not None:
        return f"end: {execution.result} ({execution.reason})"
    done = f"{len(execution.succeeded)} of {execution.total} succeeded"
    parts = [f"{len(execution.active)} active"] if execution.active else []
    if execution.retrying:
        parts.append(f"{len(execution.retrying)} waiting for a retry")
    if execution.failed:
        parts.append(f"{len(execution.failed)} failed")
    if execution.stopping_for is not None:
        parts.append(f"stopping: {execution.stopping_for}")
    return f"record tasks: {', '.join([done, *parts])}"
