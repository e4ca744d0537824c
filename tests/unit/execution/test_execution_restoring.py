"""After a restore: what runs with the store's knowledge, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from execution_builders import a_report, a_task, an_admitted_job, exited, look, started

from interlock.control.cache import Cache
from interlock.execution.restoring import Findings, find_strangers
from interlock.resources.actions import ForgetTask
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job
from interlock.resources.tasks import JobResult, ReportState, TaskReport, TaskState
from interlock.testing.builders import T0, a_request

LOCKED: dict[str, Any] = {"locks": (a_request(),)}
WAITING = AdmissionStatus(sequence=4)
RUNNING = started(a_task(state=TaskState.RUNNING))


def found(*reports: TaskReport, job: Job | None = None) -> Findings:
    jobs: Cache[Job] = Cache("Job")
    if job is not None:
        jobs.note(job)
    return find_strangers(reports, jobs)


@pytest.mark.parametrize(
    ("job", "report", "is_stranger"),
    [
        pytest.param(None, a_report(), True, id="of no Job that is known"),
        pytest.param(None, a_report(ReportState.ACCEPTED), True, id="about to start"),
        pytest.param(None, exited(), False, id="over"),
        pytest.param(None, a_report(ReportState.UNKNOWN), False, id="lost, and stays so"),
        pytest.param({"execution": RUNNING}, a_report(), False, id="known to run"),
        pytest.param({"execution": RUNNING}, a_report(attempt=1), True, id="a later attempt"),
        pytest.param({"execution": RUNNING}, a_report(uid="other"), True, id="of a namesake"),
        pytest.param({"admission": WAITING}, a_report(), True, id="of a Job that waits"),
        pytest.param(
            {"execution": started(result=JobResult.SUCCEEDED, ended_at=T0)},
            a_report(),
            True,
            id="of a Job that is over",
        ),
    ],
)
def test_what_must_be_gone_before_anything_starts(
    job: dict[str, Any] | None, report: TaskReport, is_stranger: bool
) -> None:
    known = None if job is None else an_admitted_job(**(LOCKED | job))
    strangers, _ = found(report, job=known)

    assert bool(strangers) is is_stranger


def test_each_is_told_to_stop_once_with_the_grace_of_its_job() -> None:
    job = an_admitted_job(admission=WAITING, **LOCKED)

    (stop,) = found(a_report(), job=job).stops
    assert (stop.task, stop.grace_s) == (a_report().id, job.spec.grace_period.total_seconds())
    assert found(a_report(stopped=True), job=job).stops == ()


def test_the_runtime_is_asked_about_what_it_does_not_mention() -> None:
    """Of one that was seen to run; one that was not is launched again, as always."""
    running = an_admitted_job(execution=RUNNING)

    assert [stop.task for stop in found(job=running).stops] == [a_report().id]
    assert found(job=an_admitted_job(execution=started(a_task()))).stops == ()
    assert found(exited(3), job=running) == Findings((), ())


def test_a_job_that_never_starts_leaves_nothing_behind() -> None:
    """It ran before the store was put back; now it is refused, and nobody comes to its attempt."""
    refused = an_admitted_job(admission=AdmissionStatus(phase=AdmissionPhase.REFUSED, sequence=4))

    assert look(refused, exited(0)).actions == (ForgetTask(refused, exited(0).id),)


def test_an_attempt_that_is_known_when_it_is_launched_is_looked_at_again_at_once() -> None:
    """It ran in the days that the store knows nothing of, and nobody will tell of it again."""
    assert look(an_admitted_job(), exited(0)).wake_at == T0
