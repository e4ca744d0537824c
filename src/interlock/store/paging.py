"""Pagination: lists that are read in parts, all of them as they were at one version.

The whole list is held from its first part on, as references and not as copies. Few are held,
and none for long: a reader that comes too late is told to begin again.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from interlock.errors import BadRequestError, ExpiredError
from interlock.resources.metadata import Resource
from interlock.store.contract import Page, Selection

#: How many lists are held at a time.
HELD_LISTS = 32
#: For how long after it was last read.
HELD_FOR = timedelta(minutes=5)


class _Token(Struct, frozen=True, array_like=True):
    """Where to go on: in which list, at which version, after how many."""

    number: int
    version: int
    start: int


class _Held(Struct):
    """A list that someone is reading."""

    kind: str
    selection: Selection
    version: int
    items: Sequence[Resource]
    read_at: datetime


class Paging:
    """The lists that are being read in parts."""

    def __init__(self, *, held_lists: int = HELD_LISTS) -> None:
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._held_lists = held_lists
        self._last = 0

    def first(
        self,
        kind: str,
        selection: Selection,
        items: Sequence[Resource],
        *,
        version: int,
        limit: int | None,
        now: datetime,
    ) -> Page:
        """The first part of a list; the rest is held when there is one."""
        if not limit or limit >= len(items):
            return Page(tuple(items), version)
        self._expire(now)
        self._last += 1
        self._held[self._last] = _Held(kind, selection, version, items, now)
        if len(self._held) > self._held_lists:
            self._held.popitem(last=False)
        return self._part(self._last, 0, limit)

    def next(
        self, token: str, kind: str, selection: Selection, *, limit: int | None, now: datetime
    ) -> Page:
        """The part that the token leads to.

        Raises:
            BadRequestError: The token is none of ours, or belongs to another list.
            ExpiredError: The list is no longer held.
        """
        self._expire(now)
        place = _read_token(token)
        held = self._held.get(place.number)
        if held is None or held.version != place.version:
            oldest = min((held.version for held in self._held.values()), default=place.version + 1)
            raise ExpiredError(place.version, oldest)
        if (held.kind, held.selection) != (kind, selection) or place.start >= len(held.items):
            raise BadRequestError("the continue token belongs to another list")
        held.read_at = now
        self._held.move_to_end(place.number)
        return self._part(place.number, place.start, limit or len(held.items))

    def _part(self, number: int, start: int, limit: int) -> Page:
        held = self._held[number]
        end = start + limit
        items = tuple(held.items[start:end])
        if end >= len(held.items):
            # Held on to all the same: a part whose answer was lost is asked for again.
            return Page(items, held.version)
        token = _write_token(_Token(number, held.version, end))
        whole = not (held.selection.labels or held.selection.fields)
        return Page(items, held.version, token, len(held.items) - end if whole else None)

    def _expire(self, now: datetime) -> None:
        late = [number for number, held in self._held.items() if now - held.read_at > HELD_FOR]
        for number in late:
            del self._held[number]


def _write_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read_token(text: str) -> _Token:
    try:
        padded = text + "=" * (-len(text) % 4)
        token = msgspec.json.decode(base64.b64decode(padded, b"-_", validate=True), type=_Token)
    except (ValueError, msgspec.DecodeError) as error:
        raise BadRequestError(f"the continue token {text[:80]!r} cannot be read") from error
    if token.start < 1:
        raise BadRequestError(f"the continue token {text[:80]!r} cannot be read")
    return token
