"""ClusterQueues of Kueue become Queues, with their readiness and the batch Jobs in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from import_clocks import imported
from kueue_objects import (
    BY_NAME,
    CLASS,
    QUEUE,
    V1,
    V2,
    a_configuration,
    a_job,
    a_queue,
    flavor,
    group,
    local,
    made_of,
    names,
    spec_of,
    told,
    urgent,
)

from interlock.importing.kueue import import_kueue
from interlock.resources.codec import to_builtins
from interlock.resources.door.validation import read_resource
from interlock.resources.queue import Queue
from interlock.resources.values.amounts import Amount

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "import" / "kueue.yaml"


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param([group(flavor(cpu=9, memory="36Gi"))], {"cpu": 9, "memory": "36Gi"},
                     id="one flavor is kept as it is written"),
        pytest.param([group(flavor("a", cpu="9"), flavor("b", cpu="500m"))], {"cpu": "9500m"},
                     id="flavors are summed"),
        pytest.param([group(flavor("a", memory="1Gi"), flavor("b", memory="512Mi"))],
                     {"memory": "1536Mi"}, id="binary units are summed"),
        pytest.param([group(flavor(cpu=1)), group(flavor("g", **{"nvidia.com/gpu": 2}))],
                     {"cpu": 1, "nvidia.com/gpu": 2}, id="groups are beside each other"),
        pytest.param([group(flavor(cpu=0.5))], {"cpu": "0.5"}, id="a fraction"),
        pytest.param([group(flavor(cpu="1e3"))], {"cpu": 1000}, id="an exponent"),
        pytest.param([group(flavor(cpu=".5"))], {"cpu": 1}, id="rounded up as kubectl does"),
        pytest.param([group(flavor(pods=5, cpu=1))], {"tasks": 5, "cpu": 1}, id="pods are tasks"),
        pytest.param([group(flavor(cpu=0))], {"cpu": 0}, id="nothing at all"),
    ],
)  # fmt: skip
def test_the_quota_is_the_sum_of_the_flavors(
    groups: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    assert spec_of(a_queue(resourceGroups=groups))["resources"] == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, {}, id="defaults"),
        pytest.param({"queueingStrategy": "StrictFIFO"}, {"order": "StrictFIFO"}, id="strict"),
        pytest.param({"queueingStrategy": "BestEffortFIFO"}, {"order": "BestEffortFIFO"},
                     id="best effort"),
        pytest.param({"stopPolicy": "None"}, {}, id="not stopped"),
        pytest.param({"stopPolicy": "Hold"}, {"stop": "Hold"}, id="held"),
        pytest.param({"stopPolicy": "HoldAndDrain"}, {"stop": "HoldAndDrain"}, id="drained"),
        pytest.param({"preemption": {"withinClusterQueue": "Never"}}, {}, id="no preemption"),
        pytest.param({"preemption": {"withinClusterQueue": "LowerPriority"}},
                     {"preemption": {"withinQueue": "LowerPriority"}}, id="lower priority"),
        pytest.param({"preemption": {"withinClusterQueue": "LowerOrNewerEqualPriority"}},
                     {"preemption": {"withinQueue": "LowerOrNewerEqualPriority"}}, id="newer"),
    ],
)  # fmt: skip
def test_order_stop_and_preemption_are_kept(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    made = spec_of(a_queue(**fields))
    assert {name: one for name, one in made.items() if name != "resources"} == expected


FAIR = a_configuration(V2, fairSharing={})
RECLAIMS = {
    "reclaimWithinCohort": "Any",
    "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": -5},
}


def a_lender(*flavors: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A ClusterQueue of a cohort."""
    return a_queue(cohortName="all", resourceGroups=[group(*flavors)], **fields)


def cpu(nominal: int, **limits: Any) -> dict[str, Any]:
    return {"nominalQuota": nominal, **limits}


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param([a_queue(cohortName="all")], {"cohort": "all"}, id="a cohort"),
        pytest.param([a_queue(version=V1, cohort="all")], {"cohort": "all"}, id="of v1beta1"),
        pytest.param([a_queue(cohortName="a.b")], {"cohort": "a-b"}, id="a dotted one"),
        pytest.param([a_lender(flavor(cpu=cpu(4, borrowingLimit=2, lendingLimit="500m")))],
                     {"cohort": "all", "borrowingLimit": {"cpu": 2},
                      "lendingLimit": {"cpu": "500m"}}, id="limits"),
        pytest.param([a_lender(flavor(cpu=cpu(4, borrowingLimit=0, lendingLimit=0)))],
                     {"cohort": "all", "borrowingLimit": {"cpu": 0}, "lendingLimit": {"cpu": 0}},
                     id="limits of nothing"),
        pytest.param([a_lender(flavor("a", cpu=cpu(4, borrowingLimit=2, lendingLimit=1)),
                               flavor("b", cpu=cpu(3, borrowingLimit=5, lendingLimit=2)))],
                     {"cohort": "all", "borrowingLimit": {"cpu": 7}, "lendingLimit": {"cpu": 3}},
                     id="limits of flavors are summed"),
        pytest.param([a_lender(flavor("a", cpu=cpu(4, borrowingLimit=2, lendingLimit=1)),
                               flavor("b", cpu=3))],
                     {"cohort": "all", "lendingLimit": {"cpu": 4}},
                     id="a flavor without limits borrows any, and lends all"),
        pytest.param([a_lender(flavor(pods=cpu(4, borrowingLimit=2)))],
                     {"cohort": "all", "borrowingLimit": {"tasks": 2}}, id="pods are tasks"),
        pytest.param([a_queue(cohortName="all", preemption=RECLAIMS)],
                     {"cohort": "all", "preemption": RECLAIMS}, id="who makes room"),
        pytest.param([a_queue(cohortName="all", fairSharing={"weight": "1.5"}), FAIR],
                     {"cohort": "all", "fairSharing": {"weight": "1.5"}}, id="a weight"),
        pytest.param([a_queue(cohortName="all"), FAIR],
                     {"cohort": "all", "fairSharing": {"weight": 1}}, id="the usual weight"),
        pytest.param([a_queue(cohortName="all", fairSharing={"weight": 2})],
                     {"cohort": "all", "fairSharing": {"weight": 2}}, id="no Configuration"),
        pytest.param([a_queue(cohortName="all", fairSharing={"weight": 2}), a_configuration(V1)],
                     {"cohort": "all"}, id="a Configuration that does not share by weight"),
        pytest.param([a_queue(cohortName="all"),
                      a_configuration(V1, fairSharing={"enable": True})],
                     {"cohort": "all", "fairSharing": {"weight": 1}}, id="enabled in v1beta1"),
        pytest.param([a_queue(fairSharing={"weight": 2}), FAIR], {}, id="nobody to share with"),
        pytest.param([a_queue(resourceGroups=[group(flavor(
            cpu=cpu(4, borrowingLimit=2, lendingLimit=1)))])], {}, id="nobody to borrow from"),
    ],
)  # fmt: skip
def test_what_a_cohort_lends_is_kept(
    documents: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    made = spec_of(*documents)
    del made["resources"]
    made.pop("waitForPodsReady", None)
    assert made == expected


def test_cohorts_stay_apart() -> None:
    """Two of different names do not become one; a prefix keeps them from those that are there."""
    queues = [a_queue("a", cohortName="x.y"), a_queue("b", cohortName="x-y"),
              a_queue("c", cohortName="x.y")]  # fmt: skip
    one, other, same = (made["spec"]["cohort"] for made in made_of(*queues))
    assert one == same != other
    assert spec_of(a_queue(cohortName="all"), prefix="old")["cohort"] == "old-all"


@pytest.mark.parametrize(
    ("selector", "spaces", "expected"),
    [
        pytest.param({}, [], None, id="every namespace"),
        pytest.param({}, ["a"], None, id="every namespace, whatever LocalQueues there are"),
        pytest.param(None, ["a"], [], id="none is nobody"),
        pytest.param({"matchLabels": {BY_NAME: "a"}}, [], ["a"], id="a name"),
        pytest.param({"matchExpressions": [names("a", "b")]}, [], ["a", "b"], id="names"),
        pytest.param({"matchLabels": {BY_NAME: "b"}, "matchExpressions": [names("a", "b")]}, [],
                     ["b"], id="both count"),
        pytest.param({"matchExpressions": [names("a", "b"), names("a", operator="NotIn")]}, [],
                     ["b"], id="all but"),
        pytest.param({"matchExpressions": [names(operator="Exists")]}, ["a"], None,
                     id="every namespace has a name"),
        pytest.param({"matchExpressions": [names(operator="DoesNotExist")]}, ["a"], [],
                     id="none has no name"),
    ],
)  # fmt: skip
def test_namespaces_are_named_where_they_can_be(
    selector: dict[str, Any] | None, spaces: list[str], expected: list[str] | None
) -> None:
    documents = [a_queue(namespaceSelector=selector), *(local(space) for space in spaces)]
    found = spec_of(*documents).get("namespaceSelector")
    assert found == (None if expected is None else {"matchNames": expected})


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchLabels": {"team": "x"}}, id="labels"),
        pytest.param({"matchLabels": {"team": "x", BY_NAME: "a"}}, id="labels and a name"),
        pytest.param({"matchExpressions": [names("a", operator="NotIn")]}, id="all but one"),
        pytest.param({"matchExpressions": [names("x", "y", key="team"),
                                           names(operator="Exists", key="batch"),
                                           names(operator="DoesNotExist", key="old"),
                                           names(operator="DoesNotExist")]}, id="expressions"),
    ],
)  # fmt: skip
def test_what_labels_tell_is_kept_as_it_is(selector: dict[str, Any]) -> None:
    documents = a_queue(namespaceSelector=selector), local()
    assert spec_of(*documents)["namespaceSelector"] == selector
    assert "spec.namespaceSelector: goes by labels alone" in told(*documents)


WAITS = {"enable": True, "timeout": "30m", "blockAdmission": False, "recoveryTimeout": "30m"}


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        pytest.param(a_configuration(V2), WAITS, id="v1beta2 without the block is on"),
        pytest.param(a_configuration(V2, {"timeout": "10m"}),
                     WAITS | {"timeout": "10m", "recoveryTimeout": "10m"}, id="v1beta2"),
        pytest.param(a_configuration(V2, {"timeout": "0s"}), WAITS, id="v1beta2, no timeout"),
        pytest.param(a_configuration(V2, featureGates={"DisableWaitForPodsReady": True}), None,
                     id="switched off by its gate"),
        pytest.param(a_configuration(V1), None, id="v1beta1 without the block is off"),
        pytest.param(a_configuration(V1, {"timeout": "10m"}), None, id="v1beta1 not enabled"),
        pytest.param(a_configuration(V1, {"enable": True}),
                     {"enable": True, "timeout": "5m", "blockAdmission": True,
                      "recoveryTimeout": "5m", "blockScope": "system"}, id="v1beta1 enabled"),
        pytest.param(a_configuration(V1, {"enable": True, "blockAdmission": False,
                                          "timeout": "300s", "recoveryTimeout": "0s"}),
                     {"enable": True, "timeout": "300s", "blockAdmission": False,
                      "recoveryTimeout": "0s"}, id="v1beta1 all said, recovery takes any time"),
        pytest.param(a_configuration(V2, {"timeout": "1m1h0.5s"}),
                     WAITS | {"timeout": "1h1m500ms", "recoveryTimeout": "1h1m500ms"},
                     id="units in any order"),
        pytest.param(a_configuration(V2, {"timeout": "30m", "requeuingStrategy": {
            "timestamp": "Creation", "backoffLimitCount": 0, "backoffBaseSeconds": 1,
            "backoffMaxSeconds": 0}}),
                     WAITS | {"requeuingStrategy": {
                         "timestamp": "Creation", "backoffLimitCount": 0, "backoffBaseSeconds": 1,
                         "backoffMaxSeconds": 31_536_000}}, id="no longest wait is a year"),
    ],
)  # fmt: skip
def test_readiness_is_that_of_the_configuration_and_its_version(
    configuration: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    assert spec_of(a_queue(), configuration).get("waitForPodsReady") == expected
    in_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config"},
        "data": {"controller_manager_config.yaml": yaml.safe_dump(configuration)},
    }
    assert spec_of(in_map, a_queue()).get("waitForPodsReady") == expected


def test_without_a_configuration_nothing_is_made_up() -> None:
    assert "waitForPodsReady" not in spec_of(a_queue())
    assert "waitForPodsReady: is not known" in told(a_queue())


def test_jobs_wait_in_the_queue_of_their_local_queue() -> None:
    documents = [a_job({"labels": {QUEUE: "jobs", CLASS: "urgent", "app": "x"}}),
                 urgent(-5), local(), a_queue()]  # fmt: skip
    _, job = made_of(*documents)
    assert job["metadata"] == {"name": "train", "namespace": "team", "labels": {"app": "x"}}
    assert (job["spec"]["queue"], job["spec"]["priority"]) == ("main", -5)
    assert "suspend" not in job["spec"]
    assert "suspend" not in job["spec"]["batchJob"]["spec"]
    assert job["spec"]["batchJob"]["metadata"] == {"labels": {"app": "x"}}
    assert [made_of(*documents, prefix="old")[at]["metadata"]["name"] for at in (0, 1)] == [
        "old-main",
        "old-train",
    ]


def test_what_controllers_wrote_on_pods_is_left_out() -> None:
    labels = {"batch.kubernetes.io/controller-uid": "u", "job-name": "train", QUEUE: "jobs"}
    pod = a_job()["spec"]["template"] | {"metadata": {"labels": labels | {"app": "x"}}}
    _, job = made_of(a_queue(), local(), a_job(template=pod))
    kept = job["spec"]["batchJob"]["spec"]["template"]["metadata"]
    assert kept == {"labels": {"app": "x"}}


@pytest.mark.parametrize(
    ("job", "why"),
    [
        pytest.param(a_job({"labels": {}}), "takes no notice", id="of no queue"),
        pytest.param(a_job({"labels": {QUEUE: "other"}}), "is in the file", id="not in the file"),
        pytest.param(a_job({"namespace": "else"}), "is in the file", id="of another namespace"),
        pytest.param(a_job() | {"status": {"active": 1}}, "would run twice", id="runs"),
        pytest.param(a_job() | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
                     "has ended", id="has ended"),
        pytest.param({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}},
                     "interlock import cronjob", id="a CronJob"),
    ],
)  # fmt: skip
def test_other_jobs_are_left_out(job: dict[str, Any], why: str) -> None:
    objects, draft = imported(import_kueue, yaml.safe_dump_all([a_queue(), local(), job]))
    assert [one["kind"] for one in objects] == ["Queue"]
    assert draft.left_out == 1
    assert any(why in note.why for note in draft.notes)


def test_a_job_that_names_no_local_queue_waits_in_the_default_one() -> None:
    _, job = made_of(a_queue(), local(name="default"), a_job({"labels": {}}))
    assert job["spec"]["queue"] == "main"


def test_queues_are_of_no_namespace() -> None:
    queue, job = made_of(a_queue(), local(), a_job(), namespace="new")
    assert "namespace" not in queue["metadata"]
    assert job["metadata"]["namespace"] == "new"


def test_a_selector_that_is_for_nobody_stays_one_when_it_is_stored() -> None:
    (made,) = made_of(a_queue(namespaceSelector=None))
    stored, _ = read_resource(to_builtins(read_resource(made)[0]))
    assert isinstance(stored, Queue)
    assert stored.spec.namespace_selector is not None
    assert stored.spec.namespace_selector.match_names == ()


def test_lists_are_read_too() -> None:
    """As `kubectl get -o json` writes them, and as the API does, which leaves out the kinds."""
    queue, job = a_queue(), a_job()
    listed = {"apiVersion": "v1", "kind": "List", "items": [job, queue, local()]}
    bare = {name: one for name, one in queue.items() if name not in ("apiVersion", "kind")}
    typed = {"apiVersion": queue["apiVersion"], "kind": "ClusterQueueList", "items": [bare]}
    assert made_of(listed) == made_of(typed, local(), job) == made_of(queue, local(), job)


def test_the_example_says_what_it_said() -> None:
    objects, draft = imported(import_kueue, EXAMPLE.read_text())
    assert [one["kind"] for one in objects] == ["Queue", "Job"]
    assert objects[0]["spec"]["resources"] == {"cpu": "9500m", "memory": "40Gi"}
    assert objects[0]["spec"]["cohort"] == "all"
    assert objects[0]["spec"]["borrowingLimit"] == {"cpu": "4500m"}
    assert objects[1]["spec"]["priority"] == 1000
    assert draft.left_out == 0


_QUOTAS = st.sampled_from([0, 1, 7, "500m", "1.5", "2Gi", "512Mi", "3k", "1e3", 0.25])
_FLAVORS = st.lists(st.tuples(_QUOTAS, _QUOTAS), min_size=1, max_size=4)


@given(quotas=_FLAVORS)
def test_no_quota_is_lost_or_made(quotas: list[tuple[Any, Any]]) -> None:
    """Whatever the flavors, the Queue has what each has alone, together."""

    def read(*some: tuple[Any, Any]) -> Queue:
        flavors = [flavor(f"f{at}", cpu=cpu, gpu=gpu) for at, (cpu, gpu) in enumerate(some)]
        queue, _ = read_resource(made_of(a_queue(resourceGroups=[group(*flavors)]))[0])
        assert isinstance(queue, Queue)
        return queue

    alone = [read(one).spec.resources for one in quotas]
    for name, amount in read(*quotas).spec.resources.items():
        assert amount == Amount(sum(one[name].milli for one in alone))


_DOCUMENTS = [
    a_queue(namespaceSelector={"matchLabels": {"team": "x"}}, cohortName="a.b"),
    a_queue("other", cohortName="a-b"),
    local(),
    local("second", queue="other"),
    a_configuration(V1, {"enable": True}),
    urgent(),
    a_job({"labels": {QUEUE: "jobs", CLASS: "urgent"}}),
]


@settings(deadline=None)
@given(order=st.permutations(_DOCUMENTS))
def test_the_order_of_documents_does_not_matter(order: list[dict[str, Any]]) -> None:
    def found(documents: list[dict[str, Any]]) -> dict[str, Any]:
        return {f"{one['kind']} {one['metadata']['name']}": one for one in made_of(*documents)}

    assert found(order) == found(_DOCUMENTS)
