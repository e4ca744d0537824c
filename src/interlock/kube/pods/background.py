"""Background work of the runtime: keys to look at again later, and tasks to do at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from interlock.control.clock import Clock, Timer
from interlock.errors import InterlockError

logger = logging.getLogger("interlock.kube.pods")


class Background:
    """Timers and work that nobody waits for, each known by what it is about."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: dict[Hashable, Timer] = {}
        self._under_way: dict[Hashable, asyncio.Task[None]] = {}
        self._closed = False

    def run(self, about: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin work, unless the same is under way."""
        if self._closed or about in self._under_way:
            return
        task = asyncio.get_running_loop().create_task(self._guarded(about, work))
        self._under_way[about] = task

    def later(self, about: Hashable, seconds: float, ring: Callable[[], None]) -> None:
        """Ring after a while; asked again about the same, only the last holds."""
        self.cancel(about)
        if self._closed:
            return

        def due() -> None:
            self._timers.pop(about, None)
            ring()

        self._timers[about] = self._clock.call_later(max(seconds, 0.0), due)

    def cancel(self, about: Hashable) -> None:
        """Do not ring about this any more."""
        timer = self._timers.pop(about, None)
        if timer is not None:
            timer.cancel()

    async def close(self) -> None:
        """Do nothing any more."""
        self.drop()
        tasks = tuple(self._under_way.values())
        await asyncio.gather(*tasks, return_exceptions=True)

    def drop(self) -> None:
        """Begin nothing any more, and have what is under way stop."""
        self._closed = True
        for about in tuple(self._timers):
            self.cancel(about)
        for task in self._under_way.values():
            task.cancel()

    async def _guarded(
        self, about: Hashable, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        try:
            await work()
        except InterlockError as error:
            logger.warning("%s: %s", about, error)
        except Exception:
            logger.exception("%s failed", about)
        finally:
            self._under_way.pop(about, None)
