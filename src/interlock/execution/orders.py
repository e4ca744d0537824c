"""Orders: what a runtime is told to run for one attempt."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import json
from msgspec.structs import replace

from interlock.execution.operations import step_spec
from interlock.execution.quarantine import is_run_alone
from interlock.resources.job import CREATOR_ANNOTATION, Job, JobSpec, is_operation
from interlock.resources.operation import is_undo
from interlock.resources.queue import wanted_at_once
from interlock.resources.readiness import granted_to
from interlock.resources.references import resolve
from interlock.resources.schedule import scheduled_at, written_moment
from interlock.resources.steps import StepWork
from interlock.resources.tasks import (
    TaskId,
    TaskOrder,
    TaskStatus,
    number_in_round,
    round_of,
    task_name,
)
from interlock.resources.variables import context_of, slot_of
from interlock.resources.work import AdoptedWork, PythonCall, PythonWork, Work
from interlock.resources.work_types import type_of


def order_of(job: Job, index: int, attempt: int) -> TaskOrder:
    """The order for one attempt, every variable replaced by its value.

    Raises:
        UnknownVariableError: A text names a variable that has no value.
    """
    metadata, spec = job.metadata, job.spec
    part = part_of(job, index)
    type = type_of(part)
    assert type is not None, f"{job.key}: there is nothing to order"
    assert type.work is not None, f"{job.key}: {type.path} is never ordered"

    def values() -> Mapping[str, str]:
        return context_of(job, index, attempt)

    name = task_name(metadata.name, index, attempt)
    slots = job.status.admission.slots
    slot = slot_of(job, index, attempt) if slots is not None else ""
    env = _own_variables(job, index, attempt, name)
    if slots is not None:
        env["INTERLOCK_TEST_BED"], env["INTERLOCK_SLOT"] = slots.test_bed, slot
    if type.is_told_its_id:
        env["INTERLOCK_TASK_ID"] = str(TaskId(metadata.uid, index, attempt))
    return TaskOrder(
        job_uid=metadata.uid,
        index=index,
        attempt=attempt,
        name=name,
        namespace=metadata.namespace,
        job=metadata.name,
        runtime=type.runtime,
        test_bed=slots.test_bed if slots is not None else "",
        slot=slot,
        work=_work(job, index, type.work(type.given(part), values)),
        env=env,
        grace=spec.grace_period,
        force_delete_after=spec.force_delete_after,
        job_version=job.status.admission.sequence,
    )


def part_of(job: Job, index: int) -> JobSpec | StepWork:
    """What a task runs: what the Job asks for, or of an operation what one step does."""
    step = step_spec(job, index) if is_operation(job.spec) else None
    if step is None:
        return job.spec
    part = step.undo if is_undo(index) else step.run
    assert part is not None, f"{job.key}: {step.name} has no undo"
    return part


def _work(job: Job, index: int, work: Work) -> Work:
    """The work with all that a function in a worker is told about the operation, and what adopted
    work may take.
    """
    if isinstance(work, AdoptedWork):
        granted = granted_to(job.status.admission)
        return replace(
            work, queue=job.spec.queue or "", pods=min(granted, wanted_at_once(job.spec))
        )
    if not isinstance(work, PythonWork):
        return work
    request, target = job.spec.python, job.spec.target
    work = replace(
        work,
        queue=work.queue or (request.queue if request is not None else ""),
        fences={grant.key: grant.token for grant in job.status.admission.grants},
        target=target.path if target is not None else "",
        creator=job.metadata.annotations.get(CREATOR_ANNOTATION, ""),
        open_attempts=tuple((one.index, one.attempt) for one in job.status.execution.active),
    )
    operation, step = job.status.execution.operation, step_spec(job, index)
    if operation is not None:
        work = replace(work, alone=is_run_alone(operation, index))
    if step is None or operation is None:
        return replace(work, call=PythonCall.ELABORATE)
    call = PythonCall.UNDO if is_undo(index) else PythonCall.RUN
    results = {one.name: one.result for one in operation.steps if one.result}
    args = resolve(work.args, results)
    return replace(work, call=call, step=step.name, args=args, results=results)


def order_again(job: Job, task: TaskStatus) -> TaskOrder:
    """The order for an attempt that is recorded: it goes to the runtime that has it, if any has.

    Which runtime a type of work goes to may differ from version to version.
    """
    order = order_of(job, task.index, task.attempt)
    if isinstance(order.work, PythonWork):
        order = replace(order, work=replace(order.work, again=True))
    return order if order.runtime == task.runtime else replace(order, runtime=task.runtime)


def _own_variables(job: Job, index: int, attempt: int, name: str) -> dict[str, str]:
    """What every task is told about itself; no variable of the Job can say otherwise."""
    metadata = job.metadata
    variables = {
        "INTERLOCK_JOB": metadata.name,
        "INTERLOCK_NAMESPACE": metadata.namespace,
        "INTERLOCK_JOB_UID": metadata.uid,
        "INTERLOCK_TASK": name,
        "INTERLOCK_TASK_INDEX": str(index),
        "INTERLOCK_ATTEMPT": str(number_in_round(attempt)),
        "INTERLOCK_ROUND": str(round_of(attempt)),
    }
    step = step_spec(job, index) if is_operation(job.spec) else None
    if step is not None:
        variables["INTERLOCK_STEP"] = step.name
        variables["INTERLOCK_UNDO"] = "1" if is_undo(index) else ""
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
