"""Requests: the Job that asks a server for an operation, checked before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from interlock.errors import Problem
from interlock.resources.naming import GENERATED, MAX_JOB_NAME, cut_name
from interlock.resources.rules import MAX_LINE
from interlock.resources.steps import TARGET_NAME, TARGET_PATH
from interlock.sdk.app_errors import ArgumentsError, NotJsonError
from interlock.sdk.declared import OperationDeclaration, filled, line_of, shown_value
from interlock.sdk.options import duration_of
from interlock.sdk.recording import step_of
from interlock.sdk.values import as_tree

_SEGMENT = re.compile(TARGET_NAME)
_LONGEST_PATH = 200


def manifest_of(
    operation: OperationDeclaration,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    asked: Mapping[str, Any],
) -> dict[str, Any]:
    """The Job that asks for an operation.

    Raises:
        ArgumentsError: The operation cannot be called so.
    """
    operation.check()
    bound = operation.signature.bind(args, kwargs)
    tree = {name: _tree_of(operation, name, value) for name, value in bound.items()}
    # What a worker will do with it, so that it is refused here and not there.
    typed = operation.signature.typed(tree)
    python: dict[str, Any] = {"function": operation.name, "args": tree}
    said = {**operation.spec, **asked}
    if said["queue"]:
        python["queue"] = said["queue"]
    spec: dict[str, Any] = {"python": python, "type": said["type"] or operation.name}
    if said["target"] is not None:
        spec["target"] = _target(operation, said["target"], typed)
    for field in ("title", "description", "owner"):
        if said[field]:
            spec[field] = line_of(filled(said[field], typed))[:MAX_LINE]
    if said["steps_at_once"] != 1:
        spec["stepsAtOnce"] = said["steps_at_once"]
    if said["max_interruptions"] is not None:
        spec["maxInterruptions"] = said["max_interruptions"]
    if said["timeout"] is not None and operation.step is None:
        spec["timeout"] = str(duration_of(said["timeout"], f"operation {operation.name}: timeout"))
    for field, path in (("parent", "parent"), ("idempotency_key", "idempotencyKey")):
        if field in asked:
            spec[path] = asked[field]
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": _metadata(operation.name, asked.get("name")),
        "spec": spec,
    }


def _tree_of(operation: OperationDeclaration, name: str, value: Any) -> Any:
    what = operation.signature.what
    if step_of(value) is not None:
        raise ArgumentsError(what, [Problem(name, f"{value!r} is for steps alone")])
    try:
        return as_tree(value, name)
    except NotJsonError as error:
        raise ArgumentsError(what, [Problem(name, str(error), type(value).__name__)]) from None


def _metadata(name: str, given: str | None) -> dict[str, str]:
    if given is not None:
        return {"name": given}
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "operation"
    return {"generateName": f"{cut_name(plain, MAX_JOB_NAME - GENERATED - 1)}-"}


def _target(
    operation: OperationDeclaration, given: str | Mapping[str, str], args: Mapping[str, Any]
) -> dict[str, str]:
    """Where what the operation is done to is; an argument never leads out of its place there."""
    templates = {"path": given} if isinstance(given, str) else dict(given)
    path = templates["path"]
    what = operation.signature.what
    for name, value in args.items():
        if f"{{{name}}}" in path and not _SEGMENT.fullmatch(filled(f"{{{name}}}", args)):
            message = (
                f"is a part of the target {path}: expected letters, digits, '.', '_', ':', '-'"
            )
            raise ArgumentsError(what, [Problem(name, message, shown_value(value))])
    made = {field: line_of(filled(template, args)) for field, template in templates.items()}
    if not TARGET_PATH.fullmatch(made["path"]) or len(made["path"]) > _LONGEST_PATH:
        message = f"expected names with '/' between them, at most {_LONGEST_PATH} characters"
        raise ArgumentsError(what, [Problem("target", message, made["path"])])
    return made
