"""The worlds that mutations are planted in: every other of them a busy one."""

from __future__ import annotations

from mutation import Worlds

from interlock.resources.job import JobSpec, LockRequest, Parallelism, Retries, SlotsRequest
from interlock.resources.process import ProcessSpec
from interlock.resources.queue import QueueOrder, QueueSpec, StopPolicy
from interlock.resources.steps import BeforeRetry, StepRetries, StepWork
from interlock.resources.steps import Step as Operated
from interlock.resources.test_bed import TestBedSpec
from interlock.resources.values.amounts import Amount
from support.simulation.faults import CALM, FaultRates
from support.simulation.request_world import BadRequest, bad_request
from support.simulation.restore_world import RestoreWorld
from support.simulation.script import (
    Act,
    ApplyBed,
    ApplyQueue,
    BackUpStore,
    ChangeSlots,
    CreateJob,
    CutWorker,
    DeleteJob,
    Forgery,
    JumpClock,
    KillJob,
    LoseKeeper,
    PutBackStore,
    PutNode,
    ReleaseJob,
    RequeueOne,
    Step,
    forgery,
)
from support.simulation.worker_script import KILLS
from support.simulation.world import World


def _busy(number: int) -> CreateJob:
    """A Job among many that want one lock, run long, ignore SIGTERM, fail and are tried again."""
    spec = JobSpec(
        process=ProcessSpec(command=("work", "40", "exits=1", "deaf", "slow=8")),
        locks=(LockRequest(key="db", limit=1 + number % 2),),
        parallelism=Parallelism(count=6),
        retries=Retries(limit=4),
    )
    # Names run against the order of creation, so that the one is not taken for the other.
    return CreateJob(name=f"job-{9 - number}", spec=spec)


_ACTS: tuple[Act, ...] = (
    *map(_busy, range(5)),
    ReleaseJob("job-9"),
    LoseKeeper(),
    DeleteJob("job-9"),
    LoseKeeper(),
    DeleteJob("job-8"),
    LoseKeeper(),
    KillJob("job-7"),
    *map(_busy, range(5, 8)),
    LoseKeeper(),
    forgery("db"),
)
#: A busy day, for bugs that need a crowd: nothing fails but what is in the script.
BUSY = tuple(Step(20.0 * at, act) for at, act in enumerate(_ACTS, 1))


#: The same with Jobs that are put back at every turn.
PUT_BACK = tuple(
    sorted(
        (*BUSY, *(Step(7.0 + 11.0 * at, RequeueOne(at * 0.37 % 1.0)) for at in range(60))),
        key=lambda step: step.at,
    )
)


def _long(name: str) -> CreateJob:
    """A Job that goes on while everybody who knows of it is restored, and goes slowly."""
    process = ProcessSpec(command=("work", "900", "deaf", "slow=8"))
    return CreateJob(name=name, spec=JobSpec(process=process, locks=(LockRequest(key="net"),)))


#: The same without lost keepers, put back twice to where nearly all of them waited in line; what
#: runs then is known to nobody, and somebody else wants its lock.
RESTORES = tuple(
    sorted(
        (
            *(step for step in BUSY if step.act != LoseKeeper()),
            Step(45.0, BackUpStore()),
            Step(50.0, _long("unknown")),
            Step(190.0, PutBackStore()),
            Step(195.0, _long("known")),
            Step(330.0, PutBackStore()),
        ),
        key=lambda step: step.at,
    )
)


def busy(world: type[World]) -> Worlds:
    """Worlds of a sort, every other of them the busy one, with other luck each time."""
    script = RESTORES if world is RestoreWorld else BUSY
    return lambda seed: world(seed, script, CALM) if seed % 2 else world(seed)


def put_back(world: type[World]) -> Worlds:
    """The same with people who put Jobs back."""
    return lambda seed: world(seed, PUT_BACK, CALM) if seed % 2 else world(seed)


def operations(world: type[World]) -> Worlds:
    """Worlds with operations, as they are drawn."""
    return world


def forged(world: type[World]) -> Worlds:
    """A world with clocks an hour ahead, and a stranger who writes statuses of all sorts."""
    acts: list[Act] = [JumpClock(0, 3600.0), JumpClock(1, 3600.0)]
    for how in Forgery:
        acts += [forgery("db", f"forged-{how.name.lower()}-{n}", how) for n in range(4)]
    acts.append(_busy(0))
    script = tuple(Step(5.0 * at, act) for at, act in enumerate(acts, 1))
    return lambda seed: world(seed, script, FaultRates(watch_late=0.7, longest_stall=6.0))


def taken_back(world: type[World]) -> Worlds:
    """A world with a step whose retries take back what it was built upon, which has no undo."""

    def work(*words: str) -> StepWork:
        return StepWork(process=ProcessSpec(command=("work", *words)))

    below = Operated(name="a", run=work("1"))
    above = Operated(
        name="b",
        run=work("1", "exits=1,1,0"),
        undo=work("20"),
        retries=StepRetries(limit=3),
        before_retry=BeforeRetry.ROLL_BACK,
        roll_back=("a",),
    )
    spec = JobSpec(steps=(below, above), steps_at_once=2)
    script = (Step(10.0, CreateJob(name="op-0", spec=spec)),)
    return lambda seed: world(seed, script, CALM)


def siblings(world: type[World]) -> Worlds:
    """A world with two steps on one that has no undo: the one takes it back while the other is
    being undone.
    """

    def work(*words: str) -> StepWork:
        return StepWork(process=ProcessSpec(command=("work", *words)))

    below = Operated(name="a", run=work("1"))
    taking = Operated(
        name="b",
        run=work("2", "exits=1,0"),
        needs=("a",),
        retries=StepRetries(limit=3),
        before_retry=BeforeRetry.ROLL_BACK,
        roll_back=("a",),
    )
    beside = Operated(
        name="c",
        run=work("1", "exits=1,0"),
        undo=work("20"),
        needs=("a",),
        retries=StepRetries(limit=3),
        before_retry=BeforeRetry.ROLL_BACK_FIRST,
    )
    spec = JobSpec(steps=(below, taking, beside), steps_at_once=3)
    script = (Step(10.0, CreateJob(name="op-0", spec=spec)),)
    return lambda seed: world(seed, script, CALM)


def deleted_part(world: type[World]) -> Worlds:
    """A world with an operation one of whose parts is deleted."""
    work = StepWork(process=ProcessSpec(command=("work", "1")))
    parts = {"part-0": ("work", "2"), "part-1": ("work", "90")}
    script = (
        Step(10.0, CreateJob(name="op-0", spec=JobSpec(steps=(Operated(name="a", run=work),)))),
        *(
            Step(
                10.0,
                CreateJob(
                    name=name,
                    spec=JobSpec(process=ProcessSpec(command=words), parent="op-0"),
                ),
            )
            for name, words in parts.items()
        ),
        Step(40.0, DeleteJob("part-1")),
    )
    return lambda seed: world(seed, script, CALM)


def side_by_side(world: type[World]) -> Worlds:
    """A world with steps that are done side by side, and a store that is slow at times."""
    steps = tuple(
        Operated(
            name=f"s{at}",
            run=StepWork(process=ProcessSpec(command=("work", f"{length}"))),
            needs=(),
        )
        for at, length in enumerate((0.5, 0.7, 1.1, 1.3, 0.2, 0.9, 1.7, 0.4) * 4)
    )
    script = (Step(10.0, CreateJob(name="op-0", spec=JobSpec(steps=steps, steps_at_once=4))),)
    return lambda seed: world(seed, script, FaultRates(stall=0.4, longest_stall=2.0))


def not_to_be_done(world: type[World]) -> Worlds:
    """A world with a request whose steps need what is not there, or each other."""
    bad = (BadRequest.NOWHERE, BadRequest.RING)
    scripts = [(Step(5.0, CreateJob(name="bad-request", spec=bad_request(how))),) for how in bad]
    return lambda seed: world(seed, scripts[seed % 2], CALM)


def cut_off(world: type[World]) -> Worlds:
    """A world whose workers lose their connections again and again, and are at what goes on."""
    work = StepWork(process=ProcessSpec(command=("work", "25", "deaf")))
    spec = JobSpec(steps=(Operated(name="a", run=work),), max_interruptions=5)
    jobs = [Step(10.0, CreateJob(name=f"op-{at}", spec=spec)) for at in range(6)]
    cuts = [Step(15.0 + 7.0 * at, CutWorker(at)) for at in range(20)]
    return lambda seed: world(seed, (*jobs, *cuts), CALM)


def killers(world: type[World]) -> Worlds:
    """A world with a step that kills its worker, beside some that do no harm and must not pay."""
    kills = Operated(name="a", run=StepWork(process=ProcessSpec(command=("work", "5", KILLS))))
    calm = Operated(name="a", run=StepWork(process=ProcessSpec(command=("work", "9"))))
    bad = JobSpec(steps=(kills,), max_interruptions=2)
    good = JobSpec(steps=(calm,), max_interruptions=0)
    jobs = [Step(10.0 + at / 10, CreateJob(name=f"op-{at}", spec=good)) for at in range(9)]
    script = (*jobs[:4], Step(10.35, CreateJob(name="bad", spec=bad)), *jobs[4:])
    return lambda seed: world(seed, script, CALM)


def _in_blue(number: int) -> CreateJob:
    """A Job of several tasks in a Queue that has room for a few of them."""
    spec = JobSpec(
        process=ProcessSpec(command=("work", f"{5 + number % 4 * 20}")),
        parallelism=Parallelism(count=1 + number % 4),
        queue="blue",
        resources={"gpu": Amount.read(1 + number % 2)},
        min_parallelism=1 if number % 3 == 0 else None,
        locks=(LockRequest(key="db"),) if number % 5 == 0 else (),
    )
    return CreateJob(name=f"job-{50 - number}", spec=spec)


def _blue(order: QueueOrder, stop: StopPolicy = StopPolicy.NONE) -> ApplyQueue:
    spec = QueueSpec(resources={"gpu": Amount.read(5)}, order=order, stop=stop)
    return ApplyQueue("blue", spec)


#: A busy day for a Queue: many want the same, it is held for a while, and in the end drained.
QUEUED = (
    Step(1.0, _blue(QueueOrder.STRICT_FIFO)),
    *(Step(5.0 + 4.0 * number, _in_blue(number)) for number in range(20)),
    Step(60.0, _blue(QueueOrder.STRICT_FIFO, StopPolicy.HOLD)),
    Step(120.0, _blue(QueueOrder.BEST_EFFORT_FIFO)),
    *(Step(125.0 + 4.0 * number, _in_blue(number)) for number in range(20, 40)),
    Step(400.0, _blue(QueueOrder.BEST_EFFORT_FIFO, StopPolicy.HOLD_AND_DRAIN)),
    Step(500.0, _blue(QueueOrder.STRICT_FIFO)),
)


def queued(world: type[World]) -> Worlds:
    """Worlds with Queues, every other of them a busy one."""
    return lambda seed: world(seed, QUEUED, CALM) if seed % 2 else world(seed)


def undecided(world: type[World]) -> Worlds:
    """A world of Jobs that are asked for other slots just as they are given some."""
    acts = [Step(0.0, ApplyBed("bed-a", TestBedSpec(slots_per_node=4)))]
    acts += [Step(0.0, PutNode(name, {})) for name in ("n0", "n1", "n2")]
    for number in range(60):
        spec = JobSpec(
            process=ProcessSpec(command=("work", "1")),
            slots=SlotsRequest(test_bed="bed-a", ids=(f"n0/{number % 4}",)),
        )
        other = SlotsRequest(test_bed="bed-a", ids=(f"n1/{number % 4}",))
        at, name = 10.0 + 6 * number, f"job-{number}"
        acts.append(Step(at, CreateJob(name=name, spec=spec)))
        acts.append(Step(at + number / 400, ChangeSlots(name, other)))
    return lambda seed: world(seed, tuple(acts), CALM)


def too_large(world: type[World]) -> Worlds:
    """A world in which the first Job asks for more slots than there are, and others for few."""
    acts = [
        Step(0.0, ApplyBed("bed-a", TestBedSpec(slots_per_node=1))),
        Step(0.0, PutNode("n0", {})),
        Step(5.0, _wants("large", 9)),
        *(Step(10.0 + 40 * number, _wants(f"job-{number}", 1)) for number in range(10)),
    ]
    return lambda seed: world(seed, tuple(acts), CALM)


def _wants(name: str, tasks: int) -> CreateJob:
    """A Job that wants so many slots."""
    spec = JobSpec(
        process=ProcessSpec(command=("work", "1")),
        slots=SlotsRequest(test_bed="bed-a"),
        parallelism=Parallelism(count=tasks),
    )
    return CreateJob(name=name, spec=spec)
