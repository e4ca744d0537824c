"""Collecting garbage: nothing that has an owner goes, nothing that has none left stays."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.control.applier import Applier
from interlock.control.cache import Cache
from interlock.control.garbage import INDEXES, Garbage
from interlock.control.informer import Informer
from interlock.control.live_reads import LiveReads
from interlock.control.loop import Loop
from interlock.control.metrics import Metrics
from interlock.control.queue import WorkQueue
from interlock.control.write_fence import WriteFence
from interlock.errors import InterlockError
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.resources.job import Job
from interlock.resources.metadata import API_VERSION, OwnerReference
from interlock.store.contract import DeleteOptions, Propagation
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryJournal, MemoryStore
from interlock.testing.builders import T0, a_job

#: Job number n may name any of the Jobs before it: by number, and whether it holds them back.
OWNERS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=3)
DELETIONS = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(Propagation), st.sampled_from([0.0, 0.1, 5.0])),
    max_size=4,
)


class Yard:
    """The garbage room on a store in memory."""

    def __init__(self, seed: int) -> None:
        self.events = SimLoop(Random(seed))
        clock = self.clock = SimClock(self.events, self.events.world, T0)
        self.store = MemoryStore(clock.now, SeededIdentities(Random(seed)))
        caches: Mapping[str, Cache[Any]] = {
            kind: Cache(kind, INDEXES) for kind in ("Job", "Lock", "Namespace")
        }
        proofs = LiveReads(self.store, caches, clock)
        fence = WriteFence(clock)
        fence.open(1)
        self.queue = WorkQueue(clock, Random(seed))
        runtime: Any = _NoRuntime()
        self.loop = Loop(
            reconcilers=[Garbage(caches, proofs)],
            caches=caches,
            reports=None,
            queue=self.queue,
            applier=Applier(self.store, runtime, clock, fence),
            fence=fence,
            clock=clock,
            journal=MemoryJournal(),
            metrics=Metrics(["garbage"]),
        )
        proofs.wake = lambda key: self.loop.wake("garbage", key)
        self.informers = [
            Informer(self.store, cache, clock, Random(seed), self.loop.changed)
            for cache in caches.values()
        ]

    async def start(self) -> None:
        self.loop.start()
        for informer in self.informers:
            self.events.create_task(informer.run())
            await informer.synced.wait()

    async def pass_time(self, seconds: float) -> None:
        done = self.events.create_future()
        self.events.call_later(seconds, done.set_result, None)
        await done


class _NoRuntime:
    groups_orders = True

    async def launch(self, orders: object) -> None: ...
    async def stop(self, stops: object) -> None: ...
    async def forget(self, tasks: object) -> None: ...


def reference(owner: Job, blocks: bool) -> OwnerReference:
    return OwnerReference(
        api_version=API_VERSION,
        kind="Job",
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        block_owner_deletion=blocks,
    )


@settings(max_examples=80, deadline=None)
@given(graph=st.lists(OWNERS, min_size=1, max_size=8), deletions=DELETIONS, seed=st.integers(0, 99))
def test_exactly_what_nobody_owns_any_more_goes(
    graph: list[list[tuple[int, bool]]],
    deletions: list[tuple[int, Propagation, float]],
    seed: int,
) -> None:
    yard = Yard(seed)
    made: list[Job] = []
    how: dict[str, dict[Propagation, None]] = {}

    async def run() -> list[Job]:
        await yard.start()
        for number, owners in enumerate(graph):
            chosen = {at % number: blocks for at, blocks in owners} if number else {}
            names = tuple(reference(made[at], blocks) for at, blocks in chosen.items())
            metadata = {"finalizers": (), "owner_references": names}
            made.append(await yard.store.create(a_job(f"job-{number}", metadata=metadata)))
        for at, propagation, pause in deletions:
            job = made[at % len(made)]
            try:
                await yard.store.delete(job.key, DeleteOptions(propagation=propagation))
                how.setdefault(job.metadata.uid, {})[propagation] = None
            except InterlockError:
                pass  # It has gone with its owner already.
            await yard.pass_time(pause)
        await yard.pass_time(120)
        yard.store.tick()
        await yard.pass_time(120)
        assert yard.loop.is_idle
        page = await yard.store.list("Job")
        return [job for job in page.items if isinstance(job, Job)]

    try:
        left = {job.metadata.uid: job for job in yard.events.run(run())}
    finally:
        yard.events.close()
    for job in made:
        uid, owners = job.metadata.uid, [each.uid for each in job.metadata.owner_references]
        if uid in left:
            assert uid not in how, "what was deleted is still there"
            assert all(each.uid in left for each in left[uid].metadata.owner_references)
        elif uid not in how:
            assert owners, "what has no owner was collected"
            assert not any(owner in left for owner in owners), "an owner of it is still there"
        if owners and uid not in how and all(Propagation.ORPHAN in how.get(o, {}) for o in owners):
            only_orphaned = all(list(how[o]) == [Propagation.ORPHAN] for o in owners)
            assert uid in left or not only_orphaned, "an orphan was collected"
