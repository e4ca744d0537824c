"""The Jobs of Furiko's JobConfigs: a pod for each task, with its variables."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from interlock.importing.drafts import quoted
from interlock.importing.fields import Fields
from interlock.importing.templates import SERVER_FIELDS, grace_of, marks_of, pod_spec
from interlock.importing.variables import escaped, escaped_within
from interlock.resources.variables import JOB_NAMES

#: The variables that Furiko has, and which mean the same here.
_SAME = frozenset(
    {
        *("jobconfig.name", "jobconfig.namespace", "jobconfig.uid"),
        *(name for name in JOB_NAMES),
        *("task.name", "task.namespace", "task.retry_index", "task.index_num"),
    }
)
_REFERENCE = re.compile(r"(\$?)\$\{((?:jobconfig|job|task|option)\.[^${}]*)\}")
#: What becomes of a Job and of a pod that does not go, when nothing else is said.
_TTL, _FORCED_AFTER = "1h", "15m"


def job_template(given: Fields, options: Collection[str]) -> dict[str, Any]:
    """The template of a JobConfig; `options` are the names of its options."""
    metadata = given.within("metadata")
    metadata.pass_over("name", "namespace", *SERVER_FIELDS)
    marks = marks_of(metadata)
    metadata.tell_rest()
    spec = given.within("spec")
    given.require("spec", spec.data)
    given.tell_rest()
    made = _parallelism(spec.within("parallelism"))
    known = {*_SAME, *(f"option.{name}" for name in options), *_index_names(made)}
    pod = _pod(spec)
    made = {"pod": _pod_template(pod, known), **made, **_retries(spec)}
    pending = spec.number("taskPendingTimeoutSeconds")
    if pending not in (None, 900):
        made["pendingTimeout"] = f"{pending}s"
    made |= grace_of(pod.within("spec"))
    if not spec.flag("forbidTaskForceDeletion"):
        made["forceDeleteAfter"] = _FORCED_AFTER
    ttl = spec.number("ttlSecondsAfterFinished")
    made["ttlAfterFinished"] = _TTL if ttl is None else f"{ttl}s"
    spec.tell_rest()
    return {"metadata": marks, "spec": made} if marks else {"spec": made}


def _pod(spec: Fields) -> Fields:
    """The pod template, where versions of Furiko have it."""
    if spec.data.get("taskTemplate") is None and spec.data.get("task") is not None:
        task = spec.within("task")
        pod = task.within("template")
        task.tell_rest("it is of a version of Furiko before 0.2")
        task.require("template", pod.data)
        return pod
    template = spec.within("taskTemplate")
    spec.require("taskTemplate", template.data)
    pod = template.within("pod")
    template.require("pod", pod.data)
    template.tell_rest("Furiko runs pods alone")
    return pod


def _parallelism(given: Fields) -> dict[str, Any]:
    if not given.data:
        return {}
    parallelism: dict[str, Any] = {}
    if (count := given.number("withCount")) is not None:
        parallelism["count"] = count
    if keys := given.texts("withKeys"):
        parallelism["keys"] = keys
    matrix = given.within("withMatrix")
    if matrix.data:
        parallelism["matrix"] = {name: matrix.texts(name) for name in matrix.data}
    completion = given.text("completionStrategy")
    given.tell_rest()
    made: dict[str, Any] = {"parallelism": parallelism}
    if completion not in (None, "", "AllSuccessful"):
        made["completion"] = completion
    return made


def _index_names(made: dict[str, Any]) -> list[str]:
    parallelism = made.get("parallelism", {})
    keys = ["task.index_key"] if "keys" in parallelism else []
    return keys + [f"task.index_matrix.{name}" for name in parallelism.get("matrix", {})]


def _retries(spec: Fields) -> dict[str, Any]:
    attempts, delay = spec.number("maxAttempts"), spec.number("retryDelaySeconds")
    retries: dict[str, Any] = {}
    if attempts and attempts > 1:
        retries["limit"] = attempts - 1
        if delay:
            retries["delay"] = f"{delay}s"
    return {"retries": retries} if retries else {}


def _pod_template(pod: Fields, known: Collection[str]) -> dict[str, Any]:
    metadata = pod.within("metadata")
    metadata.pass_over("name", "namespace", *SERVER_FIELDS)
    marks = {
        part: {name: escaped(value) for name, value in found.items()}
        for part, found in marks_of(metadata).items()
    }
    metadata.tell_rest()
    given = pod.within("spec")
    pod.require("spec", given.data)
    pod.tell_rest()
    spec = escaped_within(pod_spec(given))
    for part in ("initContainers", "containers"):
        if given.data.get(part):
            spec[part] = [_container(one, known) for one in given.each(part)]
    return {"spec": spec, "metadata": marks} if marks else {"spec": spec}


def _container(given: Fields, known: Collection[str]) -> dict[str, Any]:
    """A container with our variables in the few texts that Furiko puts values in."""
    made = escaped_within(given.data)
    if isinstance(given.data.get("image"), str):
        made["image"] = _text(given, "image", given.data["image"], known)
    for part in ("command", "args"):
        words = given.data.get(part)
        if isinstance(words, list):
            made[part] = [
                _text(given, part, word, known) if isinstance(word, str) else word for word in words
            ]
    if isinstance(given.data.get("env"), list):
        for one, variable in zip(given.data["env"], made["env"], strict=True):
            if isinstance(one, dict) and isinstance(one.get("value"), str):
                variable["value"] = _text(given, "env", one["value"], known)
    return made


def _text(given: Fields, part: str, text: str, known: Collection[str]) -> str:
    """A text with Furiko's variables as ours, and all else to the letter."""
    made, last = "", 0
    for match in _REFERENCE.finditer(text):
        before, name = text[last : match.start()], match[2]
        last = match.end()
        made += escaped(before)
        if match[1] and name in known:
            why = "we write a plain ${ that way, and cannot put a $ before a value"
            given.note(part, f"{quoted(match[0])} loses its first $", why, f"${{{name}}}")
        made += ("" if name in known else match[1]) + _reference(given, part, name, known)
    return made + escaped(text[last:])


def _reference(given: Fields, part: str, name: str, known: Collection[str]) -> str:
    if name in known:
        return f"${{{name}}}"
    if name == "job.type":
        why = "a Job does not know whether a schedule or a person made it"
        given.note(part, "${job.type} is not carried over", why, "Scheduled")
        return "Scheduled"
    why = "Furiko puts nothing in its place, because it knows no such variable"
    given.note(part, f"{quoted(f'${{{name}}}')} is taken out", why, "the same")
    return ""
