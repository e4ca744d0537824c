"""Promises about schedules: every due time is accounted for, and windows are kept.

What is due is worked out here, from the definitions as they were committed, with the clockwork and
without anything of the room that decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from typing import NamedTuple

from msgspec.structs import replace

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.controlled_job import (
    ControlledAction,
    ControlledJob,
    ControlledJobSpec,
    OverrideAction,
    WindowOutcome,
)
from interlock.resources.job import Job
from interlock.resources.job_config import (
    CatchUpPolicy,
    JobConfig,
    JobConfigSpec,
    Skip,
    SkipReason,
)
from interlock.resources.metadata import Condition, ConditionStatus, Resource
from interlock.resources.schedule import (
    SCHEDULED_AT_ANNOTATION,
    STOPPED_BECAUSE_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    Books,
    is_manual,
    is_of_schedule,
    scheduled_at,
)
from interlock.resources.timing.cron import read_cron
from interlock.resources.timing.due import Schedule, upcoming
from interlock.resources.timing.events import at_time_of_day, event_of
from interlock.resources.timing.plans import Plan
from interlock.resources.timing.windows import read_window
from interlock.resources.timing.zones import find_zone
from interlock.resources.transitions import has_ended
from interlock.store.contract import EventType
from interlock.store.watching import Change
from interlock.testing.simulation.judge import Promise
from interlock.testing.simulation.promises import PROMISES, NeverLost
from interlock.testing.simulation.truth import Truth

#: What is to happen has happened this long after, when nothing is wrong.
PROMPT = timedelta(seconds=60)


class SchedulePromise(Promise):
    """A promise that is also asked while nothing is wrong and schedules go on."""

    def calm(self, now: datetime) -> None:
        """There has been no trouble for a while."""


def owner_of(job: Job) -> str | None:
    """The uid of the JobConfig or ControlledJob that a Job is of."""
    for owner in job.metadata.owner_references:
        if owner.controller and owner.kind in ("JobConfig", "ControlledJob"):
            return owner.uid
    return None


class OncePerDueTime(Promise):
    """A due time, and a run of a window, is run once; and only what is in the books runs."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._in_books: dict[str, None] = {}
        self._ran: dict[tuple[str, str, str], str] = {}

    def scheduled(self, change: Change) -> None:
        """Remember who was ever written down."""
        resource = change.event.resource
        assert isinstance(resource, JobConfig | ControlledJob)
        for expected in resource.status.books.expected:
            self._in_books[expected.uid] = None

    def starts(self, life: Life) -> None:
        """Nothing of a schedule runs that is not in the books, and nothing twice."""
        job = self.truth.by_uid.get(life.order.job_uid)
        owner = owner_of(job) if job is not None else None
        if job is None or owner is None or not is_of_schedule(job):
            return
        name, uid = job.metadata.name, job.metadata.uid
        if uid not in self._in_books:
            raise self.broken(f"{name} starts and is not in the books", name)
        due = (owner, job.metadata.annotations[SCHEDULED_AT_ANNOTATION], _run_of(job))
        other = self._ran.setdefault(due, uid)
        if other != uid:
            raise self.broken(f"{name} runs what {other} ran before", name)


def _run_of(job: Job) -> str:
    """Which of several runs of one window a Job is; a due time of a JobConfig has but one."""
    is_config = job.metadata.owner_references[0].kind == "JobConfig"
    return "" if is_config else job.metadata.name


class OneAtATime(Promise):
    """Whatever is slow to die, at no instant do two Jobs of a ControlledJob run."""

    def starts(self, life: Life) -> None:
        """Nobody else of the same owner runs."""
        job = self.truth.by_uid.get(life.order.job_uid)
        if job is None or not _is_controlled(job):
            return
        for task in self.truth.lives:
            other = self.truth.by_uid[task.job_uid]
            if other is not job and owner_of(other) == owner_of(job) and _is_controlled(other):
                if not self.truth.alive(task.job_uid):
                    continue
                names = (job.metadata.name, other.metadata.name)
                raise self.broken(f"{names[0]} starts while {names[1]} runs", *names)


class PeopleAreHeeded(SchedulePromise):
    """What a person stopped or suspended stays so, and no other is started in its window."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        #: The Jobs that people stopped, by owner and the time they were made for.
        self._stopped: dict[tuple[str, str], Job] = {}

    def wrote(self, change: Change) -> None:
        """Remember the person's word, and see that nobody else takes it back."""
        before, after = change.before, change.event.resource
        if isinstance(after, Job) and before is None and self.truth.writer == "user":
            self._start_by_hand(after)
        if not isinstance(after, Job) or not isinstance(before, Job):
            return
        if before.spec.suspend and not after.spec.suspend and self.truth.writer != "user":
            name = after.metadata.name
            raise self.broken(f"{name} was suspended by a person, and is let go", name)
        now = self.truth.moment
        is_taken_back = _is_due(before, now) and not _is_due(after, now)
        if is_taken_back and self.truth.writer == "user" and not has_ended(before):
            name = after.metadata.name
            raise self.broken(f"{name} was to stop, and that is taken back", name)
        owner = owner_of(after)
        if owner is None or is_manual(after):
            return
        of = (owner, after.metadata.annotations.get(SCHEDULED_AT_ANNOTATION, ""))
        if _is_stopped_by_hand(after) and not _is_stopped_by_hand(before):
            if after.spec.suspend and _is_leaving(before):
                # It was to go before it was suspended, and another may have its place.
                return
            self._stopped[of] = after
        elif before.spec.suspend and not _is_stopped_by_hand(after):
            self._stopped.pop(of, None)

    def _start_by_hand(self, job: Job) -> None:
        """Who starts one by hand wants it to run again, and takes the earlier word back."""
        owner = owner_of(job)
        if owner is not None and is_manual(job):
            for of in [of for of in self._stopped if of[0] == owner]:
                del self._stopped[of]

    def calm(self, now: datetime) -> None:
        """What was to stop has stopped, whoever was there when it was due."""
        for job in self.truth.jobs.values():
            if not has_ended(job) and _is_due(job, now - PROMPT):
                name = job.metadata.name
                raise self.broken(f"{name} was to stop at {job.spec.kill_at}, and goes on", name)

    def starts(self, life: Life) -> None:
        """Nothing of that window starts unless a person had a hand in it."""
        job = self.truth.by_uid.get(life.order.job_uid)
        owner = owner_of(job) if job is not None else None
        if job is None or owner is None or is_manual(job):
            return
        at = job.metadata.annotations.get(SCHEDULED_AT_ANNOTATION, "")
        stopped = self._stopped.get((owner, at))
        if stopped is None or stopped.metadata.uid == job.metadata.uid:
            return
        # Who deletes the Job that was stopped asks for another.
        if stopped.metadata.uid in self.truth.to_delete or stopped.version > job.version:
            return
        name = job.metadata.name
        raise self.broken(f"{name} starts although a person stopped {stopped.metadata.name}", name)


def _is_due(job: Job, now: datetime) -> bool:
    return job.spec.kill_at is not None and job.spec.kill_at <= now


def _is_stopped_by_hand(job: Job) -> bool:
    return job.spec.suspend or SUSPEND_REASON_ANNOTATION in job.metadata.annotations


def _is_leaving(job: Job) -> bool:
    return has_ended(job) or job.is_going or STOPPED_BECAUSE_ANNOTATION in job.metadata.annotations


def _is_controlled(job: Job) -> bool:
    return any(owner.kind == "ControlledJob" for owner in job.metadata.owner_references)


class EveryDueTimeAccounted(SchedulePromise):
    """Every due time becomes a Job in the books or a recorded skip: exactly one of them."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        #: The definition that the books of each config were last written for.
        self._specs: dict[str, JobConfigSpec] = {}

    def scheduled(self, change: Change) -> None:
        """Hold what was written against what was due in the time it accounts for."""
        after = change.event.resource
        if not isinstance(after, JobConfig) or change.event.type is EventType.DELETED:
            return
        before = change.before if isinstance(change.before, JobConfig) else None
        was = before.status.books if before is not None else Books()
        now, uid = after.status.books, after.metadata.uid
        if now.accounted_to == was.accounted_to and now.schedule_hash == was.schedule_hash:
            return
        if was.accounted_to and (not now.accounted_to or now.accounted_to < was.accounted_to):
            raise self.broken(f"the books of {after.metadata.name} go back", after.metadata.name)
        is_edit = bool(was.schedule_hash) and was.schedule_hash != now.schedule_hash
        if is_edit:
            self._check_edit(before, after)
        elif now.accounted_to is not None:
            self._check_stretch(before, after, now.accounted_to)
        self._specs[uid] = after.spec

    def _check_stretch(self, before: JobConfig | None, after: JobConfig, until: datetime) -> None:
        name = after.metadata.name
        begin = _begin(before, after)
        due = set(due_between(after, begin, until))
        known = before.status.books.expected if before is not None else ()
        runs = [e for e in after.status.books.expected if e not in known]
        for run in runs:
            if run.scheduled_at not in due:
                raise self.broken(f"{run.name} is in the books and was not due", name)
        taken = {run.scheduled_at for run in runs}
        if len(taken) < len(runs):
            raise self.broken(f"{name} has two Jobs for one due time", name)
        skips = _new_skips(before, after)
        for moment in sorted(due):
            is_skipped = any(_covers(skip, moment) for skip in skips)
            if moment in taken and is_skipped:
                raise self.broken(f"{moment} of {name} is run and skipped", name)
            if moment not in taken and not is_skipped and not _was_cut(after, skips, moment):
                raise self.broken(f"{moment} of {name} is neither run nor skipped", name)

    def _check_edit(self, before: JobConfig | None, after: JobConfig) -> None:
        """What was due by the former schedule before it was changed is told as skipped."""
        name = after.metadata.name
        former = self._specs.get(after.metadata.uid)
        assert before is not None
        if before.status.books.expected != after.status.books.expected:
            fresh = {e.uid for e in after.status.books.expected}
            if fresh - {e.uid for e in before.status.books.expected}:
                raise self.broken(f"a change of {name} fires something", name)
        since, looked = before.status.books.accounted_to, after.status.books.since
        changed = self.truth.edited.get(after.metadata.uid)
        if former is None or since is None or looked is None or changed is None:
            return
        if any(schedule.exclude or schedule.only for schedule in former.schedules):
            # A day that was closed then may be open now: nobody can tell what was due.
            return
        due = due_between(replace(after, spec=former), since, min(changed, looked))
        skips = _new_skips(before, after)
        for moment in due:
            if not any(_covers(skip, moment) for skip in skips):
                raise self.broken(f"{moment} of {name} was due and is forgotten", name)

    def calm(self, now: datetime) -> None:
        """Nothing that was due a while ago waits to be accounted for."""
        for config in self.truth.schedules.values():
            if isinstance(config, JobConfig) and not config.is_going:
                begin = _begin(config, config)
                late = next(iter(due_between(config, begin, now - PROMPT)), None)
                if late is not None:
                    name = config.metadata.name
                    raise self.broken(f"{late} of {name} is not accounted for", name)


class MissedByTheRule(Promise):
    """What was missed is run only if `catchUp` says so, and what is on time is not skipped for it.

    When a Job was decided on is not known, for writes take long and planes are paused; but it was
    not before its plane began. What was missed by then was missed when it was looked at.
    """

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        #: When each config was last changed, by uid.
        self._changed: dict[str, datetime] = {}

    def wrote(self, change: Change) -> None:
        """Nobody makes a Job for what was missed before they were there."""
        job, clock = change.event.resource, self.truth.clocks.get(self.truth.writer)
        if change.before is not None or not isinstance(job, Job) or clock is None:
            return
        owner, at = owner_of(job), scheduled_at(job)
        config = next((c for c in self.truth.schedules.values() if c.metadata.uid == owner), None)
        if at is None or not isinstance(config, JobConfig) or _has_calendars(config):
            return
        changed = self._changed.get(config.metadata.uid)
        if changed is not None and changed >= clock.made_at:
            # It may have been made by what the config was before.
            return
        why = _why_not_run(config, at, clock.earliest)
        if why:
            raise self.broken(f"{job.metadata.name} is made, and {why}", config.metadata.name)

    def scheduled(self, change: Change) -> None:
        """What is told as missed was missed when it was looked at."""
        before, after = change.before, change.event.resource
        if not isinstance(after, JobConfig) or change.event.type is EventType.DELETED:
            return
        if not isinstance(before, JobConfig) or before.spec != after.spec:
            self._changed[after.metadata.uid] = self.truth.moment
            return
        looked_at = after.status.counted_at
        if looked_at is None or _has_calendars(after):
            return
        for skip in _new_skips(before, after):
            last = skip.until or skip.at
            if skip.reason in _OF_CATCH_UP and not _was_missed(after, last, looked_at):
                name = after.metadata.name
                raise self.broken(f"{last} of {name} is {skip.reason} and was on time", name)


_OF_CATCH_UP = (SkipReason.MISSED, SkipReason.TOO_OLD)


def _why_not_run(config: JobConfig, at: datetime, now: datetime) -> str:
    """Why a due time that is found at a moment or later may not be run; empty when it may."""
    catch_up = config.spec.catch_up
    if not _was_missed(config, at, now):
        return ""
    if catch_up.policy is CatchUpPolicy.SKIP_ALL or not catch_up.at_most:
        return "nothing that was missed is run"
    if catch_up.policy is CatchUpPolicy.ONLY_NEWEST and any(due_between(config, at, now)):
        return "a newer one was due"
    return "it was too old" if now - at > catch_up.not_older_than else ""


def _was_missed(config: JobConfig, at: datetime, now: datetime) -> bool:
    is_late = now - at >= config.spec.catch_up.missed_after
    return is_late or any(due_between(config, at, now))


def _has_calendars(config: JobConfig) -> bool:
    return any(schedule.exclude or schedule.only for schedule in config.spec.schedules)


def _begin(before: JobConfig | None, after: JobConfig) -> datetime:
    books = before.status.books if before is not None else Books()
    begin = books.accounted_to or books.since or after.metadata.creation_timestamp
    assert begin is not None
    return begin


def _new_skips(before: JobConfig | None, after: JobConfig) -> list[Skip]:
    known = before.status.skips if before is not None else ()
    return [skip for skip in after.status.skips if skip not in known]


def _covers(skip: Skip, moment: datetime) -> bool:
    return skip.at <= moment <= (skip.until or skip.at)


def _was_cut(config: JobConfig, skips: list[Skip], moment: datetime) -> bool:
    """Whether a skip may have been pushed out of the list by newer ones of the same look."""
    held = config.status.skips
    return len(held) >= 10 and len(skips) == len(held) and moment < skips[0].at


def due_between(config: JobConfig, begin: datetime, end: datetime) -> Iterator[datetime]:
    """The due times of a config after `begin` and until `end`, those on closed days too."""
    if config.spec.suspend:
        return iter(())
    identity = f"{config.metadata.namespace}/{config.metadata.name}"
    found: set[datetime] = set()
    for spec in config.spec.schedules:
        if spec.disabled:
            continue
        lines = [read_cron(line, identity, spec.format) for line in spec.cron]
        schedule = Schedule(
            lines, find_zone(spec.timezone), on_gap=spec.on_gap, on_repeat=spec.on_repeat
        )
        due = takewhile(lambda each: each.at <= end, upcoming([schedule], begin))
        found.update(
            each.at
            for each in due
            if (spec.not_before is None or each.at >= spec.not_before)
            and (spec.not_after is None or each.at <= spec.not_after)
        )
    return iter(sorted(found))


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
        if job is None or not _is_controlled(job) or job.spec.kill_at is not None:
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


class NeverLostButBySchedule(NeverLost):
    """What was acknowledged stays; a schedule stops and clears away what it made, and no more."""

    def wrote(self, change: Change) -> None:
        """Let the room revise and remove Jobs of schedules where it may."""
        before, after = change.before, change.event.resource
        is_gone = change.event.type is EventType.DELETED
        if isinstance(before, Job) and isinstance(after, Job) and owner_of(before):
            if self._is_cleared_away(before, is_gone or after.is_going):
                return
            same = {"kill_at": after.spec.kill_at, "locks": after.spec.locks}
            revised = replace(before, spec=replace(before.spec, **same))
            change = replace(change, before=revised)
        super().wrote(change)

    def _is_cleared_away(self, before: Job, goes: bool) -> bool:
        if not goes:
            return False
        if owner_of(before) in self.truth.removed or has_ended(before):
            return True
        # A stray: made from an old view, and never let in.
        return before.status.admission.admitted_at is None


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


class SchedulesSettle(Promise):
    """Once trouble is over no schedule is in trouble, and none that is suspended runs anything."""

    def settled(self) -> None:
        """Everything was suspended, and is at rest."""
        for resource in self.truth.schedules.values():
            trouble = _trouble(resource)
            if trouble:
                name = resource.metadata.name
                raise self.broken(f"{name} is in trouble: {trouble}", name)


def _trouble(resource: Resource) -> str:
    if isinstance(resource, JobConfig | ControlledJob) and resource.status.trouble is not None:
        return resource.status.trouble.message
    return ""


#: Every promise that is checked where there are schedules.
SCHEDULE_PROMISES: tuple[type[Promise], ...] = (
    PeopleAreHeeded,
    *(NeverLostButBySchedule if each is NeverLost else each for each in PROMISES),
    OncePerDueTime,
    OneAtATime,
    EveryDueTimeAccounted,
    MissedByTheRule,
    WindowsKept,
    AlarmsAreTrue,
    SchedulesSettle,
)
