"""The ground the simulation stands on: time, order, death and standing still."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import pytest

from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop, current_process, run_now
from interlock.testing.builders import T0


@pytest.fixture
def loop() -> SimLoop:
    return SimLoop(Random(7))


async def _tick(told: list[str], name: str, every: float) -> None:
    try:
        while True:
            await asyncio.sleep(every)
            told.append(f"{name} {asyncio.get_running_loop().time():g}")
    finally:
        told.append(f"{name} is unwound")


def test_time_moves_only_to_what_is_due(loop: SimLoop) -> None:
    told: list[str] = []
    loop.spawn(loop.start_process("a"), _tick(told, "a", 40.0))
    loop.run_until(100.0)

    assert told == ["a 40", "a 80"]
    assert loop.time() == 100.0
    loop.close()


def test_a_killed_process_runs_nothing_any_more(loop: SimLoop) -> None:
    told: list[str] = []
    process = loop.start_process("a")
    loop.spawn(process, _tick(told, "a", 1.0))
    loop.run_until(2.5)
    loop.kill(process)
    loop.run_until(10.0)

    assert told == ["a 1", "a 2"]
    loop.close()


def test_a_paused_process_goes_on_where_it_stood(loop: SimLoop) -> None:
    told: list[str] = []
    process = loop.start_process("a")
    loop.spawn(process, _tick(told, "a", 1.0))
    loop.run_until(1.5)
    process.paused = True
    loop.run_until(10.0)
    assert told == ["a 1"]

    process.paused = False
    loop.run_until(11.5)
    assert told == ["a 1", "a 10", "a 11"]
    loop.close()


def test_work_belongs_to_the_process_that_made_it(loop: SimLoop) -> None:
    names: list[str] = []

    async def child() -> None:
        await asyncio.sleep(1)
        names.append(current_process().name)

    async def parent() -> None:
        await asyncio.create_task(child())

    loop.spawn(loop.start_process("a"), parent())
    loop.run_until(2.0)

    assert names == ["a"]
    loop.close()


def test_callbacks_of_one_process_keep_their_order(loop: SimLoop) -> None:
    told: list[int] = []
    process = loop.start_process("a")
    for number in range(50):
        loop.call_soon(told.append, number, context=process.context.copy())
    loop.run_until(0.0)

    assert told == list(range(50))
    loop.close()


def test_what_waits_for_nothing_runs_now() -> None:
    async def waits_not() -> int:
        return 5

    async def waits() -> None:
        await asyncio.sleep(0)

    assert run_now(waits_not()) == 5
    with pytest.raises(AssertionError, match="waits"):
        run_now(waits())


@pytest.mark.parametrize(
    ("jump_s", "rings_at"),
    [
        pytest.param(0, 60.0, id="undisturbed"),
        pytest.param(3600, 10.0, id="set forwards rings at once"),
        pytest.param(-30, 90.0, id="set backwards rings later"),
    ],
)
def test_an_alarm_follows_the_wall_clock(loop: SimLoop, jump_s: float, rings_at: float) -> None:
    clock = SimClock(loop, loop.start_process("a"), T0)
    rang: list[float] = []
    jumped: list[float] = []
    clock.on_jump(lambda: jumped.append(loop.time()))
    clock.call_at(T0 + timedelta(seconds=60), lambda: rang.append(loop.time()))
    cancelled = clock.call_at(T0 + timedelta(seconds=60), lambda: rang.append(-1.0))
    cancelled.cancel()
    loop.run_until(10.0)
    clock.jump(timedelta(seconds=jump_s))
    loop.run_until(200.0)

    assert rang == [rings_at]
    assert jumped == [10.0]
    assert clock.now() == T0 + timedelta(seconds=200 + jump_s)
    loop.close()
