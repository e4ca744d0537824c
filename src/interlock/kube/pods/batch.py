"""Batch Jobs as attempts: over only when none of their pods lives."""

from __future__ import annotations

from collections.abc import Callable

from interlock.control.clock import Clock
from interlock.errors import UnavailableError
from interlock.kube.pods.background import Background
from interlock.kube.pods.batch_reporting import verdict_of
from interlock.kube.pods.informer import Informer, Place
from interlock.kube.pods.models import BatchJob, Pod
from interlock.kube.pods.reporting import NodeState, is_doubtful
from interlock.kube.pods.stopping import Stopping
from interlock.kube.pods.unreachable_nodes import PodTimes, UnreachableNodes
from interlock.resources.tasks import TaskReport


class BatchJobs:
    """Tells what becomes of batch Jobs, and makes sure of their ends."""

    def __init__(
        self,
        jobs: Informer[BatchJob],
        clock: Clock,
        times: PodTimes,
        errands: Background,
        stopping: Stopping,
        silence: UnreachableNodes,
        tell: Callable[[TaskReport], None],
        look_again: Callable[[BatchJob], None],
    ) -> None:
        self._jobs = jobs
        self._clock = clock
        self._times = times
        self._errands = errands
        self._stopping = stopping
        self._silence = silence
        self._tell = tell
        self._look_again = look_again

    def look(self, job: BatchJob) -> None:
        """Tell what is known, and find out the rest."""
        verdict = verdict_of(job, self._clock.now())
        self._tell(verdict.report)
        if job.is_going and not job.is_over and not job.metadata.annotations.stopped_at:
            # Whoever deleted it meant its pods too, and nobody else stops them while we hold it.
            about = ("stop what was deleted", *job.place)
            self._errands.run(about, lambda: self._stopping.stop_batch_job(job, None))
        if verdict.if_empty is not None:
            about = ("make sure of", *job.place)
            self._errands.run(about, lambda: self._make_sure(job.place))
        elif verdict.again_at is not None:
            seconds = (verdict.again_at - self._clock.now()).total_seconds()
            self._again(job.place, seconds)

    def leave(self, job: BatchJob) -> None:
        """Look at a batch Job no more."""
        self._errands.cancel(("look at job", *job.place))

    async def _make_sure(self, place: Place) -> None:
        """Tell the end of a batch Job if no pod of it lives; else look again."""
        job = self._jobs.get(place)
        if job is None:
            return
        try:
            pods = await self._stopping.pods_of(job)
        except UnavailableError:
            self._again(place, self._times.ask_again.total_seconds())
            return
        if any(map(self._lives, pods)):
            self._again(place, self._times.ask_again.total_seconds())
            return
        verdict = verdict_of(job, self._clock.now())
        if verdict.if_empty is not None:
            self._tell(verdict.if_empty)

    def _lives(self, pod: Pod) -> bool:
        if not pod.is_over:
            return not (pod.is_going and pod.never_ran)
        return is_doubtful(pod) and self._silence.node_of(pod) is not NodeState.GONE

    def _again(self, place: Place, seconds: float) -> None:
        def ring() -> None:
            job = self._jobs.get(place)
            if job is not None:
                self._look_again(job)

        self._errands.later(("look at job", *place), seconds, ring)
