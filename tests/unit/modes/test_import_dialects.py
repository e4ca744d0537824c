"""Lines of Quartz, Spring, AWS and Jenkins are due when those programs would run them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from dialect_walker import due_by_program
from hypothesis import given
from hypothesis import strategies as st
from import_clocks import due_times, imported

from interlock.importing.cron_dialects import import_cron_lines
from interlock.importing.drafts import BadSourceError

START = datetime(2027, 1, 1, tzinfo=UTC)
END = datetime(2029, 1, 1, tzinfo=UTC)
#: So many due times are compared at most, and twice: from the start, and late in a February.
COMPARED = 400


def schedules(dialect: str, *lines: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Any]:
    made, draft = imported(import_cron_lines, "\n".join(lines), dialect=dialect, timezone="UTC")
    configs = [one for one in made if one["kind"] == "JobConfig"]
    return configs, [one for one in made if one["kind"] == "Calendar"], draft


def assert_the_same_times(dialect: str, line: str) -> None:
    (config,), calendars, draft = schedules(dialect, line)
    assert draft.left_out == 0
    for start in (START, datetime(2028, 2, 26, tzinfo=UTC)):
        expected = list(islice(due_by_program(dialect, line, start, END), COMPARED))
        end = expected[-1] + timedelta(seconds=1) if len(expected) == COMPARED else END
        assert due_times(config, start, end, calendars) == expected, config


QUARTZ = [
    ("0 15 10 ? * 2-6 *", "15 10 * * MON-FRI"),
    ("0 0 12 * * ?", "0 12 * * *"),
    ("0 0/5 14,18 * * ?", "0/5 14,18 * * *"),
    ("0 0 22-2 * * ?", "0 22-23,0-2 * * *"),
    ("0 58-4 * * * ?", "58-59,0-4 * * * *"),
    ("0 0 22-3/2 * * ?", "0 0,2,22 * * *"),
    ("0 0 0 29-2 * ?", "0 0 29-31,1-2 * *"),
    ("0 0 0 ? * 6-2", "0 0 * * MON,FRI-SUN"),
    ("0 0 0 ? * 1", "0 0 * * SUN"),
    ("0 0 0 ? * 7", "0 0 * * SAT"),
    ("0 0 0 ? * L", "0 0 * * SAT"),
    ("0 0 0 ? * 6L", "0 0 * * FRIL"),
    ("0 0 0 ? * FRIL", "0 0 * * FRIL"),
    ("0 0 0 ? * 6#3", "0 0 * * FRI#3"),
    ("0 0 0 ? * 2/2", "0 0 * * MON,WED,FRI"),
    ("0 0 0 ? * */2", "0 0 * * TUE,THU,SAT,SUN"),
    ("0 0 0 ? * MON-FRI 2028", "0 0 * * MON-FRI 2028"),
    ("15 0 0 L * ?", "15 0 0 L * *"),
    ("15/20 0 0 L-3 * ? 2027-2030", "15/20 0 0 L-3 * * 2027-2030"),
    ("0 0 0 LW * ?", "0 0 LW * *"),
    ("0 0 0 1,L * ?", "0 0 1,L * *"),
    ("0 0 0 L-2,15W,29-2 * ?", "0 0 L-2,15W,29-31,1-2 * *"),
    ("0 0 0 15W * ?", "0 0 15W * *"),
    ("0 0 0 31W 1,3,5 ?", "0 0 31W 1,3,5 *"),
    ("0 0 0 1 NOV-FEB ?", "0 0 1 NOV-FEB *"),
    ("0 0/120 * * * ?", "0 * * * *"),
    ("0 0 0/48 * * ?", "0 0 * * *"),
    ("0 /20 * * * ?", "/20 * * * *"),
]


@pytest.mark.parametrize(("line", "written"), QUARTZ)
def test_quartz(line: str, written: str) -> None:
    (config,), _, _ = schedules("quartz", line)

    assert config["spec"]["schedules"][0]["cron"] == written
    assert_the_same_times("quartz", line)


@pytest.mark.parametrize("line", ["0 0 12 L-1W * ?", "0 0 12 L-27W * ?", "5 0 12 L-2W 2,3 ? 2028"])
def test_the_working_day_before_the_last_is_a_line_for_each_length(line: str) -> None:
    assert_the_same_times("quartz", line)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("cron(0 10 * * ? *)", "0 10 * * *"),
        ("cron(15 12 ? * 2-6 *)", "15 12 * * MON-FRI"),
        ("cron(0 9 ? * 2#1 *)", "0 9 * * MON#1"),
        ("cron(0/10 * ? * MON-FRI 2027)", "0/10 * * * MON-FRI 2027"),
        ("cron(0 8 1 * ? *)", "0 8 1 * *"),
        ("cron(0 8 L * ? *)", "0 8 L * *"),
        ("0 8 ? * 5L *", "0 8 * * THUL"),
    ],
)
def test_aws(line: str, written: str) -> None:
    (config,), _, _ = schedules("aws", line)

    assert config["spec"]["schedules"][0]["cron"] == written
    assert_the_same_times("aws", line)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("rate(1 minute)", "* * * * *"),
        ("rate(5 minutes)", "*/5 * * * *"),
        ("rate(60 minutes)", "0 * * * *"),
        ("rate(12 hours)", "0 */12 * * *"),
        ("rate(1 day)", "0 0 * * *"),
    ],
)
def test_a_rate_is_as_near_as_can_be_and_told(line: str, written: str) -> None:
    (config,), _, draft = schedules("aws", line)

    assert config["spec"]["schedules"][0]["cron"] == written
    assert any(note.what == "is due at other moments" for note in draft.notes)


@pytest.mark.parametrize(
    ("line", "written", "days"),
    [
        ("0 0 * * * *", "0 * * * *", []),
        ("*/10 * * * * *", "*/10 * * * * *", []),
        ("0 0 8-10 * * *", "0 8-10 * * *", []),
        ("0 0 9-17 * * MON-FRI", "0 9-17 * * MON-FRI", []),
        ("0 0 0 * * 0", "0 0 * * SUN", []),
        ("0 0 0 * * 7", "0 0 * * SUN", []),
        ("0 0 0 * * 5-7", "0 0 * * FRI-SUN", []),
        ("0 0 0 * * SUN-TUE", "0 0 * * MON,TUE,SUN", []),
        ("0 0 0 * * 7-7", "0 0 * * *", []),
        ("0 0 0 * * MON-FRI/2", "0 0 * * MON,WED,FRI", []),
        ("0 0 0 * * */2", "0 0 * * MON,WED,FRI,SUN", []),
        ("0 0 0 * * 3/2", "0 0 * * WED,FRI,SUN", []),
        ("0 0 0 ? * 5#2", "0 0 * * FRI#2", []),
        ("0 0 0 * * 5L", "0 0 * * FRIL", []),
        ("0 0 0 * * THUL", "0 0 * * THUL", []),
        ("0 0 0 L * *", "0 0 L * *", []),
        ("0 0 0 L-3 * *", "0 0 L-3 * *", []),
        ("0 0 0 1W * *", "0 0 1W * *", []),
        ("0 0 0 LW * *", "0 0 LW * *", []),
        ("0 0 0 1,L * *", "0 0 1,L * *", []),
        ("@daily", "0 0 * * *", []),
        ("@hourly", "0 * * * *", []),
        ("0 0 0 13 * FRI", "0 0 13 * *", ["FRI"]),
        ("0 0 0 */2 * MON-FRI", "0 0 */2 * *", ["MON-FRI"]),
        ("0 0 0 1-20 * 2#2,5L", "0 0 1-20 * *", ["2nd TUE of *", "last FRI of *"]),
    ],
)
def test_spring(line: str, written: str, days: list[str]) -> None:
    (config,), calendars, _ = schedules("spring", line)

    assert config["spec"]["schedules"][0]["cron"] == written
    assert [day["day"] for one in calendars for day in one["spec"]["days"]] == days
    if not line.startswith("@"):
        assert_the_same_times("spring", line)


@pytest.mark.parametrize(
    ("line", "written", "days"),
    [
        ("0 2 * * 1-5", "0 2 * * MON-FRI", []),
        ("*/15 * * * *", "*/15 * * * *", []),
        ("0 0 * * */2", "0 0 * * TUE,THU,SAT,SUN", []),
        ("0 0 13 * 5", "0 0 13 * *", ["FRI"]),
        ("0 0 1-7 * 7", "0 0 1-7 * *", ["SUN"]),
        ("0 0 * * 1-7/2", "0 0 * * MON,WED,FRI,SUN", []),
    ],
)
def test_jenkins(line: str, written: str, days: list[str]) -> None:
    (config,), calendars, _ = schedules("jenkins", line)

    assert config["spec"]["schedules"][0]["cron"] == written
    assert [day["day"] for one in calendars for day in one["spec"]["days"]] == days
    assert_the_same_times("jenkins", line)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("H H(0-2) * * *", "H H(0-2) * * *"),
        ("H(0-29)/10 * * * 1-5", "H(0-29)/10 * * * MON-FRI"),
        ("H H H/3 * *", "H H H(1-28)/3 * *"),
        ("H/1 H(0-5)/1 * * *", "H H(0-5) * * *"),
        ("H/15 * * * *", "H/15 * * * *"),
        ("@midnight", "H H(0-2) * * *"),
        ("@weekly", "H H * * H"),
    ],
)
def test_an_h_of_jenkins_stays_one_and_is_told(line: str, written: str) -> None:
    (config,), _, draft = schedules("jenkins", "TZ=Europe/London", line)

    (schedule,) = config["spec"]["schedules"]
    assert (schedule["cron"], schedule["timezone"]) == (written, "Europe/London")
    assert any(note.what == "an H falls elsewhere" for note in draft.notes)


@pytest.mark.parametrize(
    ("dialect", "line", "told"),
    [
        ("quartz", "0 0 0 1 * 2", "? in exactly one"),
        ("quartz", "0 0 0 * * *", "? in exactly one"),
        ("quartz", "0 0 0 31W * ?", "programs disagree"),
        ("quartz", "0 0 0 1,L-1W * ?", "only be said alone"),
        ("quartz", "0 0 0 ? * 2#1,4#2", "only alone"),
        ("quartz", "0 0 0 ? * 2,6L", "only alone"),
        ("quartz", "0 0 0 ? * MON-FRI/2", "does not count"),
        ("aws", "cron(0 8 1,L * ? *)", "only alone"),
        ("quartz", "0 0 0 L-28 * ?", "not every month"),
        ("quartz", "0 0 0 ? * 8", "expected 1 to 7"),
        ("quartz", "0 0 0 ? * 0", "expected 1 to 7"),
        ("quartz", "0 0 0 ? * 2#6", "#1 to #5"),
        ("quartz", "0 0 0 * * ? 2110", "years end with 2099"),
        ("quartz", "0 0 * * ?", "found 5 fields"),
        ("quartz", "@daily", "has no"),
        ("quartz", "0 0/0 * * * ?", "a step of 1 or more"),
        ("quartz", "0 0 0 5C * ?", "5C"),
        ("aws", "cron(0 22-2 * * ? *)", "to rise"),
        ("aws", "rate(7 minutes)", "do not divide"),
        ("aws", "rate(90 minutes)", "do not divide"),
        ("aws", "at(2027-01-01T00:00:00)", "startAfter"),
        ("spring", "0 0 0 * * L", '"L": expected 0 to 7'),
        ("spring", "0 0 0 * * FRI-MON", "to rise"),
        ("spring", "0 0 0 L-1W * *", "Spring has no"),
        ("spring", "0 0 0 28W * *", "programs disagree"),
        ("spring", "-", "without schedules"),
        ("jenkins", "5/15 * * * *", "a range before the /"),
        ("jenkins", "0 0 L * *", '"L": expected 1 to 31'),
        ("jenkins", "0 0 1 * H", "no line says both"),
    ],
)
def test_what_cannot_be_said_is_refused_with_words(dialect: str, line: str, told: str) -> None:
    configs, _, draft = schedules(dialect, line)

    assert (configs, draft.left_out) == ([], 1)
    (note,) = draft.notes
    assert told in note.why
    assert (note.line, note.instead) == (1, "it is left out")


def test_lines_may_have_names_quotes_and_comments() -> None:
    source = "# jobs\n\nreport.cron=0 0 2 * * *\nclean: '0 0 3 * * *'\n\"0 0 4 * * *\",\n"

    made, draft = imported(import_cron_lines, source, dialect="spring")

    assert [one["metadata"]["name"] for one in made] == ["report-cron", "clean", "line-5"]
    assert [one["spec"]["schedules"][0]["cron"] for one in made] == [
        f"0 {hour} * * *" for hour in (2, 3, 4)
    ]
    assert [note.what for note in draft.notes] == ["names no zone", "names no work"]


@pytest.mark.parametrize("source", ["", "# nothing\n", "TZ=Mars\n0 0 * * *\n"])
def test_a_file_without_lines_or_with_an_unknown_zone_is_refused(source: str) -> None:
    with pytest.raises(BadSourceError):
        imported(import_cron_lines, source, dialect="jenkins")


def numbers(low: int, high: int, *, wraps: bool) -> st.SearchStrategy[str]:
    """A field of numbers: values, ranges and steps."""
    value = st.integers(low, high)
    ranges = st.tuples(value, value).map(lambda ends: ends if wraps else tuple(sorted(ends)))
    steps = st.sampled_from(("", "", "/2", "/3", "/7"))
    part = st.one_of(
        value.map(str),
        st.builds(lambda ends, step: f"{ends[0]}-{ends[1]}{step}", ranges, steps),
        st.builds(lambda first, step: f"{first}/{step}", value, st.integers(1, 9)),
    )
    return st.one_of(st.just("*"), st.lists(part, min_size=1, max_size=2).map(",".join))


def days(*, wraps: bool) -> st.SearchStrategy[str]:
    rules = st.sampled_from(("L", "LW", "L-2", "15W", "1W", "27W"))
    return st.one_of(numbers(1, 31, wraps=wraps), rules)


def weekdays(low: int, *, wraps: bool) -> st.SearchStrategy[str]:
    nth = st.builds("{}#{}".format, st.integers(1, 7), st.integers(1, 4))
    last = st.builds("{}L".format, st.sampled_from((1, 5, 7, "MON", "SUN")))
    return st.one_of(numbers(low, 7, wraps=wraps), nth, last)


TIMES = ("0 0 12", "30 */20 5", "0 0/45 22", "0 15 0")


@given(
    time=st.sampled_from(TIMES),
    by_week=st.booleans(),
    day=days(wraps=True),
    weekday=weekdays(1, wraps=True),
    month=numbers(1, 12, wraps=True),
)
def test_any_line_of_quartz(time: str, by_week: bool, day: str, weekday: str, month: str) -> None:
    line = f"{time} ? {month} {weekday}" if by_week else f"{time} {day} {month} ?"
    _assert_alike("quartz", line)


@given(
    time=st.sampled_from(TIMES),
    day=days(wraps=False),
    weekday=weekdays(0, wraps=False),
    month=numbers(1, 12, wraps=False),
)
def test_any_line_of_spring(time: str, day: str, weekday: str, month: str) -> None:
    _assert_alike("spring", f"{time} {day} {month} {weekday}")


def _assert_alike(dialect: str, line: str) -> None:
    """The same times; a line that is never due in two years may be refused as never due."""
    configs, _, draft = schedules(dialect, line)
    if configs:
        assert_the_same_times(dialect, line)
        return
    assert "never be due" in draft.notes[-1].why
    assert next(due_by_program(dialect, line, START, END), None) is None
