"""Columns of lists of plans, and of the record of what they have."""

from __future__ import annotations

from interlock.resources.scheduling import Scheduling, SchedulingClaims


def state(plan: Scheduling) -> str:
    """How far it is."""
    going = " (deleting)" if plan.is_going else ""
    return f"{plan.status.state.value}{going}" if plan.status.observed_generation else going.strip()


def bed(plan: Scheduling) -> str:
    """Its TestBed."""
    return plan.spec.test_bed


def completed(plan: Scheduling) -> int:
    """How many of its Jobs did what they were asked to."""
    return plan.status.completed


def failed(plan: Scheduling) -> int:
    """How many of its Jobs are over without that."""
    return plan.status.failed


def total(plan: Scheduling) -> int:
    """How many Jobs it has."""
    return plan.status.total


def waits_for(plan: Scheduling) -> str:
    """What it waits for first, and how much more there is."""
    waits = plan.status.waits
    if not waits:
        return ""
    more = f" (+{len(waits) - 1})" if len(waits) > 1 else ""
    return f"{waits[0].message}{more}"


def holders(record: SchedulingClaims) -> str:
    """The plans that have what they need."""
    return ",".join(holder.scheduling for holder in record.status.holders)
