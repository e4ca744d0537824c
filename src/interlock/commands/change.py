"""What comes of an order: the writes to be made, and what people are told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlock.resources.codec import from_builtins, to_builtins
from interlock.resources.door.patches import merge_patch, patch_between
from interlock.resources.job import Job
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Resource
from interlock.resources.transitions import has_ended

R = TypeVar("R", bound=Resource)


class By(Struct, frozen=True):
    """Who gives an order, as far as is known, and when."""

    #: Empty when nobody knows.
    who: str
    now: datetime


class Write(Struct, frozen=True):
    """One resource to be stored: in the place of `before`, or as a new one."""

    after: Resource
    before: Resource | None = None

    @property
    def patch(self) -> dict[str, Any]:
        """What it changes, as a merge patch of spec and metadata; empty when nothing."""
        assert self.before is not None, f"{self.after.key} is new"
        return patch_between(to_builtins(self.before), to_builtins(self.after))


class Change(Struct, frozen=True, kw_only=True):
    """What an order comes to.

    The first write decides: when the resource changed since it was read, the whole order is
    worked out anew. Those after it follow from the order whatever else changes (`rebased`). With
    no write at all, everything is as it was ordered already.
    """

    #: What happens, for people, line by line.
    told: tuple[str, ...] = ()
    #: What becomes of something new that gets its name only when it is stored: "created".
    made: str = ""
    writes: tuple[Write, ...] = ()
    #: What it is about, when nothing is written.
    shown: Resource | None = None
    #: What does not come of it although it was asked for.
    warnings: tuple[str, ...] = ()

    def lines(self, stored: Resource) -> tuple[str, ...]:
        """What people are told, once it is stored."""
        return (f"{named(stored)} {self.made}", *self.told) if self.made else self.told


def named(resource: Resource) -> str:
    """A resource as people write it: job/x."""
    return f"{resource.kind.lower()}/{resource.metadata.name}"


def changed(before: R, after: R, told: str, *more: str) -> Change:
    """The change of one resource, told behind its name; none when it is as it should be."""
    writes = (Write(after, before),) if after != before else ()
    return Change(told=(f"{named(before)} {told}", *more), writes=writes, shown=after)


def unchanged(resource: Resource, told: str) -> Change:
    """That there is nothing to do."""
    return Change(told=(f"{named(resource)} {told}",), shown=resource)


def noted(resource: R, notes: Mapping[str, str | None]) -> R:
    """The resource with these annotations; None takes one away, nothing is written for nobody."""
    wanted = {**resource.metadata.annotations, **notes}
    annotations = {name: text for name, text in wanted.items() if text is not None}
    if annotations == resource.metadata.annotations:
        return resource
    return replace(resource, metadata=replace(resource.metadata, annotations=annotations))


def rebased(write: Write, found: Resource | None) -> Write | None:
    """The same change to what is stored now; None when there is nothing left to change.

    What is gone, was made anew under its name, or is over needs no order any more.
    """
    before = write.before
    assert before is not None, f"{write.after.key} is new"
    if found is None or found.metadata.uid != before.metadata.uid:
        return None
    if isinstance(found, Job) and has_ended(found):
        return None
    wanted = merge_patch(to_builtins(found), write.patch)
    after: Resource = from_builtins(wanted, KINDS[found.kind].type)
    return Write(after, found) if after != found else None
