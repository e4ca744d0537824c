"""The promises that are about pods: what may run where, until when, and what is left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from interlock.kube.pods import naming
from interlock.resources.job import Job
from interlock.resources.lock import Lock
from interlock.resources.tasks import TaskId, TaskResult
from interlock.resources.transitions import has_ended
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.cluster import Cluster, is_ours
from support.simulation.judge import Promise
from support.simulation.kube_api import (
    Body,
    Happened,
    gates_of,
    is_going,
    is_over,
    node_of,
    uid_of,
)
from support.simulation.kubelet import order_of
from support.simulation.truth import Truth


class PodPromise(Promise):
    """A promise that also hears of what happens to pods."""

    def __init__(self, truth: Truth, cluster: Cluster) -> None:
        super().__init__(truth)
        self.cluster = cluster

    def pod_changed(self, happened: Happened) -> None:
        """A pod was created, changed or removed, by whomever."""

    def pods_of(self, job_uid: str) -> Iterator[Body]:
        """The pods that are there of a Job."""
        for pod in self.cluster.api.all("Pod"):
            if is_ours(pod) and order_of(pod).job_uid == job_uid:
                yield pod

    def is_on_record(self, task: TaskId) -> bool:
        """Whether an attempt is among the active ones of its Job at this moment."""
        job = self.truth.by_uid.get(task.job_uid)
        if job is None or task.job_uid in self.truth.gone or has_ended(job):
            return False
        active = job.status.execution.active
        return any((each.index, each.attempt) == (task.task, task.attempt) for each in active)


def _is_free(pod: Body | None) -> bool:
    """Whether nothing holds a pod back from the scheduler."""
    return pod is not None and not gates_of(pod)


class OnePod(PodPromise):
    """An attempt is let run in one pod only, whatever became of that one."""

    def __init__(self, truth: Truth, cluster: Cluster) -> None:
        super().__init__(truth, cluster)
        self._armed: dict[TaskId, str] = {}

    def pod_changed(self, happened: Happened) -> None:
        """A pod that is let run is the first of its attempt."""
        pod = happened.body
        if not is_ours(pod) or not _is_free(pod) or is_going(pod):
            return
        order = order_of(pod)
        if order.id in self.truth.written_off:
            return
        first = self._armed.setdefault(order.id, uid_of(pod))
        if first != uid_of(pod):
            raise self.broken(f"{order.name} is let run in a second pod", order.job)


class ArmedOnRecord(PodPromise):
    """A pod is let run only while its attempt is on record; what is created late never runs."""

    def pod_changed(self, happened: Happened) -> None:
        """The gate of a pod is opened for an attempt that is on record."""
        pod, before = happened.body, happened.before
        if not is_ours(pod) or _is_free(before) or not _is_free(pod) or is_going(pod):
            return
        order = order_of(pod)
        if not self.is_on_record(order.id):
            raise self.broken(f"{order.name} is let run and is not on record", order.job)


class NothingLeftToRun(PodPromise):
    """A Job that ends, goes, or lets go of a lock has no pod that runs or may run, seen or not."""

    def wrote(self, change: Change) -> None:
        """Whoever is over has nothing left."""
        before, after = change.before, change.event.resource
        gone = change.event.type is EventType.DELETED
        if isinstance(after, Job):
            ended = has_ended(after) and not (isinstance(before, Job) and has_ended(before))
            if ended or (gone and after.metadata.name not in self.truth.bad):
                self._check(after.metadata.uid, "ends" if ended else "goes")
        elif isinstance(before, Lock):
            kept = after.status.holders if isinstance(after, Lock) and not gone else ()
            for holder in before.status.holders:
                if holder not in kept and self.truth.is_over(holder.uid):
                    self._check(holder.uid, f"loses lock {before.spec.key}")

    def _check(self, job_uid: str, what: str) -> None:
        for pod in self.pods_of(job_uid):
            order = order_of(pod)
            if order.id not in self.truth.written_off and self._may_run(pod):
                raise self.broken(f"{order.job} {what} while {order.name} may run", order.job)

    def _may_run(self, pod: Body) -> bool:
        if gates_of(pod) or (is_going(pod) and not node_of(pod)):
            return False  # Never placed, and never will be.
        node = self.cluster.nodes.get(node_of(pod))
        if node is None:
            return not is_over(pod)
        if node.doomed:
            return False
        box = node.boxes.get(uid_of(pod))
        return not box.has_ended if box is not None else not is_over(pod)


class HeldUntilRecorded(PodPromise):
    """A pod that may say how its attempt ended is held until that is on record."""

    def pod_changed(self, happened: Happened) -> None:
        """Whoever takes our finalizer away finds the attempt over, or its Job gone."""
        before, pod = happened.before, happened.body
        if not self.cluster.api.caller or before is None or not is_ours(pod):
            return
        if not _is_held(before) or _is_held(pod):
            return
        order = order_of(pod)
        if self.is_on_record(order.id) and node_of(pod):
            raise self.broken(f"{order.name} is let go before its end is recorded", order.job)


class NothingIsLeft(PodPromise):
    """Once all is settled nobody holds a pod, and of Jobs that are gone there is none."""

    def settled(self) -> None:
        """Every pod that is left is over, let go of, and somebody's."""
        for pod in self.cluster.api.all("Pod"):
            if not is_ours(pod):
                continue
            order = order_of(pod)
            if order.job_uid in self.truth.gone and pod["metadata"].get("ownerReferences"):
                raise self.broken(f"{order.name} is left of a Job that is gone", order.job)
            if _is_held(pod):
                raise self.broken(f"{order.name} is still held", order.job)
            if not is_over(pod):
                raise self.broken(f"{order.name} is left and not over", order.job)


class ForcedForCause(PodPromise):
    """A pod is removed by force only where its Job asks for it."""

    def pod_changed(self, happened: Happened) -> None:
        """What a control plane removes by force is of a Job that gave a time for it."""
        before, pod, caller = happened.before, happened.body, self.cluster.api.caller
        if before is None or not caller or not is_ours(pod) or not node_of(pod):
            return
        forced = is_going(pod) and not pod["metadata"].get("deletionGracePeriodSeconds")
        was = is_going(before) and not before["metadata"].get("deletionGracePeriodSeconds")
        if not forced or was or is_over(before):
            return
        order = order_of(pod)
        job = self.truth.by_uid.get(order.job_uid)
        if job is None or job.spec.force_delete_after is None:
            raise self.broken(f"{order.name} is removed by force, and nobody asked", order.job)
        # From here on it counts as over, and what it does is its owner's business.
        self.truth.written_off[order.id] = None


class StopsAreHeard(PodPromise):
    """Whoever tells a Job to stop while it is being launched does not wait for all of its tasks."""

    def __init__(self, truth: Truth, cluster: Cluster) -> None:
        super().__init__(truth, cluster)
        self._made: Counter[str] = Counter()

    def pod_changed(self, happened: Happened) -> None:
        """After the stop no more pods are made than were under way."""
        pod, most = happened.body, self.truth.made_after_stop
        if most is None or happened.before is not None or not is_ours(pod):
            return
        order = order_of(pod)
        job = self.truth.by_uid.get(order.job_uid)
        kill_at = job.spec.kill_at if job is not None else None
        if kill_at is None or kill_at > self.cluster.now():
            return
        self._made[order.job_uid] += 1
        if self._made[order.job_uid] > most:
            told = f"{order.job} was told to stop at {kill_at}, and {order.name} is still made"
            raise self.broken(told, order.job)


class NotBurnt(PodPromise):
    """No attempt is given up because its pod is denied for a while: it waits, or is stopped."""

    def __init__(self, truth: Truth, cluster: Cluster) -> None:
        super().__init__(truth, cluster)
        self._made: set[TaskId] = set()

    def pod_changed(self, happened: Happened) -> None:
        """Whoever has a pod may fail to start for another reason."""
        if is_ours(happened.body):
            self._made.add(order_of(happened.body).id)

    def wrote(self, change: Change) -> None:
        """What could not be started was refused for what it is."""
        before, job = change.before, change.event.resource
        if not isinstance(job, Job):
            return
        known = before.status.execution.ended if isinstance(before, Job) else ()
        for ended in job.status.execution.ended:
            task = TaskId(job.metadata.uid, ended.index, ended.attempt)
            if ended.result is not TaskResult.NOT_STARTED or ended in known or task in self._made:
                continue
            if task in self.cluster.denied and task not in self.cluster.refused:
                told = f"{ended.name} failed because its pod was denied: {ended.message}"
                raise self.broken(told, job.metadata.name)


def _is_held(pod: Body) -> bool:
    return naming.FINALIZER in (pod["metadata"].get("finalizers") or ())


#: Every promise about pods.
POD_PROMISES: tuple[type[PodPromise], ...] = (
    OnePod,
    ArmedOnRecord,
    NothingLeftToRun,
    HeldUntilRecorded,
    NothingIsLeft,
    ForcedForCause,
    StopsAreHeard,
    NotBurnt,
)
