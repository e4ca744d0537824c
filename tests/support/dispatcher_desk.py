"""A dispatcher with its time, its workers, and what it has told everybody."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.tasks import (
    ReportState,
    TaskId,
    TaskOrder,
    TaskReport,
    TaskState,
    TaskStatus,
)
from interlock.resources.work import PythonWork
from interlock.resources.work_types import WORKERS
from interlock.runtimes.workers.attempts import At, Worker, task_of
from interlock.runtimes.workers.dispatcher import Dispatcher
from interlock.runtimes.workers.protocol import (
    PROTOCOL,
    Call,
    Cancel,
    Done,
    Drain,
    FromServer,
    Hello,
    Orders,
    Outcome,
    Ref,
    Touch,
    Touched,
)
from interlock.testing.builders import T0, a_job

LEASE_S, TOUCH_S = 30.0, 10.0


class Desk:
    """A dispatcher, its time, and what it has told everybody."""

    def __init__(self, *, quiet_s: float = 0.0) -> None:
        self.dispatcher = Dispatcher(lease_s=LEASE_S, touch_every_s=TOUCH_S, quiet_s=quiet_s)
        self._at = At(T0, 1000.0)
        self.told: dict[TaskId, TaskReport] = {}
        #: What was ever told to wait, and what was recorded to have started.
        self.told_waiting: set[TaskId] = set()
        self.recorded_running: set[TaskId] = set()
        self._mail: dict[Worker, list[FromServer]] = {}

    def worker(self, name: str, *functions: str, **hello: Any) -> Worker:
        """Let a worker in."""
        said: dict[str, Any] = {"incarnation": name, "protocol": PROTOCOL, "app": "a:app"} | hello
        functions = functions or ("make",)
        worker = self.dispatcher.enter(Hello(worker=name, functions=functions, **said), self._at)
        self._collect()
        return worker

    def launch(self, job: str = "job", task: int = 0, attempt: int = 0, **work: Any) -> TaskId:
        """Order an attempt."""
        order = an_order(job, task, attempt, **work)
        self.dispatcher.launch(order, self._at)
        self._collect()
        return order.id

    def inherit(self, *jobs: Job) -> None:
        self.dispatcher.inherit(jobs, self._at)
        self._collect()

    def heard(self, job: Job) -> None:
        """Have the dispatcher told what is durable of a Job."""
        self.dispatcher.heard(job, self._at)
        self._collect()

    def stop(self, task: TaskId, grace_s: float = 5.0) -> None:
        self.dispatcher.stop(task, grace_s, self._at, namespace="default", job="job")
        self._collect()

    def forget(self, task: TaskId) -> None:
        self.dispatcher.forget(task)
        self._collect()

    def done(self, worker: Worker, task: TaskId, returned: str = "", error: str = "") -> None:
        outcome = Outcome(ref=Ref(*task), returned=returned, error=error)
        self.dispatcher.hear(worker, Done(items=(outcome,)), self._at)
        self._collect()

    def touch(
        self,
        worker: Worker,
        *tasks: TaskId,
        partial: bool = False,
        read: int | None = None,
        **more: Any,
    ) -> None:
        items = tuple(Touched(ref=Ref(*task), **more) for task in tasks)
        self.dispatcher.hear(worker, Touch(items=items, partial=partial, read=read), self._at)
        self._collect()

    def drain(self, worker: Worker) -> None:
        self.dispatcher.hear(worker, Drain(), self._at)
        self._collect()

    def leave(self, worker: Worker) -> None:
        self.dispatcher.leave(worker, "the connection broke", self._at)
        self._collect()

    def wait(self, seconds: float) -> None:
        """Let time pass, and ring whenever that was asked for."""
        until = self._at.tick + seconds
        while (rings := self.dispatcher.next_at()) is not None and rings <= until:
            self._move(max(rings, self._at.tick))
            self.dispatcher.tick(self._at)
        self._move(until)
        self._collect()

    def sleep(self, seconds: float) -> None:
        """Let time pass without looking at it once, as a machine that is suspended."""
        self._move(self._at.tick + seconds)
        self.dispatcher.tick(self._at)
        self._collect()

    def calls(self, worker: Worker) -> list[Call]:
        """What a worker was told to do so far."""
        return [c for m in self.all(worker) if isinstance(m, Orders) for c in m.calls]

    def has(self, worker: Worker) -> list[TaskId]:
        return [task_of(call.ref) for call in self.calls(worker)]

    def recorded(self, worker: Worker) -> list[TaskId]:
        told = [m for m in self.all(worker) if isinstance(m, Orders)]
        return [task_of(ref) for message in told for ref in message.recorded]

    def refused(self, worker: Worker) -> dict[TaskId, str]:
        told = [m for m in self.all(worker) if isinstance(m, Orders)]
        return {task_of(ref): why for message in told for ref, why in message.refused}

    def cancelled(self, worker: Worker) -> list[tuple[TaskId, float]]:
        told = [m for m in self.all(worker) if isinstance(m, Cancel)]
        return [(task_of(ref), message.grace_s) for message in told for ref in message.items]

    def last_message(self, worker: Worker) -> FromServer:
        return self.all(worker)[-1]

    def state(self, task: TaskId) -> ReportState:
        return self.told[task].state

    def all(self, worker: Worker) -> list[FromServer]:
        """Every message to a worker so far."""
        told = self._mail.setdefault(worker, [])
        told += worker.mail.take()
        return told

    def _move(self, tick: float) -> None:
        self._at = At(T0 + timedelta(seconds=tick - 1000.0), tick)

    def record(self, *tasks: TaskId) -> None:
        """Have the control plane record what was told last of these, and say so."""
        for task in tasks:
            report = self.told[task]
            if report.started_at is not None:
                self.recorded_running.add(task)
            status = TaskStatus(
                name=str(task),
                index=task.task,
                attempt=task.attempt,
                state=TaskState.RUNNING if report.started_at is not None else TaskState.STARTING,
                created_at=T0,
                started_at=report.started_at,
                reason=report.reason,
                runtime=WORKERS,
            )
            job = a_job(report.job)
            execution = replace(job.status.execution, active=(status,))
            job = replace(job, status=replace(job.status, execution=execution))
            self.heard(job)

    def _collect(self) -> None:
        for report in self.dispatcher.take_news():
            self.told[report.id] = report
            if report.reason is not None:
                self.told_waiting.add(report.id)
        for worker in self.dispatcher.take_dirty():
            self.all(worker)


def an_order(job: str, task: int, attempt: int, **work: Any) -> TaskOrder:
    return TaskOrder(
        job_uid=f"uid-default-{job}",
        index=task,
        attempt=attempt,
        name=f"{job}-{task}-{attempt}",
        namespace="default",
        job=job,
        runtime=WORKERS,
        work=PythonWork(**({"function": "make"} | work)),
    )
