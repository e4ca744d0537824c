"""Promises about JobConfigs: every due time is accounted for, once, by the rule.

What is due is worked out here, from the definitions as they were committed, with the clockwork and
without anything of the room that decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import takewhile

from msgspec.structs import replace

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.controlled_job import (
    ControlledJob,
)
from interlock.resources.job import Job
from interlock.resources.job_config import (
    CatchUpPolicy,
    JobConfig,
    JobConfigSpec,
    Skip,
    SkipReason,
)
from interlock.resources.schedule import (
    SCHEDULED_AT_ANNOTATION,
    Books,
    is_of_schedule,
    scheduled_at,
)
from interlock.store.contract import EventType
from interlock.store.watching import Change
from interlock.timing.cron import read_cron
from interlock.timing.due import Schedule, upcoming
from interlock.timing.zones import find_zone
from support.simulation.judge import Promise
from support.simulation.schedule_judging import (
    PROMPT,
    SchedulePromise,
    owner_of,
)
from support.simulation.truth import Truth


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
