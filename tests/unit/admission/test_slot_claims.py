"""Slots as a claim: who may have which, and what those wait for who may not."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.admission.claims.claim import COUNT, Ask, ClaimView, total
from interlock.admission.claims.slots import SLOTS
from interlock.admission.reconciler import BY_HOLDER, AdmissionReconciler, holder_uids
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import RecordStatus
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, WaitReason
from interlock.resources.job import Job, JobStatus
from interlock.resources.test_bed import Place, TestBedSlots, TestBedSlotsStatus, seats_of
from interlock.testing.builders import T0
from support.slot_desk import a_record, a_slot_holder, a_slot_job

#: Two nodes with two slots each: by position n0/0, n1/0, n0/1, n1/1.
PLACES = (Place(node="n0", id=0, slots=2), Place(node="n1", id=1, slots=2))
EVICTING = AdmissionStatus(phase=AdmissionPhase.EVICTING)


def asked(**spec: Any) -> Ask:
    (ask,) = SLOTS.asks(a_slot_job(**spec))
    return ask


def test_positions_go_round_the_nodes_and_identities_stay() -> None:
    assert [seat.id for seat in seats_of(PLACES)] == ["n0/0", "n1/0", "n0/1", "n1/1"]
    more = (*PLACES, Place(node="n2", id=0, slots=1))
    assert [seat.id for seat in seats_of(more)] == ["n0/0", "n2/0", "n1/0", "n0/1", "n1/1"]


@pytest.mark.parametrize(
    ("spec", "amounts"),
    [
        pytest.param({}, {COUNT: 1}, id="one task"),
        pytest.param({"tasks": 3}, {COUNT: 3}, id="one for each task"),
        pytest.param({"tasks": 9, "at_once": 2}, {COUNT: 2}, id="as many as run at a time"),
        pytest.param({"tasks": 9, "ids": ("n0/0",)}, {COUNT: 1, "n0/0": 1}, id="certain ones"),
    ],
)
def test_a_job_asks_for_a_slot_for_each_task_that_it_would_run_at_a_time(
    spec: dict[str, Any], amounts: dict[str, int]
) -> None:
    assert asked(**spec).amounts == amounts


def test_a_job_that_names_no_bed_asks_for_nothing_yet() -> None:
    assert SLOTS.asks(a_slot_job(bed=None)) == ()


@pytest.mark.parametrize(
    ("spec", "held", "is_free", "reason"),
    [
        pytest.param({}, (), True, None, id="all free"),
        pytest.param({"tasks": 4}, (), True, None, id="all of them"),
        pytest.param({"tasks": 5}, (), False, WaitReason.BED_TOO_SMALL, id="more than all"),
        pytest.param({"tasks": 4}, ("n0/0",), False, WaitReason.SLOTS_TAKEN, id="one is taken"),
        pytest.param({"tasks": 3}, ("n0/0",), True, None, id="the rest"),
        pytest.param({"ids": ("n1/1",)}, ("n0/0",), True, None, id="another one"),
        pytest.param({"ids": ("n0/0",)}, ("n0/0",), False, WaitReason.SLOTS_TAKEN, id="that one"),
        pytest.param({"ids": ("n0/2",)}, (), False, WaitReason.BED_TOO_SMALL, id="not there"),
        pytest.param({"ids": ("n9/0",)}, (), False, WaitReason.BED_TOO_SMALL, id="no such node"),
        pytest.param({"tasks": 4}, ("n9/0",), True, None, id="held in a node that went"),
        pytest.param({"tasks": 3}, ("n0/0", "n0/2"), True, None, id="held beyond a new size"),
        pytest.param({"tasks": 4}, ("n0/0", "n0/2"), False, WaitReason.SLOTS_TAKEN, id="and full"),
    ],
)
def test_what_is_free_is_what_there_is_and_nobody_holds(
    spec: dict[str, Any], held: tuple[str, ...], is_free: bool, reason: WaitReason | None
) -> None:
    ask = asked(**spec)
    record = a_record(PLACES, a_slot_holder("other", *held)) if held else a_record(PLACES)
    held_by_all = total(SLOTS.amounts_of(one, record) for one in SLOTS.holders(record))

    claim = ClaimView(ask=ask, limits=SLOTS.limits(ask, record), held=held_by_all)

    assert claim.is_free is is_free
    assert reason is None or claim.wait.reason is reason


def test_who_waits_for_a_bed_that_is_not_there_is_told_so() -> None:
    ask = asked()
    claim = ClaimView(ask=ask, limits=SLOTS.limits(ask, None))

    assert not claim.is_free
    assert (claim.wait.reason, claim.wait.key) == (WaitReason.NO_TEST_BED, "bed")


@pytest.mark.parametrize(
    ("spec", "held", "given"),
    [
        pytest.param({"tasks": 2}, (), ("n0/0", "n1/0"), id="the first by position"),
        pytest.param({"tasks": 2}, ("n1/0",), ("n0/0", "n0/1"), id="around what is held"),
        pytest.param({"ids": ("n1/1", "n0/0")}, (), ("n1/1", "n0/0"), id="those named, as named"),
        pytest.param({}, ("n0/0", "n1/0", "n0/1"), ("n1/1",), id="the last"),
    ],
)
def test_a_grant_names_slots_that_nobody_holds(
    spec: dict[str, Any], held: tuple[str, ...], given: tuple[str, ...]
) -> None:
    job = a_slot_job(**spec)
    (ask,) = SLOTS.asks(job)
    others = (a_slot_holder("other", *held),) if held else ()
    record = a_record(PLACES, *others, version=40)

    holder = SLOTS.granted(record, ask, job, T0, others)

    assert holder.slots == given
    assert holder.token == 40
    assert SLOTS.is_for(holder, ask)


def test_a_grant_of_other_slots_than_are_asked_for_now_is_none_of_them() -> None:
    holder = a_slot_holder("job", "n0/0")

    assert SLOTS.is_for(holder, asked())
    assert SLOTS.is_for(holder, asked(ids=("n0/0",)))
    assert not SLOTS.is_for(holder, asked(ids=("n0/1",)))
    assert not SLOTS.is_for(holder, asked(tasks=2))


@pytest.mark.parametrize(
    ("one", "other", "contend"),
    [
        pytest.param({}, {}, True, id="any and any"),
        pytest.param({"ids": ("n0/0",)}, {}, True, id="a certain one and any"),
        pytest.param({"ids": ("n0/0",)}, {"ids": ("n0/1",)}, False, id="certain ones apart"),
        pytest.param({"ids": ("n0/0", "n0/1")}, {"ids": ("n0/1",)}, True, id="one in common"),
    ],
)
def test_who_wants_other_slots_is_in_nobodys_way(
    one: dict[str, Any], other: dict[str, Any], contend: bool
) -> None:
    assert asked(**one).contends(asked(**other)) is contend
    assert asked(**other).contends(asked(**one)) is contend


def test_who_asks_for_no_slots_any_more_has_them_taken_back_once_it_is_put_back() -> None:
    """Or they would stay taken until somebody asks for some."""
    held = a_slot_job(bed=None, version=2, status=JobStatus(admission=EVICTING))
    back = a_slot_job(bed=None, version=3, status=JobStatus(admission=AdmissionStatus(epoch=1)))
    jobs: Cache[Job] = Cache("Job")
    records: Cache[TestBedSlots] = Cache("TestBedSlots", {BY_HOLDER: holder_uids})
    record = a_record(PLACES, a_slot_holder("job", "n0/0"))
    records.note(record)
    room = AdmissionReconciler(jobs, {SLOTS: records})
    jobs.note(held)
    room.wakes(Change(None, held))
    jobs.note(back)

    assert record.key in tuple(room.wakes(Change(held, back)))
    free = TestBedSlotsStatus(places=PLACES)
    assert room.look(record.key, T0).actions == (RecordStatus(record, free),)
