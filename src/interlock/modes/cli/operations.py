"""The table of operations, as `get operations` and `op list` print it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from interlock.client.kinds import JOBS
from interlock.client.moments import ago, day_and_time
from interlock.client.outcomes import has_ended
from interlock.modes.cli.session import Session

_HEADERS = ("NAME", "STATE", "STEP", "RETRIES", "UNDO-RETRIES", "DONE", "TARGET", "STUCK", "AGE")
_WIDE = ("TYPE", "CREATOR", "NEXT-TRY", "ERROR")
_SETTLED = ("Waits", "Done", "Undone", "ToUndo")


def is_operation(job: dict[str, Any]) -> bool:
    """Whether a Job has steps, or will have."""
    spec = job.get("spec") or {}
    return spec.get("steps") is not None or spec.get("python") is not None


def operation_of(job: dict[str, Any]) -> dict[str, Any]:
    """How an operation is going."""
    return ((job.get("status") or {}).get("execution") or {}).get("operation") or {}


def read_operations(
    session: Session,
    namespace: str | None,
    *,
    target: str = "",
    labels: str = "",
    fields: str = "",
    also_ended: bool = True,
) -> list[dict[str, Any]]:
    """The operations of a namespace, or of all; of one target and those below it."""
    pages = session.api.pages(JOBS, namespace, labels=labels, fields=fields)
    head = {"apiVersion": JOBS.api_version, "kind": JOBS.name}
    return [
        head | job
        for page in pages
        for job in page["items"]
        if is_operation(job)
        and (also_ended or not has_ended(job))
        and _is_at_or_below(_target(job), target.strip("/"))
    ]


def headers(*, wide: bool = False, namespaces: bool = False) -> tuple[str, ...]:
    """The names of the columns."""
    return (*(("NAMESPACE",) if namespaces else ()), *_HEADERS, *(_WIDE if wide else ()))


def rows(
    jobs: Iterable[dict[str, Any]], now: datetime, *, wide: bool = False, namespaces: bool = False
) -> list[tuple[str, ...]]:
    """A row for each operation."""
    found = []
    for job in jobs:
        place = (job["metadata"].get("namespace", ""),) if namespaces else ()
        found.append((*place, *_row(job, now), *(_more(job) if wide else ())))
    return found


def _row(job: dict[str, Any], now: datetime) -> tuple[str, ...]:
    operation = operation_of(job)
    steps = operation.get("steps") or []
    now_at = next((s["name"] for s in steps if s.get("state", "Waits") not in _SETTLED), "")
    share = operation.get("percentage")
    return (
        job["metadata"]["name"],
        _state(job, operation),
        now_at,
        str(operation.get("retryCount", 0)),
        str(operation.get("rollbackRetryCount", 0)),
        "" if share is None else f"{share:g} %",
        _target(job),
        ago(operation.get("stuckAt"), now) if operation.get("stuckAt") else "",
        ago(job["metadata"].get("creationTimestamp"), now),
    )


def _more(job: dict[str, Any]) -> tuple[str, ...]:
    operation, notes = operation_of(job), job["metadata"].get("annotations") or {}
    again = operation.get("nextAttemptAt")
    return (
        job["spec"].get("type", ""),
        notes.get("interlock.dev/creator", ""),
        day_and_time(again) if again else "",
        operation.get("stuckMessage") or operation.get("error") or "",
    )


def _state(job: dict[str, Any], operation: dict[str, Any]) -> str:
    """Its state; what one that is over came to."""
    state = operation.get("state", "queued")
    if state == "complete" or has_ended(job):
        return f"complete({operation.get('completionState') or 'failed'})"
    return str(state)


def _target(job: dict[str, Any]) -> str:
    return str((job["spec"].get("target") or {}).get("path", ""))


def _is_at_or_below(path: str, top: str) -> bool:
    # The noun that knows this is slow to import.
    return not top or path == top or path.startswith(f"{top}/")
