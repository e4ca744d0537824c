"""Holding back: a batch Job or pod of somebody else that asks for a Queue is created so that it
cannot run.

The API server sends those alone that carry our label. What is part of another object is left alone:
that one is what is queued.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Any

from interlock.kube.pods.naming import CONTROLLER_UID, GATE, JOB_UID
from interlock.kube.webhook.review import Change, Document, Verdict
from interlock.resources.adopted import QUEUE_LABEL

_PLACED = (
    f"this pod names its node, so no scheduler is asked and the label {QUEUE_LABEL} means nothing"
)


def hold(change: Change, _: Set[str], __: datetime) -> Verdict:
    """Suspend a new batch Job, and put our gate on a new pod."""
    given = change.object
    if change.sub_resource or given is None or change.old_object is not None:
        return Verdict()
    labels = _part(_part(given, "metadata"), "labels")
    if not labels.get(QUEUE_LABEL) or JOB_UID in labels:
        return Verdict()
    if given.get("kind") == "Pod":
        return _hold_pod(given)
    if _part(given, "spec").get("suspend") is True:
        return Verdict()
    return Verdict(patch=({"op": "add", "path": "/spec/suspend", "value": True},))


def _hold_pod(pod: Document) -> Verdict:
    spec = _part(pod, "spec")
    if _is_part(pod):
        return Verdict()
    if spec.get("nodeName"):
        return Verdict(warnings=(_PLACED,))
    gates = spec.get("schedulingGates") or []
    if {"name": GATE} in gates:
        return Verdict()
    held = [*gates, {"name": GATE}]
    return Verdict(patch=({"op": "add", "path": "/spec/schedulingGates", "value": held},))


def _is_part(pod: Document) -> bool:
    """Whether a pod is that of a batch Job."""
    metadata = _part(pod, "metadata")
    owners = metadata.get("ownerReferences") or ()
    return CONTROLLER_UID in _part(metadata, "labels") or any(
        owner.get("controller") and owner.get("kind") == "Job" for owner in owners
    )


def _part(given: Document, name: str) -> dict[str, Any]:
    return given.get(name) or {}
