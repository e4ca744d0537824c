"""Which ports may a cluster have, that nobody takes before its programs do?"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO

_FIRST, _LAST = 20000, 32767


class Ports:
    """Reserves ports until it is closed.

    A port that the kernel picked (port 0) may be picked again for somebody else before a program
    binds it, or while that program restarts. So these lie below the range the kernel picks from,
    and a locked file keeps other clusters from each; the lock goes with the process that has it.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.gettempdir()) / f"interlock-ports-{os.getuid()}"
        self._held = ExitStack()
        self._next = _FIRST

    def take(self) -> int:
        """A port that is free and stays ours."""
        self._folder.mkdir(exist_ok=True)
        while self._next <= _LAST:
            port, self._next = self._next, self._next + 1
            file = (self._folder / str(port)).open("w")
            if _lock(file) and _is_free(port):
                self._held.enter_context(file)
                return port
            file.close()
        raise OSError(f"no port from {_FIRST} to {_LAST} is free")

    def close(self) -> None:
        """Let others have them."""
        self._held.close()


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the programs bind it: connections of the one before that linger are no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
