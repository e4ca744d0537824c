"""The file with what an attempt printed, and the pipe beside it."""

from __future__ import annotations

import errno
import os
import stat

from interlock.private_files import open_private


def log_path(place: str, name: str) -> str:
    """The file with what an attempt printed, by the name of the attempt."""
    return f"{place}/logs/{name}.log"


def pipe_path(log: str) -> str:
    """The pipe into which an attempt prints; when it is over, the pipe of a silent one stays."""
    return log.removesuffix(".log") + ".pipe"


def open_log(log: str) -> int:
    """Open a log for writing, made if it is missing.

    Raises:
        OSError: It cannot be opened, or something else was put in its place.
    """
    # Without waiting, as somebody may have put a pipe there that nobody reads.
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK
    try:
        fd = open_private(log, flags)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(log), 0o700, exist_ok=True)  # noqa: PTH103, PTH120
        fd = open_private(log, flags)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.ENXIO, "it is not a plain file")
    return fd
