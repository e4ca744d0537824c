"""The machine's clock: alarms ring when the wall clock says so, also when it is set."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import uvloop

from interlock.control.clock import SystemClock, pause
from interlock.control.wall_timer import WallTimer

LONG = 120.0


@contextmanager
def a_clock() -> Iterator[SystemClock]:
    clock = SystemClock()
    try:
        yield clock
    finally:
        clock.close()


@pytest.fixture(params=["kernel timer", "comparing"])
def timers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel's timer, and as if there were none."""
    if request.param == "comparing":
        monkeypatch.setattr(WallTimer, "open", lambda *_: None)


@pytest.mark.usefixtures("timers")
def test_alarms_ring_in_the_order_of_their_moments_and_never_early() -> None:
    async def check() -> None:
        with a_clock() as clock:
            rung: list[str] = []
            over = asyncio.Event()
            base = clock.now()
            moments = {
                name: base + timedelta(milliseconds=ms) for name, ms in (("b", 20), ("a", 5))
            }

            def ring(name: str) -> Callable[[], None]:
                def rings() -> None:
                    assert clock.now() >= moments[name]
                    rung.append(name)
                    if len(rung) == 2:
                        over.set()

                return rings

            for name, moment in moments.items():
                clock.call_at(moment, ring(name))
            await asyncio.wait_for(over.wait(), LONG)
            assert rung == ["a", "b"]

    asyncio.run(check())


@pytest.mark.usefixtures("timers")
def test_a_moment_that_has_passed_rings_at_once_and_a_cancelled_one_never() -> None:
    async def check() -> None:
        with a_clock() as clock:
            over = asyncio.Event()
            rung: list[str] = []
            long_ago = datetime(2001, 1, 1, tzinfo=UTC)
            clock.call_at(long_ago - timedelta(1), lambda: rung.append("cancelled")).cancel()
            clock.call_at(datetime(9999, 1, 1, tzinfo=UTC), lambda: rung.append("far"))
            clock.call_at(long_ago, over.set)
            await asyncio.wait_for(over.wait(), LONG)
            assert rung == []

    asyncio.run(check())


def test_alarms_ring_on_the_loop_that_the_server_runs_on() -> None:
    async def check() -> None:
        with a_clock() as clock:
            over = asyncio.Event()
            clock.call_at(clock.now() + timedelta(milliseconds=5), over.set)
            await asyncio.wait_for(over.wait(), LONG)

    uvloop.run(check())


def test_pausing_takes_the_time_it_says() -> None:
    async def check() -> None:
        with a_clock() as clock:
            began = clock.monotonic()
            await pause(clock, 0.01)
            assert clock.monotonic() - began >= 0.009

    asyncio.run(check())


class _Kernel:
    """Says that the clock was set since the last call, as the kernel does."""

    def timerfd_settime(self, *_: Any) -> int:
        ctypes.set_errno(errno.ECANCELED)
        return -1


def test_arming_after_the_clock_was_set_tells_so() -> None:
    async def check() -> None:
        was_set = asyncio.Event()
        reader, writer = os.pipe()
        kernel: Any = _Kernel()
        timer = WallTimer(reader, kernel, lambda: None, was_set.set)
        try:
            timer.arm(None)
            await asyncio.wait_for(was_set.wait(), LONG)
        finally:
            timer.close()
            os.close(writer)

    asyncio.run(check())


def test_a_timer_that_the_kernel_cancelled_tells_that_the_clock_was_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cancelled(*_: Any) -> bytes:
        raise OSError(errno.ECANCELED, "cancelled")

    async def check() -> None:
        told: list[str] = []
        timer = WallTimer.open(lambda: told.append("rung"), lambda: told.append("set"))
        if timer is None:
            pytest.skip("no timers on the wall clock here")
        with monkeypatch.context() as patched:
            patched.setattr(os, "read", cancelled)
            timer._readable()
        timer.close()
        assert told == ["set"]

    asyncio.run(check())


@pytest.mark.usefixtures("timers")
def test_a_jump_rings_what_became_due_and_tells_those_who_asked() -> None:
    async def check() -> None:
        with a_clock() as clock:
            told: list[str] = []
            clock.on_jump(lambda: told.append("jump"))
            clock.call_at(clock.now() - timedelta(seconds=1), lambda: told.append("due"))
            clock._was_set()
            assert told == ["jump", "due"]

    asyncio.run(check())


@pytest.mark.usefixtures("timers")
def test_whoever_does_not_want_to_know_of_jumps_any_more_is_let_go() -> None:
    async def check() -> None:
        with a_clock() as clock:
            told: list[str] = []
            clock.on_jump(lambda: told.append("stays"))
            leaves = clock.on_jump(lambda: told.append("leaves"))
            leaves()
            leaves()
            clock._was_set()
            assert told == ["stays"]

    asyncio.run(check())
