"""Validation of pods and `batch/v1` Jobs before a cluster is asked.

Only what would go wrong silently or late is checked here: what never ends, what Interlock has
to decide itself, and the misspelled fields that a cluster leaves out. The rest of Kubernetes' rules
stay Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard, cast

from interlock.findings import Findings, child, nearest, shortened, type_of
from interlock.resources.checks.pod_fields import (
    BATCH_JOB_FIELDS,
    CONTAINER_FIELDS,
    POD_FIELDS,
    REFUSED_IN_BATCH_JOB,
    REFUSED_IN_POD,
)
from interlock.resources.metadata import GROUP
from interlock.resources.naming import (
    MAX_LABEL,
    check_annotations,
    check_label_name,
    check_labels,
)
from interlock.resources.pods import BatchJobTemplate, PodTemplate, TemplateMetadata
from interlock.resources.values.texts import check_free_form
from interlock.resources.variables import with_blanks

MAX_CONTAINERS = 100

_ENDING = ("Never", "OnFailure")
_EXPECTED_POLICY = f"expected {' or '.join(_ENDING)}"
_NEVER_ENDS = "a pod that always restarts never ends"
#: Ours alone: the names under which Interlock finds again what it made.
_OWN_PREFIX = f"{GROUP}/"
_ENV_FIELDS = frozenset({"name", "value", "valueFrom"})
_TEMPLATE_FIELDS = frozenset({"metadata", "spec"})
_METADATA_FIELDS = frozenset({"annotations", "labels"})

_Object = dict[str, Any]


def check_pod(template: PodTemplate, to: Findings) -> None:
    """Check what people write under `spec.pod`."""
    _check_metadata("spec.pod.metadata", template.metadata, to)
    check_free_form("spec.pod.spec", template.spec, to)
    _check_pod_spec("spec.pod.spec", template.spec, to)


def check_batch_job(template: BatchJobTemplate, to: Findings) -> None:
    """Check what people write under `spec.batchJob`."""
    path, spec = "spec.batchJob.spec", template.spec
    _check_metadata("spec.batchJob.metadata", template.metadata, to)
    check_free_form(path, spec, to)
    _check_fields(path, spec, BATCH_JOB_FIELDS, to)
    _check_refused(path, spec, REFUSED_IN_BATCH_JOB, to)
    made = _object(f"{path}.template", spec.get("template"), to)
    if made is None:
        return
    _check_fields(f"{path}.template", made, _TEMPLATE_FIELDS, to)
    _check_free_metadata(f"{path}.template.metadata", made.get("metadata"), to)
    pod = _object(f"{path}.template.spec", made.get("spec"), to)
    if pod is not None:
        if pod.get("restartPolicy") is None:
            message = f"is required in a batch Job: {_EXPECTED_POLICY}"
            to.add(f"{path}.template.spec.restartPolicy", message)
        _check_pod_spec(f"{path}.template.spec", pod, to)


# Metadata


def _check_metadata(path: str, metadata: TemplateMetadata, to: Findings) -> None:
    if metadata.labels:
        _check_own(f"{path}.labels", metadata.labels, to)
        # What the values of variables come to is known when a task starts.
        blank = {name: with_blanks(value) for name, value in metadata.labels.items()}
        check_labels(f"{path}.labels", blank, to)
    if metadata.annotations:
        _check_own(f"{path}.annotations", metadata.annotations, to)
        check_annotations(f"{path}.annotations", metadata.annotations, to)


def _check_own(path: str, given: dict[str, str], to: Findings) -> None:
    for name in given:
        if name.startswith(_OWN_PREFIX):
            to.add(child(path, name), f"names with {_OWN_PREFIX} are Interlock's own", name)


def _check_free_metadata(path: str, given: object, to: Findings) -> None:
    if given is None:
        return
    metadata = _object(path, given, to)
    if metadata is None:
        return
    _check_fields(path, metadata, _METADATA_FIELDS, to)
    labels = _texts_by_name(f"{path}.labels", metadata.get("labels"), to)
    annotations = _texts_by_name(f"{path}.annotations", metadata.get("annotations"), to)
    _check_metadata(path, TemplateMetadata(labels=labels, annotations=annotations), to)


def _texts_by_name(path: str, given: object, to: Findings) -> dict[str, str]:
    found = _object(path, {} if given is None else given, to) or {}
    for name, value in found.items():
        if value is not None and not isinstance(value, str):
            to.add(child(path, name), _instead("text", value), value)
    return {name: found[name] for name in filter(_is_text, found) if _is_text(found[name])}


# A pod


def _check_pod_spec(path: str, spec: _Object, to: Findings) -> None:
    _check_fields(path, spec, POD_FIELDS, to, misplaced=_in_first_container)
    _check_refused(path, spec, REFUSED_IN_POD, to)
    _check_policy(f"{path}.restartPolicy", spec.get("restartPolicy"), to)
    names: set[str] = set()
    if spec.get("initContainers") is not None:
        _check_containers(f"{path}.initContainers", spec["initContainers"], names, to)
    _check_containers(f"{path}.containers", spec.get("containers"), names, to)
    if spec.get("containers") == []:
        to.add(f"{path}.containers", "expected at least one container", [])
    _check_endless(f"{path}.containers", spec.get("containers"), to)
    _check_gates(f"{path}.schedulingGates", spec.get("schedulingGates"), to)


def _check_containers(path: str, given: object, names: set[str], to: Findings) -> None:
    found = _list(path, given, to)
    if len(found) > MAX_CONTAINERS:
        to.add(path, f"expected at most {MAX_CONTAINERS} containers, found {len(found)}", given)
    for at, one in enumerate(found[:MAX_CONTAINERS]):
        container = _object(f"{path}[{at}]", one, to)
        if container is not None:
            _check_container(f"{path}[{at}]", container, names, to)


def _check_endless(path: str, given: object, to: Findings) -> None:
    """Refuse containers that restart for ever; those that run before others end with them."""
    for at, one in enumerate(given if isinstance(given, list) else ()):
        if isinstance(one, dict):
            _check_policy(f"{path}[{at}].restartPolicy", one.get("restartPolicy"), to)


def _check_policy(path: str, policy: object, to: Findings) -> None:
    if policy is not None and policy not in _ENDING:
        why = f"{_NEVER_ENDS}; " if policy == "Always" else ""
        to.add(path, f"{why}{_EXPECTED_POLICY}", policy)


def _check_container(path: str, container: _Object, names: set[str], to: Findings) -> None:
    _check_fields(path, container, CONTAINER_FIELDS, to, misplaced=_beside_containers)
    name = container.get("name")
    if _is_given_text(name, f"{path}.name", to):
        check_label_name(f"{path}.name", name, MAX_LABEL, to)
        if name in names:
            to.add(f"{path}.name", "is there twice", name)
        names.add(name)
    image = container.get("image")
    if _is_given_text(image, f"{path}.image", to) and image != image.strip():
        to.add(f"{path}.image", "expected no white space around it", image)
    for field in ("command", "args"):
        if (words := container.get(field)) is not None:
            _check_texts(f"{path}.{field}", words, to)
    if (variables := container.get("env")) is not None:
        _check_env(f"{path}.env", variables, to)


def _check_texts(path: str, given: object, to: Findings) -> None:
    for at, word in enumerate(_list(path, given, to)):
        if not isinstance(word, str):
            to.add(f"{path}[{at}]", _instead("text", word), word)


def _check_env(path: str, given: object, to: Findings) -> None:
    for at, one in enumerate(_list(path, given, to)):
        variable = _object(f"{path}[{at}]", one, to)
        if variable is None:
            continue
        _check_fields(f"{path}[{at}]", variable, _ENV_FIELDS, to)
        _is_given_text(variable.get("name"), f"{path}[{at}].name", to)
        value = variable.get("value")
        if value is not None and not isinstance(value, str):
            to.add(f"{path}[{at}].value", _instead("text", value), value)


def _check_gates(path: str, given: object, to: Findings) -> None:
    for at, gate in enumerate(given if isinstance(given, list) else ()):
        name = gate.get("name") if isinstance(gate, dict) else None
        if isinstance(name, str) and name.startswith(_OWN_PREFIX):
            message = f"names with {_OWN_PREFIX} are Interlock's own"
            to.add(f"{path}[{at}].name", message, name)


# What all of them need


def _check_fields(
    path: str,
    data: _Object,
    known: frozenset[str],
    to: Findings,
    misplaced: Callable[[str, str], str] = lambda _path, _name: "",
) -> None:
    for name in filter(_is_text, data):
        if name in known or data[name] is None:
            continue
        if to.is_full:
            to.add(path, "unknown field")
            continue
        near = nearest(shortened(name), known)
        meant = misplaced(path, name) or (child(path, near) if near is not None else "")
        message = f"unknown field; did you mean {meant}?" if meant else "unknown field"
        to.add(child(path, name), message, data[name])


def _is_text(name: object) -> TypeGuard[str]:
    return isinstance(name, str)


def _in_first_container(path: str, name: str) -> str:
    return f"{path}.containers[0].{name}" if name in CONTAINER_FIELDS else ""


def _beside_containers(path: str, name: str) -> str:
    return f"{path.rpartition('.')[0]}.{name}" if name in POD_FIELDS else ""


def _check_refused(path: str, data: _Object, refused: dict[str, str], to: Findings) -> None:
    for name, reason in refused.items():
        if data.get(name) is not None:
            to.add(f"{path}.{name}", reason, data[name])


def _object(path: str, given: object, to: Findings) -> _Object | None:
    if isinstance(given, dict):
        return cast(_Object, given)
    _missing_or_wrong(path, "an object", given, to)
    return None


def _list(path: str, given: object, to: Findings) -> list[Any]:
    if isinstance(given, list):
        return given
    _missing_or_wrong(path, "a list", given, to)
    return []


def _is_given_text(given: object, path: str, to: Findings) -> TypeGuard[str]:
    if isinstance(given, str) and given:
        return True
    if given == "":
        to.add(path, "expected text that is not empty", given)
    else:
        _missing_or_wrong(path, "text", given, to)
    return False


def _missing_or_wrong(path: str, expected: str, given: object, to: Findings) -> None:
    to.add(path, "is required" if given is None else _instead(expected, given), given)


def _instead(expected: str, found: object) -> str:
    return f"expected {expected}, found {type_of(found)}"
