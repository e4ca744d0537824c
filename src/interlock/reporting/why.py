"""Why a Job is, or is not, running: the first line answers, the rest names who can change it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from interlock.control.backoff import LONGEST_S
from interlock.reporting.estimate import (
    Estimate,
    all_of,
    by_clock,
    by_ends,
    by_pace,
    earlier,
    pace_of,
)
from interlock.reporting.operation_why import operation_words, part_words, step_details, step_waits
from interlock.reporting.plan_why import plan_words
from interlock.reporting.queue_why import (
    QueueView,
    QueueWait,
    Share,
    amounts_in_words,
    ends_by,
    has_room,
    queue_wait,
)
from interlock.resources.admission import (
    AdmissionPhase,
    EvictionCause,
    EvictionReason,
    Grant,
    Wait,
    WaitReason,
)
from interlock.resources.ends import culprit, was_not_needed
from interlock.resources.job import (
    Job,
    JobPhase,
    LockRequest,
    is_operation,
    lock_requests,
    task_words,
)
from interlock.resources.lock import Holder, Lock, is_held_by
from interlock.resources.metadata import Order, Trouble
from interlock.resources.placement import UNSCHEDULED, placed, pods_scheduled
from interlock.resources.readiness import counted, granted_to, pods_ready
from interlock.resources.scheduling import Scheduling
from interlock.resources.tasks import EndedTask, StopCause, TaskState, TaskStatus, attempt_in_words
from interlock.resources.transitions import ended_at, has_ended, is_admitted
from interlock.resources.values.amounts import format_milli
from interlock.resources.waits import Blocker, Facts, why_words
from interlock.resources.words import clock_time, length, plural, since


class Waiting(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One thing that a Job waits for."""

    reason: str
    message: str
    key: str = ""
    holders: tuple[Blocker, ...] = ()
    #: The earliest moment at which this can change by itself.
    until: datetime | None = None
    #: The Job's place in the line, counted from 1, and how long the line is.
    place: int = 0
    of: int = 0
    #: Of each resource that it lacks: what it needs at the least, and what is free.
    needs: dict[str, int | str] = {}
    free: dict[str, int | str] = {}


class Why(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The whole answer."""

    job: str
    namespace: str
    phase: str
    summary: str
    waits: tuple[Waiting, ...] = ()
    #: About when it is let in, where that can be told of all that it waits for.
    estimate: Estimate | None = None
    #: Further lines, each a label and a text, in the order to be shown.
    details: tuple[tuple[str, str], ...] = ()
    #: The locks it holds, with their tokens.
    locks: dict[str, int] = {}


class LineView(Struct, frozen=True):
    """One lock as it matters to a waiting Job."""

    lock: Lock | None
    #: The Jobs behind the holders, as far as they are known.
    holders: tuple[tuple[Holder, Job | None], ...]
    place: int
    of: int


class WhyView(Struct, frozen=True, kw_only=True):
    """A Job, and the lines in front of the locks that it needs or says it holds."""

    job: Job
    lines: dict[str, LineView] = {}
    #: The Jobs that are parts of it.
    children: tuple[Job, ...] = ()
    #: Its Queue, if it is of one and not over.
    queue: QueueView | None = None
    #: Why it does not get the slots that it asks for; None where it does, or asks for none.
    slots: tuple[Wait, tuple[Blocker, ...]] | None = None
    #: Whether that was worked out; else what was written down is told.
    knows_slots: bool = False
    #: The plans that list it.
    plans: tuple[Scheduling, ...] = ()
    #: Why the server starts nothing at all now; empty when it does.
    stalled: str = ""


def explain(view: WhyView, now: datetime) -> Why:
    """Say why the Job is where it is, and what can change that."""
    job = view.job
    waits = _waits(view, now)
    claims = (*_claims(view), *_quota_claim(view))
    return Why(
        job=job.metadata.name,
        namespace=job.metadata.namespace,
        phase=job.status.phase.value,
        summary=_summary(job, waits, now, is_let_in=not claims),
        waits=waits,
        estimate=_estimate(view, waits, now),
        details=(
            *_stalled_details(view),
            *_details(job, now),
            *_put_back_by(view, now),
            *_part(view),
            *claims,
        ),
        locks={grant.key: grant.token for grant in _grants(view) if _is_proven(view, grant)},
    )


def _grants(view: WhyView) -> tuple[Grant, ...]:
    return () if has_ended(view.job) else view.job.status.admission.grants


def _is_proven(view: WhyView, grant: Grant) -> bool:
    """Whether the lock's record says too that the Job holds it: its own status proves nothing."""
    line = view.lines.get(grant.key)
    return line is not None and is_held_by(line.lock, view.job, grant)


def _claims(view: WhyView) -> Iterable[tuple[str, str]]:
    """Locks that the Job must hold by its status, and does not."""
    if not is_admitted(view.job) or has_ended(view.job):
        return
    tokens = {grant.key: f" (token {grant.token})" for grant in _grants(view)}
    proven = {grant.key for grant in _grants(view) if _is_proven(view, grant)}
    for key in dict.fromkeys((*tokens, *(request.key for request in lock_requests(view.job.spec)))):
        if key in proven:
            continue
        line = view.lines.get(key)
        names = [f"job/{holder.job}" for holder, _ in line.holders] if line is not None else []
        named = ", ".join(names[:3]) or "nobody"
        yield "claims", f"lock {key}{tokens.get(key, '')}, but the lock names {named}"


def _part(view: WhyView) -> Iterable[tuple[str, str]]:
    """What the Job holds of its Queue's quota, and its slots."""
    uid = view.job.metadata.uid
    for share in view.queue.shares if view.queue is not None else ():
        if share.holder.uid == uid and share.holder.epoch == view.job.status.admission.epoch:
            yield "holds", f"of queue {share.holder.queue}: {amounts_in_words(share.held)}"
    slots = view.job.status.admission.slots
    if slots is not None and not has_ended(view.job):
        named = ", ".join(slots.ids[:10]) + (", …" if len(slots.ids) > 10 else "")
        yield "holds", f"of test bed {slots.test_bed}: {named}"


def _quota_claim(view: WhyView) -> Iterable[tuple[str, str]]:
    """That the Job must hold a part of a quota by its status, and does not."""
    job, queue = view.job, view.queue
    if queue is not None and is_admitted(job) and not has_ended(job) and not queue.is_granted:
        yield "claims", f"room in queue {queue.name}, but its quota does not name this Job"


def _summary(job: Job, waits: Sequence[Waiting], now: datetime, *, is_let_in: bool) -> str:
    name, phase, execution = job.metadata.name, job.status.phase, job.status.execution
    age = since(job.metadata.creation_timestamp, now)
    if phase is JobPhase.QUEUED:
        placed = next((_placed(wait) for wait in waits if wait.of), "")
        return f"{name} is waiting ({age}){placed}"
    if has_ended(job):
        return _end(job)
    if phase is JobPhase.STARTING and not is_let_in:
        return f"{name} was not let in, whatever its status says: nothing of it is started"
    ran = since(execution.started_at, now)
    done = f"{len(execution.succeeded)} of {plural(execution.total, 'task')} done"
    again = len(execution.retrying)
    beside = f", {again} {'waits' if again == 1 else 'wait'} to be tried again" if again else ""
    because = f": {execution.message}" if execution.message else ""
    words = {
        JobPhase.STARTING: f"{name} may start and is about to",
        JobPhase.PENDING: f"{name} is starting ({ran})",
        JobPhase.RUNNING: f"{name} is running ({ran}): {done}{beside}",
        JobPhase.RETRYING: f"{name} is starting another attempt: {done}",
        JobPhase.RETRY_BACKOFF: f"{name} waits to try again: {done}",
        JobPhase.TERMINATING: f"{name} is decided, and its other tasks are being stopped{because}",
        JobPhase.KILLING: f"{name} is being stopped{because}",
        **operation_words(job, now),
        JobPhase.EVICTING: f"{name} is being put back: it still holds all it held, and its tasks"
        " are being stopped",
        JobPhase.UNKNOWN: f"{name} is in an unknown state"
        + (" and keeps its locks" if job.status.admission.grants else ""),
    }
    return words[phase]


def _placed(wait: Waiting) -> str:
    line = "for lock" if wait.reason == WaitReason.LOCK_TAKEN.value else "in queue"
    return f", place {wait.place} of {wait.of} {line} {wait.key}"


def _end(job: Job) -> str:
    name, status = job.metadata.name, job.status
    if status.admission.phase is AdmissionPhase.REFUSED:
        again = " again" if status.admission.evictions else ""
        return f"{name} never started{again}: {status.admission.message}"
    execution = status.execution
    over = ended_at(job)
    ran = length(over - execution.started_at) if over and execution.started_at else ""
    word = {
        JobPhase.SUCCEEDED: "succeeded in",
        JobPhase.FAILED: "failed after",
        JobPhase.KILLED: "was stopped after",
        JobPhase.FINISHED_UNKNOWN: "was written off after",
    }[status.phase]
    said = f"{name} {word} {ran}".rstrip()
    return f"{said}: {execution.message}" if execution.message else said


def _waits(view: WhyView, now: datetime) -> tuple[Waiting, ...]:
    job = view.job
    if job.status.phase is JobPhase.QUEUED:
        recorded = [w for w in job.status.admission.waits if not _is_asked_anew(w, view)]
        waits = [_in_plan(view, _held_back(job, wait, now)) for wait in recorded]
        if view.slots is not None:
            waits.append(_held_back(job, view.slots[0], now, view.slots[1]))
        for request in lock_requests(job.spec):
            waits.extend(_lock_waits(view, request, now))
        waits.extend(_queue_waits(view, now, is_held_back=bool(waits)))
        return (*stalls(view.stalled), *waits) or (_not_looked_at(),)
    stalled = view.stalled if job.status.phase in _TO_START else ""
    retried = (
        Waiting(reason="RetryBackoff", message=message, until=until)
        for message, until in step_waits(job, now)
    )
    of_tasks = (*_launch_waits(job, now), *_retry_waits(job, now), *retried)
    return (*stalls(stalled), *of_tasks, *_part_waits(view))


def _in_plan(view: WhyView, wait: Waiting) -> Waiting:
    """A wait for a plan, in the words of those that list the Job."""
    if wait.reason not in _OF_PLANS:
        return wait
    told = dict(plan_words(view.job, view.plans))
    if not told:
        return wait
    return replace(wait, message="; ".join(told.values()), key=wait.key or next(iter(told)))


def _part_waits(view: WhyView) -> Iterable[Waiting]:
    """That parts of it are not over, which it is not before them."""
    if not has_ended(view.job) and (message := part_words(view.children)):
        yield Waiting(reason="PartsUnfinished", message=message)


def _is_asked_anew(wait: Wait, view: WhyView) -> bool:
    """Whether a wait is worked out from what is held now, and not from when it was written down."""
    if wait.reason in _OF_SLOTS:
        return view.knows_slots
    return wait.reason is WaitReason.LOCK_TAKEN or (
        view.queue is not None and wait.reason in _OF_QUEUES
    )


_OF_PLANS = frozenset({WaitReason.UNCLAIMED.value, WaitReason.IN_PLAN.value})
_OF_SLOTS = frozenset({WaitReason.SLOTS_TAKEN, WaitReason.BED_TOO_SMALL, WaitReason.NO_TEST_BED})
_OF_QUEUES = frozenset(
    {
        WaitReason.QUOTA_TAKEN,
        WaitReason.QUOTA_TOO_SMALL,
        WaitReason.NO_QUEUE,
        WaitReason.QUEUE_NOT_ALLOWED,
        WaitReason.NAMESPACE_UNKNOWN,
        WaitReason.QUEUE_STOPPED,
        WaitReason.GATE_CLOSED,
    }
)
#: Phases in which a task is still to be started.
_TO_START = frozenset(
    {JobPhase.STARTING, JobPhase.PENDING, JobPhase.RETRYING, JobPhase.RETRY_BACKOFF}
)


def stalls(stalled: str) -> Iterable[Waiting]:
    """That the server starts nothing, whoever waits."""
    if stalled:
        yield Waiting(reason="ServerNotReady", message=f"nothing is started: {stalled}")


def _not_looked_at() -> Waiting:
    return Waiting(reason="NotLookedAt", message="it was not looked at since it last changed")


def _held_back(job: Job, wait: Wait, now: datetime, blockers: tuple[Blocker, ...] = ()) -> Waiting:
    return Waiting(
        reason=wait.reason.value,
        message=why_words(wait, Facts(job, now, blockers)),
        key=wait.key,
        holders=blockers,
        until=wait.until,
    )


def _lock_waits(view: WhyView, request: LockRequest, now: datetime) -> Iterable[Waiting]:
    line = view.lines.get(request.key)
    if line is None:
        return
    uid = view.job.metadata.uid
    blockers = tuple(_blocker(holder, job) for holder, job in line.holders if holder.uid != uid)
    if not blockers and line.place <= 1:
        return
    wait = Wait(reason=WaitReason.LOCK_TAKEN, key=request.key)
    yield Waiting(
        reason=wait.reason.value,
        message=why_words(wait, Facts(view.job, now, blockers)),
        key=request.key,
        holders=blockers,
        until=min((b.ends_by for b in blockers if b.ends_by and b.ends_by > now), default=None),
        place=line.place,
        of=line.of,
    )


def _queue_waits(view: WhyView, now: datetime, *, is_held_back: bool) -> Iterable[Waiting]:
    """That there is no room in the Queue; of no account to one that could not use it yet."""
    queue = view.queue
    wait = queue_wait(queue, view.job, now) if queue is not None else None
    if queue is None or wait is None or (is_held_back and not _matters_besides(queue, wait)):
        return
    yield Waiting(
        reason=wait.reason.value,
        message=wait.message,
        key=queue.name,
        holders=tuple(map(_share_blocker, wait.holders)),
        until=wait.until,
        place=queue.place,
        of=queue.of if queue.place else 0,
        needs=wait.needs,
        free=wait.free,
    )


#: Waits that end at the moment that they name.
_OF_CLOCKS = frozenset({WaitReason.NOT_YET_DUE.value, WaitReason.BACKOFF.value})


def _estimate(view: WhyView, waits: Sequence[Waiting], now: datetime) -> Estimate | None:
    """About when a Job that waits is let in: once all that it waits for has come."""
    if view.job.status.phase is not JobPhase.QUEUED:
        return None
    return all_of(_estimate_of(view, wait, now) for wait in waits)


def _estimate_of(view: WhyView, wait: Waiting, now: datetime) -> Estimate | None:
    queue, until = view.queue, wait.until
    ends = by_ends(until, now) if until is not None and until > now else None
    if wait.reason in _OF_CLOCKS:
        return by_clock(until, now) if until is not None and until > now else None
    if wait.reason == WaitReason.LOCK_TAKEN.value:
        return ends if wait.place <= 1 else None
    if queue is None or wait.key != queue.name or queue.refusal is not None or has_room(queue):
        return None
    if wait.reason == WaitReason.GATE_CLOSED.value and (wait.place > 1 or wait.needs):
        # The gate opens for one at a time.
        ends = None
    pace = pace_of(queue.let_in, now)
    return earlier((ends, by_pace(pace, wait.place, now) if pace and wait.place else None))


def _matters_besides(queue: QueueView, wait: QueueWait) -> bool:
    """Whether a Job that waits for something else too would wait for this without that."""
    return queue.refusal is not None or (queue.place > 0 and bool(wait.needs))


def _share_blocker(share: Share) -> Blocker:
    holder = share.holder
    return Blocker(
        job=holder.job,
        phase=share.phase,
        since=holder.granted_at,
        token=holder.token,
        ends_by=share.ends_by,
        holds={name: format_milli(amount) for name, amount in sorted(share.held.items())},
    )


def _blocker(holder: Holder, job: Job | None) -> Blocker:
    return Blocker(
        job=holder.job,
        phase=job.status.phase.value if job is not None else "Gone",
        since=holder.granted_at,
        token=holder.token,
        ends_by=ends_by(job) if job is not None else None,
    )


def _launch_waits(job: Job, now: datetime) -> Iterable[Waiting]:
    """That tasks cannot be started now, whose fault it is, and until when that is waited for."""
    trouble = job.status.trouble
    if has_ended(job) or trouble is None or trouble.order is not Order.LAUNCH:
        return
    starting = (t for t in job.status.execution.active if t.state is TaskState.STARTING)
    given = job.spec.pending_timeout
    yield Waiting(
        reason="LaunchDenied",
        message=f"it waits for the cluster: {_denied_words(trouble, now)}",
        until=min((task.created_at + given for task in starting), default=None) if given else None,
    )


def _retry_waits(job: Job, now: datetime) -> Iterable[Waiting]:
    execution = job.status.execution
    if has_ended(job) or not execution.retrying:
        return
    first = min(execution.retrying, key=lambda wait: wait.not_before)
    message = (
        f"{plural(len(execution.retrying), 'task')} to try again, the first "
        f"(task {first.index}, {attempt_in_words(first.attempt, job.spec.retries.limit + 1)}) "
        f"at {clock_time(first.not_before, now)}"
    )
    if execution.active:
        others = "the other goes" if len(execution.active) == 1 else "the others go"
        message += f"; {others} on meanwhile"
    yield Waiting(reason="RetryBackoff", message=message, until=first.not_before)


def _details(job: Job, now: datetime) -> Iterable[tuple[str, str]]:
    trouble = job.status.trouble
    if trouble is not None and trouble.order is not Order.LAUNCH:
        yield "trouble", _trouble_words(trouble, now)
    yield from _eviction(job, now)
    yield from _readiness(job, now)
    yield from _placement(job, now)
    yield from step_details(job)
    if job.is_going:
        yield "deleted", f"it goes as soon as {_goes_once(job)}"
    denied = trouble is not None and trouble.order is Order.STOP
    for task in job.status.execution.active[:10]:
        yield "task", _task_words(job, task, now, stop_is_denied=denied)
    hidden = len(job.status.execution.active) - 10
    if hidden > 0:
        yield "", f"and {plural(hidden, 'more task')}"
    if job.status.phase is JobPhase.UNKNOWN:
        name = job.metadata.name
        yield "way out", f"if it is surely gone: interlock release {name} --reason …"
    yield from _ends(job)


def _goes_once(job: Job) -> str:
    """What is to be so before a Job goes that is being deleted."""
    if job.status.phase is JobPhase.STUCK:
        return "somebody has seen to what it is stuck at"
    if job.status.phase is JobPhase.REVERTING:
        return "what it did is undone"
    return "its tasks are proven gone"


#: Why a Job was put back, in words.
_PUT_BACK = {
    EvictionReason.REQUEUED: "requeued",
    EvictionReason.QUEUE_STOPPED: "its queue was drained",
    EvictionReason.DEACTIVATED: "taken out of its queue",
    EvictionReason.PODS_READY_TIMEOUT: "not ready in time",
    EvictionReason.PREEMPTED: "made room for others",
}


def _eviction(job: Job, now: datetime) -> Iterable[tuple[str, str]]:
    """That the Job is, or was, put back: by whom, why, when, and how often."""
    admission = job.status.admission
    eviction = admission.eviction
    if eviction is None:
        return
    who = _PUT_BACK.get(eviction.reason, eviction.reason.value)
    who += f" by {eviction.by}" if eviction.by else ""
    why = f": {eviction.message}" if eviction.message else ""
    if eviction.ended_at is None:
        since_then = clock_time(eviction.began_at, now)
        yield "put back", f"{who} at {since_then}{why}; then it waits again, behind others"
        return
    times = plural(admission.evictions, "time")
    last = clock_time(eviction.ended_at, now)
    yield "put back", f"{times}, last at {last}, {who}{why}"


def _readiness(job: Job, now: datetime) -> Iterable[tuple[str, str]]:
    """Whether as many tasks can do their work as may run at a time, and since when."""
    condition = pods_ready(job)
    if condition is None or has_ended(job) or not is_admitted(job):
        return
    granted = granted_to(job.status.admission)
    is_so, needed = counted(job.spec, job.status.execution, granted)
    since_then = clock_time(condition.last_transition_time, now)
    told = f"{is_so} of {plural(needed, 'task')} ready or done"
    yield "ready", f"{condition.reason}: {told} (since {since_then})"


def _placement(job: Job, now: datetime) -> Iterable[tuple[str, str]]:
    """How many of the tasks that have to be ready have no place to run, and since when."""
    condition = pods_scheduled(job)
    if condition is None or condition.reason != UNSCHEDULED or has_ended(job):
        return
    has, needed = placed(job.spec, job.status.execution, job.status.admission)
    if has >= needed or not is_admitted(job):
        return
    verb = "is" if needed - has == 1 else "are"
    since_then = clock_time(condition.last_transition_time, now)
    told = f"{needed - has} of {plural(needed, 'task')} {verb} placed nowhere since {since_then}"
    yield "places", told


def _put_back_by(view: WhyView, now: datetime) -> Iterable[tuple[str, str]]:
    """When a Job that is not ready is put back at the latest, and what would save it from that."""
    clock = view.queue.clock if view.queue is not None else None
    if clock is not None:
        wanted = _WANTED_BY[clock.cause]
        yield "put back", f"at {clock_time(clock.ends_at, now)}, if {wanted} ({clock.cause.value})"


_WANTED_BY = {
    EvictionCause.WAIT_FOR_START: "it is not ready by then",
    EvictionCause.WAIT_FOR_RECOVERY: "it is not ready again by then",
    EvictionCause.UNSCHEDULED: "not all of these tasks have a place by then",
}


def _ends(job: Job) -> Iterable[tuple[str, str]]:
    """The last ends that are worth a line; before them that for which the Job failed."""
    execution = job.status.execution
    cause = culprit(job.spec, execution)
    others = [end for end in execution.ended if end is not cause and not was_not_needed(end)]
    told = [end for end in others if end.message or end.exit_code]
    first = () if cause is None else (cause,)
    for ended in (*first, *told[-3 + len(first) :]):
        code = f"exit code {ended.exit_code}" if ended.exit_code is not None else ""
        name = _attempt_name(job, ended)
        yield "ended", f"{name} {ended.result.value} {ended.message or code}".rstrip()
    if cause is not None and execution.total > 1 and not is_operation(job.spec):
        yield "log", f"interlock logs {job.metadata.name} --task {cause.index}"


def _attempt_name(job: Job, task: TaskStatus | EndedTask) -> str:
    """The name of an attempt; where there may be others, which it is. People count from 1."""
    if is_operation(job.spec):
        return f"{task_words(job, task.index)} ({attempt_in_words(task.attempt)})"
    limit = job.spec.retries.limit
    if not limit:
        return task.name
    return f"{task.name} ({attempt_in_words(task.attempt, limit + 1)})"


def _stalled_details(view: WhyView) -> Iterable[tuple[str, str]]:
    """That what runs is not seen to end, nor stopped, as long as the server cannot."""
    phase = view.job.status.phase
    if view.stalled and phase not in _TO_START | {JobPhase.QUEUED} and not has_ended(view.job):
        yield "trouble", f"its tasks are neither watched nor stopped: {view.stalled}"


def _trouble_words(trouble: Trouble, now: datetime) -> str:
    """What is wrong, and since when."""
    if trouble.order is Order.STOP:
        return f"its stop is denied by the cluster: {_denied_words(trouble, now)}"
    return f"{trouble.room}: {trouble.message} (since {clock_time(trouble.since, now)})"


def _denied_words(trouble: Trouble, now: datetime) -> str:
    tries = f"tried again at least every {LONGEST_S:.0f} s"
    return f"{trouble.message} ({since(trouble.since, now)}; {tries})"


_STOP_WORDS = {
    StopCause.KILLED: "the Job was told to stop",
    StopCause.DELETED: "the Job is being deleted",
    StopCause.REPLACED: "a newer Job replaces it",
    StopCause.PENDING_TIMEOUT: "it did not start in time",
    StopCause.TASK_TIMEOUT: "it ran longer than its timeout",
    StopCause.JOB_TIMEOUT: "the Job ran longer than its timeout",
    StopCause.EVICTED: "the Job is put back",
    StopCause.NOT_NEEDED: "the outcome does not depend on it any more",
}


def _task_words(job: Job, task: TaskStatus, now: datetime, *, stop_is_denied: bool) -> str:
    running = f" for {since(task.started_at, now)}" if task.started_at is not None else ""
    said = f"{_attempt_name(job, task)} {task.state.value.lower()}{running}"
    if task.state is TaskState.UNKNOWN:
        return f"{said}: {task.message}"
    if task.pid is not None:
        said = f"{said} (pid {task.pid})"
    if task.state is TaskState.RUNNING and task.ready is False:
        said = f"{said}, not ready"
    if task.progress is not None:
        said = f"{said}, {task.progress.percent} % done {task.progress.text}".rstrip()
    if task.stop_cause is not None and task.stop_at is not None:
        ago = since(task.stop_at, now)
        told = f"to be stopped for {ago}" if stop_is_denied else f"told to stop {ago} ago"
        said = f"{said}, {told}: {_STOP_WORDS[task.stop_cause]}"
        return f"{said}; {task.message}" if task.message else said
    return f"{said}: {task.message}" if task.message else said
