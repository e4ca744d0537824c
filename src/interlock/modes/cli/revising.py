"""Changes that depend on what is stored, written only if nobody was faster."""

from __future__ import annotations

from typing import Any

from interlock.modes.cli.errors import AnswerError
from interlock.modes.cli.kinds import Kind
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: How often a change is worked out anew because somebody else wrote meanwhile.
_TRIES = 10

Item = dict[str, Any]


def revise(
    session: Session,
    kind: Kind,
    name: str,
    change: Callable[[Item], Item | None],
    *,
    dry_run: bool = False,
) -> Item:
    """Write the merge patch that `change` makes of what is stored; None leaves it as it is.

    It is asked again when the resource changed since it was read.
    """
    for tries_left in reversed(range(_TRIES)):
        item = session.api.get(kind, session.namespace, name)
        patch = change(item)
        if patch is None:
            return item
        metadata = {**patch.get("metadata", {}), "resourceVersion": version_of(item)}
        try:
            written: Item = session.api.patch(
                kind, session.namespace, name, {**patch, "metadata": metadata}, dry_run=dry_run
            )
            return written
        except AnswerError as error:
            if error.status != 409 or not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


def version_of(item: Item) -> str:
    """Which version of the resource this is."""
    return str(item["metadata"]["resourceVersion"])
