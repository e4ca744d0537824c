"""What there was when a leadership began is looked at in parts, and nothing of it is missed."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from msgspec.structs import replace
from pod_builders import RUNS, a_pod
from test_pod_informer import Scripted, version

from interlock.control.turns import PART
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.models import BatchJob, Node, Pod
from interlock.kube.pods.objects import Event, Listed
from interlock.kube.pods.runtime import PodRuntime
from interlock.resources.tasks import ReportState
from interlock.testing.builders import T0

MANY = 2 * PART + 1


def numbered(number: int) -> Pod:
    pod = version(1 + number, a_pod("Running", RUNS), uid=f"uid-{number}")
    labels = replace(pod.metadata.labels, task=str(number))
    return replace(pod, metadata=replace(pod.metadata, name=f"pod-{number}", labels=labels))


def a_runtime(loop: SimLoop, pods: list[Pod], left: list[Pod]) -> tuple[Informer[Pod], PodRuntime]:
    """A leadership that begins with pods; a list that is newer shows only those that are left."""
    clock = SimClock(loop, loop.world, T0)
    mirror: Informer[Pod] = Informer(Scripted([Listed(left, 10_000)]), clock, Random(0))
    for pod in pods:
        mirror.take(pod)
    no_jobs: Listed[BatchJob] = Listed([], 1)
    jobs: Informer[BatchJob] = Informer(Scripted([no_jobs]), clock, Random(0))
    no_nodes: Scripted[Node] = Scripted([])
    return mirror, PodRuntime(mirror, jobs, no_nodes, clock, lambda: None)


def test_all_is_told_and_others_get_their_turn_meanwhile() -> None:
    loop = SimLoop(Random(0))
    pods = [numbered(number) for number in range(MANY)]
    _, runtime = a_runtime(loop, pods, pods)
    turns: list[int] = []

    async def others(told: asyncio.Future[Any]) -> None:
        while not told.done():
            turns.append(len(runtime._reports))
            await asyncio.sleep(0)

    async def check() -> None:
        told = asyncio.ensure_future(runtime.reports())
        await others(told)
        reports = told.result()
        assert [report.index for report in reports] == list(range(MANY))
        assert {report.state for report in reports} == {ReportState.RUNNING}
        # Whoever waits for a turn gets one after each part.
        assert {PART, 2 * PART} <= set(turns)

    loop.run(check())
    loop.close()


def test_a_pod_that_goes_before_it_was_looked_at_is_not_launched_anew() -> None:
    """It ran. Whoever does not hear of it would believe that it was never made."""
    loop = SimLoop(Random(0))
    pods = [numbered(number) for number in range(MANY)]
    mirror, runtime = a_runtime(loop, pods, pods[1:-1])

    async def check() -> None:
        # One goes before anybody looked, one while the first part is looked at.
        goes(mirror, pods[-1])
        told = asyncio.ensure_future(runtime.reports())
        await asyncio.sleep(0)
        goes(mirror, pods[0])
        reports = {report.index: report.state for report in await told}
        assert len(reports) == MANY
        assert reports.pop(0) is reports.pop(MANY - 1) is ReportState.UNKNOWN
        assert set(reports.values()) == {ReportState.RUNNING}

    loop.run(check())
    loop.close()


def goes(mirror: Informer[Pod], pod: Pod) -> None:
    last = version(9_000, pod, uid=pod.metadata.uid)
    mirror._tell(tuple(mirror._happened(Event("DELETED", last, 9_000))))
