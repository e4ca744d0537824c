"""The parts of one control plane on a simulated clock and a store in memory."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from random import Random
from typing import Any, TypeVar

from msgspec.structs import replace

from interlock.control.applier import Applier
from interlock.control.cache import Cache
from interlock.control.garbage import INDEXES
from interlock.control.informer import Informer
from interlock.control.loop import Loop
from interlock.control.metrics import Metrics
from interlock.control.queue import Item, WorkQueue
from interlock.control.reconciler import Change, Reconciler
from interlock.control.reports import Reports
from interlock.control.runtime import Listener, TaskStop
from interlock.control.write_fence import WriteFence
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.resources.actions import Decision, RecordAdmission
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.tasks import TaskId, TaskOrder, TaskReport
from interlock.store.contract import DeleteOptions, Event, JournalEntry, Page, Selection
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryJournal, MemoryStore
from interlock.testing.builders import T0, a_job

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

KEPT = ("Job", "Lock", "Namespace", "Lease")
ADMITTED = AdmissionStatus(phase=AdmissionPhase.ADMITTED, admitted_at=T0)


class TroubledStore(MemoryStore):
    """A store that fails when told to."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        #: Asked before every call with its name; may raise.
        self.before: Callable[[str], None] = lambda _: None
        self.calls: list[str] = []
        #: What lists and watches cannot read.
        self.unreadable: frozenset[Key] = frozenset()
        #: Deletions wait until this is set.
        self.go_on = asyncio.Event()
        self.go_on.set()
        self._cut: asyncio.Future[Exception] | None = None

    def interrupt(self, error: Exception) -> None:
        """End every watch under way with an error."""
        assert self._cut is not None
        self._cut.set_result(error)
        self._cut = None

    def _called(self, name: str) -> None:
        self.calls.append(name)
        self.before(name)

    async def get(self, key: Key) -> Resource:
        self._called("get")
        return await super().get(key)

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        self._called("create")
        return await super().create(resource, dry_run=dry_run)

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        self._called("update")
        return await super().update(resource, dry_run=dry_run)

    async def update_ties(self, resource: R, *, dry_run: bool = False) -> R:
        self._called("update_ties")
        return await super().update_ties(resource, dry_run=dry_run)

    async def update_status(self, resource: R, *, dry_run: bool = False) -> R:
        self._called("update_status")
        return await super().update_status(resource, dry_run=dry_run)

    async def delete(
        self, key: Key, options: DeleteOptions | None = None, *, dry_run: bool = False
    ) -> Resource:
        self._called("delete")
        await self.go_on.wait()
        return await super().delete(key, options, dry_run=dry_run)

    async def list(
        self,
        kind: str,
        selection: Selection | None = None,
        *,
        limit: int | None = None,
        continue_token: str = "",
    ) -> Page:
        self._called("list")
        page = await super().list(kind, selection, limit=limit, continue_token=continue_token)
        items = tuple(item for item in page.items if item.key not in self.unreadable)
        found = tuple(item.key for item in page.items if item.key in self.unreadable)
        return replace(page, items=items, unreadable=found)

    def watch(
        self, kind: str, selection: Selection | None = None, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event]]]:
        self._called("watch")
        return self._watched(super().watch(kind, selection, since=since))

    @asynccontextmanager
    async def _watched(
        self, watch: AbstractAsyncContextManager[AsyncIterator[Sequence[Event]]]
    ) -> AsyncGenerator[AsyncIterator[Sequence[Event]], None]:
        if self._cut is None:
            self._cut = asyncio.get_running_loop().create_future()
        async with watch as batches:
            yield _until(self._cut, batches)


async def _until(
    cut: asyncio.Future[Exception], batches: AsyncIterator[Sequence[Event]]
) -> AsyncGenerator[Sequence[Event], None]:
    """The batches, until the cut."""
    while True:
        batch = asyncio.ensure_future(_next(batches))
        cut.add_done_callback(lambda _, batch=batch: batch.cancel())  # type: ignore[misc]
        try:
            yield await batch
        except asyncio.CancelledError:
            batch.cancel()
            if not cut.done():
                raise
            raise cut.result() from None


async def _next(batches: AsyncIterator[Sequence[Event]]) -> Sequence[Event]:
    return await anext(batches)


class NotedRuntime:
    """A runtime that notes what it is asked, and says what the test tells it to."""

    groups_orders = True

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.known: list[TaskReport] = []
        self.failure: Exception | None = None
        self._listeners: list[Listener] = []

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        self._called("launch", orders)

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        self._called("stop", stops)

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        self._called("forget", tasks)

    async def reports(self) -> Sequence[TaskReport]:
        self._called("reports", ())
        return tuple(self.known)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell(self, *reports: TaskReport) -> None:
        for listener in self._listeners:
            listener(reports)

    def _called(self, name: str, things: Sequence[Any]) -> None:
        self.calls.append((name, tuple(things)))
        if self.failure is not None:
            raise self.failure


class Script:
    """A room that decides what the test says, and notes how often it looked."""

    def __init__(self, look: Callable[[Key], Decision], room: str = "room") -> None:
        self._room = room
        self._look = look
        self.looks: list[Key] = []
        self._heard: dict[Key, Job] = {}

    @property
    def room(self) -> str:
        return self._room

    def wakes(self, change: Change) -> Iterable[Key]:
        resource = change.after or change.before
        if not isinstance(resource, Job):
            return ()
        self._heard[resource.key] = resource
        return (resource.key,)

    def reported(self, job: Key, uid: str) -> Iterable[Key]:
        return (job,)

    def waiting(self) -> Iterable[Job]:
        return tuple(self._heard.values())

    def look(self, key: Key, now: datetime) -> Decision:
        self.looks.append(key)
        return self._look(key)


class World:
    """Everything that a loop needs, and simulated time."""

    def __init__(self, seed: int = 0, *, remembered: int = 16_384) -> None:
        self.events = SimLoop(Random(seed))
        # A world that is thrown away without having run must not leave an open loop behind.
        weakref.finalize(self, self.events.close)
        self.clock = SimClock(self.events, self.events.world, T0)
        self.store = TroubledStore(
            self.clock.now, SeededIdentities(Random(seed)), remembered=remembered
        )
        self.luck = Random(seed)
        self.runtime = NotedRuntime()
        self.journal = MemoryJournal()
        self.fence = WriteFence(self.clock)
        self.fence.open(1)
        self.caches: Mapping[str, Cache[Any]] = {kind: Cache(kind, INDEXES) for kind in KEPT}
        self.reports = Reports(self.runtime, self.clock, self.luck)
        self.queue = WorkQueue(self.clock, self.luck)
        self.applier = Applier(self.store, self.runtime, self.clock, self.fence)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, with all the simulated time it needs."""
        try:
            result = self.events.run(work, within=7 * 86_400.0)
        finally:
            self.events.close()
        assert self.events.errors == []
        return result

    def loop(self, *reconcilers: Reconciler) -> Loop:
        """A loop with these rooms, not started."""
        self.metrics = Metrics([each.room for each in reconcilers])
        return Loop(
            reconcilers=reconcilers,
            caches=self.caches,
            reports=self.reports,
            queue=self.queue,
            applier=self.applier,
            fence=self.fence,
            clock=self.clock,
            journal=self.journal,
            metrics=self.metrics,
        )

    async def inform(self, loop: Loop, *kinds: str) -> None:
        """Start the loop, with caches that follow the store."""
        loop.start()
        for kind in kinds or KEPT:
            informer = Informer(
                self.store,
                self.caches[kind],
                self.clock,
                self.luck,
                loop.changed,
                on_back=loop.store_is_back,
            )
            self.events.create_task(informer.run())
            await informer.synced.wait()

    async def inform_and_report(self, loop: Loop) -> None:
        """Start the loop, with caches that follow the store and reports that follow the runtime."""
        self.events.create_task(self.reports.run())
        await self.inform(loop)
        await self.reports.synced.wait()

    def show(self, loop: Loop, job: Job) -> None:
        """Let the loop know the Job as it is here, whatever the store holds, and look at it."""
        self.caches["Job"].note(job)
        loop.wake("room", job.key)

    async def create_job(self, name: str = "job", **more: Any) -> Job:
        """A Job in the store, as a client would make it."""
        return await self.store.create(a_job(name, **more))

    async def passes(self, seconds: float) -> None:
        """Let simulated time pass, and everything that is due in it happen."""
        await asyncio.sleep(seconds)

    async def journalled(self) -> list[JournalEntry]:
        """What the journal holds, oldest first."""
        return [entry for _, entry in reversed(await self.journal.read())]

    def sample(self, name: str, **labels: str) -> float:
        """A number as a scrape would show it."""
        return self.metrics.registry.get_sample_value(f"interlock_{name}", labels) or 0.0


def item(name: str = "a", room: str = "room") -> Item:
    """A Job's key in a room."""
    return Item(room, Key("Job", "default", name))


def cached(world: World, key: Key) -> Job | None:
    """The Job as the loop's rooms see it."""
    job: Job | None = world.caches["Job"].get(key)
    return job


def admits(world: World) -> Callable[[Key], Decision]:
    """Admit every Job that waits."""

    def look(key: Key) -> Decision:
        job = cached(world, key)
        if job is None or job.status.admission.phase is not AdmissionPhase.WAITING:
            return Decision()
        return Decision((RecordAdmission(job, ADMITTED),), reason="room enough")

    return look


async def stored(world: World, name: str = "job") -> Job:
    """The Job as the store holds it."""
    job = await world.store.get(Key("Job", "default", name))
    assert isinstance(job, Job)
    return job


def is_admitted(job: Job) -> bool:
    """Whether the Job may start."""
    return job.status.admission.phase is AdmissionPhase.ADMITTED


def admitting() -> tuple[World, Script, Loop]:
    """A world, a room in it that admits every Job that waits, and a loop with this room."""
    world = World()
    room = Script(admits(world))
    return world, room, world.loop(room)
