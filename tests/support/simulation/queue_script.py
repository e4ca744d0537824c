"""Scripts with Queues: most Jobs stand in one, and people change what a Queue allows."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec.structs import replace

from interlock.resources.default_queue import DEFAULT_QUEUE, queue_asked
from interlock.resources.job import JobSpec
from interlock.resources.namespace_selector import NamespaceSelector
from interlock.resources.process import ProcessSpec
from interlock.resources.queue import (
    BorrowPolicy,
    BorrowWithinCohort,
    FairSharing,
    Preemption,
    PreemptionPolicy,
    QueueOrder,
    QueueSpec,
    ReclaimPolicy,
    StopPolicy,
)
from interlock.resources.ready_gate import (
    BlockScope,
    RequeuingStrategy,
    RequeuingTimestamp,
    WaitForPodsReady,
)
from interlock.resources.values.amounts import Amount
from interlock.resources.values.durations import Duration
from support.simulation.script import (
    ApplyQueue,
    CreateJob,
    ForgeStatus,
    RemoveQueue,
    RequeueOne,
    SetActive,
    Step,
)

QUEUES = ("blue", "red")
#: What a Queue allows once people have tidied up: every Job of these worlds fits.
AMPLE = QueueSpec(resources={"gpu": Amount.read(20), "tasks": Amount.read(20)})


def with_queues(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with Queues that most of its Jobs stand in."""
    length = script[-1].at if script else 300.0
    queues = QUEUES[: random.choice((1, 1, 2))]
    order = random.choice((*QueueOrder, None))
    # A stranger whose clock is an hour ahead may take a lock for good; of that other worlds tell.
    kept = [step for step in script if not isinstance(step.act, ForgeStatus)]
    steps = [_queued(step, queues, random) for step in kept]
    steps += [Step(0.0, ApplyQueue(name, _spec(random, order))) for name in queues]
    for _ in range(random.choice((0, 1, 3, 6))):
        at, name = random.uniform(1.0, length), random.choice(queues)
        steps.append(Step(at, ApplyQueue(name, _spec(random, order, is_edit=True))))
    for _ in range(random.choice((0, 0, 1))):
        steps.append(Step(random.uniform(1.0, length), RemoveQueue(random.choice(queues))))
    names = [step.act.name for step in script if isinstance(step.act, CreateJob)]
    for _ in range(random.choice((0, 0, 2)) if names else 0):
        act = SetActive(random.choice(names), random.random() < 0.4)
        steps.append(Step(random.uniform(1.0, length), act))
    for _ in range(random.choice((0, 1, 4))):
        steps.append(Step(random.uniform(1.0, length), RequeueOne(random.random())))
    return tuple(sorted(steps, key=lambda step: step.at))


def _queued(step: Step, queues: tuple[str, ...], random: Random) -> Step:
    act = step.act
    if not isinstance(act, CreateJob) or random.random() < 0.1:
        return step
    return Step(step.at, replace(act, spec=in_queue(act.spec, random.choice(queues), random)))


def in_queue(spec: JobSpec, queue: str, random: Random) -> JobSpec:
    """A Job that stands in a Queue, and asks for some of what it has."""
    more: dict[str, Any] = {}
    if random.random() < 0.7:
        more["resources"] = {"gpu": Amount.read(random.choice((1, 1, 2, "500m")))}
    if random.random() < 0.3:
        more["min_parallelism"] = random.choice((1, 2))
    return replace(spec, queue=queue, **more)


def _spec(random: Random, order: QueueOrder | None, *, is_edit: bool = False) -> QueueSpec:
    """What a Queue allows: now and then less than a Job asks for, or nothing."""
    stops = (StopPolicy.NONE, StopPolicy.NONE, StopPolicy.HOLD, StopPolicy.HOLD_AND_DRAIN)
    resources: dict[str, Amount] = {"gpu": Amount.read(random.choice((1, 2, 3, 6)))}
    if random.random() < 0.6:
        resources["tasks"] = Amount.read(random.choice((1, 3, 6)))
    elsewhere = NamespaceSelector(match_names=("elsewhere",))
    return QueueSpec(
        resources=resources,
        order=order or random.choice(tuple(QueueOrder)),
        stop=random.choice(stops) if is_edit else StopPolicy.NONE,
        namespace_selector=elsewhere if is_edit and random.random() < 0.1 else None,
    )


def with_default_queue(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with Queues in which the first is the default one, and few Jobs name it.

    It is there from the beginning, or made while Jobs wait and run; and now and then deleted.
    """
    steps = [_by_default(step, random) for step in script]
    comes_at = random.choice((0.0, 0.0, random.uniform(1.0, 120.0)))
    steps = [
        replace(step, at=max(step.at, comes_at)) if _is_about_default(step) else step
        for step in steps
    ]
    length = script[-1].at if script else 300.0
    for _ in range(random.choice((0, 1, 2))):
        gone_at = random.uniform(1.0, length)
        steps.append(Step(gone_at, RemoveQueue(DEFAULT_QUEUE)))
        if random.random() < 0.5:
            back = ApplyQueue(DEFAULT_QUEUE, _spec(random, None))
            steps.append(Step(gone_at + random.uniform(0.1, 60.0), back))
    return tuple(sorted(steps, key=lambda step: step.at))


def _is_about_default(step: Step) -> bool:
    return isinstance(step.act, ApplyQueue | RemoveQueue) and step.act.name == DEFAULT_QUEUE


def _by_default(step: Step, random: Random) -> Step:
    act = step.act
    if isinstance(act, ApplyQueue | RemoveQueue) and act.name == QUEUES[0]:
        return Step(step.at, replace(act, name=DEFAULT_QUEUE))
    if not isinstance(act, CreateJob) or act.spec.queue != QUEUES[0]:
        return step
    named = act.spec.process is None or random.random() < 0.1
    return Step(
        step.at, replace(act, spec=replace(act.spec, queue=DEFAULT_QUEUE if named else None))
    )


def with_preemption(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with Queues in which some Jobs have to make room for others."""
    policy = random.choice(tuple(PreemptionPolicy))
    return tuple(_preempting(step, policy, random) for step in script)


def _preempting(step: Step, policy: PreemptionPolicy, random: Random) -> Step:
    act = step.act
    if isinstance(act, ApplyQueue):
        # Little enough that Jobs get into each other's way.
        scarce = act.spec.resources | {"gpu": Amount.read(random.choice((1, 2)))}
        preemption = Preemption(within_queue=policy)
        spec = replace(act.spec, resources=scarce, preemption=preemption)
        return Step(step.at, ApplyQueue(act.name, spec))
    if isinstance(act, CreateJob) and queue_asked(act.spec, DEFAULT_QUEUE) is not None:
        return _prioritized(step, random)
    return step


def with_cohorts(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with Queues that lend each other what they do not use, and move about."""
    policy = Preemption(
        within_queue=random.choice(tuple(PreemptionPolicy)),
        reclaim_within_cohort=random.choice(tuple(ReclaimPolicy)),
        borrow_within_cohort=BorrowWithinCohort(
            policy=random.choice(tuple(BorrowPolicy)),
            max_priority_threshold=random.choice((None, 1)),
        ),
    )
    cohorts = random.choice((("lab",), ("lab", "lab", None), ("lab", "den", None)))
    steps = [_prioritized(step, random) for step in script]
    found = []
    for step in steps:
        act = step.act
        if isinstance(act, ApplyQueue):
            spec = _in_cohort(act.spec, random.choice(cohorts), policy, random)
            step = Step(step.at, ApplyQueue(act.name, spec))
        found.append(step)
    return tuple(found)


def with_shares(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with two Queues of one cohort that stay there, and Jobs that want nothing else."""
    order, is_fair = random.choice(tuple(QueueOrder)), random.random() < 0.5
    # What people do about Queues would put off for a while what can be told of their order.
    about_queues = (ApplyQueue, RemoveQueue)
    steps = [step for step in script if not isinstance(step.act, about_queues)]
    steps = [_sharing(step, random) for step in steps]
    began, length = random.uniform(1.0, 60.0), random.choice((5.0, 30.0, 90.0))
    steps += [_one_of_many(at, began, length, random) for at in range(random.choice((6, 16)))]
    weights = (1, 3) if is_fair else ()
    for name in QUEUES:
        weight = Amount.read(random.choice(weights)) if weights else None
        spec = QueueSpec(
            resources={"gpu": Amount.read(random.choice((1, 2, 3)))},
            cohort="lab",
            order=order,
            priority=random.choice((0, 0, 1)),
            borrowing_limit=random.choice((None, None, {"gpu": Amount.read(1)})),
            lending_limit=random.choice((None, None, {"gpu": Amount.read(1)})),
            fair_sharing=FairSharing(weight=weight) if weight is not None else None,
        )
        steps.append(Step(0.0, ApplyQueue(name, spec)))
    return tuple(sorted(steps, key=lambda step: step.at))


def _one_of_many(number: int, began: float, length: float, random: Random) -> Step:
    """A Job of a crowd that comes within a minute, and stands in line for long."""
    spec = JobSpec(
        process=ProcessSpec(command=("work", f"{length * random.choice((0.5, 1.0, 2.0))}")),
        queue=random.choice(QUEUES),
        resources={"gpu": Amount.read(random.choice((1, 1, 2)))},
        priority=random.choice((0, 0, 1)),
    )
    at = began + random.uniform(0.0, 60.0)
    return Step(at, CreateJob(name=f"crowd-{number}", spec=spec))


def _sharing(step: Step, random: Random) -> Step:
    act = step.act
    if not isinstance(act, CreateJob) or act.spec.queue is None:
        return step
    asked = {"gpu": Amount.read(random.choice((1, 1, 2)))}
    locks = act.spec.locks if random.random() < 0.1 else ()
    spec = replace(act.spec, queue=random.choice(QUEUES), resources=asked, locks=locks)
    return Step(step.at, replace(act, spec=spec))


def _in_cohort(
    spec: QueueSpec, cohort: str | None, policy: Preemption, random: Random
) -> QueueSpec:
    if cohort is None:
        return spec
    amounts = (Amount.read(0), Amount.read(1), Amount.read(2))
    return replace(
        spec,
        cohort=cohort,
        preemption=policy,
        borrowing_limit=random.choice((None, None, {"gpu": random.choice(amounts)})),
        lending_limit=random.choice((None, None, {"gpu": random.choice(amounts)})),
        fair_sharing=random.choice(
            (None, None, FairSharing(), FairSharing(weight=random.choice(amounts)))
        ),
        priority=random.choice((0, 0, 1)),
    )


def _prioritized(step: Step, random: Random) -> Step:
    act = step.act
    if not isinstance(act, CreateJob) or act.spec.queue is None:
        return step
    spec = replace(act.spec, priority=random.choice((0, 0, 1, 2, 5)))
    return Step(step.at, replace(act, spec=spec))


def with_gates(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with Queues whose Jobs have to be ready in time, all their tasks at once."""
    return tuple(_gated(step, random) for step in script)


def _gated(step: Step, random: Random) -> Step:
    act = step.act
    if not isinstance(act, ApplyQueue):
        return step
    spec = replace(act.spec, wait_for_pods_ready=_gate(random))
    return Step(step.at, ApplyQueue(act.name, spec))


def without_gates(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with Queues of which some say nothing, or a part, of what is awaited."""
    return tuple(_ungated(step, random) for step in script)


def _ungated(step: Step, random: Random) -> Step:
    act = step.act
    if not isinstance(act, ApplyQueue) or random.random() < 0.3:
        return step
    gate = random.choice((None, WaitForPodsReady(timeout=Duration(seconds=20))))
    return Step(step.at, ApplyQueue(act.name, replace(act.spec, wait_for_pods_ready=gate)))


def for_all_queues(random: Random) -> WaitForPodsReady | None:
    """What is said for the whole system, where anything is."""
    return _gate(random) if random.random() < 0.4 else None


def _gate(random: Random) -> WaitForPodsReady:
    return WaitForPodsReady(
        enable=random.random() < 0.9,
        timeout=Duration(seconds=random.choice((2, 10, 60))),
        block_admission=random.random() < 0.6,
        block_scope=random.choice((None, None, *BlockScope)),
        recovery_timeout=random.choice((None, Duration(seconds=3), Duration(seconds=30))),
        requeuing_strategy=RequeuingStrategy(
            timestamp=random.choice((None, *RequeuingTimestamp)),
            backoff_limit_count=random.choice((None, None, 0, 1, 3)),
            backoff_base_seconds=random.choice((0, 1, 20)),
            backoff_max_seconds=random.choice((0, 30, 300)),
        ),
    )
