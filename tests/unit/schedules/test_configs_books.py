"""Every due time is accounted for once, whoever looks and whatever is interrupted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.actions import CreateJob, Decision, DeleteResource, RecordStatus
from interlock.resources.job import WhenTaken
from interlock.resources.job_config import CatchUp, Concurrency, SkipReason
from interlock.resources.naming import MAX_CONFIG_NAME
from interlock.resources.schedule import ACCOUNTED_TO_ANNOTATION, SCHEDULED_AT_ANNOTATION
from interlock.schedules.configs.books import CLOCK_PATIENCE
from interlock.schedules.configs.decide import decide_config
from interlock.schedules.configs.making import job_name, spare_name
from interlock.testing.builders import a_job
from interlock.testing.config_builders import (
    a_job_config,
    a_schedule,
    a_template,
    a_view,
    made_for,
    moment,
    on_demand,
)
from support.config_desk import ConfigDesk

ALLOW = Concurrency(policy=WhenTaken.ALLOW)
FORBID = Concurrency(policy=WhenTaken.FORBID)


def at(time: str) -> datetime:
    return moment(f"2026-01-05 {time}")


def desk(**spec: Any) -> ConfigDesk:
    spec.setdefault("concurrency", ALLOW)
    world = ConfigDesk(a_job_config("report", **spec), at=at("10:52:04"))
    world.settle()
    return world


def named(time: str) -> str:
    return f"report-{int(at(time).timestamp())}"


def expected(world: ConfigDesk) -> list[str]:
    return [each.name for each in world.config().status.books.expected]


def skips(world: ConfigDesk) -> list[SkipReason]:
    return [skip.reason for skip in world.config().status.skips]


# The protocol.


def test_a_job_is_made_first_and_written_down_once_it_is_there() -> None:
    world = desk()
    world.at(at("10:53"))

    first = world.look()
    assert [type(action) for action in first.actions] == [CreateJob]
    assert expected(world) == []

    second = world.look()
    assert [type(action) for action in second.actions] == [RecordStatus]
    assert expected(world) == [named("10:53")]
    assert world.config().status.books.accounted_to == at("10:53")


def test_a_crash_between_making_and_writing_down_is_made_good() -> None:
    world = desk()
    world.at(at("10:53"))
    world.look()

    world.plane = world.a_plane()
    world.settle_at(at("10:53:30"))

    assert world.made() == ["10:53"]
    assert expected(world) == [named("10:53")]


def test_what_was_made_is_taken_however_late_it_is_found() -> None:
    world = desk()
    world.at(at("10:53"))
    world.look()

    world.settle_at(at("12:00:30"))

    assert named("10:53") in expected(world)
    assert world.config().status.skips[0].at == at("10:54")


def test_the_cap_counts_what_an_interrupted_look_made() -> None:
    world = desk(catch_up=CatchUp(at_most=3))
    world.at(at("10:58"))
    world.plane.hear()
    decision = world.plane.look("report", at("10:58"))
    assert len(decision.actions) == 3
    world.plane.apply(decision, most=1)

    world.settle_at(at("10:58"))

    assert world.made() == ["10:53", "10:54", "10:55"]


def test_an_entry_leaves_the_books_once_its_job_was_let_in() -> None:
    world = desk()
    world.settle_at(at("10:53"))
    world.admit(named("10:53"))

    world.settle_at(at("10:53:05"))

    assert expected(world) == []
    assert world.config().status.active == 1


def test_a_job_in_the_books_that_a_person_deletes_is_not_made_again() -> None:
    world = desk()
    world.settle_at(at("10:53"))
    world.remove(named("10:53"))

    world.settle_at(at("10:53:05"))

    assert (world.made(), expected(world)) == ([], [])


def test_a_job_that_is_deleted_before_it_is_written_down_is_accounted_for_while_it_goes() -> None:
    world = desk()
    world.at(at("10:53"))
    world.look()
    world.plane.hear()
    world.plane.apply(Decision((DeleteResource(world.jobs[named("10:53")]),)))

    world.settle()
    world.remove(named("10:53"))
    world.settle_at(at("10:53:05"))

    assert world.made() == []
    assert world.config().status.books.accounted_to == at("10:53")


def test_a_cache_that_is_behind_does_not_take_a_job_for_gone() -> None:
    world = desk()
    world.settle_at(at("10:53"))
    behind = world.a_plane()
    behind.hear_configs()

    behind.apply(behind.look("report", at("10:53:10")))

    assert expected(world) == [named("10:53")]


def test_a_rival_with_an_old_view_makes_nothing_that_runs() -> None:
    world = desk()
    rival = world.a_plane()
    rival.hear()
    world.settle_at(at("10:53"))
    world.admit(named("10:53"))
    world.end(named("10:53"))
    world.settle_at(at("10:53:02"))
    world.remove(named("10:53"))

    late = rival.look("report", at("10:53"))
    assert rival.apply(late)
    assert world.made() == ["10:53"]  # The stale make went through ...

    rival_record = rival.look("report", at("10:53"))
    assert not rival.apply(rival_record)
    world.settle_at(at("10:53:03"))

    stray = world.jobs[named("10:53")]
    assert stray.is_going  # ... and the stray goes, never written down.
    assert expected(world) == []


def test_of_two_who_both_lead_one_writes_it_down() -> None:
    world = desk()
    one, two = world.a_plane(), world.a_plane()
    world.at(at("10:53"))
    one.hear()
    two.hear()
    first, second = one.look("report", at("10:53")), two.look("report", at("10:53"))
    assert one.apply(first)
    assert not two.apply(second)
    one.hear()
    two.hear()
    first, second = one.look("report", at("10:53")), two.look("report", at("10:53"))
    assert two.apply(second)
    assert not one.apply(first)

    world.settle()
    assert (world.made(), expected(world)) == (["10:53"], [named("10:53")])


def test_a_due_time_that_comes_while_the_store_is_slow_does_not_hold_up_the_one_before() -> None:
    world = desk()
    world.at(at("10:53"))
    world.look()
    world.at(at("10:54"))

    decision = world.look()

    assert [type(action) for action in decision.actions] == [RecordStatus, CreateJob]
    assert expected(world) == [named("10:53")]
    assert world.config().status.books.accounted_to == at("10:53")


def test_what_is_written_down_first_ends_before_what_is_still_to_be_made() -> None:
    world = desk(schedules=(a_schedule("53,55 * * * *"), a_schedule("54 * * * *", only=("none",))))
    world.at(at("10:53"))
    world.look()
    world.at(at("10:55"))

    world.look()

    assert world.config().status.books.accounted_to == at("10:54")
    world.settle()
    assert world.made() == ["10:53", "10:55"]
    assert skips(world) == [SkipReason.CALENDAR_MISSING]


# Edits.


def test_nothing_from_before_an_edit_fires_not_even_what_was_made() -> None:
    world = desk()
    world.at(at("10:53"))
    world.look()
    world.edit(schedules=(a_schedule("0 12 * * *"),))

    world.settle_at(at("10:53:01"))

    assert world.jobs[named("10:53")].is_going
    assert expected(world) == []
    assert skips(world) == [SkipReason.SCHEDULE_CHANGED]


def test_a_resume_never_fires_the_past() -> None:
    world = desk()
    world.edit(suspend=True)
    world.settle_at(at("10:52:30"))
    world.at(at("11:00:30"))
    world.edit(suspend=False)

    assert world.settle().wake_at == at("11:01")
    assert (world.made(), skips(world)) == ([], [])


def test_an_edit_of_anything_else_is_no_edit_of_the_schedule() -> None:
    world = desk()
    world.settle_at(at("10:53"))
    world.at(at("10:55:30"))
    world.edit(template=a_template("false"))

    world.settle()

    assert world.made() == ["10:53", "10:54", "10:55"]


def test_a_config_that_was_edited_before_anybody_looked_fires_nothing_old() -> None:
    world = ConfigDesk(a_job_config("report"), at=at("10:52:04"))
    world.at(at("10:54:30"))
    world.edit(schedules=(a_schedule("*/2 * * * *"),))

    world.settle()

    assert world.made() == []
    assert skips(world) == [SkipReason.SCHEDULE_CHANGED]


# Clocks.


@pytest.mark.parametrize(
    "back", [timedelta(seconds=30), timedelta(hours=1), CLOCK_PATIENCE], ids=str
)
def test_a_clock_that_goes_back_a_little_repeats_nothing_and_goes_on_after(
    back: timedelta,
) -> None:
    world = desk()
    world.run_through(at("10:54"))
    world.clear()
    world.settle_at(at("10:54:02"))
    for name in list(world.jobs):
        world.remove(name)

    decision = world.settle_at(at("10:54") - back)

    assert world.made() == []
    assert decision.wake_at == at("10:55")


def test_books_far_ahead_of_the_clock_begin_anew_and_repeat_no_job_that_is_there() -> None:
    world = desk(schedules=(a_schedule("0 * * * *"),))
    # The clock was wrong by two days for a moment.
    world.settle_at(at("10:00") + timedelta(days=2))
    kept = world.made()
    assert len(kept) == 1

    decision = world.settle_at(at("10:53"))
    assert decision.wake_at == at("11:00")
    world.settle_at(at("11:00"))
    assert named("11:00") in expected(world)

    world.run_through(at("10:30") + timedelta(days=2))
    slots = [job.metadata.annotations[SCHEDULED_AT_ANNOTATION] for job in world.jobs.values()]
    assert len(slots) == len(set(slots))


# Whose names.


def test_b21_a_foreign_job_with_the_name_does_not_suppress_the_due_time() -> None:
    world = desk()
    world.put(a_job(named("10:53")))

    world.settle_at(at("10:53"))

    spare = spare_name(world.config(), at("10:53"))
    assert expected(world) == [spare]
    assert len(spare) <= 52


def test_a_run_on_demand_with_the_name_does_not_suppress_the_due_time_either() -> None:
    world = desk()
    world.put(on_demand(world.config(), named("10:53")))

    world.settle_at(at("10:53"))

    assert expected(world) == [spare_name(world.config(), at("10:53"))]


def test_when_both_names_are_taken_the_due_time_is_skipped_and_said_so() -> None:
    world = desk()
    world.put(a_job(named("10:53")))
    world.put(a_job(spare_name(world.config(), at("10:53"))))

    world.settle_at(at("10:53"))

    (skip,) = world.config().status.skips
    assert skip.reason is SkipReason.INVALID
    assert "other Jobs have the names" in skip.message


def test_a_spare_name_fits_for_the_longest_config() -> None:
    config = a_job_config("c" * MAX_CONFIG_NAME)
    assert len(spare_name(config, at("10:53"))) == 52


def test_long_names_that_are_cut_to_the_same_lose_no_due_time() -> None:
    """What a long name is cut to may be somebody else's: the config's own name is taken then."""
    name = "c" * MAX_CONFIG_NAME
    world = ConfigDesk(a_job_config(name, concurrency=ALLOW), at=at("10:52:04"))
    world.settle(name)
    world.put(a_job(job_name(world.config(name), at("10:53"))))

    world.settle_at(at("10:53"), name)

    (made,) = world.config(name).status.books.expected
    assert made.name == spare_name(world.config(name), at("10:53"))


def test_a_job_that_lost_its_annotation_is_not_made_a_second_time() -> None:
    config = a_job_config("report", concurrency=ALLOW, created=at("10:52:04"))
    job = made_for(config, at("10:53"))
    bare = replace(job, metadata=replace(job.metadata, annotations={}))

    decision = decide_config(a_view(config, bare), at("10:53"))

    assert not any(isinstance(action, CreateJob) for action in decision.actions)


# Defects of the reference that a config could have.


def test_b1_a_config_created_while_running_is_scheduled() -> None:
    world = ConfigDesk(at=at("10:00"))
    world.at(at("10:52:04"))
    world.put(a_job_config("report"))

    assert world.settle().wake_at == at("10:53")


@pytest.mark.parametrize(
    "line",
    ["0 0 H/2 * *", "0 0 1 H/2 *", "H(20-19) * * * *", "61 * * * *", "", "* * * * * *", "@reboot"],
)
def test_b2_a_bad_schedule_past_the_door_harms_itself_only(line: str) -> None:
    world = desk()
    world.put(a_job_config("bad", a_schedule(line), a_schedule("0 12 * * *")))

    world.settle_at(at("10:53"), "bad")
    world.settle_at(at("10:53"))

    status = world.config("bad").status
    assert status.next_schedule is not None  # Its other schedule goes on.
    if status.conditions:
        assert status.conditions[0].status == "False"
        assert "spec.schedules[0]" in status.conditions[0].message
    assert world.made() == ["10:53"]


def test_b2_a_zone_that_is_not_known_is_told_in_a_condition() -> None:
    world = desk(schedules=(a_schedule(timezone="Mars/Olympus"),))

    (condition,) = world.config().status.conditions
    assert (condition.type, condition.status, condition.reason) == (
        "Schedulable",
        "False",
        "Unreadable",
    )
    assert "Mars/Olympus" in condition.message


def test_b9_skipped_due_times_do_not_come_back_after_a_restart() -> None:
    world = desk(concurrency=FORBID)
    world.settle_at(at("10:53"))
    world.admit(named("10:53"))
    world.settle_at(at("10:54"))
    assert skips(world) == [SkipReason.CONCURRENCY]
    world.end(named("10:53"))

    world.plane = world.a_plane()
    world.settle_at(at("10:54:30"))

    assert world.made() == ["10:53"]


def test_b10_the_first_due_time_is_not_lost_over_downtime() -> None:
    world = ConfigDesk(a_job_config("report"), at=at("10:52:04"))

    world.settle_at(at("10:53:40"))

    assert world.made() == ["10:53"]


def test_b20_a_store_that_fails_for_a_while_loses_no_due_time() -> None:
    world = desk()
    world.at(at("10:53"))
    world.plane.hear()
    world.plane.look("report", at("10:53"))  # Decided, and nothing of it was carried out.

    world.settle_at(at("10:53:20"))

    assert world.made() == ["10:53"]


def test_b11_jobs_that_are_caught_up_on_are_made_in_the_order_of_their_due_times() -> None:
    world = desk()

    world.settle_at(at("10:57"))

    in_order = sorted(world.jobs.values(), key=lambda job: job.version)
    slots = [job.metadata.annotations[SCHEDULED_AT_ANNOTATION] for job in in_order]
    assert slots == sorted(slots)
    assert len(slots) == 5


TWO = (a_schedule(), a_schedule("30 * * * * * *"))


@pytest.mark.parametrize(
    ("spec", "fires"),
    [
        pytest.param({"schedules": (a_schedule("*/2 * * * *"),)}, False, id="change cron"),
        pytest.param({"schedules": (a_schedule(timezone="Asia/Tokyo"),)}, False, id="change zone"),
        pytest.param({"schedules": TWO}, False, id="add schedule"),
        pytest.param({"schedules": ()}, False, id="remove"),
        pytest.param({"schedules": (a_schedule(disabled=True),)}, False, id="toggle disabled"),
        pytest.param({"suspend": True}, False, id="suspend"),
        pytest.param({"schedules": (a_schedule(),)}, True, id="unchanged"),
        pytest.param({"concurrency": FORBID}, True, id="another policy"),
    ],
)
def test_which_edits_keep_the_past_from_firing(spec: dict[str, Any], fires: bool) -> None:
    world = desk()
    world.at(at("10:53:30"))
    world.edit(**spec)

    world.settle()

    assert world.made() == (["10:53"] if fires else [])
    assert skips(world) == ([] if fires else [SkipReason.SCHEDULE_CHANGED])


def test_enabling_a_schedule_never_fires_the_past() -> None:
    world = desk(schedules=(a_schedule(disabled=True),))
    world.at(at("11:00:30"))
    world.edit(schedules=(a_schedule(),))

    assert world.settle().wake_at == at("11:01")
    assert (world.made(), skips(world)) == ([], [])


# A config that comes from elsewhere.


def moved(**spec: Any) -> ConfigDesk:
    """A config that was moved here, suspended, after 10:50:30; it is let go at 10:53:10."""
    config = a_job_config(
        "report",
        metadata={"annotations": {ACCOUNTED_TO_ANNOTATION: "2026-01-05T10:50:30Z"}},
        suspend=True,
        concurrency=ALLOW,
        **spec,
    )
    world = ConfigDesk(config, at=at("10:52:04"))
    world.settle()
    world.at(at("10:53:10"))
    world.edit(suspend=False)
    return world


def test_a_config_that_was_moved_goes_on_where_it_left_off() -> None:
    world = moved()
    world.settle()
    assert world.made() == ["10:51", "10:52", "10:53"]
    assert skips(world) == []


def test_what_a_moved_config_missed_is_caught_up_on_by_its_own_policy() -> None:
    world = moved(catch_up=CatchUp(at_most=1))
    world.settle()
    assert world.made() == ["10:51"]
    assert skips(world) == [SkipReason.TOO_MANY_MISSED]


def test_where_a_moved_config_left_off_counts_once() -> None:
    """A later resume never fires the past, whatever the annotation says."""
    world = moved()
    world.settle()
    world.edit(suspend=True)
    world.settle_at(at("10:54:30"))
    world.edit(suspend=False)
    world.settle()
    world.settle_at(at("10:55:10"))
    assert world.made() == ["10:51", "10:52", "10:53", "10:55"]


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-05T10:50:30"])
def test_an_annotation_that_names_no_moment_says_nothing(text: str) -> None:
    annotations = {"annotations": {ACCOUNTED_TO_ANNOTATION: text}}
    world = ConfigDesk(a_job_config("report", metadata=annotations), at=at("10:52:04"))
    world.settle_at(at("10:53:04"))
    assert world.made() == ["10:53"]
