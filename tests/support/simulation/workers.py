"""Simulated workers: the real books of a worker, one process each, that dies, hangs and is cut off.

What they are told and say travels as frames over lines that break. What really runs, and how it
ended, is written down here, whatever the control planes hold of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct, json

from interlock.errors import FencedError
from interlock.forecast.rehearsal.simulated_loop import SimHandle, SimLoop, SimProcess
from interlock.forecast.rehearsal.simulated_machine import SIGKILL, Life, read_behaviour
from interlock.resources.tasks import TaskId, TaskOrder, number_in_round, task_name
from interlock.resources.work import PythonCall, PythonWork
from interlock.resources.work_types import WORKERS
from interlock.runtimes.workers.admittance import RefusedWorkerError
from interlock.runtimes.workers.attempts import task_of
from interlock.runtimes.workers.protocol import (
    Call,
    Done,
    FromServer,
    FromWorker,
    Hello,
    Outcome,
    Ref,
    Welcome,
    encode,
    read_from_server,
    read_from_worker,
)
from interlock.runtimes.workers.runtime import Connection, WorkerRuntime
from interlock.runtimes.workers.terms import WorkerTerms
from interlock.sdk.calling import Answer
from interlock.sdk.worker.desk import Attempt, Desk, WorkerIdentity
from support.simulation.faults import Weather, Wire
from support.simulation.history import History
from support.simulation.worker_script import FOR_GOOD_S, FUNCTIONS, KILLS, SLOW, read_made

if TYPE_CHECKING:
    from support.simulation.worker_promises import WorkerJudge

#: Without a word for so long an attempt counts as cut off.
LEASE_S = 30.0
#: and it is spoken of so often.
TOUCH_EVERY_S = 10.0
#: How long until a side of a connection notices that it broke,
_NOTICED_S = (0.0, 0.05, 2.0, 20.0)
#: until another worker takes the place of one that died,
_BACK_S = (0.1, 3.0, 40.0)
#: for how long one stands still in the middle of an attempt,
_HANGS_S = (20.0, 40.0, 100.0)
#: until it goes because of what it is at in vain,
_STUCK_AFTER_S = 5.0
#: and until a worker tries again to reach a control plane.
_AGAIN_S = (0.1, 1.0, 5.0)


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


class Server(Struct, frozen=True):
    """A control plane, as workers reach it."""

    name: str
    process: SimProcess
    terms: WorkerTerms


class Line:
    """One connection of a worker: frames in order, until it breaks."""

    def __init__(self, crowd: Crowd, worker: SimWorker, server: Server) -> None:
        self._crowd = crowd
        self.worker = worker
        self.server = server
        self.is_broken = False
        #: Whether the server has answered.
        self.is_welcome = False
        self._runtime: WorkerRuntime | None = None
        self._connection: Connection | None = None
        self._wire = Wire(
            crowd.loop,
            worker.process,
            server.process,
            crowd.weather,
            crowd.luck,
            lambda _: None,
            in_order=True,
        )

    def cut(self) -> None:
        """It breaks: what is on its way is lost, and each side notices by itself."""
        if self.is_broken:
            return
        self.is_broken = True
        self._crowd.lines.pop(self, None)
        self._crowd.was_cut = self._crowd.was_cut or self.worker.alive
        self._crowd.later(self.worker.process, self.worker.lost, self)
        self._crowd.later(self.server.process, self._left, "the connection broke")

    # The worker's side

    def open(self) -> None:
        """Say hello."""
        frame = encode(self.worker.desk.hello())
        self._wire.send(self._enter, frame)

    def say(self, message: FromWorker) -> None:
        """Send a message."""
        self._wire.send(self._hear, encode(message))
        if self._crowd.happens(self._crowd.rates.breaks):
            self.cut()

    def _told(self, frame: bytes) -> None:
        if not self.is_broken:
            self.worker.hear(self, read_from_server(frame))

    def _closed(self) -> None:
        self.is_broken = True
        self.worker.lost(self)

    # The server's side

    def _enter(self, frame: bytes) -> None:
        runtime = self.server.terms.runtime
        hello = read_from_worker(frame)
        assert isinstance(hello, Hello)
        if self.is_broken or runtime is None or runtime.is_over:
            self._wire.reply(self._closed)
            return
        try:
            self._connection = runtime.enter(hello)
        except (FencedError, RefusedWorkerError):
            self._wire.reply(self._closed)
            return
        self._runtime = runtime
        self._crowd.judge.entered(runtime, self._connection, hello)
        self._crowd.loop.spawn(self.server.process, self._talk(self._connection))

    def _hear(self, frame: bytes) -> None:
        if self._connection is None or self._runtime is None or self.is_broken:
            return
        message = read_from_worker(frame)
        self._crowd.judge.heard(self._runtime, self._connection, message)
        self._runtime.hear(self._connection, message)

    async def _talk(self, connection: Connection) -> None:
        while told := await connection.outgoing():
            for message in told:
                self._send(message)
        self._left(connection.closed or "it is over")
        self._wire.reply(self._closed)

    def _send(self, message: FromServer) -> None:
        assert self._runtime is not None
        self._crowd.judge.sends(self._runtime, self.worker.incarnation, message)
        self._wire.reply(self._told, encode(message))
        if self._crowd.happens(self._crowd.rates.breaks):
            self.cut()

    def _left(self, why: str) -> None:
        self._crowd.lines.pop(self, None)
        runtime, connection = self._runtime, self._connection
        self._connection = None
        if runtime is not None and connection is not None:
            runtime.leave(connection, why, is_ours=runtime.is_over)
            # Whoever waits for something to be sent is woken, to find that nothing comes.
            connection.wake()


class SimWorker:
    """One life of a worker: it is a process of its own."""

    def __init__(self, crowd: Crowd, number: int, life: int, *, knows_all: bool) -> None:
        self._crowd = crowd
        self.number = number
        self.life = life
        self.incarnation = f"w{number}/{life}"
        self.process = crowd.loop.start_process(self.incarnation)
        self.knows_all = knows_all
        luck = crowd.luck
        is_partial = not knows_all and crowd.happens(crowd.rates.partial)
        functions = tuple(luck.sample(FUNCTIONS, 2)) if is_partial else FUNCTIONS
        self.functions = functions
        #: It stands still, and nobody ever has it go on.
        self.stands_for_good = False
        self.concurrency = luck.choice((1, 1, 2, 4))
        identity = WorkerIdentity(
            name=self.incarnation,
            incarnation=self.incarnation,
            app="app:app",
            functions=functions,
            queues=("",) if is_partial else ("", SLOW),
            concurrency=self.concurrency,
        )
        self.desk = Desk(identity, start=self._start, say=lambda _: None, refused=self._refused)
        self.line: Line | None = None
        self._tries = number
        self._touching: SimHandle | None = None
        self.lives: dict[TaskId, Life] = {}
        #: What waits for one of its threads.
        self._waiting: list[Attempt] = []

    @property
    def alive(self) -> bool:
        """Whether it lives; it may stand still."""
        return self.process.alive

    def connect(self) -> None:
        """Reach a control plane: whichever it happens to try."""
        if self.line is None:
            self._tries += 1
            line = self.line = Line(self._crowd, self, self._crowd.pick(self._tries))
            self._crowd.lines[line] = None
            line.open()
            # Nobody answers where no process is.
            self._later(20.0, self._unanswered, line)

    def lost(self, line: Line) -> None:
        """Its connection is gone."""
        if self.line is line:
            self.line = None
            self._later(self._crowd.luck.choice(_AGAIN_S), self.connect)

    def _unanswered(self, line: Line) -> None:
        if not line.is_welcome:
            line.cut()

    def hear(self, line: Line, message: FromServer) -> None:
        """Take in what the server says."""
        if self.line is not line:
            return
        if isinstance(message, Welcome):
            line.is_welcome = True
            self.desk.connected(message)
            self._flush(touch=True)
        self.desk.read(message)
        self._stir()

    def drain(self) -> None:
        """Take nothing more."""
        self.desk.drain()
        self._stir()

    def _stir(self) -> None:
        """Say what there is to be said, and that all of it goes on."""
        self._flush()
        if self._touching is None and self.alive:
            self._touching = self._later(self.desk.touch_every_s, self._touch)

    def _touch(self) -> None:
        self._touching = None
        self._flush(touch=True)
        if self.desk.at_work:
            self._touching = self._later(self.desk.touch_every_s, self._touch)

    def _flush(self, *, touch: bool = False) -> None:
        if self.desk.is_over:
            self._crowd.gone(self)
            return
        if self.line is None or not self.line.is_welcome:
            return
        for message in self.desk.take(touch=touch):
            self.line.say(message)
            if isinstance(message, Done) and self._crowd.happens(self._crowd.rates.twice):
                self.line.say(message)

    # What it does

    def _start(self, attempt: Attempt) -> None:
        """Begin an attempt, or have it wait for a thread: there are as many as it has said."""
        self._crowd.judge.given(self, task_of(attempt.call.ref))
        self._waiting.append(attempt)
        self._begin_next()

    def _begin_next(self) -> None:
        while self._waiting and len(self.lives) < self.concurrency:
            self._begin(self._waiting.pop(0))

    def _begin(self, attempt: Attempt) -> None:
        if attempt.context.cancelled.is_set():
            error = "it was told to stop"
            self._crowd.declines(self, attempt.call, error)
            self.desk.finished(attempt, None, error)
            return
        call = attempt.call
        behaviour = read_behaviour(("work", *call.args["words"]))
        life = Life(_order_of(call), behaviour, self._crowd.loop.now_us)
        self.lives[life.order.id] = life
        self._crowd.begins(self, life, call)
        attempt.on_cancel = lambda: self._cancelled(attempt, life)
        life.ending = self._later(behaviour.seconds, self._end, attempt, life)
        if self._crowd.happens(self._crowd.rates.tells):
            self._later(behaviour.seconds / 3, self._tell, attempt)
        if self._crowd.happens(self._crowd.rates.hangs):
            halfway = (behaviour.seconds / 2,)
            seconds = self._crowd.luck.choice(_HANGS_S)
            self._crowd.later(self.process, self._crowd.stand, self, seconds, within=halfway)

    def _refused(self, attempt: Attempt) -> None:
        self._later(_STUCK_AFTER_S, self._retire, attempt)

    def _retire(self, attempt: Attempt) -> None:
        if self.desk.give_up(attempt):
            self._stir()

    def _tell(self, attempt: Attempt) -> None:
        attempt.report(33, "a third")
        self._stir()

    def _cancelled(self, attempt: Attempt, life: Life) -> None:
        if not life.behaviour.deaf and life.stop_by_us is None:
            life.stop_by_us = self._crowd.loop.now_us
            self._later(life.behaviour.slow, self._end, attempt, life, "it was told to stop")

    def _end(self, attempt: Attempt, life: Life, error: str = "") -> None:
        if life.order.id not in self.lives:
            return
        kills = KILLS in attempt.call.args["words"]
        if kills or self._crowd.happens(self._crowd.rates.dies):
            self._crowd.die(self)
            return
        if life.ending is not None:
            life.ending.cancel()
        if not error and life.behaviour.exit_of(number_in_round(life.order.attempt)):
            error = "it failed"
        answer = None if error else _answer(attempt.call, self.incarnation)
        life.code = 1 if error else 0
        del self.lives[life.order.id]
        self._crowd.ends(self, life, answer, error)
        self.desk.finished(attempt, answer, error)
        self._begin_next()
        self._stir()

    def _later(self, seconds: float, callback: Callable[..., None], *args: object) -> SimHandle:
        context = self.process.context.copy()
        return self._crowd.loop.call_later(seconds, callback, *args, context=context)


def _order_of(call: Call) -> TaskOrder:
    """What a worker was told, as all that runs is known."""
    ref = call.ref
    work = PythonWork(function=call.function, args=call.args, call=call.call, step=call.step)
    return TaskOrder(
        job_uid=ref.job_uid,
        index=ref.task,
        attempt=ref.attempt,
        name=task_name(call.job, ref.task, ref.attempt),
        namespace=call.namespace,
        job=call.job,
        runtime=WORKERS,
        work=work,
        env={"INTERLOCK_FENCES": json.encode(call.fences).decode()},
    )


def _answer(call: Call, who: str) -> Answer:
    """What the function that is called returns: each attempt something of its own."""
    told = json.encode(f"{call.job} {call.step} {call.ref.task}-{call.ref.attempt} by {who}")
    if call.call is PythonCall.ELABORATE:
        return Answer(elaboration=read_made(call.args))
    return Answer(returned=told.decode() if call.call is PythonCall.RUN else "")


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
        #: Whether a connection broke although both its ends lived on.
        self.was_cut = False
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
        self.judge.dies(worker)
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
        self.judge.is_beside(worker, life)

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
