"""What `status.trouble` says after a look, and whom a change of it concerns."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from interlock.control.queue import Item
from interlock.control.reconciler import Change
from interlock.control.runtime import OrderDeniedError
from interlock.resources.metadata import Order, Reference, Resource, Status, Trouble

R = TypeVar("R", bound=Resource)

#: A message is cut here: it may quote anything.
_LONGEST = 1000


def status_of(resource: Resource | None) -> Status | None:
    """The status in which a resource tells of trouble; None for one that tells of none."""
    status = getattr(resource, "status", None)
    return status if isinstance(status, Status) else None


def trouble_after(
    item: Item,
    seen: Resource | None,
    message: str,
    now: datetime,
    order: Order | None = None,
    about: Reference | None = None,
) -> tuple[Resource, Trouble | None] | None:
    """What to write after a look: a trouble, or (no message) that it is over; None for nothing.

    The trouble of another room stays: two rooms that fail must not take turns overwriting.
    """
    status = status_of(seen)
    if seen is None or status is None:
        return None
    held = status.trouble
    if held is not None and held.room != item.room:
        return None
    if not message:
        return None if held is None else (seen, None)
    since = held.since if held is not None and held.order is order else now
    told = Trouble(
        room=item.room, message=message[:_LONGEST], since=since, order=order, about=about
    )
    return (seen, told) if told != held else None


def trouble_of(
    item: Item,
    seen: Resource | None,
    error: Exception,
    now: datetime,
    about: Resource | None = None,
) -> tuple[Resource, Trouble | None] | None:
    """What to write after a look that failed, or whose write of another object did."""
    if isinstance(error, OrderDeniedError):
        return trouble_after(item, seen, str(error), now, error.order)
    other: Reference | None = None
    if about is not None and about.key != item.key:
        kind, namespace, name = about.key
        other = Reference(kind=kind, namespace=namespace, name=name)
    return trouble_after(item, seen, f"{type(error).__name__}: {error}", now, about=other)


def is_trouble_only(change: Change) -> bool:
    """Whether nothing but the trouble changed: woken by that, a failure would feed itself."""
    before, after = change.before, change.after
    if before is None or after is None:
        return False
    was, now_is = status_of(before), status_of(after)
    if was is None or now_is is None or was.trouble == now_is.trouble:
        return False
    metadata = replace(before.metadata, resource_version=after.metadata.resource_version)
    return replace(with_trouble(before, now_is.trouble), metadata=metadata) == after


def with_trouble(resource: R, trouble: Trouble | None) -> R:
    """A resource that tells of this trouble, or (None) of none."""
    status = status_of(resource)
    assert status is not None, f"{resource.key} tells of no trouble"
    return replace(resource, status=replace(status, trouble=trouble))
