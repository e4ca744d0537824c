"""Processes through the keeper beside a bare `posix_spawn` loop, in the same run.

A task through the keeper is launched durably, started, reaped, its end made durable and reported.
The rounds alternate, so that both sides see the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from interlock.resources.tasks import ReportState, TaskId, TaskOrder, TaskReport
from interlock.resources.work import ProcessWork
from interlock.runtimes.processes import ProcessRuntime
from interlock.testing.keepers import end_everything

_PROGRAM = "/bin/true"


def bare(count: int, alive: int) -> float:
    """Processes per second of a loop that starts and reaps, so many alive at a time."""
    began = time.perf_counter()
    running = 0
    for _ in range(count):
        os.posix_spawn(_PROGRAM, [_PROGRAM], {}, setsid=True)
        running += 1
        if running >= alive:
            os.waitpid(-1, 0)
            running -= 1
    while running:
        os.waitpid(-1, 0)
        running -= 1
    return count / (time.perf_counter() - began)


class Load:
    """Keeps so many tasks in flight until all have ended."""

    def __init__(self, runtime: ProcessRuntime, job: str, count: int, alive: int) -> None:
        self._runtime = runtime
        self._job = job
        self._count = count
        self._room = alive
        self._next = 0
        self._ended: set[TaskId] = set()
        self._news = asyncio.Event()
        self._unsubscribe = runtime.subscribe(self._hear)

    async def run(self) -> float:
        """Tasks per second from launch to reported end."""
        began = time.perf_counter()
        launches: list[asyncio.Future[None]] = []
        while len(self._ended) < self._count:
            self._news.clear()
            room = self._room - (self._next - len(self._ended))
            orders = [self._order() for _ in range(min(room, self._count - self._next))]
            if orders:
                launches.append(asyncio.ensure_future(self._runtime.launch(orders)))
            await self._news.wait()
        took = time.perf_counter() - began
        await asyncio.gather(*launches)
        self._unsubscribe()
        await self._runtime.forget(list(self._ended))
        return self._count / took

    def _order(self) -> TaskOrder:
        index = self._next
        self._next += 1
        return TaskOrder(
            job_uid=self._job,
            index=index,
            attempt=1,
            name=f"bench-{index}-1",
            namespace="default",
            job="bench",
            work=ProcessWork(command=(_PROGRAM,)),
        )

    def _hear(self, reports: Sequence[TaskReport]) -> None:
        self._ended.update(
            report.id
            for report in reports
            if report.state is ReportState.ENDED and report.job_uid == self._job
        )
        self._news.set()


async def compare(data_dir: Path, count: int, alive: int, rounds: int) -> None:
    """Print one line of the table."""
    runtime = await ProcessRuntime.connect(data_dir, term=1)
    loops, kept = [], []
    for number in range(rounds):
        loops.append(bare(count, alive))
        kept.append(await Load(runtime, f"bench-{alive}-{number}", count, alive).run())
    await runtime.close()
    ratio = statistics.median(k / b for k, b in zip(kept, loops, strict=True))
    print(
        f"{alive:>6} alive   bare {statistics.median(loops):>7.0f}/s   "
        f"keeper {statistics.median(kept):>7.0f}/s   {ratio:>5.0%}"
    )


def main(argv: Sequence[str]) -> None:
    """Compare both at twice the number of cores and at 64 alive."""
    parser = argparse.ArgumentParser(prog="bench processes", description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(argv)
    for alive in (2 * (os.cpu_count() or 1), 64):
        with tempfile.TemporaryDirectory() as place:
            try:
                asyncio.run(compare(Path(place), given.count, alive, given.rounds))
            finally:
                end_everything(Path(place))
