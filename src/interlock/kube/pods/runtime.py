"""A `Runtime` that runs attempts as pods and batch Jobs of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from interlock.control.clock import Clock
from interlock.control.runtime import Listener, OrderDeniedError, TaskStop
from interlock.kube.errors import CannotNowError
from interlock.kube.pods import batch_reporting, manifest, reporting
from interlock.kube.pods.batch import BatchJobs
from interlock.kube.pods.errands import Errands
from interlock.kube.pods.first_look import FirstLook
from interlock.kube.pods.launching import Launching
from interlock.kube.pods.mirror import Mirror, Seen
from interlock.kube.pods.objects import Objects
from interlock.kube.pods.records import Records, Wanted
from interlock.kube.pods.silence import PodTimes, Silence
from interlock.kube.pods.stopping import Stopping, let_go
from interlock.kube.pods.together import for_each, raise_worst
from interlock.kube.pods.wire import BatchJob, KubeObject, Node, Pod, T
from interlock.resources.errors import (
    FencedError,
    InterlockError,
    NotFoundError,
    UnavailableError,
)
from interlock.resources.metadata import Order
from interlock.resources.tasks import ReportState, TaskId, TaskOrder, TaskReport, task_name

_OVER = (ReportState.ENDED, ReportState.NOT_STARTED)


class PodRuntime:
    """Implements `control.runtime.Runtime` for one leadership.

    What it tells is what the mirrors hold, which are kept up by whoever made them. Beyond that it
    remembers only what no object says: attempts that were refused, and objects that vanished.
    """

    groups_orders = False

    def __init__(
        self,
        pods: Mirror[Pod],
        jobs: Mirror[BatchJob],
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
        self._errands = Errands(clock)
        self._stopping = Stopping(pods, jobs, clock, self._times, check)
        self._silence = Silence(
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
        self._pod_launches = Launching(
            pods,
            clock,
            check,
            self._refuse,
            manifest=manifest.pod_of,
            arming=manifest.arm_pod,
            noun="pod",
        )
        self._job_launches = Launching(
            jobs,
            clock,
            check,
            self._refuse,
            manifest=manifest.batch_job_of,
            arming=manifest.arm_batch_job,
            noun="batch Job",
        )
        self._listeners: list[Listener] = []
        self._reports: dict[TaskId, TaskReport] = {}
        #: Attempts that must not be started: they were stopped before anybody knew of them.
        self._barred: dict[TaskId, None] = {}
        #: What was said to the last try to make the object of an attempt, if it was denied.
        self._denials: dict[TaskId, str] = {}
        #: Reports that are told together.
        self._news: dict[TaskId, TaskReport] = {}
        #: What was listed up to here may lack what was done since.
        self._pods_mark = pods.mark
        self._jobs_mark = jobs.mark
        self._unsubscribe = (
            pods.subscribe(self._pods_changed),
            jobs.subscribe(self._jobs_changed),
        )
        self._first_pods = FirstLook(pods, self._look_at_pod)
        self._first_jobs = FirstLook(jobs, self._look_at_job)

    # Orders

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Create what the attempts need, then let it run.

        Everything is created before anything is armed, so that an object which waits is the
        usual sight after a crash, and found again by its name.
        """
        await self._look_at_all()
        wanted = {order.id: order for order in orders if not self._is_settled(order.id)}
        waiting_pods: list[Pod] = []
        waiting_jobs: list[BatchJob] = []

        async def create(order: TaskOrder) -> None:
            try:
                await create_one(order)
                self._denials.pop(order.id, None)
            except (OrderDeniedError, CannotNowError) as error:
                self._denials[order.id] = str(error)
                raise

        async def create_one(order: TaskOrder) -> None:
            if order.pod is not None:
                pod = await self._pod_launches.create(order)
                waiting_pods.extend((pod,) if pod is not None else ())
            elif order.batch_job is not None:
                job = await self._job_launches.create(order)
                waiting_jobs.extend((job,) if job is not None else ())
            else:
                self._refuse(order, "a process cannot run in a cluster: use pod or batchJob")

        errors = await for_each(tuple(wanted.values()), create)
        errors += await self._drop_unwanted(waiting_pods, waiting_jobs)
        errors += await for_each(self._not_barred(waiting_pods), self._pod_launches.arm)
        errors += await for_each(self._not_barred(waiting_jobs), self._job_launches.arm)
        self._flush()
        self._raise(errors, Order.LAUNCH)

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Have the objects of attempts go, or never come to be."""
        await self._look_at_all()
        errors = await for_each(stops, self._stop)
        self._flush()
        self._raise(errors, Order.STOP)

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Let go of the objects of attempts that are over; they stay as long as their Job."""
        await self._look_at_all()
        over = [task for task in tasks if self._is_over(task)]
        self._raise(await for_each(over, self._forget))

    async def reports(self) -> Sequence[TaskReport]:
        """Everything the cluster knows, from a list that is newer than this leadership."""
        await self._look_at_all()
        await asyncio.gather(
            self._pods.listed_after(self._pods_mark), self._jobs.listed_after(self._jobs_mark)
        )
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
        pods, jobs = self._objects_of(stop.task)
        if not pods and not jobs and stop.task not in self._reports:
            # From here on it is not armed, whatever is under way.
            self._barred[stop.task] = None
            pods, jobs = await self._find(stop)
            if not pods and not jobs:
                denial = self._denials.pop(stop.task, "")
                why = denial or "stopped before it was launched"
                self._note(reporting.never_report(stop.task, stop.namespace, stop.job, why))
                return
        for pod in pods:
            await self._stopping.stop_pod(pod, grace_s)
        for job in jobs:
            await self._stopping.stop_batch_job(job, grace_s)

    def _objects_of(self, task: TaskId) -> tuple[list[Pod], list[BatchJob]]:
        pods = [pod for pod in self._pods.of_task(task) if not pod.is_part]
        return pods, list(self._jobs.of_task(task))

    async def _find(self, stop: TaskStop) -> tuple[list[Pod], list[BatchJob]]:
        """Ask for the objects of an attempt: the mirrors may not know yet of what was created."""
        await asyncio.gather(
            self._pods.listed_after(self._pods_mark), self._jobs.listed_after(self._jobs_mark)
        )
        if stop.job:
            name = task_name(stop.job, stop.task.task, stop.task.attempt)
            await _fetch(self._pods, stop, name)
            await _fetch(self._jobs, stop, name)
        return self._objects_of(stop.task)

    async def _forget(self, task: TaskId) -> None:
        pods, jobs = self._objects_of(task)
        # What waits was created late, for an attempt that was over: it goes as it is.
        for pod in pods:
            if pod.is_waiting:
                await self._stopping.stop_pod(pod, None)
            await let_go(self._pods, self._pods.get(pod.place) or pod, self._check)
        for job in jobs:
            if job.is_waiting:
                await self._stopping.stop_batch_job(job, None)
            await let_go(self._jobs, self._jobs.get(job.place) or job, self._check)
        self._reports.pop(task, None)
        self._barred.pop(task, None)

    # Seeing

    async def _look_at_all(self) -> None:
        """Look at what there was when this leadership began, before anything rests on it."""
        await self._first_pods.finish()
        await self._first_jobs.finish()

    def _pods_changed(self, changes: Sequence[Seen[Pod]]) -> None:
        for before, after, last in changes:
            if before is not None:
                self._first_pods.before_change(before)
            if before is not None and (after is None or not _same(before, after)):
                self._pod_vanished(last or before, seen=last is not None)
            if after is not None:
                self._look_at_pod(after)
        self._flush()

    def _jobs_changed(self, changes: Sequence[Seen[BatchJob]]) -> None:
        for before, after, last in changes:
            if before is not None:
                self._first_jobs.before_change(before)
            if before is not None and (after is None or not _same(before, after)):
                self._job_vanished(last or before)
            if after is not None:
                self._look_at_job(after)
        self._flush()

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

    def _pod_vanished(self, pod: Pod, *, seen: bool) -> None:
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

    def _job_vanished(self, job: BatchJob) -> None:
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
        pods, jobs = self._objects_of(task)
        return task in self._reports and not pods and not jobs

    async def _drop_unwanted(
        self, pods: list[Pod], jobs: list[BatchJob]
    ) -> Sequence[InterlockError]:
        """Leave what its Job does not want any more to whoever clears it away."""
        if self._records is None or not (pods or jobs):
            return ()
        wanted = Wanted(self._records)
        errors = await wanted.ask((*pods, *jobs))
        pods[:] = (pod for pod in pods if pod.task in wanted.tasks)
        jobs[:] = (job for job in jobs if job.task in wanted.tasks)
        return errors

    def _not_barred(self, things: Iterable[T]) -> list[T]:
        return [thing for thing in things if thing.task not in self._barred]

    def _raise(self, errors: Sequence[InterlockError], order: Order | None = None) -> None:
        """Raise the worst; of a single order what is no outage is a denial of it."""
        if any(isinstance(error, UnavailableError) for error in errors):
            # Something may have been done that nobody was told of.
            self._pods_mark, self._jobs_mark = self._pods.mark, self._jobs.mark
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


async def _fetch(mirror: Mirror[T], stop: TaskStop, name: str) -> None:
    """Let a mirror know the object of an attempt, if there is one."""
    with suppress(NotFoundError):
        found = await mirror.objects.get(stop.namespace, name)
        if found.task == stop.task:
            mirror.take(found)


def _same(one: KubeObject, other: KubeObject) -> bool:
    return one.metadata.uid == other.metadata.uid
