"""Whether a Job would wait for an operation that waits for it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.ancestry import ancestors, held_above
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import Key
from interlock.resources.steps import PythonSpec, Target
from interlock.testing.builders import T0, a_job

REFUSED = JobStatus(
    phase=JobPhase.REFUSED,
    admission=AdmissionStatus(phase=AdmissionPhase.REFUSED, refused_at=T0),
)


def an_operation(name: str, path: str = "", parent: str | None = None) -> Job:
    target = Target(path=path) if path else None
    return a_job(name, python=PythonSpec(function="f"), target=target, parent=parent)


TOP = an_operation("top", "domains/acme")
MIDDLE = an_operation("middle", "domains/acme/applications/shop", "top")
OVER = replace(MIDDLE, status=REFUSED)
PLAIN = a_job("middle", target=Target(path="domains/acme/applications/shop"), parent="top")


def names_above(job: Job, *there: Job) -> list[str]:
    known = {one.key: one for one in there}
    return [one.metadata.name for one in ancestors(job, known.get)]


@pytest.mark.parametrize(
    ("middle", "path", "found"),
    [
        pytest.param(MIDDLE, "domains/acme/applications/shop", "middle", id="its parent's"),
        pytest.param(MIDDLE, "domains/acme", "top", id="its grandparent's"),
        pytest.param(MIDDLE, "domains/acme/applications", None, id="a path in between"),
        pytest.param(MIDDLE, "domains", None, id="a path above all"),
        pytest.param(OVER, "domains/acme", None, id="nobody in between waits for it"),
        pytest.param(PLAIN, "domains/acme", None, id="one in between has no steps"),
        pytest.param(
            PLAIN, "domains/acme/applications/shop", None, id="its parent waits for no parts"
        ),
    ],
)
def test_whose_target_it_would_wait_for(middle: Job, path: str, found: str | None) -> None:
    known = {one.key: one for one in (TOP, middle)}
    above = held_above(an_operation("part", path, "middle"), known.get)

    assert (above.metadata.name if above is not None else None) == found


def test_a_job_without_target_or_parent_waits_for_none() -> None:
    known = {TOP.key: TOP}
    assert held_above(an_operation("part", "", "top"), known.get) is None
    assert held_above(an_operation("part", "domains/acme"), known.get) is None


def test_of_a_parent_that_is_not_there_nobody_is_above() -> None:
    assert names_above(an_operation("part", "a", "nobody")) == []


def test_names_that_go_in_a_ring_come_to_an_end() -> None:
    one, other = an_operation("one", "a", "other"), an_operation("other", "b", "one")

    assert names_above(one, one, other) == ["other", "one"]
    # It does not wait for itself.
    assert held_above(one, {one.key: one, other.key: other}.get) is None


def test_parents_are_of_the_same_namespace() -> None:
    other = replace(TOP, metadata=replace(TOP.metadata, namespace="other"))
    assert other.key == Key("Job", "other", "top")
    assert names_above(an_operation("part", "domains/acme", "top"), other) == []
