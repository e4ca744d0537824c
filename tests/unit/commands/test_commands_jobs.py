"""Orders to Jobs: what each changes, what it refuses, and in which words."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.commands.change import By, Change, Write, rebased
from interlock.commands.errors import OrderRefusedError, Refusal
from interlock.commands.jobs import (
    Releasing,
    Requeuing,
    Retrying,
    Stopping,
    kill,
    release,
    requeue,
    retry,
    stop,
)
from interlock.commands.suspension import Held, Resuming, Suspending, resume, suspend
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.codec import to_builtins
from interlock.resources.door.checking import problems_of
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import OwnerReference
from interlock.resources.tasks import ExecutionStatus, JobResult, TaskState, TaskStatus
from interlock.resources.values.durations import Duration
from interlock.testing.builders import T0, a_job
from interlock.testing.config_builders import a_job_config
from interlock.testing.controlled_builders import a_controlled

ANN = By("ann", T0)
NOBODY = By("", T0)
LATER = T0 + timedelta(hours=1)
EARLIER = T0 - timedelta(hours=1)
STOPPED = {"interlock.dev/stopped-because": "stopped", "interlock.dev/stopped-by": "ann"}
USER_STOP = {"interlock.dev/suspend-reason": "user-stop"}


def with_status(job: Job, phase: JobPhase, execution: ExecutionStatus) -> Job:
    admission = AdmissionStatus(phase=AdmissionPhase.ADMITTED)
    return replace(job, status=JobStatus(phase=phase, admission=admission, execution=execution))


def over(job: Job) -> Job:
    ended = ExecutionStatus(total=1, started_at=T0, ended_at=T0, result=JobResult.SUCCEEDED)
    return with_status(job, JobPhase.SUCCEEDED, ended)


def unknown(job: Job) -> Job:
    tasks = tuple(
        TaskStatus(name=f"t-{index}", index=index, attempt=1, state=state, created_at=T0)
        for index, state in enumerate((TaskState.UNKNOWN, TaskState.RUNNING, TaskState.UNKNOWN))
    )
    execution = ExecutionStatus(total=3, started_at=T0, active=tasks)
    return with_status(job, JobPhase.UNKNOWN, execution)


def of_controlled(job: Job) -> Job:
    owner = OwnerReference(
        api_version=job.api_version, kind="ControlledJob", name="e", uid="u", controller=True
    )
    return replace(job, metadata=replace(job.metadata, owner_references=(owner,)))


def told_to_stop(job: Job, at: datetime) -> Job:
    return replace(job, spec=replace(job.spec, kill_at=at))


def patch_of(change: Change) -> dict[str, Any]:
    """What a change writes, as a merge patch; empty when it writes nothing."""
    if not change.writes:
        return {}
    (write,) = change.writes
    return write.patch


NOW = "2026-01-05T12:00:00Z"
JOB = a_job("x")


@pytest.mark.parametrize(
    ("job", "by", "patch"),
    [
        pytest.param(
            JOB, ANN, {"spec": {"killAt": NOW}, "metadata": {"annotations": STOPPED}}, id="plain"
        ),
        pytest.param(
            JOB,
            NOBODY,
            {
                "spec": {"killAt": NOW},
                "metadata": {"annotations": {"interlock.dev/stopped-because": "stopped"}},
            },
            id="nobody knows who",
        ),
        pytest.param(
            told_to_stop(JOB, LATER),
            ANN,
            {"spec": {"killAt": NOW}, "metadata": {"annotations": STOPPED}},
            id="earlier than planned",
        ),
        pytest.param(told_to_stop(JOB, T0), ANN, {}, id="told already, and by somebody else"),
        pytest.param(
            told_to_stop(of_controlled(JOB), EARLIER),
            ANN,
            {"metadata": {"annotations": {**STOPPED, **USER_STOP}}},
            id="a person's word about a schedule's stop",
        ),
        pytest.param(over(JOB), ANN, {}, id="over"),
    ],
)
def test_what_stop_changes(job: Job, by: By, patch: dict[str, Any]) -> None:
    assert patch_of(stop(job, Stopping(), by)) == patch


@pytest.mark.parametrize(
    ("job", "told"),
    [
        pytest.param(JOB, "job/x stopping", id="plain"),
        pytest.param(over(JOB), "job/x already succeeded", id="over"),
        pytest.param(
            unknown(JOB),
            "job/x stopping; what became of it is not known: if it is surely gone:"
            " interlock release x --reason …",
            id="unknown",
        ),
        pytest.param(
            with_status(a_job("x"), JobPhase.STUCK, ExecutionStatus(total=1, started_at=T0)),
            "job/x stopping once somebody has seen to it, for it is stuck:"
            " interlock op roll-back | resolve x --reason …",
            id="a stuck one",
        ),
    ],
)
def test_what_stop_tells(job: Job, told: str) -> None:
    assert stop(job, Stopping(), ANN).told == (told,)


def test_a_kill_gives_no_time_also_to_what_is_told_to_stop_already() -> None:
    assert patch_of(kill(JOB, Stopping(reason="runs wild"), ANN)) == {
        "spec": {"killAt": NOW, "gracePeriod": "0s"},
        "metadata": {
            "annotations": {**STOPPED, "interlock.dev/stopped-because": "stopped: runs wild"}
        },
    }
    assert patch_of(kill(told_to_stop(JOB, EARLIER), Stopping(), ANN)) == {
        "spec": {"gracePeriod": "0s"}
    }


def test_a_release_is_about_what_is_unknown_now() -> None:
    assert patch_of(release(unknown(JOB), Releasing(reason="looked"), ANN)) == {
        "metadata": {
            "annotations": {
                "interlock.dev/release": "looked",
                "interlock.dev/released-attempts": "0-1,2-1",
            }
        }
    }


@pytest.mark.parametrize(
    ("job", "reason", "refusal", "hint"),
    [
        pytest.param(JOB, "sure", Refusal.CONFLICT, "interlock stop x", id="it waits"),
        pytest.param(over(JOB), "sure", Refusal.CONFLICT, "holds nothing", id="it is over"),
        pytest.param(unknown(JOB), "  ", Refusal.INVALID, "say why", id="no reason"),
    ],
)
def test_what_release_refuses(job: Job, reason: str, refusal: Refusal, hint: str) -> None:
    with pytest.raises(OrderRefusedError) as refused:
        release(job, Releasing(reason=reason), ANN)

    assert refused.value.refusal is refusal
    assert hint in refused.value.hint


def test_a_retry_is_the_same_job_without_its_moments() -> None:
    old = a_job("n" * 52, metadata={"labels": {"a": "b"}}, priority=2, grace_period=Duration())
    old = replace(
        old,
        spec=replace(
            old.spec,
            kill_at=T0,
            start_after=EARLIER,
            start_by=LATER,
            suspend=True,
            suspend_reason="why",
        ),
    )

    (write,) = retry(old, Retrying(), ANN).writes

    again = write.after
    assert isinstance(again, Job)
    assert write.before is None
    assert again.spec == replace(JOB.spec, priority=2)
    assert again.metadata.labels == {"a": "b"}
    assert again.metadata.annotations == {
        "interlock.dev/retry-of": "n" * 52,
        "interlock.dev/creator": "ann",
    }
    assert problems_of(again) == ()
    assert again.metadata.uid == ""


@pytest.mark.parametrize(
    ("held", "reason", "patch", "told"),
    [
        pytest.param(
            JOB, "why", {"spec": {"suspend": True, "suspendReason": "why"}}, "suspended", id="a Job"
        ),
        pytest.param(over(JOB), "", {}, "already succeeded", id="a Job that is over"),
        pytest.param(a_job_config(), "", {"spec": {"suspend": True}}, "suspended", id="a config"),
        pytest.param(
            a_controlled(suspend=True),
            "why",
            {"metadata": {"annotations": {"interlock.dev/suspend-reason": "why"}}},
            "already suspended",
            id="a reason for what is held already",
        ),
        pytest.param(a_controlled(suspend=True), "", {}, "already suspended", id="held already"),
    ],
)
def test_what_suspend_changes(held: Any, reason: str, patch: dict[str, Any], told: str) -> None:
    change = suspend(held, Suspending(reason=reason), ANN)

    assert patch_of(change) == patch
    assert change.told[0].endswith(f"/{held.metadata.name} {told}")


def test_resume_puts_a_job_into_its_queue_again() -> None:
    (back,) = resume(a_job(queue="training", active=False), Resuming(), ANN).writes
    assert isinstance(back.after, Job)
    assert back.after.spec.active


def test_resume_takes_back_what_suspend_did() -> None:
    helds: tuple[Held, ...] = (JOB, a_job_config(), a_controlled())
    for held in helds:
        (write,) = suspend(held, Suspending(reason="why"), ANN).writes
        assert isinstance(write.after, Held)
        (back,) = resume(write.after, Resuming(), ANN).writes

        assert back.after == held
        assert resume(held, Resuming(), ANN).told[0].endswith(("resumed", "not suspended"))


def test_a_follow_up_goes_on_with_what_is_stored_now() -> None:
    (write,) = stop(JOB, Stopping(), ANN).writes
    moved = replace(
        JOB,
        spec=replace(JOB.spec, priority=7),
        metadata=replace(JOB.metadata, resource_version="99"),
    )

    again = rebased(write, moved)

    assert again is not None
    assert again.before == moved
    assert to_builtins(again.after)["spec"]["killAt"] == NOW
    assert to_builtins(again.after)["spec"]["priority"] == 7


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(None, id="gone"),
        pytest.param(over(JOB), id="over"),
        pytest.param(replace(JOB, metadata=replace(JOB.metadata, uid="other")), id="another"),
    ],
)
def test_nothing_follows_for_what_needs_no_order_any_more(found: Job | None) -> None:
    (write,) = stop(JOB, Stopping(), ANN).writes

    assert rebased(write, found) is None


def test_a_patch_tells_what_changes_and_nothing_else() -> None:
    assert Write(JOB, JOB).patch == {}


def let_in(job: Job, **execution: Any) -> Job:
    return with_status(job, JobPhase.RUNNING, ExecutionStatus(total=1, started_at=T0, **execution))


def test_a_requeue_is_for_the_round_that_the_job_is_in() -> None:
    change = requeue(let_in(JOB, round=2), Requeuing(reason="node 12 is slow"), ANN)

    assert patch_of(change) == {
        "metadata": {
            "annotations": {
                "interlock.dev/requeue": "node 12 is slow",
                "interlock.dev/requeue-round": "2",
                "interlock.dev/requeued-by": "ann",
            }
        }
    }
    assert change.told == ("job/x is being stopped; then waits again, behind others",)


def test_a_requeue_that_was_given_is_not_given_again() -> None:
    job = let_in(JOB)
    ordered = requeue(job, Requeuing(reason="slow"), ANN).writes[0].after
    assert isinstance(ordered, Job)

    for again, told in ((ordered, "is being put back already"), (JOB, "waits already")):
        change = requeue(again, Requeuing(reason="slower"), ANN)
        assert (change.writes, change.told) == ((), (f"job/x {told}",))


@pytest.mark.parametrize(
    ("job", "reason", "refusal", "hint"),
    [
        pytest.param(over(JOB), "slow", Refusal.CONFLICT, "interlock retry x", id="it is over"),
        pytest.param(
            told_to_stop(let_in(JOB), EARLIER), "slow", Refusal.CONFLICT, "what ends", id="it ends"
        ),
        pytest.param(let_in(JOB), " ", Refusal.INVALID, "say why", id="no reason"),
    ],
)
def test_what_requeue_refuses(job: Job, reason: str, refusal: Refusal, hint: str) -> None:
    with pytest.raises(OrderRefusedError) as refused:
        requeue(job, Requeuing(reason=reason), ANN)

    assert refused.value.refusal is refusal
    assert hint in refused.value.hint
