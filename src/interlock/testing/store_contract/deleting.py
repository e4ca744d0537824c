"""Deleting: finalizers, preconditions, and what is asked of dependents."""

from __future__ import annotations

import pytest

from interlock.errors import ConflictError, InvalidError, NotFoundError
from interlock.store.contract import DeleteOptions, Propagation, Store
from interlock.testing.store_contract.suite import (
    StoreSuite,
    new_job,
    on_store,
    with_metadata,
)

HELD = ("example.com/held",)


class DeletingContract(StoreSuite):
    """What `delete` promises."""

    @on_store
    async def test_what_nothing_holds_goes_at_once(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        await store.delete(made.key)

        with pytest.raises(NotFoundError):
            await store.get(made.key)
        with pytest.raises(NotFoundError):
            await store.delete(made.key)

    @on_store
    async def test_a_finalizer_holds_it(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace, finalizers=HELD))
        going = await store.delete(made.key)

        assert going.is_going
        assert going.metadata.generation > made.metadata.generation
        assert await store.get(made.key) == going

    @on_store
    async def test_the_last_finalizer_lets_it_go(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace, finalizers=(*HELD, "example.com/too")))
        await store.delete(made.key)
        going = await store.get(made.key)
        fewer = await store.update(with_metadata(going, finalizers=HELD))  # type: ignore[arg-type]
        assert (await store.get(made.key)).is_going

        await store.update(with_metadata(fewer, finalizers=()))
        with pytest.raises(NotFoundError):
            await store.get(made.key)

    @on_store
    async def test_going_cannot_be_taken_back(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace, finalizers=HELD))
        await store.delete(made.key)
        tried = with_metadata(made, resource_version="", deletion_timestamp=None, labels={"a": "b"})
        changed = await store.update(tried)

        assert changed.is_going

    @on_store
    async def test_what_is_going_gets_no_new_finalizer(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace, finalizers=HELD))
        await store.delete(made.key)
        tried = with_metadata(made, resource_version="", finalizers=(*HELD, "example.com/new"))

        with pytest.raises(InvalidError, match="finalizer"):
            await store.update(tried)

    @on_store
    async def test_deleting_again_changes_nothing(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace, finalizers=HELD))
        going = await store.delete(made.key)

        assert (await store.delete(made.key)).version == going.version

    @on_store
    async def test_preconditions_are_kept(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        newer = await store.update(with_metadata(made, labels={"a": "b"}))
        other = "3f1c9a52-0000-4000-8000-000000000000"

        with pytest.raises(ConflictError):
            await store.delete(made.key, DeleteOptions(uid=other))
        outdated = DeleteOptions(resource_version=made.metadata.resource_version)
        with pytest.raises(ConflictError):
            await store.delete(made.key, outdated)
        exact = DeleteOptions(
            uid=newer.metadata.uid, resource_version=newer.metadata.resource_version
        )
        await store.delete(made.key, exact)

    @pytest.mark.parametrize(
        ("propagation", "finalizer"),
        [(Propagation.FOREGROUND, "foregroundDeletion"), (Propagation.ORPHAN, "orphan")],
    )
    def test_propagation_is_marked(self, propagation: Propagation, finalizer: str) -> None:
        """Whoever collects dependents finds what was asked for on the owner."""
        _check_marked(self, propagation, finalizer)

    @on_store
    async def test_a_dry_run_deletes_nothing(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace))
        await store.delete(made.key, dry_run=True)

        assert await store.get(made.key) == made


def _check_marked(suite: StoreSuite, propagation: Propagation, finalizer: str) -> None:
    async def check(_: StoreSuite, store: Store, namespace: str) -> None:
        # The finalizer of the test keeps a cluster's own collector from being quicker.
        made = await store.create(new_job(namespace, finalizers=HELD))
        going = await store.delete(made.key, DeleteOptions(propagation=propagation))
        assert finalizer in going.metadata.finalizers
        assert going.is_going

    on_store(check)(suite)
