"""Promises about requests: how many are taken, how long they stay, and what bad ones may harm."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.admission import AdmissionPhase
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.operation import (
    ELABORATION,
    OperationStatus,
    StepState,
    is_undo,
    step_of,
)
from interlock.resources.steps import Step
from interlock.resources.tasks import JobResult, TaskId, TaskResult
from interlock.resources.transitions import has_ended
from interlock.runtimes.workers.attempts import task_of
from interlock.runtimes.workers.protocol import Call
from interlock.store.watching import Change
from support.simulation.judge import Promise, UnfinishedError
from support.simulation.promises import jobs_of
from support.simulation.truth import Truth
from support.simulation.worker_promises import Books, WorkerPromise

if TYPE_CHECKING:
    from support.simulation.workers import Crowd

#: What is due is done within this, once all is quiet.
_SOON = timedelta(seconds=60)


class PendingLimited(Promise):
    """As many Jobs as may be are unfinished for one target: none more, and none is refused before.

    Parts of what is not over are let in with it, and count.
    """

    def wrote(self, change: Change) -> None:
        """Nobody is let in beside as many as there may be."""
        before, after = jobs_of(change)
        if before is not None or after is None or after.spec.target is None or self._is_part(after):
            return
        there, limit = self._there(after), self._limit(after)
        if limit is not None and there >= limit:
            told = f"{after.metadata.name} is taken for {after.spec.target.path}"
            raise self.broken(f"{told} beside {there}, limit {limit}", after.metadata.name)

    def refused(self, job: Job) -> None:
        """Nobody is refused where there is room."""
        there, limit = self._there(job), self._limit(job)
        if limit is None or there < limit:
            told = f"{job.metadata.name} is refused beside {there}, limit {limit}"
            raise self.broken(told, job.metadata.name)

    def _limit(self, job: Job) -> int | None:
        most = self.truth.most_pending
        own = job.spec.target.max_pending if job.spec.target is not None else None
        return min((n for n in (most, own) if n is not None), default=None)

    def _there(self, job: Job) -> int:
        assert job.spec.target is not None
        return sum(
            other.spec.target is not None
            and other.spec.target.path == job.spec.target.path
            and other.metadata.uid != job.metadata.uid
            and not has_ended(other)
            for other in self.truth.jobs.values()
        )

    def _is_part(self, job: Job) -> bool:
        parent = _parent(self.truth, job)
        return parent is not None and not has_ended(parent)


class KeptForItsTime(Promise):
    """What is over stays for as long as it asks to, and while what it belongs to is not over."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        #: How far ahead a clock ever was: what was decided by it may be written later.
        self._ahead = timedelta()

    def wrote(self, change: Change) -> None:
        """Nothing is removed before its time that nobody deleted."""
        clocks = [clock.now() for clock in self.truth.clocks.values()]
        self._ahead = max(self._ahead, max(clocks, default=self.truth.moment) - self.truth.moment)
        before, after = jobs_of(change)
        if before is None or before.is_going or not (after is None or after.is_going):
            return
        if before.metadata.uid in self.truth.to_delete or self.truth.writer == "user":
            return
        due = _due(before)
        name = before.metadata.name
        if due is not None and due > self.truth.moment + self._ahead:
            raise self.broken(f"{name} is removed, and was to stay until {due}", name)
        for other in _relatives(self.truth, before):
            age = self.truth.now - self.truth.created[other.metadata.uid]
            if not has_ended(other) and age > self.truth.patience:
                told = f"{name} is removed, and {other.metadata.name} is not over"
                raise self.broken(told, name, other.metadata.name)

    def settled(self) -> None:
        """What had its time is gone."""
        for job in self.truth.jobs.values():
            due, name = _due(job), job.metadata.name
            if name in self.truth.bad or due is None or self.truth.moment < due + _SOON:
                continue
            if all(map(has_ended, _relatives(self.truth, job))):
                raise self.broken(f"{name} was to stay until {due}, and is there", name)


class BadRequestsFail(Promise):
    """Of a request that cannot be turned into steps nothing runs; it fails, and says why."""

    def starts(self, life: Life) -> None:
        """Only what is to make its steps is ever begun."""
        name = life.order.job
        if name in self.truth.bad_requests and life.order.index != ELABORATION:
            raise self.broken(f"{life.order.name} runs, and {name} has no steps", name)

    def rests(self) -> None:
        """Each that was let in has come to its end, and needed nobody for that."""
        self._check(AdmissionPhase.WAITING)

    def settled(self) -> None:
        """All have."""
        self._check(None)

    def _check(self, excused: AdmissionPhase | None) -> None:
        for job in self.truth.jobs.values():
            name = job.metadata.name
            if name not in self.truth.bad_requests or job.status.admission.phase is excused:
                continue
            told = f"{name} is {job.status.phase}, and cannot be done"
            if not has_ended(job):
                raise UnfinishedError(type(self).__name__, told, (name,))
            if job.status.execution.result is JobResult.SUCCEEDED:
                raise self.broken(told, name)
            if not job.status.execution.message and not job.status.admission.message:
                raise self.broken(f"{name} has failed, and nobody is told why", name)


class ResultsAreHandedOn(WorkerPromise):
    """A function is told what the steps before it returned, as it is recorded and never otherwise.

    What was recorded is read from the ends of attempts, not from what the engine keeps of them.
    """

    def __init__(self, truth: Truth, crowd: Crowd, books: Books) -> None:
        super().__init__(truth, crowd, books)
        #: What the newest attempt of each step that was done has returned, by uid and name.
        self._returned: dict[str, dict[str, str]] = {}
        self._known: dict[str, set[tuple[int, int]]] = {}
        #: What was recorded when an attempt was: of the steps that were done, and of others.
        self._then: dict[TaskId, tuple[dict[str, str], dict[str, str]]] = {}

    def wrote(self, change: Change) -> None:
        """What is done has the result that was recorded when it was."""
        _, after = jobs_of(change)
        if after is None or after.metadata.name in self.truth.bad:
            return
        operation, steps = after.status.execution.operation, self.truth.steps_of(after)
        if operation is None or steps is None:
            return
        self._take_ends(after, steps)
        returned = self._returned.setdefault(after.metadata.uid, {})
        for step in operation.steps:
            expected = returned.get(step.name, "")
            is_other = step.result != expected
            if is_other and (step.state is StepState.DONE or step.result):
                name = after.metadata.name
                raise self.broken(f"{step.name} of {name} has another result than recorded", name)
        self._note_attempts(after, operation, returned)

    def _take_ends(self, job: Job, steps: tuple[Step, ...]) -> None:
        uid = job.metadata.uid
        known = self._known.setdefault(uid, set())
        for end in job.status.execution.ended:
            place = (end.index, end.attempt)
            if place in known or end.index == ELABORATION or is_undo(end.index):
                continue
            known.add(place)
            if end.result is TaskResult.SUCCEEDED:
                told = end.returned.json if end.returned is not None else ""
                self._returned.setdefault(uid, {})[steps[step_of(end.index)].name] = told

    def _note_attempts(
        self, job: Job, operation: OperationStatus, returned: dict[str, str]
    ) -> None:
        done = {step.name for step in operation.steps if step.state is StepState.DONE}
        for task in job.status.execution.active:
            if task.index != ELABORATION:
                then = {name: told for name, told in returned.items() if told}
                must = {name: told for name, told in then.items() if name in done}
                id = TaskId(job.metadata.uid, task.index, task.attempt)
                self._then.setdefault(id, (must, then))

    def ordered(self, call: Call) -> None:
        """A function is told just that."""
        if task_of(call.ref) not in self._then:
            return
        must, may = self._then[task_of(call.ref)]
        lacks = [name for name, told in must.items() if call.results.get(name) != told]
        others = [name for name, told in call.results.items() if may.get(name) != told]
        if lacks or others:
            told = f"{call.step} of {call.job} is not told what {(lacks or others)[0]} returned"
            raise self.broken(told, call.job)


def _due(job: Job) -> datetime | None:
    """Until when what is over stays; None for ever, and while it is not over."""
    ttl, status = job.spec.ttl_after_finished, job.status
    over_at = status.execution.ended_at or status.admission.refused_at
    return None if ttl is None or over_at is None else over_at + ttl


def _parent(truth: Truth, job: Job) -> Job | None:
    if job.spec.parent is None:
        return None
    return truth.jobs.get(Key("Job", job.metadata.namespace, job.spec.parent))


def _relatives(truth: Truth, job: Job) -> list[Job]:
    """What a Job is a part of, and its parts."""
    parent = _parent(truth, job)
    parts = [one for one in truth.jobs.values() if one.spec.parent == job.metadata.name]
    return parts if parent is None else [parent, *parts]


#: What is promised where requests are crowded and bad.
REQUEST_PROMISES: tuple[type[Promise], ...] = (PendingLimited, KeptForItsTime, BadRequestsFail)
REQUEST_WORKER_PROMISES: tuple[type[WorkerPromise], ...] = (ResultsAreHandedOn,)
