"""All simulated workers: who comes, dies, hangs and is cut off, and what they really did.

What they are told and say travels as frames over lines that break (`worker_lines`); each life of
one has the real books of a worker (`worker_life`). What really runs, and how it ended, is written
down here, whatever the control planes hold of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from interlock.forecast.rehearsal.simulated_loop import SimLoop, SimProcess
from interlock.forecast.rehearsal.simulated_machine import SIGKILL, Life
from interlock.resources.tasks import TaskId
from interlock.resources.work import PythonCall
from interlock.runtimes.workers.attempts import task_of
from interlock.runtimes.workers.protocol import Call, Outcome, Ref
from interlock.sdk.calling import Answer
from support.simulation.faults import Weather
from support.simulation.history import History
from support.simulation.worker_life import SimWorker
from support.simulation.worker_lines import Line, Server
from support.simulation.worker_script import FOR_GOOD_S

if TYPE_CHECKING:
    from support.simulation.worker_promises import WorkerJudge

#: Without a word for so long an attempt counts as cut off.
LEASE_S = 30.0
#: and it is spoken of so often.
TOUCH_EVERY_S = 10.0
#: How long until a side of a connection notices that it broke,
_NOTICED_S = (0.0, 0.05, 2.0, 20.0)
#: and until another worker takes the place of one that died.
_BACK_S = (0.1, 3.0, 40.0)


class WorkerRates(Struct, frozen=True, kw_only=True):
    """How often something happens to workers, each time they may."""

    #: It dies at the end of an attempt, before it has told anybody.
    dies: float = 0.0
    #: It stands still in the middle of one, for longer than its lease.
    hangs: float = 0.0
    #: It says how far it is, in the middle of one.
    tells: float = 0.0
    #: A result is told twice.
    twice: float = 0.0
    #: The connection breaks after something was said, or is told.
    breaks: float = 0.0
    #: A worker has not loaded everything.
    partial: float = 0.0


def draw_worker_rates(random: Random) -> WorkerRates:
    """Rates for one world."""

    def rate(*choices: float) -> float:
        return random.choice((0.0, *choices))

    return WorkerRates(
        dies=rate(0.02, 0.1, 0.3),
        hangs=rate(0.05, 0.2),
        tells=rate(0.3, 1.0),
        twice=rate(0.1, 0.5),
        breaks=rate(0.005, 0.03),
        partial=rate(0.2, 0.6),
    )


class Deed(Struct):
    """What really became of an attempt, as whoever did it knows."""

    function: str
    step: str
    call: PythonCall
    attempt: TaskId
    worker: str
    started_s: float
    ended_s: float | None = None
    #: What it has to say; None while it is at work, or for ever when it died.
    outcome: Outcome | None = None


class Crowd:
    """All workers, in all their lives, and what they really did."""

    def __init__(
        self, loop: SimLoop, luck: Random, history: History, weather: Weather, rates: WorkerRates
    ) -> None:
        self.loop = loop
        self.luck = luck
        self.weather = weather
        self.rates = rates
        self._history = history
        self.judge: WorkerJudge
        #: The control planes that there are now.
        self.servers: Callable[[], Sequence[Server]] = tuple
        self.workers: dict[int, SimWorker] = {}
        self.lines: dict[Line, None] = {}
        #: Everything that was really done, in its order.
        self.deeds: list[Deed] = []
        #: How often something happened.
        self.calls = 0
        #: Whether trouble is over.
        self.is_healed = False
        #: Whether control planes lead side by side.
        self.has_rivals = False
        #: Nobody is believed who was not heard of for so long.
        self.longest_silence_s = LEASE_S

    def begin(self, many: int) -> None:
        """Have so many workers come."""
        for number in range(many):
            self._come(number, 0)

    def heal(self) -> None:
        """End all trouble: what stands still for good does so, and others are there besides it."""
        self.rates = WorkerRates()
        self.is_healed = True
        for worker in tuple(self.workers.values()):
            if not worker.stands_for_good:
                self._wake(worker)
        # Where two lead each is to have somebody.
        for line in tuple(self.lines) if self.has_rivals else ():
            line.cut()
        first = max(self.workers, default=-1) + 1
        for number in range(first, first + 2):
            self._come(number, 0, knows_all=True)

    # What happens to workers

    def kill(self, number: int) -> None:
        """Have a worker die."""
        worker = self._meant(number)
        if worker is not None:
            self.die(worker)

    def hang(self, number: int, seconds: float) -> None:
        """Have a worker stand still for a while."""
        worker = self._meant(number)
        if worker is not None:
            self.stand(worker, seconds)

    def stand(self, worker: SimWorker, seconds: float) -> None:
        """Have this worker stand still for a while."""
        if worker.process.paused or self.is_healed:
            return
        self._note(worker, f"stands still for {seconds:g} s")
        worker.process.paused = True
        if seconds < FOR_GOOD_S:
            self.later(self.loop.world, self._wake, worker, within=(seconds,))
        else:
            # Somebody sees that in the end, and has another one come.
            worker.stands_for_good = True
            self.later(self.loop.world, self._come, max(self.workers) + 1, 0, within=_BACK_S)

    def cut(self, number: int) -> None:
        """Have the connection of a worker break."""
        worker = self._meant(number)
        if worker is not None and worker.line is not None:
            self._note(worker, "is cut off")
            worker.line.cut()

    def drain(self, number: int) -> None:
        """Have a worker go once it is done."""
        worker = self._meant(number)
        if worker is not None:
            self._note(worker, "is to go")
            self.loop.call_soon(worker.drain, context=worker.process.context.copy())

    def lose_server(self, name: str) -> None:
        """A control plane is gone: whoever was connected to it notices."""
        for line in tuple(self.lines):
            if line.server.name == name:
                line.cut()

    def die(self, worker: SimWorker) -> None:
        """A worker is gone, and all that it did."""
        self._note(worker, "dies")
        self._end_life(worker)

    def gone(self, worker: SimWorker) -> None:
        """A worker went of its own will, with nothing left to do."""
        self._note(worker, "goes")
        self._end_life(worker)

    def _end_life(self, worker: SimWorker) -> None:
        self.calls += 1
        self.loop.kill(worker.process)
        if worker.line is not None:
            worker.line.cut()
        for life in tuple(worker.lives.values()):
            life.code, life.signal = None, SIGKILL
            self.judge.ended(life)
        worker.lives.clear()
        self.later(
            self.loop.world,
            self._come,
            worker.number,
            worker.life + 1,
            worker.knows_all,
            within=_BACK_S,
        )

    def _come(self, number: int, life: int, knows_all: bool = False) -> None:
        if number in self.workers and self.workers[number].alive:
            return
        worker = SimWorker(self, number, life, knows_all=knows_all or self.is_healed)
        self.workers[number] = worker
        self._note(worker, f"comes, and knows {', '.join(worker.functions)}")
        self.loop.call_soon(worker.connect, context=worker.process.context.copy())

    def _wake(self, worker: SimWorker) -> None:
        if worker.process.paused and worker.alive:
            self._note(worker, "goes on")
            worker.process.paused = False

    def _meant(self, number: int) -> SimWorker | None:
        """One of those that live; of those that do something if there are any."""
        there = [worker for worker in self.workers.values() if worker.alive]
        there = [worker for worker in there if worker.lives] or there
        return there[number % len(there)] if there else None

    # What they tell

    def pick(self, tries: int) -> Server:
        """A control plane to try: any, and one after another once trouble is over."""
        servers = self.servers()
        at = tries if self.is_healed else int(self.luck.random() * len(servers))
        return servers[at % len(servers)]

    def happens(self, rate: float) -> bool:
        """Whether something happens this time."""
        return rate > 0 and self.luck.random() < rate

    def later(
        self,
        process: SimProcess,
        callback: Callable[..., None],
        *args: object,
        within: Sequence[float] = _NOTICED_S,
    ) -> None:
        """Have something happen a while later."""
        seconds = self.luck.choice(within)
        self.loop.call_later(seconds, callback, *args, context=process.context.copy())

    def begins(self, worker: SimWorker, life: Life, call: Call) -> None:
        """A function is called."""
        self.calls += 1
        deed = Deed(
            function=call.function,
            step=call.step,
            call=call.call,
            attempt=life.order.id,
            worker=worker.incarnation,
            started_s=self.loop.time(),
        )
        self.deeds.append(deed)
        self._note(worker, f"begins {life.order.name}, {call.call}", life.order.job)
        self.judge.begins(deed, life)

    def declines(self, worker: SimWorker, call: Call, error: str) -> None:
        """A function is not called: it was told to stop before there was a thread for it."""
        now_s, outcome = self.loop.time(), Outcome(ref=call.ref, error=error)
        deed = Deed(
            call.function,
            call.step,
            call.call,
            task_of(call.ref),
            worker.incarnation,
            now_s,
            now_s,
            outcome,
        )
        self.deeds.append(deed)
        self.judge.declined(deed)

    def ends(self, worker: SimWorker, life: Life, answer: Answer | None, error: str) -> None:
        """A function has returned, or failed."""
        self.calls += 1
        self._note(worker, f"has done {life.order.name}: {error or 'well'}", life.order.job)
        deed = next(one for one in reversed(self.deeds) if one.attempt == life.order.id)
        deed.ended_s = self.loop.time()
        deed.outcome = Outcome(
            ref=Ref(*life.order.id),
            error=error,
            returned=answer.returned if answer is not None else "",
            elaboration=answer.elaboration if answer is not None else None,
        )
        self.judge.ended(life)

    def _note(self, worker: SimWorker, what: str, *about: str) -> None:
        self._history.note(worker.incarnation, what, *about)
