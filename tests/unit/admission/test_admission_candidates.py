"""Who is next for a claim, whom a Job waits behind, and whom it replaces: without a reconciler."""

from __future__ import annotations

import pytest

from interlock.admission.claims.candidates import (
    BY_HOLDER,
    Known,
    candidate_for,
    claim_view,
    has_stray_grant,
    rivals_of,
)
from interlock.admission.claims.claim import COUNT
from interlock.admission.claims.locks import LOCKS
from interlock.admission.claims.proof import kept
from interlock.admission.lines import Lines, place_of
from interlock.admission.reconciler import holder_uids
from interlock.control.cache import Cache
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, Grant
from interlock.resources.job import Job, JobPhase, JobStatus, LockRequest, WhenTaken
from interlock.resources.lock import Lock, lock_name
from interlock.resources.metadata import Key
from interlock.testing.builders import a_holder, a_job, a_lock, a_request

DB = Key("Lock", "default", lock_name("db"))


def waiting(name: str, sequence: int, *locks: LockRequest, priority: int = 0) -> Job:
    status = JobStatus(admission=AdmissionStatus(sequence=sequence))
    asked = locks or (a_request(),)
    return a_job(name, version=sequence, status=status, locks=asked, priority=priority)


def running(name: str, sequence: int, *locks: LockRequest, token: int = 1) -> Job:
    asked = locks or (a_request(),)
    grants = tuple(Grant(key=request.key, token=token) for request in asked)
    admission = AdmissionStatus(sequence=sequence, phase=AdmissionPhase.ADMITTED, grants=grants)
    status = JobStatus(phase=JobPhase.RUNNING, admission=admission)
    return a_job(name, version=sequence, status=status, locks=asked)


def a_world(*resources: Job | Lock) -> Known:
    jobs: Cache[Job] = Cache("Job")
    locks: Cache[Lock] = Cache("Lock", {BY_HOLDER: holder_uids})
    lines = Lines()
    for resource in resources:
        if isinstance(resource, Job):
            jobs.note(resource)
            lines.update(resource.key, resource, LOCKS.asks(resource))
        else:
            locks.note(resource)
    jobs.settle(1000)
    return Known(jobs=jobs, kinds={"Lock": LOCKS}, records={"Lock": locks}, lines=lines)


def next_of(world: Known) -> tuple[str, bool] | None:
    """Who is next for the lock, and whether its way is clear."""
    record = world.records["Lock"].get(DB)
    found = candidate_for(world, DB, kept(LOCKS, DB, record, world.jobs))
    return (found.job.metadata.name, found.has_way) if found is not None else None


FIRST, SECOND = waiting("first", 5), waiting("second", 6)
RUNS = running("runs", 1)
ANYWAY = waiting("anyway", 9, a_request(when_taken=WhenTaken.ALLOW))
BOTH = waiting("both", 4, a_request(), a_request("cache"))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param((), None, id="nobody"),
        pytest.param((SECOND, FIRST), ("first", True), id="in the order of creation"),
        pytest.param(
            (FIRST, waiting("urgent", 9, priority=1)), ("urgent", True), id="priority first"
        ),
        pytest.param((RUNS, FIRST, a_lock(holders=(a_holder(RUNS),))), ("first", False), id="held"),
        pytest.param(
            (FIRST, SECOND, a_lock(holders=(a_holder(FIRST),))),
            ("second", False),
            id="one that was granted is not next again",
        ),
        pytest.param(
            (RUNS, ANYWAY, FIRST, a_lock(holders=(a_holder(RUNS),))),
            ("anyway", True),
            id="who starts anyway goes first",
        ),
        pytest.param(
            (RUNS, BOTH, FIRST, a_lock("cache", holders=(a_holder(RUNS),))),
            ("both", False),
            id="one that waits elsewhere is not overtaken",
        ),
    ],
)
def test_who_is_next(resources: tuple[Job | Lock, ...], expected: tuple[str, bool] | None) -> None:
    assert next_of(a_world(*resources)) == expected


def test_a_job_sees_what_is_held_and_who_is_before_it() -> None:
    granted = waiting("granted", 4)
    lock = a_lock(holders=(a_holder(RUNS, token=1), a_holder(granted, token=2)))
    world = a_world(RUNS, granted, FIRST, SECOND, lock)

    behind = claim_view(world, SECOND, LOCKS.asks(SECOND)[0])
    own = claim_view(world, granted, LOCKS.asks(granted)[0])

    assert (behind.held, behind.ahead, behind.grant) == ({COUNT: 2}, 1, None)
    assert (own.before, own.grant) == ({COUNT: 1}, a_holder(granted, token=2))


@pytest.mark.parametrize(
    ("locks", "expected"),
    [
        pytest.param((a_request(),), False, id="asked for"),
        pytest.param((a_request("cache"),), True, id="not asked for any more"),
    ],
)
def test_a_grant_that_is_not_asked_for_is_found(
    locks: tuple[LockRequest, ...], expected: bool
) -> None:
    job = waiting("job", 5, *locks)
    world = a_world(job, a_lock(holders=(a_holder(job),)))

    assert has_stray_grant(world, job, LOCKS.asks(job)) is expected


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param(1, {"older", "old", "queued"}, id="all must go"),
        pytest.param(2, {"older", "queued"}, id="the oldest must go"),
        pytest.param(4, set(), id="there is room"),
    ],
)
def test_as_many_are_replaced_as_it_takes(limit: int, expected: set[str]) -> None:
    older, old = running("older", 2), running("old", 3, token=2)
    taker = waiting("taker", 7, a_request(limit=limit, when_taken=WhenTaken.REPLACE))
    lock = a_lock(holders=(a_holder(older, token=1), a_holder(old, token=2)))
    world = a_world(older, old, waiting("queued", 5), waiting("newer", 9), taker, lock)
    claims = tuple(claim_view(world, taker, ask) for ask in LOCKS.asks(taker))

    assert {job.metadata.name for job in rivals_of(world, taker, claims)} == expected


def test_jobs_of_two_namespaces_have_one_order() -> None:
    east, west = (
        a_job("job", namespace="east", version=6),
        a_job("job", namespace="west", version=5),
    )

    assert sorted((east, west), key=place_of) == [west, east]
