"""Promises to people: what they order stands, and is told with their names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.controlled_job import (
    ControlledJob,
)
from interlock.resources.job import CREATOR_ANNOTATION, RELEASE_ANNOTATION, Job
from interlock.resources.job_config import (
    JobConfig,
)
from interlock.resources.metadata import Key
from interlock.resources.schedule import (
    SCHEDULED_AT_ANNOTATION,
    STOPPED_BECAUSE_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    is_manual,
)
from interlock.resources.transitions import has_ended
from interlock.store.contract import EventType, JournalEntry
from interlock.store.watching import Change
from support.simulation.judge import Promise
from support.simulation.schedule_judging import (
    PROMPT,
    SchedulePromise,
    owner_of,
)
from support.simulation.truth import Truth


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


class DeedsAreTold(Promise):
    """What a person ordered is in the history, once, with name, time and reason; and no more is.

    What was committed for people was acknowledged: nothing is lost between them and the door.
    """

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        #: What the history owes since the last write of a person: of what, and in which words.
        self._owed: tuple[Key, tuple[str, ...]] | None = None

    def wrote(self, change: Change) -> None:
        """Remember what a person did to a Job."""
        self._hear(change)

    def scheduled(self, change: Change) -> None:
        """Remember what a person did to a schedule."""
        self._hear(change)

    def _hear(self, change: Change) -> None:
        person, after = self.truth.person, change.event.resource
        if not person or not isinstance(after, Job | JobConfig | ControlledJob):
            return
        self._check_nothing_owed()
        before = change.before
        if not isinstance(before, Job | JobConfig | ControlledJob):
            if after.metadata.annotations.get(CREATOR_ANNOTATION) != person:
                name = after.metadata.name
                raise self.broken(f"{name} does not say that {person} made it", name)
            return
        is_deleted = change.event.type is EventType.DELETED or (
            after.is_going and not before.is_going
        )
        words = (f"deleted by {person}",) if is_deleted else tuple(_words(before, after, person))
        if words:
            self._owed = (change.key, words)

    def deed(self, entry: JournalEntry) -> None:
        """Something was written into the history as a person's deed."""
        if entry.kind not in ("Job", "JobConfig", "ControlledJob"):
            return
        key, owed = Key(entry.kind, entry.namespace, entry.name), self._owed
        if owed is None or owed[0] != key:
            told = f"the history of {key} tells what nobody did: {entry.reason}"
            raise self.broken(told, entry.name)
        missing = [words for words in owed[1] if words not in entry.reason]
        if missing or entry.at != self.truth.moment:
            told = f"the history of {key} tells at {entry.at} {entry.reason!r}, not {missing}"
            raise self.broken(told, entry.name)
        self._owed = None

    def settled(self) -> None:
        """Nothing is left untold."""
        self._check_nothing_owed()

    def _check_nothing_owed(self) -> None:
        if self._owed is not None:
            key, words = self._owed
            raise self.broken(f"the history of {key} does not tell that it was {words}", key.name)


def _words(
    before: Job | JobConfig | ControlledJob, after: Job | JobConfig | ControlledJob, person: str
) -> Iterator[str]:
    """What the history must say of a change; nothing when nothing changed."""
    found: list[str] = []
    if isinstance(before, Job) and isinstance(after, Job):
        if before.spec.kill_at != after.spec.kill_at:
            back = after.spec.kill_at is None
            found.append(f"{'its stop was taken back' if back else 'stopped'} by {person}")
        reason = after.metadata.annotations.get(RELEASE_ANNOTATION)
        if reason != before.metadata.annotations.get(RELEASE_ANNOTATION):
            found.append(f"released by {person}: {reason}")
    if before.spec.suspend != after.spec.suspend:
        found.append(f"{'suspended' if after.spec.suspend else 'resumed'} by {person}")
        reason = after.metadata.annotations.get(SUSPEND_REASON_ANNOTATION)
        if not isinstance(after, Job) and after.spec.suspend and reason:
            found[-1] += f": {reason}"
    if isinstance(before, ControlledJob) and isinstance(after, ControlledJob):
        known = [replace(one, by="") for one in before.spec.overrides]
        new = [one for one in after.spec.overrides if replace(one, by="") not in known]
        found += [f"asked for by {person}: {one.reason}" for one in new]
    if not found and (before.spec, before.metadata.annotations) != (
        after.spec,
        after.metadata.annotations,
    ):
        found.append(f"by {person}")
    yield from found
