"""A TestBed: numbered slots on nodes; and TestBedSlots, the record of which Job has which of them.

A slot is one of a TestBed, on a node, with a number on that node: `NODE/NUMBER`. That never means
another one. Its position is only a way to look at all slots of a bed: sorted by number on the node,
then by node, so that neighbours are on different nodes; it shifts as nodes come and go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, NamedTuple

from interlock.resources.job import (
    MAX_RESOURCES,
    RESOURCE_NAMES,
    TEST_BED_NAME,
    Job,
)
from interlock.resources.metadata import Moment, Noun, Resource, Status
from interlock.resources.queue import wanted_at_once
from interlock.resources.rules import Entries, Limit, Matches
from interlock.resources.values.amounts import Amount

#: How many slots there are on a node at most.
MAX_SLOTS_PER_NODE = 1000
#: The number of a node, as its label says it.
MAX_NODE_ID = (1 << 31) - 1

LABEL_KEY = Matches(
    "([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
    "expected the name of a label, such as interlock.dev/bed-a",
    longest=317,
)


class TestBedSpec(Noun):
    """How many slots there are, on which nodes, and how large each is."""

    # Their names begin as those of tests do, which are looked for by that.
    __test__: ClassVar[bool] = False

    #: How many slots each of its nodes has. Of one that has fewer than before those go first that
    #: nobody is in; a slot that somebody is in goes once that is over.
    slots_per_node: Annotated[int, Limit(1, MAX_SLOTS_PER_NODE)]
    #: The name of a label: the nodes that have it are the bed's, and its value, a whole number,
    #: says in which order. Where it is not given, every node is, in the order of their names.
    node_label: Annotated[str, LABEL_KEY] | None = None
    #: What a slot holds of each resource: `cpu`, `memory`, any other name. A node that has less
    #: than all of its slots together has no slots of the bed.
    resources_per_slot: Annotated[
        dict[str, Amount], Entries(0, MAX_RESOURCES, "resources"), RESOURCE_NAMES
    ] = {}


class NodeProblem(Noun):
    """Why a node of a bed has no slots of it, or fewer than it should."""

    node: str
    message: str


class TestBedStatus(Status):
    """Which nodes and slots there are. Written by the slots room alone."""

    __test__: ClassVar[bool] = False

    #: The generation of the bed that this tells of.
    observed_generation: int = 0
    nodes: int = 0
    slots: int = 0
    #: The nodes that have no slots of the bed although they should; other nodes go on.
    problems: tuple[NodeProblem, ...] = ()


class TestBed(Resource, tag="TestBed", kw_only=True):
    """A set of numbered slots with room of their own, for Jobs that name them."""

    __test__: ClassVar[bool] = False

    spec: TestBedSpec
    status: TestBedStatus = TestBedStatus()


class Place(Noun):
    """A node of a bed, and how many slots it has."""

    node: str
    #: Where it comes among the nodes.
    id: Annotated[int, Limit(0, MAX_NODE_ID)]
    slots: int


class SlotHolder(Noun):
    """A Job that was granted slots, and may still be doing something in them."""

    job: str
    uid: str
    #: The Job's epoch for which the grant was made; a grant of an older epoch counts for nothing.
    epoch: int
    #: Rises with every grant of this record.
    token: int
    slots: tuple[str, ...]
    granted_at: Moment
    #: A version of the store at which the Job was there: one that is missing later is gone.
    job_version: int = 0


class TestBedSlotsSpec(Noun):
    """Whose slots the record is about."""

    __test__: ClassVar[bool] = False

    test_bed: Annotated[str, TEST_BED_NAME]


class TestBedSlotsStatus(Status):
    """Which slots there are, written by the slots room; and who has which, by admission."""

    __test__: ClassVar[bool] = False

    places: tuple[Place, ...] = ()
    holders: tuple[SlotHolder, ...] = ()
    last_token: int = 0


class TestBedSlots(Resource, tag="TestBedSlots", kw_only=True):
    """The record of a bed's slots. It has the bed's name, and stays while anybody is in one."""

    __test__: ClassVar[bool] = False

    spec: TestBedSlotsSpec
    status: TestBedSlotsStatus = TestBedSlotsStatus()


class Seat(NamedTuple):
    """A slot as one sees it in its bed."""

    position: int
    node: str
    number: int

    @property
    def id(self) -> str:
        """Which slot it is, whatever comes and goes around it."""
        return slot_id(self.node, self.number)


def slot_id(node: str, number: int) -> str:
    """What a slot is called."""
    return f"{node}/{number}"


def node_of(slot: str) -> str:
    """The node that a slot is on."""
    return slot.rpartition("/")[0]


def number_of(slot: str) -> int:
    """The number of a slot on its node."""
    return int(slot.rpartition("/")[2])


def seats_of(places: tuple[Place, ...]) -> tuple[Seat, ...]:
    """All slots of a bed, by position: one of each node, and again."""
    found = sorted(
        (number, place.id, place.node) for place in places for number in range(place.slots)
    )
    return tuple(Seat(at, node, number) for at, (number, _, node) in enumerate(found))


def slots_asked(job: Job) -> int:
    """How many slots a Job asks for: one for each task that it would run at a time."""
    request = job.spec.slots
    if request is None:
        return 0
    if request.ids is not None:
        return len(request.ids)
    return wanted_at_once(job.spec, job.status.execution.succeeded_before)


def has_its_slots(job: Job) -> bool:
    """Whether a Job that was let in has what it asks for, also if that is no slots at all."""
    request, grant = job.spec.slots, job.status.admission.slots
    if request is None or grant is None:
        return request is None and grant is None
    named = request.ids
    return request.test_bed == grant.test_bed and (named is None or set(named) == set(grant.ids))


def is_seated(record: TestBedSlots | None, job: Job) -> bool:
    """Whether the record says what a Job's status says: that the Job was granted these slots.

    Of the two the record is the one that counts.
    """
    grant = job.status.admission.slots
    if record is None or grant is None or record.spec.test_bed != grant.test_bed:
        return False
    uid, epoch = job.metadata.uid, job.status.admission.epoch
    return any(
        holder.uid == uid
        and holder.token == grant.token
        and holder.epoch == epoch
        and holder.slots == grant.ids
        for holder in reversed(record.status.holders)
    )


def held_slots(record: TestBedSlots) -> Iterator[tuple[str, SlotHolder]]:
    """Every slot that is granted, and to whom."""
    return ((slot, holder) for holder in record.status.holders for slot in holder.slots)
