"""A calm world: the real control plane, a store in memory, and a stage for the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from random import Random

from msgspec import NODEFAULT
from msgspec.structs import fields

from interlock.api.writes import prepared
from interlock.control.lease import Election, LeaseTimes
from interlock.control.reconciler import Change as CacheChange
from interlock.control.runtime import Runtime
from interlock.control.write_fence import WriteFence
from interlock.execution.reconciler import Patience
from interlock.forecast.rehearsal.calm_loop import CalmLoop
from interlock.forecast.rehearsal.lines import Line, line_about, lines_of
from interlock.forecast.rehearsal.scenario import WorkRule
from interlock.forecast.rehearsal.simulated_capacity import Capacity, Needs, needs_of
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimHandle, SimProcess, run_now
from interlock.forecast.rehearsal.simulated_workers import RehearsedWorkers, Workers
from interlock.forecast.rehearsal.skips import told_skips
from interlock.forecast.rehearsal.stage import Grounds, Stage, StageRuntime
from interlock.forecast.rehearsal.windows import SkippedWindows
from interlock.forecast.rehearsal.work import WorkModel
from interlock.plane import ControlPlane, PlaneSettings
from interlock.reporting.job_index import JobIndex
from interlock.resources.cluster import Namespace
from interlock.resources.codec import to_builtins
from interlock.resources.default_queue import default_queue_in
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.kinds import KINDS
from interlock.resources.lock import Lock
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.resources.modes import Mode
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.tasks import TaskOrder
from interlock.resources.values.amounts import Amount
from interlock.resources.work_types import WORKERS
from interlock.runtimes.router import Router
from interlock.runtimes.workers.dispatcher import LEASE_S, Dispatcher
from interlock.store.contract import EventType
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryJournal, MemoryStore
from interlock.store.watching import Change

#: Nobody else can lead here, so the lease need not be renewed: time jumps over it.
LEASE = LeaseTimes(lasts_s=1e9, renew_by_s=1e9, every_s=1e9)
#: A leader that died is missed once its lease has run out.
FAILOVER_S = LeaseTimes().lasts_s
#: Whom lines about the control plane itself are about.
PLANE = Key("ControlPlane", "", "interlock")
#: What is written takes no time here, so nothing is gained by writing less.
_AT_ONCE = Patience(timedelta(), timedelta())
#: What the runtime of processes and pods is called among the others.
_OWN = "machine"
_MICROSECOND = timedelta(microseconds=1)


class Plane:
    """A control plane, from a start to the next crash."""

    def __init__(self, world: World, life: int) -> None:
        self._world = world
        self.process: SimProcess = world.loop.start_process(f"plane-{life}")
        self.clock = SimClock(world.loop, self.process, world.start)
        self._runtimes: list[StageRuntime] = []
        self._workers: RehearsedWorkers | None = None
        self.roster = JobIndex(default_queue_in(world.mode))
        luck = Random(f"plane-{life}")
        election = Election(
            world.store,
            self.clock,
            luck,
            WriteFence(self.clock),
            f"plane-{life}",
            sole=True,
            times=LEASE,
        )
        self.plane = ControlPlane(
            store=world.store,
            journal=world.journal,
            clock=self.clock,
            luck=luck,
            connect=self._connect,
            election=election,
            observers=(self._observe,),
            settings=PlaneSettings(
                mode=world.mode,
                most_tasks=world.most_tasks,
                patience=_AT_ONCE,
                wait_for_pods_ready=world.wait_for_pods_ready,
            ),
        )

    def start(self) -> None:
        """Begin, inside the process."""
        loop = self._world.loop
        loop.call_soon(self.plane.start, context=self.process.context.copy())

    def kill(self) -> None:
        """Nothing of it runs any more."""
        self._world.loop.kill(self.process)
        for runtime in self._runtimes:
            runtime.disconnect()
        self._world.workers.detach()

    def _observe(self, change: CacheChange) -> None:
        self.roster.observe(change)
        if self._workers is not None and isinstance(change.after, Job):
            self._workers.heard(change.after)

    async def _connect(self, term: int) -> Runtime:  # noqa: ARG002 (there is only one of us)
        world, check = self._world, self.plane.fence.check
        stage = StageRuntime(world.stage, world.loop, self.process)
        self._runtimes.append(stage)
        dispatcher = Dispatcher(lease_s=LEASE_S)
        workers = RehearsedWorkers(world.workers, self.clock, check, dispatcher)
        workers.inherit(self.plane.cache(Job))
        self._workers = workers
        world.workers.attach(workers, self.process)
        return Router({_OWN: stage, WORKERS: workers}, own=_OWN, check=check)


class World:
    """Everything of one rehearsal. Time moves only when it is told to."""

    def __init__(
        self,
        start: datetime,
        *,
        work: tuple[WorkRule, ...] = (),
        mode: Mode = Mode.EMBEDDED,
        most_tasks: int = 1000,
        workers: int | None = None,
        most_steps: int | None = None,
        nodes: Sequence[Mapping[str, Amount]] = (),
        wait_for_pods_ready: WaitForPodsReady | None = None,
    ) -> None:
        self.start = start
        self.mode = mode
        self.most_tasks = most_tasks
        self.wait_for_pods_ready = wait_for_pods_ready
        self.loop = CalmLoop(most_steps)
        self.lines: list[Line] = []
        identities = SeededIdentities(Random("rehearsal"))
        self.store = MemoryStore(self.now, identities, on_commit=self._heard)
        self.journal = MemoryJournal()
        model = WorkModel(work, self._is_kept)
        self.stage = Stage(self.loop, start, model, self._grounds(nodes))
        self.workers = Workers(self.loop, model, workers, self.note)
        self.plane: Plane | None = None
        self._lives = 0
        self._windows = SkippedWindows(self.get, self._call_at, self.note)
        #: Whether what is stored now was there before the rehearsal.
        self._is_old = False

    def _grounds(self, nodes: Sequence[Mapping[str, Amount]]) -> Grounds | None:
        is_cluster = self.mode is Mode.CLUSTER
        if not nodes and not is_cluster:
            return None
        # A node of which nothing is said has room for all.
        amounts = [{name: one.milli for name, one in node.items()} for node in nodes or ({},)]
        return Grounds(Capacity(amounts), self._needs_of, is_cluster)

    def _needs_of(self, order: TaskOrder) -> Needs:
        job = self.get(Key("Job", order.namespace, order.job))
        return needs_of(job if isinstance(job, Job) else None)

    def now(self) -> datetime:
        """The time it is."""
        return self.start + timedelta(microseconds=self.loop.now_us)

    def close(self) -> None:
        """End everything."""
        self.loop.close()

    # What there is

    def put(self, resources: Iterable[Resource]) -> None:
        """Store objects: as new ones, or, with a status, as an earlier life left them."""
        for resource in sorted(resources, key=lambda one: one.kind != "Namespace"):
            self._make_namespace(resource.metadata.namespace)
            ready = prepared(resource)
            if _has_status(ready):
                self._is_old = True
                self.store.go_on_from(_newest_in(ready))
                self.store.adopt(ready)
                self._is_old = False
            else:
                run_now(self.store.create(ready))
            if isinstance(ready, Job):
                stored = self.get(ready.key)
                assert isinstance(stored, Job)
                self.stage.resume(stored)
                self.workers.resume(stored, self.now())

    def get(self, key: Key) -> Resource | None:
        """An object, if there is one."""
        return self.store.find(key)

    def all_of(self, kind: str, namespace: str) -> list[Resource]:
        """The objects of a kind in a namespace, in the order of their names."""
        return list(self.store.find_all(kind, namespace or None))

    def _make_namespace(self, name: str) -> None:
        if name and self.get(Key("Namespace", "", name)) is None:
            run_now(self.store.create(Namespace(metadata=Metadata(name=name))))

    # What happens

    def begin(self) -> None:
        """Start the control plane."""
        self.plane = Plane(self, self._lives)
        self._lives += 1
        self.plane.start()

    def crash(self) -> None:
        """Kill the control plane; what it started goes on."""
        if self.plane is not None:
            self.plane.kill()
            self.plane = None

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        """Have something happen after a while."""
        self.loop.call_later(seconds, callback, context=self.loop.world.context.copy())

    def play_until(self, moment: datetime) -> None:
        """Let everything happen that is due up to a moment."""
        self.loop.play_until((moment - self.start) // _MICROSECOND)

    def note(self, key: Key, event: str, reason: str = "", detail: str = "") -> None:
        """Write a line into the history."""
        self.lines.append(line_about(key, self.now(), event, reason, detail))

    def _call_at(self, moment: datetime, callback: Callable[[], None]) -> SimHandle:
        when_us = (moment - self.start) // _MICROSECOND
        context = self.loop.world.context.copy()
        return self.loop.call_at_us(when_us, callback, context=context)

    def _heard(self, change: Change) -> None:
        before, after = change.before, change.event.resource
        assert after is not None
        if change.event.type is not EventType.DELETED:
            self._windows.heard(before, after, self.now())
        if self._is_old:
            return
        self.lines.extend(lines_of(change, self.now()))
        if isinstance(after, JobConfig):
            known = before if isinstance(before, JobConfig) else None
            for reason, detail in told_skips(known, after, self.get):
                self.note(change.key, "Skipped", reason, detail)

    def _is_kept(self, key: Key) -> bool:
        """Whether a Job is to run until it is stopped."""
        job = self.get(key)
        owners = job.metadata.owner_references if job is not None else ()
        return any(owner.kind == "ControlledJob" for owner in owners)


def _newest_in(resource: Resource) -> int:
    """The highest version that an object speaks of: none of them is given out again."""
    own = resource.metadata.resource_version
    named = [int(own) if own.isdecimal() else 0]
    if isinstance(resource, Lock):
        named.append(resource.status.last_token)
        for holder in resource.status.holders:
            named += (holder.token, holder.job_version)
    elif isinstance(resource, Job):
        admission = resource.status.admission
        named += (admission.sequence, *(grant.token for grant in admission.grants))
    return max(named)


def _has_status(resource: Resource) -> bool:
    """Whether an object comes from an earlier life: it says who it was, or how it was going."""
    if resource.metadata.uid or resource.metadata.creation_timestamp:
        return True
    given = to_builtins(resource).get("status")
    return bool(given) and given != _new_status(resource.kind)


@cache
def _new_status(kind: str) -> object:
    """The status that a new object begins with, as plain data."""
    (field,) = (one for one in fields(KINDS[kind].type) if one.name == "status")
    default = field.default if field.default is not NODEFAULT else field.default_factory()
    return to_builtins(default)
