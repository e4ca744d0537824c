"""About when a waiting Job may be let in, and what that was worked out from.

It is worked out from what is known: moments that were written down (a backoff, `startAfter`, the
`timeout` and `killAt` of those who hold what it needs, the time that others have to be ready), and
from how its Queue has let in lately those who had to wait. Where a Job waits for anything of which
nothing is known, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from msgspec import Struct

from interlock.resources.words import clock_time, length, plural

#: What is longer ago tells nothing of today.
RECENT = timedelta(days=1)
#: Fewer turns than these tell nothing of the next.
LEAST_TURNS = 4
#: Those who are let in within this time of each other came in one turn.
ONE_TURN = timedelta(seconds=1)


class Basis(StrEnum):
    """What an estimate was worked out from."""

    #: A moment that its own definition or its backoff names.
    CLOCK = "Clock"
    #: The moments at which those are stopped, or put back, whom it waits for.
    ENDS = "Ends"
    #: How its Queue has let others in lately.
    PACE = "Pace"


class Estimate(Struct, frozen=True, kw_only=True, rename="camel"):
    """About when a Job is let in, if things go on as they do."""

    at: datetime
    basis: Basis
    message: str


class Pace(Struct, frozen=True):
    """How a Queue let those in lately who had to wait: so many, in so many turns."""

    count: int
    turns: int
    first: datetime
    last: datetime

    def reaches(self, place: int, now: datetime) -> datetime:
        """About when it comes to a place of the line, counted from 1."""
        gap = (self.last - self.first) / (self.turns - 1)
        # Whoever came in the first turn says nothing of how long that took.
        turns = -(-place * self.turns // self.count)
        # Where the next turn is late already, all are counted from now on.
        begin = self.last if self.last + gap > now else now
        return begin + gap * turns


def pace_of(let_in: Sequence[datetime], now: datetime) -> Pace | None:
    """How fast a line moves, by the moments at which Jobs were let in, in order; None where too
    little is known.
    """
    recent = [at for at in let_in if now - RECENT <= at <= now]
    if not recent:
        return None
    turns = 1 + sum(later - earlier > ONE_TURN for earlier, later in pairwise(recent))
    if turns < LEAST_TURNS:
        return None
    return Pace(len(recent), turns, recent[0], recent[-1])


def by_clock(at: datetime, now: datetime) -> Estimate:
    """That it is not let in before a moment, and nothing else is in its way."""
    told = f"at {_when(at, now)}: nothing else is in its way"
    return Estimate(at=at, basis=Basis.CLOCK, message=told)


def by_ends(at: datetime, now: datetime) -> Estimate:
    """That those it waits for are gone by a moment, by their own definitions."""
    told = f"by {_when(at, now)}: whom it waits for is stopped or put back by then"
    return Estimate(at=at, basis=Basis.ENDS, message=told)


def by_pace(pace: Pace, place: int, now: datetime) -> Estimate:
    """That a line moves on as it did."""
    at = pace.reaches(place, now)
    before = f"{place - 1} {'is' if place == 2 else 'are'} before it" if place > 1 else "it is next"
    told = (
        f"about {_when(at, now)}: {plural(pace.count, 'Job')} that had to wait came in within"
        f" {length(now - pace.first)}, and {before}"
    )
    return Estimate(at=at, basis=Basis.PACE, message=told)


def earlier(found: Iterable[Estimate | None]) -> Estimate | None:
    """Of several that are about the same thing the one that says the most."""
    return min((one for one in found if one is not None), key=lambda one: one.at, default=None)


def all_of(found: Iterable[Estimate | None]) -> Estimate | None:
    """When all of several things have come; None when of one of them nothing is known."""
    known = tuple(found)
    if None in known:
        return None
    return max((one for one in known if one is not None), key=lambda one: one.at, default=None)


def _when(at: datetime, now: datetime) -> str:
    return f"{clock_time(at, now)}, in {length(at - now)}" if at > now else "once"
