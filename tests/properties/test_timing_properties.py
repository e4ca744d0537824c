"""Whatever the line, zone and moment: due times come in order, once, and both ways alike."""

from __future__ import annotations

import heapq
from datetime import UTC, datetime, timedelta
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from interlock.timing.calendars import Calendar, NamedDays
from interlock.timing.cron import CronFormat, read_cron
from interlock.timing.day_sets import Weekdays
from interlock.timing.due import (
    Schedule,
    due_after,
    next_after,
    previous_at_or_before,
    upcoming,
)
from interlock.timing.events import event_of
from interlock.timing.flaws import Flaw, UnreadableError
from interlock.timing.icalendar import read_icalendar
from interlock.timing.plans import Action, Plan
from interlock.timing.ticks import OnGap, OnRepeat
from interlock.timing.walls import Line
from interlock.timing.windows import read_window
from interlock.timing.zones import find_zone

SECOND = timedelta(seconds=1)

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Santiago",
    "Antarctica/Troll",
    "America/Nuuk",
    "Pacific/Apia",
)
MINUTES = ("0", "30", "*", "*/7", "5,35", "H", "H/20", "10-50/20")
HOURS = ("0", "1", "2", "23", "*", "*/2", "1-3", "H", "22,23,0")
DAYS = ("*", "?", "1", "L", "15W", "LW", "1,8-14", "H", "H/9", "31")
MONTHS = ("*", "MAR,NOV", "NOV-FEB", "12", "*/3", "H")
WEEKDAYS = ("*", "SUN", "FRI-MON", "5L", "0#1", "H", "H/7", "SAT-SUN")
#: Near changes of clocks in the zones above, and far from any.
MOMENTS = (
    datetime(2026, 3, 8, 6, tzinfo=UTC),
    datetime(2026, 11, 1, 5, tzinfo=UTC),
    datetime(2026, 3, 29, 0, tzinfo=UTC),
    datetime(2026, 10, 25, 0, tzinfo=UTC),
    datetime(2026, 4, 4, 14, tzinfo=UTC),
    datetime(2026, 10, 3, 14, tzinfo=UTC),
    datetime(2011, 12, 30, 8, tzinfo=UTC),
    datetime(2028, 2, 28, 23, tzinfo=UTC),
    datetime(2098, 12, 31, 23, tzinfo=UTC),
)

names = st.text(max_size=20)
lines = st.builds(
    lambda *fields: " ".join(fields),
    *(st.sampled_from(field) for field in (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)),
)
moments = st.builds(
    lambda moment, minutes: moment + timedelta(minutes=minutes),
    st.sampled_from(MOMENTS),
    st.integers(-1500, 1500),
)
calendars = st.builds(
    lambda weekdays: Calendar("c", [NamedDays(Weekdays(weekdays), "closed")]), st.integers(0, 127)
)


def _read(text: str, name: str = "default/x") -> Line:
    # The last of a drawn day and month may be one that no year has; then it is every day.
    try:
        return read_cron(text, name)
    except UnreadableError:
        minute, hour, *_ = text.split()
        return read_cron(f"{minute} {hour} * * *", name)


schedules = st.builds(
    lambda texts, zone, on_gap, on_repeat, exclude: Schedule(
        [_read(text) for text in texts],
        find_zone(zone),
        on_gap=on_gap,
        on_repeat=on_repeat,
        exclude=exclude,
    ),
    st.lists(lines, min_size=1, max_size=2),
    st.sampled_from(ZONES),
    st.sampled_from(OnGap),
    st.sampled_from(OnRepeat),
    st.lists(calendars, max_size=1),
)


@given(schedule=schedules, moment=moments)
def test_next_and_previous_are_each_others_inverse(schedule: Schedule, moment: datetime) -> None:
    following = next_after(schedule, moment)
    previous = previous_at_or_before(schedule, moment)
    if following is not None:
        assert following > moment
        assert previous_at_or_before(schedule, following) == following
        assert previous_at_or_before(schedule, following - SECOND) == previous
    if previous is not None:
        assert previous <= moment
        assert next_after(schedule, previous - SECOND) == previous
        assert next_after(schedule, previous) == following


@given(schedule=schedules, moment=moments, later=st.integers(0, 200_000))
def test_a_later_question_never_has_an_earlier_answer(
    schedule: Schedule, moment: datetime, later: int
) -> None:
    first = next_after(schedule, moment)
    second = next_after(schedule, moment + later * SECOND)
    assert second is None or (first is not None and first <= second)


@given(schedule=schedules, moment=moments)
def test_due_times_are_the_runs_and_the_skips_in_order_each_once(
    schedule: Schedule, moment: datetime
) -> None:
    due = list(islice(upcoming([schedule], moment), 30))
    times = [each.at for each in due]
    assert times == sorted(set(times))
    runs = [each.at for each in due if each.skipped is None]
    following = next_after(schedule, moment)
    for run in runs:
        assert run == following
        following = next_after(schedule, run)


@given(texts=st.lists(lines, min_size=1, max_size=3), zone=st.sampled_from(ZONES), moment=moments)
def test_several_lines_are_due_when_any_of_them_is(
    texts: list[str], zone: str, moment: datetime
) -> None:
    found, read = find_zone(zone), [_read(text) for text in texts]
    together = upcoming([Schedule(read, found)], moment)
    apart = heapq.merge(
        *((due.at for due in upcoming([Schedule([line], found)], moment)) for line in read)
    )
    expected: list[datetime] = []
    for at in apart:
        if not expected or at != expected[-1]:
            expected.append(at)
        if len(expected) == 20:
            break
    assert [due.at for due in islice(together, 20)] == expected


@given(text=lines, first=names, second=names)
def test_a_line_that_can_be_read_for_one_name_can_be_read_for_every_name(
    text: str, first: str, second: str
) -> None:
    read = [_is_readable(text, name) for name in (first, second)]
    assert read[0] is read[1]
    if read[0]:
        schedule = Schedule([read_cron(text, first)], find_zone("UTC"))
        assert due_after(schedule, datetime(1960, 1, 1, tzinfo=UTC)) is not None


def _is_readable(text: str, name: str) -> bool:
    try:
        read_cron(text, name)
    except UnreadableError:
        return False
    return True


@given(
    text=st.one_of(
        st.text(max_size=60), st.text(alphabet="0123456789*/?-,#LWH()@ JANMO", max_size=40)
    ),
    format=st.sampled_from([None, *CronFormat]),
)
def test_any_text_is_read_or_refused(text: str, format: CronFormat | None) -> None:
    flaws: tuple[Flaw, ...] = ()
    try:
        line = read_cron(text, "default/x", format)
    except UnreadableError as refused:
        flaws = refused.flaws
    if flaws:
        assert all(1 <= flaw.place <= len(text) + 1 for flaw in flaws)
    else:
        schedule = Schedule([line], find_zone("America/New_York"))
        assert next_after(schedule, datetime(1960, 1, 1, tzinfo=UTC)) is not None


@given(text=st.text(alphabet="BEGINVT:;=DAYLRUS20261\n \r", max_size=200))
def test_any_file_is_read_or_told(text: str) -> None:
    reading = read_icalendar("c", f"BEGIN:VCALENDAR\nBEGIN:VEVENT\n{text}\nEND:VEVENT")
    assert reading.flaws


TIMES = ("00:00", "00:30", "01:30", "02:15", "02:45", "09:00", "23:30")
windows = st.builds(
    read_window,
    st.sampled_from(TIMES),
    st.sampled_from(TIMES),
    st.sampled_from(("*", "SUN", "SAT-MON")),
)
events = st.tuples(st.sampled_from(Action), lines)


@given(
    zone=st.sampled_from(ZONES),
    hours=st.lists(windows, max_size=2),
    turns=st.lists(events, max_size=3),
    moment=moments,
)
def test_a_plan_is_inside_from_a_start_until_the_next_stop(
    zone: str, hours: list[object], turns: list[tuple[Action, str]], moment: datetime
) -> None:
    found = find_zone(zone)
    plan = Plan(
        found,
        hours,  # type: ignore[arg-type]  # Hypothesis tells no types of what it builds.
        [event_of(action, _read(text), found) for action, text in turns],
    )
    state = plan.state_at(moment)
    assert state.is_inside is (state.period_start is not None)
    assert state.last_stop is None or state.last_stop <= moment
    assert state.next_start is None or state.next_start > moment
    assert state.next_stop is None or state.next_stop > moment
    if state.period_start is not None:
        assert state.period_start <= moment
        assert state.last_stop is None or state.period_start >= state.last_stop
        assert plan.state_at(state.period_start).period_start == state.period_start
    turn = min(filter(None, (state.next_start, state.next_stop)), default=None)
    if turn is not None:
        # Nothing changes before the next turn, and just before it all is as it is now.
        before = plan.state_at(turn - SECOND)
        assert (before.is_inside, before.period_start) == (state.is_inside, state.period_start)
        if turn == state.next_start:
            assert plan.state_at(turn).is_inside
        else:
            assert not plan.state_at(turn).is_inside
