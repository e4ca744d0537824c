"""Holding back and letting go: Jobs, and the schedules that make them."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.commands.change import By, Change, changed, noted, unchanged
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Noun
from interlock.resources.rules import Line
from interlock.resources.schedule import SUSPEND_REASON_ANNOTATION
from interlock.resources.transitions import has_ended

#: What can be held back.
Held = Job | JobConfig | ControlledJob


class Suspending(Noun):
    """How to hold something back."""

    #: Why, for people to read.
    reason: Line = ""


class Resuming(Noun):
    """How to let something go."""


def suspend(held: Held, how: Suspending, by: By) -> Change:  # noqa: ARG001
    """Hold back: a Job starts no task any more, a JobConfig makes no Job, of a ControlledJob
    nothing runs.
    """
    return _set(held, True, "suspended", how.reason)


def resume(held: Held, how: Resuming, by: By) -> Change:  # noqa: ARG001
    """Let go what was suspended, and put a Job that is not active into its Queue again."""
    return _set(held, False, "resumed")


def _set(held: Held, suspend: bool, word: str, reason: str = "") -> Change:
    if isinstance(held, Job):
        if has_ended(held):
            return unchanged(held, f"already {held.status.phase.value.lower()}")
        active = held.spec.active or not suspend
        spec = replace(held.spec, suspend=suspend, suspend_reason=reason, active=active)
        return changed(held, replace(held, spec=spec), word)
    if held.spec.suspend is suspend and not reason:
        return unchanged(held, "already suspended" if suspend else "not suspended")
    told = word if held.spec.suspend is not suspend else "already suspended"
    # Schedules have no field for the reason: their spec says when, not why not.
    after = noted(held, {SUSPEND_REASON_ANNOTATION: reason or None})
    return changed(held, replace(after, spec=replace(after.spec, suspend=suspend)), told)
