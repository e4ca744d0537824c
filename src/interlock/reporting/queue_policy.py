"""What holds in a Queue about being ready in time, and where each value was said."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import asdict

from interlock.resources.queue import Queue
from interlock.resources.ready_gate import WaitForPodsReady, ready_policy, values_of
from interlock.resources.values.durations import format_duration


class SaidBy(StrEnum):
    """Where a value was said."""

    #: In the Queue.
    QUEUE = "Queue"
    #: In the settings of the control plane, for all Queues.
    SYSTEM = "System"
    #: Nowhere: it is the default.
    DEFAULT = "Default"


class ReadyValue(Struct, frozen=True, rename="camel"):
    """One value of the policy."""

    #: Where it is found in `waitForPodsReady`.
    name: str
    value: str
    said_by: SaidBy


#: The fields of a policy as they are written, in the order in which they are told.
_NAMES = {
    "is_on": "enable",
    "timeout": "timeout",
    "unscheduled_timeout": "unscheduledTimeout",
    "recovery_timeout": "recoveryTimeout",
    "blocks": "blockAdmission",
    "scope": "blockScope",
    "timestamp": "requeuingStrategy.timestamp",
    "limit": "requeuingStrategy.backoffLimitCount",
    "base": "requeuingStrategy.backoffBaseSeconds",
    "longest": "requeuingStrategy.backoffMaxSeconds",
}


def ready_values(queue: Queue | None, system: WaitForPodsReady | None) -> tuple[ReadyValue, ...]:
    """Every value that holds for Jobs that say nothing themselves; none where it is off."""
    if queue is None:
        return ()
    own = queue.spec.wait_for_pods_ready
    policy = ready_policy(system, own)
    if not policy.is_on:
        return ()
    held = asdict(policy)
    in_queue = values_of(own) if own is not None else {}
    in_system = values_of(system) if system is not None else {}
    found = []
    for field, name in _NAMES.items():
        said_by = SaidBy.QUEUE if field in in_queue else SaidBy.DEFAULT
        if said_by is SaidBy.DEFAULT and field in in_system:
            said_by = SaidBy.SYSTEM
        found.append(ReadyValue(name, _told(held[field]), said_by))
    return tuple(found)


def _told(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return format_duration(value)
    return value.value if isinstance(value, StrEnum) else str(value)
