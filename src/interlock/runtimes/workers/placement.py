"""Placement: an order goes to a worker with room, or waits and says why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf

from msgspec.structs import replace

from interlock.resources.tasks import PendingReason, ReportState
from interlock.runtimes.workers.alarms import Alarms
from interlock.runtimes.workers.attempts import At, Attempt, Counts, Phase, Worker
from interlock.runtimes.workers.crews import Crews, Line
from interlock.runtimes.workers.ledger import Ledger

#: Workers come back within this when the connection broke: then nobody is told that none is there.
_TELL_AFTER_S = 2.0


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

    @property
    def waiting(self) -> int:
        """How many orders wait for a worker."""
        return self._crews.waiting

    def place(self, attempt: Attempt, at: At) -> None:
        """Give an order to a worker with room, or have it wait."""
        preferred = self._workers.get(self._ledger.last.get(attempt.id.job_uid, ""))
        worker = self._crews.free_for(attempt.need, preferred)
        if worker is not None:
            self.give(worker, attempt, at)
            return
        line = self._crews.wait(attempt)
        if line.tell_at <= at.tick:
            self.tell_unserved(line, (attempt,))
        else:
            self._ledger.tell(attempt)

    def enter(self, worker: Worker, at: At) -> None:
        """A worker takes orders from now on."""
        for line in self._crews.enter(worker):
            for attempt in line.waiting:
                if attempt.report.reason is not None:
                    self._ledger.tell(attempt, reason=None, message="")
        self.hand_out(worker, at)

    def hand_out(self, worker: Worker, at: At) -> None:
        """Give a worker the oldest orders that wait for it, as far as it has room."""
        crew = worker.crew
        while crew is not None and worker.has_room:
            attempt = self._crews.next_for(crew)
            if attempt is None:
                return
            self._crews.stop_waiting(attempt)
            self.give(worker, attempt, at)

    def give(self, worker: Worker, attempt: Attempt, at: At) -> None:
        """Have a worker told what is to be done, and count on it for that."""
        assert attempt.call is not None, f"{attempt.id}: nobody said what is to be done"
        self.put_to_work(worker, attempt, at)
        worker.mail.calls[attempt.id] = (attempt.call, attempt.size)
        self._post(worker)
        self._counts.handed_out += 1

    def put_to_work(self, worker: Worker, attempt: Attempt, at: At) -> None:
        """A worker has an attempt, and a lease on it."""
        attempt.phase = Phase.AT_WORK
        attempt.worker = worker
        attempt.lease_until = at.tick + self._lease_s
        worker.at_work[attempt.id] = attempt
        self._ledger.last[attempt.id.job_uid] = worker.hello.incarnation
        self._crews.room_changed(worker)
        self._alarms.watch(attempt)
        attempt.report = replace(
            attempt.report,
            state=ReportState.RUNNING,
            started_at=attempt.report.started_at or at.now,
            reason=None,
            message="",
        )
        if self._quiet_s and not self._ledger.is_news(attempt):
            self._alarms.tell_later(attempt, at.tick + self._quiet_s)
        else:
            self._ledger.tell(attempt)

    def room_changed(self, worker: Worker) -> None:
        """A worker has more room than before, or less."""
        self._crews.room_changed(worker)

    def stop_waiting(self, attempt: Attempt) -> None:
        """An order that waits is not to be given to anybody any more."""
        self._crews.stop_waiting(attempt)

    def leave(self, worker: Worker, at: At) -> None:
        """A worker takes nothing more."""
        for line in self._crews.leave(worker, at.tick + _TELL_AFTER_S):
            self._alarms.watch(line)

    def tell_unserved(self, line: Line, waiting: Iterable[Attempt] | None = None) -> None:
        """Say why orders wait that nobody can do."""
        function, queue = line.need
        told = f"no worker has loaded {function}"
        if queue:
            told += f" and serves queue {queue}"
        for attempt in tuple(line.waiting) if waiting is None else waiting:
            if attempt.report.message != told:
                self._ledger.tell(attempt, reason=PendingReason.OTHER, message=told)
        if line.tell_at < inf:
            # Whoever comes to wait from now on is told at once.
            line.tell_at = -inf
