"""The environment of a task: its variables, its program, its limits, its user.

All of it is looked up in the process that becomes the task: files, directories and accounts that a
definition names may be slow, endless or on a machine that is gone. Nothing here but the standard
library is imported, so that the launcher stays small.
"""

from __future__ import annotations

import os
import resource
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Tells a process which attempt it belongs to, and the keeper whose an orphan is.
TASK_VARIABLE = "INTERLOCK_TASK_ID"
#: The longest file of variables; a whole environment that the kernel takes is not much larger.
MOST_ENV_BYTES = 1 << 20

_UNITS = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
}
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotStartedError(Exception):
    """A task cannot be started, however often it is tried."""


def read_env_file(path: str, *, optional: bool) -> dict[str, str]:
    """The NAME=value lines of a file; empty lines and those with # are skipped.

    Raises:
        NotStartedError: The file is missing, is none, or has a line that is neither.
    """
    try:
        text = _read_text(path)
    except FileNotFoundError as error:
        if optional:
            return {}
        raise NotStartedError(f"envFrom: {path}: no such file") from error
    except OSError as error:
        raise NotStartedError(f"envFrom: {path}: {os.strerror(error.errno or 0)}") from error
    except UnicodeDecodeError as error:
        raise NotStartedError(f"envFrom: {path} is no text in UTF-8") from error
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip().removeprefix("export ")
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name.replace("_", "a").isalnum() or "\0" in value:
            raise NotStartedError(f"envFrom: {path}, line {number}: expected NAME=value")
        found[name] = _unquoted(value.strip())
    return found


def _read_text(path: str) -> str:
    # Not blocking: a pipe that nobody writes to is opened at once, and then refused.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        kind = stat.S_IFMT(os.fstat(fd).st_mode)
        if kind != stat.S_IFREG:
            what = _KINDS.get(kind, "something else")
            raise NotStartedError(f"envFrom: {path} is {what}, and no regular file")
        parts, left = [], MOST_ENV_BYTES + 1
        while left and (part := os.read(fd, left)):
            parts.append(part)
            left -= len(part)
        if not left:
            most = f"{MOST_ENV_BYTES >> 20} MiB"
            raise NotStartedError(f"envFrom: {path} is larger than {most}")
        return b"".join(parts).decode("utf-8")
    finally:
        os.close(fd)


def find_program(name: str, env: Mapping[str, str], working_dir: str) -> str:
    """Where the program is: as given with a slash in it, else on the task's own PATH.

    Raises:
        NotStartedError: There is no such program, or it cannot be executed.
    """
    if "/" in name:
        return name
    for place in env.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(working_dir, place, name)  # noqa: PTH118  On the path of every start.
        if os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112
            return path
    raise NotStartedError(f"{name}: no such program on the PATH of the task")


def limits_of(
    cpu_time_s: float | None, memory: str | None, open_files: int | None
) -> list[tuple[int, int]]:
    """The kernel's limits for a task: which, and how much.

    Raises:
        NotStartedError: A quantity is none.
    """
    found: list[tuple[int, int]] = []
    if cpu_time_s is not None:
        found.append((resource.RLIMIT_CPU, max(1, round(cpu_time_s))))
    if memory is not None:
        found.append((resource.RLIMIT_AS, bytes_of(memory)))
    if open_files is not None:
        found.append((resource.RLIMIT_NOFILE, open_files))
    return found


def make_room(limits: Iterable[tuple[int, int]]) -> None:
    """Raise what may be used to as much as is asked for, while we may still do that."""
    for which, amount in limits:
        soft, hard = resource.getrlimit(which)
        if hard != resource.RLIM_INFINITY and amount > hard:
            _limit(which, soft, amount)


def set_limits(limits: Iterable[tuple[int, int]]) -> None:
    """Have the kernel enforce them: from here on there may be no room for anything but exec."""
    for which, amount in limits:
        _limit(which, amount, amount)


def _limit(which: int, soft: int, hard: int) -> None:
    try:
        resource.setrlimit(which, (soft, hard))
    except (OSError, ValueError) as error:
        message = f"limits: {hard} is more than the server itself may use, or is no amount"
        raise NotStartedError(message) from error


def bytes_of(quantity: str) -> int:
    """A quantity such as "512Mi", "2Gi" or "1G" as a number of bytes.

    Raises:
        NotStartedError: It is none.
    """
    number = quantity.rstrip("kKMGTi")
    unit = _UNITS.get(quantity[len(number) :])
    try:
        if unit is None:
            raise ValueError(quantity)
        return int(float(number) * unit)
    except (ValueError, OverflowError) as error:
        message = f'limits.memory: {quantity!r} is no quantity such as "512Mi"'
        raise NotStartedError(message) from error


def account_of(user: str | None, group: str | None) -> tuple[int, int, list[int]] | None:
    """As whom to run: user, group and further groups; None when nothing was asked for.

    Raises:
        NotStartedError: There is no such user or group, or we may not become it.
    """
    if user is None and group is None:
        return None
    import grp  # Few tasks ask for it.
    import pwd

    def entry_of(uid: int) -> pwd.struct_passwd | None:
        try:
            return pwd.getpwuid(uid)
        except KeyError:
            return None

    try:
        uid = (
            os.getuid()
            if user is None
            else int(user)
            if user.isdigit()
            else pwd.getpwnam(user).pw_uid
        )
        known = entry_of(uid)
        if group is not None:
            gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
        else:
            gid = known.pw_gid if known else uid
    except KeyError as error:
        raise NotStartedError(f"user {user!r}, group {group!r}: {error.args[0]}") from error
    if os.geteuid() != 0 and (uid, gid) != (os.getuid(), os.getgid()):
        raise NotStartedError(f"only a server that runs as root may use user {user!r}")
    return uid, gid, os.getgrouplist(known.pw_name, gid) if known else [gid]


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
