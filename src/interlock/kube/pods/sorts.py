"""All that is done with the objects of one type of work: pods, or batch Jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic

from interlock.control.runtime import TaskStop
from interlock.errors import NotFoundError
from interlock.kube.pods.first_look import FirstLook
from interlock.kube.pods.informer import Informer, Seen
from interlock.kube.pods.launching import Launching
from interlock.kube.pods.models import T
from interlock.kube.pods.stopping import let_go
from interlock.resources.tasks import TaskId, task_name


class WorkSort(Generic[T]):
    """The objects that attempts of one type of work are made of, for one leadership."""

    def __init__(
        self,
        mirror: Informer[T],
        launching: Launching[T],
        *,
        stop: Callable[[T, int | None], Awaitable[None]],
        look: Callable[[T], None],
        vanished: Callable[[T, bool], None],
    ) -> None:
        self.mirror = mirror
        self.create = launching.create
        self.arm = launching.arm
        #: Has an object go, with so many seconds of grace or else its own.
        self.stop = stop
        #: Called with what there is, and with what is gone and whether that was its last state.
        self._look = look
        self._vanished = vanished
        #: What was listed up to here may lack what was done since.
        self._mark = mirror.mark
        self._first = FirstLook(mirror, look)

    def of_task(self, task: TaskId) -> Sequence[T]:
        """The objects of an attempt, as far as they are known."""
        return [thing for thing in self.mirror.of_task(task) if not thing.is_part]

    def doubt(self) -> None:
        """Something may have been done that nobody was told of."""
        self._mark = self.mirror.mark

    async def listed(self) -> None:
        """Wait until everything that was done before the last doubt is known."""
        await self.mirror.listed_after(self._mark)

    async def look_at_all(self) -> None:
        """Look at what there was when this leadership began."""
        await self._first.finish()

    def changed(self, changes: Sequence[Seen[T]]) -> None:
        """Look at what changed."""
        for before, after, last in changes:
            if before is not None:
                self._first.before_change(before)
            if before is not None and (after is None or not _same(before, after)):
                self._vanished(last or before, last is not None)
            if after is not None:
                self._look(after)

    async def fetch(self, stop: TaskStop) -> None:
        """Let the mirror know the object of an attempt, if there is one."""
        name = stop.object or task_name(stop.job, stop.task.task, stop.task.attempt)
        with suppress(NotFoundError):
            found = await self.mirror.objects.get(stop.namespace, name)
            if found.task == stop.task:
                self.mirror.take(found)

    async def forget(self, task: TaskId, check: Callable[[], None]) -> None:
        """Let go of the objects of an attempt that is over."""
        for thing in self.of_task(task):
            # What waits was created late, for an attempt that was over: it goes as it is.
            if thing.is_waiting:
                await self.stop(thing, None)
            await let_go(self.mirror, self.mirror.get(thing.place) or thing, check)


def _same(one: T, other: T) -> bool:
    return one.metadata.uid == other.metadata.uid
