"""Who is granted a lock, and who is dropped from its record."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from interlock.admission.claims.candidates import Candidate
from interlock.admission.claims.locks import IDLE_LOCK_KEPT, LOCKS
from interlock.admission.decide import LISTENS_FOR, decide_claim
from interlock.admission.view import RecordView
from interlock.resources.actions import CreateResource, Decision, DeleteResource, RecordStatus
from interlock.resources.job import Job
from interlock.resources.lock import Lock, LockStatus, lock_name
from interlock.testing.builders import T0, a_holder, a_job, a_lock, a_request

A = a_job("a", version=11, locks=(a_request(),))
B = a_job("b", version=12, locks=(a_request(),))


def next_up(job: Job, *, has_way: bool = True) -> Candidate:
    return Candidate(job=job, ask=LOCKS.asks(job)[0], has_way=has_way)


def view(lock: Lock | None, **more: object) -> RecordView:
    return RecordView(kind=LOCKS, record=lock, **more)  # type: ignore[arg-type]


def written(seen: RecordView) -> LockStatus:
    (action,) = decide_claim(seen, T0).actions
    assert isinstance(action, RecordStatus)
    assert isinstance(action.status, LockStatus)
    return action.status


def test_the_first_use_of_a_key_makes_its_record() -> None:
    (action,) = decide_claim(view(None, candidate=next_up(A)), T0).actions

    assert isinstance(action, CreateResource)
    assert isinstance(action.resource, Lock)
    assert action.resource.metadata.name == lock_name("db")
    assert action.resource.spec.key == "db"


def test_a_grant_names_the_job_its_epoch_and_a_token() -> None:
    (holder,) = written(view(a_lock(version=42), candidate=next_up(A))).holders

    assert (holder.job, holder.uid, holder.epoch) == ("a", A.metadata.uid, 0)
    assert (holder.token, holder.job_version) == (42, 11)


def test_a_token_tops_the_last_one_whatever_the_version_of_the_record() -> None:
    """A record may come from another store, whose versions were higher."""
    status = written(view(a_lock(version=5, last_token=900), candidate=next_up(A)))

    assert ([h.token for h in status.holders], status.last_token) == ([901], 901)


def test_a_record_that_alone_knows_the_last_token_stays() -> None:
    """Made anew it would begin at its version, which is lower."""
    idle_since = T0 - IDLE_LOCK_KEPT
    moved = replace(a_lock(version=5), status=LockStatus(last_token=900, idle_since=idle_since))

    assert decide_claim(view(moved), T0).actions == ()


def test_dropping_the_last_holder_and_granting_the_next_is_one_write() -> None:
    lock = a_lock(version=50, holders=(a_holder(A),))

    assert [h.job for h in written(view(lock, candidate=next_up(B))).holders] == ["b"]


def test_a_candidate_whose_way_is_not_clear_gets_nothing() -> None:
    held = a_lock(holders=(a_holder(A),))
    seen = view(held, kept=(a_holder(A),), candidate=next_up(B, has_way=False), is_wanted=True)

    assert decide_claim(seen, T0).actions == ()


def test_a_lock_without_holders_tells_since_when() -> None:
    status = written(view(a_lock(holders=(a_holder(A),), last_token=9)))

    assert (status.holders, status.idle_since, status.last_token) == ((), T0, 9)


def test_a_record_is_removed_when_nobody_needed_it_for_a_while() -> None:
    idle = replace(a_lock(), status=LockStatus(idle_since=T0 - IDLE_LOCK_KEPT))

    assert decide_claim(view(idle), T0).actions == (DeleteResource(idle),)
    assert decide_claim(view(idle, is_wanted=True), T0).actions == ()


def test_a_holder_that_is_not_found_is_looked_for_again() -> None:
    """That it is gone is no news any more when the proof of it comes."""
    decision = decide_claim(view(a_lock(), is_unheard=True), T0)

    assert decision == Decision(wake_at=T0 + LISTENS_FOR)


def test_an_idle_record_is_looked_at_again_when_its_time_is_over() -> None:
    idle = replace(a_lock(), status=LockStatus(idle_since=T0))

    decision = decide_claim(view(idle), T0 + timedelta(minutes=1))

    assert (decision.actions, decision.wake_at) == ((), T0 + IDLE_LOCK_KEPT)
