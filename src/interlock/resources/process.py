"""What a Job runs: a process on this machine, or nothing at all."""

from __future__ import annotations

from interlock.resources.durations import Duration
from interlock.resources.metadata import Noun


class EnvFile(Noun):
    """A file of NAME=value lines, read when a task starts."""

    #: Absolute, or relative to the working directory.
    file: str
    #: A missing file is an error unless this is true.
    optional: bool = False


class ProcessLimits(Noun):
    """What one task may use; the kernel enforces it. None leaves the server's own limit."""

    #: Seconds of processor time, all threads together.
    cpu_time: Duration | None = None
    #: Address space, as a quantity: "512Mi", "2Gi", "1G".
    memory: str | None = None
    #: Open files at a time.
    open_files: int | None = None
    #: Added to the niceness: 0 to 19.
    nice: int | None = None


class ProcessSpec(Noun):
    """A command, as a list of arguments: no shell ever sees it."""

    #: The program and its first arguments.
    command: tuple[str, ...]
    #: Further arguments, after those of `command`.
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    #: Files of variables; `env` wins over them, and a later file over an earlier one.
    env_from: tuple[EnvFile, ...] = ()
    #: Where the process starts; by default where the server was started.
    working_dir: str | None = None
    #: What the process reads on its standard input; nothing by default.
    stdin: str | None = None
    #: A user name or number; only a server that runs as root may change it.
    user: str | None = None
    group: str | None = None
    limits: ProcessLimits = ProcessLimits()


class NoopSpec(Noun):
    """Nothing to run: the Job succeeds as soon as it may start. A marker, or a barrier on locks."""
