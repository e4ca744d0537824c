"""The promises about operations, as checks over what was committed and what really ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from msgspec.structs import replace

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.admission import AdmissionPhase
from interlock.resources.job import (
    OPERATE_ANNOTATION,
    OPERATE_FOR_ANNOTATION,
    Job,
    JobPhase,
    OperateVerb,
    is_operation,
    lock_requests,
)
from interlock.resources.operation import (
    CompletionState,
    OperationState,
    OperationStatus,
    is_undo,
    step_of,
)
from interlock.resources.tasks import ExecutionReason, JobResult
from interlock.resources.transitions import has_ended, is_admitted
from interlock.store.watching import Change
from support.simulation.judge import Promise
from support.simulation.operation_truth import Ledger, Ledgers, above_of, needed_by, number_of
from support.simulation.promises import jobs_of
from support.simulation.truth import Truth

_DECLARED = (OperateVerb.SUCCEEDED, OperateVerb.FAILED, OperateVerb.REMOVE)


class OneAfterAnother(Promise):
    """Operations on one target run one at a time, in the order in which they were accepted."""

    def wrote(self, change: Change) -> None:
        """Whoever is let in has nobody before it that is not over, stuck ones included."""
        before, after = jobs_of(change)
        if after is None or after.spec.target is None or not is_admitted(after):
            return
        if before is not None and is_admitted(before):
            return
        for other in self._others(after):
            name, first = after.metadata.name, other.metadata.name
            if is_admitted(other):
                raise self.broken(f"{name} is let in beside {first}", name, first)
            if self._is_older(other, after) and not other.is_going:
                raise self.broken(f"{name} is let in before {first}", name, first)

    def starts(self, life: Life) -> None:
        """No process of another operation on the same target is alive."""
        job = self.truth.by_uid[life.order.job_uid]
        if job.spec.target is None:
            return
        for other in self._others(job):
            if alive := self.truth.alive(other.metadata.uid):
                told = f"{life.order.name} starts while {alive[0].order.name} runs"
                raise self.broken(told, job.metadata.name, other.metadata.name)

    def _others(self, job: Job) -> Iterable[Job]:
        """The Jobs with the same target that are not over."""
        target = job.spec.target
        assert target is not None
        for other in self.truth.jobs.values():
            if (
                other.metadata.uid != job.metadata.uid
                and other.metadata.namespace == job.metadata.namespace
                and other.spec.target is not None
                and other.spec.target.path == target.path
                and not has_ended(other)
            ):
                yield other

    def _is_older(self, other: Job, job: Job) -> bool:
        created = list(self.truth.created)
        if other.metadata.uid in self.truth.moved_back:
            return False
        return created.index(other.metadata.uid) < created.index(job.metadata.uid)


class OperationPromise(Promise):
    """A promise about each write of an operation."""

    def wrote(self, change: Change) -> None:
        """Hear of operations that are not bad in themselves."""
        before, after = jobs_of(change)
        if after is None or after.metadata.name in self.truth.bad:
            return
        if not is_operation(after.spec) or after.status.execution.operation is None:
            return
        same = before is not None and before.metadata.uid == after.metadata.uid
        was = before.status.execution.operation if before is not None and same else None
        steps = self.truth.steps_of(after)
        if steps is None:
            return
        if after.spec.steps is None:
            # From when they are made it is as if people had given them.
            after = replace(after, spec=replace(after.spec, steps=steps))
            if was is not None and was.elaborated is None and was.completion_state is None:
                was = None
        assert after.status.execution.operation is not None
        self.moves(after, was, after.status.execution.operation)

    def moves(self, job: Job, was: OperationStatus | None, now: OperationStatus) -> None:
        """The status of an operation was written; `was` is None the first time."""


class DoneOnce(OperationPromise):
    """What is done is not done again unless it was undone, and what is undone is not undone again.

    What has no undo of its own counts as undone together with what it is undone for.
    """

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._ledgers = Ledgers()

    def moves(self, job: Job, was: OperationStatus | None, now: OperationStatus) -> None:
        """Each attempt that is recorded is one that may be made."""
        ledger, name, steps = self._ledgers.of(job), job.metadata.name, job.spec.steps
        assert steps is not None
        for deed in ledger.take(job, was, now):
            entry, what = ledger.entries[deed.step], f"step {steps[deed.step].name} of {name}"
            if deed.is_undo and entry.undone:
                raise self.broken(f"{what} is undone again", name)
            if deed.is_undo and not entry.begun:
                raise self.broken(f"{what} is undone and was never begun", name)
            if entry.done and not deed.is_undo:
                raise self.broken(f"{what} is done and run again", name)
            ledger.begin(deed)


class UndoneInReverse(OperationPromise):
    """A step is undone after all that needs it, and run after all that it needs."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._ledgers = Ledgers()

    def moves(self, job: Job, was: OperationStatus | None, now: OperationStatus) -> None:
        """An undo is recorded only when nothing that needs the step is left to be undone."""
        ledger, name, steps = self._ledgers.of(job), job.metadata.name, job.spec.steps
        assert steps is not None
        deeds = ledger.take(job, was, now)
        for deed in deeds:
            own = steps[deed.step].name
            if deed.is_undo:
                left = [s for s in above_of(steps, own) if ledger.entry(s).begun]
                if left:
                    raise self.broken(f"{own} of {name} is undone before {left[0]}", name)
            else:
                missing = [s for s in needed_by(steps, own) if not ledger.entry(s).done]
                if missing:
                    raise self.broken(f"{own} of {name} is run before {missing[0]}", name)
        for deed in deeds:
            ledger.begin(deed)

    def starts(self, life: Life) -> None:
        """Nothing really runs of the step, or of what must be over before this."""
        job = self.truth.by_uid[life.order.job_uid]
        steps, at = self.truth.steps_of(job), step_of(life.order.index)
        if not steps or job.metadata.name in self.truth.bad:
            return
        own = steps[at].name
        others = set(above_of(steps, own))
        if not is_undo(life.order.index):
            others |= needed_by(steps, own)
        over = {number_of(steps, name) for name in others} | {at}
        alive = [other for other in self.truth.alive(life.order.job_uid) if other is not life]
        for other in alive:
            if step_of(other.order.index) in over:
                told = f"{life.order.name} starts while {other.order.name} runs"
                raise self.broken(told, job.metadata.name)
        if len(alive) >= job.spec.steps_at_once:
            told = f"{life.order.name} starts beside {len(alive)} others"
            raise self.broken(told, job.metadata.name)


class RetriesKept(OperationPromise):
    """Steps and undos are tried as often as they may be, and no sooner than they may be."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._ledgers = Ledgers()
        self._skew = timedelta()

    def moves(self, job: Job, was: OperationStatus | None, now: OperationStatus) -> None:
        """Count the retries, and hold each against its limit and its moment."""
        ledger = self._ledgers.of(job)
        moments = [clock.now() for clock in self.truth.clocks.values()]
        self._skew = max(self._skew, max(moments) - min(moments))
        ledger.skew = self._skew
        for deed in ledger.take(job, was, now):
            ledger.begin(deed)
        if ledger.problems:
            raise self.broken(f"{job.metadata.name}: {ledger.problems[0]}", job.metadata.name)
        self._check_given_up(job, ledger, was, now)

    def _check_given_up(
        self, job: Job, ledger: Ledger, was: OperationStatus | None, now: OperationStatus
    ) -> None:
        """It is rolled back, or stuck, only once its retries are used up."""
        name = job.metadata.name
        turns = now.reverting and not (was is not None and was.reverting)
        failed = now.reverting_for == ExecutionReason.TASK_FAILED
        if turns and failed and not any(map(ledger.is_exhausted, range(len(ledger.entries)))):
            raise self.broken(f"{name} is rolled back before its retries are used up", name)
        gets_stuck = now.stuck_at is not None and not (was is not None and was.stuck_at is not None)
        if not gets_stuck:
            return
        if not now.stuck_message:
            raise self.broken(f"{name} is stuck, and nobody is told why", name)
        lost = now.reverting and any(map(ledger.is_lost, range(len(ledger.entries))))
        assert job.spec.steps is not None
        final = [
            step.name
            for step, state in zip(job.spec.steps, now.steps, strict=True)
            if step.irreversible and state.runs
        ]
        if not lost and not final:
            raise self.broken(f"{name} is stuck before its retries are used up", name)


class RevertsForGood(OperationPromise):
    """What is rolled back goes forward again only by a person's order, and what is stuck moves
    only by one; each order is carried out once.
    """

    def moves(self, job: Job, was: OperationStatus | None, now: OperationStatus) -> None:
        """No attempt is made that nobody ordered."""
        if was is None:
            return
        name = job.metadata.name
        ordered = self._ordered(job, was, now)
        if now.interventions > was.interventions and ordered is None:
            raise self.broken(f"an order about {name} is carried out that nobody gave", name)
        if was.reverting and not now.reverting and ordered is not OperateVerb.RETRY:
            raise self.broken(f"{name} goes forward again by itself", name)
        for step, known in zip(now.steps, was.steps, strict=False):
            if ordered is None and was.stuck_at is not None and step != known:
                raise self.broken(f"{name} is stuck, and {step.name} goes on", name)
            if step.runs > known.runs and (
                now.reverting or (was.reverting_for and ordered is not OperateVerb.RETRY)
            ):
                raise self.broken(f"{name} is to be rolled back, and runs {step.name}", name)

    def _ordered(self, job: Job, was: OperationStatus, now: OperationStatus) -> OperateVerb | None:
        """The order that was carried out in this write."""
        if now.interventions != was.interventions + 1:
            return None
        given = self.truth.operated.get(job.metadata.uid, {})
        return given.get(was.interventions)


class CompleteIsTrue(OperationPromise):
    """What is complete stays so; what was a success is done, and of what failed nothing is left."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._ledgers = Ledgers()
        #: How each process of a step ended, newest last: whether it undid, and its exit code.
        self._really: dict[tuple[str, int], list[Life]] = {}

    def starts(self, life: Life) -> None:
        """Write down what really happened, beside what is recorded."""
        at = step_of(life.order.index)
        self._really.setdefault((life.order.job_uid, at), []).append(life)

    def moves(self, job: Job, was: OperationStatus | None, now: OperationStatus) -> None:
        """It is complete exactly when its Job is over, and then for good."""
        name, ledger = job.metadata.name, self._ledgers.of(job)
        is_complete = now.state is OperationState.COMPLETE
        if is_complete is not (now.completion_state is not None):
            told = f"{name} is {now.state}, and came to {now.completion_state}"
            raise self.broken(told, name)
        if is_complete is not has_ended(job):
            raise self.broken(f"{name} is {now.state}, and its Job {job.status.phase}", name)
        if was is not None and was.state is OperationState.COMPLETE:
            if was != now:
                raise self.broken(f"{name} was complete, and changes", name)
            return
        for deed in ledger.take(job, was, now):
            ledger.begin(deed)
        if is_complete and not _is_declared(job, now):
            self._check(job, ledger, now)

    def _check(self, job: Job, ledger: Ledger, now: OperationStatus) -> None:
        name, steps = job.metadata.name, job.spec.steps
        assert steps is not None
        reason = job.status.execution.reason
        is_done = reason in (ExecutionReason.COMPLETED, ExecutionReason.CHILDREN_FAILED)
        if is_done is (now.completion_state is CompletionState.FAILED) and (
            reason is not ExecutionReason.CHILDREN_FAILED
        ):
            raise self.broken(f"{name} came to {now.completion_state} for {reason}", name)
        for at, step in enumerate(steps):
            entry = ledger.entries[at]
            if is_done and not entry.done:
                raise self.broken(f"{name} is complete without {step.name}", name)
            if not is_done and entry.begun:
                raise self.broken(f"{name} has failed, and {step.name} is not undone", name)
            lives = self._really.get((job.metadata.uid, at), [])
            if any(life.order.id in self.truth.written_off for life in lives):
                continue
            last = lives[-1] if lives else None
            if is_done and (last is None or is_undo(last.order.index) or last.code != 0):
                raise self.broken(f"{name} is complete and {step.name} was not done", name)
            if is_done or last is None or not entry.undone:
                continue
            if not is_undo(last.order.index) or last.code != 0:
                raise self.broken(f"{name} has failed and {step.name} was not undone", name)


def _is_declared(job: Job, operation: OperationStatus) -> bool:
    """Whether a person has declared it over: that word is taken as the truth."""
    notes = job.metadata.annotations
    if notes.get(OPERATE_FOR_ANNOTATION) != str(operation.interventions):
        return False
    return notes.get(OPERATE_ANNOTATION) in set(_DECLARED)


class ChildrenCounted(OperationPromise):
    """An operation is over after all its children, and comes to what they came to."""

    def moves(self, job: Job, was: OperationStatus | None, now: OperationStatus) -> None:
        """Children that were there for some time are over, and counted as they are."""
        is_over = now.state is OperationState.COMPLETE
        if not is_over or (was is not None and was.state is OperationState.COMPLETE):
            return
        reason, name = job.status.execution.reason, job.metadata.name
        counts = (ExecutionReason.COMPLETED, ExecutionReason.CHILDREN_FAILED)
        if reason not in counts or _is_declared(job, now):
            return
        children = [j for j in self.truth.jobs.values() if j.spec.parent == name]
        for child in children:
            age = self.truth.now - self.truth.created[child.metadata.uid]
            if not has_ended(child) and age > self.truth.patience:
                told = f"{name} is complete, and its child {child.metadata.name} is not"
                raise self.broken(told, name, child.metadata.name)
        gone = [
            uid
            for uid in self.truth.gone
            if (one := self.truth.by_uid.get(uid)) is not None
            and one.spec.parent == name
            and not _is_ended_by_deletion(one)
        ]
        if gone or any(not has_ended(child) for child in children):
            return  # Who has not heard of it yet counts them otherwise.
        # What a deletion ended counts for nothing; one that was deleted after its end may have been
        # seen before.
        heard = [c for c in children if not _is_ended_by_deletion(c)]
        kept = [c for c in heard if not c.is_going]
        expected = {_come_to(heard), _come_to(kept)}
        if now.completion_state not in expected:
            told = f"{name} came to {now.completion_state}, its children to {sorted(expected)}"
            raise self.broken(told, name, *(child.metadata.name for child in children))


def _is_ended_by_deletion(job: Job) -> bool:
    return job.is_going and job.status.execution.reason is ExecutionReason.DELETED


def _come_to(children: Sequence[Job]) -> CompletionState:
    won = sum(child.status.execution.result is JobResult.SUCCEEDED for child in children)
    if won == len(children):
        return CompletionState.SUCCESS
    return CompletionState.PARTIAL_SUCCESS if won else CompletionState.FAILED


class TargetsApart(Promise):
    """Nobody waits for an operation that is stuck but those behind it: on its target, for its
    locks, or with it as a child.
    """

    def rests(self) -> None:
        """Whoever is not over is stuck, or waits for somebody who is in the end."""
        open_jobs = [
            job
            for job in self.truth.jobs.values()
            if not has_ended(job) and job.metadata.name not in self.truth.bad
        ]
        held_up = {j.metadata.uid for j in open_jobs if j.status.phase is JobPhase.STUCK}
        while True:
            more = {
                job.metadata.uid
                for job in open_jobs
                if job.metadata.uid not in held_up
                and any(
                    other.metadata.uid in held_up and self._waits_for(job, other)
                    for other in open_jobs
                )
            }
            if not more:
                break
            held_up |= more
        for job in open_jobs:
            if job.metadata.uid not in held_up:
                name = job.metadata.name
                raise self.broken(f"{name} is {job.status.phase} and waits for nobody", name)

    def _waits_for(self, job: Job, other: Job) -> bool:
        if other.spec.parent == job.metadata.name:
            return True
        if job.status.admission.phase is not AdmissionPhase.WAITING:
            return False
        keys = {request.key for request in lock_requests(job.spec)}
        return any(request.key in keys for request in lock_requests(other.spec))


#: What is promised of operations, and of Jobs with a target.
OPERATION_PROMISES: tuple[type[Promise], ...] = (
    OneAfterAnother,
    DoneOnce,
    UndoneInReverse,
    RevertsForGood,
    RetriesKept,
    CompleteIsTrue,
    ChildrenCounted,
    TargetsApart,
)
