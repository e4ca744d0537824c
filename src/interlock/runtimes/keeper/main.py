"""Becoming the keeper of a data directory: one per directory, apart from whoever started it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import traceback
from pathlib import Path

from interlock.private_files import open_private
from interlock.runtimes.keeper import kernel
from interlock.runtimes.keeper.loop import LINGER_S, Keeper
from interlock.runtimes.keeper.own_log import redirect_output
from interlock.runtimes.keeper.protocol import KEEPER_LOG_NAME, LOCK_NAME


def main(data_dir: str, linger_s: float = LINGER_S) -> int:
    """Start a keeper unless there is one; return when its socket takes connections.

    The keeper itself is a grandchild of the caller: nobody has to reap it, and no signal
    to the server's group or terminal reaches it.
    """
    place = Path(data_dir).resolve()
    lock = open_private(place / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0
    # The number of the keeper before this one: whoever reads it must not take it for ours.
    os.ftruncate(lock, 0)
    ready, tell = os.pipe2(os.O_CLOEXEC)
    if os.fork() == 0:
        os.close(ready)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        os._exit(_serve(place, lock, linger_s, tell))
    os.close(tell)
    told = os.read(ready, 65536).decode()
    if told == "ready":
        return 0
    sys.stderr.write(told or "the keeper ended before it was ready\n")
    return 1


def _serve(place: Path, lock: int, linger_s: float, tell: int) -> int:
    try:
        os.setsid()
        os.umask(0o077)
        redirect_output(place / KEEPER_LOG_NAME)
        kernel.become_subreaper()
        keeper = Keeper(place, lock, linger_s)
        _tell(tell, "ready")
        os.close(tell)
        tell = -1
        keeper.run()
    except BaseException as error:
        if tell >= 0:
            _tell(tell, f"the keeper cannot start: {error}\n")
        traceback.print_exc()
        return 1
    return 0


def _tell(starter: int, what: str) -> None:
    """Tell whoever started us; on a slow machine they may be gone, which is no reason to end."""
    with contextlib.suppress(BrokenPipeError):
        os.write(starter, what.encode())
