"""Admission folded over a lock and a quota, whatever two control planes see of it, and when.

The quota is a toy: a record of the whole cluster with limits per resource, and holders that have
different amounts of them in different namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.admission.claims.claim import Amounts, Ask, ClaimKey, total
from interlock.admission.claims.locks import LOCKS
from interlock.admission.claims.proof import grant_of
from interlock.admission.reconciler import BY_HOLDER, AdmissionReconciler, holder_uids
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import (
    Action,
    CreateResource,
    Decision,
    DeleteResource,
    RecordAdmission,
    RecordStatus,
)
from interlock.resources.admission import AdmissionPhase, RefusalReason, WaitReason
from interlock.resources.job import Job, JobPhase
from interlock.resources.lock import lock_name
from interlock.resources.metadata import Key, Metadata, Noun, Resource, Status
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.transitions import has_ended, is_admitted, with_admission
from interlock.testing.builders import T0, a_job, a_request

LIMITS = {"cpu": 4, "gpu": 1}
LOCK_LIMIT = 2
QUOTA = Key("ToyQuota", "", "all")
KINDS = ("Job", "Lock", "ToyQuota")
NAMESPACES = ("east", "west")
DB = {space: Key("Lock", space, lock_name("db")) for space in NAMESPACES}


class ToyHolder(Noun):
    job: str
    namespace: str
    uid: str
    epoch: int
    token: int
    job_version: int
    amounts: dict[str, int]


class ToyStatus(Status):
    holders: tuple[ToyHolder, ...] = ()
    last_token: int = 0


class ToyQuota(Resource, tag="ToyQuota", kw_only=True):
    limits: dict[str, int]
    status: ToyStatus = ToyStatus()


class ToyQuotas:
    """The kind of claim: a Job asks by its labels."""

    record_kind = "ToyQuota"
    noun = "quota"
    forbidden = RefusalReason.LOCK_FORBIDDEN
    is_sized = False

    def asks(self, job: Job) -> tuple[Ask, ...]:
        amounts = {name: int(amount) for name, amount in job.metadata.labels.items()}
        return (Ask(kind=self, key=QUOTA, name="all", amounts=amounts),) if amounts else ()

    def limits(self, ask: Ask, record: ToyQuota | None) -> Amounts:
        return record.limits if record is not None else {}

    def wait_reason(self, ask: Ask, limits: Amounts) -> WaitReason:
        return WaitReason.LOCK_TAKEN

    def is_resized(self, before: ToyQuota | None, after: ToyQuota | None) -> bool:
        return False

    def is_for(self, holder: ToyHolder, ask: Ask) -> bool:
        return True

    def holders(self, record: ToyQuota) -> tuple[ToyHolder, ...]:
        return record.status.holders

    def job_of(self, claim: ClaimKey, holder: ToyHolder) -> Key:
        return Key("Job", holder.namespace, holder.job)

    def amounts_of(self, holder: ToyHolder, record: ToyQuota) -> Amounts:
        return holder.amounts

    def name_of(self, record: ToyQuota) -> str:
        return record.metadata.name

    def new_record(self, ask: Ask) -> ToyQuota | None:
        return None

    def granted(
        self,
        record: ToyQuota,
        ask: Ask,
        job: Job,
        now: datetime,
        holders: tuple[ToyHolder, ...],
    ) -> ToyHolder:
        return ToyHolder(
            job=job.metadata.name,
            namespace=job.metadata.namespace,
            uid=job.metadata.uid,
            epoch=job.status.admission.epoch,
            token=max(record.version, record.status.last_token + 1),
            job_version=job.version,
            amounts=dict(ask.amounts),
        )

    def written(
        self, record: ToyQuota, holders: tuple[ToyHolder, ...], newest: Ask | None, now: datetime
    ) -> ToyStatus:
        last = holders[-1].token if newest is not None else record.status.last_token
        return ToyStatus(holders=holders, last_token=last)

    def retire(self, record: ToyQuota, now: datetime) -> Decision:
        return Decision()


QUOTAS = ToyQuotas()


class Stored:
    """A store with versions, and all that ever happened in it."""

    def __init__(self) -> None:
        self.held: dict[Key, Any] = {}
        self.events: list[tuple[Key, Any]] = []
        quota = ToyQuota(metadata=Metadata(name="all", uid="uid-all"), limits=LIMITS)
        self.write(quota, QUOTA)

    def write(self, resource: Any, key: Key) -> None:
        if resource is not None:
            version = str(len(self.events) + 1)
            resource = replace(
                resource, metadata=replace(resource.metadata, resource_version=version)
            )
            self.held[key] = resource
        else:
            del self.held[key]
        self.events.append((key, resource))

    def apply(self, action: Action) -> bool:
        """Carry out an order if nothing changed since what it was decided on."""
        match action:
            case CreateResource(resource):
                if resource.key in self.held:
                    return False
                made = replace(resource.metadata, uid=f"uid-{len(self.events)}")
                self.write(replace(resource, metadata=made), resource.key)
                return True
            case RecordAdmission(job, admission):
                changed: Any = replace(job, status=with_admission(job, admission, T0))
            case RecordStatus(resource, status):
                changed = replace(resource, status=status)
            case DeleteResource(resource):
                changed = None
            case _:
                raise AssertionError(action)
        read = action.about
        assert read is not None
        found = self.held.get(read.key)
        if found is None or found.version != read.version:
            return False
        self.write(changed, read.key)
        return True

    def jobs(self) -> list[Job]:
        return [one for one in self.held.values() if isinstance(one, Job)]


class Plane:
    """A control plane that believes it leads, and hears of things late."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._heard = dict.fromkeys(KINDS, 0)
        by_holder = {BY_HOLDER: holder_uids}
        locks, quotas = Cache[Any]("Lock", by_holder), Cache[Any]("ToyQuota", by_holder)
        jobs: Cache[Job] = Cache("Job")
        self._caches: dict[str, Cache[Any]] = {"Job": jobs, "Lock": locks, "ToyQuota": quotas}
        self.reconciler = AdmissionReconciler(jobs, {LOCKS: locks, QUOTAS: quotas})
        #: What is to be looked at, in the order it was woken.
        self.woken: dict[Key, None] = {}

    def hear_all(self) -> None:
        for kind in KINDS:
            self.hear(kind, len(self._stored.events))

    def hear(self, kind: str, most: int) -> None:
        """Hear a little more about one kind: each has a stream of its own."""
        cache, begin = self._caches[kind], self._heard[kind]
        self._heard[kind] = min(begin + most, len(self._stored.events))
        for at in range(begin, self._heard[kind]):
            key, resource = self._stored.events[at]
            if key.kind != kind:
                continue
            before = cache.note(resource) if resource is not None else cache.drop(key, at + 1)
            for woken in self.reconciler.wakes(Change(before, resource)):
                self.woken[woken] = None
        cache.settle(self._heard[kind])

    def work(self, looks: int) -> None:
        """Hear everything, and do a part of what follows from it."""
        self.hear_all()
        for _ in range(looks):
            self.look()
            self.hear_all()

    def look(self, at: int = 0) -> bool:
        """Look at something; tells whether that changed anything."""
        if not self.woken:
            return False
        key = list(self.woken)[at % len(self.woken)]
        del self.woken[key]
        for action in self.reconciler.look(key, T0).actions:
            if not self._stored.apply(action):
                # A decision on old news is dropped, and made again when more is heard.
                self.woken[key] = None
                return False
        return True


class Played:
    """Two control planes, one store, and Jobs that come, end, are held back, put back and go."""

    def __init__(self) -> None:
        self.stored = Stored()
        self.planes = (Plane(self.stored), Plane(self.stored))

    def create(self, number: int, labels: dict[str, str], locks: bool, priority: int) -> None:
        count = len(self.stored.events)
        job = a_job(
            f"job-{count}",
            namespace=NAMESPACES[number % 2],
            metadata={"labels": labels, "uid": f"uid-job-{count}"},
            locks=(a_request(limit=LOCK_LIMIT),) if locks else (),
            priority=priority,
        )
        self.stored.write(job, job.key)

    def change(self, number: int, change: Callable[[Job], Job | None]) -> None:
        jobs = self.stored.jobs()
        if jobs:
            job = jobs[number % len(jobs)]
            changed = change(job)
            if changed is not job:
                self.stored.write(changed, job.key)

    def settle(self) -> None:
        """Hear and look until there is nothing left to do."""
        # Far more than is ever needed: a Job takes a grant of each claim, an end, a few words.
        for _ in range(50 * len(self.stored.events)):
            for plane in self.planes:
                plane.hear_all()
            if not any(plane.woken for plane in self.planes):
                return
            for plane in self.planes:
                plane.look()
                self.check()
        raise AssertionError("it does not settle")

    def check(self) -> None:
        """What must hold at every moment."""
        running = [job for job in self.stored.jobs() if is_admitted(job) and not has_ended(job)]
        for job in running:
            for ask in (*LOCKS.asks(job), *QUOTAS.asks(job)):
                record = self.stored.held[ask.key]
                assert grant_of(job, record.status.holders) is not None
        used = total(ask.amounts for job in running for ask in QUOTAS.asks(job))
        assert all(amount <= LIMITS[name] for name, amount in used.items())
        for key in DB.values():
            users = [job for job in running if any(ask.key == key for ask in LOCKS.asks(job))]
            assert len(users) <= LOCK_LIMIT

    def grants_of_waiting(self) -> Iterator[Key]:
        for record in self.stored.held.values():
            for job in self.stored.jobs() if not isinstance(record, Job) else ():
                if not is_admitted(job) and grant_of(job, record.status.holders) is not None:
                    yield job.key


def ended(job: Job) -> Job:
    if not is_admitted(job) or has_ended(job):
        return job
    execution = ExecutionStatus(result=JobResult.SUCCEEDED)
    return replace(job, status=replace(job.status, phase=JobPhase.SUCCEEDED, execution=execution))


def put_back(job: Job) -> Job:
    """Evicted, after its attempts are proven gone: one write."""
    if not is_admitted(job) or has_ended(job):
        return job
    admission = job.status.admission
    again = replace(admission, phase=AdmissionPhase.WAITING, epoch=admission.epoch + 1, grants=())
    return replace(job, status=replace(job.status, phase=JobPhase.QUEUED, admission=again))


def held_back(job: Job) -> Job:
    metadata = replace(job.metadata, generation=job.metadata.generation + 1)
    return replace(job, metadata=metadata, spec=replace(job.spec, suspend=not job.spec.suspend))


def gone(job: Job) -> Job | None:
    return job if is_admitted(job) and not has_ended(job) else None


CHANGES = (ended, ended, put_back, held_back, gone)
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"cpu": "1"},
    {"cpu": "3"},
    {"cpu": "4", "gpu": "1"},
    {"gpu": "1"},
)
creations = st.tuples(
    st.just("create"), st.integers(0, 1), st.sampled_from(LABELS), st.booleans(), st.integers(0, 1)
)
steps = st.one_of(
    creations,
    st.tuples(st.just("work"), st.integers(0, 1), st.integers(1, 12)),
    st.tuples(st.just("hear"), st.integers(0, 1), st.sampled_from(KINDS), st.integers(1, 9)),
    st.tuples(st.just("look"), st.integers(0, 1), st.integers(0, 5)),
    st.tuples(st.just("change"), st.integers(0, 5), st.sampled_from(CHANGES)),
)


@given(script=st.lists(steps, max_size=60))
def test_no_more_is_let_in_than_fits_and_everyone_gets_in(script: list[Any]) -> None:
    """Never too many, all or none, never in a ring, and it settles."""
    played = Played()
    for name, *args in script:
        match name:
            case "create" | "change":
                getattr(played, name)(*args)
            case _:
                getattr(played.planes[args[0]], name)(*args[1:])
        played.check()

    played.settle()
    _check_settled(played)
    for _ in range(len(played.stored.jobs()) + 1):
        for number, job in enumerate(played.stored.jobs()):
            played.change(number, held_back if job.spec.suspend else ended)
        played.settle()
        _check_settled(played)
    assert all(map(has_ended, played.stored.jobs()))


def _check_settled(played: Played) -> None:
    # Whoever waits for something holds nothing of the rest.
    assert list(played.grants_of_waiting()) == []
    for plane in played.planes:
        for key in (QUOTA, *DB.values(), *(job.key for job in played.stored.jobs())):
            assert plane.reconciler.look(key, T0).actions == ()
