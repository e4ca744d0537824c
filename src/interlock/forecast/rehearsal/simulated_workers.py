"""Simulated workers: what Python steps are done by in a rehearsal, one thing at a time each.

A worker that dies is there again after a second, and what it did is cut off at once. One that hangs
is given up once its lease has run out; what it says when it wakes does not count any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime
from fnmatch import fnmatchcase

from msgspec.structs import replace

from interlock.forecast.rehearsal.elaborating import MISSING, elaboration_of
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.forecast.rehearsal.stage import Stage
from interlock.forecast.rehearsal.work import Doing, WorkModel, attempt_of
from interlock.resources.metadata import Key
from interlock.resources.tasks import ReportState, TaskId, TaskOrder, TaskReport
from interlock.resources.work import PythonCall, PythonWork

#: After so long in silence a worker is given up, and what it did counts as cut off.
LEASE_S = 30.0
#: A worker that died is there again after so long.
BACK_S = 1.0

#: Writes a line into the history: whom it is about, the event, its reason, and its detail.
Note = Callable[[Key, str, str, str], None]


class Worker:
    """One worker: what it does, and whether it is there at all."""

    __slots__ = ("dead", "does", "key", "silent")

    def __init__(self, number: int) -> None:
        self.key = Key("Worker", "", str(number))
        self.does: TaskId | None = None
        self.dead = False
        #: It hangs: it takes nothing, says nothing and hears nothing.
        self.silent = False

    @property
    def is_free(self) -> bool:
        """Whether it takes something now."""
        return self.does is None and not self.dead and not self.silent


class Workers(Stage):
    """All workers, and what waits for one of them."""

    def __init__(
        self, loop: SimLoop, origin: datetime, work: WorkModel, count: int | None, note: Note
    ) -> None:
        """Begin with so many workers; with None there are as many as are needed."""
        super().__init__(loop, origin, work)
        self._workers = [Worker(number) for number in range(1, (count or 0) + 1)]
        self._is_unlimited = count is None
        self._line: deque[TaskOrder] = deque()
        self._tell_line = note
        self.ended.append(self._freed)

    # What happens to workers

    def kill(self, job: str) -> bool:
        """Have a worker die: one that works for a Job that a pattern names; with * any other too.

        False when there is none.
        """
        worker = self._meant(job)
        if worker is not None:
            self._die_with(worker, "killWorker")
        return worker is not None

    def hang(self, job: str, seconds: float) -> bool:
        """Have a worker do nothing for a while; False when there is none."""
        worker = self._meant(job)
        if worker is None:
            return False
        worker.silent = True
        self._tell_line(
            worker.key, "Silent", "hangWorker", f"for {seconds:g} s {self._at(worker)}".rstrip()
        )
        life = self.lives.get(worker.does) if worker.does is not None else None
        if life is not None and life.ending is not None:
            left = life.ending.when() - self._loop.time()
            life.ending.cancel()
            life.ending = self._later(seconds + left, self._exit, life.order.id)
            if seconds > LEASE_S:
                self._later(LEASE_S, self._give_up, worker, life.order.id)
        self._later(seconds, self._wake, worker)
        return True

    def _meant(self, job: str) -> Worker | None:
        """The first worker that works for a Job; where any will do, else the first there is."""
        here = [worker for worker in self._workers if not worker.dead and not worker.silent]
        for worker in here:
            if worker.does is not None and fnmatchcase(self.lives[worker.does].order.job, job):
                return worker
        return here[0] if here and job == "*" else None

    def _die_with(self, worker: Worker, why: str) -> None:
        self._tell_line(worker.key, "Died", why, self._at(worker))
        worker.dead, task = True, worker.does
        if task is not None:
            self._cut_off(task, "its worker died")
            self._end_life(task, None, None)
        self._later(BACK_S, self._come_back, worker)

    def _come_back(self, worker: Worker) -> None:
        worker.dead = False
        self._tell_line(worker.key, "Back", "", "")
        self._hand_out()

    def _wake(self, worker: Worker) -> None:
        worker.silent = False
        self._tell_line(worker.key, "Awake", "", self._at(worker))
        if worker.does is not None:
            self._hear(worker.does)
        self._hand_out()

    def _hear(self, task: TaskId) -> None:
        """Have a worker learn what it was told while it hung: that it counts no more, or a stop."""
        record, life = self.records.get(task), self.lives[task]
        counts = record is not None and record.state is ReportState.RUNNING
        if not counts:
            self._exit(task)
        elif record is not None and record.stopped and not life.behaviour.deaf:
            life.code = None
            self._exit(task)

    def _give_up(self, worker: Worker, task: TaskId) -> None:
        record = self.records.get(task)
        if worker.does == task and record is not None and record.state is ReportState.RUNNING:
            self._tell_line(worker.key, "LeaseExpired", "", self._at(worker))
            self._cut_off(task, f"its worker was silent for {LEASE_S:g} s")

    def _cut_off(self, task: TaskId, why: str) -> None:
        record = self.records.get(task)
        if record is None or record.state is not ReportState.RUNNING:
            return
        state, now = ReportState.ENDED, self.now()
        self._record(replace(record, state=state, ended_at=now, interrupted=True, message=why))

    # What they do

    def _start(self, order: TaskOrder) -> None:
        """Have an attempt wait until a worker is free."""
        self._line.append(order)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give what waits to whoever is free, in the order in which it came."""
        while self._line and (worker := self._free()) is not None:
            order = self._line.popleft()
            record = self.records.get(order.id)
            if record is None or record.state is not ReportState.ACCEPTED:
                continue
            self._give(worker, order, record)

    def _free(self) -> Worker | None:
        free = next((worker for worker in self._workers if worker.is_free), None)
        return self._another() if free is None and self._is_unlimited else free

    def _another(self) -> Worker:
        self._workers.append(Worker(len(self._workers) + 1))
        return self._workers[-1]

    def _give(self, worker: Worker, order: TaskOrder, record: TaskReport) -> None:
        doing = self._behaviour_of(order)
        life = Life(order, doing, self._loop.now_us)
        worker.does = order.id
        self.lives[order.id] = life
        life.ending = self._later(doing.seconds, self._exit, order.id)
        self._record(replace(record, state=ReportState.RUNNING, started_at=self.now()))

    def _run_on(self, order: TaskOrder, report: TaskReport) -> None:
        """Go on with what an earlier life left: whoever was at it then is there."""
        worker = self._free() or self._another()
        worker.does = order.id
        super()._run_on(order, report)

    def _exit(self, task: TaskId) -> None:
        worker, life, record = self._worker_of(task), self.lives.get(task), self.records.get(task)
        if life is None or worker is None:
            return
        if record is None or record.state is not ReportState.RUNNING:
            self._tell_line(worker.key, "Refused", "", self._at(worker))
        doing = life.behaviour
        kills = isinstance(doing, Doing) and doing.kills_worker
        if kills and record is not None and not record.stopped:
            self._die_with(worker, "killsWorker")
        else:
            super()._exit(task)

    def _die(self, task: TaskId, signal: int) -> None:  # noqa: ARG002 (there are none here)
        """End what was told to stop; what does not in its grace period counts as cut off."""
        life, worker = self.lives.get(task), self._worker_of(task)
        if life is None or worker is None or life.stop_by_us is None:
            return
        is_late = self._loop.now_us >= life.stop_by_us
        if worker.silent or (is_late and (life.behaviour.deaf or life.behaviour.slow)):
            if is_late:
                self._cut_off(task, "it did not stop in its grace period")
            return
        life.code = None
        self._exit(task)

    def _end_of(self, record: TaskReport, life: Life) -> TaskReport:
        ended = super()._end_of(record, life)
        if not _elaborates(life.order) or ended.exit_code != 0:
            return ended
        rule = self._work.rule_of(life.order)
        made = elaboration_of(rule.result) if rule is not None else None
        if made is None:
            return replace(ended, exit_code=1, message=MISSING, returned=None)
        return replace(ended, elaboration=made, returned=None)

    def _freed(self, life: Life) -> None:
        worker = self._worker_of(life.order.id)
        if worker is not None:
            worker.does = None
        self._later(0.0, self._hand_out)

    def _worker_of(self, task: TaskId) -> Worker | None:
        return next((worker for worker in self._workers if worker.does == task), None)

    def _at(self, worker: Worker) -> str:
        """What a worker is at."""
        life = self.lives.get(worker.does) if worker.does is not None else None
        if life is None:
            return ""
        attempt = attempt_of(life.order)
        what = f"undo of {attempt.step}" if attempt.undo else attempt.step
        return f"at {attempt.job}, {what}"


def _elaborates(order: TaskOrder) -> bool:
    work = order.work
    return isinstance(work, PythonWork) and work.call is PythonCall.ELABORATE
