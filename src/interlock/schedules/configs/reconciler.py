"""The reconciler of JobConfigs: what wakes them, and how they are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import CreateJob, Decision
from interlock.resources.calendar import Calendar
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Key, Metadata
from interlock.resources.schedule import SCHEDULED_AT_ANNOTATION
from interlock.resources.transitions import has_ended
from interlock.schedules.calendars import Calendars
from interlock.schedules.configs.decide import decide_config
from interlock.schedules.configs.reading import Timings, calendars_of, skips_between
from interlock.schedules.configs.view import ConfigView
from interlock.timing.tzfiles import edition


class ConfigSide:
    """The JobConfigs' side of the schedules room."""

    def __init__(
        self, jobs: Cache[Job], configs: Cache[JobConfig], calendars: Cache[Calendar]
    ) -> None:
        self._jobs = jobs
        self._configs = configs
        self._timings = Timings(Calendars(calendars.get))
        #: The configs that name a calendar, by namespace and name of it.
        self._named_by: dict[tuple[str, str], dict[Key, None]] = {}

    def wakes(self, change: Change) -> Iterable[Key]:
        """Wake a config that changed or whose Jobs did, and those that name a calendar.

        What this side writes itself needs no other look: each decision says when the next is.
        """
        resource = change.after or change.before
        match resource:
            case Job():
                return tuple(_owners(change)) if _concerns_owner(change) else ()
            case JobConfig():
                return self._config_changed(change)
            case Calendar():
                place = (resource.metadata.namespace, resource.metadata.name)
                return tuple(self._named_by.get(place, ()))
        return ()

    def look(self, key: Key, now: datetime) -> Decision:
        """Read all that matters into one view, and decide."""
        config = self._configs.get(key)
        if config is None:
            return Decision()
        if rests_until(config, now) and not self._jobs.count("owner", config.metadata.uid):
            return Decision(wake_at=config.status.next_schedule)
        view = self.view_of(config)
        decision = decide_config(view, now)
        # Whose a name is matters only for the Jobs that are to be made.
        while foreign := self._foreign(view, decision):
            view = replace(view, foreign=view.foreign | foreign)
            decision = decide_config(view, now)
        return decision

    def view_of(self, config: JobConfig) -> ConfigView:
        """All that a decision about a config depends on."""
        uid = config.metadata.uid
        jobs = tuple(job for job in self._jobs.by("owner", uid) if manager_of(job) == uid)
        return ConfigView(
            config=config,
            timing=self._timings.of(config),
            jobs=jobs,
            gone=frozenset(self._gone(config, {job.metadata.uid for job in jobs})),
        )

    def _gone(self, config: JobConfig, known: set[str]) -> Iterator[str]:
        """Jobs in the books that are proven gone: not merely not seen by a cache that is behind."""
        for each in config.status.books.expected:
            key = Key("Job", config.metadata.namespace, each.name)
            if each.uid in known or key in self._jobs.unreadable:
                continue
            if self._jobs.version >= each.job_version:
                yield each.uid

    def _foreign(self, view: ConfigView, decision: Decision) -> frozenset[str]:
        """Names of Jobs to be made that Jobs of others have."""
        uid = view.config.metadata.uid
        taken = set()
        for action in decision.actions:
            if isinstance(action, CreateJob):
                held = self._jobs.get(action.job.key)
                if held is not None and manager_of(held) != uid:
                    taken.add(held.metadata.name)
        return frozenset(taken - view.foreign)

    def _config_changed(self, change: Change) -> tuple[Key, ...]:
        before, after = change.before, change.after
        if isinstance(before, JobConfig):
            self._index(before, is_named=False)
        if not isinstance(after, JobConfig):
            return ()
        self._index(after, is_named=True)
        if before is not None and not _was_written(before.metadata, after.metadata):
            return ()
        return (after.key,)

    def _index(self, config: JobConfig, *, is_named: bool) -> None:
        for name in calendars_of(config):
            place = (config.metadata.namespace, name)
            if is_named:
                self._named_by.setdefault(place, {})[config.key] = None
            elif place in self._named_by:
                self._named_by[place].pop(config.key, None)
                if not self._named_by[place]:
                    del self._named_by[place]


def rests_until(config: JobConfig, now: datetime) -> bool:
    """Whether a config without Jobs has nothing to do until the next due time it tells.

    What it tells was worked out from the same definition with the same time zones. So a million
    configs need not be read to know when to look at each. Calendars may say otherwise by now.
    """
    status, books = config.status, config.status.books
    next_due = status.next_schedule
    return (
        next_due is not None
        and next_due > now
        and books.observed_generation == config.metadata.generation
        and books.zones == edition()
        and not (books.expected or status.queued or status.active)
        and (books.accounted_to is None or books.accounted_to <= now)
        and not config.is_going
        and not any(calendars_of(config))
        # What clocks swallowed since the last due time may not be told yet.
        and not skips_between(config, books.accounted_to or books.since or now, next_due)
    )


def manager_of(job: Job) -> str:
    """The uid of the JobConfig that manages a Job; empty if none does."""
    for owner in job.metadata.owner_references:
        if owner.controller and owner.kind == "JobConfig":
            return owner.uid
    return ""


def _owners(change: Change) -> Iterator[Key]:
    """The configs that manage a Job, or did until now."""
    named: dict[Key, None] = {}
    for resource in (change.before, change.after):
        if isinstance(resource, Job):
            for owner in resource.metadata.owner_references:
                if owner.controller and owner.kind == "JobConfig":
                    named[Key("JobConfig", resource.metadata.namespace, owner.name)] = None
    yield from named


def _concerns_owner(change: Change) -> bool:
    """Whether a Job came, went, was let in or ended: how its tasks are going is not asked."""
    before, after = change.before, change.after
    if not isinstance(before, Job) or not isinstance(after, Job):
        return True
    old, new = before.metadata, after.metadata
    return (
        before.status.admission.phase is not after.status.admission.phase
        or has_ended(before) != has_ended(after)
        or _was_written(old, new)
        or old.owner_references != new.owner_references
        or old.annotations.get(SCHEDULED_AT_ANNOTATION)
        != new.annotations.get(SCHEDULED_AT_ANNOTATION)
    )


def _was_written(old: Metadata, new: Metadata) -> bool:
    """Whether more changed than a status."""
    return (
        old.generation != new.generation
        or old.uid != new.uid
        or old.deletion_timestamp != new.deletion_timestamp
    )
