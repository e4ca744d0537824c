"""Visibility: which Jobs somebody may know of. What is not visible is not there, for them."""

from __future__ import annotations

from collections.abc import Callable

from interlock.api.requests import Request
from interlock.reporting.job_record import creator_of
from interlock.resources.job import Job

#: Whether a Job is seen that has this owner, this creator, and this path of its target.
Sees = Callable[[str, str, str], bool]


def sight_of(request: Request) -> Sees:
    """What is seen by whoever asks."""
    return request.caller.sees


def everything(owner: str, creator: str, path: str) -> bool:  # noqa: ARG001
    """See all there is."""
    return True


def sees_job(sees: Sees, job: Job) -> bool:
    """Whether a Job is seen."""
    target = job.spec.target
    creator = creator_of(job)
    return sees(job.spec.owner or creator, creator, target.path if target is not None else "")


def visible(request: Request, job: Job) -> bool:
    """Whether whoever asks may know of a Job: one that they may not know of is answered as none."""
    return sees_job(sight_of(request), job)
