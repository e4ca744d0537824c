"""The promises of the design, as checks over what really happened."""

from __future__ import annotations

from msgspec import json
from msgspec.structs import replace

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.admission import AdmissionPhase, EvictionReason
from interlock.resources.codec import encode
from interlock.resources.default_queue import DEFAULT_QUEUE, queue_asked
from interlock.resources.ends import culprit
from interlock.resources.job import (
    JOB_FINALIZER,
    RELEASE_ANNOTATION,
    Completion,
    Job,
    WhenTaken,
    is_operation,
    lock_requests,
    released_attempts,
)
from interlock.resources.lock import Holder, Lock
from interlock.resources.tasks import (
    KEPT_ENDED,
    EndedTask,
    ExecutionReason,
    JobResult,
    TaskId,
    TaskResult,
)
from interlock.resources.transitions import JOB_MOVES, has_ended, is_admitted, is_evicting
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.judge import Promise
from support.simulation.truth import PHANTOM, Term, Truth

#: More than any status of a simulated Job needs.
MOST_STATUS_BYTES = 16_384


def jobs_of(change: Change) -> tuple[Job | None, Job | None]:
    """The Job before and after a change; None when it was or is not there."""
    before, after = change.before, change.event.resource
    is_gone = change.event.type is EventType.DELETED
    return (
        before if isinstance(before, Job) else None,
        after if isinstance(after, Job) and not is_gone else None,
    )


def _locks_of(change: Change) -> tuple[Lock | None, Lock | None]:
    before, after = change.before, change.event.resource
    is_gone = change.event.type is EventType.DELETED
    return (
        before if isinstance(before, Lock) else None,
        after if isinstance(after, Lock) and not is_gone else None,
    )


def _new_holders(change: Change) -> tuple[Lock | None, tuple[Holder, ...]]:
    before, after = _locks_of(change)
    if after is None:
        return None, ()
    known = before.status.holders if before is not None else ()
    return after, tuple(holder for holder in after.status.holders if holder not in known)


class NeverTwice(Promise):
    """At no instant do more Jobs than its limit hold a lock, nor two attempts of one task run."""

    def starts(self, life: Life) -> None:
        """No second attempt beside the first; no more Jobs under a lock than each agreed to."""
        order = life.order
        beside = [
            other
            for other in self.truth.alive(order.job_uid)
            if other.order.index == order.index and other is not life
        ]
        if beside:
            other = beside[0].order.name
            raise self.broken(f"{order.name} starts while {other} runs", order.job)
        terms = self.truth.terms.get(order.job_uid)
        if terms is None:
            raise self.broken(f"{order.name} starts before its Job is admitted", order.job)
        for key in terms:
            self._check_key(order.namespace, key)

    def _check_key(self, namespace: str, key: str) -> None:
        """Count, for each Job that runs under a lock, those that were let in before it."""
        running: dict[str, Term] = {}
        for task, life in self.truth.lives.items():
            term = self.truth.terms.get(task.job_uid, {}).get(key)
            if life.order.namespace == namespace and term and task not in self.truth.written_off:
                running[task.job_uid] = term
        for term in running.values():
            before = sum(1 for other in running.values() if other.token <= term.token)
            if before > term.limit and not term.is_allowed:
                names = sorted(self.truth.by_uid[uid].metadata.name for uid in running)
                told = f"{', '.join(names)} run under lock {key}, limit {term.limit}"
                raise self.broken(told, *names, key)

    def wrote(self, change: Change) -> None:
        """Grants keep to the limit, count until their Job is over, and are there on admission."""
        if change.key.kind == "Lock":
            self._check_joined(change)
            self._check_left(change)
        else:
            self._check_admission(change)
            self._check_end(change)

    def _check_joined(self, change: Change) -> None:
        lock, joined = _new_holders(change)
        if lock is None or not joined:
            return
        held = len(lock.status.holders)
        for holder in joined:
            job = self.truth.by_uid.get(holder.uid)
            if (
                job is None
                or job.metadata.name in self.truth.bad
                or holder.uid in self.truth.revised
            ):
                # Who asks for less than before gives such a grant back; see `_check_admission`.
                continue
            requests = [r for r in lock_requests(job.spec) if r.key == lock.spec.key]
            for request in requests:
                if held > request.limit and request.when_taken is not WhenTaken.ALLOW:
                    told = (
                        f"{held} Jobs hold {lock.spec.key}, {holder.job} agreed to {request.limit}"
                    )
                    names = [each.job for each in lock.status.holders]
                    raise self.broken(told, *names, lock.spec.key)

    def _check_left(self, change: Change) -> None:
        before, after = _locks_of(change)
        if before is None:
            return
        kept = after.status.holders if after is not None else ()
        for holder in before.status.holders:
            if holder in kept or self.truth.is_over(holder.uid):
                continue
            job = self.truth.by_uid[holder.uid]
            is_held = job.status.admission.epoch <= holder.epoch
            if is_held and not self._is_disowned(job, before.spec.key, holder):
                told = f"{holder.job} loses {before.spec.key} and may still be doing something"
                raise self.broken(told, holder.job, before.spec.key)

    def _is_disowned(self, job: Job, key: str, holder: Holder) -> bool:
        """Whether nothing runs of a Job that says it was let in with something else than this."""
        uid, admission = job.metadata.uid, job.status.admission
        if self.truth.alive(uid):
            return False
        term = self.truth.terms.get(uid, {}).get(key)
        is_other = term is None or term.token != holder.token
        return admission.phase is AdmissionPhase.ADMITTED and is_other

    def _check_admission(self, change: Change) -> None:
        before, after = jobs_of(change)
        if after is None or after.status.admission.phase is not AdmissionPhase.ADMITTED:
            return
        if before is not None and before.status.admission.phase is AdmissionPhase.ADMITTED:
            return
        if self.truth.writer == "user":
            return  # Forged: it lets nobody in, and what starts all the same is seen to start.
        name, admission = after.metadata.name, after.status.admission
        tokens = {grant.key: grant.token for grant in admission.grants}
        for request in lock_requests(after.spec):
            lock = self.truth.locks.get((after.metadata.namespace, request.key))
            holders = lock.status.holders if lock is not None else ()
            held = [h for h in holders if h.uid == after.metadata.uid]
            if not any(h.epoch == admission.epoch for h in held):
                raise self.broken(f"{name} is admitted without lock {request.key}", name)
            if all(h.token != tokens.get(request.key) for h in held):
                raise self.broken(f"{name} has no token of lock {request.key}", name)
            first = sum(
                h.token < tokens[request.key] and not self.truth.is_over(h.uid) for h in holders
            )
            if first >= request.limit and request.when_taken is not WhenTaken.ALLOW:
                told = f"{name} is admitted behind {first} holders of {request.key}"
                raise self.broken(f"{told}, and agreed to {request.limit}", name)

    def _check_end(self, change: Change) -> None:
        """A Job that ends, or goes, has no process left."""
        before, after = jobs_of(change)
        ends = after is None or (has_ended(after) and not (before and has_ended(before)))
        if not ends:
            return
        job = after or before
        assert job is not None
        alive = self.truth.alive(job.metadata.uid)
        if after is None:
            # What a store that was put back does not know keeps nobody from deleting a Job.
            alive = [life for life in alive if life.order.id not in self.truth.strangers]
        if alive and (after is not None or job.metadata.name not in self.truth.bad):
            what = "ends" if after is not None else "goes"
            name = job.metadata.name
            raise self.broken(f"{name} {what} while {alive[0].order.name} runs", name)


class RecordedFirst(Promise):
    """An attempt runs only after it was recorded, once, and never after it was recorded as over."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._over: dict[TaskId, None] = {}
        self._ran: dict[TaskId, None] = {}

    def starts(self, life: Life) -> None:
        """The attempt is among the active ones of its Job at this moment."""
        order = life.order
        job = self.truth.by_uid.get(order.job_uid)
        if job is None or order.job_uid in self.truth.gone:
            raise self.broken(f"{order.name} starts and its Job is not there", order.job)
        if order.id in self._ran:
            raise self.broken(f"{order.name} starts for the second time", order.job)
        self._ran[order.id] = None
        active = {(task.index, task.attempt) for task in job.status.execution.active}
        if (order.index, order.attempt) not in active:
            raise self.broken(f"{order.name} starts and is not on record", order.job)

    def wrote(self, change: Change) -> None:
        """An attempt that was over does not come back, and a task has one attempt at a time."""
        before, after = jobs_of(change)
        if after is None or before is None or after.metadata.name in self.truth.bad:
            return
        uid, name = after.metadata.uid, after.metadata.name
        active = [TaskId(uid, t.index, t.attempt) for t in after.status.execution.active]
        for task in active:
            if task in self._over:
                raise self.broken(f"{name}-{task.task}-{task.attempt} is on record again", name)
        if len({task.task for task in active}) < len(active):
            raise self.broken(f"{name} has two attempts of one task on record", name)
        for was in before.status.execution.active:
            task = TaskId(uid, was.index, was.attempt)
            if task not in active:
                self._over[task] = None


class TrueEnds(Promise):
    """What is recorded of an attempt is what really became of it."""

    def wrote(self, change: Change) -> None:
        """Every attempt that is newly recorded as over is over, with that exit code."""
        before, after = jobs_of(change)
        if after is None or after.metadata.name in self.truth.bad:
            return
        known = before.status.execution.ended if before is not None else ()
        for task in after.status.execution.ended:
            if task not in known:
                self._check(after, task)
        if after.status.execution.result is JobResult.SUCCEEDED:
            self._check_success(after)

    def _check(self, job: Job, task: EndedTask) -> None:
        id = TaskId(job.metadata.uid, task.index, task.attempt)
        name = job.metadata.name
        if task.result is TaskResult.WRITTEN_OFF:
            spoken_of = f"{task.index}-{task.attempt}" in released_attempts(job)
            if RELEASE_ANNOTATION not in job.metadata.annotations or not spoken_of:
                raise self.broken(f"{task.name} is written off, and nobody said so", name)
            return
        if id in self.truth.lives and id not in self.truth.written_off:
            raise self.broken(f"{task.name} is recorded as {task.result} and runs", name)
        code, _ = self.truth.ends.get(id, (None, None))
        if task.result is TaskResult.NOT_STARTED and id in self.truth.ends:
            raise self.broken(f"{task.name} is recorded as not started, and ran", name)
        if task.exit_code is not None and task.exit_code != code:
            told = f"{task.name} ended with {code}, recorded is {task.exit_code}"
            raise self.broken(told, name)
        if task.result is TaskResult.SUCCEEDED and code != 0:
            raise self.broken(f"{task.name} is recorded as succeeded, and ended with {code}", name)

    def _check_success(self, job: Job) -> None:
        if job.spec.process is None and job.spec.pod is None:
            return
        uid, name = job.metadata.uid, job.metadata.name
        succeeded = {
            t.task for t, end in self.truth.ends.items() if t.job_uid == uid and end[0] == 0
        }
        total = job.status.execution.total
        needed = total if job.spec.completion is Completion.ALL_SUCCESSFUL else 1
        if len(succeeded) < needed:
            raise self.broken(f"{name} succeeded with {len(succeeded)} of {needed} tasks", name)


class NeverLost(Promise):
    """What was acknowledged stays: objects until they are deleted on demand, specs as written."""

    def wrote(self, change: Change) -> None:
        """Nothing goes that nobody asked to delete, and nobody but its owner writes a spec."""
        before, after = jobs_of(change)
        if before is None or before.spec.adopted is not None:
            # What stands for something of others follows that; see `StandsForIt`.
            return
        name, uid = before.metadata.name, before.metadata.uid
        if after is None:
            expired = before.spec.ttl_after_finished is not None and has_ended(before)
            if uid not in self.truth.to_delete and not expired:
                raise self.broken(f"{name} is gone, and nobody deleted it", name)
        elif (
            self.truth.writer != "user"
            and after.spec != before.spec
            and not _gives_up(before, after)
        ):
            raise self.broken(f"{self.truth.writer} wrote the spec of {name}", name)
        elif after.is_going and not before.is_going and uid not in self.truth.to_delete:
            expires = after.spec.ttl_after_finished is not None and has_ended(after)
            if not expires:
                raise self.broken(f"{name} is being deleted, and nobody asked for it", name)


def _gives_up(before: Job, after: Job) -> bool:
    """Whether a Job is taken out of its Queue, the one thing that the system may write of a spec.

    Whether there was a reason for it is seen as it is put back; see `PutBackForCause`.
    """
    is_queued = queue_asked(before.spec, DEFAULT_QUEUE) is not None and before.spec.active
    return is_queued and replace(before.spec, active=False) == after.spec


class StopsForCause(Promise):
    """Work that is under way is stopped only after the reason for it was recorded."""

    def stops(self, task: TaskId) -> None:
        """An attempt on record as running has its reason to stop on record too."""
        job = self.truth.by_uid.get(task.job_uid)
        if job is None or task.job_uid in self.truth.gone:
            return
        for active in job.status.execution.active:
            same = (active.index, active.attempt) == (task.task, task.attempt)
            if same and active.stop_cause is None:
                name = job.metadata.name
                raise self.broken(f"{active.name} is stopped, and no reason is on record", name)


class InOrder(Promise):
    """A lock goes to the first in its line: by priority, then by creation."""

    def wrote(self, change: Change) -> None:
        """Nobody who is granted a lock had somebody before him who has stood there long."""
        lock, joined = _new_holders(change)
        if lock is None:
            return
        for holder in joined:
            job = self.truth.by_uid.get(holder.uid)
            if job is not None and not _allows(job, lock.spec.key):
                self._check(lock, job)

    def _check(self, lock: Lock, job: Job) -> None:
        key, truth = lock.spec.key, self.truth
        granted = {(holder.uid, holder.epoch) for holder in lock.status.holders}
        for other in truth.jobs.values():
            if (
                other.metadata.namespace == lock.metadata.namespace
                and any(request.key == key for request in lock_requests(other.spec))
                and not _allows(other, key)
                and _stands(other)
                and self._may_stand(other)
                and other.metadata.name not in truth.bad
                and (other.metadata.uid, other.status.admission.epoch) not in granted
                and _place(other) < _place(job)
                and truth.now - truth.stands_since[other.metadata.uid] > truth.patience
            ):
                names = (job.metadata.name, other.metadata.name)
                raise self.broken(f"{names[0]} is granted {key} before {names[1]}", *names, key)

    def _may_stand(self, job: Job) -> bool:
        """Whether a Job stands in lines of locks: with a Queue, while it holds its part of that."""
        if not self.truth.is_settled(DEFAULT_QUEUE) and job.spec.queue is None:
            return False
        if not self.truth.may_be_seated(job):
            return False
        if self.truth.queue_asked(job) is None or job.spec.target is not None:
            return True
        since = self.truth.part_since.get((job.metadata.uid, job.status.admission.epoch))
        return since is not None and self.truth.now - since > self.truth.patience


def _allows(job: Job, key: str) -> bool:
    return any(r.key == key and r.when_taken is WhenTaken.ALLOW for r in lock_requests(job.spec))


def _stands(job: Job) -> bool:
    """Whether a Job has been seen, waits for locks, and for nothing else."""
    admission = job.status.admission
    if admission.phase is not AdmissionPhase.WAITING or job.is_going or job.spec.suspend:
        return False
    return admission.sequence > 0 and all(wait.key for wait in admission.waits)


def _place(job: Job) -> tuple[int, int]:
    # Nobody overtakes what is done to one target, so these have no priority.
    rank = 0 if job.spec.target is not None else -job.spec.priority
    return rank, job.status.admission.sequence or job.version


class TokensRise(Promise):
    """Every grant of a key has a higher token than all before it, whatever became of the record."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._last: dict[tuple[str, str], int] = {}

    def wrote(self, change: Change) -> None:
        """Tokens of one key rise."""
        lock, joined = _new_holders(change)
        if lock is None or lock.metadata.name in self.truth.bad:
            return
        key = (lock.metadata.namespace, lock.spec.key)
        for holder in joined:
            if holder.uid == PHANTOM:  # Written by a vandal, not granted.
                continue
            last = self._last.get(key, 0)
            if holder.token <= last:
                told = f"{holder.job} gets token {holder.token} of {lock.spec.key} after {last}"
                raise self.broken(told, holder.job, lock.spec.key)
            self._last[key] = holder.token

    def starts(self, life: Life) -> None:
        """The work is told the tokens of all its grants."""
        order = life.order
        tokens = {key: t.token for key, t in self.truth.terms.get(order.job_uid, {}).items()}
        told = json.decode(order.env.get("INTERLOCK_FENCES", "{}"))
        if told != tokens:
            raise self.broken(f"{order.name} is told {told}, its tokens are {tokens}", order.job)


class LegalMoves(Promise):
    """A Job moves as the table says; an end, an admission and a place in line are for good."""

    def wrote(self, change: Change) -> None:
        """The phase made a legal move, and what is final did not change."""
        before, after = jobs_of(change)
        if before is None or after is None or before.metadata.uid != after.metadata.uid:
            return
        was, now, name = before.status, after.status, after.metadata.name
        if now.phase is not was.phase and now.phase not in JOB_MOVES[was.phase]:
            raise self.broken(f"{name} moves from {was.phase} to {now.phase}", name)
        if has_ended(before) and _end(after) != _end(before):
            raise self.broken(f"the end of {name} is rewritten", name)
        if now.admission.epoch < was.admission.epoch:
            raise self.broken(f"the epoch of {name} falls", name)
        if now.admission.evictions != was.admission.evictions:
            return  # It was put back; see `PutBackWhole`.
        if was.admission.sequence and now.admission.sequence != was.admission.sequence:
            raise self.broken(f"{name} changes its place in the order of creation", name)
        admitted = AdmissionPhase.ADMITTED
        if was.admission.phase is admitted and now.admission.grants != was.admission.grants:
            raise self.broken(f"the grants of {name} are rewritten", name)
        if is_operation(after.spec):
            return  # What was done of it may be undone; see `DoneOnce`.
        for field in ("succeeded", "failed"):
            lost = [
                i for i in getattr(was.execution, field) if i not in getattr(now.execution, field)
            ]
            if lost:
                raise self.broken(f"task {lost[0]} of {name} is no longer {field}", name)


def _end(job: Job) -> tuple[object, ...]:
    execution, admission = job.status.execution, job.status.admission
    return (execution.result, execution.ended_at, admission.phase, admission.refusal)


class PutBackWhole(Promise):
    """A Job is put back on demand alone, when all of it is gone, and gives back all it held."""

    def wrote(self, change: Change) -> None:
        """While it is evicting it holds everything and begins nothing; then it has nothing left."""
        before, after = jobs_of(change)
        if before is None or after is None or before.metadata.uid != after.metadata.uid:
            return
        was, now, name = before.status, after.status, after.metadata.name
        if is_evicting(after):
            self._check_evicting(before, after)
        if now.admission.evictions == was.admission.evictions:
            if is_admitted(before) and not is_admitted(after):
                raise self.broken(f"{name} is no longer let in, and was not put back", name)
            return
        if not is_evicting(before):
            raise self.broken(f"{name} is put back before anybody stopped it", name)
        if alive := self.truth.alive(after.metadata.uid):
            raise self.broken(f"{name} waits again while {alive[0].order.name} runs", name)
        left = now.execution.active or now.execution.retrying
        if left or now.admission.grants or now.admission.quota is not None:
            raise self.broken(f"{name} waits again and has something left", name)
        if now.admission.epoch <= was.admission.epoch:
            raise self.broken(f"{name} waits again and still counts as a holder", name)
        if now.execution.round != now.admission.evictions:
            raise self.broken(f"{name} waits again and begins no new round", name)
        if now.execution.succeeded != was.execution.succeeded:
            raise self.broken(f"{name} waits again and forgets what it has done", name)

    def _check_evicting(self, before: Job, after: Job) -> None:
        was, now, name = before.status, after.status, after.metadata.name
        if not is_evicting(before):
            ordered = self.truth.to_requeue.get(after.metadata.uid, ())
            eviction = now.admission.eviction
            assert eviction is not None
            # For whatever else it is put back there is a promise of its own.
            is_ordered = eviction.reason is EvictionReason.REQUEUED
            if is_ordered and now.execution.round not in ordered:
                raise self.broken(f"{name} is put back, and nobody said so", name)
        held, holds = was.admission, now.admission
        if (holds.epoch, holds.grants, holds.quota) != (held.epoch, held.grants, held.quota):
            raise self.broken(f"{name} gives back what it holds while it is evicting", name)
        known = {(task.index, task.attempt) for task in was.execution.active}
        if any((task.index, task.attempt) not in known for task in now.execution.active):
            raise self.broken(f"{name} begins an attempt while it is evicting", name)

    def settled(self) -> None:
        """No order is left open that still means something."""
        for job in self.truth.jobs.values():
            if is_evicting(job) and job.metadata.name not in self.truth.bad:
                raise self.broken(f"{job.metadata.name} is evicting for ever", job.metadata.name)


class StatusBounded(Promise):
    """A status stays small whatever happens to its Job, and keeps what the Job failed for."""

    def wrote(self, change: Change) -> None:
        """The lists of a status are bounded."""
        before, after = jobs_of(change)
        if after is None or after.metadata.name in self.truth.bad:
            return
        execution, name = after.status.execution, after.metadata.name
        if len(execution.ended) > KEPT_ENDED:
            raise self.broken(f"{name} keeps {len(execution.ended)} ended attempts", name)
        if execution.reason is ExecutionReason.TASK_FAILED and execution.failed:
            cause = culprit(after.spec, execution)
            if cause is None:
                raise self.broken(f"{name} does not keep the end that it failed for", name)
        if len(after.status.conditions) > 4:
            raise self.broken(f"{name} has {len(after.status.conditions)} conditions", name)
        ends = has_ended(after) and not (before is not None and has_ended(before))
        if ends and len(encode(after.status)) > MOST_STATUS_BYTES:
            raise self.broken(f"the status of {name} is too large", name)


class Settles(Promise):
    """Once trouble is over every Job ends, and one bad object holds up nobody else."""

    def settled(self) -> None:
        """Every good Job is over, nothing runs, and nothing is held."""
        truth = self.truth
        for job in truth.jobs.values():
            name = job.metadata.name
            if name in truth.bad:
                continue
            if not has_ended(job):
                raise self.broken(f"{name} is still {job.status.phase}", name, *_keys(job))
            if job.is_going and JOB_FINALIZER in job.metadata.finalizers:
                raise self.broken(f"{name} was deleted and does not go", name)
            if job.status.trouble is not None:
                raise self.broken(f"{name} is in trouble: {job.status.trouble.message}", name)
        self._check_locks()

    def _check_locks(self) -> None:
        for (_, key), lock in self.truth.locks.items():
            for holder in lock.status.holders:
                if holder.job not in self.truth.bad and lock.metadata.name not in self.truth.bad:
                    raise self.broken(f"{holder.job} is over and holds {key}", holder.job, key)


def _keys(job: Job) -> tuple[str, ...]:
    return tuple(request.key for request in lock_requests(job.spec))


#: Every promise that is checked.
PROMISES: tuple[type[Promise], ...] = (
    RecordedFirst,
    NeverTwice,
    TrueEnds,
    NeverLost,
    StopsForCause,
    InOrder,
    TokensRise,
    LegalMoves,
    PutBackWhole,
    StatusBounded,
    Settles,
)
