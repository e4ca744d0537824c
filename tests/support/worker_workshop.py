"""A workshop of workers: one worker in memory that does what its orders say, and a dispatcher."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from interlock.control.clock import SystemClock
from interlock.control.runtime import Runtime
from interlock.errors import FencedError
from interlock.resources.job import Job
from interlock.resources.tasks import TaskId, TaskOrder, TaskState, TaskStatus, task_name
from interlock.resources.work import ProcessWork, PythonWork
from interlock.resources.work_types import WORKERS
from interlock.runtimes.workers.attempts import task_of
from interlock.runtimes.workers.dispatcher import QUIET_S, Dispatcher
from interlock.runtimes.workers.protocol import (
    PROTOCOL,
    Call,
    Cancel,
    Done,
    FromServer,
    Hello,
    Orders,
    Outcome,
    Ref,
)
from interlock.runtimes.workers.runtime import Connection, WorkerRuntime
from interlock.testing.builders import a_job
from interlock.testing.runtime_contract import (
    CannotStart,
    Exits,
    ExitsWhenTold,
    IgnoresSigterm,
    LeavesChild,
    ReadyWhenTold,
    RunsOn,
    Scene,
    Told,
    Work,
)

_DEADLINE_S = 120.0
_FUNCTIONS = ("exits", "runs", "ignores")


class OneWorker:
    """Does what it is told, and keeps results until they are recorded."""

    def __init__(self) -> None:
        self.starts: dict[TaskId, int] = {}
        self.at_work: dict[TaskId, Call] = {}
        self._results: dict[TaskId, Outcome] = {}
        self._runtime: WorkerRuntime | None = None
        self._connection: Connection | None = None
        self._reading: asyncio.Task[None] | None = None

    def enter(self, runtime: WorkerRuntime) -> None:
        """Come to a dispatcher with all that is still held."""
        self.go()
        held = tuple(Ref(*task) for task in (*self.at_work, *self._results))
        hello = Hello(
            protocol=PROTOCOL,
            worker="host/1",
            incarnation="one",
            app="test:app",
            functions=_FUNCTIONS,
            concurrency=100,
            held=held,
        )
        self._runtime = runtime
        self._connection = runtime.enter(hello)
        for outcome in tuple(self._results.values()):
            self._tell(outcome)
        self._reading = asyncio.create_task(self._read(self._connection))

    def go(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()

    def finish(self, task: TaskId, code: int) -> None:
        """End an attempt: with an exit code in words, because functions have none."""
        del self.at_work[task]
        error = f"exit code {code}" if code else ""
        self._results[task] = Outcome(ref=Ref(*task), error=error)
        self._tell(self._results[task])

    def counts(self) -> int:
        """How many attempts it is at whose results would count."""
        runtime, connection = self._runtime, self._connection
        if runtime is None or connection is None:
            return 0
        return sum(runtime.has(connection, task) for task in self.at_work)

    def _tell(self, outcome: Outcome) -> None:
        assert self._runtime is not None
        assert self._connection is not None
        self._runtime.hear(self._connection, Done(items=(outcome,)))

    async def _read(self, connection: Connection) -> None:
        while told := await connection.outgoing():
            for message in told:
                self._take_in(message)

    def _take_in(self, message: FromServer) -> None:
        match message:
            case Orders(calls=calls, recorded=recorded, refused=refused):
                for ref in (*recorded, *(ref for ref, _ in refused)):
                    self._results.pop(task_of(ref), None)
                    self.at_work.pop(task_of(ref), None)
                for call in calls:
                    self._begin(call)
            case Cancel(items=items):
                for ref in items:
                    stopped = self.at_work.get(task_of(ref))
                    if stopped is not None and stopped.function != "ignores":
                        self.finish(task_of(ref), 1)
            case _:
                pass

    def _begin(self, call: Call) -> None:
        task = task_of(call.ref)
        self.starts[task] = self.starts.get(task, 0) + 1
        self.at_work[task] = call
        if call.function == "exits":
            self.finish(task, call.args["code"])


class WorkersShop:
    """Implements `runtime_contract.WorkShop` with one worker, and the statuses of Jobs in mind."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._worker = OneWorker()
        self._orders: dict[TaskId, TaskOrder] = {}
        self._term = 0
        self._news = asyncio.Event()
        self._runtime = self._lead()

    @property
    def runtime(self) -> Runtime:
        """The runtime of the present leader."""
        return self._runtime

    def order(self, work: Work, *, job: str = "job", index: int = 0, attempt: int = 1) -> TaskOrder:
        """An order for some work; it is on record before anybody can launch it."""
        order = TaskOrder(
            job_uid=f"uid-{job}",
            index=index,
            attempt=attempt,
            name=task_name(job, index, attempt),
            namespace="default",
            job=job,
            runtime=WORKERS,
            work=_call_of(work),
        )
        self._orders[order.id] = order
        return order

    async def until(self, true: Callable[[Told], bool]) -> Told:
        """Wait until the reports are so."""
        async with asyncio.timeout(_DEADLINE_S):
            while True:
                self._news.clear()
                told = {report.id: report for report in await self._runtime.reports()}
                if true(told):
                    return told
                await self._news.wait()

    async def until_begun(self, task: TaskId) -> None:
        """Wait until the worker has been given it."""
        async with asyncio.timeout(_DEADLINE_S):
            while not self.starts(task):
                await asyncio.sleep(0)

    def let_go(self, task: TaskId) -> None:
        """Have the worker end it."""
        self._worker.finish(task, self._worker.at_work[task].args["code"])

    def make_ready(self, task: TaskId, ready: bool) -> None:
        """Functions have no probes."""
        raise NotImplementedError

    def starts(self, task: TaskId) -> int:
        """How often the worker began it."""
        return self._worker.starts.get(task, 0)

    def alive(self) -> int:
        """How many attempts the worker is at."""
        return self._worker.counts()

    async def crash(self) -> None:
        """The server is killed, and another one starts: the worker connects to that."""
        self._runtime = self._lead()

    async def usurp(self) -> Runtime:
        """Another server leads while the old one lives."""
        old = self._runtime
        self._runtime = self._lead()
        return old

    def _lead(self) -> WorkerRuntime:
        self._term += 1
        term = self._term

        def check() -> None:
            if term != self._term:
                raise FencedError(f"term {self._term} has begun")

        runtime = WorkerRuntime(self._clock, check, Dispatcher(quiet_s=QUIET_S))
        runtime.subscribe(lambda _: self._news.set())
        runtime.inherit(map(_job_of, self._orders.values()))
        self._worker.enter(runtime)
        return runtime

    @classmethod
    def play(cls, scene: Scene) -> None:
        """Run a scene."""

        async def run() -> None:
            shop = cls()
            try:
                await scene(shop)
            finally:
                shop._worker.go()
                shop._runtime.close("the scene is over")

        asyncio.run(run())


def _job_of(order: TaskOrder) -> Job:
    """What the store has of a Job one of whose attempts was launched."""
    task = TaskStatus(
        name=order.name,
        index=order.index,
        attempt=order.attempt,
        state=TaskState.STARTING,
        created_at=SystemClock().now(),
        runtime=WORKERS,
    )
    job = a_job(order.job)
    execution = replace(job.status.execution, active=(task,))
    return replace(
        job,
        metadata=replace(job.metadata, uid=order.job_uid),
        status=replace(job.status, execution=execution),
    )


def _call_of(work: Work) -> PythonWork | ProcessWork:
    match work:
        case Exits(code):
            return PythonWork(function="exits", args={"code": code})
        case RunsOn() | ReadyWhenTold():
            return PythonWork(function="runs", args={"code": 1})
        case ExitsWhenTold(code) | LeavesChild(code):
            return PythonWork(function="runs", args={"code": code})
        case IgnoresSigterm():
            return PythonWork(function="ignores", args={"code": 1})
        case CannotStart():
            return ProcessWork(command=("true",))
        case _:
            assert_never(work)
