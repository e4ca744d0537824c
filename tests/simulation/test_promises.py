"""Every promise holds in every world. A failing seed becomes a named test before its fix."""

from __future__ import annotations

import pytest

from interlock.resources.job import JobSpec, LockRequest, Parallelism, Retries
from interlock.resources.process import NoopSpec, ProcessSpec
from interlock.resources.values.durations import Duration
from support.simulation.faults import CALM, FaultRates
from support.simulation.schedule_world import RivalScheduleWorld, ScheduleWorld
from support.simulation.script import (
    POKES,
    Act,
    CreateJob,
    Forgery,
    JumpClock,
    KillJob,
    PausePlane,
    Poke,
    Step,
    forgery,
)
from support.simulation.worker_world import WorkerOperationWorld
from support.simulation.world import RivalWorld, World
from support.simulation.worlds import WORLDS

#: Seeds are run in pieces, so that several workers share them.
PIECE = 15
PIECES = {
    "World": 7,
    "RivalWorld": 7,
    "RestoreWorld": 3,
    "PodWorld": 3,
    "RivalPodWorld": 3,
    "ScheduleWorld": 3,
    "RivalScheduleWorld": 3,
    "EvictionWorld": 4,
    "RivalEvictionWorld": 4,
    "EvictionPodWorld": 2,
    "RivalEvictionPodWorld": 2,
    "EvictionScheduleWorld": 2,
    "RivalEvictionScheduleWorld": 2,
    "OperationWorld": 5,
    "RivalOperationWorld": 5,
    "OperationPodWorld": 2,
    "RivalOperationPodWorld": 2,
    "QueueWorld": 3,
    "RivalQueueWorld": 3,
    "QueuePodWorld": 1,
    "RivalQueuePodWorld": 1,
    "PreemptionWorld": 1,
    "RivalPreemptionWorld": 2,
    "GateWorld": 2,
    "RivalGateWorld": 2,
    "CohortWorld": 2,
    "RivalCohortWorld": 3,
    "FairWorld": 3,
    "RivalFairWorld": 3,
    "ReadyWorld": 2,
    "RivalReadyWorld": 2,
    "SlotWorld": 3,
    "RivalSlotWorld": 3,
    "MachineWorld": 3,
    "RivalMachineWorld": 2,
    "AdoptedWorld": 3,
    "RivalAdoptedWorld": 3,
    "WorkerOperationWorld": 2,
    "RivalWorkerOperationWorld": 1,
    "RequestWorld": 2,
    "RivalRequestWorld": 1,
}

DB = LockRequest(key="db")


def a_creation(name: str, seconds: float, *, tasks: int = 1) -> CreateJob:
    """A person creates a Job that needs the lock `db`."""
    process = ProcessSpec(command=("work", f"{seconds}"))
    spec = JobSpec(process=process, locks=(DB,), parallelism=Parallelism(count=tasks))
    return CreateJob(name=name, spec=spec)


def a_script(*acts: Act) -> tuple[Step, ...]:
    """One thing every ten seconds."""
    return tuple(Step(10.0 * number, act) for number, act in enumerate(acts, 1))


@pytest.mark.parametrize(
    ("name", "piece"), [(name, piece) for name, many in PIECES.items() for piece in range(many)]
)
def test_promises_are_kept(name: str, piece: int) -> None:
    world = WORLDS[name]
    for seed in range(piece * PIECE, (piece + 1) * PIECE):
        outcome = world(seed).run()

        assert outcome.broken is None, (
            f"{outcome.broken}: python -m support.simulation --world {world.name} --seed {seed}"
        )


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize("how", range(POKES))
def test_one_bad_object_harms_itself_only(world: type[World], how: int) -> None:
    script = a_script(Poke("bad-0", how), a_creation("good", 5.0), Poke("bad-1", how))

    assert str(world(1, script, CALM).run().broken) == "None"


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
def test_a_forged_status_starts_nothing(world: type[World]) -> None:
    """A stranger's Job says that it was let in with the holder's token, beside the holder."""
    script = a_script(a_creation("good", 30.0), forgery("db"), a_creation("next", 5.0))
    played = world(1, script, CALM)

    assert str(played.run().broken) == "None"
    [forged] = [job for job in played.truth.jobs.values() if job.metadata.name == "forged"]
    assert forged.status.execution.attempts == 0
    assert forged.status.trouble is not None
    assert "does not name this Job" in forged.status.trouble.message


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("plane", [0, 1])
def test_a_leader_that_was_paused_does_no_harm(seed: int, plane: int) -> None:
    """It goes on in the middle of whatever it did, long after another has taken over."""
    jobs = [a_creation(f"job-{number}", 25.0, tasks=2) for number in range(8)]
    script = a_script(*jobs[:3], PausePlane(plane, 150.0), *jobs[3:], PausePlane(1 - plane, 150.0))

    assert str(World(seed, script).run().broken) == "None"


@pytest.mark.parametrize("seed", range(20))
def test_a_report_that_is_ahead_of_the_cache_stops_nothing(seed: int) -> None:
    """A rival hears of a task before it hears of the task's Job, and leaves it alone."""
    free = CreateJob(name="job-2", spec=JobSpec(process=ProcessSpec(command=("work", "30"))))
    script = a_script(a_creation("job-0", 30.0), a_creation("job-1", 30.0), free)

    assert str(RivalWorld(seed, script, CALM).run().broken) == "None"


@pytest.mark.parametrize("seed", [251, 374, 1262])
def test_an_answer_that_comes_late_does_not_bring_back_a_job_that_is_gone(seed: int) -> None:
    """It was once held for ever after, and so were its locks."""
    spec = JobSpec(
        noop=NoopSpec(),
        ttl_after_finished=Duration(0),
        locks=(LockRequest(key="db", limit=2), LockRequest(key="disk", limit=2)),
    )
    script = (Step(130.0, CreateJob(name="job-1", spec=spec)),)
    rates = FaultRates(stall=0.1, longest_stall=5.0, watch_repeat=0.5)

    assert str(World(seed, script, rates).run().broken) == "None"


def test_who_gave_a_grant_back_just_now_has_not_stood_in_line_for_long() -> None:
    """A rival that has not heard of it counts the old grant, and lets the next one in."""
    assert str(WORLDS["RivalPodWorld"](21264).run().broken) == "None"


@pytest.mark.parametrize("seed", range(10))
def test_a_task_that_was_stopped_before_it_was_launched_takes_no_other_with_it(seed: int) -> None:
    """The machine knows no name for a task it was never given; its Job is found all the same."""
    spec = JobSpec(
        process=ProcessSpec(command=("work", "${task.index}0")),
        parallelism=Parallelism(count=9, at_once=2),
        pending_timeout=Duration(seconds=1),
        retries=Retries(limit=2),
    )
    script = (Step(10.0, CreateJob(name="job-0", spec=spec)), Step(300.0, KillJob("job-0")))

    assert str(World(seed, script, FaultRates(lost_before=0.6)).run().broken) == "None"


def test_two_leaders_whose_clocks_differ_do_not_write_against_each_other() -> None:
    assert str(RivalScheduleWorld(9004).run().broken) == "None"


def test_a_clock_behind_the_stores_forgets_nothing_that_a_person_stopped() -> None:
    """A plan that never stops began, by the clock of the store, at a moment that is to come."""
    assert str(ScheduleWorld(5073).run().broken) == "None"


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(43, id="it ran longer than it may, and then the template changed"),
        pytest.param(60022, id="it was not in the books yet, and a hold began"),
    ],
)
def test_what_a_person_holds_back_has_no_successor(seed: int) -> None:
    # Without what was drawn beside it later: the rest happens as it did when it was found.
    script = tuple(s for s in ScheduleWorld(seed).script if "night-" not in str(s.act))

    assert str(ScheduleWorld(seed, script).run().broken) == "None"


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(85, id="clocks were set back before the window, and its Job ended"),
        pytest.param(70259, id="clocks were ahead when it opened, and its Job was removed"),
    ],
)
def test_a_window_that_comes_again_is_what_a_person_made_of_it(seed: int) -> None:
    script = tuple(s for s in ScheduleWorld(seed).script if "night-" not in str(s.act))

    assert str(ScheduleWorld(seed).run().broken) == "None"
    assert str(ScheduleWorld(seed, script).run().broken) == "None"


def test_what_a_change_of_clocks_swallows_is_told_when_it_does() -> None:
    """Whoever looked at that very moment took it for one at which there is nothing to do."""
    assert str(ScheduleWorld(60117).run().broken) == "None"


def test_a_lock_is_taken_back_once_it_is_heard_that_its_holder_is_gone() -> None:
    """The write that did it was lost, and the cache knew too little when the Job was removed."""
    assert str(ScheduleWorld(70199).run().broken) == "None"


def test_who_starts_one_by_hand_takes_the_word_back_that_stopped_another() -> None:
    """A hold came in between: at its end the window goes on."""
    assert str(RivalScheduleWorld(71137).run().broken) == "None"


def test_what_one_term_wrote_last_is_told_to_the_next() -> None:
    """A Job was refused by a write that came back when another loop had looked at everything."""
    assert WORLDS["QueuePodWorld"](5).run().broken is None


def test_an_attempt_of_a_round_that_is_not_known_yet_is_not_past() -> None:
    """A task that had failed ran again after its Job was put back; one plane knew of neither."""
    assert WORLDS["RivalQueuePodWorld"](144).run().broken is None


@pytest.mark.parametrize("how", Forgery)
@pytest.mark.parametrize("world", [World, RivalWorld, WorkerOperationWorld])
@pytest.mark.parametrize("seed", range(8))
def test_a_forged_status_holds_no_lock_for_ever(
    world: type[World], seed: int, how: Forgery
) -> None:
    """A Job is granted a lock, and says that it was let in with something else.

    All clocks are an hour ahead, so one that is not due for an hour stands in line as well.
    """
    forged = [forgery("db", f"forged-{number}", how) for number in range(8)]
    script = a_script(
        a_creation("first", 7.0),
        JumpClock(0, 3600.0),
        JumpClock(1, 3600.0),
        *forged,
        a_creation("last", 5.0),
    )
    played = world(seed, script, FaultRates(watch_late=0.7, longest_stall=6.0))

    assert str(played.run().broken) == "None"
