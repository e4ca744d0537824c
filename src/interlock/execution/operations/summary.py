"""The summary of an operation: its state, counters and percentage, and what it returned."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import DecodeError
from msgspec.structs import replace

from interlock.execution.children import Children
from interlock.execution.operations.record import UNDER_WAY, is_exhausted
from interlock.resources.operation import (
    CompletionState,
    OperationState,
    OperationStatus,
    StepState,
)
from interlock.resources.references import resolved_json


def told(
    before: OperationStatus,
    operation: OperationStatus,
    children: Children,
    now: datetime,
    *,
    is_taken_up: bool,
) -> OperationStatus:
    """The operation with its state, counters and percentage worked out of its steps.

    `is_taken_up` says whether anybody has an attempt of it. Until then it is as queued as it was:
    a retry that waits for a worker is not counted before it begins.
    """
    steps = operation.steps
    is_active = any(step.state in UNDER_WAY for step in steps)
    waits = [step.not_before for step in steps if step.not_before is not None]
    state = operation.state
    is_left = is_active and not is_taken_up and state is OperationState.QUEUED
    if operation.stuck_at is not None or (is_active and not is_left):
        reverts = operation.reverting
        state = OperationState.REVERTING if reverts else OperationState.EXECUTING
    elif waits:
        state = OperationState.QUEUED
    retries, undo_retries = operation.retry_count, operation.rollback_retry_count
    if is_left and before.state is OperationState.QUEUED:
        pass
    elif operation.reverting:
        undone = (s.undo_retries for s in steps if s.state is not StepState.UNDONE)
        undo_retries = max(undone, default=0)
    elif not operation.reverting_for and not is_exhausted(operation):
        open_steps = (s.retries for s in steps if s.state is not StepState.DONE)
        retries = max(open_steps, default=0)
    made = replace(
        operation,
        state=state,
        retry_count=retries,
        rollback_retry_count=undo_retries,
        percentage=_percentage(operation, children),
        next_attempt_at=max(waits) if waits and not is_active else None,
    )
    return made if made == before else replace(made, updated_at=now)


def _percentage(operation: OperationStatus, children: Children) -> float | None:
    """What is done of all that is known to be done: steps, and parts that are over."""
    parts = max(children.total, len(operation.children))
    total = len(operation.steps) + parts
    if operation.percentage is None or not total:
        return operation.percentage
    done = sum(
        step.ended_at is not None and step.state is not StepState.UNDONE for step in operation.steps
    )
    return round(100 * (done + children.finished) / total, 1)


def completed(operation: OperationStatus, to: CompletionState, now: datetime) -> OperationStatus:
    """An operation that is over: pruned of its steps but for their names, with what it returned."""
    success = to is not CompletionState.FAILED
    result = operation.result
    if success:
        results = {step.name: step.result for step in operation.steps if step.result}
        result = _returned(operation, results)
    return replace(
        operation,
        state=OperationState.COMPLETE,
        completion_state=to,
        retry_count=0 if success else operation.retry_count,
        rollback_retry_count=0 if success else operation.rollback_retry_count,
        percentage=100.0 if success else operation.percentage,
        steps=(),
        elaborated=None,
        step_names=tuple(step.name for step in operation.elaborated or ()),
        children=(),
        returns="",
        next_attempt_at=None,
        stuck_at=None,
        stuck_message="",
        result=result,
        updated_at=now,
    )


def _returned(operation: OperationStatus, results: Mapping[str, str]) -> str:
    """What the operation returns: what it says itself, or else what its steps returned."""
    if operation.returns:
        try:
            return resolved_json(operation.returns, results)
        except DecodeError:
            return operation.returns
    inside = ",".join(f'"{name}":{text}' for name, text in results.items())
    return f"{{{inside}}}" if inside else ""
