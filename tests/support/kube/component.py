"""One program of a control plane: is it up, and how is it brought down?"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from interlock.testing.serving import PATIENCE_S

_LOOK_EVERY_S = 0.05
#: How long a program may take to stop before it is killed; an API server with watchers takes it.
_STOPPING_S = 5.0
_TAIL_LINES = 30
#: A third of an API server's processor time goes into finding what it needs no more. It looks less
#: often, and takes more memory meanwhile; from a limit on it looks as often as ever.
_COLLECTION = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
_WATCH = "import os, signal, sys; sys.stdin.buffer.read(); os.killpg(0, signal.SIGKILL)"


class ComponentError(Exception):
    """A program did not start or ended by itself; the message holds the end of its log."""


class Leash:
    """Kills all programs of a cluster once the process that started them is gone, however.

    It is a process that does nothing but wait for the end of its input, in a group that the
    programs join. A killed test run leaves nothing behind, not even programs that are paused.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCH],
            stdin=subprocess.PIPE,
            # Whoever waits for the end of our own output must not wait for the leash.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    @property
    def group(self) -> int:
        """The process group to start programs in."""
        return self._process.pid

    def close(self) -> None:
        """Kill whatever is left."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)


class Component:
    """A program that can be started, asked for its health, paused, and ended."""

    def __init__(self, command: list[str], log: Path, healthy: Callable[[], bool]) -> None:
        self.name = Path(command[0]).name
        self._command = command
        self._log = log
        self._healthy = healthy
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process, to look at."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def log(self) -> str:
        """All it has said since the cluster began, over all its restarts."""
        return self._log.read_text("utf-8", errors="replace") if self._log.exists() else ""

    def start(self, group: int, home: Path) -> None:
        """Start it; `wait_until_healthy` says when it is there."""
        assert not self.running, f"{self.name} runs already"
        # It finds no configuration of the person who runs the tests, nor their proxies.
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), **_COLLECTION}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=home,
                env=environment,
                process_group=group,
            )

    def wait_until_healthy(self) -> None:
        """Wait until it says that it is well.

        Raises:
            ComponentError: It ended, or was not well for long.
        """
        until = time.monotonic() + PATIENCE_S
        while not self._healthy():
            if not self.running:
                code = self._process.returncode if self._process else None
                raise ComponentError(f"{self.name} ended with {code}:\n{self._tail()}")
            if time.monotonic() > until:
                raise ComponentError(f"{self.name} does not get healthy:\n{self._tail()}")
            select.select([], [], [], _LOOK_EVERY_S)

    def stop(self) -> None:
        """Ask it to stop, and kill it if it does not; nothing happens if it has ended."""
        if not self.running or self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        self.resume()
        try:
            self._process.wait(_STOPPING_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it as the kernel would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)

    def pause(self) -> None:
        """Let it stand still, without anybody being told."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def _tail(self) -> str:
        return "\n".join(self.log.splitlines()[-_TAIL_LINES:])
