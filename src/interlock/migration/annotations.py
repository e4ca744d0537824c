"""Migration annotations: where a Job goes, where it comes from, how it was suspended."""

from __future__ import annotations

import json
from typing import Any

from interlock.client.pod_template import pod_of
from interlock.commands.merging import LAST_APPLIED
from interlock.resources.schedule import (
    MOVE_ANNOTATION,
    MOVED_FROM_ANNOTATION,
    MOVED_TO_ANNOTATION,
    MOVING_LABEL,
)

Job = dict[str, Any]

MOVED_TO = MOVED_TO_ANNOTATION
MOVE = MOVE_ANNOTATION
MOVED_FROM = MOVED_FROM_ANNOTATION
MOVING = MOVING_LABEL


def created(job: Job) -> tuple[int, str]:
    """Where the Job stands in the order of creation."""
    admission = (job.get("status") or {}).get("admission") or {}
    metadata = job["metadata"]
    told = admission.get("sequence")
    if not told and not admission.get("evictions"):
        told = metadata.get("creationVersion")
    return int(told or metadata["resourceVersion"]), metadata["name"]


def annotation(job: Job, name: str) -> str:
    """An annotation; empty when it is not there."""
    return str((job["metadata"].get("annotations") or {}).get(name) or "")


def mark_of(job: Job) -> dict[str, Any]:
    """What an earlier step wrote; empty when none did, or when it cannot be read."""
    try:
        mark = json.loads(annotation(job, MOVE) or "{}")
    except ValueError:
        return {}
    return mark if isinstance(mark, dict) else {}


def is_marked(copy: Job) -> bool:
    """Whether the copy's move has not been brought to its end."""
    return MOVING in (copy["metadata"].get("labels") or {})


def place_before(copy: Job) -> tuple[int, int, str]:
    """Where the Job stood in every line of the source."""
    sequence = int(mark_of(copy).get("sequence") or 0)
    return -int(copy["spec"].get("priority") or 0), sequence, copy["metadata"]["name"]


def is_held(job: Job, cluster: str) -> bool:
    """Whether the Job is suspended for the sake of its move to that cluster."""
    return bool(job["spec"].get("suspend")) and mark_of(job).get("cluster") == cluster


def hold(job: Job, cluster: str, context: str) -> Job:
    """The change that holds the Job at the source, from the very version that was read."""
    mark = mark_of(job)
    if mark.get("cluster") != cluster:
        mark = {"cluster": cluster, "sequence": created(job)[0], **_suspension(job)}
    annotations = {MOVED_TO: context, MOVE: json.dumps(mark)}
    return {
        "metadata": {"resourceVersion": _version(job), "annotations": annotations},
        "spec": {"suspend": True, "suspendReason": f"being moved to {context}"},
    }


def release(job: Job) -> Job:
    """The change that puts a held Job back as it was."""
    return {
        "metadata": {
            "resourceVersion": _version(job),
            "annotations": {MOVED_TO: None, MOVE: None},
        },
        "spec": _suspended_before(mark_of(job)),
    }


def release_schedule(thing: Job) -> Job:
    """The change that puts a held JobConfig or ControlledJob back as it was."""
    change = release(thing)
    return change | {"spec": {"suspend": _suspended_before(mark_of(thing))["suspend"]}}


def hold_schedule(thing: Job, cluster: str, context: str) -> Job:
    """The change that keeps a JobConfig or ControlledJob of the source from making Jobs."""
    mark = mark_of(thing)
    if mark.get("cluster") != cluster or not thing["spec"].get("suspend"):
        # Whoever resumed it since it was held wants it so.
        mark = {"cluster": cluster, "suspend": bool(thing["spec"].get("suspend"))}
    annotations = {MOVED_TO: context, MOVE: json.dumps(mark)}
    metadata = {"resourceVersion": _version(thing), "annotations": annotations}
    return {"metadata": metadata, "spec": {"suspend": True}}


def finish(thing: Job) -> Job:
    """The change that says that the source was moved, from the very version that was read."""
    annotations = {MOVE: json.dumps(mark_of(thing) | {"done": True})}
    return {"metadata": {"resourceVersion": _version(thing), "annotations": annotations}}


def is_finished(thing: Job, cluster: str) -> bool:
    """Whether the source was moved, and is still as the move left it."""
    return is_held(thing, cluster) and bool(mark_of(thing).get("done"))


def was_suspended(thing: Job) -> bool:
    """Whether it was suspended before the move."""
    return bool(mark_of(thing).get("suspend"))


def schedule_copy_of(thing: Job, origin: str, image: str = "") -> Job:
    """The JobConfig or ControlledJob as it is created in the cluster: suspended, and marked."""
    spec = {**thing["spec"], "suspend": True}
    part = "template" if "template" in spec else "jobTemplate"
    work = dict(spec[part]["spec"])
    annotations = dict(thing["metadata"].get("annotations") or {})
    annotations.pop(MOVED_TO, None)
    if "process" in work:
        work["pod"] = _pod(work.pop("process"), image)
        spec[part] = {**spec[part], "spec": work}
        annotations.pop(LAST_APPLIED, None)
    metadata = thing["metadata"]
    labels = {**(metadata.get("labels") or {}), MOVING: origin}
    # Its Jobs know it by its uid, so one of that name is another one.
    annotations[MOVED_FROM] = metadata["uid"]
    return _fresh(thing, labels, annotations, spec)


def plain_copy_of(thing: Job) -> Job:
    """A definition that does nothing by itself, as it is created in the cluster."""
    metadata = thing["metadata"]
    annotations = {**(metadata.get("annotations") or {}), MOVED_FROM: metadata["uid"]}
    return _fresh(thing, metadata.get("labels") or {}, annotations, thing["spec"])


def _fresh(thing: Job, labels: Job, annotations: Job, spec: Job) -> Job:
    name, namespace = thing["metadata"]["name"], thing["metadata"]["namespace"]
    return {
        "apiVersion": thing["apiVersion"],
        "kind": thing["kind"],
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    }


def let_schedule_go(copy: Job) -> Job:
    """The change that ends the move of a JobConfig or ControlledJob."""
    change = let_go(copy)
    if "spec" in change:
        change["spec"] = {"suspend": change["spec"]["suspend"]}
    return change


def copy_of(job: Job, origin: str, url: str, image: str = "") -> Job:
    """The Job as it is created in the cluster: suspended, and marked."""
    metadata = job["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(MOVED_TO, None)
    spec = {**job["spec"], "suspend": True, "suspendReason": f"being moved from {url}"}
    if "process" in spec:
        spec["pod"] = _pod(spec.pop("process"), image)
        # It tells of a process, and a later apply would compare with it.
        annotations.pop(LAST_APPLIED, None)
    annotations[MOVED_FROM] = metadata["uid"]
    labels = {**(metadata.get("labels") or {}), MOVING: origin}
    return _fresh(job, labels, annotations, spec)


def let_go(copy: Job) -> Job:
    """The change that ends the move: the suspension that the Job had before, and no marks.

    A copy that a person has resumed already stays so.
    """
    change: Job = {
        "metadata": {
            "resourceVersion": _version(copy),
            "labels": {MOVING: None},
            "annotations": {MOVE: None},
        }
    }
    if copy["spec"].get("suspend"):
        change["spec"] = _suspended_before(mark_of(copy))
    return change


def hold_back(copy: Job, reason: str) -> Job:
    """The change that says why a copy is still suspended."""
    metadata = {"resourceVersion": _version(copy)}
    return {"metadata": metadata, "spec": {"suspendReason": reason}}


def _suspension(job: Job) -> Job:
    spec = job["spec"]
    return {
        "suspend": bool(spec.get("suspend")),
        "suspendReason": str(spec.get("suspendReason") or ""),
    }


def _suspended_before(mark: Job) -> Job:
    return {
        "suspend": True if mark.get("suspend") else None,
        "suspendReason": mark.get("suspendReason") or None,
    }


def _version(job: Job) -> str:
    return str(job["metadata"]["resourceVersion"])


def _pod(process: Job, image: str) -> Job:
    return pod_of(
        image,
        list(process.get("command") or []),
        args=list(process.get("args") or []),
        env=dict(process.get("env") or {}),
        working_dir=str(process.get("workingDir") or ""),
    )
