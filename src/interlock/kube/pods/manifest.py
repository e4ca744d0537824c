"""Manifests of attempts: the object that is created, and the patch that lets it run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import ceil
from typing import Any

from interlock.kube.pods import naming
from interlock.kube.pods.models import BatchJob, KubeObject, Pod
from interlock.kube.slots.naming import SCHEDULER, SLOTS, TEST_BED
from interlock.resources.metadata import API_VERSION
from interlock.resources.pods import TemplateMetadata
from interlock.resources.tasks import TaskOrder
from interlock.resources.test_bed import node_of
from interlock.resources.work import BatchWork, PodWork

#: An object or a patch as it goes over the wire.
Manifest = dict[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod_of(order: TaskOrder) -> Manifest:
    """The pod of an attempt. The scheduler leaves it alone until it is armed."""
    assert isinstance(order.work, PodWork), f"{order.name}: there is no pod to make"
    template = order.work.template
    spec = _pod_spec(template.spec, order)
    gates = [gate for gate in spec.get("schedulingGates") or () if gate != {"name": naming.GATE}]
    spec["schedulingGates"] = [*gates, {"name": naming.GATE}]
    metadata = _metadata(template.metadata, order)
    if order.slot:
        _seat(metadata, spec, order)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def batch_job_of(order: TaskOrder) -> Manifest:
    """The batch Job of an attempt, suspended until it is armed."""
    assert isinstance(order.work, BatchWork), f"{order.name}: there is no batch Job to make"
    given = order.work.template
    template = dict(given.spec.get("template") or {})
    metadata = dict(template.get("metadata") or {})
    # The pods are told apart by the same labels, so that they can be seen and their logs found.
    metadata["labels"] = {**(metadata.get("labels") or {}), **naming.labels_of(order)}
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        **naming.annotations_of(order),
    }
    template["metadata"] = metadata
    template["spec"] = _pod_spec(template.get("spec") or {}, order)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(given.metadata, order),
        "spec": {**given.spec, "suspend": True, "template": template},
    }


def grace_s(seconds: float) -> int:
    """A grace period as Kubernetes takes it: whole seconds, and 0 would mean "by force"."""
    return max(1, ceil(seconds))


def arm_pod(pod: Pod, now: datetime) -> Manifest:
    """Open our gate; those that others put there stay.

    The uid makes sure that nothing but this very pod is let run.
    """
    del now
    others = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != naming.GATE]
    # Nobody applies a pod of ours in parts, so nobody needs to know who wrote which. Without that
    # record each of the five writes that follow costs an API server a fifth less.
    metadata: Manifest = {"uid": pod.metadata.uid}
    if not pod.metadata.labels.queue:
        metadata["managedFields"] = [{}]
    return {"metadata": metadata, "spec": {"schedulingGates": others}}


def arm_batch_job(job: BatchJob, now: datetime) -> Manifest:
    """Let a batch Job run, as long as it is exactly as it was read.

    A stop suspends it again and leaves it there, so the uid alone would let an order to run that
    arrives late undo an order to stop.
    """
    marks = {naming.ARMED_AT: now.isoformat()}
    spec: Manifest = {"suspend": False}
    if job.granted is not None and job.granted < job.at_once:
        spec["parallelism"] = job.granted
    return {"metadata": {**exactly(job), "annotations": marks}, "spec": spec}


def stop_batch_job(job: BatchJob, now: datetime, settled_at: datetime) -> Manifest:
    """Suspend a batch Job for good.

    One of somebody else is let run again for the next attempt: an order to stop that arrives late
    must not stop that.
    """
    marks = {naming.STOPPED_AT: now.isoformat(), naming.SETTLED_AT: settled_at.isoformat()}
    spec: Manifest = {"suspend": True}
    asked = job.asked_parallelism
    if asked != job.spec.parallelism:
        spec["parallelism"] = asked
    which = exactly(job) if job.is_adopted else {"uid": job.metadata.uid}
    return {"metadata": {**which, "annotations": marks}, "spec": spec}


def release(thing: KubeObject) -> Manifest:
    """Take our finalizer away, and nobody else's."""
    others = [one for one in thing.metadata.finalizers if one != naming.FINALIZER]
    return {"metadata": {**exactly(thing), "finalizers": others}}


def mark_forced(pod: Pod, why: str) -> Manifest:
    """Write down that a pod was removed by force."""
    return {"metadata": {"uid": pod.metadata.uid, "annotations": {naming.FORCED: why}}}


def exactly(thing: KubeObject) -> Manifest:
    """Makes sure that an object is patched as it was read, or not at all."""
    return {"uid": thing.metadata.uid, "resourceVersion": thing.metadata.resource_version}


def _metadata(given: TemplateMetadata, order: TaskOrder) -> Manifest:
    owner = {
        "apiVersion": API_VERSION,
        "kind": "Job",
        "name": order.job,
        "uid": order.job_uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": order.name,
        "namespace": order.namespace,
        "labels": {**given.labels, **naming.labels_of(order)},
        "annotations": {**given.annotations, **naming.annotations_of(order)},
        "finalizers": [naming.FINALIZER],
        "ownerReferences": [owner],
    }


def _seat(metadata: Manifest, spec: Manifest, order: TaskOrder) -> None:
    """Have a pod be placed in its slot: by the scheduler that asks about slots, on its node."""
    metadata["annotations"][TEST_BED] = order.test_bed
    metadata["annotations"][SLOTS] = order.slot
    spec["schedulerName"] = SCHEDULER
    here = {"key": "metadata.name", "operator": "In", "values": [node_of(order.slot)]}
    affinity = dict(spec.get("affinity") or {})
    nodes = dict(affinity.get("nodeAffinity") or {})
    required = dict(nodes.get(_REQUIRED) or {})
    # Any one of them has to hold, so each is narrowed to the node.
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), here]} for term in terms
    ]
    spec["affinity"] = {**affinity, "nodeAffinity": {**nodes, _REQUIRED: required}}


def _pod_spec(given: Mapping[str, Any], order: TaskOrder) -> Manifest:
    spec = dict(given)
    spec.setdefault("restartPolicy", "Never")
    if order.grace is not None:
        # The Job's own grace wins: it is what the control plane waits for, whoever stops the pod.
        spec["terminationGracePeriodSeconds"] = grace_s(order.grace.total_seconds())
    for sort in ("containers", "initContainers"):
        if isinstance(spec.get(sort), list):
            spec[sort] = [_with_variables(one, order.env) for one in spec[sort]]
    return spec


def _with_variables(container: Any, variables: Mapping[str, str]) -> Any:
    """A container that knows the attempt's variables, whatever it was given under their names.

    They come first: what is given after them may be made of them, as `$(INTERLOCK_TASK)`.
    """
    if not isinstance(container, dict):
        return container
    given: Iterable[Any] = container.get("env") or ()
    kept = [one for one in given if not isinstance(one, dict) or one.get("name") not in variables]
    ours = [{"name": name, "value": value} for name, value in variables.items()]
    return {**container, "env": [*ours, *kept]} if kept or ours else container
