"""The work queue's promises, whatever happens in whatever order."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.control.backoff import LONGEST_S
from interlock.control.queue import Item, WorkQueue
from interlock.control.timer_heap import TimerHeap
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.resources.metadata import Key
from interlock.testing.builders import T0

ITEMS = [Item(room, Key("Job", "default", name)) for room in ("r", "s") for name in ("a", "b")]
ANY_ITEM = st.sampled_from(ITEMS)
CAUSES = st.sampled_from(["", "store", "runtime"])
STEPS = st.one_of(
    st.tuples(st.just("wake"), ANY_ITEM),
    st.tuples(st.just("take")),
    st.tuples(st.just("done"), st.integers(0, 3), st.sampled_from([None, 0, 5, 50])),
    st.tuples(st.just("retry"), st.integers(0, 3), CAUSES),
    st.tuples(st.just("retry_now"), st.integers(0, 3)),
    st.tuples(st.just("hasten"), CAUSES),
    st.tuples(st.just("pass"), st.sampled_from([0.01, 1.0, 40.0])),
    st.tuples(st.just("jump"), st.sampled_from([-3600, 3600])),
)


class Model:
    """What is owed to each key: a look, now or by some moment."""

    def __init__(self) -> None:
        self.events = SimLoop(Random(0))
        self.clock = SimClock(self.events, self.events.world, T0)
        self.queue = WorkQueue(self.clock, Random(1))
        self.in_work: list[Item] = []
        #: Keys that were woken, failed, or asked to be looked at, since they were last taken.
        self.owed: dict[Item, None] = {}

    def step(self, name: str, *more: Any) -> None:
        getattr(self, f"_{name}")(*more)

    def _wake(self, item: Item) -> None:
        self.queue.wake(item)
        self.owed[item] = None

    def _take(self) -> None:
        item = self.queue.take()
        if item is not None:
            assert item not in self.in_work, "a key was handed out twice"
            self.in_work.append(item)
            self.owed.pop(item, None)

    def _done(self, number: int, seconds: float | None) -> None:
        if self.in_work:
            item = self.in_work.pop(number % len(self.in_work))
            moment = None if seconds is None else self.clock.now() + timedelta(seconds=seconds)
            self.queue.done(item, moment)
            if moment is not None:
                self.owed[item] = None

    def _retry(self, number: int, cause: str) -> None:
        if self.in_work:
            item = self.in_work.pop(number % len(self.in_work))
            self.queue.retry(item, cause)
            self.owed[item] = None

    def _retry_now(self, number: int) -> None:
        if self.in_work:
            item = self.in_work.pop(number % len(self.in_work))
            self.queue.retry_now(item)
            self.owed[item] = None

    def _hasten(self, cause: str) -> None:
        self.queue.hasten(cause)

    def _pass(self, seconds: float) -> None:
        self.events.run_until(self.events.time() + seconds)

    def _jump(self, seconds: int) -> None:
        self.clock.jump(timedelta(seconds=seconds))
        self._pass(0.0)

    def settle(self) -> None:
        """Let everything that is owed come, and be done with it."""
        for _ in range(3):
            while self.in_work:
                self.queue.done(self.in_work.pop())
            self._pass(LONGEST_S + 60)
            while self.queue.depth:
                self._take()


@settings(max_examples=300, deadline=None)
@given(steps=st.lists(STEPS, max_size=60))
def test_a_key_is_in_work_once_and_no_wake_is_lost(steps: list[tuple[Any, ...]]) -> None:
    """Every wake is followed by a take of that key that began after it."""
    model = Model()
    try:
        for step in steps:
            # A decision made while a moment is pending replaces it: then nothing is owed for it.
            model.step(*step)
        replaced = dict.fromkeys(model.in_work)
        model.settle()
        assert not [item for item in model.owed if item not in replaced]
        assert model.queue.depth == 0
        assert model.queue.in_work == len(model.in_work)
    finally:
        model.events.close()


@settings(deadline=None)
@given(
    entries=st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 9)))),
    now=st.integers(0, 9),
)
def test_a_timetable_gives_what_a_dictionary_would(
    entries: list[tuple[int, int | None]], now: int
) -> None:
    table: TimerHeap[int, int] = TimerHeap()
    model: dict[int, int] = {}
    for thing, when in entries:
        if when is None:
            table.cancel(thing)
            model.pop(thing, None)
        else:
            table.put(thing, when)
            model[thing] = when

    assert table.earliest() == min(model.values(), default=None)
    due = table.take_due(now)
    assert sorted(due) == sorted(thing for thing, when in model.items() if when <= now)
    assert [model[thing] for thing in due] == sorted(model[thing] for thing in due)
    assert len(table) == len(model) - len(due)
