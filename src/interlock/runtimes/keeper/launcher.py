"""The launcher: a small process (a zygote) that forks each task, so that the keeper waits for none.

The keeper hands over what is to be started, and the end of a pipe. The launcher does nothing with
it but fork, so nothing can hold it up. The child is the keeper's, and from its first instant wears
the mark of its task and is in its cgroup, where there are any. It then looks up all that the
definition names: its directory, its user, its files of variables, its program. Whatever of that
hangs hangs that child alone.

On the pipe the child tells its process id, what it is about to look at, and why it failed. The
kernel closes the pipe when the program begins: that is how the keeper learns of the start. The
launcher holds the keeper's lock too: while it can still fork, no other keeper begins to look for
what runs. It is its own program with few imports, as forking costs by the size of the memory.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import gc
import marshal
import os
import resource
import struct

from interlock.runtimes.keeper.environment import (
    TASK_VARIABLE,
    NotStartedError,
    account_of,
    find_program,
    limits_of,
    make_room,
    read_env_file,
    set_limits,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Loading `typing` would cost every fork more than all the rest of this file.
    from typing import NoReturn, TypedDict

    class Start(TypedDict):
        """All that is needed to start one attempt, in types that `marshal` knows."""

        task: str
        pipe: str
        umask: int
        #: What the server gives to all its tasks.
        base_env: dict[str, str]
        working_dir: str
        command: tuple[str, ...]
        env: dict[str, str]
        #: Paths, and whether each may be missing.
        env_files: tuple[tuple[str, bool], ...]
        stdin: str | None
        user: str | None
        group: str | None
        cpu_time_s: float | None
        memory: str | None
        open_files: int | None
        nice: int | None


#: What goes through the socket itself; a longer order comes in a file without a name.
MOST_INLINE = 16 << 10
#: The process id of the child, or the negative number of the error that kept it from being forked.
HEAD = struct.Struct("<i")
SERIAL = struct.Struct("<Q")
_FD = struct.Struct("=i")
#: What a child tells begins with one of these: what it does, why it failed for good or for now.
DOES, FAILED, SHORT = b"?", b"!", b"~"
#: The machine is short of something that may come back.
SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)
#: The number of the limit, which `resource` does not name.
_RLIMIT_LOCKS = 10
_CLONE_PARENT, _CLONE_INTO_CGROUP = 0x8000, 0x2_0000_0000
_SIGINT, _SIGPIPE, _SIGCHLD, _SIGXFSZ = 2, 13, 17, 25
#: The number of the system call `clone`, for which there is no function that forks. Machines that
#: are not here have had the same one since there is a common table.
_CLONE = {"x86_64": 56, "i686": 120, "armv7l": 120, "ppc64le": 120}.get(os.uname().machine, 220)
_CLONE3 = 435
_CLONE3_ARGUMENTS = struct.Struct("=11Q")
_libc = ctypes.CDLL(None, use_errno=True)
#: How much is told at most in one word, and of how many files: the pipe must not become full.
_MOST_TOLD = 3000
_FILES_TOLD = 10


def serve(keeper: int, lock: int, cgroups: str = "") -> None:
    """Fork whatever comes through the socket, until the keeper is gone.

    `cgroups` is the directory in which each task gets a cgroup of its own, if it gets any.
    """
    for number in (_SIGINT, _SIGPIPE, _SIGXFSZ):
        # Python ignores or catches them; a task starts with every signal as the kernel has it.
        _libc.signal(number, None)
    # What is never looked at again need not be copied for every child.
    gc.freeze()
    gc.disable()
    door = _socket.socket(fileno=keeper)
    while True:
        data, given = _receive(door)
        if not data:
            return
        cgroup = _make_cgroup(cgroups, data) if cgroups else -1
        _launch(data, given, (keeper, lock), cgroup)
        if cgroup >= 0:
            os.close(cgroup)
        for fd in given:
            os.close(fd)


def _receive(door: _socket.socket) -> tuple[bytes, list[int]]:
    data, ancillary, _, _ = door.recvmsg(
        SERIAL.size + MOST_INLINE, _socket.CMSG_SPACE(2 * _FD.size), _socket.MSG_CMSG_CLOEXEC
    )
    return data, [fd for _, _, given in ancillary for (fd,) in _FD.iter_unpack(given)]


def _make_cgroup(place: str, data: bytes) -> int:
    """The cgroup of a task, made unless it was tried before; -1 when it cannot be."""
    (serial,) = SERIAL.unpack_from(data)
    path = f"{place}/{serial:x}"
    try:
        os.mkdir(path)  # noqa: PTH102  pathlib is large.
    except FileExistsError:
        pass
    except OSError:
        # Too many of them, or they are gone: the mark is enough for all that do not take it off.
        return -1
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1


def _launch(data: bytes, given: list[int], inherited: tuple[int, int], cgroup: int) -> None:
    tell = given[0]
    (serial,) = SERIAL.unpack_from(data)
    wear_mark(serial)
    try:
        pid = _fork(cgroup)
    except OSError as error:
        os.write(tell, HEAD.pack(-(error.errno or errno.EAGAIN)))
        pid = -1
    if pid == 0:
        become(tell, data[SERIAL.size :], given[1:], inherited)
    wear_mark(None)


def _fork(cgroup: int) -> int:
    """Fork a child into a cgroup, or have it enter by itself where the kernel is too old."""
    if cgroup >= 0:
        try:
            return fork_sibling(cgroup)
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
    pid = fork_sibling()
    if pid == 0 and cgroup >= 0:
        _enter_cgroup(cgroup)
    return pid


def _enter_cgroup(cgroup: int) -> None:
    try:
        procs = os.open("cgroup.procs", os.O_WRONLY | os.O_CLOEXEC, dir_fd=cgroup)
        os.write(procs, b"0")
        os.close(procs)
    except OSError:
        # The mark is enough for all that do not take it off.
        return


def fork_sibling(cgroup: int = -1) -> int:
    """Fork a child of our parent; 0 in the child. Only for a process with a single thread.

    Into a cgroup at once: moving a process later waits for all processors.

    Raises:
        OSError: There is no room for another process, or this kernel cannot.
    """
    if cgroup < 0:
        pid = int(_libc.syscall(_CLONE, _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0))
    else:
        # A sibling has the signal of its elder at its end, and must not name one.
        flags = _CLONE_PARENT | _CLONE_INTO_CGROUP
        arguments = _CLONE3_ARGUMENTS.pack(flags, *[0] * 9, cgroup)
        pid = int(_libc.syscall(_CLONE3, arguments, len(arguments)))
    if pid < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return pid


def wear_mark(serial: int | None) -> None:
    """Put a mark on this process, which the next child inherits; None takes it off."""
    _, hard = resource.getrlimit(_RLIMIT_LOCKS)
    if serial is None or (hard != resource.RLIM_INFINITY and serial > hard):
        serial = hard
    resource.setrlimit(_RLIMIT_LOCKS, (serial, hard))


def become(tell: int, data: bytes, big: list[int], inherited: tuple[int, int]) -> NoReturn:
    """Turn this process into the task, or tell why not; it never returns."""
    name = ""
    try:
        for fd in inherited:
            # Above all the lock: one that hangs here must not keep the next keeper out.
            os.close(fd)
        os.write(tell, HEAD.pack(os.getpid()))
        start: Start = marshal.loads(_whole(big[0]) if big else data)
        name = start["command"][0] if start["command"] else ""
        _become(start, tell)
    except NotStartedError as error:
        _tell(tell, FAILED + str(error).encode("utf-8", "replace"))
    except OSError as error:
        kind = SHORT if error.errno in SHORTAGES else FAILED
        _tell(tell, kind + _explain(error, name).encode("utf-8", "replace"))
    except BaseException as error:
        _tell(tell, FAILED + f"{name!r} cannot be started: {error}".encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _become(start: Start, tell: int) -> None:
    os.setsid()
    if not start["command"]:
        raise NotStartedError("the command is empty")
    output = open_pipe(start["pipe"])
    os.dup2(_stdin(start["stdin"]), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    limits = limits_of(start["cpu_time_s"], start["memory"], start["open_files"])
    make_room(limits)
    if start["nice"] is not None:
        os.nice(start["nice"])
    enter(start["working_dir"])
    _take_account(start, output, tell)
    os.umask(start["umask"])
    env = environment_of(start, tell)
    program = find_program(start["command"][0], env, start["working_dir"])
    set_limits(limits)
    os.execve(program, start["command"], env)


def _take_account(start: Start, output: int, tell: int) -> None:
    user, group = start["user"], start["group"]
    if user is None and group is None:
        return
    _tell(tell, DOES + f"user {user!r}, group {group!r}".encode("utf-8", "replace"))
    become_account(user, group, output)
    _tell(tell, DOES)


def become_account(user: str | None, group: str | None, output: int = -1) -> None:
    """Become whom a definition names; who stays who they are need not be asked for.

    Raises:
        NotStartedError: That cannot be.
    """
    if user is None and group is None:
        return
    account = account_of(user, group)
    if account is None or os.geteuid() != 0:
        return
    uid, gid, groups = account
    try:
        os.setgroups(groups)
        os.setgid(gid)
        if output >= 0:
            _share(output, gid)
        os.setuid(uid)
    except OSError as error:
        if error.errno in SHORTAGES:
            raise
        told = os.strerror(error.errno or 0)
        raise NotStartedError(f"user {user!r}, group {group!r}: {told}") from error


def _share(output: int, gid: int) -> None:
    """Let a group open its own output by name: /dev/stdout and /dev/stderr are such names.

    It stays the server's, which may be a root without the right to read the files of others. And a
    member of the group needs no right to give it away, so this comes after we have become one.
    """
    try:
        os.fchown(output, -1, gid)
        os.fchmod(output, 0o660)
    except OSError:
        # A file system without groups: all but those names works.
        return


def environment_of(start: Start, tell: int = -1) -> dict[str, str]:
    """The variables of a task: the server's, then its files', then its own."""
    env = start["base_env"]
    for number, (file, optional) in enumerate(start["env_files"]):
        path = os.path.join(start["working_dir"], file)  # noqa: PTH118  pathlib is large.
        if number < _FILES_TOLD:
            _tell(tell, DOES + f"envFrom: {path}".encode("utf-8", "replace"))
        env.update(read_env_file(path, optional=optional))
    if start["env_files"]:
        _tell(tell, DOES)
    env.update(start["env"])
    env[TASK_VARIABLE] = start["task"]
    return env


def enter(working_dir: str) -> None:
    """Go to the working directory of a task.

    Raises:
        NotStartedError: That cannot be.
    """
    try:
        os.chdir(working_dir)
    except OSError as error:
        told = os.strerror(error.errno or 0)
        raise NotStartedError(f"workingDir: {working_dir}: {told}") from error


def open_pipe(path: str) -> int:
    """The pipe that a task prints into, for reading too.

    So there is always a reader, and it is never ended by a signal for want of one.
    """
    # A link that was planted there leads nowhere.
    return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)


def _stdin(text: str | None) -> int:
    if text is None:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    data = memoryview(text.encode())
    while data:
        data = data[os.write(fd, data) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _whole(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def _tell(tell: int, what: bytes) -> None:
    """Each word ends with a zero; together they are less than a pipe takes without waiting."""
    if tell >= 0:
        os.write(tell, what.replace(b"\0", b" ")[:_MOST_TOLD] + b"\0")


def _explain(error: OSError, name: str) -> str:
    if error.errno == errno.E2BIG:
        return (
            f"{name}: its arguments and variables are too long: the kernel takes 131071 bytes "
            "for one, and a quarter of the limit of the stack (mostly 2 MiB) for all"
        )
    return f"{name}: {os.strerror(error.errno or 0)}"
