"""A file system that never answers, as a mount of a file server that is gone."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def can_mount() -> bool:
    """Whether this process may mount one: it takes root, and FUSE in the kernel."""
    return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


@contextlib.contextmanager
def dead_file_system(place: Path) -> Iterator[Path]:
    """A directory in which every look, change of directory, read and start waits for ever.

    It is a FUSE mount whose server reads no request. Only a signal ends the wait, or the end of
    the context: then the kernel fails whatever still waits.
    """
    place.mkdir(parents=True, exist_ok=True)
    server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        options = f"fd={server},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if _libc.mount(b"dead", os.fsencode(place), b"fuse", 0, options) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(place))
        try:
            yield place
        finally:
            _libc.umount2(os.fsencode(place), _MNT_DETACH)
    finally:
        os.close(server)
