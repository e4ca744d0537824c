"""What batch Jobs say about their attempts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace
from pod_builders import NOW, a_batch_job, before, going

from interlock.kube.pods import naming
from interlock.kube.pods.batch_reporting import (
    gone_report,
    is_batch_job_ready,
    is_forgotten,
    verdict_of,
)
from interlock.kube.pods.models import BatchJob, UncountedPods

ARMED = {naming.ARMED_AT: before(30)}
STOPPED = {**ARMED, naming.STOPPED_AT: before(20), naming.SETTLED_AT: before(15)}
UNSETTLED = {**STOPPED, naming.SETTLED_AT: before(-3)}


def condition(type: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": type, "status": status, **more}


COMPLETE = condition("Complete", lastTransitionTime=before(1))
FAILED = condition("Failed", reason="BackoffLimitExceeded", message="too often")
SUSPENDED = condition("Suspended")
RESUMED = condition("Suspended", "False")


@pytest.mark.parametrize(
    ("job", "state", "if_empty"),
    [
        pytest.param(a_batch_job(suspend=True, marks={}), "Accepted", None, id="not armed"),
        pytest.param(a_batch_job(), "Accepted", None, id="armed"),
        pytest.param(a_batch_job(startTime=before(9)), "Running", None, id="begun"),
        pytest.param(a_batch_job(active=1), "Running", None, id="active"),
        pytest.param(a_batch_job(COMPLETE, startTime=before(9)), "Running", "Ended", id="complete"),
        pytest.param(a_batch_job(FAILED), "Running", "Ended", id="failed"),
        pytest.param(a_batch_job(FAILED, active=1), "Running", None, id="failed, active"),
        pytest.param(a_batch_job(FAILED, terminating=1), "Running", None, id="failed, going"),
        pytest.param(
            a_batch_job(suspend=True, marks={naming.STOPPED_AT: before(1)}),
            "NotStarted",
            None,
            id="stopped before it was armed",
        ),
        pytest.param(
            a_batch_job(SUSPENDED, suspend=True, marks=STOPPED), "Running", "Ended", id="stopped"
        ),
        pytest.param(
            a_batch_job(RESUMED, suspend=True, marks=STOPPED),
            "Running",
            None,
            id="its controller does not know of the stop",
        ),
        pytest.param(
            a_batch_job(SUSPENDED, suspend=True, marks=STOPPED, terminating=1),
            "Running",
            None,
            id="stopped, pods going",
        ),
        pytest.param(
            a_batch_job(SUSPENDED, suspend=True, marks=UNSETTLED),
            "Running",
            None,
            id="stopped, its controller may still be at work",
        ),
        pytest.param(
            a_batch_job(RESUMED, marks=STOPPED, meta=going(1), active=1),
            "Running",
            "Ended",
            id="deleted and stopped",
        ),
        pytest.param(a_batch_job(meta=going(1), active=1), "Running", None, id="deleted"),
    ],
)
def test_what_is_known_and_what_would_be_without_pods(
    job: BatchJob, state: str, if_empty: str | None
) -> None:
    verdict = verdict_of(job, NOW)

    assert verdict.report.state.value == state
    assert (verdict.if_empty and verdict.if_empty.state.value) == if_empty


@pytest.mark.parametrize(
    ("job", "code", "stopped", "message"),
    [
        pytest.param(a_batch_job(COMPLETE), 0, False, "", id="complete"),
        pytest.param(a_batch_job(FAILED), 1, False, "BackoffLimitExceeded: too often", id="failed"),
        pytest.param(a_batch_job(FAILED, marks=STOPPED), 1, True, None, id="failed when stopped"),
        pytest.param(
            a_batch_job(SUSPENDED, suspend=True, marks=STOPPED),
            None,
            True,
            "the batch Job was stopped",
            id="stopped",
        ),
    ],
)
def test_how_it_ended(job: BatchJob, code: int | None, stopped: bool, message: str | None) -> None:
    report = verdict_of(job, NOW).if_empty

    assert report is not None
    assert (report.exit_code, report.stopped) == (code, stopped)
    assert message is None or report.message == message


def test_one_that_has_to_settle_is_looked_at_again() -> None:
    verdict = verdict_of(a_batch_job(SUSPENDED, suspend=True, marks=UNSETTLED), NOW)

    assert verdict.again_at is not None
    assert verdict.again_at > NOW


@pytest.mark.parametrize(
    ("job", "state"),
    [
        pytest.param(a_batch_job(suspend=True, marks={}), "NotStarted", id="never armed"),
        pytest.param(a_batch_job(active=1), "Unknown", id="it ran"),
        pytest.param(a_batch_job(), "Unknown", id="it may have run"),
    ],
)
def test_what_a_batch_job_that_vanished_leaves(job: BatchJob, state: str) -> None:
    assert gone_report(job).state.value == state


@pytest.mark.parametrize(
    ("job", "forgotten"),
    [
        pytest.param(a_batch_job(COMPLETE), False, id="held"),
        pytest.param(a_batch_job(COMPLETE, meta={"finalizers": []}), True, id="over"),
        pytest.param(a_batch_job(marks=STOPPED, meta={"finalizers": []}), True, id="stopped"),
        pytest.param(a_batch_job(active=1, meta={"finalizers": []}), False, id="runs"),
    ],
)
def test_what_counts_as_forgotten(job: BatchJob, forgotten: bool) -> None:
    assert is_forgotten(job) is forgotten


# Readiness, by the formula of KEP-349 and the tables of its tests


def counting(
    parallelism: int, completions: int | None, *, uncounted: int = 0, **counters: Any
) -> BatchJob:
    """A batch Job that runs, with what its controller has counted so far."""
    job = a_batch_job(startTime=before(9), **counters)
    spec = replace(job.spec, parallelism=parallelism, completions=completions)
    pods = UncountedPods(succeeded=tuple(f"uid-{at}" for at in range(uncounted)))
    return replace(job, spec=spec, status=replace(job.status, uncounted_terminated_pods=pods))


@pytest.mark.parametrize(
    ("job", "is_ready"),
    [
        pytest.param(counting(3, 3), False, id="3/3, nothing"),
        pytest.param(counting(3, 3, ready=1, succeeded=1), False, id="3/3, one short"),
        pytest.param(counting(3, 3, ready=3), True, id="3/3, all ready"),
        pytest.param(counting(3, 3, ready=2, succeeded=1), True, id="3/3, ready and succeeded"),
        pytest.param(counting(3, 3, succeeded=3), True, id="3/3, all succeeded"),
        pytest.param(counting(2, 3, ready=2), True, id="2/3, parallelism is enough"),
        pytest.param(counting(3, 2, ready=2), True, id="3/2, completions is enough"),
        pytest.param(counting(3, None, ready=2), False, id="3 and no completions, one short"),
        pytest.param(counting(3, None, ready=3), True, id="3 and no completions"),
        pytest.param(counting(2, 2), False, id="2 pods, nothing"),
        pytest.param(counting(2, 2, ready=1), False, id="2 pods, 1 ready"),
        pytest.param(counting(2, 2, succeeded=1), False, id="2 pods, 1 succeeded"),
        pytest.param(counting(2, 2, ready=2), True, id="2 pods, 2 ready"),
        pytest.param(
            counting(2, 2, ready=1, uncounted=1), True, id="2 pods, 1 ready and 1 uncounted"
        ),
        pytest.param(
            counting(2, 2, ready=1, succeeded=1), True, id="2 pods, 1 ready and 1 succeeded"
        ),
        pytest.param(
            counting(2, 2, succeeded=1, uncounted=1), True, id="2 pods, 1 succeeded, 1 uncounted"
        ),
        pytest.param(counting(2, 2, uncounted=2), True, id="2 pods, 2 uncounted"),
        pytest.param(counting(2, 2, succeeded=2), True, id="2 pods, 2 succeeded"),
        pytest.param(counting(2, 9, failed=2, ready=1), False, id="failed ones never count"),
    ],
)
def test_when_a_batch_job_is_ready(job: BatchJob, is_ready: bool) -> None:
    assert is_batch_job_ready(job) is is_ready
    assert verdict_of(job, NOW).report.ready is is_ready


def test_a_batch_job_says_how_many_pods_it_wants_and_which_are_not_counted_yet() -> None:
    told = {
        "metadata": {"name": "a"},
        "spec": {"parallelism": 4, "completions": 2},
        "status": {"uncountedTerminatedPods": {"succeeded": ["uid-1"], "failed": ["uid-2"]}},
    }
    job = convert(told, BatchJob)
    assert (job.spec.parallelism, job.spec.completions) == (4, 2)
    assert job.status.uncounted_terminated_pods.succeeded == ("uid-1",)
    plain = convert({"metadata": {"name": "a"}, "spec": {}, "status": {}}, BatchJob)
    assert (plain.spec.parallelism, plain.spec.completions) == (1, None)
