"""The keeper's protocol: length-prefixed msgpack over a Unix socket."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from interlock.resources.codec import decode_special, encode_special
from interlock.resources.process import ReadinessProbe
from interlock.resources.tasks import TaskId, TaskReport
from interlock.runtimes.keeper.orders import ProcessOrder

#: Moves when either side would misread the other.
PROTOCOL = 1

#: It finds out whether tasks are ready.
PROBES = "probes"
ABILITIES = (PROBES,)

SOCKET_NAME = "keeper.sock"
LOCK_NAME = "keeper.lock"
JOURNAL_NAME = "keeper.journal"
KEEPER_LOG_NAME = "keeper.log"

#: No frame is longer: orders and reports are split into several.
MAX_FRAME = 64 << 20
#: How many orders or reports go into one frame.
BATCH = 500

_LENGTH = struct.Struct("<I")


class Hello(Struct, frozen=True, tag="hello"):
    """The first frame of a server: who it is, and what its tasks inherit by default."""

    seq: int
    protocol: int
    #: A higher term fences every connection with a lower one.
    term: int
    working_dir: str
    env: dict[str, str]
    umask: int = 0o022


class Launch(Struct, frozen=True, tag="launch", omit_defaults=True):
    """Start attempts; answered when the intents are durable."""

    seq: int
    orders: tuple[ProcessOrder, ...]
    #: Of those that have one, by their place among the orders. Only for a keeper with PROBES.
    probes: dict[int, ReadinessProbe] = {}


class StopOrder(Struct, frozen=True, array_like=True):
    """Stop one attempt."""

    task: TaskId
    grace_s: float
    namespace: str = ""
    job: str = ""


class Stop(Struct, frozen=True, tag="stop"):
    """Stop attempts; answered when that is durable."""

    seq: int
    stops: tuple[StopOrder, ...]


class Forget(Struct, frozen=True, tag="forget"):
    """Drop attempts that are over."""

    seq: int
    tasks: tuple[TaskId, ...]


class Tell(Struct, frozen=True, tag="tell"):
    """Send everything that is known."""

    seq: int


class Leave(Struct, frozen=True, tag="leave"):
    """The server stops cleanly: an idle keeper need not wait for it."""

    seq: int


Request = Hello | Launch | Stop | Forget | Tell | Leave


class Refusal(StrEnum):
    """Why a request was not carried out."""

    FENCED = "Fenced"
    UNAVAILABLE = "Unavailable"


class Done(Struct, frozen=True, tag="done"):
    """A request was carried out, durably."""

    seq: int
    pid: int = 0
    #: In answer to `Hello`: what this keeper can do that one of the first version could not.
    abilities: tuple[str, ...] = ()


class Refused(Struct, frozen=True, tag="refused"):
    """A request was not carried out."""

    seq: int
    refusal: Refusal
    message: str


class Told(Struct, frozen=True, tag="told"):
    """Reports: the answer to `Tell` when `seq` is its number, news when it is 0."""

    seq: int
    reports: tuple[TaskReport, ...]
    last: bool = True


Answer = Done | Refused | Told

_ENCODER = msgspec.msgpack.Encoder(enc_hook=encode_special)


def frame(message: Request | Answer) -> bytes:
    """The message as it goes over the socket."""
    payload = _ENCODER.encode(message)
    return _LENGTH.pack(len(payload)) + payload


class Frames:
    """Cuts what arrives on a socket into messages of one type."""

    def __init__(self, kind: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind, dec_hook=decode_special)
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The messages that are complete now.

        Raises:
            ValueError: The other side does not speak this language.
        """
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if length > MAX_FRAME:
                raise ValueError(f"a frame of {length} bytes is longer than {MAX_FRAME}")
            end = start + _LENGTH.size + length
            if len(buffer) < end:
                break
            message = self._decoder.decode(bytes(buffer[start + _LENGTH.size : end]))
            start = end
            yield message
        del buffer[:start]


def batches(reports: tuple[TaskReport, ...], seq: int) -> Iterator[Told]:
    """Reports in frames of a bounded size; there is always a last one."""
    for start in range(0, max(len(reports), 1), BATCH):
        yield Told(
            seq=seq, reports=reports[start : start + BATCH], last=start + BATCH >= len(reports)
        )
