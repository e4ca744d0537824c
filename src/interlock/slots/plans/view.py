"""What decisions about plans may depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol, TypeVar

from msgspec import Struct

from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.scheduling import Scheduling, SchedulingClaims
from interlock.resources.test_bed import TestBedSlots

R_co = TypeVar("R_co", bound=Resource, covariant=True)


class Known(Protocol[R_co]):
    """What is known of the resources of a kind. It may be old."""

    @property
    def version(self) -> int:
        """The version of the store up to which all was heard."""
        ...

    @property
    def unreadable(self) -> AbstractSet[Key]:
        """What is stored and cannot be read."""
        ...

    def get(self, key: Key, /) -> R_co | None:
        """The newest known version, or None when there is none."""
        ...


class ClaimsView(Struct, frozen=True, kw_only=True):
    """All plans of a namespace, what they have, and what they want."""

    namespace: str
    record: SchedulingClaims | None
    #: In the order of their age.
    plans: tuple[Scheduling, ...]
    known_plans: Known[Scheduling]
    jobs: Known[Job]
    #: By the name of the bed.
    beds: Mapping[str, TestBedSlots]


class PlanView(Struct, frozen=True, kw_only=True):
    """A plan, and how its Jobs and its bed are."""

    plan: Scheduling
    claims: ClaimsView

    @property
    def bed(self) -> TestBedSlots | None:
        """The record of the plan's bed."""
        return self.claims.beds.get(self.plan.spec.test_bed)


def by_age(plans: Iterable[Scheduling]) -> tuple[Scheduling, ...]:
    """Plans in the order in which they were made: one order for everybody, whatever is known."""
    return tuple(sorted(plans, key=_age))


def _age(plan: Scheduling) -> tuple[float, int, str]:
    made = plan.metadata.creation_timestamp
    return (
        made.timestamp() if made is not None else 0.0,
        plan.metadata.creation_version,
        plan.metadata.uid,
    )
