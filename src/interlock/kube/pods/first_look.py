"""The initial scan: what there was when a leadership began, a part at a time, none missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from interlock.control.turns import in_parts
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.models import T


class FirstLook(Generic[T]):
    """Looks once at each object that a mirror held at the beginning, as it was then."""

    def __init__(self, mirror: Informer[T], look: Callable[[T], None]) -> None:
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
        async for places in in_parts(tuple(self._left), self._mirror.part):
            for place in places:
                thing = self._mirror.get(place)
                if thing is not None:
                    self.before_change(thing)
