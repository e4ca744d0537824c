"""Acknowledgement: which results are durable, so that whoever told them may forget them.

And which words do not count, with why: nothing of these will be recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from interlock.resources.tasks import TaskId
from interlock.runtimes.workers.attempts import Attempt, Counts, Phase, Worker
from interlock.runtimes.workers.ledger import Ledger
from interlock.runtimes.workers.protocol import Ref


class Acknowledgements:
    """Tells workers what became of what they said."""

    def __init__(
        self,
        ledger: Ledger,
        workers: Mapping[str, Worker],
        counts: Counts,
        post: Callable[[Worker], None],
    ) -> None:
        self._ledger = ledger
        self._workers = workers
        self._counts = counts
        #: Has the mail of a worker sent.
        self._post = post

    def note_recorded(self, job_uid: str, open: Iterable[tuple[int, int]]) -> None:
        """An attempt is launched: what is not open beside it was recorded before that."""
        still = set(open)
        for attempt in self._ledger.of_job(job_uid):
            if attempt.teller and (attempt.id.task, attempt.id.attempt) not in still:
                self.confirm(attempt)

    def confirm(self, attempt: Attempt) -> None:
        """The end of an attempt is durable: whoever told it may forget it."""
        if attempt.is_recorded or not attempt.teller:
            return
        attempt.is_recorded = True
        worker = self._workers.get(attempt.teller)
        if worker is not None:
            worker.mail.recorded.append(attempt.ref)
            self._post(worker)

    def refuse_held(self, worker: Worker, task: TaskId) -> None:
        """What it has does not count; it may be at work, and takes up room until that is known."""
        worker.lose(task)
        self.refuse(worker, task)

    def refuse(self, worker: Worker, task: TaskId) -> None:
        """What a worker says of an attempt does not count."""
        self._counts.refused += 1
        worker.mail.refused.append((Ref(*task), self._why_not(task)))
        self._post(worker)

    def _why_not(self, task: TaskId) -> str:
        attempt = self._ledger.get(task)
        if attempt is None:
            return "no such attempt is open: it is recorded as over, or was never ordered"
        if attempt.phase is Phase.OVER:
            return (
                f"it is over: {attempt.report.message}" if attempt.report.message else "it is over"
            )
        if attempt.worker is not None:
            return f"worker {attempt.worker.hello.worker} has it"
        return "it was not given to this worker"
