"""What `status.trouble` of a Job says after a look, and whom a change of it concerns."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from interlock.control.queue import Item
from interlock.control.reconciler import Change
from interlock.resources.job import Job, Trouble
from interlock.resources.metadata import Resource

#: A message is cut here: it may quote anything.
_LONGEST = 1000


def trouble_after(
    item: Item, seen: Resource | None, error: Exception, now: datetime
) -> tuple[Job, Trouble] | None:
    """The trouble to write on the Job an item is about; None when there is nothing to write.

    The trouble of another room stays: two rooms that fail must not take turns overwriting.
    """
    if not isinstance(seen, Job):
        return None
    held = seen.status.trouble
    message = f"{type(error).__name__}: {error}"[:_LONGEST]
    if held is not None and (held.room != item.room or held.message == message):
        return None
    since = held.since if held is not None else now
    return seen, Trouble(room=item.room, message=message, since=since)


def trouble_to_clear(item: Item, seen: Resource | None) -> Job | None:
    """The Job whose trouble is over, now that the same room has looked and found nothing to do."""
    if not isinstance(seen, Job):
        return None
    held = seen.status.trouble
    return seen if held is not None and held.room == item.room else None


def is_trouble_only(change: Change) -> bool:
    """Whether nothing but the trouble changed: woken by that, a failure would feed itself."""
    before, after = change.before, change.after
    if not isinstance(before, Job) or not isinstance(after, Job):
        return False
    if before.status.trouble == after.status.trouble:
        return False
    metadata = replace(before.metadata, resource_version=after.metadata.resource_version)
    status = replace(before.status, trouble=after.status.trouble)
    return replace(before, metadata=metadata, status=status) == after
