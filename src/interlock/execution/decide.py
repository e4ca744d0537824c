"""What a Job does next: start, retry, stop, end, go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from interlock.execution.capacity import taken
from interlock.execution.composing import compose, earliest, next_look
from interlock.execution.folding import Folded, fold, with_ends, written_off
from interlock.execution.launching import choose, with_attempts
from interlock.execution.leftovers import clear_away, is_over, may_run, past_reports, repeat_at
from interlock.execution.orders import order_of
from interlock.execution.steering import steer, taken_up
from interlock.execution.stopping import (
    Settled,
    Stops,
    ended,
    halt,
    outcome_of,
    settled_by,
    stopping,
)
from interlock.execution.view import ExecutionView
from interlock.execution.wording import FORGET, ends, how_it_ended, outcome
from interlock.resources.actions import (
    Action,
    AddFinalizer,
    CreateJob,
    Decision,
    DeleteResource,
    ForgetTask,
    LaunchTask,
    RecordExecution,
    RemoveFinalizer,
)
from interlock.resources.job import (
    JOB_FINALIZER,
    RELEASE_ANNOTATION,
    RELEASED_BY_ANNOTATION,
    Job,
    is_function,
    is_operation,
    released_attempts,
    task_words,
)
from interlock.resources.placement import awaits_places
from interlock.resources.tasks import (
    KEPT_ENDED,
    EndedTask,
    ExecutionReason,
    ExecutionStatus,
    TaskReport,
    TaskState,
)
from interlock.resources.transitions import ended_at, has_ended, is_admitted, is_evicting
from interlock.resources.values.indexes import IndexSet
from interlock.resources.variables import UnknownVariableError, task_count
from interlock.resources.work_types import runs_nothing

_GONE = "clear away what is left of a Job that is gone"


class Plan(NamedTuple):
    """A decision, and what the room on this machine needs to know of it."""

    decision: Decision
    #: How many attempts the Job has under way once the decision is carried out.
    active: int = 0
    #: How many of them take room on this machine.
    taken: int = 0
    #: Whether more would start if there were room on the machine.
    starved: bool = False
    #: Whether it records the end of the Job.
    ends: bool = False


def decide(view: ExecutionView, now: datetime) -> Decision:
    """Decide what the Job does next."""
    return plan(view, now).decision


def plan(view: ExecutionView, now: datetime) -> Plan:
    """Decide what the Job does next.

    Nothing happens before admission. What the reports say is taken in first, then the outcome
    is settled, then tasks are stopped, and only a Job that goes on starts further ones. An
    attempt is recorded before it is launched, by the action before it.
    """
    job = view.job
    if job is None:
        return _with_strays(view, Plan(Decision()), now)
    if has_ended(job):
        found = Plan(_rest(view, job, now))
    elif is_admitted(job):
        found = _advance(view, job, now)
    else:
        found = Plan(_between_rounds(view, job, now))
    return _with_strays(view, found, now) if view.strays else found


def _with_strays(view: ExecutionView, found: Plan, now: datetime) -> Plan:
    """Add what is to be done about reports of older Jobs of the same name."""
    cleared = tuple(clear_away(view, None, view.strays, now))
    again_at = _repeat_of(view, view.strays, now)
    decision = found.decision
    merged = Decision(
        decision.actions + cleared,
        earliest((decision.wake_at, again_at), now),
        decision.reason or (_GONE if cleared else ""),
        is_notable=decision.is_notable or bool(cleared),
    )
    return found._replace(decision=merged)


# A Job that is over


def _rest(view: ExecutionView, job: Job, now: datetime) -> Decision:
    """Have the runtime forget, then let the object go when it is wanted gone or has had its time.

    The object stays while anything of it is known to run, even if its status says otherwise.
    """
    cleared: tuple[Action, ...] = ()
    if view.reports:
        past = past_reports(view, job.status.execution, is_over=True)
        cleared = tuple(clear_away(view, job, past, now))
        if any(map(may_run, past)):
            why = "stop what must not run any more" if cleared else ""
            return Decision(cleared, _repeat_of(view, past, now), why)
    reason = FORGET if cleared else ""
    if job.is_going:
        if JOB_FINALIZER not in job.metadata.finalizers:
            return Decision(cleared, None, reason)
        let_go = RemoveFinalizer(job, JOB_FINALIZER)
        return Decision((*cleared, let_go), None, "nothing of the Job runs: it may go")
    ttl, over_at = job.spec.ttl_after_finished, ended_at(job)
    if ttl is None or over_at is None or view.has_open_parent or view.children.unfinished:
        return Decision(cleared, None, reason)
    if over_at + ttl > now:
        return Decision(cleared, over_at + ttl, reason)
    return Decision((*cleared, DeleteResource(job)), None, f"ended more than {ttl} ago")


def _repeat_of(
    view: ExecutionView, reports: Iterable[TaskReport], now: datetime
) -> datetime | None:
    return earliest((repeat_at(view, report.id, report, now) for report in reports), now)


# A Job that was put back


def _between_rounds(view: ExecutionView, job: Job, now: datetime) -> Decision:
    """Have the runtime forget what is left of earlier rounds while the Job waits."""
    if not view.reports or not job.status.execution.round:
        return Decision()
    past = past_reports(view, job.status.execution)
    cleared = tuple(clear_away(view, job, past, now))
    return Decision(cleared, _repeat_of(view, past, now), FORGET if cleared else "")


# A Job that is under way


def _advance(view: ExecutionView, job: Job, now: datetime) -> Plan:
    recorded = job.status.execution
    wants_places = awaits_places(job.status.admission)
    folded = fold(
        recorded.active, view.reports, view.reports_complete, now, wants_places=wants_places
    )
    folded, released = _release(job, folded, now)
    if is_operation(job.spec):
        return _held(job, _operate(view, job, folded, now))
    observed = recorded
    if folded.news or folded.over:
        observed = with_ends(job, recorded, folded.active, folded.over, now)
    execution = _settle(job, observed, released, now)
    if execution.result is not None:
        return _end(view, job, execution, folded.over)
    halted = halt(job, execution, now)
    if halted.new or halted.shorter:
        execution = replace(execution, active=halted.active)
    goes_on = execution.stopping_for is None and not is_evicting(job)
    if goes_on and not job.spec.suspend and view.may_launch:
        return _held(job, _launch(view, job, folded, execution, halted, now))
    decision = compose(view, job, folded, execution, halted, (), now)
    return _held(job, _going_on(_troubled(view, decision, now), execution))


def _operate(view: ExecutionView, job: Job, folded: Folded, now: datetime) -> Plan:
    """Go on with an operation: what ended is taken in, and what is due started, in one write."""
    recorded = execution = job.status.execution
    if folded.news or folded.over:
        ends = recorded.ended + tuple(sorted(folded.over, key=lambda end: end.ended_at))
        execution = replace(recorded, active=folded.active, ended=ends[-KEPT_ENDED:])
    may_start = not job.spec.suspend and view.may_launch
    # What ended since the last write has made room.
    room = view.capacity + taken(recorded.active) - taken(folded.active) if may_start else 0
    steered = steer(view, job, execution, folded.over, max(0, room), now)
    execution, found = steered.execution, steered.next
    before = taken_up(view, job, folded.over, now) if folded.over else None
    if before is not None and _told_apart(before, execution):
        # It was taken up, and nobody knew before it was over: that is recorded first.
        seen = Folded(before.active, news=True)
        decision = compose(view, job, seen, before, Stops(before.active), (), now)
        return _going_on(replace(decision, wake_at=now), before)
    if execution.result is not None:
        plan = _end(view, job, execution, ())
        reason = "; ".join((*_steps_ended(job, folded.over), plan.decision.reason))
        return plan._replace(decision=replace(plan.decision, reason=reason))
    # The steps that were made just now are in what is about to be recorded.
    ahead = replace(job, status=replace(job.status, execution=execution))
    try:
        orders = [order_of(ahead, *attempt) for attempt in found.attempts]
    except UnknownVariableError as error:
        settled = Settled(ExecutionReason.TASK_FAILED, f"a step cannot be started: {error}")
        return _end(view, job, ended(execution, settled, now), folded.over)
    if found.attempts:
        execution = with_attempts(ahead, execution, found.attempts, now)
    if execution == recorded or (execution.started_at is None and not found.attempts):
        execution = recorded
    launches = tuple(LaunchTask(job, order) for order in orders)
    decision = compose(view, job, folded, execution, steered.stops, launches, now)
    if not launches and execution is not recorded:
        # Nothing that is launched tells who did them that they are recorded, and it may be long
        # before anything is: they would keep the results until then, and could not end.
        forgets = _forgets(view, job, folded.over)
        decision = replace(decision, actions=(*decision.actions, *forgets))
    if steered.children and may_start:
        creates = (CreateJob(child) for child in steered.children)
        decision = replace(decision, actions=(*decision.actions, *creates))
    if found.is_due and may_start:
        decision = replace(decision, wake_at=now)
    reasons = _steps_ended(job, folded.over)
    reasons += [f"start {task_words(ahead, task)}" for task, _ in found.attempts]
    if steered.children and may_start:
        reasons.append(f"make {len(steered.children)} parts of it")
    if reasons:
        decision = replace(decision, reason="; ".join(reasons))
    starved = found.starved and may_start
    return _going_on(_troubled(view, decision, now), execution, starved=starved)


def _told_apart(before: ExecutionStatus, after: ExecutionStatus) -> bool:
    """Whether an operation is told in other words after a look than before."""
    was, now = before.operation, after.operation
    assert was is not None
    assert now is not None
    words = (was.state, was.retry_count, was.rollback_retry_count)
    return words != (now.state, now.retry_count, now.rollback_retry_count)


def _forgets(view: ExecutionView, job: Job, over: tuple[EndedTask, ...]) -> Iterator[ForgetTask]:
    """Have the runtime forget what has ended, after the write that records it."""
    for end in over:
        report = view.reports.get((end.index, end.attempt))
        if report is not None and is_over(report):
            yield ForgetTask(job, report.id)


def _steps_ended(job: Job, over: tuple[EndedTask, ...]) -> list[str]:
    return [
        f"{task_words(job, end.index)} {how_it_ended(end, of_function=is_function(job, end.index))}"
        for end in over
    ]


def _troubled(view: ExecutionView, decision: Decision, now: datetime) -> Decision:
    """The decision about a Job that starts nothing because it does not hold what it says, told."""
    if not view.ungranted:
        return decision
    claims = ", ".join(view.ungranted)
    told = (
        f"NotGranted: the record of {claims} does not name this Job, so nothing of it is"
        " started; delete it, and create it anew to have it wait its turn"
    )
    # It is written once there is nothing else to do, so there has to be such a look.
    wake_at = now if decision.actions else decision.wake_at
    return replace(decision, wake_at=wake_at, trouble=told)


def _release(job: Job, folded: Folded, now: datetime) -> tuple[Folded, str | None]:
    """Write off what is Unknown once a person has said that it is gone.

    Only the attempts that the person spoke of: a word that was given before, when others or none
    were Unknown, was not about these, and nobody may have looked.
    """
    annotations = job.metadata.annotations
    reason = annotations.get(RELEASE_ANNOTATION)
    if reason is None:
        return folded, None
    named = released_attempts(job)
    lost = tuple(
        task
        for task in folded.active
        if task.state is TaskState.UNKNOWN and f"{task.index}-{task.attempt}" in named
    )
    if not lost:
        return folded, None
    still = tuple(task for task in folded.active if task not in lost)
    who = annotations.get(RELEASED_BY_ANNOTATION, "")
    over = folded.over + tuple(written_off(task, reason, who, now) for task in lost)
    return Folded(still, over, news=True), reason or "a person wrote off its tasks"


def _settle(
    job: Job, execution: ExecutionStatus, released: str | None, now: datetime
) -> ExecutionStatus:
    """End the Job, or have it stop, once its outcome is settled. The first reason stays."""
    if released is not None:
        execution = stopping(execution, Settled(ExecutionReason.RELEASED, released), now)
    if execution.stopping_for is not None:
        if execution.active:
            return execution
        return ended(execution, outcome_of(job, execution), now)
    settled = settled_by(job, execution, now)
    if settled is None:
        return execution
    return (stopping if execution.active else ended)(execution, settled, now)


def _end(
    view: ExecutionView, job: Job, execution: ExecutionStatus, over: tuple[EndedTask, ...]
) -> Plan:
    """Record the end; after that write the runtime may forget, and the object may go."""
    assert execution.result is not None, f"{job.key}: not ended"
    reason = outcome(execution.result, execution.message)
    if over and execution.reason is not ExecutionReason.TASK_FAILED:
        reason = f"{ends(over)}; {reason}"
    ttl = job.spec.ttl_after_finished
    wake_at = None if ttl is None or execution.ended_at is None else execution.ended_at + ttl
    forgets = [ForgetTask(job, each.id) for each in view.reports.values() if is_over(each)]
    decision = Decision((RecordExecution(job, execution), *forgets), wake_at, reason)
    return Plan(decision, ends=True)


def _launch(
    view: ExecutionView,
    job: Job,
    folded: Folded,
    execution: ExecutionStatus,
    halted: Stops,
    now: datetime,
) -> Plan:
    """Start what may start, in the same write that records everything else."""
    if execution.total == 0:
        total = task_count(job.spec)
        if total == 0 or runs_nothing(job.spec):
            return _end(view, job, _without_process(execution, total, now), ())
        execution = replace(execution, total=total)
    # What ended since the last write has made room.
    capacity = view.capacity + taken(job.status.execution.active) - taken(execution.active)
    chosen = choose(job, execution, capacity, now)
    if not chosen.attempts:
        if execution.started_at is None:
            look_at = next_look(view, job, execution, now)
            return Plan(Decision(wake_at=look_at), starved=chosen.starved)
        decision = compose(view, job, folded, execution, halted, (), now)
        return _going_on(decision, execution, starved=chosen.starved)
    begun = with_attempts(job, execution, chosen.attempts, now)
    # Which slot each of them is in is in what is about to be recorded.
    is_placed = job.status.admission.slots is not None
    ahead = replace(job, status=replace(job.status, execution=begun)) if is_placed else job
    try:
        now_first = chosen.attempts[: view.launches_at_once]
        launches = tuple(LaunchTask(job, order_of(ahead, *attempt)) for attempt in now_first)
    except UnknownVariableError as error:
        return _give_up(view, job, folded, execution, halted, str(error), now)
    decision = compose(view, job, folded, begun, halted, launches, now)
    return _going_on(decision, begun, starved=chosen.starved)


def _going_on(decision: Decision, execution: ExecutionStatus, *, starved: bool = False) -> Plan:
    """The plan of a Job that has these attempts under way once the decision is carried out."""
    return Plan(decision, len(execution.active), taken(execution.active), starved)


def _held(job: Job, found: Plan) -> Plan:
    """Hold the object until its tasks are gone: before there is any, and if somebody let it go.

    What is going already cannot be held any more.
    """
    if not found.active or JOB_FINALIZER in job.metadata.finalizers or job.is_going:
        return found
    decision = found.decision
    actions = (AddFinalizer(job, JOB_FINALIZER), *decision.actions)
    reason = decision.reason or "hold the object until its tasks are gone"
    return found._replace(decision=Decision(actions, decision.wake_at, reason))


def _without_process(execution: ExecutionStatus, total: int, now: datetime) -> ExecutionStatus:
    """A Job with nothing to run is over as soon as it may start."""
    if total == 0:
        return ended(execution, Settled(ExecutionReason.TASK_FAILED, "the Job has no task"), now)
    done = IndexSet.parse(f"0-{total - 1}")
    begun = replace(execution, total=total, started_at=now, succeeded=done)
    return ended(begun, Settled(ExecutionReason.COMPLETED), now)


def _give_up(
    view: ExecutionView,
    job: Job,
    folded: Folded,
    execution: ExecutionStatus,
    halted: Stops,
    problem: str,
    now: datetime,
) -> Plan:
    """Fail a Job whose tasks cannot even be described: trying again would not help."""
    settled = Settled(ExecutionReason.TASK_FAILED, f"its tasks cannot be started: {problem}")
    if not execution.active:
        return _end(view, job, ended(execution, settled, now), folded.over)
    execution = stopping(execution, settled, now)
    rest = halt(job, execution, now)
    halted = Stops(rest.active, halted.new + rest.new, halted.shorter + rest.shorter)
    execution = replace(execution, active=rest.active)
    return _going_on(compose(view, job, folded, execution, halted, (), now), execution)
