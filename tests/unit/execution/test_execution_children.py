"""How the parts of an operation are counted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.execution.children import Children, counted
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.tasks import ExecutionReason, ExecutionStatus, JobResult
from interlock.testing.builders import T0, a_job


def a_part(phase: JobPhase, *, deleted: bool = False) -> Job:
    results = {JobPhase.SUCCEEDED: JobResult.SUCCEEDED, JobPhase.FAILED: JobResult.FAILED}
    reason = ExecutionReason.DELETED if phase is JobPhase.KILLED else None
    result = JobResult.KILLED if phase is JobPhase.KILLED else results.get(phase)
    job = a_job("part", parent="whole")
    status = JobStatus(
        phase=phase, execution=ExecutionStatus(total=1, result=result, reason=reason)
    )
    going = replace(job.metadata, deletion_timestamp=T0 if deleted else None)
    return replace(job, metadata=going, status=status)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param(a_part(JobPhase.RUNNING), (1, 0, 0), id="under way"),
        pytest.param(a_part(JobPhase.SUCCEEDED), (0, 1, 0), id="succeeded"),
        pytest.param(a_part(JobPhase.FAILED), (0, 0, 1), id="failed"),
        pytest.param(a_part(JobPhase.KILLED), (0, 0, 1), id="killed"),
        pytest.param(a_part(JobPhase.RUNNING, deleted=True), (1, 0, 0), id="deleted, not over"),
        pytest.param(a_part(JobPhase.KILLED, deleted=True), (0, 0, 0), id="ended by deletion"),
        pytest.param(a_part(JobPhase.FAILED, deleted=True), (0, 0, 0), id="deleted when over"),
    ],
)
def test_what_is_deleted_is_waited_for_and_then_counts_for_nothing(
    part: Job, expected: tuple[int, int, int]
) -> None:
    assert counted([part]) == Children(*expected, names=frozenset({"part"}))
