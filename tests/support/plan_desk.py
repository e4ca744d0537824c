"""Plans on a real store, looked at by one or more planes that see it when they are told to.

A machine stands for all other rooms: it grants slots by the record of the bed, lets Jobs in, has
them end, and puts them back that ask for other slots than they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from random import Random
from typing import Any, TypeVar

from msgspec.structs import replace

from interlock.control.applier import Applier
from interlock.control.cache import Cache
from interlock.control.write_fence import WriteFence
from interlock.errors import AlreadyExistsError, ConflictError, NotFoundError
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.resources.actions import Decision
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, SlotGrant
from interlock.resources.job import JOB_FINALIZER, Job, SlotsRequest
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.resources.scheduling import (
    CLAIMS_NAME,
    PlanMode,
    PlanState,
    Scheduling,
    SchedulingClaims,
    SchedulingSpec,
    SlotBased,
    SlottedJob,
)
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.test_bed import (
    Place,
    SlotHolder,
    TestBedSlots,
    TestBedSlotsStatus,
    has_its_slots,
    seats_of,
)
from interlock.resources.transitions import has_ended, is_admitted, with_admission, with_execution
from interlock.slots.plans.reconciler import CLAIMS_INDEXES, PLAN_INDEXES, PlansReconciler
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryStore
from interlock.testing.builders import T0, a_job
from support.config_desk import HandClock, NoRuntime, refresh
from support.slot_desk import a_record

R = TypeVar("R", bound=Resource)

CLAIMS = Key("SchedulingClaims", "default", CLAIMS_NAME)
#: More looks than any world needs that is going to be settled.
_LOOKS = 2000
KINDS = ("Scheduling", "SchedulingClaims", "Job", "TestBedSlots")


def a_bed_record(nodes: int = 4, slots: int = 2, name: str = "bed") -> TestBedSlots:
    """A bed of so many nodes with so many slots each: at position 0 is n0/0, at 1 n1/0."""
    places = tuple(Place(node=f"n{at}", id=at, slots=slots) for at in range(nodes))
    return a_record(places, name=name)


def a_planned_job(name: str, **given: Any) -> Job:
    """A Job that leaves it to a plan which slots it gets."""
    given.setdefault("slots", SlotsRequest())
    return a_job(name, **given)


def a_queue_plan(name: str, queue: Iterable[str], **spec: Any) -> Scheduling:
    """A plan whose Jobs get slots in an order."""
    return _plan(name, queue_based=tuple(queue), **spec)


def a_slot_plan(
    name: str,
    jobs: dict[str, Sequence[int | str]],
    mode: PlanMode = PlanMode.STRICT,
    **spec: Any,
) -> Scheduling:
    """A plan whose Jobs get certain slots, by their positions or as what they are."""
    return _plan(name, slot_based=SlotBased(jobs=slotted(jobs), mode=mode), **spec)


def slotted(jobs: dict[str, Sequence[int | str]]) -> tuple[SlottedJob, ...]:
    """Jobs with their slots, by their positions or as what they are."""
    return tuple(
        SlottedJob(
            name=job,
            positions=tuple(s for s in slots if isinstance(s, int)) or None,
            slot_ids=tuple(s for s in slots if isinstance(s, str)) or None,
        )
        for job, slots in jobs.items()
    )


def _plan(name: str, **spec: Any) -> Scheduling:
    spec.setdefault("test_bed", "bed")
    metadata = Metadata(name=name, namespace="default")
    return Scheduling(metadata=metadata, spec=SchedulingSpec(**spec))


class PlanPlane:
    """A control plane's caches and its room. It knows what it has heard."""

    def __init__(self, store: MemoryStore, clock: HandClock) -> None:
        self._store = store
        self.caches: dict[str, Cache[Any]] = {
            "Scheduling": Cache("Scheduling", PLAN_INDEXES),
            "SchedulingClaims": Cache("SchedulingClaims", CLAIMS_INDEXES),
            "Job": Cache("Job"),
            "TestBedSlots": Cache("TestBedSlots"),
        }
        self.room = PlansReconciler(*self.caches.values())
        self._clock = clock
        fence = WriteFence(clock)
        fence.open(1, inf)
        self._applier = Applier(store, NoRuntime(), clock, fence)

    def hear(self, *kinds: str) -> None:
        """Take in all that is stored of these kinds, or of all."""
        for kind in kinds or KINDS:
            refresh(self.caches[kind], self._store)

    def look(self, key: Key) -> Decision:
        """Decide by what was heard."""
        return self.room.look(key, self._clock.now())

    def apply(self, decision: Decision, most: int | None = None) -> None:
        """Carry out the first actions of a decision, up to one that is refused as stale."""
        try:
            run_now(self._applier.apply(Decision(decision.actions[:most])))
        except (ConflictError, NotFoundError, AlreadyExistsError):
            return

    def everything(self) -> tuple[Key, ...]:
        """All that it could look at."""
        return (CLAIMS, *sorted(plan.key for plan in self.caches["Scheduling"]))


class PlanDesk:
    """A store with plans, their Jobs and beds, and one plane that sees everything at once."""

    def __init__(self, *resources: Resource) -> None:
        self.clock = HandClock(T0)
        self.store = MemoryStore(self.clock.now, SeededIdentities(Random(0)))
        self.plane = self.a_plane()
        for resource in resources:
            self.put(resource)

    def a_plane(self) -> PlanPlane:
        """A further control plane."""
        return PlanPlane(self.store, self.clock)

    def put(self, resource: R) -> R:
        """Store a resource as if it were new, with the status it has."""
        metadata = replace(resource.metadata, resource_version="", uid="")
        stored = run_now(self.store.create(replace(resource, metadata=metadata)))
        status: Any = getattr(resource, "status", None)
        if status != stored.status:  # type: ignore[attr-defined]
            stored = run_now(self.store.update_status(replace(stored, status=status)))
        return stored

    # What is there

    def plan(self, name: str = "plan") -> Scheduling:
        """A plan as it is stored."""
        found = self.store.find(Key("Scheduling", "default", name))
        assert isinstance(found, Scheduling)
        return found

    def job(self, name: str) -> Job:
        """A Job as it is stored."""
        found = self.store.find(Key("Job", "default", name))
        assert isinstance(found, Job)
        return found

    def bed(self, name: str = "bed") -> TestBedSlots:
        """The record of a bed as it is stored."""
        found = self.store.find(Key("TestBedSlots", "default", name))
        assert isinstance(found, TestBedSlots)
        return found

    @property
    def claims(self) -> SchedulingClaims:
        """The record of what plans have; an empty one where there is none yet."""
        found = self.store.find(CLAIMS)
        return found if isinstance(found, SchedulingClaims) else SchedulingClaims()

    @property
    def jobs(self) -> list[Job]:
        """All Jobs."""
        return [job for job in self.store.find_all("Job") if isinstance(job, Job)]

    def placed(self, name: str, bed: str = "bed") -> list[int]:
        """The positions of the slots that a Job was told."""
        request = self.job(name).spec.slots
        at = {seat.id: seat.position for seat in seats_of(self.bed(bed).status.places)}
        return [at[slot] for slot in (request.ids if request is not None else None) or ()]

    def holders(self) -> list[str]:
        """The plans that have what they need."""
        return [holder.scheduling for holder in self.claims.status.holders]

    def states(self, name: str = "plan") -> dict[str, str]:
        """How far the Jobs of a plan are."""
        return {job.name: job.state.value for job in self.plan(name).status.jobs}

    def state(self, name: str = "plan") -> PlanState:
        """How far a plan is."""
        return self.plan(name).status.state

    def waits(self, name: str = "plan") -> list[str]:
        """What a plan waits for, in words."""
        return [wait.message for wait in self.plan(name).status.waits]

    # What people do

    def edit(self, name: str = "plan", **spec: Any) -> None:
        """Change the spec of a plan."""
        plan = self.plan(name)
        run_now(self.store.update(replace(plan, spec=replace(plan.spec, **spec))))

    def edit_job(self, name: str, **spec: Any) -> None:
        """Change the spec of a Job."""
        job = self.job(name)
        run_now(self.store.update(replace(job, spec=replace(job.spec, **spec))))

    def delete(self, name: str) -> None:
        """Delete a plan."""
        run_now(self.store.delete(Key("Scheduling", "default", name)))

    def tear_away(self, name: str) -> None:
        """Delete a plan, and take off what holds it back."""
        self.delete(name)
        found = self.store.find(Key("Scheduling", "default", name))
        if found is not None:
            ties = replace(found.metadata, finalizers=())
            run_now(self.store.update_ties(replace(found, metadata=ties)))

    def delete_job(self, name: str) -> None:
        """Delete a Job, and let it go."""
        run_now(self.store.delete(Key("Job", "default", name)))
        job = self.store.find(Key("Job", "default", name))
        if job is not None and JOB_FINALIZER in job.metadata.finalizers:
            run_now(
                self.store.update_ties(replace(job, metadata=replace(job.metadata, finalizers=())))
            )

    # What other rooms do

    def seat(self, name: str) -> bool:
        """Grant a Job the slots that it asks for and let it in, if it can be."""
        job = self.job(name)
        request, admission = job.spec.slots, job.status.admission
        is_waiting = admission.phase is AdmissionPhase.WAITING and not job.spec.suspend
        if not is_waiting or request is None or not request.ids or has_ended(job):
            return False
        bed = self._without_those_who_left(self.bed(request.test_bed or ""))
        there = {seat.id for seat in seats_of(bed.status.places)}
        taken = {slot for holder in bed.status.holders for slot in holder.slots}
        if not there >= set(request.ids) or taken & set(request.ids):
            return False
        holder = SlotHolder(
            job=name,
            uid=job.metadata.uid,
            epoch=admission.epoch,
            token=bed.version,
            slots=request.ids,
            granted_at=T0,
            job_version=job.version,
        )
        self._record(bed, holders=(*bed.status.holders, holder))
        grant = SlotGrant(test_bed=bed.metadata.name, token=holder.token, ids=request.ids)
        self._admission(
            job, replace(admission, phase=AdmissionPhase.ADMITTED, admitted_at=T0, slots=grant)
        )
        return True

    def put_back(self, name: str) -> None:
        """Have a Job wait again, everything given back."""
        job = self.job(name)
        admission = job.status.admission
        self._admission(job, replace(admission, phase=AdmissionPhase.EVICTING))
        self._admission(
            self.job(name),
            AdmissionStatus(epoch=admission.epoch + 1, evictions=admission.evictions + 1),
        )

    def end(self, name: str, result: JobResult = JobResult.SUCCEEDED) -> None:
        """Have a Job that was let in end."""
        job = self.job(name)
        execution = ExecutionStatus(result=result, started_at=T0, ended_at=T0)
        run_now(self.store.update_status(replace(job, status=with_execution(job, execution, T0))))

    def tidy(self) -> None:
        """Drop those from the records of beds who are proven to have left."""
        for bed in self.store.find_all("TestBedSlots"):
            assert isinstance(bed, TestBedSlots)
            self._without_those_who_left(bed)

    def turn(self, name: str) -> None:
        """Carry a Job one step on, as the machine would."""
        job = self.job(name)
        if is_admitted(job) and not has_ended(job) and not has_its_slots(job):
            self.put_back(name)
        else:
            self.seat(name)

    def _without_those_who_left(self, bed: TestBedSlots) -> TestBedSlots:
        kept = tuple(one for one in bed.status.holders if not self._has_left(one))
        return bed if kept == bed.status.holders else self._record(bed, holders=kept)

    def _has_left(self, holder: SlotHolder) -> bool:
        job = self.store.find(Key("Job", "default", holder.job))
        if not isinstance(job, Job) or job.metadata.uid != holder.uid:
            return True
        return has_ended(job) or job.status.admission.epoch > holder.epoch

    def _record(self, bed: TestBedSlots, **changes: Any) -> TestBedSlots:
        status: TestBedSlotsStatus = replace(bed.status, **changes)
        return run_now(self.store.update_status(replace(bed, status=status)))

    def resize(self, nodes: int, slots: int = 2) -> None:
        """Have nodes come or go."""
        self._record(self.bed(), places=a_bed_record(nodes, slots).status.places)

    def _admission(self, job: Job, admission: AdmissionStatus) -> None:
        status = with_admission(job, admission, T0)
        run_now(self.store.update_status(replace(job, status=status)))

    # What the room does

    def settle(self) -> None:
        """Look at everything until nothing is left to be done; nobody gets slots meanwhile."""
        for _ in range(_LOOKS):
            self.plane.hear()
            decisions = [self.plane.look(key) for key in self.plane.everything()]
            busy = next((one for one in decisions if one.actions), None)
            if busy is None:
                return
            self.plane.apply(busy)
        raise AssertionError("the plans do not settle")

    def go_on(self) -> None:
        """Look at everything, and seat those who were told their slots, until all is settled."""
        for _ in range(_LOOKS):
            self.settle()
            before = run_now(self.store.list("Job")).version
            self.tidy()
            for job in self.jobs:
                self.turn(job.metadata.name)
            if run_now(self.store.list("Job")).version == before:
                return
        raise AssertionError("the Jobs do not settle")
