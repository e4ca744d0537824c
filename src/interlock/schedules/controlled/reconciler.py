"""The reconciler of ControlledJobs: what wakes them, and how they are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import CreateJob, Decision, RecordStatus
from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import (
    ControlledJob,
    ControlledJobStatus,
    WindowOutcome,
)
from interlock.resources.job import Job, JobPhase
from interlock.resources.metadata import Key, Resource
from interlock.resources.tasks import ExecutionReason
from interlock.resources.transitions import has_ended
from interlock.schedules.calendars import Calendars
from interlock.schedules.controlled.decide import decide_controlled
from interlock.schedules.controlled.making import template_hash
from interlock.schedules.controlled.plan import (
    Timetable,
    calendars_named,
    schedule_hash,
    timetable_of,
)
from interlock.schedules.controlled.runs import Run, run_of
from interlock.schedules.controlled.view import ControlledView
from interlock.timing.flaws import UnreadableError

#: How often a name is changed that somebody else has.
_NAMES_TRIED = 100


class _Reading(Struct, frozen=True):
    """A plan as it was read, and what it was read from."""

    source: tuple[str, int, tuple[str, ...]]
    timetable: Timetable | None
    flaw: str
    calendar_problem: str
    template_hash: str
    schedule_hash: str


class ControlledSide:
    """The ControlledJobs' side of the schedules room."""

    def __init__(
        self, jobs: Cache[Job], controlled: Cache[ControlledJob], calendars: Cache[Calendar]
    ) -> None:
        self._jobs = jobs
        self._controlled = controlled
        self._calendars = Calendars(calendars.get)
        #: Plans are read once for every version of what they are made of.
        self._readings: dict[Key, _Reading] = {}
        #: Who names each calendar, by the calendar's key.
        self._named: dict[Key, dict[Key, None]] = {}
        #: What this side wrote last, until it hears of it.
        self._told: dict[Key, ControlledJobStatus] = {}
        #: Jobs that went before it was written down what became of them, by their owner.
        self._gone: dict[Key, dict[str, Job]] = {}
        #: What Jobs are that are over, by their owner and uid.
        self._over: dict[Key, dict[str, Run]] = {}

    def wakes(self, change: Change) -> Iterable[Key]:
        """Wake whom a change of a Job, a Calendar or of itself concerns."""
        resource = change.after or change.before
        match resource:
            case ControlledJob():
                self._note_calendars(change)
                return () if self._is_own(change) else (resource.key,)
            case Job():
                return tuple(self._of_job(change))
            case Calendar():
                return tuple(self._named.get(resource.key, ()))
            case _:
                return ()

    def look(self, key: Key, now: datetime) -> Decision:
        """Decide about one; a name that somebody else's Job has is not used."""
        controlled = self._controlled.get(key)
        if controlled is None:
            self._forget(key)
            return Decision()
        view = self._view(controlled, now)
        for _ in range(_NAMES_TRIED):
            decision = decide_controlled(view, now)
            taken = {job.metadata.name for job in _made(decision) if self._is_taken(job.key)}
            if not taken:
                break
            view = replace(view, foreign=view.foreign | taken)
        if not decision.actions:
            self._gone.pop(key, None)
        for action in decision.actions:
            if isinstance(action, RecordStatus):
                assert isinstance(action.status, ControlledJobStatus)
                self._told[key] = action.status
        return decision

    # What a change wakes

    def _of_job(self, change: Change) -> Iterator[Key]:
        if not _matters(change):
            return
        for job in (change.before, change.after):
            owner = _owner(job)
            if owner is not None and not self._only_goes(change, owner):
                yield owner
        self._note_gone(change)

    def _only_goes(self, change: Change, owner: Key) -> bool:
        """Whether a Job goes that was over long ago: nothing is told of it any more."""
        before, after = change.before, change.after
        if not isinstance(before, Job) or not has_ended(before):
            return False
        if isinstance(after, Job) and not (after.is_going and after.spec == before.spec):
            return False
        controlled = self._controlled.get(owner)
        if controlled is None or controlled.status.window is None:
            return False
        told = controlled.status.window.job
        return told is None or told.uid != before.metadata.uid

    def _is_own(self, change: Change) -> bool:
        """Whether a change is nothing but what this side wrote: it said when to look again."""
        before, after = change.before, change.after
        if not isinstance(before, ControlledJob) or not isinstance(after, ControlledJob):
            return False
        if self._told.get(after.key) != after.status:
            return False
        del self._told[after.key]
        old, new = before.metadata, after.metadata
        return replace(old, resource_version=new.resource_version) == new

    def _note_gone(self, change: Change) -> None:
        """Keep what is gone until it is written down what became of it."""
        owner = _owner(change.before)
        if owner is None or not isinstance(change.before, Job):
            return
        controlled = self._controlled.get(owner)
        record = controlled.status.window if controlled is not None else None
        uid = change.before.metadata.uid
        # Another Job may have its name by now.
        if change.after is not None and change.after.metadata.uid == uid:
            return
        if record is None or record.job is None or record.outcome is not WindowOutcome.STARTED:
            return
        if record.job.uid == uid:
            self._gone.setdefault(owner, {})[uid] = change.before

    def _note_calendars(self, change: Change) -> None:
        for resource, is_there in ((change.before, False), (change.after, True)):
            if not isinstance(resource, ControlledJob):
                continue
            for name in calendars_named(resource.spec):
                key = Key("Calendar", resource.metadata.namespace, name)
                if is_there:
                    self._named.setdefault(key, {})[resource.key] = None
                else:
                    self._named.get(key, {}).pop(resource.key, None)

    def _forget(self, key: Key) -> None:
        self._readings.pop(key, None)
        self._gone.pop(key, None)
        self._over.pop(key, None)
        self._told.pop(key, None)

    # How it looks

    def _view(self, controlled: ControlledJob, now: datetime) -> ControlledView:
        uid = controlled.metadata.uid
        reading = self._read(controlled)
        jobs = tuple(job for job in self._jobs.by("owner", uid) if _is_managed_by(job, uid))
        return ControlledView(
            controlled=controlled,
            jobs=jobs,
            over=self._over_of(controlled, jobs, now),
            template_hash=reading.template_hash,
            schedule_hash=reading.schedule_hash,
            timetable=reading.timetable,
            flaw=reading.flaw,
            calendar_problem=reading.calendar_problem,
            gone=tuple(self._gone.get(controlled.key, {}).values()),
            heard_to=self._jobs.version,
        )

    def _over_of(
        self, controlled: ControlledJob, jobs: tuple[Job, ...], now: datetime
    ) -> dict[str, Run]:
        """What Jobs are that are over, as they were seen before."""
        known, over = self._over.get(controlled.key, {}), {}
        for job in jobs:
            if has_ended(job):
                run = known.get(job.metadata.uid)
                is_same = run is not None and run.job is job
                over[job.metadata.uid] = run if run and is_same else run_of(job, controlled, now)
        self._over[controlled.key] = over
        return over

    def _read(self, controlled: ControlledJob) -> _Reading:
        metadata, names = controlled.metadata, calendars_named(controlled.spec)
        versions = tuple(self._calendars.version(metadata.namespace, name) for name in names)
        source = (metadata.uid, metadata.generation, versions)
        held = self._readings.get(controlled.key)
        if held is None or held.source != source:
            held = self._readings[controlled.key] = self._read_anew(controlled, source)
        return held

    def _read_anew(
        self, controlled: ControlledJob, source: tuple[str, int, tuple[str, ...]]
    ) -> _Reading:
        namespace = controlled.metadata.namespace
        calendars, problem = {}, ""
        for name in calendars_named(controlled.spec):
            found = self._calendars.find(namespace, name)
            if found.calendar is not None:
                calendars[name] = found.calendar
            else:
                problem = problem or found.problem
        timetable, flaw = None, ""
        try:
            timetable = timetable_of(controlled, calendars)
        except UnreadableError as error:
            flaw = str(error)
        template = template_hash(controlled.spec.job_template.spec)
        return _Reading(source, timetable, flaw, problem, template, schedule_hash(controlled.spec))

    def _is_taken(self, key: Key) -> bool:
        return self._jobs.get(key) is not None or key in self._jobs.unreadable


def _stage(job: Job) -> JobPhase:
    """A Job's phase, as far as the difference is told."""
    return _STAGES.get(job.status.phase, job.status.phase)


_STAGES = {
    JobPhase.STARTING: JobPhase.QUEUED,
    JobPhase.PENDING: JobPhase.QUEUED,
    JobPhase.KILLING: JobPhase.RUNNING,
    JobPhase.EVICTING: JobPhase.RUNNING,
    JobPhase.TERMINATING: JobPhase.RUNNING,
}


def _settles_otherwise(before: Job, after: Job) -> bool:
    """Whether a Job began to stop for a reason of its own: it may end in another way by that."""
    was, now = before.status.execution.stopping_for, after.status.execution.stopping_for
    return was is not now and now is not ExecutionReason.KILLED


def _made(decision: Decision) -> Iterator[Job]:
    return (action.job for action in decision.actions if isinstance(action, CreateJob))


def _owner(resource: Resource | None) -> Key | None:
    """The ControlledJob that manages a Job."""
    if resource is None:
        return None
    for owner in resource.metadata.owner_references:
        if owner.controller and owner.kind == "ControlledJob":
            return Key("ControlledJob", resource.metadata.namespace, owner.name)
    return None


def _is_managed_by(job: Job, uid: str) -> bool:
    return any(owner.controller and owner.uid == uid for owner in job.metadata.owner_references)


def _matters(change: Change) -> bool:
    """Whether a change of a Job is anything but news of its tasks.

    That it was let in is told once it runs. What is told to stop was so by a moment that was
    known before, or by a change of the Job that is looked at for itself.
    """
    before, after = change.before, change.after
    if not isinstance(before, Job) or not isinstance(after, Job):
        return True
    old, new = before.metadata, after.metadata
    return (
        _stage(before) is not _stage(after)
        or has_ended(before) is not has_ended(after)
        or _settles_otherwise(before, after)
        or old.generation != new.generation
        or old.annotations != new.annotations
        or old.uid != new.uid
        or (old.deletion_timestamp != new.deletion_timestamp and not has_ended(after))
        or old.owner_references != new.owner_references
    )
