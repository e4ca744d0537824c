"""Validation of operations: that their steps make a graph, and name only what there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interlock.findings import Findings, did_you_mean
from interlock.resources.job import JobSpec
from interlock.resources.steps import BeforeRetry, Step, needs_of

#: What an operation says of each step, or not at all.
_BY_STEP = {
    "parallelism": "an operation has steps instead: give each what it needs, and spec.stepsAtOnce",
    "retries": "an operation has them by step: give retries to spec.steps[N]",
    "task_timeout": "an operation has them by step: give timeout to spec.steps[N]",
}


def check_operation(spec: JobSpec, to: Findings) -> None:
    """Check what the rules cannot say of an operation."""
    usual = JobSpec()
    for name, instead in _BY_STEP.items():
        if getattr(spec, name) != getattr(usual, name):
            path = dict(zip(spec.__struct_fields__, spec.__struct_encode_fields__, strict=True))
            to.add(f"spec.{path[name]}", instead)
    if spec.steps:
        check_steps(spec.steps, to)


def check_steps(steps: tuple[Step, ...], to: Findings, path: str = "spec.steps") -> None:
    """Check steps that a person wrote or a worker made."""
    names = [step.name for step in steps]
    for at, step in enumerate(steps):
        _check_step(f"{path}[{at}]", step, names, to)
    if len(set(names)) < len(names):
        # Which of them is meant nobody can tell.
        return
    ring = _ring(steps)
    if ring:
        to.add(path, f"they need each other in a ring: {' -> '.join(ring)}")
        return
    for at, step in enumerate(steps):
        if step.roll_back:
            _check_roll_back(f"{path}[{at}].rollBack", steps, step, to)


def _check_step(path: str, step: Step, names: list[str], to: Findings) -> None:
    _check_known(f"{path}.needs", step.needs or (), names, to)
    _check_known(f"{path}.rollBack", step.roll_back, names, to)
    if step.undo_covered_by is not None:
        if step.undo is None:
            to.add(f"{path}.undoCoveredBy", "means nothing without undo", step.undo_covered_by)
        _check_known(f"{path}.undoCoveredBy", (step.undo_covered_by,), names, to, one=True)
        if step.undo_covered_by == step.name:
            to.add(f"{path}.undoCoveredBy", "expected another step", step.name)
    before = step.before_retry
    if (before is BeforeRetry.ROLL_BACK) != bool(step.roll_back):
        told = (
            "expected the steps to be undone before a retry"
            if before is BeforeRetry.ROLL_BACK
            else "is for beforeRetry RollBack alone"
        )
        to.add(f"{path}.rollBack", told, list(step.roll_back))
    if step.irreversible and before is not BeforeRetry.AS_IS:
        to.add(f"{path}.beforeRetry", "an irreversible step is never taken back", before.value)
    if before is BeforeRetry.ROLL_BACK_FIRST and step.undo is None:
        to.add(f"{path}.beforeRetry", "expected an undo to roll back with", before.value)


def _check_known(
    path: str, given: Iterable[str], names: list[str], to: Findings, *, one: bool = False
) -> None:
    seen: set[str] = set()
    for at, name in enumerate(given):
        place = path if one else f"{path}[{at}]"
        if name not in names:
            to.add(place, f"there is no such step{did_you_mean(name, names)}", name)
        elif name in seen:
            to.add(place, "is there twice", name)
        seen.add(name)


def _ring(steps: tuple[Step, ...]) -> list[str]:
    """Steps of which each needs the next, and the last the first; none when there is no ring."""
    needs = {step.name: needs_of(steps, at) for at, step in enumerate(steps)}
    done: set[str] = set()
    for step in steps:
        way: list[str] = []
        inside: list[list[str]] = [[step.name]]
        while inside:
            if not inside[-1]:
                inside.pop()
                if way:
                    done.add(way.pop())
                continue
            name = inside[-1].pop()
            if name in way:
                return [*way[way.index(name) :], name]
            if name in done or name not in needs:
                continue
            way.append(name)
            inside.append(list(needs[name]))
    return []


def _check_roll_back(path: str, steps: tuple[Step, ...], step: Step, to: Findings) -> None:
    """What is rolled back before a retry must be what the step builds on, and can be undone."""
    needs = {each.name: needs_of(steps, at) for at, each in enumerate(steps)}
    below = _below(step.name, needs)
    final = [each.name for each in steps if each.irreversible]
    for at, name in enumerate(step.roll_back):
        if name not in needs:
            continue
        if name not in below:
            to.add(f"{path}[{at}]", f"{step.name} does not need it, directly or otherwise", name)
        taken = [one for one in final if name in _below(one, needs)]
        if taken:
            told = f"{taken[0]} would have to be taken back with it, and is irreversible"
            to.add(f"{path}[{at}]", told, name)


def _below(name: str, needs: Mapping[str, tuple[str, ...]]) -> set[str]:
    """A step, and all that it needs, directly or through others."""
    below, left = {name}, [name]
    while left:
        for one in needs.get(left.pop(), ()):
            if one not in below:
                below.add(one)
                left.append(one)
    return below
