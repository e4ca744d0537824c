"""What people do in a world, through the store, as one process of their own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from interlock.errors import ConflictError, InterlockError, InvalidError
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, Grant
from interlock.resources.door.checking import check_due
from interlock.resources.job import (
    JOB_FINALIZER,
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    REQUEUE_ANNOTATION,
    REQUEUE_ROUND_ANNOTATION,
    REQUEUED_BY_ANNOTATION,
    Job,
    JobSpec,
    LockRequest,
    Parallelism,
    Retries,
    unknown_attempts,
)
from interlock.resources.lock import Holder, Lock, LockSpec, LockStatus, lock_name
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.resources.process import ProcessSpec
from interlock.resources.transitions import has_ended, is_admitted, with_admission
from interlock.resources.values.durations import Duration
from interlock.store.contract import DeleteOptions, Store
from support.simulation.script import (
    Act,
    ChangePriority,
    CreateJob,
    DeleteJob,
    Forgery,
    ForgeStatus,
    KillJob,
    Poke,
    RaiseLimits,
    ReleaseJob,
    RequeueOne,
    SuspendJob,
)
from support.simulation.truth import PHANTOM, Truth

NAMESPACE = "default"
_WORK = ProcessSpec(command=("work", "5"))
#: How often a person tries again when somebody else was faster.
_TRIES = 50


class People:
    """Carries out the steps of a script that people do."""

    def __init__(
        self,
        store: Store,
        truth: Truth,
        now: Callable[[], datetime],
        past_the_door: Store | None = None,
    ) -> None:
        self._store = store
        #: For what no door lets in.
        self._past_the_door = past_the_door or store
        self._truth = truth
        self._now = now

    async def do(self, act: Act) -> None:
        """Do one thing; that the object is not there is no surprise."""
        try:
            await self._do(act)
        except InterlockError:
            return

    async def _do(self, act: Act) -> None:
        match act:
            case CreateJob():
                await self._store.create(self._job(act))
            case DeleteJob(name):
                await self._delete(name)
            case KillJob(name, after, graceful):
                await self._edit(name, lambda job: self._killed(job, after, graceful))
            case SuspendJob(name, suspend):
                await self._edit(name, lambda job: _with_spec(job, suspend=suspend))
            case ChangePriority(name, priority):
                await self._edit(name, lambda job: _with_spec(job, priority=priority))
            case RaiseLimits(name, by):
                await self._edit(name, lambda job: _with_spec(job, locks=_raised(job, by)))
            case ReleaseJob(name):
                await self._edit(name, _released)
            case RequeueOne(luck):
                await self._requeue_one(luck)
            case Poke(name, how):
                await self._poke(name, how)
            case ForgeStatus(name, spec, how):
                await self._forge(name, spec, how)
            case _:
                raise AssertionError(f"{act} is not for people")

    async def _requeue_one(self, luck: float) -> None:
        """Give an order for what is true now; when it arrives the Job may be elsewhere."""
        let_in = [
            job for job in self._truth.jobs.values() if is_admitted(job) and not has_ended(job)
        ]
        if not let_in:
            return
        job = let_in[int(luck * len(let_in))]
        self._truth.to_requeue.setdefault(job.metadata.uid, set()).add(job.status.execution.round)
        await self._edit(job.metadata.name, lambda _: _requeued(_, job.status.execution.round))

    async def tidy_up(self) -> None:
        """Let go of everything that only a person can let go of."""
        for key, job in tuple(self._truth.jobs.items()):
            if job.spec.suspend:
                await self.do(SuspendJob(key.name, False))
            if job.status.phase == "Unknown":
                await self.do(ReleaseJob(key.name))

    def _job(self, act: CreateJob) -> Job:
        now = self._now()

        def moment(after: float | None) -> datetime | None:
            return None if after is None else now + timedelta(seconds=round(after, 3))

        spec = replace(
            act.spec,
            start_after=moment(act.start_after),
            start_by=moment(act.start_by),
            kill_at=moment(act.kill_at),
        )
        finalizers = (JOB_FINALIZER,) if act.through_door else ()
        metadata = Metadata(name=act.name, namespace=NAMESPACE, finalizers=finalizers)
        return Job(metadata=metadata, spec=spec)

    def _killed(self, job: Job, after: float, graceful: bool) -> Job:
        kill_at = self._now() + timedelta(seconds=after)
        grace = job.spec.grace_period if graceful else Duration()
        return _with_spec(job, kill_at=kill_at, grace_period=grace)

    async def _delete(self, name: str) -> None:
        job = await self._store.get(Key("Job", NAMESPACE, name))
        self._truth.to_delete[job.metadata.uid] = None
        await self._store.delete(job.key, DeleteOptions(uid=job.metadata.uid))

    async def _edit(self, name: str, change: Callable[[Job], Job]) -> None:
        for _ in range(_TRIES):
            job = await self._store.get(Key("Job", NAMESPACE, name))
            assert isinstance(job, Job)
            changed = change(job)
            if problems := check_due(job, changed, self._now()):
                raise InvalidError("Job", name, problems)
            try:
                await self._store.update(changed)
            except ConflictError:
                continue
            return

    async def _poke(self, name: str, how: int) -> None:
        self._truth.bad[name] = None
        made = _bad_object(name, how, self._now())
        stored = await self._past_the_door.create(made)
        if isinstance(made, Lock):
            await self._past_the_door.update_status(replace(stored, status=made.status))

    async def _forge(self, name: str, spec: JobSpec, how: Forgery) -> None:
        """Have a new Job say what is not so, at once: what it was granted is not known yet."""
        self._truth.bad[name] = None
        later = self._now() + timedelta(hours=1) if how is Forgery.LET_IN else None
        metadata = Metadata(name=name, namespace=NAMESPACE, finalizers=(JOB_FINALIZER,))
        made = Job(metadata=metadata, spec=replace(spec, start_after=later))
        job: Resource = await self._past_the_door.create(made)
        for _ in range(_TRIES):
            assert isinstance(job, Job)
            if job.status.admission.phase is not AdmissionPhase.WAITING:
                return
            try:
                await self._past_the_door.update_status(self._forged(job, how))
            except ConflictError:
                job = await self._past_the_door.get(job.key)
                continue
            return

    def _forged(self, job: Job, how: Forgery) -> Job:
        now, was = self._now(), job.status.admission
        locks = job.spec.locks if how is Forgery.LET_IN else ()
        admission = AdmissionStatus(
            phase=AdmissionPhase.ADMITTED,
            sequence=was.sequence or job.version,
            epoch=was.epoch,
            grants=tuple(Grant(key=r.key, token=self._token(r.key)) for r in locks),
            admitted_at=now,
        )
        return replace(job, status=with_admission(job, admission, now))

    def _token(self, key: str) -> int:
        """The token of whoever holds a lock."""
        lock = self._truth.locks.get((NAMESPACE, key))
        holders = lock.status.holders if lock is not None else ()
        return max((holder.token for holder in holders), default=1)


def _with_spec(job: Job, **changes: object) -> Job:
    return replace(job, spec=replace(job.spec, **changes))


def _raised(job: Job, by: int) -> tuple[LockRequest, ...]:
    return tuple(replace(request, limit=request.limit + by) for request in job.spec.locks)


def _released(job: Job) -> Job:
    """What a person says of what is unknown now; of a Job that is not, it is a word too early."""
    attempts = ",".join(sorted(unknown_attempts(job)))
    word = {RELEASE_ANNOTATION: "looked at the machine", RELEASED_ATTEMPTS_ANNOTATION: attempts}
    annotations = job.metadata.annotations | word
    return replace(job, metadata=replace(job.metadata, annotations=annotations))


def _requeued(job: Job, round: int) -> Job:
    order = {
        REQUEUE_ANNOTATION: "the node is slow",
        REQUEUE_ROUND_ANNOTATION: str(round),
        REQUEUED_BY_ANNOTATION: "ana",
    }
    annotations = job.metadata.annotations | order
    return replace(job, metadata=replace(job.metadata, annotations=annotations))


def _bad_object(name: str, how: int, now: datetime) -> Resource:
    """Objects that no door lets in, each bad in its own way."""
    metadata = Metadata(name=name, namespace=NAMESPACE)
    db = LockRequest(key="db")
    specs = (
        JobSpec(locks=(db,)),
        JobSpec(process=ProcessSpec(command=("work", "${task.nonsense}")), locks=(db,)),
        JobSpec(process=_WORK, parallelism=Parallelism(count=0), locks=(db,)),
        JobSpec(process=_WORK, parallelism=Parallelism(count=-3), locks=(db,)),
        JobSpec(process=_WORK, locks=(replace(db, limit=0),)),
        JobSpec(process=_WORK, locks=(db, db)),
        JobSpec(process=ProcessSpec(command=()), locks=(db,)),
        JobSpec(process=_WORK, retries=Retries(limit=-1), parallelism=Parallelism(matrix={})),
        JobSpec(process=_WORK, locks=(db,), start_by=now, start_after=now + timedelta(hours=1)),
    )
    if how < len(specs):
        return Job(metadata=metadata, spec=specs[how])
    phantom = Holder(job="nobody", uid=PHANTOM, epoch=0, token=1, granted_at=now)
    return Lock(
        metadata=replace(metadata, name=lock_name("db")),
        spec=LockSpec(key="db"),
        status=LockStatus(holders=(phantom,), limit=1, last_token=1),
    )
