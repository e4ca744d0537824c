"""What a runtime is told to run for one attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec import json
from msgspec.structs import replace

from interlock.resources.free_form import Walk, with_texts
from interlock.resources.job import Job
from interlock.resources.pods import BatchJobTemplate, PodTemplate, TemplateMetadata
from interlock.resources.process import ProcessSpec
from interlock.resources.schedule import scheduled_at, written_moment
from interlock.resources.tasks import TaskOrder, task_name
from interlock.resources.variables import context_of, substitute


def order_of(job: Job, index: int, attempt: int) -> TaskOrder:
    """The order for one attempt, every variable replaced by its value.

    Raises:
        UnknownVariableError: A text names a variable that has no value.
    """
    metadata = job.metadata
    name = task_name(metadata.name, index, attempt)
    order = TaskOrder(
        job_uid=metadata.uid,
        index=index,
        attempt=attempt,
        name=name,
        namespace=metadata.namespace,
        job=metadata.name,
        job_version=job.status.admission.sequence,
        env=_own_variables(job, index, attempt, name),
    )
    if job.spec.process is not None:
        return _of_process(order, job, job.spec.process)
    return _in_cluster(order, job)


def _of_process(order: TaskOrder, job: Job, process: ProcessSpec) -> TaskOrder:
    if any("${" in text for text in _texts(process)):
        process = _with_values(process, context_of(job, order.index, order.attempt))
    return replace(
        order,
        command=process.command + process.args,
        env=process.env | order.env,
        env_from=process.env_from,
        working_dir=process.working_dir,
        stdin=process.stdin,
        user=process.user,
        group=process.group,
        limits=process.limits,
    )


_Template = TypeVar("_Template", PodTemplate, BatchJobTemplate)


def _in_cluster(order: TaskOrder, job: Job) -> TaskOrder:
    spec = job.spec
    order = replace(
        order,
        # A keeper tells its processes this itself.
        env=order.env | {"INTERLOCK_TASK_ID": str(order.id)},
        grace=spec.grace_period,
        force_delete_after=spec.force_delete_after,
    )
    if spec.pod is not None:
        return replace(order, pod=_filled(spec.pod, order, job))
    assert spec.batch_job is not None, f"{job.key}: there is nothing to order"
    return replace(order, batch_job=_filled(spec.batch_job, order, job))


def _filled(template: _Template, order: TaskOrder, job: Job) -> _Template:
    """The template with its values; itself when there are none to put in, as in most Jobs."""
    if not any("${" in text for text in _all_texts(template)):
        return template
    values = context_of(job, order.index, order.attempt)

    def put(text: str) -> str:
        return substitute(text, values)

    metadata = template.metadata
    labels = {name: put(text) for name, text in metadata.labels.items()}
    annotations = {name: put(text) for name, text in metadata.annotations.items()}
    return replace(
        template,
        spec=with_texts(template.spec, put),
        metadata=TemplateMetadata(labels=labels, annotations=annotations),
    )


def _all_texts(template: PodTemplate | BatchJobTemplate) -> Iterator[str]:
    yield from Walk("", template.spec).texts
    yield from template.metadata.labels.values()
    yield from template.metadata.annotations.values()


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
    due = scheduled_at(job)
    if due is not None:
        variables["INTERLOCK_SCHEDULED_AT"] = written_moment(due)
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
