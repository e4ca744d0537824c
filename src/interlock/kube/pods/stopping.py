"""Stopping the object of an attempt."""

from __future__ import annotations

from collections.abc import Callable

from interlock.control.clock import Clock
from interlock.errors import ConflictError, NotFoundError, UnavailableError
from interlock.kube.pods import manifest, naming
from interlock.kube.pods.batch_reporting import took_note
from interlock.kube.pods.fan_out import for_each, raise_worst
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.models import BatchJob, Pod, T
from interlock.kube.pods.unreachable_nodes import PodTimes

#: How often a finalizer is taken away against others who change the same object.
_TRIES = 5


class Stopping:
    """Gives orders to stop; that something stopped is for others to see."""

    def __init__(
        self,
        pods: Informer[Pod],
        jobs: Informer[BatchJob],
        clock: Clock,
        times: PodTimes,
        check: Callable[[], None],
    ) -> None:
        self._pods = pods
        self._jobs = jobs
        self._clock = clock
        self._times = times
        self._check = check

    async def stop_pod(self, pod: Pod, grace_s: int | None) -> None:
        """Have a pod go, with the grace given or else its own; a longer one changes nothing."""
        if pod.is_over or (pod.is_going and not _is_shorter(grace_s, pod)):
            return
        namespace, name = pod.place
        self._check()
        try:
            left = await self._pods.objects.delete(
                namespace, name, uid=pod.metadata.uid, grace_s=grace_s
            )
        except (NotFoundError, ConflictError):
            return  # It went already; whoever watches will see.
        if left is not None and not left.is_part:
            self._pods.take(left)

    async def stop_batch_job(self, job: BatchJob, grace_s: int | None) -> None:
        """Suspend a batch Job for good and have its pods go.

        It is suspended first: a pod that is deleted before that is made anew.
        """
        if job.is_over:
            return
        if not job.metadata.annotations.stopped_at and not await self._suspend(job):
            return
        pods = await self.pods_of(job)
        raise_worst(await for_each(pods, lambda pod: self.stop_pod(pod, grace_s)))

    async def _suspend(self, job: BatchJob) -> bool:
        """Suspend a batch Job for good; False when it went, or is that of another attempt by now.

        Raises:
            UnavailableError: Others change it all the time.
        """
        uid, task = job.metadata.uid, job.task
        for _ in range(_TRIES):
            now = self._clock.now()
            settled_at = now if took_note(job) else now + self._times.settle
            patch = manifest.stop_batch_job(job, now, settled_at)
            self._check()
            try:
                self._jobs.take(await self._jobs.objects.patch(*job.place, patch))
                return True
            except NotFoundError:
                return False
            except ConflictError as error:
                conflict = error
            try:
                job = await self._jobs.objects.get(*job.place)
            except NotFoundError:
                return False
            if (job.metadata.uid, job.task) != (uid, task):
                return False
        raise UnavailableError(f"batch Job {job.place} cannot be suspended: {conflict}")

    async def pods_of(self, job: BatchJob) -> list[Pod]:
        """The pods of a batch Job as they are now."""
        selector = f"{naming.CONTROLLER_UID}={job.metadata.uid}"
        listed = await self._pods.objects.list(selector, namespace=job.metadata.namespace)
        return list(listed.items)


async def let_go(mirror: Informer[T], held: T, check: Callable[[], None]) -> None:
    """Take our finalizer from an object; one that is gone needs nothing.

    Raises:
        UnavailableError: Others change it all the time.
    """
    namespace, name = held.place
    uid, task = held.metadata.uid, held.task
    for _ in range(_TRIES):
        # What is somebody else's may be held for the next attempt by now.
        if not held.is_held or (held.metadata.uid, held.task) != (uid, task):
            return
        check()
        try:
            mirror.take(await mirror.objects.patch(namespace, name, manifest.release(held)))
            return
        except NotFoundError:
            return
        except ConflictError as error:
            conflict = error
        try:
            held = await mirror.objects.get(namespace, name)
        except NotFoundError:
            return
    raise UnavailableError(f"{namespace}/{name} cannot be let go: {conflict}")


def _is_shorter(grace_s: int | None, pod: Pod) -> bool:
    given = pod.metadata.deletion_grace_period_seconds
    return grace_s is not None and given is not None and grace_s < given
