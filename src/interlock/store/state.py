"""The acknowledged state: resources in memory, by kind and in the order of lists."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from interlock.resources.metadata import Key, Resource
from interlock.store.contract import EventType
from interlock.store.watching import Change

_DELETED = EventType.DELETED


class _Order:
    """The keys of one kind, put in order when that is asked for.

    A sort of what is nearly in order is quick, and most of what is written is never listed.
    """

    __slots__ = ("gone", "keys", "new")

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.new: list[Key] = []
        self.gone = False


class State:
    """The resources of every kind."""

    def __init__(self) -> None:
        self._held: dict[Key, Resource] = {}
        self._orders: dict[str, _Order] = {}
        #: The newest acknowledged version of a resource, or None.
        self.get = self._held.get

    def apply(self, changes: Iterable[Change]) -> None:
        """Take in changes that were acknowledged."""
        held = self._held
        for change in changes:
            key, event = change.key, change.event
            if event.type is _DELETED:
                if held.pop(key, None) is not None:
                    self._order_of(key[0]).gone = True
                continue
            assert event.resource is not None
            if key not in held:
                self._order_of(key[0]).new.append(key)
            held[key] = event.resource

    def _order_of(self, kind: str) -> _Order:
        order = self._orders.get(kind)
        if order is None:
            order = self._orders[kind] = _Order()
        return order

    def in_order(self, kind: str, namespace: str | None) -> Sequence[Resource]:
        """The resources of a kind, or those of a namespace, in the order of namespace and name."""
        keys = self._sorted(kind)
        if namespace is not None:
            start = bisect_left(keys, (kind, namespace, ""))
            # Nothing sorts between a namespace and this: it is where the next one begins.
            end = bisect_left(keys, (kind, namespace + "\0", ""), lo=start)
            keys = keys[start:end]
        return list(map(self._held.__getitem__, keys))

    def _sorted(self, kind: str) -> list[Key]:
        order = self._order_of(kind)
        if order.new:
            order.keys.extend(order.new)
            order.keys.sort()
        if order.gone:
            # A name that was taken away and put back stands there twice, side by side.
            order.keys = [key for key in dict.fromkeys(order.keys) if key in self._held]
        order.new, order.gone = [], False
        return order.keys

    def all(self) -> Iterable[Resource]:
        """The resources of all kinds, in no order."""
        return self._held.values()

    def __len__(self) -> int:
        return len(self._held)
