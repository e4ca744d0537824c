"""What the history of a rehearsal tells of Queues: who is let in, put back, and taken out."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.resources.admission import AdmissionPhase, EvictionReason
from interlock.resources.job import Job
from interlock.resources.words import plural

#: An event, its reason, and what else is to be said.
_Told = tuple[str, str, str]


def of_queue(before: Job | None, job: Job) -> Iterator[_Told]:
    """What a change of a Job tells of its way through a Queue."""
    admission = job.status.admission
    was = before.status.admission if before is not None else None
    if admission.quota is not None and (was is None or was.quota is None):
        tasks = plural(admission.quota.tasks, "task")
        yield "Admitted", "", f"queue {admission.quota.queue}, {tasks} at a time"
    if before is not None and before.spec.active and not job.spec.active:
        yield "Deactivated", "", ""
    if before is not None and job.spec.active and not before.spec.active:
        yield "Reactivated", "", ""
    eviction, begins = admission.eviction, AdmissionPhase.EVICTING
    if eviction is not None and admission.phase is begins and was and was.phase is not begins:
        if eviction.reason is EvictionReason.PREEMPTED:
            yield "Preempted", "", eviction.message
        yield "Evicted", eviction.reason.value, eviction.cause or eviction.message
    if was is not None and admission.evictions > was.evictions:
        yield "Requeued", "", _next_try(job)


def _next_try(job: Job) -> str:
    """How often it was put back for not being ready, and until when it waits for that."""
    requeue = job.status.admission.requeue
    if requeue is None:
        return ""
    until = f", until {requeue.at.isoformat().replace('+00:00', 'Z')}" if requeue.at else ""
    return f"count {requeue.count}{until}"
