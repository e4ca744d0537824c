"""What `status.trouble` says after a look, and whom a change of it concerns."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from msgspec.structs import replace

from interlock.control.queue import Item
from interlock.control.reconciler import Change
from interlock.control.runtime import OrderDeniedError
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job, Order, Trouble
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Resource

#: The kinds that tell of trouble.
Troubled = Job | JobConfig | ControlledJob
#: The same, in the form in which it is quickest to ask for.
_TROUBLED = (Job, JobConfig, ControlledJob)

#: A message is cut here: it may quote anything.
_LONGEST = 1000


def trouble_after(
    item: Item, seen: Resource | None, message: str, now: datetime, order: Order | None = None
) -> tuple[Troubled, Trouble | None] | None:
    """What to write after a look: a trouble, or (no message) that it is over; None for nothing.

    The trouble of another room stays: two rooms that fail must not take turns overwriting.
    """
    if not isinstance(seen, _TROUBLED):
        return None
    held = seen.status.trouble
    if held is not None and held.room != item.room:
        return None
    if not message:
        return None if held is None else (seen, None)
    since = held.since if held is not None and held.order is order else now
    told = Trouble(room=item.room, message=message[:_LONGEST], since=since, order=order)
    return (seen, told) if told != held else None


def trouble_of(
    item: Item, seen: Resource | None, error: Exception, now: datetime
) -> tuple[Troubled, Trouble | None] | None:
    """What to write after a look that failed; None for nothing."""
    if isinstance(error, OrderDeniedError):
        return trouble_after(item, seen, str(error), now, error.order)
    return trouble_after(item, seen, f"{type(error).__name__}: {error}", now)


def is_trouble_only(change: Change) -> bool:
    """Whether nothing but the trouble changed: woken by that, a failure would feed itself."""
    before, after = change.before, change.after
    if not isinstance(before, _TROUBLED) or not isinstance(after, _TROUBLED):
        return False
    if before.status.trouble == after.status.trouble:
        return False
    metadata = replace(before.metadata, resource_version=after.metadata.resource_version)
    return replace(with_trouble(before, after.status.trouble), metadata=metadata) == after


def with_trouble(resource: Troubled, trouble: Trouble | None) -> Troubled:
    """A resource that tells of this trouble, or (None) of none."""
    match resource:
        case Job():
            return replace(resource, status=replace(resource.status, trouble=trouble))
        case JobConfig():
            return replace(resource, status=replace(resource.status, trouble=trouble))
        case ControlledJob():
            return replace(resource, status=replace(resource.status, trouble=trouble))
        case _:
            assert_never(resource)
