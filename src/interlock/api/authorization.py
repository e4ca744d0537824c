"""Authorization on a server: which right each route needs, and who has it.

This is the only place that says so, for every route, verb and transport. A route that is not about
Jobs and their orders needs an admin: so one that nobody thought of lets in nobody else.
"""

from __future__ import annotations

from typing import assert_never

from interlock.api.answers import RefusedError
from interlock.api.callers import Access, Caller
from interlock.api.routing import ForAll, ForKnown, OnPath, Route, rights_on_resources
from interlock.resources.job import CREATOR_ANNOTATION, Job
from interlock.resources.kinds import JOBS
from interlock.resources.metadata import GROUP
from interlock.runtimes.workers.protocol import PATH as WORKERS

_READS = frozenset({"get", "list", "watch"})


def access_of(route: Route) -> Access | None:
    """The right that a route needs; None when it is open to everybody."""
    if route.path == WORKERS:
        return Access.WORKER
    if route.access is not None:
        return route.access
    match route.right:
        case ForAll():
            return None
        case ForKnown():
            return Access.ADMIN
        case OnPath(verb):
            return Access.READ if verb == "get" else Access.ADMIN
    rights = rights_on_resources(route.right)
    if all(right.verb in _READS for right in rights):
        return Access.READ
    jobs_alone = all((right.group, right.resource) == (GROUP, JOBS.plural) for right in rights)
    is_closed = any(right.subresource for right in rights)
    return Access.OPERATE if jobs_alone and not is_closed else Access.ADMIN


def lets_in(route: Route, caller: Caller) -> bool:
    """Whether somebody may ask a route.

    One that does not leave out what they may not see takes rights over everything.
    """
    if Access.ADMIN in caller.rights:
        return True
    access = access_of(route)
    if access is None:
        return True
    if not caller.may(access):
        return False
    return access is Access.WORKER or route.filtered or caller.is_everywhere


def check_access(route: Route, caller: Caller) -> None:
    """Refuse who may not ask a route.

    Raises:
        RefusedError: They may not; it says what it takes.
    """
    if lets_in(route, caller):
        return
    access = access_of(route)
    assert access is not None, "what is open lets in everybody"
    raise RefusedError(
        403, f"{caller.name or 'this token'} may not do this: {_takes(access, route)}"
    )


def sees_job(caller: Caller, job: Job) -> bool:
    """Whether a Job is somebody's to see, and so to order about if they may order at all.

    What is not is told about in the very words for what is not there.
    """
    target = job.spec.target
    creator = job.metadata.annotations.get(CREATOR_ANNOTATION, "")
    return caller.sees(job.spec.owner, creator, target.path if target is not None else "")


def check_submission(caller: Caller, job: Job) -> None:
    """Refuse what somebody whose rights do not hold for everything may not submit.

    They ask for what workers know, on targets that are theirs. What runs a program as the user of
    the server, holds the locks of others or keeps their operations open is not for them.

    Raises:
        RefusedError: They may not; it says why.
    """
    if caller.is_everywhere:
        return
    spec, target = job.spec, job.spec.target
    flaw = ""
    if spec.python is None:
        flaw = "spec.python alone: a function that workers have loaded"
    elif spec.locks or spec.parent is not None:
        flaw = "neither spec.locks nor spec.parent"
    elif target is not None and not caller.covers(target.path):
        flaw = "spec.target.path below a path of theirs"
    if flaw:
        raise RefusedError(403, f"{caller.name or 'this token'} may submit {flaw}")


def _takes(access: Access, route: Route) -> str:
    match access:
        case Access.READ | Access.OPERATE if route.filtered:
            return f'it takes the right "{access}", or "admin"'
        case Access.READ | Access.OPERATE:
            return f'it takes the right "{access}" on everything (paths: ["/"]), or "admin"'
        case Access.ADMIN:
            return 'it takes the right "admin"'
        case Access.WORKER:
            return 'workers come here, with the right "worker"'
        case other:
            assert_never(other)
