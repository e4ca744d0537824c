"""TestBeds as people ask about them: which slots there are, who is in each, and who waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from interlock.admission.claims.claim import fits, total
from interlock.admission.claims.slots import SLOTS
from interlock.admission.lines import place_of, stands_in_line
from interlock.control.cache import Cache
from interlock.reporting.queue_why import ends_by
from interlock.resources.admission import Wait, WaitReason
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.test_bed import (
    NodeProblem,
    SlotHolder,
    TestBed,
    TestBedSlots,
    held_slots,
    node_of,
    number_of,
    seats_of,
)
from interlock.resources.transitions import has_ended, is_admitted
from interlock.resources.waits import Blocker

#: The index of Jobs that are not over, by the TestBed whose slots they ask for.
BY_BED = "bed"
#: How many of those who wait for a bed are named.
_NAMED = 10


def beds_asked_for(job: Job) -> Iterable[str]:
    """Under which values a Job is found in the index BY_BED."""
    request = job.spec.slots
    if request is None or request.test_bed is None or has_ended(job):
        return ()
    return (f"{job.metadata.namespace}/{request.test_bed}",)


class SlotState(StrEnum):
    """What a slot is to those who want one."""

    FREE = "Free"
    #: Granted to a Job, of which nothing runs in it now.
    RESERVED = "Reserved"
    #: A task is in it.
    OCCUPIED = "Occupied"
    #: Granted to a Job that may still be in it, and not there any more for others.
    GONE = "Gone"


class SlotAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One slot."""

    #: Which it is, whatever comes and goes around it: NODE/NUMBER.
    slot: str
    node: str
    #: Its number on its node.
    number: int
    state: SlotState
    #: Where it comes among all slots of the bed; none for one that is gone.
    position: int | None = None
    #: Where its node comes among the nodes.
    node_id: int | None = None
    #: The Job that it was granted to, since when, and the task that is in it.
    job: str = ""
    uid: str = ""
    phase: str = ""
    since: datetime | None = None
    task: str = ""


class BedAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A TestBed in short."""

    name: str
    namespace: str
    nodes: int
    slots: int
    free: int
    reserved: int
    occupied: int
    #: Slots that went while somebody was in them; they are none of the others.
    gone: int
    waiting: int
    problems: tuple[NodeProblem, ...] = ()
    #: Whether it is not there, although somebody is in its slots still, or waits for some.
    missing: bool = False


class BedDetail(BedAnswer, frozen=True, kw_only=True, rename="camel"):
    """A TestBed, each of its slots, and the first of those who wait."""

    seats: tuple[SlotAnswer, ...] = ()
    waiters: tuple[str, ...] = ()


class SlotWait(NamedTuple):
    """Why a Job does not get slots, and who is in those that it wants."""

    wait: Wait
    blockers: tuple[Blocker, ...]


class BedReader:
    """Answers questions about TestBeds."""

    def __init__(
        self, jobs: Cache[Job], beds: Cache[TestBed], records: Cache[TestBedSlots]
    ) -> None:
        self._jobs = jobs
        self._beds = beds
        self._records = records

    def beds(self, namespace: str) -> Iterator[BedAnswer]:
        """Every TestBed of a namespace or of all, those too that are not there any more."""
        keys = {_place(one) for one in (*self._beds, *self._records)}
        for place in sorted(keys):
            if not namespace or place[0] == namespace:
                found = self.bed(*place)
                if found is not None:
                    yield BedAnswer(**{name: getattr(found, name) for name in _SHORT})

    def bed(self, namespace: str, name: str) -> BedDetail | None:
        """One TestBed; None where there is none, and nobody was granted anything of it."""
        bed = self._beds.get(Key("TestBed", namespace, name))
        record = self._records.get(Key("TestBedSlots", namespace, name))
        if bed is None and record is None:
            return None
        seats = tuple(self._seats(record)) if record is not None else ()
        waiting = self._waiting(namespace, name)

        def count(state: SlotState) -> int:
            return sum(seat.state is state for seat in seats)

        gone = count(SlotState.GONE)
        return BedDetail(
            name=name,
            namespace=namespace,
            nodes=len(record.status.places) if record is not None else 0,
            slots=len(seats) - gone,
            free=count(SlotState.FREE),
            reserved=count(SlotState.RESERVED),
            occupied=count(SlotState.OCCUPIED),
            gone=gone,
            waiting=len(waiting),
            problems=bed.status.problems if bed is not None else (),
            missing=bed is None,
            seats=seats,
            waiters=tuple(job.metadata.name for job in waiting[:_NAMED]),
        )

    def wait_of(self, job: Job) -> SlotWait | None:
        """Why a Job does not get the slots that it asks for, as things are now."""
        namespace = job.metadata.namespace
        for ask in SLOTS.asks(job):
            record = self._records.get(ask.key)
            limits, others = SLOTS.limits(ask, record), self._others(record, job)
            taken = total(SLOTS.amounts_of(one, record) for one in others if record is not None)
            if fits(ask.amounts, taken, limits):
                waits = job.status.admission.waits
                if all(wait.reason is not WaitReason.SLOTS_TAKEN for wait in waits):
                    return None
                others = ()
            reason = SLOTS.wait_reason(ask, limits)
            wanted = (one for one in others if not ask.picks or ask.picks & set(one.slots))
            blockers = tuple(_blocker(one, self._job_of(namespace, one)) for one in wanted)
            is_taken = reason is WaitReason.SLOTS_TAKEN
            return SlotWait(Wait(reason=reason, key=ask.name), blockers if is_taken else ())
        return None

    def _others(self, record: TestBedSlots | None, job: Job) -> tuple[SlotHolder, ...]:
        """Who holds slots of a bed beside a Job, and is not over."""
        if record is None:
            return ()
        namespace = record.metadata.namespace
        return tuple(
            holder
            for holder in record.status.holders
            if holder.uid != job.metadata.uid
            and ((held_by := self._job_of(namespace, holder)) is None or not has_ended(held_by))
        )

    def _seats(self, record: TestBedSlots) -> Iterator[SlotAnswer]:
        held = dict(held_slots(record))
        ids = {place.node: place.id for place in record.status.places}
        for seat in seats_of(record.status.places):
            holder = held.pop(seat.id, None)
            yield self._seat(record, seat.id, holder, seat.position, ids[seat.node])
        for slot, holder in held.items():
            yield self._seat(record, slot, holder, None, None)

    def _seat(
        self,
        record: TestBedSlots,
        slot: str,
        holder: SlotHolder | None,
        position: int | None,
        node_id: int | None,
    ) -> SlotAnswer:
        bare = SlotAnswer(
            slot=slot,
            node=node_of(slot),
            number=number_of(slot),
            state=SlotState.FREE,
            position=position,
            node_id=node_id,
        )
        if holder is None:
            return bare
        job = self._job_of(record.metadata.namespace, holder)
        task = _task_in(job, slot) if job is not None else ""
        state = SlotState.OCCUPIED if task else SlotState.RESERVED
        return replace(
            bare,
            state=SlotState.GONE if position is None else state,
            job=holder.job,
            uid=holder.uid,
            phase=_phase_of(job),
            since=holder.granted_at,
            task=task,
        )

    def _job_of(self, namespace: str, holder: SlotHolder) -> Job | None:
        job = self._jobs.get(Key("Job", namespace, holder.job))
        return job if job is not None and job.metadata.uid == holder.uid else None

    def _waiting(self, namespace: str, name: str) -> list[Job]:
        jobs = self._jobs.by(BY_BED, f"{namespace}/{name}")
        return sorted((job for job in jobs if _waits(job)), key=place_of)


_SHORT = BedAnswer.__struct_fields__


def _place(resource: TestBed | TestBedSlots) -> tuple[str, str]:
    return resource.metadata.namespace, resource.metadata.name


def _waits(job: Job) -> bool:
    return stands_in_line(job) and not is_admitted(job)


def _task_in(job: Job, slot: str) -> str:
    """The attempt that is in a slot; empty where nothing is."""
    return next((task.name for task in job.status.execution.active if task.slot == slot), "")


def _phase_of(job: Job | None) -> str:
    return job.status.phase.value if job is not None else "Gone"


def _blocker(holder: SlotHolder, job: Job | None) -> Blocker:
    return Blocker(
        job=holder.job,
        phase=_phase_of(job),
        since=holder.granted_at,
        token=holder.token,
        ends_by=ends_by(job) if job is not None else None,
    )
