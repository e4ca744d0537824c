"""The workers of a storm: programs of `interlock worker`, and what is done to them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from random import Random
from time import monotonic
from types import TracebackType
from typing import NamedTuple

from interlock.runtimes.keeper import kernel
from interlock.testing.serving import PATIENCE_S
from support.storm import workers_app
from support.storm.ground import Ground, until

#: A worker that is silent for so long has lost what it is at.
LEASE_S = 2.0
_COMMAND = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
_MODULE = "workers_app"
#: A program waits longer before each next process: after so many it is replaced as a whole.
_DEATHS = 2


class Blow(StrEnum):
    """What can be done to workers."""

    KILL = "worker kill -9"
    KILL_PROGRAM = "worker and supervisor kill -9"
    KILL_SUPERVISOR = "supervisor kill -9"
    HANG = "worker SIGSTOP past its lease"
    STAND_STILL = "worker SIGSTOP within its lease"
    DRAIN = "workers SIGTERM"


#: Those after which a worker process is no more.
KILLS = (Blow.KILL, Blow.KILL_PROGRAM)
_WEIGHTS = {
    Blow.KILL: 10,
    Blow.KILL_PROGRAM: 2,
    Blow.KILL_SUPERVISOR: 1,
    Blow.HANG: 4,
    Blow.STAND_STILL: 2,
    Blow.DRAIN: 2,
}


class _Hung(NamedTuple):
    """A worker process that stands still."""

    pid: int
    until: float


class _Program:
    """One `interlock worker`, and how many of its processes have died."""

    def __init__(self, ground: Ground, log: Path, processes: int, concurrency: int) -> None:
        words = [f"{_MODULE}:app", "--processes", str(processes), "--concurrency", str(concurrency)]
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, "worker", *words],
                cwd=ground.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=os.environ | {"INTERLOCK_DATA": str(ground.server.data)},
            )
        self.deaths = 0

    def children(self) -> list[int]:
        """Its worker processes that are alive."""
        return [
            pid
            for pid in kernel.children_of(self.process.pid)
            if (stat := kernel.stat_of(pid)) is not None and stat.state not in "ZX"
        ]


class Crew:
    """Programs of workers, which are replaced when they are killed; as a context."""

    def __init__(self, ground: Ground, random: Random, *, programs: int, processes: int) -> None:
        self._ground = ground
        self._random = random
        self._size = programs
        self._processes = processes
        self._programs: list[_Program] = []
        #: Those that were left to end by themselves.
        self._leaving: list[_Program] = []
        self._orphans: list[int] = []
        self._hung: list[_Hung] = []
        self.done: Counter[Blow] = Counter()
        #: How many worker processes were killed.
        self.killed = 0
        self._log = ground.folder / "workers.log"

    def __enter__(self) -> Crew:
        shutil.copy(Path(workers_app.__file__), self._ground.folder)
        self._man()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._wake(everybody=True)
        for program in (*self._programs, *self._leaving):
            self._kill(*program.children())
            self._signal(program, signal.SIGKILL)
            program.process.wait()
        self._kill(*self._orphans)

    def strike(self) -> None:
        """Let something happen to a worker; those that hang for long enough go on."""
        self._wake()
        blow = self._random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        program = self._random.choice(self._programs)
        workers = [pid for pid in program.children() if pid not in self._still()]
        if not workers and blow is not Blow.KILL_PROGRAM:
            # They have just been killed, and the next ones are not there yet.
            return
        match blow:
            case Blow.KILL:
                self._kill(self._random.choice(workers))
                self.killed += 1
                program.deaths += 1
                if program.deaths >= _DEATHS:
                    self._leave(program)
            case Blow.KILL_PROGRAM:
                self._kill(*workers)
                self.killed += len(workers)
                self._signal(program, signal.SIGKILL)
                self._leave(program)
            case Blow.KILL_SUPERVISOR:
                self._orphans += workers
                self._signal(program, signal.SIGKILL)
                self._leave(program)
            case Blow.HANG:
                self._hang(self._random.choice(workers), LEASE_S * self._random.uniform(1.2, 3))
            case Blow.STAND_STILL:
                self._hang(self._random.choice(workers), LEASE_S * self._random.uniform(0, 0.5))
            case Blow.DRAIN:
                self._leave(program)
        self.done[blow] += 1
        self._man()

    def come_to_rest(self) -> None:
        """Have whoever stands still go on, and see everybody who was sent away end."""
        self._wake(everybody=True)
        until(lambda: not any(p.process.poll() is None for p in self._leaving) or None, "drains")

    def stop(self) -> None:
        """Tell everybody to end, and wait until they have: then nothing more is written."""
        for program in self._programs:
            self._signal(program, signal.SIGTERM)
        for program in (*self._programs, *self._leaving):
            program.process.wait(PATIENCE_S)
        until(lambda: all(not _lives(pid) for pid in self._orphans) or None, "orphans to end")

    # How it is done

    def _man(self) -> None:
        """Have as many programs as there are to be."""
        while len(self._programs) < self._size:
            concurrency = self._random.choice((2, 4, 8))
            self._programs.append(_Program(self._ground, self._log, self._processes, concurrency))

    def _leave(self, program: _Program) -> None:
        """Have a program end what it is at, and go."""
        self._signal(program, signal.SIGTERM)
        self._programs.remove(program)
        self._leaving.append(program)

    def _hang(self, pid: int, seconds: float) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        self._hung.append(_Hung(pid, monotonic() + seconds))

    def _still(self) -> set[int]:
        return {hung.pid for hung in self._hung}

    def _wake(self, *, everybody: bool = False) -> None:
        now = monotonic()
        due = [hung for hung in self._hung if everybody or hung.until <= now]
        self._hung = [hung for hung in self._hung if hung not in due]
        for hung in due:
            with suppress(ProcessLookupError):
                os.kill(hung.pid, signal.SIGCONT)

    def _kill(self, *pids: int) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _signal(self, program: _Program, number: signal.Signals) -> None:
        if program.process.poll() is None:
            program.process.send_signal(number)


def _lives(pid: int) -> bool:
    stat = kernel.stat_of(pid)
    return stat is not None and stat.state not in "ZX"
