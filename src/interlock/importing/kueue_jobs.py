"""Batch Jobs that wait in a LocalQueue of Kueue, as Jobs that wait in a Queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from interlock.importing.drafts import LONGEST, Draft, quoted
from interlock.importing.fields import Fields, title_of
from interlock.importing.templates import batch_template, template_paths

API_VERSIONS = ("batch/v1",)
PREFIX = "kueue.x-k8s.io/"
_QUEUE_NAME, _PRIORITY = f"{PREFIX}queue-name", f"{PREFIX}priority-class"
#: The LocalQueue of Jobs that name none.
_USUAL_QUEUE = "default"
_LEAST = f"{PREFIX}job-min-parallelism"
_LONGEST = f"{PREFIX}max-exec-time-seconds"
#: What the batch Job's controller writes on pods: with it there no other batch Job is made of them.
_CONTROLLERS = (
    *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"),
    *("controller-uid", "job-name"),
)
#: What our fields are called there.
_PATHS = (
    (r"spec\.queue", f'metadata.labels["{_QUEUE_NAME}"]'),
    (r"spec\.priority", f'metadata.labels["{_PRIORITY}"]'),
    *((ours, theirs.removeprefix("spec.jobTemplate.")) for ours, theirs in template_paths("")),
)
_WHY = {
    _LEAST: (
        "a batch Job is one task, which starts with all its pods or not at all",
        "all its pods; a Job of a pod with parallelism and minParallelism starts with fewer",
    ),
    _LONGEST: (
        "Kueue puts such a Job out of its queue, and keeps it",
        "no limit; spec.timeout stops a Job and has it fail",
    ),
}


class LocalQueue(NamedTuple):
    """What a LocalQueue says."""

    namespace: str
    name: str
    cluster_queue: str
    given: Fields


class Lines(NamedTuple):
    """What a file says about where Jobs wait."""

    #: By namespace and name.
    local: Mapping[tuple[str, str], LocalQueue]
    #: The names of our Queues, by those of their ClusterQueues.
    queues: Mapping[str, str]
    #: The namespaces of each Queue; None for all of them.
    spaces: Mapping[str, list[str] | None]
    #: The numbers of the WorkloadPriorityClasses.
    priorities: Mapping[str, int]


def space_of(metadata: Fields) -> str:
    """The namespace of an object."""
    return metadata.text("namespace") or "default"


def take_job(draft: Draft, given: Fields, lines: Lines) -> None:
    """Take a batch Job, unless Kueue takes no notice of it or has let it in already."""
    metadata = given.within("metadata")
    labels = metadata.within("labels")
    namespace, wanted = space_of(metadata), labels.text(_QUEUE_NAME)
    local = lines.local.get((namespace, wanted or _USUAL_QUEUE))
    queue = lines.queues.get(local.cluster_queue) if local is not None else None
    if why := _left(given, wanted, namespace, queue):
        draft.leave_out(given.line_of(), title_of(given), why)
        return
    old = metadata.text("name") or (metadata.text("generateName") or "").rstrip("-")
    metadata.require("name", old)
    name = draft.name_for("Job", old, namespace)
    if not draft.wishes.prefix and name != metadata.text("name"):
        longest = LONGEST["Job"]
        why = f"a Job's name has at most {longest} characters, and no dots: {quoted(old)}"
        if metadata.text("name") is None:
            why = "generateName gives every Job that is created another"
        metadata.note("name", "is another one", why, f"it is called {name}")
    priority = _priority(given, labels.text(_PRIORITY), lines)
    _tell_marks(metadata)
    given.pass_over("apiVersion", "kind", "status")
    made = batch_template(given, PREFIX)
    # Whoever creates a Job for Kueue has it wait by this; to us it would wait for a person.
    made["spec"].pop("suspend", None)
    _clean_pod(made["spec"]["batchJob"]["spec"]["template"])
    spec = {**made["spec"], "queue": queue, **({"priority": priority} if priority else {})}
    _tell_namespace(draft, given, lines.spaces.get(str(queue)), namespace)
    space = {"namespace": namespace} if metadata.text("namespace") else {}
    draft.add(
        *(given.line_of(), title_of(given), "Job", name),
        paths=_PATHS,
        metadata={**space, **made.get("metadata", {})},
        spec=spec,
    )


def _left(given: Fields, wanted: str | None, namespace: str, queue: str | None) -> str:
    """Why a batch Job is left out; empty when it is not."""
    if wanted is None and queue is None:
        return f"it has no label {_QUEUE_NAME}, and Kueue takes no notice of it"
    if queue is None:
        return (
            f"no LocalQueue {quoted(wanted or '')} of {namespace} that is imported is in the file"
        )
    status = given.within("status")
    for condition in status.each("conditions"):
        if condition.raw("type") in ("Complete", "Failed") and condition.raw("status") == "True":
            return "it has ended"
    if status.number("active"):
        return "it runs, and would run twice"
    return ""


def _priority(given: Fields, name: str | None, lines: Lines) -> int:
    if name:
        if name in lines.priorities:
            return lines.priorities[name]
        labels = given.within("metadata").within("labels")
        why = f"no WorkloadPriorityClass {quoted(name)} is in the file"
        labels.note(_PRIORITY, "is not carried over", why, "priority 0")
        return 0
    pod = given.within("spec").within("template").within("spec")
    if called := pod.text("priorityClassName"):
        why = f"to Kueue it is the place in the line too, and {quoted(called)} says no number here"
        pod.note("priorityClassName", "is for the pods alone", why, "priority 0")
    return 0


def _tell_marks(metadata: Fields) -> None:
    for part in ("labels", "annotations"):
        marks = metadata.within(part)
        for name in marks.data:
            if name.startswith(PREFIX) and name not in (_QUEUE_NAME, _PRIORITY):
                why, instead = _WHY.get(name, ("it is a word for Kueue", "it is left out"))
                marks.note(name, "is not carried over", why, instead)


def _clean_pod(pod: dict[str, Any]) -> None:
    """Take what is for Kueue and for the batch Job's controller off the pods."""
    metadata = pod.get("metadata", {})
    for part in ("labels", "annotations"):
        kept = {
            name: value
            for name, value in metadata.get(part, {}).items()
            if not name.startswith(PREFIX) and name not in _CONTROLLERS
        }
        metadata.pop(part, None)
        if kept:
            metadata[part] = kept
    if not metadata:
        pod.pop("metadata", None)


def _tell_namespace(draft: Draft, given: Fields, spaces: list[str] | None, namespace: str) -> None:
    """Tell of a Job that its Queue will not let in, because of its namespace."""
    namespace = draft.wishes.namespace or namespace
    if spaces is not None and namespace not in spaces:
        why = "its Queue does not name it in spec.namespaceSelector.matchNames"
        told = f"{quoted(namespace)} is not let in"
        given.within("metadata").note("namespace", told, why, "it waits until the Queue does")
