"""Installation modes: processes on this machine, or pods in a cluster."""

from __future__ import annotations

from interlock.errors import Problem
from interlock.resources.job import JobSpec
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Resource
from interlock.resources.work_types import Mode, parts_of, types_of

__all__ = ["Mode", "problems_for_mode", "problems_in_mode"]


def problems_in_mode(resource: Resource, mode: Mode) -> tuple[Problem, ...]:
    """What a resource asks for, of itself or of the Jobs it makes, that cannot be run there."""
    kind = KINDS[resource.kind]
    work = kind.work_in(getattr(resource, "spec", None))
    if work is None:
        return ()
    problems = problems_for_mode(work, mode)
    if not problems:
        return ()
    above = kind.work_path.removesuffix("spec")
    return tuple(problem._replace(path=above + problem.path) for problem in problems)


def problems_for_mode(spec: JobSpec, mode: Mode) -> tuple[Problem, ...]:
    """What a Job asks for that an installation of this mode cannot run."""
    return tuple(
        Problem(f"{path}.{type.path}", type.elsewhere)
        for path, part in parts_of(spec)
        for type in types_of(part)
        if mode not in type.modes
    )
