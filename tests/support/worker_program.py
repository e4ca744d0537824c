"""`interlock worker` in processes of its own, and what it says."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from interlock.runtimes.keeper import kernel
from interlock.testing.serving import PATIENCE_S

_START = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
_PID = re.compile(r"^worker \S+/(\d+)", re.MULTILINE)


class WorkerProgram:
    """A supervisor with its processes; as a context it is connected, and gone after."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], connects: bool = True
    ) -> None:
        """Start it; the environment says for which server."""
        self._connects = connects
        self._read = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, "worker", *arguments],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**env, "PYTHONDONTWRITEBYTECODE": "1"},
        )

    @property
    def said(self) -> str:
        """What it has said so far, as far as it was read."""
        return self._read.decode(errors="replace")

    def until_said(self, words: str) -> str:
        """Wait until it has said this; returns all that it said."""
        while words not in self.said:
            assert self._read_some(), f"it ended without saying {words!r}:\n{self.said}"
        return self.said

    def wait(self) -> int:
        """Wait until it has ended; returns its exit code."""
        while self._read_some():
            pass
        return self.process.wait(PATIENCE_S)

    def stop_reading(self) -> None:
        """Hear no more: what it says next has no reader."""
        assert self.process.stdout is not None
        self.process.stdout.close()

    def __enter__(self) -> WorkerProgram:
        if self._connects:
            self.until_said("waits for work")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            # Held still, so that it begins no other; some may not have said yet who they are.
            self.process.send_signal(signal.SIGSTOP)
            for pid in kernel.children_of(self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.kill()
        self.process.wait()
        for pid in map(int, _PID.findall(self.said)):
            # Its number is not another's yet: nobody but the one that adopted it could reap it.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read_some(self) -> bool:
        assert self.process.stdout is not None
        file = self.process.stdout.fileno()
        ready, _, _ = select.select([file], [], [], PATIENCE_S)
        assert ready, f"it said nothing for long:\n{self.said}"
        piece = os.read(file, 65536)
        self._read += piece
        return bool(piece)


class Pipe:
    """A named pipe by which a step and a test meet: whoever comes first waits for the other."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        # Open at both ends, so that no open of the other side waits, and nothing is lost.
        self._file = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def read(self) -> str:
        """The next line."""
        ready, _, _ = select.select([self._file], [], [], PATIENCE_S)
        assert ready, "no step has come here"
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self._file, 1)
        return line.decode().strip()

    def let_go(self, many: int = 1) -> None:
        """Let so many who wait here, or will, go on."""
        os.write(self._file, b"." * many)

    def close(self) -> None:
        os.close(self._file)
