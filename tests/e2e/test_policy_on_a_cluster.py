"""A real API server completes new Jobs by our policy, where a controller serves them."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from typing import Any

import pytest
from installing import apply, collection_of, install_definitions, path_of

from interlock.kube.install.installation import Installation
from interlock.kube.install.manifests import manifests
from interlock.resources.job import JOB_FINALIZER
from interlock.testing.serving import PATIENCE_S
from support.kube.access import Access, Answer, Document

API_VERSION = "interlock.dev/v1alpha1"


def a_job(name: str, namespace: str, **metadata: Any) -> Document:
    return {
        "apiVersion": API_VERSION,
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"noop": {}, "suspend": True},
    }


def tried(access: Access, job: Document) -> Answer:
    place = collection_of("Job", API_VERSION, job["metadata"]["namespace"])
    return access.ask("POST", f"{place}?dryRun=All", job)


def created(access: Access, job: Document) -> dict[str, Any]:
    """The metadata of a Job as it would be stored."""
    answer = tried(access, job)
    assert answer.status == 201, answer.body
    metadata: dict[str, Any] = answer.body["metadata"]
    return metadata


@pytest.fixture
def served(cluster: Access, namespace: str) -> Iterator[str]:
    """A namespace in which the policy holds."""
    install_definitions(cluster)
    made = manifests(Installation(namespace=namespace, everywhere=False), ["policy"])
    for one in made:
        assert apply(cluster, one).status in (200, 201)
    try:
        # The API server learns of policies by watch, and of definitions every few seconds.
        until = time.monotonic() + PATIENCE_S
        while "finalizers" not in tried(cluster, a_job("probe", namespace)).body["metadata"]:
            assert time.monotonic() < until, "the policy does nothing"
            select.select([], [], [], 0.1)
        yield namespace
    finally:
        for one in made:
            cluster.remove(path_of(one))


def test_a_new_job_is_held_and_carries_no_record_of_its_writers(
    cluster: Access, served: str
) -> None:
    metadata = created(cluster, a_job("job", served))

    assert metadata["finalizers"] == [JOB_FINALIZER]
    assert "managedFields" not in metadata


def test_finalizers_of_others_stay(cluster: Access, served: str) -> None:
    metadata = created(cluster, a_job("job", served, finalizers=["example.com/mine"]))

    assert metadata["finalizers"] == ["example.com/mine", JOB_FINALIZER]


def test_a_job_that_is_complete_is_left_alone(cluster: Access, served: str) -> None:
    metadata = created(cluster, a_job("job", served, finalizers=[JOB_FINALIZER]))

    assert metadata["finalizers"] == [JOB_FINALIZER]
    assert metadata["managedFields"]


def test_whoever_applies_a_job_in_parts_keeps_the_record(cluster: Access, served: str) -> None:
    answer = apply(cluster, a_job("job", served), "dryRun=All")

    assert answer.status == 201, answer.body
    metadata = answer.body["metadata"]
    assert metadata["finalizers"] == [JOB_FINALIZER]
    assert [one["operation"] for one in metadata["managedFields"]] == ["Apply"]


def test_where_nobody_serves_jobs_none_is_held(cluster: Access, served: str) -> None:
    """A finalizer that nobody takes off would hold the Job for ever."""
    with cluster.namespace() as other:
        assert other != served
        assert "finalizers" not in created(cluster, a_job("job", other))
