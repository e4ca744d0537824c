"""What can a fake pod be told to do, and how is it told?"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Play(StrEnum):
    """Annotations of a pod that its fake node obeys; without any it runs until it is deleted.

    Durations are written as `3s` or `1500ms` and count from the last change of the pod.
    """

    #: How long it takes from being bound to running; without it, no time.
    STARTS_AFTER = "play.interlock.dev/starts-after"
    #: It stays Pending; the value is the reason its containers wait for, as ImagePullBackOff.
    NEVER_STARTS = "play.interlock.dev/never-starts"
    #: It runs and never gets Ready.
    NEVER_READY = "play.interlock.dev/never-ready"
    #: How long it runs before it ends by itself.
    RUNS_FOR = "play.interlock.dev/runs-for"
    #: The code it ends with by itself, after `runs-for` or at once; 0 is success.
    EXIT_CODE = "play.interlock.dev/exit-code"
    #: How long it takes to stop once deleted, whatever its grace period; without it, no time.
    STOPS_AFTER = "play.interlock.dev/stops-after"
    #: It goes on until its grace period is over and ends with 137 instead of 143.
    IGNORES_STOP = "play.interlock.dev/ignores-stop"
    #: It is Terminating for ever, as on a node that died: only force removes it.
    NEVER_STOPS = "play.interlock.dev/never-stops"


#: On a node: it has a kubelet. One without it is silent from the beginning.
NODE_ALIVE = ("play.interlock.dev/node", "alive")
#: Label of a node: it says it is not ready, for as long as it has the label.
NODE_NOT_READY = "play.interlock.dev/not-ready"


def a_pod(name: str, played: dict[Play, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod of one container that does what it is told to; `spec` adds to its specification."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **_annotated(played)},
        "spec": {**_one_container(), **spec},
    }


def a_batch_job(name: str, played: dict[Play, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A Job of Kubernetes whose pods do what they are told to; `spec` adds to its specification."""
    template = {"metadata": _annotated(played), "spec": _one_container()}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def a_node(name: str, *, silent: bool = False) -> dict[str, Any]:
    """A fake node, big enough for any test."""
    key, value = NODE_ALIVE
    annotations = {} if silent else {key: value}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def _annotated(played: dict[Play, str] | None) -> dict[str, Any]:
    return {"annotations": {str(key): value for key, value in (played or {}).items()}}


def _one_container() -> dict[str, Any]:
    return {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
