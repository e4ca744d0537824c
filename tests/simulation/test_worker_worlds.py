"""Workers and the control planes that they speak to: what the simulation has found."""

from __future__ import annotations

import pytest

from interlock.resources.job import JobSpec
from interlock.resources.process import ProcessSpec
from interlock.resources.steps import Step as Operated
from interlock.resources.steps import StepWork
from interlock.resources.tasks import TaskResult
from support.simulation.faults import CALM
from support.simulation.script import (
    CreateJob,
    CutWorker,
    ForgeStatus,
    KillJob,
    OperateJob,
    Step,
)
from support.simulation.worker_world import RivalWorkerOperationWorld, WorkerOperationWorld


def as_found(world: WorkerOperationWorld) -> WorkerOperationWorld:
    """A world without what was drawn into it later: the rest happens as it did then."""
    world.script = tuple(s for s in world.script if not isinstance(s.act, ForgeStatus))
    return world


@pytest.mark.parametrize("seed", [16, 123])
def test_two_that_lead_for_ever_need_not_come_to_an_end(seed: int) -> None:
    """One had no worker; and each cut off again and again what the other one's did for long."""
    assert str(RivalWorkerOperationWorld(seed).run().broken) == "None"


@pytest.mark.parametrize("seed", [0, 33, 46])
def test_a_step_is_not_stopped_by_who_has_not_heard_yet_which_steps_there_are(seed: int) -> None:
    """Attempts to make the steps were taken for attempts of the first of them."""
    assert str(as_found(RivalWorkerOperationWorld(seed)).run().broken) == "None"


def test_a_step_that_fails_as_another_takes_it_back_has_used_up_a_retry_or_not() -> None:
    """Both happen in one write: the judge was stricter than what is promised."""
    assert str(as_found(RivalWorkerOperationWorld(196)).run().broken) == "None"


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(58, id="it came back with what was cut off, and was still at it"),
        pytest.param(213, id="it said how far one of two is"),
    ],
)
def test_a_worker_is_given_no_more_than_it_has_room_for(seed: int) -> None:
    assert str(as_found(WorkerOperationWorld(seed)).run().broken) == "None"


@pytest.mark.parametrize("seed", range(3))
def test_what_another_control_plane_refused_takes_up_room_too(seed: int) -> None:
    """Connections break again and again while functions go on that are told to stop."""
    work = StepWork(process=ProcessSpec(command=("work", "25", "deaf")))
    spec = JobSpec(steps=(Operated(name="a", run=work),), max_interruptions=5)
    jobs = [Step(10.0, CreateJob(name=f"op-{at}", spec=spec)) for at in range(6)]
    cuts = [Step(15.0 + 7.0 * at, CutWorker(at)) for at in range(20)]

    assert str(WorkerOperationWorld(seed, (*jobs, *cuts), CALM).run().broken) == "None"


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_cut_off_where_nobody_is_lost(seed: int) -> None:
    """All that is ordered is done by who was given it, and what it came to is what they said."""
    acts = (CreateJob, KillJob, OperateJob)
    calm = tuple(s for s in WorkerOperationWorld(seed).script if isinstance(s.act, acts))
    world = WorkerOperationWorld(seed, calm, CALM)

    assert str(world.run().broken) == "None"
    ends = [end for end in world.worker_judge.books.recorded.values() if end is not None]
    assert [end.name for end in ends if end.result is TaskResult.INTERRUPTED] == []
    assert all(deed.outcome is not None for deed in world.crowd.deeds)
