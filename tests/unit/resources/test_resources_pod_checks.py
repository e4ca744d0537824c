"""What may be written as a pod or a batch Job, one row for each side of every limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import InvalidError
from interlock.resources.codec import encode, from_builtins
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.door.checking import check_update, problems_of
from interlock.resources.door.manifests import read_manifests
from interlock.resources.door.validation import FieldValidation, read_resource
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.modes import Mode, problems_for_mode
from interlock.resources.values.free_form import MAX_DEPTH

CONTAINER: dict[str, Any] = {"name": "main", "image": "busybox"}


def a_pod(**spec: Any) -> dict[str, Any]:
    """What a Job with a pod asks for; fields of None are left out."""
    made = {"containers": [CONTAINER]} | spec
    return {"pod": {"spec": {name: value for name, value in made.items() if value is not None}}}


def with_container(**more: Any) -> dict[str, Any]:
    made = CONTAINER | more
    return a_pod(containers=[{n: value for n, value in made.items() if value is not None}])


def with_labels(**labels: Any) -> dict[str, Any]:
    return {"pod": a_pod()["pod"] | {"metadata": {"labels": labels}}}


def a_batch_job(
    pod: dict[str, Any] | None = None, template_metadata: Any = None, **spec: Any
) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [CONTAINER]} | (pod or {})
    template: dict[str, Any] = {"spec": {n: value for n, value in pod.items() if value is not None}}
    if template_metadata is not None:
        template["metadata"] = template_metadata
    made = {"template": template} | spec
    return {"batchJob": {"spec": {n: value for n, value in made.items() if value is not None}}}


def nested(levels: int) -> Any:
    """An object that holds an object, and so on."""
    made: dict[str, Any] = {}
    for _ in range(levels - 1):
        made = {"a": made}
    return made


OURS = "interlock.dev/launch"
POD = "spec.pod.spec"
BATCH = "spec.batchJob.spec"
MAIN = f"{POD}.containers[0]"

GOOD: list[dict[str, Any]] = [
    a_pod(),
    a_pod(restartPolicy="OnFailure", activeDeadlineSeconds=60, terminationGracePeriodSeconds=5),
    a_pod(initContainers=[{"name": "first", "image": "a", "restartPolicy": "Always"}]),
    a_pod(initContainers=[], nodeSelector={"disk": "ssd"}, schedulingGates=[{"name": "a/b"}]),
    a_pod(affinity={"nodeAffinity": {"x": [{"weight": 1, "y": None}]}}),
    a_pod(affinity=nested(MAX_DEPTH - 1), priority=(1 << 63) - 1, overhead={"cpu": 0.5}),
    with_container(command=["sh", ""], args=["${task.index}", "$${job.x}", "${HOME}"]),
    with_container(image="registry.example/a:${args.tag}") | {"args": {"tag": "1"}},
    with_container(env=[{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"x": {}}}]),
    with_container(resources={"limits": {"cpu": 0.5, "memory": "1Gi"}}, stdin=True),
    with_container(restartPolicy="Never"),
    with_labels(**{"app.example/name": "a_B.c-1", "task": "t-${task.index}", "empty": ""}),
    {"pod": a_pod()["pod"] | {"metadata": {"annotations": {"a.b/c": "any\n thing"}}}},
    a_pod() | {"forceDeleteAfter": "1ms", "retries": {"limit": 3}, "pendingTimeout": "1m"},
    a_pod() | {"parallelism": {"keys": ["a"]}} | with_container(args=["${task.key}"]),
    a_batch_job(),
    a_batch_job(parallelism=3, completions=3, completionMode="Indexed", backoffLimit=2),
    a_batch_job(podFailurePolicy={"rules": [{"action": "FailJob"}]}, activeDeadlineSeconds=9),
    a_batch_job({"restartPolicy": "OnFailure"}) | {"parallelism": {"count": 2}},
    a_batch_job() | {"forceDeleteAfter": "5m"},
    a_batch_job(template_metadata={"labels": {"a": "${task.index}"}, "annotations": {"b": ""}}),
    a_batch_job(template_metadata={"creationTimestamp": None}),
]

BAD: list[tuple[str, dict[str, Any]]] = [
    ("spec", a_pod() | {"noop": {}}),
    ("spec", a_pod() | a_batch_job()),
    ("spec", a_batch_job() | {"process": {"command": ["a"]}}),
    (f"{POD}.containers", a_pod(containers=None)),
    (f"{POD}.containers", a_pod(containers=[])),
    (f"{POD}.containers", a_pod(containers={})),
    (f"{POD}.containers", a_pod(containers=[{"name": f"c{n}", "image": "a"} for n in range(101)])),
    (MAIN, a_pod(containers=["busybox"])),
    (f"{MAIN}.name", with_container(name=None)),
    (f"{MAIN}.name", with_container(name="")),
    (f"{MAIN}.name", with_container(name="A_b")),
    (f"{MAIN}.name", with_container(name="x" * 64)),
    (f"{MAIN}.name", with_container(name=7)),
    (f"{POD}.containers[1].name", a_pod(containers=[CONTAINER, CONTAINER])),
    (f"{MAIN}.name", a_pod(initContainers=[CONTAINER])),
    (f"{POD}.initContainers[1].name", a_pod(initContainers=[{"name": "i", "image": "a"}] * 2)),
    (f"{POD}.initContainers[0].image", a_pod(initContainers=[{"name": "i"}])),
    (f"{POD}.initContainers", a_pod(initContainers="i")),
    (f"{MAIN}.image", with_container(image=None)),
    (f"{MAIN}.image", with_container(image="")),
    (f"{MAIN}.image", with_container(image=" busybox")),
    (f"{MAIN}.image", with_container(image=["busybox"])),
    (f"{MAIN}.command", with_container(command="sh -c")),
    (f"{MAIN}.command[1]", with_container(command=["sleep", 5])),
    (f"{MAIN}.args[0]", with_container(args=[None])),
    (f"{MAIN}.args[0]", with_container(args=["\0"])),
    (f"{MAIN}.restartPolicy", with_container(restartPolicy="Always")),
    (f"{POD}.restartPolicy", a_pod(restartPolicy="Always")),
    (f"{POD}.restartPolicy", a_pod(restartPolicy="never")),
    (f"{POD}.restartPolicy", a_pod(restartPolicy=[])),
    (f"{POD}.nodeName", a_pod(nodeName="node-1")),
    (f"{POD}.ephemeralContainers", a_pod(ephemeralContainers=[CONTAINER])),
    ("spec.pod.metadata.labels.a", with_labels(a="x" * 64)),
    ("spec.pod.metadata.labels.a", with_labels(a="-")),
    ('spec.pod.metadata.labels["a b"]', with_labels(**{"a b": ""})),
    ('spec.pod.metadata.labels["interlock.dev/job"]', with_labels(**{"interlock.dev/job": "x"})),
    (
        'spec.pod.metadata.annotations["interlock.dev/x"]',
        {"pod": a_pod()["pod"] | {"metadata": {"annotations": {"interlock.dev/x": ""}}}},
    ),
    (f"{BATCH}.template", a_batch_job(template=None)),
    (f"{BATCH}.template.metadata", a_batch_job(template_metadata=[])),
    (
        f'{BATCH}.template.metadata.annotations["interlock.dev/launch"]',
        a_batch_job(template_metadata={"annotations": {"interlock.dev/launch": ""}}),
    ),
    (f"{BATCH}.template.spec", {"batchJob": {"spec": {"template": {}}}}),
    (f"{BATCH}.template.spec.restartPolicy", a_batch_job({"restartPolicy": None})),
    (f"{BATCH}.template.spec.restartPolicy", a_batch_job({"restartPolicy": "Always"})),
    (f"{BATCH}.template.spec.containers", a_batch_job({"containers": []})),
    (f"{BATCH}.template.spec.nodeName", a_batch_job({"nodeName": "a"})),
    (f"{BATCH}.suspend", a_batch_job(suspend=False)),
    (f"{BATCH}.selector", a_batch_job(selector={"matchLabels": {"a": "b"}})),
    (f"{BATCH}.manualSelector", a_batch_job(manualSelector=True)),
    (f"{BATCH}.managedBy", a_batch_job(managedBy="a.example/b")),
    (f"{BATCH}.ttlSecondsAfterFinished", a_batch_job(ttlSecondsAfterFinished=0)),
    (
        f"{BATCH}.template.metadata.labels.a",
        a_batch_job(template_metadata={"labels": {"a": 1}}),
    ),
    ("spec.forceDeleteAfter", a_pod() | {"forceDeleteAfter": "0s"}),
    ("spec.forceDeleteAfter", {"noop": {}, "forceDeleteAfter": "1s"}),
    ("spec.forceDeleteAfter", {"process": {"command": ["a"]}, "forceDeleteAfter": "1s"}),
]

#: What a definition in a cluster cannot refuse, each with the reason.
BEYOND: list[tuple[str, str, dict[str, Any]]] = [
    *(
        ("what is not known to a definition is kept as it is", path, spec)
        for path, spec in (
            (f"{POD}.restartpolicy", a_pod(restartpolicy="Never")),
            (f"{POD}.command", a_pod(command=["a"])),
            (f"{MAIN}.comand", with_container(comand=["a"])),
            (f"{MAIN}.nodeSelector", with_container(nodeSelector={})),
            (f"{MAIN}.env[0].vaule", with_container(env=[{"name": "A", "vaule": "b"}])),
            (f"{BATCH}.backofLimit", a_batch_job(backofLimit=1)),
            (f"{MAIN}.env[0].value", with_container(env=[{"name": "A", "value": 1}])),
            (f"{MAIN}.env[0].value", with_container(env=[{"name": "A", "value": "\0"}])),
            (f"{MAIN}.env[0].name", with_container(env=[{"value": "a"}])),
            (f"{MAIN}.env", with_container(env={"A": "b"})),
            (f"{POD}.affinity.a", a_pod(affinity={"a": 1e300})),
            (f"{POD}.schedulingGates[0].name", a_pod(schedulingGates=[{"name": OURS}])),
            (f"{BATCH}.template.metadata.name", a_batch_job(template_metadata={"name": "a"})),
        )
    ),
    (
        "no definition can bound how deep a value is",
        f"{POD}.affinity{'.a' * (MAX_DEPTH - 1)}",
        a_pod(affinity=nested(MAX_DEPTH + 1)),
    ),
    (
        "which variables there are depends on other fields",
        f"{MAIN}.args[1]",
        with_container(args=["a", "${job.nme}"]),
    ),
    (
        "which variables there are depends on other fields",
        "spec.pod.metadata.labels.a",
        with_labels(a="${task.key}"),
    ),
    (
        "how long a text grows depends on the values of its variables",
        f"{MAIN}.args[0]",
        with_container(args=["${args.big}" * 100]) | {"args": {"big": "x" * 2000}},
    ),
    (
        "how long all texts grow depends on the values of their variables",
        "spec",
        with_container(args=["${args.big}"] * 100) | {"args": {"big": "x" * 20_000}},
    ),
]
ALL_BAD = [*BAD, *((path, spec) for _, path, spec in BEYOND)]


def a_read_job(spec: dict[str, Any]) -> Job:
    job = from_builtins({"kind": "Job", "metadata": {"name": "a"}, "spec": spec}, Job)
    assert isinstance(job, Job)
    return job


def problems(spec: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.path, one.message) for one in problems_of(a_read_job(spec))]


def briefly(value: object) -> str:
    return json.dumps(value)[:70]


@pytest.mark.parametrize("spec", GOOD, ids=briefly)
def test_good_specs(spec: dict[str, Any]) -> None:
    assert problems(spec) == []


@pytest.mark.parametrize(
    ("path", "spec"), ALL_BAD, ids=[f"{n} {path[:60]}" for n, (path, _) in enumerate(ALL_BAD)]
)
def test_bad_specs(path: str, spec: dict[str, Any]) -> None:
    assert [found for found, _ in problems(spec)] == [path]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {},
            "batchJob, steps, python, noop and adopted, found none",
        ),
        (a_pod() | {"noop": {}}, "found pod and noop"),
        (a_pod(restartPolicy="Always"), "a pod that always restarts never ends"),
        (a_pod(nodeName="a"), "use nodeSelector or affinity"),
        (a_pod(contaners=[]), "unknown field; did you mean spec.pod.spec.containers?"),
        (a_pod(command=[]), "did you mean spec.pod.spec.containers[0].command?"),
        (with_container(comand=[]), "did you mean spec.pod.spec.containers[0].command?"),
        (with_container(volumes=[]), "did you mean spec.pod.spec.volumes?"),
        (with_container(command="a b"), "expected a list, found text"),
        (with_container(env=[{"name": "A", "value": 1}]), "expected text, found a whole number"),
        (a_batch_job(suspend=True), "use spec.suspend"),
        (a_batch_job(ttlSecondsAfterFinished=1), "use spec.ttlAfterFinished"),
        (a_batch_job({"restartPolicy": None}), "is required in a batch Job"),
        (a_batch_job(paralelism=1), "did you mean spec.batchJob.spec.parallelism?"),
    ],
    ids=briefly,
)
def test_a_problem_tells_what_was_expected(spec: dict[str, Any], told: str) -> None:
    ((_, message),) = problems(spec)

    assert told in message


def test_a_null_is_as_good_as_nothing() -> None:
    spec = a_pod()
    spec["pod"]["spec"] |= dict.fromkeys(("nodeName", "initContainers", "restartPolicy"))

    assert problems(spec) == []
    assert problems(a_batch_job(template_metadata={"labels": None})) == []
    assert problems(a_batch_job(template_metadata={"labels": {"a": None}})) == []


def a_body(spec: dict[str, Any]) -> dict[str, Any]:
    api_version = "interlock.dev/v1alpha1"
    return {"apiVersion": api_version, "kind": "Job", "metadata": {"name": "a"}, "spec": spec}


EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples/cluster").glob("*.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_is_good_for_a_cluster(file: Path) -> None:
    assert file.read_text("utf-8").startswith("# ")
    for document in read_manifests(file.read_bytes()):
        found, warnings = read_resource(document.data)
        assert warnings == ()
        match found:
            case Job(spec=spec):
                pass
            case JobConfig() as config:
                spec = config.spec.template.spec
            case ControlledJob() as controlled:
                spec = controlled.spec.job_template.spec
            case _:
                raise AssertionError(f"{found.kind} runs nothing")
        assert problems_for_mode(spec, Mode.CLUSTER) == ()


class TestDoor:
    def test_a_pod_is_kept_to_the_letter(self) -> None:
        spec = a_pod(affinity={"a": None, "b": [1.5, (1 << 63) - 1, True, None, "ü"]})

        for data in (a_body(spec), json.dumps(a_body(spec)).encode()):
            job, _ = read_resource(data)
            assert isinstance(job, Job)
            assert json.loads(encode(job))["spec"] == spec
            again, _ = read_resource(encode(job))
            assert again == job

    def test_a_long_number_takes_the_slow_way_and_stays(self) -> None:
        job, _ = read_resource(json.dumps(a_body(a_pod(priority=(1 << 63) - 1))).encode())

        assert isinstance(job, Job)
        assert job.spec.pod is not None
        assert job.spec.pod.spec["priority"] == (1 << 63) - 1

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ("9223372036854775808", f"{POD}.a"),
            ("1e400", f"{POD}.a"),
            ('"\\ud800"', f"{POD}.a"),
            ('{"\\ud800": 1}', f"{POD}.a"),
            ('{"x": 1, "x": 2}', f"{POD}.a.x"),
            ("[" * 60 + "]" * 60, f"{POD}.a" + "[0]" * (MAX_DEPTH - 1)),
            ("[" * 800 + "]" * 800, f"{POD}.a" + "[0]" * (MAX_DEPTH - 1)),
        ],
    )
    def test_what_cannot_be_stored_is_refused(self, text: str, path: str) -> None:
        body = json.dumps(a_body(a_pod(a=0))).replace('"a": 0', f'"a": {text}')

        with pytest.raises(InvalidError) as refusal:
            read_resource(body.encode())
        assert path in [problem.path for problem in refusal.value.problems]

    @pytest.mark.parametrize("value", [(1,), {1}, object(), float("nan"), float("inf"), {1: 2}])
    def test_what_is_not_json_is_refused(self, value: object) -> None:
        with pytest.raises(InvalidError):
            read_resource(a_body(a_pod(affinity={"a": value})))

    def test_nothing_inside_is_left_out_on_demand(self) -> None:
        """A cluster that is asked to ignore unknown fields must not run something else."""
        with pytest.raises(InvalidError, match="comand"):
            read_resource(
                a_body(with_container(comand=["a"])), field_validation=FieldValidation.IGNORE
            )

    def test_a_field_in_the_wrong_place_is_told_where_it_belongs(self) -> None:
        with pytest.raises(InvalidError, match=r"did you mean spec\.pod\.spec\.containers\?"):
            read_resource(a_body({"containers": [CONTAINER], "noop": {}}))

    def test_many_problems_are_told_shortly(self) -> None:
        wide = {f"x{n}": {"\0": 1} for n in range(2000)}

        with pytest.raises(InvalidError) as refusal:
            read_resource(a_body(a_pod(affinity=wide) | a_pod(**wide)))
        assert len(refusal.value.problems) <= 51


class TestChanges:
    @pytest.mark.parametrize("name", ["pod", "batchJob"])
    def test_a_change_deep_inside_is_seen(self, name: str) -> None:
        inside = {"affinity": {"a": [1]}}
        spec = a_pod(**inside) if name == "pod" else a_batch_job(inside)
        body = a_body(spec) | {"status": {"admission": {"phase": "Admitted"}}}
        changed = json.loads(json.dumps(body).replace('"a": [1]', '"a": [2]'))

        old, new = from_builtins(body, Job), from_builtins(changed, Job)
        assert [one.path for one in check_update(old, new)] == [f"spec.{name}"]
        assert check_update(old, from_builtins(body, Job)) == ()
