"""Leases: what an election needs of a store."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from interlock.errors import BadRequestError, ConflictError
from interlock.resources.cluster import Lease, LeaseSpec
from interlock.resources.metadata import Metadata
from interlock.store.contract import Store
from interlock.testing.builders import T0
from interlock.testing.store_contract.suite import StoreSuite, on_store


class LeaseContract(StoreSuite):
    """What holds of a kind that Kubernetes defines and not we."""

    @on_store
    async def test_a_lease_is_kept_to_the_microsecond(self, store: Store, namespace: str) -> None:
        made = await store.create(a_lease(namespace, "one"))
        later = T0 + timedelta(microseconds=120)
        renewed = await store.update(replace(made, spec=replace(made.spec, renew_time=later)))

        found = await store.get(made.key)
        assert found == renewed
        assert renewed.spec == replace(made.spec, renew_time=later)
        assert renewed.version > made.version

    @on_store
    async def test_one_of_two_takes_the_lease(self, store: Store, namespace: str) -> None:
        made = await store.create(a_lease(namespace, ""))
        await store.update(replace(made, spec=replace(made.spec, holder_identity="one")))

        with pytest.raises(ConflictError):
            await store.update(replace(made, spec=replace(made.spec, holder_identity="two")))

    @on_store
    async def test_a_lease_is_released(self, store: Store, namespace: str) -> None:
        made = await store.create(a_lease(namespace, "one"))
        await store.update(replace(made, spec=replace(made.spec, holder_identity="")))

        found = await store.get(made.key)
        assert isinstance(found, Lease)
        assert found.spec == replace(made.spec, holder_identity="")

    @on_store
    async def test_labels_of_a_lease_come_and_go(self, store: Store, namespace: str) -> None:
        made = await store.create(a_lease(namespace, "one"))
        labelled = await store.update(_labelled(made, {"a": "1", "b": "2"}))
        changed = await store.update(_labelled(labelled, {"b": "3"}))

        assert changed.metadata.labels == {"b": "3"}
        assert changed.spec == made.spec
        assert (await store.update(changed)).version == changed.version

    @on_store
    async def test_a_lease_has_no_status(self, store: Store, namespace: str) -> None:
        made = await store.create(a_lease(namespace, "one"))

        with pytest.raises(BadRequestError):
            await store.update_status(made)


def a_lease(namespace: str, holder: str) -> Lease:
    """A lease that was not stored yet."""
    spec = LeaseSpec(holder_identity=holder, acquire_time=T0, renew_time=T0, lease_transitions=2)
    return Lease(metadata=Metadata(name="leader", namespace=namespace), spec=spec)


def _labelled(lease: Lease, labels: dict[str, str]) -> Lease:
    return replace(lease, metadata=replace(lease.metadata, labels=labels))
