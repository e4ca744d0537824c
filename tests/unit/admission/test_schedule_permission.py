"""A Job that a schedule made starts only once the schedule has written it down."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.admission.claims.claim import COUNT, ClaimView
from interlock.admission.claims.locks import LOCKS
from interlock.admission.decide import BOOKS_EXPECTED_WITHIN, decide_job
from interlock.admission.reconciler import BY_HOLDER, AdmissionReconciler, holder_uids
from interlock.admission.view import JobView
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.resources.actions import RecordAdmission
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    RefusalReason,
    WaitReason,
)
from interlock.resources.job import Job, JobSpec, JobStatus, LockRequest
from interlock.resources.job_config import JobConfig, JobConfigSpec, JobConfigStatus
from interlock.resources.lock import Lock, lock_name
from interlock.resources.metadata import API_VERSION, Key, Metadata, OwnerReference
from interlock.resources.modes import Mode
from interlock.resources.process import NoopSpec
from interlock.resources.schedule import (
    MANUAL_ANNOTATION,
    SCHEDULED_AT_ANNOTATION,
    Books,
    ExpectedJob,
    JobTemplate,
)
from interlock.testing.builders import T0, a_holder, a_job, a_request

DB = Key("Lock", "default", lock_name("db"))


def an_owner(uid: str = "uid-config", kind: str = "JobConfig") -> OwnerReference:
    return OwnerReference(
        api_version=API_VERSION, kind=kind, name="config", uid=uid, controller=True
    )


def a_scheduled_job(name: str = "config-1", **more: Any) -> Job:
    metadata = {
        "owner_references": (an_owner(),),
        "annotations": {SCHEDULED_AT_ANNOTATION: T0.isoformat()},
    }
    return a_job(name, metadata=metadata | more, locks=(a_request(),))


def a_config(*expected: Job, version: int = 1, uid: str = "uid-config") -> JobConfig:
    written = tuple(
        ExpectedJob(name=job.metadata.name, uid=job.metadata.uid, scheduled_at=T0)
        for job in expected
    )
    return JobConfig(
        metadata=Metadata(
            name="config", namespace="default", uid=uid, resource_version=str(version)
        ),
        spec=JobConfigSpec(template=JobTemplate(spec=JobSpec(noop=NoopSpec()))),
        status=JobConfigStatus(books=Books(expected=written)),
    )


class Room:
    """The reconciler with its caches."""

    def __init__(self) -> None:
        self.jobs: Cache[Job] = Cache("Job")
        self.configs: Cache[JobConfig] = Cache("JobConfig")
        locks: Cache[Lock] = Cache("Lock", {BY_HOLDER: holder_uids})
        owners = {"JobConfig": self.configs}
        self.reconciler = AdmissionReconciler(self.jobs, {LOCKS: locks}, Mode.EMBEDDED, owners)

    def put(self, resource: Job | JobConfig) -> list[Key]:
        before: Job | JobConfig | None
        if isinstance(resource, Job):
            before = self.jobs.note(resource)
        else:
            before = self.configs.note(resource)
        return list(self.reconciler.wakes(Change(before, resource)))

    def candidate(self) -> str:
        """Who is next for the lock."""
        found = self.reconciler.view_of_claim(DB).candidate
        return found.job.metadata.name if found is not None else ""

    def is_let_by(self, job: Job) -> bool:
        return self.reconciler.view_of_job(job).in_books


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(None, False, id="its owner is not known"),
        pytest.param(a_config(), False, id="the books do not have it"),
        pytest.param(a_config(a_job("config-1")), True, id="the books have it"),
        pytest.param(
            a_config(a_job("config-1", metadata={"uid": "former"})),
            False,
            id="the books have a former Job of that name",
        ),
        pytest.param(
            a_config(a_job("config-1"), uid="another"), False, id="another owner of that name"
        ),
    ],
)
def test_only_a_job_in_the_books_is_let_by(config: JobConfig | None, expected: bool) -> None:
    room = Room()
    job = a_scheduled_job()
    room.put(job)
    if config is not None:
        room.put(config)

    assert room.is_let_by(job) is expected
    assert room.candidate() == ("config-1" if expected else "")


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(a_job("free", locks=(a_request(),)), id="a Job of no schedule"),
        pytest.param(a_scheduled_job(annotations={}), id="a run on demand"),
        pytest.param(
            a_scheduled_job(annotations={SCHEDULED_AT_ANNOTATION: "x", MANUAL_ANNOTATION: "true"}),
            id="one that a person started",
        ),
        pytest.param(
            a_scheduled_job(owner_references=(replace(an_owner(), kind="Deployment"),)),
            id="an owner that keeps no books",
        ),
    ],
)
def test_others_need_no_books(job: Job) -> None:
    room = Room()
    room.put(job)

    assert room.is_let_by(job)
    assert room.candidate() == job.metadata.name


def test_being_written_down_wakes_the_job_and_puts_it_in_line() -> None:
    room = Room()
    job, other = a_scheduled_job("config-1"), a_scheduled_job("config-2")
    room.put(job)
    room.put(other)
    room.put(a_config(version=2))

    woken = room.put(a_config(other, version=3))

    assert other.key in woken
    assert DB in woken
    assert job.key not in woken
    assert room.candidate() == "config-2"


def test_a_job_waits_for_the_books_without_a_word_at_first() -> None:
    view = JobView(job=a_scheduled_job(), in_books=False)

    decision = decide_job(view, T0 + timedelta(seconds=1))

    assert decision.actions == ()
    assert decision.wake_at == T0 + BOOKS_EXPECTED_WITHIN


def test_a_job_that_is_not_written_down_for_long_says_what_it_waits_for() -> None:
    view = JobView(job=a_scheduled_job(), in_books=False)

    (action,) = decide_job(view, T0 + BOOKS_EXPECTED_WITHIN).actions

    assert isinstance(action, RecordAdmission)
    assert [wait.reason for wait in action.admission.waits] == [WaitReason.NOT_IN_BOOKS]
    status = replace(view.job.status, admission=action.admission)
    settled = replace(view, job=replace(view.job, status=status))
    assert decide_job(settled, T0 + timedelta(hours=1)).actions == ()


@pytest.mark.parametrize(
    ("ahead", "sequence", "is_refused"),
    [
        pytest.param(2, 0, False, id="room for one more"),
        pytest.param(3, 0, True, id="full when it joins"),
        pytest.param(3, 7, False, id="others came before it later"),
    ],
)
def test_a_full_line_refuses_who_joins_it(ahead: int, sequence: int, is_refused: bool) -> None:
    request = LockRequest(key="db", max_waiting=3)
    status = JobStatus(admission=AdmissionStatus(sequence=sequence))
    job = a_job(locks=(request,), status=status)
    (ask,) = LOCKS.asks(job)
    claim = ClaimView(ask=ask, limits=ask.limits, held={COUNT: 1}, ahead=ahead)
    view = JobView(job=job, claims=(claim,))

    (action,) = decide_job(view, T0).actions

    assert isinstance(action, RecordAdmission)
    assert (action.admission.phase is AdmissionPhase.REFUSED) is is_refused
    assert (action.admission.refusal is RefusalReason.QUEUE_FULL) is is_refused


def test_a_grant_of_more_liberal_terms_is_given_back() -> None:
    """A config that was edited asks for less room for the Jobs that wait."""
    request = LockRequest(key="db", limit=2)
    job = a_job(locks=(request,))
    (ask,) = LOCKS.asks(job)
    claim = ClaimView(
        ask=ask,
        limits=ask.limits,
        held={COUNT: 4},
        before={COUNT: 3},
        grant=a_holder(job, token=9),
    )
    view = JobView(job=job, claims=(claim,))

    (action,) = decide_job(view, T0).actions

    assert isinstance(action, RecordAdmission)
    assert action.admission.phase is AdmissionPhase.WAITING
    assert action.admission.epoch == job.status.admission.epoch + 1
