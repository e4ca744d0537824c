"""What is read of an object of somebody else, and what is done about it and its Job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from interlock.kube.adoption.decide import Change, Make, Remove, Suspend, Tell, decide
from interlock.kube.adoption.models import ForeignJob, ForeignPod
from interlock.kube.adoption.reading import Flaw, stand_in_name, stand_in_of
from interlock.kube.pods import naming
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.adopted import (
    MIN_PARALLELISM_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    AdoptedKind,
)
from interlock.resources.door.checking import problems_of
from interlock.resources.job import Job, JobStatus
from interlock.resources.queue import demand_of
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.testing.builders import T0

ONE_CPU = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
HELD = {"finalizers": [naming.FINALIZER]}
CLAIMED = {naming.GRANTED: "2", naming.PARALLELISM: "2"}
ARMED = CLAIMED | {naming.ARMED_AT: T0.isoformat()}
STOPPED = ARMED | {naming.STOPPED_AT: T0.isoformat()}


def a_batch_job(
    labels: dict[str, str] | None = None,
    notes: dict[str, str] | None = None,
    pod: dict[str, Any] | None = None,
    *,
    meta: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> ForeignJob:
    """A labelled batch Job, suspended unless it says otherwise."""
    marks = {QUEUE_LABEL: "team", **(labels or {})}
    metadata = {"name": "theirs", "namespace": "ml", "uid": "u-1", "resourceVersion": "5"}
    body = {
        "metadata": metadata | {"labels": marks, "annotations": notes or {}} | (meta or {}),
        "spec": {"suspend": True, "template": {"spec": pod or ONE_CPU}, **spec},
        "status": status or {},
    }
    return msgspec.convert(body, ForeignJob)


def a_pod(
    labels: dict[str, str] | None = None, *, gated: bool = True, phase: str = "Pending", **meta: Any
) -> ForeignPod:
    """A labelled pod."""
    marks = {QUEUE_LABEL: "team", **(labels or {})}
    gates = [{"name": naming.GATE}] if gated else []
    body = {
        "metadata": {"name": "theirs", "namespace": "ml", "uid": "u-2", "labels": marks, **meta},
        "spec": {**ONE_CPU, "schedulingGates": gates, "priority": 9},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, ForeignPod)


def stands_for(thing: ForeignJob | ForeignPod, phase: AdmissionPhase | None = None) -> Job:
    """The Job of an object, let in if a phase says so."""
    job = stand_in_of(thing)
    assert isinstance(job, Job)
    if phase is None:
        return job
    return replace(job, status=JobStatus(admission=AdmissionStatus(phase=phase)))


def test_the_job_that_stands_for_a_batch_job_asks_for_all_its_pods() -> None:
    thing = a_batch_job(
        {PRIORITY_LABEL: "-3"}, {MIN_PARALLELISM_ANNOTATION: "2"}, parallelism=8, completions=6
    )

    job = stands_for(thing)

    assert problems_of(job) == ()
    assert job.metadata.name == stand_in_name(AdoptedKind.BATCH_JOB, "theirs", "u-1")
    assert (job.metadata.namespace, job.spec.priority) == ("ml", -3)
    assert [owner.uid for owner in job.metadata.owner_references] == ["u-1"]
    demand = demand_of(job)
    assert demand is not None
    assert (demand.queue, demand.tasks, demand.least) == ("team", 6, 2)
    assert (demand.each, demand.is_of_pods) == ({"cpu": 1000}, True)


def test_the_job_that_stands_for_a_pod_has_its_priority_and_its_grace() -> None:
    job = stands_for(a_pod())

    assert problems_of(job) == ()
    assert (job.spec.priority, job.spec.grace_period.total_seconds()) == (9, 30)
    assert job.spec.adopted is not None
    assert job.spec.adopted.kind is AdoptedKind.POD


@pytest.mark.parametrize(
    ("labels", "notes", "spec", "told"),
    [
        pytest.param({QUEUE_LABEL: "Team_A"}, {}, {}, "Team_A", id="no name of a Queue"),
        pytest.param({PRIORITY_LABEL: "high"}, {}, {}, '"high": expected a whole', id="priority"),
        pytest.param({PRIORITY_LABEL: "9" * 12}, {}, {}, "expected a whole", id="beyond 32 bits"),
        pytest.param({}, {MIN_PARALLELISM_ANNOTATION: "0"}, {}, "from 1 to", id="least"),
        pytest.param({}, {}, {"parallelism": 100_001}, "at most 100000", id="too many pods"),
    ],
)
def test_what_cannot_be_queued_says_why(
    labels: dict[str, str], notes: dict[str, str], spec: dict[str, Any], told: str
) -> None:
    thing = a_batch_job(labels, notes, suspend=False, **spec)

    flaw = stand_in_of(thing)

    assert isinstance(flaw, Flaw)
    assert told in flaw.message
    # It does not run all the same.
    assert decide(thing, None) == (Suspend(thing), Tell(thing, "NotQueued", flaw.message))


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        pytest.param(a_batch_job(), [Make], id="suspended"),
        pytest.param(a_batch_job(suspend=False), [Suspend, Make], id="went past"),
        pytest.param(a_batch_job(notes=STOPPED, suspend=False), [Suspend, Make], id="once more"),
        pytest.param(a_batch_job(labels={naming.JOB_UID: "ours"}), [], id="made by us"),
        pytest.param(
            a_batch_job(status={"conditions": [{"type": "Complete", "status": "True"}]}),
            [],
            id="over",
        ),
        pytest.param(a_pod(), [Make], id="a gated pod"),
        pytest.param(a_pod(gated=False), [Tell], id="a pod that cannot be held"),
        pytest.param(a_pod({naming.CONTROLLER_UID: "u"}, gated=False), [], id="a batch Job's pod"),
        pytest.param(
            a_pod(gated=False, ownerReferences=[{"kind": "Job", "controller": True}]),
            [],
            id="a Job's pod",
        ),
        pytest.param(a_pod(phase="Succeeded"), [], id="a pod that is over"),
        pytest.param(None, [], id="nothing"),
    ],
)
def test_what_has_no_job_yet(thing: ForeignJob | ForeignPod | None, expected: list[type]) -> None:
    assert [type(action) for action in decide(thing, None)] == expected


LET_IN = AdmissionPhase.ADMITTED


@pytest.mark.parametrize(
    ("thing", "phase", "expected"),
    [
        pytest.param(a_batch_job(parallelism=2), None, [], id="waits"),
        pytest.param(a_batch_job(parallelism=3), None, [Change], id="asks for more, and waits"),
        pytest.param(a_batch_job({QUEUE_LABEL: "b"}, parallelism=2), None, [Change], id="moves"),
        pytest.param(a_batch_job(parallelism=3), LET_IN, [Remove], id="asks for more"),
        pytest.param(a_batch_job(parallelism=1), LET_IN, [], id="asks for less"),
        pytest.param(a_batch_job({QUEUE_LABEL: "b"}, parallelism=2), LET_IN, [Remove], id="goes"),
        pytest.param(
            a_batch_job({PRIORITY_LABEL: "4"}, parallelism=2), LET_IN, [Change], id="priority"
        ),
        pytest.param(
            a_batch_job(pod={"containers": []}, parallelism=2), LET_IN, [Remove], id="other pods"
        ),
        pytest.param(
            a_batch_job(notes=ARMED, meta=HELD, parallelism=2, suspend=False), LET_IN, [], id="runs"
        ),
        pytest.param(
            a_batch_job(notes=CLAIMED, meta=HELD, parallelism=2, suspend=False),
            LET_IN,
            [],
            id="is about to be let run, and somebody was faster",
        ),
        pytest.param(
            a_batch_job(notes=STOPPED, meta=HELD, parallelism=2, suspend=False),
            LET_IN,
            [Suspend],
            id="was stopped, and somebody let it run",
        ),
        pytest.param(None, None, [Remove], id="is gone"),
        pytest.param(None, LET_IN, [Remove], id="is gone, or has no label, while it runs"),
        pytest.param(
            a_batch_job(meta={"deletionTimestamp": T0.isoformat()}), None, [Remove], id="goes now"
        ),
        pytest.param(
            a_batch_job(meta={"deletionTimestamp": T0.isoformat()}), LET_IN, [], id="is stopped"
        ),
    ],
)
def test_what_has_a_job(
    thing: ForeignJob | None, phase: AdmissionPhase | None, expected: list[type]
) -> None:
    job = stands_for(a_batch_job(parallelism=2), phase)

    assert [type(action) for action in decide(thing, job)] == expected


def test_one_that_runs_more_pods_than_it_was_granted_waits_again() -> None:
    granted = {naming.GRANTED: "2", naming.PARALLELISM: "5", naming.ARMED_AT: T0.isoformat()}
    job = stands_for(a_batch_job(parallelism=5), LET_IN)

    cut = a_batch_job(notes=granted, meta=HELD, parallelism=2, suspend=False)
    assert decide(cut, job) == ()

    (action,) = decide(a_batch_job(notes=granted, meta=HELD, parallelism=4, suspend=False), job)
    assert isinstance(action, Remove)
    assert "was granted 2" in action.why


def test_one_whose_job_is_over_stays_as_it_is() -> None:
    job = stands_for(a_batch_job(), LET_IN)
    over = replace(job.status, execution=ExecutionStatus(result=JobResult.KILLED, ended_at=T0))
    job = replace(job, status=over)

    assert decide(a_batch_job(parallelism=9, notes=STOPPED), job) == ()
    assert decide(None, job) == ()


def test_what_its_job_follows_is_what_it_asks_for_now() -> None:
    waiting = stands_for(a_batch_job(parallelism=2))

    (action,) = decide(a_batch_job({PRIORITY_LABEL: "1"}, parallelism=3), waiting)

    assert isinstance(action, Change)
    changed = action.job.spec
    assert changed.adopted is not None
    assert (changed.adopted.pods, changed.priority) == (3, 1)
    assert action.job.metadata == waiting.metadata


def test_names_are_cut_and_stay_apart() -> None:
    long = "a" * 63
    names = {
        stand_in_name(kind, name, uid)
        for kind in AdoptedKind
        for name in (long, "a.b", "a-b")
        for uid in ("u-1", "u-2")
    }

    # Of one uid there are never two names.
    assert len(names) == 8
    assert max(map(len, names)) <= 52
