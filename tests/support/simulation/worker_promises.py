"""The promises about workers, as checks over what they are told, what they did and what counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.tasks import EndedTask, ReportState, TaskId, TaskReport, TaskResult
from interlock.resources.work_types import WORKERS
from interlock.runtimes.workers.attempts import task_of
from interlock.runtimes.workers.protocol import (
    Call,
    Cancel,
    FromServer,
    FromWorker,
    Hello,
    Orders,
    Outcome,
    Touch,
)
from interlock.runtimes.workers.runtime import Connection, WorkerRuntime
from interlock.store.watching import Change
from support.simulation.judge import BrokenPromiseError, Judge, Promise
from support.simulation.promises import jobs_of
from support.simulation.truth import Truth

if TYPE_CHECKING:
    from support.simulation.worker_life import SimWorker
    from support.simulation.workers import Crowd, Deed

#: What an attempt came to without a word of whoever did it.
_CUT = frozenset({TaskResult.INTERRUPTED, TaskResult.KILLED})
_OVER = (ReportState.ENDED, ReportState.NOT_STARTED)


class WorkerPromise(Promise):
    """A promise about what workers are told, and what becomes of what they say."""

    def __init__(self, truth: Truth, crowd: Crowd, books: Books) -> None:
        super().__init__(truth)
        self.crowd = crowd
        self.books = books

    def handed_out(self, task: TaskId, worker: str) -> None:
        """A worker is sent an order."""

    def ordered(self, call: Call) -> None:
        """The same, with all that it says."""

    def given(self, worker: SimWorker) -> None:
        """A worker has taken an order."""

    def told_recorded(self, task: TaskId, worker: str) -> None:
        """A worker is told that it may forget a result."""

    def reported(self, runtime: WorkerRuntime, report: TaskReport) -> None:
        """A dispatcher says what became of an attempt."""


class Books:
    """What was said of attempts, and what was recorded of them, as nobody in the engine has it."""

    def __init__(self) -> None:
        #: What was really done, by attempt: no attempt is ever done twice.
        self.deeds: dict[TaskId, Deed] = {}
        #: How attempts are recorded as over; None when that was not kept.
        self.recorded: dict[TaskId, EndedTask | None] = {}
        #: What dispatchers said is over, and what was begun only after that.
        self.over: set[TaskId] = set()
        self.late: set[TaskId] = set()
        #: When a dispatcher heard of an attempt last from the worker that has it, and from whom.
        self.words: dict[tuple[WorkerRuntime, TaskId], tuple[float, str]] = {}


class HandedOutOnce(WorkerPromise):
    """An order is given to one worker, once, and only after it was recorded."""

    def __init__(self, truth: Truth, crowd: Crowd, books: Books) -> None:
        super().__init__(truth, crowd, books)
        self._given: dict[TaskId, str] = {}

    def handed_out(self, task: TaskId, worker: str) -> None:
        """Nobody was given it before."""
        job = self.truth.by_uid.get(task.job_uid)
        name = job.metadata.name if job is not None else task.job_uid
        if task in self._given:
            told = f"{name}-{task.task}-{task.attempt} goes to {worker}"
            raise self.broken(f"{told}, and {self._given[task]} was given it", name)
        self._given[task] = worker
        active = job.status.execution.active if job is not None else ()
        is_known = any((one.index, one.attempt) == (task.task, task.attempt) for one in active)
        if not is_known and task not in self.books.recorded:
            raise self.broken(f"{name} is handed out and was never recorded", name)


class WordsCount(WorkerPromise):
    """What is said of an attempt counts once, from who has it, and not after its lease is over."""

    def __init__(self, truth: Truth, crowd: Crowd, books: Books) -> None:
        super().__init__(truth, crowd, books)
        self._said: dict[tuple[WorkerRuntime, TaskId], TaskReport] = {}

    def reported(self, runtime: WorkerRuntime, report: TaskReport) -> None:
        """What a dispatcher has said of an end stays so, and is what the worker has said."""
        if report.state not in _OVER:
            return
        before = self._said.setdefault((runtime, report.id), report)
        name = f"{report.job}-{report.index}-{report.attempt}"
        if before != report:
            raise self.broken(f"{name} is over, and its end is told otherwise", report.job)
        if report.exit_code is None or before is not report:
            return
        deed = self.books.deeds.get(report.id)
        if deed is None or deed.outcome is None:
            raise self.broken(f"{name} has a result, and nobody has done it", report.job)
        if not _is_result(report, deed.outcome):
            raise self.broken(f"{name} has another result than {deed.worker} said", report.job)
        heard_at, who = self.books.words.get((runtime, report.id), (0.0, "nobody"))
        silent_s = self.crowd.loop.time() - heard_at
        if who != deed.worker:
            raise self.broken(f"{name} was {who}'s, and {deed.worker} is believed", report.job)
        if silent_s > self.crowd.longest_silence_s:
            told = f"{deed.worker} said nothing of {name} for {silent_s:.0f} s, and is believed"
            raise self.broken(told, report.job)

    def wrote(self, change: Change) -> None:
        """What is recorded as returned is what the one who did it returned."""
        _, after = jobs_of(change)
        if after is None:
            return
        for end in after.status.execution.ended:
            deed = self.books.deeds.get(TaskId(after.metadata.uid, end.index, end.attempt))
            if deed is None or end.exit_code is None or end.returned is None:
                continue
            returned = deed.outcome.returned if deed.outcome is not None else ""
            if end.returned.json != returned:
                name = after.metadata.name
                raise self.broken(f"{end.name} is recorded with what it never returned", name)


def _is_result(report: TaskReport, outcome: Outcome) -> bool:
    if report.exit_code != (1 if outcome.error else 0):
        return False
    returned = report.returned.json if report.returned is not None else ""
    return outcome.error != "" or (returned, report.elaboration) == (
        outcome.returned,
        outcome.elaboration,
    )


class RecordedIsKept(WorkerPromise):
    """A worker is told that it may forget a result only once that is durable."""

    def told_recorded(self, task: TaskId, worker: str) -> None:
        """The attempt is recorded as over, with what this worker said."""
        job = self.truth.by_uid.get(task.job_uid)
        if job is None or task.job_uid in self.truth.gone:
            return
        name = job.metadata.name
        what = f"{name}-{task.task}-{task.attempt}"
        if task not in self.books.recorded:
            raise self.broken(f"{worker} may forget {what}, and that is not recorded", name)
        end, deed = self.books.recorded[task], self.books.deeds.get(task)
        if end is None or deed is None or deed.outcome is None or self.crowd.has_rivals:
            return
        if end.exit_code != (1 if deed.outcome.error else 0):
            told = f"{worker} may forget {what}, and recorded is {end.result}"
            raise self.broken(told, name)


class RoomKept(WorkerPromise):
    """A worker is given no more than it has room for, what was cut off and goes on there included.

    What it is given beyond that waits for a function that counts for nothing, and may never end.
    """

    def given(self, worker: SimWorker) -> None:
        """It says all that it is at, and that is no more than it can do.

        An order that it has not read yet it cannot speak of: one that was over by then is left out.
        """
        busy = sum(task_of(ref) not in self.books.late for ref in worker.desk.at_work)
        if busy > worker.concurrency:
            told = f"{worker.incarnation} does {worker.concurrency} at a time"
            raise self.broken(f"{told}, and is given one more beside {busy - 1}")


class OrdersAreDone(WorkerPromise):
    """Once trouble is over every order was done by somebody, and every result is settled."""

    def settled(self) -> None:
        """Nothing waits at a control plane, and no worker has anything left to tell."""
        for server in self.crowd.servers():
            runtime = server.terms.runtime
            if runtime is not None and not runtime.is_over and runtime.dispatcher.waiting:
                raise self.broken(f"{runtime.dispatcher.waiting} orders wait at {server.name}")
        for worker in self.crowd.workers.values():
            if worker.alive and not worker.process.paused and worker.desk.left:
                raise self.broken(f"{worker.incarnation} is left with {worker.desk.left[0]}")


WORKER_PROMISES: tuple[type[WorkerPromise], ...] = (
    HandedOutOnce,
    WordsCount,
    RecordedIsKept,
    RoomKept,
    OrdersAreDone,
)


class WorkerJudge:
    """Hears of everything that is said and done, and keeps apart what counts and what does not.

    A worker that was lost may go on with what it does: from the moment at which that is recorded
    as cut off nothing that it says counts, the token of its lock holds it off from other Jobs, and
    it is not among what runs any more.
    """

    def __init__(
        self,
        truth: Truth,
        judge: Judge,
        crowd: Crowd,
        loop: SimLoop,
        promises: Sequence[type[WorkerPromise]] = WORKER_PROMISES,
    ) -> None:
        self._truth = truth
        self._judge = judge
        self._loop = loop
        self.books = Books()
        self.promises = [promise(truth, crowd, self.books) for promise in promises]
        #: What may run and does not count any more.
        self._fenced: set[TaskId] = set()

    # What really runs

    def begins(self, deed: Deed, life: Life) -> None:
        """A function is called: what was recorded as over before that counts for nothing."""
        task = life.order.id
        self.books.deeds.setdefault(task, deed)
        if task in self.books.recorded or task.job_uid in self._truth.gone:
            self._fenced.add(task)
        else:
            self._judge.started(life)

    def declined(self, deed: Deed) -> None:
        """A function is not called, and a worker says that it failed."""
        self.books.deeds.setdefault(deed.attempt, deed)
        self._truth.ends.setdefault(deed.attempt, (1, None))

    def ended(self, life: Life) -> None:
        """A function has ended, or its worker has."""
        if life.order.id not in self._fenced:
            self._judge.ended(life)

    def committed(self, change: Change) -> None:
        """Before a write is judged: what it says is cut off does not count from here on."""
        before, after = jobs_of(change)
        if before is None or after is None:
            return
        left = {(one.index, one.attempt) for one in after.status.execution.active}
        ended = {(end.index, end.attempt): end for end in after.status.execution.ended}
        for one in before.status.execution.active:
            place = (one.index, one.attempt)
            if one.runtime != WORKERS or place in left:
                continue
            task, end = TaskId(before.metadata.uid, *place), ended.get(place)
            self.books.recorded.setdefault(task, end)
            is_cut = end is None or (end.exit_code is None and end.result in _CUT)
            if is_cut and task in self._truth.lives:
                self._fenced.add(task)
                del self._truth.lives[task]

    def given(self, worker: SimWorker, task: TaskId) -> None:
        """A worker has taken an order."""
        if task in self.books.over:
            self.books.late.add(task)
        for promise in self.promises:
            promise.given(worker)

    # What is said

    def watch(self, runtime: WorkerRuntime) -> None:
        """Hear what a dispatcher tells its control plane."""

        def heard(reports: Sequence[TaskReport]) -> None:
            for report in reports:
                if report.state in _OVER:
                    self.books.over.add(report.id)
                for promise in self.promises:
                    self._hold(promise.reported, runtime, report)

        runtime.subscribe(heard)

    def entered(self, runtime: WorkerRuntime, connection: Connection, hello: Hello) -> None:
        """A worker was let in, with what it has."""
        for ref in hello.held:
            if runtime.has(connection, task_of(ref)):
                self._word(runtime, task_of(ref), hello.incarnation)

    def heard(self, runtime: WorkerRuntime, connection: Connection, message: FromWorker) -> None:
        """A worker says something: it counts when that worker has what it speaks of."""
        if isinstance(message, Touch):
            for touched in message.items:
                if runtime.has(connection, task_of(touched.ref)):
                    who = connection.worker.hello.incarnation
                    self._word(runtime, task_of(touched.ref), who)

    def sends(self, runtime: WorkerRuntime, worker: str, message: FromServer) -> None:
        """A worker is told something."""
        if isinstance(message, Orders):
            for call in message.calls:
                self._word(runtime, task_of(call.ref), worker)
                self._each("handed_out", task_of(call.ref), worker)
                for promise in self.promises:
                    self._hold(promise.ordered, call)
            for ref in message.recorded:
                self._each("told_recorded", task_of(ref), worker)
        elif isinstance(message, Cancel):
            for ref in message.items:
                self._hold(self._judge.stopped, task_of(ref))

    def _word(self, runtime: WorkerRuntime, task: TaskId, worker: str) -> None:
        self.books.words[runtime, task] = (self._loop.time(), worker)

    def _each(self, moment: str, task: TaskId, worker: str) -> None:
        for promise in self.promises:
            self._hold(getattr(promise, moment), task, worker)

    def _hold(self, check: Callable[..., None], *args: object) -> None:
        """Check something in the middle of what the product does, which must not swallow it."""
        try:
            check(*args)
        except BrokenPromiseError as broken:
            context = self._loop.world.context.copy()
            self._loop.call_soon(_raise, broken, context=context)


def _raise(error: BrokenPromiseError) -> None:
    raise error
