"""The decision about a running Job put together: its actions in order, and the next look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from interlock.execution.folding import Folded
from interlock.execution.leftovers import clear_away, must_tell, past_reports, repeat_at
from interlock.execution.orders import order_again
from interlock.execution.stopping import Stops, moments
from interlock.execution.view import ExecutionView
from interlock.execution.wording import FORGET, ends, starts, states, stops
from interlock.resources.actions import (
    Action,
    Decision,
    ForgetTask,
    LaunchTask,
    RecordExecution,
    StopTask,
)
from interlock.resources.job import Job
from interlock.resources.operation import OperationState
from interlock.resources.placement import turns_placed
from interlock.resources.readiness import turns_ready
from interlock.resources.tasks import ExecutionStatus, TaskId, TaskState, TaskStatus

#: While the runtime has not told all it knows, look again after this time.
_UNTIL_COMPLETE = timedelta(seconds=1)


def compose(
    view: ExecutionView,
    job: Job,
    folded: Folded,
    execution: ExecutionStatus,
    halted: Stops,
    launches: tuple[LaunchTask, ...],
    now: datetime,
) -> Decision:
    """Put the actions in their order, around the one write.

    Less time to stop is told before it is recorded: were it lost in between, the status would
    claim that it was told. Everything else comes after the write that allows it. What is left of
    attempts before these goes before the next are launched: it may be in their way.
    """
    recorded = job.status.execution
    actions: list[Action] = [_stop(job, task) for task in halted.shorter]
    quiet_until = _quiet_until(view, job, folded, execution, now)
    if execution is not recorded and quiet_until is None:
        actions.append(RecordExecution(job, execution))
    actions.extend(_stop(job, task) for task in halted.new)
    known = execution.active[: len(folded.active)]
    if len(view.reports) > sum((task.index, task.attempt) in view.reports for task in known):
        actions.extend(clear_away(view, job, past_reports(view, recorded), now))
    actions.extend(launches)
    if known:
        left = view.launches_at_once - len(launches)
        actions.extend(_repeated(view, job, known, halted, left, now))
    wake_at = next_look(view, job, execution, now)
    if quiet_until is not None and (wake_at is None or quiet_until < wake_at):
        wake_at = quiet_until
    if sum(isinstance(action, LaunchTask) for action in actions) >= view.launches_at_once:
        # There may be more to launch, and now is when others are listened to.
        wake_at = now
    if any((each.task.index, each.task.attempt) in view.reports for each in launches):
        # It ran before, in the days that a store which was put back knows nothing of: nobody will
        # tell of it again.
        wake_at = now
    because = execution.message if execution.stopping_for is not None else ""
    reason = _reason(folded, halted, launches, actions, because) if actions else ""
    is_notable = len(actions) != 1 or not _is_only_further(recorded, execution)
    return Decision(tuple(actions), wake_at, reason, is_notable=is_notable)


def _quiet_until(
    view: ExecutionView, job: Job, folded: Folded, execution: ExecutionStatus, now: datetime
) -> datetime | None:
    """Until when it is not worth a write that tasks were seen to run, or to be ready or not, if
    that is all there is. With the last task that was waited for the Job is ready: that is told.
    """
    since = folded.turning_since
    if since is None or not view.patience or execution.active is not folded.active:
        return None
    if _state(execution) is not _state(job.status.execution):
        # Others are told by this that the operation does not wait any more.
        return None
    if turns_ready(job, execution) or turns_placed(job, execution):
        return None
    return since + view.patience if since <= now < since + view.patience else None


def _is_only_further(recorded: ExecutionStatus, execution: ExecutionStatus) -> bool:
    """Whether nothing is new but how far attempts are: that is no event of a history."""
    if execution is recorded or len(execution.active) != len(recorded.active):
        return False
    was, now = (
        tuple(replace(task, progress=None) for task in each.active)
        for each in (recorded, execution)
    )
    return was == now and replace(execution, active=recorded.active) == recorded


def _state(execution: ExecutionStatus) -> OperationState | None:
    return None if execution.operation is None else execution.operation.state


def _stop(job: Job, task: TaskStatus) -> StopTask:
    grace = task.stop_grace if task.stop_grace is not None else job.spec.grace_period
    return StopTask(job, _id(job, task), grace.total_seconds(), task.runtime)


def _id(job: Job, task: TaskStatus) -> TaskId:
    return TaskId(job.metadata.uid, task.index, task.attempt)


def _repeated(
    view: ExecutionView,
    job: Job,
    known: tuple[TaskStatus, ...],
    halted: Stops,
    left: int,
    now: datetime,
) -> Iterator[Action]:
    """Give orders again that a crash may have swallowed: each may be given any number of times.

    Of launches no more than are `left`.
    """
    given = {task.index for task in halted.new + halted.shorter}
    for task in known:
        report = view.reports.get((task.index, task.attempt))
        if task.stop_cause is not None:
            if task.index not in given and must_tell(view, _id(job, task), report, now):
                yield _stop(job, task)
        elif not view.reports_complete or task.state is not TaskState.STARTING:
            continue
        elif left > 0 and view.may_launch and (report is None or report.prepared):
            left -= 1
            yield LaunchTask(job, order_again(job, task))


def next_look(
    view: ExecutionView, job: Job, execution: ExecutionStatus, now: datetime
) -> datetime | None:
    """The earliest moment at which time alone makes a difference."""
    first = earliest(moments(job, execution), now)
    for task in execution.active:
        report = view.reports.get((task.index, task.attempt))
        if task.stop_cause is not None and task.state is not TaskState.UNKNOWN:
            again = repeat_at(view, _id(job, task), report, now)
        elif report is None and not view.reports_complete:
            again = now + _UNTIL_COMPLETE
        else:
            continue
        if again is not None and (first is None or again < first):
            first = again
    return first


def earliest(moments: Iterable[datetime | None], now: datetime) -> datetime | None:
    """The first of these moments that is still to come."""
    return min((moment for moment in moments if moment is not None and moment > now), default=None)


def _reason(
    folded: Folded,
    halted: Stops,
    launches: tuple[LaunchTask, ...],
    actions: list[Action],
    because: str,
) -> str:
    told = []
    if folded.over:
        told.append(ends(folded.over))
    if halted.new:
        told.append(stops(halted.new, because))
    if halted.shorter:
        told.append("less time to stop")
    if launches:
        told.append(starts([launch.task for launch in launches]))
    if not told and isinstance(actions[0], RecordExecution):
        told.append(states(folded.active))
    if not told and all(isinstance(action, ForgetTask) for action in actions):
        told.append(FORGET)
    if not told and any(isinstance(action, LaunchTask) for action in actions):
        told.append("launch what the runtime does not know")
    return "; ".join(told) or "repeat orders that may have been lost"
