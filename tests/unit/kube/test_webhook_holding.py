"""What the webhook holds back of others' batch Jobs and pods as they are created."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.kube.pods.naming import CONTROLLER_UID, GATE, JOB_UID
from interlock.kube.webhook.holding import hold
from interlock.kube.webhook.review import Change, Document
from interlock.resources.adopted import QUEUE_LABEL
from interlock.testing.builders import T0

SUSPENDED = [{"op": "add", "path": "/spec/suspend", "value": True}]
ASKS = {QUEUE_LABEL: "team"}


def thing(kind: str, labels: dict[str, str], spec: dict[str, Any], **metadata: Any) -> Document:
    return {"kind": kind, "metadata": {"name": "a", "labels": labels, **metadata}, "spec": spec}


def gated(*names: str) -> list[Document]:
    gates = [{"name": name} for name in names]
    return [{"op": "add", "path": "/spec/schedulingGates", "value": gates}]


OWNED = {"ownerReferences": [{"kind": "Job", "controller": True}]}
OF_A_SET = {"ownerReferences": [{"kind": "ReplicaSet", "controller": True}]}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(thing("Job", ASKS, {}), SUSPENDED, id="a batch Job"),
        pytest.param(thing("Job", ASKS, {"suspend": False}), SUSPENDED, id="one that would run"),
        pytest.param(thing("Job", ASKS, {"suspend": True}), [], id="one that is suspended"),
        pytest.param(thing("Job", {}, {}), [], id="without the label"),
        pytest.param(thing("Job", {QUEUE_LABEL: ""}, {}), [], id="an empty label"),
        pytest.param(thing("Job", ASKS | {JOB_UID: "u"}, {}), [], id="made by us"),
        pytest.param(thing("Pod", ASKS, {}), gated(GATE), id="a pod"),
        pytest.param(
            thing("Pod", ASKS, {"schedulingGates": [{"name": "x/y"}]}),
            gated("x/y", GATE),
            id="a pod with a gate of others",
        ),
        pytest.param(
            thing("Pod", ASKS, {"schedulingGates": [{"name": GATE}]}), [], id="asked once more"
        ),
        pytest.param(thing("Pod", ASKS, {}, **OF_A_SET), gated(GATE), id="a Deployment's pod"),
        pytest.param(thing("Pod", ASKS, {}, **OWNED), [], id="a batch Job's pod"),
        pytest.param(thing("Pod", ASKS | {CONTROLLER_UID: "u"}, {}), [], id="by its label"),
        pytest.param(thing("Pod", ASKS | {JOB_UID: "u"}, {}), [], id="a pod made by us"),
        pytest.param(thing("Pod", ASKS, {"nodeName": "n"}), [], id="a pod with its node"),
    ],
)
def test_what_is_held_back(made: Document, expected: list[Document]) -> None:
    verdict = hold(Change(uid="1", operation="CREATE", object=made), frozenset(), T0)

    assert list(verdict.patch) == expected
    assert verdict.problems == ()


def test_a_pod_that_names_its_node_is_told_that_the_label_means_nothing() -> None:
    made = thing("Pod", ASKS, {"nodeName": "n"})

    verdict = hold(Change(uid="1", operation="CREATE", object=made), frozenset(), T0)

    assert "names its node" in verdict.warnings[0]


def test_changes_and_parts_are_nobodys_business() -> None:
    made = thing("Job", ASKS, {})

    changed = Change(uid="1", operation="UPDATE", object=made, old_object=made)
    status = Change(uid="1", operation="CREATE", object=made, sub_resource="status")

    assert not hold(changed, frozenset(), T0).patch
    assert not hold(status, frozenset(), T0).patch
