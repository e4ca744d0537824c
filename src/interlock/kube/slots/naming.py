"""Names, labels and annotations by which pods, ghosts and slots find each other."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import NamedTuple

from interlock.resources.metadata import GROUP
from interlock.resources.naming import MAX_LABEL

#: What a pod asks for: a TestBed of its namespace, and which of its slots, where not any will do.
TEST_BED = f"{GROUP}/test-bed"
SLOTS = f"{GROUP}/slots"
#: The slot that a pod was told, for people and for the pod; and all that is on record about it.
SLOT = f"{GROUP}/slot"
HOLD = f"{GROUP}/slot-hold"

#: Label of a ghost: its TestBed. Its annotations: its slot, how large that is, and whom it is
#: reserved for.
GHOST_OF = f"{GROUP}/ghost-of"
GHOST_SLOT = f"{GROUP}/ghost-slot"
GHOST_SIZE = f"{GROUP}/ghost-size"
RESERVED = f"{GROUP}/reserved-for"
#: Holds a ghost until the pod that it is reserved for was told.
FINALIZER = f"{GROUP}/slot"

#: The priority class of ghosts.
GHOST_PRIORITY = "interlock-ghost"
#: Who schedules ghosts and the pods that ask for slots.
SCHEDULER = "interlock-slots"

_DIGEST = 10
_NODE = r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?"
_SLOT = re.compile(rf"(?P<node>{_NODE})/(?P<number>0|[1-9][0-9]{{0,2}})")
_LONGEST = 257
_NOT_IN_NAMES = re.compile(r"[^-a-z0-9]+")


class Slot(NamedTuple):
    """A slot of a TestBed; it never means another one."""

    #: First, so that slots in order go round all nodes.
    number: int
    node: str

    def __str__(self) -> str:
        return f"{self.node}/{self.number}"


class Bed(NamedTuple):
    """Which TestBed."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def read_slot(text: str) -> Slot | None:
    """A slot as it is written, NODE/NUMBER; None where it makes no sense."""
    read = _SLOT.fullmatch(text) if len(text) <= _LONGEST else None
    return Slot(int(read["number"]), read["node"]) if read is not None else None


def ghost_name(bed: str, slot: Slot) -> str:
    """What the ghost of a slot is called: there is never more than one of a name.

    As much of the bed and the node as there is room for, and a digest of all of it: names of pods
    serve as host names too.
    """
    digest = sha256(f"{bed}/{slot}".encode()).hexdigest()[:_DIGEST]
    tail = f"-{slot.number}-{digest}"
    readable = _NOT_IN_NAMES.sub("-", f"ghost-{bed}-{slot.node}")
    return readable[: MAX_LABEL - len(tail)].rstrip("-") + tail
