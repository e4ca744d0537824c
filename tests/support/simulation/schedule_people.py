"""What people do about schedules, through the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from random import Random

from msgspec.structs import replace

from interlock.errors import ConflictError, InvalidError, NotFoundError
from interlock.resources.calendar import Calendar, CalendarDay, CalendarSpec
from interlock.resources.controlled_job import (
    ControlledJob,
    Override,
    OverrideAction,
    RestartStrategy,
    SpecChangePolicy,
)
from interlock.resources.job import JOB_FINALIZER, Job, JobSpec, LockRequest
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import API_VERSION, Key, Metadata, OwnerReference, Resource
from interlock.resources.schedule import (
    CONFIG_LABEL,
    CONTROLLED_LABEL,
    MANUAL_ANNOTATION,
    RUN_ID_ANNOTATION,
    SCHEDULED_AT_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    USER_STOP,
)
from interlock.resources.transitions import has_ended
from interlock.store.contract import DeleteOptions
from support.simulation.people import NAMESPACE, People
from support.simulation.script import (
    Act,
    AddOverride,
    ApplyCalendar,
    ApplyConfig,
    ApplyControlled,
    ChangeTemplate,
    DeleteOneOf,
    PauseByHand,
    PutOffByHand,
    RemoveObject,
    RunByHand,
    StopByHand,
    SuspendJob,
    SuspendSchedule,
)

_TRIES = 50


class SchedulePeople(People):
    """Carries out the steps of a script that people do, those about schedules too."""

    async def _do(self, act: Act) -> None:
        match act:
            case ApplyConfig(name, spec):
                await self._apply(JobConfig(metadata=_named(name), spec=spec))
            case ApplyControlled(name, controlled):
                await self._apply(ControlledJob(metadata=_named(name), spec=controlled))
            case ChangeTemplate(name, title):
                key = Key("ControlledJob", NAMESPACE, name)
                await self._change(key, lambda it: _with_template(it, title))
            case ApplyCalendar(name, days):
                listed = CalendarSpec(days=tuple(CalendarDay(day=day) for day in days))
                await self._apply(Calendar(metadata=_named(name), spec=listed))
            case RemoveObject(kind, name):
                await self._remove(Key(kind, NAMESPACE, name))
            case SuspendSchedule(kind, name, suspend):
                await self._change(Key(kind, NAMESPACE, name), lambda it: _suspended(it, suspend))
            case AddOverride(name):
                await self._override(act)
            case RunByHand(kind, name):
                await self._run(Key(kind, NAMESPACE, name))
            case StopByHand(name):
                await self._stop(name)
            case PauseByHand(name):
                await self._pause(Key("ControlledJob", NAMESPACE, name))
            case PutOffByHand(name, after):
                await self._put_off(Key("ControlledJob", NAMESPACE, name), after)
            case DeleteOneOf(kind, name, luck):
                await self._delete_one(Key(kind, NAMESPACE, name), luck)
            case _:
                await super()._do(act)

    async def make_exceptions(self, luck: Random) -> None:
        """Make an exception for every ControlledJob, of any sort, that lasts for a while."""
        for key in tuple(self._truth.schedules):
            if key.kind == "ControlledJob":
                action = luck.choice(tuple(OverrideAction))
                begin = luck.choice((-5.0, 0.0, 30.0))
                until = begin + luck.choice((200.0, 420.0, 4000.0))
                with suppress(NotFoundError):
                    await self._override(AddOverride(key.name, action, begin, until))

    async def put_to_rest(self) -> None:
        """Suspend every schedule, and take its times away, so that the world can settle."""
        for key in tuple(self._truth.schedules):
            if key.kind != "Calendar":
                with suppress(NotFoundError):
                    await self._change(key, _at_rest)

    async def _apply(self, made: Resource) -> None:
        try:
            await self._change(made.key, lambda held: _with_spec_of(held, made))
        except NotFoundError:
            await self._store.create(made)

    async def _change(self, key: Key, change: Callable[[Resource], Resource]) -> None:
        for _ in range(_TRIES):
            held = await self._store.get(key)
            try:
                await self._store.update(change(held))
            except ConflictError:
                continue
            return

    async def _remove(self, key: Key) -> None:
        held = await self._store.get(key)
        # What it made goes with it, by the collector.
        for job in self._jobs_of(held):
            self._truth.to_delete[job.metadata.uid] = None
        self._truth.removed[held.metadata.uid] = None
        await self._store.delete(key, DeleteOptions(uid=held.metadata.uid))

    async def _override(self, act: AddOverride) -> None:
        now = self._now().replace(microsecond=0)
        override = Override(
            action=act.action,
            begin=now + timedelta(seconds=act.begin),
            until=now + timedelta(seconds=act.until),
            reason="the line is repaired",
        )
        await self._change(
            Key("ControlledJob", NAMESPACE, act.name), lambda it: _overridden(it, override)
        )

    async def _run(self, key: Key) -> None:
        held = await self._store.get(key)
        if isinstance(held, JobConfig):
            await self._store.create(_on_demand(held, self._now().strftime("%H%M%S%f")))
        elif isinstance(held, ControlledJob):
            await self._store.create(_by_hand(held, self._now().replace(microsecond=0).isoformat()))

    async def _stop(self, name: str) -> None:
        held = await self._store.get(Key("ControlledJob", NAMESPACE, name))
        for job in self._jobs_of(held):
            if not has_ended(job) and not job.is_going:
                await self._edit(
                    job.metadata.name, lambda it: _stopped(self._killed(it, 0.0, True))
                )

    async def _pause(self, key: Key) -> None:
        for job in self._jobs_of(await self._store.get(key)):
            if not has_ended(job) and not job.is_going:
                await self._do(SuspendJob(job.metadata.name, True))

    async def _put_off(self, key: Key, after: float | None) -> None:
        kill_at = None if after is None else self._now() + timedelta(seconds=after)
        for job in self._jobs_of(await self._store.get(key)):
            if not has_ended(job) and not job.is_going:
                with suppress(InvalidError):
                    await self._edit(job.metadata.name, lambda it: _stopping_at(it, kill_at))

    async def _delete_one(self, key: Key, luck: float) -> None:
        jobs = self._jobs_of(await self._store.get(key))
        if jobs:
            await self._delete(jobs[int(luck * len(jobs))].metadata.name)

    def _jobs_of(self, owner: Resource) -> list[Job]:
        uid = owner.metadata.uid
        return [
            job
            for job in self._truth.jobs.values()
            if any(each.uid == uid for each in job.metadata.owner_references)
        ]


def _named(name: str) -> Metadata:
    return Metadata(name=name, namespace=NAMESPACE)


def _with_spec_of(held: Resource, made: Resource) -> Resource:
    match held, made:
        case JobConfig(), JobConfig():
            return replace(held, spec=made.spec)
        case ControlledJob(), ControlledJob():
            return replace(held, spec=replace(made.spec, overrides=held.spec.overrides))
        case Calendar(), Calendar():
            return replace(held, spec=made.spec)
    raise AssertionError(f"{held.key} is not {made.key}")


def _with_template(held: Resource, title: str) -> Resource:
    assert isinstance(held, ControlledJob)
    template = held.spec.job_template
    changed = replace(template, spec=replace(template.spec, title=title))
    follow = RestartStrategy(spec_change_policy=SpecChangePolicy.RECREATE)
    return replace(held, spec=replace(held.spec, job_template=changed, restart_strategy=follow))


def _suspended(held: Resource, suspend: bool) -> Resource:
    notes = dict(held.metadata.annotations)
    notes.pop(SUSPEND_REASON_ANNOTATION, None)
    if suspend:
        notes[SUSPEND_REASON_ANNOTATION] = "stock is taken"
    metadata = replace(held.metadata, annotations=notes)
    match held:
        case JobConfig():
            return replace(held, metadata=metadata, spec=replace(held.spec, suspend=suspend))
        case ControlledJob():
            return replace(held, metadata=metadata, spec=replace(held.spec, suspend=suspend))
    raise AssertionError(f"{held.key} cannot be suspended")


def _at_rest(held: Resource) -> Resource:
    rested = _suspended(held, True)
    if isinstance(rested, ControlledJob):
        return replace(rested, spec=replace(rested.spec, windows=(), events=()))
    return rested


def _overridden(held: Resource, override: Override) -> Resource:
    assert isinstance(held, ControlledJob)
    return replace(held, spec=replace(held.spec, overrides=(*held.spec.overrides, override)))


def _on_demand(config: JobConfig, ending: str) -> Job:
    concurrency = config.spec.concurrency
    lock = LockRequest(
        key=f"jobconfig/{config.metadata.name}",
        limit=concurrency.max_concurrency,
        when_taken=concurrency.policy,
        max_waiting=concurrency.max_queued,
    )
    spec = config.spec.template.spec
    return _owned(
        config,
        f"{config.metadata.name}-{ending}",
        replace(spec, locks=(*spec.locks, lock)),
        labels={CONFIG_LABEL: config.metadata.name},
    )


def _by_hand(controlled: ControlledJob, at: str) -> Job:
    name = controlled.metadata.name
    run = controlled.status.last_run_id + 1
    spec = controlled.spec.job_template.spec
    lock = LockRequest(key=f"controlledjob/{name}")
    return _owned(
        controlled,
        f"{name}-by-hand-{run}",
        replace(spec, locks=(*spec.locks, lock)),
        labels={CONTROLLED_LABEL: name},
        annotations={
            MANUAL_ANNOTATION: "true",
            SCHEDULED_AT_ANNOTATION: at,
            RUN_ID_ANNOTATION: str(run),
        },
    )


def _owned(
    owner: Resource,
    name: str,
    spec: JobSpec,
    labels: dict[str, str],
    annotations: Mapping[str, str] | None = None,
) -> Job:
    reference = OwnerReference(
        api_version=API_VERSION,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    metadata = Metadata(
        name=name,
        namespace=NAMESPACE,
        labels=labels,
        annotations=dict(annotations or {}),
        owner_references=(reference,),
        finalizers=(JOB_FINALIZER,),
    )
    return Job(metadata=metadata, spec=spec)


def _stopping_at(job: Job, kill_at: datetime | None) -> Job:
    return replace(job, spec=replace(job.spec, kill_at=kill_at))


def _stopped(job: Job) -> Job:
    annotations = job.metadata.annotations | {SUSPEND_REASON_ANNOTATION: USER_STOP}
    return replace(job, metadata=replace(job.metadata, annotations=annotations))
