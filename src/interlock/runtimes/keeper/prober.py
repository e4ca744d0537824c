"""The prober: a small process that finds out whether tasks can do their work (readiness probes).

It stands beside the keeper, which only hears of turns: of a task that became ready, or is not any
more. Each look is a process of its own, which becomes whom the task is before it looks: whatever
of it hangs, a name, a file on a machine that is gone or a program, hangs that look alone, and is
killed when its time is over. There is one look at a time for each task, and nothing of it is left
when it is over, nor when its task is: what a look left behind is killed, however it set itself
apart. It ends with its keeper, and its looks end with it.
"""

from __future__ import annotations

import _socket
import contextlib
import ctypes
import gc
import marshal
import os
import select
import struct

from interlock.runtimes.keeper.environment import (
    NotStartedError,
    find_program,
    limits_of,
    make_room,
    set_limits,
)
from interlock.runtimes.keeper.launcher import become_account, enter, environment_of
from interlock.runtimes.keeper.moments import monotonic
from interlock.runtimes.keeper.timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn, TypedDict

    from interlock.runtimes.keeper.launcher import Start

    class Look(TypedDict):
        """What is looked at, and how often, in types that `marshal` knows."""

        #: EXEC, TCP, HTTP or FILE.
        kind: str
        command: tuple[str, ...]
        host: str
        port: int
        #: Of a URL, or of a file.
        path: str
        is_https: bool
        #: Until the first look.
        delay_s: float
        period_s: float
        timeout_s: float
        #: So many in a row.
        successes: int
        failures: int


EXEC, TCP, HTTP, FILE = "exec", "tcp", "http", "file"
#: What the keeper says: watch a task, watch it no more, and say that you are there.
WATCH, END, PING = "watch", "end", "ping"
#: What is said to it: a task became ready or is not, nothing of a look at it lives any more, here.
TURNED, ENDED, PONG = "turned", "ended", "pong"
#: A look that was killed and does not go is not waited for any longer.
_GIVE_UP_S = 5.0
#: So much of what a look says is kept, and told.
_MOST_SAID, _MOST_TOLD = 4096, 200
_HEAD = struct.Struct("<I")
_SIGINT, _SIGKILL, _SIGPIPE, _SIGXFSZ = 2, 9, 13, 25
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_MSG_NOSIGNAL = 0x4000
_libc = ctypes.CDLL(None, use_errno=True)


def packet(*said: Any) -> bytes:
    """What is said, as it goes through the socket."""
    data = marshal.dumps(said)
    return _HEAD.pack(len(data)) + data


class Packets:
    """Cuts what comes through the socket into what was said."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Everything that is complete now."""
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= _HEAD.size:
            (length,) = _HEAD.unpack_from(buffer, start)
            end = start + _HEAD.size + length
            if len(buffer) < end:
                break
            yield marshal.loads(bytes(buffer[start + _HEAD.size : end]))
            start = end
        del buffer[:start]


class Task:
    """A task under watch, and the look at it that is under way."""

    def __init__(self, serial: int, start: Start, look: Look, ready: bool | None) -> None:
        self.serial = serial
        self.start = start
        self.look = look
        self.ready = ready
        self.is_watched = True
        #: How many looks in a row went well, or did not.
        self.good = self.bad = 0
        #: Whether it was told why the task is not ready.
        self.is_told = False
        #: The process that looks, what it says, and when it began; no process below 1.
        self.pid = 0
        self.pidfd = self.pipe = -1
        self.said = b""
        self.began_at = 0.0
        self.is_late = self.is_timed = False

    def judge(self, why_not: str) -> bool:
        """Take in how a look went; returns whether that is to be told."""
        if not why_not:
            self.good, self.bad = self.good + 1, 0
            if self.ready or self.good < self.look["successes"]:
                return False
            self.ready, self.is_told = True, False
            return True
        self.good, self.bad = 0, self.bad + 1
        if self.bad < self.look["failures"] or (self.ready is False and self.is_told):
            return False
        self.ready, self.is_told = False, True
        return True


class Prober:
    """Looks at tasks as the keeper says, and tells it what has turned."""

    def __init__(self, door: _socket.socket) -> None:
        self._door = door
        self._pid = os.getpid()
        self._packets = Packets()
        self._timers = Timers()
        self._poll = select.epoll()
        self._poll.register(door.fileno(), select.EPOLLIN)
        self._tasks: dict[int, Task] = {}
        #: The tasks that are looked at now: by the process, by its descriptor, by its pipe.
        self._by_pid: dict[int, Task] = {}
        self._by_pidfd: dict[int, Task] = {}
        self._by_pipe: dict[int, Task] = {}
        self._children = -1
        with contextlib.suppress(OSError):
            # Some kernels are built without it: what sets itself apart is not found then.
            path = f"/proc/self/task/{self._pid}/children"
            self._children = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def run(self) -> None:
        """Serve until the keeper is gone."""
        while self._turn():
            self._timers.run_due()
        for task in self._by_pid.values():
            _kill_group(task.pid)
        self._sweep()

    def _turn(self) -> bool:
        """Take in what happened; False once the keeper is gone."""
        for fd, _ in self._poll.poll(self._timers.patience()):
            if fd in self._by_pidfd:
                self._over(self._by_pidfd[fd])
            elif fd in self._by_pipe:
                self._hear(self._by_pipe[fd])
            elif fd == self._door.fileno():
                try:
                    data = self._door.recv(1 << 18)
                except ConnectionResetError:
                    return False
                if not data:
                    return False
                for said in self._packets.feed(data):
                    self._take(*said)
        return True

    def _take(self, what: str, *about: Any) -> None:
        if what == WATCH:
            self._watch(*about)
        elif what == END:
            self._end(*about)
        elif what == PING:
            self._tell(PONG)

    def _tell(self, *said: Any) -> None:
        with contextlib.suppress(OSError):
            # A keeper that is gone hears nothing: its end comes next.
            self._door.sendall(packet(*said), _MSG_NOSIGNAL)

    # Tasks

    def _watch(self, serial: int, start: Start, look: Look, ready: bool | None) -> None:
        task = Task(serial, start, look, ready)
        self._tasks[serial] = task
        self._timers.call_later(look["delay_s"], lambda: self._look(task))

    def _end(self, serial: int) -> None:
        task = self._tasks.pop(serial, None)
        if task is not None:
            task.is_watched = False
        if task is None or not task.pid:
            self._tell(ENDED, serial)
            return
        _kill_group(task.pid)
        self._timers.call_later(_GIVE_UP_S, lambda: self._give_up(task))

    def _give_up(self, task: Task) -> None:
        """It hangs in the kernel: nobody can do more about it."""
        if task.pid:
            self._tell(ENDED, task.serial)

    # Looks

    def _look(self, task: Task) -> None:
        if not task.is_watched:
            return
        task.said, task.is_late, task.began_at = b"", False, monotonic()
        try:
            hear, tell = os.pipe2(os.O_CLOEXEC)
        except OSError as error:
            self._judge(task, os.strerror(error.errno or 0))
            return
        try:
            pid = os.fork()
        except OSError as error:
            os.close(hear)
            os.close(tell)
            self._judge(task, os.strerror(error.errno or 0))
            return
        if pid == 0:
            become_look(task.start, task.look, tell, self._pid)
        os.close(tell)
        os.set_blocking(hear, False)
        task.pid, task.pipe = pid, hear
        task.pidfd = os.pidfd_open(pid)
        self._by_pid[pid] = self._by_pidfd[task.pidfd] = self._by_pipe[hear] = task
        self._poll.register(task.pidfd, select.EPOLLIN)
        self._poll.register(hear, select.EPOLLIN)
        if not task.is_timed:
            self._time(task)

    def _time(self, task: Task) -> None:
        """Have one timer for a task at a time: the time of most looks never comes."""
        task.is_timed = True
        left = task.began_at + task.look["timeout_s"] - monotonic()
        self._timers.call_later(max(0.0, left), lambda: self._late(task))

    def _late(self, task: Task) -> None:
        task.is_timed = False
        if not task.pid or task.is_late:
            return
        if monotonic() - task.began_at < task.look["timeout_s"]:
            self._time(task)
            return
        task.is_late = True
        _kill_group(task.pid)

    def _hear(self, task: Task) -> None:
        """Keep the end of what a look says, and let none hang because nobody reads it."""
        try:
            said = os.read(task.pipe, 1 << 16)
        except BlockingIOError:
            return
        task.said = (task.said + said)[-_MOST_SAID:]
        if not said:
            with contextlib.suppress(OSError):
                self._poll.unregister(task.pipe)

    def _over(self, task: Task) -> None:
        """A look is over: nothing of it is left when the next one begins."""
        pid = task.pid
        # Before it is reaped: its number is not another's as long as it was not.
        _kill_group(pid)
        _, status = os.waitpid(pid, 0)
        self._hear(task)
        for fd in (task.pidfd, task.pipe):
            with contextlib.suppress(OSError):
                self._poll.unregister(fd)
            os.close(fd)
        del self._by_pid[pid], self._by_pidfd[task.pidfd], self._by_pipe[task.pipe]
        task.pid = 0
        task.pidfd = task.pipe = -1
        self._sweep()
        if not task.is_watched:
            self._tell(ENDED, task.serial)
            return
        self._judge(task, self._why_not(task, status))

    def _judge(self, task: Task, why_not: str) -> None:
        if task.judge(why_not):
            self._tell(TURNED, task.serial, task.ready, why_not)
        next_at = task.began_at + task.look["period_s"]
        self._timers.call_later(max(0.0, next_at - monotonic()), lambda: self._look(task))

    def _why_not(self, task: Task, status: int) -> str:
        """Why a look did not go well; empty when it did."""
        if task.is_late:
            return f"no answer within {task.look['timeout_s']:g} s"
        if status == 0:
            return ""
        lines = task.said.decode("utf-8", "replace").split("\n")
        said = next((line for line in map(_plain, reversed(lines)) if line), "")
        if task.look["kind"] != EXEC and said:
            return said
        code = os.waitstatus_to_exitcode(status)
        told = f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
        return f"{told}: {said}" if said else told

    def _sweep(self) -> None:
        """Kill what looks left behind in sessions of their own: it came to us as an orphan."""
        if self._children < 0:
            return
        for word in os.pread(self._children, 1 << 16, 0).split():
            pid = int(word)
            if pid in self._by_pid:
                continue
            with contextlib.suppress(OSError):
                if os.getsid(pid) not in self._by_pid:
                    os.kill(pid, _SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def serve(door: int) -> None:
    """Be the prober of a keeper."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # What is never looked at again need not be copied for every look.
    gc.freeze()
    gc.disable()
    Prober(_socket.socket(fileno=door)).run()


def become_look(start: Start, look: Look, tell: int, prober: int) -> NoReturn:
    """Look once: exit with 0 when it goes well, or say why not. It never returns."""
    try:
        os.setsid()
        for number in (_SIGINT, _SIGPIPE, _SIGXFSZ):
            _libc.signal(number, None)
        become_account(start["user"], start["group"])
        # Not before: it is lost with the account.
        _libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
        if os.getppid() != prober:
            os._exit(1)
        {EXEC: _run, TCP: _connect, HTTP: _ask, FILE: _find}[look["kind"]](start, look, tell)
    except NotStartedError as error:
        _say(tell, str(error))
    except OSError as error:
        at = error.filename or (f"{look['host']}:{look['port']}" if look["port"] else "")
        why = error.strerror or str(error)
        _say(tell, f"{at}: {why}" if at else why)
    except BaseException as error:
        _say(tell, str(error) or type(error).__name__)
    finally:
        os._exit(1)


def _run(start: Start, look: Look, tell: int) -> None:
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    limits = limits_of(start["cpu_time_s"], start["memory"], start["open_files"])
    make_room(limits)
    if start["nice"] is not None:
        os.nice(start["nice"])
    enter(start["working_dir"])
    os.umask(start["umask"])
    env = environment_of(start)
    program = find_program(look["command"][0], env, start["working_dir"])
    os.dup2(tell, 1)
    os.dup2(tell, 2)
    set_limits(limits)
    os.execve(program, look["command"], env)


def _connect(start: Start, look: Look, tell: int) -> None:  # noqa: ARG001  As all others.
    _connected(look)
    os._exit(0)


def _ask(start: Start, look: Look, tell: int) -> None:  # noqa: ARG001  As all others.
    host = f"[{look['host']}]" if ":" in look["host"] else look["host"]
    path = "".join(chr(one) if 33 <= one < 127 else f"%{one:02X}" for one in look["path"].encode())
    asked = (
        f"GET {path} HTTP/1.1\r\nHost: {host}:{look['port']}\r\n"
        "User-Agent: interlock-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    ).encode()
    connection: Any = _connected(look)
    if look["is_https"]:
        connection = _secured(connection, look["host"])
    connection.send(asked)
    answer = b""
    while len(answer) < _MOST_SAID and b"\n" not in answer and (part := connection.recv(4096)):
        answer += part
    words = answer.split(b"\n", 1)[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        _say(tell, "the answer is no HTTP")
    elif not 200 <= int(words[1]) < 400:
        _say(tell, f"answered with {int(words[1])}")
    else:
        os._exit(0)


def _find(start: Start, look: Look, tell: int) -> None:  # noqa: ARG001  As all others.
    enter(start["working_dir"])
    os.stat(look["path"])  # noqa: PTH116  pathlib is large.
    os._exit(0)


def _connected(look: Look) -> _socket.socket:
    """A connection to the first address that takes one."""
    # As bytes: for a text Python would load what it needs for names in other scripts.
    host = look["host"].encode()
    addresses = _socket.getaddrinfo(host, look["port"], 0, _socket.SOCK_STREAM)
    failed: OSError | None = None
    for family, kind, protocol, _, address in addresses:
        try:
            connection = _socket.socket(family, kind, protocol)
            connection.connect(address)
        except OSError as error:
            failed = error
        else:
            return connection
    raise failed or OSError("there is no such address")


def _secured(connection: _socket.socket, host: str) -> Any:
    import socket  # Only few are asked so.
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    plain = socket.socket(fileno=connection.detach())
    return context.wrap_socket(plain, server_hostname=host)


def _say(tell: int, what: str) -> None:
    with contextlib.suppress(OSError):
        os.write(tell, what.encode("utf-8", "replace")[:_MOST_SAID])


def _plain(line: str) -> str:
    """A line that a terminal can be shown, cut."""
    shown = "".join(one if one.isprintable() else " " for one in line)
    return " ".join(shown.split())[:_MOST_TOLD]


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, _SIGKILL)
    with contextlib.suppress(OSError):
        # It may have had no time to become a group of its own.
        os.kill(pid, _SIGKILL)
