"""Windows and events say when something is inside its hours, through every change of clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from interlock.timing.calendars import Calendar, NamedDays
from interlock.timing.cron import read_cron
from interlock.timing.day_texts import read_days
from interlock.timing.events import at_time_of_day, event_of
from interlock.timing.flaws import UnreadableError
from interlock.timing.plans import Action, Plan, State
from interlock.timing.ticks import OnGap, OnRepeat
from interlock.timing.windows import read_window
from interlock.timing.zones import find_zone


def at(text: str) -> datetime:
    """A moment in UTC, written 2026-03-08 07:00 or with seconds."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def windowed(zone: str, *windows: str) -> Plan:
    """A plan of windows, each written 09:00-17:00 MON-FRI."""
    read = []
    for text in windows:
        hours, _, days = text.partition(" ")
        begin, _, end = hours.partition("-")
        read.append(read_window(begin, end, days or "*"))
    return Plan(find_zone(zone), read)


def planned(zone: str, *events: str, offset: int = 0, is_reference: bool = False) -> Plan:
    """A plan of events, each written "start 09:00 MON-FRI" or "stop 0 17 * * *"."""
    found = find_zone(zone, offset)
    read = []
    for text in events:
        action, _, when = text.partition(" ")
        if len(when.split()) == 5:
            line = read_cron(when, "default/plan")
        else:
            time, _, days = when.partition(" ")
            line = at_time_of_day(time, days or "*")
        read.append(
            event_of(
                Action(action),
                line,
                found,
                on_gap=OnGap.SKIP if is_reference else OnGap.RUN_AFTER,
                on_repeat=OnRepeat.BOTH if is_reference else OnRepeat.FIRST,
            )
        )
    return Plan(found, events=read)


def period(state: State) -> str | None:
    """When the period began, or None outside."""
    return f"{state.period_start:%m-%d %H:%M}" if state.period_start else None


@pytest.mark.parametrize(
    ("events", "now", "began"),
    [
        pytest.param(
            ["stop 01:00", "start 02:00"], "01:00", None, id="at the stop, before a start"
        ),
        pytest.param(["stop 01:00", "start 02:00"], "02:00", "06-10 02:00", id="at the start"),
        pytest.param(["stop 01:00", "start 03:00"], "02:00", None, id="between stop and start"),
        pytest.param(["start 03:00", "stop 05:00"], "04:00", "06-10 03:00", id="between both"),
        pytest.param(
            ["stop 01:00", "stop 02:00", "start 03:00", "start 04:00"],
            "05:00",
            "06-10 03:00",
            id="the first of several starts",
        ),
        pytest.param(["start 09:00", "stop 17:00"], "09:00", "06-10 09:00", id="inside at a start"),
        pytest.param(["start 09:00", "stop 17:00"], "17:00", None, id="outside at a stop"),
        pytest.param(["start 22:00", "stop 06:00"], "03:00", "06-09 22:00", id="over midnight"),
        pytest.param(["stop 17:00"], "12:00", None, id="only stops"),
        pytest.param([], "12:00", None, id="nothing"),
    ],
)
def test_a_period_begins_with_the_first_start_after_the_last_stop(
    events: list[str], now: str, began: str | None
) -> None:
    state = planned("UTC", *events).state_at(at(f"2026-06-10 {now}"))

    assert period(state) == began
    assert state.is_inside is (began is not None)


def test_a_state_tells_what_was_and_what_comes() -> None:
    plan = windowed("UTC", "09:00-17:00 MON-FRI")

    assert plan.state_at(at("2026-06-12 12:00")) == State(
        is_inside=True,
        period_start=at("2026-06-12 09:00"),
        last_stop=at("2026-06-11 17:00"),
        next_start=at("2026-06-15 09:00"),
        next_stop=at("2026-06-12 17:00"),
    )
    assert plan.state_at(at("2026-06-13 12:00")) == State(
        is_inside=False,
        last_stop=at("2026-06-12 17:00"),
        next_start=at("2026-06-15 09:00"),
        next_stop=at("2026-06-15 17:00"),
    )


@pytest.mark.parametrize(
    ("windows", "now", "began", "stops"),
    [
        pytest.param(["22:00-06:00"], "03:00", "06-09 22:00", "06-10 06:00", id="over midnight"),
        pytest.param(["22:00-06:00 TUE"], "03:00", "06-09 22:00", "06-10 06:00", id="of its day"),
        pytest.param(["22:00-06:00 WED"], "03:00", None, "06-11 06:00", id="of the day after"),
        pytest.param(
            ["09:00-12:00", "11:00-15:00"], "14:00", "06-10 09:00", "06-10 15:00", id="overlapping"
        ),
        pytest.param(
            ["09:00-12:00", "12:00-15:00"], "14:00", "06-10 09:00", "06-10 15:00", id="touching"
        ),
        pytest.param(
            ["09:00-17:00", "10:00-11:00"], "12:00", "06-10 09:00", "06-10 17:00", id="one in one"
        ),
        pytest.param(["06:00-06:00 WED"], "23:00", "06-10 06:00", "06-11 06:00", id="a whole day"),
        pytest.param(
            ["00:00-24:00 MON-FRI"], "12:00", "06-08 00:00", "06-13 00:00", id="whole days touch"
        ),
        pytest.param(
            ["09:00:30-09:00:45"], "09:00:44", "06-10 09:00", "06-10 09:00", id="to the second"
        ),
        pytest.param(["20:00-08:00 SAT-SUN"], "12:00", None, "06-14 08:00", id="days that wrap"),
    ],
)
def test_windows_are_the_time_that_they_cover_together(
    windows: list[str], now: str, began: str | None, stops: str
) -> None:
    state = windowed("UTC", *windows).state_at(at(f"2026-06-10 {now}"))

    assert period(state) == began
    assert f"{state.next_stop:%m-%d %H:%M}" == stops


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(windowed("Europe/London", "06:00-06:00"), id="a window of a day, every day"),
        pytest.param(windowed("UTC", "00:00-12:00", "12:00-00:00"), id="windows without a hole"),
        pytest.param(planned("UTC", "start 09:00"), id="starts without a stop"),
    ],
)
def test_a_plan_without_an_end_began_at_its_first_start_or_when_it_was_made(plan: Plan) -> None:
    made = at("2026-06-01 10:00")

    state = plan.state_at(at("2026-06-10 12:00"), since=made)

    assert (state.is_inside, state.period_start, state.next_stop) == (True, made, None)
    first = plan.state_at(at("2026-06-10 12:00")).period_start
    assert first is not None
    assert first < at("1970-01-02 00:00")


def test_a_plan_looks_as_far_as_it_must() -> None:
    plan = planned("UTC", "start 0 9 29 2 *", "stop 0 17 29 2 *")

    state = plan.state_at(at("2103-01-01 00:00"))

    assert state.last_stop == at("2096-02-29 17:00")
    assert plan.state_at(at("2027-06-01 00:00")).next_start == at("2028-02-29 09:00")
    assert plan.state_at(at("2096-12-01 00:00")).next_start is None


@pytest.mark.parametrize("order", [("start 06:00", "stop 06:00"), ("stop 06:00", "start 06:00")])
def test_a_stop_and_a_start_at_one_moment_are_a_restart_in_any_order(order: list[str]) -> None:
    plan = planned("UTC", *order)

    before = plan.state_at(at("2026-06-10 05:59:59"))
    after = plan.state_at(at("2026-06-10 06:00"))

    assert (before.is_inside, period(before)) == (True, "06-09 06:00")
    assert (after.is_inside, period(after)) == (True, "06-10 06:00")
    turns = list(islice(plan.upcoming(at("2026-06-10 05:00")), 2))
    assert [(turn.at, turn.action) for turn in turns] == [
        (at("2026-06-10 06:00"), Action.STOP),
        (at("2026-06-10 06:00"), Action.START),
    ]


@pytest.mark.parametrize(
    ("zone", "offset", "now", "is_inside", "changes"),
    [
        pytest.param("America/Toronto", 0, "2022-04-22 13:01", True, "21:00", id="Toronto"),
        pytest.param("America/Toronto", -120, "2022-04-22 13:01", False, "13:02", id="later"),
        pytest.param("UTC-1", 60, "2022-04-22 09:58:59", False, "09:59", id="a minute earlier"),
        pytest.param("UTC-1", 60, "2022-04-22 09:59", True, "17:59", id="a minute earlier, at"),
        pytest.param("UTC-1", -60, "2022-04-22 10:00:59", False, "10:01", id="a minute later"),
        pytest.param(
            "Europe/London", 5400, "2022-06-22 06:30", True, "14:30", id="an hour and half"
        ),
        pytest.param("EST", -360, "2022-04-22 14:05", False, "14:06", id="six minutes later"),
    ],
)
def test_an_extra_offset_moves_every_start_and_stop(
    zone: str, offset: int, now: str, is_inside: bool, changes: str
) -> None:
    plan = planned(zone, "start 09:00", "stop 17:00", offset=offset)

    state = plan.state_at(at(now))

    assert state.is_inside is is_inside
    turn = state.next_stop if is_inside else state.next_start
    assert f"{turn:%H:%M}" == changes


@pytest.mark.parametrize(
    "zone", ["Europe/London", "Europe/Berlin", "Asia/Beirut", "Australia/Sydney"]
)
def test_a_repeated_hour_is_looked_back_over_at_every_minute_of_its_day(zone: str) -> None:
    plan = planned(zone, "start 09:00", "stop 17:00")
    change = at("2024-10-27 01:00") if "Sydney" not in zone else at("2024-04-06 16:00")

    for minute in range(-1000, 1000, 7):
        state = plan.state_at(change + timedelta(minutes=minute))
        assert state.last_stop is not None
        assert state.is_inside is (state.period_start is not None)


@pytest.mark.parametrize(
    ("zone", "window", "now", "began", "stops"),
    [
        pytest.param(
            "America/New_York",
            "02:30-09:00",
            "2022-03-13 08:00",
            "03-13 07:00",
            "03-13 13:00",
            id="a start in the gap comes right after it",
        ),
        pytest.param(
            "America/New_York",
            "22:00-02:30",
            "2022-03-13 06:59",
            "03-13 03:00",
            "03-13 07:00",
            id="a stop in the gap comes right after it",
        ),
        pytest.param(
            "America/New_York",
            "22:00-02:30",
            "2022-03-13 07:00",
            None,
            "03-14 06:30",
            id="and the window is over then",
        ),
        pytest.param(
            "America/New_York",
            "01:30-01:45",
            "2022-11-06 05:40",
            "11-06 05:30",
            "11-06 05:45",
            id="a short window in the repeated hour, the first time",
        ),
        pytest.param(
            "America/New_York",
            "01:30-01:45",
            "2022-11-06 06:40",
            None,
            "11-07 06:45",
            id="and not the second time",
        ),
        pytest.param(
            "America/New_York",
            "01:30-09:00",
            "2022-11-06 06:40",
            "11-06 05:30",
            "11-06 14:00",
            id="a start in the repeated hour comes the first time",
        ),
        pytest.param(
            "America/New_York",
            "02:15-02:45",
            "2022-03-13 07:00",
            None,
            "03-14 06:45",
            id="a window that is skipped as a whole is empty",
        ),
        pytest.param(
            "America/Santiago",
            "09:00-23:30 MON-SAT",
            "2026-09-06 12:00",
            None,
            "09-08 02:30",
            id="a stop before a skipped midnight is remembered",
        ),
        pytest.param(
            "America/Havana",
            "00:00-08:00 SUN",
            "2026-03-08 05:00",
            "03-08 05:00",
            "03-08 12:00",
            id="a start at a skipped midnight",
        ),
        pytest.param(
            "Australia/Lord_Howe",
            "01:45-09:00",
            "2026-04-04 16:00",
            "04-04 14:45",
            "04-04 22:30",
            id="half an hour is repeated",
        ),
        pytest.param(
            "Pacific/Apia",
            "09:00-17:00",
            "2011-12-30 10:00",
            None,
            "12-31 03:00",
            id="a day that is skipped has no window",
        ),
        pytest.param(
            "Pacific/Apia",
            "22:00-06:00",
            "2011-12-30 09:30",
            "12-30 08:00",
            "12-30 10:00",
            id="a window into a skipped day ends with it",
        ),
    ],
)
def test_windows_through_changes_of_clocks(
    zone: str, window: str, now: str, began: str | None, stops: str
) -> None:
    begin, _, rest = window.partition("-")
    end, _, days = rest.partition(" ")
    events = (f"start {begin} {days or '*'}", f"stop {end} {days or '*'}")
    plans = [windowed(zone, window)]
    # The same as two events; only a stop past midnight has other days than its start.
    if not days or end > begin:
        plans.append(planned(zone, *events))
    for plan in plans:
        state = plan.state_at(at(now))

        assert period(state) == began
        assert f"{state.next_stop:%m-%d %H:%M}" == stops


def test_what_was_imported_skips_gaps_and_runs_in_both_hours_as_before() -> None:
    plan = planned("America/New_York", "start 02:30", "stop 09:00", is_reference=True)
    short = planned("America/New_York", "start 01:30", "stop 01:45", is_reference=True)

    assert not plan.state_at(at("2022-03-13 08:00")).is_inside
    assert period(short.state_at(at("2022-11-06 05:40"))) == "11-06 05:30"
    assert period(short.state_at(at("2022-11-06 06:40"))) == "11-06 06:30"


def test_a_stop_is_told_to_the_second_however_late_it_is_asked_for() -> None:
    plan = windowed("UTC", "09:00-17:00")

    asked = at("2026-06-10 17:00").replace(microsecond=999_999)

    assert plan.state_at(asked).last_stop == at("2026-06-10 17:00")


HOLIDAYS = Calendar("nyse-holidays", [NamedDays(read_days("4th THU of NOV"), "Thanksgiving Day")])
TRADING = Calendar("trading-days", [NamedDays(read_days("MON-FRI"), "a trading day")])


def test_a_window_of_a_closed_day_is_skipped_and_told() -> None:
    window = read_window("09:00", "17:30", "MON-FRI", exclude=[HOLIDAYS])
    plan = Plan(find_zone("America/New_York"), [window])

    turns = list(islice(plan.upcoming(at("2026-11-25 13:00")), 5))

    assert [(f"{turn.wall:%a %d %H:%M}", turn.action, turn.skipped) for turn in turns] == [
        ("Wed 25 09:00", Action.START, None),
        ("Wed 25 17:30", Action.STOP, None),
        ("Thu 26 09:00", Action.START, "calendar nyse-holidays: Thanksgiving Day"),
        ("Fri 27 09:00", Action.START, None),
        ("Fri 27 17:30", Action.STOP, None),
    ]
    assert not plan.state_at(at("2026-11-26 15:00")).is_inside


def test_a_window_over_midnight_belongs_to_the_day_it_starts_on() -> None:
    plan = Plan(find_zone("UTC"), [read_window("22:00", "06:00", only=[TRADING])])

    friday_night = plan.state_at(at("2026-06-13 03:00"))
    sunday_night = plan.state_at(at("2026-06-15 03:00"))

    assert period(friday_night) == "06-12 22:00"
    assert period(sunday_night) is None


def test_round_the_clock_ends_only_where_a_calendar_says_so() -> None:
    plan = Plan(find_zone("UTC"), [read_window("00:00", "24:00", exclude=[HOLIDAYS])])

    state = plan.state_at(at("2026-06-10 12:00"))

    assert state.period_start == at("2025-11-28 00:00")
    assert state.next_stop == at("2026-11-26 00:00")


@pytest.mark.parametrize(
    ("begin", "end", "days", "told"),
    [
        pytest.param("9:00", "17:00", "*", 'did you mean "09:00"?', id="one digit"),
        pytest.param("25:00", "17:00", "*", "from 00:00 to 23:59:59", id="no such hour"),
        pytest.param("24:00", "17:00", "*", "from 00:00 to 23:59:59", id="only an end is 24:00"),
        pytest.param("09:00", "24:01", "*", "from 00:00 to 24:00", id="beyond the day"),
        pytest.param("09:60", "17:00", "*", "from 00:00", id="no such minute"),
        pytest.param("09:00", "17:00", "MON-FRY", 'did you mean "MON-FRI"?', id="no such day"),
        pytest.param("09:00", "17:00", "FRIL", "expected a plain day-of-week", id="not plain days"),
        pytest.param("09:00", "17:00", "H", "expected a plain day-of-week", id="not drawn days"),
        pytest.param("09:00", "17:00", "*/2", "expected a day-of-week", id="no steps"),
        pytest.param("09:00", "17:00", "", "before and after each comma", id="no days"),
    ],
)
def test_a_bad_window_is_refused(begin: str, end: str, days: str, told: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        read_window(begin, end, days)

    assert told in str(refused.value)
