"""Graceful shutdown: look at nothing more, finish what is under way, let the next one lead."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable

from interlock.control.clock import Clock
from interlock.control.lease import Election
from interlock.control.loop import Loop

logger = logging.getLogger("interlock.stopping")

#: Decisions that are not carried out by then are left to the next start.
PATIENCE_S = 20.0


async def stop_in_order(
    loop: Loop,
    election: Election,
    activities: Iterable[asyncio.Task[None]],
    clock: Clock,
    *,
    patience_s: float = PATIENCE_S,
) -> None:
    """Stop a control plane.

    `activities` are the tasks that run the informers, the reports and the election, in the
    order to end them. The lease is released last and only then: nobody else should begin
    while decisions of this control plane are still being carried out.
    """
    loop.stop_looking()
    drained = await _within(clock, patience_s, asyncio.ensure_future(loop.drained()))
    if not drained:
        logger.warning("decisions are still being carried out after %g s", patience_s)
    for activity in activities:
        await end_task(activity)
    if drained:
        await election.release()
    else:
        election.resign("stopped before everything was carried out")


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait until it is over."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _within(clock: Clock, seconds: float, work: asyncio.Future[None]) -> bool:
    """Wait for work, but not longer; returns whether it was done."""

    def give_up() -> None:
        work.cancel()

    timer = clock.call_later(seconds, give_up)
    try:
        await work
    except asyncio.CancelledError:
        return False
    finally:
        timer.cancel()
    return True
