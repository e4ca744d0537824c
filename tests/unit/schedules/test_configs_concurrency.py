"""Who is made at all when others wait or run, and what waiting Jobs keep to."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from interlock.resources.actions import CreateJob, RecordStatus, ReviseJob
from interlock.resources.job import Job, LockRequest, WhenTaken
from interlock.resources.job_config import (
    CatchUp,
    Concurrency,
    JobConfig,
    JobConfigStatus,
    Skip,
    SkipReason,
)
from interlock.resources.options import OptionSpec
from interlock.schedules.configs.decide import decide_config
from interlock.testing.builders import a_job
from interlock.testing.config_builders import (
    a_job_config,
    a_template,
    a_view,
    admitted,
    ended,
    made_for,
    moment,
    on_demand,
)
from support.config_desk import ConfigDesk

ALLOW, FORBID = WhenTaken.ALLOW, WhenTaken.FORBID
ENQUEUE, REPLACE = WhenTaken.ENQUEUE, WhenTaken.REPLACE


def at(time: str) -> datetime:
    return moment(f"2026-01-05 {time}")


def config(policy: WhenTaken, most: int = 1, queued: int = 20, **spec: Any) -> JobConfig:
    concurrency = Concurrency(policy=policy, max_concurrency=most, max_queued=queued)
    return a_job_config("report", created=at("10:52:04"), concurrency=concurrency, **spec)


def others(of: JobConfig, running: int, waiting: int) -> tuple[Job, ...]:
    """Jobs of a config that somebody asked for."""
    runs = (admitted(on_demand(of, f"runs-{n}", version=10 + n)) for n in range(running))
    waits = (on_demand(of, f"waits-{n}", version=50 + n) for n in range(waiting))
    return (*runs, *waits)


@pytest.mark.parametrize(
    ("of", "running", "waiting", "reason"),
    [
        pytest.param(config(FORBID), 0, 0, None, id="Forbid, 0 active"),
        pytest.param(config(FORBID), 1, 0, SkipReason.CONCURRENCY, id="Forbid, 1 active"),
        pytest.param(config(FORBID), 0, 1, SkipReason.CONCURRENCY, id="Forbid, 1 about to start"),
        pytest.param(config(FORBID, most=2), 1, 0, None, id="Forbid max 2 with 1 active"),
        pytest.param(
            config(FORBID, most=2), 2, 0, SkipReason.CONCURRENCY, id="Forbid max 2 with 2 active"
        ),
        pytest.param(config(ALLOW), 3, 0, None, id="Allow with active"),
        pytest.param(config(ENQUEUE), 1, 0, None, id="Enqueue with active"),
        pytest.param(config(REPLACE), 1, 1, None, id="Replace with active and waiting"),
        pytest.param(
            config(ENQUEUE, queued=5), 1, 5, SkipReason.QUEUE_FULL, id="queued = 5 = maxQueued"
        ),
        pytest.param(config(ENQUEUE, queued=5), 1, 4, None, id="queued = 4 of 5"),
        pytest.param(config(ENQUEUE, queued=0), 0, 0, None, id="no queue, and none is needed"),
        pytest.param(
            config(ENQUEUE, queued=0), 1, 0, SkipReason.QUEUE_FULL, id="no queue, and one is needed"
        ),
        pytest.param(
            config(ALLOW, queued=5), 0, 5, SkipReason.QUEUE_FULL, id="queued = 5 under any policy"
        ),
    ],
)
def test_a_due_time_becomes_a_job_or_a_skip(
    of: JobConfig, running: int, waiting: int, reason: SkipReason | None
) -> None:
    decision = decide_config(a_view(of, *others(of, running, waiting)), at("10:53"))

    made = [action for action in decision.actions if isinstance(action, CreateJob)]
    assert len(made) == (0 if reason else 1)
    if reason:
        (skip,) = _skips(decision.actions)
        assert skip.reason is reason


def test_the_jobs_of_another_config_do_not_count() -> None:
    other = a_job_config("other")
    of = config(FORBID)
    world = ConfigDesk(of, other, a_job("plain"), at=at("10:52:04"))
    job = world.put(on_demand(world.config("other"), "runs"))
    world.admit(job.metadata.name)

    world.settle_at(at("10:53"))

    assert world.made() == ["10:53"]


def test_a_job_that_starts_later_does_not_stand_in_the_way() -> None:
    of = config(FORBID)
    later = on_demand(of, "later", start_after=at("12:00"))

    decision = decide_config(a_view(of, later), at("10:53"))

    assert [type(action) for action in decision.actions] == [CreateJob]


def test_forbid_catches_up_on_as_many_as_fit_and_makes_none_to_be_refused() -> None:
    of = config(FORBID, most=2)
    world = ConfigDesk(of, at=at("10:52:04"))
    world.settle()

    world.settle_at(at("10:56"))

    assert world.made() == ["10:53", "10:54"]
    (skip,) = world.config().status.skips
    assert (skip.reason, skip.at, skip.until) == (SkipReason.CONCURRENCY, at("10:55"), at("10:56"))
    assert skip.count == 2


def test_enqueue_catches_up_on_as_many_as_may_wait() -> None:
    world = ConfigDesk(config(ENQUEUE, queued=3), at=at("10:52:04"))
    world.settle()

    world.settle_at(at("10:57"))

    assert world.made() == ["10:53", "10:54", "10:55"]
    assert [skip.reason for skip in world.config().status.skips] == [SkipReason.QUEUE_FULL]


@pytest.mark.parametrize(
    ("policy", "waiting"), [(ALLOW, None), (FORBID, None), (ENQUEUE, 7), (REPLACE, None)]
)
def test_jobs_ask_for_the_lock_of_their_config(policy: WhenTaken, waiting: int | None) -> None:
    of = config(policy, most=3, queued=7)

    assert made_for(of, at("10:53")).spec.locks == (
        LockRequest(key="jobconfig/report", limit=3, when_taken=policy, max_waiting=waiting),
    )


def test_the_locks_of_the_template_stay() -> None:
    own = LockRequest(key="db", limit=4)
    clash = LockRequest(key="jobconfig/report", limit=99)
    of = config(FORBID, template=a_template(locks=(own, clash)))

    assert [lock.key for lock in made_for(of, at("10:53")).spec.locks] == ["jobconfig/report", "db"]
    assert made_for(of, at("10:53")).spec.locks[0].limit == 1


def test_b19_raising_the_limit_reaches_the_jobs_that_wait() -> None:
    world = ConfigDesk(config(ENQUEUE), at=at("10:52:04"))
    world.settle()
    world.settle_at(at("10:54"))
    world.admit(_named("10:53"))

    world.edit(concurrency=Concurrency(policy=ENQUEUE, max_concurrency=2))
    decision = world.look()

    revised = [action for action in decision.actions if isinstance(action, ReviseJob)]
    assert [action.job.metadata.name for action in revised] == [_named("10:54")]
    assert world.jobs[_named("10:54")].spec.locks[0].limit == 2
    assert world.jobs[_named("10:53")].spec.locks[0].limit == 1  # It runs; nothing to wait for.
    world.settle()


def test_a_run_on_demand_keeps_its_own_policy_and_gets_the_new_limit() -> None:
    of = config(FORBID)
    asked = on_demand(of, "asked", policy=ENQUEUE)
    wider = config(FORBID, most=5)

    decision = decide_config(a_view(wider, asked), at("10:52:30"))

    (revised,) = [action for action in decision.actions if isinstance(action, ReviseJob)]
    assert revised.spec.locks[0] == LockRequest(
        key="jobconfig/report", limit=5, when_taken=ENQUEUE, max_waiting=20
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"options": (OptionSpec(name="region", required=True),)},
            "options.region: is required",
            id="a required option without default",
        ),
        pytest.param(
            {"template": a_template("echo", "${option.nothing}")},
            "unknown variable",
            id="a variable that is not known",
        ),
        pytest.param({"template": a_template("")}, "expected the program", id="no program"),
    ],
)
def test_a_job_that_the_door_would_refuse_is_a_skip_with_the_message_and_not_retried(
    spec: dict[str, Any], message: str
) -> None:
    world = ConfigDesk(config(ALLOW, **spec), at=at("10:52:04"))
    world.settle()

    world.settle_at(at("10:53"))

    (skip,) = world.config().status.skips
    assert skip.reason is SkipReason.INVALID
    assert message in skip.message
    assert world.made() == []
    assert world.config().status.books.accounted_to == at("10:53")


def test_the_cap_is_for_those_found_at_one_look() -> None:
    world = ConfigDesk(config(FORBID, catch_up=CatchUp(at_most=1)), at=at("10:52:04"))
    world.settle()
    world.run_through(at("10:53"))
    world.admit(_named("10:53"))
    world.end(_named("10:53"))

    world.run_through(at("10:54"))

    assert world.made() == ["10:53", "10:54"]


def test_an_ended_job_takes_no_room() -> None:
    of = config(FORBID)
    over = ended(on_demand(of, "over"))

    decision = decide_config(a_view(of, over), at("10:53"))

    assert [type(action) for action in decision.actions] == [CreateJob]


def _named(time: str) -> str:
    return f"report-{int(at(time).timestamp())}"


def _skips(actions: tuple[object, ...]) -> tuple[Skip, ...]:
    (record,) = [action for action in actions if isinstance(action, RecordStatus)]
    assert isinstance(record.status, JobConfigStatus)
    return record.status.skips
