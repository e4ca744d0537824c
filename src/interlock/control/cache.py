"""The cache of a kind: the newest known version of every resource, by key or by index.

A cache may be behind the store; it is never ahead of it. `note` lets the loop put in what a
write has just returned, so that a room sees its own writes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from interlock.resources.metadata import Key, Resource

R = TypeVar("R", bound=Resource)

#: Gives the values under which a resource is found in an index.
Indexer = Callable[[R], Iterable[str]]


class Cache(Generic[R]):
    """Resources of one kind, by key and by named indexes."""

    def __init__(self, kind: str, indexes: Mapping[str, Indexer[R]] | None = None) -> None:
        self.kind = kind
        self._indexers = dict(indexes or {})
        self._held: dict[Key, R] = {}
        self._found: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._indexers}
        #: Versions of resources that were seen deleted, so that an old event cannot revive them.
        self._gone: dict[Key, int] = {}
        #: The version up to which the cache has heard everything.
        self.version = 0
        #: What is stored and cannot be read: not held, or held as it was before, and never gone.
        self.unreadable: set[Key] = set()

    def get(self, key: Key) -> R | None:
        """The newest known version, or None when there is none."""
        return self._held.get(key)

    def by(self, index: str, value: str) -> Iterator[R]:
        """The resources that the index holds under the value, in the order they got there."""
        held = self._held
        return (held[key] for key in tuple(self._found[index].get(value, ())))

    def count(self, index: str, value: str) -> int:
        """How many resources the index holds under the value."""
        return len(self._found[index].get(value, ()))

    def __iter__(self) -> Iterator[R]:
        return iter(tuple(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)

    def has_seen_go(self, resource: R) -> bool:
        """Whether what a write returned was removed since: all up to it was heard, and it is not
        there. An answer may take longer than the events that came after it.
        """
        return resource.key not in self._held and resource.version <= self.version

    def note(self, resource: R) -> R | None:
        """Hold a resource unless something newer is known; returns what was held before.

        Returns the resource itself when it is not news.
        """
        key, version = resource.key, resource.version
        before = self._held.get(key)
        if before is not None and before.version >= version:
            return resource
        if self._gone.get(key, 0) >= version:
            return resource
        self._gone.pop(key, None)
        self.unreadable.discard(key)
        self._held[key] = resource
        self._reindex(key, before, resource)
        return before

    def drop(self, key: Key, version: int) -> R | None:
        """Let go of a resource that was deleted at `version`; returns what was held."""
        before = self._held.get(key)
        if before is not None and before.version > version:
            return None
        self._gone[key] = max(version, self._gone.get(key, 0))
        self.unreadable.discard(key)
        if before is not None:
            del self._held[key]
            self._reindex(key, before, None)
        return before

    def settle(self, version: int) -> None:
        """Everything up to `version` was heard: older deletions need not be remembered."""
        self.version = max(self.version, version)
        if self._gone:
            self._gone = {key: v for key, v in self._gone.items() if v > version}

    def _reindex(self, key: Key, before: R | None, after: R | None) -> None:
        for name, values_of in self._indexers.items():
            index = self._found[name]
            was = tuple(values_of(before)) if before is not None else ()
            now = tuple(values_of(after)) if after is not None else ()
            if was == now:
                continue
            # Once each: a bad object may name the same thing twice. Of a long record most stays.
            old, new = dict.fromkeys(was), dict.fromkeys(now)
            for value in old:
                if value not in new:
                    under = index[value]
                    del under[key]
                    if not under:
                        del index[value]
            for value in new:
                if value not in old:
                    index.setdefault(value, {})[key] = None
