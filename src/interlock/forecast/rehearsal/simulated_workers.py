"""Simulated workers: what Python steps are done by in a rehearsal, one thing at a time each.

They speak to the real dispatcher, in its protocol and with its leases. A worker that dies is there
again after a second, and the server sees at once that its connection is lost. One that hangs says
nothing, hears nothing and keeps its connection: what it did is cut off when its lease has run out.
While the control plane is away they go on, and keep what they have done until that is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from interlock.control.clock import Clock
from interlock.forecast.rehearsal.elaborating import MISSING, elaboration_of
from interlock.forecast.rehearsal.simulated_loop import SimHandle, SimLoop, SimProcess
from interlock.forecast.rehearsal.work import ELABORATE, Attempt, Doing, WorkModel, attempt_of_job
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.operation import ELABORATION
from interlock.resources.tasks import TaskId, TaskOrder, TaskState
from interlock.resources.work import PythonCall, PythonWork
from interlock.resources.work_types import WORKERS
from interlock.runtimes.workers.attempts import task_of
from interlock.runtimes.workers.dispatcher import Dispatcher
from interlock.runtimes.workers.protocol import (
    PROTOCOL,
    Call,
    Cancel,
    Done,
    FromServer,
    FromWorker,
    Hello,
    Orders,
    Outcome,
    Ref,
    Touch,
    Touched,
    Welcome,
)
from interlock.runtimes.workers.runtime import Connection, WorkerRuntime

#: A worker that died is there again after so long.
BACK_S = 1.0
#: How often a worker says that it goes on with what it has: well within its lease.
_TOUCH_S = 20.0

#: Writes a line into the history: whom it is about, the event, its reason, and its detail.
Note = Callable[[Key, str, str, str], None]


class Deed(Struct):
    """Something that a worker has: at work, or done and not known to be recorded."""

    ref: Ref
    attempt: Attempt
    doing: Doing
    ending: SimHandle | None = None
    outcome: Outcome | None = None

    def __str__(self) -> str:
        undo = "undo of " if self.attempt.undo else ""
        return f"{self.attempt.job}, {undo}{self.attempt.step}"


class Worker:
    """One worker, through all its lives."""

    def __init__(self, number: int) -> None:
        self.key = Key("Worker", "", str(number))
        self.lives = 1
        self.connection: Connection | None = None
        self.deeds: dict[TaskId, Deed] = {}
        self.touches: SimHandle | None = None
        self.dead = False
        #: It hangs: it does, says and hears nothing.
        self.silent = False
        #: What was sent to it, and it has not read.
        self.unread: list[FromServer] = []
        #: How many functions it had loaded when it last said hello.
        self.loaded = 0

    @property
    def at_work(self) -> list[Deed]:
        """What it has not done yet."""
        return [deed for deed in self.deeds.values() if deed.outcome is None]


class Workers:
    """All workers of a rehearsal, and the server that they speak to while there is one."""

    def __init__(self, loop: SimLoop, work: WorkModel, count: int | None, note: Note) -> None:
        """Begin with so many workers; with None there are as many as are needed."""
        self._loop = loop
        self._model = work
        self._note = note
        self._process = loop.start_process("workers")
        self._is_unlimited = count is None
        self._workers = [Worker(number) for number in range(1, (count or 0) + 1)]
        #: Functions, and queues, that were asked for: workers have loaded and serve them all.
        self._functions: dict[str, None] = {}
        self._queues: dict[str, None] = {"": None}
        self._server: tuple[WorkerRuntime, SimProcess] | None = None

    # The server

    def attach(self, runtime: WorkerRuntime, process: SimProcess) -> None:
        """Connect to a server that has come up."""
        self._server = (runtime, process)
        for worker in self._workers:
            if not worker.dead:
                worker.connection = None
                self._later(0.0, self._connect, worker)

    def detach(self) -> None:
        """The server is gone; whoever works goes on."""
        self._server = None
        for worker in self._workers:
            self._read_all(worker)
            worker.connection = None

    def learn(self, orders: Sequence[TaskOrder]) -> None:
        """Have all workers load what is going to be asked for, before it is."""
        for order in orders:
            if isinstance(order.work, PythonWork):
                self._functions[order.work.function] = None
                self._queues[order.work.queue] = None
        if self._is_unlimited:
            busy = sum(bool(worker.deeds) for worker in self._workers)
            while len(self._workers) < busy + len(orders):
                self._workers.append(Worker(len(self._workers) + 1))
        for worker in self._workers:
            self._enter(worker)

    def resume(self, job: Job, now: datetime) -> None:
        """Go on with what a Job left by an earlier life says that workers do."""
        for task in job.status.execution.active:
            is_ours = task.runtime == WORKERS and task.started_at is not None
            if not is_ours or task.state is TaskState.UNKNOWN:
                continue
            worker = next((one for one in self._workers if not one.deeds), None)
            if worker is None:
                worker = Worker(len(self._workers) + 1)
                self._workers.append(worker)
            attempt = attempt_of_job(job, task.index, task.attempt)
            ref = Ref(job.metadata.uid, task.index, task.attempt)
            deed = self._deed(ref, job.metadata.namespace, attempt)
            worker.deeds[task_of(ref)] = deed
            assert task.started_at is not None
            ran_s = (now - task.started_at).total_seconds()
            self._begin(worker, deed, max(0.0, deed.doing.seconds - ran_s))

    def _connect(self, worker: Worker) -> None:
        if worker.connection is None and not worker.dead and not worker.silent:
            worker.loaded = 0
            self._enter(worker)

    def _enter(self, worker: Worker) -> None:
        """Say hello, unless the server knows all there is to say."""
        known = len(self._functions) + len(self._queues)
        if self._server is None or worker.dead or worker.silent or worker.loaded == known:
            return
        runtime, process = self._server
        if worker.connection is not None:
            # What was sent to it is read first: else it would not be known to have it.
            worker.unread += worker.connection.worker.mail.take()
            self._read_all(worker)
        worker.loaded = known
        hello = Hello(
            protocol=PROTOCOL,
            worker=worker.key.name,
            incarnation=f"{worker.key.name}/{worker.lives}",
            app="scenario",
            functions=tuple(self._functions),
            queues=tuple(self._queues),
            held=tuple(deed.ref for deed in worker.deeds.values()),
        )
        process.context.copy().run(self._let_in, worker, runtime, hello)
        done = [deed.outcome for deed in worker.deeds.values() if deed.outcome is not None]
        if done:
            self._say(worker, Done(items=tuple(done)))

    def _let_in(self, worker: Worker, runtime: WorkerRuntime, hello: Hello) -> None:
        connection = worker.connection = runtime.enter(hello)
        assert self._server is not None
        self._loop.spawn(self._server[1], self._serve(worker, connection))

    async def _serve(self, worker: Worker, connection: Connection) -> None:
        """Hand on what the server says, as a connection does."""
        while told := await connection.outgoing():
            if worker.connection is connection:
                worker.unread += told
                self._later(0.0, self._read_all, worker)

    def _say(self, worker: Worker, message: FromWorker) -> None:
        if worker.connection is None or self._server is None:
            return
        runtime, process = self._server
        context = process.context.copy()
        self._loop.call_soon(runtime.hear, worker.connection, message, context=context)

    # What workers do

    def _read_all(self, worker: Worker) -> None:
        """Read what was sent; one that hangs does so when it wakes."""
        if worker.silent or worker.dead:
            return
        unread, worker.unread = worker.unread, []
        for message in unread:
            self._read(worker, message)

    def _read(self, worker: Worker, message: FromServer) -> None:
        match message:
            case Orders(calls=calls, recorded=recorded, refused=refused):
                for ref in recorded:
                    worker.deeds.pop(task_of(ref), None)
                for ref, why in refused:
                    self._drop(worker, task_of(ref), why)
                for call in calls:
                    self._take(worker, call)
            case Cancel(items=refs, grace_s=grace_s):
                for ref in refs:
                    self._cancel(worker, worker.deeds.get(task_of(ref)), grace_s)
            case Welcome():
                pass

    def _take(self, worker: Worker, call: Call) -> None:
        step = ELABORATE if call.call is PythonCall.ELABORATE else call.step
        is_undo = call.call is PythonCall.UNDO
        attempt = Attempt(call.job, call.ref.task, call.ref.attempt, step, is_undo)
        deed = self._deed(call.ref, call.namespace, attempt)
        worker.deeds[task_of(call.ref)] = deed
        self._begin(worker, deed, deed.doing.ready_s + deed.doing.seconds)

    def _deed(self, ref: Ref, namespace: str, attempt: Attempt) -> Deed:
        doing = self._model.doing(attempt, namespace)
        return Deed(ref=ref, attempt=attempt, doing=doing)

    def _begin(self, worker: Worker, deed: Deed, seconds: float) -> None:
        deed.ending = self._later(seconds, self._end, worker, deed)
        if worker.touches is None:
            worker.touches = self._later(_TOUCH_S, self._touch_on, worker)

    def _touch_on(self, worker: Worker) -> None:
        worker.touches = None
        if worker.at_work and not worker.dead and not worker.silent:
            self._touch(worker)
            worker.touches = self._later(_TOUCH_S, self._touch_on, worker)

    def _touch(self, worker: Worker) -> None:
        self._say(worker, Touch(items=tuple(Touched(ref=deed.ref) for deed in worker.at_work)))

    def _end(self, worker: Worker, deed: Deed) -> None:
        """An attempt comes to its own end."""
        if deed.doing.kills_worker:
            self._die(worker, "killsWorker")
        else:
            self._done(worker, deed, self._outcome(deed))

    def _outcome(self, deed: Deed) -> Outcome:
        doing = deed.doing
        (code,) = doing.exits
        if code:
            return Outcome(ref=deed.ref, error=doing.words or f"exit code {code}")
        if deed.attempt.task != ELABORATION:
            return Outcome(ref=deed.ref, returned=doing.returns.decode())
        made = elaboration_of(doing.result)
        return Outcome(ref=deed.ref, elaboration=made, error="" if made else MISSING)

    def _done(self, worker: Worker, deed: Deed, outcome: Outcome) -> None:
        """Say how something ended, and keep that until it is known to be recorded."""
        if deed.outcome is not None or task_of(deed.ref) not in worker.deeds:
            return
        if deed.ending is not None:
            deed.ending.cancel()
        deed.outcome = outcome
        self._say(worker, Done(items=(outcome,)))

    def _cancel(self, worker: Worker, deed: Deed | None, grace_s: float) -> None:
        if deed is None or deed.outcome is not None or deed.doing.deaf:
            return
        outcome = Outcome(ref=deed.ref, error="it was told to stop")
        if deed.doing.slow <= grace_s:
            self._later(deed.doing.slow, self._done, worker, deed, outcome)

    def _drop(self, worker: Worker, task: TaskId, why: str) -> None:
        """What a worker has does not count any more: it stops, and says so."""
        deed = worker.deeds.pop(task, None)
        if deed is None:
            return
        if deed.ending is not None:
            deed.ending.cancel()
        self._note(worker.key, "Refused", "", f"{deed}: {why}")
        if worker.connection is not None:
            self._touch(worker)

    # What happens to workers

    def finish(self, job: str, task: int | None, code: int) -> list[TaskId]:
        """End what is at work for the Jobs that a pattern names."""
        found: list[TaskId] = []
        for worker in self._workers:
            for deed in worker.at_work if not worker.silent else ():
                if fnmatchcase(deed.attempt.job, job) and task in (None, deed.attempt.task):
                    found.append(task_of(deed.ref))
                    deed.doing = replace(deed.doing, exits=(code,))
                    self._done(worker, deed, self._outcome(deed))
        return found

    def kill(self, job: str) -> bool:
        """Have a worker die: one that works for a Job that a pattern names; with * any other too.

        False when there is none.
        """
        worker = self._meant(job)
        if worker is not None:
            self._die(worker, "killWorker")
        return worker is not None

    def hang(self, job: str, seconds: float) -> bool:
        """Have a worker do nothing for a while; False when there is none."""
        worker = self._meant(job)
        if worker is None:
            return False
        self._note(worker.key, "Silent", "hangWorker", f"for {seconds:g} s {_at(worker)}".rstrip())
        # The last that is heard of it.
        self._touch(worker)
        worker.silent = True
        for deed in worker.at_work:
            if deed.ending is not None:
                left = deed.ending.when() - self._loop.time()
                deed.ending.cancel()
                deed.ending = self._later(seconds + left, self._end, worker, deed)
        self._later(seconds, self._wake, worker)
        return True

    def _meant(self, job: str) -> Worker | None:
        """The first worker that works for a Job; where any will do, else the first there is."""
        here = [worker for worker in self._workers if not worker.dead and not worker.silent]
        for worker in here:
            if any(fnmatchcase(deed.attempt.job, job) for deed in worker.at_work):
                return worker
        return here[0] if here and job == "*" else None

    def _die(self, worker: Worker, why: str) -> None:
        self._note(worker.key, "Died", why, _at(worker))
        worker.dead = True
        for deed in worker.deeds.values():
            if deed.ending is not None:
                deed.ending.cancel()
        worker.deeds.clear()
        worker.unread.clear()
        if worker.connection is not None and self._server is not None:
            runtime, process = self._server
            context = process.context.copy()
            connection, worker.connection = worker.connection, None
            self._loop.call_soon(runtime.leave, connection, "it died", context=context)
        self._later(BACK_S, self._come_back, worker)

    def _come_back(self, worker: Worker) -> None:
        worker.dead, worker.lives = False, worker.lives + 1
        self._note(worker.key, "Back", "", "")
        self._connect(worker)

    def _wake(self, worker: Worker) -> None:
        worker.silent = False
        self._note(worker.key, "Awake", "", _at(worker))
        self._read_all(worker)
        if worker.connection is None:
            self._connect(worker)
        else:
            self._enter(worker)
            self._touch(worker)
        if worker.at_work and worker.touches is None:
            worker.touches = self._later(_TOUCH_S, self._touch_on, worker)

    def _later(self, seconds: float, callback: Callable[..., None], *args: object) -> SimHandle:
        context = self._process.context.copy()
        return self._loop.call_later(seconds, callback, *args, context=context)


def _at(worker: Worker) -> str:
    """What a worker is at."""
    return f"at {', '.join(map(str, worker.at_work))}" if worker.at_work else ""


class RehearsedWorkers(WorkerRuntime):
    """The real runtime of workers, whose workers load whatever they are going to be asked for."""

    def __init__(
        self, workers: Workers, clock: Clock, check: Callable[[], None], dispatcher: Dispatcher
    ) -> None:
        super().__init__(clock, check, dispatcher)
        self._workers = workers

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Have attempts made."""
        self._workers.learn(orders)
        await super().launch(orders)
