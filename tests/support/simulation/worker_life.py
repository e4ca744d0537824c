"""One life of a simulated worker: the real books of a worker, with threads that only take time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import json

from interlock.forecast.rehearsal.simulated_loop import SimHandle
from interlock.forecast.rehearsal.simulated_machine import Life, read_behaviour
from interlock.resources.tasks import TaskId, TaskOrder, number_in_round, task_name
from interlock.resources.work import PythonCall, PythonWork
from interlock.resources.work_types import WORKERS
from interlock.runtimes.workers.attempts import task_of
from interlock.runtimes.workers.protocol import Call, Done, FromServer, Welcome
from interlock.sdk.calling import Answer
from interlock.sdk.worker.desk import Attempt, Desk, WorkerIdentity
from support.simulation.worker_lines import Line
from support.simulation.worker_script import FUNCTIONS, SLOW, read_made

if TYPE_CHECKING:
    from support.simulation.workers import Crowd

#: For how long one stands still in the middle of an attempt,
_HANGS_S = (20.0, 40.0, 100.0)
#: and until it tries again to reach a control plane.
_AGAIN_S = (0.1, 1.0, 5.0)


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
        self.desk = Desk(identity, start=self._start, say=lambda _: None)
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
        if self._crowd.happens(self._crowd.rates.dies):
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
        return Answer(elaboration=read_made(call.args) if "made" in call.args else None)
    return Answer(returned=told.decode() if call.call is PythonCall.RUN else "")
