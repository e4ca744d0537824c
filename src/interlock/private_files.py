"""File ownership: which directories and files are believed, and how our own are opened.

Whoever can write in a data directory has commands run as the user of its server, and whoever
writes a `server.json` chooses to whom a token is sent. So neither is used unless it belongs to the
caller or to root, and nobody else can write in it or put another one in its place.
"""

from __future__ import annotations

import os
import stat

#: Further than this no chain of symbolic links is followed; the kernel's own limit.
_MOST_LINKS = 40
#: What is ours in a data directory begins so.
_OURS = ("interlock.db", "keeper.", "logger.", "server.json", "server.log", "server.new", "logs")


class NotPrivateError(Exception):
    """A directory or file that others could have prepared; the message says why."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def own_users() -> frozenset[int]:
    """The users whose files and connections are our own: ours and root's.

    In a user namespace all users from outside look alike, so that one is nobody's.
    """
    users = {os.geteuid(), 0}
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:  # noqa: PTH123 - pathlib is slow to import
            maps_everybody = file.read().split() == ["0", "0", "4294967295"]
        if not maps_everybody:
            with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:  # noqa: PTH123
                users.discard(int(file.read()))
    except (OSError, ValueError):
        pass
    return frozenset(users)


def user_name(uid: int) -> str:
    """What people call a user; `uid:1234` for one without a name."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return f"uid:{uid}"


def check_directory(path: str | os.PathLike[str]) -> None:
    """Make sure that a data directory is the caller's own; one that does not exist yet is.

    It belongs to the caller or root, and only they can write in it. The directories above it, and
    the links that lead to it, belong to them too, so that nobody can exchange it; there, sticky
    directories are fine (`/tmp`), and so are groups that the caller is in.

    Raises:
        NotPrivateError: It is not.
        OSError: It cannot be looked at.
    """
    place = _walk(os.fspath(path))
    if place is None:
        return
    found = os.lstat(place)
    if not stat.S_ISDIR(found.st_mode):
        raise NotPrivateError(f"{path} is not a directory", "use one that is")
    mine = own_users()
    if found.st_uid not in mine:
        raise _belongs(path, found.st_uid)
    if found.st_mode & 0o022:
        raise NotPrivateError(
            f"{path} is not used: others can write in it (its mode is {_mode(found)})",
            f"if all that is in it is yours: chmod go-w {path}",
        )
    _check_entries(place, mine)


def _walk(path: str) -> str | None:
    """Go to a directory as the kernel does, and look at all that could lead elsewhere.

    Returns its plain path, or None when there is no such directory yet.
    """
    above = own_users() | {os.stat("/").st_uid}  # noqa: PTH116 - pathlib is slow to import
    place, links = "/", 0
    left = os.path.join(os.getcwd(), path).split("/")[::-1]  # noqa: PTH109, PTH118
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            place = os.path.dirname(place)  # noqa: PTH120
            continue
        _check_above(place, path)
        step = f"{place.rstrip('/')}/{name}"
        try:
            found = os.lstat(step)
        except FileNotFoundError:
            return None
        if found.st_uid not in above:
            raise _belongs(step, found.st_uid)
        if not stat.S_ISLNK(found.st_mode):
            place = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise NotPrivateError(
                f"{path} leads round in a ring of links", "use a directory of its own"
            )
        target = os.readlink(step)  # noqa: PTH115
        place = "/" if target.startswith("/") else place
        left += target.split("/")[::-1]
    return place


def _check_above(place: str, path: str) -> None:
    """A directory on the way must not let others exchange what is in it."""
    found = os.lstat(place)
    if found.st_mode & stat.S_ISVTX:
        return
    by_all = found.st_mode & stat.S_IWOTH
    by_group = found.st_mode & stat.S_IWGRP
    if by_all or (by_group and found.st_gid not in {os.getegid(), *os.getgroups()}):
        who = "everybody" if by_all else f"the group {found.st_gid}, which you are not in,"
        raise NotPrivateError(
            f"{path} is not used: {who} can write in {place} (its mode is {_mode(found)})",
            f"chmod go-w {place}, or use a directory elsewhere",
        )


def _check_entries(place: str, mine: frozenset[int]) -> None:
    """What is in it was put there by its owner, also when it was open to others once."""
    with os.scandir(place) as entries:
        for entry in entries:
            if not entry.name.startswith(_OURS):
                continue
            try:
                owner = entry.stat(follow_symlinks=False).st_uid
            except FileNotFoundError:  # A running server has just replaced it.
                continue
            if owner not in mine:
                raise _belongs(entry.path, owner)


def _belongs(path: str | os.PathLike[str], uid: int) -> NotPrivateError:
    return NotPrivateError(
        f"{os.fspath(path)} is not used: it belongs to {user_name(uid)}, "
        f"and you are {user_name(os.geteuid())}",
        f"use one of your own, or run this as {user_name(uid)}",
    )


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):o}"


def make_directory(path: str | os.PathLike[str]) -> None:
    """A data directory of the caller's own, made when there is none.

    Raises:
        NotPrivateError: What is there is not the caller's own.
        OSError: It cannot be made or looked at.
    """
    check_directory(path)
    above = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    missing = []
    while not os.path.isdir(above):  # noqa: PTH112
        missing.append(above)
        above = os.path.dirname(above)  # noqa: PTH120
    for directory in reversed(missing):
        os.mkdir(directory, 0o755)  # noqa: PTH102
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102
    except FileExistsError:
        # Perhaps somebody else was quicker.
        check_directory(path)


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file in a data directory, for its owner alone; a link there leads nowhere.

    Raises:
        OSError: It cannot be opened, or is a symbolic link.
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def read_private(path: str) -> bytes:
    """What a file says that only the caller or root can have written.

    Raises:
        NotPrivateError: Others can have written it.
        OSError: It cannot be read, or is a symbolic link.
    """
    fd = open_private(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if found.st_uid not in own_users():
            raise _belongs(path, found.st_uid)
        if found.st_mode & 0o022 or not stat.S_ISREG(found.st_mode):
            raise NotPrivateError(
                f"{path} is not believed: others can write it (its mode is {_mode(found)})",
                f"if it is yours: chmod 600 {path}",
            )
        return file.read()


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """What a file of secrets says, which nobody but the caller and root may know.

    A file of root's may be readable for a group: that is how secrets are handed to a service.

    Raises:
        NotPrivateError: Others can read or write it.
        OSError: It cannot be read.
    """
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
        found = os.fstat(file.fileno())
        if stat.S_ISREG(found.st_mode):
            _check_secret(path, found)
        return file.read()


def token_lines(data: bytes) -> list[tuple[str, bytes]]:
    """The tokens of a file, one a line: NAME:TOKEN, or TOKEN alone, which has no name.

    Blank lines and lines with # at their start are left out. No token of HTTP has a colon in it.
    """
    lines = [line.strip() for line in data.splitlines()]
    found = []
    for line in lines:
        if line and not line.startswith(b"#"):
            name, colon, token = line.rpartition(b":")
            found.append((name.strip().decode("utf-8", "replace") if colon else "", token.strip()))
    return found


def _check_secret(path: str | os.PathLike[str], found: os.stat_result) -> None:
    me = os.geteuid()
    if found.st_uid not in own_users():
        raise NotPrivateError(
            f"{path} is no secret: it belongs to {user_name(found.st_uid)}",
            f"make it yours: chown {user_name(me)} {path} && chmod 600 {path}",
        )
    handed_over = found.st_uid != me
    if found.st_mode & (0o037 if handed_over else 0o077):
        raise NotPrivateError(
            f"{path} is no secret: others can read or write it (its mode is {_mode(found)})",
            "have it mounted with defaultMode: 0440, or its owner: chmod 640"
            if handed_over
            else f"chmod 600 {path}",
        )
