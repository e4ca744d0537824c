"""An attempt is let run only while its Job has it on record."""

from __future__ import annotations

import msgspec
from pod_builders import a_pod

from interlock.errors import NotFoundError, UnavailableError
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.kube.pods.models import JobRecord
from interlock.kube.pods.records import Wanted
from interlock.resources.codec import encode
from interlock.resources.job import JobStatus
from interlock.resources.metadata import Key
from interlock.resources.tasks import ExecutionStatus, StopCause, TaskId, TaskState, TaskStatus
from interlock.testing.builders import T0, a_job


def _a_task(attempt: int, cause: StopCause | None = None) -> TaskStatus:
    return TaskStatus(
        name=f"job-0-{attempt}",
        index=0,
        attempt=attempt,
        state=TaskState.STARTING,
        created_at=T0,
        stop_cause=cause,
    )


def _a_record(*active: TaskStatus) -> JobRecord:
    """A Job as the store writes it and launches read it."""
    status = JobStatus(execution=ExecutionStatus(active=active))
    job = a_job("job", metadata={"uid": "uid"}, status=status)
    return msgspec.json.decode(encode(job), type=JobRecord)


class _Records:
    def __init__(self, answer: JobRecord | Exception) -> None:
        self._answer = answer
        self.asked: list[tuple[str, str]] = []

    async def get(self, namespace: str, name: str) -> JobRecord:
        self.asked.append((namespace, name))
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def test_what_is_on_record_is_wanted_and_asked_for_once() -> None:
    records = _Records(_a_record(_a_task(1)))
    wanted = Wanted(records)

    assert run_now(wanted.ask([a_pod(), a_pod()])) == []
    assert wanted.tasks == {TaskId("uid", 0, 1)}
    assert records.asked == [("default", "job")]


def test_what_is_to_stop_is_not_wanted() -> None:
    wanted = Wanted(_Records(_a_record(_a_task(1, StopCause.KILLED), _a_task(2))))

    run_now(wanted.ask([a_pod()]))

    assert wanted.tasks == {TaskId("uid", 0, 2)}


def test_of_a_job_that_is_gone_nothing_is_wanted() -> None:
    wanted = Wanted(_Records(NotFoundError(Key("Job", "default", "job"))))

    assert run_now(wanted.ask([a_pod()])) == []
    assert wanted.tasks == set()


def test_a_record_that_cannot_be_read_lets_nothing_run() -> None:
    away = UnavailableError("the API server does not answer")
    wanted = Wanted(_Records(away))

    assert run_now(wanted.ask([a_pod()])) == [away]
    assert wanted.tasks == set()
