"""What the status of a config tells, how often it is written, and which Jobs are kept."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from interlock.resources.actions import DeleteResource, RecordStatus
from interlock.resources.job import Job, WhenTaken
from interlock.resources.job_config import Concurrency, JobConfigState, JobConfigStatus
from interlock.resources.schedule import HistoryLimits
from interlock.resources.tasks import JobResult
from interlock.schedules.configs.counting import counted
from interlock.schedules.configs.decide import decide_config
from interlock.schedules.configs.history import too_old
from interlock.testing.builders import T0
from interlock.testing.config_builders import (
    a_job_config,
    a_schedule,
    a_view,
    admitted,
    ended,
    moment,
    on_demand,
    refused,
)
from support.config_desk import ConfigDesk

CONFIG = a_job_config("report", concurrency=Concurrency(policy=WhenTaken.ALLOW))
HOUR = timedelta(hours=1)


def at(time: str) -> datetime:
    return moment(f"2026-01-05 {time}")


def a_run(name: str, version: int = 10) -> Job:
    return on_demand(CONFIG, name, version)


@pytest.mark.parametrize(
    ("jobs", "state", "queued", "active"),
    [
        pytest.param((), JobConfigState.READY_ENABLED, 0, 0, id="none"),
        pytest.param((a_run("a"),), JobConfigState.JOB_QUEUED, 1, 0, id="queued"),
        pytest.param((admitted(a_run("a")),), JobConfigState.EXECUTING, 0, 1, id="running"),
        pytest.param((a_run("a"), admitted(a_run("b"))), JobConfigState.EXECUTING, 1, 1, id="both"),
        pytest.param((ended(a_run("a")),), JobConfigState.READY_ENABLED, 0, 0, id="finished"),
        pytest.param((refused(a_run("a")),), JobConfigState.READY_ENABLED, 0, 0, id="refused"),
    ],
)
def test_the_state_follows_from_the_jobs(
    jobs: tuple[Job, ...], state: JobConfigState, queued: int, active: int
) -> None:
    status = counted(CONFIG.status, CONFIG.spec, jobs)

    assert (status.state, status.queued, status.active) == (state, queued, active)


def test_references_are_in_the_order_of_creation_and_at_most_twenty() -> None:
    jobs = [a_run(f"j-{n:02}", version=100 - n) for n in range(30)]

    status = counted(CONFIG.status, CONFIG.spec, jobs)

    assert status.queued == 30
    assert [ref.name for ref in status.queued_jobs] == [f"j-{n:02}" for n in range(29, 9, -1)]


def test_last_moments_are_the_newest_and_never_go_back() -> None:
    early, late = T0, T0 + HOUR
    jobs = (
        ended(a_run("good"), early),
        ended(a_run("bad"), late, JobResult.FAILED),
        ended(a_run("killed"), late + HOUR, JobResult.KILLED),
    )

    status = counted(CONFIG.status, CONFIG.spec, jobs)
    assert (status.last_success, status.last_failure) == (early, late)
    assert status.last_executed == late + HOUR

    later = counted(status, CONFIG.spec, ())
    assert (later.last_success, later.last_failure) == (early, late)


def test_numbers_alone_are_written_at_most_once_a_second() -> None:
    world = ConfigDesk(CONFIG, at=at("10:52:04"))
    world.settle()
    written = world.config().version
    world.put(on_demand(world.config(), "asked"))

    decision = world.settle_at(at("10:52:04") + timedelta(milliseconds=300))
    assert decision.wake_at == at("10:52:05")
    assert world.config().version == written

    world.settle_at(at("10:52:05"))
    assert world.config().status.queued == 1


def test_a_due_time_is_written_at_once_with_all_numbers() -> None:
    world = ConfigDesk(CONFIG, at=at("10:52:04"))
    world.settle()
    world.settle_at(at("10:53"))

    decision = world.settle_at(at("10:53:00") + timedelta(milliseconds=1))

    assert world.config().status.queued == 1
    assert decision.wake_at == at("10:54")


def test_a_clock_that_went_back_does_not_keep_numbers_from_being_written() -> None:
    world = ConfigDesk(CONFIG, at=at("10:52:04"))
    world.settle()
    world.put(on_demand(world.config(), "asked"))

    world.settle_at(at("10:52:04") - HOUR)

    assert world.config().status.queued == 1


def test_a_settled_config_is_left_alone_until_it_is_due() -> None:
    world = ConfigDesk(CONFIG, at=at("10:52:04"))
    first = world.settle()

    again = world.settle_at(at("10:52:59"))

    assert (first.actions, again.actions) == ((), ())
    assert again.wake_at == at("10:53")


# History.


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        pytest.param(HistoryLimits(), {"s0", "s1", "s2", "f0", "f1", "f2"}, id="within both"),
        pytest.param(
            HistoryLimits(succeeded=2), {"s1", "s2", "f0", "f1", "f2"}, id="oldest success goes"
        ),
        pytest.param(HistoryLimits(failed=1), {"s0", "s1", "s2", "f2"}, id="oldest failures go"),
        pytest.param(HistoryLimits(succeeded=0, failed=0), set(), id="none is kept"),
    ],
)
def test_ended_jobs_beyond_the_limits_go(limits: HistoryLimits, kept: set[str]) -> None:
    jobs = [ended(a_run(f"s{n}"), T0 + n * HOUR) for n in range(3)]
    jobs += [refused(a_run(f"f{n}"), T0 + n * HOUR) for n in range(3)]
    jobs += [a_run("waits"), admitted(a_run("runs"))]

    gone = {job.metadata.name for job in too_old(jobs, limits)}

    assert {job.metadata.name for job in jobs} - gone == kept | {"waits", "runs"}


def test_a_job_is_counted_before_it_goes() -> None:
    config = a_job_config("report", history=HistoryLimits(succeeded=0, failed=0))
    world = ConfigDesk(config, at=at("10:52:04"))
    world.settle()
    world.put(on_demand(world.config(), "asked"))
    world.admit("asked")
    world.end("asked")

    early = world.look()
    assert early.actions == ()  # Its numbers were written less than a second ago.
    world.at(at("10:52:06"))
    decision = world.look()

    assert [type(action) for action in decision.actions] == [RecordStatus, DeleteResource]
    assert world.config().status.last_success == at("10:52:04")
    assert world.jobs["asked"].is_going


def test_a_job_that_ended_before_it_was_written_down_stays_until_it_is() -> None:
    config = a_job_config(
        "report",
        a_schedule(),
        created=at("10:52:04"),
        history=HistoryLimits(succeeded=0, failed=0),
    )
    world = ConfigDesk(config, at=at("10:52:04"))
    world.settle()
    world.at(at("10:53"))
    world.look()
    name = next(iter(world.jobs))
    held = refused(world.jobs[name])

    decision = decide_config(a_view(world.config(), held), at("10:53"))

    (record, delete) = decision.actions
    assert isinstance(record, RecordStatus)
    assert isinstance(record.status, JobConfigStatus)
    assert record.status.books.accounted_to == at("10:53")
    assert isinstance(delete, DeleteResource)
