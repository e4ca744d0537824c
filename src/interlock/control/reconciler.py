"""The reconciler protocol: how a room is bound to the loop, what wakes it, how it looks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, runtime_checkable

from msgspec import Struct

from interlock.resources.actions import Decision
from interlock.resources.metadata import Key, Resource
from interlock.resources.tasks import TaskId


class Change(Struct, frozen=True):
    """A resource as the cache held it before, and as it holds it now."""

    before: Resource | None
    after: Resource | None


class Reconciler(Protocol):
    """A room's door to the loop.

    `look` is called with one key at a time per room, never twice at once for the same key.
    Being woken twice, late or for no reason must be harmless.
    """

    @property
    def room(self) -> str:
        """The room's name, as in the log, the journal and `status.trouble`."""
        ...

    def wakes(self, change: Change) -> Iterable[Key]:
        """The keys to look at because of a change in any watched kind."""
        ...

    def look(self, key: Key, now: datetime) -> Decision:
        """Read all that matters into one view, and decide."""
        ...


@runtime_checkable
class HearsReports(Protocol):
    """A room that goes by what runtimes tell of attempts."""

    def reported(self, job: Key, uid: str) -> Iterable[Key]:
        """The keys to look at because a runtime told of attempts that were made for a Job."""
        ...

    def waiting(self) -> Iterable[Resource]:
        """What may have waited for a runtime that can be reached again: told of as if new."""
        ...


@runtime_checkable
class GivesOrders(Protocol):
    """A room whose decisions hold orders to a runtime, which may be denied."""

    def not_stopped(self, key: Key, tasks: Iterable[TaskId]) -> None:
        """Orders to stop these attempts came to nothing: they are to be given again."""
        ...

    def owes(self, key: Key) -> bool:
        """Whether an order is due that was not carried out so far."""
        ...
