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
- What has waited for a while (`placement.WAITS_AFTER_S`), or waits for somebody who can do it, is
  told to wait, and the status says so. Whoever it was launched at then tells a worker to do it only
  after the status says that it has started, and never says again that it waits. So no worker was
  ever told to do what a status has as waiting, and no server but the one that launched it can have
  one told: it needs a write on that very status first. After a restart the report of such an
  attempt says that it is over, and the control plane takes that for its end only where the status
  that this compare-and-set replaces still has it as waiting. Of two servers whose writes meet one
  comes to nothing: either the attempt has started, and is waited for as INHERITED, or it has ended
  and is never handed out, and another with a new number is, at once.
- An order that the control plane repeats (`again`) may have been handed out by another server: if
  it is not known it is inherited too. Only an order that is given for the first time is handed out,
  because nobody else can have had it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import msgspec
from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.tasks import (
    ReportState,
    Returned,
    TaskId,
    TaskOrder,
    TaskReport,
    progress_of,
    returned_of,
    waits_for_worker,
)
from interlock.resources.work import PythonWork
from interlock.resources.work_types import WORKERS
from interlock.runtimes.workers.acknowledgement import Acknowledgements
from interlock.runtimes.workers.admittance import check
from interlock.runtimes.workers.alarms import Alarms
from interlock.runtimes.workers.attempts import (
    At,
    Attempt,
    Counts,
    Phase,
    Worker,
    WorkerInfo,
    task_of,
)
from interlock.runtimes.workers.crews import Line, Need
from interlock.runtimes.workers.ledger import Ledger
from interlock.runtimes.workers.orders import accepted, accepted_as, call_of, inherited
from interlock.runtimes.workers.placement import Placement
from interlock.runtimes.workers.protocol import (
    MAX_FRAME,
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
#: That an attempt runs is told when it still does after this, on a server: most are done before.
QUIET_S = 0.02
#: What a worker may say in words.
_MAX_WORDS = 1_000


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
        self._touch_every_s = touch_every_s
        self._ledger = Ledger()
        self._workers: dict[str, Worker] = {}
        self._alarms = Alarms()
        self._began: float | None = None
        #: What waited at another server and is over, unless that has given it away after all.
        self._unsure: dict[str, list[Attempt]] = {}
        self._dirty: dict[Worker, None] = {}
        self.counts = counts or Counts()
        self._acks = Acknowledgements(self._ledger, self._workers, self.counts, self._post)
        self._placement = Placement(
            self._ledger,
            self._alarms,
            self._workers,
            self.counts,
            self._post,
            lease_s=lease_s,
            quiet_s=quiet_s,
        )

    # What the control plane asks

    def inherit(self, jobs: Iterable[Job], at: At) -> None:
        """Take over what other servers, or this one before its restart, may have handed out."""
        self._begin(at)
        for job in jobs:
            for task in job.status.execution.active:
                id = TaskId(job.metadata.uid, task.index, task.attempt)
                is_known = self._ledger.get(id) is not None or self._ledger.is_forgotten(id)
                if task.runtime == WORKERS and not is_known:
                    self._inherit(id, inherited(job, task), at)

    def awaits(self, job_uid: str) -> bool:
        """Whether it makes a difference what is durable of a Job."""
        return self._placement.has_promised(job_uid) or job_uid in self._unsure

    def heard(self, job: Job, at: At) -> None:
        """Take in what is durable of a Job by now."""
        self._placement.heard(job, at)
        uid = job.metadata.uid
        unsure = self._unsure.pop(uid, ())
        active = {TaskId(uid, one.index, one.attempt): one for one in job.status.execution.active}
        for attempt in unsure:
            task = active.get(attempt.id)
            if attempt.phase is not Phase.INHERITED:
                continue
            if task is None:
                self._end(attempt, at, interrupted=True)
            elif waits_for_worker(task):
                self._unsure.setdefault(uid, []).append(attempt)
            else:
                # The server before has given it to a worker after all, and had written so.
                attempt.lease_until = at.tick + self._lease_s
                self._alarms.watch(attempt)
                attempt.report = inherited(job, task)
                self._ledger.tell(attempt)

    def launch(self, order: TaskOrder, at: At) -> None:
        """Have an attempt made: by a worker that has room, or in its turn."""
        self._begin(at)
        if self._ledger.is_forgotten(order.id):
            return
        known, work = self._ledger.get(order.id), order.work
        is_again = isinstance(work, PythonWork) and work.again
        if known is not None and (known.phase is not Phase.INHERITED or is_again):
            return
        if is_again:
            self._inherit(order.id, accepted_as(order), at)
            return
        if isinstance(work, PythonWork):
            self._acks.note_recorded(order.job_uid, work.open_attempts)
        if known is not None:
            # It was seen in the Job's status before it came here.
            self._ledger.drop(known)
        attempt = self._ledger.add(order.id, Phase.WAITING, accepted_as(order))
        if not isinstance(work, PythonWork):
            self._not_started(attempt, f"workers call functions, and run no {type(work).__name__}")
            return
        attempt.call = call = call_of(order, work)
        attempt.need = (work.function, work.queue)
        attempt.is_alone = work.alone
        attempt.size = len(msgspec.json.encode(call))
        if attempt.size > MAX_FRAME // 2:
            told = f"{work.function} would be told {attempt.size} bytes"
            self._not_started(attempt, f"{told}, and at most {MAX_FRAME // 2} can be sent")
            return
        self._placement.place(attempt, at)

    def stop(self, task: TaskId, grace_s: float, at: At, *, namespace: str, job: str) -> None:
        """Have an attempt stopped: its worker is told, and has so long to end it."""
        self._begin(at)
        attempt = self._ledger.get(task)
        if attempt is None:
            if not self._ledger.is_forgotten(task):
                report = accepted(task, namespace, job)
                self._not_started(self._ledger.add(task, Phase.WAITING, report), _STOPPED_BEFORE)
            return
        if attempt.phase is Phase.OVER:
            return
        if attempt.phase is Phase.WAITING:
            self._placement.stop_waiting(attempt, at)
            attempt.report = replace(attempt.report, stopped=True)
            self._not_started(attempt, _STOPPED_BEFORE)
            return
        if attempt.phase is Phase.PROMISED:
            self._end(attempt, at, stopped=True, message=_STOPPED_BEFORE)
            return
        stop_by = at.tick + max(0.0, grace_s)
        if stop_by < attempt.stop_by:
            attempt.stop_by = stop_by
            self._alarms.watch(attempt)
            self._cancel(attempt, at)
        if not attempt.report.stopped:
            self._ledger.tell(attempt, stopped=True)

    def forget(self, task: TaskId) -> None:
        """Drop what is known of an attempt that is over; its result is recorded."""
        attempt = self._ledger.get(task)
        if attempt is None or attempt.phase is not Phase.OVER:
            return
        self._acks.confirm(attempt)
        self._ledger.forget(attempt)

    def reports(self) -> Sequence[TaskReport]:
        """What is known of every attempt."""
        return self._ledger.reports()

    # What workers say

    def enter(self, hello: Hello, at: At) -> Worker:
        """Let a worker in. What it says it still has it goes on with, or is told that it may not.

        Raises:
            RefusedWorkerError: It cannot be taken.
        """
        self._begin(at)
        check(hello)
        worker = Worker(hello, at.now)
        worker.mail.welcome = Welcome(lease_s=self._lease_s, touch_every_s=self._touch_every_s)
        self._post(worker)
        before = self._workers.get(hello.incarnation)
        self._workers[hello.incarnation] = worker
        for ref in hello.held:
            self._claim(worker, before, task_of(ref), at)
        worker.lost.update(dict.fromkeys(map(task_of, hello.lost), 0))
        if before is not None:
            self._close(before, "the same worker has come again")
            self._lose(before, "it came again without it", at)
        self._placement.enter(worker, at)
        return worker

    def hear(self, worker: Worker, message: FromWorker, at: At) -> None:
        """Take in what a worker says. `Wrote` is not for the dispatcher."""
        if worker.closed is not None:
            return
        match message:
            case Done(items=items):
                for outcome in items:
                    self._done(worker, outcome, at)
                self._placement.hand_out(worker, at)
            case Touch(items=items):
                for touched in items:
                    self._touched(worker, touched, at)
                if not message.partial:
                    self._still_lost(worker, message)
                self._placement.hand_out(worker, at)
            case Drain():
                worker.is_draining = True
                self._placement.leave(worker, at)
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
        attempt = self._ledger.get(task)
        if attempt is None or attempt.phase is not Phase.AT_WORK:
            return False
        return attempt.worker is worker

    def need_of(self, task: TaskId) -> Need:
        """The function and the queue that a known attempt is of."""
        attempt = self._ledger.get(task)
        assert attempt is not None, f"{task}: nobody has ordered it"
        return attempt.need

    def is_alone(self, task: TaskId) -> bool:
        """Whether a known attempt is given to a worker that has nothing else."""
        attempt = self._ledger.get(task)
        return attempt is not None and attempt.is_alone

    # Time

    def next_at(self) -> float | None:
        """When time alone makes a difference next."""
        return self._alarms.next_at()

    def tick(self, at: At) -> None:
        """Do what is due.

        Whoever looks at the time much too late has slept itself, and cannot say that workers were
        silent meanwhile: what they said is still unread. Then leases begin anew.
        """
        if self._alarms.is_late(at.tick, self._touch_every_s):
            for worker in self._workers.values():
                for attempt in worker.at_work.values():
                    attempt.lease_until = max(attempt.lease_until, at.tick + self._touch_every_s)
        for attempt in self._alarms.take_lasting(at.tick):
            self._ledger.tell(attempt)
        for attempt in self._alarms.take_waiting(at.tick):
            self._placement.tell_busy(attempt)
        for due in self._alarms.take_due(at.tick):
            if isinstance(due, Line):
                self._placement.tell_unserved(due)
            else:
                self._expired(due, at)

    # What comes of it

    def take_news(self) -> Sequence[TaskReport]:
        """Reports that are new, one for each attempt."""
        return self._ledger.take_news()

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
        return self._placement.waiting

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

    # Who has what

    def _claim(self, worker: Worker, before: Worker | None, task: TaskId, at: At) -> None:
        """A worker says that it has an attempt since before its connection broke."""
        attempt = self._ledger.get(task)
        if attempt is None:
            if self._ledger.teller_of(task) == worker.hello.incarnation:
                worker.mail.recorded.append(Ref(*task))
            else:
                self._acks.refuse_held(worker, task)
            return
        is_its_own = attempt.phase is Phase.AT_WORK and attempt.worker is before
        if attempt.phase is Phase.INHERITED or is_its_own:
            if before is not None:
                before.at_work.pop(task, None)
            self._placement.put_to_work(worker, attempt, at)
            if attempt.stop_by < inf:
                self._cancel(attempt, at)
        elif attempt.phase is Phase.OVER and attempt.teller == worker.hello.incarnation:
            if attempt.is_recorded:
                worker.mail.recorded.append(attempt.ref)
        else:
            self._acks.refuse_held(worker, task)

    def _inherit(self, task: TaskId, report: TaskReport, at: At) -> None:
        attempt = self._ledger.add(task, Phase.INHERITED, report)
        assert self._began is not None
        attempt.lease_until = max(self._began + self._lease_s, at.tick)
        self._alarms.watch(attempt)
        self._ledger.tell(attempt)
        if report.interrupted:
            self._unsure.setdefault(task.job_uid, []).append(attempt)

    # What ends

    def _done(self, worker: Worker, outcome: Outcome, at: At) -> None:
        task = task_of(outcome.ref)
        attempt = self._ledger.get(task)
        if attempt is None or not self.has(worker, task):
            is_known = task in worker.lost
            worker.lost.pop(task, None)
            self._placement.room_changed(worker)
            if self._ledger.teller_of(task) != worker.hello.incarnation and not is_known:
                self._acks.refuse(worker, task)
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
        # What no worker has come back with may have been beside anything.
        beside = worker is None or worker.busy > 1
        if attempt.stop_by <= at.tick:
            why = "it did not end within its grace after it was told to stop"
        elif worker is None:
            why = f"no worker came back with it within {self._lease_s:g} s"
        else:
            why = f"worker {worker.hello.worker} was silent for {self._lease_s:g} s"
        if worker is not None:
            # Before its end is told: it leaves no room for anything else.
            worker.lose(attempt.id)
        self._cut(attempt, why, at, beside_others=beside)
        if worker is not None and worker.closed is None:
            self._acks.refuse(worker, attempt.id)

    def _lose(self, worker: Worker, why: str, at: At) -> None:
        """Everything that a worker has is cut off."""
        self._placement.leave(worker, at)
        left = tuple(worker.at_work.values())
        beside = worker.busy > 1
        if beside:
            self._placement.lost(worker, left)
        for attempt in left:
            told = f"worker {worker.hello.worker} was lost: {why}"
            self._cut(attempt, told, at, beside_others=beside)
        worker.lost.clear()

    def _cut(self, attempt: Attempt, why: str, at: At, *, beside_others: bool) -> None:
        self.counts.cut_off += 1
        told = why[:_MAX_WORDS]
        self._end(attempt, at, interrupted=True, beside_others=beside_others, message=told)

    def _end(self, attempt: Attempt, at: At, **told: object) -> None:
        worker, attempt.worker = attempt.worker, None
        if attempt.phase is Phase.PROMISED:
            self._placement.break_promise(attempt)
        attempt.phase = Phase.OVER
        attempt.call = None
        if worker is not None:
            del worker.at_work[attempt.id]
            if worker.solo is attempt:
                worker.solo = None
            worker.mail.calls.pop(attempt.id, None)
            self._placement.room_changed(worker)
        ended = {"state": ReportState.ENDED, "ended_at": at.now, "reason": None, **told}
        self._ledger.tell(attempt, **ended)

    def _not_started(self, attempt: Attempt, why: str) -> None:
        attempt.phase = Phase.OVER
        attempt.call = None
        self._ledger.tell(attempt, state=ReportState.NOT_STARTED, reason=None, message=why)

    def _cancel(self, attempt: Attempt, at: At) -> None:
        if attempt.worker is not None:
            grace_s = max(0.0, attempt.stop_by - at.tick)
            attempt.worker.mail.cancelled[attempt.ref] = grace_s
            self._post(attempt.worker)

    def _touched(self, worker: Worker, touched: Touched, at: At) -> None:
        task = task_of(touched.ref)
        attempt = self._ledger.get(task)
        if attempt is None or attempt.worker is not worker:
            if self._ledger.teller_of(task) != worker.hello.incarnation and task not in worker.lost:
                self._acks.refuse(worker, task)
            return
        attempt.lease_until = at.tick + self._lease_s
        known = attempt.report.progress
        if touched.percent is not None or touched.text:
            percent = touched.percent
            if percent is None:
                percent = known.percent if known is not None else 0
            progress = progress_of(percent, touched.text)
            if progress != known:
                self._ledger.tell(attempt, progress=progress)

    def _still_lost(self, worker: Worker, touch: Touch) -> None:
        """What a worker does not touch it does not do any more, whether that counts or not.

        Unless it said so before it had read that it does not count: then it may not have read the
        order either.
        """
        if worker.lost:
            touched = {task_of(item.ref) for item in touch.items}
            read = inf if touch.read is None else touch.read
            worker.lost = {
                task: told for task, told in worker.lost.items() if task in touched or told > read
            }
            self._placement.room_changed(worker)

    # Books

    def _post(self, worker: Worker) -> None:
        self._dirty[worker] = None

    def _begin(self, at: At) -> None:
        if self._began is None:
            self._began = at.tick

    def _close(self, worker: Worker, why: str) -> None:
        if worker.closed is None:
            worker.closed = why
        self._post(worker)
        self._placement.room_changed(worker)


_STOPPED_BEFORE = "it was stopped before any worker had it"


def _function(attempt: Attempt) -> str:
    return attempt.need[0] or "it"
