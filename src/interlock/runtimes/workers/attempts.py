"""What a dispatcher knows of one attempt, and of one worker."""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto
from math import inf
from typing import NamedTuple

from msgspec import Struct

from interlock.resources.tasks import TaskId, TaskReport
from interlock.runtimes.workers.crews import Crew, Need
from interlock.runtimes.workers.protocol import (
    MAX_FRAME,
    Call,
    Cancel,
    FromServer,
    Hello,
    Orders,
    Ref,
    Welcome,
)


def task_of(ref: Ref) -> TaskId:
    """The attempt that a worker means."""
    return TaskId(ref.job_uid, ref.task, ref.attempt)


class At(NamedTuple):
    """A moment on both clocks."""

    now: datetime
    #: Seconds that never go back.
    tick: float


class Phase(Enum):
    """Where an attempt is."""

    #: Nobody has it.
    WAITING = auto()
    #: A worker is to have it once it is written down that it starts: until then it is not told.
    PROMISED = auto()
    #: A worker has it, and a lease on it.
    AT_WORK = auto()
    #: It was ordered before this dispatcher began: some worker may have it.
    INHERITED = auto()
    #: It is over.
    OVER = auto()


class Attempt:
    """One attempt."""

    __slots__ = (
        "arrival",
        "call",
        "id",
        "is_alone",
        "is_recorded",
        "lease_until",
        "need",
        "phase",
        "report",
        "size",
        "stop_by",
        "teller",
        "told_waiting",
        "worker",
    )

    def __init__(self, id: TaskId, phase: Phase, report: TaskReport, arrival: int) -> None:
        self.id = id
        self.phase = phase
        self.report = report
        #: Its place among all orders: its own, or that of the turn of its Job.
        self.arrival = arrival
        #: What is to be done, and how long that is as it is sent.
        self.call: Call | None = None
        self.size = 0
        self.need: Need = ("", "")
        #: Whether nothing may be done beside it in the process of its worker.
        self.is_alone = False
        #: Whether it was told that it waits: its status may say so.
        self.told_waiting = False
        #: Who has it.
        self.worker: Worker | None = None
        self.lease_until = inf
        #: When it counts as over although nobody said so: it was told to stop.
        self.stop_by = inf
        #: The process whose result counted, and whether it knows that it is durable.
        self.teller = ""
        self.is_recorded = False

    @property
    def ref(self) -> Ref:
        """As workers know it."""
        return Ref(*self.id)

    @property
    def due_at(self) -> float:
        """When it counts as over unless something is heard of it."""
        if self.phase in (Phase.AT_WORK, Phase.INHERITED):
            return min(self.lease_until, self.stop_by)
        return inf

    def __lt__(self, other: Attempt) -> bool:
        return self.arrival < other.arrival


class Worker:
    """One connection of a worker."""

    __slots__ = (
        "at_work",
        "closed",
        "crew",
        "hello",
        "is_draining",
        "kept_for",
        "lost",
        "mail",
        "since",
        "solo",
    )

    def __init__(self, hello: Hello, since: datetime) -> None:
        self.hello = hello
        self.since = since
        self.crew: Crew | None = None
        self.at_work: dict[TaskId, Attempt] = {}
        #: What it may still be doing although that does not count, and in which of its `Orders`
        #: it is told so: it takes up room.
        self.lost: dict[TaskId, int] = {}
        #: What it has and does alone, and what it is given nothing for until it can.
        self.solo: Attempt | None = None
        self.kept_for: Attempt | None = None
        self.is_draining = False
        self.mail = Mail()
        #: Why it has to be let go; None while it is welcome.
        self.closed: str | None = None

    @property
    def has_room(self) -> bool:
        """Whether it can be given something."""
        if self.is_draining or self.closed is not None:
            return False
        if self.solo is not None or self.kept_for is not None:
            return False
        return self.busy < self.hello.concurrency

    def lose(self, task: TaskId) -> None:
        """It is about to be told that what it does there does not count."""
        self.lost[task] = self.mail.taken + 1

    @property
    def busy(self) -> int:
        """How much it is at, whether that counts or not."""
        return len(self.at_work) + len(self.lost)

    @property
    def is_idle(self) -> bool:
        """Whether it can be given something, and is at nothing at all."""
        return not self.busy and not self.is_draining and self.closed is None


class Mail:
    """What is still to be sent to a worker: as few messages as there can be."""

    __slots__ = ("calls", "cancelled", "recorded", "refused", "taken", "welcome")

    def __init__(self) -> None:
        #: How many `Orders` were taken so far.
        self.taken = 0
        self.welcome: Welcome | None = None
        self.calls: dict[TaskId, tuple[Call, int]] = {}
        self.recorded: list[Ref] = []
        self.refused: list[tuple[Ref, str]] = []
        self.cancelled: dict[Ref, float] = {}

    def __len__(self) -> int:
        return len(self.calls) + len(self.recorded) + len(self.refused) + len(self.cancelled)

    def take(self) -> list[FromServer]:
        """Everything, in the order in which it has to be read; nothing is left."""
        told: list[FromServer] = [self.welcome] if self.welcome is not None else []
        orders = self._orders()
        self.taken += len(orders)
        told += orders
        graces: dict[float, list[Ref]] = {}
        for ref, grace_s in self.cancelled.items():
            graces.setdefault(grace_s, []).append(ref)
        told += [Cancel(items=tuple(refs), grace_s=grace_s) for grace_s, refs in graces.items()]
        self.welcome = None
        self.calls, self.recorded, self.refused, self.cancelled = {}, [], [], {}
        return told

    def _orders(self) -> list[Orders]:
        if not self.calls and not self.recorded and not self.refused:
            return []
        parts: list[list[Call]] = [[]]
        length = _LONGEST_WORDS
        for call, size in self.calls.values():
            if parts[-1] and length + size > MAX_FRAME:
                parts.append([])
                length = 0
            parts[-1].append(call)
            length += size
        first = Orders(
            calls=tuple(parts[0]), recorded=tuple(self.recorded), refused=tuple(self.refused)
        )
        return [first, *(Orders(calls=tuple(part)) for part in parts[1:])]


#: What is said beside calls takes up to this much of a message.
_LONGEST_WORDS = MAX_FRAME // 4


class Counts:
    """What was counted since the server began."""

    def __init__(self) -> None:
        #: Attempts that were given to workers.
        self.handed_out = 0
        #: Attempts whose worker was lost, or silent for too long.
        self.cut_off = 0
        #: Words of workers that did not count.
        self.refused = 0


class WorkerInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """A connected worker, as people are told of it."""

    name: str
    app: str
    queues: tuple[str, ...]
    concurrency: int
    at_work: int
    since: datetime
    draining: bool
