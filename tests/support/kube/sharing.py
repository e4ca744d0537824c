"""One cluster for several test processes: who starts it, and when is it stopped?

A guardian process has the cluster. Every user holds a shared lock on a file; the guardian waits
for an exclusive one, which it gets when the last user has left, in whichever way: the kernel
drops the locks of a process that is killed. Then it stops the cluster. If the guardian is killed
itself, its programs are killed by their leash.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from support.kube.access import Access
from support.kube.cluster import Cluster
from support.kube.component import ComponentError

_USERS = "users.lock"
_STARTING = "starting.lock"
#: Held by the guardian for as long as it lives.
_GUARDIAN = "guardian.lock"
_LOG = "guardian.log"
_ACCESS = "access.json"
_GUARD = "import sys; from support.kube.sharing import guard; guard(*sys.argv[1:])"


@contextmanager
def shared(programs: Path, folder: Path) -> Iterator[Access]:
    """The cluster of that folder, started by the first who asks and stopped after the last.

    Raises:
        ComponentError: It did not start; the message says why.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _USERS).open("w") as users:
        with (folder / _STARTING).open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            # Waits while a guardian stops the cluster of those who left before.
            fcntl.flock(users, fcntl.LOCK_SH)
            if not _is_guarded(folder):
                _start_guardian(programs, folder)
        try:
            yield msgspec.json.decode((folder / _ACCESS).read_bytes(), type=Access)
        finally:
            # Asking for the exclusive lock gives up the shared one: the guardian may be faster.
            is_last = _lock_now(users) or not _lock_now(users, fcntl.LOCK_SH)
            fcntl.flock(users, fcntl.LOCK_UN)
            if is_last:
                _wait_for_guardian(folder)


def _is_guarded(folder: Path) -> bool:
    with (folder / _GUARDIAN).open("w") as file:
        return not _lock_now(file)


def _wait_for_guardian(folder: Path) -> None:
    """See the cluster end: a test run leaves nothing behind."""
    with (folder / _GUARDIAN).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def _lock_now(file: IO[str], kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _start_guardian(programs: Path, folder: Path) -> None:
    """Start a guardian and wait until it says that the cluster is ready, or has ended."""
    with (folder / _LOG).open("ab") as log:
        told = subprocess.run(
            [sys.executable, "-c", _GUARD, str(programs), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            check=False,
        )
    if told.stdout != b"ready":
        raise ComponentError((folder / _LOG).read_text("utf-8", errors="replace"))


def guard(programs: str, folder: str) -> None:
    """Become a guardian: have the cluster until nobody uses it any more."""
    if os.fork():
        # The guardian is nobody's child: whoever started it may leave before the others do.
        return
    # What interrupts the tests must not end the cluster under those who clean up.
    os.setsid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    place = Path(folder)
    with (place / _GUARDIAN).open("w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        with Cluster(Path(programs), place) as cluster:
            _put(place / _ACCESS, msgspec.json.encode(cluster.access))
            _say_ready()
            with (place / _USERS).open("w") as users:
                fcntl.flock(users, fcntl.LOCK_EX)
                # Newcomers wait for the lock until all is stopped, and then start their own.
                cluster.stop()


def _put(path: Path, content: bytes) -> None:
    """Write it whole or not at all."""
    draft = path.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(path)


def _say_ready() -> None:
    os.write(1, b"ready")
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
