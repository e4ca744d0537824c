"""What pods ask for, as the Kubernetes scheduler counts it, and what of it a Queue counts."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.resources.pod_requests import requests_of_batch_job, requests_of_pod
from interlock.resources.pods import BatchJobTemplate, PodTemplate
from interlock.resources.queue import QueueSpec, demand_of, in_terms_of
from interlock.resources.values.amounts import Amount
from interlock.testing.builders import a_job


def asks(cpu: object = None, **more: Any) -> dict[str, Any]:
    requests = {} if cpu is None else {"cpu": cpu}
    return {"name": "c", "image": "i", "resources": {"requests": requests}} | more


def pod(*containers: dict[str, Any], **more: Any) -> PodTemplate:
    return PodTemplate(spec={"containers": list(containers), **more})


ALWAYS = {"restartPolicy": "Always"}
PODS: list[tuple[str, PodTemplate, dict[str, int]]] = [
    ("nothing", pod(asks()), {}),
    ("one container", pod(asks("500m")), {"cpu": 500}),
    ("a number", pod(asks(2)), {"cpu": 2000}),
    ("containers together", pod(asks("500m"), asks("1")), {"cpu": 1500}),
    (
        "the largest before them",
        pod(asks("1"), initContainers=[asks("2"), asks("3")]),
        {"cpu": 3000},
    ),
    ("a sidecar beside them", pod(asks("1"), initContainers=[asks("2", **ALWAYS)]), {"cpu": 3000}),
    (
        "and beside what comes after it",
        pod(asks("1"), initContainers=[asks("2", **ALWAYS), asks("4")]),
        {"cpu": 6000},
    ),
    (
        "as a whole",
        pod(asks("1"), resources={"requests": {"cpu": "3"}}, overhead={"cpu": "250m"}),
        {"cpu": 3250},
    ),
    (
        "as a whole, what can be asked for so",
        pod(asks("1"), resources={"requests": {"example.org/gpu": "3"}}),
        {"cpu": 1000},
    ),
    ("overhead", pod(asks("1"), overhead={"cpu": "250m"}), {"cpu": 1250}),
    (
        "limits where nothing is requested",
        pod(asks(resources={"limits": {"cpu": "2"}})),
        {"cpu": 2000},
    ),
    (
        "requests where they are",
        pod(asks(resources={"limits": {"cpu": "2"}, "requests": {"cpu": "1"}})),
        {"cpu": 1000},
    ),
    ("with an exponent", pod(asks("1e3")), {"cpu": 1_000_000}),
    ("less than a thousandth", pod(asks("5n")), {"cpu": 1}),
    ("no amount", pod(asks("much")), {}),
    ("nonsense", PodTemplate(spec={"containers": "x", "overhead": 3}), {}),
]


@pytest.mark.parametrize(
    ("template", "asked"), [row[1:] for row in PODS], ids=[row[0] for row in PODS]
)
def test_a_pod_asks_for_what_its_containers_request(
    template: PodTemplate, asked: dict[str, int]
) -> None:
    assert requests_of_pod(template) == asked


@pytest.mark.parametrize(
    ("counts", "pods"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"parallelism": "x"}, 1),
    ],
)
def test_a_batch_job_asks_for_as_many_pods_as_run_at_a_time(
    counts: dict[str, Any], pods: int
) -> None:
    template = BatchJobTemplate(spec={"template": {"spec": pod(asks("1")).spec}, **counts})
    assert requests_of_batch_job(template) == {"cpu": 1000 * pods}


@pytest.mark.parametrize(
    ("has", "counted"),
    [
        ({"gpu": 8}, {"gpu": 1000}),
        ({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 1000}),
        ({"cpu": 8}, {"cpu": 500}),
        ({"memory": 8}, {}),
    ],
)
def test_of_what_pods_request_a_queue_counts_what_it_has(
    has: dict[str, int], counted: dict[str, int]
) -> None:
    resources = {"requests": {"nvidia.com/gpu": "1", "cpu": "500m"}}
    demand = demand_of(a_job(queue="blue", pod=pod(asks(resources=resources))))
    assert demand is not None
    queue = QueueSpec(resources={name: Amount.read(amount) for name, amount in has.items()})
    assert in_terms_of(queue, demand).each == counted


def test_what_a_job_says_itself_is_all_that_counts() -> None:
    job = a_job(queue="blue", pod=pod(asks("7")), resources={"gpu": Amount.read(1)})
    demand = demand_of(job)
    assert demand is not None
    assert demand.each == {"gpu": 1000}
    assert in_terms_of(QueueSpec(resources={"cpu": Amount.read(1)}), demand) == demand
