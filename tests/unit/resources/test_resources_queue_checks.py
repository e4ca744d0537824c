"""Queues, and what Jobs ask of them, at the door: where, what was found, and what is expected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.errors import InvalidError, Problem
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.codec import encode
from interlock.resources.door.checking import check_update
from interlock.resources.door.validation import read_resource
from interlock.resources.job import Job, JobStatus
from interlock.resources.kinds import decode
from interlock.resources.metadata import Resource
from interlock.resources.queue import Queue, QueueQuota, demand_of
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.values.amounts import EXPECTED, MOST


def read(kind: str, spec: Any) -> Resource:
    metadata = {"name": "a"} | ({} if kind == "Queue" else {"namespace": "default"})
    body = {"apiVersion": "interlock.dev/v1alpha1", "kind": kind, "metadata": metadata}
    return read_resource(json.dumps(body | {"spec": spec}).encode())[0]


def refusal(kind: str, spec: Any) -> Problem:
    with pytest.raises(InvalidError) as refused:
        read(kind, spec)
    (problem,) = refused.value.problems
    return problem


def a_read_job(**spec: Any) -> Job:
    job = read("Job", {"noop": {}} | spec)
    assert isinstance(job, Job)
    return job


RESOURCES = {"resources": {"tasks": 4}}
NAMES = "bad name: expected letters, digits, '.', '_', '-' and '/'"


@pytest.mark.parametrize(
    "spec",
    [
        {"resources": {"cpu": "500m", "memory": "512Gi", "nvidia.com/gpu": 16, "tasks": 0}},
        RESOURCES | {"order": "StrictFIFO", "stop": "HoldAndDrain"},
        RESOURCES | {"namespaceSelector": {"matchNames": ["team-a", "team-b"]}},
        RESOURCES | {"namespaceSelector": {"matchNames": []}},
        RESOURCES | {"namespaceSelector": {}},
        RESOURCES | {"namespaceSelector": None},
    ],
)
def test_good_queues_are_stored_as_they_were_written(spec: dict[str, Any]) -> None:
    queue = read("Queue", spec)

    assert isinstance(queue, Queue)
    stored = encode(queue)
    again = decode("Queue", stored)
    assert again == queue
    assert encode(again) == stored
    assert json.loads(stored)["spec"]["resources"] == spec["resources"]


@pytest.mark.parametrize(
    ("spec", "path", "found", "expected"),
    [
        ({}, "spec.resources", None, "is required"),
        ({"resources": {}}, "spec.resources", "{}", "expected 1 to 32 resources"),
        (
            {"resources": {f"r{n}": 1 for n in range(33)}},
            "spec.resources",
            33,
            "expected 1 to 32 resources",
        ),
        ({"resources": {"a b": 1}}, 'spec.resources["a b"]', "a b", NAMES),
        ({"resources": {"cpu": "4 cores"}}, "spec.resources.cpu", "4 cores", EXPECTED),
        ({"resources": {"cpu": -1}}, "spec.resources.cpu", -1, f"expected 0 to {MOST}"),
        ({"resources": {"cpu": 1.5}}, "spec.resources.cpu", 1.5, EXPECTED),
        ({"resources": {"cpu": True}}, "spec.resources.cpu", True, EXPECTED),
        ({"resources": {"m": "10P"}}, "spec.resources.m", "10P", f"expected at most {MOST}"),
        (
            RESOURCES | {"order": "FIFO"},
            "spec.order",
            "FIFO",
            "expected one of StrictFIFO, BestEffortFIFO",
        ),
        (
            RESOURCES | {"stop": "hold"},
            "spec.stop",
            "hold",
            'expected one of None, Hold, HoldAndDrain; did you mean "Hold"?',
        ),
        (
            RESOURCES | {"namespaceSelector": {"matchNames": ["a", "a"]}},
            "spec.namespaceSelector.matchNames[1]",
            "a",
            "is there twice",
        ),
        (
            RESOURCES | {"namespaces": ["a"]},
            "spec.namespaces",
            "[…]",
            "unknown field",
        ),
    ],
)
def test_bad_queues(spec: dict[str, Any], path: str, found: object, expected: str) -> None:
    problem = refusal("Queue", spec)

    assert (problem.path, problem.found) == (path, found)
    assert problem.message.startswith(expected)


@pytest.mark.parametrize(
    ("spec", "path", "found", "expected"),
    [
        ({"queue": "Training"}, "spec.queue", "Training", "expected lower-case letters"),
        (
            {"resources": {"cpu": 1}},
            "spec.resources",
            "{…}",
            "is for a process, or a Job that names a spec.queue",
        ),
        ({"minParallelism": 2}, "spec.minParallelism", "2", "is for a process, or a Job that"),
        (
            {"queue": "q", "resources": {"tasks": 2}},
            "spec.resources.tasks",
            "2",
            "leave it out: every task asks for one of tasks",
        ),
        ({"queue": "q", "resources": {"cpu": "1,5"}}, "spec.resources.cpu", "1,5", EXPECTED),
        (
            {"queue": "q", "minParallelism": 0},
            "spec.minParallelism",
            0,
            "expected 1 to 10000",
        ),
        ({"queue": "q", "active": "no"}, "spec.active", "no", "expected true or false"),
    ],
)
def test_bad_jobs(spec: dict[str, Any], path: str, found: object, expected: str) -> None:
    problem = refusal("Job", {"noop": {}} | spec)

    assert (problem.path, problem.found) == (path, found)
    assert problem.message.startswith(expected)


def test_a_template_is_held_to_the_same() -> None:
    problem = refusal("JobConfig", {"template": {"spec": {"noop": {}, "resources": {"cpu": 1}}}})

    assert problem.path == "spec.template.spec.resources"


ADMITTED = AdmissionStatus(phase=AdmissionPhase.ADMITTED)
ENDED = ExecutionStatus(result=JobResult.SUCCEEDED)


@pytest.mark.parametrize(
    ("status", "frozen"),
    [
        (JobStatus(), set()),
        (JobStatus(admission=ADMITTED), {"queue", "resources", "minParallelism"}),
        (
            JobStatus(admission=ADMITTED, execution=ENDED),
            {"queue", "resources", "minParallelism", "active"},
        ),
    ],
    ids=["waiting", "admitted", "ended"],
)
def test_what_a_job_asks_of_a_queue_is_fixed_once_it_was_let_in(
    status: JobStatus, frozen: set[str]
) -> None:
    before = replace(a_read_job(queue="a", resources={"cpu": 1}, minParallelism=1), status=status)
    changes: dict[str, dict[str, Any]] = {
        "queue": {"queue": "b"},
        "resources": {"resources": {"cpu": 2}},
        "minParallelism": {"minParallelism": 2},
        "active": {"active": False},
    }
    for name, change in changes.items():
        spec: dict[str, Any] = {"queue": "a", "resources": {"cpu": 1}, "minParallelism": 1}
        spec |= change
        after = replace(a_read_job(**spec), status=status)
        found = [problem.path for problem in check_update(before, after)]
        assert found == ([f"spec.{name}"] if name in frozen else [])


def test_the_same_amount_in_other_words_is_no_change() -> None:
    old, new = (a_read_job(queue="a", resources={"cpu": written}) for written in ("1000m", 1))

    assert old.spec == new.spec
    assert demand_of(old) == demand_of(new)


@pytest.mark.parametrize(
    ("spec", "tasks", "least"),
    [
        pytest.param({}, 1, 1, id="one task"),
        pytest.param({"parallelism": {"count": 8}}, 8, 8, id="all at once"),
        pytest.param({"parallelism": {"count": 8, "atOnce": 3}}, 3, 3, id="three at a time"),
        pytest.param({"parallelism": {"count": 2, "atOnce": 3}}, 2, 2, id="no more than there are"),
        pytest.param({"parallelism": {"count": 8}, "minParallelism": 2}, 8, 2, id="two to start"),
        pytest.param({"minParallelism": 9}, 1, 1, id="no more than there are to start"),
    ],
)
def test_what_a_job_asks_for(spec: dict[str, Any], tasks: int, least: int) -> None:
    demand = demand_of(a_read_job(queue="q", resources={"cpu": "500m"}, **spec))

    assert demand is not None
    assert (demand.queue, demand.tasks, demand.least) == ("q", tasks, least)
    assert demand.each == {"cpu": 500}


def test_a_record_is_stored_and_read_with_what_each_task_takes() -> None:
    body = {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "QueueQuota",
        "metadata": {"name": "queue.training"},
        "spec": {"queue": "training"},
        "status": {
            "members": [{"queue": "training", "version": 7, "limits": {"memory": "512Gi"}}],
            "holders": [
                {
                    "queue": "training",
                    "job": "train-6",
                    "namespace": "default",
                    "uid": "u",
                    "epoch": 0,
                    "token": 9,
                    "tasks": 8,
                    "grantedAt": "2026-01-05T12:00:00Z",
                    "each": {"gpu": 1, "memory": "1.5Gi"},
                }
            ],
            "lastToken": 9,
        },
    }
    record = decode("QueueQuota", json.dumps(body).encode())

    assert isinstance(record, QueueQuota)
    stored = json.loads(encode(record))
    assert stored["status"] == body["status"]
    assert decode("QueueQuota", encode(record)) == record
