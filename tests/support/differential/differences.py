"""What may differ between the modes, each with its reason. All else is compared as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from interlock.resources.codec import from_builtins, to_builtins
from interlock.resources.job import (
    CREATOR_ANNOTATION,
    RELEASED_BY_ANNOTATION,
    REQUEUED_BY_ANNOTATION,
    JobSpec,
)
from interlock.resources.schedule import STOPPED_BY_ANNOTATION, SUSPENDED_BY_ANNOTATION
from support.differential.scenario import Object


class Allowed(NamedTuple):
    """A difference that is none."""

    #: Where it is, without the places in lists; a star stands for anything.
    path: str
    #: What is told instead; None tells nothing at all.
    told: Callable[[Any], Any] | None
    why: str


def _only_that_it_is_there(_: Any) -> str:
    return "..."


def _in_our_words(spec: Object) -> Any:
    """A specification as it is understood, without what it says by saying nothing."""
    return _said(from_builtins(spec, JobSpec))


def _said(value: Any) -> Any:
    if not isinstance(value, Struct):
        return to_builtins(value)
    told = ((field, getattr(value, field.name)) for field in fields(type(value)))
    return {field.encode_name: _said(one) for field, one in told if one != _usual(field)}


def _usual(field: FieldInfo) -> Any:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _by_number(attempts: list[Object]) -> list[Object]:
    return sorted(attempts, key=lambda one: (one["index"], one["attempt"]))


def _with_codes(attempts: list[Object]) -> list[Object]:
    return [_with_code(one) for one in _by_number(attempts)]


def _with_code(attempt: Object) -> Object:
    """A signal as the exit code that a shell, and every container, makes of it."""
    told = dict(attempt)
    if "signal" in told:
        told["exitCode"] = 128 + told.pop("signal")
    return told


def _plain_message(message: str) -> str:
    plain = re.sub(r"(could not be started):.*", r"\1", message)
    return re.sub(
        r"stopped by \S+|the time set for its end \(killAt\) has come", "stopped by somebody", plain
    )


def _without_uid(task_id: str) -> str:
    return task_id.partition("/")[2]


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "...", text)


ALLOWED = (
    Allowed("metadata.uid", None, "no two objects share one"),
    Allowed("metadata.resourceVersion", None, "each store counts for itself"),
    Allowed("metadata.creationVersion", None, "no API server tells at which version it made one"),
    Allowed("metadata.namespace", None, "a stage has a namespace of its own"),
    Allowed("metadata.managedFields", None, "only Kubernetes notes who wrote which field"),
    Allowed("metadata.*Timestamp", _only_that_it_is_there, "time"),
    Allowed(
        "metadata.finalizers",
        None,
        "a Job has ours from the beginning on a server that makes it; in a cluster, which takes it"
        " from anybody, from just before its first task",
    ),
    *(
        Allowed(
            f"metadata.annotations.{mark}",
            None,
            "a server knows by the kernel's word who asks; in a cluster that is the webhook's to"
            " say, and none stands before these stages",
        )
        for mark in (
            CREATOR_ANNOTATION,
            STOPPED_BY_ANNOTATION,
            SUSPENDED_BY_ANNOTATION,
            RELEASED_BY_ANNOTATION,
            REQUEUED_BY_ANNOTATION,
        )
    ),
    Allowed(
        "spec",
        _in_our_words,
        "a cluster keeps the spelling of what it is given, and adds defaults",
    ),
    Allowed("spec.process", None, "the same work is a process here and a pod there"),
    Allowed("spec.pod", None, "the same work is a process here and a pod there"),
    Allowed("status.*At", _only_that_it_is_there, "time"),
    Allowed("status.*.notBefore", _only_that_it_is_there, "time"),
    Allowed("status.*.lastTransitionTime", _only_that_it_is_there, "time"),
    Allowed("status.admission.sequence", _only_that_it_is_there, "a version of the store"),
    Allowed("status.admission.eviction.by", None, "as with the annotations above"),
    Allowed(
        "status.admission.grants.token",
        _only_that_it_is_there,
        "a version of the store; the order of the tokens of a lock is told apart",
    ),
    Allowed("status.execution.active", _by_number, "tasks that start at once are in any order"),
    Allowed(
        "status.execution.ended",
        _with_codes,
        "tasks that end at once are in any order; a container that a signal ended has an exit code",
    ),
    Allowed("status.execution.active.pid", None, "pods have none"),
    Allowed("status.execution.active.ready", None, "of a process nobody tells it"),
    Allowed("status.execution.active.message", None, "in the words of the runtime"),
    Allowed("status.execution.ended.message", None, "in the words of the runtime"),
    Allowed(
        "status.execution.message",
        _plain_message,
        "why something could not be started is told in the words of the runtime; and see who asks",
    ),
    Allowed("status.admission.message", _plain_message, "who asked: see the marks"),
    Allowed("env.INTERLOCK_JOB_UID", _only_that_it_is_there, "no two objects share one"),
    Allowed("env.INTERLOCK_TASK_ID", _without_uid, "no two objects share one"),
    Allowed("env.INTERLOCK_NAMESPACE", _only_that_it_is_there, "a stage has one of its own"),
    Allowed("env.INTERLOCK_FENCE*", _without_numbers, "a version of the store"),
)

#: Facts that are told of one mode alone.
ALLOWED_FACTS = {
    "is refused: DeletedBeforeStart": "a Job without our finalizer is gone as soon as it is deleted"
}

#: What no scenario is about, because there is nothing to compare it with.
NOT_COMPARED = {
    "spec.pendingTimeout": "a process starts or is refused at once; a pod may wait for a node",
    "spec.batchJob": "needs a cluster",
    "spec.forceDeleteAfter": "needs a node that can be lost",
    "Unknown, and its release": "a lost keeper and a lost node leave different things to prove",
}


def lines_of(told: Any, path: str = "", place: str = "") -> Iterator[str]:
    """A document as lines of `place: value`, without what may differ."""
    rule = next((rule for rule in ALLOWED if path and fnmatchcase(path, rule.path)), None)
    if rule is None:
        yield from _flat(told, path, place)
    elif rule.told is not None:
        yield from _flat(rule.told(told), path, place)


def _flat(told: Any, path: str, place: str) -> Iterator[str]:
    if isinstance(told, dict):
        for name, value in sorted(told.items()):
            yield from lines_of(value, f"{path}.{name}".removeprefix("."), f"{place}.{name}")
    elif isinstance(told, list):
        for at, value in enumerate(told):
            yield from _flat(value, path, f"{place}[{at}]")
    else:
        yield f"{place.removeprefix('.')}: {told}"
