"""What a task starts with: its variables, its program, its limits."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from pathlib import Path

from interlock.resources.process import EnvFile, ProcessLimits
from interlock.resources.tasks import TaskOrder

#: Tells a process which attempt it belongs to, and the keeper whose an orphan is.
TASK_VARIABLE = "INTERLOCK_TASK_ID"

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


class NotStartedError(Exception):
    """A task cannot be started, however often it is tried."""


def environment(order: TaskOrder, base: Mapping[str, str], working_dir: str) -> dict[str, str]:
    """The variables of a task: the server's, then its files', then its own.

    Raises:
        NotStartedError: A file of variables is missing or cannot be read.
    """
    env = dict(base)
    for file in order.env_from:
        env.update(read_env_file(file, working_dir))
    env.update(order.env)
    env[TASK_VARIABLE] = str(order.id)
    return env


def read_env_file(file: EnvFile, working_dir: str) -> dict[str, str]:
    """The NAME=value lines of a file; empty lines and those with # are skipped.

    Raises:
        NotStartedError: The file is missing or has a line that is neither.
    """
    path = Path(working_dir) / file.file
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        if file.optional:
            return {}
        raise NotStartedError(f"envFrom: {path}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise NotStartedError(f"envFrom: {path}: {error}") from error
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


def limits_of(limits: ProcessLimits) -> list[tuple[int, int]]:
    """The kernel's limits for a task: which, and how much.

    Raises:
        NotStartedError: A quantity is none.
    """
    found: list[tuple[int, int]] = []
    if limits.cpu_time is not None:
        found.append((resource.RLIMIT_CPU, max(1, round(limits.cpu_time.total_seconds()))))
    if limits.memory is not None:
        found.append((resource.RLIMIT_AS, bytes_of(limits.memory)))
    if limits.open_files is not None:
        found.append((resource.RLIMIT_NOFILE, limits.open_files))
    return found


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


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
