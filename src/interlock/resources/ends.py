"""Ended attempts: what counts as a failure, for which one a Job failed, and which are kept."""

from __future__ import annotations

from interlock.resources.job import Completion, Job, JobSpec
from interlock.resources.tasks import (
    EndedTask,
    ExecutionReason,
    ExecutionStatus,
    StopCause,
    TaskResult,
)

#: An attempt that was stopped for one of these is a failed attempt like any other.
_COUNTS_AS_FAILED = frozenset({None, StopCause.PENDING_TIMEOUT, StopCause.TASK_TIMEOUT})
_FAILED = frozenset({TaskResult.FAILED, TaskResult.NOT_STARTED, TaskResult.INTERRUPTED})


def counts_as_failed(ended: EndedTask) -> bool:
    """Whether the attempt is a failure of the task, and not the end of the whole Job."""
    if ended.result is TaskResult.KILLED:
        return ended.stop_cause in _COUNTS_AS_FAILED
    return ended.result in _FAILED


def was_not_needed(ended: EndedTask) -> bool:
    """Whether the attempt was stopped only because the Job's outcome was settled without it."""
    return ended.result is TaskResult.KILLED and ended.stop_cause is StopCause.NOT_NEEDED


def culprit(spec: JobSpec, execution: ExecutionStatus) -> EndedTask | None:
    """The attempt for which a Job cannot succeed any more, if there is one.

    Where every task must succeed it is the first that left its task without further attempts,
    where one is enough it is the last.
    """
    last_of = {end.index: end for end in execution.ended if counts_as_failed(end)}
    final = [end for end in last_of.values() if end.index in execution.failed]
    if not final:
        return None
    # In the order in which they were recorded: a clock that was set back is not asked.
    final.sort(key=execution.ended.index)
    return final[0 if spec.completion is Completion.ALL_SUCCESSFUL else -1]


def telling_end(job: Job) -> EndedTask | None:
    """The end that says most about the Job: that for which it failed, or else the newest.

    Attempts that were stopped because nobody needed them any more say nothing.
    """
    execution = job.status.execution
    if ExecutionReason.TASK_FAILED in (execution.reason, execution.stopping_for):
        found = culprit(job.spec, execution)
        if found is not None:
            return found
    told = [end for end in execution.ended if not was_not_needed(end)]
    return (told or execution.ended or (None,))[-1]


def newest(spec: JobSpec, execution: ExecutionStatus, most: int) -> tuple[EndedTask, ...]:
    """The ends that are kept: the newest, but never without the one for which the Job failed.

    Those that were only stopped go first, because hundreds of them may follow one failure.
    """
    ends = execution.ended
    surplus = len(ends) - most
    if surplus <= 0:
        return ends
    cause = culprit(spec, execution)
    order = sorted(range(len(ends)), key=lambda at: (not was_not_needed(ends[at]), at))
    dropped = set([at for at in order if ends[at] is not cause][:surplus])
    return tuple(end for at, end in enumerate(ends) if at not in dropped)
