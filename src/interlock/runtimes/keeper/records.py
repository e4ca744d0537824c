"""What the keeper's journal holds: facts in the order in which they became true."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from interlock.resources.codec import decode_special, encode_special
from interlock.resources.process import ReadinessProbe
from interlock.resources.tasks import ReportState, TaskId
from interlock.runtimes.keeper.orders import ProcessOrder


class Founded(Struct, frozen=True, array_like=True, tag="founded"):
    """The first record: what the marks of this data directory's tasks begin with."""

    base: int
    next_serial: int


class Booted(Struct, frozen=True, array_like=True, tag="booted"):
    """A keeper began to serve in this boot of the machine."""

    boot_id: str


class TookOver(Struct, frozen=True, array_like=True, tag="tookover"):
    """A server said hello: its term, and what its tasks inherit."""

    term: int
    working_dir: str
    env: dict[str, str]
    umask: int = 0o022


class Intended(Struct, frozen=True, array_like=True, tag="intended"):
    """Attempts that are to be started; their serial numbers follow one another."""

    first_serial: int
    orders: tuple[ProcessOrder, ...]
    #: Of those that have one, by their place among the orders. They stand beside the orders, and
    #: last: a keeper of a version that knows no probes reads its orders all the same.
    probes: dict[int, ReadinessProbe] = {}


class Spawning(Struct, frozen=True, array_like=True, tag="spawning"):
    """From here on these may have been started; before it they were certainly not."""

    serials: tuple[int, ...]


class Started(Struct, frozen=True, array_like=True, tag="started"):
    """A process runs; the pid and its start time in clock ticks name it within one boot.

    Written a second time with the ticks when it still runs at the next look: most tasks are
    over by then, and until then the mark alone tells whose process it is.
    """

    serial: int
    pid: int
    ticks: int
    at: datetime


class MainEnded(Struct, frozen=True, array_like=True, tag="mainended"):
    """The process of the attempt ended, and left children that still run."""

    serial: int
    exit_code: int | None
    signal: int | None


class Over(Struct, frozen=True, array_like=True, tag="over"):
    """Nothing more will happen: ended, never started, or unknown for good."""

    serial: int
    state: ReportState
    at: datetime
    exit_code: int | None
    signal: int | None
    message: str


class StopAsked(Struct, frozen=True, array_like=True, tag="stopasked"):
    """An attempt is to stop, or, when it is not known, never to start."""

    task: TaskId
    grace_s: float
    at: datetime
    #: The serial number of the record that is made when the attempt is not known.
    serial: int
    namespace: str = ""
    job: str = ""


class Past(Struct, frozen=True, array_like=True, gc=False):
    """How an attempt ended that nobody asks about any more."""

    state: ReportState
    ended_at: datetime | None
    exit_code: int | None
    signal: int | None
    stopped: bool


class Forgot(Struct, frozen=True, array_like=True, tag="forgot"):
    """Attempts that nobody asks about any more; they are never started again.

    A rewritten journal has their ends here, one for each; else they are in the records before.
    """

    tasks: tuple[TaskId, ...]
    pasts: tuple[Past | None, ...] = ()


class Entry(Struct, tag="entry"):
    """All that is known of one attempt: what the journal is rewritten from."""

    task: TaskId
    serial: int
    namespace: str
    job: str
    state: ReportState
    job_version: int = 0
    #: Kept until the process is started; of one with a probe until it is over.
    order: ProcessOrder | None = None
    probe: ReadinessProbe | None = None
    #: From here on it may have been started.
    spawning: bool = False
    pid: int | None = None
    ticks: int = 0
    started_at: datetime | None = None
    #: One of its processes that lives, while its main process does not.
    survivor: int | None = None
    #: The grace of the stop that was asked for.
    grace_s: float | None = None
    #: The main process ended and left children; its code is in `exit_code` and `signal`.
    main_ended: bool = False
    exit_code: int | None = None
    signal: int | None = None
    ended_at: datetime | None = None
    message: str = ""
    #: Whether it can do its work, since when, and why it cannot; without a probe nobody asks.
    ready: bool | None = None
    ready_at: datetime | None = None
    why_not: str = ""


Record = (
    Founded
    | Booted
    | TookOver
    | Intended
    | Spawning
    | Started
    | MainEnded
    | Over
    | StopAsked
    | Forgot
)
_FACTS = msgspec.msgpack.Decoder(Record, dec_hook=decode_special)
_ENTRIES = msgspec.msgpack.Decoder(Entry, dec_hook=decode_special)
_ENCODER = msgspec.msgpack.Encoder(enc_hook=encode_special)


def encode_record(record: Record | Entry) -> bytes:
    """A record as the journal holds it; a first byte tells entries from facts."""
    return (b"E" if isinstance(record, Entry) else b"F") + _ENCODER.encode(record)


def decode_record(payload: bytes) -> Record | Entry:
    """The record that `encode_record` wrote."""
    return (_ENTRIES if payload[:1] == b"E" else _FACTS).decode(payload[1:])
