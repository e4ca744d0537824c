"""The worker protocol: what a worker and a server say to each other, as JSON, a message a frame.

A worker says `Hello` and is answered `Welcome` or closed with a reason. Then the server sends
`Orders`; the worker answers each attempt once with `Done`, and keeps every result until the server
has said that it is `recorded`, or that it does not count: `refused`. What it still has it offers
again when it comes back after a broken connection. `Touch` keeps its leases alive.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, json

from interlock.resources.codec import decode_special, encode_special
from interlock.resources.steps import Elaboration
from interlock.resources.work import PythonCall

PROTOCOL = 1
#: Where workers are served.
PATH = "/workers/connect"
#: What a step returns, and one is told, may be so long as JSON.
MAX_FRAME = 4 << 20


class _Said(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="say"):
    """Base of all messages."""


class Ref(Struct, frozen=True, array_like=True):
    """Which attempt is meant."""

    job_uid: str
    task: int
    attempt: int


# What a worker says


class Hello(_Said, frozen=True, kw_only=True, tag="hello"):
    """Who comes, and what it can do."""

    protocol: int
    #: For people: host/pid.
    worker: str
    #: Made anew by every process: two with one name are not taken for each other.
    incarnation: str
    #: The application, as MODULE:APP.
    app: str
    #: The functions that it has loaded: of operations, steps and undos.
    functions: tuple[str, ...]
    #: The queues that it serves; empty for the one without a name.
    queues: tuple[str, ...] = ()
    #: How many attempts it takes at a time.
    concurrency: int = 1
    #: What it was given before its connection broke, and still has: at work, or done and untold.
    held: tuple[Ref, ...] = ()
    #: What it is still at although it was told that it does not count: that takes up room.
    lost: tuple[Ref, ...] = ()


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What became of an attempt: it returned, or failed when there is an error."""

    ref: Ref
    #: What the function returned, as JSON; empty for nothing.
    returned: str = ""
    error: str = ""
    #: The steps that it made of a request.
    elaboration: Elaboration | None = None


class Done(_Said, frozen=True, kw_only=True, tag="done"):
    """Attempts that are over."""

    items: tuple[Outcome, ...]


class Touched(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An attempt that goes on, and how far it is if that is told."""

    ref: Ref
    percent: float | None = None
    text: str = ""


class Touch(_Said, frozen=True, kw_only=True, tag="touch"):
    """Attempts that go on: their leases begin anew.

    What was refused while it was at work takes up room until a touch leaves it out: so all that is
    still being done is named, and a worker that does nothing touches too.
    """

    items: tuple[Touched, ...] = ()
    #: How many `Orders` of this connection were read before: of what is in later ones it says
    #: nothing. Not given by workers of versions before.
    read: int | None = None
    #: Whether there is more at work than is named: how far something is, told between two touches.
    partial: bool = False


class Wrote(_Said, frozen=True, kw_only=True, tag="wrote"):
    """What an attempt wrote with `ctx.log`: whole lines."""

    ref: Ref
    text: str


class Drain(_Said, frozen=True, kw_only=True, tag="drain"):
    """Nothing more is to be given to it; what it has it finishes."""


# What a server says


class Welcome(_Said, frozen=True, kw_only=True, tag="welcome"):
    """The worker is known. Of what it holds it goes on with all that is not refused next."""

    #: After so long without a touch an attempt counts as cut off.
    lease_s: float
    #: How often to touch.
    touch_every_s: float


class Call(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An attempt to be made: a function, and all that it is told."""

    ref: Ref
    namespace: str
    job: str
    #: The function, and whether it is called to elaborate, run or undo.
    function: str
    call: PythonCall
    args: dict[str, Any] = {}
    step: str = ""
    #: What earlier steps returned, as JSON by their names; of one to be undone also itself.
    results: dict[str, str] = {}
    #: The fencing token of each lock, by its key.
    fences: dict[str, int] = {}
    #: The path of the target, and who asked.
    target: str = ""
    creator: str = ""


class Orders(_Said, frozen=True, kw_only=True, tag="orders"):
    """Attempts to be made, and what became of results that were told."""

    calls: tuple[Call, ...] = ()
    #: Results that are durable now: the worker may forget them.
    recorded: tuple[Ref, ...] = ()
    #: Attempts that do not count any more, each with why: nothing of them will be recorded.
    refused: tuple[tuple[Ref, str], ...] = ()


class Cancel(_Said, frozen=True, kw_only=True, tag="cancel"):
    """Attempts that are to stop: after the grace they count as cut off."""

    items: tuple[Ref, ...]
    grace_s: float = 0.0


FromWorker = Hello | Done | Touch | Wrote | Drain
FromServer = Welcome | Orders | Cancel

_from_worker: json.Decoder[FromWorker] = json.Decoder(FromWorker, dec_hook=decode_special)
_from_server: json.Decoder[FromServer] = json.Decoder(FromServer, dec_hook=decode_special)
_encoder = json.Encoder(enc_hook=encode_special)


def encode(message: FromWorker | FromServer) -> bytes:
    """A message as it is sent."""
    return _encoder.encode(message)


def read_from_worker(frame: bytes | str) -> FromWorker:
    """What a worker says.

    Raises:
        msgspec.DecodeError: It is no message of this protocol.
    """
    return _from_worker.decode(frame)


def read_from_server(frame: bytes | str) -> FromServer:
    """What a server says.

    Raises:
        msgspec.DecodeError: It is no message of this protocol.
    """
    return _from_server.decode(frame)


BadMessage = msgspec.DecodeError
