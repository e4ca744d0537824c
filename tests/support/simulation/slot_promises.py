"""What is promised of slots: each has one tenant, and nobody loses one that may be in it."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.job import Job, SlotsRequest
from interlock.resources.test_bed import (
    Place,
    SlotHolder,
    TestBed,
    TestBedSlots,
    seats_of,
    slots_asked,
)
from interlock.resources.transitions import has_ended, is_admitted
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.judge import Promise
from support.simulation.promises import jobs_of
from support.simulation.truth import Truth

_SLOT = "INTERLOCK_SLOT"
_BED = "INTERLOCK_TEST_BED"
#: So long nobody may be at work: control planes are killed, and the lease has to run out.
_NOBODY_LEADS_S = 200.0


def _records_of(change: Change) -> tuple[TestBedSlots | None, TestBedSlots | None]:
    before, after = change.before, change.event.resource
    is_gone = change.event.type is EventType.DELETED
    return (
        before if isinstance(before, TestBedSlots) else None,
        after if isinstance(after, TestBedSlots) and not is_gone else None,
    )


class OneTenant(Promise):
    """At no instant may two Jobs, or two attempts, do something in one slot."""

    def seated(self, change: Change) -> None:
        """Whoever is granted slots gets free ones that there are; nobody loses one."""
        before, after = _records_of(change)
        known = before.status.holders if before is not None else ()
        now = after.status.holders if after is not None else ()
        for holder in now:
            if after is not None and holder not in known:
                self._check_new(after, holder)
        for holder in known:
            if holder not in now and not self._is_done(holder):
                raise self.broken(f"{holder.job} loses its slots, and may be in them", holder.job)

    def _check_new(self, record: TestBedSlots, holder: SlotHolder) -> None:
        there = {seat.id for seat in seats_of(record.status.places)}
        if not there.issuperset(holder.slots) or len(set(holder.slots)) != len(holder.slots):
            raise self.broken(f"{holder.job} gets {holder.slots}, of {sorted(there)}", holder.job)
        asked = self.truth.asked_slots.get((holder.uid, holder.job_version))
        if asked is not None and asked != len(holder.slots):
            raise self.broken(
                f"{holder.job} gets {holder.slots}, and asked for {asked}", holder.job
            )
        for other in record.status.holders:
            if other is not holder and not self._is_done(other):
                self._check_apart(holder.job, holder.slots, other.job, other.slots)

    def _check_apart(
        self, job: str, slots: tuple[str, ...], other: str, others: tuple[str, ...]
    ) -> None:
        for slot in set(slots) & set(others):
            raise self.broken(f"{slot} is given to {job}, and {other} may be in it", job, other)

    def _is_done(self, holder: SlotHolder) -> bool:
        if self.truth.is_over(holder.uid):
            return True
        return self.truth.by_uid[holder.uid].status.admission.epoch > holder.epoch

    def wrote(self, change: Change) -> None:
        """A Job is let in with what it asks for, which its bed's record says, and alone in it."""
        before, after = jobs_of(change)
        if after is None or not is_admitted(after) or self.truth.writer == "user":
            return
        if before is not None and is_admitted(before) and before.metadata.uid == after.metadata.uid:
            return
        request, grant = after.spec.slots, after.status.admission.slots
        name = after.metadata.name
        if request is None:
            if grant is not None:
                raise self.broken(f"{name} is let in with slots that it did not ask for", name)
            return
        if grant is None or grant.test_bed != request.test_bed:
            raise self.broken(f"{name} is let in without slots of {request.test_bed}", name)
        if len(grant.ids) != slots_asked(after) or (set(request.ids or grant.ids) != {*grant.ids}):
            raise self.broken(f"{name} is let in with {grant.ids}", name)
        record = self.truth.slots.get(grant.test_bed)
        epoch, uid = after.status.admission.epoch, after.metadata.uid
        held = [
            holder
            for holder in (record.status.holders if record is not None else ())
            if (holder.uid, holder.epoch, holder.slots) == (uid, epoch, grant.ids)
        ]
        if not held:
            raise self.broken(f"{name} is let in with slots that its bed's record denies", name)
        for other in self._seated_in(grant.test_bed):
            theirs = other.status.admission.slots
            if other.metadata.uid != uid and theirs is not None:
                self._check_apart(name, grant.ids, other.metadata.name, theirs.ids)

    def _seated_in(self, bed: str) -> Iterator[Job]:
        for job in self.truth.jobs.values():
            grant = job.status.admission.slots
            if grant is not None and grant.test_bed == bed and not has_ended(job):
                yield job

    def starts(self, life: Life) -> None:
        """An attempt of a Job with slots begins in one of them, in which nothing else runs."""
        order = life.order
        job = self.truth.by_uid.get(order.job_uid)
        slot, bed = order.env.get(_SLOT, ""), order.env.get(_BED, "")
        if job is None or job.spec.slots is None:
            return
        if not slot:
            raise self.broken(f"{order.name} runs in no slot", order.job)
        for other in self.truth.lives.values():
            same = other.order.env.get(_SLOT) == slot and other.order.env.get(_BED) == bed
            if other is not life and same and other.order.id not in self.truth.written_off:
                raise self.broken(
                    f"{order.name} starts in {slot} of {bed}, where {other.order.name} runs",
                    *(order.job, other.order.job),
                )

    def settled(self) -> None:
        """Nobody is in a slot any more, and each bed has the slots that its nodes come to."""
        for name, record in self.truth.slots.items():
            for holder in record.status.holders:
                raise self.broken(f"{holder.job} is over and holds slots of {name}", holder.job)
            bed = self.truth.beds.get(name)
            if bed is None:
                raise self.broken(f"the slots of {name} outlive it")
            self._check_whole(bed, record)

    def _check_whole(self, bed: TestBed, record: TestBedSlots) -> None:
        label = bed.spec.node_label
        expected = []
        for rank, (name, node) in enumerate(sorted(self.truth.nodes.items())):
            number = str(rank) if label is None else node.metadata.labels.get(label, "")
            if number.isdigit():
                place = Place(node=name, id=int(number), slots=bed.spec.slots_per_node)
                expected.append(place)
        expected.sort(key=lambda place: (place.id, place.node))
        if list(record.status.places) != expected:
            raise self.broken(f"{bed.metadata.name} has {record.status.places}, not {expected}")
        if (bed.status.nodes, bed.status.slots) != (
            len(expected),
            sum(place.slots for place in expected),
        ):
            raise self.broken(f"{bed.metadata.name} tells of {bed.status.slots} slots")


class SlotsInOrder(Promise):
    """Slots go to the first in line of those that want them: by priority, then by creation."""

    def seated(self, change: Change) -> None:
        """Nobody is granted slots whom somebody was before, for long, who wants the same."""
        before, after = _records_of(change)
        known = before.status.holders if before is not None else ()
        for holder in after.status.holders if after is not None else ():
            job = self.truth.by_uid.get(holder.uid)
            if after is not None and job is not None and holder not in known:
                self._check(after, holder, job)

    def _check(self, record: TestBedSlots, holder: SlotHolder, job: Job) -> None:
        truth, granted = self.truth, {(one.uid, one.epoch) for one in record.status.holders}
        for other in truth.jobs.values():
            request = other.spec.slots
            if (
                request is not None
                and request.test_bed == record.spec.test_bed
                and (other.metadata.uid, other.status.admission.epoch) not in granted
                and _waits_for_slots(other)
                and _place(other) < _place(job)
                and _is_in_the_way(request, job)
                and truth.may_be_seated(other)
                and truth.now - truth.stands_since[other.metadata.uid] > truth.patience
            ):
                names = (job.metadata.name, other.metadata.name)
                raise self.broken(f"{names[0]} is given {holder.slots} before {names[1]}", *names)


class NobodyHeldUp(Promise):
    """Whoever waits for slots that are free, and is the first who wants them, gets them soon."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._could_since: dict[str, float] = {}

    def seated(self, change: Change) -> None:
        """Time has passed."""
        self._look()

    def wrote(self, change: Change) -> None:
        """Time has passed."""
        self._look()

    def settled(self) -> None:
        """Time has passed."""
        self._look()

    def _look(self) -> None:
        truth = self.truth
        waiting = [
            job
            for job in truth.jobs.values()
            if job.spec.slots is not None
            and _waits_for_slots(job)
            and truth.may_be_seated(job)
            and job.metadata.name not in truth.bad
        ]
        could: dict[str, float] = {}
        for job in waiting:
            uid = job.metadata.uid
            if self._could_go(job, waiting):
                could[uid] = self._could_since.get(uid, truth.now)
                if truth.now - could[uid] > truth.patience + _NOBODY_LEADS_S:
                    raise self.broken(f"{job.metadata.name} could go", job.metadata.name)
        self._could_since = could

    def _could_go(self, job: Job, waiting: list[Job]) -> bool:
        request, spec = job.spec.slots, job.spec
        if request is None or spec.locks or spec.start_after is not None or spec.kill_at:
            return False
        for other in waiting:
            theirs = other.spec.slots
            if theirs is None or theirs.test_bed != request.test_bed or other is job:
                continue
            if _place(other) < _place(job) and _is_in_the_way(theirs, job):
                return False
        record = self.truth.slots[request.test_bed or ""]
        taken = {
            slot
            for holder in record.status.holders
            if holder.uid != job.metadata.uid
            for slot in holder.slots
        }
        free = {seat.id for seat in seats_of(record.status.places)} - taken
        return len(free) >= slots_asked(job) and free.issuperset(request.ids or ())


def _is_in_the_way(request: SlotsRequest, job: Job) -> bool:
    """Whether who asks so before a Job wants what it wants: certain slots, or any."""
    own = job.spec.slots
    if own is None or own.ids is None or request.ids is None:
        return True
    return not set(own.ids).isdisjoint(request.ids)


def _waits_for_slots(job: Job) -> bool:
    """Whether a Job has been seen, waits for claims, and for nothing else."""
    admission = job.status.admission
    if is_admitted(job) or has_ended(job) or job.is_going or job.spec.suspend:
        return False
    return admission.sequence > 0 and all(wait.key for wait in admission.waits)


def _place(job: Job) -> tuple[int, int]:
    return -job.spec.priority, job.status.admission.sequence or job.version


SLOT_PROMISES: tuple[type[Promise], ...] = (OneTenant, SlotsInOrder, NobodyHeldUp)
