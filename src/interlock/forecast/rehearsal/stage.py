"""Where the work of a rehearsal happens: a simulated machine that does what it is told at once.

What finds no room on it depends on what it is. A process of a machine runs, and gets nowhere: it is
not ready, and its work begins once it has room. A pod is not started before a node has room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from interlock.control.runtime import Listener, TaskStop
from interlock.execution.operations import step_spec
from interlock.forecast.rehearsal.simulated_capacity import Capacity, Needs
from interlock.forecast.rehearsal.simulated_loop import SimLoop, SimProcess
from interlock.forecast.rehearsal.simulated_machine import SIGKILL, Behaviour, Life, Machine
from interlock.forecast.rehearsal.work import STEP, Doing, WorkModel
from interlock.resources.job import Job
from interlock.resources.tasks import (
    ReportState,
    TaskId,
    TaskOrder,
    TaskReport,
    TaskState,
    TaskStatus,
    returned_of,
)
from interlock.resources.work import PodWork, ProcessWork


class _Nowhere:
    """What the machine notes for those who look for bugs is not kept."""

    def note(self, who: str, what: str, *about: str) -> None:
        """Forget it."""


class Grounds(Struct, frozen=True):
    """Where tasks find room."""

    capacity: Capacity
    #: What a task takes.
    needs: Callable[[TaskOrder], Needs]
    #: Whether what has no room is not even started.
    waits_outside: bool


class Stage(Machine):
    """A machine without luck, on which attempts do what the work model says."""

    def __init__(
        self, loop: SimLoop, origin: datetime, work: WorkModel, grounds: Grounds | None = None
    ) -> None:
        super().__init__(loop, Random(0), _Nowhere(), origin)
        self._work = work
        self._grounds = grounds

    def resume(self, job: Job) -> None:
        """Have the attempts run that a Job left by an earlier life says are running here."""
        for task in job.status.execution.active:
            if task.runtime:
                continue  # Others have it.
            if task.state in (TaskState.STARTING, TaskState.ENDED):
                continue  # One that was not known to run is launched again by the room itself.
            order = _order_of(job, task)
            self._orders[order.id] = order
            report = replace(
                _known(job, task), state=ReportState.RUNNING, started_at=task.started_at
            )
            if task.state is TaskState.UNKNOWN:
                self._record(replace(report, state=ReportState.UNKNOWN, message=task.message))
            else:
                self._run_on(order, report)

    def end(self, job: str, task: int | None, code: int) -> list[TaskId]:
        """Have running attempts of the Jobs that a pattern names end by themselves now."""
        found = self._running(job, task)
        for one in found:
            self.lives[one].code = code
            self.finish(one)
        return found

    def turn_each(self, job: str, task: int | None, *, ready: bool) -> list[TaskId]:
        """Have the probes of running attempts say that they are ready, or are not."""
        running = self._running(job, task)
        # What has no room is not ready, whatever is said of it.
        grounds = self._grounds
        found = [one for one in running if grounds is None or not grounds.capacity.waits(one)]
        for one in found:
            self.turn(one, ready)
        return found

    def lose(self, job: str, task: int | None) -> list[TaskId]:
        """Have nobody know any more what becomes of running attempts, which go on unseen."""
        found = self._running(job, task)
        for one in found:
            record = self.records[one]
            self._record(replace(record, state=ReportState.UNKNOWN, message="it was lost sight of"))
        return found

    def _running(self, job: str, task: int | None) -> list[TaskId]:
        return [
            one
            for one, life in self.lives.items()
            if fnmatchcase(life.order.job, job)
            and task in (None, one.task)
            and self.records[one].state is ReportState.RUNNING
        ]

    # Room

    def _accept(self, accepted: TaskReport) -> None:
        grounds, order = self._grounds, self._orders[accepted.id]
        if grounds is None or not grounds.waits_outside:
            super()._accept(accepted)
        elif grounds.capacity.take(order.id, grounds.needs(order)):
            self._place(accepted)
        else:
            self._record(replace(accepted, message="no node has room for it"))

    def _place(self, accepted: TaskReport) -> None:
        """Have an attempt be started on the node that has room for it."""
        if isinstance(self._orders[accepted.id].work, PodWork):
            accepted = replace(accepted, placed_at=self.now())
        super()._accept(replace(accepted, message=""))

    def _at_work(self, life: Life, runs: TaskReport) -> TaskReport:
        grounds, order = self._grounds, life.order
        if grounds is None or grounds.waits_outside:
            return super()._at_work(life, runs)
        if grounds.capacity.take(order.id, grounds.needs(order)):
            return super()._at_work(life, runs)
        return replace(runs, ready=False, ready_at=self.now())

    def _end_life(self, task: TaskId, code: int | None, signal: int | None) -> None:
        super()._end_life(task, code, signal)
        self._vacate(task)

    def _never(self, record: TaskReport) -> None:
        super()._never(record)
        self._vacate(record.id)

    def _vacate(self, task: TaskId) -> None:
        """Have a task hold no room any more, and those begin that find some now."""
        if self._grounds is None:
            return
        self._grounds.capacity.give_back(task)
        for other in self._grounds.capacity.place_more():
            self._begin(other)

    def _begin(self, task: TaskId) -> None:
        """Have a task do its work that waited for room."""
        life, record = self.lives.get(task), self.records[task]
        if life is None:
            self._place(record)
            return
        began = super()._at_work(life, replace(record, ready=None, ready_at=None))
        if began.ready is None:
            began = replace(began, ready=True, ready_at=self.now())
        self._record(began)

    def _run_on(self, order: TaskOrder, report: TaskReport) -> None:
        doing = self._work.of(order)
        ran_s = (self.now() - (report.started_at or self.now())).total_seconds()
        life = Life(order, doing, self._loop.now_us)
        self.lives[order.id] = life
        if self._grounds is not None:
            capacity, needs = self._grounds.capacity, self._grounds.needs(order)
            if not capacity.take(order.id, needs):
                capacity.give_back(order.id)  # It runs all the same, as it did before.
        life.ending = self._later(max(0.0, doing.seconds - ran_s), self._exit, order.id)
        self._record(report)

    def _delay_of(self, order: TaskOrder) -> float:
        return self._work.of(order).ready_s

    def _behaviour_of(self, order: TaskOrder) -> Behaviour:
        return self._work.of(order)

    def _end_of(self, record: TaskReport, life: Life) -> TaskReport:
        ended = super()._end_of(record, life)
        doing = life.behaviour
        if not isinstance(doing, Doing) or ended.exit_code is None:
            return ended
        if ended.exit_code != 0:
            return replace(ended, message=doing.words)
        return replace(ended, returned=returned_of(doing.returns)) if doing.returns else ended

    def _die(self, task: TaskId, signal: int) -> None:
        """End what was told to end. Nothing outlives a SIGKILL here."""
        life = self.lives.get(task)
        if life is None or life.signal == SIGKILL:
            return
        if life.stop_by_us is not None and self._loop.now_us >= life.stop_by_us:
            signal = SIGKILL
        life.code, life.signal = None, signal
        self._exit(task)


class StageRuntime:
    """The stage as one control plane sees it: every call is carried out at once."""

    groups_orders = True

    def __init__(self, stage: Stage, loop: SimLoop, process: SimProcess) -> None:
        self._stage = stage
        self._loop = loop
        self._process = process
        self._tokens: list[object] = []

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Start attempts."""
        self._stage.launch(orders)

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Stop attempts."""
        self._stage.stop(stops)

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Drop what is known of attempts that are over."""
        self._stage.forget(tasks)

    async def reports(self) -> Sequence[TaskReport]:
        """All that is known."""
        return self._stage.reports()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear of what happens, in the process that listens."""
        token = object()
        self._tokens.append(token)
        self._stage.listeners[token] = lambda reports: self._tell(listener, reports)
        return lambda: self._stage.listeners.pop(token, None) and None

    def disconnect(self) -> None:
        """The process is gone: it is told nothing more."""
        for token in self._tokens:
            self._stage.listeners.pop(token, None)

    def _tell(self, listener: Listener, reports: Sequence[TaskReport]) -> None:
        self._loop.call_soon(listener, reports, context=self._process.context.copy())


#: What a scenario's work does is told by its rules, never by a command.
_ANY_WORK = ProcessWork(command=())


def _order_of(job: Job, task: TaskStatus) -> TaskOrder:
    metadata, step = job.metadata, step_spec(job, task.index)
    return TaskOrder(
        job_uid=metadata.uid,
        index=task.index,
        attempt=task.attempt,
        name=task.name,
        namespace=metadata.namespace,
        job=metadata.name,
        work=_ANY_WORK,
        env={STEP: step.name} if step is not None else {},
    )


def _known(job: Job, task: TaskStatus) -> TaskReport:
    return TaskReport(
        job_uid=job.metadata.uid,
        index=task.index,
        attempt=task.attempt,
        namespace=job.metadata.namespace,
        job=job.metadata.name,
        state=ReportState.RUNNING,
    )
