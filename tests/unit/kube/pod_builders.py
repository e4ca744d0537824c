"""Pods and batch Jobs for tests, as an API server writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from interlock.kube.pods import naming
from interlock.kube.pods.models import BatchJob, Pod
from interlock.resources.pods import BatchJobTemplate, PodTemplate
from interlock.resources.tasks import TaskOrder
from interlock.resources.work import BatchWork, PodWork

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
OVERDUE = timedelta(seconds=60)


def before(seconds: float) -> str:
    """A moment so long before now, as the API server writes it."""
    return (NOW - timedelta(seconds=seconds)).isoformat()


def metadata(name: str = "job-0-1", **more: Any) -> dict[str, Any]:
    """The metadata of an object that was made for attempt 1 of task 0 of a Job."""
    labels = {naming.JOB: "job", naming.JOB_UID: "uid", naming.TASK: "0", naming.ATTEMPT: "1"}
    return {
        "name": name,
        "namespace": "default",
        "uid": "pod-uid",
        "resourceVersion": "7",
        "labels": labels,
        "finalizers": [naming.FINALIZER],
        **more,
    }


def going(seconds: float, grace: int = 30) -> dict[str, Any]:
    """Metadata of what should have been gone so many seconds ago."""
    return {"deletionTimestamp": before(seconds), "deletionGracePeriodSeconds": grace}


def a_pod(
    phase: str = "Running",
    *containers: dict[str, Any],
    node: str = "node-a",
    meta: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    **status: Any,
) -> Pod:
    """A pod in a phase, with the states of its containers in order."""
    names = [f"c{number}" for number in range(max(1, len(containers)))]
    statuses = [
        {"name": name, "state": state} for name, state in zip(names, containers, strict=False)
    ]
    document = {
        "metadata": metadata(**(meta or {})),
        "spec": {
            "nodeName": node,
            "containers": [{"name": name} for name in names],
            **(spec or {}),
        },
        # Kubelets sort containers by name, which need not be their order.
        "status": {"phase": phase, "containerStatuses": statuses[::-1], **status},
    }
    return msgspec.convert(document, Pod)


def ended(code: int = 0, **more: Any) -> dict[str, Any]:
    """The state of a container that ended ten seconds ago."""
    told = {"exitCode": code, "startedAt": before(20), "finishedAt": before(10), **more}
    return {"terminated": told}


RUNS = {"running": {"startedAt": before(20)}}


def a_batch_job(
    *conditions: dict[str, Any],
    meta: dict[str, Any] | None = None,
    suspend: bool = False,
    marks: dict[str, str] | None = None,
    **status: Any,
) -> BatchJob:
    """A batch Job that was armed, unless `marks` say otherwise."""
    annotations = {naming.ARMED_AT: before(30)} if marks is None else marks
    document = {
        "metadata": metadata(annotations=annotations, **(meta or {})),
        "spec": {"suspend": suspend},
        "status": {"conditions": list(conditions), **status},
    }
    return msgspec.convert(document, BatchJob)


def an_order(**more: Any) -> TaskOrder:
    """An order for attempt 1 of task 0 of a Job."""
    given: dict[str, Any] = {
        "job_uid": "uid",
        "index": 0,
        "attempt": 1,
        "name": "job-0-1",
        "namespace": "default",
        "job": "job",
        "env": {"INTERLOCK_TASK": "job-0-1"},
        "job_version": 5,
    }
    return TaskOrder(**{**given, **more})


def a_pod_order(spec: dict[str, Any] | None = None, **more: Any) -> TaskOrder:
    """An order for a pod."""
    return an_order(
        work=PodWork(template=PodTemplate(spec={"containers": [{"name": "main"}], **(spec or {})})),
        **more,
    )


def a_batch_order(spec: dict[str, Any] | None = None, **more: Any) -> TaskOrder:
    """An order for a batch Job."""
    template = {"spec": {"containers": [{"name": "main"}]}}
    given = BatchJobTemplate(spec={"template": template, **(spec or {})})
    return an_order(work=BatchWork(template=given), **more)
