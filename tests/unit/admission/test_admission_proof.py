"""Release only on proof: which grants count, whatever is known of their Jobs, and when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.admission.claims.locks import LOCKS
from interlock.admission.claims.proof import grant_of, is_done, is_unheard, kept
from interlock.control.cache import Cache
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, Grant
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import Key
from interlock.resources.tasks import ExecutionStatus, JobResult, TaskState, TaskStatus
from interlock.testing.builders import T0, a_holder, a_job, a_lock

KEY = Key("Job", "default", "job")


def a_state(
    version: int,
    epoch: int = 1,
    *,
    admitted: bool = False,
    over: bool = False,
    uid: str = "mine",
    token: int = 1,
    active: tuple[TaskStatus, ...] = (),
) -> Job:
    phase = AdmissionPhase.ADMITTED if admitted else AdmissionPhase.WAITING
    grants = (Grant(key="db", token=token),) if admitted else ()
    result = JobResult.SUCCEEDED if over else None
    status = JobStatus(
        admission=AdmissionStatus(phase=phase, epoch=epoch, sequence=1, grants=grants),
        execution=ExecutionStatus(result=result, active=active),
    )
    return a_job("job", version=version, status=status, metadata={"uid": uid})


#: Granted in the epoch 1, as the Job was at the version 10.
GRANT = replace(a_holder(a_state(10), epoch=1), uid="mine", job_version=10)
AT_WORK = (TaskStatus(name="job-0-0", index=0, attempt=0, state=TaskState.RUNNING, created_at=T0),)
#: What only somebody writes who may not.
OTHERWISE = a_state(11, admitted=True, token=7)
OTHERWISE_AT_WORK = a_state(11, admitted=True, token=7, active=AT_WORK)


def known(job: Job | None, heard: int = 100, *, is_readable: bool = True) -> Cache[Job]:
    jobs: Cache[Job] = Cache("Job")
    if job is not None:
        jobs.note(job)
    jobs.settle(heard)
    if not is_readable:
        jobs.unreadable.add(KEY)
    return jobs


@pytest.mark.parametrize(
    ("jobs", "done", "unheard"),
    [
        pytest.param(known(a_state(11)), False, False, id="it waits with the grant"),
        pytest.param(known(a_state(11, 2)), True, False, id="it has given it back"),
        pytest.param(known(a_state(9, 0)), False, False, id="known as it was before"),
        pytest.param(known(a_state(11, 0)), True, False, id="it says it was granted nothing yet"),
        pytest.param(known(OTHERWISE), True, False, id="it says it was let in with another"),
        pytest.param(known(OTHERWISE_AT_WORK), False, False, id="it says so, and is at work"),
        pytest.param(
            known(a_state(11, 0, admitted=True, active=AT_WORK)),
            False,
            False,
            id="earlier, at work",
        ),
        pytest.param(known(a_state(11, admitted=True)), False, False, id="it runs"),
        pytest.param(known(a_state(11, admitted=True, over=True)), True, False, id="it is over"),
        pytest.param(known(None, 10), True, True, id="missing, and all was heard"),
        pytest.param(known(None, 9), False, True, id="missing, and not all was heard"),
        pytest.param(known(None, is_readable=False), False, False, id="it cannot be read"),
        pytest.param(known(a_state(12, uid="other")), True, True, id="another of its name"),
        pytest.param(known(a_state(8, uid="other"), 9), False, True, id="one before it"),
    ],
)
def test_a_grant_counts_until_it_is_proven_done(
    jobs: Cache[Job], done: bool, unheard: bool
) -> None:
    assert is_done(GRANT, KEY, jobs) is done
    assert is_unheard(GRANT, KEY, jobs) is unheard


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"deletion_timestamp": T0}, False, id="being deleted"),
        pytest.param({"finalizers": ()}, False, id="without a finalizer"),
    ],
)
def test_what_is_not_over_holds(change: dict[str, Any], expected: bool) -> None:
    runs = a_state(11, admitted=True)
    jobs = known(replace(runs, metadata=replace(runs.metadata, **change)))

    assert is_done(GRANT, KEY, jobs) is expected


def test_a_job_whose_task_is_lost_holds() -> None:
    runs = a_state(11, admitted=True)
    lost = replace(runs, status=replace(runs.status, phase=JobPhase.UNKNOWN))

    assert not is_done(GRANT, KEY, known(lost))


def test_only_the_grant_of_the_present_epoch_of_this_very_job_is_its_own() -> None:
    job = a_state(11, 2)
    former, other = GRANT, replace(GRANT, epoch=2, uid="other")
    present = replace(GRANT, epoch=2, token=5)

    assert grant_of(job, (former, other)) is None
    assert grant_of(job, (former, other, present)) is present


def test_a_record_keeps_those_who_may_be_doing_something_in_their_order() -> None:
    other = replace(GRANT, job="gone", uid="gone", token=2)
    again = replace(GRANT, token=3)
    lock = a_lock(holders=(GRANT, other, again))

    assert kept(LOCKS, lock.key, lock, known(a_state(11))) == (GRANT, again)
    assert kept(LOCKS, lock.key, None, known(None)) == ()


@pytest.mark.parametrize(("heard", "is_kept"), [(49, True), (50, False)])
def test_a_holder_of_a_version_to_come_is_as_old_as_its_record(heard: int, is_kept: bool) -> None:
    """Whoever wrote it was not granted anything: nobody has to wait for that version."""
    forged = replace(GRANT, job_version=10**12)
    lock = a_lock(version=50, holders=(forged,))

    assert kept(LOCKS, lock.key, lock, known(None, heard)) == ((forged,) if is_kept else ())


# One life of a Job, write by write. It waits, gives back, is let in, is evicted and waits again; it
# is let in, ends, goes, and another gets its name.
LIFE: tuple[Job | None, ...] = (
    a_state(1, 0),
    a_state(2, 1),
    a_state(3, 2),
    a_state(4, 2, admitted=True),
    a_state(5, 3),
    a_state(6, 3, admitted=True),
    a_state(7, 3, admitted=True, over=True),
    None,
    a_state(9, 0, uid="other"),
    a_state(10, 0, admitted=True, uid="other"),
)


def view(heard: int, told: int) -> Cache[Job]:
    """What somebody knows who heard all up to one version, and was told of a later one."""
    jobs: Cache[Job] = Cache("Job")
    for version in range(1, max(heard, told) + 1):
        if version > heard and version != told:
            continue
        state = LIFE[version - 1]
        if state is not None:
            jobs.note(state)
        else:
            jobs.drop(KEY, version)
    jobs.settle(heard)
    return jobs


def may_run(version: int, epoch: int) -> bool:
    """Whether the Job may still do something by a grant of this epoch, now or later."""
    return any(
        state is not None
        and state.metadata.uid == "mine"
        and state.status.admission.epoch == epoch
        and state.status.execution.result is None
        for state in LIFE[version - 1 :]
    )


versions = st.integers(1, len(LIFE))


@given(granted_at=versions, now=versions, heard=versions, told=versions)
def test_a_holder_is_dropped_only_on_a_fact_that_cannot_become_untrue(
    granted_at: int, now: int, heard: int, told: int
) -> None:
    job = LIFE[granted_at - 1]
    if job is None or granted_at > now or max(heard, told) > now:
        return
    epoch = job.status.admission.epoch
    grant = replace(GRANT, uid=job.metadata.uid, epoch=epoch, job_version=granted_at)

    if is_done(grant, KEY, view(heard, told)):
        # However old the view was, nothing can come of the grant any more,
        if job.metadata.uid == "mine":
            assert not may_run(now, epoch)
        # and whoever knows more agrees.
        for later in range(max(heard, told), len(LIFE) + 1):
            assert is_done(grant, KEY, view(later, later))
