"""What is forgotten where slots are granted: who is in them, the line, what is asked for now."""

from __future__ import annotations

from typing import Any

from grounds import too_large, undecided
from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.admission.claims.candidates import Candidate, Known, _as_candidate
from interlock.admission.claims.claim import COUNT
from interlock.admission.claims.proof import grant_of
from interlock.resources.actions import Decision, RecordStatus
from interlock.resources.test_bed import TestBedSlotsStatus
from support.simulation.slot_world import RivalSlotWorld, SlotWorld

GRANTED = Seam("interlock.admission.claims.slots", "SlotClaims.granted")
LIMITS = Seam("interlock.admission.claims.slots", "SlotClaims.limits")
IS_FOR = Seam("interlock.admission.claims.slots", "SlotClaims.is_for")

ALONE = "A slot has one tenant."
PROOF = "A grant counts until it is proven given back."
ASKED = "What a Job is let in with is what it asks for now."
ORDER = "Slots go to those who came first, of all who want the same."
SMALL = "Who asks for more than there is stands in nobody's way."


@mutation(ALONE, GRANTED, caught_by="OneTenant", in_worlds=SlotWorld)
def slots_are_given_that_somebody_holds(really: Any) -> Any:
    def granted(self: Any, record: Any, ask: Any, job: Any, now: Any, _: Any) -> Any:
        return really(self, record, ask, job, now, ())

    return granted


@mutation(ASKED, GRANTED, caught_by="OneTenant", in_worlds=SlotWorld)
def one_is_always_kept_back(really: Any) -> Any:
    def granted(*given: Any) -> Any:
        holder = really(*given)
        return replace(holder, slots=holder.slots[1:])

    return granted


@mutation(ALONE, LIMITS, caught_by="OneTenant", in_worlds=SlotWorld)
def there_is_always_one_more(really: Any) -> Any:
    def limits(self: Any, ask: Any, record: Any) -> Any:
        found = really(self, ask, record)
        return {name: amount + 1 for name, amount in found.items()}

    return limits


@mutation(
    ALONE,
    Seam("interlock.execution.launching", "_free_slots"),
    caught_by="OneTenant",
    in_worlds=SlotWorld,
)
def every_task_takes_the_first_slot(_: Any) -> Any:
    def free_slots(job: Any, __: Any) -> Any:
        grant = job.status.admission.slots
        return iter(()) if grant is None else iter(grant.ids[:1] * 1000)

    return free_slots


@mutation(
    PROOF,
    Seam("interlock.slots.beds.decide", "decide_bed"),
    caught_by="OneTenant",
    in_worlds=RivalSlotWorld,
)
def who_is_in_a_slot_that_goes_is_forgotten(really: Any) -> Any:
    def decide_bed(view: Any, now: Any) -> Decision:
        decision: Decision = really(view, now)
        actions = tuple(map(_without_those_who_lost_their_node, decision.actions))
        return Decision(actions, decision.wake_at, decision.reason)

    return decide_bed


def _without_those_who_lost_their_node(action: Any) -> Any:
    is_of_record = isinstance(action, RecordStatus)
    if not is_of_record or not isinstance(action.status, TestBedSlotsStatus):
        return action
    there = {place.node for place in action.status.places}
    holders = tuple(
        holder
        for holder in action.status.holders
        if all(slot.rpartition("/")[0] in there for slot in holder.slots)
    )
    return RecordStatus(action.resource, replace(action.status, holders=holders))


@mutation(
    PROOF,
    Seam("interlock.admission.claims.proof", "is_done"),
    caught_by="OneTenant",
    in_worlds=SlotWorld,
)
def nobody_is_in_a_slot_for_long(_: Any) -> Any:
    return lambda *_: True


@mutation(ASKED, IS_FOR, caught_by="OneTenant", in_worlds=undecided(SlotWorld))
def other_slots_will_do(_: Any) -> Any:
    return lambda *_: True


@mutation(
    ORDER,
    Seam("interlock.admission.claims.candidates", "candidate_for"),
    Seam("interlock.admission.claims.candidates", "jobs_ahead"),
    caught_by="SlotsInOrder",
    in_worlds=SlotWorld,
)
def the_last_is_first(_: Any, __: Any) -> Any:
    def candidate_for(known: Known, claim: Any, holders: Any) -> Candidate | None:
        line = known.lines.of(claim)
        for key in reversed(tuple(line.jobs()) if line is not None else ()):
            job = known.jobs.get(key)
            if job is not None and grant_of(job, holders) is None:
                candidate = _as_candidate(known, job, claim)
                if candidate.has_way:
                    return candidate
        return None

    return candidate_for, lambda *_: 0


@mutation(
    SMALL,
    Seam("interlock.admission.reconciler", "AdmissionReconciler._could_fit"),
    caught_by="NobodyHeldUp",
    in_worlds=too_large(SlotWorld),
)
def who_never_fits_holds_up_the_line(_: Any) -> Any:
    return lambda *_: True


@mutation(
    "Who waits for slots that come is told of them.",
    Seam("interlock.admission.claims.slots", "SlotClaims.is_resized"),
    caught_by="NobodyHeldUp",
    in_worlds=SlotWorld,
)
def new_slots_are_no_news(_: Any) -> Any:
    return lambda *_: False


@mutation(
    "There are as many slots as the nodes come to.",
    Seam("interlock.slots.reconciler", "_matters"),
    caught_by="OneTenant",
    in_worlds=SlotWorld,
)
def what_becomes_of_nodes_is_no_news(_: Any) -> Any:
    return lambda _: COUNT
