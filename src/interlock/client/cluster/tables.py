"""Tables of our kinds as our own server would make them.

An API server can only show values that stand somewhere in an object. How many tasks have succeeded,
or what a Job waits for in words, has to be worked out.
"""

from __future__ import annotations

import json
from datetime import datetime

from msgspec import ValidationError

from interlock.client.kinds import Kind
from interlock.kube.store.codec import WIRES
from interlock.resources.kinds import columns_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def with_own_cells(kind: Kind, table: dict[str, Any], now: datetime) -> dict[str, Any]:
    """A table whose rows hold their objects, with our cells.

    An object that cannot be read keeps those of the server.
    """
    columns = columns_of(kind.name)
    names = [str(each["name"]).lower() for each in table.get("columnDefinitions") or []]
    if names != [column.name.lower() for column in columns]:
        # The definitions are of another version: their columns are their own.
        return table
    for row in table.get("rows") or []:
        try:
            resource = WIRES[kind.name].one(json.dumps(row["object"]).encode())
        except ValidationError:
            continue
        row["cells"] = [column.value(resource, now) for column in columns]
    return table
