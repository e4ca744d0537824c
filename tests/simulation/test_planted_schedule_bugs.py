"""Bugs planted where schedules are kept: each breaks a promise, and is caught by it.

As with the other planted bugs, worlds are run one after another until one of them notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

import interlock.schedules.configs.books as config_books
import interlock.schedules.configs.catch_up as catch_up
import interlock.schedules.configs.decide as config_decide
import interlock.schedules.controlled.decide as controlled_decide
import interlock.schedules.controlled.draining as draining
import interlock.schedules.controlled.making as making
import interlock.schedules.controlled.overrides as overrides
import interlock.schedules.controlled.plan as plan
import interlock.schedules.controlled.runs as runs
import interlock.schedules.controlled.situation as situation
import interlock.schedules.controlled.stops as controlled_stops
import interlock.testing.simulation.people as people
from interlock.admission.books import Bookkeeping
from interlock.resources.actions import ReviseJob
from interlock.resources.job import Job, JobSpec
from interlock.resources.job_config import JobConfigStatus, Skip
from interlock.schedules.configs.books import Opened
from interlock.schedules.configs.due_times import next_run
from interlock.schedules.configs.skips import SkipBook
from interlock.schedules.configs.view import ConfigView
from interlock.schedules.controlled.choosing import Choice
from interlock.schedules.controlled.runs import Fate, Run
from interlock.testing.simulation.schedule_world import RivalScheduleWorld, ScheduleWorld
from interlock.testing.simulation.world import World

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]

#: So many worlds are tried for one bug.
MOST_WORLDS = 60


# Due times


def what_is_not_in_the_books_may_start(patch: Patch) -> None:
    patch.setattr(Bookkeeping, "has", lambda *_: True)


def due_times_pass_without_a_word(patch: Patch) -> None:
    patch.setattr(SkipBook, "skip", lambda *_: None)


def only_some_due_times_are_looked_at(patch: Patch) -> None:
    def account_for(*args: Any) -> Iterator[Any]:
        found = list(catch_up.account_for(*args))
        # The last one is enough, somebody thought.
        yield from found[-1:]

    patch.setattr(config_decide, "account_for", account_for)


def an_edit_goes_on_where_the_former_schedule_ended(patch: Patch) -> None:
    really = config_books.open_books

    def open_books(view: ConfigView, now: datetime) -> Opened:
        opened = really(view, now)
        held = view.config.status.books
        if not held.accounted_to or not held.schedule_hash:
            return opened
        books = replace(opened.books, accounted_to=held.accounted_to)
        return Opened(books, held.accounted_to)

    patch.setattr(config_decide, "open_books", open_books)


def an_edit_forgets_what_was_due(patch: Patch) -> None:
    def nothing(*_: object) -> Iterator[Skip]:
        return iter(())

    patch.setattr(config_books, "_left_by_edit", nothing)


def the_books_go_back_with_the_clock(patch: Patch) -> None:
    really = config_decide._status

    def status(view: ConfigView, opened: Opened, known: Any, now: datetime) -> JobConfigStatus:
        made = really(view, opened, known, now)
        accounted = made.books.accounted_to
        if accounted is None or accounted <= now:
            return made
        return replace(made, books=replace(made.books, accounted_to=now))

    patch.setattr(config_decide, "_status", status)


def nobody_looks_again_when_it_is_due(patch: Patch) -> None:
    really = config_decide._wake_at

    def wake_at(*args: Any) -> datetime | None:
        really(*args)
        return None

    patch.setattr(config_decide, "_wake_at", wake_at)


def what_was_missed_by_seconds_is_run(patch: Patch) -> None:
    def chosen(look: catch_up.Look, _: object, taken: Sequence[datetime]) -> Iterator[datetime]:
        # Somebody was there within the minute, they thought.
        at = max(look.begin, look.now - timedelta(minutes=1))
        while (run := next_run(look.timing, at)) is not None and run <= look.now:
            yield from (run,) if run not in taken else ()
            at = run

    patch.setattr(catch_up, "_chosen", chosen)


def what_is_on_time_is_taken_for_missed(patch: Patch) -> None:
    really = catch_up.find

    def find(look: catch_up.Look) -> catch_up.Found:
        return replace(really(look), is_on_time=False)

    patch.setattr(catch_up, "find", find)


# Windows


def jobs_of_a_window_need_no_lock(patch: Patch) -> None:
    def with_lock(spec: JobSpec, _: object) -> JobSpec:
        return spec

    patch.setattr(making, "with_lock", with_lock)
    patch.setattr(controlled_stops, "with_lock", with_lock)


def nobody_is_told_to_stop(patch: Patch) -> None:
    patch.setattr(controlled_decide, "stops", lambda *_: ())
    patch.setattr(making, "_spec", _without_stop(making._spec))
    patch.setattr(controlled_stops, "_with_stop", lambda run, _: (run.job.spec, {}))


def _without_stop(make: Callable[..., JobSpec]) -> Callable[..., JobSpec]:
    return lambda *args: replace(make(*args), kill_at=None)


def a_stop_is_not_written_on_the_job(patch: Patch) -> None:
    patch.setattr(making, "_spec", _without_stop(making._spec))
    patch.setattr(controlled_stops, "_with_stop", lambda run, _: (run.job.spec, {}))


def a_window_that_opens_is_not_noticed(patch: Patch) -> None:
    patch.setattr(controlled_decide, "_wake_at", lambda _: None)


def a_stop_by_hand_is_taken_for_one_by_the_schedule(patch: Patch) -> None:
    patch.setattr(runs, "_whose_stop", lambda _: Fate.STOPPED)


def a_suspended_job_is_let_go(patch: Patch) -> None:
    really = controlled_stops.revisions

    def revisions(*args: Any) -> Iterator[ReviseJob]:
        choice: Choice = args[1]
        yield from really(*args)
        for run in choice.kept:
            if run.job.spec.suspend and not run.is_over:
                yield ReviseJob(run.job, replace(run.job.spec, suspend=False))

    patch.setattr(controlled_decide, "revisions", revisions)


def a_suspended_job_is_replaced(patch: Patch) -> None:
    patch.setattr(runs.Run, "is_paused", False)


def a_suspended_job_is_made_again_after_a_hold(patch: Patch) -> None:
    really = runs._whose_stop
    let_go: Callable[[Job], Job] = lambda job: replace(  # noqa: E731
        job, spec=replace(job.spec, suspend=False)
    )
    patch.setattr(runs, "_whose_stop", lambda job: really(let_go(job)))


def a_stop_that_is_due_can_be_taken_back(patch: Patch) -> None:
    patch.setattr(people, "check_due", lambda *_: ())


def a_hold_holds_nothing(patch: Patch) -> None:
    patch.setattr(situation, "why_held", lambda suspend, _: "suspended" if suspend else "")
    patch.setattr(plan, "hold_at", lambda *_: None)
    patch.setattr(situation, "hold_at", lambda *_: None)


def a_window_is_not_skipped(patch: Patch) -> None:
    patch.setattr(overrides.Periods, "skip_of", lambda *_: None)


def an_extension_extends_nothing(patch: Patch) -> None:
    patch.setattr(overrides.Periods, "_extended", lambda *_: ())


def what_runs_is_cleared_away(patch: Patch) -> None:
    def too_old(jobs: Iterable[Job], _: object) -> Iterator[Job]:
        return iter(list(jobs)[:1])

    patch.setattr(config_decide, "too_old", too_old)


def one_config_cannot_be_counted(patch: Patch) -> None:
    def counted(*_: object, **__: object) -> JobConfigStatus:
        raise ValueError("planted")

    patch.setattr(config_decide, "counted", counted)


def a_late_stop_is_taken_for_one_that_does_not_come(patch: Patch) -> None:
    """The time that a Job has to go is counted from when it should have been told."""

    def told_since(run: Run, found: situation.Situation) -> datetime:
        return run.job.spec.kill_at or found.now

    patch.setattr(draining, "_told_since", told_since)


#: What is planted, where, and who notices.
BUGS: tuple[tuple[Plant, type[World], str], ...] = (
    (what_is_not_in_the_books_may_start, RivalScheduleWorld, "OncePerDueTime"),
    (due_times_pass_without_a_word, ScheduleWorld, "EveryDueTimeAccounted"),
    (only_some_due_times_are_looked_at, ScheduleWorld, "EveryDueTimeAccounted"),
    (an_edit_goes_on_where_the_former_schedule_ended, ScheduleWorld, "EveryDueTimeAccounted"),
    (an_edit_forgets_what_was_due, ScheduleWorld, "EveryDueTimeAccounted"),
    (the_books_go_back_with_the_clock, RivalScheduleWorld, "EveryDueTimeAccounted"),
    (nobody_looks_again_when_it_is_due, ScheduleWorld, "EveryDueTimeAccounted"),
    (what_was_missed_by_seconds_is_run, ScheduleWorld, "MissedByTheRule"),
    (what_is_on_time_is_taken_for_missed, ScheduleWorld, "MissedByTheRule"),
    (jobs_of_a_window_need_no_lock, ScheduleWorld, "OneAtATime"),
    (nobody_is_told_to_stop, ScheduleWorld, "WindowsKept"),
    (a_stop_is_not_written_on_the_job, ScheduleWorld, "WindowsKept"),
    (a_window_that_opens_is_not_noticed, ScheduleWorld, "WindowsKept"),
    (a_stop_by_hand_is_taken_for_one_by_the_schedule, ScheduleWorld, "PeopleAreHeeded"),
    (a_suspended_job_is_let_go, ScheduleWorld, "PeopleAreHeeded"),
    (a_suspended_job_is_replaced, ScheduleWorld, "PeopleAreHeeded"),
    (a_suspended_job_is_made_again_after_a_hold, ScheduleWorld, "PeopleAreHeeded"),
    (a_stop_that_is_due_can_be_taken_back, ScheduleWorld, "PeopleAreHeeded"),
    (a_hold_holds_nothing, ScheduleWorld, "WindowsKept"),
    (a_window_is_not_skipped, ScheduleWorld, "WindowsKept"),
    (an_extension_extends_nothing, ScheduleWorld, "WindowsKept"),
    (a_late_stop_is_taken_for_one_that_does_not_come, ScheduleWorld, "AlarmsAreTrue"),
    (what_runs_is_cleared_away, ScheduleWorld, "NeverLostButBySchedule"),
    (one_config_cannot_be_counted, ScheduleWorld, "SchedulesSettle"),
)


@pytest.mark.parametrize(("plant", "world", "promise"), BUGS, ids=[bug[0].__name__ for bug in BUGS])
def test_a_planted_bug_is_caught(
    plant: Plant, world: type[World], promise: str, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    broken: dict[str, int] = {}
    for seed in range(MOST_WORLDS):
        outcome = world(seed).run()
        if outcome.broken is not None:
            broken.setdefault(outcome.broken.promise, seed)
        if promise in broken:
            return

    pytest.fail(f"{promise} was not broken; broken were {broken}")
