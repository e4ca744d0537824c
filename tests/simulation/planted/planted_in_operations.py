"""What is forgotten about operations: order, proof, what was done, how often, and whose word."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from grounds import deleted_part, operations, siblings, taken_back
from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.admission.claims.claim import Holder
from interlock.admission.claims.proof import Jobs
from interlock.admission.lines import may_be_granted
from interlock.execution.children import Children
from interlock.execution.operations import forward, specs_of
from interlock.resources.admission import AdmissionPhase
from interlock.resources.job import OPERATE_ANNOTATION, Job, JobPhase, OperateVerb
from interlock.resources.metadata import Key
from interlock.resources.operation import OperationStatus, StepState, StepStatus
from interlock.resources.tasks import EndedTask, ExecutionStatus, TaskReport
from support.simulation.operation_world import OperationWorld, RivalOperationWorld

#: How an operation stands when it is taken up: as it is recorded.
BEGUN = Seam("interlock.execution.operations.record", "begun")
SETTLED = Seam("interlock.execution.steering", "_settled")

ORDER = "Operations on one target run in the order in which they were accepted."
DONE = "What is recorded as done is not done again."
REVERSE = "A step is undone after all that needs it."
LIMITS = "Steps and undos are tried as often as they may be, and when they may be."
FOR_GOOD = "What is rolled back goes forward again by a person's order alone."
NOTHING_LEFT = "Of an operation that has failed nothing is left."

Begun = Callable[[Job], OperationStatus]


def _taken_up(really: Begun, change: Callable[[OperationStatus], OperationStatus]) -> Begun:
    return lambda job: change(really(job))


def _steps(
    operation: OperationStatus, change: Callable[[StepStatus], StepStatus]
) -> OperationStatus:
    return replace(operation, steps=tuple(map(change, operation.steps)))


# One target


@mutation(
    ORDER,
    Seam("interlock.admission.claims.proof", "is_done"),
    caught_by="NeverTwice",
    in_worlds=operations(OperationWorld),
)
def what_is_stuck_counts_as_over(really: Any) -> Any:
    def is_done(holder: Holder, key: Key, jobs: Jobs) -> bool:
        job = jobs.get(key)
        is_stuck = job is not None and job.status.phase is JobPhase.STUCK
        return is_stuck or bool(really(holder, key, jobs))

    return is_done


@mutation(
    ORDER,
    Seam("interlock.admission.lines", "stands_in_line"),
    caught_by="OneAfterAnother",
    in_worlds=operations(OperationWorld),
)
def who_is_held_back_is_overtaken(_: Any) -> Callable[[Job], bool]:
    def stands_in_line(job: Job) -> bool:
        waits = job.status.admission.phase is AdmissionPhase.WAITING
        return waits and not job.is_going and may_be_granted(job)

    return stands_in_line


@mutation(
    "A parent goes on once the last of its children is over.",
    Seam("interlock.execution.reconciler", "_relatives"),
    caught_by="TargetsApart",
    in_worlds=operations(OperationWorld),
)
def nobody_tells_the_parent(_: Any) -> Any:
    return lambda *_: ()


@mutation(
    "A child that was deleted counts for nothing, whether it is gone already or not quite.",
    Seam("interlock.execution.reconciler", "counted"),
    caught_by="ChildrenCounted",
    in_worlds=deleted_part(OperationWorld),
)
def a_deleted_child_counts_as_failed(really: Any) -> Any:
    def count(jobs: Iterable[Job]) -> Children:
        stays = (
            replace(job, metadata=replace(job.metadata, deletion_timestamp=None)) for job in jobs
        )
        made: Children = really(stays)
        return made

    return count


@mutation(
    "An operation is over after all its children, and comes to what they came to.",
    Seam("interlock.execution.reconciler", "ExecutionReconciler._children_of"),
    caught_by="ChildrenCounted",
    in_worlds=operations(OperationWorld),
)
def children_are_ignored(_: Any) -> Any:
    return lambda *_: Children()


# What was done


@mutation(DONE, BEGUN, caught_by="DoneOnce", in_worlds=operations(OperationWorld), seen_in=334)
def what_was_done_is_done_again_after_an_interruption(really: Begun) -> Begun:
    def change(operation: OperationStatus) -> OperationStatus:
        if operation.reverting or not any(step.interrupted for step in operation.steps):
            return operation
        return _steps(
            operation,
            lambda s: replace(s, state=StepState.WAITS) if s.state is StepState.DONE else s,
        )

    return _taken_up(really, change)


@mutation(
    "What is recorded as undone is not undone again.",
    BEGUN,
    caught_by="DoneOnce",
    in_worlds=operations(OperationWorld),
)
def what_was_undone_is_undone_again_at_a_retry(really: Begun) -> Begun:
    def change(operation: OperationStatus) -> OperationStatus:
        failed = any(s.state is StepState.UNDO_FAILED for s in operation.steps)
        if not failed or not operation.reverting or operation.stuck_at is not None:
            return operation
        return _steps(
            operation,
            lambda s: (
                replace(s, state=StepState.TO_UNDO)
                if s.undos and s.ended_at is None and s.state is StepState.UNDONE
                else s
            ),
        )

    return _taken_up(really, change)


@mutation(
    REVERSE,
    Seam("interlock.execution.operations.graph", "may_undo"),
    caught_by="UndoneInReverse",
    in_worlds=operations(OperationWorld),
)
def undos_go_in_the_order_of_steps(_: Any) -> Any:
    return lambda *_: True


@mutation(
    REVERSE,
    Seam("interlock.execution.operations.record", "is_begun"),
    caught_by="UndoneInReverse",
    in_worlds=siblings(OperationWorld),
)
def what_is_being_undone_counts_as_undone(really: Any) -> Any:
    return lambda step: step.state is not StepState.UNDOING and really(step)


@mutation(
    "A step is run after all that it needs.",
    Seam("interlock.execution.operations.graph", "held_back"),
    caught_by="UndoneInReverse",
    in_worlds=taken_back(OperationWorld),
)
def what_has_no_undo_is_run_again_at_once(_: Any) -> Any:
    return lambda *_: frozenset()


@mutation(
    NOTHING_LEFT,
    Seam("interlock.execution.operations.record", "is_begun"),
    caught_by="CompleteIsTrue",
    in_worlds=operations(OperationWorld),
)
def what_waits_to_be_run_again_is_not_undone(_: Any) -> Callable[[StepStatus], bool]:
    kept = (StepState.WAITS, StepState.UNDONE, StepState.UNDOING)
    return lambda step: step.state not in kept


@mutation(
    NOTHING_LEFT,
    SETTLED,
    Seam("interlock.execution.operations.record", "is_over"),
    caught_by="CompleteIsTrue",
    in_worlds=operations(OperationWorld),
)
def it_is_over_while_an_undo_is_under_way(settled: Any, _: Any) -> Any:
    over = (StepState.UNDONE, StepState.WAITS, StepState.UNDOING)

    def planted_settled(job: Job, operation: Any, execution: ExecutionStatus, rest: Any) -> Any:
        return settled(job, operation, replace(execution, active=()), rest)

    def planted_is_over(operation: OperationStatus) -> bool:
        return operation.reverting and all(step.state in over for step in operation.steps)

    return planted_settled, planted_is_over


# How often, and when


@mutation(
    LIMITS,
    Seam("interlock.execution.operations.ends", "_undo_again"),
    caught_by="RetriesKept",
    in_worlds=operations(OperationWorld),
)
def undos_are_tried_for_ever(_: Any) -> Any:
    return lambda _job, _spec, failed, _end, now: replace(failed, not_before=now)


@mutation(
    LIMITS,
    Seam("interlock.execution.operations.stepping", "_not_before"),
    caught_by="RetriesKept",
    in_worlds=operations(OperationWorld),
)
def retries_wait_for_nothing(_: Any) -> Any:
    return lambda *_: datetime.min.replace(tzinfo=UTC)


@mutation(LIMITS, BEGUN, caught_by="RetriesKept", in_worlds=operations(OperationWorld))
def retries_are_counted_from_the_last_crash(really: Begun) -> Begun:
    return _taken_up(really, lambda operation: _steps(operation, lambda s: replace(s, retries=0)))


@mutation(
    "What is cut off again and again comes to an end.",
    Seam("interlock.execution.operations.ends", "_cut_off"),
    caught_by="RetriesKept",
    in_worlds=operations(OperationWorld),
)
def interruptions_have_no_cap(_: Any) -> Any:
    def _cut_off(step: StepStatus, _: EndedTask, _most: int, now: datetime) -> StepStatus:
        return replace(step, interrupted=True, not_before=now)

    return _cut_off


@mutation(
    "It is rolled back once its retries are used up, and not before.",
    Seam("interlock.execution.operations.record", "is_exhausted"),
    caught_by="RetriesKept",
    in_worlds=operations(OperationWorld),
)
def the_first_failure_rolls_it_back(_: Any) -> Callable[[OperationStatus], bool]:
    return lambda operation: any(s.state is StepState.FAILED for s in operation.steps)


# Whose word it is


@mutation(
    FOR_GOOD,
    Seam("interlock.execution.steering", "_ordered"),
    caught_by="RevertsForGood",
    in_worlds=operations(OperationWorld),
)
def a_rollback_that_waits_goes_forward(really: Any) -> Any:
    def _ordered(job: Job, operation: OperationStatus, now: datetime) -> OperationStatus:
        operation = really(job, operation, now)
        waits = any(s.state is StepState.UNDO_FAILED for s in operation.steps)
        if not operation.reverting or not waits or operation.stuck_at is not None:
            return operation
        interventions = operation.interventions
        return replace(forward(operation, specs_of(job, operation)), interventions=interventions)

    return _ordered


@mutation(
    "An order of a person is carried out once.",
    Seam("interlock.execution.steering", "order_to"),
    caught_by="RevertsForGood",
    in_worlds=operations(OperationWorld),
)
def an_order_is_carried_out_again_and_again(_: Any) -> Any:
    def order_to(job: Job, _: OperationStatus) -> tuple[OperateVerb, str] | None:
        given = job.metadata.annotations.get(OPERATE_ANNOTATION)
        return (OperateVerb(given), "") if given else None

    return order_to


@mutation(
    "Numbers of tasks are not numbers of steps: what somebody else has begun is left alone.",
    Seam("interlock.execution.leftovers", "is_past_step"),
    caught_by="StopsForCause",
    in_worlds=operations(RivalOperationWorld),
    most_worlds=400,
    seen_in=334,
)
def steps_are_taken_for_tasks(_: Any) -> Callable[[TaskReport, OperationStatus], bool]:
    def is_past_step(report: TaskReport, operation: OperationStatus) -> bool:
        done = {n for n, step in enumerate(operation.steps) if step.state is StepState.DONE}
        return report.index in done

    return is_past_step
