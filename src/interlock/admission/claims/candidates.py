"""Who is next for a claim: how a Job sees what it asks for, whom it waits behind, whom it replaces.

The rules that keep Jobs from waiting in a ring are here: one order for all lines, and a grant only
to a Job whose way is clear in every line it stands in. Nobody is in the way of one that must have
other resources of the claim than it (`Ask.contends`): as if each of these had a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from msgspec import Struct

from interlock.admission.claims.claim import (
    NOTHING,
    Amounts,
    Ask,
    ClaimKey,
    ClaimKind,
    ClaimView,
    fits,
    total,
)
from interlock.admission.claims.proof import Jobs, grant_of, kept
from interlock.admission.lines import Lines, may_be_granted, place_of, stands_in_line
from interlock.resources.job import Job, WhenTaken
from interlock.resources.metadata import Key
from interlock.resources.transitions import has_ended, was_admitted

#: The index of records by the uids of their holders.
BY_HOLDER = "holder"
#: How many Jobs one decision replaces at most; the rest is left to the next look.
_REPLACED_AT_ONCE = 50


class Records(Protocol):
    """What is known of the records of one kind of claim. It may be old."""

    def get(self, key: Key, /) -> Any:
        """The newest known version, or None when there is none."""
        ...

    def by(self, index: str, value: str, /) -> Iterator[Any]:
        """The records that an index holds under a value."""
        ...


class Known(Struct, frozen=True):
    """All that is known: of Jobs, of the records of claims, and of who waits for which."""

    jobs: Jobs
    kinds: Mapping[str, ClaimKind[Any, Any]]
    #: By the kind of the records, as the kinds of claims are.
    records: Mapping[str, Records]
    lines: Lines
    #: Whether a Job has all that it needs before it may be granted a claim.
    is_ready: Callable[[Job], bool] = lambda _: True

    def asks(self, job: Job) -> tuple[Ask, ...]:
        """What a Job asks for, of every kind of claim."""
        asks: tuple[Ask, ...] = ()
        for kind in self.kinds.values():
            asks += kind.asks(job)
        return asks


class Candidate(Struct, frozen=True, kw_only=True):
    """The Job that is next for a claim."""

    job: Job
    ask: Ask
    #: Whether it could be granted all that it asks for, of this claim and every other.
    has_way: bool


def claim_view(known: Known, job: Job, ask: Ask) -> ClaimView:
    """One claim that a Job asks for, as it stands for this Job."""
    kind = ask.kind
    record = known.records[ask.key.kind].get(ask.key)
    holders = kept(kind, ask.key, record, known.jobs)
    grant = grant_of(job, holders)
    held, before = NOTHING, NOTHING
    if len(holders) == 1:
        # As nearly always. It was granted before nobody, so there is nothing to add up.
        held = kind.amounts_of(holders[0], record)
    elif holders:
        held = total(kind.amounts_of(each, record) for each in holders)
    if grant is not None and len(holders) > 1:
        earlier = (each for each in holders if each.token < grant.token)
        before = total(kind.amounts_of(each, record) for each in earlier)
    return ClaimView(
        ask=ask,
        limits=kind.limits(ask, record),
        held=held,
        grant=grant,
        before=before,
        ahead=jobs_ahead(known, job, ask, holders),
    )


def jobs_ahead(known: Known, job: Job, ask: Ask, holders: tuple[Any, ...]) -> int:
    """How many are before this Job in the line, without those that have their grant already."""
    line = known.lines.of(ask.key)
    if line is None:
        return 0
    place = place_of(job)
    if ask.picks:
        return sum(1 for _ in _in_the_way_of(known, ask, line.ahead_of(place), holders))
    granted = 0
    for holder in holders:
        key = ask.kind.job_of(ask.key, holder)
        other = known.jobs.get(key)
        if other is not None and grant_of(other, holders) is not None and stands_in_line(other):
            granted += place_of(other) < place and key not in line.allowed
    return line.before(place) - granted


def _in_the_way_of(
    known: Known, ask: Ask, ahead: Iterable[Key], holders: tuple[Any, ...]
) -> Iterator[Job]:
    """Those before a Job in the line, without a grant, that want what it must have."""
    for key in ahead:
        other = known.jobs.get(key)
        if other is None or grant_of(other, holders) is not None:
            continue
        if ask.contends(_ask_of(known, other, ask.key)):
            yield other


def _ask_of(known: Known, job: Job, claim: ClaimKey) -> Ask:
    return next(ask for ask in known.asks(job) if ask.key == claim)


def candidate_for(known: Known, claim: ClaimKey, holders: tuple[Any, ...]) -> Candidate | None:
    """Who is next: anyone who need not wait, else the first in line without a grant.

    Only the first: whoever comes after one whose way is not clear has to wait as well, or one that
    asks for much would be overtaken for ever by those that ask for little. Only who must have other
    resources than all before it may pass.
    """
    line = known.lines.of(claim)
    if line is None:
        return None
    for key in line.allowed:
        job = known.jobs.get(key)
        if job is not None and grant_of(job, holders) is None:
            candidate = _as_candidate(known, job, claim)
            if candidate.has_way:
                return candidate
    first: Candidate | None = None
    wanted: set[str] = set()
    for key in line.jobs():
        job = known.jobs.get(key)
        if job is None or grant_of(job, holders) is not None:
            continue
        picks = _ask_of(known, job, claim).picks
        if wanted.isdisjoint(picks):
            candidate = _as_candidate(known, job, claim)
            if candidate.has_way:
                return candidate
            first = first or candidate
        if not picks:
            return first
        wanted |= picks
    return first


def _as_candidate(known: Known, job: Job, claim: ClaimKey) -> Candidate:
    asks = known.asks(job)
    has_way = (
        may_be_granted(job)
        and known.is_ready(job)
        and all(claim_view(known, job, ask).is_free for ask in asks)
    )
    return Candidate(job=job, ask=next(a for a in asks if a.key == claim), has_way=has_way)


def has_stray_grant(known: Known, job: Job, asks: tuple[Ask, ...]) -> bool:
    """Whether a Job holds something that it does not ask for (any more)."""
    for name, kind in known.kinds.items():
        for record in known.records[name].by(BY_HOLDER, job.metadata.uid):
            grant = grant_of(job, kind.holders(record))
            if grant is None:
                continue
            if any(ask.key == record.key and kind.is_for(grant, ask) for ask in asks):
                continue
            if kind.job_of(record.key, grant) == job.key:
                return True
    return False


def rivals_of(known: Known, job: Job, claims: tuple[ClaimView, ...]) -> tuple[Job, ...]:
    """Whom the Job replaces: of the holders as many as needed, and all who came before.

    One that was put back waits behind others, and so takes nobody's place.
    """
    if not claims or was_admitted(job) or not stands_in_line(job):
        return ()
    rivals = {
        rival.key: rival
        for claim in claims
        if claim.ask.when_taken is WhenTaken.REPLACE and claim.is_taken
        for rival in _rivals_for(known, job, claim)
    }
    return tuple(rivals.values())


def _rivals_for(known: Known, job: Job, claim: ClaimView) -> Iterator[Job]:
    ask, place = claim.ask, place_of(job)
    record = known.records[ask.key.kind].get(ask.key)
    older: list[tuple[Job, Amounts]] = []
    for holder in kept(ask.kind, ask.key, record, known.jobs):
        held_by = known.jobs.get(ask.kind.job_of(ask.key, holder))
        if held_by is not None and place_of(held_by).sequence < place.sequence:
            older.append((held_by, ask.kind.amounts_of(holder, record)))
    for holder_job in _in_the_way(older, claim):
        if not holder_job.status.admission.replaced_by and not has_ended(holder_job):
            yield holder_job
    line = known.lines.of(ask.key)
    holding = {held_by.key for held_by, _ in older}
    for key in tuple(islice(line.jobs(), _REPLACED_AT_ONCE)) if line is not None else ():
        other = known.jobs.get(key)
        if other is None or key == job.key or key in holding:
            continue
        if place_of(other).sequence < place.sequence and stands_in_line(other):
            yield other


def _in_the_way(older: list[tuple[Job, Amounts]], claim: ClaimView) -> Iterator[Job]:
    """Of those who hold the claim as many as must go before the Job fits, the oldest first."""
    left = dict(claim.held)
    for job, amounts in older:
        if fits(claim.ask.amounts, left, claim.limits):
            return
        yield job
        for name, amount in amounts.items():
            left[name] = left.get(name, 0) - amount
