"""What is forgotten of Jobs that have to be ready in time: backoffs, clocks, and room."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.resources.admission import Wait, WaitReason
from interlock.resources.job import Job, JobSpec
from interlock.resources.process import ProcessSpec
from interlock.resources.queue import Preemption, PreemptionPolicy, QueueSpec, taken
from interlock.resources.ready_gate import ReadyPolicy
from interlock.resources.values.amounts import Amount
from support.simulation.faults import CALM
from support.simulation.ready_world import ReadyWorld
from support.simulation.script import ApplyQueue, CreateJob, Step

BACKOFF = "Nobody who was not ready in time is tried again before the moment that was told."
TIME = "A Job is put back as too late only after all the time it was given."
ROOM = "The room for which Jobs are put back is for whom they are."


def _job(name: str, gpu: int, priority: int = 0) -> CreateJob:
    """A Job that takes long to die."""
    spec = JobSpec(
        process=ProcessSpec(command=("work", "300", "slow=40")),
        queue="blue",
        resources={"gpu": Amount.read(gpu)},
        priority=priority,
    )
    return CreateJob(name=name, spec=spec)


_SCARCE = QueueSpec(
    resources={"gpu": Amount.read(3)},
    preemption=Preemption(within_queue=PreemptionPolicy.LOWER_PRIORITY),
)
#: One holds two of three, and has to go for another that needs all; a third would take the one that
#: is left, while the first is still on its way out.
MAKING_ROOM = (
    Step(1.0, ApplyQueue("blue", _SCARCE)),
    Step(20.0, _job("victim", 2)),
    Step(40.0, _job("large", 3, priority=5)),
    Step(60.0, _job("small", 1)),
)


@mutation(
    BACKOFF,
    Seam("interlock.admission.decide", "_held_back"),
    caught_by="BackoffKept",
    in_worlds=ReadyWorld,
    most_worlds=200,
)
def a_backoff_is_over_at_the_next_look(really: Callable[..., tuple[Wait, ...]]) -> Any:
    def held_back(job: Job, now: datetime) -> tuple[Wait, ...]:
        waits = really(job, now)
        return tuple(wait for wait in waits if wait.reason is not WaitReason.BACKOFF)

    return held_back


@mutation(
    BACKOFF,
    Seam("interlock.admission.lines", "may_be_granted"),
    caught_by="BackoffKept",
    in_worlds=ReadyWorld,
    most_worlds=200,
)
def whoever_is_in_its_backoff_stands_in_line(really: Callable[[Job], bool]) -> Any:
    def may_be_granted(job: Job) -> bool:
        admission = job.status.admission
        others = tuple(one for one in admission.waits if one.reason is not WaitReason.BACKOFF)
        status = replace(job.status, admission=replace(admission, waits=others))
        return really(replace(job, status=status))

    return may_be_granted


@mutation(
    TIME,
    Seam("interlock.admission.eviction", "clock_of"),
    caught_by="TimersKept",
    in_worlds=ReadyWorld,
    most_worlds=200,
)
def half_of_the_time_is_enough(really: Callable[..., Any]) -> Any:
    def clock_of(job: Job, policy: ReadyPolicy) -> Any:
        return really(job, replace(policy, timeout=policy.timeout / 2))

    return clock_of


@mutation(
    TIME,
    Seam("interlock.admission.ready_timers", "_unscheduled_clock"),
    caught_by="TimersKept",
    in_worlds=ReadyWorld,
    most_worlds=400,
)
def what_is_slow_counts_as_having_no_place(really: Callable[..., Any]) -> Any:
    def unscheduled_clock(job: Job, policy: ReadyPolicy) -> Any:
        conditions = tuple(
            replace(one, reason="Unscheduled") if one.type == "PodsScheduled" else one
            for one in job.status.conditions
        )
        return really(replace(job, status=replace(job.status, conditions=conditions)), policy)

    return unscheduled_clock


@mutation(
    ROOM,
    Seam("interlock.admission.queues.cycle", "_Cycle._makes_room"),
    caught_by="RoomKept",
    in_worlds=lambda seed: ReadyWorld(seed, MAKING_ROOM, CALM),
)
def what_victims_leave_is_for_anybody(really: Callable[..., bool]) -> Any:
    def makes_room(self: Any, front: Any, job: Job, place: Any, demand: Any, tasks: int) -> bool:
        made = really(self, front, job, place, demand, tasks)
        if made:
            self._later.add(front.name, taken(tasks, demand.each), -1)
        return made

    return makes_room


@mutation(
    "What a Queue says of its Jobs beats what is said for all Queues.",
    Seam("interlock.admission.ready_timers", "policy_of"),
    caught_by="TimersKept",
    in_worlds=ReadyWorld,
    most_worlds=400,
)
def what_is_said_for_all_beats_what_a_queue_says(really: Callable[..., ReadyPolicy]) -> Any:
    def policy_of(job: Job, queue: Any, system: Any = None) -> ReadyPolicy:
        policy = really(job, queue, system)
        timeout = system.timeout if system is not None else None
        return policy if timeout is None else replace(policy, timeout=timeout)

    return policy_of
