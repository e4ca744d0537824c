"""Messages of execution: what happened, in words for a Job's status and its history."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.resources.tasks import (
    EndedTask,
    JobResult,
    StopCause,
    TaskOrder,
    TaskResult,
    TaskState,
    TaskStatus,
    attempt_in_words,
)

_STOPPED = {
    StopCause.KILLED: "the Job was told to stop",
    StopCause.DELETED: "the Job was deleted",
    StopCause.REPLACED: "a newer Job takes its place",
    StopCause.PENDING_TIMEOUT: "it did not start within pendingTimeout",
    StopCause.TASK_TIMEOUT: "it ran longer than its timeout",
    StopCause.JOB_TIMEOUT: "the Job ran longer than its timeout",
    StopCause.EVICTED: "the Job is put back",
    StopCause.NOT_NEEDED: "it is not needed any more",
}
#: Why a runtime is told to forget.
FORGET = "the runtime may forget what is recorded"

_ENDS = {
    JobResult.SUCCEEDED: "the Job succeeded",
    JobResult.FAILED: "the Job failed",
    JobResult.KILLED: "the Job was stopped",
    JobResult.FINISHED_UNKNOWN: "the Job was released",
}


def end_of(ended: EndedTask) -> str:
    """How one attempt ended."""
    attempt = f" ({attempt_in_words(ended.attempt)})" if ended.attempt else ""
    return f"task {ended.index}{attempt} {how_it_ended(ended)}"


def how_it_ended(ended: EndedTask, *, of_function: bool = False) -> str:
    """How an attempt ended, without saying which. A function has no exit code to tell."""
    note = f": {ended.message}" if ended.message else ""
    if ended.result is TaskResult.SUCCEEDED:
        return "succeeded"
    if ended.result is TaskResult.NOT_STARTED:
        return f"could not be started{note}"
    if ended.result is TaskResult.INTERRUPTED:
        return f"was cut off{note}"
    if ended.result is TaskResult.WRITTEN_OFF:
        return f"was written off{note}"
    if ended.result is TaskResult.KILLED:
        # What it waited for is why it did not start; what others said at their end is not asked.
        note = note if ended.stop_cause is StopCause.PENDING_TIMEOUT else ""
        return "was stopped" if ended.stop_cause is None else f"was stopped: {why(ended)}{note}"
    if ended.exit_code is not None and not of_function:
        return f"failed with exit code {ended.exit_code}{note}"
    return f"was ended by signal {ended.signal}{note}" if ended.signal else f"failed{note}"


def why(ended: EndedTask) -> str:
    """Why an attempt was told to stop."""
    return _STOPPED[ended.stop_cause] if ended.stop_cause is not None else ""


def failure_of(ended: EndedTask | None, others: int) -> str:
    """How the attempt ended that made a Job fail, and how many are stopped because of that."""
    told = "a task is out of attempts" if ended is None else end_of(ended)
    if not others:
        return told
    return f"{told}; {others} {'other was' if others == 1 else 'others were'} told to stop"


def ends(over: Sequence[EndedTask]) -> str:
    """What ended since the last look."""
    if len(over) == 1:
        return end_of(over[0])
    counts = dict.fromkeys(TaskResult, 0)
    for ended in over:
        counts[ended.result] += 1
    told = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
    return f"{len(over)} tasks ended: {told}"


def starts(orders: Sequence[TaskOrder]) -> str:
    """What is started now."""
    if len(orders) > 1:
        return f"start {len(orders)} tasks"
    order = orders[0]
    which = f", {attempt_in_words(order.attempt)}" if order.attempt else ""
    return f"start task {order.index}{which}"


def stops(tasks: Sequence[TaskStatus], because: str) -> str:
    """What is told to stop now, and why; `because` is why the whole Job is, if it is."""
    number = f"task {tasks[0].index}" if len(tasks) == 1 else f"{len(tasks)} tasks"
    cause = tasks[0].stop_cause
    if cause is StopCause.NOT_NEEDED:
        told = "not needed any more"
    else:
        told = because or (_STOPPED[cause] if cause is not None else "")
    return f"stop {number}: {told}" if told else f"stop {number}"


def states(active: Sequence[TaskStatus]) -> str:
    """What is known of the attempts that are not over."""
    for task in active:
        if task.state is TaskState.UNKNOWN:
            return f"task {task.index} is Unknown: {task.message}"
    running = sum(task.state is TaskState.RUNNING for task in active)
    return "a task runs" if running == 1 else f"{running} tasks run"


def outcome(result: JobResult, message: str) -> str:
    """What the Job came to."""
    return f"{_ENDS[result]}: {message}" if message else _ENDS[result]
