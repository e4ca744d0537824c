"""How long Jobs that were told to stop may take to go, and which of them take longer."""

from __future__ import annotations

from datetime import datetime, timedelta

from interlock.resources.controlled_job import ControlledAction
from interlock.schedules.controlled.runs import Run
from interlock.schedules.controlled.situation import Situation


def overdue(situation: Situation) -> tuple[Run, ...]:
    """Jobs that were told to stop and are not gone when they should be."""
    return tuple(
        run
        for run in situation.runs
        if (moment := gone_by(run, situation)) is not None and moment <= situation.now
    )


def gone_by(run: Run, situation: Situation) -> datetime | None:
    """When a Job that was told to stop, and may still be doing something, is overdue."""
    if run.is_over or run.is_alive or not run.is_admitted:
        return None
    return _told_since(run, situation) + time_to_go(run, situation)


def time_to_go(run: Run, situation: Situation) -> timedelta:
    """How long a Job may take to go; one that has its grace period still is not overdue."""
    limit, grace = situation.controlled.spec.drain_limit, run.job.spec.grace_period
    return limit if limit > grace else grace + _TO_DIE


#: What was killed at the end of its grace period has so long to be proven gone.
_TO_DIE = timedelta(minutes=1)


def _told_since(run: Run, situation: Situation) -> datetime:
    """Since when a Job knows that it is to go.

    That is not the moment at which it should have been told: if nobody was in control then, it
    was told later. If it was not told yet, its time begins when this room stopped it, or now.
    """
    told = run.job.status.execution.stopping_at
    if told is not None:
        return told
    stopped = (
        action.timestamp
        for action in situation.controlled.status.action_history
        if action.type is ControlledAction.JOB_STOPPED and action.job_name == run.name
    )
    return next(stopped, situation.now)
