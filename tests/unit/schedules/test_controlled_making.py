"""What Jobs of a ControlledJob look like, and what tells their templates apart."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.codec import encode
from interlock.resources.door.checking import problems_of
from interlock.resources.job import JobSpec, LockRequest, Retries
from interlock.resources.naming import MAX_CONTROLLED_NAME, MAX_JOB_NAME
from interlock.resources.pods import TemplateMetadata
from interlock.resources.process import NoopSpec, ProcessSpec
from interlock.resources.schedule import (
    CONTROLLED_LABEL,
    MANUAL_ANNOTATION,
    OFFSET_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    TIMEZONE_ANNOTATION,
    JobTemplate,
    controlled_lock,
)
from interlock.resources.values.durations import parse_duration
from interlock.schedules.controlled.making import (
    job_name,
    make_job,
    template_hash,
)
from interlock.testing.controlled_builders import a_controlled, moment

START = moment("2026-01-05 09:00")
SPEC = JobSpec(process=ProcessSpec(command=("serve",), env={"A": "1", "B": "2"}))


def with_template(**more: Any) -> Any:
    return a_controlled(template=JobTemplate(**({"spec": SPEC} | more)))


def test_h1_the_hash_leaves_out_that_a_template_is_held_back_and_changes_nothing() -> None:
    held = replace(SPEC, suspend=True, suspend_reason="later")
    before = encode(held)

    assert template_hash(held) == template_hash(SPEC)
    assert encode(held) == before


@pytest.mark.parametrize(
    ("spec", "digest"),
    [
        pytest.param(JobSpec(noop=NoopSpec()), "3809eb81", id="nothing"),
        pytest.param(SPEC, "d4142e1f", id="simple"),
        pytest.param(
            replace(SPEC, retries=Retries(limit=3, delay=parse_duration("90s")),
                    locks=(LockRequest(key="db", limit=2),)), "5240eb57", id="complex",
        ),
    ],
)  # fmt: skip
def test_h1_digests_are_fixed_so_that_a_newer_version_restarts_nothing(
    spec: JobSpec, digest: str
) -> None:
    assert template_hash(spec)[:8] == digest


def test_the_same_template_written_otherwise_has_the_same_hash() -> None:
    seconds = replace(SPEC, timeout=parse_duration("90s"))
    minutes = replace(SPEC, timeout=parse_duration("1m30s"))
    said = replace(SPEC, retries=Retries(), locks=())
    turned = JobSpec(process=ProcessSpec(command=("serve",), env={"B": "2", "A": "1"}))

    assert template_hash(seconds) == template_hash(minutes)
    assert template_hash(said) == template_hash(SPEC)
    assert template_hash(turned) == template_hash(SPEC)
    assert template_hash(seconds) != template_hash(SPEC)


def test_h2_labels_and_annotations_are_copied_and_the_name_is_made_of_the_start() -> None:
    metadata = TemplateMetadata(labels={"team": "x"}, annotations={"note": "y"})
    job = make_job(with_template(metadata=metadata), start=START, number=3, stop=None)

    assert job.metadata.name == f"engine-{int(START.timestamp())}-3"
    assert job.metadata.labels == {"team": "x", CONTROLLED_LABEL: "engine"}
    assert job.metadata.annotations["note"] == "y"
    assert problems_of(job) == ()


def test_a_template_cannot_make_every_job_manual_or_stopped() -> None:
    """In the reference such annotations leak into every Job."""
    leaking = TemplateMetadata(
        annotations={MANUAL_ANNOTATION: "true", SUSPEND_REASON_ANNOTATION: "user-stop"}
    )
    job = make_job(with_template(metadata=leaking), start=START, number=0, stop=None)

    assert MANUAL_ANNOTATION not in job.metadata.annotations
    assert SUSPEND_REASON_ANNOTATION not in job.metadata.annotations


def test_jobs_tell_their_zone_and_an_offset_only_if_there_is_one() -> None:
    plain = make_job(a_controlled(zone="Europe/London"), start=START, number=0, stop=None)
    shifted = make_job(
        a_controlled(zone="Europe/London", offset=-60), start=START, number=0, stop=None
    )

    assert plain.metadata.annotations[TIMEZONE_ANNOTATION] == "Europe/London"
    assert OFFSET_ANNOTATION not in plain.metadata.annotations
    assert shifted.metadata.annotations[OFFSET_ANNOTATION] == "-60"


def test_the_locks_of_the_template_stay_beside_ones_own() -> None:
    locks = (LockRequest(key="db"), LockRequest(key=controlled_lock("engine"), limit=9))
    job = make_job(with_template(spec=replace(SPEC, locks=locks)), start=START, number=0, stop=None)

    assert [(lock.key, lock.limit) for lock in job.spec.locks] == [
        ("db", 1), (controlled_lock("engine"), 1),
    ]  # fmt: skip


@pytest.mark.parametrize("number", [0, 9, 9_999, 10_000, 10**14])
@pytest.mark.parametrize("length", [1, 20, MAX_CONTROLLED_NAME])
def test_defect_13_names_stay_good_however_long_the_name_and_high_the_number(
    length: int, number: int
) -> None:
    controlled = a_controlled(name="a" * (length - 1) + "b")
    job = make_job(controlled, start=START, number=number, stop=None)

    assert len(job.metadata.name) <= MAX_JOB_NAME
    assert problems_of(job) == ()


def test_names_that_are_cut_differ_where_what_is_cut_off_does() -> None:
    one, other = (a_controlled(name="a" * 34 + ending) for ending in ("xy", "xz"))

    assert job_name(one, START, 10_000) != job_name(other, START, 10_000)
