"""What pods say about their attempts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pod_builders import NOW, OVERDUE, RUNS, a_pod, before, ended, going

from interlock.kube.pods import naming
from interlock.kube.pods.models import Pod
from interlock.kube.pods.reporting import (
    LONGEST,
    NodeState,
    force_at,
    gone_report,
    is_forgotten,
    report_of,
)
from interlock.resources.tasks import ReportState, TaskReport

GATED = {"schedulingGates": [{"name": naming.GATE}]}
COLLECTED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}


def told(pod: Pod, node: NodeState = NodeState.UNTOLD) -> TaskReport:
    return report_of(pod, NOW, node=node, overdue=OVERDUE)


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        pytest.param(a_pod("Pending", node="", spec=GATED), "Accepted", id="gated"),
        pytest.param(a_pod("Pending", node=""), "Accepted", id="not placed"),
        pytest.param(a_pod("Pending", waits("ContainerCreating")), "Accepted", id="being made"),
        pytest.param(a_pod("Running", RUNS), "Running", id="runs"),
        pytest.param(a_pod("Pending", RUNS), "Running", id="a container runs already"),
        pytest.param(a_pod("Running", waits("CrashLoopBackOff")), "Running", id="runs again soon"),
        pytest.param(a_pod("Running", RUNS, ended()), "Running", id="one of two ended"),
        pytest.param(a_pod("Succeeded", ended()), "Ended", id="succeeded"),
        pytest.param(a_pod("Failed", ended(1)), "Ended", id="failed"),
        pytest.param(a_pod("Failed"), "Ended", id="turned away by its node"),
        pytest.param(a_pod("Failed", waits("PodInitializing")), "Ended", id="never got to it"),
        pytest.param(a_pod("Failed", RUNS), "Unknown", id="declared over while it runs"),
        pytest.param(
            a_pod("Failed", waits("ContainerCreating"), conditions=[COLLECTED]),
            "Unknown",
            id="collected while it was being made",
        ),
        pytest.param(
            a_pod("Pending", node="", meta=going(0, 0)), "NotStarted", id="not placed, going"
        ),
        pytest.param(a_pod("Running", RUNS, meta=going(-5)), "Running", id="told to go"),
        pytest.param(a_pod("Running", RUNS, meta=going(59)), "Running", id="should be gone"),
        pytest.param(a_pod("Running", RUNS, meta=going(60)), "Unknown", id="overdue"),
        pytest.param(a_pod("Pending", meta=going(60)), "Unknown", id="placed, overdue"),
        pytest.param(a_pod("Failed", ended(143), meta=going(60)), "Ended", id="gone in time"),
    ],
)
def test_the_state_of_an_attempt(pod: Pod, state: str) -> None:
    report = told(pod)

    assert report.state.value == state
    assert (report.id, report.namespace, report.job) == (pod.task, "default", "job")


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        pytest.param(a_pod("Succeeded", ended()), 0, id="good"),
        pytest.param(a_pod("Failed", ended(0), ended(3), ended(4)), 3, id="the first bad one"),
        pytest.param(a_pod("Failed", ended(137)), 137, id="a signal"),
        pytest.param(
            a_pod(
                "Failed",
                waits("PodInitializing"),
                initContainerStatuses=[{"name": "i", "state": ended(9)}],
            ),
            9,
            id="before it began",
        ),
        pytest.param(
            a_pod("Succeeded", ended(), initContainerStatuses=[{"name": "i", "state": ended(143)}]),
            0,
            id="a sidecar was stopped",
        ),
        pytest.param(a_pod("Failed", ended(0), reason="DeadlineExceeded"), None, id="obeyed"),
        pytest.param(a_pod("Failed", reason="Evicted"), None, id="no container"),
    ],
)
def test_the_exit_code(pod: Pod, code: int | None) -> None:
    assert told(pod).exit_code == code


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(a_pod("Failed", ended(1, reason="Error")), "", id="nothing to add"),
        pytest.param(a_pod("Failed", ended(137, reason="OOMKilled")), "OOMKilled", id="memory"),
        pytest.param(
            a_pod("Failed", ended(), ended(2, message="no\ndisk")),
            "container c1: no disk",
            id="its own words",
        ),
        pytest.param(
            a_pod("Failed", reason="Evicted", message="low on memory"),
            "Evicted: low on memory",
            id="evicted",
        ),
        pytest.param(
            a_pod(
                "Pending",
                node="",
                conditions=[
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/2 nodes",
                    }
                ],
            ),
            "Unschedulable: 0/2 nodes",
            id="no room",
        ),
        pytest.param(
            a_pod("Pending", waits("ImagePullBackOff", "no such image")),
            "ImagePullBackOff: no such image",
            id="no image",
        ),
        pytest.param(
            a_pod("Pending", node="", spec={"schedulingGates": [{"name": "a"}, {"name": "b"}]}),
            "waits for scheduling gates of others: a, b",
            id="others hold it back",
        ),
    ],
)
def test_the_message(pod: Pod, message: str) -> None:
    assert told(pod).message == message


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(a_pod("Pending", waits("ContainerCreating")), None, id="as usual"),
        pytest.param(a_pod("Pending", waits("ErrImagePull")), "Image", id="an image"),
        pytest.param(a_pod("Pending", waits("ImagePullBackOff")), "Image", id="the same image"),
        pytest.param(
            a_pod("Pending", waits("CreateContainerConfigError")), "Container", id="a container"
        ),
        pytest.param(a_pod("Pending", waits("SomethingNew")), "Other", id="never heard of"),
        pytest.param(
            a_pod("Pending", node="", spec={"schedulingGates": [{"name": "a"}]}),
            "Gated",
            id="held back",
        ),
    ],
)
def test_why_it_does_not_run_yet(pod: Pod, reason: str | None) -> None:
    assert told(pod).reason == reason


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        pytest.param([], None, id="its kubelet says nothing of it"),
        pytest.param([{"type": "Ready", "status": "True"}], True, id="ready"),
        pytest.param([{"type": "Ready", "status": "False"}], False, id="not ready"),
    ],
)
def test_what_runs_is_ready_when_its_kubelet_says_so(
    conditions: list[dict[str, Any]], ready: bool | None
) -> None:
    running = {"running": {"startedAt": before(10)}}
    report = told(a_pod("Running", running, conditions=conditions))

    assert (report.state, report.ready) == (ReportState.RUNNING, ready)


def test_what_others_write_is_bounded() -> None:
    report = told(a_pod("Failed", ended(1, message="x" * 5000)))

    assert len(report.message) == LONGEST


def test_the_moments_are_those_of_the_first_start_and_the_last_end() -> None:
    report = told(
        a_pod(
            "Failed",
            ended(0, startedAt=before(90), finishedAt=before(50)),
            ended(1, startedAt="1970-01-01T00:00:00Z", finishedAt=before(40)),
        )
    )

    assert report.started_at is not None
    assert report.ended_at is not None
    assert report.started_at.isoformat() == before(90)
    assert report.ended_at.isoformat() == before(40)


@pytest.mark.parametrize(
    ("meta", "stopped"),
    [
        pytest.param({}, False, id="left alone"),
        pytest.param(going(0, 30), True, id="deleted while it ran"),
        pytest.param(going(5, 0), False, id="deleted when it was over"),
        pytest.param(going(15, 0), True, id="deleted by force while it ran"),
    ],
)
def test_whether_a_stop_came_first(meta: dict[str, Any], stopped: bool) -> None:
    assert told(a_pod("Failed", ended(1), meta=meta)).stopped is stopped


def test_what_was_declared_over_is_believed_once_the_node_is_gone() -> None:
    report = told(a_pod("Failed", RUNS), NodeState.GONE)

    assert (report.state, report.exit_code) == (ReportState.ENDED, None)
    assert "node-a is gone" in report.message


def test_an_overdue_pod_names_its_node() -> None:
    assert "node-a" in told(a_pod("Running", RUNS, meta=going(100))).message


def test_what_was_removed_by_force_says_so() -> None:
    marks = {"annotations": {naming.FORCED: "because"}, **going(100, 0)}

    report = told(a_pod("Running", RUNS, meta=marks))

    assert (report.state, report.stopped) == (ReportState.ENDED, True)
    assert (report.exit_code, report.message) == (None, "because")


@pytest.mark.parametrize(
    ("pod", "seen", "state"),
    [
        pytest.param(a_pod("Running", RUNS), True, "Unknown", id="it ran"),
        pytest.param(a_pod("Pending"), True, "Unknown", id="it was placed"),
        pytest.param(a_pod("Pending", node=""), True, "NotStarted", id="it was never placed"),
        pytest.param(a_pod("Pending", node=""), False, "Unknown", id="nobody saw its end"),
        pytest.param(
            a_pod("Pending", node="", meta=going(0, 0)), False, "NotStarted", id="it was going"
        ),
        pytest.param(a_pod("Failed", ended(3)), False, "Ended", id="it was over"),
    ],
)
def test_what_a_pod_that_vanished_leaves(pod: Pod, seen: bool, state: str) -> None:
    assert gone_report(pod, NOW, overdue=OVERDUE, seen=seen).state.value == state


@pytest.mark.parametrize(
    ("pod", "forgotten"),
    [
        pytest.param(a_pod("Succeeded", ended()), False, id="held"),
        pytest.param(a_pod("Succeeded", ended(), meta={"finalizers": []}), True, id="over"),
        pytest.param(a_pod("Running", RUNS, meta={"finalizers": []}), False, id="runs"),
        pytest.param(
            a_pod("Pending", node="", meta={"finalizers": ["x"], **going(0, 0)}),
            True,
            id="never placed",
        ),
    ],
)
def test_what_counts_as_forgotten(pod: Pod, forgotten: bool) -> None:
    assert is_forgotten(pod) is forgotten


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        pytest.param("90", 80.0, id="later"),
        pytest.param("0", -10.0, id="at once"),
        pytest.param("", None, id="never"),
        pytest.param("soon", None, id="nonsense"),
    ],
)
def test_when_force_is_due(after: str, seconds: float | None) -> None:
    marks = {"annotations": {naming.FORCE_DELETE_AFTER: after}, **going(10)}

    due = force_at(a_pod("Running", RUNS, meta=marks))

    assert (due and (due - NOW).total_seconds()) == seconds


def test_a_pod_with_labels_that_make_no_sense_is_nobodys() -> None:
    labels = {naming.JOB_UID: "uid", naming.TASK: "first", naming.ATTEMPT: "1"}

    assert a_pod("Running", meta={"labels": labels}).task is None


def scheduled(status: str, *, reason: str = "") -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": status, "reason": reason}
    return {"conditions": [{**condition, "lastTransitionTime": before(7)}]}


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        pytest.param(a_pod("Pending", node=""), None, id="no scheduler looked at it"),
        pytest.param(
            a_pod("Pending", node="", **scheduled("False", reason="Unschedulable")),
            None,
            id="no node takes it",
        ),
        pytest.param(a_pod("Pending", **scheduled("True")), 7, id="a node took it"),
        pytest.param(
            a_pod("Pending", meta={"creationTimestamp": before(9)}),
            9,
            id="it was bound without a word",
        ),
    ],
)
def test_when_a_pod_was_given_a_place(pod: Pod, seconds: int | None) -> None:
    expected = None if seconds is None else NOW - timedelta(seconds=seconds)
    report = report_of(pod, NOW, overdue=OVERDUE)
    assert (report.state.value, report.placed_at) == ("Accepted", expected)
