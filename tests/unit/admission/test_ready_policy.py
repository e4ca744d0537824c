"""What holds for a Job about being ready in time: the system's word, its Queue's, and its own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.admission.queues.demands import quota_view
from interlock.admission.queues.desk import QueueDesk
from interlock.admission.queues.known import KnownQueues
from interlock.admission.ready_timers import policy_of
from interlock.resources.actions import RecordStatus
from interlock.resources.admission import WaitReason
from interlock.resources.queue import Queue, QuotaStatus, member_of
from interlock.resources.ready_gate import (
    OFF,
    BlockScope,
    ReadyPolicy,
    WaitForPodsReady,
    policy_text,
    read_policy,
)
from interlock.resources.values.durations import Duration
from support.queue_desk import Desk, a_queue, a_record, waits

SYSTEM = WaitForPodsReady(
    enable=True,
    timeout=Duration(minutes=10),
    unscheduled_timeout=Duration(minutes=2),
    block_admission=True,
    block_scope=BlockScope.COHORT,
)
HOLDS = ReadyPolicy(
    is_on=True,
    timeout=timedelta(minutes=10),
    unscheduled_timeout=timedelta(minutes=2),
    blocks=True,
    scope=BlockScope.COHORT,
)


def a_queue_with(policy: WaitForPodsReady | None) -> Queue:
    queue = a_queue()
    return replace(queue, spec=replace(queue.spec, wait_for_pods_ready=policy))


@pytest.mark.parametrize(
    ("system", "queue", "job", "holds"),
    [
        pytest.param(None, None, None, OFF, id="nobody says anything"),
        pytest.param(SYSTEM, None, None, HOLDS, id="the system alone"),
        pytest.param(
            SYSTEM,
            WaitForPodsReady(timeout=Duration(minutes=1)),
            None,
            replace(HOLDS, timeout=timedelta(minutes=1)),
            id="a queue gives one value, and is on by the system's word",
        ),
        pytest.param(
            SYSTEM,
            WaitForPodsReady(timeout=Duration(minutes=1)),
            WaitForPodsReady(timeout=Duration(seconds=5)),
            replace(HOLDS, timeout=timedelta(seconds=5)),
            id="a job beats both",
        ),
        pytest.param(SYSTEM, WaitForPodsReady(enable=False), None, OFF, id="a queue is out of it"),
        pytest.param(SYSTEM, None, WaitForPodsReady(enable=False), OFF, id="a job is out of it"),
        pytest.param(
            WaitForPodsReady(enable=False, timeout=Duration(minutes=3)),
            WaitForPodsReady(enable=True),
            None,
            ReadyPolicy(is_on=True, timeout=timedelta(minutes=3)),
            id="off in the system, on in a queue, with the system's values",
        ),
    ],
)
def test_of_each_value_the_nearest_that_is_given_holds(
    system: WaitForPodsReady | None,
    queue: WaitForPodsReady | None,
    job: WaitForPodsReady | None,
    holds: ReadyPolicy,
) -> None:
    asks = waits("a", 1, wait_for_pods_ready=job)
    assert policy_of(asks, a_queue_with(queue), system) == holds
    assert policy_of(asks, None, system) == OFF, "a Job of no Queue has room anyway"


def known(desk: Desk, system: WaitForPodsReady | None) -> KnownQueues:
    caches = desk.caches
    return KnownQueues(caches["Job"], caches["Queue"], caches["QueueQuota"], system=system)


def test_the_gate_of_the_system_holds_for_a_queue_that_says_nothing() -> None:
    jobs = (waits("a", 1), waits("b", 2))
    desk = Desk(a_queue(), a_record(), *jobs, system=SYSTEM)
    assert desk.grants() == ["ax1"]
    assert desk.grants() == []
    view = quota_view(known(desk, SYSTEM), jobs[1])
    assert view is not None
    assert view.wait.reason is WaitReason.GATE_CLOSED
    assert (view.awaits_ready, view.awaits_places) == (True, True)

    open_to_all = Desk(a_queue(), a_record(), *jobs)
    assert open_to_all.grants() == ["ax1", "bx1"]


def _members(desk: Desk) -> QuotaStatus:
    [action] = desk.look().actions
    assert isinstance(action, RecordStatus)
    assert isinstance(action.status, QuotaStatus)
    return action.status


@pytest.mark.parametrize("told", [SYSTEM, None])
def test_a_record_says_what_holds_in_the_system_and_follows_it(told: Any) -> None:
    """Whoever reads what is stored alone, as the command line does on a cluster, finds it there."""
    desk = Desk(a_queue(), a_record(), system=told)
    desk.write(_members(desk))
    member = member_of(desk.record(), "blue")
    assert member is not None
    assert read_policy(member.ready) == told
    assert not desk.look().actions, "and it is written once"

    # Another start of the control plane, with other settings, and a Queue that nobody edited.
    other = None if told is not None else SYSTEM
    caches = desk.caches
    queues = QueueDesk(caches["Job"], caches["Queue"], caches["QueueQuota"], system=other)
    key = desk.record().key
    assert not queues.decide(key, lambda *_: True, desk.now).actions, "or two would go on for ever"
    job = waits("a", 5)
    for _ in queues.job_changed(None, desk.caches["Job"].note(job) or job, job, ()):
        pass
    [action] = queues.decide(key, lambda *_: True, desk.now).actions
    assert isinstance(action, RecordStatus)
    assert isinstance(action.status, QuotaStatus)
    assert read_policy(action.status.members[0].ready) == other


@pytest.mark.parametrize("text", ["", "{", '{"timeout": 3}', "[]"])
def test_what_cannot_be_read_of_a_record_is_nothing(text: str) -> None:
    assert read_policy(text) is None
    assert policy_text(None) == ""
