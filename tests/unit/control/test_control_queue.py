"""The work queue: what is ready when."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from control_world import World, item

from interlock.control.backoff import FIRST_S, LONGEST_S, delay_after
from interlock.control.queue import (
    OTHERS,
    PLACES,
    PLACES_OF_ONE,
    PROBE_S,
    TURNS,
    Item,
    WorkQueue,
)
from interlock.testing.builders import T0

A, B = item("a"), item("b")


def taken(queue: WorkQueue) -> list[Item]:
    """Take everything that is ready, and be done with it."""
    items = []
    while (each := queue.take()) is not None:
        items.append(each)
        queue.done(each)
    return items


def test_ready_keys_come_once_in_the_order_they_were_woken() -> None:
    queue = World().queue
    for each in (B, A, B, B, A):
        queue.wake(each)

    assert taken(queue) == [B, A]


def test_the_same_key_in_two_rooms_is_two_items() -> None:
    queue = World().queue
    queue.wake(item("a", "admission"))
    queue.wake(item("a", "execution"))

    assert queue.depth == 2


def test_a_key_woken_while_in_work_comes_again_after_it_and_not_before() -> None:
    queue = World().queue
    queue.wake(A)
    assert queue.take() == A
    queue.wake(A)
    queue.wake(A)
    assert queue.take() is None

    queue.done(A)
    assert queue.take() == A
    queue.done(A)
    assert queue.take() is None


def test_on_ready_is_called_for_each_key_that_becomes_ready() -> None:
    queue = World().queue
    told: list[str] = []
    queue.on_ready = lambda: told.append("ready")
    queue.wake(A)
    queue.wake(A)
    queue.wake(B)

    assert len(told) == 2


def some_due(world: World, *items: Item) -> None:
    for each in items:
        world.queue.wake(each)
        world.queue.take()
        world.queue.done(each, T0 + timedelta(seconds=10))


def test_what_is_due_by_the_clock_goes_before_what_was_woken() -> None:
    world = World()

    async def check() -> None:
        queue = world.queue
        due = [item(f"due-{n}") for n in range(2 * TURNS)]
        woken = [item(f"woken-{n}") for n in range(5)]
        some_due(world, *due)
        for each in (*woken, due[-1]):
            queue.wake(each)
        await world.passes(10)

        found = taken(queue)
        # A turn in some is left to the others, so that nobody waits for ever.
        assert [each for each in found if each in due] == due
        assert [found.index(each) for each in woken[:2]] == [TURNS - 1, 2 * TURNS - 1]
        assert found[-3:] == woken[2:]

    world.run(check())


def test_others_have_few_places_while_much_that_is_due_is_in_work() -> None:
    world = World()

    async def check() -> None:
        queue = world.queue
        due = [item(f"due-{n}") for n in range(40)]
        woken = [item(f"woken-{n}") for n in range(300)]
        some_due(world, *due)
        await world.passes(10)
        in_work = [queue.take() for _ in due]
        for each in woken:
            queue.wake(each)
        others = list(iter(queue.take, None))

        assert in_work == due
        assert others == woken[:OTHERS]
        for each in due[1:]:
            queue.done(each)
        # One that takes long takes little from the others.
        others += list(iter(queue.take, None))
        assert others == woken[: PLACES - PLACES_OF_ONE]
        queue.done(due[0])
        assert queue.take() == woken[len(others)]

    world.run(check())


def test_a_moment_wakes_and_a_later_decision_replaces_it() -> None:
    world = World()

    async def check() -> None:
        queue = world.queue
        for each, seconds in ((A, 10), (B, 20)):
            queue.wake(each)
            queue.take()
            queue.done(each, T0 + timedelta(seconds=seconds))

        # Decided again: A is to be looked at later, not at the earlier moment.
        queue.wake(A)
        queue.take()
        queue.done(A, T0 + timedelta(seconds=30))
        await world.passes(15)
        assert taken(queue) == []
        await world.passes(10)
        assert taken(queue) == [B]
        await world.passes(10)
        assert taken(queue) == [A]

    world.run(check())


def test_whoever_is_not_done_yet_comes_again_after_those_who_wait() -> None:
    """A moment that has come before the decision was made is no reason to go first."""
    world = World()

    async def check() -> None:
        queue = world.queue
        queue.wake(A)
        queue.take()
        queue.wake(B)
        queue.done(A, T0)
        assert taken(queue) == [B, A]
        await world.passes(60)
        assert taken(queue) == []

    world.run(check())


def test_deciding_without_a_moment_cancels_the_earlier_one() -> None:
    world = World()

    async def check() -> None:
        queue = world.queue
        queue.wake(A)
        queue.take()
        queue.done(A, T0 + timedelta(seconds=10))
        queue.wake(A)
        queue.take()
        queue.done(A)
        await world.passes(60)
        assert queue.take() is None

    world.run(check())


def test_setting_the_clock_has_every_waiting_key_looked_at() -> None:
    world = World()

    async def check() -> None:
        world.queue.wake(A)
        world.queue.take()
        world.queue.done(A, T0 + timedelta(days=1))
        world.clock.jump(timedelta(hours=-3))
        await world.passes(1)
        assert taken(world.queue) == [A]

    world.run(check())


def test_failures_come_back_later_and_later() -> None:
    world = World()

    async def check() -> list[float]:
        queue, waits = world.queue, []
        queue.wake(A)
        for _ in range(14):
            assert queue.take() == A
            queue.retry(A)
            began = world.clock.monotonic()
            while not queue.depth:
                await world.passes(0.005)
            waits.append(world.clock.monotonic() - began)
        return waits

    waits = world.run(check())
    assert waits[0] <= FIRST_S + 0.01
    assert all(wait <= LONGEST_S + 0.01 for wait in waits)
    assert waits[-1] >= LONGEST_S / 2


def test_the_delay_doubles_up_to_the_longest_and_is_spread_by_luck() -> None:
    luck = Random(1)
    for failures in range(1, 50):
        full = min(FIRST_S * 2 ** (failures - 1), LONGEST_S)
        delays = [delay_after(failures, luck) for _ in range(20)]
        assert all(full / 2 <= delay <= full for delay in delays)
        assert len(set(delays)) > 1


def test_a_wake_ends_the_wait_after_a_failure() -> None:
    world = World()

    async def check() -> None:
        queue = world.queue
        queue.wake(A)
        queue.take()
        queue.retry(A)
        queue.wake(A)
        assert taken(queue) == [A]
        await world.passes(60)
        assert queue.take() is None
        assert queue.backing_off == 0

    world.run(check())


def test_what_waited_for_the_same_thing_comes_back_together_and_starts_afresh() -> None:
    world = World()

    async def check() -> None:
        queue = world.queue
        for each, cause in ((A, "store"), (B, "runtime")):
            queue.wake(each)
            for _ in range(10):
                queue.take()
                queue.retry(each, cause)
                queue.wake(each)
            queue.take()
            queue.retry(each, cause)
        queue.hasten("store")
        assert queue.failures(A) == 0
        assert queue.failures(B) == 11
        assert taken(queue) == [A]

    world.run(check())


def test_one_key_finds_out_soon_that_what_all_wait_for_is_back() -> None:
    world = World()

    async def check() -> None:
        queue = world.queue
        for each in (A, B):
            queue.wake(each)
            for _ in range(12):
                queue.take()
                queue.retry(each, "store")
                queue.wake(each)
            queue.take()
            queue.retry(each, "store")
        await world.passes(PROBE_S)
        assert queue.take() == A
        assert queue.take() is None

        # The probe has another trouble now: the next one to fail finds out instead.
        queue.retry(A)
        queue.wake(B)
        queue.take()
        queue.retry(B, "store")
        await world.passes(PROBE_S)
        assert queue.take() == B

    world.run(check())


def test_a_key_that_is_to_be_decided_again_at_once_is_ready_and_counts_as_failed() -> None:
    queue = World().queue
    queue.wake(A)
    queue.take()
    queue.retry_now(A)

    assert queue.failures(A) == 1
    assert queue.take() == A
    queue.done(A)
    assert queue.failures(A) == 0


def test_closing_forgets_everything_but_what_is_in_work() -> None:
    world = World()

    async def check() -> None:
        queue = world.queue
        queue.wake(A)
        queue.take()
        queue.wake(A)
        queue.wake(B)
        queue.close()
        queue.done(A)
        await world.passes(60)
        assert queue.take() is None

    world.run(check())


def test_whoever_wakes_a_key_learns_whether_it_is_looked_at_anyhow() -> None:
    queue = World().queue
    assert [queue.wake(A), queue.wake(A)] == [True, False]
    assert queue.take() == A
    assert [queue.wake(A), queue.wake(A)] == [True, False]
    queue.done(A)
    assert not queue.wake(A)
    assert taken(queue) == [A]
    assert queue.wake(A)
