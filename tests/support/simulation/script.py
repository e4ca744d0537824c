"""What people and fate do in a world: a list of steps, drawn from the seed before it begins.

A script is data, so that a failing one can be cut down to the steps that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from random import Random
from typing import Any

from msgspec import Struct

from interlock.resources.controlled_job import ControlledJobSpec, OverrideAction
from interlock.resources.job import (
    Backoff,
    Completion,
    JobSpec,
    LockRequest,
    OperateVerb,
    Parallelism,
    Retries,
    SlotsRequest,
    WhenTaken,
)
from interlock.resources.job_config import JobConfigSpec
from interlock.resources.process import NoopSpec, ProcessSpec
from interlock.resources.queue import QueueSpec
from interlock.resources.test_bed import TestBedSpec
from interlock.resources.values.durations import Duration, format_duration

PLANES = 2
LOCK_KEYS = ("db", "disk", "net")


class CreateJob(Struct, frozen=True, tag=True, kw_only=True):
    """A person creates a Job; moments in it count from now."""

    name: str
    spec: JobSpec
    start_after: float | None = None
    start_by: float | None = None
    kill_at: float | None = None
    #: Whether it came through the API's door, which puts the finalizer on it.
    through_door: bool = True


class DeleteJob(Struct, frozen=True, tag=True):
    """A person deletes a Job."""

    name: str


class KillJob(Struct, frozen=True, tag=True):
    """A person stops a Job, now or later, with its grace or without."""

    name: str
    after: float = 0.0
    graceful: bool = True


class SuspendJob(Struct, frozen=True, tag=True):
    """A person holds a Job back, or lets it go on."""

    name: str
    suspend: bool


class ChangePriority(Struct, frozen=True, tag=True):
    """A person moves a Job in its lines."""

    name: str
    priority: int


class RaiseLimits(Struct, frozen=True, tag=True):
    """A person raises the limits of the locks of a Job."""

    name: str
    by: int


class ReleaseJob(Struct, frozen=True, tag=True):
    """A person writes off the tasks of a Job whose fate is not known."""

    name: str


class OperateJob(Struct, frozen=True, tag=True):
    """A person gives an order about an operation."""

    name: str
    verb: OperateVerb


class RequeueOne(Struct, frozen=True, tag=True):
    """A person has one of the Jobs that are let in, by luck, wait again."""

    luck: float


class Poke(Struct, frozen=True, tag=True):
    """An object that no door would let in is put straight into the store."""

    name: str
    how: int


class Forgery(StrEnum):
    """What a stranger who may write statuses says of a new Job."""

    #: It was let in, with the tokens of those who hold its locks: no others look as true. The Job
    #: is not due for an hour, so that nobody lets it in whose clock goes right.
    LET_IN = "let in"
    #: It was let in, without its locks, while it stands in their lines.
    WITHOUT_LOCKS = "let in without locks"


class ForgeStatus(Struct, frozen=True, tag=True):
    """A stranger who may write statuses says something of a new Job."""

    name: str
    spec: JobSpec
    how: Forgery = Forgery.LET_IN


class CrashPlane(Struct, frozen=True, tag=True):
    """A control plane is killed."""

    plane: int


class PausePlane(Struct, frozen=True, tag=True):
    """A control plane stands still for a while, and believes that no time has passed."""

    plane: int
    seconds: float


class JumpClock(Struct, frozen=True, tag=True):
    """Somebody sets the clock of a control plane."""

    plane: int
    seconds: float


class RebootMachine(Struct, frozen=True, tag=True):
    """The machine restarts: nothing that ran on it is left."""


class LoseKeeper(Struct, frozen=True, tag=True):
    """The keeper dies and comes back; its tasks went on meanwhile."""


class LoseMachine(Struct, frozen=True, tag=True):
    """Nobody reaches the machine for a while; its tasks go on."""

    seconds: float


class StallStore(Struct, frozen=True, tag=True):
    """The store answers nobody for a while."""

    seconds: float


class BackUpStore(Struct, frozen=True, tag=True):
    """A person makes a backup."""


class PutBackStore(Struct, frozen=True, tag=True):
    """A person stops all control planes and restores the newest backup; tasks go on meanwhile."""


class LoseNode(Struct, frozen=True, tag=True):
    """A node of a cluster is cut off for a while; its containers go on."""

    node: int
    seconds: float


class CrashNode(Struct, frozen=True, tag=True):
    """A node of a cluster loses power for a while."""

    node: int
    seconds: float


class RemoveNode(Struct, frozen=True, tag=True):
    """A machine of a cluster is gone for good, and its node is removed."""

    node: int


class DeletePod(Struct, frozen=True, tag=True):
    """A person deletes a pod of a Job, with its grace or by force."""

    job: str
    force: bool = False
    #: Whether the person also takes away what holds it, and answers for what it still does.
    strip: bool = False


class Denial(StrEnum):
    """Why an API server refuses what is right in itself."""

    #: There is no room in the namespace for another pod.
    QUOTA = "quota"
    #: The control planes may not create pods.
    NO_CREATE = "no create"
    #: They may not delete any.
    NO_DELETE = "no delete"
    #: Somebody whom the server asks about new pods does not answer.
    DEAD_WEBHOOK = "dead webhook"
    #: They may not change any.
    NO_PATCH = "no patch"


class DenyPods(Struct, frozen=True, tag=True):
    """The API server of a cluster refuses some orders for a while."""

    how: Denial
    seconds: float


class CreateTheirs(Struct, frozen=True, tag=True, kw_only=True):
    """Somebody else makes a batch Job or a pod that asks for a Queue."""

    name: str
    command: tuple[str, ...]
    queue: str
    is_pod: bool = False
    parallelism: int = 1
    completions: int | None = None
    #: With how many pods at a time it may start.
    least: int | None = None
    priority: str = ""
    #: What each of its pods requests.
    requests: dict[str, str] = {}
    #: Whether the pods of a batch Job carry the label too.
    labels_parts: bool = False
    #: Whether our webhook is there, and holds it back.
    is_held: bool = True
    #: Whether another pod is made in the place of one that is deleted.
    is_replaced: bool = False


class ChangeTheirs(Struct, frozen=True, tag=True):
    """Its owner changes it, by a merge patch."""

    name: str
    patch: dict[str, Any]


class DeleteTheirs(Struct, frozen=True, tag=True):
    """Its owner deletes it."""

    name: str


class DeletePart(Struct, frozen=True, tag=True):
    """Somebody deletes the newest pod of a batch Job of others."""

    name: str


class StandInVerb(StrEnum):
    """What a person may do about a Job that stands for something."""

    KILL = "kill"
    DELETE = "delete"
    SUSPEND = "suspend"


class OrderStandIn(Struct, frozen=True, tag=True):
    """A person gives an order about one of the Jobs that stand for something, by luck."""

    verb: StandInVerb
    luck: float


class ApplyConfig(Struct, frozen=True, tag=True):
    """A person applies a JobConfig: makes it, or changes all of it."""

    name: str
    spec: JobConfigSpec


class ApplyControlled(Struct, frozen=True, tag=True):
    """A person applies a ControlledJob; its overrides stay as they are."""

    name: str
    spec: ControlledJobSpec


class ChangeTemplate(Struct, frozen=True, tag=True):
    """A person changes the template of a ControlledJob alone, and has its Job follow."""

    name: str
    title: str


class ApplyCalendar(Struct, frozen=True, tag=True):
    """A person applies a Calendar of these days."""

    name: str
    days: tuple[str, ...]


class RemoveObject(Struct, frozen=True, tag=True):
    """A person deletes a JobConfig, a ControlledJob or a Calendar."""

    kind: str
    name: str


class SuspendSchedule(Struct, frozen=True, tag=True):
    """A person suspends a JobConfig or a ControlledJob, or resumes it."""

    kind: str
    name: str
    suspend: bool


class RunByHand(Struct, frozen=True, tag=True):
    """A person runs a JobConfig on demand, or starts a ControlledJob."""

    kind: str
    name: str


class StopByHand(Struct, frozen=True, tag=True):
    """A person stops the Job of a ControlledJob for this window."""

    name: str


class PauseByHand(Struct, frozen=True, tag=True):
    """A person suspends the Jobs of a ControlledJob, without a word of why."""

    name: str


class PutOffByHand(Struct, frozen=True, tag=True):
    """A person puts off the stops of the Jobs of a ControlledJob, or takes them back."""

    name: str
    after: float | None


class DeleteOneOf(Struct, frozen=True, tag=True):
    """A person deletes a Job of a JobConfig or a ControlledJob: the first by luck."""

    kind: str
    name: str
    luck: float


class AddOverride(Struct, frozen=True, tag=True):
    """A person makes an exception to the plan of a ControlledJob; moments count from now."""

    name: str
    action: OverrideAction
    begin: float
    until: float


class ApplyQueue(Struct, frozen=True, tag=True):
    """A person applies a Queue: makes it, or changes all of it."""

    name: str
    spec: QueueSpec


class RemoveQueue(Struct, frozen=True, tag=True):
    """A person deletes a Queue."""

    name: str


class SetActive(Struct, frozen=True, tag=True):
    """A person takes a Job out of its Queue, or puts it in again."""

    name: str
    active: bool


class ApplyBed(Struct, frozen=True, tag=True):
    """A person makes a TestBed, or changes it."""

    name: str
    spec: TestBedSpec


class RemoveBed(Struct, frozen=True, tag=True):
    """A person deletes a TestBed."""

    name: str


class PutNode(Struct, frozen=True, tag=True):
    """A node joins, or has other labels since now."""

    name: str
    labels: dict[str, str]


class TakeNode(Struct, frozen=True, tag=True):
    """A node is removed."""

    name: str


class ChangeSlots(Struct, frozen=True, tag=True):
    """A person asks for other slots for a Job, or a Scheduling does."""

    name: str
    slots: SlotsRequest | None


class Outage(Struct, frozen=True, tag=True):
    """Nobody is there for a while: every control plane is gone."""

    seconds: float


class KillWorker(Struct, frozen=True, tag=True):
    """A worker dies in the middle of what it does."""

    number: int


class HangWorker(Struct, frozen=True, tag=True):
    """A worker stands still for a while, or for good, and keeps its connection."""

    number: int
    seconds: float


class CutWorker(Struct, frozen=True, tag=True):
    """The connection of a worker breaks; what is on its way is lost."""

    number: int


class DrainWorker(Struct, frozen=True, tag=True):
    """A worker takes nothing more, and goes when it is done; another one comes."""

    number: int


Act = (
    CreateJob
    | DeleteJob
    | KillJob
    | SuspendJob
    | ChangePriority
    | RaiseLimits
    | ReleaseJob
    | OperateJob
    | RequeueOne
    | Poke
    | ForgeStatus
    | CrashPlane
    | PausePlane
    | JumpClock
    | RebootMachine
    | LoseKeeper
    | LoseMachine
    | StallStore
    | BackUpStore
    | PutBackStore
    | LoseNode
    | CrashNode
    | RemoveNode
    | DeletePod
    | DenyPods
    | CreateTheirs
    | ChangeTheirs
    | DeleteTheirs
    | DeletePart
    | OrderStandIn
    | ApplyConfig
    | ApplyControlled
    | ChangeTemplate
    | ApplyCalendar
    | RemoveObject
    | SuspendSchedule
    | RunByHand
    | StopByHand
    | PauseByHand
    | PutOffByHand
    | DeleteOneOf
    | AddOverride
    | ApplyQueue
    | RemoveQueue
    | SetActive
    | ApplyBed
    | RemoveBed
    | PutNode
    | TakeNode
    | ChangeSlots
    | Outage
    | KillWorker
    | HangWorker
    | CutWorker
    | DrainWorker
)


class Step(Struct, frozen=True):
    """Something that is done at a moment of the world's time."""

    at: float
    act: Act


#: How many kinds of objects `Poke` knows.
POKES = 10


def write_script(random: Random) -> tuple[Step, ...]:
    """Draw a script: people at work first, and trouble in between."""
    length = random.choice((300.0, 900.0, 1500.0))
    names = [f"job-{number}" for number in range(random.choice((4, 8, 14)))]
    taste = _Taste(random)
    steps = [Step(random.uniform(0.0, length * 0.7), _creation(random, taste, n)) for n in names]
    steps += [
        Step(random.uniform(1.0, length), _meddling(random, taste, names))
        for _ in range(random.choice((0, 4, 10)))
    ]
    steps += [
        Step(random.uniform(1.0, length), _trouble(random))
        for _ in range(random.choice((0, 0, 2, 6)))
    ]
    for number in range(random.choice((0, 0, 1, 3))):
        act = Poke(f"bad-{number}", random.randrange(POKES))
        steps.append(Step(random.uniform(0.0, length), act))
    return tuple(sorted(steps, key=lambda step: step.at))


def with_strangers(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with what strangers do in some worlds, drawn apart so that the rest stays."""
    forged = [
        Step(random.uniform(0.0, script[-1].at), forgery(random.choice(LOCK_KEYS)))
        for _ in range(random.choice((0, 0, 1)))
    ]
    return tuple(sorted((*script, *forged), key=lambda step: step.at))


def with_requeues(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with Jobs that people put back in some worlds, drawn apart for the same reason."""
    if not script:
        return script
    requeues = [
        Step(random.uniform(1.0, script[-1].at + 1.0), RequeueOne(random.random()))
        for _ in range(random.choice((0, 1, 4, 9)))
    ]
    return tuple(sorted((*script, *requeues), key=lambda step: step.at))


def with_forgeries(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with forgeries of all sorts in some worlds, drawn apart for the same reason."""
    if not script:
        return script
    forged = [
        Step(
            random.uniform(0.0, script[-1].at),
            forgery(random.choice(LOCK_KEYS), f"forged-{number}", random.choice(tuple(Forgery))),
        )
        for number in range(random.choice((0, 0, 1, 3)))
    ]
    return tuple(sorted((*script, *forged), key=lambda step: step.at))


def forgery(key: str, name: str = "forged", how: Forgery = Forgery.LET_IN) -> ForgeStatus:
    """A stranger's Job that needs one lock."""
    work = ProcessSpec(command=("work", "60"))
    return ForgeStatus(name, JobSpec(process=work, locks=(LockRequest(key=key),)), how)


class _Taste:
    """What the Jobs of one world have in common: worlds of one kind of Job find other bugs."""

    def __init__(self, random: Random) -> None:
        self.keys = LOCK_KEYS[: random.choice((1, 1, 2, 3))]
        self.policies = random.choice(
            (
                (WhenTaken.ENQUEUE,),
                (WhenTaken.ENQUEUE, WhenTaken.ENQUEUE, WhenTaken.REPLACE),
                tuple(WhenTaken),
            )
        )
        self.limits = random.choice(((1,), (1, 2), (1, 2, 3)))
        self.locked = random.choice((0.6, 0.9, 1.0))
        self.longest = random.choice((5.0, 60.0, 240.0))
        self.tasks = random.choice((1, 1, 3, 6))
        self.odd = random.choice((0.0, 0.1, 0.4))


def _creation(random: Random, taste: _Taste, name: str) -> CreateJob:
    odd = taste.odd

    def maybe(chance: float, draw: Callable[[], float]) -> float | None:
        return draw() if random.random() < chance else None

    return CreateJob(
        name=name,
        spec=_spec(random, taste),
        start_after=maybe(odd, lambda: random.uniform(-10, 200)),
        start_by=maybe(odd, lambda: random.uniform(1, 400)),
        kill_at=maybe(odd, lambda: random.uniform(-5, 300)),
        through_door=random.random() < 0.8,
    )


def _spec(random: Random, taste: _Taste) -> JobSpec:
    odd = taste.odd
    tasks = random.randint(1, taste.tasks)
    common = {
        "locks": _locks(random, taste),
        "priority": random.choice((0, 0, 0, 5, -5)),
        "suspend": random.random() < odd / 2,
        "grace_period": _length(random.choice((0.0, 5.0, 30.0))),
        "ttl_after_finished": _length(random.choice((0.0, 60.0)))
        if random.random() < odd
        else None,
    }
    if random.random() < 0.1:
        return JobSpec(noop=NoopSpec(), **common)  # type: ignore[arg-type]
    command = _command(random, taste)
    return JobSpec(
        process=ProcessSpec(command=command),
        parallelism=_parallelism(random, tasks),
        completion=random.choice(tuple(Completion)),
        retries=_retries(random),
        pending_timeout=_length(_patience(random.choice((30.0, 900.0)), command)),
        task_timeout=_length(random.uniform(1, 60)) if random.random() < odd else None,
        timeout=_length(random.uniform(1, 120)) if random.random() < odd else None,
        **common,  # type: ignore[arg-type]
    )


def _locks(random: Random, taste: _Taste) -> tuple[LockRequest, ...]:
    if random.random() >= taste.locked:
        return ()
    count = min(len(taste.keys), random.choice((1, 1, 2, 3)))
    return tuple(
        LockRequest(
            key=key,
            limit=random.choice(taste.limits),
            when_taken=random.choice(taste.policies),
        )
        for key in random.sample(taste.keys, count)
    )


def _command(random: Random, taste: _Taste) -> tuple[str, ...]:
    words = ["work", f"{random.choice((0.0, random.uniform(0, taste.longest))):.3f}"]
    exits = random.choice(((0,), (0,), (1, 0), (1, 1, 0), (1,), (7,)))
    words.append("exits=" + ",".join(map(str, exits)))
    if random.random() < 0.15:
        words.append("deaf")
    if random.random() < 0.2:
        words.append(f"slow={random.choice((0.5, 8.0, 40.0))}")
    if random.random() < taste.odd / 4:
        words.append("unseen")
    if random.random() < taste.odd / 4:
        words.append("broken")
    return (*words, *_hanging(words, taste))


def _patience(usual: float, command: tuple[str, ...]) -> float:
    """Whoever hangs in each of a dozen attempts is over some time all the same."""
    return min(usual, 30.0) if any(word.startswith("hangs") for word in command) else usual


def _hanging(words: list[str], taste: _Taste) -> tuple[str, ...]:
    """Whether its start hangs: by luck of its own, so that seeds with a name keep their sense."""
    random = Random(" ".join(words))
    if random.random() >= taste.odd / 4:
        return ()
    return (f"hangs={random.choice((1.0, 20.0, 100_000.0))}",)


def _parallelism(random: Random, tasks: int) -> Parallelism | None:
    if tasks == 1 and random.random() < 0.5:
        return None
    at_once = random.choice((None, 1, 2))
    if random.random() < 0.3:
        return Parallelism(keys=tuple(f"k{n}" for n in range(tasks)), at_once=at_once)
    return Parallelism(count=tasks, at_once=at_once)


def _retries(random: Random) -> Retries:
    return Retries(
        limit=random.choice((0, 0, 1, 3)),
        delay=_length(random.choice((0.0, 2.0, 20.0))),
        backoff=random.choice(tuple(Backoff)),
        fail_exit_codes=random.choice(((), (7,))),
    )


def _length(seconds: float) -> Duration:
    length = Duration(milliseconds=round(seconds * 1000))
    length.text = format_duration(timedelta(milliseconds=round(seconds * 1000)))
    return length


def _meddling(random: Random, taste: _Taste, names: list[str]) -> Act:
    name = random.choice(names)
    acts: tuple[Callable[[], Act], ...] = (
        lambda: DeleteJob(name),
        lambda: KillJob(name, random.choice((0.0, 20.0)), random.random() < 0.5),
        lambda: SuspendJob(name, random.random() < 0.5),
        lambda: ChangePriority(name, random.choice((-9, 0, 9))),
        lambda: RaiseLimits(name, random.choice((1, 2))),
        lambda: ReleaseJob(name),
        # The same name again: another Job, that must not be taken for the first.
        lambda: _creation(random, taste, name),
    )
    return random.choice(acts)()


def _trouble(random: Random) -> Act:
    plane = random.randrange(PLANES)
    acts: tuple[Callable[[], Act], ...] = (
        lambda: CrashPlane(plane),
        lambda: CrashPlane(plane),
        lambda: PausePlane(plane, random.choice((2.0, 30.0, 150.0))),
        lambda: PausePlane(plane, random.choice((2.0, 30.0, 150.0))),
        lambda: JumpClock(plane, random.choice((-3600.0, -30.0, 30.0, 3600.0))),
        RebootMachine,
        LoseKeeper,
        lambda: LoseMachine(random.choice((5.0, 60.0))),
        lambda: StallStore(random.choice((5.0, 30.0))),
    )
    return random.choice(acts)()
