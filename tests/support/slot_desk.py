"""TestBeds, their records and Jobs that want slots, as tests write them."""

from __future__ import annotations

from typing import Any

from interlock.resources.job import Job, Parallelism, SlotsRequest
from interlock.resources.metadata import Metadata
from interlock.resources.test_bed import (
    Place,
    SlotHolder,
    TestBed,
    TestBedSlots,
    TestBedSlotsSpec,
    TestBedSlotsStatus,
    TestBedSpec,
)
from interlock.testing.builders import T0, a_job


def a_bed(name: str = "bed", *, version: int = 1, slots_per_node: int = 2, **spec: Any) -> TestBed:
    """A stored TestBed."""
    return TestBed(
        metadata=_metadata(name, version),
        spec=TestBedSpec(slots_per_node=slots_per_node, **spec),
    )


def a_record(
    places: tuple[Place, ...] = (), *holders: SlotHolder, name: str = "bed", version: int = 1
) -> TestBedSlots:
    """The record of a bed's slots."""
    return TestBedSlots(
        metadata=_metadata(name, version),
        spec=TestBedSlotsSpec(test_bed=name),
        status=TestBedSlotsStatus(places=places, holders=holders),
    )


def a_slot_holder(job: str, *slots: str, epoch: int = 0, token: int = 1) -> SlotHolder:
    """A grant of slots to a Job."""
    return SlotHolder(
        job=job, uid=f"uid-default-{job}", epoch=epoch, token=token, slots=slots, granted_at=T0
    )


def a_slot_job(
    name: str = "job",
    *,
    bed: str | None = "bed",
    ids: tuple[str, ...] | None = None,
    tasks: int = 1,
    at_once: int | None = None,
    **given: Any,
) -> Job:
    """A Job that wants slots for so many tasks."""
    return a_job(
        name,
        slots=SlotsRequest(test_bed=bed, ids=ids),
        parallelism=Parallelism(count=tasks, at_once=at_once),
        **given,
    )


def _metadata(name: str, version: int) -> Metadata:
    return Metadata(
        name=name,
        namespace="default",
        uid=f"uid-default-{name}",
        resource_version=str(version),
        generation=1,
        creation_timestamp=T0,
    )
