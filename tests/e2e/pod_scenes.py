"""Scenes with pods on the shared control plane: each in a namespace, with a leader of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from interlock.kube.pods.unreachable_nodes import PodTimes
from interlock.resources.tasks import ReportState, TaskId
from interlock.testing.runtime_contract import Told
from interlock.testing.serving import PATIENCE_S
from support.kube import Access
from support.kube.cluster import node_is_ready
from support.kube.pod_workshop import PodShop
from support.kube.pods import a_node

#: A second is enough to tell a silent node from one that answers.
HASTY = PodTimes(
    overdue=timedelta(seconds=1), ask_again=timedelta(seconds=1), settle=timedelta(seconds=2)
)


def play(
    access: Access,
    namespace: str,
    scene: Callable[[PodShop], Awaitable[None]],
    times: PodTimes | None = None,
) -> None:
    """Run a scene, and let go of everything that it leaves."""

    async def run() -> None:
        shop = PodShop(access, namespace, times)
        try:
            async with asyncio.timeout(4 * PATIENCE_S):
                await shop.lead()
                await scene(shop)
        finally:
            await shop.close()

    asyncio.run(run())


def is_in(task: TaskId, *states: ReportState) -> Callable[[Told], bool]:
    """Whether an attempt is in one of these states."""
    return lambda told: task in told and told[task].state in states


@contextmanager
def a_lone_node(access: Access, name: str) -> Iterator[dict[str, object]]:
    """A node for one test; only pods with the returned specification come there."""
    taint = {"key": "tests.interlock.dev/lone", "value": name, "effect": "NoSchedule"}
    access.create("/api/v1/nodes", {**a_node(name), "spec": {"taints": [taint]}})
    try:
        access.wait_for(f"/api/v1/nodes/{name}", node_is_ready)
        yield {
            "nodeSelector": {"kubernetes.io/hostname": name},
            "tolerations": [{"operator": "Exists"}],
        }
    finally:
        access.ask("DELETE", f"/api/v1/nodes/{name}")
