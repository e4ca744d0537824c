"""JobConfigs in great number: held while nothing is due, and due all at once.

A control plane with its durable store runs in a process of its own, so that its memory and its
processor time are nobody else's. The Jobs run no process: what is measured is that they exist.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
import uvloop

from bench.table import show
from interlock.control.clock import SystemClock
from interlock.control.lease import Election
from interlock.control.reconciler import Change
from interlock.control.runtime import Listener, Runtime, TaskStop
from interlock.control.write_fence import WriteFence
from interlock.plane import ControlPlane
from interlock.resources.job import Job, JobSpec, WhenTaken
from interlock.resources.job_config import Concurrency, JobConfig, JobConfigSpec
from interlock.resources.metadata import Metadata
from interlock.resources.process import NoopSpec
from interlock.resources.schedule import JobTemplate, ScheduleSpec
from interlock.resources.tasks import TaskId, TaskOrder, TaskReport
from interlock.resources.values.cron_lines import CronLines
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite.store import SqliteStore

#: Configs are created in groups of this size.
GROUP = 5_000
IDLE_S = 10.0
#: How many Jobs within how many seconds. A burst waits for the wall clock: a whole minute is much.
_QUICK_BURSTS = ((500, 1), (500, 10), (3_000, 1))


class NoRuntime:
    """Runs nothing, because nothing asks for it."""

    groups_orders = True

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Refuse."""
        raise NotImplementedError

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Refuse."""
        raise NotImplementedError

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Forget what was never known."""

    async def reports(self) -> Sequence[TaskReport]:
        """Know nothing."""
        return ()

    def subscribe(self, listener: Listener) -> Callable[[], None]:  # noqa: ARG002
        """Never tell."""
        return lambda: None


class Figures(msgspec.Struct):
    """What one child process measured."""

    configs: int
    filled_s: float = 0.0
    taken_in_s: float = 0.0
    #: Processor time, all threads together.
    filled_processor_s: float = 0.0
    taken_in_processor_s: float = 0.0
    burst_processor_s: float = 0.0
    memory_mib: float = 0.0
    idle_share: float = 0.0
    tick_ms: float = 0.0
    made: int = 0
    #: Seconds from the due time until the Job was durable, and until it was in the books.
    late_s: list[float] = []


class Seen:
    """When each Job was durable."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self._clock = SystemClock()

    def observe(self, change: Change) -> None:
        """Note a Job that is new."""
        if change.before is None and isinstance(change.after, Job):
            self.at.setdefault(change.after.metadata.name, time.time())


def _config(name: str, line: str, zone: str = "UTC") -> JobConfig:
    spec = JobConfigSpec(
        template=JobTemplate(spec=JobSpec(noop=NoopSpec())),
        schedules=(ScheduleSpec(cron=CronLines(line), timezone=zone),),
        concurrency=Concurrency(policy=WhenTaken.FORBID),
    )
    return JobConfig(metadata=Metadata(name=name, namespace="default"), spec=spec)


def _now() -> datetime:
    return datetime.now(UTC)


def _line_at(moment: datetime, second: str | None = None) -> str:
    """A line that is due once: at a moment, or at `second` of its minute."""
    chosen = second if second is not None else str(moment.second)
    return f"{chosen} {moment.minute} {moment.hour} {moment.day} {moment.month} * {moment.year}"


class Assembly(NamedTuple):
    """A control plane on a store."""

    store: SqliteStore
    plane: ControlPlane
    seen: Seen


async def _assemble(place: Path) -> Assembly:
    clock = SystemClock()
    store = await SqliteStore.open(place / "store.db", clock.now, RandomIdentities())
    seen = Seen()

    async def connect(_: int) -> Runtime:
        return NoRuntime()

    election = Election(store, clock, Random(), WriteFence(clock), "bench", sole=True)
    plane = ControlPlane(
        store=store,
        journal=store.journal,
        clock=clock,
        luck=Random(),
        connect=connect,
        election=election,
        observers=(seen.observe,),
    )
    return Assembly(store, plane, seen)


async def _fill(store: SqliteStore, configs: Iterable[JobConfig]) -> None:
    group: list[JobConfig] = []
    for config in configs:
        group.append(config)
        if len(group) == GROUP:
            await asyncio.gather(*map(store.create, group))
            group.clear()
    await asyncio.gather(*map(store.create, group))


async def _idle(plane: ControlPlane) -> None:
    """Wait until there has been nothing to do for a while."""
    await plane.at_work.wait()
    quiet = 0
    while quiet < 10:
        await asyncio.sleep(0.1)
        assert plane.loop is not None
        quiet = quiet + 1 if plane.loop.is_idle else 0


def _memory_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def fill(place: Path, count: int) -> Figures:
    """Create so many configs that are due at night, and have them looked at for the first time."""
    figures = Figures(configs=count)
    made = await _assemble(place)
    before, began = time.process_time(), time.perf_counter()
    # Due once a year, so that none is due while it is measured.
    await _fill(made.store, (_config(f"c-{n:07}", "H H 1 1 *") for n in range(count)))
    figures.filled_s = time.perf_counter() - began
    figures.filled_processor_s = time.process_time() - before
    before, began = time.process_time(), time.perf_counter()
    made.plane.start()
    await _idle(made.plane)
    figures.taken_in_s = time.perf_counter() - began
    figures.taken_in_processor_s = time.process_time() - before
    await made.plane.stop()
    await made.store.close()
    return figures


async def hold(place: Path, count: int) -> Figures:
    """Hold what is stored; then have ten more that are due at the same moment."""
    figures = Figures(configs=count)
    made = await _assemble(place)
    before, began = time.process_time(), time.perf_counter()
    made.plane.start()
    await _idle(made.plane)
    figures.taken_in_s = time.perf_counter() - began
    figures.taken_in_processor_s = time.process_time() - before
    gc.collect()
    figures.memory_mib = _memory_mib()
    before = time.process_time()
    await asyncio.sleep(IDLE_S)
    idle = (time.process_time() - before) / IDLE_S
    figures.idle_share = idle
    due = _now().replace(microsecond=0) + timedelta(seconds=6)
    await _fill(made.store, (_config(f"due-{n}", _line_at(due)) for n in range(10)))
    await asyncio.sleep((due - _now()).total_seconds() - 0.5)
    before, began = time.process_time(), time.perf_counter()
    while len(made.seen.at) < 10:
        await asyncio.sleep(0.01)
    await asyncio.sleep(1.0)
    spent = time.process_time() - before - idle * (time.perf_counter() - began)
    figures.tick_ms = spent * 1e3
    figures.late_s = sorted(at - due.timestamp() for at in made.seen.at.values())
    await made.plane.stop()
    await made.store.close()
    return figures


async def burst(place: Path, count: int, spread_s: int) -> Figures:
    """Have many configs due in one second, or spread by `H` over more of them."""
    figures = Figures(configs=count)
    made = await _assemble(place)
    made.plane.start()
    await made.plane.at_work.wait()
    # Far enough for all of them to be created and looked at before, and no further: a plane that
    # waits takes processor time too.
    ahead_s = min(20, 8 + count // 500) + count // 1000
    due = _now().replace(microsecond=0) + timedelta(seconds=ahead_s)
    if due.second + spread_s > 60:
        due = due.replace(second=0) + timedelta(minutes=1)
    hashed = f"H({due.second}-{due.second + spread_s - 1})"
    line = _line_at(due, hashed if spread_s > 1 else None)
    before = time.process_time()
    await _fill(made.store, (_config(f"c-{n:06}", line) for n in range(count)))
    await _idle(made.plane)
    left = (due - _now()).total_seconds()
    assert left > 0, f"the due time passed {-left:.1f} s before all configs were looked at"
    patience = time.monotonic() + left + 600
    while len(made.seen.at) < count and time.monotonic() < patience:
        await asyncio.sleep(0.1)
    # Some of what follows is done before the last Job is durable, more or less of it by luck.
    await _idle(made.plane)
    figures.burst_processor_s = time.process_time() - before
    figures.made = len(made.seen.at)
    # The name ends in the due time.
    figures.late_s = sorted(at - int(name.rpartition("-")[2]) for name, at in made.seen.at.items())
    await made.plane.stop()
    await made.store.close()
    return figures


def _spread(late_s: Sequence[float]) -> tuple[float, float, float]:
    if not late_s:
        return (0.0, 0.0, 0.0)
    at = [late_s[int(len(late_s) * share)] for share in (0.5, 0.99)]
    return at[0], at[1], late_s[-1]


def _in_child(what: str, place: Path, count: int, *more: str) -> Figures:
    command = [sys.executable, "-m", "bench.due", what, str(place), str(count), *more]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(done.stdout, type=Figures)


def _fresh() -> Path:
    # Beside this file and not in a directory that may be in memory: durability costs real disk.
    return Path(tempfile.mkdtemp(prefix=".bench-", dir=Path(__file__).parent))


def show_held(count: int) -> None:
    """Print what a great number of configs costs while nothing is due."""
    place = _fresh()
    try:
        filled = _in_child("fill", place, count)
        held = _in_child("hold", place, count)
    finally:
        shutil.rmtree(place)
    show(
        f"{count:,} JobConfigs, held",
        (
            "created/s",
            "processor us",
            "first look/s",
            "processor us of it",
            "restart s",
            "processor s of it",
            "MiB",
            "idle cpu",
            "tick of 10 ms",
            "last late s",
        ),
        [
            (
                count / filled.filled_s,
                filled.filled_processor_s * 1e6 / count,
                count / filled.taken_in_s,
                filled.taken_in_processor_s * 1e6 / count,
                held.taken_in_s,
                held.taken_in_processor_s,
                held.memory_mib,
                f"{held.idle_share:.2%}",
                held.tick_ms,
                held.late_s[-1],
            )
        ],
    )


def show_bursts(bursts: Iterable[tuple[int, int]]) -> None:
    """Print how late Jobs are durable when many configs are due within so many seconds."""
    rows = []
    for count, spread_s in bursts:
        place = _fresh()
        try:
            figures = _in_child("burst", place, count, str(spread_s))
        finally:
            shutil.rmtree(place)
        name = f"{count:,} {f'over {spread_s} s by H' if spread_s > 1 else 'in one second'}"
        taken_us = figures.burst_processor_s * 1e6 / count
        rows.append((name, count - figures.made, *_spread(figures.late_s), taken_us))
    show(
        "Due at once: seconds from the due time until the Job is durable",
        ("", "dropped", "p50", "p99", "last", "processor us for each"),
        rows,
    )


def main(argv: Sequence[str] = ()) -> None:
    """Print both tables, or one of them."""
    parser = argparse.ArgumentParser(prog="bench due", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    parser.add_argument("--only", choices=("held", "burst"))
    given = parser.parse_args(argv)
    if given.only in (None, "burst"):
        show_bursts(_QUICK_BURSTS if given.quick else product((10_000, 60_000), (1, 60)))
    if given.only in (None, "held"):
        show_held(20_000 if given.quick else 1_000_000)


def _child(argv: Sequence[str]) -> None:
    what, place, count, *more = argv
    ways = {
        "fill": lambda: fill(Path(place), int(count)),
        "hold": lambda: hold(Path(place), int(count)),
        "burst": lambda: burst(Path(place), int(count), *map(int, more)),
    }
    figures = uvloop.run(ways[what]())
    sys.stdout.buffer.write(msgspec.json.encode(figures))


if __name__ == "__main__":
    _child(sys.argv[1:])
