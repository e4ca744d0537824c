"""Process work: a process on this machine, or nothing at all."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from interlock.resources.metadata import Noun
from interlock.resources.rules import (
    ASecondOrMore,
    AtLeast,
    ExactlyOne,
    FilePath,
    FirstGiven,
    Given,
    Items,
    Limit,
    Matches,
    Names,
    NounRule,
    ProgramWord,
    Quantity,
    SomeTime,
)
from interlock.resources.values.durations import Duration

MAX_OPEN_FILES = 1 << 20
MAX_THRESHOLD = 1_000
#: Where a probe looks that names no host.
LOCALHOST = "127.0.0.1"

_PROGRAM = "expected the program to run"
_Account = Annotated[
    str,
    Matches(
        r"[0-9]{1,10}|[A-Za-z_][A-Za-z0-9_.@-]{0,254}\$?", "expected a name or number", longest=256
    ),
]
_Port = Annotated[int, Limit(1, 65535)]
_Host = Annotated[
    str,
    Given("expected a name or an address"),
    Matches(r"[A-Za-z0-9_.:-]*", "expected a name or an address", longest=253),
]
_URL_PATH = "expected a path such as /healthz, at most 2000 characters of ASCII"
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


class ExecProbe(Noun):
    """A command that exits with 0 when the task is ready; no shell ever sees it.

    It runs where, as whom, and with the variables that the task does.
    """

    command: Annotated[tuple[ProgramWord, ...], Items(1, expected=_PROGRAM), FirstGiven(_PROGRAM)]


class TcpProbe(Noun):
    """A port that takes connections when the task is ready."""

    port: _Port
    host: _Host = LOCALHOST


class Scheme(StrEnum):
    """How an HTTP server is spoken to."""

    HTTP = "HTTP"
    #: Whatever certificate the server shows is good.
    HTTPS = "HTTPS"


class HttpProbe(Noun):
    """An HTTP server that answers a GET with a code from 200 to 399 when the task is ready."""

    port: _Port
    path: Annotated[str, Matches("/[!-~]*", _URL_PATH, longest=2001)] = "/"
    host: _Host = LOCALHOST
    scheme: Scheme = Scheme.HTTP


class FileProbe(Noun):
    """A file that is there when the task is ready."""

    #: Absolute, or relative to the working directory.
    path: FilePath


class ReadinessProbe(Noun):
    """How to find out whether a task that runs can do its work: exactly one of the first four."""

    RULES: ClassVar[tuple[NounRule, ...]] = (ExactlyOne("exec", "tcp_socket", "http_get", "file"),)

    exec: ExecProbe | None = None
    tcp_socket: TcpProbe | None = None
    http_get: HttpProbe | None = None
    file: FileProbe | None = None
    #: From the start of the task to the first look.
    initial_delay: Duration = Duration()
    #: From one look to the next.
    period: Annotated[Duration, AtLeast("100ms")] = Duration(seconds=1)
    #: A look that takes longer is cut off, and has failed.
    timeout: SomeTime = Duration(seconds=1)
    #: So many looks in a row must succeed for a task to be ready.
    success_threshold: Annotated[int, Limit(1, MAX_THRESHOLD)] = 1
    #: So many looks in a row must fail for a task that was ready not to be.
    failure_threshold: Annotated[int, Limit(1, MAX_THRESHOLD)] = 3


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
    #: How to find out whether a task can do its work; without it one is ready as soon as it runs.
    readiness_probe: ReadinessProbe | None = None


class NoopSpec(Noun):
    """Nothing to run: the Job succeeds as soon as it may start. A marker, or a barrier on locks."""
