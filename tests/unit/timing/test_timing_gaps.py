"""What a gap swallows is told: as skipped, at the moment at which it would have been due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest

from interlock.timing.calendars import Calendar, NamedDays
from interlock.timing.cron import read_cron
from interlock.timing.day_texts import read_days
from interlock.timing.due import Due, Schedule, due_after, upcoming
from interlock.timing.events import at_time_of_day, event_of
from interlock.timing.plans import Action, Plan
from interlock.timing.ticks import OnGap, last_of
from interlock.timing.zones import find_zone

NEW_YORK = find_zone("America/New_York")
#: Clocks go from 02:00 EST to 03:00 EDT at 07:00 UTC.
BEGIN, GAP = datetime(2026, 3, 7, 12, tzinfo=UTC), datetime(2026, 3, 8, 7, tzinfo=UTC)
END = datetime(2026, 3, 9, 3, tzinfo=UTC)
SUNDAY = Calendar("sundays", [NamedDays(read_days("2026-03-08"), "Sunday")])


def due_of(line: str, on_gap: OnGap, *exclude: Calendar) -> list[Due]:
    schedule = Schedule([read_cron(line, "x")], NEW_YORK, on_gap=on_gap, exclude=exclude)
    return list(takewhile(lambda due: due.at < END, upcoming([schedule], BEGIN)))


@pytest.mark.parametrize(
    "line",
    [
        "30 2 * * *",
        "0,15,30 2 * * *",
        "0 1,2 * * *",
        "0 3 * * *",
        "30 1-3 * * *",
        "0 2,3 * * *",
        "30 * * * *",
        "0 */2 * * *",
        "*/20 2 * * *",
    ],
)
def test_what_is_left_out_is_what_would_have_run_after_the_gap(line: str) -> None:
    after, skip = due_of(line, OnGap.RUN_AFTER), due_of(line, OnGap.SKIP)

    assert [due.at for due in skip] == [due.at for due in after]
    told = [due.at for due in skip if due.skipped is not None]
    shown = {due.wall for due in after if due.at != GAP or due.wall.hour != 2}
    assert told == [due.at for due in after if due.wall not in shown]


def test_it_says_which_time_it_is_and_why() -> None:
    (due,) = due_of("15,30 2 * * *", OnGap.SKIP)

    assert (due.at, due.wall.hour, due.wall.minute) == (GAP, 2, 30)
    assert due.skipped == "clocks skip 02:30, and onGap is Skip"


def test_on_a_day_that_is_closed_anyhow_the_calendar_is_the_reason() -> None:
    (due,) = due_of("30 2 * * *", OnGap.SKIP, SUNDAY)

    assert due.skipped == "calendar sundays: Sunday"


def test_it_is_found_looking_back_too() -> None:
    schedule = Schedule([read_cron("30 2 * * *", "x")], NEW_YORK, on_gap=OnGap.SKIP)
    tick = last_of(schedule.skips, int((GAP + timedelta(days=90)).timestamp()))

    assert tick is not None
    assert tick.at == int(GAP.timestamp())


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_line_that_no_gap_touches_has_nothing_to_tell(zone: str) -> None:
    schedule = Schedule([read_cron("0 9 * * *", "x")], find_zone(zone), on_gap=OnGap.SKIP)

    assert schedule.next_skip(int(BEGIN.timestamp())) is None
    found = due_after(schedule, BEGIN)
    assert found is not None
    assert found.skipped is None


def test_a_start_and_a_stop_that_a_gap_swallows_are_turns_that_do_not_happen() -> None:
    plan = Plan(
        NEW_YORK,
        (),
        [
            event_of(Action.START, at_time_of_day("02:30"), NEW_YORK, on_gap=OnGap.SKIP),
            event_of(Action.STOP, at_time_of_day("09:00"), NEW_YORK, on_gap=OnGap.SKIP),
        ],
    )
    turns = list(takewhile(lambda turn: turn.at < END, plan.upcoming(BEGIN)))

    why = "clocks skip 02:30, and onGap is Skip"
    assert [(turn.at, turn.action, turn.skipped) for turn in turns] == [
        (datetime(2026, 3, 7, 14, tzinfo=UTC), Action.STOP, None),
        (GAP, Action.START, why),
        (datetime(2026, 3, 8, 13, tzinfo=UTC), Action.STOP, None),
    ]
    assert plan.next_in_gap(BEGIN) == (turns[1],)
    assert plan.next_skipped(BEGIN) == turns[1]
