"""Deferred forgetting: the runtime is told what it may drop, later and many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from interlock.control.clock import Clock, Timer
from interlock.errors import InterlockError
from interlock.resources.tasks import TaskId

#: So many attempts are forgotten at once without waiting any longer.
ENOUGH = 100
#: Fewer wait this long for company, and a call that failed for another try.
LATER_S = 1.0


class Forgetting:
    """Attempts that are to be forgotten. Nobody waits for it, so nobody hears of a failure.

    Forgetting only saves room: what is lost here, in a crash or with the lead, is among the
    reports that the next control plane reads, and it decides the same again.
    """

    def __init__(self, call: Callable[[Sequence[TaskId]], Awaitable[None]], clock: Clock) -> None:
        self._call = call
        self._clock = clock
        self._tasks: list[TaskId] = []
        self._timer: Timer | None = None
        self._calling: asyncio.Task[None] | None = None

    def add(self, tasks: Sequence[TaskId]) -> None:
        """Have these forgotten soon."""
        self._tasks.extend(tasks)
        if self._calling is not None:
            return
        if len(self._tasks) >= ENOUGH:
            self._begin()
        elif self._timer is None:
            self._timer = self._clock.call_later(LATER_S, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._calling = asyncio.get_running_loop().create_task(self._run())
        self._calling.add_done_callback(self._done)

    async def _run(self) -> None:
        tasks, self._tasks = self._tasks, []
        try:
            await self._call(tasks)
        except InterlockError as error:
            if error.retryable:
                self._tasks[:0] = tasks

    def _done(self, calling: asyncio.Task[None]) -> None:
        self._calling = None
        if self._tasks and not calling.cancelled():
            self._timer = self._clock.call_later(LATER_S, self._begin)
