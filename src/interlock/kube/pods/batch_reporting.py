"""What a batch Job says about its attempt: a pure function of the batch Job and the moment."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from interlock.kube.pods.models import BatchJob, Condition, moment_of
from interlock.kube.pods.reporting import told_by
from interlock.resources.tasks import ReportState, TaskReport


class Verdict(NamedTuple):
    """What is known, and what would be known if no pod of it lived."""

    report: TaskReport
    #: The end, as soon as somebody has made sure that none of its pods lives.
    if_empty: TaskReport | None = None
    #: When to look again although nothing has changed.
    again_at: datetime | None = None


def verdict_of(job: BatchJob, now: datetime) -> Verdict:
    """Say what is known of the attempt that a batch Job was made for.

    Its own word that it ended is not enough: it fails while pods are still going, and whoever
    deletes it leaves its pods for later.
    """
    stopped = is_halted(job)
    if stopped and job.never_ran:
        message = "the batch Job was stopped before it was let run"
        return Verdict(told_by(job, ReportState.NOT_STARTED, message=message, stopped=True))
    now_known = _running(job, stopped)
    if job.is_over:
        return Verdict(now_known, _finished(job, stopped))
    if not stopped or job.ending is not None:
        return Verdict(now_known)
    settled_at = _settled_at(job)
    if settled_at is None or not _is_quiet(job):
        return Verdict(now_known)
    if now < settled_at:
        return Verdict(now_known, again_at=settled_at)
    return Verdict(now_known, _stopped(job))


def gone_report(job: BatchJob) -> TaskReport:
    """Say what is known of an attempt whose batch Job is gone, as it was last seen."""
    if job.never_ran and (is_halted(job) or job.is_waiting):
        message = "the batch Job was removed before it was let run"
        return told_by(job, ReportState.NOT_STARTED, message=message, stopped=True)
    message = "the batch Job was removed before anybody saw all its pods end"
    return told_by(job, ReportState.UNKNOWN, message=message, started_at=job.began_at)


def is_halted(job: BatchJob) -> bool:
    """Whether it was told to stop: by us, or by whoever deleted it."""
    return bool(job.metadata.annotations.stopped_at) or job.is_going


def is_forgotten(job: BatchJob) -> bool:
    """Whether its end was recorded: nothing holds it any more and it will not run."""
    return not job.is_held and (job.is_over or is_halted(job))


def took_note(job: BatchJob) -> bool:
    """Whether the controller of batch Jobs has shown that it knows this one may run.

    From then on its word that the batch Job is suspended is about the stop.
    """
    suspended = _suspended(job)
    return suspended is not None and suspended.status == "False"


def _is_quiet(job: BatchJob) -> bool:
    """Whether its controller has nothing under way, as far as it says."""
    if job.is_going:
        # Its controller makes no pods for what is going, and does not always say more.
        return True
    suspended = _suspended(job)
    resumed = suspended is not None and suspended.status != "True"
    return not resumed and not job.status.active and not job.status.terminating


def _settled_at(job: BatchJob) -> datetime | None:
    return moment_of(job.metadata.annotations.settled_at)


def _suspended(job: BatchJob) -> Condition | None:
    return next((one for one in job.status.conditions if one.type == "Suspended"), None)


def _running(job: BatchJob, stopped: bool) -> TaskReport:
    status = job.status
    if job.is_adopted and job.is_waiting:
        # What it still tells is about the round before.
        return told_by(job, ReportState.ACCEPTED, stopped=stopped)
    runs = status.active or status.terminating or job.began_at or job.ending is not None
    if not runs and not (stopped and job.metadata.annotations.armed_at):
        return told_by(job, ReportState.ACCEPTED, stopped=stopped)
    began = job.began_at or moment_of(job.metadata.annotations.armed_at)
    return told_by(
        job, ReportState.RUNNING, started_at=began, stopped=stopped, ready=is_batch_job_ready(job)
    )


def is_batch_job_ready(job: BatchJob) -> bool:
    """Whether as many of its pods are ready or have succeeded as may run at a time, or are needed.

    A pod that succeeded is between the two counters for a moment: it counts by its uid meanwhile.
    Failed ones never count.
    """
    status = job.status
    is_so = status.ready + status.succeeded + len(status.uncounted_terminated_pods.succeeded)
    return is_so >= job.at_once


def _finished(job: BatchJob, stopped: bool) -> TaskReport:
    ending = job.ending
    assert ending is not None
    good = ending.type == "Complete"
    told = () if good else (ending.reason, ending.message)
    return told_by(
        job,
        ReportState.ENDED,
        message=": ".join(part for part in told if part),
        started_at=job.began_at,
        ended_at=job.status.completion_time or ending.last_transition_time,
        exit_code=0 if good else 1,
        stopped=stopped,
    )


def _stopped(job: BatchJob) -> TaskReport:
    by_us = bool(job.metadata.annotations.stopped_at) and not job.is_going
    return told_by(
        job,
        ReportState.ENDED,
        message="the batch Job was stopped" if by_us else "the batch Job was deleted",
        started_at=job.began_at or moment_of(job.metadata.annotations.armed_at),
        stopped=True,
    )
