"""A timer heap: things to do, each with at most one moment, the earliest first."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

T = TypeVar("T", bound=Hashable)
#: A moment: a datetime on the wall clock, or seconds on the monotonic one.
W = TypeVar("W", bound=Any)

#: Entries that count no longer stay in the heap until they outnumber the others by this much.
_SLACK = 64


class TimerHeap(Generic[T, W]):
    """Things by the moment they are due; equals in the order they were put in."""

    def __init__(self) -> None:
        self._heap: list[tuple[W, int, T]] = []
        self._entries: dict[T, tuple[W, int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, thing: object) -> bool:
        return thing in self._entries

    def put(self, thing: T, when: W) -> None:
        """Have a thing due at a moment, and at no other."""
        entry = self._entries.get(thing)
        if entry is not None and entry[0] == when:
            return
        self._count += 1
        self._entries[thing] = (when, self._count)
        heappush(self._heap, (when, self._count, thing))
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            self._tidy()

    def cancel(self, thing: T) -> None:
        """Have a thing not due at all."""
        self._entries.pop(thing, None)

    def earliest(self) -> W | None:
        """When the first thing is due; None when nothing ever is."""
        heap = self._heap
        while heap:
            when, number, thing = heap[0]
            if self._entries.get(thing) == (when, number):
                return when
            heappop(heap)
        return None

    def take_due(self, now: W) -> list[T]:
        """Take out everything that is due by now, in order."""
        due: list[T] = []
        while (when := self.earliest()) is not None and when <= now:
            thing = heappop(self._heap)[2]
            del self._entries[thing]
            due.append(thing)
        return due

    def take_all(self) -> list[T]:
        """Take out everything, in the order it was put in."""
        things = list(self._entries)
        self._entries.clear()
        self._heap.clear()
        return things

    def _tidy(self) -> None:
        self._heap = [(when, number, thing) for thing, (when, number) in self._entries.items()]
        heapify(self._heap)
