"""Children: the Jobs that have an operation as their parent, counted; and those to be made of it.

A child that a worker asked for is named after its parent and its number, so that making it twice
makes one. They are made once all steps are done: what is rolled back has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from interlock.resources.job import CREATOR_ANNOTATION, JOB_FINALIZER, Job, JobSpec
from interlock.resources.metadata import Metadata
from interlock.resources.naming import MAX_JOB_NAME, cut_name
from interlock.resources.steps import ChildRequest
from interlock.resources.tasks import JobResult
from interlock.resources.transitions import has_ended

#: The index of Jobs by their parents.
BY_PARENT = "parent"


class Children(NamedTuple):
    """How the Jobs are going that have this one as their parent."""

    unfinished: int = 0
    succeeded: int = 0
    failed: int = 0
    names: frozenset[str] = frozenset()

    @property
    def finished(self) -> int:
        """Those that are over."""
        return self.succeeded + self.failed

    @property
    def total(self) -> int:
        """All of them that are there."""
        return self.unfinished + self.finished


def parents_of(job: Job) -> Iterable[str]:
    """Under which value a Job is found in the index BY_PARENT."""
    parent = job.spec.parent
    return () if parent is None else (f"{job.metadata.namespace}/{parent}",)


def under(job: Job) -> str:
    """Under which value the children of a Job are found there."""
    return f"{job.metadata.namespace}/{job.metadata.name}"


def counted(jobs: Iterable[Job]) -> Children:
    """How some Jobs are going.

    One that was deleted is waited for until it is over, and then counts for nothing: neither as
    success nor as failure, whether it is gone already or not quite.
    """
    unfinished = succeeded = failed = 0
    names = set()
    for job in jobs:
        names.add(job.metadata.name)
        if not has_ended(job):
            unfinished += 1
        elif job.is_going:
            pass
        elif job.status.execution.result is JobResult.SUCCEEDED:
            succeeded += 1
        else:
            failed += 1
    return Children(unfinished, succeeded, failed, frozenset(names))


def missing(job: Job, wanted: Iterable[ChildRequest], there: Children) -> tuple[Job, ...]:
    """The Jobs that are to be made of parts of an operation, and are not there."""
    made = (_child(job, number, request) for number, request in enumerate(wanted))
    return tuple(child for child in made if child.metadata.name not in there.names)


def _child(job: Job, number: int, request: ChildRequest) -> Job:
    # The uid tells it from those of an operation that had the name before.
    tail = f"-{job.metadata.uid[:5]}-{number}"
    name = cut_name(job.metadata.name, MAX_JOB_NAME - len(tail)) + tail
    creator = job.metadata.annotations.get(CREATOR_ANNOTATION)
    spec = JobSpec(
        python=request.python,
        target=request.target,
        type=request.type,
        title=request.title,
        description=request.description,
        owner=job.spec.owner if request.owner is None else request.owner,
        parent=job.metadata.name,
        priority=job.spec.priority,
        steps_at_once=_or(request.steps_at_once, job.spec.steps_at_once),
        max_interruptions=_or(request.max_interruptions, job.spec.max_interruptions),
        timeout=request.timeout,
        ttl_after_finished=job.spec.ttl_after_finished,
    )
    return Job(
        metadata=Metadata(
            name=name,
            namespace=job.metadata.namespace,
            annotations={CREATOR_ANNOTATION: creator} if creator else {},
            finalizers=(JOB_FINALIZER,),
        ),
        spec=spec,
    )


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given
