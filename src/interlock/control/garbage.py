"""Garbage collection: dependents go with their owners, the contents with their namespace.

Every resource sees to itself, so that thousands go at once: a dependent deletes itself or drops
its owner, and an owner that is held back goes when nothing is left that holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import Enum, auto
from typing import Any

from msgspec import Struct

from interlock.control.cache import Cache, Indexer
from interlock.control.live_reads import LiveReads, names
from interlock.control.reconciler import Change
from interlock.resources.actions import (
    Action,
    AddFinalizer,
    Decision,
    DeleteResource,
    DropOwner,
    RemoveFinalizer,
)
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Key, Metadata, OwnerReference, Resource
from interlock.store.rules import CONTENTS_FINALIZER, FOREGROUND_FINALIZER, ORPHAN_FINALIZER

_OURS = (CONTENTS_FINALIZER, ORPHAN_FINALIZER, FOREGROUND_FINALIZER)


def _owner_uids(resource: Resource) -> Iterable[str]:
    owners = resource.metadata.owner_references
    return tuple(owner.uid for owner in owners) if owners else ()


def _namespace_of(resource: Resource) -> Iterable[str]:
    return (resource.metadata.namespace,)


#: The indexes that every cache given to `Garbage` must have.
INDEXES: Mapping[str, Indexer[Any]] = {"owner": _owner_uids, "namespace": _namespace_of}


class OwnerState(Enum):
    """What is known of an owner that a resource names."""

    #: It is there, or nothing can be said about its kind.
    PRESENT = auto()
    #: It is going, and gives its dependents up first.
    ORPHANING = auto()
    #: It is going, and waits for its dependents.
    WAITING = auto()
    #: It is proven gone for good.
    GONE = auto()
    #: The cache does not show it, and that may be the cache's fault.
    UNPROVEN = auto()


class GarbageView(Struct, frozen=True):
    """All that matters for whether a resource goes."""

    resource: Resource
    #: What is known of each owner, by its uid.
    owners: tuple[tuple[str, OwnerState], ...] = ()
    #: Whether anything that the cache shows names this resource as its owner.
    has_dependents: bool = False
    #: Whether nothing holds this resource back any more, given that it is going.
    is_free: bool = False
    #: Whether the namespace is going, and nothing speaks against going with it now.
    goes_with_namespace: bool = False


def decide(view: GarbageView, now: datetime) -> Decision:  # noqa: ARG001  # One shape for all rooms.
    """Delete what nobody wants any more, and let go what nothing holds back.

    A resource that is going is only ever let go. One that has an owner left is never deleted
    because of another. An owner that is merely not seen counts as there until it is proven gone.
    """
    resource = view.resource
    if resource.is_going:
        return _let_go(view)
    if view.goes_with_namespace:
        return Decision((DeleteResource(resource),), reason="its namespace is being deleted")
    states = {state for _, state in view.owners}
    if OwnerState.ORPHANING in states:
        return _drop(view, (OwnerState.ORPHANING,), "its owner gave it up")
    if OwnerState.PRESENT in states:
        return _drop(view, (OwnerState.GONE, OwnerState.WAITING), "it has another owner")
    if OwnerState.UNPROVEN in states or not states:
        return Decision()
    if OwnerState.WAITING in states:
        return _delete_for_owner(view)
    return Decision((DeleteResource(resource),), reason="its owners are gone")


def _let_go(view: GarbageView) -> Decision:
    held = view.resource.metadata.finalizers
    if not view.is_free:
        return Decision()
    # One at a time: what is proven for one of them need not hold for the next.
    for finalizer in _OURS:
        if finalizer in held:
            return Decision(
                (RemoveFinalizer(view.resource, finalizer),), reason="nothing holds it back"
            )
    return Decision()


def _drop(view: GarbageView, states: tuple[OwnerState, ...], reason: str) -> Decision:
    drops = tuple(DropOwner(view.resource, uid) for uid, state in view.owners if state in states)
    return Decision(drops, reason=reason) if drops else Decision()


def _delete_for_owner(view: GarbageView) -> Decision:
    """Delete a resource that its owner waits for; its own dependents go before it."""
    actions: tuple[Action, ...] = (DeleteResource(view.resource),)
    if view.has_dependents:
        actions = (AddFinalizer(view.resource, FOREGROUND_FINALIZER), *actions)
    return Decision(actions, reason="its owner waits for it to go")


class Garbage:
    """The room that deletes what has no owner left. It works on any kind that has a cache."""

    room = "garbage"

    def __init__(self, caches: Mapping[str, Cache[Any]], proofs: LiveReads) -> None:
        self._caches = caches
        self._proofs = proofs

    def wakes(self, change: Change) -> Iterable[Key]:
        """The resource itself, what depends on it or is in it, and what waits for it to go."""
        before, after = change.before, change.after
        if after is None:
            assert before is not None
            yield from self._beneath(before)
            yield from self._above(before)
            return
        if before is None or _moved(before.metadata, after.metadata):
            if self._concerns(after):
                yield after.key
            if after.is_going:
                yield from self._beneath(after)
            if before is not None:
                yield from self._above(before)
        elif self._namespace_is_going(after):
            # What kept it may have been in its status.
            yield after.key

    def look(self, key: Key, now: datetime) -> Decision:
        """Read the resource, its owners, and what holds it back; decide."""
        cache = self._caches.get(key.kind)
        resource = cache.get(key) if cache is not None else None
        if resource is None:
            return Decision()
        return decide(self._read_view(resource), now)

    def _read_view(self, resource: Resource) -> GarbageView:
        if resource.is_going:
            return GarbageView(resource, is_free=self._is_free(resource))
        owners = resource.metadata.owner_references
        return GarbageView(
            resource,
            owners=tuple((owner.uid, self._state_of(owner, resource)) for owner in owners),
            has_dependents=any(True for _ in self._dependents(resource)),
            goes_with_namespace=self._goes_with_namespace(resource),
        )

    def _state_of(self, owner: OwnerReference, dependent: Resource) -> OwnerState:
        key = self._key_of(owner, dependent)
        if key is None:
            return OwnerState.PRESENT
        held = self._caches[key.kind].get(key)
        if held is None or held.metadata.uid != owner.uid:
            gone = self._proofs.owner_is_gone(key, owner.uid, dependent)
            return OwnerState.GONE if gone else OwnerState.UNPROVEN
        if held.is_going and ORPHAN_FINALIZER in held.metadata.finalizers:
            return OwnerState.ORPHANING
        if held.is_going and FOREGROUND_FINALIZER in held.metadata.finalizers:
            return OwnerState.WAITING
        return OwnerState.PRESENT

    def _key_of(self, owner: OwnerReference, dependent: Resource) -> Key | None:
        """Where an owner would be; None when it is of a kind that is not kept here."""
        kind = KINDS.get(owner.kind)
        if kind is None or owner.kind not in self._caches or kind.api_version != owner.api_version:
            return None
        namespace = dependent.metadata.namespace if kind.namespaced else ""
        if kind.namespaced and not namespace:
            return None
        return Key(owner.kind, namespace, owner.name)

    def _is_free(self, resource: Resource) -> bool:
        """Whether the first of our finalizers has done its work."""
        finalizers = resource.metadata.finalizers
        if CONTENTS_FINALIZER in finalizers:
            empty = next(self._contents(resource), None) is None
            return empty and self._proofs.namespace_is_empty(resource)
        if ORPHAN_FINALIZER in finalizers:
            alone = next(self._dependents(resource), None) is None
            return alone and self._proofs.has_no_dependents(resource, blocking=False)
        if FOREGROUND_FINALIZER in finalizers:
            alone = not any(self._blocks(each, resource) for each in self._dependents(resource))
            return alone and self._proofs.has_no_dependents(resource, blocking=True)
        return False

    def _blocks(self, dependent: Resource, owner: Resource) -> bool:
        """Whether an owner must wait for a dependent: not in a ring, where nobody would ever go."""
        return names(dependent, owner.metadata.uid, blocking=True) and not self._waits_for(
            dependent, owner
        )

    def _waits_for(self, resource: Resource, other: Resource) -> bool:
        reached: dict[Key, None] = {}
        ahead = [resource]
        while ahead:
            each = ahead.pop()
            if each.key == other.key:
                return True
            waits = each.is_going and FOREGROUND_FINALIZER in each.metadata.finalizers
            if waits and each.key not in reached:
                reached[each.key] = None
                ahead.extend(self._dependents(each))
        return False

    def _goes_with_namespace(self, resource: Resource) -> bool:
        """Whether to go because the namespace goes. A lock is kept while a Job may hold it."""
        if not self._namespace_is_going(resource):
            return False
        return not KINDS[resource.kind].is_needed(resource)

    def _namespace_is_going(self, resource: Resource) -> bool:
        namespace = resource.metadata.namespace
        if not namespace:
            return False
        held = self._caches["Namespace"].get(Key("Namespace", "", namespace))
        return held is not None and bool(held.is_going)

    def _concerns(self, resource: Resource) -> bool:
        return bool(
            resource.metadata.owner_references
            or (resource.is_going and any(f in _OURS for f in resource.metadata.finalizers))
            or self._namespace_is_going(resource)
        )

    def _dependents(self, owner: Resource) -> Iterator[Resource]:
        for cache in self._caches.values():
            yield from cache.by("owner", owner.metadata.uid)

    def _contents(self, namespace: Resource) -> Iterator[Resource]:
        if namespace.kind == "Namespace":
            for cache in self._caches.values():
                yield from cache.by("namespace", namespace.metadata.name)

    def _beneath(self, resource: Resource) -> Iterator[Key]:
        for each in self._dependents(resource):
            yield each.key
        for each in self._contents(resource):
            yield each.key

    def _above(self, resource: Resource) -> Iterator[Key]:
        """What may have waited for a resource: its owners and its namespace, if they are going."""
        for owner in resource.metadata.owner_references:
            key = self._key_of(owner, resource)
            if key is not None and (held := self._caches[key.kind].get(key)) and held.is_going:
                yield key
        if self._namespace_is_going(resource):
            yield Key("Namespace", "", resource.metadata.namespace)


def _moved(before: Metadata, after: Metadata) -> bool:
    """Whether anything changed that this room cares for; most changes are to a status."""
    return (
        before.owner_references != after.owner_references
        or before.finalizers != after.finalizers
        or before.deletion_timestamp != after.deletion_timestamp
    )
