"""Where a trial takes place: a folder, a server of our own in it, its keeper, and the evidence."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import NamedTuple, TypeVar

from interlock.resources.tasks import TaskId
from interlock.runtimes.keeper import kernel
from interlock.runtimes.keeper.output import log_of
from interlock.runtimes.keeper.protocol import LOCK_NAME
from interlock.testing.clients import Client, Object
from interlock.testing.keepers import kill_and_wait, logger_pid
from interlock.testing.serving import PATIENCE_S, Server
from support.storm.checker import Check
from support.storm.evidence import Attempt, Line, read_evidence
from support.storm.task import EVIDENCE

T = TypeVar("T")

#: What a request meets while its server is killed.
TROUBLE = (OSError, HTTPException, ValueError)
_LOOK_EVERY_S = 0.05
_COMMAND = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
#: What a server is.
PROGRAM = (sys.executable, "-c", _COMMAND)
_LOGS = ("server.log", "keeper.log")


class StandstillError(Exception):
    """Something that must happen did not, for longer than any machine needs."""


class Answer(NamedTuple):
    """How a command of the command line ended, and what it said."""

    code: int
    text: str


class Ground:
    """A folder with a server. As a context it is entered with the server up, and left with nothing.

    What is in the folder stays when something was broken, for a look.
    """

    def __init__(
        self, where: Path | None = None, *arguments: str, program: Sequence[str] = PROGRAM
    ) -> None:
        """Prepare a server with these arguments, which `program` is."""
        self.folder = Path(tempfile.mkdtemp(prefix="interlock-storm-", dir=where))
        (self.folder / "places").mkdir()
        self.server = Server(self.folder / "data", *arguments, cwd=self.folder, program=program)
        self.keep = False

    def __enter__(self) -> Ground:
        self.server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            # A keeper that stands still could not be ended in an orderly way.
            self.signal_keeper(signal.SIGCONT)
            self.server.__exit__(kind, error, traceback)
        finally:
            if error is None and not self.keep:
                shutil.rmtree(self.folder)

    # Asking

    @property
    def client(self) -> Client:
        """A client of the server that serves now; the one before had another address."""
        return Client(self.server.url)

    def insist(self, method: str, path: str, body: object = None, media: str = "") -> Object:
        """Ask until there is an answer, which must be a good one.

        Raises:
            StandstillError: There never was one.
        """
        status, told = self.answer(method, path, body, media)
        assert status < 300, (method, path, status, told)
        return told

    def answer(
        self, method: str, path: str, body: object = None, media: str = ""
    ) -> tuple[int, Object]:
        """Ask until there is an answer other than that the server is not ready.

        Raises:
            StandstillError: There never was one.
        """

        def answer() -> tuple[int, Object] | None:
            try:
                status, told = self.client.ask(method, path, body, media or "application/json")
            except TROUBLE:
                return None
            return None if status == 503 else (status, told)

        return until(answer, f"an answer to {method} {path}")

    def command(self, *argv: str) -> Answer:
        """Carry out one command of the command line, as a person does."""
        environment = os.environ | {"INTERLOCK_SERVER": self.server.url}
        done = subprocess.run(
            [sys.executable, "-c", _COMMAND, *argv],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Answer(done.returncode, done.stdout + done.stderr)

    # Looking

    @property
    def evidence(self) -> list[Line]:
        """What the tasks have written so far."""
        return read_evidence(self.folder)

    @property
    def evidence_size(self) -> int:
        """How much they have written."""
        path = self.folder / EVIDENCE
        return path.stat().st_size if path.exists() else 0

    def log_of(self, attempt: Attempt) -> str:
        """What an attempt printed, as it is kept."""
        path = log_of(self.server.data, TaskId(attempt.uid, attempt.task, attempt.number))
        return path.read_text() if path.exists() else ""

    def processes_of(self, uid: str) -> list[str]:
        """The processes of a Job, as the kernel tells it; Interlock is not asked."""
        word = f"INTERLOCK_JOB_UID={uid}".encode()
        return [pid for pid in _pids() if word in _read(pid, "environ").split(b"\0")]

    def left_over(self) -> list[str]:
        """Every process that still does a task's work."""
        word = str(self.folder).encode()
        found = []
        for pid in _pids():
            words = _read(pid, "cmdline").split(b"\0")
            if word in words and b"-S" in words:
                found.append(f"pid {pid}: {b' '.join(words[4:]).decode()}")
        return found

    def complaints(self) -> Check:
        """What server and keeper say of their own defects."""
        faults = []
        for name in _LOGS:
            path = self.server.data / name
            lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
            faults += [f"{path}:{i}" for i, line in enumerate(lines, 1) if "Traceback" in line]
        return Check("tracebacks", len(_LOGS), tuple(faults))

    def memory(self) -> str:
        """How much memory server, keeper and logger take, and took at most."""
        told = []
        for name, pid in (
            ("server", self.server.process.pid),
            ("keeper", self._keeper()),
            ("logger", logger_pid(self.server.data)),
        ):
            if pid is not None:
                now, most = (_memory_mib(pid, line) for line in ("VmRSS", "VmHWM"))
                told.append(f"{name} {now} MiB (at most {most})")
        return ", ".join(told)

    # The keeper

    def signal_keeper(self, number: signal.Signals) -> bool:
        """Send the keeper a signal; False when there is none."""
        pid = self._keeper()
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def replace_logger(self) -> None:
        """Kill the logger, and wait until there is another one.

        Only the one that the keeper itself began: without a keeper that has every pipe open,
        what a task prints last may be lost with the logger, and that is no fault.
        """

        def of_keeper() -> int | None:
            pid, keeper = logger_pid(self.server.data), self._keeper()
            ours = pid is not None and pid in kernel.children_of(keeper or 0)
            return pid if ours else None

        old = until(of_keeper, "a logger")
        kill_and_wait(old)
        until(lambda: new if (new := of_keeper()) != old else None, "another logger")

    def _keeper(self) -> int | None:
        """The keeper's process. Its lock is not tried: that could keep a new one from starting."""
        path = self.server.data / LOCK_NAME
        said = path.read_text().strip() if path.exists() else ""
        return (
            int(said) if said and str(self.server.data).encode() in _read(said, "cmdline") else None
        )


def until(found: Callable[[], T | None], what: str, patience_s: float = 2 * PATIENCE_S) -> T:
    """What is found, once something is.

    Raises:
        StandstillError: Nothing was, for long.
    """
    latest = monotonic() + patience_s
    while (result := found()) is None:
        if monotonic() > latest:
            raise StandstillError(f"waited {patience_s:.0f} s in vain for {what}")
        pause(_LOOK_EVERY_S)
    return result


def pause(seconds: float) -> None:
    """Let time pass."""
    select.select([], [], [], seconds)


def _pids() -> Iterator[str]:
    return (each.name for each in Path("/proc").iterdir() if each.name.isdigit())


def _read(pid: str | int, what: str) -> bytes:
    """What the kernel tells of a process; empty when it is gone, or dead and not yet reaped."""
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def _memory_mib(pid: int, line: str) -> int:
    lines = _read(pid, "status").decode().splitlines()
    return next((int(each.split()[1]) // 1024 for each in lines if each.startswith(line)), 0)
