"""What an installation can run: processes on its own machine, or pods in a cluster."""

from __future__ import annotations

from enum import StrEnum

from interlock.resources.errors import Problem
from interlock.resources.job import JobSpec
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Resource


class Mode(StrEnum):
    """Where an installation runs work."""

    #: On the machine of the server.
    EMBEDDED = "Embedded"
    #: In a Kubernetes cluster.
    CLUSTER = "Cluster"


_NO_PROCESSES = "a cluster runs no processes: give spec.pod with the command in a container"
_NO_CLUSTER = (
    "needs a Kubernetes cluster: this server runs processes on its own machine;"
    " give spec.process with the command, or apply the Job to a cluster"
)
_REFUSED = {
    Mode.CLUSTER: (("process", "process", _NO_PROCESSES),),
    Mode.EMBEDDED: (("pod", "pod", _NO_CLUSTER), ("batch_job", "batchJob", _NO_CLUSTER)),
}


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
        Problem(f"spec.{path}", message)
        for name, path, message in _REFUSED[mode]
        if getattr(spec, name) is not None
    )
