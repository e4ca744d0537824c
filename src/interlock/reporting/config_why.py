"""Why a JobConfig does, or does not, run: what is due, what is in its way, what was skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from interlock.reporting.schedule_why import (
    Detail,
    ScheduleWhy,
    Times,
    jobs_told,
    suspended,
    trouble_told,
)
from interlock.reporting.why import Waiting
from interlock.resources.job import Job, JobPhase, WhenTaken
from interlock.resources.job_config import JobConfig, Skip, SkipReason
from interlock.resources.words import plural
from interlock.schedules.configs.due_times import DueTime, Timing, next_due, next_run
from interlock.schedules.configs.making import scheduled_job
from interlock.timing.flaws import UnreadableError
from interlock.timing.local_time import told_at
from interlock.timing.zones import Zone, find_zone

#: So many due times to come, and skips, are told.
_TOLD = 3


class ConfigView(Struct, frozen=True, kw_only=True):
    """A config, when it is due, and its Jobs that are not over."""

    config: JobConfig
    timing: Timing
    jobs: tuple[Job, ...] = ()


def explain_config(view: ConfigView, now: datetime) -> ScheduleWhy:
    """Say whether the config runs and when it will, and what can change that."""
    metadata = view.config.metadata
    return ScheduleWhy(
        kind="JobConfig",
        name=metadata.name,
        namespace=metadata.namespace,
        state=view.config.status.state.value,
        summary=_summary(view, now),
        waits=tuple(_waits(view, now)),
        next_start=next_run(view.timing, now),
        details=tuple(_details(view, now)),
    )


def _summary(view: ConfigView, now: datetime) -> str:
    name = view.config.metadata.name
    queued = [job for job in view.jobs if job.status.phase is JobPhase.QUEUED]
    active = len(view.jobs) - len(queued)
    at = _when(view, now)
    if active:
        more = f", {len(queued)} more in line" if queued else ""
        one = next(job for job in view.jobs if job.status.phase is not JobPhase.QUEUED)
        what = f"job/{one.metadata.name}" if active == 1 else plural(active, "Job")
        return f"{name} is running: {what}{more}; {at}"
    if queued:
        return f"{name} has {plural(len(queued), 'Job')} in line and none running; {at}"
    return f"{name} is not running; {at}"


def _when(view: ConfigView, now: datetime) -> str:
    spec = view.config.spec
    if not spec.schedules:
        return f"it has no schedule: run it with: interlock run {view.config.metadata.name}"
    if spec.suspend:
        return "nothing is due while it is suspended"
    if all(schedule.disabled for schedule in spec.schedules):
        return "its schedules are disabled"
    at = next_run(view.timing, now)
    if at is None and view.timing.missing:
        return "what is due is skipped while a calendar is missing"
    if at is None and view.timing.unreadable:
        return "nothing is due: its schedule cannot be read"
    if at is None:
        return "nothing is due any more"
    return f"the next run is {told_at(at, _zone_at(view, at, now), now)}"


def _waits(view: ConfigView, now: datetime) -> Iterator[Waiting]:
    config, timing = view.config, view.timing
    name, spec = config.metadata.name, config.spec
    if spec.suspend:
        yield suspended("jobconfig", name, config.metadata.annotations)
    off = [str(at) for at, schedule in enumerate(spec.schedules) if schedule.disabled]
    if off and len(off) == len(spec.schedules):
        message = f"its schedules are disabled; switch them on with: interlock enable {name}"
        yield Waiting(reason="Disabled", message=message)
    elif off:
        yield Waiting(
            reason="Disabled",
            message=f"schedule {', '.join(off)} is disabled; switch it on with:"
            f" interlock enable {name} --schedule {off[0]}",
        )
    for problem in timing.missing:
        yield Waiting(
            reason=SkipReason.CALENDAR_MISSING.value,
            message=f"{problem}: what is due by it is skipped until it is there",
        )
    for problem in timing.unreadable:
        yield Waiting(reason="Unreadable", message=f"{problem}; correct it and apply it again")
    if not (spec.suspend or timing.missing) and timing.planned and next_run(timing, now) is None:
        yield Waiting(
            reason="NeverDue",
            message="no time to come fits its cron lines, calendars, notBefore and notAfter",
        )
    if timing.planned:
        for flaw in scheduled_job(config, now).problems[:_TOLD]:
            message = f"{flaw}; what is due by the clock is skipped until that is corrected"
            yield Waiting(reason=SkipReason.INVALID.value, message=message)
    yield from _policy(view)


def _policy(view: ConfigView) -> Iterator[Waiting]:
    """What becomes of the next due time while as many run as may."""
    concurrency = view.config.spec.concurrency
    queued = sum(job.status.phase is JobPhase.QUEUED for job in view.jobs)
    if len(view.jobs) - queued < concurrency.max_concurrency:
        return
    if concurrency.policy is WhenTaken.FORBID:
        message = f"{_most(view)}, and the policy is Forbid: what is due meanwhile is skipped"
        yield Waiting(reason=SkipReason.CONCURRENCY.value, message=message)
    elif concurrency.policy is WhenTaken.ENQUEUE and queued >= concurrency.max_queued:
        message = f"{plural(queued, 'Job')} wait, as many as concurrency.maxQueued allows"
        yield Waiting(reason=SkipReason.QUEUE_FULL.value, message=message)


def _most(view: ConfigView) -> str:
    most = view.config.spec.concurrency.max_concurrency
    return f"{plural(most, 'Job')} of it {'runs' if most == 1 else 'run'}, as many as may"


def _details(view: ConfigView, now: datetime) -> Iterator[Detail]:
    status = view.config.status
    yield from jobs_told(view.jobs, now)
    for number, (due, zone) in enumerate(_coming(view, now)):
        label = "next" if not number else "then"
        left_out = f"  skipped: {due.message or due.reason}" if due.reason is not None else ""
        yield label, f"{told_at(due.at, zone, now)}{left_out}"
    times = Times(zone_of(view.config), now)
    for label, moment in (
        ("last run", status.last_executed),
        ("succeeded", status.last_success),
        ("failed", status.last_failure),
    ):
        if moment is not None:
            yield label, times(moment)
    for skip in reversed(status.skips[-_TOLD:]):
        yield "skipped", _skip_told(skip, times)
    hidden = status.skipped - _TOLD
    if len(status.skips) > _TOLD:
        yield "", f"and {hidden} more since it was made"
    yield from trouble_told(status.trouble, times)


def _skip_told(skip: Skip, times: Times) -> str:
    when = times(skip.at)
    if skip.until is not None and skip.until != skip.at:
        many = f" ({skip.count} times)" if skip.count else " (too often to be counted)"
        when = f"{when} to {times(skip.until)}{many}"
    return f"{when}: {skip.message or skip.reason.value}"


def _coming(view: ConfigView, now: datetime) -> Iterable[tuple[DueTime, Zone]]:
    """The next due times, runs and skips alike, each with the clock it is due by."""
    after = now
    for _ in range(_TOLD):
        due = next_due(view.timing, after)
        if due is None:
            return
        yield due, _zone_at(view, due.at, after)
        after = due.at


def _zone_at(view: ConfigView, at: datetime, after: datetime) -> Zone:
    """The clock of the schedule that is due at a moment, and has no due time between."""
    for planned in view.timing.planned:
        alone = Timing(planned=(planned,), digest=view.timing.digest)
        due = next_due(alone, after)
        if (due is not None and due.at == at) or next_run(alone, after) == at:
            return planned.schedule.zone
    return zone_of(view.config)


def zone_of(config: JobConfig) -> Zone:
    """The clock of the config's first schedule; UTC when it has none, or none that is good."""
    for schedule in config.spec.schedules[:1]:
        with suppress(UnreadableError):
            return find_zone(schedule.timezone)
    return find_zone("UTC")
