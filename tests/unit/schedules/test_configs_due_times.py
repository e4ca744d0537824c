"""When a config is due and what is caught up on: the rows of the sheet about cron scheduling."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.resources.job import WhenTaken
from interlock.resources.job_config import (
    CatchUp,
    CatchUpPolicy,
    Concurrency,
    JobConfigState,
    JobConfigStatus,
    Skip,
    SkipReason,
)
from interlock.resources.schedule import Books, ScheduleSpec
from interlock.resources.values.durations import Duration
from interlock.schedules.configs.reading import digest_of
from interlock.testing.config_builders import a_calendar, a_job_config, a_schedule, moment
from support.config_desk import ConfigDesk

ALLOW = Concurrency(policy=WhenTaken.ALLOW)
CAP_3 = CatchUp(at_most=3)
ONLY_NEWEST = CatchUp(policy=CatchUpPolicy.ONLY_NEWEST)
SKIP_ALL = CatchUp(policy=CatchUpPolicy.SKIP_ALL)
#: Skips all that was missed, however little.
SWITCHED = CatchUp(policy=CatchUpPolicy.SKIP_ALL, missed_after=Duration(seconds=1))
LENIENT = CatchUp(at_most=0, missed_after=Duration(hours=1))
STRICT = CatchUp(not_older_than=Duration(seconds=1))


def at(time: str, day: str = "2026-01-05") -> datetime:
    return moment(f"{day} {time}")


def desk(*schedules: ScheduleSpec, begin: str = "10:52:04", **spec: Any) -> ConfigDesk:
    """A config that was made and seen at a moment."""
    spec.setdefault("concurrency", ALLOW)
    made = ConfigDesk(a_job_config("report", *schedules, **spec), at=at(begin))
    made.settle()
    return made


def left(last: str, *schedules: ScheduleSpec, edited: str = "00:00", **spec: Any) -> ConfigDesk:
    """A config as an earlier life left it, that was accounted for until a moment of today."""
    spec.setdefault("concurrency", ALLOW)
    config = a_job_config("report", *schedules, **spec)
    books = Books(schedule_hash=digest_of(config), since=at(edited), accounted_to=at(last))
    status = JobConfigStatus(books=books, last_scheduled=at(last))
    return ConfigDesk(a_job_config("report", *schedules, status=status, **spec), at=at(last))


def skipped(desk: ConfigDesk) -> list[tuple[str, str, int]]:
    """The skips as a person reads them: from, until, reason and how many."""
    return [
        (f"{s.at:%H:%M}" + (f"-{s.until:%H:%M}" if s.until else ""), s.reason.value, s.count)
        for s in desk.config().status.skips
    ]


# Rows of the sheet, one by one.


def test_every_minute_up_at_10_52_04_is_due_at_10_53_and_not_again_a_second_later() -> None:
    world = desk()
    assert world.made() == []
    assert world.settle_at(at("10:52:59")).wake_at == at("10:53")

    world.settle_at(at("10:53"))
    assert world.made() == ["10:53"]
    world.settle_at(at("10:53:01"))
    assert world.made() == ["10:53"]


@pytest.mark.parametrize(
    ("catch_up", "begin", "jump", "expected"),
    [
        pytest.param(
            CatchUp(), "10:54", "10:57", ["10:55", "10:56", "10:57"], id="jump 10:54 -> 10:57"
        ),
        pytest.param(
            CAP_3, "10:53", "10:59", ["10:54", "10:55", "10:56"], id="cap 3, jump 10:53 -> 10:59"
        ),
        pytest.param(
            CatchUp(), "04:02", "04:06:13", ["04:03", "04:04", "04:05", "04:06"],
            id="lastScheduled 04:02, start 04:06:13",
        ),
        pytest.param(
            CatchUp(), "02:46", "04:06:13", ["04:02", "04:03", "04:04", "04:05", "04:06"],
            id="lastScheduled 80 min old, threshold 300 s",
        ),
    ],
)  # fmt: skip
def test_missed_due_times_run_oldest_first(
    catch_up: CatchUp, begin: str, jump: str, expected: list[str]
) -> None:
    world = left(begin, catch_up=catch_up)

    world.settle_at(at(jump))

    assert world.made() == expected


def test_what_the_cap_leaves_out_is_told_and_the_next_is_11_00() -> None:
    world = left("10:53", catch_up=CAP_3)

    decision = world.settle_at(at("10:59"))

    assert skipped(world) == [("10:57-10:59", "TooManyMissed", 3)]
    assert decision.wake_at == at("11:00")
    assert world.config().status.next_schedule == at("11:00")
    assert world.config().status.last_scheduled == at("10:56")


def test_what_is_too_old_is_told() -> None:
    world = left("02:46")

    world.settle_at(at("04:06:13"))

    assert skipped(world) == [("02:47-04:01", "TooOld", 75)]
    assert world.config().status.skipped == 75


def test_a_schedule_edited_at_10_53_10_to_every_15_s_is_next_due_at_10_53_15() -> None:
    world = desk()
    world.settle_at(at("10:53"))
    world.at(at("10:53:10"))
    world.edit(schedules=(a_schedule("*/15 * * * * * *"),))

    assert world.settle().wake_at == at("10:53:15")
    world.settle_at(at("10:53:15"))
    assert world.made() == ["10:53", "10:53:15"]


def test_a_deleted_config_makes_no_more_jobs() -> None:
    world = desk(metadata={"finalizers": ("example.com/held",)})
    run_now(world.store.delete(world.config().key))

    world.settle_at(at("10:55"))

    assert world.config().is_going
    assert world.made() == []


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        pytest.param("America/New_York", "2026-07-06 14:00", id="daily 10:00, New York"),
        pytest.param("Asia/Singapore", "2026-07-07 02:00", id="daily 10:00, Singapore"),
        pytest.param("UTC+8", "2026-07-07 02:00", id="a fixed offset"),
    ],
)
def test_the_zone_of_a_schedule_counts(zone: str, expected: str) -> None:
    begin = moment("2026-07-06 12:00")
    world = ConfigDesk(a_job_config("report", a_schedule("0 10 * * *", timezone=zone)), at=begin)

    assert world.settle().wake_at == moment(expected)


def test_a_year_bound_line_after_its_date_is_never_due_again() -> None:
    world = left("10:53", a_schedule("0 0 10 1 1 * 2025"))

    decision = world.settle_at(at("12:00"))

    assert decision.wake_at is None
    assert world.config().status.next_schedule is None
    assert (world.made(), skipped(world)) == ([], [])


def test_last_scheduled_is_old_and_the_schedule_was_edited_now_so_nothing_is_caught_up_on() -> None:
    world = left("02:46")
    world.settle_at(at("02:46"))
    world.at(at("04:06:13"))
    world.edit(schedules=(a_schedule("*/1 * * * *"),))

    assert world.settle().wake_at == at("04:07")
    assert world.made() == []
    assert skipped(world) == [("02:47-04:06", "ScheduleChanged", 0)]


@pytest.mark.parametrize("accounted", [None, "04:02"], ids=["new", "with lastScheduled"])
def test_not_before_tomorrow_04_02_is_first_due_exactly_then(accounted: str | None) -> None:
    tomorrow = moment("2026-01-06 04:02")
    schedule = a_schedule(not_before=tomorrow)
    world = left(accounted, schedule) if accounted else desk(schedule, begin="04:06:13")
    world.at(at("04:06:13"))

    assert world.settle().wake_at == tomorrow
    assert world.made() == []
    world.settle_at(tomorrow)
    assert world.made() == ["04:02"]


def test_not_before_in_the_past_and_an_edit_now_is_due_at_04_07() -> None:
    world = desk(a_schedule(not_before=at("03:00")), begin="04:00:13")
    world.at(at("04:06:13"))
    world.edit(schedules=(a_schedule(not_before=at("03:30")),))

    assert world.settle().wake_at == at("04:07")
    assert world.made() == []


def test_b8_not_before_counts_on_an_edited_config_too() -> None:
    world = desk(begin="04:06:13")
    world.edit(schedules=(a_schedule(not_before=at("04:30")),))

    assert world.settle().wake_at == at("04:30")


@pytest.mark.parametrize(
    ("accounted", "expected"),
    [
        pytest.param("04:06", ["04:07", "04:08"], id="notAfter 04:08"),
        pytest.param(
            "04:02", ["04:03", "04:04", "04:05", "04:06", "04:07", "04:08"],
            id="notAfter 04:08 with lastScheduled 04:02",
        ),
    ],
)  # fmt: skip
def test_not_after_is_the_last(accounted: str, expected: list[str]) -> None:
    world = left(accounted, a_schedule(not_after=at("04:08")))
    world.settle_at(at("04:06:13"))

    world.run_through(at("04:30"))

    assert world.made() == expected
    assert world.settle().wake_at is None
    assert skipped(world) == []


@pytest.mark.parametrize(
    ("schedules", "expected"),
    [
        pytest.param(
            (a_schedule("*/20 * * * *", "10 * * * *"),), ["11:00", "11:10", "11:20"],
            id="two expressions",
        ),
        pytest.param(
            (a_schedule("*/20 * * * *"), a_schedule("10,20 * * * *"), a_schedule("20 * * * *")),
            ["11:00", "11:10", "11:20"],
            id="three with overlaps and duplicates",
        ),
    ],
)  # fmt: skip
def test_several_lines_are_merged_in_order_one_for_each_instant(
    schedules: tuple[ScheduleSpec, ...], expected: list[str]
) -> None:
    world = desk(*schedules, begin="10:55")

    world.run_through(at("11:25"))

    assert world.made() == expected
    assert skipped(world) == []


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        pytest.param({"schedules": ()}, JobConfigState.READY, id="no schedule"),
        pytest.param(
            {"schedules": (a_schedule(disabled=True),)},
            JobConfigState.READY_DISABLED,
            id="disabled",
        ),
        pytest.param({"suspend": True}, JobConfigState.READY_DISABLED, id="suspended"),
        pytest.param(
            {"schedules": (a_schedule(timezone="Mars/Olympus"), a_schedule(disabled=True))},
            JobConfigState.UNREADABLE,
            id="unreadable",
        ),
        pytest.param(
            {"schedules": (a_schedule(timezone="Mars/Olympus"),), "suspend": True},
            JobConfigState.READY_DISABLED,
            id="unreadable and suspended",
        ),
    ],
)
def test_no_schedule_or_disabled_is_never_due(spec: dict[str, Any], state: JobConfigState) -> None:
    world = desk()
    world.edit(**spec)

    decision = world.settle_at(at("12:00"))

    assert decision.wake_at is None
    assert world.made() == []
    assert world.config().status.state is state
    assert world.config().status.next_schedule is None


def test_a_config_without_any_schedule_costs_no_write() -> None:
    world = ConfigDesk(a_job_config("report", schedules=()), at=at("10:00"))

    assert world.look().actions == ()


# What catch-up can be set to.


@pytest.mark.parametrize(
    ("catch_up", "expected", "reasons"),
    [
        pytest.param(CatchUp(), ["10:55", "10:56", "10:57", "10:58", "10:59"],
                     ["TooOld", "TooManyMissed"], id="by default the oldest five of five minutes"),
        pytest.param(ONLY_NEWEST, ["11:00"], ["TooOld", "Missed"], id="only the newest"),
        pytest.param(SKIP_ALL, ["11:00"], ["Missed"], id="skip all but what is on time"),
        pytest.param(CatchUp(at_most=0), ["11:00"], ["TooOld", "Missed"],
                     id="B4: atMost 0 runs what is on time"),
        pytest.param(CatchUp(not_older_than=Duration()), ["11:00"], ["TooOld"],
                     id="notOlderThan 0s runs what is on time"),
        pytest.param(CatchUp(not_older_than=Duration(days=1_000_000), at_most=2),
                     ["10:31", "10:32"], ["TooManyMissed"], id="as old as can be told"),
    ],
)  # fmt: skip
def test_catch_up_after_half_an_hour(
    catch_up: CatchUp, expected: list[str], reasons: list[str]
) -> None:
    world = left("10:30", catch_up=catch_up)

    world.settle_at(at("11:00:00"))

    assert world.made() == expected
    assert [reason for _, reason, _ in skipped(world)] == reasons
    assert world.config().status.skipped + len(expected) == 30


@pytest.mark.parametrize(
    ("catch_up", "late", "runs"),
    [
        pytest.param(SKIP_ALL, 59, True, id="skip all: 59 s late"),
        pytest.param(SKIP_ALL, 60, False, id="skip all: a minute late"),
        pytest.param(CatchUp(at_most=0), 59, True, id="B4 atMost 0: 59 s late"),
        pytest.param(CatchUp(at_most=0), 60, False, id="B4 atMost 0: a minute late"),
        pytest.param(SWITCHED, 0, True, id="missed after a second: at its moment"),
        pytest.param(SWITCHED, 0.999, True, id="missed after a second: just on time"),
        pytest.param(SWITCHED, 1, False, id="missed after a second: a second late"),
        pytest.param(SWITCHED, 2, False, id="missed after a second: a restart of two seconds"),
        pytest.param(LENIENT, 3599, True, id="missed after an hour: just on time"),
        pytest.param(LENIENT, 3600, False, id="missed after an hour: an hour late"),
        pytest.param(STRICT, 59, True, id="what is on time is not too old"),
        pytest.param(STRICT, 60, False, id="what was missed is"),
        pytest.param(CatchUp(), 300, True, id="oldest first: as old as may be"),
        pytest.param(CatchUp(), 301, False, id="oldest first: too old"),
        pytest.param(ONLY_NEWEST, 300, True, id="only newest: as old as may be"),
        pytest.param(ONLY_NEWEST, 301, False, id="only newest: too old"),
    ],
)
def test_how_late_a_due_time_may_be_found(catch_up: CatchUp, late: float, runs: bool) -> None:
    world = left("10:30", a_schedule("0 11 * * *"), catch_up=catch_up)

    world.settle_at(at("11:00") + timedelta(seconds=late))

    assert world.made() == (["11:00"] if runs else [])
    assert len(skipped(world)) == (0 if runs else 1)


@pytest.mark.parametrize(
    ("catch_up", "expected", "reasons"),
    [
        pytest.param(SKIP_ALL, [30], [("Missed", 29)], id="skip all: the newest is on time"),
        pytest.param(CatchUp(at_most=0), [30], [("Missed", 29)], id="atMost 0: the same"),
        pytest.param(ONLY_NEWEST, [30], [("Missed", 29)], id="only the newest"),
        pytest.param(CAP_3, [1, 2, 3], [("TooManyMissed", 27)], id="the oldest three"),
        pytest.param(
            CatchUp(not_older_than=Duration(seconds=2)),
            [28, 29, 30],
            [("TooOld", 27)],
            id="what is younger than two seconds",
        ),
    ],
)
def test_a_line_of_every_second_keeps_to_the_same_rule_after_30_s(
    catch_up: CatchUp, expected: list[int], reasons: list[tuple[str, int]]
) -> None:
    world = left("10:30", a_schedule("* * * * * * *"), catch_up=catch_up)

    world.settle_at(at("10:30:30"))

    runs = {job.metadata.name for job in world.jobs.values()}
    second = int(at("10:30").timestamp())
    assert runs == {f"report-{second + late}" for late in expected}
    assert [(reason, count) for _, reason, count in skipped(world)] == reasons


@pytest.mark.parametrize("line", ["* * * * * * *", "*/2 * * * * * *", "* * * * *"])
@pytest.mark.parametrize("catch_up", [SKIP_ALL, CatchUp(at_most=0), SWITCHED])
def test_what_is_looked_at_in_time_is_never_missed(catch_up: CatchUp, line: str) -> None:
    world = ConfigDesk(
        a_job_config(
            "report", a_schedule(line), catch_up=catch_up, concurrency=Concurrency(max_queued=99)
        ),
        at=at("10:30:30"),
    )

    world.run_through(at("10:31:10"))

    assert world.jobs
    assert skipped(world) == []


def test_what_was_made_in_time_is_run_although_a_later_one_has_come() -> None:
    world = left("10:30", a_schedule("* * * * * * *"), catch_up=SKIP_ALL)
    world.at(at("10:30:01"))
    world.plane.hear()
    world.plane.apply(world.plane.look("report", world.clock.now()))
    (made,) = world.jobs

    world.settle_at(at("10:30:05"))

    assert made in {each.name for each in world.config().status.books.expected}
    assert [count for _, _, count in skipped(world)] == [3]


def test_b4_at_most_0_goes_on_scheduling() -> None:
    world = desk(catch_up=CatchUp(at_most=0))

    world.run_through(at("10:55"))

    assert world.made() == ["10:53", "10:54", "10:55"]
    assert skipped(world) == []


def test_a_line_of_every_second_after_a_year_is_caught_up_on_without_walking_through_it() -> None:
    world = left("00:00", a_schedule("* * * * * * *"))

    world.settle_at(at("00:00") + timedelta(days=365))

    assert len(world.made()) == 5
    old, many = world.config().status.skips[-2:]
    assert (old.reason, many.reason) == (SkipReason.TOO_OLD, SkipReason.TOO_MANY_MISSED)
    assert many.count in (0, 296)
    assert many.until == at("00:00") + timedelta(days=365)
    assert world.config().status.books.accounted_to == many.until


# Calendars.


def test_a_closed_day_is_skipped_with_the_name_of_the_calendar() -> None:
    world = desk(a_schedule("0 11 * * *", exclude=("holidays",)), begin="10:00")
    world.put(a_calendar("holidays", "2026-01-06"))

    world.run_through(moment("2026-01-07 12:00"))

    assert [(s.reason, s.message) for s in world.config().status.skips] == [
        (SkipReason.CALENDAR, "calendar holidays: 2026-01-06")
    ]
    assert len(world.made()) == 2


def test_the_next_schedule_told_is_one_that_runs_and_not_the_closed_one() -> None:
    world = desk(a_schedule("0 11 * * *", exclude=("holidays",)), begin="12:00")
    world.put(a_calendar("holidays", "2026-01-06"))

    decision = world.settle()

    assert decision.wake_at == moment("2026-01-06 11:00")
    assert world.config().status.next_schedule == moment("2026-01-07 11:00")


def test_a_missing_calendar_skips_and_tells_and_ends_when_it_comes() -> None:
    world = desk(a_schedule("0 * * * *", only=("trading-days",)), begin="10:00")

    world.settle_at(at("11:00"))

    assert skipped(world) == [("11:00", "CalendarMissing", 1)]
    (condition,) = world.config().status.conditions
    assert (condition.status, condition.reason) == ("False", "CalendarMissing")
    assert "trading-days does not exist" in condition.message

    world.put(a_calendar("trading-days", "MON-FRI"))
    world.settle_at(at("12:00"))

    assert world.made() == ["12:00"]
    (condition,) = world.config().status.conditions
    assert condition.status == "True"


def test_one_schedule_without_its_calendar_leaves_the_others_alone() -> None:
    world = desk(a_schedule("0 * * * *", only=("none",)), a_schedule("0 12 * * *"), begin="10:00")

    world.run_through(at("12:00"))

    assert world.made() == ["12:00"]
    assert skipped(world) == [("11:00", "CalendarMissing", 1)]


def test_skips_of_one_reason_in_a_row_are_told_as_one() -> None:
    world = desk(a_schedule(exclude=("holidays",)))
    world.put(a_calendar("holidays", "2026-01-05"))

    world.run_through(at("11:52"))

    assert skipped(world) == [("10:53-11:52", "Calendar", 60)]
    assert world.config().status.skipped == 60


def test_the_newest_ten_skips_are_told_and_all_are_counted() -> None:
    book = JobConfigStatus(
        skips=tuple(
            Skip(at=at("09:00") + timedelta(minutes=n), reason=SkipReason.INVALID, message=str(n))
            for n in range(10)
        ),
        skipped=10,
    )
    config = a_job_config("report", a_schedule(only=("none",)), status=book)
    world = ConfigDesk(config, at=at("10:52:04"))

    world.run_through(at("10:53"))

    status = world.config().status
    assert len(status.skips) == 10
    assert status.skips[0].message == "1"
    assert status.skips[-1].reason is SkipReason.CALENDAR_MISSING
    assert status.skipped == 11
