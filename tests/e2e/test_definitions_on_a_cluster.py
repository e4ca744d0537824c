"""A real API server takes the Jobs that our own door takes, and refuses those that it refuses."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from installing import DRY_RUN, collection_of, condition_of, install_definitions, warnings_of

from interlock.errors import InterlockError
from interlock.execution.orders import order_of
from interlock.kube.install.definitions import definitions
from interlock.resources.checks.pod_fields import BATCH_JOB_FIELDS, CONTAINER_FIELDS, POD_FIELDS
from interlock.resources.codec import encode, from_builtins
from interlock.resources.door.checking import check_update
from interlock.resources.door.validation import read_resource
from interlock.resources.job import Job
from interlock.resources.kinds import decode
from interlock.resources.lock import lock_name
from interlock.resources.work import BatchWork, PodWork
from interlock.resources.work_types import work_types
from support.kube.access import Access, Answer

ROOT = Path(__file__).resolve().parents[2]
#: The tables of the unit tests: the same rows are sent to the API server.
CHECKS = runpy.run_path(str(ROOT / "tests/unit/resources/test_resources_checks.py"))
CHANGES: dict[str, Any] = runpy.run_path(
    str(ROOT / "tests/unit/kube/test_kube_definitions.py")
)["CHANGES"]  # fmt: skip
PODS: dict[str, Any] = runpy.run_path(
    str(ROOT / "tests/unit/resources/test_resources_pod_checks.py")
)  # fmt: skip
AMOUNTS: dict[str, Any] = runpy.run_path(
    str(ROOT / "tests/unit/resources/test_resources_amounts.py")
)  # fmt: skip
#: Null stands for what is not given, and is no amount.
NO_AMOUNTS = [one for one in AMOUNTS["NO_AMOUNTS"] if one is not None and one != 1.0]
MOMENT = "2026-01-05T12:00:00Z"
#: What a Job can run; every Job needs one of them.
WORK = {type.path for type in work_types()}


def rows_of(test: str) -> list[Any]:
    """The rows of a table in the unit tests."""
    rows: list[Any] = CHECKS[test].pytestmark[0].args[1]
    return rows


def a_body(spec: dict[str, Any], metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    if not spec.keys() & WORK:
        spec = {"process": {"command": ["true"]}} | spec
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "a"} | (metadata or {}),
        "spec": spec,
    }


def process(**more: Any) -> dict[str, Any]:
    return {"process": {"command": ["a"]} | more}


GOOD: list[dict[str, Any]] = [
    *(a_body(spec) for spec in CHECKS["GOOD"]),
    *(a_body(spec) for spec in PODS["GOOD"]),
    *(a_body(spec) for spec in rows_of("test_known_variables")),
    *(a_body({}, metadata) for metadata, path in rows_of("test_metadata") if path is None),
    *(
        a_body(spec)
        for spec in (
            {"timeout": "1ms", "gracePeriod": "0", "taskTimeout": "1000000d"},
            {"timeout": "1d2h3m4.5s6ms", "ttlAfterFinished": "24000000h"},
            process(limits={"cpuTime": "0.5s500ms", "memory": "1e3"}),
            process(limits={"memory": ".5Gi"}),
            process(env={f"V{n}": "x" for n in range(500)}),
            {"startAfter": "2026-01-05T12:00:00+01:00", "startBy": "2026-01-05T11:00:01Z"},
            {"killAt": "2026-01-05T12:00:00.123456Z"},
            {"parallelism": {"matrix": {f"n{n}": ["a", "b"] for n in range(13)}}},
            {"parallelism": {"matrix": {f"n{n}": ["a"] for n in range(100)}}},
            *({"queue": "a", "resources": {"cpu": amount}} for amount, _ in AMOUNTS["AMOUNTS"]),
            {"retries": None, "locks": None, "title": None, "args": {"a": None}, "timeout": None},
            {"retries": {}, "locks": [], "args": {}, "title": "Größe – ünï 数"},
            {"retries": {"limit": 3, "delay": "1s", "backoff": "Exponential", "jitter": 0}},
        )
    ),
    *(
        document
        for path in sorted((ROOT / "examples").rglob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text("utf-8"))
        if document.get("kind") == "Job" and document["apiVersion"].startswith("interlock.dev/")
    ),
]

BAD: list[dict[str, Any]] = [
    *(a_body(spec) for _, spec in CHECKS["BAD"]),
    *(a_body(spec) for _, spec in PODS["BAD"]),
    # A version is of no account to an API server when something is created.
    *(
        a_body({}, metadata)
        for metadata, path in rows_of("test_metadata")
        if path and "resourceVersion" not in metadata
    ),
    a_body({}) | {"spec": {}},
    a_body({}) | {"spec": None},
    {key: value for key, value in a_body({}).items() if key != "spec"},
    *(
        a_body(spec)
        for spec in (
            {"tite": "x"},
            process(locks=[]),
            {"noop": {"x": 1}},
            {"noop": 1},
            {"suspend": "no"},
            {"title": 7},
            {"priority": "3"},
            {"priority": 1.5},
            {"priority": 1 << 64},
            {"completion": "x"},
            {"retries": {"backoff": "exponential"}},
            {"retries": {"limit": "3"}},
            {"retries": {"delay": "5x"}},
            {"retries": {"delay": 5}},
            {"gracePeriod": "1s1m"},
            {"gracePeriod": "1s1s"},
            {"gracePeriod": "-1s"},
            {"gracePeriod": ""},
            {"gracePeriod": "1000001d"},
            {"gracePeriod": "999999d25h"},
            {"timeout": "0d0h0.0s"},
            {"timeout": "0.4ms"},
            {"taskTimeout": "0ms"},
            {"parallelism": {"keys": "a"}},
            {"parallelism": {"matrix": {f"n{n}": ["a", "b"] for n in range(14)}}},
            {"parallelism": {"matrix": {"x" * 64: ["a"]}}},
            {"locks": [{"limit": 1}]},
            {"locks": [{"key": "a", "whenTaken": "Wait"}]},
            {"killAt": "tomorrow"},
            {"killAt": "2026-01-05T12:00:00"},
            {"killAt": "2026-02-30T12:00:00Z"},
            {"killAt": "0000-01-05T12:00:00Z"},
            {"killAt": "2026-01-05T12:00:60Z"},
            {"args": {"a": 1}},
            {"args": {"x" * 254: ""}},
            process(command=["a", None]),
            process(command="a"),
            process(limits={"memory": "8Ei"}),
            process(limits={"memory": "-1"}),
            process(limits={"cpuTime": "0.9s"}),
            *({"queue": "a", "resources": {"cpu": amount}} for amount in NO_AMOUNTS),
        )
    ),
]

#: What only our own door refuses, each with the reason why no definition can say it. A webhook
#: has to; until then the admission room refuses such a Job, which harms nobody else.
BEYOND_DEFINITIONS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("which variables there are depends on other fields, for each name in each text", body)
        for body in (a_body(spec) for spec, _ in rows_of("test_unknown_variables"))
    ),
    *((reason, a_body(spec)) for reason, _, spec in PODS["BEYOND"]),
    (
        "how long a text grows depends on the values of its variables",
        a_body(process(command=["a", "${args.big}" * 100]) | {"args": {"big": "x" * 2000}}),
    ),
    (
        "the bound is in bytes, and a definition counts characters",
        a_body(process(args=["ä" * 100_000])),
    ),
    (
        "the bound is on the whole object, and the API server's own is higher",
        a_body(process(stdin="x" * 1_048_000, env={"A": "x" * 100_000})),
    ),
    (
        "no zone leads back before the first year, or beyond the last, in an API server",
        a_body({"killAt": "0001-01-01T00:00:00+14:00"}),
    ),
]


def briefly(body: object) -> str:
    return json.dumps(body)[70:170]


@pytest.fixture(scope="module")
def namespace(cluster: Access) -> Iterator[str]:
    install_definitions(cluster)
    with cluster.namespace() as name:
        yield name


def offer(cluster: Access, namespace: str, body: dict[str, Any], options: str = DRY_RUN) -> Answer:
    """Ask whether a Job would be taken, without leaving it there."""
    jobs = collection_of("Job", "interlock.dev/v1alpha1", namespace)
    return cluster.ask("POST", f"{jobs}?{options}", body)


def refused_at_our_door(body: dict[str, Any]) -> bool:
    try:
        read_resource(json.dumps(body).encode(), "Job")
    except InterlockError:
        return True
    return False


@pytest.mark.parametrize("made", definitions(), ids=lambda made: made["spec"]["names"]["plural"])
def test_definitions_are_structural_and_their_names_free(
    made: dict[str, Any], cluster: Access, namespace: str
) -> None:
    place = collection_of("CustomResourceDefinition", "apiextensions.k8s.io/v1")
    found = cluster.wait_for(
        f"{place}/{made['metadata']['name']}", lambda one: bool(condition_of(one, "NamesAccepted"))
    )

    assert condition_of(found, "NamesAccepted") == "True"
    assert condition_of(found, "NonStructuralSchema") in ("", "False")


class TestGood:
    @pytest.mark.parametrize("body", GOOD, ids=briefly)
    def test_it_is_taken_and_reads_as_at_our_door(
        self, body: dict[str, Any], cluster: Access, namespace: str
    ) -> None:
        answer = offer(cluster, namespace, without_version(body))

        assert answer.status == 201, answer.body["message"]
        assert warnings_of(answer) == []
        stored = decode("Job", json.dumps(without_managers(answer.body)))
        ours, _ = read_resource(json.dumps(body).encode(), "Job")
        assert isinstance(stored, Job)
        assert isinstance(ours, Job)
        assert stored.spec == ours.spec
        assert stored.status == ours.status


class TestBad:
    @pytest.mark.parametrize("body", BAD, ids=briefly)
    def test_both_refuse_it(self, body: dict[str, Any], cluster: Access, namespace: str) -> None:
        assert refused_at_our_door(body)

        answer = offer(cluster, namespace, body)
        assert answer.status in (400, 422), answer.body

    @pytest.mark.parametrize(
        ("reason", "body"), BEYOND_DEFINITIONS, ids=[briefly(one) for _, one in BEYOND_DEFINITIONS]
    )
    def test_only_our_door_refuses_it(
        self, reason: str, body: dict[str, Any], cluster: Access, namespace: str
    ) -> None:
        assert refused_at_our_door(body)

        answer = offer(cluster, namespace, body)
        assert answer.status == 201, f"no longer beyond a definition ({reason}): {answer.body}"
        # It can be read, so it is refused by name and stops nobody else.
        decode("Job", json.dumps(without_managers(answer.body)))


def without_version(body: dict[str, Any]) -> dict[str, Any]:
    """A version may be given with a change, not with something new."""
    kept = {k: v for k, v in body["metadata"].items() if k != "resourceVersion"}
    return body | {"metadata": kept}


def without_managers(body: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return body | {"metadata": kept}


STATUSES: dict[str, dict[str, Any]] = {
    "waiting": {"phase": "Queued", "admission": {"phase": "Waiting"}},
    "admitted": {"phase": "Starting", "admission": {"phase": "Admitted"}},
    "ended": {
        "phase": "Succeeded",
        "admission": {"phase": "Admitted"},
        "execution": {"result": "Succeeded", "endedAt": MOMENT},
    },
    "refused": {"phase": "Refused", "admission": {"phase": "Refused"}},
}
#: Empty parts and a moment in another zone: our own programs write them differently.
WORDY: dict[str, Any] = {
    "process": {"command": ["a"], "args": [], "env": {}, "envFrom": [], "limits": {}},
    "retries": {},
    "args": {},
    "substitutions": {},
    "title": "",
    "completion": "AllSuccessful",
    "startAfter": "2026-01-05T13:00:00+01:00",
    "locks": [{"key": "db"}],
}


@pytest.fixture(scope="module", params=list(STATUSES))
def job(cluster: Access, namespace: str, request: pytest.FixtureRequest) -> str:
    """The path of a Job that has come some way."""
    body = a_body(WORDY, {"name": request.param})
    made = offer(cluster, namespace, body, "fieldValidation=Strict")
    assert made.status == 201, made.body
    path = collection_of("Job", "interlock.dev/v1alpha1", namespace) + f"/{request.param}"
    cluster.change(f"{path}/status", {"status": STATUSES[request.param]})
    return path


class TestChanges:
    # Only a Job with a pod may be given the time after which that is removed by force.
    @pytest.mark.parametrize("field", [name for name in CHANGES if name != "forceDeleteAfter"])
    def test_what_may_change_is_the_same(self, field: str, cluster: Access, job: str) -> None:
        change: dict[str, Any] = {"spec": {field: CHANGES[field]}}
        if field in WORK and field != "process":
            change["spec"]["process"] = None
        if field == "startBy":
            change["spec"]["startBy"] = "2030-01-05T12:00:00Z"
        if field in ("resources", "minParallelism", "waitForPodsReady"):
            change["spec"]["queue"] = "b"
        old = decode("Job", json.dumps(without_managers(cluster.read(job))))
        assert isinstance(old, Job)
        media = "application/merge-patch+json"

        answer = cluster.ask("PATCH", f"{job}?{DRY_RUN}", change, media=media)

        spec = {**json.loads(encode(old.spec)), **change["spec"]}
        spec = {name: value for name, value in spec.items() if value is not None}
        new = from_builtins({**json.loads(encode(old)), "spec": spec}, Job)
        problems = check_update(old, new)
        assert (answer.status == 422) is bool(problems), answer.body
        for problem in problems:
            when = problem.message.partition(" once the Job ")[2]
            assert f"change once the Job {when}" in answer.body["message"]

    def test_written_back_it_is_the_same_job(self, cluster: Access, job: str) -> None:
        """What we leave out when we write is filled in again: the spec does not change."""
        stored = cluster.read(job)
        read = decode("Job", json.dumps(without_managers(stored)))
        ours = json.loads(encode(read))
        assert ours["spec"] != stored["spec"]

        answer = cluster.ask("PUT", f"{job}?{DRY_RUN}", ours)

        assert answer.status == 200, answer.body
        written = decode("Job", json.dumps(without_managers(answer.body)))
        assert isinstance(read, Job)
        assert isinstance(written, Job)
        assert (written.spec, written.status) == (read.spec, read.status)

    def test_a_generation_stays_when_nothing_changed(self, cluster: Access, namespace: str) -> None:
        """Defaults that somebody wrote out are left out by us, and filled in again."""
        spec = {"process": {"command": ["a"]}, "completion": "AllSuccessful", "priority": 0}
        body = a_body(spec | {"retries": {"limit": 1, "delay": "0s"}}, {"generateName": "x-"})
        del body["metadata"]["name"]
        stored = offer(cluster, namespace, body, "fieldValidation=Strict").body
        path = collection_of("Job", stored["apiVersion"], namespace)
        ours = json.loads(encode(decode("Job", json.dumps(without_managers(stored)))))
        assert "completion" not in ours["spec"]

        answer = cluster.ask("PUT", f"{path}/{stored['metadata']['name']}?{DRY_RUN}", ours)

        assert answer.status == 200, answer.body
        assert answer.body["metadata"]["generation"] == 1
        assert answer.body["spec"] == stored["spec"]

    def test_a_moment_may_be_written_in_another_zone(self, cluster: Access, job: str) -> None:
        change = {"spec": {"startAfter": MOMENT}}

        answer = cluster.ask(
            "PATCH", f"{job}?{DRY_RUN}", change, media="application/merge-patch+json"
        )

        assert answer.status == 200, answer.body

    def test_status_and_metadata_are_always_free(self, cluster: Access, job: str) -> None:
        media = "application/merge-patch+json"
        name = job.rpartition("/")[2]
        status = {"status": {**STATUSES[name], "trouble": {"room": "x", "message": "y", "since": MOMENT}}}  # fmt: skip  # noqa: E501

        told = cluster.ask("PATCH", f"{job}/status?{DRY_RUN}", status, media=media)
        labels = {"metadata": {"labels": {"a": "b"}, "finalizers": ["interlock.dev/tasks"]}}
        named = cluster.ask("PATCH", f"{job}?{DRY_RUN}", labels, media=media)

        assert (told.status, named.status) == (200, 200), (told.body, named.body)


POD = {"labels": {"a": "b"}, "annotations": {}}
AFFINITY: dict[str, Any] = {"nodeAffinity": {"a": [{"weight": 1, "b": None}]}}
POD_SPECS: dict[str, dict[str, Any]] = {
    "pod": {"pod": {"metadata": POD, **PODS["a_pod"](affinity=AFFINITY)["pod"]}},
    "batchJob": {
        "batchJob": {"metadata": POD, **PODS["a_batch_job"]({"affinity": AFFINITY})["batchJob"]}
    },
}
#: Texts of the Job with a pod that are replaced, each in another depth of it.
EDITS = {
    "an image": ('"image": "busybox"', '"image": "other"'),
    "a number that nobody knows": ('"weight": 1', '"weight": 2'),
    "a null": ('"b": null', '"b": 0'),
    "a new field": ('"weight": 1', '"weight": 1, "c": []'),
    "the order of containers": ('"containers": [', '"containers": [{"name": "x", "image": "y"}, '),
    "a label": ('"a": "b"', '"a": "c"'),
    "a new annotation": ('"annotations": {}', '"annotations": {"a": "b"}'),
    "how it is stopped": ('"title": ""', '"forceDeleteAfter": "1m"'),
    "nothing": ("a", "a"),
}


class TestChangesOfPods:
    @pytest.mark.parametrize("edit", list(EDITS))
    @pytest.mark.parametrize("status", list(STATUSES))
    @pytest.mark.parametrize("kind", list(POD_SPECS))
    def test_a_change_deep_inside_is_refused_as_at_our_door(
        self, kind: str, status: str, edit: str, cluster: Access, namespace: str
    ) -> None:
        """An API server compares what it was told nothing about too."""
        name = f"{kind.lower()}-{status}-{list(EDITS).index(edit)}"
        body = a_body({"title": "", **POD_SPECS[kind]}, {"name": name})
        made = offer(cluster, namespace, body, "fieldValidation=Strict")
        assert made.status == 201, made.body
        path = collection_of("Job", "interlock.dev/v1alpha1", namespace) + f"/{name}"
        cluster.change(f"{path}/status", {"status": STATUSES[status]})
        old = decode("Job", json.dumps(without_managers(cluster.read(path))))
        spec = json.loads(json.dumps(body["spec"]).replace(*EDITS[edit]))
        assert (spec == body["spec"]) is (edit == "nothing")
        metadata = body["metadata"] | {"resourceVersion": str(old.version)}

        answer = cluster.ask(
            "PUT", f"{path}?{DRY_RUN}", body | {"metadata": metadata, "spec": spec}
        )

        new = from_builtins({**json.loads(encode(old)), "spec": spec}, Job)
        problems = check_update(old, new)
        free = {"waiting": set(EDITS), "admitted": {"how it is stopped"}}.get(status, set())
        assert bool(problems) is (edit not in free | {"nothing"})
        assert answer.status == (422 if problems else 200), answer.body


def a_job_of(document: dict[str, Any]) -> dict[str, Any]:
    """A Job as an example defines it, or as its schedule would make it."""
    spec = document["spec"]
    if document["kind"] == "Job":
        return document
    options = {f"option.{each['name']}": each["default"] for each in spec.get("options", ())}
    template = spec.get("template") or spec["jobTemplate"]
    return document | {"kind": "Job", "spec": template["spec"] | {"substitutions": options}}


CLUSTER_EXAMPLES = [
    a_job_of(document)
    for path in sorted((ROOT / "examples/cluster").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text("utf-8"))
]


class TestKubernetes:
    """What we know of Kubernetes' own fields is what this cluster knows."""

    @pytest.mark.parametrize("body", CLUSTER_EXAMPLES, ids=lambda body: body["metadata"]["name"])
    def test_it_takes_what_the_examples_run(
        self, body: dict[str, Any], cluster: Access, namespace: str
    ) -> None:
        job, _ = read_resource(body, "Job")
        assert isinstance(job, Job)
        order = order_of(job, 0, 0)
        work = order.work
        assert isinstance(work, PodWork | BatchWork)
        template, is_pod = work.template, isinstance(work, PodWork)
        place = "/api/v1" if is_pod else "/apis/batch/v1"
        named = {"name": order.name, **json.loads(encode(template.metadata))}
        spec = template.spec | ({"restartPolicy": "Never"} if is_pod else {})

        answer = cluster.ask(
            "POST",
            f"{place}/namespaces/{namespace}/{'pods' if is_pod else 'jobs'}?{DRY_RUN}",
            {"metadata": named, "spec": spec},
        )

        assert answer.status == 201, answer.body

    @pytest.mark.parametrize(
        ("place", "noun", "known"),
        [
            ("/openapi/v3/api/v1", "core.v1.PodSpec", POD_FIELDS),
            ("/openapi/v3/api/v1", "core.v1.Container", CONTAINER_FIELDS),
            ("/openapi/v3/apis/batch/v1", "batch.v1.JobSpec", BATCH_JOB_FIELDS),
        ],
    )
    def test_fields(self, place: str, noun: str, known: frozenset[str], cluster: Access) -> None:
        schemas = cluster.read(place)["components"]["schemas"]

        assert schemas[f"io.k8s.api.{noun}"]["properties"].keys() == known


def test_a_new_job_has_a_phase_and_its_defaults(cluster: Access, namespace: str) -> None:
    made = offer(cluster, namespace, a_body({"noop": {}, "locks": [{"key": "db"}]})).body

    assert made["status"] == {"phase": "Queued"}
    assert made["spec"]["gracePeriod"] == "30s"
    assert made["spec"]["locks"] == [{"key": "db", "limit": 1, "whenTaken": "Enqueue"}]
    assert "retries" not in made["spec"]
    assert "title" not in made["spec"]


def test_jobs_are_selected_by_their_phase(cluster: Access, namespace: str, job: str) -> None:
    path, _, name = job.rpartition("/")
    phase = STATUSES[name]["phase"]

    found = cluster.read(f"{path}?fieldSelector=status.phase={phase}")["items"]
    assert name in {one["metadata"]["name"] for one in found}
    assert {one["status"]["phase"] for one in found} == {phase}


def a_lock_body(key: str, name: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Lock",
        "metadata": {"name": name or lock_name(key)},
        "spec": {"key": key},
    }


class TestLocks:
    @pytest.mark.parametrize(
        ("key", "status"),
        [
            *(("db", 201), ("a/b:c.d_e-F9", 201), ("x" * 253, 201)),
            *(("", 422), ("a b", 422), ("x" * 254, 422), ("a\n", 422)),
        ],
        ids=briefly,
    )
    def test_keys(self, key: str, status: int, cluster: Access, namespace: str) -> None:
        locks = collection_of("Lock", "interlock.dev/v1alpha1", namespace)

        answer = cluster.ask("POST", f"{locks}?{DRY_RUN}", a_lock_body(key))

        assert answer.status == status, answer.body
        assert warnings_of(answer) == []

    def test_a_lock_keeps_its_key(self, cluster: Access, namespace: str) -> None:
        locks = collection_of("Lock", "interlock.dev/v1alpha1", namespace)
        cluster.create(locks, a_lock_body("kept"))
        path, media = f"{locks}/{lock_name('kept')}", "application/merge-patch+json"

        other = cluster.ask("PATCH", f"{path}?{DRY_RUN}", {"spec": {"key": "x"}}, media=media)
        status = {"status": {"limit": 3, "lastToken": 7, "holders": []}}
        told = cluster.ask("PATCH", f"{path}/status", status, media=media)

        assert other.status == 422
        assert told.status == 200, told.body
        decode("Lock", json.dumps(without_managers(told.body)))
