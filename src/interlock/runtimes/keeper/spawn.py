"""The keeper's end of the launcher: what was handed over, and what each start has told so far.

Nothing here waits: a start that hangs is a pipe that nobody closes.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

import interlock
from interlock.runtimes.keeper.launcher import DOES, FAILED, HEAD, MOST_INLINE, SERIAL, SHORT
from interlock.runtimes.keeper.moments import monotonic
from interlock.runtimes.keeper.orders import ProcessOrder

if TYPE_CHECKING:
    from interlock.runtimes.keeper.launcher import Start

#: A process starts with every signal as the kernel has it; Python ignores some.
_SIGNALS = [
    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
]
_RUN = (
    "import sys; sys.path.insert(0, sys.argv[3]);"
    "from interlock.runtimes.keeper.launcher import serve;"
    "serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[4])"
)


class ShortageError(Exception):
    """A task cannot be started now; it may work later."""


class Launch(Struct, eq=False):
    """An attempt that was handed over and is not known to run yet."""

    serial: int
    fd: int
    handed_at: float
    #: The process that is to become the task; None until it has told.
    pid: int | None = None
    #: What it is looking at, if it told.
    does: str = ""
    #: Why it cannot be started, and whether that may pass.
    failed: str = ""
    is_short: bool = False
    #: Whether its process is known to be that of the attempt.
    is_met: bool = False

    def hear(self) -> None:
        """Take in what was told."""
        try:
            said = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return
        if said and self.pid is None:
            (told,) = HEAD.unpack_from(said)
            said = said[HEAD.size :]
            if told > 0:
                self.pid = told
            else:
                self.failed, self.is_short = os.strerror(-told), True
        for word in said.split(b"\0")[:-1]:
            text = word[1:].decode("utf-8", "replace")
            if word[:1] == DOES:
                self.does = text
            elif word[:1] in (FAILED, SHORT):
                self.failed, self.is_short = text or "unknown", word[:1] == SHORT


class Launcher:
    """Hands starts to the process that forks them, and keeps the pipes on which they tell."""

    def __init__(self, poll: select.epoll, lock: int, cgroups: str, helpers: set[int]) -> None:
        self._poll = poll
        self._lock = lock
        self._helpers = helpers
        #: Where each task gets a cgroup; empty where they get none.
        self._cgroups = cgroups
        self._door: socket.socket | None = None
        #: The process id of the launcher.
        self.pid = 0
        #: What was handed over and is not known to run, by serial number.
        self.launches: dict[int, Launch] = {}
        self._by_fd: dict[int, Launch] = {}
        #: How many files a task may open; the keeper itself needs more, as a start that hangs
        #: holds one open, and many of them must not keep others from starting.
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._begin()

    @property
    def door(self) -> int:
        """The socket to the launcher."""
        return -1 if self._door is None else self._door.fileno()

    def hand_over(self, serial: int, start: Start) -> bool:
        """Have an attempt started; False when the launcher takes no more before the poll says so.

        Raises:
            ShortageError: It cannot be handed over now, and nothing runs.
        """
        data = SERIAL.pack(serial)
        plain: Any = start
        order = marshal.dumps(plain)
        try:
            if self._door is None:
                self._begin()
            assert self._door is not None
            with contextlib.ExitStack() as stack:
                hear, tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                stack.callback(os.close, tell)
                on_failure = stack.enter_context(contextlib.ExitStack())
                on_failure.callback(os.close, hear)
                given = [tell]
                if len(order) > MOST_INLINE:
                    given.append(_file_with(order))
                    stack.callback(os.close, given[-1])
                else:
                    data += order
                socket.send_fds(self._door, [data], given)
                # Only its end is waited for: nothing that a child tells wakes the keeper before.
                self._poll.register(hear, 0)
                on_failure.pop_all()
        except BlockingIOError:
            self._poll.modify(self.door, select.EPOLLIN | select.EPOLLOUT)
            return False
        except (BrokenPipeError, ConnectionResetError) as error:
            self.lost()
            raise ShortageError("the launcher ended") from error
        except OSError as error:
            raise ShortageError(os.strerror(error.errno or 0)) from error
        launch = Launch(serial, hear, monotonic())
        self.launches[serial] = launch
        self._by_fd[hear] = launch
        return True

    def knows(self, fd: int) -> bool:
        """Whether it is the pipe of a start."""
        return fd in self._by_fd

    def has_room(self) -> None:
        """The launcher takes orders again."""
        self._poll.modify(self.door, select.EPOLLIN)

    def ended(self, fd: int) -> Launch:
        """The pipe of a start was closed: it runs, or failed."""
        return self.settle(self._by_fd[fd].serial)

    def settle(self, serial: int) -> Launch:
        """Take in the last words of a start that is known to run or to be over."""
        launch = self.launches.pop(serial)
        launch.hear()
        del self._by_fd[launch.fd]
        # Closing it takes it out of the poll, as nobody else has this end.
        os.close(launch.fd)
        return launch

    def lost(self) -> None:
        """The launcher is gone; what it forked goes on, and another one is begun when needed."""
        if self._door is not None:
            self._poll.unregister(self._door.fileno())
            self._door.close()
            self._door = None
        self.pid = 0

    def close(self) -> None:
        """Have the launcher end, and wait for it: it holds the lock as long as it lives."""
        if self._door is not None:
            self._door.close()
            self._door = None
        if self.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.set_inheritable(theirs.fileno(), True)
        os.set_inheritable(self._lock, True)
        place = str(Path(interlock.__file__).parent.parent)
        _allow_files(*self._files)
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [
                    *(sys.executable, "-I", "-S", "-c", _RUN),
                    *(str(theirs.fileno()), str(self._lock), place, self._cgroups),
                ],
                os.environ,
                setsid=True,
                setsigmask=[],
                setsigdef=_SIGNALS,
            )
        except OSError:
            ours.close()
            raise
        finally:
            os.set_inheritable(self._lock, False)
            theirs.close()
            _allow_files(self._files[1], self._files[1])
        self._helpers.add(self.pid)
        ours.setblocking(False)
        self._door = ours
        self._poll.register(ours.fileno(), select.EPOLLIN)


def start_of(
    order: ProcessOrder, *, base: Mapping[str, str], working_dir: str, umask: int, pipe: str
) -> Start:
    """What the launcher is told of an order."""
    limits = order.limits
    cpu_time = limits.cpu_time
    return {
        "task": str(order.id),
        "pipe": pipe,
        "umask": umask,
        "base_env": dict(base),
        "working_dir": working_dir if order.working_dir is None else _under(working_dir, order),
        "command": order.command,
        "env": order.env,
        "env_files": tuple((file.file, file.optional) for file in order.env_from),
        "stdin": order.stdin,
        "user": order.user,
        "group": order.group,
        "cpu_time_s": None if cpu_time is None else cpu_time.total_seconds(),
        "memory": limits.memory,
        "open_files": limits.open_files,
        "nice": limits.nice,
    }


def _under(working_dir: str, order: ProcessOrder) -> str:
    return str(Path(working_dir, order.working_dir or ""))


def _file_with(data: bytes) -> int:
    fd = os.memfd_create("order", os.MFD_CLOEXEC)
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        os.close(fd)
        raise
    return fd


def _allow_files(soft: int, hard: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
