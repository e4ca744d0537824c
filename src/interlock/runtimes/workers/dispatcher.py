"""The dispatcher: which worker does which attempt, under a lease, and whose word counts.

It knows no event loop and no clock: what happens is told to it with the moment, and what comes of
it is taken from it: reports in `take_news`, messages in the mail of each worker, and when to look
at the time again in `next_at`.

Why no result of a step is lost, and none counts twice:

- An attempt ends here once. From then on it is OVER and its report never changes; every word about
  an attempt counts only if the dispatcher gave that attempt to the connection that says it, or let
  that connection go on with it, and it is not OVER. All other words are refused, with why.
- The control plane records the end of an attempt by one compare-and-set, and makes the next attempt
  in the same write. So an attempt has one recorded end, whoever else still works at it.
- A worker keeps its result until it is told that it is recorded, and it is told so only when that
  is durable: when the control plane has the attempt forgotten, or launches an attempt of the same
  Job that does not name it among those that are still open. A launch comes after the write.
- Nothing here is durable. After a restart, or when another server leads, every attempt that a
  Job's status has as active is INHERITED: some worker may have it, be done with it, or never have
  heard of it. It is never handed out. A worker that says in its Hello that it has it goes on with
  it, or offers its result again, which then counts as if nothing had happened. When no worker has
  said so for the length of a lease, it ends as interrupted, and later words are refused. The
  control plane then makes an attempt with another number, so that nothing is ever handed out twice
  by one name.
- An order that the control plane repeats (`again`) may have been handed out by another server: if
  it is not known it is inherited too. Only an order that is given for the first time is handed out,
  because nobody else can have had it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import inf

import msgspec
from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.tasks import (
    PendingReason,
    ReportState,
    Returned,
    TaskId,
    TaskOrder,
    TaskReport,
    progress_of,
    returned_of,
)
from interlock.resources.work import PythonWork
from interlock.resources.work_types import WORKERS
from interlock.runtimes.workers.attempts import (
    At,
    Attempt,
    Counts,
    Phase,
    Worker,
    WorkerInfo,
    task_of,
)
from interlock.runtimes.workers.crews import Crews, Line, Need
from interlock.runtimes.workers.protocol import (
    MAX_FRAME,
    PROTOCOL,
    Call,
    Done,
    Drain,
    FromWorker,
    Hello,
    Outcome,
    Ref,
    Touch,
    Touched,
    Welcome,
    Wrote,
)

LEASE_S = 30.0
TOUCH_EVERY_S = 10.0
#: Workers come back within this when the connection broke: then nobody is told that none is there.
_TELL_AFTER_S = 2.0
#: That an attempt runs is told when it still does after this, on a server: most are done before.
QUIET_S = 0.02
#: So many attempts that are forgotten are known by their names: orders may be late by seconds.
_FORGOTTEN = 65_536
#: What a worker may say in words.
_MAX_WORDS = 1_000
_MAX_FUNCTIONS = 10_000
_MAX_QUEUES = 100
_MAX_CONCURRENCY = 1_000
_MAX_NAME = 200


class RefusedWorkerError(Exception):
    """A worker is not taken; the message says why."""


class Dispatcher:
    """Gives attempts to workers, and says what becomes of them."""

    def __init__(
        self,
        *,
        lease_s: float = LEASE_S,
        touch_every_s: float = TOUCH_EVERY_S,
        quiet_s: float = 0.0,
        counts: Counts | None = None,
    ) -> None:
        self._lease_s = lease_s
        self._quiet_s = quiet_s
        self._touch_every_s = touch_every_s
        self._attempts: dict[TaskId, Attempt] = {}
        self._of_job: dict[str, dict[TaskId, Attempt]] = {}
        #: The process that was given the last attempt of a Job.
        self._last: dict[str, str] = {}
        #: Whose result counted of attempts that are forgotten, the oldest first.
        self._forgotten: dict[TaskId, str] = {}
        self._workers: dict[str, Worker] = {}
        self._crews = Crews()
        self._arrivals = 0
        self._due: list[tuple[float, int, Attempt | Line]] = []
        #: Attempts that run and were not told of yet, and when they are; in that order.
        self._quiet: deque[tuple[float, Attempt]] = deque()
        self._began: float | None = None
        self._news: dict[TaskId, TaskReport] = {}
        self._dirty: dict[Worker, None] = {}
        self.counts = counts or Counts()

    # What the control plane asks

    def inherit(self, jobs: Iterable[Job], at: At) -> None:
        """Take over what other servers, or this one before its restart, may have handed out."""
        self._begin(at)
        for job in jobs:
            for task in job.status.execution.active:
                id = TaskId(job.metadata.uid, task.index, task.attempt)
                if task.runtime != WORKERS or id in self._attempts or id in self._forgotten:
                    continue
                seen = task.started_at is not None
                report = TaskReport(
                    job_uid=id.job_uid,
                    index=id.task,
                    attempt=id.attempt,
                    namespace=job.metadata.namespace,
                    job=job.metadata.name,
                    state=ReportState.RUNNING if seen else ReportState.ACCEPTED,
                    started_at=task.started_at,
                    message=task.message,
                    reason=None if seen else task.reason,
                    progress=task.progress,
                    job_version=job.status.admission.sequence,
                )
                self._inherit(id, report, at)

    def launch(self, order: TaskOrder, at: At) -> None:
        """Have an attempt made: by a worker that has room, or in its turn."""
        self._begin(at)
        if order.id in self._forgotten:
            return
        known, work = self._attempts.get(order.id), order.work
        is_again = isinstance(work, PythonWork) and work.again
        if known is not None and (known.phase is not Phase.INHERITED or is_again):
            return
        if is_again:
            self._inherit(order.id, _accepted(order), at)
            return
        if isinstance(work, PythonWork):
            self._note_recorded(order.job_uid, work.open_attempts)
        if known is not None:
            # It was seen in the Job's status before it came here.
            self._drop(known)
        attempt = self._add(order.id, Phase.WAITING, _accepted(order))
        if not isinstance(work, PythonWork):
            self._not_started(attempt, f"workers call functions, and run no {type(work).__name__}")
            return
        attempt.call = call = _call_of(order, work)
        attempt.need = (work.function, work.queue)
        attempt.size = len(msgspec.json.encode(call))
        if attempt.size > MAX_FRAME // 2:
            told = f"{work.function} would be told {attempt.size} bytes"
            self._not_started(attempt, f"{told}, and at most {MAX_FRAME // 2} can be sent")
            return
        self._place(attempt, at)

    def stop(self, task: TaskId, grace_s: float, at: At, *, namespace: str, job: str) -> None:
        """Have an attempt stopped: its worker is told, and has so long to end it."""
        self._begin(at)
        attempt = self._attempts.get(task)
        if attempt is None:
            if task not in self._forgotten:
                report = _report(task, namespace, job)
                self._not_started(self._add(task, Phase.WAITING, report), _STOPPED_BEFORE)
            return
        if attempt.phase is Phase.OVER:
            return
        if attempt.phase is Phase.WAITING:
            self._crews.stop_waiting(attempt)
            attempt.report = replace(attempt.report, stopped=True)
            self._not_started(attempt, _STOPPED_BEFORE)
            return
        stop_by = at.tick + max(0.0, grace_s)
        if stop_by < attempt.stop_by:
            attempt.stop_by = stop_by
            self._watch(attempt)
            self._cancel(attempt, at)
        if not attempt.report.stopped:
            self._tell(attempt, stopped=True)

    def forget(self, task: TaskId) -> None:
        """Drop what is known of an attempt that is over; its result is recorded."""
        attempt = self._attempts.get(task)
        if attempt is None or attempt.phase is not Phase.OVER:
            return
        self._drop(attempt)
        self._is_recorded(attempt)
        self._forgotten[task] = attempt.teller
        if len(self._forgotten) > _FORGOTTEN:
            del self._forgotten[next(iter(self._forgotten))]

    def reports(self) -> Sequence[TaskReport]:
        """What is known of every attempt."""
        return [attempt.report for attempt in self._attempts.values()]

    # What workers say

    def enter(self, hello: Hello, at: At) -> Worker:
        """Let a worker in. What it says it still has it goes on with, or is told that it may not.

        Raises:
            RefusedWorkerError: It cannot be taken.
        """
        self._begin(at)
        _check(hello)
        worker = Worker(hello, at.now)
        worker.mail.welcome = Welcome(lease_s=self._lease_s, touch_every_s=self._touch_every_s)
        self._dirty[worker] = None
        before = self._workers.get(hello.incarnation)
        self._workers[hello.incarnation] = worker
        for ref in hello.held:
            self._claim(worker, before, task_of(ref), at)
        worker.lost.update(dict.fromkeys(map(task_of, hello.lost)))
        if before is not None:
            self._close(before, "the same worker has come again")
            self._lose(before, "it came again without it", at)
        for line in self._crews.enter(worker):
            for attempt in line.waiting:
                if attempt.report.reason is not None:
                    self._tell(attempt, reason=None, message="")
        self._hand_out(worker, at)
        return worker

    def hear(self, worker: Worker, message: FromWorker, at: At) -> None:
        """Take in what a worker says. `Wrote` is not for the dispatcher."""
        if worker.closed is not None:
            return
        match message:
            case Done(items=items):
                for outcome in items:
                    self._done(worker, outcome, at)
                self._hand_out(worker, at)
            case Touch(items=items):
                for touched in items:
                    self._touched(worker, touched, at)
                if not message.partial:
                    self._still_lost(worker, items)
                self._hand_out(worker, at)
            case Drain():
                worker.is_draining = True
                self._go_from_crew(worker, at)
            case Hello():
                self._close(worker, "a worker says hello once")
                self.leave(worker, "it said hello twice", at)
            case Wrote():
                pass

    def leave(self, worker: Worker, why: str, at: At) -> None:
        """A connection is no more: what that worker had is cut off, and taken up at once."""
        if self._workers.get(worker.hello.incarnation) is worker:
            del self._workers[worker.hello.incarnation]
        self._dirty.pop(worker, None)
        worker.closed = worker.closed or why
        self._lose(worker, why, at)

    def has(self, worker: Worker, task: TaskId) -> bool:
        """Whether a worker has an attempt, and what it says of it counts."""
        attempt = self._attempts.get(task)
        return attempt is not None and attempt.worker is worker

    def need_of(self, task: TaskId) -> Need:
        """The function and the queue that a known attempt is of."""
        return self._attempts[task].need

    # Time

    def next_at(self) -> float | None:
        """When time alone makes a difference next."""
        while self._due and self._due[0][2].due_at == inf:
            heappop(self._due)
        while self._quiet and self._quiet[0][1].phase is not Phase.AT_WORK:
            self._quiet.popleft()
        moments = [queue[0][0] for queue in (self._due, self._quiet) if queue]
        return min(moments, default=None)

    def tick(self, at: At) -> None:
        """Do what is due.

        Whoever looks at the time much too late has slept itself, and cannot say that workers were
        silent meanwhile: what they said is still unread. Then leases begin anew.
        """
        if self._due and self._due[0][0] + self._touch_every_s < at.tick:
            for worker in self._workers.values():
                for attempt in worker.at_work.values():
                    attempt.lease_until = max(attempt.lease_until, at.tick + self._touch_every_s)
        while self._quiet and self._quiet[0][0] <= at.tick:
            attempt = self._quiet.popleft()[1]
            if attempt.phase is Phase.AT_WORK:
                self._news[attempt.id] = attempt.report
        while self._due and self._due[0][0] <= at.tick:
            _, _, due = heappop(self._due)
            if due.due_at > at.tick:
                self._watch(due)
            elif isinstance(due, Line):
                self._tell_unserved(due)
            else:
                self._expired(due, at)

    # What comes of it

    def take_news(self) -> Sequence[TaskReport]:
        """Reports that are new, one for each attempt."""
        news, self._news = list(self._news.values()), {}
        return news

    def take_dirty(self) -> Sequence[Worker]:
        """Workers that have mail, or are to be let go."""
        dirty, self._dirty = tuple(self._dirty), {}
        return dirty

    def close(self, why: str) -> None:
        """Say nothing more and have all workers go elsewhere: another server leads."""
        for worker in self._workers.values():
            self._close(worker, why)

    def dismiss(self, worker: Worker, why: str) -> None:
        """Have one worker go."""
        self._close(worker, why)

    @property
    def waiting(self) -> int:
        """How many orders wait for a worker."""
        return self._crews.waiting

    def workers(self) -> Sequence[WorkerInfo]:
        """Every connected worker."""
        return [
            WorkerInfo(
                name=worker.hello.worker,
                app=worker.hello.app,
                queues=worker.hello.queues,
                concurrency=worker.hello.concurrency,
                at_work=len(worker.at_work),
                since=worker.since,
                draining=worker.is_draining,
            )
            for worker in self._workers.values()
        ]

    # Handing out

    def _place(self, attempt: Attempt, at: At) -> None:
        """Give an order to a worker with room, or have it wait."""
        preferred = self._workers.get(self._last.get(attempt.id.job_uid, ""))
        worker = self._crews.free_for(attempt.need, preferred)
        if worker is not None:
            self._give(worker, attempt, at)
            return
        line = self._crews.wait(attempt)
        if line.tell_at <= at.tick:
            self._tell_unserved(line, (attempt,))
        else:
            self._tell(attempt)

    def _hand_out(self, worker: Worker, at: At) -> None:
        """Give a worker the oldest orders that wait for it, as far as it has room."""
        crew = worker.crew
        while crew is not None and worker.has_room:
            attempt = self._crews.next_for(crew)
            if attempt is None:
                return
            self._crews.stop_waiting(attempt)
            self._give(worker, attempt, at)

    def _give(self, worker: Worker, attempt: Attempt, at: At) -> None:
        assert attempt.call is not None, f"{attempt.id}: nobody said what is to be done"
        self._put_to_work(worker, attempt, at)
        worker.mail.calls[attempt.id] = (attempt.call, attempt.size)
        self._dirty[worker] = None
        self.counts.handed_out += 1

    def _put_to_work(self, worker: Worker, attempt: Attempt, at: At) -> None:
        attempt.phase = Phase.AT_WORK
        attempt.worker = worker
        attempt.lease_until = at.tick + self._lease_s
        worker.at_work[attempt.id] = attempt
        self._last[attempt.id.job_uid] = worker.hello.incarnation
        self._crews.room_changed(worker)
        self._watch(attempt)
        attempt.report = replace(
            attempt.report,
            state=ReportState.RUNNING,
            started_at=attempt.report.started_at or at.now,
            reason=None,
            message="",
        )
        if self._quiet_s and attempt.id not in self._news:
            self._quiet.append((at.tick + self._quiet_s, attempt))
        else:
            self._news[attempt.id] = attempt.report

    def _claim(self, worker: Worker, before: Worker | None, task: TaskId, at: At) -> None:
        """A worker says that it has an attempt since before its connection broke."""
        attempt = self._attempts.get(task)
        if attempt is None:
            if self._forgotten.get(task) == worker.hello.incarnation:
                worker.mail.recorded.append(Ref(*task))
            else:
                self._refuse_held(worker, task)
            return
        is_its_own = attempt.worker is not None and attempt.worker is before
        if attempt.phase is Phase.INHERITED or is_its_own:
            if before is not None:
                before.at_work.pop(task, None)
            self._put_to_work(worker, attempt, at)
            if attempt.stop_by < inf:
                self._cancel(attempt, at)
        elif attempt.phase is Phase.OVER and attempt.teller == worker.hello.incarnation:
            if attempt.is_recorded:
                worker.mail.recorded.append(attempt.ref)
        else:
            self._refuse_held(worker, task)

    def _refuse_held(self, worker: Worker, task: TaskId) -> None:
        """What it has does not count; it may be at work, and takes up room until that is known."""
        worker.lost[task] = None
        self._refuse(worker, task)

    def _inherit(self, task: TaskId, report: TaskReport, at: At) -> None:
        attempt = self._add(task, Phase.INHERITED, report)
        assert self._began is not None
        attempt.lease_until = max(self._began + self._lease_s, at.tick)
        self._watch(attempt)
        self._tell(attempt)

    # What ends

    def _done(self, worker: Worker, outcome: Outcome, at: At) -> None:
        task = task_of(outcome.ref)
        attempt = self._attempts.get(task)
        if attempt is None or attempt.worker is not worker:
            is_known = task in worker.lost
            worker.lost.pop(task, None)
            self._crews.room_changed(worker)
            own = attempt.teller if attempt is not None else self._forgotten.get(task, "")
            if own != worker.hello.incarnation and not is_known:
                self._refuse(worker, task)
            return
        attempt.teller = worker.hello.incarnation
        code, message = (1, outcome.error[:_MAX_WORDS]) if outcome.error else (0, "")
        returned: Returned | None = None
        if code == 0 and outcome.returned:
            try:
                returned = returned_of(outcome.returned.encode())
            except msgspec.DecodeError as error:
                code, message = 1, f"what {_function(attempt)} returned is no JSON: {error}"
        self._end(
            attempt,
            at,
            exit_code=code,
            message=message,
            returned=returned,
            elaboration=outcome.elaboration if code == 0 else None,
        )

    def _expired(self, attempt: Attempt, at: At) -> None:
        """Nobody said in time that an attempt goes on, or that it has stopped."""
        worker = attempt.worker
        if attempt.stop_by <= at.tick:
            why = "it did not end within its grace after it was told to stop"
        elif worker is None:
            why = f"no worker came back with it within {self._lease_s:g} s"
        else:
            why = f"worker {worker.hello.worker} was silent for {self._lease_s:g} s"
        if worker is not None:
            # Before its end is told: it leaves no room for anything else.
            worker.lost[attempt.id] = None
        self._cut(attempt, why, at)
        if worker is not None and worker.closed is None:
            self._refuse(worker, attempt.id)

    def _lose(self, worker: Worker, why: str, at: At) -> None:
        """Everything that a worker has is cut off."""
        self._go_from_crew(worker, at)
        for attempt in tuple(worker.at_work.values()):
            self._cut(attempt, f"worker {worker.hello.worker} was lost: {why}", at)
        worker.lost.clear()

    def _cut(self, attempt: Attempt, why: str, at: At) -> None:
        self.counts.cut_off += 1
        self._end(attempt, at, interrupted=True, message=why[:_MAX_WORDS])

    def _end(self, attempt: Attempt, at: At, **told: object) -> None:
        worker, attempt.worker = attempt.worker, None
        attempt.phase = Phase.OVER
        attempt.call = None
        if worker is not None:
            del worker.at_work[attempt.id]
            worker.mail.calls.pop(attempt.id, None)
            self._crews.room_changed(worker)
        ended = {"state": ReportState.ENDED, "ended_at": at.now, "reason": None, **told}
        self._tell(attempt, **ended)

    def _not_started(self, attempt: Attempt, why: str) -> None:
        attempt.phase = Phase.OVER
        attempt.call = None
        self._tell(attempt, state=ReportState.NOT_STARTED, reason=None, message=why)

    def _cancel(self, attempt: Attempt, at: At) -> None:
        if attempt.worker is not None:
            grace_s = max(0.0, attempt.stop_by - at.tick)
            attempt.worker.mail.cancelled[attempt.ref] = grace_s
            self._dirty[attempt.worker] = None

    # What is said of results

    def _note_recorded(self, job_uid: str, open: Iterable[tuple[int, int]]) -> None:
        """An attempt is launched: what is not open beside it was recorded before that."""
        others = self._of_job.get(job_uid)
        if not others:
            return
        still = set(open)
        for attempt in others.values():
            if attempt.teller and (attempt.id.task, attempt.id.attempt) not in still:
                self._is_recorded(attempt)

    def _is_recorded(self, attempt: Attempt) -> None:
        if attempt.is_recorded or not attempt.teller:
            return
        attempt.is_recorded = True
        worker = self._workers.get(attempt.teller)
        if worker is not None:
            worker.mail.recorded.append(attempt.ref)
            self._dirty[worker] = None

    def _refuse(self, worker: Worker, task: TaskId) -> None:
        self.counts.refused += 1
        worker.mail.refused.append((Ref(*task), self._why_not(task)))
        self._dirty[worker] = None

    def _why_not(self, task: TaskId) -> str:
        attempt = self._attempts.get(task)
        if attempt is None:
            return "no such attempt is open: it is recorded as over, or was never ordered"
        if attempt.phase is Phase.OVER:
            return (
                f"it is over: {attempt.report.message}" if attempt.report.message else "it is over"
            )
        if attempt.worker is not None:
            return f"worker {attempt.worker.hello.worker} has it"
        return "it was not given to this worker"

    def _touched(self, worker: Worker, touched: Touched, at: At) -> None:
        task = task_of(touched.ref)
        attempt = self._attempts.get(task)
        if attempt is None or attempt.worker is not worker:
            own = attempt.teller if attempt is not None else self._forgotten.get(task, "")
            if own != worker.hello.incarnation and task not in worker.lost:
                self._refuse(worker, task)
            return
        attempt.lease_until = at.tick + self._lease_s
        known = attempt.report.progress
        if touched.percent is not None or touched.text:
            percent = touched.percent
            if percent is None:
                percent = known.percent if known is not None else 0
            progress = progress_of(percent, touched.text)
            if progress != known:
                self._tell(attempt, progress=progress)

    def _still_lost(self, worker: Worker, items: Sequence[Touched]) -> None:
        """What a worker does not touch it does not do any more, whether that counts or not."""
        if worker.lost:
            touched = {task_of(item.ref) for item in items}
            worker.lost = {task: None for task in worker.lost if task in touched}
            self._crews.room_changed(worker)

    # Books

    def _begin(self, at: At) -> None:
        if self._began is None:
            self._began = at.tick

    def _add(self, task: TaskId, phase: Phase, report: TaskReport) -> Attempt:
        self._arrivals += 1
        attempt = Attempt(task, phase, report, self._arrivals)
        self._attempts[task] = attempt
        self._of_job.setdefault(task.job_uid, {})[task] = attempt
        return attempt

    def _drop(self, attempt: Attempt) -> None:
        attempt.phase = Phase.OVER
        del self._attempts[attempt.id]
        self._news.pop(attempt.id, None)
        others = self._of_job[attempt.id.job_uid]
        del others[attempt.id]
        if not others:
            del self._of_job[attempt.id.job_uid]
            self._last.pop(attempt.id.job_uid, None)

    def _tell(self, attempt: Attempt, **changes: object) -> None:
        attempt.report = replace(attempt.report, **changes)
        self._news[attempt.id] = attempt.report

    def _watch(self, due: Attempt | Line) -> None:
        if due.due_at < inf:
            self._arrivals += 1
            heappush(self._due, (due.due_at, self._arrivals, due))

    def _go_from_crew(self, worker: Worker, at: At) -> None:
        for line in self._crews.leave(worker, at.tick + _TELL_AFTER_S):
            self._watch(line)

    def _tell_unserved(self, line: Line, waiting: Iterable[Attempt] | None = None) -> None:
        """Say why orders wait that nobody can do."""
        function, queue = line.need
        told = f"no worker has loaded {function}"
        if queue:
            told += f" and serves queue {queue}"
        for attempt in tuple(line.waiting) if waiting is None else waiting:
            if attempt.report.message != told:
                self._tell(attempt, reason=PendingReason.OTHER, message=told)
        if line.tell_at < inf:
            # Whoever comes to wait from now on is told at once.
            line.tell_at = -inf

    def _close(self, worker: Worker, why: str) -> None:
        if worker.closed is None:
            worker.closed = why
        self._dirty[worker] = None
        self._crews.room_changed(worker)


_STOPPED_BEFORE = "it was stopped before any worker had it"


def _check(hello: Hello) -> None:
    flaw = ""
    if hello.protocol != PROTOCOL:
        flaw = f"protocol {hello.protocol} is spoken by the worker, {PROTOCOL} by this server"
    elif not 1 <= hello.concurrency <= _MAX_CONCURRENCY:
        flaw = f"concurrency: expected 1 to {_MAX_CONCURRENCY}, got {hello.concurrency}"
    elif len(hello.functions) > _MAX_FUNCTIONS:
        flaw = f"functions: expected at most {_MAX_FUNCTIONS}, got {len(hello.functions)}"
    elif len(hello.queues) > _MAX_QUEUES:
        flaw = f"queues: expected at most {_MAX_QUEUES}, got {len(hello.queues)}"
    for name in ("worker", "incarnation", "app"):
        length = len(getattr(hello, name))
        if not flaw and not 1 <= length <= _MAX_NAME:
            flaw = f"{name}: expected 1 to {_MAX_NAME} characters, got {length}"
    if flaw:
        raise RefusedWorkerError(flaw)


def _accepted(order: TaskOrder) -> TaskReport:
    return replace(_report(order.id, order.namespace, order.job), job_version=order.job_version)


def _report(task: TaskId, namespace: str, job: str) -> TaskReport:
    return TaskReport(
        job_uid=task.job_uid,
        index=task.task,
        attempt=task.attempt,
        namespace=namespace,
        job=job,
        state=ReportState.ACCEPTED,
    )


def _call_of(order: TaskOrder, work: PythonWork) -> Call:
    return Call(
        ref=Ref(*order.id),
        namespace=order.namespace,
        job=order.job,
        function=work.function,
        call=work.call,
        args=work.args,
        step=work.step,
        results=work.results,
        fences=work.fences,
        target=work.target,
        creator=work.creator,
    )


def _function(attempt: Attempt) -> str:
    return attempt.need[0] or "it"
