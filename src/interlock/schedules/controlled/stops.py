"""Who is told to stop, and when the others will be.

Every Job carries the next stop as its killAt, so that it is kept even if nobody looks again. A
moment that a person wrote there is left as it is, unless it is later than the stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from interlock.resources.actions import DeleteResource, ReviseJob
from interlock.resources.job import CREATOR_ANNOTATION, JobSpec
from interlock.resources.schedule import (
    RESTARTED,
    STOPPED,
    STOPPED_BECAUSE_ANNOTATION,
    STOPPED_BY_ANNOTATION,
)
from interlock.schedules.controlled.choosing import Choice
from interlock.schedules.controlled.making import stop_note, with_lock
from interlock.schedules.controlled.runs import Run, is_kill_of_person, planned_stop
from interlock.schedules.controlled.situation import Situation


class Stop(Struct, frozen=True):
    """A Job to be told to stop, and why."""

    run: Run
    because: str
    #: Who ordered it, to be written down with it; empty when nobody knows, or it is known.
    by: str = ""

    @property
    def is_of_person(self) -> bool:
        """Whether a person ordered it, and it is only written down here."""
        return self.because.partition(":")[0] in (STOPPED, RESTARTED)


def stops(situation: Situation, choice: Choice) -> tuple[Stop, ...]:
    """Everyone who is not over, is not left alone, and was not told."""
    kept = {run.uid for run in choice.kept}
    return tuple(
        _stop(run, situation, choice)
        for run in situation.runs
        if run.uid not in kept and _can_be_told(run, situation) and not run.is_unwritten
    )


def strays(situation: Situation, choice: Choice) -> tuple[Run, ...]:
    """Jobs that are in no books and not wanted: they have not run, and never will."""
    kept = {run.uid for run in choice.kept}
    return tuple(
        run
        for run in situation.runs
        if run.is_unwritten and run.uid not in kept and not run.job.is_going
    )


def _can_be_told(run: Run, situation: Situation) -> bool:
    """Whether a word would make a difference: not to one that was told, ends, or is deleted."""
    if run.is_over or run.job.is_going or run.job.status.execution.stopping_for is not None:
        return False
    kill_at = run.job.spec.kill_at
    return kill_at is None or kill_at > situation.now


def _stop(run: Run, situation: Situation, choice: Choice) -> Stop:
    """Why a Job is told to stop, in the order in which the rules count."""
    if situation.held:
        return Stop(run, situation.held)
    if situation.is_expired(run):
        return Stop(run, f"its window closed at {situation.last_stop:%Y-%m-%dT%H:%M:%SZ}")
    if STOPPED_BECAUSE_ANNOTATION in run.job.metadata.annotations:
        return Stop(run, run.job.metadata.annotations[STOPPED_BECAUSE_ANNOTATION])
    # Who restarts makes the next Job and then stops this one, and may still be about to.
    for other in situation.runs:
        if other.takes_over_from == run.name and other.restarts_because:
            who = other.job.metadata.annotations.get(CREATOR_ANNOTATION, "")
            return Stop(run, other.restarts_because, by=who)
    if choice.chosen is not None:
        return Stop(run, f"job/{choice.chosen.name} takes its place")
    return Stop(run, "no window is open")


def stop_order(stop: Stop, now: datetime) -> ReviseJob:
    """Tell a Job to stop now."""
    job = stop.run.job
    notes = {STOPPED_BECAUSE_ANNOTATION: stop.because}
    if stop.by:
        notes[STOPPED_BY_ANNOTATION] = stop.by
    return ReviseJob(job, replace(job.spec, kill_at=now), notes)


def revisions(situation: Situation, choice: Choice) -> Iterator[ReviseJob]:
    """Bring the Jobs that are left alone in line: their stop and their lock.

    Whether they are suspended is not touched: only people suspend Jobs, and only they resume them.
    """
    for run in choice.kept:
        if run.is_over or run.job.is_going or run.job.status.execution.stopping_for is not None:
            continue
        spec, notes = _with_stop(run, situation)
        if not run.was_admitted:
            spec = with_lock(spec, situation.controlled)
        if spec != run.job.spec or notes:
            yield ReviseJob(run.job, spec, notes)


def _with_stop(run: Run, situation: Situation) -> tuple[JobSpec, dict[str, str]]:
    """The Job's spec with the stop that is planned for it, and how it tells of that."""
    job, timetable, standing = run.job, situation.view.timetable, situation.standing
    if timetable is None or standing is None:
        return job.spec, {}
    begins, kill_at = job.spec.start_after, job.spec.kill_at
    is_later = begins is not None and begins > situation.now
    stop = timetable.closes_after(begins) if begins and is_later else standing.next_stop
    if is_kill_of_person(job) and kill_at is not None and (stop is None or kill_at <= stop):
        return job.spec, {}
    if kill_at == stop and planned_stop(job) == stop:
        return job.spec, {}
    return replace(job.spec, kill_at=stop), stop_note(stop)


def removals(runs: tuple[Run, ...]) -> tuple[DeleteResource, ...]:
    """Delete Jobs exactly as they were read."""
    return tuple(DeleteResource(run.job) for run in runs)
