"""What is forgotten where schedules are kept: due times, windows, what people said, gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.errors import InvalidError
from interlock.resources.actions import ReviseJob
from interlock.resources.deeds import deed_of
from interlock.resources.job import Job, JobSpec
from interlock.resources.job_config import JobConfigStatus
from interlock.schedules.configs.books import Opened
from interlock.schedules.configs.catch_up import Found, Look
from interlock.schedules.configs.due_times import next_run
from interlock.schedules.configs.view import ConfigView
from interlock.schedules.controlled.choosing import Choice
from interlock.schedules.controlled.runs import Fate, Run
from interlock.schedules.controlled.situation import Situation
from interlock.timing.plans import Action, Turn
from support.simulation.schedule_world import RivalScheduleWorld, ScheduleWorld

ACCOUNTED = "Every due time becomes a Job in the books or a skip that is told."
EDITS = "A change of a schedule begins its books anew, and tells what was due before."
STOPS = "A Job carries its stop from the beginning: it stops though nobody looks again."
TOLD = "What a person did is in the history: once, with name, time and reason, if it was done."
GAPS = "A start or stop that falls into a gap is told as skipped, once, or happens after it."
BY_HAND = "What a person stopped or suspended is left so, and nothing takes its place."

WHOSE_STOP = Seam("interlock.schedules.controlled.runs", "_whose_stop")
SPEC_OF_JOB = Seam("interlock.schedules.controlled.making", "_spec")
WITH_STOP = Seam("interlock.schedules.controlled.stops", "_with_stop")

#: So many worlds are tried for one bug.
MOST = 60


# Due times


@mutation(
    "Only what is in the books of its schedule may start.",
    Seam("interlock.admission.schedule_permission", "Bookkeeping.has"),
    caught_by="OncePerDueTime",
    in_worlds=RivalScheduleWorld,
    most_worlds=MOST,
)
def what_is_not_in_the_books_may_start(_: object) -> Callable[..., bool]:
    return lambda *_: True


@mutation(
    ACCOUNTED,
    Seam("interlock.schedules.configs.skips", "SkipBook.skip"),
    caught_by="EveryDueTimeAccounted",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def due_times_pass_without_a_word(_: object) -> Callable[..., None]:
    return lambda *_: None


@mutation(
    ACCOUNTED,
    Seam("interlock.schedules.configs.catch_up", "account_for"),
    caught_by="EveryDueTimeAccounted",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def only_some_due_times_are_looked_at(really: Callable[..., Iterable[Any]]) -> Any:
    """The last one is enough, somebody thought."""
    return lambda *args: iter(list(really(*args))[-1:])


@mutation(
    EDITS,
    Seam("interlock.schedules.configs.books", "open_books"),
    caught_by="EveryDueTimeAccounted",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def an_edit_goes_on_where_the_former_schedule_ended(really: Callable[..., Opened]) -> Any:
    def open_books(view: ConfigView, now: datetime) -> Opened:
        opened = really(view, now)
        held = view.config.status.books
        if not held.accounted_to or not held.schedule_hash:
            return opened
        books = replace(opened.books, accounted_to=held.accounted_to)
        return Opened(books, held.accounted_to)

    return open_books


@mutation(
    EDITS,
    Seam("interlock.schedules.configs.books", "_left_by_edit"),
    caught_by="EveryDueTimeAccounted",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def an_edit_forgets_what_was_due(_: object) -> Callable[..., Iterator[Any]]:
    return lambda *_: iter(())


@mutation(
    "Books never go back, whatever the clock does.",
    Seam("interlock.schedules.configs.decide", "_status"),
    caught_by="EveryDueTimeAccounted",
    in_worlds=RivalScheduleWorld,
    most_worlds=MOST,
    seen_in=44,
)
def the_books_go_back_with_the_clock(really: Callable[..., JobConfigStatus]) -> Any:
    def status(view: ConfigView, opened: Opened, known: Any, now: datetime) -> JobConfigStatus:
        made = really(view, opened, known, now)
        accounted = made.books.accounted_to
        if accounted is None or accounted <= now:
            return made
        return replace(made, books=replace(made.books, accounted_to=now))

    return status


@mutation(
    "A schedule is looked at when something of it is due.",
    Seam("interlock.schedules.configs.decide", "_wake_at"),
    caught_by="EveryDueTimeAccounted",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def nobody_looks_again_when_it_is_due(_: object) -> Callable[..., None]:
    return lambda *_: None


@mutation(
    "What was missed is run only if catchUp says so.",
    Seam("interlock.schedules.configs.catch_up", "_chosen"),
    caught_by="MissedByTheRule",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def what_was_missed_by_seconds_is_run(_: object) -> Callable[..., Iterator[datetime]]:
    def chosen(look: Look, _: object, taken: Sequence[datetime]) -> Iterator[datetime]:
        # Somebody was there within the minute, they thought.
        at = max(look.begin, look.now - timedelta(minutes=1))
        while (run := next_run(look.timing, at)) is not None and run <= look.now:
            yield from (run,) if run not in taken else ()
            at = run

    return chosen


@mutation(
    "What is found in time was not missed.",
    Seam("interlock.schedules.configs.catch_up", "find"),
    caught_by="MissedByTheRule",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def what_is_on_time_is_taken_for_missed(really: Callable[[Look], Found]) -> Any:
    return lambda look: replace(really(look), is_on_time=False)


@mutation(
    "Only what is over is cleared away.",
    Seam("interlock.schedules.configs.history", "too_old"),
    caught_by="NeverLostButBySchedule",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def what_runs_is_cleared_away(_: object) -> Callable[..., Iterator[Job]]:
    return lambda jobs, _: iter(list(jobs)[:1])


@mutation(
    "A schedule whose trouble is over is in trouble no more.",
    Seam("interlock.schedules.configs.counting", "counted"),
    caught_by="SchedulesSettle",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def one_config_cannot_be_counted(_: object) -> Callable[..., JobConfigStatus]:
    def counted(*_: object, **__: object) -> JobConfigStatus:
        raise ValueError("planted")

    return counted


# Windows


@mutation(
    "At no instant do two Jobs of a ControlledJob run.",
    Seam("interlock.schedules.controlled.making", "with_lock"),
    caught_by="OneAtATime",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
    seen_in=13,
)
def jobs_of_a_window_need_no_lock(_: object) -> Callable[..., JobSpec]:
    return lambda spec, _: spec


def _without_stop(make: Callable[..., JobSpec]) -> Callable[..., JobSpec]:
    return lambda *args: replace(make(*args), kill_at=None)


def _as_it_is(run: Run, _: object) -> tuple[JobSpec, dict[str, str]]:
    return run.job.spec, {}


@mutation(
    "What runs outside of a window is told to stop.",
    Seam("interlock.schedules.controlled.stops", "stops"),
    SPEC_OF_JOB,
    WITH_STOP,
    caught_by="WindowsKept",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def nobody_is_told_to_stop(_: object, make: Callable[..., JobSpec], __: object) -> tuple[Any, ...]:
    return lambda *_: (), _without_stop(make), _as_it_is


@mutation(
    STOPS,
    SPEC_OF_JOB,
    WITH_STOP,
    caught_by="WindowsKept",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def a_stop_is_not_written_on_the_job(make: Callable[..., JobSpec], _: object) -> tuple[Any, Any]:
    return _without_stop(make), _as_it_is


@mutation(
    "A ControlledJob is looked at when its window opens or closes.",
    Seam("interlock.schedules.controlled.decide", "_wake_at"),
    caught_by="WindowsKept",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
    seen_in=13,
)
def a_window_that_opens_is_not_noticed(_: object) -> Callable[..., None]:
    return lambda _: None


@mutation(
    "While there is a hold, nothing runs.",
    Seam("interlock.schedules.controlled.plan", "why_held"),
    Seam("interlock.schedules.controlled.plan", "hold_at"),
    caught_by="WindowsKept",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def a_hold_holds_nothing(*_: object) -> tuple[Any, Any]:
    return lambda suspend, _: "suspended" if suspend else "", lambda *_: None


@mutation(
    "A window that a person skips is left out.",
    Seam("interlock.schedules.controlled.overrides", "Periods.skip_of"),
    caught_by="WindowsKept",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
    seen_in=13,
)
def a_window_is_not_skipped(_: object) -> Callable[..., None]:
    return lambda *_: None


@mutation(
    "A window that a person extends closes later.",
    Seam("interlock.schedules.controlled.overrides", "Periods._extended"),
    caught_by="WindowsKept",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def an_extension_extends_nothing(_: object) -> Callable[..., tuple[()]]:
    return lambda *_: ()


@mutation(
    "The time that a Job has to go begins when it is told to.",
    Seam("interlock.schedules.controlled.draining", "_told_since"),
    caught_by="AlarmsAreTrue",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def a_late_stop_is_taken_for_one_that_does_not_come(_: object) -> Callable[..., datetime]:
    """It is counted from when the Job should have been told."""

    def told_since(run: Run, found: Situation) -> datetime:
        return run.job.spec.kill_at or found.now

    return told_since


# What people said


@mutation(
    BY_HAND, WHOSE_STOP, caught_by="PeopleAreHeeded", in_worlds=ScheduleWorld, most_worlds=MOST
)
def a_stop_by_hand_is_taken_for_one_by_the_schedule(_: object) -> Callable[..., Fate]:
    return lambda _: Fate.STOPPED


@mutation(
    BY_HAND,
    Seam("interlock.schedules.controlled.stops", "revisions"),
    caught_by="PeopleAreHeeded",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
    seen_in=8,
)
def a_suspended_job_is_let_go(really: Callable[..., Iterable[ReviseJob]]) -> Any:
    def revisions(*args: Any) -> Iterator[ReviseJob]:
        choice: Choice = args[1]
        yield from really(*args)
        for run in choice.kept:
            if run.job.spec.suspend and not run.is_over:
                yield ReviseJob(run.job, replace(run.job.spec, suspend=False))

    return revisions


@mutation(
    BY_HAND,
    Seam("interlock.schedules.controlled.runs", "Run.is_paused"),
    caught_by="PeopleAreHeeded",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
    seen_in=8,
)
def a_suspended_job_is_replaced(_: object) -> bool:
    return False


@mutation(
    BY_HAND,
    WHOSE_STOP,
    caught_by="PeopleAreHeeded",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
    seen_in=8,
)
def a_suspended_job_is_made_again_after_a_hold(really: Callable[[Job], Fate]) -> Any:
    return lambda job: really(replace(job, spec=replace(job.spec, suspend=False)))


@mutation(
    "A stop that is due is fixed: nobody takes it back.",
    Seam("interlock.resources.door.checking", "check_due"),
    Seam("support.simulation.people", "check_due"),
    caught_by="PeopleAreHeeded",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def a_stop_that_is_due_can_be_taken_back(*_: object) -> tuple[Any, Any]:
    return lambda *_: (), lambda *_: ()


# What is told of people


@mutation(
    TOLD,
    Seam("interlock.resources.deeds", "deed_of"),
    caught_by="DeedsAreTold",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def nobody_is_named(really: Callable[..., str]) -> Callable[..., str]:
    return lambda old, new, _, now: really(old, new, "", now)


@mutation(
    TOLD,
    Seam("interlock.resources.deeds", "_reason"),
    caught_by="DeedsAreTold",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def nobody_says_why(_: object) -> Callable[..., str]:
    return lambda _: ""


@mutation(
    TOLD,
    Seam("interlock.resources.deeds", "deletion_of"),
    caught_by="DeedsAreTold",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def who_deleted_it_is_not_told(_: object) -> Callable[..., str]:
    return lambda *_: ""


@mutation(
    TOLD,
    Seam("interlock.api.writes", "Writes._write"),
    caught_by="DeedsAreTold",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
    seen_in=8,
)
def what_was_refused_is_told_as_done(really: Callable[..., Any]) -> Any:
    async def write(self: Any, target: Any, old: Any, new: Any, *, dry_run: bool) -> Any:
        try:
            return await really(self, target, old, new, dry_run=dry_run)
        except InvalidError:
            self._note(new, deed_of(old, new, "ann", self._now()))
            raise

    return write


@mutation(
    "Who made an object stands on it.",
    Seam("interlock.resources.marks", "_sign_creation"),
    caught_by="DeedsAreTold",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def nobody_signs_what_they_make(_: object) -> Callable[..., None]:
    return lambda *_: None


# Gaps


@mutation(
    GAPS,
    Seam("interlock.schedules.controlled.gaps", "skips_told"),
    caught_by="GapsAreTold",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
)
def what_a_gap_swallows_is_told_nowhere(_: object) -> Callable[..., Iterator[Any]]:
    return lambda _: iter(())


@mutation(
    GAPS,
    Seam("interlock.schedules.controlled.books", "swallowed"),
    caught_by="GapsAreTold",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
    seen_in=16,
)
def what_a_gap_swallows_is_told_at_every_look(_: object) -> Callable[..., tuple[()]]:
    """The books do not say that it was told."""
    return lambda _: ()


@mutation(
    GAPS,
    Seam("interlock.schedules.controlled.gaps", "swallowed"),
    caught_by="GapsAreTold",
    in_worlds=ScheduleWorld,
    most_worlds=MOST,
    seen_in=16,
)
def only_starts_are_looked_for_in_a_gap(really: Callable[..., tuple[Turn, ...]]) -> Any:
    return lambda found: tuple(t for t in really(found) if t.action is Action.START)
