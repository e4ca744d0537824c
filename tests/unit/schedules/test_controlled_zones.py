"""Days on which clocks change, in zones with odd rules, through the decisions themselves."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from interlock.resources.controlled_job import ControlledJob, EventSpec, WindowSpec
from interlock.resources.schedule import HistoryLimits
from interlock.testing.controlled_builders import a_controlled, a_window, an_event, moment
from support.controlled_desk import ControlledDesk


def starts_and_stops(controlled: ControlledJob, begin: str, end: str) -> list[str]:
    """What ran from when to when, by the looks that the room itself asks for."""
    desk = ControlledDesk(controlled, at=moment(begin))
    told: list[str] = []
    running: list[str] = []
    decision = desk.settle()
    while True:
        if desk.live != running:
            word = "start" if desk.live else "stop"
            if desk.live and running:
                word = "restart"
            told.append(f"{desk.now:%m-%d %H:%M} {word}")
            running = desk.live
        assert len(running) <= 1
        assert decision.wake_at is None or decision.wake_at > desk.now
        if decision.wake_at is None or decision.wake_at > moment(end):
            return told
        decision = desk.settle_at(decision.wake_at)


def a_plan(zone: str, *windows: WindowSpec | EventSpec) -> ControlledJob:
    return a_controlled(*windows, zone=zone, history=HistoryLimits(succeeded=0, failed=0))


@pytest.mark.parametrize(
    "zone",
    ["Europe/London", "Europe/Berlin", "Europe/Dublin", "Europe/Lisbon", "Asia/Jerusalem",
     "Asia/Beirut", "America/New_York"],
)  # fmt: skip
def test_defect_1_on_the_day_clocks_go_back_every_zone_has_its_window(zone: str) -> None:
    controlled = a_plan(zone, a_window("09:00-17:00"))

    told = starts_and_stops(controlled, "2024-10-25 00:00", "2024-11-05 00:00")

    assert len(told) >= 20
    assert [line.rpartition(" ")[2] for line in told[:20]] == ["start", "stop"] * 10


@pytest.mark.parametrize("zone", ["Australia/Sydney", "Pacific/Auckland"])
def test_defect_1_also_in_the_south(zone: str) -> None:
    told = starts_and_stops(a_plan(zone, a_window()), "2024-04-04 14:00", "2024-04-09 00:00")

    words = [line.rpartition(" ")[2] for line in told]
    assert words[:8] in (["start", "stop"] * 4, ["stop", "start"] * 4)


def test_defect_2_a_start_inside_the_spring_gap_comes_right_after_it() -> None:
    """The reference loses the whole window (row N5)."""
    controlled = a_plan("America/New_York", a_window("02:30-09:00"))

    told = starts_and_stops(controlled, "2022-03-13 00:00", "2022-03-14 00:00")

    assert told == ["03-13 07:00 start", "03-13 13:00 stop"]


def test_defect_3_a_stop_inside_the_spring_gap_is_kept() -> None:
    """The reference runs on for a day."""
    controlled = a_plan("America/New_York", a_window("22:00-02:30"))

    told = starts_and_stops(controlled, "2022-03-12 12:00", "2022-03-13 12:00")

    assert told == ["03-13 03:00 start", "03-13 07:00 stop"]


def test_defect_4_a_short_window_in_the_repeated_hour_runs_once() -> None:
    controlled = a_plan("America/New_York", a_window("01:30-01:45"))

    told = starts_and_stops(controlled, "2022-11-06 02:00", "2022-11-06 12:00")

    assert told == ["11-06 05:30 start", "11-06 05:45 stop"]


def test_n6_a_start_in_the_repeated_hour_is_at_its_first_occurrence_whoever_looks_when() -> None:
    """The reference finds the second one when it looks back."""
    controlled = a_plan("America/New_York", an_event("start", "01:30"), an_event("stop", "09:00"))
    desk = ControlledDesk(controlled, at=moment("2022-11-06 08:00"))
    desk.settle()

    window = desk.controlled.status.window
    assert window is not None
    assert window.start == moment("2022-11-06 05:30")


@pytest.mark.parametrize(
    ("zone", "saturday", "sunday_noon"),
    [
        # Clocks skip midnight at the beginning of the Sunday.
        pytest.param("America/Santiago", "2022-09-10", "2022-09-11 16:00", id="Santiago"),
        pytest.param("America/Havana", "2022-03-12", "2022-03-13 16:00", id="Havana"),
        pytest.param("Atlantic/Azores", "2022-03-26", "2022-03-27 12:00", id="Azores"),
    ],
)
def test_defect_5_a_saturdays_late_stop_is_not_forgotten_where_clocks_skip_midnight(
    zone: str, saturday: str, sunday_noon: str
) -> None:
    controlled = a_plan(
        zone, an_event("start", "09:00", "SAT"), an_event("stop", "23:30", "SAT"),
    )  # fmt: skip
    desk = ControlledDesk(controlled, at=moment(f"{saturday} 15:00"))
    desk.settle()
    assert len(desk.live) == 1

    desk.run_through(moment(sunday_noon))

    assert desk.live == []
    assert not desk.controlled.status.should_be_running


def test_defect_5_asked_for_the_first_time_on_the_sunday_nothing_starts() -> None:
    controlled = a_plan(
        "America/Santiago", an_event("start", "09:00", "SAT"), an_event("stop", "23:30", "SAT"),
    )  # fmt: skip
    desk = ControlledDesk(controlled, at=moment("2022-09-11 16:00"))

    desk.settle()

    assert desk.jobs == {}


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        # Clocks go on by half an hour at 02:00 on 2 October 2022; on 3 April they go back just as
        # they would show 02:00, so they first do half an hour later.
        pytest.param("2022-10-01 12:00", ["10-01 15:30 start", "10-01 16:00 stop"], id="spring"),
        pytest.param("2022-04-02 12:00", ["04-02 15:30 start", "04-02 16:30 stop"], id="autumn"),
    ],
)
def test_defect_7_half_an_hours_change_at_lord_howe(begin: str, expected: list[str]) -> None:
    controlled = a_plan("Australia/Lord_Howe", a_window("02:00-03:00"))
    end = f"{moment(begin) + timedelta(hours=10):%Y-%m-%d %H:%M}"

    told = starts_and_stops(controlled, begin, end)

    assert told == expected


@pytest.mark.parametrize(
    "events",
    [
        pytest.param((an_event("start", "09:00"), an_event("stop", "09:00")), id="start first"),
        pytest.param((an_event("stop", "09:00"), an_event("start", "09:00")), id="stop first"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/London", "America/New_York"])
def test_defect_6_a_stop_and_a_start_at_one_instant_are_a_restart_every_day(
    zone: str, events: tuple[EventSpec, ...]
) -> None:
    controlled = a_plan(zone, *events)

    told = starts_and_stops(controlled, "2024-10-25 00:00", "2024-10-30 00:00")

    assert [line.rpartition(" ")[2] for line in told] == ["start", *["restart"] * 5]


def test_defect_7_a_fraction_of_the_stops_own_second_expires_nothing_that_began_at_it() -> None:
    desk = ControlledDesk(a_controlled(an_event("stop", "17:00")), at=moment("2026-01-05 17:00"))
    desk.settle()
    from interlock.schedules.controlled.making import make_job

    at = datetime.fromisoformat("2026-01-05T17:00:00+00:00")
    desk.put(make_job(desk.controlled, start=at, number=0, stop=None, is_manual=True))

    desk.settle_at(moment("2026-01-05 17:00:00.750"))

    assert len(desk.live) == 1


def test_defect_8_weeks_that_wrap_around_are_windows_like_others() -> None:
    controlled = a_plan("UTC", a_window("22:00-02:00", "FRI-MON"))

    told = starts_and_stops(controlled, "2026-01-08 00:00", "2026-01-14 00:00")

    assert told == [
        "01-09 22:00 start", "01-10 02:00 stop", "01-10 22:00 start", "01-11 02:00 stop",
        "01-11 22:00 start", "01-12 02:00 stop", "01-12 22:00 start", "01-13 02:00 stop",
    ]  # fmt: skip
