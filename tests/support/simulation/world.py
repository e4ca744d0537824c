"""A whole control plane in one thread: two planes, one store, one machine, people and trouble."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random

from msgspec import Struct

from interlock.control.lease import Election, LeaseTimes
from interlock.control.reconciler import Change as CacheChange
from interlock.control.runtime import Runtime
from interlock.control.write_fence import WriteFence
from interlock.execution.restoring import Restorable
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop, SimProcess, SpinningError
from interlock.forecast.rehearsal.simulated_machine import Machine
from interlock.plane import ControlPlane, PlaneSettings
from interlock.resources.modes import Mode
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.runtimes.router import Router
from interlock.store.contract import Now
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryJournal, MemoryStore
from interlock.store.watching import Change
from interlock.testing.builders import T0
from support.simulation.chronicle import note_change
from support.simulation.faults import (
    CALM,
    FaultRates,
    FaultyRuntime,
    FaultyStore,
    Weather,
    Wire,
    draw_rates,
)
from support.simulation.history import History
from support.simulation.judge import BrokenPromiseError, Judge
from support.simulation.people import People
from support.simulation.promises import PROMISES
from support.simulation.script import (
    PLANES,
    Act,
    CrashPlane,
    JumpClock,
    LoseKeeper,
    LoseMachine,
    PausePlane,
    RebootMachine,
    StallStore,
    Step,
    with_strangers,
    write_script,
)
from support.simulation.truth import Truth

#: Longer than in earnest: the fewer renewals, the more worlds in the same time.
LEASE = LeaseTimes(lasts_s=60.0, renew_by_s=40.0, every_s=15.0)
#: After trouble is over, people tidy up and time passes in pieces of this length,
SETTLE_PIECE_S = 240.0
#: until nothing happens in one of them.
#: No clock is ever set by more than this.
LONGEST_JUMP_S = 3700.0


class WatchedStore(MemoryStore):
    """The memory store, with a judge who hears of each write at the moment it is committed."""

    def __init__(self, now: Now, identities: SeededIdentities, world: World) -> None:
        super().__init__(now, identities, on_commit=world.committed)


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a world."""

    seed: int
    broken: BrokenPromiseError | None
    digest: str
    simulated_s: float
    steps: int
    history: History


class Plane:
    """One of the competing control planes, from one start to the next crash."""

    def __init__(self, world: World, number: int, life: int) -> None:
        self.name = f"plane-{'ab'[number]}{life or ''}"
        self._world = world
        self._crashed = lambda why: world.crash(number, why)
        self.luck = Random(f"{world.seed}:{self.name}")
        self.process = world.loop.start_process(self.name)
        self.clock = SimClock(world.loop, self.process, world.epoch)
        self.clock.jump(world.ahead[number])
        world.truth.clocks[self.name] = self.clock
        wire = self.wire(world.store_process)
        self.store = FaultyStore(world.store, wire, world.loop, world.truth)
        self._runtimes: list[FaultyRuntime] = []

    def start(self) -> None:
        """Begin, inside the process."""
        world = self._world
        election = Election(
            self.store,
            self.clock,
            self.luck,
            WriteFence(self.clock),
            self.name,
            sole=world.rivals,
            times=LEASE,
        )
        self.plane = ControlPlane(
            store=self.store,
            journal=world.journal,
            clock=self.clock,
            luck=self.luck,
            connect=self.connect,
            election=election,
            observers=(self.observe,),
            settings=PlaneSettings(
                mode=world.mode,
                most_tasks=world.most_tasks,
                launches_at_once=world.launches_at_once,
                part=world.part,
                wait_for_pods_ready=world.wait_for_pods_ready,
                collects=world.mode is Mode.EMBEDDED,
            ),
            restored=world.restored,
        )
        self.plane.start()

    def disconnect(self) -> None:
        """The process is gone, and those it was connected to notice."""
        self.store.disconnect()
        for runtime in self._runtimes:
            runtime.disconnect()

    def observe(self, change: CacheChange) -> None:
        """Something in a cache changed."""

    async def connect(self, term: int) -> Runtime:
        """Reach the runtime in the name of a term."""
        processes = await self.processes(term)
        return Router({"processes": processes}, own="processes", check=self.plane.fence.check)

    async def processes(self, term: int) -> Runtime:
        """Reach the machine in the name of a term."""
        world = self._world
        wire = self.wire(world.machine.process, in_order=True)
        # Rivals are never fenced: what is safe may not rest on the newest leader being alone.
        runtime = FaultyRuntime(world.machine, wire, world.loop, 0 if world.rivals else term)
        self._runtimes.append(runtime)
        await runtime.hello()
        return runtime

    def wire(self, server: SimProcess, *, in_order: bool = False) -> Wire:
        """A connection from this control plane to somebody."""
        world = self._world
        return Wire(
            world.loop,
            self.process,
            server,
            world.weather,
            self.luck,
            self._crashed,
            in_order=in_order,
        )


class World:
    """One seed's world. `run` lets it happen."""

    name = "World"
    #: Whether both control planes believe that they lead, whatever the lease says.
    rivals = False
    #: What its control planes can run.
    mode = Mode.EMBEDDED
    #: What it is judged by, wherever work runs.
    promises = PROMISES
    #: Who works there.
    who: type[People] = People
    #: At the latest after so many pieces of time nothing happens any more.
    settle_pieces = 40
    #: When it begins.
    epoch = T0
    #: What holds for all Queues that do not say otherwise.
    wait_for_pods_ready: WaitForPodsReady | None = None
    #: Whether its store was put back to an earlier state, where that can be.
    restored: Restorable | None = None

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        self.seed = seed
        drawn = Random(f"{seed}:script")
        self.rates = draw_rates(drawn)
        self.script = with_strangers(write_script(drawn), Random(f"{seed}:strangers"))
        self.most_tasks = drawn.choice((2, 1000, 1000))
        sizes = Random(f"{seed}:sizes")
        self.launches_at_once = sizes.choice((1, 2, 1000))
        self.part = sizes.choice((1, 3, 500))
        if rates is not None:
            self.rates = rates
        if script is not None:
            self.script = script
        self.loop = SimLoop(Random(f"{seed}:loop"))
        self.history = History(self.loop)
        self.truth = Truth(self.loop, self.epoch)
        self.truth.patience = _patience(self.rates, self.script)
        self.weather = Weather(self.rates)
        self.store_process = self.loop.start_process("store")
        self.store = self._store(self._now, SeededIdentities(Random(f"{seed}:uids")), self)
        self.journal = MemoryJournal(1)
        self._lay_ground()
        self.ahead = [timedelta()] * PLANES
        self._lives = [0] * PLANES
        self.planes: list[Plane] = []
        self.people = self._people()
        self._fate = Random(f"{seed}:fate")

    def run(self) -> Outcome:
        """Let everything of the script happen, then let it all settle; stop at the first breach."""
        try:
            broken = self._happen()
        finally:
            digest, simulated_s = self.history.digest(), self.loop.time()
            self.loop.close()
        return Outcome(
            seed=self.seed,
            broken=broken,
            digest=digest,
            simulated_s=simulated_s,
            steps=self.loop.steps,
            history=self.history,
        )

    def _happen(self) -> BrokenPromiseError | None:
        broken: BrokenPromiseError | None = None
        try:
            self._begin()
            self.loop.run_until(self.script[-1].at + 1.0 if self.script else 1.0)
            self._settle()
        except BrokenPromiseError as error:
            broken = error
        except SpinningError as error:
            broken = BrokenPromiseError("Settles", str(error))
        if broken is None and self.loop.errors:
            broken = BrokenPromiseError("NoErrors", self.loop.errors[0])
        if broken is not None:
            self.history.note("judge", f"BROKEN {broken}", *broken.about)
        return broken

    # What the parts tell the world

    def committed(self, change: Change) -> None:
        """A write was committed."""
        note_change(self.history, self.truth.writer, change)
        self.judge.wrote(change)

    def crash(self, number: int, why: str) -> None:
        """Kill a control plane; it is started again after a while."""
        plane = self.planes[number]
        if not plane.process.alive:
            return
        self.history.note(plane.name, f"is killed {why}")
        self.loop.kill(plane.process)
        plane.disconnect()
        delay = self._fate.choice((0.1, 3.0, 45.0))
        context = self.loop.world.context.copy()
        self.loop.call_later(delay, self._restart, number, context=context)

    # The beginning

    def _store(self, now: Now, identities: SeededIdentities, world: World) -> WatchedStore:
        """The store that everybody shares."""
        return WatchedStore(now, identities, world)

    def _now(self) -> datetime:
        return self.epoch + timedelta(microseconds=self.loop.now_us)

    def _lay_ground(self) -> None:
        """Make what work runs on, and the judge who hears of everything there."""
        self.judge = Judge(self.truth, [promise(self.truth) for promise in self.promises])
        self.machine = Machine(self.loop, Random(f"{self.seed}:machine"), self.history, self.epoch)
        self.machine.started.append(self.judge.started)
        self.machine.ended.append(self.judge.ended)
        self.machine.stopped.append(self.judge.stopped)

    def _plane(self, number: int, life: int) -> Plane:
        """A control plane."""
        return Plane(self, number, life)

    def _people(self) -> People:
        process = self.loop.start_process("user")
        self._user = process
        luck = Random(f"{self.seed}:people")
        wire = Wire(self.loop, process, self.store_process, Weather(CALM), luck, lambda _: None)
        store = FaultyStore(self.store, wire, self.loop, self.truth)
        return self.who(store, self.truth, self._now)

    def _begin(self) -> None:
        for number in range(PLANES):
            self.planes.append(self._plane(number, 0))
            self._start(number)
        context = self.loop.world.context.copy()
        for step in self.script:
            self.loop.call_at(step.at, self._step, step, context=context.copy())

    def _start(self, number: int) -> None:
        plane = self.planes[number]
        context = plane.process.context.copy()
        self.loop.call_soon(plane.start, context=context)

    def _restart(self, number: int) -> None:
        if self.planes[number].process.alive:
            return
        self._lives[number] += 1
        self.planes[number] = self._plane(number, self._lives[number])
        self.history.note(self.planes[number].name, "starts")
        self._start(number)

    # The script

    def _step(self, step: Step) -> None:
        match step.act:
            case CrashPlane(number):
                self.crash(number, "by somebody")
            case PausePlane(number, seconds):
                self._pause(self.planes[number], seconds)
            case JumpClock(number, seconds):
                self.ahead[number] += timedelta(seconds=seconds)
                self.history.note(self.planes[number].name, f"has its clock set by {seconds} s")
                self.planes[number].clock.jump(timedelta(seconds=seconds))
            case StallStore(seconds):
                self.history.note("store", f"stalls for {seconds} s")
                self.weather.stalled_until = self.loop.time() + seconds
            case act if not self._shake(act):
                self.loop.spawn(self._user, self.people.do(act))

    def _shake(self, act: Act) -> bool:
        """Let something happen to what work runs on; False when it is about something else."""
        match act:
            case RebootMachine():
                self.machine.reboot()
            case LoseKeeper():
                self.machine.lose_keeper()
            case LoseMachine(seconds):
                self.machine.set_reachable(False)
                self._later(seconds, self.machine.set_reachable, True)
            case _:
                return False
        return True

    def _pause(self, plane: Plane, seconds: float) -> None:
        self.history.note(plane.name, f"is paused for {seconds} s")
        plane.process.paused = True
        self._later(seconds, self._resume, plane)

    def _resume(self, plane: Plane) -> None:
        self.history.note(plane.name, "goes on")
        plane.process.paused = False

    def _later(self, seconds: float, callback: Callable[..., None], *args: object) -> None:
        context = self.loop.world.context.copy()
        self.loop.call_later(seconds, callback, *args, context=context)

    # The end

    def _settle(self) -> None:
        """End all trouble, tidy up, and wait until nothing happens any more."""
        self._end_trouble()
        self._rest(self.judge.settled)
        self._check_planes()
        self._check_ground()

    def _rest(self, check: Callable[[], None]) -> None:
        """Wait until nothing happens any more, and check what must be so then."""
        self._wait_until_quiet()
        try:
            check()
        except BrokenPromiseError:
            # A clock that was wrong may have put something off by as much as it was wrong.
            self.loop.run_until(self.loop.time() + LONGEST_JUMP_S)
            self._wait_until_quiet()
            check()

    def _end_trouble(self) -> None:
        self.history.note("world", "trouble is over")
        self.weather.rates = CALM
        self._heal()
        for number, plane in enumerate(self.planes):
            plane.process.paused = False
            plane.clock.jump(-self.ahead[number])
            self.ahead[number] = timedelta()
            self._restart(number)

    def _wait_until_quiet(self) -> None:
        for _ in range(self.settle_pieces):
            self.loop.spawn(self._user, self.people.tidy_up())
            before = self.truth.activity + self._calls()
            self.loop.run_until(self.loop.time() + SETTLE_PIECE_S)
            if self.truth.activity + self._calls() == before:
                return
        raise BrokenPromiseError("Settles", "something happens again and again")

    def _heal(self) -> None:
        """End the trouble of what work runs on."""
        self.machine.set_reachable(True)

    def _calls(self) -> int:
        """How often it was asked to do something."""
        return self.machine.calls

    def _check_planes(self) -> None:
        """Nothing is held of terms that are over: only the present one listens to the clock."""
        for plane in self.planes:
            if len(plane.clock.jumps) > 1:
                told = f"{len(plane.clock.jumps)} terms of {plane.name} listen to its clock"
                raise BrokenPromiseError("TermsLeaveNothing", told)

    def _check_ground(self) -> None:
        """Nothing is left that nobody will ask for."""
        for task, record in self.machine.records.items():
            if record.job not in self.truth.bad and task not in self.truth.written_off:
                told = f"the machine was not told to forget {record.job}-{record.index}"
                raise BrokenPromiseError("Settles", told, (record.job,))


class RivalWorld(World):
    """Both control planes believe that they lead, and nobody fences either of them.

    What must be safe may rest neither on the lease nor on the machine's knowing the newest term.
    """

    name = "RivalWorld"
    rivals = True


def _patience(rates: FaultRates, script: Sequence[Step]) -> float:
    """How long a view of a line may be out of date in this world."""
    late = rates.stall or rates.watch_late
    pauses = sum(s.act.seconds for s in script if isinstance(s.act, PausePlane | StallStore))
    return 5.0 + (6 * rates.longest_stall if late else 0.0) + pauses
