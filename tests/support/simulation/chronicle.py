"""Committed writes in words, for the history."""

from __future__ import annotations

from interlock.resources.cluster import Lease
from interlock.resources.job import Job, lock_requests
from interlock.resources.lock import Lock
from interlock.resources.operation import OperationStatus
from interlock.resources.queue import QueueQuota
from interlock.resources.test_bed import SlotHolder, TestBedSlots
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.history import History


def note_change(history: History, writer: str, change: Change) -> None:
    """Write a committed change down; a lease that was merely renewed is no news."""
    resource, before = change.event.resource, change.before
    name = change.key.name
    if isinstance(resource, Lease):
        was = before.spec.holder_identity if isinstance(before, Lease) else ""
        if resource.spec.holder_identity != was:
            history.note(writer, f"lease is held by {resource.spec.holder_identity or 'nobody'}")
        return
    what = {EventType.ADDED: "created", EventType.DELETED: "removed"}.get(change.event.type, "")
    if isinstance(resource, Job):
        told = f"{name} v{change.version} {what} {_job_in_words(resource)}"
        history.note(writer, told, name, *(request.key for request in lock_requests(resource.spec)))
    elif isinstance(resource, Lock):
        holders = ", ".join(f"{h.job}#{h.token}" for h in resource.status.holders) or "nobody"
        told = f"lock {resource.spec.key} v{change.version} {what} held by {holders}"
        history.note(writer, told, resource.spec.key, *(h.job for h in resource.status.holders))
    elif isinstance(resource, QueueQuota):
        holders = ", ".join(f"{h.job}#{h.token}x{h.tasks}" for h in resource.status.holders)
        told = f"quota {resource.spec.queue} v{change.version} {what} held by {holders or 'nobody'}"
        history.note(writer, told, *(h.job for h in resource.status.holders))
    elif isinstance(resource, TestBedSlots):
        held = "; ".join(f"{h.job}#{h.token} in {','.join(h.slots)}" for h in _holders(resource))
        there = ", ".join(f"{place.node}x{place.slots}" for place in resource.status.places)
        told = f"slots {name} v{change.version} {what} [{there}] held by {held or 'nobody'}"
        history.note(writer, told, *(h.job for h in _holders(resource)))
    else:
        history.note(writer, f"{change.key} v{change.version} {what}")


def _holders(record: TestBedSlots) -> tuple[SlotHolder, ...]:
    return record.status.holders


def _job_in_words(job: Job) -> str:
    admission, execution = job.status.admission, job.status.execution
    words = [str(job.status.phase)]
    if job.is_going:
        words.append("going")
    if job.spec.suspend:
        words.append("suspended")
    words += [
        f"waits:{wait.reason}{'=' + wait.key if wait.key else ''}" for wait in admission.waits
    ]
    if admission.epoch:
        words.append(f"epoch:{admission.epoch}")
    words += [f"{task.index}/{task.attempt}:{task.state}" for task in execution.active]
    words += [f"retry {wait.index}/{wait.attempt}" for wait in execution.retrying]
    if execution.ended:
        last = execution.ended[-1]
        words.append(f"last {last.index}/{last.attempt}:{last.result}")
    if execution.operation is not None:
        words.append(_operation_in_words(execution.operation))
    if job.status.trouble is not None:
        words.append(f"trouble: {job.status.trouble.message}")
    return " ".join(words)


def _operation_in_words(operation: OperationStatus) -> str:
    words = [operation.state, f"{operation.retry_count}/{operation.rollback_retry_count}"]
    words += [f"is {operation.completion_state}"] if operation.completion_state else []
    words += [f"for {operation.reverting_for}"] if operation.reverting_for else []
    words += [f"stuck: {operation.stuck_message}"] if operation.stuck_at else []
    words += [f"{step.name}:{step.state}" for step in operation.steps]
    return f"[{' '.join(words)}]"
