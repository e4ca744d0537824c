"""Plans on a store, beside a machine that grants slots: what they claim, tell and wait for."""

from __future__ import annotations

import pytest

from interlock.resources.job import SlotsRequest
from interlock.resources.metadata import Key
from interlock.resources.scheduling import PlanMode, PlanState, Scheduling, SlotBased, WhenFailed
from interlock.resources.tasks import JobResult
from interlock.resources.transitions import has_ended, is_admitted
from support.plan_desk import (
    CLAIMS,
    PlanDesk,
    a_bed_record,
    a_planned_job,
    a_queue_plan,
    a_slot_plan,
    slotted,
)


def a_desk(*plans: Scheduling, jobs: str = "", nodes: int = 4) -> PlanDesk:
    """A bed of nodes with two slots each, Jobs with names of one letter, and plans."""
    return PlanDesk(a_bed_record(nodes), *(a_planned_job(name) for name in jobs), *plans)


def plan_key(name: str) -> Key:
    """Where a plan is."""
    return Key("Scheduling", "default", name)


# The examples that the arithmetic is told by, on the whole room


def test_the_example_of_the_thesis() -> None:
    """Its slots are numbered from 1 there; ours from 0."""
    desk = a_desk(a_queue_plan("plan", "aabbcccddd"), jobs="abcd")
    desk.go_on()

    assert {name: desk.placed(name) for name in "abcd"} == {
        "a": [0, 1],
        "b": [2, 3],
        "c": [4, 5, 6],
        "d": [],
    }
    assert desk.state() is PlanState.SUBMITTING
    assert desk.states()["d"] == "InQueue"
    assert desk.waits()[0].startswith("d waits for slots n0/0, n1/0, which job/a is in")

    desk.end("b")
    desk.go_on()

    assert desk.placed("d") == [2, 3, 7]
    assert desk.state() is PlanState.AWAITING_COMPLETION
    for name in "acd":
        desk.end(name)
    desk.go_on()

    assert desk.state() is PlanState.COMPLETED
    assert desk.plan().status.completed == 4
    assert desk.holders() == []


def test_entries_of_two_jobs_may_take_turns() -> None:
    desk = a_desk(a_queue_plan("plan", "baba"), jobs="ab", nodes=2)
    desk.go_on()

    assert (desk.placed("b"), desk.placed("a")) == ([0, 2], [1, 3])


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        pytest.param(PlanMode.STRICT, "a", id="strict: the others wait behind the second"),
        pytest.param(PlanMode.RELAXED, "ac", id="relaxed: the third overtakes it"),
    ],
)
def test_jobs_wait_for_the_slots_that_are_named_for_them(mode: PlanMode, told: str) -> None:
    plan = a_slot_plan("plan", {"a": [0, 1], "b": [1, 2], "c": ["n3/0"]}, mode)
    desk = a_desk(plan, jobs="abc")
    desk.go_on()

    assert [name for name in "abc" if desk.placed(name)] == list(told)
    assert "b waits for slot n1/0, which job/a is in or was told" in desk.waits()

    desk.end("a")
    desk.go_on()

    assert (desk.placed("b"), desk.placed("c")) == ([1, 2], [3])


def test_positions_mean_what_they_meant_when_the_plan_began() -> None:
    desk = a_desk(a_slot_plan("plan", {"a": [0], "b": [1]}), jobs="ab")
    desk.go_on()
    desk.end("a")
    desk.resize(nodes=5)
    desk.go_on()

    assert [desk.job(name).spec.slots.ids for name in "ab"] == [("n0/0",), ("n1/0",)]  # type: ignore[union-attr]


# All or none


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        pytest.param("job", "there is no job b", id="a Job is not there"),
        pytest.param("bed", "there is no test bed other", id="the bed is not there"),
        pytest.param("slots", "job/b does not leave it to a plan", id="a Job wants no slots"),
        pytest.param("own", "job/b does not leave it to a plan", id="a Job says which itself"),
        pytest.param("slot", "test bed bed has no slot 99, which b is to get", id="no such slot"),
        pytest.param("part", "b is to get slot n3/1, outside of the plan's part", id="not in part"),
    ],
)
def test_a_plan_that_lacks_something_claims_nothing(missing: str, told: str) -> None:
    bed = "other" if missing == "bed" else "bed"
    plan = a_queue_plan("plan", "ab", test_bed=bed)
    if missing in ("slot", "part"):
        slots = {"a": [0], "b": [99] if missing == "slot" else ["n3/1"]}
        plan = a_slot_plan("plan", slots, positions=(0, 1) if missing == "part" else None)  # type: ignore[arg-type]
    desk = a_desk(plan, jobs="a" if missing == "job" else "ab")
    if missing in ("slots", "own"):
        own = SlotsRequest(test_bed="bed") if missing == "own" else None
        desk.edit_job("b", slots=own)
    desk.go_on()

    assert desk.state() is PlanState.ACQUIRING
    assert [wait.startswith(told) for wait in desk.waits()] == [True]
    assert desk.job("a").spec.slots == SlotsRequest()
    assert desk.holders() == []


def test_plans_that_want_the_same_jobs_in_any_order_never_hold_each_other_up() -> None:
    one = a_queue_plan("one", "ab", positions=(0, 1))
    two = a_queue_plan("two", "bac", positions=(2, 3, 4))
    desk = a_desk(one, two, jobs="abc")
    desk.go_on()

    assert desk.holders() == ["one"]
    assert desk.waits("two") == ["scheduling/one has job b", "scheduling/one has job a"]

    desk.end("a")
    desk.go_on()
    # A plan keeps all it has until it is over.
    assert [job.name for job in desk.claims.status.holders[0].jobs] == ["a", "b"]
    assert desk.holders() == ["one"]
    desk.end("b")
    desk.go_on()

    # What is over is over: a Job runs once, whoever lists it.
    assert desk.holders() == ["two"]
    assert desk.states("two") == {"b": "Completed", "a": "Completed", "c": "Submitted"} | {
        "c": "Scheduled"
    }


def test_plans_with_parts_of_one_bed_go_on_beside_each_other() -> None:
    one = a_queue_plan("one", "a", positions=(0, 1, 2, 3))
    two = a_slot_plan("two", {"b": [4]}, slot_ids=("n0/1", "n1/1"))
    desk = a_desk(one, two, jobs="ab")
    desk.go_on()

    assert desk.holders() == ["one", "two"]
    assert (desk.placed("a"), desk.placed("b")) == ([0], [4])


def test_of_parts_that_overlap_the_older_plan_has_its_own_first() -> None:
    one = a_queue_plan("one", "a", positions=(0, 1))
    two = a_queue_plan("two", "b", positions=(1, 2))
    three = a_queue_plan("three", "c", positions=(2, 3))
    desk = a_desk(one, two, three, jobs="abc")
    desk.go_on()

    assert desk.holders() == ["one"]
    assert desk.waits("two") == ["scheduling/one has slot n1/0 of test bed bed"]
    assert desk.waits("three") == ["scheduling/two was made earlier and waits for the same"]


def test_a_plan_that_waits_for_what_is_not_there_holds_nobody_up() -> None:
    desk = a_desk(a_queue_plan("one", "ax"), a_queue_plan("two", "a"), jobs="a")
    desk.go_on()

    assert desk.holders() == ["two"]


# While it goes on


def test_nobody_is_told_before_those_who_were_told_have_their_slots() -> None:
    desk = a_desk(a_queue_plan("plan", "aa"), jobs="ab", nodes=2)
    desk.edit_job("a", suspend=True)
    desk.go_on()
    desk.edit(queue_based=tuple("aab"))
    desk.go_on()

    assert desk.state() is PlanState.CONFIRMING
    assert desk.waits() == ["job/a does not have slots n0/0, n1/0 yet; see: interlock why a"]
    assert (desk.placed("a"), desk.placed("b")) == ([0, 1], [])

    desk.edit_job("a", suspend=False)
    desk.go_on()
    assert desk.placed("b") == [2]


def test_whoever_is_in_a_slot_without_a_plan_is_waited_for_by_name() -> None:
    stranger = a_planned_job("x", slots=SlotsRequest(test_bed="bed", ids=("n0/0", "n0/1")))
    desk = PlanDesk(a_bed_record(1), stranger, a_planned_job("a"))
    desk.go_on()
    desk.put(a_queue_plan("plan", "a"))
    desk.go_on()

    assert desk.waits() == ["a waits for slots n0/0, n0/1, which job/x is in or was told"]
    desk.end("x")
    desk.go_on()
    assert desk.placed("a") == [0]


def test_a_job_that_needs_more_than_the_part_has_waits_for_the_bed_to_grow() -> None:
    desk = a_desk(a_queue_plan("plan", "aaa"), jobs="a", nodes=1)
    desk.go_on()

    assert desk.waits() == ["a needs more slots than the plan has of test bed bed"]
    # It would keep the bed from others, and never have its turn.
    assert desk.holders() == []
    desk.resize(nodes=2)
    desk.go_on()
    assert desk.placed("a") == [0, 1, 2]


def test_a_job_that_was_told_slots_which_are_gone_since_is_told_others() -> None:
    desk = a_desk(a_queue_plan("plan", "aa"), jobs="a", nodes=2)
    desk.settle()
    assert desk.job("a").spec.slots.ids == ("n0/0", "n1/0")  # type: ignore[union-attr]
    desk.resize(nodes=1)
    desk.go_on()

    assert desk.job("a").spec.slots.ids == ("n0/0", "n0/1")  # type: ignore[union-attr]


def test_a_plan_is_extended_while_it_goes_on() -> None:
    desk = a_desk(a_queue_plan("plan", "aa"), jobs="abc", nodes=1)
    desk.go_on()
    desk.edit(queue_based=tuple("aabab"))
    desk.go_on()

    # One more entry of a Job that was told its slots changes nothing.
    assert desk.placed("a") == [0, 1]
    assert desk.states() == {"a": "Scheduled", "b": "InQueue"}
    desk.end("a")
    desk.go_on()
    assert desk.placed("b") == [0, 1]
    desk.end("b")
    desk.go_on()
    assert desk.state() is PlanState.COMPLETED

    desk.edit(queue_based=tuple("aababc"))
    desk.go_on()
    assert desk.placed("c") == [0]
    assert desk.plan().status.conditions[0].status.value == "False"


def test_an_extension_that_another_plan_has_holds_up_nothing_else() -> None:
    one = a_slot_plan("one", {"a": [0], "b": [0]}, positions=(0,))
    two = a_slot_plan("two", {"c": [1], "d": [1]}, positions=(1,))
    desk = a_desk(one, two, jobs="abcd")
    desk.go_on()
    desk.edit("one", slot_based=SlotBased(jobs=slotted({"a": [0], "b": [0], "d": [0]})))
    desk.edit("two", slot_based=SlotBased(jobs=slotted({"c": [1], "d": [1], "b": [1]})))
    desk.go_on()

    assert desk.waits("one")[0] == "scheduling/two has job d"
    for name in "acbd":
        desk.end(name)
        desk.go_on()
    assert {desk.state("one"), desk.state("two")} == {PlanState.COMPLETED}


def test_an_extension_waits_for_nobody_who_has_nothing() -> None:
    """Or the older plan would wait for the bed, and the younger one, which has it, for the Job."""
    desk = a_desk(a_queue_plan("older", "bx"), a_queue_plan("plan", "a"), jobs="ab")
    desk.go_on()
    desk.put(a_planned_job("x"))
    desk.go_on()
    assert desk.waits("older") == ["scheduling/plan has slots of test bed bed"]

    desk.edit(queue_based=tuple("ab"))
    desk.go_on()
    assert desk.states() == {"a": "Scheduled", "b": "Scheduled"}


# Jobs that end


def test_how_a_job_ended_is_known_also_when_it_is_gone() -> None:
    desk = a_desk(a_queue_plan("plan", "ab"), jobs="ab")
    desk.go_on()
    desk.end("a")
    desk.settle()
    desk.delete_job("a")
    desk.go_on()

    assert desk.states() == {"a": "Completed", "b": "Scheduled"}


@pytest.mark.parametrize("result", [JobResult.FAILED, JobResult.KILLED])
def test_a_plan_goes_on_without_a_job_that_failed(result: JobResult) -> None:
    desk = a_desk(a_queue_plan("plan", "ab"), jobs="ab")
    desk.go_on()
    desk.end("a", result)
    desk.end("b")
    desk.go_on()

    status = desk.plan().status
    assert (status.state, status.completed, status.failed) == (PlanState.COMPLETED, 1, 1)
    assert status.jobs[0].message == result.value


def test_a_plan_that_stops_gives_back_what_it_did_not_place() -> None:
    plan = a_slot_plan("plan", {"a": [0], "b": [1], "c": [0, 1]}, when_failed=WhenFailed.STOP)
    desk = a_desk(plan, a_queue_plan("other", "c"), jobs="abc")
    desk.go_on()
    desk.end("a", JobResult.FAILED)
    desk.go_on()

    assert desk.state() is PlanState.FAILED
    assert desk.states() == {"a": "Failed", "b": "Scheduled", "c": "Acquiring"}
    assert desk.job("c").spec.slots == SlotsRequest()
    # What has its slots goes on, and keeps the bed.
    assert desk.holders() == ["plan"]
    desk.end("b")
    desk.go_on()

    assert desk.state() is PlanState.FAILED
    assert desk.states()["b"] == "Completed"
    assert desk.holders() == ["other"]
    assert desk.placed("c") == [0]


def test_a_job_that_is_deleted_counts_as_failed() -> None:
    desk = a_desk(a_queue_plan("plan", "ab"), jobs="ab")
    desk.go_on()
    desk.delete_job("a")
    desk.go_on()

    assert desk.states() == {"a": "Failed", "b": "Scheduled"}
    desk.put(a_planned_job("a"))
    desk.go_on()
    # A new Job of that name is another Job.
    assert desk.job("a").spec.slots == SlotsRequest()


# Deletion


def test_a_plan_that_is_deleted_puts_back_what_is_not_over() -> None:
    desk = a_desk(a_queue_plan("plan", "abc"), a_queue_plan("next", "bc"), jobs="abc", nodes=1)
    desk.go_on()
    desk.end("a")
    desk.settle()
    desk.delete("plan")
    desk.plane.hear()
    assert not desk.plane.look(desk.plan().key).actions
    desk.go_on()

    assert desk.holders() == ["next"]
    # Job b was running; it is put back, and has its turn in the next plan.
    assert desk.job("b").status.admission.evictions == 1
    assert (desk.placed("b"), desk.placed("c")) == ([0], [1])


def test_a_job_that_cannot_be_put_back_holds_up_nobody_who_does_not_want_it() -> None:
    desk = a_desk(a_queue_plan("one", "a", positions=(0,)), jobs="ab")
    desk.go_on()
    desk.delete("one")
    desk.put(a_queue_plan("two", "b", positions=(1,)))
    desk.plane.hear()
    # The Job is written to last, so that may fail.
    desk.plane.apply(desk.plane.look(CLAIMS), 1)

    assert desk.holders() == ["one", "two"]


def test_a_plan_that_was_torn_away_is_put_back_by_the_record() -> None:
    desk = a_desk(a_queue_plan("plan", "ab"), jobs="ab", nodes=1)
    desk.go_on()
    desk.tear_away("plan")
    desk.go_on()

    assert desk.holders() == []
    for name in "ab":
        assert desk.job(name).spec.slots == SlotsRequest()
        assert not is_admitted(desk.job(name))
        assert not has_ended(desk.job(name))


def test_a_plan_that_has_nothing_goes_at_once() -> None:
    desk = a_desk(a_queue_plan("plan", "ax"), jobs="a")
    desk.go_on()
    desk.delete("plan")
    desk.go_on()

    assert desk.store.find(plan_key("plan")) is None


# Whoever knows only a part of what is


def test_a_job_that_was_put_back_is_never_claimed_again_by_who_has_not_heard_of_it() -> None:
    desk = a_desk(a_queue_plan("plan", "ab"), jobs="ab", nodes=1)
    desk.edit_job("a", suspend=True)
    desk.go_on()
    late = desk.a_plane()
    late.hear()
    desk.delete("plan")
    desk.go_on()
    late.hear("Job")
    late.apply(late.look(plan_key("plan")))

    assert [desk.job(name).spec.slots for name in "ab"] == [SlotsRequest()] * 2


def test_a_plan_that_was_not_heard_of_is_not_gone() -> None:
    desk = a_desk(a_queue_plan("plan", "a"), jobs="a")
    desk.go_on()
    late = desk.a_plane()
    late.hear("SchedulingClaims", "Job", "TestBedSlots")

    assert not late.look(CLAIMS).actions


def test_a_job_that_was_not_heard_of_is_not_gone() -> None:
    desk = a_desk(a_queue_plan("plan", "a"), jobs="a")
    desk.go_on()
    late = desk.a_plane()
    late.hear("SchedulingClaims", "Scheduling", "TestBedSlots")

    assert not late.look(plan_key("plan")).actions
    assert not late.look(CLAIMS).actions


def test_a_plan_whose_bed_was_not_heard_of_waits() -> None:
    desk = a_desk(a_queue_plan("plan", "ab"), jobs="ab")
    desk.go_on()
    desk.put_back("b")
    late = desk.a_plane()
    late.hear("SchedulingClaims", "Scheduling", "Job")
    late.apply(late.look(plan_key("plan")))

    assert desk.placed("b") == [1]


# A person who writes to a Job of a plan


def test_a_claim_that_is_taken_off_a_waiting_job_is_written_again() -> None:
    desk = a_desk(a_queue_plan("plan", "aab"), jobs="ab", nodes=1)
    desk.go_on()
    desk.edit_job("b", slots=SlotsRequest())
    desk.go_on()

    assert desk.job("b").spec.slots == SlotsRequest(scheduling="plan")


def test_a_plan_that_a_job_names_without_having_been_claimed_counts_for_nothing() -> None:
    desk = a_desk(jobs="a")
    desk.edit_job("a", slots=SlotsRequest(scheduling="nobody"))
    desk.put(a_queue_plan("plan", "a"))
    desk.go_on()

    assert desk.placed("a") == [0]
