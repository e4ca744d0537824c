"""Plans beside each other, whatever they list, whoever looks, how old their views are, and wherever
a control plane dies: no slot and no Job is given twice, no Job is split, order is kept, and nobody
waits for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from interlock.resources.job import SlotsRequest
from interlock.resources.metadata import Key
from interlock.resources.scheduling import (
    PlanMode,
    PlanState,
    PlanWaitReason,
    Scheduling,
    SlotBased,
    WhenFailed,
)
from interlock.resources.tasks import JobResult
from interlock.resources.transitions import has_ended, is_admitted
from interlock.slots.plans.claims import is_spent
from interlock.slots.plans.placing import place_named, place_queue
from support.plan_desk import (
    KINDS,
    PlanDesk,
    PlanPlane,
    a_bed_record,
    a_planned_job,
    a_queue_plan,
    a_slot_plan,
    slotted,
)

T = TypeVar("T")

JOBS = "abcd"
#: Two nodes with two slots each.
SLOTS = range(4)

queues = st.lists(st.sampled_from(JOBS), min_size=1, max_size=8)
free_slots = st.lists(st.integers(0, 9), unique=True, max_size=10).map(sorted)


# The arithmetic


@given(queue=queues, free=free_slots, more=st.integers(0, 3))
def test_a_queue_gives_no_slot_twice_splits_no_job_and_keeps_the_order(
    queue: list[str], free: list[int], more: int
) -> None:
    slots = [str(slot) for slot in free]
    placed = place_queue(queue, slots, len(slots) + more)

    given_out = [slot for each in placed.values() for slot in each]
    assert len(set(given_out)) == len(given_out)
    assert set(given_out) <= set(slots)
    assert all(len(each) == queue.count(name) for name, each in placed.items())
    assert list(placed) == list(dict.fromkeys(queue))[: len(placed)]


@given(queue=queues, more=st.integers(0, 3))
def test_the_first_of_a_queue_has_its_turn_once_all_is_free(queue: list[str], more: int) -> None:
    slots = [str(slot) for slot in range(queue.count(queue[0]) + more)]

    assert queue[0] in place_queue(queue, slots, len(slots))


@given(
    jobs=st.lists(st.lists(st.sampled_from("0123"), min_size=1, unique=True), max_size=5),
    free=st.sets(st.sampled_from("0123")),
    mode=st.sampled_from(PlanMode),
)
def test_named_slots_are_given_once_and_only_where_they_are_free(
    jobs: list[list[str]], free: set[str], mode: PlanMode
) -> None:
    named = [(str(at), tuple(slots)) for at, slots in enumerate(jobs)]
    placed = place_named(named, free, mode)

    given_out = [slot for each in placed.values() for slot in each]
    assert len(set(given_out)) == len(given_out)
    assert set(given_out) <= free
    if mode is PlanMode.STRICT:
        assert list(placed) == [name for name, _ in named[: len(placed)]]
    else:
        left = free - set(given_out)
        assert all(name in placed or not left >= set(slots) for name, slots in named)


# Plans that compete


@st.composite
def plans(draw: st.DrawFn, name: str) -> Scheduling:
    """A plan for some of the Jobs, on the whole bed or on a part of it."""
    part = draw(st.none() | st.lists(st.sampled_from(SLOTS), min_size=1, max_size=3, unique=True))
    more = {
        "positions": None if part is None else tuple(part),
        "when_failed": draw(st.sampled_from(WhenFailed)),
    }
    if draw(st.booleans()):
        return a_queue_plan(name, draw(queues), **more)
    listed = draw(st.lists(st.sampled_from(JOBS), min_size=1, unique=True))
    of_part = st.lists(st.sampled_from(part or list(SLOTS)), min_size=1, max_size=2, unique=True)
    mode = draw(st.sampled_from(PlanMode))
    return a_slot_plan(name, {job: draw(of_part) for job in listed}, mode, **more)


class Happening:
    """What may happen in a world of plans, drawn one by one."""

    def __init__(self, draw: st.DataObject, desk: PlanDesk) -> None:
        self._draw = draw
        self._desk = desk
        self._planes = [desk.a_plane(), desk.a_plane()]

    def go_on(self, steps: int) -> None:
        """Let so many things happen, and look after each whether all is well."""
        for _ in range(steps):
            self._one()
            all_is_well(self._desk)

    def _one(self) -> None:
        what = self._pick(("look", "look", "hear", "hear", "calm", "job", "job", "plan", "person"))
        match what:
            case "look":
                self._look(self._pick(self._planes))
            case "hear":
                # Each kind is heard of by itself, so one may be older than another.
                self._pick(self._planes).hear(*self._pick((KINDS, *((kind,) for kind in KINDS))))
            case "calm":
                # Whoever did not hear of it goes on with what was before.
                self._pick((self._desk.settle, self._desk.go_on))()
            case "job":
                self._job(self._pick(JOBS))
            case "plan":
                self._plan(self._pick(("one", "two", "three")))
            case "person":
                self._person(self._pick(JOBS))

    def _look(self, plane: PlanPlane) -> None:
        decision = plane.look(self._pick(plane.everything()))
        # It may die after any of its writes.
        plane.apply(decision, self._pick((1, 2, None)))

    def _job(self, name: str) -> None:
        if self._desk.store.find(Key("Job", "default", name)) is None:
            return
        self._desk.tidy()
        job = self._desk.job(name)
        if is_admitted(job) and not has_ended(job) and self._pick((True, False)):
            self._desk.end(name, self._pick((JobResult.SUCCEEDED, JobResult.FAILED)))
        else:
            self._desk.turn(name)

    def _plan(self, name: str) -> None:
        found = self._desk.store.find(Key("Scheduling", "default", name))
        if found is None:
            self._desk.put(self._draw.draw(plans(name)))
            return
        match self._pick(("extend", "delete", "tear", "nothing", "nothing")):
            case "extend":
                self._extend(name)
            case "delete":
                self._desk.delete(name)
            case "tear":
                self._desk.tear_away(name)

    def _extend(self, name: str) -> None:
        spec = self._desk.plan(name).spec
        job = self._pick(JOBS)
        if spec.queue_based is not None and len(spec.queue_based) < 12:
            self._desk.edit(name, queue_based=(*spec.queue_based, job))
        elif spec.slot_based is not None and all(one.name != job for one in spec.slot_based.jobs):
            more = slotted({job: [self._pick(spec.positions or tuple(SLOTS))]})
            grown = SlotBased(jobs=(*spec.slot_based.jobs, *more), mode=spec.slot_based.mode)
            self._desk.edit(name, slot_based=grown)

    def _person(self, name: str) -> None:
        if self._desk.store.find(Key("Job", "default", name)) is None:
            self._desk.put(a_planned_job(name))
        elif has_ended(self._desk.job(name)) or self._pick((True, False, False)):
            self._desk.delete_job(name)
        elif not is_admitted(self._desk.job(name)):
            self._desk.edit_job(name, slots=SlotsRequest())

    def _pick(self, among: Sequence[T]) -> T:
        return self._draw.draw(st.sampled_from(among))


def all_is_well(desk: PlanDesk) -> None:
    """The promises at every version: nothing is given twice, and who is claimed is claimed."""
    desk.plane.hear()
    view = desk.plane.room._claims_view("default")
    holders = desk.claims.status.holders
    live = [
        (job.uid, holder.uid)
        for holder in holders
        for job in holder.jobs
        if not is_spent(job, holder, view)
    ]
    assert len({uid for uid, _ in live}) == len(live)
    if any(holder.slots is None for holder in holders):
        assert len(holders) == 1
    slots = [slot for holder in holders for slot in holder.slots or ()]
    assert len(set(slots)) == len(slots)
    seated = [slot for one in desk.bed().status.holders for slot in one.slots]
    assert len(set(seated)) == len(seated)
    has = {(holder.scheduling, job.uid) for holder in holders for job in holder.jobs}
    for job in desk.jobs:
        request = job.spec.slots
        if request is not None and request.scheduling is not None and not has_ended(job):
            assert (request.scheduling, job.metadata.uid) in has


@given(draw=st.data(), first=plans("one"), second=plans("two"))
def test_plans_never_hold_each_other_up_whatever_happened(
    draw: st.DataObject, first: Scheduling, second: Scheduling
) -> None:
    desk = PlanDesk(a_bed_record(2), *(a_planned_job(name) for name in JOBS), first, second)
    Happening(draw, desk).go_on(draw.draw(st.integers(0, 40)))

    # From now on one control plane sees all, and every Job that has its slots comes to its end.
    for name in JOBS:
        if desk.store.find(Key("Job", "default", name)) is None:
            desk.put(a_planned_job(name))
    for _ in range(40):
        desk.go_on()
        all_is_well(desk)
        running = [job for job in desk.jobs if is_admitted(job) and not has_ended(job)]
        if not running:
            break
        desk.end(running[0].metadata.name)
    for plan in desk.store.find_all("Scheduling"):
        assert isinstance(plan, Scheduling)
        assert not plan.is_going
        # One of whose Jobs needs more than its part has does not begin.
        too_few = {wait.reason for wait in plan.status.waits} & {PlanWaitReason.TOO_FEW_SLOTS}
        assert plan.status.state in (PlanState.COMPLETED, PlanState.FAILED) or too_few, plan
