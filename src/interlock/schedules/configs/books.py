"""The books of a config: from when on it is accountable, and which Jobs are in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.job_config import Skip, SkipReason
from interlock.resources.schedule import (
    ACCOUNTED_TO_ANNOTATION,
    Books,
    ExpectedJob,
    is_manual,
    moment_of,
    scheduled_at,
)
from interlock.resources.transitions import has_ended, was_admitted
from interlock.schedules.configs.due_times import is_due, next_due
from interlock.schedules.configs.view import ConfigView

#: Books that are ahead of the clock by less are waited for, so that nothing is run twice. By more,
#: they were written by a clock that was wrong, and would hold the config up for as long.
CLOCK_PATIENCE = timedelta(hours=6)


class Opened(Struct, frozen=True):
    """The books at the beginning of a look."""

    books: Books
    #: Due times after this moment are accounted for.
    begin: datetime
    #: What an edit leaves unrun.
    skips: tuple[Skip, ...] = ()
    #: Why the books begin anew; empty when they go on.
    note: str = ""


def open_books(view: ConfigView, now: datetime) -> Opened:
    """Go on where the last look ended, unless the schedule is another one now.

    A new config is accountable from its creation, and one that was moved here from where its
    former place left off. After an edit or a resume nothing from before is run: what was due and
    not looked at by then is skipped.
    """
    config, digest = view.config, view.timing.digest
    books = config.status.books
    created = config.metadata.creation_timestamp or now
    if books.schedule_hash == digest:
        return _go_on(books, created, now)
    elsewhere = moment_of(config, ACCOUNTED_TO_ANNOTATION)
    if elsewhere is not None and books.accounted_to is None and not config.spec.suspend:
        # It never accounted for anything here, so nothing can be run a second time.
        moved = replace(books, schedule_hash=digest, since=elsewhere, accounted_to=elsewhere)
        return _go_on(moved, created, now)
    if not books.schedule_hash and config.metadata.generation <= 1:
        fresh = Books(schedule_hash=digest, since=created, expected=books.expected)
        return _go_on(fresh, created, now)
    since = now
    if books.accounted_to is not None and books.accounted_to <= now + CLOCK_PATIENCE:
        # The clock may have gone back; what was accounted for stays so.
        since = max(now, books.accounted_to)
    fresh = replace(books, schedule_hash=digest, since=now, accounted_to=since)
    skips = tuple(_left_by_edit(view, created, now))
    return Opened(fresh, since, skips, "its schedule was changed" if books.schedule_hash else "")


def _go_on(books: Books, created: datetime, now: datetime) -> Opened:
    begin = books.accounted_to or books.since or created
    if begin <= now + CLOCK_PATIENCE:
        return Opened(books, begin)
    note = f"its books are ahead of the clock by {begin - now}, and begin anew"
    return Opened(replace(books, since=now, accounted_to=now), now, (), note)


def _left_by_edit(view: ConfigView, created: datetime, now: datetime) -> Iterator[Skip]:
    """What was due by the former schedule and was not looked at in time."""
    status = view.config.status
    first = status.next_schedule
    if not status.books.schedule_hash:
        # It was edited before anybody looked. What it was before is not known.
        due = next_due(view.timing, created)
        first = due.at if due is not None else None
    if first is not None and first <= now:
        yield Skip(
            at=first,
            until=now,
            reason=SkipReason.SCHEDULE_CHANGED,
            message="the schedule was changed before it was looked at",
            count=0,
        )


def due_time_of(job: Job) -> datetime | None:
    """The due time that a schedule made the Job for; None for a Job on demand."""
    return None if is_manual(job) else scheduled_at(job)


def jobs_by_due_time(view: ConfigView, begin: datetime, now: datetime) -> dict[datetime, Job]:
    """The Jobs that exist for due times of a look. Of several, the one that came furthest."""
    found: dict[datetime, Job] = {}
    for job in view.jobs:
        due_at = due_time_of(job)
        if due_at is None or not begin < due_at <= now or not is_due(view.timing, due_at):
            continue
        other = found.get(due_at)
        if other is None or _progress(job) > _progress(other):
            found[due_at] = job
    return found


def _progress(job: Job) -> tuple[bool, bool, int, str]:
    # The older one of two that wait: whoever looks chooses the same.
    return was_admitted(job), has_ended(job), -job.version, job.metadata.name


def expected_after(
    view: ConfigView, books: Books, taken: Iterable[tuple[datetime, Job]]
) -> tuple[ExpectedJob, ...]:
    """Who may start: those who were in the books and have not started, and those taken now."""
    jobs = {job.metadata.uid: job for job in view.jobs}
    kept = [each for each in books.expected if not _is_settled(each, jobs, view.gone)]
    known = {each.uid for each in kept}
    new = [
        ExpectedJob(
            name=job.metadata.name,
            uid=job.metadata.uid,
            scheduled_at=at,
            job_version=job.version,
        )
        for at, job in taken
        if job.metadata.uid not in known
    ]
    return (*kept, *new)


def _is_settled(each: ExpectedJob, jobs: dict[str, Job], gone: frozenset[str]) -> bool:
    job = jobs.get(each.uid)
    return each.uid in gone if job is None else was_admitted(job) or has_ended(job)


def strays(view: ConfigView, books: Books, now: datetime) -> Iterator[Job]:
    """Jobs that nobody will ever let in: made from an old view, for what is accounted for.

    They are deleted exactly as they were read, so one that was let in meanwhile stays.
    """
    known = {each.uid for each in books.expected}
    begin = books.accounted_to or books.since
    for job in view.jobs:
        due_at = due_time_of(job)
        if due_at is None or job.metadata.uid in known or job.is_going:
            continue
        if was_admitted(job) or has_ended(job):
            continue
        is_accounted = begin is not None and due_at <= begin
        was_never_due = due_at <= now and not is_due(view.timing, due_at)
        if is_accounted or was_never_due or due_at > now + CLOCK_PATIENCE:
            yield job
