"""What is told of being ready in time: which values hold, where they were said, and what lacks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.reporting.job_index import JobIndex
from interlock.reporting.lock_queue import LineReader
from interlock.reporting.queue_lines import QueueDetail, QueueReader
from interlock.reporting.why import explain
from interlock.resources.admission import AdmissionPhase, AdmissionStatus, QuotaGrant
from interlock.resources.codec import to_builtins
from interlock.resources.job import Job, JobPhase, JobStatus, Parallelism
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.placement import PODS_SCHEDULED
from interlock.resources.queue import Member, Queue, QuotaStatus
from interlock.resources.readiness import PODS_READY
from interlock.resources.ready_gate import RequeuingStrategy, WaitForPodsReady, policy_text
from interlock.resources.tasks import ExecutionStatus, TaskState, TaskStatus
from interlock.resources.values.durations import Duration
from interlock.testing.builders import T0
from support.queue_desk import a_queue, a_record, newer, waits

NOW = T0 + timedelta(minutes=1)
SYSTEM = WaitForPodsReady(
    enable=True, timeout=Duration(minutes=30), unscheduled_timeout=Duration(minutes=2)
)


def with_policy(policy: WaitForPodsReady | None) -> Queue:
    queue = a_queue()
    return replace(queue, spec=replace(queue.spec, wait_for_pods_ready=policy))


class Reader:
    """What is told of some resources, as a server's, or as the command line's on a cluster."""

    def __init__(self, *resources: Any, system: WaitForPodsReady | None = None) -> None:
        caches: dict[str, Cache[Any]] = {
            kind: Cache(kind) for kind in ("Job", "Lock", "Queue", "QueueQuota")
        }
        roster = JobIndex()
        for resource in resources:
            caches[resource.kind].note(resource)
            roster.observe(Change(None, resource))
        jobs, queues, quotas = (caches[kind] for kind in ("Job", "Queue", "QueueQuota"))
        self.queues = QueueReader(jobs, queues, quotas, roster.places, "", system)
        self._lines = LineReader(jobs, caches["Lock"], self.queues.has_part)

    def queue(self) -> QueueDetail:
        found = self.queues.queue("blue", NOW)
        assert found is not None
        return found

    def values(self) -> dict[str, tuple[str, str]]:
        held = self.queue().wait_for_pods_ready
        return {one.name: (one.value, one.said_by.value) for one in held}

    def details(self, job: Job) -> dict[str, str]:
        view = replace(self._lines.why_view(job), queue=self.queues.view_of(job))
        return dict(explain(view, NOW).details)


def test_every_value_is_told_with_where_it_was_said() -> None:
    own = WaitForPodsReady(
        timeout=Duration(minutes=1),
        block_admission=True,
        requeuing_strategy=RequeuingStrategy(backoff_limit_count=3),
    )
    reader = Reader(with_policy(own), system=SYSTEM)

    assert reader.values() == {
        "enable": ("true", "System"),
        "timeout": ("1m", "Queue"),
        "unscheduledTimeout": ("2m", "System"),
        "recoveryTimeout": ("-", "Default"),
        "blockAdmission": ("true", "Queue"),
        "blockScope": ("queue", "Default"),
        "requeuingStrategy.timestamp": ("Eviction", "Default"),
        "requeuingStrategy.backoffLimitCount": ("3", "Queue"),
        "requeuingStrategy.backoffBaseSeconds": ("1m", "Default"),
        "requeuingStrategy.backoffMaxSeconds": ("1h", "Default"),
    }
    told = to_builtins(reader.queue())["waitForPodsReady"]
    assert {"name": "timeout", "value": "1m", "saidBy": "Queue"} in told


@pytest.mark.parametrize(
    ("queue", "system"),
    [(None, None), (WaitForPodsReady(enable=False), SYSTEM), (WaitForPodsReady(), None)],
)
def test_nothing_is_told_where_nobody_has_to_be_ready(
    queue: WaitForPodsReady | None, system: WaitForPodsReady | None
) -> None:
    assert Reader(with_policy(queue), system=system).values() == {}


def test_who_has_no_settings_finds_the_system_s_word_in_the_record() -> None:
    record = a_record()
    member = Member(queue="blue", version=1, ready=policy_text(SYSTEM))
    record = replace(record, status=QuotaStatus(members=(member,)))

    assert Reader(with_policy(None), record).values()["timeout"] == ("30m", "System")


def let_in(placed: int) -> Job:
    """A Job of three pods of which so many run, let in at noon."""
    job = waits("train", 1, tasks=3)
    grant = QuotaGrant(queue="blue", token=1, tasks=3, awaits_ready=True, awaits_places=True)
    admission = AdmissionStatus(
        phase=AdmissionPhase.ADMITTED, sequence=1, quota=grant, admitted_at=T0
    )
    active = tuple(
        TaskStatus(
            name=f"t-{at}", index=at, attempt=0, state=TaskState.RUNNING, created_at=T0, ready=False
        )
        for at in range(placed)
    )
    execution = ExecutionStatus(total=3, started_at=T0, active=active)
    lacks = placed < 3
    conditions = (
        Condition(
            type=PODS_READY,
            status=ConditionStatus.FALSE,
            reason="WaitForStart",
            last_transition_time=T0,
        ),
        Condition(
            type=PODS_SCHEDULED,
            status=ConditionStatus.FALSE if lacks else ConditionStatus.TRUE,
            reason="Unscheduled" if lacks else "Placed",
            last_transition_time=T0,
        ),
    )
    status = JobStatus(
        phase=JobPhase.RUNNING, admission=admission, execution=execution, conditions=conditions
    )
    job = newer(job, status)
    return replace(job, spec=replace(job.spec, parallelism=Parallelism(count=3)))


def test_why_tells_how_many_tasks_are_placed_nowhere_and_until_when_that_may_be() -> None:
    job = let_in(1)
    details = Reader(job, with_policy(None), system=SYSTEM).details(job)

    assert details["places"] == "2 of 3 tasks are placed nowhere since 12:00:00 UTC"
    assert details["put back"] == (
        "at 12:02:00 UTC, if not all of these tasks have a place by then (Unscheduled)"
    )


def test_one_whose_tasks_are_slow_to_start_has_its_long_time() -> None:
    job = let_in(3)
    details = Reader(job, with_policy(None), system=SYSTEM).details(job)

    assert "places" not in details
    assert details["put back"] == "at 12:30:00 UTC, if it is not ready by then (WaitForStart)"
