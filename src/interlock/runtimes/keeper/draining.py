"""The keeper's end of the logger: it is told which pipes there are, and says which are drained.

Nothing here waits. Everything that is told goes in one packet at the end of a turn. A logger that
ended, or does not answer, is replaced: the next one kills it and is told everything again.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import interlock
from interlock.runtimes.keeper.logger import MOST_PIPES, NUMBER, PACKET
from interlock.runtimes.keeper.moments import monotonic
from interlock.runtimes.keeper.timers import Timers

#: A logger that does not answer for so long is replaced; nothing is lost with it. The next one has
#: twice as long for its first answer: the machine may be very busy.
PATIENCE_S = 10.0
_MOST_PATIENCE_S = 160.0
#: One that ends before it ever answered is begun again after so long, and then less and less often.
_AGAIN_S = 0.5
_MOST_AGAIN_S = 8.0
#: How many are told to be over in one packet.
_MOST_ENDS = 1000
#: No attempt has this number; a logger answers to it as to any.
_PING = 0
_SIGNALS = [
    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
]
_RUN = (
    "import sys; sys.path.insert(0, sys.argv[3]);"
    "from interlock.runtimes.keeper.logger import serve;"
    "serve(int(sys.argv[1]), sys.argv[2])"
)


class Drain:
    """Tells the logger what to drain, and keeps one alive."""

    def __init__(
        self,
        poll: select.epoll,
        timers: Timers,
        place: str,
        helpers: set[int],
        drained: Callable[[int], None],
        tell_all: Callable[[], None],
    ) -> None:
        self._poll = poll
        self._timers = timers
        self._place = place
        self._helpers = helpers
        #: Called with each attempt that is wholly in its file.
        self._drained = drained
        #: Called for a new logger, which knows nothing.
        self._tell_all = tell_all
        self._door: socket.socket | None = None
        #: The process itself: its number may be given to another once it is reaped.
        self._process = -1
        self._has_answered = False
        self._pause_s = _AGAIN_S
        self._patience_s = PATIENCE_S
        self._asked_at: float | None = None
        self._retry_set = False
        self._adds: dict[int, tuple[str, int]] = {}
        self._ends: dict[int, None] = {}
        self._drops: list[int] = []

    @property
    def door(self) -> int:
        """The socket to the logger."""
        return -1 if self._door is None else self._door.fileno()

    def add(self, number: int, name: str, pipe: int) -> None:
        """Have a pipe drained from now on; it stays open here until that is over."""
        self._adds[number] = name, pipe

    def end(self, number: int) -> None:
        """Have told when all that is in a pipe now is in its file; then it is drained no more."""
        self._ends[number] = None

    def drop(self, number: int) -> None:
        """Have a pipe drained no more, without a word."""
        self._ends.pop(number, None)
        if self._adds.pop(number, None) is None:
            self._drops.append(number)

    def begin(self) -> None:
        """Start a logger, which kills the one before."""
        self._has_answered = False
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError:
            self._begin_later()
            return
        ours.setblocking(False)
        self._door = ours
        self._poll.register(ours.fileno(), select.EPOLLIN)
        self._adds.clear()
        self._ends.clear()
        self._drops.clear()
        # It says so when it is there.
        self._asked_at = monotonic()
        self.end(_PING)
        # Before it lives: the pipes are then never without anybody, even when we are killed now.
        self._tell_all()
        self.flush()
        try:
            self._spawn(theirs)
        except OSError:
            self._hang_up()
            self._begin_later()
        finally:
            theirs.close()

    def flush(self) -> None:
        """Send what was told; what the socket does not take goes later."""
        while self._door is not None and (self._adds or self._ends or self._drops):
            adds = list(self._adds.items())[:MOST_PIPES]
            # A pipe is told before its end.
            is_last = len(adds) == len(self._adds)
            ends = list(self._ends)[: _MOST_ENDS if is_last else 0]
            drops = self._drops[:_MOST_ENDS]
            plain = tuple((number, name) for number, (name, _) in adds), tuple(ends), tuple(drops)
            try:
                socket.send_fds(self._door, [marshal.dumps(plain)], [pipe for _, (_, pipe) in adds])
            except (BrokenPipeError, ConnectionResetError):
                self.lost()
                return
            except OSError:
                # It takes no more now: its socket is full, or too many pipes are under way.
                if not self._retry_set:
                    self._retry_set = True
                    self._timers.call_later(_AGAIN_S, self._retry)
                return
            for number, _ in adds:
                del self._adds[number]
            for number in ends:
                del self._ends[number]
            del self._drops[: len(drops)]

    def receive(self) -> None:
        """Hear what is drained, or that the logger is gone."""
        assert self._door is not None
        try:
            while data := self._door.recv(PACKET):
                self._has_answered, self._asked_at = True, None
                self._pause_s, self._patience_s = _AGAIN_S, PATIENCE_S
                for (number,) in NUMBER.iter_unpack(data):
                    if number != _PING:
                        self._drained(number)
        except BlockingIOError:
            return
        except OSError:
            pass
        self.lost()

    def look(self) -> None:
        """See that the logger answers; replace one that does not."""
        if self._door is None:
            return
        if self._asked_at is None:
            self._asked_at = monotonic()
            self.end(_PING)
        elif monotonic() - self._asked_at > self._patience_s:
            sys.stderr.write(
                f"the logger did not answer for {self._patience_s:.0f} s; another begins\n"
            )
            sys.stderr.flush()
            self._patience_s = min(2 * self._patience_s, _MOST_PATIENCE_S)
            self._hang_up()
            self.begin()

    def lost(self) -> None:
        """The logger is gone, or as good as gone: begin another one."""
        self._hang_up()
        if self._has_answered:
            self.begin()
        else:
            self._begin_later()

    def close(self) -> None:
        """Let the logger end: there is nothing left to drain."""
        if self._door is not None:
            self._door.close()
            self._door = None

    def _retry(self) -> None:
        self._retry_set = False
        self.flush()

    def _begin_later(self) -> None:
        self._timers.call_later(self._pause_s, self._begin_again)
        self._pause_s = min(2 * self._pause_s, _MOST_AGAIN_S)

    def _begin_again(self) -> None:
        if self._door is None:
            self.begin()

    def _hang_up(self) -> None:
        if self._door is not None:
            self._poll.unregister(self._door.fileno())
            self._door.close()
            self._door = None
        if self._process >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
            os.close(self._process)
            self._process = -1

    def _spawn(self, door: socket.socket) -> None:
        os.set_inheritable(door.fileno(), True)
        place = str(Path(interlock.__file__).parent.parent)
        pid = os.posix_spawn(
            sys.executable,
            [
                *(sys.executable, "-I", "-S", "-c", _RUN),
                *(str(door.fileno()), self._place, place),
            ],
            os.environ,
            setsid=True,
            setsigmask=[],
            setsigdef=_SIGNALS,
        )
        self._helpers.add(pid)
        self._process = os.pidfd_open(pid)
