"""Job templates of Kubernetes as templates of ours, with a `batch/v1` Job or a pod in them."""

from __future__ import annotations

from typing import Any

from interlock.importing.drafts import Paths, quoted
from interlock.importing.fields import Fields
from interlock.importing.variables import escaped, escaped_within

#: What an API server writes and nobody else.
SERVER_FIELDS = (
    *(
        "creationTimestamp",
        "creationVersion",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generateName",
    ),
    *("generation", "managedFields", "resourceVersion", "selfLink", "uid"),
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
#: What we decide ourselves about a batch Job, each with what is done instead.
_OURS = {
    "selector": "Kubernetes makes one for each batch Job",
    "manualSelector": "Kubernetes makes a selector for each batch Job",
    "managedBy": "the cluster's own controller runs it",
}


def template_paths(ours: str) -> Paths:
    """What the fields of a template of ours are called in a `jobTemplate`."""
    return (
        (rf"{ours}\.spec\.batchJob", "spec.jobTemplate"),
        (rf"{ours}\.metadata", "spec.jobTemplate.metadata"),
        (rf"{ours}\.spec\.ttlAfterFinished", "spec.jobTemplate.spec.ttlSecondsAfterFinished"),
        (
            rf"{ours}\.spec\.gracePeriod",
            "spec.jobTemplate.spec.template.spec.terminationGracePeriodSeconds",
        ),
        (rf"{ours}\.spec", "spec.jobTemplate.spec"),
    )


def metadata_of(given: Fields, *dropped: str) -> dict[str, Any]:
    """Labels, annotations and the namespace of an object; those that begin with `dropped` go."""
    metadata = given.within("metadata")
    metadata.pass_over("name", *SERVER_FIELDS)
    made: dict[str, Any] = {}
    if namespace := metadata.text("namespace"):
        made["namespace"] = namespace
    made |= marks_of(metadata, *dropped)
    metadata.tell_rest("it belongs to the object that is replaced")
    return made


def marks_of(metadata: Fields, *dropped: str) -> dict[str, Any]:
    """The labels and annotations of some metadata."""
    made: dict[str, Any] = {}
    for part in ("labels", "annotations"):
        given = metadata.within(part)
        marks: dict[str, str] = {}
        for name in given.data:
            value = given.text(name)
            if name.startswith(dropped) or name == _LAST_APPLIED or value is None:
                continue
            marks[name] = value
        if marks:
            made[part] = marks
    return made


def batch_template(given: Fields, *dropped: str) -> dict[str, Any]:
    """A template whose Jobs are batch Jobs, of a `jobTemplate`."""
    metadata = given.within("metadata")
    metadata.pass_over("name", "namespace", *SERVER_FIELDS)
    marks = marks_of(metadata, *dropped)
    metadata.tell_rest()
    made = given.within("spec")
    given.require("spec", made.data)
    given.tell_rest()
    spec: dict[str, Any] = {"batchJob": {"spec": _batch_spec(made)}}
    if marks:
        spec["batchJob"]["metadata"] = {
            part: {name: escaped(value) for name, value in found.items()}
            for part, found in marks.items()
        }
    # A batch Job waits for its pods for ever, and we would not.
    spec["pendingTimeout"] = "0s"
    spec |= _grace(made.within("template").within("spec"))
    if (ttl := made.number("ttlSecondsAfterFinished")) is not None:
        spec["ttlAfterFinished"] = f"{ttl}s"
    if made.flag("suspend"):
        spec["suspend"] = True
    return {"metadata": marks, "spec": spec} if marks else {"spec": spec}


def _batch_spec(given: Fields) -> dict[str, Any]:
    ours = {"suspend", "ttlSecondsAfterFinished", *_OURS}
    for name, instead in _OURS.items():
        if given.data.get(name) is not None:
            given.note(name, "is not carried over", "Interlock decides it", instead)
    made = {name: value for name, value in given.data.items() if name not in ours}
    template = given.within("template")
    given.require("template", template.data)
    pod = dict(template.data)
    if "metadata" in pod:
        metadata = template.within("metadata")
        metadata.pass_over("name", "namespace", *SERVER_FIELDS)
        pod["metadata"] = marks_of(metadata)
        metadata.tell_rest()
        if not pod["metadata"]:
            del pod["metadata"]
    pod["spec"] = pod_spec(template.within("spec"))
    return escaped_within({**made, "template": pod})


def pod_spec(given: Fields) -> dict[str, Any]:
    """A pod's specification, without what we decide ourselves."""
    made = {name: value for name, value in given.data.items() if name not in _POD_OURS}
    if node := given.text("nodeName"):
        key = "kubernetes.io/hostname"
        made["nodeSelector"] = {**(given.mapping("nodeSelector")), key: node}
        why = "it would bind pods past the scheduler, so that nothing could hold them back"
        given.note("nodeName", f"{quoted(node)} is not carried over", why, f"nodeSelector {key}")
    return made


_POD_OURS = ("nodeName", "terminationGracePeriodSeconds")


def _grace(pod: Fields) -> dict[str, str]:
    grace = pod.number("terminationGracePeriodSeconds")
    return {} if grace in (None, 30) else {"gracePeriod": f"{grace}s"}


def grace_of(pod: Fields) -> dict[str, str]:
    """How long a pod has to stop, as a Job says it; nothing when it is the usual time."""
    return _grace(pod)
