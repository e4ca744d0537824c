"""Elaboration: the steps and parts that a worker made of a request, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlock.findings import Findings
from interlock.resources.ancestry import wait_for_ever
from interlock.resources.checks.operations import check_steps
from interlock.resources.checks.validator import check_rules
from interlock.resources.operation import OperationStatus, StepStatus
from interlock.resources.steps import Elaboration


def with_elaboration(operation: OperationStatus, made: Elaboration) -> OperationStatus:
    """The operation that has these steps, none of which was begun."""
    return replace(
        operation,
        elaborated=made.steps,
        children=made.children,
        returns=made.returns,
        steps=tuple(StepStatus(name=step.name) for step in made.steps),
        percentage=0.0,
    )


def flaws_of(made: Elaboration | None, taken: Mapping[str, str]) -> str:
    """Why an operation cannot be what a worker made of it; empty when it can.

    `taken` are the targets of the operation and of those above it, with their names: a part that is
    done to one of them would wait for what waits for it.
    """
    if made is None:
        return "the worker made no steps of it"
    found = Findings()
    check_rules("elaboration", made, found)
    check_steps(made.steps, found, "steps")
    if len({step.name for step in made.steps}) < len(made.steps):
        found.add("steps", "a name is there twice")
    for at, child in enumerate(made.children):
        if child.target is not None and (above := taken.get(child.target.path)) is not None:
            told = wait_for_ever(child.target.path, above)
            found.add(f"children[{at}].target.path", told, child.target.path)
    return "; ".join(map(str, found.problems[:3]))
