"""Due in the same minute on a real cluster: our Jobs beside those of plain CronJobs.

In one run on one control plane: first CronJobs, then as many JobConfigs and as many ControlledJobs
together, and then all their Jobs once more by a client that does nothing else: nobody is faster.
What is told is how long after the due time the Job objects were there. It needs the programs that
`make kube` brings.

    python -m bench cluster_due [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.kube_load import Load, load_on, on_a_cluster
from bench.table import show
from support.kube import Cluster
from support.kube.controllers import Controller
from support.kube.pods import Play, a_pod

EACH = 500
QUICK = 20
#: Longer than it takes to create everything, and to look at it.
AHEAD_S = 25.0
PATIENCE_S = 300.0

_OURS = "/apis/interlock.dev/v1alpha1/namespaces/{}/{}"
_BATCH = "/apis/batch/v1/namespaces/{}/{}"


def _pod(played: dict[Play, str]) -> dict[str, Any]:
    pod = a_pod("", played)
    pod["spec"]["restartPolicy"] = "Never"
    return {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}


def _a_cron_job(name: str, due: datetime) -> dict[str, Any]:
    template = {"spec": {"template": _pod({Play.RUNS_FOR: "1s"})}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": f"{due.minute} {due.hour} * * *", "jobTemplate": template},
    }


def _a_job_config(name: str, due: datetime) -> dict[str, Any]:
    schedule = {"cron": f"{due.minute} {due.hour} * * *"}
    template = {"spec": {"pod": _pod({Play.RUNS_FOR: "1s"})}}
    return _ours("JobConfig", name, {"schedules": [schedule], "template": template})


def _a_controlled_job(name: str, due: datetime) -> dict[str, Any]:
    window = {"from": f"{due:%H:%M}", "to": f"{due + timedelta(hours=8):%H:%M}"}
    template = {"spec": {"pod": _pod({})}}
    return _ours("ControlledJob", name, {"windows": [window], "jobTemplate": template})


def _ours(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name}
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def _due() -> datetime:
    """The next whole minute that leaves time for everything before it."""
    soon = datetime.now(UTC) + timedelta(seconds=AHEAD_S)
    return soon.replace(second=0, microsecond=0) + timedelta(minutes=1)


async def _arrivals(load: Load, path: str, wanted: int, due: datetime) -> list[float]:
    """How long after the due time each Job was there, as a watch told of it."""
    found: list[float] = []

    def is_new(line: bytes) -> bool:
        if b'"type":"ADDED"' in line[:20]:
            found.append(time.time() - due.timestamp())
            return True
        return False

    async with asyncio.timeout(PATIENCE_S + AHEAD_S + 60):
        await load.until(path, wanted, is_new)
    return sorted(found)


Row = tuple[str, float, float]


async def _of_cron_jobs(load: Load, namespace: str, each: int) -> Row:
    due = _due()
    jobs = _BATCH.format(namespace, "jobs")
    watching = asyncio.create_task(_arrivals(load, jobs, each, due))
    cron_jobs = (_a_cron_job(f"bench-{number}", due) for number in range(each))
    await load.create_all(_BATCH.format(namespace, "cronjobs"), cron_jobs)
    row = (f"{each} CronJobs", *_spread(await watching))
    await load.send("DELETE", _BATCH.format(namespace, "cronjobs"))
    await load.send("DELETE", f"{jobs}?propagationPolicy=Background")
    return row


async def _of_a_bare_client(load: Load, namespace: str, bodies: list[dict[str, Any]]) -> Row:
    """Create the same Jobs once more, some at a time, and do nothing else."""
    begun = time.perf_counter()
    await load.create_all(_OURS.format(namespace, "jobs"), iter(bodies))
    took = time.perf_counter() - begun
    return ("the same Jobs, created by a bare client", took / 2, took)


async def _copies(load: Load, namespace: str) -> list[dict[str, Any]]:
    """The Jobs that are there, as if they were to be made anew, and to be held back."""
    listed = json.loads(await load.send("GET", _OURS.format(namespace, "jobs")))
    return [_copy(number, job) for number, job in enumerate(listed["items"])]


def _copy(number: int, job: dict[str, Any]) -> dict[str, Any]:
    kept = ("labels", "annotations", "ownerReferences")
    metadata = {name: job["metadata"][name] for name in kept if name in job["metadata"]}
    made = _ours("Job", f"copy-{number}", {**job["spec"], "suspend": True})
    return {**made, "metadata": metadata | made["metadata"]}


async def _of_ours(load: Load, namespace: str, each: int) -> Row:
    due = _due()
    watching = asyncio.create_task(_arrivals(load, _OURS.format(namespace, "jobs"), 2 * each, due))
    configs = (_a_job_config(f"bench-{number}", due) for number in range(each))
    await load.create_all(_OURS.format(namespace, "jobconfigs"), configs)
    engines = (_a_controlled_job(f"bench-{number}-9", due) for number in range(each))
    await load.create_all(_OURS.format(namespace, "controlledjobs"), engines)
    return (f"{each} JobConfigs and {each} ControlledJobs", *_spread(await watching))


async def _measure(cluster: Cluster, namespace: str, each: int, only_ours: bool) -> None:
    rows: list[Row] = []
    async with load_on(cluster.access) as load:
        if not only_ours:
            rows.append(await _of_cron_jobs(load, namespace, each))
        folder = cluster.folder / "controllers"
        with Controller(cluster.access, folder, namespace=namespace) as controller:
            await asyncio.to_thread(controller.wait_until_ready)
            rows.append(await _of_ours(load, namespace, each))
        rows.append(await _of_a_bare_client(load, namespace, await _copies(load, namespace)))
    show("Seconds from the due time until the Job is there", ("", "p50", "last"), rows)


def _spread(late: Sequence[float]) -> tuple[float, float]:
    return late[len(late) // 2], late[-1]


def main(argv: Sequence[str] = ()) -> None:
    """Measure, if there is a control plane to measure on."""
    parser = argparse.ArgumentParser(prog="bench cluster_due", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    parser.add_argument("--ours", action="store_true", help="without what they are compared to")
    given = parser.parse_args(argv)
    each = QUICK if given.quick else EACH
    on_a_cluster(lambda cluster, namespace: _measure(cluster, namespace, each, given.ours))


if __name__ == "__main__":
    main()
