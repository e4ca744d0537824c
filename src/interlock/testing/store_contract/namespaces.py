"""Namespaces: where names live."""

from __future__ import annotations

import pytest

from interlock.errors import ForbiddenError, NotFoundError
from interlock.resources.cluster import Namespace
from interlock.resources.metadata import Key, Metadata
from interlock.store.contract import Store
from interlock.testing.store_contract.suite import StoreSuite, new_job, on_store


class NamespaceContract(StoreSuite):
    """What holds between namespaces and what is in them."""

    @on_store
    async def test_default_is_there_from_the_beginning(self, store: Store, namespace: str) -> None:
        found = await store.get(Key("Namespace", "", "default"))

        assert isinstance(found, Namespace)
        assert found.status.phase == "Active"
        assert found.metadata.name != namespace

    @on_store
    async def test_default_stays(self, store: Store, namespace: str) -> None:
        with pytest.raises(ForbiddenError):
            await store.delete(Key("Namespace", "", "default"))
        made = await store.create(new_job("default", namespace))
        await store.delete(made.key)

    @on_store
    async def test_nothing_is_created_in_a_namespace_that_is_not_there(
        self, store: Store, namespace: str
    ) -> None:
        with pytest.raises(NotFoundError):
            await store.create(new_job(f"{namespace}-absent"))

    @on_store
    async def test_a_deleted_namespace_takes_nothing_new(
        self, store: Store, namespace: str
    ) -> None:
        # What is still in it keeps it, so that it can be looked at on its way out.
        await store.create(new_job(namespace, "held", finalizers=("example.com/held",)))
        going = await store.delete(Key("Namespace", "", namespace))

        assert isinstance(going, Namespace)
        assert going.is_going
        with pytest.raises(ForbiddenError):
            await store.create(new_job(namespace, "new"))

    @on_store
    async def test_namespaces_are_listed(self, store: Store, namespace: str) -> None:
        made = await store.create(Namespace(metadata=Metadata(generate_name="listed-")))
        found = {item.metadata.name for item in (await store.list("Namespace")).items}

        assert {"default", namespace, made.metadata.name} <= found
