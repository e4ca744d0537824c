"""Process work: a process on this machine, or nothing at all."""

from __future__ import annotations

from typing import Annotated

from interlock.resources.metadata import Noun
from interlock.resources.rules import (
    ASecondOrMore,
    FilePath,
    FirstGiven,
    Items,
    Limit,
    Matches,
    Names,
    ProgramWord,
    Quantity,
)

MAX_OPEN_FILES = 1 << 20

_PROGRAM = "expected the program to run"
_Account = Annotated[
    str,
    Matches(
        r"[0-9]{1,10}|[A-Za-z_][A-Za-z0-9_.@-]{0,254}\$?", "expected a name or number", longest=256
    ),
]
_VARIABLES = Names(
    "[-._A-Za-z][-._A-Za-z0-9]*", "expected letters, digits, '_', '-' and '.', no digit first"
)


class EnvFile(Noun):
    """A file of NAME=value lines, read when a task starts."""

    #: Absolute, or relative to the working directory.
    file: FilePath
    #: A missing file is an error unless this is true.
    optional: bool = False


class ProcessLimits(Noun):
    """What one task may use; the kernel enforces it. None leaves the server's own limit."""

    #: Seconds of processor time, all threads together.
    cpu_time: ASecondOrMore | None = None
    #: Address space, as a quantity: "512Mi", "2Gi", "1G".
    memory: Annotated[str, Quantity()] | None = None
    #: Open files at a time.
    open_files: Annotated[int, Limit(1, MAX_OPEN_FILES)] | None = None
    #: Added to the niceness.
    nice: Annotated[int, Limit(0, 19)] | None = None


class ProcessSpec(Noun):
    """A command, as a list of arguments: no shell ever sees it."""

    #: The program and its first arguments.
    command: Annotated[tuple[ProgramWord, ...], Items(1, expected=_PROGRAM), FirstGiven(_PROGRAM)]
    #: Further arguments, after those of `command`.
    args: tuple[ProgramWord, ...] = ()
    env: Annotated[dict[str, ProgramWord], _VARIABLES] = {}
    #: Files of variables; `env` wins over them, and a later file over an earlier one.
    env_from: tuple[EnvFile, ...] = ()
    #: Where the process starts; by default where the server was started.
    working_dir: FilePath | None = None
    #: What the process reads on its standard input; nothing by default.
    stdin: str | None = None
    #: A user name or number; only a server that runs as root may change it.
    user: _Account | None = None
    group: _Account | None = None
    limits: ProcessLimits = ProcessLimits()


class NoopSpec(Noun):
    """Nothing to run: the Job succeeds as soon as it may start. A marker, or a barrier on locks."""
