"""What once went wrong with pods, each as a world that is made for it."""

from __future__ import annotations

import pytest

from interlock.resources.job import JobSpec, LockRequest, Parallelism
from interlock.resources.values.durations import Duration
from support.simulation.faults import CALM, FaultRates
from support.simulation.faulty_objects import Lateness
from support.simulation.pod_script import pod_of
from support.simulation.pod_world import PodWorld, RivalPodWorld
from support.simulation.script import (
    Act,
    CreateJob,
    DeletePod,
    Denial,
    DenyPods,
    KillJob,
    LoseNode,
    RemoveNode,
    Step,
)

DB = LockRequest(key="db")


def a_creation(name: str, seconds: float, *words: str, tasks: int = 1) -> CreateJob:
    """A person creates a Job that waits for its pods as long as it takes."""
    spec = JobSpec(
        pod=pod_of("work", f"{seconds}", *words),
        locks=(DB,),
        parallelism=Parallelism(count=tasks),
        pending_timeout=Duration(),
        grace_period=Duration(seconds=5),
    )
    return CreateJob(name=name, spec=spec)


def a_script(*acts: Act) -> tuple[Step, ...]:
    """One thing every ten seconds."""
    return tuple(Step(10.0 * number, act) for number, act in enumerate(acts, 1))


@pytest.mark.parametrize("seed", range(10))
def test_what_a_leader_prepared_before_it_died_is_let_run_by_the_next(seed: int) -> None:
    """The pod is there, so it was once taken for started; but nobody had opened its gate."""
    script = a_script(*(a_creation(f"job-{number}", 5.0, tasks=3) for number in range(4)))

    assert str(PodWorld(seed, script, FaultRates(crash_before=0.1)).run().broken) == "None"


@pytest.mark.parametrize("seed", range(5))
def test_pods_of_a_node_that_is_gone_are_over_and_let_go(seed: int) -> None:
    """That the node is gone was once forgotten as soon as it was known."""
    job = a_creation("job-0", 500.0, tasks=6)
    script = a_script(job, RemoveNode(0), RemoveNode(1), KillJob("job-0"))

    assert str(PodWorld(seed, script, CALM).run().broken) == "None"


@pytest.mark.parametrize("seed", range(10))
def test_who_believes_to_lead_lets_nothing_run_that_another_has_stopped(seed: int) -> None:
    """A create takes long; meanwhile the other one stops the attempt, and finds nothing to stop."""
    acts: list[Step] = []
    for number in range(10):
        at = 8.0 * number
        acts.append(Step(at + 1.0, a_creation(f"job-{number}", 20.0, tasks=2)))
        acts.append(Step(at + 4.0, KillJob(f"job-{number}")))
    rates = FaultRates(watch_late=0.7, longest_stall=12.0)

    world = RivalPodWorld(seed, tuple(acts), rates, Lateness(slow_s=25.0))

    assert str(world.run().broken) == "None"


@pytest.mark.parametrize(("world", "seed"), [(PodWorld, 10761), (RivalPodWorld, 10576)])
def test_a_pod_that_was_created_after_the_end_of_its_attempt_is_removed(
    world: type[PodWorld], seed: int
) -> None:
    """It was once let go of while its gate was shut, and nobody looked at it again."""
    assert str(world(seed).run().broken) == "None"


@pytest.mark.parametrize("strip", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_job_keeps_its_locks_while_its_pod_may_run_on_a_silent_node(
    seed: int, strip: bool
) -> None:
    """Whatever people and the cluster do to the pod meanwhile."""
    silent = [LoseNode(number, 400.0) for number in range(3)]
    script = a_script(
        a_creation("first", 300.0, "deaf"),
        *silent,
        KillJob("first"),
        DeletePod("first", force=True, strip=strip),
        a_creation("second", 5.0),
    )

    assert str(PodWorld(seed, script, CALM).run().broken) == "None"


@pytest.mark.parametrize("how", Denial)
@pytest.mark.parametrize("world", [PodWorld, RivalPodWorld])
def test_what_is_denied_for_a_while_is_waited_for(world: type[PodWorld], how: Denial) -> None:
    """A refusal about the moment, or about the control plane, was once the end of an attempt."""
    script = a_script(
        a_creation("first", 15.0, "deaf", tasks=3),
        DenyPods(how, 120.0),
        KillJob("first"),
        a_creation("second", 5.0, tasks=2),
        a_creation("third", 5.0),
    )

    outcome = world(1, script, CALM).run()

    assert str(outcome.broken) == "None"
