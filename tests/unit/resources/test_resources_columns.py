"""What lists show."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.admission import AdmissionPhase, AdmissionStatus, Wait, WaitReason
from interlock.resources.cluster import Lease, LeaseSpec, Namespace
from interlock.resources.codec import from_builtins
from interlock.resources.describe.columns import ALWAYS
from interlock.resources.job import JobPhase, JobStatus, Parallelism
from interlock.resources.kinds import KINDS, columns_of
from interlock.resources.metadata import (
    Condition,
    ConditionStatus,
    Metadata,
    Order,
    Resource,
    Trouble,
)
from interlock.resources.process import FileProbe, ProcessSpec, ReadinessProbe
from interlock.resources.tasks import (
    EndedTask,
    ExecutionStatus,
    JobResult,
    RetryWait,
    TaskResult,
    TaskState,
    TaskStatus,
)
from interlock.resources.values.indexes import IndexSet
from interlock.resources.words import format_age
from interlock.testing.builders import T0, a_holder, a_job, a_lock, a_request

NOW = T0 + timedelta(minutes=12)


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(0), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=120), "2m"),
        (timedelta(seconds=599), "9m59s"),
        (timedelta(minutes=10), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=59), "7h59m"),
        (timedelta(hours=8), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2), "2d"),
        (timedelta(days=7, hours=23), "7d23h"),
        (timedelta(days=8), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=731), "2y1d"),
        (timedelta(days=3000), "8y"),
    ],
)
def test_ages_in_kubectls_way(age: timedelta, shown: str) -> None:
    assert format_age(age) == shown


def row(resource: Resource) -> dict[str, object]:
    return {column.name: column.value(resource, NOW) for column in columns_of(resource.kind)}


def test_a_job_that_waits() -> None:
    waits = (
        Wait(reason=WaitReason.LOCK_TAKEN, key="db"),
        Wait(reason=WaitReason.NOT_YET_DUE, until=NOW + timedelta(minutes=5)),
    )
    status = JobStatus(admission=AdmissionStatus(waits=waits))
    job = a_job("a", status=status, parallelism=Parallelism(count=50), locks=(a_request("db"),))

    assert row(job) == {
        "Name": "a",
        "Phase": "Queued",
        "Tasks": "0/50",
        "Waits for": "lock db (+1)",
        "Age": "12m",
        "Locks": "db",
        "Queue": "",
        "Started": "",
        "Ended": "",
        "Exit": "",
        "Ready": "",
        "By": "",
        "Message": "",
        "Title": "",
    }


def test_a_wide_list_shows_how_far_a_probed_job_is_from_being_ready() -> None:
    """Of one that is over it says nothing: nobody waits for that any more."""
    task = TaskStatus(name="a-0-0", index=0, attempt=0, state=TaskState.RUNNING, created_at=T0)
    begun = ExecutionStatus(
        total=3, started_at=T0, active=(replace(task, ready=True), replace(task, index=1))
    )
    status = JobStatus(
        phase=JobPhase.RUNNING,
        admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
        execution=begun,
        conditions=(
            Condition(
                type="PodsReady",
                status=ConditionStatus.FALSE,
                reason="WaitForStart",
                last_transition_time=T0,
            ),
        ),
    )
    probe = ReadinessProbe(file=FileProbe(path="up"))
    process = ProcessSpec(command=("serve",), readiness_probe=probe)
    job = a_job("a", status=status, process=process, parallelism=Parallelism(count=3))
    over = replace(begun, active=(), result=JobResult.FAILED)

    assert row(job)["Ready"] == "1/3 WaitForStart"
    assert row(replace(job, status=replace(status, execution=over)))["Ready"] == ""


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"admission": AdmissionStatus(waits=(Wait(reason=WaitReason.SUSPENDED),))}, "suspended"),
        (
            {
                "admission": AdmissionStatus(
                    waits=(Wait(reason=WaitReason.NOT_YET_DUE, until=NOW + timedelta(minutes=5)),)
                )
            },
            "start in 5m",
        ),
        (
            {
                "execution": ExecutionStatus(
                    retrying=(
                        RetryWait(index=0, attempt=1, not_before=NOW + timedelta(seconds=9)),
                        RetryWait(index=1, attempt=1, not_before=NOW + timedelta(seconds=5)),
                    )
                )
            },
            "retry in 5s",
        ),
        ({"trouble": Trouble(room="x", message="", since=NOW, order=Order.LAUNCH)}, "the cluster"),
        ({"trouble": Trouble(room="x", message="", since=NOW, order=Order.STOP)}, "a denied stop"),
        ({"trouble": Trouble(room="x", message="", since=NOW)}, ""),
        ({}, ""),
    ],
    ids=["suspended", "not yet due", "retrying", "no launch", "no stop", "trouble", "nothing"],
)
def test_what_a_job_waits_for(status: dict[str, Any], shown: str) -> None:
    assert row(a_job(status=JobStatus(**status)))["Waits for"] == shown


def test_a_job_that_ended() -> None:
    ended = EndedTask(
        name="a-0-0", index=0, attempt=0, result=TaskResult.FAILED, ended_at=NOW, exit_code=3
    )
    execution = ExecutionStatus(
        total=4,
        started_at=T0,
        ended_at=NOW,
        result=JobResult.FAILED,
        succeeded=IndexSet([0, 1]),
        failed=IndexSet([2]),
        ended=(ended,),
    )
    status = JobStatus(
        phase=JobPhase.FAILED,
        admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
        execution=execution,
    )
    shown = row(a_job("a", status=status))

    assert shown["Phase"] == "Failed"
    assert shown["Tasks"] == "2/4"
    assert shown["Started"] == "2026-01-05T12:00:00Z"
    assert shown["Ended"] == "2026-01-05T12:12:00Z"
    assert shown["Exit"] == "3"


def a_read(kind: str, spec: dict[str, Any], status: dict[str, Any] | None = None) -> Resource:
    created = "2026-01-05T12:00:00Z"
    metadata = {"name": "a", "creationTimestamp": created}
    body = {"kind": kind, "metadata": metadata, "spec": spec} | (
        {"status": status} if status else {}
    )
    read: Resource = from_builtins(body, KINDS[kind].type)
    return read


TEMPLATE: dict[str, Any] = {"spec": {"noop": {}}}


def test_a_config() -> None:
    schedules = [
        {"cron": ["H 2 * * *", "@daily"], "timezone": "Europe/London"},
        {"cron": "0 0 * * *", "timezone": "Europe/London"},
    ]
    status = {
        "state": "Executing",
        "active": 2,
        "queued": 1,
        "lastScheduled": "2026-01-05T02:00:00Z",
        "nextSchedule": "2026-01-06T02:00:00Z",
        "lastFailure": "2026-01-04T02:00:01Z",
        "skipped": 7,
    }

    assert row(a_read("JobConfig", {"template": TEMPLATE, "schedules": schedules}, status)) == {
        "Name": "a",
        "State": "Executing",
        "Active": 2,
        "Queued": 1,
        "Last schedule": "2026-01-05T02:00:00Z",
        "Next schedule": "2026-01-06T02:00:00Z",
        "Age": "12m",
        "Cron": "H 2 * * * (+2)",
        "Timezone": "Europe/London",
        "Last success": "",
        "Last failure": "2026-01-04T02:00:01Z",
        "Skipped": 7,
    }


def test_a_config_without_a_schedule() -> None:
    shown = row(a_read("JobConfig", {"template": TEMPLATE}))

    assert (shown["State"], shown["Cron"], shown["Timezone"]) == ("Ready", "", "")


def test_a_controlled_job() -> None:
    override = {"action": "Hold", "from": "2026-01-05T12:00:00Z", "until": "2026-01-06T12:00:00Z"}
    spec = {
        "jobTemplate": TEMPLATE,
        "timezone": {"name": "Europe/London", "offset": -60},
        "overrides": [override, override | {"action": "Skip"}],
    }
    status = {
        "isRunning": True,
        "shouldBeRunning": True,
        "nextStop": "2026-01-05T17:30:00Z",
        "lastScheduledStartTime": "2026-01-05T09:00:00Z",
        "active": [{"name": "a-1767603600-0", "uid": "u"}],
    }

    assert row(a_read("ControlledJob", spec, status)) == {
        "Name": "a",
        "Running": "true",
        "Should be running": "true",
        "Suspended": "false",
        "Next start": "",
        "Next stop": "2026-01-05T17:30:00Z",
        "Last scheduled start": "2026-01-05T09:00:00Z",
        "Age": "12m",
        "Timezone": "Europe/London-60s",
        "Overrides": "Hold (+1)",
        "Job": "a-1767603600-0",
    }


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ({"days": [{"day": "12-25"}, {"day": "12-26"}]}, "2"),
        (
            {"days": [{"day": "12-25"}], "icalendar": "BEGIN:VEVENT\nEND:VEVENT"},
            "1 (+ 1 iCalendar event)",
        ),
    ],
)
def test_a_calendar(spec: dict[str, Any], shown: str) -> None:
    assert row(a_read("Calendar", spec)) == {"Name": "a", "Days": shown, "Age": "12m"}


def test_a_job_on_its_way_out() -> None:
    job = a_job(metadata={"deletion_timestamp": NOW})

    assert row(job)["Phase"] == "Queued (deleting)"


def test_the_other_kinds() -> None:
    lock = a_lock("db", holders=(a_holder(a_job("x")), a_holder(a_job("y"))), last_token=7)
    shown = row(lock)
    assert (shown["Key"], shown["Holders"], shown["Limit"], shown["Token"]) == ("db", "x,y", 1, 7)
    going = Namespace(metadata=Metadata(name="a", deletion_timestamp=NOW))
    assert row(going) == {"Name": "a", "Status": "Terminating", "Age": "<unknown>"}
    lease = Lease(metadata=Metadata(name="a"), spec=LeaseSpec(holder_identity="me"))
    assert row(lease)["Holder"] == "me"


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_shows_its_name_first(kind: str) -> None:
    columns = columns_of(kind)

    assert columns[0].name == "Name"
    assert "Age" in [column.name for column in columns if column.priority == ALWAYS]
    assert all(column.description for column in columns)
