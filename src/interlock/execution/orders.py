"""What a runtime is told to run for one attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import json
from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.process import ProcessSpec
from interlock.resources.tasks import TaskOrder, task_name
from interlock.resources.variables import context_of, substitute


def order_of(job: Job, index: int, attempt: int) -> TaskOrder:
    """The order for one attempt, every variable replaced by its value.

    Raises:
        UnknownVariableError: A text names a variable that has no value.
    """
    process = job.spec.process
    assert process is not None, f"{job.key}: only a process is ordered"
    if any("${" in text for text in _texts(process)):
        process = _with_values(process, context_of(job, index, attempt))
    metadata = job.metadata
    name = task_name(metadata.name, index, attempt)
    return TaskOrder(
        job_uid=metadata.uid,
        index=index,
        attempt=attempt,
        name=name,
        namespace=metadata.namespace,
        job=metadata.name,
        job_version=job.status.admission.sequence,
        command=process.command + process.args,
        env=process.env | _own_variables(job, index, attempt, name),
        env_from=process.env_from,
        working_dir=process.working_dir,
        stdin=process.stdin,
        user=process.user,
        group=process.group,
        limits=process.limits,
    )


def _own_variables(job: Job, index: int, attempt: int, name: str) -> dict[str, str]:
    """What every task is told about itself; no variable of the Job can say otherwise."""
    metadata = job.metadata
    variables = {
        "INTERLOCK_JOB": metadata.name,
        "INTERLOCK_NAMESPACE": metadata.namespace,
        "INTERLOCK_JOB_UID": metadata.uid,
        "INTERLOCK_TASK": name,
        "INTERLOCK_TASK_INDEX": str(index),
        "INTERLOCK_ATTEMPT": str(attempt),
    }
    grants = job.status.admission.grants
    if grants:
        fences = {grant.key: grant.token for grant in grants}
        variables["INTERLOCK_LOCK"] = grants[0].key
        variables["INTERLOCK_FENCE"] = str(grants[0].token)
        variables["INTERLOCK_FENCES"] = json.encode(fences).decode()
    return variables


def _texts(process: ProcessSpec) -> Iterator[str]:
    yield from process.command
    yield from process.args
    yield from process.env.values()
    for source in process.env_from:
        yield source.file
    yield process.working_dir or ""
    yield process.stdin or ""


def _with_values(process: ProcessSpec, values: Mapping[str, str]) -> ProcessSpec:
    def put(text: str) -> str:
        return substitute(text, values)

    return replace(
        process,
        command=tuple(map(put, process.command)),
        args=tuple(map(put, process.args)),
        env={name: put(text) for name, text in process.env.items()},
        env_from=tuple(replace(source, file=put(source.file)) for source in process.env_from),
        working_dir=None if process.working_dir is None else put(process.working_dir),
        stdin=None if process.stdin is None else put(process.stdin),
    )
