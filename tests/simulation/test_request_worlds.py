"""Requests: those that cannot be done, those that are too many, and how long they stay."""

from __future__ import annotations

import pytest

from interlock.resources.job import JobPhase, JobSpec
from interlock.resources.process import ProcessSpec
from interlock.resources.steps import Step as Operated
from interlock.resources.steps import StepWork, Target
from support.simulation.faults import CALM
from support.simulation.request_world import (
    BadRequest,
    RequestWorld,
    RivalRequestWorld,
    bad_request,
)
from support.simulation.script import CreateJob, Step
from support.simulation.worker_script import RUN, python_of

WORLDS = (RequestWorld, RivalRequestWorld)


def an_operation(name: str, path: str, *, most: int | None = None) -> CreateJob:
    """One step, by a worker."""
    work = StepWork(python=python_of(ProcessSpec(command=("work", "3")), RUN))
    target = Target(path=path, max_pending=most)
    return CreateJob(name=name, spec=JobSpec(steps=(Operated(name="a", run=work),), target=target))


def phases_of(played: RequestWorld) -> dict[str, JobPhase]:
    """How all are going that are no parts of others."""
    jobs = [job for job in played.truth.jobs.values() if job.spec.parent is None]
    return {job.metadata.name: job.status.phase for job in jobs}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("how", BadRequest)
def test_a_bad_request_harms_itself_only(world: type[RequestWorld], how: BadRequest) -> None:
    """Those behind it have their turn, and it says why it has failed."""
    bad = CreateJob(name="bad-request", spec=bad_request(how, path="a"))
    script = (Step(5.0, bad), Step(6.0, an_operation("behind", "a")))
    played = world(1, script, CALM)

    assert str(played.run().broken) == "None"
    assert phases_of(played) == {"bad-request": JobPhase.FAILED, "behind": JobPhase.SUCCEEDED}


@pytest.mark.parametrize("seed", range(3))
def test_as_many_are_taken_as_may_be_when_all_come_at_once(seed: int) -> None:
    script = tuple(Step(5.0, an_operation(f"op-{number}", "a", most=2)) for number in range(8))
    played = RequestWorld(seed, script, CALM)

    assert str(played.run().broken) == "None"
    assert len(phases_of(played)) == 2


def test_what_is_over_stays_while_a_part_of_it_is_not() -> None:
    """It was rolled back, and removed in its time while its part was stuck."""
    assert str(RequestWorld(32).run().broken) == "None"


def test_a_bad_request_behind_one_that_is_stuck_waits_as_others_do() -> None:
    """The judge wanted it to fail without ever being let in."""
    assert str(RequestWorld(500006).run().broken) == "None"
