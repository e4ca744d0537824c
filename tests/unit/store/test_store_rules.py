"""What a write makes of a resource."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from interlock.errors import BadRequestError, ConflictError, ForbiddenError
from interlock.resources.cluster import Lease, LeaseSpec, Namespace
from interlock.resources.job import JobPhase, JobStatus
from interlock.resources.metadata import Metadata
from interlock.store import rules
from interlock.store.contract import DeleteOptions, Propagation
from interlock.testing.builders import T0, a_job

LATER = T0 + timedelta(hours=1)
FREE = a_job(metadata={"finalizers": ()})
HELD = a_job(metadata={"finalizers": ("example.com/held",)})


def test_a_new_resource_begins_afresh() -> None:
    """Whatever of an old one was copied into it."""
    copied = a_job(
        version=99,
        status=JobStatus(phase=JobPhase.FAILED),
        metadata={"deletion_timestamp": T0, "generation": 7},
    )
    made = rules.created(copied, copied.key, uid="new", version=100, now=LATER)

    assert made.metadata.uid == "new"
    assert made.metadata.generation == 1
    assert made.metadata.creation_timestamp == LATER
    assert made.metadata.resource_version == "100"
    assert not made.is_going
    assert made.status == JobStatus()


def test_a_kind_without_a_status_is_written_whole() -> None:
    lease = Lease(metadata=Metadata(name="leader", namespace="default"))
    made = rules.created(lease, lease.key, uid="u", version=1, now=T0)
    held = rules.updated(
        made, replace(made, spec=LeaseSpec(holder_identity="me", renew_time=LATER)), version=2
    )

    assert held.spec.holder_identity == "me"
    with pytest.raises(BadRequestError, match="no status"):
        rules.with_status(held, held, version=3)


@pytest.mark.parametrize(
    "resource",
    [Namespace(metadata=Metadata(name="a", namespace="b")), a_job(namespace="")],
    ids=["a namespace in a namespace", "a job outside of one"],
)
def test_the_scope_must_fit(resource: Namespace) -> None:
    with pytest.raises(BadRequestError, match="namespace"):
        rules.created(resource, resource.key, uid="u", version=1, now=T0)


def test_a_namespace_waits_for_its_contents() -> None:
    namespace = Namespace(metadata=Metadata(name="a"))
    made = rules.created(namespace, namespace.key, uid="u", version=1, now=T0)
    going = rules.to_delete(made, DeleteOptions(), version=2, now=LATER)

    assert made.metadata.finalizers == (rules.CONTENTS_FINALIZER,)
    assert going.is_going
    assert going.status.phase == "Terminating"


def test_default_cannot_be_deleted() -> None:
    default = Namespace(metadata=Metadata(name="default"))
    with pytest.raises(ForbiddenError):
        rules.to_delete(default, DeleteOptions(), version=2, now=T0)


def test_the_same_again_is_no_change() -> None:
    assert rules.updated(HELD, replace(HELD), version=2) is HELD
    assert rules.with_status(HELD, replace(HELD), version=2) is HELD


def test_a_conflict_tells_both_versions() -> None:
    stale = a_job(version=3)
    with pytest.raises(ConflictError, match="stored version is 1, caller read 3"):
        rules.updated(a_job(version=1), stale, version=4)


@pytest.mark.parametrize(
    ("held", "propagation", "expected"),
    [
        pytest.param((), None, (), id="nothing holds it"),
        pytest.param(("x",), None, ("x",), id="a finalizer holds it"),
        pytest.param((), Propagation.BACKGROUND, (), id="background"),
        pytest.param((), Propagation.FOREGROUND, ("foregroundDeletion",), id="foreground"),
        pytest.param(("x",), Propagation.ORPHAN, ("x", "orphan"), id="orphan"),
        pytest.param(("orphan",), None, ("orphan",), id="an earlier choice stays"),
        pytest.param(("orphan",), Propagation.BACKGROUND, (), id="background replaces orphan"),
        pytest.param(
            ("orphan", "x"), Propagation.FOREGROUND, ("x", "foregroundDeletion"), id="last one wins"
        ),
    ],
)
def test_deleting_leaves_finalizers(
    held: tuple[str, ...], propagation: Propagation | None, expected: tuple[str, ...]
) -> None:
    job = a_job(metadata={"finalizers": held})
    left = rules.to_delete(job, DeleteOptions(propagation=propagation), version=2, now=LATER)

    assert left.metadata.finalizers == expected
    assert left.is_going is bool(expected)
    assert left.metadata.resource_version == "2"


def test_deleting_what_is_going_keeps_the_first_moment() -> None:
    going = rules.to_delete(HELD, DeleteOptions(), version=2, now=T0)
    foreground = DeleteOptions(propagation=Propagation.FOREGROUND)
    again = rules.to_delete(going, foreground, version=3, now=LATER)

    assert rules.to_delete(going, DeleteOptions(), version=3, now=LATER) is going
    assert again.metadata.deletion_timestamp == T0
    assert again.metadata.generation == going.metadata.generation


def test_a_resource_is_removable_once_it_is_going_and_free() -> None:
    going = rules.to_delete(HELD, DeleteOptions(), version=2, now=T0)
    freed = rules.updated(
        going, replace(going, metadata=replace(going.metadata, finalizers=())), version=3
    )

    assert not rules.is_removable(FREE.metadata)
    assert not rules.is_removable(going.metadata)
    assert rules.is_removable(freed.metadata)
