"""Apply: make what is stored what a document says, and leave alone what others wrote.

A document is data of a file, not a resource yet: what it does not say, and what it says no more,
is told from what is stored by the three-way merge, and only then it is read.
"""

from __future__ import annotations

from typing import Any

from interlock.commands.change import Change, Write, changed, named, unchanged
from interlock.commands.merging import (
    Document,
    last_applied,
    three_way_patch,
    with_last_applied,
    without_last_applied,
)
from interlock.resources.codec import to_builtins
from interlock.resources.door.patches import merge_patch
from interlock.resources.door.validation import read_resource
from interlock.resources.job import JOB_FINALIZER
from interlock.resources.metadata import Resource

#: What the server writes, and no apply changes.
_KEPT_BY_SERVER = (
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
    "creationVersion",
    "managedFields",
)


def apply(document: Document, kind: str, stored: Resource | None) -> Change:
    """Create or change; of a status in the document nothing is taken.

    Raises:
        InvalidError: The document, or what would come of it, is not good.
    """
    given = with_last_applied({name: part for name, part in document.items() if name != "status"})
    if stored is None:
        made, warnings = read_resource(given, kind)
        return Change(told=(f"{named(made)} created",), writes=(Write(made),), warnings=warnings)
    plain: Document = to_builtins(stored)
    patch = three_way_patch(last_applied(plain), given, plain)
    if not patch:
        return unchanged(stored, "unchanged")
    after, warnings = read_resource(merge_patch(plain, patch), kind, stored=stored)
    # A file may say what is the default anyway, or what was stored in another way: then there is
    # nothing to change but the record of what was applied.
    same = written(to_builtins(after)) == written(plain)
    change = changed(stored, after, "unchanged" if same else "configured")
    return Change(told=change.told, writes=change.writes, shown=change.shown, warnings=warnings)


def written(item: dict[str, Any] | None) -> dict[str, Any]:
    """The part of a resource that a person writes: what `apply` and `diff` tell apart."""
    if item is None:
        return {}
    plain = without_last_applied(item)
    metadata = {k: v for k, v in plain["metadata"].items() if k not in _KEPT_BY_SERVER}
    metadata["finalizers"] = [one for one in metadata.get("finalizers", ()) if one != JOB_FINALIZER]
    kept = {name: value for name, value in metadata.items() if value}
    return {**{k: v for k, v in plain.items() if k != "status"}, "metadata": kept}
