"""Creating: what is filled in, what is refused."""

from __future__ import annotations

import pytest

from interlock.errors import AlreadyExistsError, InvalidError, NotFoundError
from interlock.resources.job import JobPhase, JobStatus
from interlock.store.contract import Store
from interlock.testing.store_contract.suite import (
    StoreSuite,
    in_phase,
    new_job,
    on_store,
    with_metadata,
    with_spec,
)


class CreatingContract(StoreSuite):
    """What `create` and `get` promise."""

    @on_store
    async def test_a_created_resource_can_be_read(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace, labels={"team": "red"}))

        assert await store.get(made.key) == made
        assert made.metadata.labels == {"team": "red"}

    @on_store
    async def test_create_fills_in_the_metadata(self, store: Store, namespace: str) -> None:
        first = (await store.create(new_job(namespace, "first"))).metadata
        second = (await store.create(new_job(namespace, "second"))).metadata

        assert first.generation == 1
        assert first.creation_timestamp is not None
        assert first.deletion_timestamp is None
        assert first.resource_version
        assert first.uid
        assert first.uid != second.uid

    @on_store
    async def test_the_version_of_its_creation_stays(self, store: Store, namespace: str) -> None:
        """The order in which things were asked for is told by it, whatever was written since."""
        made = await store.create(new_job(namespace, creation_version=77))
        version = made.version if self.tells_creation else 0
        edited = await store.update(with_spec(with_metadata(made, creation_version=5), priority=3))
        moved = await store.update_status(in_phase(edited, JobPhase.RUNNING))

        for one in (made, edited, moved, await store.get(made.key)):
            assert one.metadata.creation_version == version
        again = await store.create(new_job(namespace, "again"))
        assert not self.tells_creation or again.metadata.creation_version > moved.version

    @on_store
    async def test_the_status_starts_empty(self, store: Store, namespace: str) -> None:
        made = await store.create(in_phase(new_job(namespace), JobPhase.SUCCEEDED))

        assert made.status == JobStatus()

    @on_store
    async def test_a_name_is_given_once(self, store: Store, namespace: str) -> None:
        await store.create(new_job(namespace))

        with pytest.raises(AlreadyExistsError):
            await store.create(new_job(namespace))

    @on_store
    async def test_another_namespace_has_its_own_names(self, store: Store, namespace: str) -> None:
        await store.create(new_job(namespace, namespace))
        other = await store.create(new_job("default", namespace))

        assert (await store.get(other.key)).metadata.namespace == "default"
        await store.delete(other.key)

    @on_store
    async def test_names_are_generated(self, store: Store, namespace: str) -> None:
        one = await store.create(new_job(namespace, "", generate_name="run-"))
        two = await store.create(new_job(namespace, "", generate_name="run-"))

        assert one.metadata.name.startswith("run-")
        assert len(one.metadata.name) > len("run-")
        assert one.metadata.name != two.metadata.name

    @on_store
    async def test_something_without_a_name_is_refused(self, store: Store, namespace: str) -> None:
        with pytest.raises(InvalidError, match="name"):
            await store.create(new_job(namespace, ""))

    @on_store
    async def test_a_dry_run_stores_nothing(self, store: Store, namespace: str) -> None:
        tried = await store.create(new_job(namespace), dry_run=True)

        assert tried.metadata.name == "job"
        with pytest.raises(NotFoundError):
            await store.get(tried.key)

    @on_store
    async def test_a_name_can_be_given_again(self, store: Store, namespace: str) -> None:
        """The new resource is another one, and its version is higher than any of the old."""
        old = await store.create(new_job(namespace))
        gone = await store.delete(old.key)
        new = await store.create(with_metadata(old, resource_version="", uid=""))

        assert new.metadata.uid != old.metadata.uid
        assert new.metadata.generation == 1
        assert new.version > gone.version
