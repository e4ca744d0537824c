"""Whether a Job may start: the order of the rules, and the boundaries of each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.admission.claims.claim import COUNT, ClaimView
from interlock.admission.claims.locks import LOCKS
from interlock.admission.decide import decide_job
from interlock.admission.lines import place_of
from interlock.admission.view import JobView
from interlock.resources.actions import RecordAdmission
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Grant,
    RefusalReason,
    Wait,
    WaitReason,
)
from interlock.resources.job import Job, JobStatus, WhenTaken
from interlock.resources.modes import Mode
from interlock.resources.pods import BatchJobTemplate, PodTemplate
from interlock.resources.process import NoopSpec, ProcessSpec
from interlock.resources.steps import Target
from interlock.testing.builders import T0, a_holder, a_job, a_request

PROCESS = ProcessSpec(command=("true",))
LATER = T0 + timedelta(hours=1)
EARLIER = T0 - timedelta(hours=1)
DB = WaitReason.LOCK_TAKEN


def waiting(**admission: Any) -> JobStatus:
    return JobStatus(admission=AdmissionStatus(sequence=1, **admission))


def claim(
    job: Job, at: int = 0, *, held: int = 0, ahead: int = 0, granted: bool = False
) -> ClaimView:
    """A lock that the Job asks for, with so many holders."""
    ask = LOCKS.asks(job)[at]
    grant = a_holder(job, token=7, epoch=job.status.admission.epoch) if granted else None
    return ClaimView(ask=ask, limits=ask.limits, held={COUNT: held}, ahead=ahead, grant=grant)


def written(view: JobView) -> AdmissionStatus:
    (action,) = decide_job(view, T0).actions
    assert isinstance(action, RecordAdmission)
    return action.admission


def test_a_job_without_conditions_is_let_in_and_keeps_its_place_in_the_order() -> None:
    admission = written(JobView(job=a_job(version=41)))

    assert admission.phase is AdmissionPhase.ADMITTED
    assert (admission.sequence, admission.admitted_at) == (41, T0)


def test_who_is_edited_before_anybody_looks_keeps_the_place_of_its_creation() -> None:
    job = a_job(version=50, metadata={"creation_version": 41})

    assert written(JobView(job=job)).sequence == 41
    assert place_of(job) < place_of(a_job("other", version=42))
    # Who was put back waits behind those who are there by then.
    back = a_job("back", version=50, metadata={"creation_version": 41})
    put_back = AdmissionStatus(epoch=1, evictions=1)
    back = replace(back, status=replace(back.status, admission=put_back))
    assert written(JobView(job=back)).sequence == 50
    # Where the store does not say when it was created, what it says is all there is.
    assert written(JobView(job=a_job(version=50))).sequence == 50


@pytest.mark.parametrize(
    ("spec", "waits"),
    [
        pytest.param({"suspend": True}, (Wait(reason=WaitReason.SUSPENDED),), id="suspended"),
        pytest.param(
            {"start_after": LATER},
            (Wait(reason=WaitReason.NOT_YET_DUE, until=LATER),),
            id="not due",
        ),
        pytest.param(
            {"suspend": True, "start_after": LATER},
            (
                Wait(reason=WaitReason.SUSPENDED),
                Wait(reason=WaitReason.NOT_YET_DUE, until=LATER),
            ),
            id="both are told",
        ),
    ],
)
def test_what_holds_a_job_back_is_written_down(
    spec: dict[str, Any], waits: tuple[Wait, ...]
) -> None:
    assert written(JobView(job=a_job(**spec))).waits == waits


@pytest.mark.parametrize(
    ("spec", "metadata", "reason"),
    [
        pytest.param({"kill_at": T0}, {}, RefusalReason.KILLED_BEFORE_START, id="killed now"),
        pytest.param(
            {"kill_at": EARLIER, "suspend": True},
            {},
            RefusalReason.KILLED_BEFORE_START,
            id="killed while suspended",
        ),
        pytest.param({"noop": NoopSpec(), "process": PROCESS}, {}, RefusalReason.INVALID, id="bad"),
        pytest.param({"start_by": T0}, {}, RefusalReason.START_DEADLINE_PASSED, id="too late"),
        pytest.param(
            {"suspend": True},
            {"deletion_timestamp": T0},
            RefusalReason.DELETED_BEFORE_START,
            id="deleted",
        ),
    ],
)
def test_a_job_that_must_not_start_is_refused(
    spec: dict[str, Any], metadata: dict[str, Any], reason: RefusalReason
) -> None:
    admission = written(JobView(job=a_job(metadata=metadata, **spec)))

    assert admission.phase is AdmissionPhase.REFUSED
    assert (admission.refusal, admission.refused_at) == (reason, T0)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"kill_at": LATER, "suspend": True}, id="a kill to come"),
        pytest.param({"start_by": LATER, "suspend": True}, id="a deadline to come"),
    ],
)
def test_a_moment_to_come_is_a_time_to_look_again(spec: dict[str, Any]) -> None:
    assert decide_job(JobView(job=a_job(**spec)), T0).wake_at == LATER


@pytest.mark.parametrize(
    ("when_taken", "held", "ahead", "expected"),
    [
        pytest.param(WhenTaken.ENQUEUE, 1, 0, AdmissionPhase.WAITING, id="enqueue waits"),
        pytest.param(WhenTaken.ENQUEUE, 0, 1, AdmissionPhase.WAITING, id="others come first"),
        pytest.param(WhenTaken.FORBID, 1, 0, AdmissionPhase.REFUSED, id="forbid is refused"),
        pytest.param(WhenTaken.FORBID, 0, 1, AdmissionPhase.REFUSED, id="forbid behind another"),
        pytest.param(WhenTaken.REPLACE, 1, 0, AdmissionPhase.WAITING, id="replace waits too"),
    ],
)
def test_a_taken_lock(
    when_taken: WhenTaken, held: int, ahead: int, expected: AdmissionPhase
) -> None:
    job = a_job(locks=(a_request(when_taken=when_taken),))

    admission = written(JobView(job=job, claims=(claim(job, held=held, ahead=ahead),)))

    assert admission.phase is expected


def test_a_free_lock_is_left_to_its_own_decision() -> None:
    job = a_job(locks=(a_request(),))

    assert decide_job(JobView(job=job, claims=(claim(job),)), T0).actions == ()


def test_a_forbidden_lock_with_room_for_both_is_not_taken() -> None:
    job = a_job(locks=(a_request(limit=2, when_taken=WhenTaken.FORBID),))

    admission = written(JobView(job=job, claims=(claim(job, ahead=1),)))

    assert admission.phase is AdmissionPhase.WAITING


def test_a_job_with_all_its_locks_is_let_in_with_its_tokens() -> None:
    job = a_job(locks=(a_request(),))

    admission = written(JobView(job=job, claims=(claim(job, held=1, granted=True),)))

    assert admission.phase is AdmissionPhase.ADMITTED
    assert admission.grants == (Grant(key="db", token=7),)


def test_a_job_with_some_of_its_locks_gives_them_back_when_another_is_not_free() -> None:
    job = a_job(locks=(a_request("a"), a_request("b")), status=waiting(epoch=3))
    has, lacks = claim(job, 0, held=1, granted=True), claim(job, 1, held=1)

    admission = written(JobView(job=job, claims=(has, lacks)))

    assert admission.epoch == 4
    assert admission.waits == (Wait(reason=DB, key="b"),)


def test_a_job_keeps_its_locks_while_the_others_are_free_for_it() -> None:
    job = a_job(locks=(a_request("a"), a_request("b")), status=waiting())
    has, may_have = claim(job, 0, held=1, granted=True), claim(job, 1)

    assert decide_job(JobView(job=job, claims=(has, may_have)), T0).actions == ()


def test_a_lock_that_is_not_asked_for_any_more_is_given_back() -> None:
    job = a_job(status=waiting())

    assert written(JobView(job=job, has_stray_grant=True)).epoch == 1


def test_a_suspended_job_gives_its_locks_back() -> None:
    job = a_job(locks=(a_request(),), suspend=True, status=waiting())

    assert written(JobView(job=job, claims=(claim(job, held=1, granted=True),))).epoch == 1


def test_replacing_marks_the_running_and_refuses_the_waiting() -> None:
    job = a_job("new", locks=(a_request(when_taken=WhenTaken.REPLACE),))
    runs = a_job("runs", status=waiting(phase=AdmissionPhase.ADMITTED))
    waits = a_job("waits", status=waiting())

    view = JobView(job=job, claims=(claim(job, held=1, ahead=1),), rivals=(runs, waits))
    orders = [a for a in decide_job(view, T0).actions if isinstance(a, RecordAdmission)]

    told = {order.job.metadata.name: order.admission for order in orders}
    assert told["runs"].replaced_by == "new"
    assert told["runs"].phase is AdmissionPhase.ADMITTED
    assert told["waits"].refusal is RefusalReason.REPLACED
    assert told["new"].phase is AdmissionPhase.WAITING


@pytest.mark.parametrize("phase", [AdmissionPhase.ADMITTED, AdmissionPhase.REFUSED])
def test_a_decision_is_final(phase: AdmissionPhase) -> None:
    job = a_job(kill_at=EARLIER, status=waiting(phase=phase))

    assert decide_job(JobView(job=job), T0).actions == ()


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"suspend": True}, id="suspended"),
        pytest.param({"start_after": LATER}, id="not due"),
        pytest.param({"locks": (a_request(),)}, id="lock taken"),
        pytest.param({"start_after": EARLIER, "locks": (a_request(),)}, id="due"),
    ],
)
def test_nothing_is_written_twice(spec: dict[str, Any]) -> None:
    job = a_job(**spec)
    claims = tuple(claim(job, at, held=1) for at in range(len(job.spec.locks)))
    settled = replace(
        job, status=replace(job.status, admission=written(JobView(job=job, claims=claims)))
    )

    assert decide_job(JobView(job=settled, claims=claims), T0).actions == ()


def test_a_job_that_replaces_others_looks_again_for_more_of_them() -> None:
    job = a_job("new", locks=(a_request(when_taken=WhenTaken.REPLACE),))
    view = JobView(
        job=job, claims=(claim(job, held=1),), rivals=(a_job("waits", status=waiting()),)
    )

    assert decide_job(view, T0).wake_at == T0


CONTAINERS = {"containers": [{"name": "main", "image": "a"}]}
POD = PodTemplate(spec=CONTAINERS)
BATCH_JOB = BatchJobTemplate(spec={"template": {"spec": CONTAINERS | {"restartPolicy": "Never"}}})


@pytest.mark.parametrize(
    ("spec", "mode", "told"),
    [
        pytest.param({"process": PROCESS}, Mode.EMBEDDED, "", id="a process here"),
        pytest.param({"process": PROCESS}, Mode.CLUSTER, "runs no processes", id="one there"),
        pytest.param({"pod": POD}, Mode.CLUSTER, "", id="a pod in a cluster"),
        pytest.param({"pod": POD}, Mode.EMBEDDED, "spec.pod: needs a Kubernetes", id="a pod here"),
        pytest.param({"batch_job": BATCH_JOB}, Mode.CLUSTER, "", id="a batch Job in a cluster"),
        pytest.param(
            {"batch_job": BATCH_JOB}, Mode.EMBEDDED, "spec.batchJob: needs", id="one here"
        ),
        pytest.param({"noop": NoopSpec()}, Mode.CLUSTER, "", id="nothing runs everywhere"),
    ],
)
def test_what_this_installation_cannot_run_is_refused(
    spec: dict[str, Any], mode: Mode, told: str
) -> None:
    admission = written(JobView(job=a_job(**spec), mode=mode))

    assert (admission.refusal is RefusalReason.INVALID) is bool(told)
    assert told in admission.message


def test_a_part_that_would_wait_for_what_waits_for_it_is_refused() -> None:
    """It came into the store past the door, and nobody may have to wait for it."""
    job = a_job("part", target=Target(path="a"), parent="one")
    above = a_job("one", target=Target(path="a"))
    admission = written(JobView(job=job, claims=(claim(job, held=1),), held_above=above))

    assert admission.phase is AdmissionPhase.REFUSED
    assert admission.refusal is RefusalReason.INVALID
    assert "job/one, which it is a part of, is done to a too" in admission.message
