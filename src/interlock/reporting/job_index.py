"""The job index: all Jobs in the order of creation, and by state, kept change by change.

A page of a list is found by a search and a short walk, however many Jobs there are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from interlock.control.reconciler import Change
from interlock.resources.job import Job
from interlock.resources.metadata import Key

_NEVER = datetime.min.replace(tzinfo=UTC)


class Entry(NamedTuple):
    """Where a Job stands in the order of creation."""

    created_at: datetime
    uid: str


class JobIndex:
    """The order of creation, of all Jobs and of the Jobs in each state."""

    def __init__(self) -> None:
        self._all: list[Entry] = []
        self._by_state: dict[str, list[Entry]] = {}
        self._keys: dict[str, Key] = {}
        #: Where each Job was put, so that it is found again after it changed.
        self._known: dict[str, tuple[Entry, str]] = {}

    def observe(self, change: Change) -> None:
        """Take in a change of any resource; one that is told twice changes nothing."""
        before = change.before if isinstance(change.before, Job) else None
        after = change.after if isinstance(change.after, Job) else None
        if before is not None and (after is None or before.metadata.uid != after.metadata.uid):
            self._remove(before.metadata.uid)
        if after is not None:
            self._put(after)

    def key_of(self, uid: str) -> Key | None:
        """The Job with this uid, when there is one."""
        return self._keys.get(uid)

    def walk(self, states: tuple[str, ...], *, after: Entry | None, newest: bool) -> Iterator[Key]:
        """The Jobs after a place, newest or oldest first, of some states or of all."""
        lists = [self._by_state.get(state, []) for state in states] if states else [self._all]
        entries = lists[0] if len(lists) == 1 else sorted(entry for each in lists for entry in each)
        return (self._keys[entry.uid] for entry in _from(entries, after, newest))

    def count(self, state: str) -> int:
        """How many Jobs are in a state."""
        return len(self._by_state.get(state, ()))

    def __len__(self) -> int:
        return len(self._all)

    def _put(self, job: Job) -> None:
        entry, state = entry_of(job), job.status.phase.value
        known = self._known.get(entry.uid)
        if known == (entry, state):
            return
        if known is None:
            insort(self._all, entry)
            self._keys[entry.uid] = job.key
        else:
            _take_out(self._by_state[known[1]], entry)
        insort(self._by_state.setdefault(state, []), entry)
        self._known[entry.uid] = (entry, state)

    def _remove(self, uid: str) -> None:
        if uid not in self._known:
            return
        entry, state = self._known.pop(uid)
        _take_out(self._all, entry)
        _take_out(self._by_state[state], entry)
        del self._keys[uid]


def entry_of(job: Job) -> Entry:
    """Where a Job stands in the order of creation."""
    return Entry(job.metadata.creation_timestamp or _NEVER, job.metadata.uid)


def _take_out(entries: list[Entry], entry: Entry) -> None:
    at = bisect_left(entries, entry)
    assert entries[at] == entry
    del entries[at]


def _from(entries: list[Entry], after: Entry | None, newest: bool) -> Iterator[Entry]:
    if newest:
        at = len(entries) if after is None else bisect_left(entries, after)
        return (entries[i] for i in range(at - 1, -1, -1))
    at = 0 if after is None else bisect_right(entries, after)
    return (entries[i] for i in range(at, len(entries)))
