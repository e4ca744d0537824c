"""The job index: Jobs in the order of creation, of all and of each that they are found by.

It is kept change by change: a page of a list is found by a search and a short walk, however many
Jobs there are.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from interlock.admission.pending_limit import open_target
from interlock.control.reconciler import Change
from interlock.reporting.job_record import completion_of, facets_of, state_of
from interlock.reporting.queue_places import QueuePlaces
from interlock.resources.job import Job, JobPhase, JobSpec
from interlock.resources.metadata import Key
from interlock.resources.operation import CompletionState, OperationState

_NEVER = datetime.min.replace(tzinfo=UTC)

#: What a list of Jobs is for: a facet and its value, such as ("creator", "ana").
Facet = tuple[str, str]
PHASE, STATE, COMPLETION = "phase", "state", "completion_state"
CREATOR, OWNER, PATH, PARENT = "creator", "owner", "path", "parent"
#: Of what is not over: the very path of its target.
OPEN = "open"


class Entry(NamedTuple):
    """Where a Job stands in the order of creation."""

    created_at: datetime
    uid: str


class _Known(NamedTuple):
    """Where a Job was put, and what of it that was worked out from."""

    entry: Entry
    #: What it was found by when it was made, and what changes as it goes on.
    lasting: tuple[Facet, ...]
    passing: tuple[Facet, ...]
    spec: JobSpec
    annotations: dict[str, str]
    turns: tuple[object, ...]

    @property
    def facets(self) -> tuple[Facet, ...]:
        """All that it is found by."""
        return (*self.lasting, *self.passing)

    def is_asked_as(self, job: Job) -> bool:
        """Whether nobody has changed what a Job asks for: most changes of a Job are others."""
        return job.spec is self.spec and job.metadata.annotations is self.annotations


def _turns(job: Job) -> tuple[object, ...]:
    """What changes as a Job goes on, and lists are by."""
    status = job.status
    operation = status.execution.operation
    return status.phase, None if operation is None else (
        operation.state,
        operation.completion_state,
    )


class JobIndex:
    """The order of creation, of all Jobs and of the Jobs with each value of each facet."""

    def __init__(self, default_queue: str = "") -> None:
        self._all: list[Entry] = []
        self._by_facet: dict[Facet, list[Entry]] = {}
        #: Every facet once, however many Jobs have it: they are most of what the index holds.
        self._same: dict[Facet, Facet] = {}
        self._keys: dict[str, Key] = {}
        #: Where each Job was put, so that it is found again after it changed.
        self._known: dict[str, _Known] = {}
        #: Where Jobs stand in the lines of Queues.
        self.places = QueuePlaces(default_queue)

    def observe(self, change: Change) -> None:
        """Take in a change of any resource; one that is told twice changes nothing."""
        before = change.before if isinstance(change.before, Job) else None
        after = change.after if isinstance(change.after, Job) else None
        if before is not None and (after is None or before.metadata.uid != after.metadata.uid):
            self._remove(before.metadata.uid)
            self.places.remove(before.metadata.uid)
        if after is not None:
            self._put(after)
            self.places.put(after)

    def key_of(self, uid: str) -> Key | None:
        """The Job with this uid, when there is one."""
        return self._keys.get(uid)

    def entry(self, uid: str) -> Entry | None:
        """Where the Job with this uid stands, when there is one."""
        known = self._known.get(uid)
        return None if known is None else known.entry

    def under(self, facet: str, value: str) -> Sequence[Entry]:
        """The Jobs with a value of a facet, oldest first."""
        return self._by_facet.get((facet, value), ())

    def facets(self, uid: str) -> tuple[Facet, ...]:
        """What the Job with this uid is found by; nothing when there is none."""
        known = self._known.get(uid)
        return () if known is None else known.facets

    def walk(
        self,
        choices: Iterable[Sequence[Facet]] = (),
        *,
        after: Entry | None,
        newest: bool,
    ) -> Iterator[Entry]:
        """The Jobs after a place, newest or oldest first, that have one facet of some choice.

        It is the choice with the fewest Jobs; for the others whoever walks has to see to it.
        """
        lists = [[self._by_facet.get(facet, []) for facet in choice] for choice in choices]
        fewest = min(lists, key=lambda one: sum(map(len, one)), default=[self._all])
        parts = [_from(entries, after, newest) for entries in fewest]
        if len(parts) == 1:
            return parts[0]
        return (entry for entry, _ in groupby(heapq.merge(*parts, reverse=newest)))

    def count(self, phase: str) -> int:
        """How many Jobs are in a phase."""
        return len(self.under(PHASE, phase))

    def __len__(self) -> int:
        return len(self._all)

    def _put(self, job: Job) -> None:
        known, turns = self._known.get(job.metadata.uid), _turns(job)
        is_asked_as_before = known is not None and known.is_asked_as(job)
        if known is not None and is_asked_as_before and turns == known.turns:
            return
        if known is None:
            entry = entry_of(job)
            known = _Known(entry, (), (), job.spec, job.metadata.annotations, ())
            insort(self._all, entry)
            self._keys[entry.uid] = job.key
        lasting = known.lasting
        if not is_asked_as_before:
            lasting = self._moved(known.entry, lasting, _lasting(job))
        passing = self._moved(known.entry, known.passing, _passing(job))
        self._known[known.entry.uid] = _Known(
            known.entry, lasting, passing, job.spec, job.metadata.annotations, turns
        )

    def _moved(
        self, entry: Entry, before: tuple[Facet, ...], after: Sequence[Facet]
    ) -> tuple[Facet, ...]:
        """Have a Job found by other facets than before; gives these as they are held."""
        for facet in before:
            if facet not in after:
                self._take_out(facet, entry)
        for facet in after:
            if facet not in before:
                insort(self._by_facet.setdefault(facet, []), entry)
        return tuple([self._same.setdefault(facet, facet) for facet in after])

    def _remove(self, uid: str) -> None:
        if uid not in self._known:
            return
        known = self._known.pop(uid)
        entry, facets = known.entry, known.facets
        _take_out(self._all, entry)
        for facet in facets:
            self._take_out(facet, entry)
        del self._keys[uid]

    def _take_out(self, facet: Facet, entry: Entry) -> None:
        entries = self._by_facet[facet]
        _take_out(entries, entry)
        if not entries:
            del self._by_facet[facet]
            self._same.pop(facet, None)


def entry_of(job: Job) -> Entry:
    """Where a Job stands in the order of creation."""
    return Entry(job.metadata.creation_timestamp or _NEVER, job.metadata.uid)


def _lasting(job: Job) -> Sequence[Facet]:
    found = facets_of(job)
    named = ((CREATOR, found.creator), (OWNER, found.owner), (PARENT, found.parent))
    return [*(facet for facet in named if facet[1]), *((PATH, path) for path in found.paths)]


#: Made once: every Job is found by one of each.
_PHASES = {phase: (PHASE, phase.value) for phase in JobPhase}
_STATES = {state: (STATE, state.value) for state in OperationState}
_COMPLETIONS = {completion: (COMPLETION, completion.value) for completion in CompletionState}


def _passing(job: Job) -> Sequence[Facet]:
    facets = [_PHASES[job.status.phase], _STATES[state_of(job)]]
    if (completion := completion_of(job)) is not None:
        facets.append(_COMPLETIONS[completion])
    if path := open_target(job):
        facets.append((OPEN, path))
    return facets


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
