"""The watch hub: tells watchers what was committed, in batches, and waits for none of them.

The hub remembers the newest changes, so that a watch can resume from a version it has seen.
A watcher that falls too far behind is told so, and forgotten.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Sequence
from operator import attrgetter

from msgspec import Struct

from interlock.errors import ExpiredError
from interlock.resources.metadata import Key, Resource
from interlock.store.contract import Event, EventType
from interlock.store.rules import with_version
from interlock.store.selectors import Matcher


class Change(Struct, frozen=True, gc=False):
    """One committed write: what the resource was before, and the event that tells of it."""

    key: Key
    before: Resource | None
    event: Event
    version: int


_VERSION = attrgetter("version")

#: How many changes are remembered to resume from.
REMEMBERED = 16_384
#: How many changes beyond that pile up before they are let go of, all at once.
SLACK = 512
#: How many events may wait for a watcher.
BUFFERED = 32_768
#: A watcher that saw nothing for so many versions is told how far the store is.
BOOKMARK_EVERY = 1_000


def seen_through(matcher: Matcher, change: Change) -> Event | None:
    """The event as someone sees it who knows only the resources that match.

    A resource that comes into sight is added and one that leaves it is deleted, whatever
    happened to the resource itself.
    """
    event, before = change.event, change.before
    resource = event.resource
    assert resource is not None
    was = before is not None and matcher(before)
    if event.type is EventType.DELETED:
        return event if was else None
    if matcher(resource):
        if was or before is None:
            return event
        return Event(EventType.ADDED, resource, event.version)
    if was:
        assert before is not None
        return Event(EventType.DELETED, with_version(before, event.version), event.version)
    return None


class Watcher(AsyncIterator[Sequence[Event]]):
    """One watch: events wait here until they are asked for."""

    def __init__(self, kind: str, matcher: Matcher | None, since: int, limit: int) -> None:
        self.kind = kind
        self.matcher = matcher
        #: The newest version that was put before the watcher.
        self.seen = since
        self._limit = limit
        self._events: list[Event] = []
        self._ended: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def __anext__(self) -> Sequence[Event]:
        while not self._events:
            if self._ended is not None:
                raise self._ended
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        events, self._events = self._events, []
        return events

    def offer(self, events: Iterable[Event]) -> None:
        """Put events in line; give up on the watcher when the line is too long."""
        if self._ended is not None:
            return
        line = self._events
        line.extend(events)
        if not line:
            return
        self.seen = line[-1].version
        if len(line) > self._limit:
            self._events = []
            self.end(ExpiredError(line[0].version, self.seen))
            return
        self._wake()

    def offer_changes(self, changes: Sequence[Change]) -> None:
        """Put in line what the watcher would see of the changes."""
        matcher = self.matcher
        if matcher is None:
            self.offer(change.event for change in changes)
        else:
            seen = (seen_through(matcher, change) for change in changes)
            self.offer(event for event in seen if event is not None)

    def bookmark_after(self, versions: int, upto: int) -> None:
        """Tell how far the store is when nothing was told for so many versions."""
        if upto - self.seen >= versions:
            self.offer((Event(EventType.BOOKMARK, None, upto),))

    def end(self, why: Exception) -> None:
        """Let the watcher have what is in line, and then this."""
        if self._ended is None:
            self._ended = why
            self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Hub:
    """Everyone who watches, and the newest changes for those who come back."""

    def __init__(
        self, version: int = 0, *, remembered: int = REMEMBERED, buffered: int = BUFFERED
    ) -> None:
        #: The newest version that was published.
        self.version = version
        #: Everything after this version is remembered.
        self.floor = version
        self._remembered = remembered
        self._buffered = buffered
        self._slack = min(SLACK, max(1, remembered // 4))
        self._changes: list[Change] = []
        self._watchers: dict[str, dict[Watcher, None]] = {}
        #: Nobody needs a bookmark before this version.
        self._bookmark_at = version

    def publish(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Remember changes and tell everyone; returns the changes that were forgotten for them."""
        self.version = changes[-1].version
        self._changes.extend(changes)
        if self._watchers:
            self._tell(changes)
        if len(self._changes) >= self._remembered + self._slack:
            return self._forget(len(self._changes) - self._remembered)
        return ()

    def _tell(self, changes: Sequence[Change]) -> None:
        of_kind: dict[str, list[Change]] = {}
        for change in changes:
            of_kind.setdefault(change.key.kind, []).append(change)
        for kind, changed in of_kind.items():
            for watcher in self._watchers.get(kind, ()):
                watcher.offer_changes(changed)
        if self.version >= self._bookmark_at:
            self._send_bookmarks()

    def _send_bookmarks(self) -> None:
        """Tell those who saw nothing for long how far the store is, and find out who is next."""
        everybody = [watcher for watchers in self._watchers.values() for watcher in watchers]
        for watcher in everybody:
            watcher.bookmark_after(BOOKMARK_EVERY, self.version)
        earliest = min((watcher.seen for watcher in everybody), default=self.version)
        self._bookmark_at = earliest + BOOKMARK_EVERY

    def _forget(self, count: int) -> Sequence[Change]:
        forgotten = self._changes[:count]
        del self._changes[:count]
        self.floor = forgotten[-1].version
        return forgotten

    def remember(self, changes: Sequence[Change], *, floor: int, version: int) -> Sequence[Change]:
        """Begin with changes of an earlier run; returns those that are too many."""
        self.version = version
        self.floor = floor
        self._changes = list(changes)
        spare = len(self._changes) - self._remembered
        return self._forget(spare) if spare > 0 else ()

    def join(self, kind: str, matcher: Matcher | None, since: int) -> Watcher:
        """A watcher that gets everything after `since`; a bookmark ends what it missed.

        Raises:
            ExpiredError: `since` is no longer remembered, or not of this store.
        """
        if not self.floor <= since <= self.version:
            raise ExpiredError(since, self.floor)
        watcher = Watcher(kind, matcher, since, self._buffered)
        start = bisect_right(self._changes, since, key=_VERSION)
        missed = [change for change in self._changes[start:] if change.key.kind == kind]
        if missed:
            watcher.offer_changes(missed)
        if since < self.version:
            # Who comes back is told when everything was told that it missed.
            watcher.offer((Event(EventType.BOOKMARK, None, self.version),))
        self._watchers.setdefault(kind, {})[watcher] = None
        self._bookmark_at = min(self._bookmark_at, since + BOOKMARK_EVERY)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        watchers = self._watchers.get(watcher.kind, {})
        watchers.pop(watcher, None)
        if not watchers:
            self._watchers.pop(watcher.kind, None)

    def tick(self) -> None:
        """Send a bookmark to everyone who does not know how far the store is."""
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.bookmark_after(1, self.version)

    def close(self) -> None:
        """End every watch."""
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.end(StopAsyncIteration())
