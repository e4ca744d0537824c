"""A `Runtime` that runs attempts as pods and batch Jobs of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from interlock.control.clock import Clock
from interlock.control.runtime import Listener, OrderDeniedError, TaskStop
from interlock.errors import (
    FencedError,
    InterlockError,
    UnavailableError,
)
from interlock.kube.client.errors import CannotNowError
from interlock.kube.pods import batch_reporting, manifest, reporting
from interlock.kube.pods.background import Background
from interlock.kube.pods.batch import BatchJobs
from interlock.kube.pods.claiming import Claiming
from interlock.kube.pods.fan_out import for_each, raise_worst
from interlock.kube.pods.forget_retries import ForgetRetries
from interlock.kube.pods.informer import Informer, Seen
from interlock.kube.pods.launching import Launching
from interlock.kube.pods.models import BatchJob, KubeObject, Node, Pod, T
from interlock.kube.pods.objects import Objects
from interlock.kube.pods.records import Records, Wanted
from interlock.kube.pods.sorts import WorkSort
from interlock.kube.pods.stopping import Stopping
from interlock.kube.pods.unreachable_nodes import PodTimes, UnreachableNodes
from interlock.resources.adopted import AdoptedKind
from interlock.resources.metadata import Order
from interlock.resources.tasks import ReportState, TaskId, TaskOrder, TaskReport
from interlock.resources.work import AdoptedWork, BatchWork, PodWork, Work

_OVER = (ReportState.ENDED, ReportState.NOT_STARTED)


class PodRuntime:
    """Implements `control.runtime.Runtime` for one leadership.

    What it tells is what the mirrors hold, which are kept up by whoever made them. Beyond that it
    remembers only what no object says: attempts that were refused, and objects that vanished.
    """

    groups_orders = False

    def __init__(
        self,
        pods: Informer[Pod],
        jobs: Informer[BatchJob],
        nodes: Objects[Node],
        clock: Clock,
        check: Callable[[], None],
        *,
        times: PodTimes | None = None,
        records: Records | None = None,
    ) -> None:
        self._pods = pods
        self._jobs = jobs
        self._clock = clock
        self._check = check
        self._times = times or PodTimes()
        #: Asked before anything is let run; without, that rests on `check` alone.
        self._records = records
        self._errands = Background(clock)
        self._forgetting = ForgetRetries(self._errands, self._forget)
        self._stopping = Stopping(pods, jobs, clock, self._times, check)
        self._silence = UnreachableNodes(
            pods, nodes, clock, self._times, self._errands, check, self._look_again
        )
        self._batch = BatchJobs(
            jobs,
            clock,
            self._times,
            self._errands,
            self._stopping,
            self._silence,
            self._tell,
            self._look_at_job,
        )
        self._listeners: list[Listener] = []
        self._reports: dict[TaskId, TaskReport] = {}
        #: Attempts that must not be started: they were stopped before anybody knew of them.
        self._barred: dict[TaskId, None] = {}
        #: What was said to the last try to make the object of an attempt, if it was denied.
        self._denials: dict[TaskId, str] = {}
        #: Reports that are told together.
        self._news: dict[TaskId, TaskReport] = {}
        #: What is made for each type of work.
        self._sorts: dict[type[Work], WorkSort[Any]] = {
            PodWork: self._sort_of_pods(),
            BatchWork: self._sort_of_jobs(),
        }
        self._claiming = Claiming(self._pods, self._jobs, self._check, self._refuse)
        self._unsubscribe = tuple(self._follow(sort) for sort in self._sorts.values())

    def _sort_of_pods(self) -> WorkSort[Pod]:
        launching = Launching(
            self._pods,
            self._clock,
            self._check,
            self._refuse,
            manifest=manifest.pod_of,
            arming=manifest.arm_pod,
            noun="pod",
        )
        return WorkSort(
            self._pods,
            launching,
            stop=self._stopping.stop_pod,
            look=self._look_at_pod,
            vanished=self._pod_vanished,
        )

    def _sort_of_jobs(self) -> WorkSort[BatchJob]:
        launching = Launching(
            self._jobs,
            self._clock,
            self._check,
            self._refuse,
            manifest=manifest.batch_job_of,
            arming=manifest.arm_batch_job,
            noun="batch Job",
        )
        return WorkSort(
            self._jobs,
            launching,
            stop=self._stopping.stop_batch_job,
            look=self._look_at_job,
            vanished=self._job_vanished,
        )

    def _follow(self, sort: WorkSort[T]) -> Callable[[], None]:
        def changed(changes: Sequence[Seen[T]]) -> None:
            sort.changed(changes)
            self._flush()

        return sort.mirror.subscribe(changed)

    # Orders

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Create what the attempts need, then let it run.

        Everything is created before anything is armed, so that an object which waits is the
        usual sight after a crash, and found again by its name.
        """
        await self._look_at_all()
        wanted = {order.id: order for order in orders if not self._is_settled(order.id)}
        waiting: dict[type[Work], list[KubeObject]] = {work: [] for work in self._sorts}

        async def create(order: TaskOrder) -> None:
            work = _made_as(order.work)
            if work not in self._sorts:
                self._refuse(order, "a process cannot run in a cluster: use pod or batchJob")
                return
            try:
                if isinstance(order.work, AdoptedWork):
                    made = await self._claiming.claim(order)
                else:
                    made = await self._sorts[work].create(order)
                self._denials.pop(order.id, None)
            except (OrderDeniedError, CannotNowError) as error:
                self._denials[order.id] = str(error)
                raise
            if made is not None:
                waiting[work].append(made)

        errors = await for_each(tuple(wanted.values()), create)
        errors += await self._drop_unwanted(waiting)
        for work, things in waiting.items():
            errors += await for_each(self._not_barred(things), self._sorts[work].arm)
        self._flush()
        self._raise(errors, Order.LAUNCH)

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Have the objects of attempts go, or never come to be."""
        await self._look_at_all()
        errors = await for_each(stops, self._stop)
        self._flush()
        self._raise(errors, Order.STOP)

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Let go of the objects of attempts that are over; they stay as long as their Job.

        Where that is refused it is done once it may be.
        """
        await self._look_at_all()
        over = [task for task in tasks if self._is_over(task)]
        self._raise(await for_each(over, self._forgetting.forget))

    async def reports(self) -> Sequence[TaskReport]:
        """Everything the cluster knows, from a list that is newer than this leadership."""
        await self._look_at_all()
        await self._listed()
        return tuple(self._reports.values())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear of every change."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    async def close(self) -> None:
        """Do nothing any more; the mirrors stay with their owner."""
        self.abandon()
        await self._errands.close()

    def abandon(self) -> None:
        """Do nothing any more, without waiting for what is under way."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._listeners.clear()
        self._errands.drop()

    # Stopping and forgetting

    async def _stop(self, stop: TaskStop) -> None:
        if self._is_over(stop.task):
            return
        grace_s = manifest.grace_s(stop.grace_s)
        found = self._objects_of(stop.task)
        if not found and stop.task not in self._reports:
            # From here on it is not armed, whatever is under way.
            self._barred[stop.task] = None
            found = await self._find(stop)
            if not found:
                denial = self._denials.pop(stop.task, "")
                why = denial or "stopped before it was launched"
                self._note(reporting.never_report(stop.task, stop.namespace, stop.job, why))
                return
        for sort, thing in found:
            await sort.stop(thing, grace_s)

    def _objects_of(self, task: TaskId) -> list[tuple[WorkSort[Any], KubeObject]]:
        return [(sort, thing) for sort in self._sorts.values() for thing in sort.of_task(task)]

    async def _find(self, stop: TaskStop) -> list[tuple[WorkSort[Any], KubeObject]]:
        """Ask for the objects of an attempt: the mirrors may not know yet of what was created."""
        await self._listed()
        if stop.job:
            for sort in self._sorts.values():
                await sort.fetch(stop)
        return self._objects_of(stop.task)

    async def _forget(self, task: TaskId) -> None:
        for sort in self._sorts.values():
            await sort.forget(task, self._check)
        self._reports.pop(task, None)
        self._barred.pop(task, None)

    # Seeing

    async def _look_at_all(self) -> None:
        """Look at what there was when this leadership began, before anything rests on it."""
        for sort in self._sorts.values():
            await sort.look_at_all()

    async def _listed(self) -> None:
        """Wait until what is known is newer than this leadership, and than the last outage."""
        await asyncio.gather(*(sort.listed() for sort in self._sorts.values()))

    def _look_at_pod(self, pod: Pod) -> None:
        task = pod.task
        if task is None:
            return
        self._silence.follow(pod)
        if pod.is_part:
            self._look_at_whole(task)
        elif task in self._reports or not reporting.is_forgotten(pod):
            if task in self._barred and pod.is_waiting and not pod.is_going:
                # Its launch was lost sight of, and then it was stopped.
                about = ("remove", *pod.place)
                self._errands.run(about, lambda: self._stopping.stop_pod(pod, 1))
            self._note(
                reporting.report_of(
                    pod,
                    self._clock.now(),
                    node=self._silence.node_of(pod),
                    overdue=self._times.overdue,
                )
            )

    def _look_again(self, pod: Pod) -> None:
        self._look_at_pod(pod)
        self._flush()

    def _look_at_job(self, job: BatchJob) -> None:
        task = job.task
        if task is None or (task not in self._reports and batch_reporting.is_forgotten(job)):
            return
        if task in self._barred and job.is_waiting:
            about = ("remove", *job.place)
            self._errands.run(about, lambda: self._stopping.stop_batch_job(job, 1))
        self._batch.look(job)

    def _look_at_whole(self, task: TaskId) -> None:
        """A pod of a batch Job changed: it may have been the last that lived."""
        for job in self._jobs.of_task(task):
            if job.is_over or batch_reporting.is_halted(job):
                self._look_at_job(job)

    def _pod_vanished(self, pod: Pod, seen: bool) -> None:
        self._silence.leave(pod)
        if pod.task is None:
            return
        if pod.is_part:
            self._look_at_whole(pod.task)
        elif pod.task in self._reports:
            self._note(
                reporting.gone_report(
                    pod, self._clock.now(), overdue=self._times.overdue, seen=seen
                )
            )

    def _job_vanished(self, job: BatchJob, seen: bool) -> None:
        del seen
        self._batch.leave(job)
        if job.task in self._reports:
            self._note(batch_reporting.gone_report(job))

    # Telling

    def _refuse(self, order: TaskOrder, why: str) -> None:
        place = (order.namespace, order.job)
        self._note(reporting.never_report(order.id, *place, why, order.job_version))

    def _note(self, report: TaskReport) -> None:
        """Hold a report, unless a better one is held: an attempt that is over stays so."""
        task = report.id
        held = self._reports.get(task)
        if held == report or (held is not None and held.state in _OVER):
            return
        if held is not None and held.state is not report.state is ReportState.ACCEPTED:
            return
        self._reports[task] = report
        self._news[task] = report

    def _tell(self, report: TaskReport) -> None:
        self._note(report)
        self._flush()

    def _flush(self) -> None:
        if self._news:
            news, self._news = tuple(self._news.values()), {}
            for listener in tuple(self._listeners):
                listener(news)

    def _is_over(self, task: TaskId) -> bool:
        held = self._reports.get(task)
        return held is not None and held.state in _OVER

    def _is_settled(self, task: TaskId) -> bool:
        """Whether launching would change nothing: it is over, barred, or vanished."""
        if task in self._barred or self._is_over(task):
            return True
        return task in self._reports and not self._objects_of(task)

    async def _drop_unwanted(
        self, waiting: Mapping[type[Work], list[KubeObject]]
    ) -> Sequence[InterlockError]:
        """Leave what its Job does not want any more to whoever clears it away."""
        made = [thing for things in waiting.values() for thing in things]
        if self._records is None or not made:
            return ()
        wanted = Wanted(self._records)
        errors = await wanted.ask(made)
        for things in waiting.values():
            things[:] = (thing for thing in things if thing.task in wanted.tasks)
        return errors

    def _not_barred(self, things: Iterable[T]) -> list[T]:
        return [thing for thing in things if thing.task not in self._barred]

    def _raise(self, errors: Sequence[InterlockError], order: Order | None = None) -> None:
        """Raise the worst; of a single order what is no outage is a denial of it."""
        if any(isinstance(error, UnavailableError) for error in errors):
            for sort in self._sorts.values():
                sort.doubt()
        raise_worst(errors if order is None else [_denial(order, error) for error in errors])


def _denial(order: Order, error: InterlockError) -> InterlockError:
    """What went wrong with an order, as its Job is to tell it.

    A server that answers is there for the others: no reason to doubt all that it said.
    """
    if isinstance(error, FencedError | OrderDeniedError):
        return error
    if isinstance(error, UnavailableError) and not isinstance(error, CannotNowError):
        return error
    denied = OrderDeniedError(order, str(error))
    denied.__cause__ = error
    return denied


def _made_as(work: Work) -> type[Work]:
    """The type of work whose objects an attempt is made of: adopted ones are like our own."""
    if isinstance(work, AdoptedWork):
        return BatchWork if work.object.kind is AdoptedKind.BATCH_JOB else PodWork
    return type(work)
