"""What of Kueue does not carry over is told, and what makes no sense is refused, with its path."""

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
    an_object,
    flavor,
    group,
    local,
    made_of,
    names,
    told,
    urgent,
)

from interlock.importing.drafts import BadSourceError
from interlock.importing.kueue import import_kueue
from interlock.modes.cli.main import main
from interlock.resources.door.validation import read_resource


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param([a_queue(cohortName="a.b")], 'spec.cohortName: "a.b" is another one',
                     id="a dotted cohort"),
        pytest.param([a_queue(cohortName="all"), an_object("Cohort", "all")],
                     "Cohort all: is no object", id="a Cohort"),
        pytest.param([a_queue(), an_object("Cohort", "all")], "Cohort all: is not imported",
                     id="a Cohort of nobody"),
        pytest.param([a_queue(cohortName="all"),
                      an_object("Cohort", "all", spec={"parentName": "top"})],
                     'spec.parentName: "top" is not carried over', id="nested cohorts"),
        pytest.param([a_queue(cohortName="all"),
                      an_object("Cohort", "all", version="v1alpha1", spec={"parent": "top"})],
                     'spec.parent: "top" is not carried over', id="nested cohorts of v1alpha1"),
        pytest.param([a_queue(cohortName="all"),
                      an_object("Cohort", "all", spec={"resourceGroups": [group(flavor(cpu=1))]})],
                     "spec.resourceGroups: is not carried over", id="quota of a Cohort"),
        pytest.param([a_queue(cohortName="all"),
                      an_object("Cohort", "all", spec={"fairSharing": {"weight": 2}})],
                     "spec.fairSharing: is not carried over", id="the weight of a Cohort"),
        pytest.param([a_queue(resourceGroups=[group(flavor(
            cpu={"nominalQuota": 1, "borrowingLimit": 2}))])],
            "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit: 2 is not carried over",
            id="borrowing without a cohort"),
        pytest.param([a_queue(resourceGroups=[group(flavor(
            cpu={"nominalQuota": 1, "lendingLimit": 0}))])],
            "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: 0 is not carried over",
            id="lending without a cohort"),
        pytest.param([a_queue(cohortName="all", resourceGroups=[group(
            flavor("a", cpu={"nominalQuota": 1, "borrowingLimit": 2}), flavor("b", cpu=1))])],
            "spec.resourceGroups: a borrowingLimit of cpu is not carried over",
            id="borrowing of one flavor without end"),
        pytest.param([a_queue(resourceGroups=[group(flavor("a", cpu=1), flavor("b", cpu=1))])],
                     "spec.resourceGroups[0].flavors: 2 flavors are one quota", id="flavors"),
        pytest.param([a_queue(resourceGroups=[group(flavor(pods=1))])],
                     'spec.resourceGroups: "pods" is not carried over', id="pods"),
        pytest.param([a_queue(), an_object("ResourceFlavor", "a", spec={"nodeLabels": {"a": "b"}})],
                     "spec.nodeLabels: is not carried over", id="node labels"),
        pytest.param([a_queue(), an_object("ResourceFlavor", "a", spec={"nodeTaints": [{}]})],
                     "spec.nodeTaints: is not carried over", id="taints"),
        pytest.param([a_queue(), an_object("ResourceFlavor", "a", spec={"tolerations": [{}]})],
                     "spec.tolerations: is not carried over", id="tolerations"),
        pytest.param([a_queue(), an_object("ResourceFlavor", "a", spec={"topologyName": "t"})],
                     "spec.topologyName: is not carried over", id="topology"),
        pytest.param([a_queue(version=V1, admissionChecks=["a"])],
                     "spec.admissionChecks: is not carried over", id="checks"),
        pytest.param([a_queue(admissionChecksStrategy={"admissionChecks": [{"name": "a"}]})],
                     "spec.admissionChecksStrategy: is not carried over", id="checks of flavors"),
        pytest.param([a_queue(fairSharing={"weight": 2})],
                     "spec.fairSharing.weight: 2 is not carried over",
                     id="a weight without a cohort"),
        pytest.param([a_queue(cohortName="all", fairSharing={"weight": 2}), a_configuration(V2)],
                     "spec.fairSharing.weight: 2 is not carried over",
                     id="a weight that Kueue does not look at"),
        pytest.param([a_queue(cohortName="all", fairSharing={"weight": 2})],
                     "spec.fairSharing.weight: is taken to count",
                     id="a weight without a Configuration"),
        pytest.param([a_queue(admissionScope={"admissionMode": "x"})],
                     "spec.admissionScope: is not carried over", id="who used it before"),
        pytest.param([a_queue(flavorFungibility={"whenCanPreempt": "Preempt"})],
                     'spec.flavorFungibility.whenCanPreempt: "Preempt" is not carried over',
                     id="fungibility"),
        pytest.param([a_queue(concurrentAdmissionPolicy={"migration": {"mode": "x"}})],
                     "spec.concurrentAdmissionPolicy: is not carried over", id="a newer field"),
        pytest.param([a_queue(namespaceSelector=None)], "spec.namespaceSelector: is not given",
                     id="nobody"),
        pytest.param([a_queue(), local()], "spec.namespaceSelector: lets every namespace in",
                     id="everybody"),
        pytest.param([a_queue(namespaceSelector={"matchLabels": {"team": "x"}}), local()],
                     "spec.namespaceSelector: goes by labels alone", id="labels"),
        pytest.param([a_queue(), a_queue("b", namespaceSelector={"matchLabels": {"a b": "x"}})],
                     "ClusterQueue b: is not imported", id="no label"),
        pytest.param([a_queue(), local(stopPolicy="Hold")],
                     'spec.stopPolicy: "Hold" is not carried over', id="a held LocalQueue"),
        pytest.param([a_queue(), local()], "LocalQueue jobs: is no object", id="a LocalQueue"),
        pytest.param([a_queue(), local(queue="no")], "LocalQueue jobs: is not imported",
                     id="a LocalQueue of no queue"),
        pytest.param([a_queue(), urgent()], 'value: "urgent" is no object', id="priorities"),
        pytest.param([a_queue(), a_configuration(V1, {"enable": True})],
                     "waitForPodsReady.blockAdmission: is not given", id="blocks by its version"),
        pytest.param([a_queue(), a_configuration(V2)], "waitForPodsReady: is not given",
                     id="waits by its version"),
        pytest.param([a_queue(), a_configuration(V1, {"enable": True})],
                     "waitForPodsReady.timeout: is not given", id="how long by its version"),
        pytest.param([a_queue(), a_configuration(V1, {"enable": True})],
                     "waitForPodsReady.recoveryTimeout: is not given", id="how long to recover"),
        pytest.param([a_queue(), a_configuration(V2, {"requeuingStrategy": {
            "backoffBaseSeconds": 9, "backoffMaxSeconds": 3}})],
            "waitForPodsReady.requeuingStrategy.backoffBaseSeconds: is cut", id="a long base"),
        pytest.param([a_queue(), a_configuration(V2, {"unscheduledTimeout": "5m"})],
                     "waitForPodsReady.unscheduledTimeout: is not carried over", id="a new timer"),
        pytest.param([a_queue(), a_configuration(V2, fairSharing={
            "preemptionStrategies": ["LessThanInitialShare"]})],
            "fairSharing.preemptionStrategies: is not carried over", id="one strategy"),
        pytest.param([a_queue(), a_configuration(V2, admissionFairSharing={"x": 1})],
                     "admissionFairSharing: is not carried over", id="fair by past use"),
        pytest.param([a_queue(), a_configuration(), a_configuration()],
                     "Configuration (no name): is not imported", id="two Configurations"),
        pytest.param([a_queue(), local(), a_job({"labels": {QUEUE: "jobs", CLASS: "p"}})],
                     f'metadata.labels["{CLASS}"]: is not carried over', id="no such class"),
        pytest.param([a_queue(), local(), a_job({"annotations": {
            "kueue.x-k8s.io/job-min-parallelism": "5"}})],
            'metadata.annotations["kueue.x-k8s.io/job-min-parallelism"]: is not carried over',
            id="partial admission"),
        pytest.param([a_queue(namespaceSelector={"matchLabels": {BY_NAME: "x"}}), local(), a_job()],
                     'metadata.namespace: "team" is not let in', id="a Job that is not let in"),
        pytest.param([a_queue(), {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "AdmissionCheck",
                                  "metadata": {"name": "a"}}],
                     "AdmissionCheck a: is not imported", id="another kind"),
        pytest.param([a_queue("a.b")], "metadata.name: is another one", id="a dotted name"),
        pytest.param([a_queue(), a_queue("huge", resourceGroups=[group(flavor(cpu="8E"))] * 1)],
                     "ClusterQueue huge: is not imported", id="too much"),
    ],
)  # fmt: skip
def test_what_does_not_carry_over_is_told(documents: list[dict[str, Any]], expected: str) -> None:
    assert expected in told(*documents)


def test_what_the_api_server_writes_is_not_told() -> None:
    written = a_queue(
        version=V1,
        stopPolicy="None",
        queueingStrategy="BestEffortFIFO",
        flavorFungibility={"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"},
        fairSharing={"weight": "1"},
        preemption={
            "borrowWithinCohort": {"policy": "Never"},
            "reclaimWithinCohort": "Never",
            "withinClusterQueue": "Never",
        },
    )
    written["metadata"] |= {"uid": "u", "generation": 1, "resourceVersion": "7"}
    written["status"] = {"pendingWorkloads": 3}
    assert told(written, an_object("ResourceFlavor", "default"), a_configuration(V1)) == [
        "spec.resourceGroups: other resources are not refused"
    ]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param(a_queue(resourceGroups=None), "spec.resourceGroups is required", id="nothing"),
        pytest.param(a_queue(resourceGroups=[group(flavor(cpu="-1"))]),
                     "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: expected an",
                     id="below nothing"),
        pytest.param(a_queue(resourceGroups=[group(flavor(cpu={}))]),
                     "resources[0].nominalQuota is required", id="no quota"),
        pytest.param(a_queue(resourceGroups=[group(flavor("a", cpu=1), flavor("b", gpu=1))]),
                     'flavors[1].resources[0].name: "gpu" is given and not covered', id="covered"),
        pytest.param(a_queue(resourceGroups=[group(flavor("a", cpu=1, gpu=1), flavor("b", cpu=1))]),
                     'flavors[1].resources: "gpu" is covered', id="missing"),
        pytest.param(a_queue(resourceGroups=[group(flavor(cpu=1)), group(flavor("b", cpu=1))]),
                     'resourceGroups[1].coveredResources: "cpu" is in two groups', id="twice"),
        pytest.param(a_queue(queueingStrategy="Random"),
                     "spec.queueingStrategy: expected StrictFIFO or", id="order"),
        pytest.param(a_queue(stopPolicy="Now"), "spec.stopPolicy: expected None, Hold or",
                     id="stop"),
        pytest.param(a_queue(preemption={"withinClusterQueue": "Any"}),
                     "spec.preemption.withinClusterQueue: expected Never", id="preemption"),
        pytest.param(a_queue(preemption={"reclaimWithinCohort": "Some"}),
                     "spec.preemption.reclaimWithinCohort: expected Never", id="reclaiming"),
        pytest.param(a_queue(preemption={"borrowWithinCohort": {"policy": "Any"}}),
                     "spec.preemption.borrowWithinCohort.policy: expected Never",
                     id="borrowing by preemption"),
        pytest.param(a_queue(cohortName=["all"]), "spec.cohortName: expected text",
                     id="a list of cohorts"),
        pytest.param(a_queue(cohortName="all", fairSharing={"weight": "x"}),
                     "spec.fairSharing.weight: expected an amount", id="a weight"),
        pytest.param(a_queue(cohortName="all", resourceGroups=[group(flavor(
            cpu={"nominalQuota": 1, "lendingLimit": 2}))]),
            "lendingLimit: expected no more than its nominalQuota, 1, found 2", id="lending"),
        pytest.param(a_queue(namespaceSelector={"matchExpressions": [{"key": BY_NAME}]}),
                     "spec.namespaceSelector.matchExpressions[0].operator is required",
                     id="no operator"),
        pytest.param(a_queue(namespaceSelector={"matchLabels": {"team": 5}}),
                     "spec.namespaceSelector.matchLabels.team: expected text", id="a number"),
        pytest.param(a_queue(namespaceSelector=[]), "spec.namespaceSelector: expected an object",
                     id="a list"),
        pytest.param(a_queue(version="v1alpha2"), "expected a ClusterQueue", id="another version"),
        pytest.param(local(), "expected a ClusterQueue", id="no ClusterQueue"),
    ],
)  # fmt: skip
def test_a_queue_that_makes_no_sense_is_refused_with_its_path(
    document: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadSourceError) as caught:
        made_of(document)
    assert words in caught.value.flaws[0].message
    assert caught.value.flaws[0].line >= 1


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param(a_configuration(V2, {"timeout": "-5m"}), "waitForPodsReady.timeout: expected",
                     id="a negative time"),
        pytest.param(a_configuration(V1, {"enable": True, "timeout": "0s"}),
                     "waitForPodsReady.timeout: expected more than 0", id="no time"),
        pytest.param(a_configuration(V2, {"timeout": "5d"}), "waitForPodsReady.timeout: expected",
                     id="days"),
        pytest.param(a_configuration(V2, {"timeout": 5}), "expected text, found", id="a number"),
        pytest.param(a_configuration(V2, {"enable": True}), "v1beta2 has no such field",
                     id="enable"),
        pytest.param(a_configuration(V2, fairSharing={"enable": True}),
                     "fairSharing.enable: v1beta2 has no such field", id="enable of sharing"),
        pytest.param(an_object("Cohort", "all", spec={"parentName": 5}),
                     "spec.parentName: expected text", id="a Cohort"),
        pytest.param(a_configuration(V2, {"requeuingStrategy": {"backoffLimitCount": -1}}),
                     "backoffLimitCount: expected a whole number from 0 up", id="a limit"),
        pytest.param(a_configuration(V2, {"requeuingStrategy": {"timestamp": "Now"}}),
                     "timestamp: expected Eviction or Creation", id="a timestamp"),
        pytest.param(local(stopPolicy="Now"), "spec.stopPolicy: expected", id="a LocalQueue"),
        pytest.param(an_object("LocalQueue", "jobs"), "spec.clusterQueue is required",
                     id="of no queue"),
        pytest.param(an_object("WorkloadPriorityClass", "p"), "value is required", id="no number"),
        pytest.param(an_object("WorkloadPriorityClass", "p", value="high"), "value: expected a",
                     id="a word"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_beside_a_queue_costs_no_queue(
    document: dict[str, Any], words: str
) -> None:
    objects, draft = imported(import_kueue, yaml.safe_dump_all([a_queue(), document]))
    assert [one["kind"] for one in objects] == ["Queue"]
    assert draft.left_out == 1
    assert any(words in note.why for note in draft.notes)


def test_a_template_of_helm_is_called_one_and_nothing_waits_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = a_queue()
    queue["metadata"]["annotations"] = {"app": "{{ .Values.name }}"}
    file = tmp_path / "queues.yaml"
    file.write_text(yaml.safe_dump_all([queue, a_queue("good"), local(), a_job()]))
    assert main(["import", "kueue", str(file)]) == 1
    shown = capsys.readouterr()
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(shown.out)] == ["good"]
    assert "helm template CHART | interlock import kueue -" in shown.err


def test_names_alone_are_said_wholly() -> None:
    selector = {"matchExpressions": [names("a", "b"), names("a", operator="NotIn")]}
    notes = told(a_queue(namespaceSelector=selector), a_configuration(V1))
    assert notes == ["spec.resourceGroups: other resources are not refused"]


_WORDS = [
    *("name", "namespace", "labels", "annotations", "resourceGroups", "flavors", "resources"),
    *("coveredResources", "nominalQuota", "namespaceSelector", "matchLabels", "matchExpressions"),
    *("key", "operator", "values", "preemption", "clusterQueue", "stopPolicy", "timeout", "value"),
    *("parentName", "fairSharing", "weight", "enable", "preemptionStrategies"),
    *("waitForPodsReady", "requeuingStrategy", "template", "metadata", "spec", "containers"),
]
_ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["In", "Hold", "1m", "main"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=4)
    ),
    max_leaves=12,
)
_KINDS = [
    *((one, "kueue.x-k8s.io/v1beta2") for one in ("ClusterQueue", "LocalQueue", "Cohort")),
    *((one, "kueue.x-k8s.io/v1beta1") for one in ("ResourceFlavor", "WorkloadPriorityClass")),
    ("Configuration", "config.kueue.x-k8s.io/v1beta1"),
    ("Job", "batch/v1"),
]


@settings(deadline=None)
@given(kind=st.sampled_from(_KINDS), parts=st.dictionaries(st.sampled_from(_WORDS), _ODD))
def test_nothing_beside_a_queue_is_too_odd(kind: tuple[str, str], parts: dict[str, Any]) -> None:
    """Whatever stands beside it, a good ClusterQueue is imported; what comes out is good."""
    odd = {"apiVersion": kind[1], "kind": kind[0], **parts}
    objects = made_of(a_queue(), local(), odd)
    assert "main" in [one["metadata"]["name"] for one in objects]
    for one in objects:
        read_resource(one)
