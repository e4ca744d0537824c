"""Scripts for workers: the same operations as functions of an application, and workers to lose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from interlock.resources.codec import decode_special, encode_special
from interlock.resources.job import JobSpec
from interlock.resources.process import ProcessSpec
from interlock.resources.steps import (
    ChildRequest,
    Elaboration,
    PythonSpec,
    Step,
    StepRetries,
    StepWork,
    Target,
)
from support.simulation.script import (
    Act,
    CreateJob,
    CutWorker,
    DrainWorker,
    HangWorker,
    KillWorker,
)
from support.simulation.script import Step as Scene

#: The functions of the application: steps, what undoes them, and what makes them of a request.
RUN, UNDO, MAKE = FUNCTIONS = ("run", "undo", "make")
#: The queue that not all workers serve.
SLOW = "slow"
#: What kills its worker, each time.
KILLS = "kills"
#: Longer than any world lives.
FOR_GOOD_S = 1e9
#: Where the targets are of what operations have made as parts of themselves.
_PARTS = ("parts/a", "parts/b")


class _Taste:
    """What the operations of one world have in common."""

    def __init__(self, random: Random) -> None:
        #: How many steps are functions, the others are processes on the machine,
        self.functions = random.choice((0.5, 1.0, 1.0))
        #: and how many operations are made of requests.
        self.requests = random.choice((0.0, 0.3, 0.8))
        self.slow = random.choice((0.0, 0.0, 0.3))


def in_workers(script: Sequence[Scene], random: Random) -> tuple[Scene, ...]:
    """A script for workers, made from one for a machine."""
    taste = _Taste(random)
    return tuple(replace(scene, act=_moved(scene.act, random, taste)) for scene in script)


def with_losses(script: Sequence[Scene], random: Random) -> tuple[Scene, ...]:
    """A script in which things happen to workers."""
    length = script[-1].at if script else 300.0
    scenes = [
        Scene(random.uniform(1.0, length), _loss(random))
        for _ in range(random.choice((0, 2, 6, 15)))
    ]
    return tuple(sorted((*script, *scenes), key=lambda scene: scene.at))


def _loss(random: Random) -> Act:
    number = random.randrange(4)
    acts: tuple[Callable[[], Act], ...] = (
        lambda: KillWorker(number),
        lambda: KillWorker(number),
        lambda: HangWorker(number, random.choice((5.0, 35.0, 35.0, 90.0, FOR_GOOD_S))),
        lambda: CutWorker(number),
        lambda: CutWorker(number),
        lambda: DrainWorker(number),
    )
    return random.choice(acts)()


def _moved(act: Act, random: Random, taste: _Taste) -> Act:
    match act:
        case CreateJob(spec=JobSpec(steps=steps)) if steps is not None:
            moved = tuple(_step(step, random, taste) for step in steps)
            spec = replace(act.spec, steps=moved)
            if random.random() < taste.requests:
                spec = _requested(spec, moved, random)
            return replace(act, spec=spec)
        case _:
            return act


def _step(step: Step, random: Random, taste: _Taste) -> Step:
    def moved(work: StepWork | None, function: str) -> StepWork | None:
        if work is None or work.process is None or random.random() >= taste.functions:
            return work
        queue = SLOW if random.random() < taste.slow else ""
        return StepWork(python=python_of(work.process, function, queue))

    run = moved(step.run, RUN)
    assert run is not None
    return replace(step, run=run, undo=moved(step.undo, UNDO))


def python_of(process: ProcessSpec, function: str, queue: str = "") -> PythonSpec:
    """A function that behaves as a process does."""
    return PythonSpec(function=function, args={"words": list(process.command[1:])}, queue=queue)


# Requests


def _requested(spec: JobSpec, steps: tuple[Step, ...], random: Random) -> JobSpec:
    """An operation whose steps a worker makes, and perhaps parts of it besides."""
    parts = tuple(_part(random, number) for number in range(random.choice((0, 0, 1, 2))))
    made = Elaboration(steps=steps, children=parts)
    return replace(spec, steps=None, python=request(made, _elaborating(random)))


def request(made: Elaboration, words: Sequence[str]) -> PythonSpec:
    """What a worker is asked to make steps of."""
    told = msgspec.json.decode(msgspec.json.encode(made, enc_hook=encode_special))
    return PythonSpec(function=MAKE, args={"words": list(words), "made": told})


def read_made(args: dict[str, Any]) -> Elaboration:
    """What a request asks for, as the function that makes steps understands it."""
    return msgspec.convert(args["made"], Elaboration, dec_hook=decode_special)


def _elaborating(random: Random) -> tuple[str, ...]:
    seconds = f"{random.choice((0.0, 0.5, 8.0)):.1f}"
    exits = random.choice(("0", "0", "0", "1,0", "1,1,1,0", "1"))
    return (seconds, f"exits={exits}")


def _part(random: Random, number: int) -> ChildRequest:
    process = ProcessSpec(command=("work", "2", random.choice(("exits=0", "exits=0", "exits=1"))))
    step = Step(
        name="p0",
        run=StepWork(python=python_of(process, RUN)),
        undo=StepWork(python=python_of(ProcessSpec(command=("work", "1")), UNDO)),
        retries=StepRetries(limit=random.choice((0, 2))),
    )
    target = Target(path=_PARTS[number % len(_PARTS)]) if random.random() < 0.5 else None
    return ChildRequest(python=request(Elaboration(steps=(step,)), ("1",)), target=target)
