"""Jobs that are over and were removed, as the status API shows them: from the store's archive."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

from msgspec.structs import replace

from interlock.api.submitting import Asked
from interlock.control.cache import Cache
from interlock.reporting.job_index import (
    COMPLETION,
    CREATOR,
    OWNER,
    PARENT,
    PATH,
    PHASE,
    STATE,
    Entry,
    Facet,
    JobIndex,
    entry_of,
)
from interlock.reporting.job_record import JobView, creator_of, facets_of
from interlock.reporting.listing import Listing, Part
from interlock.reporting.live_jobs import WALKED, LiveJobs
from interlock.reporting.visibility import Sees
from interlock.resources.codec import decoder_for, encode
from interlock.resources.job import REQUEST_ANNOTATION, Job, JobSpec, is_operation
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.resources.operation import OperationState
from interlock.resources.transitions import ended_at, has_ended
from interlock.store.sqlite.archive import Archived, Head, Place, Reading, Walk
from interlock.store.sqlite.store import SqliteStore

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DECODER = decoder_for(JobView)
#: The facets that the archive can be walked by, those first by which there are the fewest Jobs.
_WAYS = {PATH: "path", PARENT: "parent", CREATOR: "creator", OWNER: "owner"}
#: So many records are looked at for what no column says.
_DECODED = 2_000
#: So many are let go of in one write.
_PRUNED = 500


class FinishedJobs:
    """What is kept of Jobs after they were removed."""

    def __init__(self, store: SqliteStore, live: LiveJobs) -> None:
        self._store = store
        self._archive = store.archive
        self._live = live

    def keep(self, resource: Resource) -> Archived | None:
        """What is kept of a resource that is removed: of operations, and of what has a target."""
        if not isinstance(resource, Job) or not has_ended(resource):
            return None
        spec = resource.spec
        if spec.target is None and not is_operation(spec) and not spec.idempotency_key:
            return None
        view = self._live.view(resource)
        facets = facets_of(resource)
        path = spec.target.path if spec.target is not None else ""
        below = [one for one in facets.paths if not f"{path}/".startswith(f"{one}/")]
        meta, created = resource.metadata, entry_of(resource).created_at
        return Archived(
            id=meta.uid,
            created=number_of(created),
            ended=number_of(ended_at(resource) or created),
            name=f"{meta.namespace}/{meta.name}",
            parent=facets.parent,
            creator=creator_of(resource),
            owner=facets.owner,
            path=path,
            alias=below[0] if below else "",
            completion=facets.completion,
            phase=resource.status.phase.value,
            digest=meta.annotations.get(REQUEST_ANNOTATION, ""),
            record=encode(view),
        )

    async def find(self, uid: str) -> JobView | None:
        """The Job with this uid, when it is kept."""
        record = await self._archive.ask(lambda reading: reading.records([uid]).get(uid))
        return None if record is None else _DECODER.decode(record)

    async def named(self, namespace: str, name: str) -> Asked | None:
        """The newest Job of a name, when it is kept."""
        place = f"{namespace}/{name}"
        found = await self._archive.ask(lambda reading: reading.newest_named(place))
        return None if found is None else Asked(*found, OperationState.COMPLETE.value)

    async def part(self, listing: Listing, sees: Sees) -> Part[JobView]:
        """The first Jobs of a list, and how far was looked."""
        return await self._archive.ask(lambda reading: _part(reading, listing, sees))

    async def related(self, views: Sequence[JobView]) -> tuple[JobView, ...]:
        """The same with their children and parents that are kept here."""
        if all(view.completion_state is None for view in views):
            return tuple(views)
        return await self._archive.ask(
            lambda reading: tuple(_related(reading, view) for view in views)
        )

    async def prune(self, before: datetime, roster: JobIndex, jobs: Cache[Job]) -> int:
        """Let go of what was over before a moment; returns how much that was.

        What has a parent or children that are not over stays.
        """
        gone, after = 0, (-(1 << 62), "")
        while True:
            at = after
            rows = await self._archive.ask(
                lambda reading, at=at: reading.ended_before(number_of(before), at, _PRUNED)  # type: ignore[misc]
            )
            if not rows:
                return gone
            after = (rows[-1][0], rows[-1][1])
            ids = [id for _, id, name, parent in rows if not _is_needed(name, parent, roster, jobs)]
            if ids:
                await self._store.prune(ids)
                gone += len(ids)


def _is_needed(name: str, parent: str, roster: JobIndex, jobs: Cache[Job]) -> bool:
    """Whether something that it belongs to, or that belongs to it, is not over."""
    namespace, _, above = parent.partition("/")
    of = jobs.get(Key("Job", namespace, above)) if parent else None
    if of is not None and not has_ended(of):
        return True
    for entry in roster.under(PARENT, name):
        key = roster.key_of(entry.uid)
        child = jobs.get(key) if key is not None else None
        if child is not None and not has_ended(child):
            return True
    return False


def _part(reading: Reading, listing: Listing, sees: Sees) -> Part[JobView]:
    if any(not _may_be_over(choice) for choice in listing.choices):
        return Part((), None)
    heads: list[Head] = []
    upto: Entry | None = None
    most = WALKED if listing.matches is None else _DECODED
    for walked, head in enumerate(_walk(reading, listing)):
        if len(heads) > listing.limit or walked >= most:
            break
        upto = _entry_of(head)
        if (
            listing.is_in_time(upto)
            and listing.chooses(_facets_of(head))
            and sees(head.owner, head.creator, head.path)
            and (listing.matches is None or _matches(reading, head, listing))
        ):
            heads.append(head)
    else:
        upto = None
    records = reading.records([head.id for head in heads])
    items = [(_entry_of(head), _DECODER.decode(records[head.id])) for head in heads]
    return Part(items, upto)


def _may_be_over(choice: Sequence[Facet]) -> bool:
    return any(facet != STATE or word == OperationState.COMPLETE for facet, word in choice)


def _walk(reading: Reading, listing: Listing) -> Iterator[Head]:
    after = listing.after
    place = None if after is None else Place(number_of(after.created_at), after.uid)
    if listing.ids is not None:
        heads = sorted(reading.heads(listing.ids), reverse=listing.newest)
        if place is None:
            return iter(heads)
        return (one for one in heads if one[:2] != place and (one[:2] < place) is listing.newest)
    choice = _best(listing.choices)
    if not choice:
        return reading.walk(Walk(newest=listing.newest, after=place))
    ways = [
        reading.walk(
            Walk(
                by=_WAYS.get(facet, facet if facet != COMPLETION else "completion"),
                values=tuple(value for each, value in choice if each == facet),
                newest=listing.newest,
                after=place,
            )
        )
        for facet in dict.fromkeys(each for each, _ in choice)
    ]
    return _in_one(ways, newest=listing.newest) if len(ways) > 1 else ways[0]


def _in_one(ways: Sequence[Iterator[Head]], *, newest: bool) -> Iterator[Head]:
    merged = heapq.merge(*ways, key=lambda head: head[:2], reverse=newest)
    return (head for head, _ in groupby(merged))


def _best(choices: Sequence[Sequence[Facet]]) -> Sequence[Facet]:
    """The choice to walk by: that of which there probably are the fewest; none walks by all."""
    known = [*_WAYS, COMPLETION]
    good = [choice for choice in choices if all(facet in known for facet, _ in choice)]
    return min(good, key=lambda choice: max(known.index(facet) for facet, _ in choice), default=())


def _facets_of(head: Head) -> frozenset[Facet]:
    words = head.path.split("/") if head.path else []
    paths = [(PATH, "/".join(words[: at + 1])) for at in range(len(words))]
    return frozenset(
        (
            (STATE, OperationState.COMPLETE.value),
            (COMPLETION, head.completion),
            (PHASE, head.phase),
            (CREATOR, head.creator),
            (OWNER, head.owner),
            (PARENT, head.parent),
            (PATH, head.alias),
            *paths,
        )
    )


def _matches(reading: Reading, head: Head, listing: Listing) -> bool:
    """Whether the selectors fit, which are about what no column says."""
    view: JobView = _DECODER.decode(reading.records([head.id])[head.id])
    labels = view.labels if isinstance(view.labels, dict) else {}
    metadata = Metadata(name=view.name, namespace=view.namespace, labels=labels)
    assert listing.matches is not None
    return listing.matches(Job(metadata=metadata, spec=JobSpec()))


def _related(reading: Reading, view: JobView) -> JobView:
    if view.completion_state is None or view.created_at is None:
        return view
    created = number_of(view.created_at)
    ended = view.ended if isinstance(view.ended, datetime) else view.created_at
    kept = reading.children(f"{view.namespace}/{view.name}", created, number_of(ended))
    children = tuple(dict.fromkeys((*kept, *view.child_jobs)))
    parent = view.parent_job
    if parent is None and isinstance(view.parent, str):
        found = reading.newest_named(f"{view.namespace}/{view.parent}", created)
        parent = found[0] if found is not None else None
    if children == view.child_jobs and parent == view.parent_job:
        return view
    return replace(view, child_jobs=children, parent_job=parent)


def _entry_of(head: Head) -> Entry:
    return Entry(_EPOCH + head.created * _MICROSECOND, head.id)


def number_of(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND
