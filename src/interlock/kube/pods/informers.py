"""The shared informers of a process: pods, batch Jobs and nodes, followed while it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from interlock.control.clock import Clock
from interlock.control.turns import PART
from interlock.kube.client.api_client import Client
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.models import BatchJob, Node, Pod
from interlock.kube.pods.objects import BATCH_JOBS, NODES, PODS, KubernetesObjects, Objects
from interlock.kube.pods.records import Records
from interlock.kube.pods.runtime import PodRuntime
from interlock.kube.pods.unreachable_nodes import PodTimes


class Informers:
    """The pods and batch Jobs of attempts, kept up to date whether or not this process leads.

    So the next leader has them at hand, and every replica finds the logs of a task.
    """

    def __init__(
        self,
        pods: Objects[Pod],
        jobs: Objects[BatchJob],
        nodes: Objects[Node],
        clock: Clock,
        luck: Random,
        *,
        part: int = PART,
    ) -> None:
        self.pods: Informer[Pod] = Informer(pods, clock, luck, part=part)
        self.jobs: Informer[BatchJob] = Informer(jobs, clock, luck, part=part)
        self._nodes = nodes
        self._clock = clock

    @classmethod
    def of(cls, client: Client, clock: Clock, luck: Random, *, namespace: str = "") -> Informers:
        """What an API server has, in one namespace or in all."""
        return cls(
            KubernetesObjects(client, PODS, clock, luck, namespace=namespace),
            KubernetesObjects(client, BATCH_JOBS, clock, luck, namespace=namespace),
            KubernetesObjects(client, NODES, clock, luck),
            clock,
            luck,
        )

    async def run(self) -> None:
        """Keep up to date until cancelled."""
        await asyncio.gather(self.pods.run(), self.jobs.run())

    def lead(
        self,
        check: Callable[[], None],
        *,
        times: PodTimes | None = None,
        records: Records | None = None,
    ) -> PodRuntime:
        """A runtime for one leadership; `check` raises once that is over."""
        return PodRuntime(
            self.pods, self.jobs, self._nodes, self._clock, check, times=times, records=records
        )
