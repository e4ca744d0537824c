"""Selections: what the API server selects for us, and what we must select ourselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from interlock.kube.store.codec import Happening, Undecodable
from interlock.kube.store.undecodable import Undecodables
from interlock.resources.door.stand_ins import stand_in_named
from interlock.resources.kinds import KINDS, ByKind, Kind
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.store.contract import Event, EventType, Selection
from interlock.store.rules import with_version
from interlock.store.selectors import Matcher, matcher_for

#: What API servers can select of any kind.
_SELECTABLE = frozenset({"metadata.name", "metadata.namespace"})

_CHANGES = {type.value: type for type in EventType}


def _of_theirs(kind: Kind) -> frozenset[str]:
    """What API servers can select of a kind of their own besides.

    Of our kinds we select by ourselves what their definitions make selectable: a field that is left
    out has its default here, and nothing there.
    """
    return frozenset() if kind.is_ours else frozenset(path[1:] for path in kind.selectable)


_OF_THEIRS: ByKind[frozenset[str]] = ByKind(_of_theirs)


def split_selection(kind: str, selection: Selection) -> tuple[dict[str, str], Matcher | None]:
    """The query that the server understands, and a test for the rest; None when there is none.

    Raises:
        BadRequestError: A selector that cannot be read.
    """
    matcher_for(kind, selection)
    query: dict[str, str] = {}
    if selection.labels.strip():
        query["labelSelector"] = selection.labels
    known = _SELECTABLE | _OF_THEIRS[kind]
    asked = [part.strip() for part in selection.fields.split(",") if part.strip()]
    theirs = [part for part in asked if part.replace("!", "=").partition("=")[0].strip() in known]
    if theirs:
        query["fieldSelector"] = ",".join(theirs)
    ours = [part for part in asked if part not in theirs]
    return query, matcher_for(kind, Selection(fields=",".join(ours))) if ours else None


class Sight(AsyncIterator[Sequence[Event]]):
    """Events of what happens, as someone sees it who knows only what matches.

    A resource that comes into sight is added and one that leaves it is deleted. What was in
    sight before the watch began is not known: such a resource that does not match now may be
    told as deleted although it was never seen, which watchers must bear.
    """

    def __init__(
        self,
        batches: AsyncIterator[Sequence[Happening]],
        matcher: Matcher | None,
        undecodables: Undecodables,
    ) -> None:
        self._batches = batches
        self._matcher = matcher
        self._undecodables = undecodables
        self._seen: dict[Key, bool] = {}

    async def __anext__(self) -> Sequence[Event]:
        # What is not seen is still told as a version, so that watchers know how far they are.
        return [self._event(happening) for happening in await anext(self._batches)]

    def _event(self, happening: Happening) -> Event:
        resource, version = happening.resource, happening.version
        if resource is None:
            return self._without_resource(happening)
        self._undecodables.clear(resource.key)
        type = _CHANGES[happening.type]
        if self._matcher is None:
            return Event(type, resource, version)
        return self._through(self._matcher, type, resource, version)

    def _through(
        self, matcher: Matcher, type: EventType, resource: Resource, version: int
    ) -> Event:
        key = resource.key
        was = self._seen.pop(key, type is not EventType.ADDED)
        if type is EventType.DELETED:
            return Event(type, resource, version) if was else _bookmark(version)
        matches = self._seen[key] = matcher(resource)
        if matches:
            return Event(type if was else EventType.ADDED, resource, version)
        if was:
            return Event(EventType.DELETED, with_version(resource, version), version)
        return _bookmark(version)

    def _without_resource(self, happening: Happening) -> Event:
        bad = happening.undecodable
        if bad is None:
            return _bookmark(happening.version)
        if happening.type == EventType.DELETED:
            self._undecodables.clear(bad.key)
            return Event(EventType.DELETED, stand_in(bad), bad.version)
        self._undecodables.note(bad)
        # Not told as deleted: a Job that cannot be read may still be doing something.
        return Event(EventType.BOOKMARK, None, bad.version, bad.key)


def _bookmark(version: int) -> Event:
    return Event(EventType.BOOKMARK, None, version)


def stand_in(bad: Undecodable) -> Resource:
    """Something with the name of an object that cannot be read, to tell that it is gone."""
    metadata = Metadata(
        name=bad.key.name,
        namespace=bad.key.namespace,
        uid=bad.uid,
        resource_version=str(bad.version),
    )
    return stand_in_named(KINDS[bad.key.kind].type, metadata)
