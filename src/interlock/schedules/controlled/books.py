"""The books of a ControlledJob: which Jobs may start, and up to when all is accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from interlock.resources.schedule import Books, ExpectedJob, scheduled_at
from interlock.schedules.controlled.choosing import Choice
from interlock.schedules.controlled.draining import gone_by, overdue
from interlock.schedules.controlled.gaps import swallowed
from interlock.schedules.controlled.situation import Situation


def books_after(situation: Situation, choice: Choice) -> Books:
    """The books with the Jobs that may start now, and without those that have."""
    controlled = situation.controlled
    books, digest = controlled.status.books, situation.view.schedule_hash
    is_same = books.schedule_hash == digest
    created = controlled.metadata.creation_timestamp
    since = books.since if is_same else situation.now if books.schedule_hash else created
    turn = situation.standing.last_turn if situation.standing is not None else None
    moments = (turn, books.accounted_to if is_same else None, *_told(situation))
    return Books(
        schedule_hash=digest,
        since=since,
        accounted_to=max((moment for moment in moments if moment is not None), default=None),
        expected=tuple(_expected(situation, choice)),
    )


def _told(situation: Situation) -> Iterator[datetime]:
    """Moments that have come and that are told of, beside the starts and stops of the plan."""
    yield from (each.at for each in swallowed(situation))
    for one in situation.controlled.spec.overrides:
        yield from (edge for edge in (one.begin, one.until) if edge <= situation.now)
    for run in overdue(situation):
        by = gone_by(run, situation)
        assert by is not None
        yield by


def _expected(situation: Situation, choice: Choice) -> list[ExpectedJob]:
    runs = {run.uid: run for run in situation.runs}
    heard_to = situation.view.heard_to
    expected = []
    for each in situation.controlled.status.books.expected:
        run = runs.get(each.uid)
        is_open = run is not None and not run.is_admitted and not run.is_over
        if is_open or (run is None and heard_to < each.job_version):
            expected.append(each)
    for run in choice.kept:
        if run.is_unwritten:
            due = scheduled_at(run.job) or run.nominal or situation.now
            new = ExpectedJob(
                name=run.name, uid=run.uid, scheduled_at=due, job_version=run.job.version
            )
            expected.append(new)
    return expected
