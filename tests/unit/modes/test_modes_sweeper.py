"""The sweeper at work: who may sweep, and what a failure does to the next sweep."""

from __future__ import annotations

import asyncio
import logging
from random import Random

import pytest

from interlock.control.cache import Cache
from interlock.control.loop import Loop
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.modes.settings import Sweeping
from interlock.modes.sweeper import Sweeper
from interlock.reporting.job_index import JobIndex
from interlock.resources.job import Job
from interlock.testing.asking import Asker, a_store, asking
from interlock.testing.builders import T0
from support.reports import Reports


def test_who_does_not_lead_does_not_know_what_is_under_way() -> None:
    store = a_store()
    ask = asking(Asker(store=store, routes=Reports(store).routes()))
    refused = ask("POST", "/operations/sweep")
    assert (refused.status, refused.header("retry-after")) == (503, "1")
    assert "another control plane leads" in refused.json["message"]


@pytest.mark.parametrize(("every_s", "looks"), [(600, 6), (0, 0)])
def test_a_sweep_that_fails_does_not_stop_those_after_it(
    every_s: float, looks: int, caplog: pytest.LogCaptureFixture
) -> None:
    events = SimLoop(Random(1))
    clock = SimClock(events, events.world, T0)
    asked: list[float] = []

    def leading() -> Loop | None:
        asked.append(clock.monotonic())
        if len(asked) % 2:
            raise RuntimeError("the caches are upside down")
        return None

    jobs: Cache[Job] = Cache("Job")
    sweeping = Sweeping(every_s=every_s)
    sweeper = Sweeper(leading, jobs, JobIndex(), clock, sweeping)

    async def an_hour() -> None:
        going_on = asyncio.ensure_future(sweeper.run())
        await asyncio.sleep(3601)
        assert not going_on.done()
        going_on.cancel()

    with caplog.at_level(logging.ERROR, logger="interlock.sweeper"):
        try:
            events.run(an_hour(), within=7200.0)
        finally:
            events.close()
    assert len(asked) == looks
    assert len(caplog.records) == looks // 2
