"""How things stand with a ControlledJob at one moment, before anything is decided."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import compress

from msgspec import Struct

from interlock.resources.controlled_job import (
    ControlledJob,
    OverrideAction,
    WindowOutcome,
    WindowRecord,
)
from interlock.schedules.controlled.overrides import Period, of_action
from interlock.schedules.controlled.plan import Standing, hold_at, why_held
from interlock.schedules.controlled.runs import Fate, Run, run_of
from interlock.schedules.controlled.view import ControlledView


class Situation(Struct, frozen=True, kw_only=True):
    """All that a decision is made of."""

    view: ControlledView
    now: datetime
    #: None when the plan cannot be read.
    standing: Standing | None
    #: Why nothing may run at all, whatever the plan says; empty when it may.
    held: str
    runs: tuple[Run, ...]
    #: The runs that are there, and those that were seen to go, as they were last, by their uid.
    known: dict[str, Run]
    #: What is known of windows, newest first: of the one that is open, and of others.
    open_records: tuple[WindowRecord, ...]
    other_records: tuple[WindowRecord, ...]

    @property
    def record(self) -> WindowRecord | None:
        """What is known of the window that is open; None if nothing is.

        An edit may have made one window of several: then it is the newest that had a Job.
        """
        found = self.open_records
        with_job = (each for each in found if each.job is not None)
        return next(with_job, found[0] if found else None)

    @property
    def controlled(self) -> ControlledJob:
        """What it is about."""
        return self.view.controlled

    @property
    def template_hash(self) -> str:
        """What the template is now."""
        return self.view.template_hash

    @property
    def is_inside(self) -> bool:
        """Whether something is to run."""
        return self.standing is not None and self.standing.is_inside

    @property
    def window(self) -> Period | None:
        """The window that is open, also while it is on hold."""
        return self.standing.window if self.standing is not None else None

    @property
    def last_stop(self) -> datetime | None:
        """The newest stop."""
        return self.standing.last_stop if self.standing is not None else None

    def is_expired(self, run: Run) -> bool:
        """Whether a Job was made for a time before the last stop.

        Not the Job of the window that is open: hours that changed may have put a stop into the
        past that nobody was to keep, and while a window is open a change moves its stop alone.
        """
        record = self.record if self.is_inside else None
        if record is not None and record.job is not None and record.job.uid == run.uid:
            return False
        return run.is_expired(self.last_stop)

    def is_stray(self, run: Run) -> bool:
        """Whether a Job was made from an old view: its number is taken, and it is in no books."""
        return run.is_unwritten and run.number <= self.controlled.status.last_run_id

    @property
    def is_blind(self) -> bool:
        """Whether the newest Job is not there, and that may be because nobody told of it yet."""
        record = self.controlled.status.window
        if record is None or record.job is None or self.view.heard_to >= record.job_version:
            return False
        return record.job.uid not in self.known


#: Clocks of two who both believe they lead may differ by so much, and they still agree.
_APART = timedelta(minutes=1)


def moment_of_look(view: ControlledView, now: datetime) -> datetime:
    """The moment that a look is about: not earlier than what was accounted for already.

    Of two who both believe they lead, the one whose clock is behind would take back what the
    other wrote, and so on for as long as they disagree. A clock that was set back further than
    that is another matter: then time is what it says.
    """
    books = view.controlled.status.books
    told = books.accounted_to if books.schedule_hash == view.schedule_hash else None
    return told if told is not None and now < told <= now + _APART else now


def read_situation(view: ControlledView, now: datetime) -> Situation:
    """Put together how things stand."""
    controlled = view.controlled
    spec = controlled.spec
    standing = view.timetable.state_at(now) if view.timetable is not None else None
    holds = of_action(spec.overrides, OverrideAction.HOLD)
    over = view.over
    runs = tuple(over.get(job.metadata.uid) or run_of(job, controlled, now) for job in view.jobs)
    gone = tuple(run_of(job, controlled, now) for job in view.gone)
    status = controlled.status
    records = (*((status.window,) if status.window is not None else ()), *status.past_windows)
    window = standing.window if standing is not None else None
    is_open = [_is_of_window(record, window, now) for record in records]
    return Situation(
        view=view,
        now=now,
        standing=standing,
        held=why_held(spec.suspend, hold_at(holds, now)),
        runs=runs,
        known={run.uid: run for run in (*gone, *runs)},
        open_records=tuple(compress(records, is_open)),
        other_records=tuple(record for record, of in zip(records, is_open, strict=True) if not of),
    )


def _is_of_window(record: WindowRecord, window: Period | None, now: datetime) -> bool:
    """Whether a record is about the window that is open.

    One to come by this clock is not, unless the window itself is said to begin then: one that
    never ends begins when the ControlledJob was made, which the clock of the store tells.
    """
    if window is None or (record.start > now and record.start != window.start):
        return False
    return window.overlaps(record.start, record.stop)


def fate_of_record(record: WindowRecord, situation: Situation) -> Fate | None:
    """What became of the Job that a record names; None if it names none."""
    if record.job is None:
        return None
    run = situation.known.get(record.job.uid)
    if run is None:
        return _FATES.get(record.outcome, Fate.DELETED)
    is_known = run.is_over or run.fate is Fate.STOPPED_BY_USER or run in situation.runs
    # Seen to go before it was over: somebody removed it.
    return run.fate if is_known else Fate.DELETED


_FATES = {
    WindowOutcome.FINISHED: Fate.FINISHED,
    WindowOutcome.FAILED: Fate.FAILED,
    WindowOutcome.STOPPED: Fate.STOPPED,
    WindowOutcome.STOPPED_BY_USER: Fate.STOPPED_BY_USER,
}
