"""The rules that types cannot say, one row for each side of every limit."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.cluster import Lease, Namespace
from interlock.resources.codec import from_builtins
from interlock.resources.door.checking import check_due, check_update, problems_of
from interlock.resources.job import Job, JobStatus
from interlock.resources.lock import Lock, LockSpec
from interlock.resources.metadata import Metadata
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.resources.values.durations import Duration, parse_duration
from interlock.testing.builders import T0, a_job, a_lock, a_request


def a_read_job(metadata: dict[str, Any] | None = None, **spec: Any) -> Job:
    if "noop" not in spec and "process" not in spec:
        spec["process"] = {"command": ["true"]}
    body = {"kind": "Job", "metadata": {"name": "a"} | (metadata or {}), "spec": spec}
    job = from_builtins(body, Job)
    assert isinstance(job, Job)
    return job


def paths(job: Job) -> list[str]:
    return [problem.path for problem in problems_of(job)]


def briefly(value: object) -> str:
    return str(value)[:50]


BIG = "x" * 131_072

GOOD: list[dict[str, Any]] = [
    {},
    {"noop": {}},
    {"process": {"command": ["a", ""], "args": ["", "b"], "env": {"A_b.c-1": ""}}},
    {"process": {"command": ["a"], "stdin": "\0"}},
    {"process": {"command": ["a"], "user": "www-data", "group": "33"}},
    {"process": {"command": ["a"], "limits": {"cpuTime": "1s", "memory": "512Mi", "nice": 19}}},
    {"process": {"command": ["a"], "limits": {"openFiles": 1, "nice": 0}}},
    {"parallelism": {"count": 1}},
    {"parallelism": {"count": 10_000, "atOnce": 10_000}},
    {"parallelism": {"keys": [str(n) for n in range(10_000)]}},
    {"parallelism": {"matrix": {"a": [str(n) for n in range(100)], "b-_1": ["x"] * 1}}},
    {"retries": {"limit": 1000, "jitter": 1.0, "retryExitCodes": [0, 255]}},
    {"retries": {"failExitCodes": [2], "retryExitCodes": [1], "delay": "0s"}},
    {"locks": [{"key": "a/b:c.d_e-F9", "limit": 1_000_000}, {"key": "x" * 253}]},
    {"startAfter": "2026-01-05T12:00:00Z", "startBy": "2026-01-05T12:00:01Z"},
    {"queue": "training"},
    {"queue": "a" * 63, "resources": {"cpu": "500m", "nvidia.com/gpu": 2, "memory": "1.5Gi"}},
    {"queue": "a", "resources": {f"r{n}": "0" for n in range(32)}, "minParallelism": 10_000},
    {"queue": "a", "resources": {"licences": (1 << 53), "x": "9P", "y": "9007199254740992"}},
    {"resources": {"cpu": "500m"}, "minParallelism": 2, "parallelism": {"count": 4}},
    {"active": False},
    {"priority": -(2**31)},
    {"priority": 2**31 - 1},
    {"gracePeriod": "0s", "ttlAfterFinished": "0s"},
    {"title": "${job.name} as of ${args.day} of ${HOME}", "args": {"day": "Monday"}},
    {"substitutions": {"option.region": "emea"}, "title": "${option.region} $${job.x}"},
]


@pytest.mark.parametrize("spec", GOOD, ids=briefly)
def test_good_specs(spec: dict[str, Any]) -> None:
    assert problems_of(a_read_job(**spec)) == ()


def process(**more: Any) -> dict[str, Any]:
    return {"process": {"command": ["a"]} | more}


BAD: list[tuple[str, dict[str, Any]]] = [
    ("spec", {"process": {"command": ["a"]}, "noop": {}}),
    ("spec.process.command", process(command=[])),
    ("spec.process.command[0]", process(command=[""])),
    ("spec.process.command[1]", process(command=["a", "\0"])),
    ("spec.process.args[0]", process(args=["\0"])),
    ("spec.process.args[0]", process(args=[BIG])),
    ("spec.process.env.A", process(env={"A": "\0"})),
    ('spec.process.env["A=B"]', process(env={"A=B": ""})),
    ('spec.process.env[""]', process(env={"": ""})),
    ("spec.process.env.1A", process(env={"1A": ""})),
    ("spec.process.envFrom[0].file", process(envFrom=[{"file": ""}])),
    ("spec.process.workingDir", process(workingDir="")),
    ("spec.process.workingDir", process(workingDir="/\0")),
    ("spec.process.user", process(user="")),
    ("spec.process.group", process(group="a b")),
    ("spec.process.limits.cpuTime", process(limits={"cpuTime": "999ms"})),
    ("spec.process.limits.memory", process(limits={"memory": "512MiB"})),
    ("spec.process.limits.memory", process(limits={"memory": "0"})),
    ("spec.process.limits.memory", process(limits={"memory": "10E"})),
    ("spec.process.limits.openFiles", process(limits={"openFiles": 0})),
    ("spec.process.limits.nice", process(limits={"nice": 20})),
    ("spec.process.limits.nice", process(limits={"nice": -1})),
    ("spec.parallelism", {"parallelism": {}}),
    ("spec.parallelism", {"parallelism": {"count": 2, "keys": ["a"]}}),
    ("spec.parallelism.count", {"parallelism": {"count": 0}}),
    ("spec.parallelism.count", {"parallelism": {"count": 10_001}}),
    ("spec.parallelism.keys", {"parallelism": {"keys": []}}),
    ("spec.parallelism.keys", {"parallelism": {"keys": [str(n) for n in range(10_001)]}}),
    ("spec.parallelism.keys[1]", {"parallelism": {"keys": ["a", "a"]}}),
    ("spec.parallelism.keys[0]", {"parallelism": {"keys": [""]}}),
    ("spec.parallelism.keys[0]", {"parallelism": {"keys": ["\0"]}}),
    ("spec.parallelism.matrix", {"parallelism": {"matrix": {}}}),
    ("spec.parallelism.matrix.a", {"parallelism": {"matrix": {"a": [], "b": ["x"]}}}),
    ("spec.parallelism.matrix.A", {"parallelism": {"matrix": {"A": ["x"]}}}),
    ("spec.parallelism.matrix.a[1]", {"parallelism": {"matrix": {"a": ["x", "x"]}}}),
    (
        "spec.parallelism.matrix",
        {"parallelism": {"matrix": {n: [str(i) for i in range(101)] for n in "ab"}}},
    ),
    ("spec.parallelism.atOnce", {"parallelism": {"count": 2, "atOnce": 0}}),
    ("spec.retries.limit", {"retries": {"limit": -1}}),
    ("spec.retries.limit", {"retries": {"limit": 1001}}),
    ("spec.retries.jitter", {"retries": {"jitter": 1.01}}),
    ("spec.retries.jitter", {"retries": {"jitter": float("nan")}}),
    ("spec.retries.retryExitCodes[0]", {"retries": {"retryExitCodes": [256]}}),
    ("spec.retries.failExitCodes[0]", {"retries": {"failExitCodes": [-1]}}),
    (
        "spec.retries.failExitCodes",
        {"retries": {"retryExitCodes": [1, 2], "failExitCodes": [2]}},
    ),
    ("spec.taskTimeout", {"taskTimeout": "0s"}),
    ("spec.timeout", {"timeout": "0"}),
    (
        "spec.startBy",
        {"startAfter": "2026-01-05T12:00:00Z", "startBy": "2026-01-05T12:00:00Z"},
    ),
    ("spec.locks[0].key", {"locks": [{"key": ""}]}),
    ("spec.locks[0].key", {"locks": [{"key": "x" * 254}]}),
    ("spec.locks[0].key", {"locks": [{"key": "a b"}]}),
    ("spec.locks[0].key", {"locks": [{"key": "a\n"}]}),
    ("spec.locks[1].key", {"locks": [{"key": "a"}, {"key": "a", "limit": 2}]}),
    ("spec.locks[0].limit", {"locks": [{"key": "a", "limit": 0}]}),
    ("spec.locks[0].limit", {"locks": [{"key": "a", "limit": 1_000_001}]}),
    ("spec.locks", {"locks": [{"key": str(n)} for n in range(65)]}),
    ("spec.queue", {"queue": ""}),
    ("spec.queue", {"queue": "a.b"}),
    ("spec.queue", {"queue": "x" * 64}),
    ("spec.resources", {"noop": {}, "resources": {"cpu": 1}}),
    ("spec.resources", {"queue": "a", "resources": {f"r{n}": 1 for n in range(33)}}),
    ('spec.resources["a b"]', {"queue": "a", "resources": {"a b": 1}}),
    ("spec.resources.tasks", {"queue": "a", "resources": {"tasks": 1}}),
    ("spec.minParallelism", {"noop": {}, "minParallelism": 1}),
    ("spec.minParallelism", {"queue": "a", "minParallelism": 0}),
    ("spec.minParallelism", {"queue": "a", "minParallelism": 10_001}),
    ("spec.priority", {"priority": 2**31}),
    ("spec.title", {"title": "two\nlines"}),
    ("spec.title", {"title": "\x1b[31m"}),
    ("spec.suspendReason", {"suspendReason": "x" * 1001}),
    ('spec.args["a b"]', {"args": {"a b": ""}}),
    ("spec.args.a", {"args": {"a": "\0"}}),
    ("spec.substitutions.region", {"substitutions": {"region": ""}}),
    ('spec.substitutions["option.a"]', {"substitutions": {"option.a": "\0"}}),
]


@pytest.mark.parametrize(
    ("path", "spec"), BAD, ids=[f"{n} {path}" for n, (path, _) in enumerate(BAD)]
)
def test_bad_specs(path: str, spec: dict[str, Any]) -> None:
    assert paths(a_read_job(**spec)) == [path]


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"name": "x" * 52}, None),
        ({"name": "x" * 53}, "metadata.name"),
        ({"name": "A"}, "metadata.name"),
        ({"name": "a."}, "metadata.name"),
        ({"name": "-a"}, "metadata.name"),
        ({"name": "a\n"}, "metadata.name"),
        ({"name": ""}, "metadata.name"),
        ({"name": "", "generateName": "run-"}, None),
        ({"name": "", "generateName": "Run"}, "metadata.generateName"),
        ({"name": "", "generateName": "x" * 48}, "metadata.generateName"),
        ({"namespace": "a_b"}, "metadata.namespace"),
        ({"resourceVersion": "12"}, None),
        ({"resourceVersion": "x"}, "metadata.resourceVersion"),
        ({"labels": {"app.kubernetes.io/name": "a_B.c-1", "x": ""}}, None),
        ({"labels": {"a": "x" * 63}}, None),
        ({"labels": {"a": "x" * 64}}, "metadata.labels.a"),
        ({"labels": {"a": "-"}}, "metadata.labels.a"),
        ({"labels": {"": "a"}}, 'metadata.labels[""]'),
        ({"labels": {"/a": "a"}}, 'metadata.labels["/a"]'),
        ({"labels": {"A/a": "a"}}, 'metadata.labels["A/a"]'),
        ({"labels": {"a/b/c": "a"}}, 'metadata.labels["a/b/c"]'),
        ({"annotations": {"a.b/c": "anything\n at all"}}, None),
        ({"annotations": {"a b": ""}}, 'metadata.annotations["a b"]'),
        ({"annotations": {"a": "x" * 262_144}}, "metadata.annotations"),
        ({"finalizers": ["interlock.dev/tasks"]}, None),
        ({"finalizers": ["a b"]}, "metadata.finalizers[0]"),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "", "uid": "u"}]},
            "metadata.ownerReferences[0].name",
        ),
    ],
    ids=briefly,
)
def test_metadata(metadata: dict[str, Any], path: str | None) -> None:
    assert paths(a_read_job(metadata)) == ([path] if path else [])


def test_at_most_one_owner_manages() -> None:
    owner = {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": True}

    assert paths(a_read_job({"ownerReferences": [owner]})) == []
    assert paths(a_read_job({"ownerReferences": [owner, owner]})) == ["metadata.ownerReferences"]


def test_a_bad_name_is_told_with_a_good_one() -> None:
    (problem,) = problems_of(a_read_job({"name": "My Job_1"}))

    assert problem.message.endswith('did you mean "my-job-1"?')


def test_a_job_needs_something_to_run() -> None:
    job = from_builtins({"kind": "Job", "metadata": {"name": "a"}, "spec": {}}, Job)

    assert paths(job) == ["spec"]


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        (process(command=["${job.nme}"]), "${job.nme}; did you mean"),
        (process(args=["${task.key}"]), "${task.key}"),
        (process(env={"A": "${args.x}"}), "${args.x}"),
        (process(workingDir="/${option.a}"), "${option.a}"),
        (process(stdin="${task.matrix.a}"), "${task.matrix.a}"),
        (process(envFrom=[{"file": "${jobconfig.name}"}]), "${jobconfig.name}"),
        (process(command=["a", "${lock.x}"]), "${lock.x}"),
        (process(command=["a", "${task.}"]), "${task.}"),
    ],
    ids=briefly,
)
def test_unknown_variables(spec: dict[str, Any], variable: str) -> None:
    (problem,) = problems_of(a_read_job(**spec))

    assert problem.message.startswith(f"unknown variable {variable}")


@pytest.mark.parametrize(
    "spec",
    [
        process(command=["${task.index}", "${task.index_num}", "${task.attempt}", "${HOME}"]),
        process(command=["${task.key}${task.index_key}"]) | {"parallelism": {"keys": ["a"]}},
        process(command=["${task.matrix.a}${task.index_matrix.a}"])
        | {"parallelism": {"matrix": {"a": ["x"]}}},
    ],
    ids=briefly,
)
def test_known_variables(spec: dict[str, Any]) -> None:
    assert problems_of(a_read_job(**spec)) == ()


def test_a_text_that_would_grow_without_end_is_refused() -> None:
    spec = process(command=["a", "${args.big}" * 100]) | {"args": {"big": "x" * 2000}}

    assert paths(a_read_job(**spec)) == ["spec.process.command[1]"]


def test_the_other_kinds() -> None:
    lease = Lease(metadata=Metadata(name="a.b", namespace="default"))
    assert problems_of(lease) == ()
    assert problems_of(Namespace(metadata=Metadata(name="a"))) == ()
    assert problems_of(a_lock("db")) == ()
    assert [p.path for p in problems_of(Namespace(metadata=Metadata(name="a.b")))] == [
        "metadata.name"
    ]
    bad = Lock(metadata=Metadata(name="a"), spec=LockSpec(key=" "))
    assert [p.path for p in problems_of(bad)] == ["spec.key"]


WAITING = JobStatus()
ADMITTED = JobStatus(admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED))
REFUSED = JobStatus(admission=AdmissionStatus(phase=AdmissionPhase.REFUSED))
ENDED = JobStatus(
    admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
    execution=ExecutionStatus(result=JobResult.SUCCEEDED),
)


@pytest.mark.parametrize(
    ("status", "change", "path"),
    [
        (WAITING, {"args": {"a": "b"}, "locks": (a_request("x"),)}, None),
        (ADMITTED, {"args": {"a": "b"}}, "spec.args"),
        (ADMITTED, {"locks": (a_request("x"),)}, "spec.locks"),
        (ADMITTED, {"locks": (a_request("db", limit=9),)}, None),
        (ADMITTED, {"priority": 3, "suspend": True, "timeout": parse_duration("1m")}, None),
        (ENDED, {"priority": 3}, "spec.priority"),
        (ENDED, {"timeout": parse_duration("1m")}, "spec.timeout"),
        (ENDED, {"ttl_after_finished": Duration(seconds=3)}, None),
        (REFUSED, {"suspend_reason": "x"}, "spec.suspendReason"),
    ],
    ids=briefly,
)
def test_what_may_change_when(status: JobStatus, change: dict[str, Any], path: str | None) -> None:
    old = a_job(status=status, locks=(a_request("db"),))
    new = a_job(
        status=status, metadata={"labels": {"a": "b"}}, **{"locks": (a_request("db"),)} | change
    )

    assert [problem.path for problem in check_update(old, new)] == ([path] if path else [])


def test_a_lock_keeps_its_key() -> None:
    assert [p.path for p in check_update(a_lock("a"), a_lock("b"))] == ["spec.key"]
    assert check_update(a_lock("a"), a_lock("a")) == ()


@pytest.mark.parametrize(
    ("status", "path"),
    [(WAITING, "metadata.finalizers"), (ADMITTED, "metadata.finalizers"), (ENDED, None)],
    ids=briefly,
)
def test_nobody_takes_our_hold_off_a_job_that_may_have_tasks(
    status: JobStatus, path: str | None
) -> None:
    free = a_job(status=status, metadata={"finalizers": ()})

    found = check_update(a_job(status=status), free)

    assert [problem.path for problem in found] == ([path] if path else [])


SOONER, LATER = T0 - timedelta(seconds=1), T0 + timedelta(seconds=1)


@pytest.mark.parametrize("status", [WAITING, ADMITTED], ids=["waiting", "admitted"])
@pytest.mark.parametrize(
    ("was", "wanted", "refused"),
    [
        pytest.param(T0, None, True, id="taken back"),
        pytest.param(T0, LATER, True, id="put off"),
        pytest.param(T0, T0, False, id="as it was"),
        pytest.param(SOONER, T0, False, id="given again"),
        pytest.param(T0, SOONER, False, id="brought forward"),
        pytest.param(LATER, None, False, id="taken back before it is due"),
        pytest.param(LATER, LATER + timedelta(days=1), False, id="put off before it is due"),
        pytest.param(None, LATER, False, id="given"),
    ],
)
def test_a_stop_that_is_due_is_fixed(
    status: JobStatus, was: datetime | None, wanted: datetime | None, refused: bool
) -> None:
    old, new = (a_job(status=status, kill_at=at) for at in (was, wanted))

    found = check_due(old, new, T0)

    assert [problem.path for problem in found] == (["spec.killAt"] if refused else [])


def test_a_job_that_has_ended_has_no_stop_that_is_due() -> None:
    """That nothing of it may change is another rule."""
    assert check_due(a_job(status=ENDED, kill_at=T0), a_job(status=ENDED), T0) == ()
    assert check_due(a_lock("a"), a_lock("a"), T0) == ()
