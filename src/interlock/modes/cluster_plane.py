"""The control plane on a cluster: the rooms, the cluster's pods, and what is told of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from random import Random

from prometheus_client import CollectorRegistry

from interlock.api.answers import RefusedError
from interlock.api.routing import Route
from interlock.api.submitting import Desk
from interlock.api.workers import WorkerDoor
from interlock.control.clock import Clock
from interlock.control.lease import Election, LeaseTimes
from interlock.control.reconciler import Change
from interlock.control.runtime import Runtime
from interlock.control.stopping import end_task
from interlock.control.write_fence import WriteFence
from interlock.errors import FencedError
from interlock.execution.reconciler import Patience
from interlock.forecast.service import Forecasting
from interlock.kube.adoption.adopter import Adopter
from interlock.kube.client.api_client import Client
from interlock.kube.client.guarded import GuardedClient
from interlock.kube.events.recorder import Events
from interlock.kube.pods.informers import Informers
from interlock.kube.pods.logs import PodLogs
from interlock.kube.pods.objects import KubernetesObjects
from interlock.kube.pods.records import RECORDS
from interlock.kube.pods.runtime import PodRuntime
from interlock.kube.slots.ghost_manifest import GhostSettings
from interlock.kube.store.cluster_store import KubernetesStore
from interlock.kube.store.journal import KubernetesJournal
from interlock.modes.cluster_metrics import ClusterMetrics
from interlock.modes.cluster_slots import ClusterSlots
from interlock.modes.phases import JobsByPhase
from interlock.modes.queue_metrics import QueueMetrics, QueueMoveMetrics
from interlock.modes.settings import ControllerSettings
from interlock.modes.sweeper import Sweeper
from interlock.modes.worker_metrics import WorkerMetrics
from interlock.plane import ControlPlane, PlaneSettings
from interlock.reporting.job_index import JobIndex
from interlock.reporting.pending_places import PendingPlaces
from interlock.reporting.queue_moves import QueueMoves
from interlock.reporting.service import Reporting
from interlock.reporting.statuses import Waiters
from interlock.resources.job import Job
from interlock.resources.modes import Mode
from interlock.resources.work_types import WORKERS
from interlock.runtimes.router import Router
from interlock.runtimes.workers.terms import WorkerTerms

#: A write to an API server costs as much as the start of a process elsewhere.
_PATIENCE = Patience(timedelta(milliseconds=200), timedelta(seconds=10))
#: Each launch is two of them: a Job is listened to again after so many.
_LAUNCHES_AT_ONCE = 100


def lease_times(settings: ControllerSettings) -> LeaseTimes:
    """When to renew a lease that lasts so long, and when to give up."""
    lasts_s = float(settings.lease_lasts_s)
    return LeaseTimes(lasts_s=lasts_s, renew_by_s=lasts_s * 2 / 3, every_s=lasts_s / 6)


class ClusterPlane:
    """Everything that runs beside the API in a controller.

    What the rooms decide is written by a client that asks the fence before anything is sent.
    People's writes and the lease itself go another way: they do not depend on who leads.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        settings: ControllerSettings,
        identity: str,
        registry: CollectorRegistry,
    ) -> None:
        luck, fence, namespace = Random(), WriteFence(clock), settings.namespace
        self._fence = fence
        self._namespace = namespace
        self.store = KubernetesStore(client, clock, luck, namespace=namespace)
        election = Election(
            self.store,
            clock,
            luck,
            fence,
            identity,
            times=lease_times(settings),
            namespace=settings.lease_namespace,
        )
        leaders = GuardedClient(client, fence.check)
        self._events = Events(leaders, clock, luck, fence, identity)
        self._sight = Informers.of(leaders, clock, luck, namespace=namespace)
        self._records = KubernetesObjects(leaders, RECORDS, clock, luck)
        self._runtime: PodRuntime | None = None
        self._workers = WorkerTerms(clock)
        # What attempts write their workers print themselves, as pods do.
        self._door = WorkerDoor(lambda: self._workers.runtime)
        self._adopter = self._adopts(leaders, clock, luck) if settings.adopts else None
        self.slots = self._slots(client, leaders, clock, settings)
        self.roster = JobIndex()
        waiters = Waiters()
        moves = QueueMoves(clock.now(), lambda: fence.is_open)
        journal = KubernetesJournal()
        self.plane = ControlPlane(
            store=KubernetesStore(leaders, clock, luck, namespace=namespace),
            journal=journal,
            clock=clock,
            luck=luck,
            connect=self._connect,
            election=election,
            observers=(
                self.roster.observe,
                waiters.observe,
                moves.observe,
                self._events.observe,
                self._observe,
                *((self._adopter.observe,) if self._adopter is not None else ()),
                *((self.slots.observe,) if self.slots is not None else ()),
            ),
            settings=PlaneSettings(
                mode=Mode.CLUSTER,
                namespace=namespace,
                most_tasks=settings.most_tasks,
                patience=_PATIENCE,
                launches_at_once=_LAUNCHES_AT_ONCE,
                wait_for_pods_ready=settings.wait_for_pods_ready,
                collects=False,
            ),
        )
        registry.register(self.plane.metrics.registry)
        registry.register(JobsByPhase(self.roster))
        registry.register(WorkerMetrics(self._workers))
        registry.register(ClusterMetrics(client, election, self._events))
        self._reporting = Reporting(
            store=self.store,
            caches=self.plane.caches,
            roster=self.roster,
            journal=journal,
            logs=PodLogs(self._sight.pods, client),
            clock=clock,
            backup=_no_backup,
            waiters=waiters,
            places=PendingPlaces(self.roster, self.plane.cache(Job).get, settings.max_pending),
            namespace=namespace,
            system=settings.wait_for_pods_ready,
        )
        registry.register(QueueMetrics(self._reporting.queues))
        registry.register(QueueMoveMetrics(moves))
        self._forecasting = Forecasting(caches=self.plane.caches, clock=clock, mode=Mode.CLUSTER)
        jobs = self.plane.cache(Job)
        self._sweeper = Sweeper(
            lambda: self.plane.loop, jobs, self.roster, clock, settings.sweeping
        )
        registry.register(self._sweeper)
        self._beside: tuple[asyncio.Task[None], ...] = ()

    @property
    def routes(self) -> Sequence[Route]:
        """What it answers itself, and for whom."""
        reports = (*self._reporting.routes(), *self._forecasting.routes())
        return (*reports, *self._door.routes(), *self._sweeper.routes())

    @property
    def desk(self) -> Desk:
        """Knows how Jobs are."""
        return self._reporting.statuses

    def leads(self) -> bool:
        """Whether this controller leads now."""
        return self._fence.is_open

    def not_ready(self) -> Sequence[str]:
        """What is not ready yet. One that follows is ready too."""
        return () if self.plane.is_synced else ("the caches are not filled yet",)

    def start(self) -> None:
        """Begin to work."""
        events = asyncio.get_running_loop()
        works = [self._sight.run(), self._events.run(), self._sweeper.run()]
        if self._adopter is not None:
            works.append(self._adopter.run())
        if self.slots is not None:
            works.append(self.slots.run())
        self._beside = tuple(events.create_task(work) for work in works)
        self.plane.start()

    async def synced(self) -> None:
        """Wait until the caches hold everything that was stored when they began."""
        await self.plane.synced()

    async def broken(self) -> None:
        """Wait until something ends that should go on for ever, and raise what ended it.

        A controller without it would look alive and do nothing: another one should take over.
        """
        going_on = (*self.plane.activities, *self._beside)
        ended, _ = await asyncio.wait(going_on, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()

    async def stop(self) -> None:
        """Stop working and let the next one lead; tasks go on."""
        await self.plane.stop()
        self._workers.end("the controller stops")
        if self._runtime is not None:
            await self._runtime.close()
        for task in self._beside:
            await end_task(task)

    async def _connect(self, term: int) -> Runtime:
        """The cluster's pods, in the name of a term; the one before has nothing more to say."""
        if self._runtime is not None:
            self._runtime.abandon()
        check = partial(self._check, term)
        self._runtime = self._sight.lead(check, records=self._records)
        if self._adopter is not None:
            self._adopter.begin()
        if self.slots is not None:
            self.slots.begin()
        workers = self._workers.lead(check, self.plane.cache(Job))
        return Router(
            {"pods": self._runtime, WORKERS: workers}, own="pods", check=self.plane.fence.check
        )

    def _observe(self, change: Change) -> None:
        """What the leader before recorded last may be heard of after this one began."""
        if isinstance(change.after, Job):
            self._workers.heard(change.after)

    def _adopts(self, client: Client, clock: Clock, luck: Random) -> Adopter:
        """Has batch Jobs and pods of others wait in Queues."""
        return Adopter.of(
            client,
            lambda key: self.plane.cache(Job).get(key),
            KubernetesStore(client, clock, luck, namespace=self._namespace),
            clock,
            luck,
            self.leads,
            self._events.tell,
            namespace=self._namespace,
        )

    def _slots(
        self, client: Client, leaders: Client, clock: Clock, settings: ControllerSettings
    ) -> ClusterSlots | None:
        """Keeps ghosts, and answers schedulers: the latter whether or not it leads."""
        if settings.extender_listen is None:
            return None
        return ClusterSlots(
            client,
            leaders,
            lambda: self.plane.caches if self.plane.is_synced else None,
            clock,
            Random(),
            self.leads,
            GhostSettings(),
        )

    def _check(self, term: int) -> None:
        fence = self.plane.fence
        fence.check()
        if fence.term != term:
            raise FencedError(f"writing was stopped: term {term} is over")


def _no_backup() -> AsyncIterator[bytes]:
    told = "a cluster's state is kept by its API server: a snapshot of etcd is the backup"
    raise RefusedError(404, told)
