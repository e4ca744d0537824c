"""The view of a TestBed: everything that a decision about its slots may depend on."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from interlock.resources.metadata import Key
from interlock.resources.test_bed import TestBed, TestBedSlots


class NodeView(Struct, frozen=True, kw_only=True):
    """A node, as far as it matters to slots."""

    name: str
    labels: Mapping[str, str] = {}
    #: What it has for work, in thousandths; what is not named it has none of.
    has: Mapping[str, int] = {}
    #: What beds that are older than this one have taken of it.
    taken: Mapping[str, int] = {}


class BedView(Struct, frozen=True, kw_only=True):
    """One TestBed, its record, and the nodes."""

    key: Key
    #: None when it is gone, and the record is left of it.
    bed: TestBed | None = None
    record: TestBedSlots | None = None
    nodes: tuple[NodeView, ...] = ()
