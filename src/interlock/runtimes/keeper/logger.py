"""The logger: a small process that moves what tasks print from their pipes into bounded files.

It is the only writer of those files, and makes room before it writes: none ever takes more of the
disk than it may, however fast a task prints and whatever becomes of the keeper. It does nothing
else, so that nothing holds it up, and takes a bounded part of each pipe in turn.

Nothing is lost with it. What it moves never leaves the kernel (`splice`): it is in the pipe until
it is in the file. So it may be killed at any moment, and whoever needs another one just starts it:
the new one kills the old one. It outlives its keeper, and ends when the keeper is gone and so is
every task.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import marshal
import os
import resource
import select
import signal
import socket
import struct
import termios

from interlock.private_files import open_private
from interlock.runtimes.keeper.log_cut import KEPT_BYTES, SLACK_BYTES, first_byte, give_back
from interlock.runtimes.keeper.log_file import log_path, open_log, pipe_path

LOCK_NAME = "logger.lock"
#: So much of a pipe is moved at once.
CHUNK = 256 << 10
#: So many pipes come with one packet; the kernel takes 253.
MOST_PIPES = 64
#: What a packet takes at most.
PACKET = 64 << 10
NUMBER = struct.Struct("<Q")
_FLOCK = struct.Struct("hhqqi4x")
_INT = struct.Struct("i")
_KILL_AGAIN_S = 1.0


class Channel:
    """A pipe and the log it goes to."""

    def __init__(self, pipe: int, log: str) -> None:
        self.pipe = pipe
        self.log = log
        #: Where the output begins in the file; below 0 before that is known.
        self._begins = -1
        #: How much could not be written, since when there is no mark of it, and why.
        self._lost = 0
        self._why = ""

    def move(self) -> int:
        """Move a part of what is in the pipe; returns how much left it, 0 when it is empty.

        What cannot be written, to a disk that is full say, is dropped: a task must not hang for it.
        """
        try:
            fd = open_log(self.log)
        except OSError as error:
            return self._drop(error)
        try:
            return self._move(fd)
        except OSError as error:
            return self._drop(error)
        finally:
            os.close(fd)

    def drain(self) -> None:
        """Move all that is in the pipe now; what comes meanwhile is not waited for."""
        left = unread(self.pipe)
        while left > 0 and (moved := self.move()):
            left -= moved
        if self._lost:
            # For its mark: there may be room for it by now.
            self.move()

    def _move(self, fd: int) -> int:
        size = self._make_room(fd, os.fstat(fd).st_size)
        if self._lost:
            mark = f"\n[{self._lost} bytes of the output are missing here: {self._why}]\n"
            size += os.pwrite(fd, mark.encode(), size)
            self._lost = 0
        try:
            return os.splice(self.pipe, fd, CHUNK, offset_dst=size, flags=os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            # A file system that cannot take it from a pipe.
            return self.copy(fd, size)

    def copy(self, fd: int, at: int) -> int:
        """As `move`, through our own memory: what is there is lost when we are killed."""
        if not unread(self.pipe):
            return 0
        if at == 0:
            # Before it leaves the pipe: the keeper takes an empty file for that of a silent task.
            os.ftruncate(fd, 1)
        try:
            data = os.read(self.pipe, CHUNK)
        except BlockingIOError:
            return 0
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(fd, view, at)
                at += written
                view = view[written:]
        except OSError as error:
            self._lose(len(view), error)
        return len(data)

    def _make_room(self, fd: int, size: int) -> int:
        """Have room for one more part; returns where it goes."""
        if not 0 <= self._begins <= size:
            # It is new to us, or somebody cut it.
            self._begins = first_byte(fd)
        if size - self._begins + 2 * CHUNK > KEPT_BYTES + SLACK_BYTES:
            self._begins = give_back(fd, size, KEPT_BYTES)
            size = os.fstat(fd).st_size
        return size

    def _drop(self, error: OSError) -> int:
        try:
            dropped = len(os.read(self.pipe, CHUNK))
        except BlockingIOError:
            return 0
        self._lose(dropped, error)
        return dropped

    def _lose(self, count: int, error: OSError) -> None:
        self._lost += count
        self._why = os.strerror(error.errno or 0)


class Logger:
    """Moves what tasks print, as the keeper tells it."""

    def __init__(self, door: socket.socket, place: str) -> None:
        self._place = place
        self._door: socket.socket | None = door
        self._poll = select.epoll()
        self._poll.register(door.fileno(), select.EPOLLIN)
        self._channels: dict[int, Channel] = {}
        #: The pipe of each attempt, by the number that the keeper gave it.
        self._pipes: dict[int, int] = {}
        #: What the keeper was not told yet: which attempts are wholly in their files.
        self._untold = b""

    def run(self) -> None:
        """Serve until the keeper is gone, and then until nobody can print any more."""
        while self._door is not None or self._channels:
            self.turn()

    def turn(self) -> None:
        """Wait for something, and move a part of each pipe that has something in it."""
        for fd, what in self._poll.poll():
            if fd in self._channels:
                self._look(fd, what)
            elif self._door is not None and fd == self._door.fileno():
                self._serve(self._door, what)

    def _look(self, fd: int, what: int) -> None:
        if not self._channels[fd].move() and what & select.EPOLLHUP:
            self._close(fd)

    def _serve(self, door: socket.socket, what: int) -> None:
        if what & ~select.EPOLLOUT:
            try:
                data, given, _, _ = socket.recv_fds(door, PACKET, MOST_PIPES)
            except (BlockingIOError, ConnectionResetError):
                # It is gone and left an answer unread. What it said before comes next.
                return
            if not data:
                self._lost_keeper(door)
                return
            self._take(data, given)
        self._tell(door)

    def _take(self, data: bytes, given: list[int]) -> None:
        adds, ends, drops = marshal.loads(data)
        for (number, name), fd in zip(adds, given, strict=True):
            self._add(number, name, fd)
        for number in drops:
            self._drop(number)
        for number in ends:
            self._end(number)
        self._untold += b"".join(map(NUMBER.pack, ends))

    def _tell(self, door: socket.socket) -> None:
        """Tell the keeper what it asked for. One that stands still is not waited for."""
        is_full = False
        while self._untold and not is_full:
            try:
                door.send(self._untold[:PACKET])
                self._untold = self._untold[PACKET:]
            except BlockingIOError:
                is_full = True
            except OSError:
                # It is gone, and what it said before is yet to be heard.
                self._untold = b""
        wanted = select.EPOLLIN | (select.EPOLLOUT if is_full else 0)
        self._poll.modify(door.fileno(), wanted)

    def _add(self, number: int, name: str, fd: int) -> None:
        self._pipes[number] = fd
        self._channels[fd] = Channel(fd, log_path(self._place, name))
        self._poll.register(fd, select.EPOLLIN)

    def _end(self, number: int) -> None:
        """All that an attempt printed is in its file when this returns, and its pipe is gone."""
        fd = self._pipes.get(number, -1)
        if fd < 0:
            return
        channel = self._channels[fd]
        channel.drain()
        self._drop(number)
        # One of the two stays, to tell that the attempt was started.
        if os.access(channel.log, os.F_OK):
            with contextlib.suppress(OSError):
                os.unlink(pipe_path(channel.log))  # noqa: PTH108  pathlib is slow.

    def _drop(self, number: int) -> None:
        fd = self._pipes.pop(number, -1)
        if fd >= 0:
            self._close(fd)

    def _close(self, fd: int) -> None:
        del self._channels[fd]
        # The keeper has the same pipe open: closing it alone does not take it out of the poll.
        self._poll.unregister(fd)
        os.close(fd)

    def _lost_keeper(self, door: socket.socket) -> None:
        """Go on without it. Its end of each pipe must not be ours: else none is ever over."""
        self._poll.unregister(door.fileno())
        door.close()
        self._door = None
        self._pipes.clear()
        for fd, channel in list(self._channels.items()):
            del self._channels[fd]
            self._poll.unregister(fd)
            with contextlib.suppress(OSError):
                reader = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                channel.pipe = reader
                self._channels[reader] = channel
                self._poll.register(reader, select.EPOLLIN)
            os.close(fd)


def serve(door: int, place: str) -> None:
    """Be the logger of a data directory, in the place of any that there is."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
        _, hard = resource.getrlimit(limit)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (hard, hard))
    take_lock(place)
    keeper = socket.socket(fileno=door)
    keeper.setblocking(False)
    Logger(keeper, place).run()


def take_lock(place: str) -> int:
    """Become the only logger of a data directory, by killing whoever is.

    It is a lock of which the kernel itself tells who has it: a number in a file may be an old one.
    """
    lock = open_private(f"{place}/{LOCK_NAME}", os.O_RDWR | os.O_CREAT)
    while True:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            _kill_holder(lock)
        else:
            return lock


def holder_of(lock: int) -> int:
    """The process that has a lock; 0 when nobody has, or nobody that we can see."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(lock, fcntl.F_GETLK, asked))
    return 0 if kind == fcntl.F_UNLCK else max(0, pid)


def _kill_holder(lock: int) -> None:
    pid = holder_of(lock)
    try:
        holder = os.pidfd_open(pid) if pid else -1
    except OSError:
        return
    if holder < 0:
        select.select([], [], [], _KILL_AGAIN_S)
        return
    try:
        # Still: so it had the lock while we opened it, and the number was not given to another.
        if holder_of(lock) == pid:
            signal.pidfd_send_signal(holder, signal.SIGKILL)
            select.select([holder], [], [], _KILL_AGAIN_S)
    except OSError:
        return
    finally:
        os.close(holder)


def unread(pipe: int) -> int:
    """How many bytes are in a pipe."""
    (count,) = _INT.unpack(fcntl.ioctl(pipe, termios.FIONREAD, _INT.pack(0)))
    return int(count)
