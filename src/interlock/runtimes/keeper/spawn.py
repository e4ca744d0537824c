"""Starting one process: a new session, its output in a file, its mark on it.

The plain way is `posix_spawn`, which does not copy the keeper's memory map. Users, groups and
limits have to be set between fork and exec, so those tasks are forked; the keeper is small.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from interlock.resources.process import ProcessLimits
from interlock.resources.tasks import TaskOrder
from interlock.runtimes.keeper.environment import (
    NotStartedError,
    environment,
    find_program,
    limits_of,
)
from interlock.runtimes.keeper.kernel import wear_mark

#: Python ignores some signals; a task starts with every signal as the kernel has it.
_SIGNALS = [
    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
]
#: The machine is short of something that may come back.
_SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)


class ShortageError(Exception):
    """A task cannot be started now; it may work later."""


class Account(Struct, frozen=True):
    """As whom a task runs."""

    uid: int
    gid: int
    groups: tuple[int, ...]


def start(
    order: TaskOrder, serial: int, *, base: Mapping[str, str], working_dir: str, log: str
) -> int:
    """Start the process of an attempt and return its pid.

    Raises:
        NotStartedError: It cannot be started, and nothing runs.
        ShortageError: It cannot be started now, and nothing runs.
    """
    try:
        return _start(order, serial, base, _place(working_dir, order.working_dir), log)
    except OSError as error:
        if error.errno in _SHORTAGES:
            raise ShortageError(str(error)) from error
        raise NotStartedError(_explain(error, order)) from error
    except ValueError as error:
        raise NotStartedError(f"{order.command[0]!r} cannot be started: {error}") from error


def _start(
    order: TaskOrder, serial: int, base: Mapping[str, str], working_dir: str, log: str
) -> int:
    if not order.command:
        raise NotStartedError("the command is empty")
    _enter(working_dir)
    env = environment(order, base, working_dir)
    program = find_program(order.command[0], env, working_dir)
    plain = order.user is None and order.group is None and order.limits == ProcessLimits()
    account = None if plain else account_of(order.user, order.group)
    output = _open_log(log)
    given = _stdin(order.stdin)
    wear_mark(serial)
    try:
        if plain:
            return os.posix_spawn(
                program,
                order.command,
                env,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, given, 0),
                    (os.POSIX_SPAWN_DUP2, output, 1),
                    (os.POSIX_SPAWN_DUP2, output, 2),
                ],
                setsid=True,
                setsigmask=[],
                setsigdef=_SIGNALS,
            )
        limits = limits_of(order.limits)
        return _fork(program, order, env, (given, output), account, limits)
    finally:
        wear_mark(None)
        os.close(given)
        os.close(output)


def account_of(user: str | None, group: str | None) -> Account | None:
    """As whom to run; None when nothing was asked for.

    Raises:
        NotStartedError: There is no such user or group, or we may not become it.
    """
    if user is None and group is None:
        return None
    import grp  # Few tasks ask for it, and the keeper starts faster without.
    import pwd

    try:
        uid = (
            os.getuid()
            if user is None
            else int(user)
            if user.isdigit()
            else pwd.getpwnam(user).pw_uid
        )
        known = next((entry for entry in pwd.getpwall() if entry.pw_uid == uid), None)
        if group is not None:
            gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
        else:
            gid = known.pw_gid if known else uid
    except KeyError as error:
        raise NotStartedError(f"user {user!r}, group {group!r}: {error.args[0]}") from error
    if os.geteuid() != 0 and (uid, gid) != (os.getuid(), os.getgid()):
        raise NotStartedError(f"only a server that runs as root may use user {user!r}")
    groups = tuple(os.getgrouplist(known.pw_name, gid)) if known else (gid,)
    return Account(uid, gid, groups)


def _fork(
    program: str,
    order: TaskOrder,
    env: dict[str, str],
    descriptors: tuple[int, int],
    account: Account | None,
    limits: list[tuple[int, int]],
) -> int:
    failure_in, failure_out = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
        if pid == 0:
            _become(program, order, env, descriptors, account, limits, failure_out)
        os.close(failure_out)
        failure_out = -1
        told = os.read(failure_in, 4096)
    finally:
        os.close(failure_in)
        if failure_out >= 0:
            os.close(failure_out)
    if told:
        os.waitpid(pid, 0)
        code, _, what = told.decode().partition(" ")
        raise OSError(int(code), os.strerror(int(code)), what)
    return pid


def _become(
    program: str,
    order: TaskOrder,
    env: dict[str, str],
    descriptors: tuple[int, int],
    account: Account | None,
    limits: list[tuple[int, int]],
    failure_out: int,
) -> None:
    """Turn the forked child into the task, or say why not; it never returns."""
    what = "setsid"
    try:
        os.setsid()
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_DFL:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(descriptors[0], 0)
        os.dup2(descriptors[1], 1)
        os.dup2(descriptors[1], 2)
        what = "limits"
        for which, amount in limits:
            resource.setrlimit(which, (amount, amount))
        if order.limits.nice is not None:
            os.nice(order.limits.nice)
        what = "user"
        if account is not None and os.geteuid() == 0:
            os.setgroups(account.groups)
            os.setgid(account.gid)
            os.setuid(account.uid)
        what = "exec"
        os.execve(program, order.command, env)
    except OSError as error:
        os.write(failure_out, f"{error.errno} {what}".encode())
    except BaseException as error:
        os.write(failure_out, f"{errno.EINVAL} {what}: {error}".encode())
    finally:
        os._exit(127)


def _place(default: str, given: str | None) -> str:
    return default if given is None else str(Path(default, given))


def _enter(working_dir: str) -> None:
    """Make it the directory that the next child inherits."""
    try:
        os.chdir(working_dir)
    except OSError as error:
        raise NotStartedError(f"workingDir: {working_dir}: {os.strerror(error.errno or 0)}") from (
            error
        )


def _open_log(log: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(log, flags, 0o600)
    except FileNotFoundError:
        Path(log).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(log, flags, 0o600)


def _stdin(text: str | None) -> int:
    if text is None:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    os.write(fd, text.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _explain(error: OSError, order: TaskOrder) -> str:
    what = f" ({error.filename})" if error.filename in ("limits", "user", "setsid") else ""
    return f"{order.command[0]}{what}: {os.strerror(error.errno or 0)}"
