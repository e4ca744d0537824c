"""The pending limit: what is counted, what is let in, and what is counted anew."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.admission.pending_limit import PendingLimit
from interlock.errors import InvalidError, TooManyPendingError
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.reporting.job_index import JobIndex
from interlock.reporting.pending_places import PendingPlaces
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobPhase, JobStatus, lock_requests
from interlock.resources.steps import PythonSpec, Target
from interlock.store.memory import MemoryStore
from interlock.testing.asking import a_store
from interlock.testing.builders import T0, a_job

REFUSED = AdmissionStatus(phase=AdmissionPhase.REFUSED, refused_at=T0)


def for_target(name: str, path: str = "a", **more: Any) -> Job:
    most = more.pop("most", None)
    target = Target(path=path, max_pending=most)
    return replace(a_job(name, target=target, **more), metadata=a_job(name).metadata)


def stored(store: MemoryStore, job: Job) -> Job:
    metadata = replace(job.metadata, uid="", resource_version="", creation_timestamp=None)
    metadata = replace(metadata, finalizers=())
    return run_now(store.create(replace(job, metadata=metadata)))


def guarded(most: int) -> MemoryStore:
    store = a_store()
    store.guard(PendingLimit(most))
    return store


def over(store: MemoryStore, job: Job) -> None:
    status = JobStatus(phase=JobPhase.REFUSED, admission=REFUSED)
    run_now(store.update_status(replace(job, status=status)))


def test_one_too_many_is_refused_and_told_the_limit() -> None:
    store = guarded(2)
    stored(store, for_target("one"))
    stored(store, for_target("two"))

    with pytest.raises(TooManyPendingError, match="2 unfinished Jobs for a ") as refused:
        stored(store, for_target("three"))

    assert (refused.value.path, refused.value.limit) == ("a", 2)
    assert len(store.find_all("Job")) == 2


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(for_target("x", "b"), id="another target"),
        pytest.param(for_target("x", "a/b"), id="one below it"),
        pytest.param(a_job("x"), id="none"),
        pytest.param(for_target("x", parent="one"), id="a part of one that is not over"),
    ],
)
def test_others_are_let_in(job: Job) -> None:
    store = guarded(1)
    stored(store, for_target("one"))

    stored(store, job)


def test_a_part_of_nothing_counts_as_any_other() -> None:
    store = guarded(1)
    one = stored(store, for_target("one"))
    over(store, one)
    stored(store, for_target("two"))

    with pytest.raises(TooManyPendingError):
        stored(store, for_target("three", parent="one"))
    with pytest.raises(TooManyPendingError):
        stored(store, for_target("four", parent="nobody"))


@pytest.mark.parametrize("way", ["ends", "goes"])
def test_what_is_over_or_gone_makes_room_once(way: str) -> None:
    store = guarded(1)
    one = stored(store, for_target("one"))
    if way == "ends":
        over(store, one)
    else:
        run_now(store.delete(one.key))

    stored(store, for_target("two"))
    with pytest.raises(TooManyPendingError):
        stored(store, for_target("three"))


def test_a_job_may_ask_for_fewer_and_not_for_more() -> None:
    store = guarded(2)
    stored(store, for_target("one"))
    with pytest.raises(TooManyPendingError):
        stored(store, for_target("two", most=1))
    stored(store, for_target("three", most=9))
    with pytest.raises(TooManyPendingError):
        stored(store, for_target("four", most=9))


def test_what_was_there_before_counts() -> None:
    store = a_store()
    stored(store, for_target("one"))
    store.guard(PendingLimit(1))

    with pytest.raises(TooManyPendingError):
        stored(store, for_target("two"))


def test_a_dry_run_takes_no_place() -> None:
    store = guarded(1)
    job = for_target("one")
    metadata = replace(job.metadata, uid="", resource_version="", creation_timestamp=None)
    run_now(store.create(replace(job, metadata=metadata), dry_run=True))

    stored(store, for_target("two"))


def test_the_admission_room_keeps_to_what_a_job_says_unless_it_is_a_part() -> None:
    assert lock_requests(for_target("one", most=3).spec)[0].max_waiting == 3
    assert lock_requests(for_target("one", most=3, parent="p").spec)[0].max_waiting is None


def test_a_part_that_would_wait_for_what_waits_for_it_is_refused() -> None:
    store = guarded(9)
    function = PythonSpec(function="f")
    stored(store, for_target("one", python=function))
    stored(store, for_target("part", "a/b", python=function, parent="one"))

    told = "spec.target.path: .*job/one, which it is a part of, is done to a too"
    with pytest.raises(InvalidError, match=told) as refused:
        stored(store, for_target("of-the-part", python=function, parent="part"))

    assert [problem.path for problem in refused.value.problems] == ["spec.target.path"]
    assert len(store.find_all("Job")) == 2


def test_so_it_is_where_the_store_does_not_count() -> None:
    one = for_target("one", python=PythonSpec(function="f"))
    places = PendingPlaces(JobIndex(), {one.key: one}.get, 9)

    with (
        pytest.raises(InvalidError, match="it would wait for ever"),
        places.held(for_target("part", parent="one")),
    ):
        pytest.fail("it was let in")
