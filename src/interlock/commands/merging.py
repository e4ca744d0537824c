"""Three-way merge: one patch of what was applied before, what is given, and what is stored.

The same rules as `kubectl apply` has for custom resources, and the same annotation, so that one
may be used after the other: fields that a file no longer has are removed, fields that
others wrote are left alone, lists are replaced whole.
"""

from __future__ import annotations

import json
from typing import Any

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
Document = dict[str, Any]


def with_last_applied(document: Document) -> Document:
    """The document with a record of itself, which the next apply compares with."""
    plain = without_last_applied(document)
    record = json.dumps(plain, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    metadata = plain.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), LAST_APPLIED: record}
    return {**plain, "metadata": {**metadata, "annotations": annotations}}


def without_last_applied(document: Document) -> Document:
    """The document as a person wrote it; kubectl writes an empty set of annotations too."""
    metadata = dict(document.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(LAST_APPLIED, None)
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def last_applied(stored: Document) -> Document:
    """What was applied before; empty when nothing was, or when the record cannot be read."""
    annotations = (stored.get("metadata") or {}).get("annotations") or {}
    try:
        record = json.loads(annotations.get(LAST_APPLIED) or "{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def three_way_patch(before: Document, given: Document, stored: Document) -> Document:
    """The merge patch that makes `stored` what is given, and removes what is given no more."""
    added = _additions(given, stored)
    removed = _removals(before, given, stored)
    return _joined(removed, added)


def _additions(given: Document, stored: Document) -> Document:
    """What is given and not stored so. A null in a file means "not there"."""
    patch: Document = {}
    for name, value in given.items():
        held = stored.get(name)
        if isinstance(value, dict) and isinstance(held, dict):
            if inner := _additions(value, held):
                patch[name] = inner
        elif value is None:
            if name in stored:
                patch[name] = None
        elif (
            name not in stored or held != value or isinstance(held, bool) != isinstance(value, bool)
        ):
            patch[name] = value
    return patch


def _removals(before: Document, given: Document, stored: Document) -> Document:
    """What was applied before, is given no more, and is still stored."""
    patch: Document = {}
    for name, value in before.items():
        if name not in stored:
            continue
        held, now = stored[name], given.get(name)
        if name not in given:
            patch[name] = None
            continue
        if not (isinstance(value, dict) and isinstance(now, dict) and isinstance(held, dict)):
            continue
        if inner := _removals(value, now, held):
            patch[name] = inner
    return patch


def _joined(first: Document, second: Document) -> Document:
    joined = dict(first)
    for name, value in second.items():
        held = joined.get(name)
        both = isinstance(held, dict) and isinstance(value, dict)
        joined[name] = _joined(held, value) if both and held is not None else value
    return joined
