"""Slots: the claim of numbered places, of which there are as many as a TestBed's nodes come to.

A grant names the slots it is for. Each slot is a resource of the claim of which there is one, and
all together are another (`COUNT`), so that the same sums say of both sorts of requests whether they
fit: of one for so many slots, and of one for certain slots. Whoever asks for so many gets those
that come first by position and that nobody holds.

A slot that went while somebody was in it is still held, so that nobody else is granted it should it
come back; it takes nothing from those who ask for the others.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from interlock.admission.claims.claim import COUNT, NOTHING, Amounts, Ask, ClaimKey, fits
from interlock.resources.actions import Decision
from interlock.resources.admission import RefusalReason, WaitReason
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.test_bed import (
    SlotHolder,
    TestBedSlots,
    TestBedSlotsStatus,
    node_of,
    number_of,
    seats_of,
    slots_asked,
)
from interlock.resources.waits import WORDS


class SlotClaims:
    """How slots are asked for, granted and written down."""

    record_kind = "TestBedSlots"
    noun = WORDS[WaitReason.SLOTS_TAKEN].noun
    forbidden = RefusalReason.INVALID
    is_sized = True

    def asks(self, job: Job) -> tuple[Ask, ...]:
        """As many slots as the Job would use, of the bed that it names."""
        request = job.spec.slots
        if request is None or request.test_bed is None:
            return ()
        picks = frozenset(request.ids or ())
        amounts = {COUNT: slots_asked(job), **dict.fromkeys(picks, 1)}
        key = Key(self.record_kind, job.metadata.namespace, request.test_bed)
        return (Ask(kind=self, key=key, name=request.test_bed, amounts=amounts, picks=picks),)

    def limits(self, ask: Ask, record: TestBedSlots | None) -> Amounts:
        """One of each slot there is, and as many in all."""
        if record is None:
            return NOTHING
        there = _there(record)
        named = dict.fromkeys((slot for slot in ask.picks if _is_in(there, slot)), 1)
        return {COUNT: sum(there.values()), **named}

    def wait_reason(self, ask: Ask, limits: Amounts) -> WaitReason:
        """Whether it waits for others, or for slots that are not there at all."""
        if not limits:
            return WaitReason.NO_TEST_BED
        is_there = fits(ask.amounts, NOTHING, limits)
        return WaitReason.SLOTS_TAKEN if is_there else WaitReason.BED_TOO_SMALL

    def is_resized(self, before: TestBedSlots | None, after: TestBedSlots | None) -> bool:
        """Whether slots came or went."""
        was, now = ((one.status.places if one is not None else None) for one in (before, after))
        return was != now

    def holders(self, record: TestBedSlots) -> tuple[SlotHolder, ...]:
        """The holders as they are stored."""
        return record.status.holders

    def is_for(self, holder: SlotHolder, ask: Ask) -> bool:
        """Whether it is for as many slots, and for those that are named."""
        return len(holder.slots) == ask.amounts[COUNT] and ask.picks.issubset(holder.slots)

    def job_of(self, claim: ClaimKey, holder: SlotHolder) -> Key:
        """A Job in the bed's namespace."""
        return Key("Job", claim.namespace, holder.job)

    def amounts_of(self, holder: SlotHolder, record: TestBedSlots) -> Amounts:
        """One of each of its slots; those that went take nothing from what there is."""
        there = _there(record)
        held = [slot for slot in holder.slots if _is_in(there, slot)]
        return {COUNT: len(held), **dict.fromkeys(held, 1)}

    def name_of(self, record: TestBedSlots) -> str:
        """The name of the bed."""
        return record.spec.test_bed

    def new_record(self, ask: Ask) -> None:  # noqa: ARG002
        """The slots room makes it for a bed that there is."""
        return

    def granted(
        self, record: TestBedSlots, ask: Ask, job: Job, now: datetime, held: tuple[SlotHolder, ...]
    ) -> SlotHolder:
        """The slots to the Job in its present epoch: those it names, or the first free ones."""
        taken = {slot for holder in held for slot in holder.slots}
        free = (seat.id for seat in seats_of(record.status.places) if seat.id not in taken)
        named = job.spec.slots.ids if job.spec.slots is not None else None
        chosen = named if named is not None else tuple(free)[: ask.amounts[COUNT]]
        return SlotHolder(
            job=job.metadata.name,
            uid=job.metadata.uid,
            epoch=job.status.admission.epoch,
            token=max(record.version, record.status.last_token + 1),
            slots=chosen,
            granted_at=now,
            job_version=job.version,
        )

    def written(
        self,
        record: TestBedSlots,
        holders: tuple[SlotHolder, ...],
        newest: Ask | None,
        now: datetime,  # noqa: ARG002
    ) -> TestBedSlotsStatus:
        """The holders."""
        status = replace(record.status, holders=holders)
        return status if newest is None else replace(status, last_token=holders[-1].token)

    def retire(self, record: TestBedSlots, now: datetime) -> Decision:  # noqa: ARG002
        """The slots room removes it once its bed is gone."""
        return Decision()


def _there(record: TestBedSlots) -> dict[str, int]:
    """How many slots there are on each node."""
    return {place.node: place.slots for place in record.status.places}


def _is_in(there: dict[str, int], slot: str) -> bool:
    return number_of(slot) < there.get(node_of(slot), 0)


SLOTS = SlotClaims()
