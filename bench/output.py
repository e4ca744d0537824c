"""What tasks print: how much of the disk it takes at most, how fast it goes, and what it costs.

A task that prints as fast as it can is run through the keeper, and its log is looked at all the
time; beside it `head | cat > file`, in turns. Then a task prints a thousand lines a second, each by
itself, and the time on the processor of keeper and logger is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from interlock.resources.tasks import ReportState, TaskId, TaskOrder
from interlock.resources.work import ProcessWork
from interlock.runtimes.keeper.log_cut import KEPT_BYTES, SLACK_BYTES
from interlock.runtimes.keeper.output import log_of
from interlock.runtimes.processes import ProcessRuntime
from interlock.testing.keepers import end_everything, keeper_pid, logger_pid

_MIB = 1 << 20
_LINES = (
    "import os, sys, time\n"
    "due = time.monotonic()\n"
    "for number in range(int(sys.argv[1])):\n"
    "    due += 0.001\n"
    "    time.sleep(max(0, due - time.monotonic()))\n"
    "    os.write(1, b'a line of about forty bytes, as many are\\n')\n"
)


class Runs:
    """Runs one task after another through a keeper."""

    def __init__(self, data_dir: Path, runtime: ProcessRuntime) -> None:
        self._data_dir = data_dir
        self._runtime = runtime
        self._next = 0
        #: The most that a log took of the disk.
        self.peak = 0

    async def run(self, *command: str) -> float:
        """Seconds from the launch of a task to its reported end."""
        self._next += 1
        task = TaskId("bench", self._next, 1)
        order = TaskOrder(
            job_uid=task.job_uid,
            index=task.task,
            attempt=task.attempt,
            name=f"bench-{self._next}-1",
            namespace="default",
            job="bench",
            work=ProcessWork(command=command),
        )
        over = asyncio.Event()
        unsubscribe = self._runtime.subscribe(
            lambda reports: (
                over.set()
                if any(each.id == task and each.state is ReportState.ENDED for each in reports)
                else None
            )
        )
        began = time.perf_counter()
        await self._runtime.launch([order])
        log = log_of(self._data_dir, task)
        while not over.is_set():
            self._look(log)
            await asyncio.sleep(0.001)
        took = time.perf_counter() - began
        self._look(log)
        unsubscribe()
        log.unlink(missing_ok=True)
        return took

    def _look(self, log: Path) -> None:
        if log.exists():
            self.peak = max(self.peak, log.stat().st_blocks * 512)


def bare(place: Path, size: int) -> float:
    """Seconds of a shell that does nothing else."""
    file = place / "bare"
    began = time.perf_counter()
    subprocess.run(["sh", "-c", f'head -c {size} /dev/zero | cat > "$0"', str(file)], check=True)
    took = time.perf_counter() - began
    file.unlink()
    return took


def processor_s(pid: int | None) -> float:
    """The time that a process has spent on a processor."""
    words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def measure(place: Path, size: int, rounds: int, lines: int) -> None:
    """Print a line for each measurement."""
    data_dir = place / "data"
    data_dir.mkdir()
    runtime = await ProcessRuntime.connect(data_dir, term=1)
    runs = Runs(data_dir, runtime)
    kept, alone = [], []
    for _ in range(rounds):
        alone.append(size / bare(place, size) / 1e6)
        kept.append(size / await runs.run("head", "-c", str(size), "/dev/zero") / 1e6)
    bound = KEPT_BYTES + SLACK_BYTES
    print(f"{size} bytes: at most {runs.peak / _MIB:.1f} MiB on the disk, bound {bound / _MIB:.0f}")
    ratio = statistics.median(k / a for k, a in zip(kept, alone, strict=True))
    print(
        f"bare {statistics.median(alone):.0f} MB/s   "
        f"through the keeper {statistics.median(kept):.0f} MB/s   {ratio:.0%}"
    )
    pids = {"keeper": keeper_pid(data_dir), "logger": logger_pid(data_dir)}
    before = {name: processor_s(pid) for name, pid in pids.items()}
    took = await runs.run(sys.executable, "-c", _LINES, str(lines))
    spent = {name: processor_s(pid) - before[name] for name, pid in pids.items()}
    told = ", ".join(f"{name} {seconds / took:.1%}" for name, seconds in spent.items())
    print(f"{lines / took:.0f} lines/s: {told} of one processor")
    await runtime.close()


def main(argv: Sequence[str]) -> None:
    """Measure what one fast and one steady task cost."""
    parser = argparse.ArgumentParser(prog="bench output", description=__doc__)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", type=int, default=10_000)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        try:
            asyncio.run(measure(Path(place), given.bytes, given.rounds, given.lines))
        finally:
            end_everything(Path(place) / "data")
