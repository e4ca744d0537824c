"""JSON of resources, made once for each version and shared by every answer and watch."""

from __future__ import annotations

from interlock.resources.codec import encode
from interlock.resources.metadata import Resource

#: Resources are kept alive by being held here, so both bound memory.
KEPT = 4096
LARGEST_BYTES = 16 * 1024


class Encodings:
    """The newest encodings, found by the very object they were made of.

    Resources are frozen and the store hands the same one to everybody, so identity is enough,
    and an object that is held here cannot lend its identity to another.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._made: dict[int, tuple[Resource, bytes]] = {}

    def of(self, resource: Resource) -> bytes:
        """The JSON of a resource; kept, because it will be asked for again."""
        found = self._made.get(id(resource))
        if found is not None:
            return found[1]
        made = encode(resource)
        if len(made) > LARGEST_BYTES:
            return made
        if len(self._made) >= self._kept:
            del self._made[next(iter(self._made))]
        self._made[id(resource)] = (resource, made)
        return made

    def once(self, resource: Resource) -> bytes:
        """The JSON of a resource in a list: taken when it is there, not kept when it is not."""
        found = self._made.get(id(resource))
        return found[1] if found is not None else encode(resource)
