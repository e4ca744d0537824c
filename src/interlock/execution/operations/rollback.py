"""Rollback: an operation that turns back, and one that a person has go forward again."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from interlock.execution.operations.graph import has_own_undo
from interlock.execution.operations.record import is_begun
from interlock.resources.operation import OperationState, OperationStatus, StepState, StepStatus
from interlock.resources.steps import Step, needs_of
from interlock.resources.tasks import ExecutionReason


def roll_back(
    operation: OperationStatus, specs: tuple[Step, ...], now: datetime
) -> OperationStatus:
    """Begin to undo everything that was begun; or get stuck, when that must not be."""
    final = [
        s for s, spec in zip(operation.steps, specs, strict=True) if spec.irreversible and s.runs
    ]
    if final:
        told = f"{final[0].name} cannot be taken back, and {operation.error or 'it was to end'}"
        return replace(operation, stuck_at=now, stuck_message=told)
    return reverting(operation, specs)


def reverting(operation: OperationStatus, specs: tuple[Step, ...]) -> OperationStatus:
    """The operation with every step that was begun marked to be undone."""
    begun = [at for at, step in enumerate(operation.steps) if is_begun(step)]
    # Nothing waits for its retry any more, not even what is undone already for one.
    steps = [replace(s, not_before=None, interrupted=False, undo_for="") for s in operation.steps]
    for at in begun:
        undo = has_own_undo(specs, begun, at)
        steps[at] = replace(
            steps[at],
            state=StepState.TO_UNDO if undo else StepState.UNDONE,
            undo_retries=0,
            interruptions=0,
            suspected=False,
        )
    why = operation.reverting_for or ExecutionReason.TASK_FAILED.value
    return replace(operation, steps=tuple(steps), reverting=True, reverting_for=why)


def forward(operation: OperationStatus, specs: tuple[Step, ...]) -> OperationStatus:
    """A stuck operation that is to go forward again, with all its retries: it is queued anew.

    What was done and not undone stays done, unless what it needs has to be done again.
    """
    kept: set[str] = set()
    # What is needed, and what covers an undo, may stand behind a step.
    for _ in specs:
        kept.update(
            spec.name
            for at, spec in enumerate(specs)
            if _is_kept(operation.steps[at], spec, kept) and kept.issuperset(needs_of(specs, at))
        )
    steps = tuple(_forward(step, is_kept=step.name in kept) for step in operation.steps)
    return replace(
        operation,
        state=OperationState.QUEUED,
        steps=steps,
        reverting=False,
        reverting_for="",
        stuck_at=None,
        stuck_message="",
        interventions=operation.interventions + 1,
    )


def _is_kept(step: StepStatus, spec: Step, kept: set[str]) -> bool:
    if step.ended_at is None:
        return False
    # One that has no undo of its own was only passed over; what covers it may have undone it.
    is_passed = step.state is StepState.UNDONE and spec.undo is not None
    return not is_passed or spec.undo_covered_by in kept


def _forward(step: StepStatus, *, is_kept: bool) -> StepStatus:
    return replace(
        step,
        state=StepState.DONE if is_kept else StepState.WAITS,
        retries=0,
        undo_retries=0,
        interruptions=0,
        suspected=False,
        interrupted=False,
        not_before=None,
        undo_for="",
        started_at=None if step.state is StepState.UNDONE and not is_kept else step.started_at,
        ended_at=step.ended_at if is_kept else None,
    )
