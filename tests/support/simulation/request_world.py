"""Worlds of requests: crowds at one target, bad elaborations, and what is over and goes in time.

They are worlds of workers with more in their scripts, drawn apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from random import Random

import msgspec
from msgspec.structs import replace

from interlock.admission.pending_limit import PendingLimit
from interlock.errors import TooManyPendingError
from interlock.resources.codec import encode_special
from interlock.resources.job import Job, JobSpec, is_operation
from interlock.resources.metadata import Key, Resource
from interlock.resources.process import ProcessSpec
from interlock.resources.steps import Elaboration, PythonSpec, Step, StepWork, Target
from support.simulation.faults import FaultRates
from support.simulation.operation_promises import OPERATION_PROMISES
from support.simulation.operation_script import PATHS, length_of
from support.simulation.promises import PROMISES
from support.simulation.request_promises import (
    REQUEST_PROMISES,
    REQUEST_WORKER_PROMISES,
    PendingLimited,
)
from support.simulation.script import Act, CreateJob
from support.simulation.script import Step as Scene
from support.simulation.worker_script import MAKE, RUN, python_of
from support.simulation.worker_world import RivalWorkerOperationWorld, WorkerOperationWorld
from support.simulation.workers import WorkerRates

#: Where many want the same at once.
_CROWDED = "crowd/a"


class BadRequest(StrEnum):
    """What is wrong with a request that a worker is to turn into steps."""

    NOTHING = "nothing is made"
    TWICE = "a name is there twice"
    RING = "steps need each other"
    NOWHERE = "what is needed is not there"
    RAISES = "it raises"
    ENDLESS = "it never ends"


def bad_request(how: BadRequest, *, path: str | None = None) -> JobSpec:
    """A request that cannot be done; one that never ends is given some time."""
    work = StepWork(python=python_of(ProcessSpec(command=("work", "1")), RUN))
    first = Step(name="a", run=work)
    steps = {
        BadRequest.TWICE: (first, replace(first, needs=())),
        BadRequest.RING: (replace(first, needs=("b",)), Step(name="b", run=work, needs=("a",))),
        BadRequest.NOWHERE: (replace(first, needs=("nowhere",)),),
    }.get(how, (first,))
    words = ["1000000000" if how is BadRequest.ENDLESS else "1"]
    words += ["exits=1"] if how is BadRequest.RAISES else []
    made = msgspec.json.encode(Elaboration(steps=steps), enc_hook=encode_special)
    args = {"words": words}
    if how is not BadRequest.NOTHING:
        args["made"] = msgspec.json.decode(made)
    return JobSpec(
        python=PythonSpec(function=MAKE, args=args),
        target=None if path is None else Target(path=path),
        timeout=length_of(40.0) if how is BadRequest.ENDLESS else None,
        grace_period=length_of(5.0),
        pending_timeout=length_of(30.0),
    )


def with_requests(script: Sequence[Scene], random: Random) -> tuple[Scene, ...]:
    """A script with bad requests, with crowds, and with operations that go when they are over."""
    length = script[-1].at if script else 300.0
    scenes = [replace(scene, act=_in_time(scene.act, random)) for scene in script]
    for number in range(random.choice((1, 2, 4))):
        path = random.choice((None, _CROWDED, *PATHS))
        spec = bad_request(random.choice(tuple(BadRequest)), path=path)
        act = CreateJob(name=f"bad-request-{number}", spec=spec)
        scenes.append(Scene(random.uniform(0.0, length), act))
    at = random.uniform(0.0, length)
    for number in range(random.choice((0, 3, 6))):
        act = CreateJob(name=f"crowd-{number}", spec=_crowding(random))
        scenes.append(Scene(at + random.choice((0.0, 0.0, 1.0, 40.0)), act))
    return tuple(sorted(scenes, key=lambda scene: scene.at))


def _crowding(random: Random) -> JobSpec:
    seconds = f"{random.choice((0.5, 5.0)):.1f}"
    work = StepWork(python=python_of(ProcessSpec(command=("work", seconds)), RUN))
    steps = tuple(Step(name=f"s{at}", run=work) for at in range(random.choice((1, 3))))
    target = Target(path=_CROWDED, max_pending=random.choice((None, None, 1)))
    kept = random.choice((None, length_of(0.0), length_of(45.0)))
    return JobSpec(steps=steps, target=target, ttl_after_finished=kept)


def _in_time(act: Act, random: Random) -> Act:
    """An operation that is over after some time, if it is one."""
    if not isinstance(act, CreateJob) or not is_operation(act.spec) or random.random() < 0.5:
        return act
    kept = length_of(random.choice((0.0, 20.0, 90.0)))
    return replace(act, spec=replace(act.spec, ttl_after_finished=kept))


class _WatchedLimit(PendingLimit):
    """The limit as it is, and somebody who hears whom it refuses."""

    def __init__(self, most: int, refused: Callable[[Job], None]) -> None:
        super().__init__(most)
        self._refused = refused

    def admit(self, new: Resource, newest: Callable[[Key], Resource | None]) -> None:
        try:
            super().admit(new, newest)
        except TooManyPendingError:
            assert isinstance(new, Job)
            self._refused(new)
            raise


class RequestWorld(WorkerOperationWorld):
    """Requests to workers, more than are taken, and some that nobody can do."""

    name = "RequestWorld"
    promises = (*PROMISES, *REQUEST_PROMISES, *OPERATION_PROMISES)
    worker_promises = (*WorkerOperationWorld.worker_promises, *REQUEST_WORKER_PROMISES)

    def __init__(
        self,
        seed: int,
        script: tuple[Scene, ...] | None = None,
        rates: FaultRates | None = None,
        worker_rates: WorkerRates | None = None,
    ) -> None:
        super().__init__(seed, script, rates, worker_rates)
        luck = Random(f"{seed}:requests")
        if script is None:
            self.script = with_requests(self.script, luck)
        acts = [scene.act for scene in self.script]
        names = [act.name for act in acts if isinstance(act, CreateJob)]
        self.truth.bad_requests.update(
            dict.fromkeys(name for name in names if name.startswith("bad-request"))
        )
        self.truth.most_pending = luck.choice((2, 3, 5))
        self._guard()

    def crash(self, number: int, why: str) -> None:
        """Kill a control plane; a server that starts again counts anew."""
        super().crash(number, why)
        self._guard()

    def _guard(self) -> None:
        assert self.truth.most_pending is not None
        self.store.guard(_WatchedLimit(self.truth.most_pending, self._refused))

    def _refused(self, job: Job) -> None:
        for promise in self.judge.promises:
            if isinstance(promise, PendingLimited):
                promise.refused(job)


class RivalRequestWorld(RequestWorld, RivalWorkerOperationWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalRequestWorld"
