"""The keeper's end of the prober: which tasks are to be looked at, and how that turned out.

Nothing here waits. There is a prober as long as a task with a probe runs, and for a while after; a
keeper without any has none. One that ended, or does not answer, is replaced: the next one is told
everything again, and what was known of each task stays so until it says otherwise.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

import interlock
from interlock.resources.process import ReadinessProbe, Scheme
from interlock.runtimes.keeper.moments import monotonic
from interlock.runtimes.keeper.prober import (
    END,
    ENDED,
    EXEC,
    FILE,
    HTTP,
    PING,
    PONG,
    TCP,
    TURNED,
    WATCH,
    Packets,
    packet,
)
from interlock.runtimes.keeper.timers import Timers

if TYPE_CHECKING:
    from interlock.runtimes.keeper.launcher import Start
    from interlock.runtimes.keeper.prober import Look

#: A prober that does not answer for so long is replaced.
PATIENCE_S = 10.0
#: One that ended is begun again after so long.
_AGAIN_S = 1.0
#: One without tasks is kept so long for the next one.
LINGER_S = 30.0
_SIGNALS = [
    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
]
_RUN = (
    "import sys; sys.path.insert(0, sys.argv[2]);"
    "from interlock.runtimes.keeper.prober import serve;"
    "serve(int(sys.argv[1]))"
)


class Watched(Struct, eq=False):
    """A task that is looked at."""

    start: Start
    look: Look
    #: What is known of it; None before anything is.
    ready: bool | None
    #: When the first look is due, on the clock that never goes back.
    first_at: float


class Probing:
    """Tells the prober what to look at, and keeps one alive while there is something."""

    def __init__(
        self,
        poll: select.epoll,
        timers: Timers,
        helpers: set[int],
        turned: Callable[[int, bool, str], None],
    ) -> None:
        self._poll = poll
        self._timers = timers
        self._helpers = helpers
        #: Called with each task that became ready or is not, and why it is not.
        self._turned = turned
        self._watched: dict[int, Watched] = {}
        #: Tasks that are watched no more and whose last look may live, and what waits for its end.
        self._ending: dict[int, Callable[[], None] | None] = {}
        self._door: socket.socket | None = None
        self._process = -1
        self._packets = Packets()
        self._unsent = bytearray()
        self._asked_at: float | None = None
        self._again_set = self._linger_set = False

    @property
    def door(self) -> int:
        """The socket to the prober."""
        return -1 if self._door is None else self._door.fileno()

    def watch(
        self, serial: int, start: Start, probe: ReadinessProbe, ready: bool | None, delay_s: float
    ) -> None:
        """Have a task looked at from now on, the first time after a delay."""
        if serial in self._watched:
            return
        first_at = monotonic() + max(0.0, delay_s)
        self._watched[serial] = Watched(start, look_of(probe), ready, first_at)
        if self._door is not None:
            self._send_watch(serial)
        elif not self._again_set:
            self._begin()

    def drop(self, serial: int) -> None:
        """Have a task looked at no more."""
        if self._watched.pop(serial, None) is None:
            return
        if self._door is not None:
            self._ending[serial] = None
            self._send(packet(END, serial))
        self._linger()

    def end(self, serial: int, then: Callable[[], None]) -> None:
        """A task is over: do something once nothing of a look at it lives any more."""
        self.drop(serial)
        if serial in self._ending:
            self._ending[serial] = then
        else:
            then()

    def handle(self, what: int) -> None:
        """Hear what the prober says, or that it is gone; and send what it takes again."""
        assert self._door is not None
        try:
            if what & ~select.EPOLLOUT:
                self._receive(self._door)
            self._flush()
        except BlockingIOError:
            return
        except OSError:
            self._lost()

    def look(self) -> None:
        """See that the prober answers; replace one that does not."""
        if self._door is None:
            return
        if self._asked_at is None:
            self._asked_at = monotonic()
            self._send(packet(PING))
        elif monotonic() - self._asked_at > PATIENCE_S:
            sys.stderr.write(f"the prober did not answer for {PATIENCE_S:.0f} s; another begins\n")
            sys.stderr.flush()
            self._lost()

    def close(self) -> None:
        """Let the prober end."""
        self._hang_up()

    def _receive(self, door: socket.socket) -> None:
        data = door.recv(1 << 18)
        if not data:
            raise ConnectionResetError
        for what, *about in self._packets.feed(data):
            if what == PONG:
                self._asked_at = None
            elif what == TURNED:
                serial, ready, why_not = about
                watched = self._watched.get(serial)
                if watched is not None:
                    watched.ready = ready
                    self._turned(serial, ready, why_not)
            elif what == ENDED:
                self._ended(*about)

    def _ended(self, serial: int) -> None:
        then = self._ending.pop(serial, None)
        if then is not None:
            then()

    # The prober itself

    def _begin(self) -> None:
        self._again_set = False
        if not self._watched or self._door is not None:
            return
        try:
            ours, theirs = socket.socketpair()
        except OSError:
            self._begin_later()
            return
        ours.setblocking(False)
        try:
            self._spawn(theirs)
        except OSError:
            ours.close()
            self._begin_later()
            return
        finally:
            theirs.close()
        self._door, self._packets = ours, Packets()
        # It may take a while until it is there: a machine may be busy.
        self._asked_at = None
        self._poll.register(ours.fileno(), select.EPOLLIN)
        for serial in self._watched:
            self._send_watch(serial)

    def _send_watch(self, serial: int) -> None:
        watched = self._watched[serial]
        # A copy: what is looked at may have been begun long ago.
        look = watched.look.copy()
        look["delay_s"] = max(0.0, watched.first_at - monotonic())
        self._send(packet(WATCH, serial, watched.start, look, watched.ready))

    def _send(self, data: bytes) -> None:
        if self._door is None:
            return
        self._unsent += data
        try:
            self._flush()
        except OSError:
            # That it is gone is heard from it.
            return

    def _flush(self) -> None:
        assert self._door is not None
        try:
            while self._unsent:
                sent = self._door.send(self._unsent[: 1 << 18])
                del self._unsent[:sent]
        except BlockingIOError:
            pass
        wanted = select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0)
        self._poll.modify(self.door, wanted)

    def _lost(self) -> None:
        """The prober is gone or as good as gone, and with it all looks: begin another one."""
        self._hang_up()
        if self._watched and not self._again_set:
            self._begin_later()

    def _begin_later(self) -> None:
        self._again_set = True
        self._timers.call_later(_AGAIN_S, self._begin)

    def _linger(self) -> None:
        if not self._watched and not self._linger_set:
            self._linger_set = True
            self._timers.call_later(LINGER_S, self._lingered)

    def _lingered(self) -> None:
        self._linger_set = False
        if not self._watched:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._door is not None:
            self._poll.unregister(self._door.fileno())
            self._door.close()
            self._door = None
        self._unsent.clear()
        if self._process >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
            os.close(self._process)
            self._process = -1
        ending, self._ending = self._ending, {}
        for then in ending.values():
            if then is not None:
                then()

    def _spawn(self, door: socket.socket) -> None:
        os.set_inheritable(door.fileno(), True)
        place = str(Path(interlock.__file__).parent.parent)
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", _RUN, str(door.fileno()), place],
            os.environ,
            setsid=True,
            setsigmask=[],
            setsigdef=_SIGNALS,
        )
        self._helpers.add(pid)
        self._process = os.pidfd_open(pid)


def look_of(probe: ReadinessProbe) -> Look:
    """What the prober is told of a probe."""
    command: tuple[str, ...] = ()
    kind, host, port, path, is_https = EXEC, "", 0, "", False
    if probe.exec is not None:
        command = probe.exec.command
    elif probe.tcp_socket is not None:
        kind, host, port = TCP, probe.tcp_socket.host, probe.tcp_socket.port
    elif probe.http_get is not None:
        http = probe.http_get
        kind, host, port, path = HTTP, http.host, http.port, http.path
        is_https = http.scheme is Scheme.HTTPS
    elif probe.file is not None:
        kind, path = FILE, probe.file.path
    return {
        "kind": kind,
        "command": command,
        "host": host,
        "port": port,
        "path": path,
        "is_https": is_https,
        "delay_s": probe.initial_delay.total_seconds(),
        "period_s": probe.period.total_seconds(),
        "timeout_s": probe.timeout.total_seconds(),
        "successes": probe.success_threshold,
        "failures": probe.failure_threshold,
    }
