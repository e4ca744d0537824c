"""What becomes of a JobConfig: its due times, its Jobs, and what its status tells.

Why no due time is run twice, whoever looks, crashes, repeats or is late:

- A Job is made first, under a name that follows from the due time. Nobody lets it in.
- It is written down after, with its uid, in the same write that says how far the config has been
  accounted for. That is a compare-and-set: of two who both believe they lead, one succeeds.
- The admission room lets in only what is written down. What was made and is not written down, for
  a due time that is accounted for, is deleted.

So a due time is accounted for exactly once: by the write that passes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from interlock.resources.actions import (
    Action,
    CreateJob,
    Decision,
    DeleteResource,
    RecordStatus,
    ReviseJob,
)
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfigStatus, Skip, SkipReason
from interlock.resources.schedule import Books, is_manual
from interlock.schedules.configs.books import (
    Opened,
    due_time_of,
    expected_after,
    jobs_by_due_time,
    open_books,
    strays,
)
from interlock.schedules.configs.catch_up import Look, Run, account_for, find
from interlock.schedules.configs.concurrency import Occupancy
from interlock.schedules.configs.conditions import conditions_of
from interlock.schedules.configs.counting import counted, waits
from interlock.schedules.configs.due_times import next_due, next_run
from interlock.schedules.configs.history import AT_ONCE, too_old
from interlock.schedules.configs.making import (
    job_name,
    lock_key,
    lock_of,
    scheduled_job,
    spare_name,
)
from interlock.schedules.configs.skips import SkipBook, in_words
from interlock.schedules.configs.view import ConfigView
from interlock.timing.tzfiles import edition

#: Numbers that change alone are written down at most this often.
COUNTED_EVERY = timedelta(seconds=1)


class Taken(Struct, frozen=True):
    """A due time that has its Job."""

    at: datetime
    job: Job


class Missing(Struct, frozen=True):
    """A due time whose Job is to be made."""

    at: datetime
    job: Job


#: What becomes of a due time.
Outcome = Taken | Missing | Skip


def decide_config(view: ConfigView, now: datetime) -> Decision:
    """Make the Jobs that are due, oldest first; once they are there, write them down.

    A config that is going makes no more Jobs. What was made is written down before anything
    else is made, as far as it was due first: so a slow store delays Jobs and stops none.
    """
    if view.config.is_going:
        return Decision()
    opened = open_books(view, now)
    catch_up = view.config.spec.catch_up
    look = Look(timing=view.timing, catch_up=catch_up, begin=opened.begin, now=now)
    outcomes = tuple(_outcomes(view, look))
    missing = tuple(each for each in outcomes if isinstance(each, Missing))
    known = _known_first(outcomes, missing, look)
    if missing and not known:
        creates = tuple(CreateJob(each.job) for each in missing)
        wake_at = _wake_at(view, view.config.status, now)
        told = in_words((each.at for each in missing), (), "makes the Job for")
        return Decision(creates, wake_at, told)
    return _record(view, opened, known, missing, now)


def _known_first(
    outcomes: tuple[Outcome, ...], missing: tuple[Missing, ...], look: Look
) -> tuple[Outcome, ...]:
    """The outcomes that can be written down now: all, or those before the first missing Job.

    Jobs that are caught up on are written down all at once, so that a look which is interrupted
    does not run more of them than it may. One that is on time must not hold up others.
    """
    if not missing:
        return outcomes
    first = missing[0].at
    before = tuple(each for each in outcomes if each.at < first)
    if not any(isinstance(each, Taken) for each in before):
        return ()
    found = find(look)
    return before if found.is_on_time and found.newest == first else ()


def _outcomes(view: ConfigView, look: Look) -> Iterator[Outcome]:
    """What becomes of each due time that was not accounted for, in order."""
    config, now = view.config, look.now
    if look.begin >= now or not view.timing.planned:
        return
    existing = jobs_by_due_time(view, look.begin, now)
    occupancy: Occupancy | None = None
    for due in account_for(look, tuple(existing)):
        if isinstance(due, Skip):
            yield due
            continue
        job = existing.get(due.at)
        if job is not None:
            yield Taken(due.at, job)
            continue
        occupancy = occupancy or Occupancy(config, view.jobs, now)
        outcome = _made(view, due, occupancy)
        if isinstance(outcome, Missing):
            occupancy.add(outcome.job, now)
        yield outcome


def _made(view: ConfigView, due: Run, occupancy: Occupancy) -> Outcome:
    """The Job for a due time, or why there is none."""
    config, at = view.config, due.at
    no_room = occupancy.why_not(at)
    if no_room is not None:
        return no_room
    ours = {job.metadata.name: job for job in view.jobs}
    for name_of in (job_name, spare_name):
        name = name_of(config, at)
        held = ours.get(name)
        if held is not None and not is_manual(held) and due_time_of(held) is None:
            # Somebody took off what it was made for; there is no other Job of that name.
            return Taken(at, held)
        if held is None and name not in view.foreign:
            made = scheduled_job(config, at, name)
            if made.problems:
                told = "; ".join(map(str, made.problems[:3]))
                return Skip(at=at, reason=SkipReason.INVALID, message=told)
            return Missing(at, made.job)
    message = f"other Jobs have the names {job_name(config, at)} and {spare_name(config, at)}"
    return Skip(at=at, reason=SkipReason.INVALID, message=message)


def _record(
    view: ConfigView,
    opened: Opened,
    known: tuple[Outcome, ...],
    missing: tuple[Missing, ...],
    now: datetime,
) -> Decision:
    """Write down what became of due times and how the Jobs are; then tidy up."""
    config = view.config
    status = _status(view, opened, known, now)
    if missing:
        # It is what comes next until it is written down: an edit before that tells of it.
        status = replace(status, next_schedule=missing[0].at)
    wake_at = _wake_at(view, status, now)
    actions: list[Action] = []
    is_told = True
    if _news(status) != _news(config.status):
        actions.append(RecordStatus(config, replace(status, counted_at=now)))
    elif status != config.status:
        counted_at = config.status.counted_at
        again = counted_at + COUNTED_EVERY if counted_at is not None else now
        is_told = again <= now or again > now + COUNTED_EVERY
        if is_told:
            actions.append(RecordStatus(config, replace(status, counted_at=now)))
        else:
            wake_at = min(again, wake_at or again)
    actions.extend(CreateJob(each.job) for each in missing)
    actions.extend(_revisions(view))
    gone = tuple(strays(view, status.books, now))
    actions.extend(map(DeleteResource, gone))
    if is_told:
        # What was not counted yet stays until it is.
        actions.extend(map(DeleteResource, _old(view, status.books)))
    reason = _reason(opened, known, gone) if actions else ""
    is_notable = bool(reason) or any(type(action) is not RecordStatus for action in actions)
    return Decision(tuple(actions), wake_at, reason, is_notable=is_notable)


def _status(
    view: ConfigView, opened: Opened, known: tuple[Outcome, ...], now: datetime
) -> JobConfigStatus:
    config, timing = view.config, view.timing
    is_readable = bool(timing.planned) or not timing.unreadable
    status = counted(config.status, config.spec, view.jobs, is_readable=is_readable)
    if not config.spec.schedules and not status.books.schedule_hash:
        # Never had a schedule: there is nothing to keep books of.
        return replace(status, conditions=conditions_of(config, timing, now))
    skips = SkipBook(config.status)
    taken: list[tuple[datetime, Job]] = []
    accounted = opened.books.accounted_to
    for skip in opened.skips:
        skips.skip(skip)
    for each in known:
        if isinstance(each, Skip):
            skips.skip(each)
            accounted = each.until or each.at
        else:
            assert isinstance(each, Taken)
            skips.run()
            taken.append((each.at, each.job))
            accounted = each.at
    books = replace(
        opened.books,
        accounted_to=accounted,
        expected=expected_after(view, opened.books, taken),
        observed_generation=config.metadata.generation,
        zones=edition(),
    )
    moments = (status.last_scheduled, *(at for at, _ in taken))
    return replace(
        status,
        books=books,
        skips=skips.skips,
        skipped=skips.skipped,
        last_scheduled=max((m for m in moments if m is not None), default=None),
        next_schedule=next_run(timing, _accounted(books, now)),
        conditions=conditions_of(config, timing, now),
    )


def _accounted(books: Books, now: datetime) -> datetime:
    """What comes next comes after this moment; a clock that went back repeats nothing."""
    return max(now, books.accounted_to or now, books.since or now)


def _wake_at(view: ConfigView, status: JobConfigStatus, now: datetime) -> datetime | None:
    due = next_due(view.timing, _accounted(status.books, now))
    moments = [due.at] if due is not None else []
    # A Job that was made for a time to come, by a clock that is ahead of this one.
    moments.extend(
        due_at for job in view.jobs if waits(job) and (due_at := due_time_of(job)) and due_at > now
    )
    return min(moments, default=None)


def _news(status: JobConfigStatus) -> tuple[object, ...]:
    """What is written at once; numbers, and who is in the books no longer, can wait a little."""
    books = status.books
    return (
        (books.schedule_hash, books.since, books.accounted_to),
        status.skips,
        status.skipped,
        status.last_scheduled,
        status.next_schedule,
        status.conditions,
    )


def _revisions(view: ConfigView) -> Iterator[ReviseJob]:
    """Have Jobs that wait keep to the limit and the policy as they are now.

    A Job that somebody asked for keeps its own policy.
    """
    config = view.config
    key = lock_key(config)
    for job in view.jobs:
        if not waits(job) or job.is_going:
            continue
        held = next((lock for lock in job.spec.locks if lock.key == key), None)
        if held is None:
            continue
        wanted = lock_of(config, held.when_taken if due_time_of(job) is None else None)
        if wanted != held:
            locks = tuple(wanted if lock is held else lock for lock in job.spec.locks)
            yield ReviseJob(job, replace(job.spec, locks=locks))


def _old(view: ConfigView, books: Books) -> Iterator[Job]:
    """Ended Jobs beyond the history that is kept, without those that are not accounted for."""
    begin = books.accounted_to or books.since
    settled = (
        job
        for job in view.jobs
        if (due_at := due_time_of(job)) is None or begin is None or due_at <= begin
    )
    for at, job in enumerate(too_old(settled, view.config.spec.history)):
        if at >= AT_ONCE:
            return
        yield job


def _reason(opened: Opened, known: Iterable[Outcome], gone: tuple[Job, ...]) -> str:
    runs = tuple(each.at for each in known if isinstance(each, Taken))
    skips = (*opened.skips, *(each for each in known if isinstance(each, Skip)))
    parts = [opened.note, in_words(runs, skips)]
    if gone:
        names = ", ".join(job.metadata.name for job in gone[:3])
        parts.append(f"{names}: what it was made for is accounted for")
    return "; ".join(part for part in parts if part)
