"""What goes with what, and what stays."""

from __future__ import annotations

from typing import Any

import pytest
from control_world import World
from msgspec.structs import replace

from interlock.control.garbage import Garbage, GarbageView, OwnerState, decide
from interlock.control.live_reads import LiveReads
from interlock.resources.actions import (
    Action,
    AddFinalizer,
    DeleteResource,
    DropOwner,
    RemoveFinalizer,
)
from interlock.resources.cluster import Namespace
from interlock.resources.job import Job
from interlock.resources.lock import LockStatus
from interlock.resources.metadata import API_VERSION, Key, Metadata, OwnerReference, Resource
from interlock.store.contract import DeleteOptions, Propagation
from interlock.testing.builders import T0, a_holder, a_job, a_lock

JOB = a_job()
GOING = {"deletion_timestamp": T0}
P, O, W, G, U = (  # noqa: E741  # The states, by their first letters, to fit the table.
    OwnerState.PRESENT,
    OwnerState.ORPHANING,
    OwnerState.WAITING,
    OwnerState.GONE,
    OwnerState.UNPROVEN,
)
DELETE = DeleteResource(JOB)


@pytest.mark.parametrize(
    ("owners", "has_dependents", "expected"),
    [
        pytest.param((), False, (), id="no owners: not ours"),
        pytest.param((P,), False, (), id="its owner is there"),
        pytest.param((G,), False, (DELETE,), id="its owner is gone"),
        pytest.param((G, G), True, (DELETE,), id="all its owners are gone"),
        pytest.param((U,), False, (), id="an owner that may only not be seen keeps it"),
        pytest.param((G, U), False, (), id="also beside one that is gone"),
        pytest.param((P, G), False, (DropOwner(JOB, "1"),), id="one owner left: drop the other"),
        pytest.param((P, W), False, (DropOwner(JOB, "1"),), id="one waits in vain"),
        pytest.param((P, U), False, (), id="one left and one not proven"),
        pytest.param((O,), False, (DropOwner(JOB, "0"),), id="given up"),
        pytest.param((O, G), False, (DropOwner(JOB, "0"),), id="given up by one comes first"),
        pytest.param((W,), False, (DELETE,), id="its owner waits"),
        pytest.param(
            (W, G),
            True,
            (AddFinalizer(JOB, "foregroundDeletion"), DELETE),
            id="its owner waits, and its own dependents go first",
        ),
    ],
)
def test_what_becomes_of_a_dependent(
    owners: tuple[OwnerState, ...], has_dependents: bool, expected: tuple[Action, ...]
) -> None:
    named = tuple((str(number), state) for number, state in enumerate(owners))
    view = GarbageView(JOB, owners=named, has_dependents=has_dependents)

    assert decide(view, T0).actions == expected


@pytest.mark.parametrize(
    ("finalizers", "is_free", "removed"),
    [
        pytest.param(("orphan",), True, "orphan", id="nobody left to give up"),
        pytest.param(("orphan",), False, None, id="dependents still name it"),
        pytest.param(("foregroundDeletion",), True, "foregroundDeletion", id="dependents gone"),
        pytest.param(("interlock.dev/contents",), True, "interlock.dev/contents", id="empty"),
        pytest.param(("somebody/else",), True, None, id="not ours"),
    ],
)
def test_what_is_going_is_only_ever_let_go(
    finalizers: tuple[str, ...], is_free: bool, removed: str | None
) -> None:
    job = a_job(metadata={"finalizers": finalizers, **GOING})
    view = GarbageView(job, owners=(("0", G),), is_free=is_free, goes_with_namespace=True)
    expected = () if removed is None else (RemoveFinalizer(job, removed),)

    assert decide(view, T0).actions == expected


class Yard:
    """A running loop with the garbage room in it."""

    def __init__(self) -> None:
        self.world = World()
        self.proofs = LiveReads(self.world.store, self.world.caches, self.world.clock)
        self.garbage = Garbage(self.world.caches, self.proofs)
        self.loop = self.world.loop(self.garbage)
        self.proofs.wake = lambda key: self.loop.wake("garbage", key)

    async def start(self) -> None:
        await self.world.inform(self.loop)

    async def job(self, name: str, *owners: Job, blocks: bool = True, **metadata: Any) -> Job:
        references = tuple(reference(owner, blocks=blocks) for owner in owners)
        given = {"finalizers": (), "owner_references": references} | metadata
        return await self.world.create_job(name, metadata=given)

    async def delete(self, resource: Resource, how: Propagation | None = None) -> None:
        await self.world.store.delete(resource.key, DeleteOptions(propagation=how))

    async def settle(self) -> None:
        await self.world.passes(60)
        assert self.loop.is_idle
        assert self.world.sample("failures_total", room="garbage") == 0

    async def names(self, namespace: str = "default") -> list[str]:
        page = await self.world.store.list("Job")
        return [job.metadata.name for job in page.items if job.metadata.namespace == namespace]


def reference(owner: Job, *, blocks: bool = True) -> OwnerReference:
    return OwnerReference(
        api_version=API_VERSION,
        kind="Job",
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        block_owner_deletion=blocks,
    )


def test_background_dependents_go_after_their_owner_and_others_stay() -> None:
    yard = Yard()

    async def check() -> None:
        await yard.start()
        owner, other = await yard.job("owner"), await yard.job("other")
        child = await yard.job("child", owner)
        await yard.job("grandchild", child)
        await yard.job("shared", owner, other)
        await yard.delete(owner)
        await yard.settle()
        assert await yard.names() == ["other", "shared"]
        shared = await yard.world.store.get(Key("Job", "default", "shared"))
        assert [each.name for each in shared.metadata.owner_references] == ["other"]

    yard.world.run(check())


def test_foreground_the_owner_waits_for_all_that_hold_it_back() -> None:
    yard = Yard()

    async def check() -> None:
        await yard.start()
        owner = await yard.job("owner")
        child = await yard.job("child", owner)
        await yard.job("grandchild", child, finalizers=("test/hold",))
        await yard.delete(owner, Propagation.FOREGROUND)
        await yard.settle()
        assert await yard.names() == ["child", "grandchild", "owner"]
        held = await yard.world.store.get(Key("Job", "default", "grandchild"))
        await yard.world.store.update(replace(held, metadata=replace(held.metadata, finalizers=())))
        await yard.settle()
        assert await yard.names() == []

    yard.world.run(check())


def test_foreground_does_not_wait_for_what_does_not_hold_it_back() -> None:
    yard = Yard()

    async def check() -> None:
        await yard.start()
        owner = await yard.job("owner")
        await yard.job("child", owner, blocks=False, finalizers=("test/hold",))
        await yard.delete(owner, Propagation.FOREGROUND)
        await yard.settle()
        assert await yard.names() == ["child"]

    yard.world.run(check())


def test_a_ring_of_owners_can_be_deleted() -> None:
    yard = Yard()

    async def check() -> None:
        await yard.start()
        first = await yard.job("first")
        second = await yard.job("second", first)
        owned = replace(first.metadata, owner_references=(reference(second),))
        await yard.world.store.update(replace(first, metadata=owned))
        # What the caches know of every kind must reach the deletion, as bookmarks bring about.
        await yard.delete(first, Propagation.FOREGROUND)
        await yard.world.passes(1)
        yard.world.store.tick()
        await yard.settle()
        assert await yard.names() == []

    yard.world.run(check())


def test_orphans_stay_without_their_owner() -> None:
    yard = Yard()

    async def check() -> None:
        await yard.start()
        owner = await yard.job("owner")
        for number in range(5):
            await yard.job(f"child-{number}", owner)
        await yard.delete(owner, Propagation.ORPHAN)
        await yard.settle()
        assert await yard.names() == [f"child-{number}" for number in range(5)]
        for name in await yard.names():
            child = await yard.world.store.get(Key("Job", "default", name))
            assert child.metadata.owner_references == ()

    yard.world.run(check())


def test_a_dependent_that_comes_too_late_goes_too() -> None:
    yard = Yard()

    async def check() -> None:
        await yard.start()
        owner = await yard.job("owner")
        await yard.delete(owner)
        again = await yard.job("owner")
        assert again.metadata.uid != owner.metadata.uid
        await yard.job("child", owner)
        await yard.settle()
        assert await yard.names() == ["owner"]

    yard.world.run(check())


def test_an_owner_that_the_cache_does_not_show_yet_keeps_its_dependents() -> None:
    """The cache of owners stands still: the store must be asked, and says that it is there."""
    yard = Yard()

    async def check() -> None:
        world = yard.world
        yard.loop.start()
        owner = await yard.job("owner")
        child = await yard.job("child", owner)
        world.caches["Job"].note(child)
        assert yard.garbage.look(child.key, T0).actions == ()
        await world.passes(30)
        assert yard.garbage.look(child.key, T0).actions == ()
        assert await yard.names() == ["child", "owner"]

        await yard.delete(owner)
        await world.passes(30)
        assert await yard.names() == []

    yard.world.run(check())


def test_an_owner_of_a_kind_that_is_not_kept_here_counts_as_there() -> None:
    yard = Yard()
    foreign = OwnerReference(api_version="apps/v1", kind="Deployment", name="x", uid="x")
    other_group = OwnerReference(api_version="batch/v1", kind="Job", name="x", uid="x")

    async def check() -> None:
        await yard.start()
        await yard.job("a", owner_references=(foreign,))
        await yard.job("b", owner_references=(other_group,))
        await yard.settle()
        assert await yard.names() == ["a", "b"]

    yard.world.run(check())


def test_a_namespace_goes_when_all_that_is_in_it_has_gone() -> None:
    yard = Yard()

    async def check() -> None:
        store = yard.world.store
        await yard.start()
        namespace = await store.create(Namespace(metadata=Metadata(name="team")))
        held = await store.create(
            a_job("held", namespace="team", metadata={"finalizers": ("test/hold",)})
        )
        await store.create(a_job("free", namespace="team", metadata={"finalizers": ()}))
        await yard.job("elsewhere")
        lock = await store.create(a_lock("db", namespace="team"))
        lock = await store.update_status(
            replace(lock, status=LockStatus(holders=(a_holder(held),), last_token=1))
        )
        await yard.delete(namespace)
        await yard.settle()
        # What holds a lock may still be doing something: neither of them goes before that is over.
        assert await yard.names("team") == ["held"]
        assert await store.get(lock.key) == lock

        held = await store.get(held.key)  # type: ignore[assignment]
        await store.update(replace(held, metadata=replace(held.metadata, finalizers=())))
        await store.update_status(replace(lock, status=LockStatus()))
        await yard.settle()
        left = [each.metadata.name for each in (await store.list("Namespace")).items]
        assert left == ["default"]
        assert await yard.names() == ["elsewhere"]

    yard.world.run(check())


def test_a_namespace_is_not_let_go_because_a_cache_is_old() -> None:
    yard = Yard()

    async def check() -> None:
        world = yard.world
        yard.loop.start()
        namespace = await world.store.create(Namespace(metadata=Metadata(name="team")))
        await world.store.create(a_job("unseen", namespace="team"))
        await yard.delete(namespace)
        world.caches["Namespace"].note(await world.store.get(namespace.key))
        yard.loop.wake("garbage", namespace.key)
        await world.passes(30)
        assert (await world.store.get(namespace.key)).is_going

    yard.world.run(check())


def test_changes_of_a_status_do_not_wake_the_room() -> None:
    yard = Yard()

    async def check() -> None:
        await yard.start()
        owner = await yard.job("owner")
        child = await yard.job("child", owner)
        await yard.settle()
        looks = yard.world.sample("looks_total", room="garbage")
        status = replace(child.status, conditions=())
        await yard.world.store.update_status(replace(child, status=status))
        await yard.world.store.update(replace(owner, spec=replace(owner.spec, title="t")))
        await yard.settle()
        assert yard.world.sample("looks_total", room="garbage") == looks

    yard.world.run(check())
