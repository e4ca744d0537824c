"""Promises about ControlledJobs: windows are kept, by one Job at a time, and alarms are true.

What is to be is worked out here, from the definitions as they were committed, with the clockwork
and without anything of the room that decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.controlled_job import (
    ControlledAction,
    ControlledJob,
    ControlledJobSpec,
    OverrideAction,
    WindowOutcome,
)
from interlock.resources.job import Job
from interlock.resources.metadata import Condition, ConditionStatus, Resource
from interlock.resources.schedule import (
    SCHEDULED_AT_ANNOTATION,
    is_manual,
)
from interlock.resources.transitions import has_ended
from interlock.store.watching import Change
from interlock.timing.cron import read_cron
from interlock.timing.events import at_time_of_day, event_of
from interlock.timing.plans import Plan
from interlock.timing.windows import read_window
from interlock.timing.zones import find_zone
from support.simulation.judge import Promise
from support.simulation.schedule_judging import (
    PROMPT,
    SchedulePromise,
    is_controlled,
    owner_of,
)
from support.simulation.truth import Truth


class OneAtATime(Promise):
    """Whatever is slow to die, at no instant do two Jobs of a ControlledJob run."""

    def starts(self, life: Life) -> None:
        """Nobody else of the same owner runs."""
        job = self.truth.by_uid.get(life.order.job_uid)
        if job is None or not is_controlled(job):
            return
        for task in self.truth.lives:
            other = self.truth.by_uid[task.job_uid]
            if other is not job and owner_of(other) == owner_of(job) and is_controlled(other):
                if not self.truth.alive(task.job_uid):
                    continue
                names = (job.metadata.name, other.metadata.name)
                raise self.broken(f"{names[0]} starts while {names[1]} runs", *names)


class Window(NamedTuple):
    """The time from a start to the stop that ends it; None when it does not."""

    start: datetime
    stop: datetime | None
    #: Whether there was a stop before: a plan without one began when it was made, or changed.
    has_begun: bool = True


class WindowsKept(SchedulePromise):
    """Inside a window one suitable Job exists, or it is told why not; outside, none runs."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        #: Every definition that a ControlledJob ever had, by its uid.
        self._specs: dict[str, list[ControlledJobSpec]] = {}

    def scheduled(self, change: Change) -> None:
        """Remember what was ever asked for."""
        after = change.event.resource
        if isinstance(after, ControlledJob):
            known = self._specs.setdefault(after.metadata.uid, [])
            if not known or known[-1] != after.spec:
                known.append(after.spec)

    def starts(self, life: Life) -> None:
        """What starts carries its stop, so that it is kept even if nobody looks again."""
        job = self.truth.by_uid.get(life.order.job_uid)
        if job is None or not is_controlled(job) or job.spec.kill_at is not None:
            return
        if is_manual(job):
            # Its stop is written down when the schedule hears of it.
            return
        at = datetime.fromisoformat(job.metadata.annotations[SCHEDULED_AT_ANNOTATION])
        specs = self._specs[owner_of(job) or ""]
        if specs and all(plan_of(spec).state_at(at).next_stop is not None for spec in specs):
            name = job.metadata.name
            raise self.broken(f"{name} starts and would not stop by itself", name)

    def calm(self, now: datetime) -> None:
        """All that the plan says has happened a while after."""
        for controlled in self.truth.schedules.values():
            if isinstance(controlled, ControlledJob) and not controlled.is_going:
                self._check(controlled, now)

    def _check(self, controlled: ControlledJob, now: datetime) -> None:
        spec, name = controlled.spec, controlled.metadata.name
        window = window_at(spec, now)
        if window_at(spec, now - 2 * PROMPT) != window or not _is_steady(spec, now):
            return
        runs = [job for job in self._jobs(controlled) if not has_ended(job) and not is_manual(job)]
        is_held = _is_held(spec, now)
        if window is None or is_held:
            if runs and (is_held or not self._has_manual(controlled)):
                raise self.broken(f"{runs[0].metadata.name} runs outside a window", name)
            return
        self._check_record(controlled, window)
        for job in runs:
            stop, kill_at = window.stop, job.spec.kill_at
            if stop is not None and (kill_at is None or kill_at > stop):
                raise self.broken(f"{job.metadata.name} would not stop at {stop}", name)

    def _check_record(self, controlled: ControlledJob, window: Window) -> None:
        """What is told of the window that is open is so."""
        record, name = controlled.status.window, controlled.metadata.name
        if record is None or (window.has_begun and record.start != window.start):
            raise self.broken(f"{name} has no record of the window of {window.start}", name)
        if record.outcome is WindowOutcome.STARTED and not self._open(controlled):
            raise self.broken(f"{name} says that its Job runs, and there is none", name)
        told = record.outcome is not WindowOutcome.NEVER_STARTED or record.message
        if not told and not controlled.status.conditions:
            raise self.broken(f"{name} did not start and does not say why", name)

    def _jobs(self, controlled: ControlledJob) -> list[Job]:
        uid = controlled.metadata.uid
        return [job for job in self.truth.jobs.values() if owner_of(job) == uid]

    def _open(self, controlled: ControlledJob) -> list[Job]:
        return [job for job in self._jobs(controlled) if not has_ended(job)]

    def _has_manual(self, controlled: ControlledJob) -> bool:
        return any(is_manual(job) for job in self._jobs(controlled))


def plan_of(spec: ControlledJobSpec) -> Plan:
    """The plan of a ControlledJob without calendars and overrides."""
    zone = find_zone(spec.timezone.name, spec.timezone.offset)
    windows = [read_window(each.begin, each.end, each.days) for each in spec.windows]
    events = []
    for each in spec.events:
        time = each.schedule
        line = (
            at_time_of_day(time.time_of_day, time.days_of_week)
            if time is not None
            else read_cron(each.cron, "", each.format)
        )
        events.append(
            event_of(each.action, line, zone, on_gap=spec.on_gap, on_repeat=spec.on_repeat)
        )
    return Plan(zone, windows, events)


def window_at(spec: ControlledJobSpec, moment: datetime) -> Window | None:
    """The window that a moment lies in, as skips and an extension leave it."""
    plan = plan_of(spec)
    for each in spec.overrides:
        if each.action is not OverrideAction.EXTEND:
            continue
        first, last = (_planned(plan, spec, at) for at in (each.begin, each.until))
        if first is None or first.stop is None or each.until <= first.stop:
            continue
        joins = last is not None and last.start < each.until
        stop = last.stop if last is not None and joins else each.until
        if first.start <= moment and (stop is None or moment < stop):
            return first._replace(stop=stop)
    return _planned(plan, spec, moment)


def _planned(plan: Plan, spec: ControlledJobSpec, moment: datetime) -> Window | None:
    """The window that a moment lies in, unless that is skipped."""
    state = plan.state_at(moment)
    start = state.period_start
    if start is None or any(
        each.action is OverrideAction.SKIP and each.begin <= start < each.until
        for each in spec.overrides
    ):
        return None
    return Window(start, state.next_stop, state.last_stop is not None)


def _is_held(spec: ControlledJobSpec, now: datetime) -> bool:
    return spec.suspend or any(
        each.action is OverrideAction.HOLD and each.begin <= now < each.until
        for each in spec.overrides
    )


def _is_steady(spec: ControlledJobSpec, now: datetime) -> bool:
    """Whether it can be told what is to be: no exception begins or ends in the time looked at.

    No day is closed either, and of extensions there is one at most: they build on each other.
    """
    if sum(each.action is OverrideAction.EXTEND for each in spec.overrides) > 1:
        return False
    if any(each.exclude or each.only for each in spec.windows):
        return False
    if any(each.exclude or each.only for each in spec.events):
        return False
    begin = now - 2 * PROMPT
    return all(
        not begin <= moment <= now for each in spec.overrides for moment in (each.begin, each.until)
    )


class AlarmsAreTrue(Promise):
    """That a Job does not go is told no sooner than it had its time, from when it was told."""

    def scheduled(self, change: Change) -> None:
        """Hold an alarm that is new against the Jobs that it names."""
        before, after = change.before, change.event.resource
        alarm = _overdue(after)
        if alarm is None or _overdue(before) is not None or not isinstance(after, ControlledJob):
            return
        owner, limit = after.metadata.uid, after.spec.drain_limit
        jobs = [job for job in self.truth.by_uid.values() if owner_of(job) == owner]
        named = [job for job in jobs if f"job/{job.metadata.name} " in f"{alarm.message} "]
        if not any(since + limit <= alarm.last_transition_time for since in _told(after, named)):
            name = after.metadata.name
            raise self.broken(f"{name} tells too soon that {alarm.message}", name)


def _overdue(resource: Resource | None) -> Condition | None:
    """The alarm that a Job does not go, if it is on."""
    conditions = resource.status.conditions if isinstance(resource, ControlledJob) else ()
    found = (each for each in conditions if each.type == "DrainOverdue")
    return next((each for each in found if each.status is ConditionStatus.TRUE), None)


def _told(controlled: ControlledJob, jobs: Iterable[Job]) -> Iterator[datetime]:
    """When Jobs were told to go: by who runs them, or by their schedule."""
    names = set()
    for job in jobs:
        names.add(job.metadata.name)
        if job.status.execution.stopping_at is not None:
            yield job.status.execution.stopping_at
    for action in controlled.status.action_history:
        if action.type is ControlledAction.JOB_STOPPED and action.job_name in names:
            yield action.timestamp
