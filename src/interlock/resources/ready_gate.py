"""All-or-nothing starts: how long Jobs may take until they are ready, and what becomes of them.

It is said for the whole system, for a Queue, and for a Job: of each value the nearest that is given
holds, and where none is, the default of KEP-349.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Struct

from interlock.resources.codec import decoder_for, encode
from interlock.resources.metadata import Noun
from interlock.resources.rules import Limit, SomeTime
from interlock.resources.values.durations import Duration

MAX_COUNT = 1_000_000
MAX_BACKOFF_S = 31_536_000


class RequeuingTimestamp(StrEnum):
    """Where a Job waits that was not ready in time."""

    #: Behind those of its priority who wait by then.
    EVICTION = "Eviction"
    #: Where it stood before.
    CREATION = "Creation"


class BlockScope(StrEnum):
    """Who is kept out while a Job is not ready."""

    #: The Jobs of its Queue.
    QUEUE = "queue"
    #: The Jobs of all Queues of its cohort.
    COHORT = "cohort"
    #: The Jobs of all Queues.
    SYSTEM = "system"


class RequeuingStrategy(Noun):
    """How a Job that was not ready in time waits for its next try."""

    #: Where it waits; by default `Eviction`.
    timestamp: RequeuingTimestamp | None = None
    #: After so many returns it is taken out of its Queue, by `spec.active`; by default never.
    backoff_limit_count: Annotated[int, Limit(0, MAX_COUNT)] | None = None
    #: How long it waits the first time, and twice as long each time; by default 60.
    backoff_base_seconds: Annotated[int, Limit(0, MAX_BACKOFF_S)] | None = None
    #: It never waits for longer; by default 3600.
    backoff_max_seconds: Annotated[int, Limit(0, MAX_BACKOFF_S)] | None = None


class WaitForPodsReady(Noun):
    """Whether Jobs have to be ready in time, all their tasks at once."""

    #: Whether any of this holds; by default it does not.
    enable: bool | None = None
    #: From the moment a Job is let in until it is ready; by default 5m.
    timeout: SomeTime | None = None
    #: The same as `timeout` as long as fewer tasks have a place to run than have to be ready: pods
    #: that no node takes, tasks for which the machine has no room; by default `timeout` alone
    #: counts. Of a batch Job's pods this is not known.
    unscheduled_timeout: SomeTime | None = None
    #: Whether nobody else is let in while a Job of the Queue is not ready; by default others are.
    block_admission: bool | None = None
    #: Whose Jobs have to be ready before another is let in; by default those of the `queue`.
    block_scope: BlockScope | None = None
    #: From the moment a Job that was ready is not any more until it is again; by default it may
    #: take any time.
    recovery_timeout: Duration | None = None
    #: How it waits for its next try.
    requeuing_strategy: RequeuingStrategy = RequeuingStrategy()


class ReadyPolicy(Struct, frozen=True, kw_only=True):
    """What holds for a Job."""

    is_on: bool = False
    timeout: timedelta = timedelta(minutes=5)
    #: None has no limit of its own.
    unscheduled_timeout: timedelta | None = None
    blocks: bool = False
    scope: BlockScope = BlockScope.QUEUE
    #: None takes any time.
    recovery_timeout: timedelta | None = None
    timestamp: RequeuingTimestamp = RequeuingTimestamp.EVICTION
    #: None is without end.
    limit: int | None = None
    base: timedelta = timedelta(seconds=60)
    longest: timedelta = timedelta(hours=1)

    def delay(self, count: int) -> timedelta:
        """How long a Job waits after it was put back for the so manyth time."""
        # Far beyond any limit already; a power of a thousand would be a long number for nothing.
        doublings = min(max(count - 1, 0), 40)
        return min(self.base * (1 << doublings), self.longest)


OFF = ReadyPolicy()
_READER = decoder_for(WaitForPodsReady)


def ready_policy(*layers: WaitForPodsReady | None) -> ReadyPolicy:
    """What holds, of several layers: what a later one gives beats the earlier ones."""
    given = [layer for layer in layers if layer is not None]
    if not any(layer.enable is not None for layer in given):
        return OFF
    made: dict[str, object] = {}
    for layer in given:
        made.update(values_of(layer))
    policy = ReadyPolicy(**made)  # type: ignore[arg-type]
    return policy if policy.is_on else OFF


@lru_cache(maxsize=8)
def policy_text(layer: WaitForPodsReady | None) -> str:
    """A layer as it is kept in a record: JSON; nothing for none."""
    return "" if layer is None else encode(layer).decode()


def read_policy(text: str) -> WaitForPodsReady | None:
    """A layer that was kept; None for none, and for one that a newer version wrote."""
    try:
        return _READER.decode(text) if text else None
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None


def values_of(layer: WaitForPodsReady) -> dict[str, object]:
    """What a layer gives, by the names that a policy has for it."""
    strategy = layer.requeuing_strategy
    base, longest = strategy.backoff_base_seconds, strategy.backoff_max_seconds
    found = {
        "is_on": layer.enable,
        "timeout": layer.timeout,
        "unscheduled_timeout": layer.unscheduled_timeout,
        "blocks": layer.block_admission,
        "scope": layer.block_scope,
        "recovery_timeout": layer.recovery_timeout,
        "timestamp": strategy.timestamp,
        "limit": strategy.backoff_limit_count,
        "base": None if base is None else timedelta(seconds=base),
        "longest": None if longest is None else timedelta(seconds=longest),
    }
    return {name: value for name, value in found.items() if value is not None}
