"""Every small operation, its control plane killed before and after every write of it.

An operation is played undisturbed, its writes and orders to the machine counted; then it is played
again for each of them, with a kill just before it and one just after it. It must come to the very
same end, and the same must really have been run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple, TypeVar

from interlock.forecast.rehearsal.simulated_loop import SimProcess
from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.job import JobSpec
from interlock.resources.metadata import Key
from interlock.resources.operation import is_undo, step_of
from interlock.resources.process import ProcessSpec
from interlock.resources.steps import Step, StepRetries, StepWork, Target, UndoRetries
from interlock.resources.values.durations import Duration
from support.simulation.faults import CALM, Wire
from support.simulation.operation_world import OperationWorld
from support.simulation.script import CreateJob
from support.simulation.script import Step as Scene
from support.simulation.world import Plane

T = TypeVar("T")

NAME = "op"
_READS = ("get", "list", "reports", "hello")


class Pattern(NamedTuple):
    """How often each step fails before it succeeds, and each undo; as far as they are reached."""

    limit: int
    undo_limit: int
    runs: tuple[int, ...]
    undos: tuple[int, ...]


class Crash(NamedTuple):
    """When the control plane is killed: at which write, before it or after it."""

    write: int
    is_after: bool


class End(NamedTuple):
    """What an operation came to, and what was really run of it, in this order."""

    phase: str
    state: str
    completion: str
    retries: tuple[int, int]
    percentage: float | None
    failures: tuple[str, ...]
    stuck: str
    ran: tuple[str, ...]


def patterns(most_steps: int, limit: int = 1, undo_limit: int = 1) -> Iterator[Pattern]:
    """Every way in which operations of so many steps can fail, up to their limits and past them."""
    for many in range(1, most_steps + 1):
        yield from (
            Pattern(limit, undo_limit, runs, (0,) * many)
            for runs in product(range(limit + 1), repeat=many)
        )
        for last in range(many):
            for runs in product(range(limit + 1), repeat=last):
                failed = (*runs, limit + 1, *(0,) * (many - last - 1))
                for undos in _undos(last, undo_limit):
                    yield Pattern(limit, undo_limit, failed, undos + (0,) * (many - last - 1))


def _undos(last: int, limit: int) -> Iterator[tuple[int, ...]]:
    """How the undos fail, of the last step that was begun and those before it."""
    for failing in product(range(limit + 1), repeat=last + 1):
        yield failing
    for lost in range(last + 1):
        # What comes after one that cannot be undone is not reached.
        for failing in product(range(limit + 1), repeat=last - lost):
            yield (*(0,) * lost, limit + 1, *failing)


def spec_of(pattern: Pattern) -> JobSpec:
    """The operation that fails like this: steps in a chain, on a target."""
    steps = tuple(
        Step(
            name=f"s{at}",
            run=_work(fails),
            undo=_work(undo_fails),
            retries=StepRetries(limit=pattern.limit, delay=Duration(seconds=10)),
            undo_retries=UndoRetries(limit=pattern.undo_limit),
        )
        for at, (fails, undo_fails) in enumerate(zip(pattern.runs, pattern.undos, strict=True))
    )
    return JobSpec(
        steps=steps, target=Target(path="users/ana"), pending_timeout=Duration(seconds=900)
    )


def _work(fails: int) -> StepWork:
    exits = ",".join(["1"] * fails + ["0"])
    return StepWork(process=ProcessSpec(command=("work", "3", f"exits={exits}")))


class CrashingWire(Wire):
    """A connection whose client is killed at one of its writes."""

    world: CrashWorld

    async def call(self, what: str, do: Callable[[], T], *, key: Key | None = None) -> T:
        """Have the server do something, if the client lives to say so."""
        if what.startswith(_READS) or "lease/" in what or "Lease" in what:
            return await super().call(what, do, key=key)
        self.world.writes += 1
        here = self.world.killed_at is not None and self.world.writes == self.world.killed_at.write
        if not here:
            return await super().call(what, do, key=key)
        assert self.world.killed_at is not None
        if not self.world.killed_at.is_after:
            self._crash(f"before {what}")
            await self._loop.freeze()

        def done() -> T:
            result = do()
            self._crash(f"after {what}")
            return result

        return await super().call(what, done, key=key)


class CrashingPlane(Plane):
    """A control plane with such connections."""

    def wire(self, server: SimProcess, *, in_order: bool = False) -> Wire:
        """A connection to somebody."""
        world = self._world
        assert isinstance(world, CrashWorld)
        wire = CrashingWire(
            world.loop,
            self.process,
            server,
            world.weather,
            self.luck,
            self._crashed,
            in_order=in_order,
        )
        wire.world = world
        return wire


class CrashWorld(OperationWorld):
    """A world in which one operation is played, and somebody is killed at one write."""

    name = "CrashWorld"

    def __init__(self, spec: JobSpec, crash: Crash | None = None) -> None:
        super().__init__(1, (Scene(1.0, CreateJob(name=NAME, spec=spec)),), CALM)
        self.killed_at = crash
        self.writes = 0
        self._ran: list[Life] = []
        self.machine.started.append(self._ran.append)
        self.end: End | None = None

    def _plane(self, number: int, life: int) -> Plane:
        return CrashingPlane(self, number, life)

    def _settle(self) -> None:
        """Wait until nothing happens any more; what is stuck stays so."""
        self._end_trouble()
        self._rest(self.judge.rests)
        self.end = self._end()

    def _end(self) -> End:
        [job] = self.truth.jobs.values()
        operation = job.status.execution.operation
        assert operation is not None
        return End(
            phase=job.status.phase,
            state=operation.state,
            completion=operation.completion_state or "",
            retries=(operation.retry_count, operation.rollback_retry_count),
            percentage=operation.percentage,
            failures=operation.failures,
            stuck=operation.stuck_message,
            ran=tuple(f"{_sign(life)}s{step_of(life.order.index)}" for life in self._ran),
        )


def _sign(life: Life) -> str:
    return "-" if is_undo(life.order.index) else ""


def differences(pattern: Pattern) -> Iterator[str]:
    """What comes out otherwise, or breaks a promise, when somebody is killed at a write."""
    spec = spec_of(pattern)
    calm = CrashWorld(spec)
    outcome = calm.run()
    if outcome.broken is not None or calm.end is None:
        yield f"{pattern}: {outcome.broken}"
        return
    for write in range(1, calm.writes + 1):
        for is_after in (False, True):
            crash = Crash(write, is_after)
            world = CrashWorld(spec, crash)
            outcome = world.run()
            if outcome.broken is not None:
                yield f"{pattern} {crash}: {outcome.broken}"
            elif world.end != calm.end:
                yield f"{pattern} {crash}: {world.end} instead of {calm.end}"
