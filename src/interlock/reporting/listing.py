"""GET /jobs: filters, sort, and pages that a cursor leads through."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from interlock.control.cache import Cache
from interlock.errors import BadRequestError
from interlock.reporting.job_index import Entry, JobIndex, entry_of
from interlock.reporting.parameters import (
    LARGEST_PAGE,
    LISTING,
    PAGE,
    check_known,
    moment_in,
    number_in,
)
from interlock.reporting.summaries import JobSummary, summary_of
from interlock.resources.job import CREATOR_ANNOTATION, Job, JobPhase
from interlock.store.contract import Selection
from interlock.store.selectors import Matcher, matcher_for

#: How many Jobs one page may pass over; a page may be short, its cursor goes on from there.
_WALKED = 20_000


class Listing(Struct, frozen=True, kw_only=True):
    """What a client asked to see."""

    states: tuple[str, ...] = ()
    ids: frozenset[str] = frozenset()
    creator: str = ""
    #: None when every Job fits.
    matches: Matcher | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    newest: bool = True
    limit: int = PAGE
    after: Entry | None = None


def read_listing(query: Mapping[str, str]) -> Listing:
    """Read the parameters of a list.

    Raises:
        BadRequestError: One that is not known, or cannot be read.
    """
    check_known(query, LISTING)
    return Listing(
        states=_states(query.get("state", "")),
        ids=frozenset(filter(None, query.get("id", "").split(","))),
        creator=query.get("creator", ""),
        matches=_matcher(query),
        created_after=moment_in(query, "createdAfter"),
        created_before=moment_in(query, "createdBefore"),
        newest=_is_newest_first(query.get("sort", "-created")),
        limit=number_in(query, "limit", 1, LARGEST_PAGE) or PAGE,
        after=_read_cursor(query["cursor"]) if query.get("cursor") else None,
    )


class JobPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of Jobs in short."""

    items: tuple[JobSummary, ...]
    #: A stream since this version misses nothing that the page does not show.
    version: str
    #: The cursor of the next page; none on the last.
    next: str = ""


def page(
    listing: Listing,
    roster: JobIndex,
    jobs: Cache[Job],
    sees: Callable[[Job], bool] = lambda _: True,
) -> JobPage:
    """A page of summaries of what somebody sees, and the cursor of the next."""
    found: list[Job] = []
    last: Job | None = None
    more = False
    for walked, job in enumerate(_walk(listing, roster, jobs)):
        if len(found) >= listing.limit or walked >= _WALKED:
            more = True
            break
        last = job
        if sees(job) and _matches(job, listing):
            found.append(job)
    goes_on = more and last is not None
    return JobPage(
        items=tuple(summary_of(job) for job in found),
        version=str(jobs.version),
        next=_write_cursor(entry_of(last)) if goes_on and last is not None else "",
    )


def _walk(listing: Listing, roster: JobIndex, jobs: Cache[Job]) -> Iterator[Job]:
    keys = roster.walk(listing.states, after=listing.after, newest=listing.newest)
    if listing.ids:
        found = {roster.key_of(uid) for uid in listing.ids}
        keys = (key for key in keys if key in found)
    for key in keys:
        job = jobs.get(key)
        if job is not None:
            yield job


def _matches(job: Job, listing: Listing) -> bool:
    meta = job.metadata
    created = entry_of(job).created_at
    return (
        (listing.matches is None or listing.matches(job))
        and (not listing.creator or meta.annotations.get(CREATOR_ANNOTATION) == listing.creator)
        and (listing.created_after is None or created > listing.created_after)
        and (listing.created_before is None or created < listing.created_before)
    )


def _matcher(query: Mapping[str, str]) -> Matcher | None:
    selection = Selection(namespace=query.get("namespace") or None, labels=query.get("label", ""))
    return matcher_for("Job", selection)


def _states(text: str) -> tuple[str, ...]:
    given = tuple(filter(None, text.split(",")))
    known = {phase.value.lower(): phase.value for phase in JobPhase}
    for state in given:
        if state.lower() not in known:
            raise BadRequestError(f"state: {state!r} is none of {', '.join(known.values())}")
    return tuple(known[state.lower()] for state in given)


def _is_newest_first(text: str) -> bool:
    if text not in ("created", "-created"):
        raise BadRequestError(f"sort: expected created or -created, got {text!r}")
    return text == "-created"


def _write_cursor(entry: Entry) -> str:
    return urlsafe_b64encode(f"{entry.created_at.isoformat()} {entry.uid}".encode()).decode()


def _read_cursor(text: str) -> Entry:
    try:
        moment, _, uid = urlsafe_b64decode(text).decode().partition(" ")
        created_at = datetime.fromisoformat(moment)
        if created_at.tzinfo is None or not uid:
            raise ValueError(text)
        return Entry(created_at, uid)
    except ValueError as error:
        raise BadRequestError("cursor: not one that this server gave") from error
