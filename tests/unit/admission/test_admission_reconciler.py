"""How the room looks: who counts as a holder, who is next, and who is woken."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from interlock.admission.claims.locks import LOCKS
from interlock.admission.reconciler import BY_HOLDER, AdmissionReconciler, holder_uids
from interlock.admission.view import RecordView
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Grant,
    RefusalReason,
    Wait,
    WaitReason,
)
from interlock.resources.job import Job, JobPhase, JobStatus, LockRequest, WhenTaken
from interlock.resources.lock import Lock, lock_name
from interlock.resources.metadata import Key
from interlock.testing.builders import T0, a_holder, a_job, a_lock, a_request

DB = Key("Lock", "default", lock_name("db"))


class Room:
    """The reconciler with its caches."""

    def __init__(self, *resources: Job | Lock, heard: int = 1000) -> None:
        self.jobs: Cache[Job] = Cache("Job")
        self.locks: Cache[Lock] = Cache("Lock", {BY_HOLDER: holder_uids})
        self.reconciler = AdmissionReconciler(self.jobs, {LOCKS: self.locks})
        self.woken: list[Key] = []
        for resource in resources:
            self.put(resource)
        self.jobs.settle(heard)

    def put(self, resource: Job | Lock) -> list[Key]:
        before: Job | Lock | None
        if isinstance(resource, Job):
            before = self.jobs.note(resource)
        else:
            before = self.locks.note(resource)
        self.woken = list(self.reconciler.wakes(Change(before, resource)))
        return self.woken

    def lock_view(self) -> RecordView:
        return self.reconciler.view_of_claim(DB)

    def next_up(self) -> str:
        candidate = self.lock_view().candidate
        return candidate.job.metadata.name if candidate is not None and candidate.has_way else ""


def waiting(name: str, sequence: int, *locks: LockRequest, **spec: Any) -> Job:
    status = JobStatus(admission=AdmissionStatus(sequence=sequence))
    return a_job(name, version=sequence, status=status, locks=locks or (a_request(),), **spec)


def admitted(job: Job, *, token: int = 1) -> Job:
    grants = tuple(Grant(key=request.key, token=token) for request in job.spec.locks)
    admission = replace(job.status.admission, phase=AdmissionPhase.ADMITTED, grants=grants)
    return _newer(job, JobStatus(phase=JobPhase.STARTING, admission=admission))


def ended(job: Job) -> Job:
    admission = replace(
        job.status.admission, phase=AdmissionPhase.REFUSED, refusal=RefusalReason.LOCK_FORBIDDEN
    )
    return _newer(job, JobStatus(phase=JobPhase.REFUSED, admission=admission))


def _newer(job: Job, status: JobStatus) -> Job:
    metadata = replace(job.metadata, resource_version=str(job.version + 100))
    return replace(job, metadata=metadata, status=status)


def test_the_first_created_is_next_and_a_higher_priority_goes_before() -> None:
    room = Room(waiting("b", 6), waiting("a", 5), a_lock())
    assert room.next_up() == "a"

    room.put(waiting("urgent", 7, priority=1))
    assert room.next_up() == "urgent"


def test_an_ended_holder_counts_for_nothing_and_a_running_one_does() -> None:
    runs = admitted(waiting("runs", 5))
    room = Room(runs, waiting("next", 6), a_lock(holders=(a_holder(runs),)))
    assert room.next_up() == ""

    room.put(ended(runs))
    assert DB in room.woken
    assert room.next_up() == "next"


def test_a_job_that_is_being_deleted_still_holds() -> None:
    runs = admitted(waiting("runs", 5))
    going = replace(runs, metadata=replace(runs.metadata, deletion_timestamp=T0))
    room = Room(going, waiting("next", 6), a_lock(holders=(a_holder(runs),)))

    assert room.next_up() == ""


def test_a_missing_job_is_gone_only_for_who_has_heard_enough() -> None:
    lost = a_job("lost", version=50)
    holder = replace(a_holder(lost), job_version=50)

    lock = a_lock(version=51, holders=(holder,))
    behind = Room(waiting("next", 6), lock, heard=49)
    assert behind.next_up() == ""

    caught_up = Room(waiting("next", 6), lock, heard=50)
    assert caught_up.next_up() == "next"


def test_a_job_that_cannot_be_read_still_holds() -> None:
    lost = a_job("lost", version=50)
    holder = replace(a_holder(lost), job_version=50)
    room = Room(waiting("next", 6), a_lock(holders=(holder,)), heard=50)

    room.jobs.unreadable.add(lost.key)

    assert room.next_up() == ""


def test_a_grant_of_an_epoch_that_was_given_back_counts_for_nothing() -> None:
    job = waiting("job", 5)
    later = replace(job, status=JobStatus(admission=AdmissionStatus(sequence=5, epoch=2)))
    room = Room(later, a_lock(holders=(a_holder(job, epoch=1),)))

    assert room.lock_view().kept == ()
    assert room.next_up() == "job"


def test_a_job_that_is_not_first_everywhere_blocks_its_successors_and_is_not_let_by() -> None:
    other = admitted(waiting("other", 3, a_request("cache")))
    both = waiting("both", 5, a_request("db"), a_request("cache"))
    room = Room(
        other, both, waiting("after", 6), a_lock(), a_lock("cache", holders=(a_holder(other),))
    )

    assert room.next_up() == ""


def test_whoever_needs_not_wait_is_granted_beyond_the_limit() -> None:
    runs = admitted(waiting("runs", 5))
    anyway = waiting("anyway", 6, a_request(when_taken=WhenTaken.ALLOW))
    room = Room(runs, anyway, a_lock(holders=(a_holder(runs),)))

    assert room.next_up() == "anyway"


def test_replacing_takes_the_oldest_holders_and_everyone_who_came_before() -> None:
    old, older = admitted(waiting("old", 4)), admitted(waiting("older", 3))
    queued = waiting("queued", 5)
    newer = waiting("newer", 9)
    taker = waiting("taker", 7, a_request(limit=2, when_taken=WhenTaken.REPLACE))
    lock = a_lock(holders=(a_holder(older), a_holder(old)))
    room = Room(old, older, queued, newer, taker, lock)

    view = room.reconciler.view_of_job(taker)

    assert {job.metadata.name for job in view.rivals} == {"older", "queued"}


def test_a_waiting_job_that_was_first_looks_again_when_another_goes_before() -> None:
    room = Room(waiting("first", 5), a_lock())

    assert Key("Job", "default", "first") in room.put(waiting("urgent", 6, priority=1))


def test_what_a_job_was_seen_to_wait_for_needs_no_further_look() -> None:
    room = Room(waiting("first", 5), waiting("second", 6), a_lock())
    job = waiting("job", 7)
    room.put(job)
    waits = (Wait(reason=WaitReason.LOCK_TAKEN, key="db"),)
    noted = _newer(job, replace(job.status, admission=replace(job.status.admission, waits=waits)))

    assert room.put(noted) == []


def test_one_that_replaces_others_looks_until_it_has_marked_them_all() -> None:
    job = waiting("job", 7, a_request(when_taken=WhenTaken.REPLACE))
    room = Room(job, a_lock())

    assert room.put(_newer(job, job.status)) == [job.key]


def test_joining_a_line_behind_others_wakes_none_of_them() -> None:
    room = Room(waiting("first", 5), waiting("second", 6), a_lock())

    assert room.put(waiting("third", 7)) == [Key("Job", "default", "third"), DB]


def test_a_job_that_is_held_back_wakes_those_behind_it() -> None:
    first = waiting("first", 5)
    room = Room(first, waiting("second", 6), waiting("third", 7), a_lock())
    held = replace(first, spec=replace(first.spec, suspend=True))
    held = replace(held, metadata=replace(held.metadata, resource_version="105", generation=2))

    assert Key("Job", "default", "second") in room.put(held)


def test_a_new_grant_wakes_its_job_and_the_other_locks_it_needs() -> None:
    both = waiting("both", 5, a_request("db"), a_request("cache"))
    room = Room(both, a_lock())

    woken = room.put(a_lock(version=7, holders=(a_holder(both),)))

    assert both.key in woken
    assert Key("Lock", "default", lock_name("cache")) in woken


def test_the_first_that_waits_for_more_looks_again_when_a_claim_changes() -> None:
    """It may wait for less than it has written down."""
    other = admitted(waiting("other", 3, a_request("cache")))
    both = waiting("both", 5, a_request("db"), a_request("cache"))
    room = Room(other, both, a_lock("cache", holders=(a_holder(other),)))

    assert both.key in room.put(a_lock(version=7))


def test_the_first_that_waits_for_nothing_else_is_woken_by_its_grant_alone() -> None:
    room = Room(waiting("first", 5))

    assert room.put(a_lock(version=7)) == [DB]


def test_being_told_of_everything_anew_changes_nothing() -> None:
    job = waiting("job", 5)
    room = Room(job, a_lock())
    list(room.reconciler.wakes(Change(None, job)))
    list(room.reconciler.wakes(Change(None, job)))

    room.jobs.drop(job.key, 2000)
    list(room.reconciler.wakes(Change(job, None)))

    assert not room.lock_view().is_wanted
    assert room.next_up() == ""
