"""What is sent to an API server for an attempt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pod_builders import NOW, a_batch_job, a_batch_order, a_pod, a_pod_order, an_order

from interlock.kube.pods import manifest, naming
from interlock.resources.pods import PodTemplate, TemplateMetadata
from interlock.resources.values.durations import Duration
from interlock.resources.work import PodWork

OURS = {"name": "INTERLOCK_TASK", "value": "job-0-1"}
GATE = {"name": naming.GATE}


def test_a_pod_carries_whose_it_is() -> None:
    made = manifest.pod_of(a_pod_order(force_delete_after=Duration(minutes=2)))["metadata"]

    assert (made["namespace"], made["name"]) == ("default", "job-0-1")
    assert made["labels"] == {
        "interlock.dev/job": "job",
        "interlock.dev/job-uid": "uid",
        "interlock.dev/task": "0",
        "interlock.dev/attempt": "1",
    }
    assert made["annotations"] == {
        "interlock.dev/job-version": "5",
        "interlock.dev/force-delete-after": "120",
    }
    assert made["finalizers"] == ["interlock.dev/pod"]
    assert made["ownerReferences"] == [
        {
            "apiVersion": "interlock.dev/v1alpha1",
            "kind": "Job",
            "name": "job",
            "uid": "uid",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_our_labels_win() -> None:
    given = TemplateMetadata(labels={naming.JOB: "mine", "app": "x"}, annotations={"note": "y"})
    template = PodTemplate(spec={}, metadata=given)

    made = manifest.pod_of(an_order(work=PodWork(template=template)))["metadata"]

    assert (made["labels"][naming.JOB], made["labels"]["app"]) == ("job", "x")
    assert made["annotations"]["note"] == "y"


@pytest.mark.parametrize(
    ("spec", "field", "expected"),
    [
        pytest.param({}, "restartPolicy", "Never", id="runs once"),
        pytest.param({"restartPolicy": "OnFailure"}, "restartPolicy", "OnFailure", id="as given"),
        pytest.param({}, "schedulingGates", [GATE], id="held back"),
        pytest.param(
            {"schedulingGates": [{"name": "a"}, GATE]},
            "schedulingGates",
            [{"name": "a"}, GATE],
            id="other gates stay",
        ),
        pytest.param({}, "terminationGracePeriodSeconds", 3, id="the Job's grace"),
        pytest.param(
            {"terminationGracePeriodSeconds": 1},
            "terminationGracePeriodSeconds",
            3,
            id="the Job's grace wins",
        ),
        pytest.param({"hostNetwork": True}, "hostNetwork", True, id="all else as given"),
    ],
)
def test_the_specification_of_a_pod(spec: dict[str, Any], field: str, expected: object) -> None:
    made = manifest.pod_of(a_pod_order(spec, grace=Duration(seconds=2.1)))

    assert made["spec"][field] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(None, [OURS], id="none given"),
        pytest.param([{"name": "A", "value": "1"}], [OURS, {"name": "A", "value": "1"}], id="more"),
        pytest.param([{"name": "INTERLOCK_TASK", "value": "fake"}], [OURS], id="overridden"),
    ],
)
@pytest.mark.parametrize("sort", ["containers", "initContainers"])
def test_every_container_gets_the_variables(
    sort: str, given: list[dict[str, str]] | None, expected: list[dict[str, str]]
) -> None:
    one = {"name": "one"} if given is None else {"name": "one", "env": given}

    made = manifest.pod_of(a_pod_order({sort: [one, {"name": "two"}]}))

    assert [each["env"] for each in made["spec"][sort]] == [expected, [OURS]]


def test_the_template_is_not_changed() -> None:
    order = a_pod_order({"containers": [{"name": "one", "env": []}]})
    assert isinstance(order.work, PodWork)

    manifest.pod_of(order)

    assert order.work.template.spec == {"containers": [{"name": "one", "env": []}]}


@pytest.mark.parametrize(
    "spec", [{"containers": "none"}, {"containers": [7]}, {"containers": None}]
)
def test_nonsense_is_left_for_the_api_server_to_refuse(spec: dict[str, Any]) -> None:
    assert manifest.pod_of(a_pod_order(spec))["spec"]["containers"] == spec["containers"]


def test_a_batch_job_waits_and_marks_its_pods() -> None:
    made = manifest.batch_job_of(a_batch_order({"suspend": False, "completions": 3}))

    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "Job")
    assert (made["spec"]["suspend"], made["spec"]["completions"]) == (True, 3)
    template = made["spec"]["template"]
    assert template["metadata"]["labels"] == made["metadata"]["labels"]
    assert template["spec"]["restartPolicy"] == "Never"
    assert template["spec"]["containers"][0]["env"] == [OURS]
    # The scheduler must see the pods as soon as the batch Job may run.
    assert "schedulingGates" not in template["spec"]
    assert "finalizers" not in template["metadata"]


@pytest.mark.parametrize(("given", "expected"), [(0.0, 1), (0.2, 1), (1.0, 1), (1.1, 2), (30, 30)])
def test_a_grace_period_is_whole_and_never_none(given: float, expected: int) -> None:
    assert manifest.grace_s(given) == expected


def test_arming_a_pod_opens_our_gate_alone() -> None:
    pod = a_pod("Pending", node="", spec={"schedulingGates": [{"name": "a"}, GATE]})

    assert manifest.arm_pod(pod, NOW) == {
        "metadata": {"uid": "pod-uid", "managedFields": [{}]},
        "spec": {"schedulingGates": [{"name": "a"}]},
    }


def test_arming_a_batch_job_allows_for_nothing_in_between() -> None:
    patch = manifest.arm_batch_job(a_batch_job(suspend=True, marks={}), NOW)

    assert patch["metadata"]["uid"] == "pod-uid"
    assert patch["metadata"]["resourceVersion"] == "7"
    assert patch["spec"] == {"suspend": False}


def test_stopping_a_batch_job_is_one_write() -> None:
    settled_at = NOW + timedelta(seconds=5)

    patch = manifest.stop_batch_job(a_batch_job(), NOW, settled_at)

    assert patch["spec"] == {"suspend": True}
    assert patch["metadata"]["annotations"][naming.STOPPED_AT] == NOW.isoformat()
    assert patch["metadata"]["annotations"][naming.SETTLED_AT] == settled_at.isoformat()


def test_letting_go_leaves_the_finalizers_of_others() -> None:
    pod = a_pod("Succeeded", meta={"finalizers": ["a/b", naming.FINALIZER, "c/d"]})

    assert manifest.release(pod)["metadata"]["finalizers"] == ["a/b", "c/d"]
