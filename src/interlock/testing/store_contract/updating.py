"""Updating: compare-and-set, the generation, and the status apart from the spec."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.errors import ConflictError, NotFoundError
from interlock.resources.job import JobPhase
from interlock.store.contract import Store
from interlock.testing.store_contract.suite import (
    StoreSuite,
    in_phase,
    new_job,
    on_store,
    with_metadata,
    with_spec,
)


class UpdatingContract(StoreSuite):
    """What `update` and `update_status` promise."""

    @on_store
    async def test_the_generation_moves_with_the_spec(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        labelled = await store.update(with_metadata(made, labels={"a": "b"}))
        changed = await store.update(with_spec(labelled, priority=7))

        assert labelled.metadata.generation == 1
        assert changed.metadata.generation == 2
        assert made.version < labelled.version < changed.version
        assert await store.get(made.key) == changed

    @on_store
    async def test_an_old_version_is_refused(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        await store.update(with_spec(made, priority=1))

        with pytest.raises(ConflictError):
            await store.update(with_spec(made, priority=2))
        with pytest.raises(ConflictError):
            await store.update_status(in_phase(made, JobPhase.RUNNING))

    @on_store
    async def test_a_status_write_outdates_a_version_too(
        self, store: Store, namespace: str
    ) -> None:
        made = await store.create(new_job(namespace))
        await store.update_status(in_phase(made, JobPhase.RUNNING))

        with pytest.raises(ConflictError):
            await store.update(with_spec(made, priority=2))

    @on_store
    async def test_ties_change_and_all_else_stays(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        made = await store.update_status(in_phase(made, JobPhase.RUNNING))
        wanted = with_metadata(made, finalizers=("example.com/hold",), labels={"not": "written"})
        tied = await store.update_ties(with_spec(wanted, priority=9))

        assert tied.metadata.finalizers == ("example.com/hold",)
        assert (tied.metadata.labels, tied.spec, tied.status) == (
            made.metadata.labels,
            made.spec,
            made.status,
        )
        assert tied.metadata.generation == made.metadata.generation
        assert await store.get(made.key) == tied
        with pytest.raises(ConflictError):
            await store.update_ties(with_metadata(made, finalizers=()))
        gone = await store.delete(made.key)
        assert gone.is_going
        await store.update_ties(with_metadata(tied, finalizers=(), resource_version=""))
        with pytest.raises(NotFoundError):
            await store.get(made.key)

    @on_store
    async def test_no_version_means_any(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        await store.update(with_spec(made, priority=1))
        forced = with_metadata(with_spec(made, priority=2), resource_version="")

        assert (await store.update(forced)).spec.priority == 2

    @on_store
    async def test_another_object_of_the_name_is_refused(
        self, store: Store, namespace: str
    ) -> None:
        made = await store.create(new_job(namespace))
        other = with_metadata(made, uid="3f1c9a52-0000-4000-8000-000000000000", resource_version="")

        with pytest.raises(ConflictError):
            await store.update(with_spec(other, priority=2))

    @on_store
    async def test_update_leaves_the_status(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        moved = await store.update_status(in_phase(made, JobPhase.RUNNING))
        changed = await store.update(in_phase(with_spec(moved, priority=3), JobPhase.FAILED))

        assert changed.status.phase is JobPhase.RUNNING
        assert changed.spec.priority == 3

    @on_store
    async def test_update_status_leaves_the_rest(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        tried = with_metadata(with_spec(made, priority=9), labels={"sneaked": "in"})
        moved = await store.update_status(in_phase(tried, JobPhase.RUNNING))

        assert moved.status.phase is JobPhase.RUNNING
        assert moved.spec == made.spec
        expected = replace(made.metadata, resource_version=moved.metadata.resource_version)
        assert moved.metadata == expected

    @on_store
    async def test_what_the_system_wrote_cannot_be_changed(
        self, store: Store, namespace: str
    ) -> None:
        made = await store.create(new_job(namespace))
        tried = with_metadata(with_spec(made, priority=1), generation=77, creation_timestamp=None)
        changed = await store.update(tried)

        assert changed.metadata.uid == made.metadata.uid
        assert changed.metadata.generation == 2
        assert changed.metadata.creation_timestamp == made.metadata.creation_timestamp

    @on_store
    async def test_changing_nothing_makes_no_version(self, store: Store, namespace: str) -> None:
        made = await self.create_filled_in(store, namespace)

        assert (await store.update(made)).version == made.version
        assert (await store.update_status(made)).version == made.version

    @on_store
    async def test_what_is_not_there_cannot_be_updated(self, store: Store, namespace: str) -> None:
        absent = new_job(namespace, "absent")

        with pytest.raises(NotFoundError):
            await store.update(absent)
        with pytest.raises(NotFoundError):
            await store.update_status(absent)

    @on_store
    async def test_a_dry_run_changes_nothing(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        tried = await store.update(with_spec(made, priority=5), dry_run=True)
        moved = await store.update_status(in_phase(made, JobPhase.RUNNING), dry_run=True)

        assert tried.spec.priority == 5
        assert moved.status.phase is JobPhase.RUNNING
        assert await store.get(made.key) == made
