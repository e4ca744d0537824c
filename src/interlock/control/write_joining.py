"""Write joining: rooms that follow one another put what they record of a Job into one write.

Rooms decide on what is stored. Where one writes a part of a Job's status and a room after it would
write the next part at once, that one may be asked before the first has written, and so on for any
chain of rooms; all parts are then stored together. Nothing is done earlier for that: orders to a
runtime still follow the write that allows them, and where it is refused no room has done anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec.structs import replace

from interlock.control.queue import Item, WorkQueue
from interlock.control.reconciler import Reconciler
from interlock.resources.actions import AddFinalizer, Decision, RecordAdmission, RecordExecution
from interlock.resources.job import Job
from interlock.resources.transitions import moved


@runtime_checkable
class Foresees(Protocol):
    """A room that can decide about a Job before what allows it is stored."""

    def is_next(self, job: Job) -> bool:
        """Whether this room has something to do about a Job that is about to be like this."""
        ...

    def foresee(self, job: Job, now: datetime) -> Decision:
        """Decide about a Job as it is about to be.

        The room is not at work on the same key meanwhile, and looks at it again if this came to
        nothing.
        """
        ...


class Ahead(NamedTuple):
    """What another room does in the same breath."""

    item: Item
    decision: Decision


class WriteJoining:
    """Asks the rooms that foresee. What they are asked about is in work until it is done."""

    def __init__(self, rooms: Mapping[str, Reconciler], queue: WorkQueue) -> None:
        names = tuple(rooms)
        #: The rooms that can be asked ahead by each room: those after it in a Job's life.
        self._after: dict[str, tuple[tuple[str, Foresees], ...]] = {
            name: tuple(
                (later, room)
                for later in names[at + 1 :]
                if isinstance(room := rooms[later], Foresees)
            )
            for at, name in enumerate(names)
        }
        self._queue = queue

    def of(self, room: str, decision: Decision, now: datetime) -> tuple[Ahead, ...]:
        """What the rooms after this one do together with its decision, in their order."""
        after = self._after[room]
        if not after:
            return ()
        chain: list[Ahead] = []
        job = about_to_be(decision, now)
        for name, later in after:
            if job is None:
                break
            if not later.is_next(job):
                continue
            ahead = self._ask(Item(name, job.key), later, job, now)
            if ahead is None:
                break
            chain.append(ahead)
            job = about_to_be(ahead.decision, now)
        return tuple(chain)

    def _ask(self, item: Item, room: Foresees, job: Job, now: datetime) -> Ahead | None:
        if not self._queue.join(item):
            return None
        try:
            found = room.foresee(job, now)
        except Exception:
            # It fails again when it looks, and is told of then.
            found = Decision()
        if found.actions:
            return Ahead(item, found)
        self.came_to_nothing(item)
        return None

    def came_to_nothing(self, item: Item) -> None:
        """Have the room look for itself."""
        self._queue.done(item)
        self._queue.wake(item)


def about_to_be(decision: Decision, now: datetime) -> Job | None:
    """The Job as a decision is about to leave it, if to record parts of it is all that it does.

    None also where another Job is written too, as when one is to make way: its parts are not those
    of the first. And for a move that no Job may make: whoever writes it is told.
    """
    job: Job | None = None
    for action in decision.actions:
        match action:
            case RecordAdmission(read) | RecordExecution(read) if _is_other(job, read):
                return None
            case RecordAdmission(read, admission):
                job = job or read
                status = moved(job, admission, job.status.execution, now)
            case RecordExecution(read, execution):
                job = job or read
                status = moved(job, job.status.admission, execution, now)
            case AddFinalizer():
                continue
            case _:
                return None
        if status is None or read.metadata.uid != job.metadata.uid:
            return None
        job = replace(job, status=status)
    return job


def _is_other(job: Job | None, read: Job) -> bool:
    return job is not None and read.metadata.uid != job.metadata.uid


def joined(first: Decision, *then: Decision) -> Decision:
    """All decisions as one to carry out.

    A Job may be held back from deletion before it is let in: that keeps the records of the rooms
    side by side, and so in one write.
    """
    later = tuple(action for each in then for action in each.actions)
    held = tuple(action for action in later if isinstance(action, AddFinalizer))
    rest = tuple(action for action in later if not isinstance(action, AddFinalizer))
    return Decision((*held, *first.actions, *rest))
