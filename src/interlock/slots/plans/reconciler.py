"""The reconciler of plans: what wakes them, and how they look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import Decision
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.scheduling import (
    CLAIMS_NAME,
    PUT_BACK_ANNOTATION,
    PlanState,
    Scheduling,
    SchedulingClaims,
    jobs_of,
)
from interlock.resources.test_bed import TestBedSlots
from interlock.slots.plans.claims import decide_claims
from interlock.slots.plans.decide import decide_plan
from interlock.slots.plans.view import ClaimsView, PlanView, by_age

#: The index of plans by the Jobs that they list.
PLANS_BY_JOB = "planned job"
#: Those by their bed, and by their namespace.
_BY_BED, _BY_NAMESPACE = "bed", "namespace"
#: The index of records by the Jobs that plans have.
_BY_CLAIMED = "claimed job"


def _job_names(plan: Scheduling) -> Iterable[str]:
    return (f"{plan.metadata.namespace}/{name}" for name in jobs_of(plan.spec))


def _bed_names(plan: Scheduling) -> Iterable[str]:
    return (f"{plan.metadata.namespace}/{plan.spec.test_bed}",)


def _namespaces(plan: Scheduling) -> Iterable[str]:
    return (plan.metadata.namespace,)


def _claimed_names(record: SchedulingClaims) -> Iterable[str]:
    namespace = record.metadata.namespace
    return (f"{namespace}/{job.name}" for one in record.status.holders for job in one.jobs)


PLAN_INDEXES = {PLANS_BY_JOB: _job_names, _BY_BED: _bed_names, _BY_NAMESPACE: _namespaces}
CLAIMS_INDEXES = {_BY_CLAIMED: _claimed_names}


class PlansReconciler:
    """Looks at Schedulings, and at the records of what they have."""

    room = "plans"

    def __init__(
        self,
        plans: Cache[Scheduling],
        records: Cache[SchedulingClaims],
        jobs: Cache[Job],
        beds: Cache[TestBedSlots],
    ) -> None:
        self._plans = plans
        self._records = records
        self._jobs = jobs
        self._beds = beds

    def wakes(self, change: Change) -> Iterable[Key]:
        """Wake the plans that a change concerns, and whoever may have to grant them something."""
        changed = change.after or change.before
        assert changed is not None
        match changed:
            case Job():
                return self._job_changed(changed, change)
            case Scheduling():
                return self._plan_changed(changed, change)
            case SchedulingClaims():
                plans = self._plans.by(_BY_NAMESPACE, changed.metadata.namespace)
                return (changed.key, *(plan.key for plan in plans))
            case TestBedSlots():
                name = f"{changed.metadata.namespace}/{changed.metadata.name}"
                found = tuple(plan.key for plan in self._plans.by(_BY_BED, name))
                return (*found, _claims_key(changed.metadata.namespace)) if found else ()
        return ()

    def look(self, key: Key, now: datetime) -> Decision:
        """Decide about a plan, or about the record of a namespace."""
        if key.kind == "SchedulingClaims":
            return decide_claims(self._claims_view(key.namespace), now)
        plan = self._plans.get(key)
        if plan is None:
            return Decision()
        return decide_plan(PlanView(plan=plan, claims=self._claims_view(key.namespace)), now)

    def _job_changed(self, job: Job, change: Change) -> Iterator[Key]:
        if not _concerns(change.before, change.after):
            return
        name = f"{job.metadata.namespace}/{job.metadata.name}"
        plans = tuple(self._plans.by(PLANS_BY_JOB, name))
        yield from (plan.key for plan in plans)
        if plans or self._records.count(_BY_CLAIMED, name):
            yield _claims_key(job.metadata.namespace)

    def _plan_changed(self, plan: Scheduling, change: Change) -> Iterator[Key]:
        yield plan.key
        yield _claims_key(plan.metadata.namespace)
        if _ask_the_same(change.before, change.after):
            return
        # Those who wait may wait for others now.
        for other in self._plans.by(_BY_NAMESPACE, plan.metadata.namespace):
            if other.status.state is PlanState.ACQUIRING:
                yield other.key

    def _claims_view(self, namespace: str) -> ClaimsView:
        plans = by_age(self._plans.by(_BY_NAMESPACE, namespace))
        names = {plan.spec.test_bed for plan in plans}
        found = {name: self._beds.get(Key("TestBedSlots", namespace, name)) for name in names}
        return ClaimsView(
            namespace=namespace,
            record=self._records.get(_claims_key(namespace)),
            plans=plans,
            known_plans=self._plans,
            jobs=self._jobs,
            beds={name: bed for name, bed in found.items() if bed is not None},
        )


def _claims_key(namespace: str) -> Key:
    return Key("SchedulingClaims", namespace, CLAIMS_NAME)


def _ask_the_same(before: Resource | None, after: Resource | None) -> bool:
    """Whether a change of a plan is news for itself alone."""
    return (
        isinstance(before, Scheduling)
        and isinstance(after, Scheduling)
        and before.metadata.generation == after.metadata.generation
        and before.metadata.uid == after.metadata.uid
        and before.is_going == after.is_going
        and before.status.state is after.status.state
    )


def _concerns(before: object, after: object) -> bool:
    """Whether a change of a Job can matter to a plan."""
    if not isinstance(before, Job) or not isinstance(after, Job):
        return True
    old, new = before.metadata, after.metadata
    was, now = before.status, after.status
    return (
        old.uid != new.uid
        or before.is_going != after.is_going
        or before.spec.slots != after.spec.slots
        or was.phase is not now.phase
        or was.admission.epoch != now.admission.epoch
        or old.annotations.get(PUT_BACK_ANNOTATION) != new.annotations.get(PUT_BACK_ANNOTATION)
    )
