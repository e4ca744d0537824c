"""What is done about an object of somebody else and the Job that stands for it.

A pure function of the two. Whether the object may run is told by the object itself: the runtime
claims it before it lets it run, and marks it when it stops it. So a look that knows too little of
the Job never stops what may run.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from interlock.kube.adoption.models import Foreign, ForeignJob, is_part_of_another
from interlock.kube.adoption.reading import Flaw, stand_in_of
from interlock.resources.job import Job, JobSpec
from interlock.resources.transitions import has_ended, was_admitted


class Suspend(Struct, frozen=True):
    """Suspend a batch Job that runs although nobody let it in."""

    object: ForeignJob


class Make(Struct, frozen=True):
    """Make the Job that stands for an object."""

    job: Job


class Change(Struct, frozen=True):
    """Have the Job ask for what its object asks for now."""

    job: Job


class Remove(Struct, frozen=True):
    """Remove the Job: what runs of its object is stopped first."""

    job: Job
    why: str


class Tell(Struct, frozen=True):
    """Tell the owner of an object why it is not queued."""

    object: Foreign
    reason: str
    message: str


_NOT_GATED = "it was created without our scheduling gate, while nobody answered for its Queue"

Action = Suspend | Make | Change | Remove | Tell


def decide(thing: Foreign | None, job: Job | None) -> tuple[Action, ...]:
    """Keep an object from running until its Job is let in, and keep the Job as it is asked for.

    An object that is gone, going or over comes first: nothing waits for it any more. Then that it
    does not run, whatever is wrong with it, and then its Job.
    """
    if thing is None or thing.is_going or thing.is_over:
        return _let_go(thing, job)
    if isinstance(thing, ForeignJob):
        held = (Suspend(thing),) if _went_past(thing) else ()
        return () if _is_of_our_making(thing) else (*held, *_about(thing, job))
    if job is None and (is_part_of_another(thing.metadata) or thing.metadata.labels.job_uid):
        return ()
    if job is None and not thing.is_waiting:
        # Nobody can hold back a pod that has been created.
        return (Tell(thing, "RunsOutsideOfQueue", _NOT_GATED),)
    return _about(thing, job)


def _let_go(thing: Foreign | None, job: Job | None) -> tuple[Action, ...]:
    """Remove a Job that waits for what is no more; of one that was let in the runtime tells."""
    if job is None or job.is_going or has_ended(job):
        return ()
    if thing is None:
        return (Remove(job, "what it stands for is gone, or does not ask for a Queue any more"),)
    if was_admitted(job):
        return ()
    how = "is over" if thing.is_over else "is being deleted"
    return (Remove(job, f"what it stands for {how}"),)


def _about(thing: Foreign, job: Job | None) -> tuple[Action, ...]:
    wanted = stand_in_of(thing)
    if isinstance(wanted, Flaw):
        told = Tell(thing, "NotQueued", wanted.message)
        if job is None or job.is_going or has_ended(job) or was_admitted(job):
            return (told,)
        return (told, Remove(job, f"what it stands for cannot be queued: {wanted.message}"))
    if job is None:
        return (Make(wanted),)
    if job.is_going or has_ended(job):
        return ()
    if not was_admitted(job):
        spec = _following(job, wanted)
        return (Change(replace(job, spec=spec)),) if spec != job.spec else ()
    why = _outgrown(thing, job, wanted)
    if why:
        return (Remove(job, why),)
    if job.spec.priority != wanted.spec.priority:
        return (Change(replace(job, spec=replace(job.spec, priority=wanted.spec.priority))),)
    return ()


def _following(job: Job, wanted: Job) -> JobSpec:
    spec = wanted.spec
    return replace(
        job.spec,
        adopted=spec.adopted,
        queue=spec.queue,
        priority=spec.priority,
        min_parallelism=spec.min_parallelism,
        grace_period=spec.grace_period,
    )


def _outgrown(thing: Foreign, job: Job, wanted: Job) -> str:
    """Why what a Job was let in with is not what its object asks for; what asks for less fits."""
    had, now = job.spec.adopted, wanted.spec.adopted
    assert had is not None, f"{job.key}: it stands for nothing"
    assert now is not None, f"{wanted.key}: it stands for nothing"
    if job.spec.queue != wanted.spec.queue:
        return f"it is to wait in queue {wanted.spec.queue} instead of {job.spec.queue}"
    if now.requests != had.requests:
        return "its pods ask for something else than they were granted"
    if now.pods > had.pods:
        return f"it asks for {now.pods} pods at a time, and was granted {had.pods}"
    return _beyond_grant(thing) if isinstance(thing, ForeignJob) else ""


def _beyond_grant(job: ForeignJob) -> str:
    marks, granted = job.metadata.annotations, job.granted
    runs = job.is_held and bool(marks.armed_at) and not marks.stopped_at
    if granted is None or not runs or job.at_once <= granted:
        return ""
    return f"it runs {job.at_once} pods at a time, and was granted {granted}"


def _went_past(job: ForeignJob) -> bool:
    """Whether it runs, and neither was let run by us nor is about to be."""
    if job.spec.suspend:
        return False
    return not job.is_held or bool(job.metadata.annotations.stopped_at)


def _is_of_our_making(job: ForeignJob) -> bool:
    return bool(job.metadata.labels.job_uid) and not job.is_adopted
