"""Scripts for operations: what they do, how it fails, and what people order about them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from interlock.findings import Findings
from interlock.resources.checks.operations import check_steps
from interlock.resources.job import JobSpec, LockRequest, OperateVerb, WhenTaken
from interlock.resources.process import ProcessSpec
from interlock.resources.steps import (
    BeforeRetry,
    Step,
    StepRetries,
    StepWork,
    Target,
    UndoRetries,
)
from interlock.resources.values.durations import Duration, format_duration
from support.simulation.script import (
    LOCK_KEYS,
    Act,
    CreateJob,
    DeleteJob,
    KillJob,
    OperateJob,
    Poke,
    ReleaseJob,
    SuspendJob,
)
from support.simulation.script import Step as Scene

#: Where targets are. Children have one further on than their parent's, so that no two operations
#: ever wait for each other.
PATHS = ("domains/acme", "domains/acme/applications/shop", "users/ana")
#: The kinds of bad operations that people put into the store, numbered on from other bad objects.
BAD_OPERATIONS = range(100, 105)


class _Taste:
    """What the operations of one world have in common."""

    def __init__(self, random: Random) -> None:
        self.most_steps = random.choice((1, 3, 3, 6, 10))
        self.paths = random.choice((1, 2, 3))
        self.longest = random.choice((2.0, 10.0, 60.0))
        self.fails = random.choice((0.1, 0.4, 0.8))
        self.odd = random.choice((0.0, 0.1, 0.3))
        self.delays = random.choice(((0.0,), (2.0, 20.0), (0.0, 5.0, 60.0)))
        self.at_once = random.choice((1, 1, 3))


def with_operations(script: tuple[Scene, ...], random: Random) -> tuple[Scene, ...]:
    """The script of a world with operations in it; in some worlds there is little else."""
    length = script[-1].at if script else 300.0
    if random.random() < 0.5:
        script = tuple(scene for scene in script if not isinstance(scene.act, CreateJob | Poke))
    taste = _Taste(random)
    creations = _creations(random, taste, random.choice((2, 4, 8)))
    names = [each.name for each in creations]
    scenes = [Scene(random.uniform(0.0, length * 0.7), each) for each in creations]
    scenes += [
        Scene(random.uniform(1.0, length * 1.2), _meddling(random, names))
        for _ in range(random.choice((0, 2, 6, 12)))
    ]
    scenes += [
        Scene(random.uniform(0.0, length), Poke(f"bad-op-{n}", random.choice(BAD_OPERATIONS)))
        for n in range(random.choice((0, 0, 1, 2)))
    ]
    return tuple(sorted((*script, *scenes), key=lambda scene: scene.at))


def _meddling(random: Random, names: list[str]) -> Act:
    name = random.choice(names)
    acts: tuple[Callable[[], Act], ...] = (
        lambda: OperateJob(name, random.choice(tuple(OperateVerb))),
        lambda: OperateJob(name, random.choice((OperateVerb.RETRY, OperateVerb.ROLL_BACK))),
        lambda: OperateJob(name, random.choice((OperateVerb.RETRY, OperateVerb.ROLL_BACK))),
        lambda: KillJob(name, random.choice((0.0, 20.0)), random.random() < 0.5),
        lambda: DeleteJob(name),
        lambda: SuspendJob(name, random.random() < 0.5),
        lambda: ReleaseJob(name),
    )
    return random.choice(acts)()


# Operations


def _creations(random: Random, taste: _Taste, many: int) -> list[CreateJob]:
    """Operations, some of them parts of others, and ordinary Jobs that are such parts too."""
    made: list[CreateJob] = []
    places = [random.choice((None, *range(taste.paths))) for _ in range(many)]
    parents: dict[int, int] = {}
    # How far on the furthest target is of an operation and all that it is a part of.
    reached = [-1 if place is None else place for place in places]
    for at in range(1, many):
        above = random.randrange(at)
        place = places[at]
        if random.random() < 0.25 and (place is None or place > reached[above]):
            parents[at] = above
            reached[at] = max(reached[at], reached[above])
    for at, place in enumerate(places):
        spec = an_operation(random, taste, place, may_lock=at not in parents.values())
        if at in parents:
            spec = replace(spec, parent=f"op-{parents[at]}")
        made.append(_creation(random, taste, f"op-{at}", spec))
    for at in sorted(set(parents.values())):
        for number in range(random.choice((0, 1, 3))):
            work = ProcessSpec(command=_command(random, taste, 0))
            spec = JobSpec(process=work, parent=f"op-{at}", pending_timeout=Duration(seconds=30))
            made.append(CreateJob(name=f"part-{at}-{number}", spec=spec))
    return made


def _creation(random: Random, taste: _Taste, name: str, spec: JobSpec) -> CreateJob:
    def maybe(chance: float, least: float, most: float) -> float | None:
        return random.uniform(least, most) if random.random() < chance else None

    return CreateJob(
        name=name,
        spec=spec,
        start_after=maybe(taste.odd / 2, -10, 200),
        start_by=maybe(taste.odd / 2, 1, 400),
        kill_at=maybe(taste.odd / 2, -5, 300),
        through_door=random.random() < 0.9,
    )


def an_operation(random: Random, taste: _Taste, place: int | None, *, may_lock: bool) -> JobSpec:
    """Draw an operation that the door would let in."""
    steps = _graph(random, taste)
    found = Findings()
    check_steps(steps, found)
    while found:
        steps, found = _graph(random, taste), Findings()
        check_steps(steps, found)
    locks: tuple[LockRequest, ...] = ()
    if may_lock and random.random() < 0.3:
        key = random.choice(LOCK_KEYS)
        locks = (LockRequest(key=key, limit=random.choice((1, 2)), when_taken=WhenTaken.ENQUEUE),)
    return JobSpec(
        steps=steps,
        target=None if place is None else Target(path=PATHS[place]),
        locks=locks,
        steps_at_once=random.randint(1, taste.at_once),
        max_interruptions=random.choice((0, 1, 3, 5)),
        grace_period=length_of(random.choice((0.0, 5.0, 30.0))),
        pending_timeout=Duration(seconds=30),
        timeout=length_of(random.uniform(1, 200)) if random.random() < taste.odd / 2 else None,
        suspend=random.random() < taste.odd / 2,
        ttl_after_finished=length_of(60.0) if random.random() < taste.odd / 2 else None,
    )


def _graph(random: Random, taste: _Taste) -> tuple[Step, ...]:
    steps: list[Step] = []
    for at in range(random.randint(1, taste.most_steps)):
        steps.append(_step(random, taste, steps, at))
    return tuple(steps)


def _step(random: Random, taste: _Taste, earlier: list[Step], at: int) -> Step:
    names = [step.name for step in earlier]
    needs: tuple[str, ...] | None = None
    if random.random() < 0.4:
        needs = tuple(random.sample(names, random.randint(0, min(2, len(names)))))
    limit, undo_limit = random.choice((0, 1, 2, 3)), random.choice((0, 0, 1, 2))
    has_undo = random.random() < 0.8
    before = random.choice((BeforeRetry.AS_IS, BeforeRetry.AS_IS, *BeforeRetry))
    if before is BeforeRetry.ROLL_BACK_FIRST and not has_undo:
        before = BeforeRetry.AS_IS
    if before is BeforeRetry.ROLL_BACK and not (needs or (needs is None and names)):
        before = BeforeRetry.AS_IS
    is_final = before is BeforeRetry.AS_IS and random.random() < 0.05
    below = needs or tuple(names[-1:])
    covered = random.choice(names) if names and has_undo and random.random() < 0.1 else None
    return Step(
        name=f"s{at}",
        run=StepWork(process=ProcessSpec(command=_command(random, taste, limit))),
        needs=needs,
        undo=StepWork(process=ProcessSpec(command=_command(random, taste, undo_limit)))
        if has_undo
        else None,
        retries=StepRetries(limit=limit, delay=length_of(random.choice(taste.delays))),
        undo_retries=_undo_retries(random, taste, undo_limit) if has_undo else None,
        before_retry=before,
        roll_back=(random.choice(below),) if before is BeforeRetry.ROLL_BACK else (),
        irreversible=is_final,
        undo_covered_by=covered,
        timeout=length_of(random.uniform(1, 30)) if random.random() < taste.odd / 2 else None,
    )


def _undo_retries(random: Random, taste: _Taste, limit: int) -> UndoRetries | None:
    if not limit and random.random() < 0.5:
        return None
    given = random.random() < 0.5
    return UndoRetries(limit=limit, delay=length_of(random.choice(taste.delays)) if given else None)


def _command(random: Random, taste: _Taste, limit: int) -> tuple[str, ...]:
    """What an attempt does: it fails some times, up to its limit and past it, or for ever."""
    words = ["work", f"{random.choice((0.0, random.uniform(0, taste.longest))):.3f}"]
    if random.random() < taste.fails:
        fails = [1] * random.randint(1, limit + 2)
        words.append("exits=" + ",".join(map(str, [*fails, random.choice((0, 0, 0, 1))])))
    if random.random() < 0.1:
        words.append("deaf")
    if random.random() < 0.15:
        words.append(f"slow={random.choice((0.5, 8.0, 40.0))}")
    if random.random() < taste.odd / 6:
        words.append("unseen")
    if random.random() < taste.odd / 6:
        words.append("broken")
    if random.random() < taste.odd / 6:
        words.append(f"hangs={random.choice((1.0, 20.0, 100_000.0))}")
    return tuple(words)


def length_of(seconds: float) -> Duration:
    """A length of time as a person writes it."""
    milliseconds = round(seconds * 1000)
    length = Duration(milliseconds=milliseconds)
    length.text = format_duration(length)
    return length


# What no door lets in


def bad_operation(how: int) -> JobSpec:
    """Operations that are bad in themselves, each in its own way, on a target of others."""
    work = StepWork(process=ProcessSpec(command=("work", "5")))
    odd = StepWork(process=ProcessSpec(command=("work", "${task.nonsense}")))
    first = Step(name="a", run=work, undo=work)
    graphs = (
        (),
        (first, Step(name="b", run=odd)),
        (Step(name="a", run=work, needs=("b",)), Step(name="b", run=work, needs=("a",))),
        (Step(name="a", run=work, needs=("nowhere",)),),
        (first, replace(first, needs=())),
    )
    return JobSpec(steps=graphs[how - BAD_OPERATIONS.start], locks=(LockRequest(key="db"),))
