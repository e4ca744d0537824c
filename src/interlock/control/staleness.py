"""Staleness: which keys wait for a cache to catch up with what the store has said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.control.cache import Cache
from interlock.control.queue import Item
from interlock.control.reconciler import Change
from interlock.errors import AlreadyExistsError, ConflictError, NotFoundError
from interlock.resources.metadata import Key

#: The store refused a write because what was decided on is no longer so.
StaleError = ConflictError | NotFoundError | AlreadyExistsError


class Staleness:
    """Deciding again on an old cache would only fail again; this knows when it is worthwhile."""

    def __init__(self, caches: Mapping[str, Cache[Any]]) -> None:
        self._caches = caches
        self._waiting: dict[Key, dict[Item, None]] = {}
        self._for: dict[Item, Key] = {}

    def caught_up(self, error: StaleError) -> bool:
        """Whether the cache already shows what made the store refuse."""
        cache = self._caches.get(error.key.kind)
        if cache is None:
            return False
        held = cache.get(error.key)
        match error:
            case NotFoundError():
                return held is None
            case AlreadyExistsError():
                return held is not None
            case ConflictError(found=found):
                return held is not None and found.isdigit() and held.version >= int(found)

    def wait(self, item: Item, error: StaleError) -> None:
        """Have an item woken by the next news of what it failed on."""
        self.settled(item)
        self._waiting.setdefault(error.key, {})[item] = None
        self._for[item] = error.key

    def heard(self, change: Change) -> tuple[Item, ...]:
        """The items that waited for this change."""
        if not self._waiting:
            return ()
        resource = change.after or change.before
        assert resource is not None
        items = tuple(self._waiting.pop(resource.key, ()))
        for item in items:
            del self._for[item]
        return items

    def settled(self, item: Item) -> None:
        """An item waits no longer."""
        if not self._for or (key := self._for.pop(item, None)) is None:
            return
        waiting = self._waiting[key]
        del waiting[item]
        if not waiting:
            del self._waiting[key]
