"""How fast the command line starts, beside an interpreter that does nothing.

The commands take turns, so that whatever else the machine does falls on all of them alike; the
medians are compared. Run with `python -m bench cli [ROUNDS]`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from interlock.testing.serving import Server

ROUNDS = 40
#: What the project promises.
AIMS = {"interlock --help": 3.0, "interlock get jobs": 6.0}


def main(argv: Sequence[str]) -> None:
    """Measure, and print a line for each command."""
    rounds = int(argv[0]) if argv else ROUNDS
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder) / "data") as server:
        times = measure(server.url, rounds)
    base = median(times["python -c pass"])
    print(f"{'command':<22} {'median ms':>10} {'ratio':>7} {'aim':>6}   {rounds} rounds")
    for name, taken in times.items():
        aim = f"{AIMS[name]:.0f}x" if name in AIMS else ""
        print(f"{name:<22} {median(taken) * 1000:>10.1f} {median(taken) / base:>6.2f}x {aim:>6}")


def measure(url: str, rounds: int) -> dict[str, list[float]]:
    """Seconds from start to end of each command, in each round."""
    program = str(Path(sys.executable).with_name("interlock"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "interlock --help": [program, "--help"],
        "interlock get jobs": [program, "get", "jobs"],
        "interlock why x": [program, "why", "x"],
    }
    env = os.environ | {"INTERLOCK_SERVER": url}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            begun = perf_counter()
            subprocess.run(command, env=env, capture_output=True, check=False)
            times[name].append(perf_counter() - begun)
    return times
