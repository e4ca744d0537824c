"""The informer of one sort of objects: listed once, then followed by a watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Generic, NamedTuple

from interlock.control.backoff import Backoff
from interlock.control.clock import Clock, pause
from interlock.control.turns import PART, in_parts
from interlock.errors import ExpiredError, InterlockError
from interlock.kube.pods.models import T
from interlock.kube.pods.naming import SELECTOR
from interlock.kube.pods.objects import Event, Listed, Objects
from interlock.resources.tasks import TaskId

logger = logging.getLogger("interlock.kube.pods")

Place = tuple[str, str]
#: So many objects that went are remembered; answers are not older than that.
_REMEMBERED = 10_000
#: No version is as high.
_FOR_EVER = 1 << 64


class Seen(NamedTuple, Generic[T]):
    """A change: an object as it was known and as it is."""

    before: T | None
    after: T | None
    #: Of an object that is gone: its last state, if that was told.
    last: T | None = None


class Informer(Generic[T]):
    """The objects that were made for attempts.

    They are told apart by their versions, whoever brings them: a list, the watch, or the answer to
    a write. An older state never replaces a newer one, and what is gone does not come back.
    """

    def __init__(
        self,
        objects: Objects[T],
        clock: Clock,
        luck: Random,
        *,
        part: int = PART,
        selector: str = SELECTOR,
    ) -> None:
        self.objects = objects
        self._selector = selector
        #: How many objects are dealt with in one turn, where there may be very many.
        self.part = part
        self._clock = clock
        self._backoff = Backoff(luck)
        self._held: dict[Place, T] = {}
        self._by_job: dict[str, dict[TaskId | None, dict[Place, T]]] = {}
        self._listeners: list[Callable[[Sequence[Seen[T]]], None]] = []
        #: The version that the watch goes on from; None when everything has to be listed.
        self._version: int | None = None
        self._listing = asyncio.Lock()
        #: Uids of objects that went, and by which version they had: a list, or the answer to a
        #: write, may be older than that. What is newer has come back: its label was put on again.
        self._gone: dict[str, int] = {}
        #: Lists that were begun and the newest that was finished, by number.
        self._begun = 0
        self._finished = 0
        #: Lists up to this number may lack something that happened since.
        self._stale = 0

    # What is known

    def get(self, place: Place) -> T | None:
        """An object, by namespace and name."""
        return self._held.get(place)

    def of_job(self, job_uid: str) -> Iterable[T]:
        """The objects that were made for a Job."""
        tasks = self._by_job.get(job_uid, {}).values()
        return tuple(one for places in tasks for one in places.values())

    def of_task(self, task: TaskId) -> Iterable[T]:
        """The objects that were made for an attempt."""
        return tuple(self._by_job.get(task.job_uid, {}).get(task, {}).values())

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._held.values()))

    def subscribe(self, listener: Callable[[Sequence[Seen[T]]], None]) -> Callable[[], None]:
        """Call `listener` with each batch of changes, until the returned call is made."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def take(self, thing: T) -> None:
        """Know the answer to a write at once, before the watch tells of it."""
        self._tell(self._put(thing))

    # Keeping up

    async def run(self) -> None:
        """Keep up to date until cancelled."""
        while True:
            try:
                if self._version is None:
                    await self._list(after=self._finished)
                await self._follow()
            except ExpiredError as error:
                logger.info("listing again: %s", error)
                self._version = None
                await self._wait(error)
            except InterlockError as error:
                # What is known may be old by now; the watch goes on from where it was.
                self._stale = self._begun
                await self._wait(error)

    @property
    def mark(self) -> int:
        """A moment: lists that are begun from now on have a higher number."""
        return self._begun

    async def listed_after(self, mark: int) -> None:
        """Wait until everything was listed, by a list that was begun after a mark.

        Raises:
            InterlockError: The list failed.
        """
        if self._finished <= max(mark, self._stale):
            await self._list(after=max(mark, self._stale))

    async def _follow(self) -> None:
        """Take in what happens until the watch ends, as watches do."""
        assert self._version is not None
        fruitless = True
        async with self.objects.watch(self._selector, since=self._version) as batches:
            async for events in batches:
                fruitless = False
                self._backoff.reset()
                self._tell([seen for event in events for seen in self._happened(event)])
        if fruitless:
            # One that ends at once, every time, must not keep us busy.
            await pause(self._clock, self._backoff.failed())

    async def _wait(self, error: InterlockError) -> None:
        delay = self._backoff.failed()
        if self._backoff.failures > 1:
            logger.warning("following objects failed, again in %.2f s: %s", delay, error)
        await pause(self._clock, delay)

    def _happened(self, event: Event[T]) -> Iterable[Seen[T]]:
        self._version = max(self._version or 0, event.version)
        if event.object is None:
            return ()
        if event.type == "DELETED":
            return self._drop(event.object.place, event.object)
        return self._put(event.object)

    async def _list(self, *, after: int) -> None:
        async with self._listing:
            if self._finished > after:
                return  # Somebody else did it meanwhile.
            self._begun += 1
            listed = await self.objects.list(self._selector)
            await self._take_list(listed)
            self._finished = self._begun
            if self._version is None:
                self._version = listed.version

    async def _take_list(self, listed: Listed[T]) -> None:
        """Know what was listed, a part at a time: others are to get their turn."""
        async for things in in_parts(listed.items, self.part):
            self._tell([seen for thing in things for seen in self._put(thing)])
        there = {thing.place for thing in listed.items}
        # What is newer than the list was made or changed after it was read.
        gone = [
            held
            for held in self._held.values()
            if held.place not in there and held.version <= listed.version
        ]
        for held in gone:
            self._bury(held.metadata.uid, listed.version)
        self._tell([seen for held in gone for seen in self._drop(held.place, None)])

    # Holding

    def _put(self, thing: T) -> Sequence[Seen[T]]:
        held = self._held.get(thing.place)
        gone_by = self._gone.get(thing.metadata.uid, -1)
        if gone_by >= thing.version or (held and held.version >= thing.version):
            return ()
        if held is not None:
            if held.metadata.uid != thing.metadata.uid:
                self._bury(held.metadata.uid, _FOR_EVER)
            # Labels can be changed, and then it is another attempt's.
            self._unlink(held)
        self._held[thing.place] = thing
        tasks = self._by_job.setdefault(thing.metadata.labels.job_uid, {})
        tasks.setdefault(thing.task, {})[thing.place] = thing
        return (Seen(held, thing),)

    def _drop(self, place: Place, last: T | None) -> Sequence[Seen[T]]:
        held = self._held.get(place)
        if last is not None:
            self._bury(last.metadata.uid, last.version)
        if held is None or (last is not None and held.metadata.uid != last.metadata.uid):
            return ()
        self._bury(held.metadata.uid, held.version)
        self._unlink(held)
        return (Seen(held, None, last),)

    def _bury(self, uid: str, version: int) -> None:
        self._gone[uid] = max(version, self._gone.get(uid, 0))
        if len(self._gone) > _REMEMBERED and not self._listing.locked():
            for old in tuple(self._gone)[: -_REMEMBERED // 2]:
                del self._gone[old]

    def _unlink(self, held: T) -> None:
        del self._held[held.place]
        job_uid, task = held.metadata.labels.job_uid, held.task
        tasks = self._by_job[job_uid]
        del tasks[task][held.place]
        if not tasks[task]:
            del tasks[task]
        if not tasks:
            del self._by_job[job_uid]

    def _tell(self, changes: Sequence[Seen[T]]) -> None:
        if changes:
            for listener in tuple(self._listeners):
                listener(changes)
