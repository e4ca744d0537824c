"""How fast the command line starts, beside an interpreter that does nothing.

The commands take turns, so that whatever else the machine does falls on all of them alike; the
medians are compared. The time that a command takes of a processor says more on a busy machine than
the time until it has ended. Run with `python -m bench cli [ROUNDS]`.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from bench.table import show
from interlock.testing.serving import Server

ROUNDS = 40
#: What the project promises.
AIMS = {"interlock --help": 3.0, "interlock get jobs": 6.0}


class Taken(NamedTuple):
    """Milliseconds that a command took."""

    whole: float
    #: Of a processor, by the command and what it started.
    processor: float


def main(argv: Sequence[str]) -> None:
    """Measure, and print a line for each command."""
    rounds = int(argv[0]) if argv else ROUNDS
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder) / "data") as server:
        times = measure(server.url, rounds)
    base = _medians(times["python -c pass"])
    rows = []
    for name, taken in times.items():
        found = _medians(taken)
        ratios = [f"{one / other:.2f}x" for one, other in zip(found, base, strict=True)]
        aim = f"{AIMS[name]:.0f}x" if name in AIMS else ""
        rows.append((name, found.whole, ratios[0], aim, found.processor, ratios[1]))
    show(
        f"The command line, the median of {rounds} rounds",
        ("command", "ms", "ratio", "aim", "processor ms", "ratio of it"),
        rows,
    )


def _medians(taken: Sequence[Taken]) -> Taken:
    return Taken(*map(median, zip(*taken, strict=True)))


def measure(url: str, rounds: int) -> dict[str, list[Taken]]:
    """What each command took from start to end, in each round."""
    program = str(Path(sys.executable).with_name("interlock"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "interlock --help": [program, "--help"],
        "interlock get jobs": [program, "get", "jobs"],
        "interlock why x": [program, "why", "x"],
        "interlock stop x": [program, "stop", "x"],
    }
    env = os.environ | {"INTERLOCK_SERVER": url}
    times: dict[str, list[Taken]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            begun, before = perf_counter(), _processor_s()
            subprocess.run(command, env=env, capture_output=True, check=False)
            taken = Taken((perf_counter() - begun) * 1e3, (_processor_s() - before) * 1e3)
            times[name].append(taken)
    return times


def _processor_s() -> float:
    """What the commands that are over have taken of a processor so far."""
    taken = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken.ru_utime + taken.ru_stime
