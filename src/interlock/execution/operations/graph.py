"""The graph of steps: what needs what, what a retry takes back, and what may be undone now."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.execution.operations.record import is_begun
from interlock.resources.operation import OperationStatus, StepState
from interlock.resources.steps import BeforeRetry, Step, needs_of

_NOT_UNDONE = frozenset(
    {StepState.TO_UNDO, StepState.UNDOING, StepState.UNDO_FAILED, StepState.RUNNING}
)


def dependents(specs: tuple[Step, ...]) -> list[frozenset[int]]:
    """For each step all that need it, directly or through others."""
    number = {spec.name: at for at, spec in enumerate(specs)}
    direct: list[set[int]] = [set() for _ in specs]
    for at in range(len(specs)):
        for name in needs_of(specs, at):
            direct[number[name]].add(at)
    found: list[frozenset[int]] = []
    for at in range(len(specs)):
        above: set[int] = set()
        left = [at]
        while left:
            for one in direct[left.pop()]:
                if one not in above:
                    above.add(one)
                    left.append(one)
        found.append(frozenset(above))
    return found


def may_undo(operation: OperationStatus, specs: tuple[Step, ...], at: int) -> bool:
    """Whether nothing that needs the step is to be undone first, and its retry has begun."""
    steps = operation.steps
    if not operation.reverting:
        retried = next((one for one in steps if one.name == steps[at].undo_for), None)
        if retried is not None and retried.not_before is not None:
            return False
    return not any(steps[above].state in _NOT_UNDONE for above in dependents(specs)[at])


def has_own_undo(specs: tuple[Step, ...], undone: Sequence[int], at: int) -> bool:
    """Whether a step is undone by itself: not without an undo, nor where another's covers it."""
    spec = specs[at]
    if spec.undo is None:
        return False
    covering = (specs[n] for n in undone if specs[n].name == spec.undo_covered_by)
    return not any(one.undo is not None for one in covering)


def demanded(specs: tuple[Step, ...], at: int) -> frozenset[int]:
    """The steps that are to be undone before a step is run again, if they were begun."""
    spec = specs[at]
    if spec.before_retry is BeforeRetry.ROLL_BACK_FIRST:
        return frozenset((at,))
    if spec.before_retry is BeforeRetry.AS_IS:
        return frozenset()
    named = {n for n, one in enumerate(specs) if one.name in spec.roll_back}
    above = dependents(specs)
    return frozenset(named.union(*(above[n] for n in named), {at}))


def to_undo(operation: OperationStatus, specs: tuple[Step, ...], at: int) -> tuple[int, ...]:
    """The steps that are undone before a step is run again."""
    steps = operation.steps
    left = [n for n, one in enumerate(steps) if one.undo_for == specs[at].name]
    if left:
        # The retry before this one did not get through with it.
        return tuple(left)
    return tuple(n for n in sorted(demanded(specs, at)) if is_begun(steps[n]) or n == at)


def held_back(operation: OperationStatus, specs: tuple[Step, ...]) -> frozenset[int]:
    """The steps that are run again once all is undone that a retry demands, and not before."""
    retried = {step.undo_for for step in operation.steps if step.undo_for}
    if not retried:
        return frozenset()
    return frozenset().union(
        *(demanded(specs, at) for at, spec in enumerate(specs) if spec.name in retried)
    )
