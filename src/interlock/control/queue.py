"""The work queue: each key one at a time per room, no wake lost, failures later and later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import NamedTuple

from interlock.control.backoff import delay_after
from interlock.control.clock import Clock, Timer
from interlock.control.timer_heap import TimerHeap
from interlock.resources.metadata import Key

#: So many keys are in work at a time: enough to fill a group commit.
PLACES = 256
#: While there are keys whose moment has come, one turn in so many is for others, and no more of
#: those are in work. Of the keys whose moment has come each takes only some places from the others:
#: one may be in work for long.
TURNS = 16
OTHERS = 4
PLACES_OF_ONE = 8
#: Of the keys that wait for the same cause, one is tried at least this often: it finds out first.
PROBE_S = 2.0


class Item(NamedTuple):
    """A room and the key it is to look at."""

    room: str
    key: Key


class WorkQueue:
    """Keys that are ready, in work, backing off, or waiting for a moment.

    A key is handed out by `take` and is in work until `done` or `retry`. One that is woken
    meanwhile is ready again right after. Keys whose moment has come go first, so that starts and
    stops are on time however busy it is; apart from that they come in the order they were woken.
    """

    def __init__(self, clock: Clock, luck: Random) -> None:
        self._clock = clock
        self._luck = luck
        #: Called whenever a key becomes ready; the loop puts itself here.
        self.on_ready: Callable[[], None] = lambda: None
        #: What may be ready, in order. A key that is not in `_is_ready` any more is passed over:
        #: to look for it here would cost as much as there is.
        self._ready: deque[Item] = deque()
        #: The same for keys whose moment has come, and whose turn it is.
        self._due: deque[Item] = deque()
        self._turn = 0
        #: What is ready; asked, never iterated.
        self._is_ready: set[Item] = set()
        #: Whether a key in work was woken meanwhile.
        self._in_work: dict[Item, bool] = {}
        #: Of those the ones whose moment had come.
        self._urgent: set[Item] = set()
        #: How often in a row each key failed, and on what it waits.
        self._failures: dict[Item, int] = {}
        self._causes: dict[Item, str] = {}
        #: The key that finds out whether a cause is over.
        self._probes: dict[str, Item] = {}
        self._retries: TimerHeap[Item, float] = TimerHeap()
        self._moments: TimerHeap[Item, datetime] = TimerHeap()
        self._retry_timer: tuple[float, Timer] | None = None
        self._moment_timer: tuple[datetime, Timer] | None = None
        self._stop_listening = clock.on_jump(self._wake_waiting)

    @property
    def depth(self) -> int:
        """How many keys are ready."""
        return len(self._is_ready)

    @property
    def in_work(self) -> int:
        """How many keys are being worked on."""
        return len(self._in_work)

    @property
    def backing_off(self) -> int:
        """How many keys wait for another try."""
        return len(self._retries)

    def failures(self, item: Item) -> int:
        """How often in a row a key has failed."""
        return self._failures.get(item, 0)

    def wake(self, item: Item) -> bool:
        """Have a key looked at, once, however often it is woken until then.

        Returns whether that was news: not when it is to be looked at anyhow.
        """
        if item in self._in_work:
            was_woken, self._in_work[item] = self._in_work[item], True
            return not was_woken
        if item in self._is_ready:
            return False
        self._retries.cancel(item)
        self._is_ready.add(item)
        self._ready.append(item)
        self.on_ready()
        return True

    def take(self) -> Item | None:
        """The next ready key, in work from now on; None when there is none."""
        while (chosen := self._next()) is not None:
            item, is_urgent = chosen
            if item in self._is_ready:
                self._is_ready.remove(item)
                self._in_work[item] = False
                if is_urgent:
                    self._urgent.add(item)
                return item
        return None

    def _next(self) -> tuple[Item, bool] | None:
        """What comes next, and whether its moment has come.

        None when there is nothing, or while others have all their places.
        """
        others = len(self._in_work) - len(self._urgent)
        if not self._due:
            places = PLACES - PLACES_OF_ONE * len(self._urgent)
            is_full = self._urgent and others >= max(OTHERS, places)
            return (self._ready.popleft(), False) if self._ready and not is_full else None
        if self._ready and others < OTHERS:
            self._turn = (self._turn + 1) % TURNS
            if self._turn == 0:
                return self._ready.popleft(), False
        return self._due.popleft(), True

    def join(self, item: Item) -> bool:
        """Take a key into work beside another, whether it is ready or not.

        Returns whether that was done: not while it is in work already or backs off.
        """
        if item in self._in_work or item in self._retries:
            return False
        self._is_ready.discard(item)
        self._in_work[item] = False
        return True

    def done(self, item: Item, wake_at: datetime | None = None) -> None:
        """A key was dealt with; it is looked at again at `wake_at` and at no earlier wish."""
        self._failures.pop(item, None)
        self._wait_for(item, "")
        if wake_at is None:
            self._moments.cancel(item)
        elif wake_at <= self._clock.now():
            # Not a moment that was waited for: there is more to do, and others had no turn yet.
            self._moments.cancel(item)
            self._in_work[item] = True
        else:
            self._moments.put(item, wake_at)
            self._arm_moments()
        self._leave_work(item)

    def retry(self, item: Item, cause: str = "", wake_at: datetime | None = None) -> None:
        """A key failed: look again after a delay that grows with every failure in a row.

        Keys that wait for the same `cause` are brought back together by `hasten`. One that is due
        at a moment is looked at then, however long the delay.
        """
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        self._wait_for(item, cause)
        if wake_at is not None and wake_at > self._clock.now():
            self._moments.put(item, wake_at)
            self._arm_moments()
        if self._leave_work(item):
            return
        delay = delay_after(failures, self._luck)
        if cause and self._probes.setdefault(cause, item) == item:
            delay = min(delay, PROBE_S)
        self._retries.put(item, self._clock.monotonic() + delay)
        self._arm_retries()

    def retry_now(self, item: Item) -> None:
        """A key failed, and there is reason to believe that it would not do so again."""
        self._failures[item] = self._failures.get(item, 0) + 1
        del self._in_work[item]
        self._urgent.discard(item)
        self.wake(item)

    def hasten(self, cause: str) -> None:
        """What keys waited for is back: look at all of them, and forget their failures."""
        self._probes.pop(cause, None)
        waiting = [item for item, why in self._causes.items() if why == cause]
        for item in waiting:
            del self._causes[item]
            self._failures.pop(item, None)
            if item in self._retries:
                self.wake(item)

    def close(self) -> None:
        """Drop everything that is not in work, for good: nobody is to look any more."""
        self._stop_listening()
        self._ready.clear()
        self._due.clear()
        self._is_ready.clear()
        self._retries.take_all()
        self._moments.take_all()
        self._failures.clear()
        self._causes.clear()
        self._probes.clear()
        for item in self._in_work:
            self._in_work[item] = False
        for timer in (self._retry_timer, self._moment_timer):
            if timer is not None:
                timer[1].cancel()
        self._retry_timer = self._moment_timer = None

    def _wait_for(self, item: Item, cause: str) -> None:
        before = self._causes.pop(item, "")
        if before and before != cause and self._probes.get(before) == item:
            del self._probes[before]
        if cause:
            self._causes[item] = cause

    def _leave_work(self, item: Item) -> bool:
        """Take a key out of work; returns whether it was woken meanwhile and is ready again."""
        woken = self._in_work.pop(item)
        self._urgent.discard(item)
        if woken:
            self.wake(item)
        return woken

    def _wake_waiting(self) -> None:
        for item in self._moments.take_all():
            self.wake(item)

    def _arm_moments(self) -> None:
        """Have one timer ring no later than the earliest moment; a ring too early is harmless."""
        earliest = self._moments.earliest()
        if earliest is None:
            return
        if self._moment_timer is not None:
            if self._moment_timer[0] <= earliest:
                return
            self._moment_timer[1].cancel()
        self._moment_timer = (earliest, self._clock.call_at(earliest, self._ring_moments))

    def _ring_moments(self) -> None:
        self._moment_timer = None
        for item in self._moments.take_due(self._clock.now()):
            self._put_first(item)
        self._arm_moments()

    def _put_first(self, item: Item) -> None:
        """Have a key looked at before those that were woken by a change."""
        if item in self._in_work:
            self._in_work[item] = True
            return
        self._retries.cancel(item)
        self._is_ready.add(item)
        self._due.append(item)
        self.on_ready()

    def _arm_retries(self) -> None:
        earliest = self._retries.earliest()
        if earliest is None:
            return
        if self._retry_timer is not None:
            if self._retry_timer[0] <= earliest:
                return
            self._retry_timer[1].cancel()
        delay = max(earliest - self._clock.monotonic(), 0.0)
        self._retry_timer = (earliest, self._clock.call_later(delay, self._ring_retries))

    def _ring_retries(self) -> None:
        self._retry_timer = None
        for item in self._retries.take_due(self._clock.monotonic()):
            self.wake(item)
        self._arm_retries()
