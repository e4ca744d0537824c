"""Catching up: which of the due times that a look finds are run, and why others are not.

One rule says which of them were missed, whatever their lines are: a due time is missed when it is
found `catchUp.missedAfter` after its moment or later, or when a later one has come by then. So of
what a look finds one at most is on time: the newest. It is run with every policy, though the
oldest first may fill atMost before it; what was missed is dealt with by the policy.

Never more than a bounded number of due times is walked: what lies beyond is told as one stretch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from interlock.resources.job_config import CatchUp, CatchUpPolicy, Skip, SkipReason
from interlock.schedules.configs.due_times import (
    DueTime,
    Timing,
    last_due,
    last_run,
    next_due,
    next_run,
)

#: So many due times that are not run are counted one by one at a look.
COUNTED = 1000
#: So many searches are made for that: a config of many lines has fewer due times counted.
_SEARCHES = 20_000
_SECOND = timedelta(seconds=1)
_INSTANT = timedelta(microseconds=1)


class Run(Struct, frozen=True):
    """A due time that is to become a Job."""

    at: datetime


class Look(Struct, frozen=True, kw_only=True):
    """The due times that a look finds: those after `begin`, until now."""

    timing: Timing
    catch_up: CatchUp
    begin: datetime
    now: datetime

    @property
    def is_empty(self) -> bool:
        """Whether nothing was due."""
        due = next_due(self.timing, self.begin)
        return due is None or due.at > self.now


class Found(Struct, frozen=True, kw_only=True):
    """What a look finds of those to be run."""

    #: The newest of them; None when there is none.
    newest: datetime | None = None
    is_on_time: bool = False
    #: Those before this moment are too old to be caught up on.
    oldest: datetime


def find(look: Look) -> Found:
    """The newest due time of a look, whether it is on time, and which are too old.

    Nothing that is on time is too old.
    """
    catch_up, now = look.catch_up, look.now
    try:
        oldest = max(look.begin, now - catch_up.not_older_than)
    except OverflowError:
        oldest = look.begin
    newest = None if look.is_empty else last_run(look.timing, now)
    if newest is None or newest <= look.begin:
        return Found(oldest=oldest)
    # As late as that is missed.
    is_on_time = now - newest < catch_up.missed_after
    oldest = min(oldest, newest) if is_on_time else oldest
    return Found(newest=newest, is_on_time=is_on_time, oldest=oldest)


def account_for(look: Look, taken: Sequence[datetime]) -> Iterator[Run | Skip]:
    """Every due time of a look, in order: to be run, or skipped with the reason.

    Those in `taken` have their Job already, made by an earlier look, and are run in any case.
    """
    if look.is_empty:
        return
    found = find(look)
    counter = _Counter(look, found)
    place = look.begin
    for at in sorted({*taken, *_chosen(look, found, taken)}):
        yield from counter.skips(place, at - _SECOND)
        yield Run(at)
        place = at
    yield from counter.skips(place, look.now)


def _chosen(look: Look, found: Found, taken: Sequence[datetime]) -> Iterator[datetime]:
    """The due times to be run, beside those that were taken before."""
    catch_up, newest = look.catch_up, found.newest
    if newest is None:
        return
    if not catch_up.at_most or catch_up.policy is CatchUpPolicy.SKIP_ALL:
        # Nothing is caught up on; what is on time is no catching up.
        yield from (newest,) if found.is_on_time else ()
        return
    if catch_up.policy is CatchUpPolicy.ONLY_NEWEST:
        yield from (newest,) if newest >= found.oldest else ()
        return
    room = catch_up.at_most - len(taken)
    after = max(look.begin, found.oldest - _INSTANT)
    while room > 0:
        run = next_run(look.timing, after)
        if run is None or run > newest:
            return
        if run not in taken:
            yield run
            room -= 1
        after = run


class _Counter:
    """Tells the due times that are not run, neighbours of one reason together."""

    def __init__(self, look: Look, found: Found) -> None:
        self._look = look
        self._found = found
        lines = sum(len(planned.schedule.lines) for planned in look.timing.planned)
        self._left = max(10, min(COUNTED, _SEARCHES // max(lines, 1)))

    def skips(self, after: datetime, until: datetime) -> Iterator[Skip]:
        """The skips after one moment, until another."""
        skip: Skip | None = None
        due = next_due(self._look.timing, after)
        while due is not None and due.at <= until:
            one = self._skip(due)
            if not self._left:
                yield from (skip,) if skip is not None else ()
                yield self._rest(one, until)
                return
            self._left -= 1
            if skip is not None and is_like(skip, one):
                skip = joined(skip, one)
            else:
                yield from (skip,) if skip is not None else ()
                skip = one
            due = next_due(self._look.timing, due.at)
        if skip is not None:
            yield skip

    def _rest(self, first: Skip, until: datetime) -> Skip:
        last = last_due(self._look.timing, until)
        return replace(first, until=last if last != first.at else None, count=0)

    def _skip(self, due: DueTime) -> Skip:
        if due.reason is not None:
            return Skip(at=due.at, reason=due.reason, message=due.message)
        catch_up = self._look.catch_up
        if catch_up.policy is CatchUpPolicy.SKIP_ALL:
            return Skip(at=due.at, reason=SkipReason.MISSED, message="it was missed")
        if due.at < self._found.oldest:
            message = f"it was found later than {catch_up.not_older_than} after"
            return Skip(at=due.at, reason=SkipReason.TOO_OLD, message=message)
        if not catch_up.at_most:
            return Skip(at=due.at, reason=SkipReason.MISSED, message="it was missed")
        if catch_up.policy is CatchUpPolicy.ONLY_NEWEST:
            message = "a newer one is run instead"
            return Skip(at=due.at, reason=SkipReason.MISSED, message=message)
        message = f"more than {catch_up.at_most} were found at one look"
        return Skip(at=due.at, reason=SkipReason.TOO_MANY_MISSED, message=message)


def is_like(skip: Skip, other: Skip) -> bool:
    """Whether two skips are told as one when nothing lies between them."""
    return skip.reason is other.reason and skip.message == other.message


def joined(skip: Skip, later: Skip) -> Skip:
    """Two skips that are told as one."""
    count = skip.count + later.count if skip.count and later.count else 0
    return replace(skip, until=later.until or later.at, count=count)
