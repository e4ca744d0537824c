"""Conditions of a JobConfig: what generic tools are told about its schedules."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.schedules.configs.due_times import Timing

#: False while a schedule cannot be read, or names a calendar that is not there.
SCHEDULABLE = "Schedulable"

_LONGEST = 1000


def conditions_of(config: JobConfig, timing: Timing, now: datetime) -> tuple[Condition, ...]:
    """The conditions, with the one about schedules brought up to date.

    A config that never had a problem has none: it is what everybody expects.
    """
    held = config.status.conditions
    known = next((each for each in held if each.type == SCHEDULABLE), None)
    others = tuple(each for each in held if each.type != SCHEDULABLE)
    told = _told(config, timing, now)
    if known is not None and known.status is told.status:
        told = replace(told, last_transition_time=known.last_transition_time)
    if told.status is ConditionStatus.TRUE and known is None:
        return held
    if known is not None and replace(known, observed_generation=told.observed_generation) == told:
        return held
    return (*others, told)


def _told(config: JobConfig, timing: Timing, now: datetime) -> Condition:
    reason = "Readable"
    problems: tuple[str, ...] = ()
    if timing.unreadable:
        reason, problems = "Unreadable", timing.unreadable
    elif timing.missing:
        reason, problems = "CalendarMissing", timing.missing
    return Condition(
        type=SCHEDULABLE,
        status=ConditionStatus.FALSE if problems else ConditionStatus.TRUE,
        reason=reason,
        message="; ".join(problems)[:_LONGEST],
        last_transition_time=now,
        observed_generation=config.metadata.generation,
    )
