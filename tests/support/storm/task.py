"""The program that a storm's tasks run: it takes its places, and writes down what it sees.

`python -I -S task.py FOLDER PLACES SECONDS CODES MANNER`. It is started by its path and uses
nothing of Interlock but the variables that every task gets, so what it says is independent.

A place is a file that is locked with flock while the task lives, its children included: one for
each Job that may be at work under that key. Who finds none free is one too many, and says so.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
from time import monotonic
from typing import NoReturn

#: What it ends with when it was told to stop and has a manner of its own.
STOPPED_CODE = 7
EVIDENCE = "evidence"


def main(folder: str, places: str, seconds: str, codes: str, manner: str) -> NoReturn:
    """Be a task, to its end."""
    wanted = [place.rsplit(":", 1) for place in places.split(",") if place]
    code = int(codes.split(",")[: int(os.environ["INTERLOCK_ATTEMPT"]) + 1][-1])
    if manner == "polite":
        signal.signal(signal.SIGTERM, lambda *_: _end(folder, STOPPED_CODE))
    elif manner == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for key, limit in wanted:
        if not _take(folder, key, int(limit)):
            _write(folder, "V", key)
    _write(folder, "B", os.environ.get("INTERLOCK_FENCES", "{}"))
    _work(folder, float(seconds), manner)
    _end(folder, code)


def _end(folder: str, code: int) -> NoReturn:
    """Say what the task ends with, and end: in between only SIGKILL can change that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _write(folder, "E", str(code))
    os._exit(code)


def _take(folder: str, key: str, limit: int) -> bool:
    """Lock a free place of a key; it stays ours until the last of our processes is gone.

    Tasks of one Job work under one grant, side by side: each number has places of its own.
    """
    index = os.environ["INTERLOCK_TASK_INDEX"]
    for slot in range(limit):
        path = f"{folder}/places/{key}.{index}.{slot}"
        place = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(place)
        else:
            return True
    return False


def _work(folder: str, seconds: float, manner: str) -> None:
    if manner == "daemon" and os.fork() == 0:
        # The child slips away from its parent and works on after it, under the same grant.
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        select.select([], [], [], seconds)
        _write(folder, "L", "")
        os._exit(0)
    if manner == "witness":
        # Goes on until somebody was seen who is one too many.
        while not _somebody_is_too_many(folder):
            select.select([], [], [], 0.05)
    elif manner.startswith("until:"):
        # Goes on until the file of that name is there.
        while not os.path.exists(f"{folder}/{manner[6:]}"):  # noqa: PTH110 - pathlib takes longer than the task
            select.select([], [], [], 0.05)
    elif manner != "daemon":
        select.select([], [], [], seconds)


def _somebody_is_too_many(folder: str) -> bool:
    with open(f"{folder}/{EVIDENCE}") as lines:  # noqa: PTH123 - pathlib takes longer than the task
        return any(line.startswith("V") for line in lines)


def _write(folder: str, kind: str, detail: str) -> None:
    """Add a line in one write: lines of several tasks never mix. It is printed before, too."""
    of = os.environ
    words = (
        kind,
        of["INTERLOCK_JOB_UID"],
        of["INTERLOCK_JOB"],
        of["INTERLOCK_TASK_INDEX"],
        of["INTERLOCK_ATTEMPT"],
        str(os.getpid()),
        repr(monotonic()),
        detail,
    )
    line = ("\t".join(words) + "\n").encode()
    os.write(1, line)
    file = os.open(f"{folder}/{EVIDENCE}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line)
    os.close(file)


if __name__ == "__main__":
    main(*sys.argv[1:6])
