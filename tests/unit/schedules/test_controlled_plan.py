"""When a ControlledJob is to run: its plan, and what exceptions make of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

import pytest

from interlock.resources.controlled_job import ControlledJob
from interlock.schedules.controlled.plan import Timetable, timetable_of
from interlock.testing.controlled_builders import (
    a_controlled,
    a_window,
    an_event,
    an_override,
    moment,
)
from interlock.timing.calendars import Calendar, NamedDays
from interlock.timing.day_texts import read_days
from interlock.timing.flaws import UnreadableError

MON, TUE, WED, THU = ("2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08")
WEEKDAYS = a_window("09:00-17:00", "MON-FRI")


def plan(controlled: ControlledJob, *calendars: Calendar) -> Timetable:
    return timetable_of(controlled, {calendar.name: calendar for calendar in calendars})


def turns(timetable: Timetable, after: str, number: int) -> list[str]:
    return [
        f"{turn.at:%a %H:%M} {turn.action}" + (f": {turn.skipped}" if turn.skipped else "")
        for turn in islice(timetable.upcoming(moment(after)), number)
    ]


@pytest.mark.parametrize(
    ("windows", "now", "start", "next_start", "next_stop"),
    [
        pytest.param((WEEKDAYS,), f"{WED} 12:00", f"{WED} 09:00", f"{THU} 09:00", f"{WED} 17:00",
                     id="N2 inside a window"),
        pytest.param((WEEKDAYS,), f"{WED} 20:00", None, f"{THU} 09:00", f"{THU} 17:00",
                     id="N2 after a window"),
        pytest.param((WEEKDAYS,), f"{WED} 09:00", f"{WED} 09:00", f"{THU} 09:00", f"{WED} 17:00",
                     id="N2 exactly at the start is inside"),
        pytest.param((WEEKDAYS,), f"{WED} 17:00", None, f"{THU} 09:00", f"{THU} 17:00",
                     id="N2 exactly at the stop is outside"),
        pytest.param((an_event("start", "09:00"),), f"{MON} 12:00", "2020-01-01 00:00", None, None,
                     id="P1 a plan that never stops counts from its making, and is no error"),
        pytest.param((an_event("stop", "01:00"), an_event("start", "02:00")), f"{MON} 01:00", None,
                     f"{MON} 02:00", f"{TUE} 01:00", id="P2 at the stop, before the start"),
        pytest.param((an_event("stop", "01:00"), an_event("start", "02:00")), f"{MON} 02:00",
                     f"{MON} 02:00", f"{TUE} 02:00", f"{TUE} 01:00", id="P2 at the start"),
        pytest.param((an_event("stop", "01:00"), an_event("start", "03:00")), f"{MON} 02:00", None,
                     f"{MON} 03:00", f"{TUE} 01:00",
                     id="P3 a start to come is the next start, not the last"),
        pytest.param((an_event("start", "03:00"), an_event("stop", "05:00")), f"{MON} 04:00",
                     f"{MON} 03:00", f"{TUE} 03:00", f"{MON} 05:00", id="P4 inside"),
        pytest.param(
            (an_event("stop", "01:00"), an_event("stop", "02:00"), an_event("start", "03:00"),
             an_event("start", "04:00")), f"{MON} 05:00", f"{MON} 03:00", f"{TUE} 03:00",
            f"{TUE} 01:00", id="P5 the first start after the stop begins the window",
        ),
    ],
)  # fmt: skip
def test_where_a_moment_lies_in_a_plan(
    windows: tuple[object, ...],
    now: str,
    start: str | None,
    next_start: str | None,
    next_stop: str | None,
) -> None:
    standing = plan(a_controlled(*windows)).state_at(moment(now))  # type: ignore[arg-type]

    found = (standing.start, standing.next_start, standing.next_stop)
    assert found == tuple(text and moment(text) for text in (start, next_start, next_stop))
    assert standing.is_inside is (start is not None)


@pytest.mark.parametrize(
    ("zone", "offset", "at", "is_inside"),
    [
        pytest.param("America/New_York", 0, "2022-01-05 14:00", True, id="P6 New York in winter"),
        pytest.param("Etc/GMT+5", 0, "2022-04-22 13:59", False, id="N3 a fixed zone before"),
        pytest.param("Etc/GMT+5", 0, "2022-04-22 14:00", True, id="N3 a fixed zone at the start"),
        pytest.param("Etc/GMT+5", -360, "2022-04-22 14:05", False, id="N3 six minutes later"),
        pytest.param("Etc/GMT+5", -360, "2022-04-22 14:06", True, id="N3 six minutes later, begun"),
        pytest.param("UTC-1", 60, "2022-04-22 09:58", False, id="N4 a minute earlier, before"),
        pytest.param("UTC-1", 60, "2022-04-22 09:59", True, id="N4 a minute earlier"),
        pytest.param("UTC-1", -60, "2022-04-22 10:00", False, id="N4 a minute later, before"),
        pytest.param("UTC-1", -60, "2022-04-22 10:01", True, id="N4 a minute later"),
        pytest.param("Europe/London", 5400, "2022-07-01 06:29", False, id="London +5400 s before"),
        pytest.param("Europe/London", 5400, "2022-07-01 06:30", True, id="London +5400 s"),
    ],
)  # fmt: skip
def test_zones_and_their_offsets(zone: str, offset: int, at: str, is_inside: bool) -> None:
    controlled = a_controlled(a_window("09:00-12:00"), zone=zone, offset=offset)

    assert plan(controlled).state_at(moment(at)).is_inside is is_inside


def test_n1_a_plan_without_starts_is_never_inside_and_still_stops() -> None:
    bare = a_controlled(an_event("stop", "17:00"))

    found = plan(bare).state_at(moment(f"{MON} 12:00"))

    assert (found.is_inside, found.next_start) == (False, None)
    assert found.next_stop == moment(f"{MON} 17:00")
    assert not plan(bare).has_starts


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(an_event("start", "not a cron line at all"), id="N1 a bad cron line"),
        pytest.param(an_event("start", "25:99"), id="N1 no such time"),
        pytest.param(an_event("start", "09:00", "FOO"), id="N1 no such day"),
    ],
)
def test_an_event_that_cannot_be_read_is_told_and_crashes_nothing(event: object) -> None:
    with pytest.raises(UnreadableError):
        plan(a_controlled(event))  # type: ignore[arg-type]


# Exceptions


def test_a_skip_leaves_out_the_windows_that_start_in_it() -> None:
    skip = an_override("Skip", f"{TUE} 00:00", f"{WED} 00:00", by="kim", reason="no data")
    timetable = plan(a_controlled(overrides=(skip,)))

    assert not timetable.state_at(moment(f"{TUE} 12:00")).is_inside
    assert timetable.state_at(moment(f"{MON} 12:00")).next_start == moment(f"{WED} 09:00")
    assert turns(timetable, f"{MON} 10:00", 4) == [
        "Mon 17:00 stop",
        "Tue 09:00 start: skipped by kim: no data",
        "Tue 17:00 stop",
        "Wed 09:00 start",
    ]


def test_a_skip_leaves_a_window_alone_that_opened_before_it() -> None:
    skip = an_override("Skip", f"{MON} 10:00", f"{TUE} 00:00")

    assert plan(a_controlled(overrides=(skip,))).state_at(moment(f"{MON} 12:00")).is_inside


def test_a_skip_that_ends_inside_a_window_does_not_open_it_halfway() -> None:
    skip = an_override("Skip", f"{TUE} 00:00", f"{TUE} 10:00")
    timetable = plan(a_controlled(overrides=(skip,)))

    assert not timetable.state_at(moment(f"{TUE} 12:00")).is_inside
    assert timetable.overrides_left(moment(f"{TUE} 12:00")) == (skip,)
    assert timetable.overrides_left(moment(f"{TUE} 17:00")) == ()


def test_a_skip_of_years_is_passed_over_at_once() -> None:
    skip = an_override("Skip", f"{TUE} 00:00", "2036-01-01 00:00")
    every_minute = (an_event("start", "* * * * *"), an_event("stop", "* * * * *"))
    timetable = plan(a_controlled(*every_minute, overrides=(skip,)))

    assert timetable.state_at(moment(f"{TUE} 12:00")).next_start == moment("2036-01-01 00:00")


def test_an_extension_moves_the_stop_of_the_window_that_is_open() -> None:
    extend = an_override("Extend", f"{MON} 12:00", f"{MON} 19:00")
    timetable = plan(a_controlled(overrides=(extend,)))

    assert timetable.state_at(moment(f"{MON} 18:59")).is_inside
    after = timetable.state_at(moment(f"{MON} 19:00"))
    assert (after.is_inside, after.last_stop) == (False, moment(f"{MON} 19:00"))
    assert turns(timetable, f"{MON} 10:00", 3) == [
        "Mon 19:00 stop", "Tue 09:00 start", "Tue 17:00 stop",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("begin", "until", "stop"),
    [
        pytest.param("12:00", "15:00", "17:00", id="an earlier end shortens nothing"),
        pytest.param("12:00", "17:00", "17:00", id="the same end changes nothing"),
        pytest.param("17:00", "19:00", "17:00", id="nothing is open at the stop"),
        pytest.param("08:00", "19:00", "17:00", id="nothing is open before the start"),
    ],
)
def test_an_extension_without_effect(begin: str, until: str, stop: str) -> None:
    extend = an_override("Extend", f"{MON} {begin}", f"{MON} {until}")

    standing = plan(a_controlled(overrides=(extend,))).state_at(moment(f"{MON} 13:00"))

    assert standing.next_stop == moment(f"{MON} {stop}")


def test_an_extension_into_the_next_window_joins_the_two_and_is_kept_as_long() -> None:
    extend = an_override("Extend", f"{MON} 12:00", f"{TUE} 10:00")
    timetable = plan(a_controlled(overrides=(extend,)))

    joined = timetable.state_at(moment(f"{TUE} 12:00"))

    assert joined.start == moment(f"{MON} 09:00")
    assert joined.next_stop == moment(f"{TUE} 17:00")
    assert timetable.overrides_left(moment(f"{TUE} 16:59")) == (extend,)
    assert timetable.overrides_left(moment(f"{TUE} 17:00")) == ()


def test_an_extension_up_to_the_next_start_is_a_restart() -> None:
    extend = an_override("Extend", f"{MON} 12:00", f"{TUE} 09:00")
    standing = plan(a_controlled(overrides=(extend,))).state_at(moment(f"{TUE} 09:00"))

    assert (standing.start, standing.last_stop) == (moment(f"{TUE} 09:00"), moment(f"{TUE} 09:00"))


def test_a_skip_is_kept_while_an_extension_would_undo_it() -> None:
    skip = an_override("Skip", f"{MON} 08:00", f"{MON} 10:00")
    extend = an_override("Extend", f"{MON} 12:00", f"{MON} 20:00")
    timetable = plan(a_controlled(overrides=(skip, extend)))

    assert timetable.overrides_left(moment(f"{MON} 18:00")) == (skip, extend)
    assert timetable.overrides_left(moment(f"{MON} 20:00")) == ()


def test_extensions_follow_each_other() -> None:
    both = (
        an_override("Extend", f"{MON} 18:00", f"{MON} 21:00"),
        an_override("Extend", f"{MON} 12:00", f"{MON} 19:00"),
    )
    standing = plan(a_controlled(overrides=both)).state_at(moment(f"{MON} 20:00"))

    assert (standing.start, standing.next_stop) == (moment(f"{MON} 09:00"), moment(f"{MON} 21:00"))


def test_a_hold_stops_what_runs_and_lets_the_same_window_go_on_after_it() -> None:
    hold = an_override("Hold", f"{MON} 12:00", f"{MON} 14:00", reason="month end")
    timetable = plan(a_controlled(overrides=(hold,)))

    held = timetable.state_at(moment(f"{MON} 13:00"))

    assert not held.is_inside
    assert held.held == "on hold until 2026-01-05T14:00:00Z: month end"
    assert held.next_start == moment(f"{MON} 14:00")
    assert timetable.state_at(moment(f"{MON} 11:00")).next_stop == moment(f"{MON} 12:00")
    after = timetable.state_at(moment(f"{MON} 14:00"))
    assert (after.is_inside, after.start) == (True, moment(f"{MON} 09:00"))
    assert turns(timetable, f"{MON} 10:00", 4) == [
        "Mon 12:00 stop", "Mon 14:00 start", "Mon 17:00 stop", "Tue 09:00 start",
    ]  # fmt: skip


def test_a_hold_over_several_starts_tells_each_as_skipped() -> None:
    hold = an_override("Hold", f"{MON} 20:00", f"{WED} 20:00")
    timetable = plan(a_controlled(overrides=(hold,)))

    assert timetable.state_at(moment(f"{MON} 21:00")).next_start == moment(f"{THU} 09:00")
    assert turns(timetable, f"{MON} 18:00", 3) == [
        "Tue 09:00 start: on hold until 2026-01-07T20:00:00Z",
        "Wed 09:00 start: on hold until 2026-01-07T20:00:00Z",
        "Thu 09:00 start",
    ]


def test_holds_that_meet_are_one_and_the_later_end_counts() -> None:
    holds = (
        an_override("Hold", f"{MON} 11:00", f"{MON} 13:00"),
        an_override("Hold", f"{MON} 13:00", f"{MON} 15:00"),
    )
    timetable = plan(a_controlled(overrides=holds))

    assert turns(timetable, f"{MON} 10:00", 3) == [
        "Mon 11:00 stop", "Mon 15:00 start", "Mon 17:00 stop",
    ]  # fmt: skip
    assert timetable.state_at(moment(f"{MON} 12:00")).next_start == moment(f"{MON} 15:00")


def test_a_hold_beats_an_extension_and_a_skip_beats_it_too() -> None:
    overrides = (
        an_override("Extend", f"{MON} 12:00", f"{MON} 20:00"),
        an_override("Hold", f"{MON} 18:00", f"{MON} 19:00"),
        an_override("Skip", f"{TUE} 00:00", f"{WED} 00:00"),
        an_override("Extend", f"{TUE} 12:00", f"{TUE} 20:00"),
    )
    timetable = plan(a_controlled(overrides=overrides))

    assert not timetable.state_at(moment(f"{MON} 18:30")).is_inside
    assert timetable.state_at(moment(f"{MON} 19:30")).is_inside
    assert not timetable.state_at(moment(f"{TUE} 18:00")).is_inside


def test_while_suspended_every_start_is_told_as_skipped() -> None:
    timetable = plan(a_controlled(suspend=True))

    assert timetable.state_at(moment(f"{MON} 12:00")).held == "suspended"
    assert timetable.state_at(moment(f"{MON} 12:00")).next_start is None
    assert turns(timetable, f"{MON} 18:00", 2) == ["Tue 09:00 start: suspended", "Tue 17:00 stop"]


def test_days_that_a_calendar_closes_are_told_with_their_name() -> None:
    holidays = Calendar("holidays", [NamedDays(read_days("2026-01-06"), "Epiphany")])
    controlled = a_controlled(a_window(exclude=("holidays",)))
    timetable = plan(controlled, holidays)

    assert not timetable.state_at(moment(f"{TUE} 12:00")).is_inside
    assert turns(timetable, f"{MON} 18:00", 2) == [
        "Tue 09:00 start: calendar holidays: Epiphany", "Wed 09:00 start",
    ]  # fmt: skip


def test_turns_tell_the_time_on_the_wall_of_the_schedule() -> None:
    hold = an_override("Hold", "2026-07-01 12:00", "2026-07-01 13:00")
    timetable = plan(a_controlled(zone="Europe/London", overrides=(hold,)))

    walls = [
        f"{turn.wall:%H:%M}" for turn in islice(timetable.upcoming(moment("2026-07-01 02:00")), 4)
    ]

    assert walls == ["09:00", "13:00", "14:00", "17:00"]


def test_what_is_foretold_is_what_is_so() -> None:
    """Walking the turns, the state flips at each turn that is not skipped, and at no other time."""
    overrides = (
        an_override("Extend", f"{MON} 12:00", f"{MON} 19:00"),
        an_override("Hold", f"{TUE} 11:00", f"{TUE} 12:30"),
        an_override("Skip", f"{WED} 00:00", f"{THU} 00:00"),
        an_override("Hold", f"{THU} 08:00", f"{THU} 10:00"),
    )
    timetable = plan(
        a_controlled(a_window("09:00-17:00"), a_window("20:00-02:00"), overrides=overrides)
    )
    at, end = moment(f"{MON} 00:00"), moment("2026-01-10 00:00")
    flips: dict[datetime, bool] = {}
    inside = timetable.state_at(at).is_inside
    while at < end:
        at += timedelta(minutes=10)
        now = timetable.state_at(at).is_inside
        if now is not inside:
            flips[at] = inside = now
    told: dict[datetime, bool] = {}
    inside = timetable.state_at(moment(f"{MON} 00:00")).is_inside
    for turn in timetable.upcoming(moment(f"{MON} 00:00")):
        if turn.at > end:
            break
        if turn.skipped is None and (turn.action == "start") is not inside:
            told[turn.at] = inside = turn.action == "start"

    assert told == flips
