"""Log truncation: how long a log may be, and how its oldest part goes.

It is given back to the disk. That leaves a hole at the beginning and every offset as it is, so
readers go on undisturbed and no line is lost between a copy and a cut.
"""

from __future__ import annotations

import errno
import os

from interlock.private_files import open_private
from interlock.runtimes.keeper.kernel import punch_hole

#: How much of an attempt's output is kept, from its end.
KEPT_BYTES = 16 << 20
#: It may grow by this much more before the oldest part goes: a hole at a time, not at every write.
SLACK_BYTES = 1 << 20
_BLOCK = 4096


def first_byte(fd: int) -> int:
    """Where the output begins that was not given back."""
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:
        return 0


def give_back(fd: int, size: int, kept_bytes: int) -> int:
    """Give back all but the newest part of a log; returns where it then begins.

    Raises:
        OSError: Nothing was given back.
    """
    begins = max(0, size - kept_bytes) // _BLOCK * _BLOCK
    try:
        punch_hole(fd, begins)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # A file system without holes: bounded is better than whole.
        os.ftruncate(fd, 0)
        return 0
    return begins


def cut(log: str, kept_bytes: int = KEPT_BYTES) -> None:
    """Give back what is too much of a log that its task writes itself, as of older versions."""
    try:
        fd = open_private(log, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        size = os.fstat(fd).st_size
        if size - first_byte(fd) > kept_bytes + SLACK_BYTES:
            give_back(fd, size, kept_bytes)
    except OSError:
        # It is tried again with the next look.
        return
    finally:
        os.close(fd)
