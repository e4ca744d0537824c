"""What the memory store adds to the contract: it takes over what another store wrote, and tells."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from msgspec.structs import replace

from interlock.errors import AlreadyExistsError
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.resources.job import JobStatus
from interlock.resources.metadata import Key
from interlock.resources.tasks import ExecutionStatus
from interlock.store.contract import EventType
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryStore
from interlock.store.watching import Change
from interlock.testing.builders import T0, a_job

LATER = T0 + timedelta(days=1)
STARTED = JobStatus(execution=ExecutionStatus(started_at=T0))


def a_store(heard: list[Change] | None = None) -> MemoryStore:
    identities = SeededIdentities(Random(1))
    return MemoryStore(
        lambda: LATER, identities, on_commit=heard.append if heard is not None else None
    )


def test_what_is_adopted_keeps_its_status_identity_and_age() -> None:
    store = a_store()
    job = a_job("a", status=STARTED, metadata={"generation": 7})

    kept = store.adopt(job)

    assert kept == store.find(job.key)
    assert kept.metadata.uid == job.metadata.uid
    assert kept.metadata.creation_timestamp == T0
    assert kept.metadata.generation == 7
    assert kept == replace(job, metadata=kept.metadata)


def test_what_it_does_not_say_of_itself_it_is_given() -> None:
    bare = a_job("a", metadata={"uid": "", "generation": 0, "creation_timestamp": None})

    metadata = a_store().adopt(bare).metadata

    assert metadata.uid
    assert (metadata.generation, metadata.creation_timestamp) == (1, LATER)


def test_a_name_that_is_taken_is_not_adopted_again() -> None:
    store = a_store()
    store.adopt(a_job("a"))

    with pytest.raises(AlreadyExistsError):
        store.adopt(a_job("a"))


def test_versions_go_on_after_those_of_another_store() -> None:
    store = a_store()
    store.go_on_from(5000)
    store.go_on_from(10)

    assert store.adopt(a_job("a")).version == 5001
    assert run_now(store.create(a_job("b"))).version == 5002


def test_every_write_is_heard_once_and_in_order() -> None:
    heard: list[Change] = []
    store = a_store(heard)

    store.adopt(a_job("a"))
    made = run_now(store.create(a_job("b")))
    run_now(store.update_status(replace(made, status=STARTED), dry_run=True))
    run_now(store.update_status(replace(made, status=STARTED)))
    run_now(store.delete(Key("Job", "default", "a")))

    assert [(change.key.name, change.event.type) for change in heard] == [
        ("a", EventType.ADDED),
        ("b", EventType.ADDED),
        ("b", EventType.MODIFIED),
        ("a", EventType.MODIFIED),
    ]
    assert [change.version for change in heard] == sorted(change.version for change in heard)


def test_all_of_a_kind_come_in_the_order_of_their_names() -> None:
    store = a_store()
    for name in ("c", "a", "b"):
        store.adopt(a_job(name))

    assert [one.metadata.name for one in store.find_all("Job")] == ["a", "b", "c"]
    assert store.find_all("Job", "elsewhere") == []
    assert store.find(Key("Job", "default", "x")) is None
