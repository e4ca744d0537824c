"""Ending a keeper and all of its tasks, so that no test leaves a process behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
from pathlib import Path

from interlock.runtimes.keeper import kernel
from interlock.runtimes.keeper.cgroups import Cgroups
from interlock.runtimes.keeper.journal import records_in
from interlock.runtimes.keeper.logger import LOCK_NAME as LOGGER_LOCK_NAME
from interlock.runtimes.keeper.logger import holder_of
from interlock.runtimes.keeper.protocol import JOURNAL_NAME, LOCK_NAME
from interlock.runtimes.keeper.records import Founded


def end_everything(data_dir: Path) -> None:
    """Kill the keeper of a data directory and every process that any of its tasks left.

    The keeper's lock is held meanwhile, so that no client can start another one.
    """
    with contextlib.ExitStack() as stack:
        try:
            lock = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        stack.callback(os.close, lock)
        _take(lock, data_dir)
        base = base_of(data_dir)
        while pids := living(data_dir):
            for pid in pids:
                kill_and_wait(pid)
        while logger := logger_pid(data_dir):
            kill_and_wait(logger)
        if base:
            _cgroups(data_dir, base).close()


def kill_keeper(data_dir: Path) -> None:
    """Kill the keeper alone, as the kernel does when memory runs out; its tasks go on."""
    pid = keeper_pid(data_dir)
    if pid is not None:
        kill_and_wait(pid)


def keeper_pid(data_dir: Path) -> int | None:
    """The process id of the keeper that serves a data directory; None when there is none."""
    try:
        lock = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        said = os.pread(lock, 64, 0).strip()
        return int(said) if said else None
    finally:
        os.close(lock)
    return None


def logger_pid(data_dir: Path) -> int | None:
    """The process id of the logger that serves a data directory; None when there is none."""
    try:
        lock = os.open(data_dir / LOGGER_LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return holder_of(lock) or None
    finally:
        os.close(lock)


def living(data_dir: Path) -> list[int]:
    """Every process that a task of this data directory left alive."""
    base = base_of(data_dir)
    if not base:
        return []
    found = [*kernel.marked(base).values(), *_cgroups(data_dir, base).all_members().values()]
    return list(dict.fromkeys(pid for pids in found for pid in pids))


def _cgroups(data_dir: Path, base: int) -> Cgroups:
    cgroups = Cgroups(data_dir, base)
    cgroups.find_places()
    return cgroups


def base_of(data_dir: Path) -> int:
    """What the marks of a data directory's tasks begin with; 0 before there is a journal."""
    try:
        data = (data_dir / JOURNAL_NAME).read_bytes()
    except FileNotFoundError:
        return 0
    records, _ = records_in(data)
    return next((record.base for record in records if isinstance(record, Founded)), 0)


def kill_and_wait(pid: int) -> None:
    """Kill a process and wait until the kernel says that it is dead."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    _kill_and_wait(fd)


def _kill_and_wait(fd: int) -> None:
    try:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        select.select([fd], [], [], 60)
    except ProcessLookupError:
        return
    finally:
        os.close(fd)


def _take(lock: int, data_dir: Path) -> None:
    """Get the keeper's lock, by killing whoever has it."""
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Its helpers go by themselves when it is gone; they are waited for all the same.
            children = _children_of(keeper_pid(data_dir))
            kill_keeper(data_dir)
            for child in children:
                _kill_and_wait(child)
        else:
            return


def _children_of(pid: int | None) -> list[int]:
    found = []
    for child in kernel.children_of(pid or 0):
        with contextlib.suppress(ProcessLookupError):
            found.append(os.pidfd_open(child))
    return found
