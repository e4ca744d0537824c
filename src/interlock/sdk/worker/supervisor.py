"""The supervisor of worker processes: starts them, replaces those that end, and ends them.

It never loads the application: a module that crashes or leaks does so in a process that is
replaced. One that retires is replaced at once, and ends when it is done.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

import msgspec

from interlock.client.errors import BAD_INPUT, FAILED, FORBIDDEN, OK
from interlock.sdk.worker.process import CANCEL, DRAIN, RETIRE
from interlock.sdk.worker.settings import WorkerSettings
from interlock.sdk.worker.telling import tell

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
#: Who lived so long did not die of what it died of before.
_LONG_S = 60.0
#: With these ends what will not go away: the application, or the token, is bad.
_HOPELESS = (BAD_INPUT, FORBIDDEN)
_CHILD = "import sys; from interlock.sdk.worker.process import main; sys.exit(main())"


class _Place:
    """One of the processes that there are to be."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self.process: subprocess.Popen[bytes] | None = None
        #: What is said to the process, and what it says.
        self.line: socket.socket | None = None
        self.starts = 0
        self.begin_at = 0.0
        self._began_at = 0.0
        self._pause_s = _FIRST_PAUSE_S

    def start(self, now: float) -> None:
        """Begin a process, in a session of its own: a terminal's Ctrl-C is for the supervisor."""
        self.starts += 1
        self._began_at = now
        self.line, there = socket.socketpair()
        with there:
            self.process = subprocess.Popen(
                self._command, stdin=there.fileno(), start_new_session=True
            )
        self.line.setblocking(False)

    def tell(self, word: bytes) -> None:
        """Tell the process something; one that is gone needs no telling."""
        if self.line is not None:
            with suppress(OSError):
                self.line.send(word)

    def retires(self) -> bool:
        """Whether the process has just said that another is to take its place."""
        if self.line is None:
            return False
        with suppress(OSError):
            return RETIRE in self.line.recv(64)
        return False

    def ended(self) -> int | None:
        """The exit code of a process that has ended; None when there is none."""
        if self.process is None or self.process.poll() is None:
            return None
        code = self.process.returncode
        if self.line is not None:
            self.line.close()
        self.process = self.line = None
        return code

    def pause(self, now: float) -> float:
        """How long to wait before the next one: longer each time, unless this one lived long."""
        if now - self._began_at >= _LONG_S:
            self._pause_s = _FIRST_PAUSE_S
        pause, self._pause_s = self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self.begin_at = now + pause
        return pause


class Supervisor:
    """Keeps worker processes running until it is told to end."""

    def __init__(self, settings: WorkerSettings, processes: int) -> None:
        told = msgspec.json.encode(settings).decode()
        self._command = (sys.executable, "-c", _CHILD, told)
        self._places = [_Place(self._command) for _ in range(processes)]
        #: Processes that others have taken the places of.
        self._retired: list[_Place] = []
        self._signals = 0
        self._told = 0
        self._code = OK

    def run(self) -> int:
        """Supervise; returns the exit code."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        before = signal.set_wakeup_fd(writer)
        handlers = {
            number: signal.signal(number, self._signalled)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
        }
        try:
            return self._supervise(reader)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)
            os.close(reader)
            os.close(writer)

    def _signalled(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._signals += 1

    def _supervise(self, reader: int) -> int:
        while True:
            self._tell_all()
            now = time.monotonic()
            self._replace_retired()
            for place in self._places:
                code = place.ended()
                if code is not None:
                    self._take_in(place, code, now)
                if place.process is None and not self._signals and place.begin_at <= now:
                    place.start(now)
            if self._signals and all(place.process is None for place in self._all()):
                return self._code
            due = [p.begin_at - now for p in self._places if p.process is None]
            timeout = None if self._signals or not due else max(0.0, min(due))
            lines = [place.line.fileno() for place in self._all() if place.line is not None]
            select.select([reader, *lines], [], [], timeout)
            with suppress(BlockingIOError):
                os.read(reader, 4096)

    def _tell_all(self) -> None:
        """Pass on what this process was told: to drain, then to cancel."""
        while self._told < self._signals:
            self._told += 1
            for place in self._all():
                place.tell(DRAIN if self._told == 1 else CANCEL)

    def _all(self) -> list[_Place]:
        return [*self._places, *self._retired]

    def _replace_retired(self) -> None:
        """Have another process begin where one retires, and take leave of those that have ended."""
        for at, place in enumerate(self._places):
            if place.retires() and not self._signals:
                self._retired.append(place)
                self._places[at] = _Place(self._command)
                self._places[at].starts = place.starts
        for place in tuple(self._retired):
            place.retires()
            code = place.ended()
            if code is not None:
                self._retired.remove(place)
                if self._signals and code != OK:
                    self._code = self._code or FAILED

    def _take_in(self, place: _Place, code: int, now: float) -> None:
        """Decide what follows the end of a process."""
        if self._signals:
            if code != OK:
                self._code = self._code or FAILED
            return
        if code in _HOPELESS and place.starts == 1:
            # It said why. The others end as if told so.
            self._code, self._signals = code, 1
            self._tell_all()
            return
        if code == OK:
            # It has done its share.
            place.begin_at = now
            return
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        pause = place.pause(now)
        tell(sys.stderr, f"a worker process {how}; the next one begins in {pause:g} s\n")
