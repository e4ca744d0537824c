"""The books of a schedule in a migration: what of its past goes with it."""

from __future__ import annotations

from typing import Any

from interlock.client.kinds import JOB_CONFIGS
from interlock.migration import annotations as marks
from interlock.migration.endpoints import Thing
from interlock.resources.schedule import ACCOUNTED_TO_ANNOTATION

#: What a status tells of the past; the rest follows from how things are.
_HISTORIES = {
    "JobConfig": (
        "lastScheduled", "lastExecuted", "lastSuccess", "lastFailure", "skips", "skipped",
    ),
    "ControlledJob": (
        "lastScheduledStartTime", "lastRunId", "window", "pastWindows", "mostRecentAction",
        "actionHistory",
    ),
}  # fmt: skip


def is_settled(thing: Thing) -> bool:
    """Whether the source's own server has seen that it is suspended, and is through with it."""
    status = thing.get("status") or {}
    if thing["kind"] != JOB_CONFIGS.name:
        return bool(status.get("isSuspended")) and not status.get("active")
    if not thing["spec"].get("schedules"):
        return True
    return bool((status.get("books") or {}).get("scheduleHash") == _digest(thing))


def _digest(thing: Thing) -> str:
    from interlock.resources.codec import from_builtins
    from interlock.resources.job_config import JobConfig
    from interlock.schedules.configs.reading import digest_of

    return digest_of(from_builtins(thing, JobConfig))


def accounted(thing: Thing) -> dict[str, str]:
    """Up to when the source has accounted for what was due; nothing is due while suspended."""
    if thing["kind"] != JOB_CONFIGS.name or marks.was_suspended(thing):
        return {}
    books = (thing.get("status") or {}).get("books") or {}
    at = books.get("accountedTo")
    return {ACCOUNTED_TO_ANNOTATION: at} if at else {}


def history_of(thing: Thing) -> dict[str, Any]:
    """The parts of a status that the copy is told."""
    status = thing.get("status") or {}
    told = {name: status[name] for name in _HISTORIES[thing["kind"]] if name in status}
    if "window" in told:
        # It is merged into what the copy has: what is not there has to be taken away.
        told["window"] = {"message": None, **told["window"], "jobVersion": None}
    if "pastWindows" in told:
        told["pastWindows"] = [_without_version(one) for one in told["pastWindows"]]
    return told


def _without_version(window: Thing) -> Thing:
    """A window without what only its own store understands."""
    return {name: value for name, value in window.items() if name != "jobVersion"}
