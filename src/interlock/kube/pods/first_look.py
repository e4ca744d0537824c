"""What there was when a leadership began, looked at a part at a time.

There may be very much of it, and meanwhile others must get their turn: a lease that is not renewed
in time is lost, and the next leadership would begin with the same work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Generic

from interlock.kube.pods.mirror import Mirror
from interlock.kube.pods.wire import T

#: So many are looked at in one turn of the event loop.
PART = 500


class FirstLook(Generic[T]):
    """Looks once at each object that a mirror held at the beginning, as it was then."""

    def __init__(self, mirror: Mirror[T], look: Callable[[T], None]) -> None:
        self._mirror = mirror
        self._look = look
        self._left = dict.fromkeys(thing.place for thing in mirror)

    def before_change(self, before: T) -> None:
        """Look at an object that changes now, unless that was done."""
        if before.place in self._left:
            del self._left[before.place]
            self._look(before)

    async def finish(self) -> None:
        """Look at all that are left."""
        while self._left:
            for place in tuple(islice(self._left, PART)):
                del self._left[place]
                thing = self._mirror.get(place)
                assert thing is not None, "whoever changes it says so before"
                self._look(thing)
            if self._left:
                await asyncio.sleep(0)
