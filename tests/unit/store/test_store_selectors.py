"""Selectors are read as Kubernetes reads them."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.errors import BadRequestError
from interlock.resources.job import JobPhase, JobStatus
from interlock.store.contract import Selection
from interlock.store.selectors import MAX_SELECTOR_LENGTH, matcher_for
from interlock.testing.builders import T0, a_job

JOB = a_job(
    "migrate",
    metadata={"labels": {"team": "red", "example.com/tier": "web", "empty": ""}},
    status=JobStatus(phase=JobPhase.RUNNING),
    suspend=True,
    priority=5,
    kill_at=T0,
)


def matches(**selection: Any) -> bool:
    matcher = matcher_for("Job", Selection(**selection))
    return matcher is None or matcher(JOB)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("team=red", True),
        (" team == red ", True),
        ("team=blue", False),
        ("team!=blue", True),
        ("absent!=anything", True),
        ("empty=", True),
        ("empty!=", False),
        ("team", True),
        ("!team", False),
        ("! absent", True),
        ("example.com/tier in (web,db)", True),
        ("team in (blue)", False),
        ("absent in ()", False),
        ("empty in ()", True),
        ("team notin (blue,green)", True),
        ("absent notin (x)", True),
        ("team=red,!absent,example.com/tier notin (db, cache)", True),
        ("team=red,absent", False),
        ("in", False),
        ("", True),
    ],
)
def test_label_selectors(labels: str, expected: bool) -> None:
    assert matches(labels=labels) is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("metadata.name=migrate", True),
        ("metadata.name!=migrate", False),
        ("metadata.namespace==default", True),
        ("status.phase=Running", True),
        ("status.phase=Queued", False),
        ("status.admission.phase=Waiting", True),
        ("spec.suspend=true", True),
        ("spec.priority=5", True),
        ("spec.process.command!=x", True),
        ("spec.killAt=2026-01-05T12:00:00Z", True),
        ("spec.timeout=", True),
        ("spec.gracePeriod=30s", True),
        ("spec.parallelism.count=", True),
        ("metadata.name=migrate,status.phase!=Running", False),
    ],
)
def test_field_selectors(fields: str, expected: bool) -> None:
    assert matches(fields=fields) is expected


def test_the_namespace_selects() -> None:
    assert matches(namespace="default")
    assert not matches(namespace="other")
    assert not matches(namespace="")


@pytest.mark.parametrize(
    "labels",
    [
        "=",
        "=a",
        "a=b=c",
        "a in b",
        "a in (b",
        "a in (b))",
        "a b",
        ",",
        "a,",
        "-a",
        "a=b-",
        "a in (-)",
    ],
)
def test_bad_label_selectors(labels: str) -> None:
    with pytest.raises(BadRequestError, match="label selector"):
        matches(labels=labels)


@pytest.mark.parametrize(
    "fields", ["metadata.name", "=x", "spec.nope=1", "spec=x", "kind=Job", "spec.retries=x", "a=b,"]
)
def test_bad_field_selectors(fields: str) -> None:
    with pytest.raises(BadRequestError, match="field selector"):
        matches(fields=fields)


def test_selectors_are_bounded() -> None:
    long = "a=" + "b" * MAX_SELECTOR_LENGTH
    with pytest.raises(BadRequestError, match="at most"):
        matches(labels=long)
    with pytest.raises(BadRequestError, match="at most"):
        matches(fields=long)
