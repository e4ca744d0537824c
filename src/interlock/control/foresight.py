"""Two rooms, one write: what the next room does about a Job that is about to be let in.

Rooms decide on what is stored. Where one writes a part of a Job and another would write the next
part at once, the second may be asked before the first has written, and both parts are stored
together. Nothing is done earlier for that: orders to a runtime still follow the write that allows
them, and where it is refused neither room has done anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec.structs import replace

from interlock.control.queue import Item, WorkQueue
from interlock.control.reconciler import Reconciler
from interlock.resources.actions import AddFinalizer, Decision, RecordAdmission
from interlock.resources.admission import AdmissionPhase
from interlock.resources.job import Job
from interlock.resources.transitions import with_admission


@runtime_checkable
class Foresees(Protocol):
    """A room that can decide about a Job before its admission is stored."""

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


class Foresight:
    """Asks the rooms that foresee. What they are asked about is in work until it is done."""

    def __init__(self, rooms: Mapping[str, Reconciler], queue: WorkQueue) -> None:
        self._rooms = {r: each for r, each in rooms.items() if isinstance(each, Foresees)}
        self._queue = queue

    def of(self, decision: Decision, now: datetime) -> Ahead | None:
        """What is to be done together with a decision, if it lets a Job in and anything is."""
        try:
            job = let_in_by(decision, now)
        except AssertionError:
            # A move that no Job may make: whoever writes it is told.
            return None
        for room, reconciler in self._rooms.items() if job is not None else ():
            assert job is not None
            ahead = self._ask(Item(room, job.key), reconciler, job, now)
            if ahead is not None:
                return ahead
        return None

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


def let_in_by(decision: Decision, now: datetime) -> Job | None:
    """The Job as a decision is about to leave it, if to let it in is all that it does."""
    match decision.actions:
        case (RecordAdmission(job, admission),) if admission.phase is AdmissionPhase.ADMITTED:
            return replace(job, status=with_admission(job, admission, now))
        case _:
            return None


def joined(first: Decision, then: Decision) -> Decision:
    """Both decisions as one to carry out.

    A Job may be held back from deletion before it is let in: that keeps the records of the two
    rooms side by side, and so in one write.
    """
    held = tuple(action for action in then.actions if isinstance(action, AddFinalizer))
    rest = tuple(action for action in then.actions if not isinstance(action, AddFinalizer))
    return Decision((*held, *first.actions, *rest))
