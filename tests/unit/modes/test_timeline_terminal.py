"""A timeline as text: what ran, what did not, and what is to come, each in its place."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from timeline_objects import at, charted, config, controlled, kept, plus, ran, stored

from interlock.forecast.timeline.model import Chart, Row
from interlock.modes.cli.output.timelines.scale import shares, skipped_shares
from interlock.modes.cli.output.timelines.terminal import drawn
from interlock.resources.codec import to_builtins
from interlock.resources.job import Job
from interlock.resources.metadata import Resource
from interlock.resources.schedule import STOPPED_BECAUSE_ANNOTATION, STOPPED_BY_ANNOTATION
from interlock.resources.tasks import JobResult


def lines_of(chart: Chart, width: int = 100, *, plain: bool = True, **more: Any) -> list[str]:
    return drawn(chart, width=width, plain=plain, paint=lambda text, _: text, **more)


def picture(chart: Chart, width: int = 100, *, plain: bool = True) -> str:
    """The chart without its legend."""
    lines = lines_of(chart, width, plain=plain)
    return "\n".join(lines[: lines.index("")])


def record(day: str, outcome: str, **more: Any) -> dict[str, Any]:
    return {"start": f"{day}T14:00:00Z", "stop": f"{day}T22:30:00Z", "outcome": outcome, **more}


def the_tour() -> Chart:
    """An engine that was restarted, a report that failed once, and two days to come."""
    engine = controlled(
        "pricing-engine",
        "America/New_York",
        windows=[{"from": "09:00", "to": "17:30", "days": "MON-FRI", "exclude": ["nyse"]}],
        overrides=[
            {
                "action": "Hold",
                "from": "2026-11-18T16:00:00Z",
                "until": "2026-11-18T18:00:00Z",
                "by": "ops",
            }
        ],
        status={
            "window": record("2026-11-17", "Started"),
            "pastWindows": [record("2026-11-16", "Stopped")],
            "actionHistory": [
                {
                    "type": "JobRestarted",
                    "timestamp": "2026-11-17T15:02:00Z",
                    "message": "template changed",
                }
            ],
        },
    )
    report = config(
        "nightly-report",
        "Europe/London",
        "41 2 * * *",
        skips=[{"at": "2026-11-15T02:41:00Z", "reason": "Concurrency"}],
    )
    nyse = stored("Calendar", "nyse", {"days": [{"day": "2026-11-19", "name": "Thanksgiving"}]})
    return charted(
        [
            (
                engine,
                [
                    kept("2026-11-16T14:00:00", "2026-11-16T22:30:00"),
                    kept("2026-11-17T14:00:00", "2026-11-17T15:02:00"),
                    ran("2026-11-17T15:32:00"),
                ],
            ),
            (
                report,
                [
                    ran("2026-11-16T02:41:00", "2026-11-16T02:45:00"),
                    ran("2026-11-17T02:41:00", "2026-11-17T02:42:00", JobResult.FAILED),
                    ran("2026-11-17T03:41:00", "2026-11-17T05:45:00"),
                ],
            ),
        ],
        "2026-11-17T19:20:00",
        "2026-11-15",
        "2026-11-19",
        [nyse],
    )


GOLDEN = """\
                        00    03    06    09    12    15    18    21
nightly-report  Sun 15       -                                            skipped: Concurrency
                Mon 16       o                                            ok 4 m
                Tue 17       x #####                          |           1 ok, 1 failed
                Wed 18       +                                            1 to come
                Thu 19       +                                            1 to come
pricing-engine  Sun 15
                Mon 16                    #################               ok
                Tue 17                    ##.#######>//////               running; restarted 10:0...
                Wed 18                    ////====/////////               on hold until 13:00 EST...
                Thu 19                    -                               skipped: calendar nyse:...

# ran   > runs now   o ran briefly, ok   x failed   . window, nothing ran   / window to come
= on hold   + due   - skipped   | now"""

GOLDEN_BLOCKS = """\
                        00    03    06    09    12    15    18    21
nightly-report  Sun 15       ○                                            skipped: Concurrency
                Mon 16       ●                                            ok 4 m
                Tue 17       ✕ █████                          │           1 ok, 1 failed
                Wed 18       ◌                                            1 to come
                Thu 19       ◌                                            1 to come
pricing-engine  Sun 15
                Mon 16                    █████████████████               ok
                Tue 17                    ██░███████▶▒▒▒▒▒▒               running; restarted 10:02…
                Wed 18                    ▒▒▒▒┄┄┄┄▒▒▒▒▒▒▒▒▒               on hold until 13:00 EST b…
                Thu 19                    ○                               skipped: calendar nyse: T…
"""


def test_the_picture_of_the_tour() -> None:
    assert "\n".join(lines_of(the_tour())) == GOLDEN
    assert picture(the_tour(), plain=False) == GOLDEN_BLOCKS.rstrip("\n")


def test_words_are_not_cut_where_nobody_asked_for_a_width() -> None:
    told = "\n".join(lines_of(the_tour(), is_cut=False))
    assert "running; restarted 10:02 (template changed)" in told
    assert "skipped: calendar nyse: Thanksgiving" in told


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200, 400])
def test_a_line_is_as_wide_as_asked_for_where_that_can_be(width: int) -> None:
    widest = max(map(len, lines_of(the_tour(), width)))
    assert widest <= max(width, 16 + 8 + 24 + 2 + 8)


def test_colours_do_not_move_anything() -> None:
    def marked(text: str, colour: str) -> str:
        return f"<{colour}>{text}</>"

    plain = lines_of(the_tour())
    coloured = drawn(the_tour(), width=100, plain=True, paint=marked)
    for colour in ("green", "cyan", "red", "dim", "blue", "yellow"):
        coloured = [line.replace(f"<{colour}>", "") for line in coloured]
    assert [line.replace("</>", "").rstrip() for line in coloured] == plain


NIGHT = [{"from": "22:00", "to": "02:30"}]


def test_a_window_over_midnight_is_on_both_days() -> None:
    chart = charted([(controlled(windows=NIGHT), [])], "2026-05-01T00:00:00", "2026-06-10")
    assert picture(chart) == (
        "                00    03    06    09    12    15    18    21\n"
        "engine  Wed 10  /////                                       ////  22:00-02:30"
    )


def test_a_day_of_23_hours_shows_the_hour_that_is_skipped() -> None:
    night = controlled(zone="Europe/London", windows=NIGHT)
    chart = charted([(night, [])], "2026-03-01T00:00:00", "2026-03-28", "2026-03-30")
    assert picture(chart) == (
        "                    00    03    06    09    12    15    18    21\n"
        "engine  Sat 28      /////                                       ////  22:00-02:30\n"
        "        Sun 29 23h  //~~/                                       ////  22:00-02:30\n"
        "        Mon 30      /////                                       ////  22:00-02:30"
    )


def test_on_a_day_of_25_hours_both_passes_share_their_place() -> None:
    night = controlled(zone="Europe/London", windows=NIGHT)
    # From 00:30 to 01:30 UTC: half past one in summer time, and again half past one in winter time.
    runs = [ran("2026-10-25T00:30:00", "2026-10-25T01:30:00")]
    chart = charted([(night, runs)], "2026-10-26T12:00:00", "2026-10-25")
    assert picture(chart) == (
        "                    00    03    06    09    12    15    18    21\n"
        "engine  Sun 25 25h  ..##.                                       ...."
    )
    (row,) = chart.rows
    assert row.hours == 25
    assert list(shares(row, at("2026-10-25T00:30:00"), at("2026-10-25T01:30:00"))) == [
        (1.5 / 24, 2 / 24),
        (1 / 24, 1.5 / 24),
    ]


@pytest.mark.parametrize(
    ("zone", "day", "hours", "skipped"),
    [
        ("America/New_York", "2026-03-08", 23, [(2 / 24, 3 / 24)]),
        ("America/New_York", "2026-11-01", 25, []),
        ("Australia/Lord_Howe", "2026-10-04", 23.5, [(2 / 24, 2.5 / 24)]),
        ("America/Santiago", "2026-09-06", 23, [(0.0, 1 / 24)]),
        ("America/Santiago", "2026-04-04", 25, []),
        ("Pacific/Apia", "2011-12-30", 0, [(0.0, 1.0)]),
        ("Asia/Tokyo", "2026-03-08", 24, []),
    ],
)
def test_every_day_is_as_long_as_it_is(
    zone: str, day: str, hours: float, skipped: list[tuple[float, float]]
) -> None:
    chart = charted([(config(zone=zone), [])], "2026-01-01T00:00:00", day)
    (row,) = chart.rows
    assert row.hours == hours
    found = [share for part in skipped_shares(row) for share in part]
    assert found == pytest.approx([share for part in skipped for share in part])
    picture(chart)


def test_all_time_of_a_day_has_a_place_on_its_row() -> None:
    for zone in ("Europe/London", "Australia/Lord_Howe", "America/Santiago", "America/Havana"):
        for day in ("2026-03-29", "2026-10-25", "2026-04-04", "2026-09-06", "2026-11-01"):
            (row,) = charted([(config(zone=zone), [])], "2026-01-01T00:00:00", day).rows
            covered = sum(finish - begin for begin, finish in shares(row, row.begin, row.end))
            assert covered * 24 == pytest.approx(row.hours)


@pytest.mark.parametrize(
    ("because", "told"),
    [
        pytest.param("", "ok", id="at the end of its window"),
        pytest.param("its window closed at 2026-06-10T17:30:00Z", "ok", id="and late"),
        pytest.param("on hold until 2026-06-11T08:00:00Z by ops", "stopped", id="by a hold"),
    ],
)
def test_a_run_that_was_cut_short_is_not_ok(because: str, told: str) -> None:
    past = {"start": "2026-06-10T09:00:00Z", "stop": "2026-06-10T17:30:00Z", "outcome": "Stopped"}
    job = kept("2026-06-10T09:00:00", "2026-06-10T12:00:00")
    notes = {STOPPED_BECAUSE_ANNOTATION: because} if because else {}
    job = replace(job, metadata=replace(job.metadata, annotations=notes))
    engine = controlled(status={"window": past})
    chart = charted([(engine, [job])], "2026-06-10T20:00:00", "2026-06-10")

    assert lines_of(chart, is_cut=False)[1].split()[-1] == told


def test_an_extended_window_and_a_stop_by_a_person_are_seen() -> None:
    engine = controlled(
        overrides=[
            {
                "action": "Extend",
                "from": "2026-06-10T10:00:00Z",
                "until": "2026-06-10T20:00:00Z",
                "reason": "month end",
            }
        ],
        status={
            "window": {
                "start": "2026-06-10T09:00:00Z",
                "stop": "2026-06-10T20:00:00Z",
                "outcome": "StoppedByUser",
                "message": "by ops",
            }
        },
    )
    jobs = [kept("2026-06-10T09:00:00", "2026-06-10T09:10:00", by_hand=True)]
    chart = charted([(engine, jobs)], "2026-06-10T15:00:00", "2026-06-10")
    assert lines_of(chart, is_cut=False)[1] == (
        "engine  Wed 10                    s...........|/////////*         "
        "stopped by a person (by ops); extended until 20:00 UTC: month end"
    )


def test_whoever_stopped_the_job_of_a_window_is_named() -> None:
    job = kept("2026-06-10T09:00:00", "2026-06-10T09:10:00", by_hand=True)
    marks = {**job.metadata.annotations, STOPPED_BY_ANNOTATION: "ann"}
    job = replace(job, metadata=replace(job.metadata, uid="u", annotations=marks))
    window = {
        "start": "2026-06-10T09:00:00Z",
        "outcome": "StoppedByUser",
        "job": {"name": "engine-0", "uid": "u"},
    }
    chart = charted(
        [(controlled(status={"window": window}), [job])], "2026-06-10T15:00:00", "2026-06-10"
    )
    assert lines_of(chart, is_cut=False)[1].endswith("stopped by ann")


def test_a_skip_by_a_person_is_told_with_the_reason() -> None:
    skip = {
        "action": "Skip",
        "from": "2026-06-11T00:00:00Z",
        "until": "2026-06-12T00:00:00Z",
        "by": "ops",
        "reason": "release",
    }
    chart = charted([(controlled(overrides=[skip]), [])], "2026-06-10T20:00:00", "2026-06-11")
    assert lines_of(chart)[1].endswith("skipped by ops: release")
    assert "-" in lines_of(chart)[1][16:64]


def test_past_windows_that_no_record_tells_of_are_those_of_the_plan_since_it_was_made() -> None:
    chart = charted([(controlled(), [])], "2026-06-10T20:00:00", "2026-06-10")
    assert lines_of(chart)[1] == "engine  Wed 10                    .................     |"
    before = charted([(controlled(), [])], "2026-06-10T20:00:00", "2025-06-10")
    assert lines_of(before)[1] == "engine  Tue 10"


def test_very_many_due_times_are_drawn_in_no_time() -> None:
    chart = charted(
        [(config(cron="* * * * * * *"), [])], "2026-06-10T00:00:00", "2026-06-10", "2026-06-12"
    )
    for line in lines_of(chart)[1:4]:
        assert line[16:64] == "+" * 48
    assert len(chart.rows[0].marks) < 500


def test_many_rows_are_one_below_the_other() -> None:
    objects: list[tuple[Resource, list[Job]]]
    objects = [(config(f"job-{number:03}"), []) for number in range(200)]
    chart = charted(objects, "2026-06-10T00:00:00", "2026-06-10", "2026-06-13")
    lines = lines_of(chart)
    assert lines[1].startswith("job-000  Wed 10")
    assert lines[800].startswith("         Sat 13")
    assert len(chart.rows) == 800


def test_two_of_one_name_are_told_apart() -> None:
    chart = charted([(config("x"), []), (controlled("x"), [])], "2026-06-10T00:00:00", "2026-06-10")
    assert [line.split()[0] for line in lines_of(chart)[1:3]] == ["controlledjob/x", "jobconfig/x"]


def test_nothing_is_told_as_such() -> None:
    assert lines_of(charted([], "2026-06-10T00:00:00", "2026-06-10")) == ["nothing is scheduled"]


def test_counts_of_a_busy_day() -> None:
    start = "2026-06-10T00:00:00"
    jobs = [
        ran(
            plus(start, minutes=30 * number),
            plus(start, minutes=30 * number + 5),
            JobResult.FAILED if number == 3 else JobResult.SUCCEEDED,
        )
        for number in range(10)
    ]
    chart = charted([(config(cron="*/30 * * * *"), jobs)], "2026-06-10T04:45:00", "2026-06-10")
    assert lines_of(chart)[1] == (
        "report  Wed 10  oooxoooooo++++++++++++++++++++++++++++++++++++++"
        "  9 ok, 1 failed, 38 to come"
    )


def test_rows_tell_programs_the_same() -> None:
    data = to_builtins(the_tour().data())
    assert data["now"] == "2026-11-17T19:20:00Z"
    row: dict[str, Any] = next(
        row for row in data["rows"] if (row["name"], row["day"]) == ("pricing-engine", "2026-11-17")
    )
    assert row["zone"] == "America/New_York"
    assert (row["from"], row["hours"]) == ("2026-11-17T05:00:00Z", 24)
    assert [span["sort"] for span in row["spans"]] == ["Window", "Succeeded", "Running", "Planned"]
    assert isinstance(the_tour().rows[0], Row)


def test_a_hold_is_told_once_and_what_it_holds_back_is_marked() -> None:
    hold = {
        "action": "Hold",
        "from": "2026-06-10T20:00:00Z",
        "until": "2026-06-11T12:00:00Z",
        "reason": "disk",
    }
    chart = charted([(controlled(overrides=[hold]), [])], "2026-06-10T21:00:00", "2026-06-11")
    assert lines_of(chart)[1] == (
        "engine  Thu 11  ==================-=====///////////               "
        "on hold until 12:00 UTC: disk"
    )


def test_a_window_that_was_open_when_the_object_was_made_is_drawn_from_then() -> None:
    window = {"start": "2025-12-31T09:00:00Z", "stop": "2026-01-01T17:30:00Z", "outcome": "Started"}
    made = controlled(windows=[{"from": "09:00", "to": "17:30"}], status={"window": window})
    chart = charted([(made, [])], "2026-01-01T06:00:00", "2025-12-31", "2026-01-01")
    assert [line[15:].strip() for line in lines_of(chart)[1:2]] == ["running"]
    assert lines_of(chart)[2][16:].startswith("............|")
