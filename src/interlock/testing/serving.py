"""A real server in a process of its own, for tests and benchmarks; it leaves nothing behind."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from interlock.testing.keepers import end_everything

#: Everything a test waits for comes within this, on any machine; what does not is lost.
PATIENCE_S = 120.0
_START = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"


class Server:
    """`interlock up` on a free port. As a context it is ready when entered.

    Leaving ends the server, its keeper and every task, whatever became of them meanwhile.
    """

    def __init__(
        self,
        data: Path,
        *arguments: str,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        program: Sequence[str] = (sys.executable, "-c", _START),
    ) -> None:
        """Prepare a server that `program` is: `interlock`, or one that knows more kinds."""
        self.data = data
        self.url = ""
        self._arguments = arguments
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self._program = tuple(program)
        self._process: subprocess.Popen[bytes] | None = None
        self._read = b""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The server's process."""
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def output(self) -> str:
        """What the server has printed so far, as far as it was read."""
        return self._read.decode(errors="ignore")

    def start(self) -> Server:
        """Start the server and wait until it serves."""
        self.launch()
        return self.wait_until_ready()

    def launch(self) -> None:
        """Start the server, and do not wait for anything."""
        command = [*self._program, "up", "--data", str(self.data)]
        if "--listen" not in self._arguments:
            command += ["--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(
            [*command, *self._arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._env,
            cwd=self._cwd,
        )
        self._read = b""

    def wait_until_ready(self) -> Server:
        """Wait until a server that was launched serves."""
        return self.wait_until_said("ready in")

    def wait_until_said(self, words: str) -> Server:
        """Wait until a server that was launched has said where it is, and these words."""
        while words not in self.output:
            if not self._read_some():
                self.wait()
                raise AssertionError(f"the server did not start:\n{self.output}")
        self.url = next(word for word in self.output.split() if word.startswith("http"))
        return self

    def stop(self) -> int:
        """Ask the server to stop and wait until it has; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Kill the server as the kernel would; its keeper and tasks go on."""
        self.process.kill()
        self.wait()

    def wait(self) -> int:
        """Wait until the server has ended; returns its exit code."""
        while self._read_some():
            pass
        code = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def put_back(self, backup: Path) -> None:
        """Stop the server, put a backup in the place of its store, and start it again."""
        if self.process.poll() is None:
            self.stop()
        command = ["restore", str(backup.absolute()), "--data", str(self.data), "--force"]
        subprocess.run([*self._program, *command], check=True, env=self._env, cwd=self._cwd)
        self.start()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._process is not None and self._process.poll() is None:
                self.kill()
        finally:
            if self._process is not None and self._process.stdout is not None:
                self._process.stdout.close()
            end_everything(self.data)

    def _read_some(self) -> bool:
        """Read what the server prints next; False once it prints nothing any more."""
        stream = self.process.stdout
        assert stream is not None
        if stream.closed:
            return False
        with selectors.DefaultSelector() as waiting:
            waiting.register(stream, selectors.EVENT_READ)
            if not waiting.select(PATIENCE_S):
                raise AssertionError(f"the server printed nothing for long:\n{self.output}")
        piece = os.read(stream.fileno(), 65536)
        self._read += piece
        return bool(piece)
