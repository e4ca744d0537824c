"""Lists of Jobs: filters, sort, and pages that a cursor leads through."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlock.errors import BadRequestError
from interlock.reporting.job_index import (
    COMPLETION,
    CREATOR,
    OWNER,
    PHASE,
    STATE,
    Entry,
    Facet,
    entry_of,
)
from interlock.reporting.job_record import JobView
from interlock.reporting.parameters import (
    LARGEST_PAGE,
    LISTING,
    MOST_IDS,
    PAGE,
    STATE_WORDS,
    check_known,
    moment_in,
    number_in,
)
from interlock.resources.codec import encode
from interlock.resources.job import Job, JobPhase
from interlock.resources.operation import CompletionState
from interlock.store.contract import Selection
from interlock.store.selectors import Matcher, matcher_for

#: The reasons of refusals that no other request has.
NO_IDS, CURSOR_OF_ANOTHER_LIST = "NoIds", "CursorOfAnotherList"
#: Digits of what tells one list from another: whoever mixes them up is told, nobody is kept out.
_DIGITS = 16

V = TypeVar("V")


class Listing(Struct, frozen=True, kw_only=True):
    """What a client asked to see."""

    #: A Job is listed when it has one facet of each.
    choices: tuple[tuple[Facet, ...], ...] = ()
    #: None when any Job may be listed.
    ids: frozenset[str] | None = None
    #: None when every Job fits.
    matches: Matcher | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    newest: bool = True
    limit: int = PAGE
    #: What its cursors are marked with: a place in this list is none in another.
    mark: str = ""
    after: Entry | None = None

    def chooses(self, facets: Collection[Facet]) -> bool:
        """Whether a Job with these facets is listed."""
        return all(any(facet in facets for facet in choice) for choice in self.choices)

    def matches_job(self, job: Job) -> bool:
        """Whether a Job with facets that fit is listed."""
        return self.is_in_time(entry_of(job)) and (self.matches is None or self.matches(job))

    def is_in_time(self, entry: Entry) -> bool:
        """Whether it was created when it should have been."""
        created = entry.created_at
        return (self.created_after is None or created > self.created_after) and (
            self.created_before is None or created < self.created_before
        )


class Part(NamedTuple, Generic[V]):
    """The first items of a list as one source knows them, in order."""

    items: Sequence[tuple[Entry, V]]
    #: How far was looked; None when there is nothing more.
    upto: Entry | None


class JobPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of Jobs."""

    items: tuple[JobView, ...]
    #: A stream since this version misses nothing that the page does not show.
    version: str
    #: The cursor of the next page; none on the last.
    next: str = ""


def read_listing(query: Mapping[str, str], choices: tuple[tuple[Facet, ...], ...] = ()) -> Listing:
    """Read the parameters of a list, that is narrowed down to some `choices` already.

    Raises:
        BadRequestError: One that is not known, or cannot be read; or a cursor of another list.
    """
    check_known(query, LISTING)
    given = (
        _states(query.get("state", "")),
        _completions(query.get("completion_state", "")),
        _one(CREATOR, query.get("creator", "")),
        _one(OWNER, query.get("owner", "")),
    )
    listing = Listing(
        choices=(*choices, *filter(None, given)),
        ids=_ids(query),
        matches=_matcher(query),
        created_after=moment_in(query, "createdAfter"),
        created_before=moment_in(query, "createdBefore"),
        newest=_is_newest_first(query.get("sort", "-created")),
        limit=number_in(query, "limit", 1, LARGEST_PAGE) or PAGE,
    )
    mark = _mark(listing, query.get("namespace", ""), query.get("label", ""))
    cursor = query.get("cursor")
    return replace(listing, mark=mark, after=_read_cursor(cursor, mark) if cursor else None)


def page(listing: Listing, *parts: Part[JobView], version: str) -> JobPage:
    """The parts as one page, in one order; what two of them show is shown as the first does."""
    found: dict[str, tuple[Entry, JobView]] = {}
    for part in parts:
        for entry, view in part.items:
            found.setdefault(entry.uid, (entry, view))
    items = sorted(found.values(), key=lambda one: one[0], reverse=listing.newest)
    seen = [part.upto for part in parts if part.upto is not None]
    upto = (max(seen) if listing.newest else min(seen)) if seen else None
    if upto is not None:
        items = [one for one in items if one[0] == upto or (one[0] > upto) is listing.newest]
    if len(items) > listing.limit:
        items = items[: listing.limit]
        upto = items[-1][0]
    return JobPage(
        items=tuple(view for _, view in items),
        version=version,
        next=_write_cursor(upto, listing.mark) if upto is not None else "",
    )


def entries_of(listing: Listing, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Some entries, those after the listing's cursor, in its order."""
    after, newest = listing.after, listing.newest
    left = (one for one in entries if after is None or (one != after and (one < after) is newest))
    return iter(sorted(left, reverse=newest))


def _matcher(query: Mapping[str, str]) -> Matcher | None:
    selection = Selection(namespace=query.get("namespace") or None, labels=query.get("label", ""))
    return matcher_for("Job", selection)


def _one(facet: str, value: str) -> tuple[Facet, ...]:
    return ((facet, value),) if value else ()


def _states(text: str) -> tuple[Facet, ...]:
    """Words of the status API, and phases as everywhere else: these begin with a capital."""
    phases = {phase.value.lower(): phase.value for phase in JobPhase}
    found: list[Facet] = []
    for word in filter(None, text.split(",")):
        if word in STATE_WORDS:
            found.append((STATE, word))
        elif word.lower() in phases:
            found.append((PHASE, phases[word.lower()]))
        else:
            known = ", ".join((*STATE_WORDS, *phases.values()))
            raise BadRequestError(f"state: {word[:40]!r} is none of {known}")
    return tuple(found)


def _completions(text: str) -> tuple[Facet, ...]:
    words = tuple(filter(None, text.split(",")))
    known = [state.value for state in CompletionState]
    for word in words:
        if word not in known:
            raise BadRequestError(f"completion_state: {word[:40]!r} is none of {', '.join(known)}")
    return tuple((COMPLETION, word) for word in words)


def _ids(query: Mapping[str, str]) -> frozenset[str] | None:
    given = [name for name in ("ids", "id") if name in query]
    if not given:
        return None
    ids = frozenset(filter(None, (word for name in given for word in query[name].split(","))))
    if not ids:
        # A client that follows no Jobs must not be shown all of them.
        raise BadRequestError(f"{given[0]}: expected an id, got none", reason=NO_IDS)
    if len(ids) > MOST_IDS:
        raise BadRequestError(f"ids: expected at most {MOST_IDS}, got {len(ids)}")
    return ids


def _is_newest_first(text: str) -> bool:
    if text not in ("created", "-created"):
        raise BadRequestError(f"sort: expected created or -created, got {text[:40]!r}")
    return text == "-created"


def _mark(listing: Listing, namespace: str, label: str) -> str:
    """What tells the list from others; how many of it are in a page makes no other list of it."""
    moments = (listing.created_after, listing.created_before)
    told = (
        sorted(sorted(set(choice)) for choice in listing.choices),
        sorted(listing.ids or ()),
        [moment and moment.astimezone(UTC).isoformat() for moment in moments],
        namespace,
        label,
        listing.newest,
    )
    return sha256(encode(told)).hexdigest()[:_DIGITS]


def _write_cursor(entry: Entry, mark: str) -> str:
    text = f"{mark} {entry.created_at.isoformat()} {entry.uid}"
    return urlsafe_b64encode(text.encode()).decode()


def _read_cursor(text: str, mark: str) -> Entry:
    try:
        made_for, moment, uid = urlsafe_b64decode(text).decode().split(" ", 2)
        created_at = datetime.fromisoformat(moment)
        if created_at.tzinfo is None or not uid:
            raise ValueError(text)
    except ValueError as error:
        raise BadRequestError("cursor: not one that this server gave") from error
    if made_for != mark:
        told = "cursor: of another list; ask with the sort and the filters that it was given for"
        raise BadRequestError(told, reason=CURSOR_OF_ANOTHER_LIST)
    return Entry(created_at, uid)
