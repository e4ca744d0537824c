"""Placement: an order goes to a worker with room, or waits and says why.

A Job that was given to a worker has its turn: for a while its next orders come before those of Jobs
that came later. So many short steps of one operation are done before the next one is begun, and one
with long steps is behind whoever waited meanwhile.

What has waited for a while is told to wait, and its Job's status says so. From then on it is only
promised to a worker that has room, and given to it once the status says that it has started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf

from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.tasks import PendingReason, ReportState, TaskId
from interlock.runtimes.workers.alarms import Alarms
from interlock.runtimes.workers.attempts import At, Attempt, Counts, Phase, Worker
from interlock.runtimes.workers.crews import Crews, Line
from interlock.runtimes.workers.ledger import Ledger
from interlock.runtimes.workers.solitude import Pardons, Solitude

#: Workers come back within this when the connection broke: then nobody is told that none is there.
_TELL_AFTER_S = 2.0
#: What has waited for so long although somebody can do it is told to wait.
WAITS_AFTER_S = 1.0
#: So long does a turn last: as long as nobody else is told to wait for it.
_TURN_S = WAITS_AFTER_S

_ALONE = "it was cut off beside others, and is run alone"


class Placement:
    """Gives orders to workers, the oldest first, and begins their leases."""

    def __init__(
        self,
        ledger: Ledger,
        alarms: Alarms,
        workers: Mapping[str, Worker],
        counts: Counts,
        post: Callable[[Worker], None],
        *,
        lease_s: float,
        quiet_s: float,
    ) -> None:
        self._ledger = ledger
        self._alarms = alarms
        self._workers = workers
        self._counts = counts
        #: Has the mail of a worker sent.
        self._post = post
        self._lease_s = lease_s
        self._quiet_s = quiet_s
        self._crews = Crews()
        self._solitude = Solitude(self._crews, lease_s)
        self._pardons = Pardons()
        #: What is promised and not given yet, by Job.
        self._promised: dict[str, dict[TaskId, Attempt]] = {}

    @property
    def waiting(self) -> int:
        """How many orders wait for a worker."""
        return self._crews.waiting + len(self._solitude)

    def place(self, attempt: Attempt, at: At) -> None:
        """Give an order to a worker with room, or have it wait."""
        attempt.is_alone = attempt.is_alone and not self._pardons.use(attempt.id)
        if attempt.is_alone:
            self._solitude.wait(attempt)
            self._ledger.tell(attempt)
            self._alarms.tell_waiting_later(attempt, at.tick + WAITS_AFTER_S)
            self._serve_suspects(at)
            return
        preferred = self._workers.get(self._ledger.last.get(attempt.id.job_uid, ""))
        worker = self._crews.free_for(attempt.need, preferred)
        if worker is not None:
            self.assign(worker, attempt, at)
            return
        self._ledger.keep_turn(attempt, at.tick)
        line = self._crews.wait(attempt)
        if line.tell_at <= at.tick:
            self.tell_unserved(line, (attempt,))
        else:
            self._alarms.tell_waiting_later(attempt, at.tick + WAITS_AFTER_S)
            self._ledger.tell(attempt)

    def enter(self, worker: Worker, at: At) -> None:
        """A worker takes orders from now on."""
        served = self._crews.enter(worker)
        self._pardon(worker, at)
        self.hand_out(worker, at)
        for line in served:
            for attempt in line.waiting:
                if attempt.told_waiting:
                    self.tell_busy(attempt)
                else:
                    self._alarms.tell_waiting_later(attempt, at.tick + WAITS_AFTER_S)

    def hand_out(self, worker: Worker, at: At) -> None:
        """Give a worker the oldest orders that wait for it, as far as it has room."""
        if self._solitude:
            self._serve_suspects(at)
        self._fill(worker, at)

    def _fill(self, worker: Worker, at: At) -> None:
        crew = worker.crew
        while crew is not None and worker.has_room:
            attempt = self._crews.next_for(crew)
            if attempt is None:
                return
            self._crews.stop_waiting(attempt)
            self.assign(worker, attempt, at)

    def _serve_suspects(self, at: At) -> None:
        """Give suspects to workers that have nothing to do, before anybody else."""
        for attempt in self._solitude:
            worker = self._solitude.idle_for(attempt)
            if worker is None:
                self._solitude.keep_one_free(attempt, at.tick)
                continue
            freed = self._solitude.leave(attempt)
            self.assign(worker, attempt, at)
            for other in freed:
                self._fill(other, at)

    def _pardon(self, worker: Worker, at: At) -> None:
        """A process that comes again did not die: nobody who was cut off there has killed it."""
        steps = set(self._pardons.came_again(worker.hello.incarnation))
        for attempt in self._solitude if steps else ():
            if (attempt.id.job_uid, attempt.id.task) in steps:
                self.stop_waiting(attempt, at)
                self.place(attempt, at)

    def lost(self, worker: Worker, attempts: Iterable[Attempt]) -> None:
        """These are cut off because a process is gone, perhaps for good."""
        self._pardons.lost(worker.hello.incarnation, [attempt.id for attempt in attempts])

    def assign(self, worker: Worker, attempt: Attempt, at: At) -> None:
        """Give an order to a worker, or promise it until its status does not say that it waits."""
        if not attempt.told_waiting:
            self.give(worker, attempt, at)
            return
        attempt.phase = Phase.PROMISED
        self._promised.setdefault(attempt.id.job_uid, {})[attempt.id] = attempt
        self._hold_place(worker, attempt, at)
        self._ledger.tell(attempt)

    def heard(self, job: Job, at: At) -> None:
        """Give what was promised, and is written down to have started by now."""
        promised = self._promised.get(job.metadata.uid)
        if not promised:
            return
        for task in job.status.execution.active:
            attempt = promised.get(TaskId(job.metadata.uid, task.index, task.attempt))
            if attempt is not None and task.started_at is not None:
                worker = attempt.worker
                assert worker is not None, f"{attempt.id}: promised to nobody"
                self.break_promise(attempt)
                self.give(worker, attempt, at)

    def has_promised(self, job_uid: str) -> bool:
        """Whether something of a Job is promised to a worker."""
        return job_uid in self._promised

    def break_promise(self, attempt: Attempt) -> None:
        """An attempt is not promised any more."""
        uid = attempt.id.job_uid
        promised = self._promised[uid]
        del promised[attempt.id]
        if not promised:
            del self._promised[uid]

    def give(self, worker: Worker, attempt: Attempt, at: At) -> None:
        """Have a worker told what is to be done, and count on it for that."""
        assert attempt.call is not None, f"{attempt.id}: nobody said what is to be done"
        self.put_to_work(worker, attempt, at)
        worker.mail.calls[attempt.id] = (attempt.call, attempt.size)
        self._post(worker)
        self._counts.handed_out += 1

    def put_to_work(self, worker: Worker, attempt: Attempt, at: At) -> None:
        """A worker has an attempt, and a lease on it."""
        was_promised = attempt.phase is Phase.PROMISED
        attempt.phase = Phase.AT_WORK
        attempt.lease_until = at.tick + self._lease_s
        self._alarms.watch(attempt)
        if was_promised:
            return
        self._hold_place(worker, attempt, at)
        if self._quiet_s and not self._ledger.is_news(attempt):
            self._alarms.tell_later(attempt, at.tick + self._quiet_s)
        else:
            self._ledger.tell(attempt)

    def _hold_place(self, worker: Worker, attempt: Attempt, at: At) -> None:
        attempt.worker = worker
        if attempt.is_alone:
            worker.solo = attempt
        worker.at_work[attempt.id] = attempt
        self._ledger.last[attempt.id.job_uid] = worker.hello.incarnation
        self._ledger.begin_turn(attempt, at.tick, _TURN_S)
        self._crews.room_changed(worker)
        attempt.report = replace(
            attempt.report,
            state=ReportState.RUNNING,
            started_at=attempt.report.started_at or at.now,
            reason=None,
            message="",
            interrupted=False,
        )

    def room_changed(self, worker: Worker) -> None:
        """A worker has more room than before, or less."""
        self._crews.room_changed(worker)

    def stop_waiting(self, attempt: Attempt, at: At) -> None:
        """An order that waits is not to be given to anybody any more."""
        if attempt not in self._solitude:
            self._crews.stop_waiting(attempt)
            return
        for worker in self._solitude.leave(attempt):
            self._fill(worker, at)

    def leave(self, worker: Worker, at: At) -> None:
        """A worker takes nothing more."""
        worker.kept_for = None
        for line in self._crews.leave(worker, at.tick + _TELL_AFTER_S):
            self._alarms.watch(line)
        if self._solitude:
            self._serve_suspects(at)

    def tell_unserved(self, line: Line, waiting: Iterable[Attempt] | None = None) -> None:
        """Say why orders wait that nobody can do."""
        function, queue = line.need
        told = f"no worker has loaded {function}"
        if queue:
            told += f" and serves queue {queue}"
        for attempt in tuple(line.waiting) if waiting is None else waiting:
            if attempt.report.message != told:
                self._tell_waiting(attempt, PendingReason.NO_WORKER, told)
        if line.tell_at < inf:
            # Whoever comes to wait from now on is told at once.
            line.tell_at = -inf

    def tell_busy(self, attempt: Attempt) -> None:
        """Say that an order waits although somebody can do it, if that is so."""
        if not self._crews.can_do(attempt.need):
            return
        told = f"every worker that has loaded {attempt.need[0]} is busy"
        if attempt.is_alone:
            told = f"no worker that has loaded {attempt.need[0]} has nothing else to do: {_ALONE}"
        self._tell_waiting(attempt, PendingReason.WORKERS_BUSY, told)

    def _tell_waiting(self, attempt: Attempt, reason: PendingReason, told: str) -> None:
        attempt.told_waiting = True
        self._ledger.tell(attempt, reason=reason, message=told)
