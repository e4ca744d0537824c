"""JobConfigs on a real store, looked at by one or more planes that see it when they are told to.

Nothing here waits: a look, each write of a decision, and what a plane has heard of are taken one
by one, so that a test can stop, repeat and reorder them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import inf
from random import Random
from typing import Any, TypeVar

from msgspec.structs import replace

from interlock.control.applier import Applier
from interlock.control.cache import Cache
from interlock.control.clock import Timer
from interlock.control.garbage import INDEXES
from interlock.control.runtime import Listener, TaskStop
from interlock.control.write_fence import WriteFence
from interlock.errors import AlreadyExistsError, ConflictError, NotFoundError
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.resources.actions import Decision
from interlock.resources.admission import AdmissionPhase
from interlock.resources.calendar import Calendar
from interlock.resources.job import JOB_FINALIZER, Job
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Key, Resource
from interlock.resources.tasks import ExecutionStatus, JobResult, TaskId, TaskOrder, TaskReport
from interlock.resources.transitions import has_ended, with_admission, with_execution
from interlock.schedules.configs.reconciler import ConfigSide
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryStore
from interlock.testing.builders import T0

R = TypeVar("R", bound=Resource)

#: More looks than any world needs that is going to be settled.
_LOOKS = 100


class HandClock:
    """A clock that a test sets by hand; nothing ever rings."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        """What it was set to."""
        return self.at

    def monotonic(self) -> float:
        """Seconds that never pass."""
        return 0.0

    def call_at(self, moment: datetime, callback: Callable[[], None]) -> Timer:
        """Nothing is waited for."""
        raise AssertionError(f"{callback} waits for {moment}")

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Nothing is waited for."""
        raise AssertionError(f"{callback} waits for {seconds}")

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Nobody is told."""
        return lambda: None


class NoRuntime:
    """A runtime that nobody may ask: schedules start nothing."""

    groups_orders = True

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Nothing is launched."""
        raise AssertionError(orders)

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Nothing is stopped."""
        raise AssertionError(stops)

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Nothing is forgotten."""
        raise AssertionError(tasks)

    async def reports(self) -> Sequence[TaskReport]:
        """Nothing runs."""
        return ()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Nothing is ever told."""
        return lambda: None


class Plane:
    """A control plane's caches and its side of the room. It knows what it has heard."""

    def __init__(self, store: MemoryStore, clock: HandClock) -> None:
        self._store = store
        self.jobs: Cache[Job] = Cache("Job", INDEXES)
        self.configs: Cache[JobConfig] = Cache("JobConfig", INDEXES)
        self.calendars: Cache[Calendar] = Cache("Calendar", INDEXES)
        self.side = ConfigSide(self.jobs, self.configs, self.calendars)
        fence = WriteFence(clock)
        fence.open(1, inf)
        self._applier = Applier(store, NoRuntime(), clock, fence)

    def hear(self) -> None:
        """Take in all that is stored."""
        for cache in (self.jobs, self.configs, self.calendars):
            refresh(cache, self._store)

    def hear_configs(self) -> None:
        """Take in the configs alone: what they say of Jobs was not heard yet."""
        refresh(self.configs, self._store)

    def look(self, config: str, now: datetime) -> Decision:
        """Decide by what was heard."""
        return self.side.look(Key("JobConfig", "default", config), now)

    def apply(self, decision: Decision, most: int | None = None) -> bool:
        """Carry out the first actions of a decision; tells whether none was refused as stale."""
        try:
            run_now(self._applier.apply(Decision(decision.actions[:most])))
        except (ConflictError, NotFoundError, AlreadyExistsError):
            return False
        return True


class ConfigDesk:
    """A store with configs and their Jobs, and one plane that sees everything at once."""

    def __init__(self, *resources: Resource, at: datetime = T0) -> None:
        self.clock = HandClock(at)
        self.store = MemoryStore(self.clock.now, SeededIdentities(Random(0)))
        self.plane = self.a_plane()
        for resource in resources:
            self.put(resource)

    def a_plane(self) -> Plane:
        """A further control plane."""
        return Plane(self.store, self.clock)

    def put(self, resource: R) -> R:
        """Store a resource as if it were new, with the status it has."""
        metadata = replace(resource.metadata, resource_version="", uid="")
        stored = run_now(self.store.create(replace(resource, metadata=metadata)))
        status: Any = getattr(resource, "status", None)
        if status is not None and status != stored.status:  # type: ignore[attr-defined]
            stored = run_now(self.store.update_status(replace(stored, status=status)))
        return stored

    # What is there

    def config(self, name: str = "report") -> JobConfig:
        """A config as it is stored."""
        found = run_now(self.store.get(Key("JobConfig", "default", name)))
        assert isinstance(found, JobConfig)
        return found

    @property
    def jobs(self) -> dict[str, Job]:
        """The Jobs as they are stored, by name."""
        items = run_now(self.store.list("Job")).items
        return {job.metadata.name: job for job in items if isinstance(job, Job)}

    # What people and other rooms do

    def edit(self, name: str = "report", **spec: Any) -> None:
        """Change the spec of a config."""
        config = self.config(name)
        run_now(self.store.update(replace(config, spec=replace(config.spec, **spec))))

    def admit(self, name: str) -> None:
        """Let a Job in."""
        job = self.jobs[name]
        now = self.clock.now()
        admission = replace(
            job.status.admission,
            phase=AdmissionPhase.ADMITTED,
            sequence=job.version,
            admitted_at=now,
        )
        self._write(job, with_admission(job, admission, now))

    def end(self, name: str, result: JobResult = JobResult.SUCCEEDED) -> None:
        """Have a Job that was let in end."""
        job = self.jobs[name]
        now = self.clock.now()
        execution = ExecutionStatus(result=result, started_at=now, ended_at=now)
        self._write(job, with_execution(job, execution, now))

    def remove(self, name: str) -> None:
        """Delete a Job, and let it go."""
        job = self.jobs[name]
        if not job.is_going:
            job = run_now(self.store.delete(job.key))  # type: ignore[assignment]
        self.let_go(name)

    def let_go(self, name: str) -> None:
        """Take the hold off a Job: of what is going, nothing is left then."""
        job = self.jobs.get(name)
        if job is not None and JOB_FINALIZER in job.metadata.finalizers:
            ties = replace(job.metadata, finalizers=())
            run_now(self.store.update_ties(replace(job, metadata=ties)))

    def _write(self, job: Job, status: Any) -> None:
        run_now(self.store.update_status(replace(job, status=status)))

    # What the room does

    def at(self, moment: datetime) -> None:
        """Set the clock."""
        self.clock.at = moment

    def look(self, name: str = "report") -> Decision:
        """Look once, with everything heard, and carry out what is decided."""
        self.plane.hear()
        decision = self.plane.look(name, self.clock.now())
        self.plane.apply(decision)
        return decision

    def settle(self, name: str = "report") -> Decision:
        """Look until nothing is left to be done; returns the last decision, which is empty."""
        for _ in range(_LOOKS):
            decision = self.look(name)
            if not decision.actions:
                return decision
        raise AssertionError(f"{name} does not settle: {decision.actions}")

    def settle_at(self, moment: datetime, name: str = "report") -> Decision:
        """Set the clock, and look until nothing is left to be done."""
        self.at(moment)
        return self.settle(name)

    def run_through(self, moment: datetime, name: str = "report") -> None:
        """Look whenever it is asked for, until a moment."""
        decision = self.settle(name)
        while decision.wake_at is not None and decision.wake_at <= moment:
            decision = self.settle_at(max(decision.wake_at, self.clock.now()), name)
        self.settle_at(moment, name)

    def made(self, name: str = "report") -> list[str]:
        """The due times that have a Job in the store, as HH:MM or HH:MM:SS, in order."""
        uid = self.config(name).metadata.uid
        found = []
        for job in self.jobs.values():
            at = job.metadata.annotations.get("interlock.dev/scheduled-at")
            if at is not None and any(o.uid == uid for o in job.metadata.owner_references):
                found.append(datetime.fromisoformat(at))
        return [_hour(at) for at in sorted(found)]

    def clear(self) -> None:
        """Have every Job that may start run and be over."""
        for name, job in self.jobs.items():
            if not has_ended(job) and not job.is_going:
                if job.status.admission.phase is AdmissionPhase.WAITING:
                    self.admit(name)
                self.end(name)


def _hour(at: datetime) -> str:
    return f"{at:%H:%M}" if at.second == 0 else f"{at:%H:%M:%S}"


def refresh(cache: Cache[Any], store: MemoryStore) -> None:
    """Have a cache hear of all that is stored."""
    page = run_now(store.list(cache.kind))
    listed = {item.key for item in page.items}
    for item in page.items:
        cache.note(item)
    for held in cache:
        if held.key not in listed:
            cache.drop(held.key, page.version)
    cache.settle(page.version)


#: A moment to write boundaries with.
SECOND = timedelta(seconds=1)
