"""Claiming: an object that somebody else made becomes that of an attempt.

In the place of a create comes a patch: it puts the attempt's labels and our finalizer on the object
as it was read, which is suspended or gated still. What follows is as for any object of an attempt:
a second write lets it run, and whoever finds it after a crash knows whose it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from interlock.control.runtime import OrderDeniedError
from interlock.errors import ConflictError, InvalidError, NotFoundError
from interlock.kube.pods import naming
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.manifest import Manifest, exactly
from interlock.kube.pods.models import BatchJob, KubeObject, Pod
from interlock.resources.adopted import QUEUE_LABEL, AdoptedKind
from interlock.resources.metadata import Order
from interlock.resources.tasks import TaskOrder
from interlock.resources.work import AdoptedWork

T = TypeVar("T", BatchJob, Pod)

#: How often something is tried against others who change the same object.
_TRIES = 5


class Claiming:
    """Claims batch Jobs and pods of others for attempts."""

    def __init__(
        self,
        pods: Informer[Pod],
        jobs: Informer[BatchJob],
        check: Callable[[], None],
        refuse: Callable[[TaskOrder, str], None],
    ) -> None:
        self._pods = pods
        self._jobs = jobs
        self._check = check
        #: Called with an order that will never be carried out, and why.
        self._refuse = refuse

    async def claim(self, order: TaskOrder) -> KubeObject | None:
        """Make sure that the object is the attempt's; returns it if it has to be armed.

        Raises:
            OrderDeniedError: It is held for an earlier attempt, or others change it all the time.
            UnavailableError: Nothing is known; it may have been claimed.
        """
        assert isinstance(order.work, AdoptedWork), f"{order.name}: there is nothing to claim"
        if order.work.object.kind is AdoptedKind.BATCH_JOB:
            return await self._claim(order, order.work, self._jobs, _of_batch_job)
        return await self._claim(order, order.work, self._pods, _of_pod)

    async def _claim(
        self,
        order: TaskOrder,
        work: AdoptedWork,
        mirror: Informer[T],
        told_by: Callable[[T, AdoptedWork], Manifest],
    ) -> T | None:
        for known in mirror.of_task(order.id):
            return known if _can_be_armed(known) else None
        name = work.object.name
        for _ in range(_TRIES):
            self._check()
            try:
                found = await mirror.objects.get(order.namespace, name)
            except NotFoundError:
                self._refuse(order, f"{_told(work)} is gone")
                return None
            if found.task == order.id:
                mirror.take(found)
                return found if _can_be_armed(found) else None
            why = _why_not(found, work)
            if why:
                self._refuse(order, f"{_told(work)} {why}")
                return None
            if found.is_held:
                told = f"{_told(work)} is held for an attempt before this one"
                raise OrderDeniedError(Order.LAUNCH, told)
            self._check()
            try:
                patch = _claim_of(found, order, told_by(found, work))
                claimed = await mirror.objects.patch(order.namespace, name, patch)
            except (NotFoundError, ConflictError) as error:
                trouble: Exception = error
                continue
            except InvalidError as error:
                raise OrderDeniedError(Order.LAUNCH, str(error)) from error
            mirror.take(claimed)
            return claimed
        raise OrderDeniedError(Order.LAUNCH, f"{_told(work)} cannot be claimed: {trouble}")


def _why_not(found: BatchJob | Pod, work: AdoptedWork) -> str:
    """Why an object cannot be let run for an attempt, whatever comes."""
    if found.metadata.uid != work.object.uid:
        return "is gone; another one has its name"
    if found.is_over:
        return "is over"
    if found.is_going:
        return "is being deleted"
    if found.metadata.labels.queue != work.queue:
        return f"is not labelled {QUEUE_LABEL}={work.queue}"
    if isinstance(found, Pod) and not found.is_waiting:
        return f"is not held by the scheduling gate {naming.GATE}"
    return ""


def _claim_of(found: BatchJob | Pod, order: TaskOrder, marks: Manifest) -> Manifest:
    return {
        "metadata": {
            **exactly(found),
            "labels": naming.labels_of(order),
            "annotations": {**naming.annotations_of(order), **marks},
            "finalizers": [*found.metadata.finalizers, naming.FINALIZER],
        }
    }


def _of_batch_job(found: BatchJob, work: AdoptedWork) -> Manifest:
    """What the round before left is gone from here on; what was asked for is kept for its end."""
    return {
        naming.GRANTED: str(work.pods),
        naming.PARALLELISM: str(found.spec.parallelism),
        naming.ARMED_AT: None,
        naming.STOPPED_AT: None,
        naming.SETTLED_AT: None,
    }


def _of_pod(_: Pod, __: AdoptedWork) -> Manifest:
    return {}


def _can_be_armed(thing: KubeObject) -> bool:
    return thing.is_waiting and not thing.is_going and thing.is_held


def _told(work: AdoptedWork) -> str:
    noun = "batch Job" if work.object.kind is AdoptedKind.BATCH_JOB else "pod"
    return f"{noun} {work.object.name}"
