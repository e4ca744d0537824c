"""Finalizing: what a resource that is to go waits for, and what a person can do about it."""

from __future__ import annotations

from typing import Any, NamedTuple

from interlock.client.kinds import JOBS, Kind
from interlock.client.outcomes import execution_of, has_ended, has_started, phase_of, way_out

#: The finalizer of every Job: its tasks are to be proven gone.
_TASKS = "interlock.dev/tasks"
_DEPENDENTS = "foregroundDeletion"
_NAMESPACE = "Namespace"


class Holdup(NamedTuple):
    """Why something that is to go is there yet."""

    told: str
    #: What a person can do about it.
    way_out: str = ""
    #: Whether it goes only when somebody does something.
    is_for_people: bool = False


def holdup_of(kind: Kind, item: dict[str, Any]) -> Holdup:
    """What a resource waits for before it goes."""
    if kind is JOBS and not has_ended(item):
        return _of_job(item)
    if kind.name == _NAMESPACE:
        return Holdup("what is in it goes first")
    finalizers = item["metadata"].get("finalizers") or []
    if _DEPENDENTS in finalizers:
        return Holdup("what belongs to it goes first")
    others = [name for name in finalizers if name != _TASKS]
    if others:
        told = f"it is held by {', '.join(others)}, which whoever put it there takes away"
        return Holdup(told, is_for_people=True)
    return Holdup("it is about to go")


def _of_job(job: dict[str, Any]) -> Holdup:
    name, phase = job["metadata"]["name"], phase_of(job)
    if out := way_out(job):
        return Holdup(_stands(job), out, is_for_people=True)
    trouble = (job.get("status") or {}).get("trouble") or {}
    if trouble.get("order") == "Stop":
        return Holdup(f"its stop is denied: {trouble.get('message', '')}", is_for_people=True)
    operation = execution_of(job).get("operation")
    if phase == "Reverting":
        return Holdup("what it did is being undone", f"interlock op show {name}")
    if operation is not None:
        return Holdup("its steps under way end, then they are undone", f"interlock op show {name}")
    if has_started(job):
        return Holdup("its tasks are being stopped", f"to end them at once: interlock kill {name}")
    return Holdup("it is about to go")


def _stands(job: dict[str, Any]) -> str:
    """Why nothing comes of a Job by itself."""
    if phase_of(job) == "Stuck":
        message = (execution_of(job).get("operation") or {}).get("stuckMessage")
        return f"it is stuck{f': {message}' if message else ''}"
    return "what became of it is not known"
