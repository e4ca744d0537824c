"""What is told of Queues: use against quota, the line, and one reason for which a Job waits."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from interlock.admission.lines import place_of, stands_in_line
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.modes.cli.verbs.queues import gate_of
from interlock.modes.cli.verbs.why import told
from interlock.modes.queue_metrics import QueueMetrics
from interlock.reporting.job_index import JobIndex
from interlock.reporting.lock_queue import BY_LOCK, LineReader, locks_asked_for
from interlock.reporting.queue_lines import QueueAnswer, QueueDetail, QueueReader
from interlock.reporting.queue_places import QueuePlaces
from interlock.reporting.why import Why, explain
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Eviction,
    EvictionReason,
    QuotaGrant,
    Wait,
    WaitReason,
)
from interlock.resources.codec import to_builtins
from interlock.resources.job import Job, JobPhase, JobStatus, Parallelism
from interlock.resources.metadata import Condition, ConditionStatus, Metadata, Resource
from interlock.resources.namespace_selector import NamespaceSelector
from interlock.resources.pods import PodTemplate
from interlock.resources.queue import (
    Queue,
    QueueOrder,
    QueueQuota,
    QueueSpec,
    QuotaHolder,
    QuotaSpec,
    QuotaStatus,
    StopPolicy,
    quota_name,
)
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.tasks import ExecutionStatus, JobResult, TaskState, TaskStatus
from interlock.resources.values.amounts import Amount
from interlock.resources.values.durations import Duration
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_holder, a_job, a_lock, a_request

NOW = T0 + timedelta(minutes=4)
TAKEN = Wait(reason=WaitReason.QUOTA_TAKEN, key="q")


def amounts(**given: int | str) -> dict[str, Amount]:
    return {name: Amount.read(value) for name, value in given.items()}


def a_queue(name: str = "q", *, gpu: int = 8, **spec: Any) -> Queue:
    made = QueueSpec(resources=amounts(gpu=gpu), **spec)
    return Queue(metadata=Metadata(name=name, uid=f"uid-{name}", resource_version="1"), spec=made)


def waiting(name: str, sequence: int, gpu: int = 8, **spec: Any) -> Job:
    spec = {"queue": "q", "resources": amounts(gpu=gpu)} | spec
    status = JobStatus(admission=AdmissionStatus(sequence=sequence, waits=(TAKEN,)))
    return a_job(name, version=sequence, status=status, **spec)


def running(name: str, gpu: int, *, tasks: int = 1, done: str = "", **spec: Any) -> Job:
    grant = QuotaGrant(queue="q", token=1, tasks=tasks, awaits_ready=True)
    status = JobStatus(
        phase=JobPhase.RUNNING,
        admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=1, quota=grant),
        execution=ExecutionStatus(total=tasks, started_at=T0, succeeded=IndexSet.parse(done)),
    )
    spec = {"queue": "q", "resources": amounts(gpu=gpu)} | spec
    if tasks > 1:
        spec["parallelism"] = Parallelism(count=tasks)
    return a_job(name, status=status, **spec)


def a_quota(*holders: Job, name: str = "q", tasks: int | None = None) -> QueueQuota:
    """The record that names these Jobs with what they ask for."""

    def holder(job: Job) -> QuotaHolder:
        grant = job.status.admission.quota
        return QuotaHolder(
            queue=name,
            job=job.metadata.name,
            namespace=job.metadata.namespace,
            uid=job.metadata.uid,
            epoch=job.status.admission.epoch,
            token=1,
            tasks=tasks or (grant.tasks if grant is not None else 1),
            each=job.spec.resources or {},
            granted_at=T0,
        )

    return QueueQuota(
        metadata=Metadata(name=quota_name(name), resource_version="1"),
        spec=QuotaSpec(queue=name),
        status=QuotaStatus(holders=tuple(map(holder, holders)), last_token=1),
    )


class Desk:
    """Caches and lines that were told of some resources, as a server's are."""

    def __init__(self, *resources: Resource, namespace: str = "") -> None:
        self.jobs: Cache[Job] = Cache("Job", {BY_LOCK: locks_asked_for})
        self.caches: dict[str, Cache[Any]] = {
            "Job": self.jobs,
            "Lock": Cache("Lock"),
            "Queue": Cache("Queue"),
            "QueueQuota": Cache("QueueQuota"),
        }
        self.roster = JobIndex()
        for resource in resources:
            self.caches[resource.kind].note(resource)
            self.roster.observe(Change(None, resource))
        queues, quotas = self.caches["Queue"], self.caches["QueueQuota"]
        self.reader = QueueReader(self.jobs, queues, quotas, self.roster.places, namespace)
        self.lines = LineReader(self.jobs, self.caches["Lock"], self.reader.has_part)

    def why(self, job: Job) -> Why:
        view = replace(self.lines.why_view(job), queue=self.reader.view_of(job))
        return explain(view, NOW)

    def short(self, name: str) -> QueueAnswer:
        return next(one for one in self.reader.queues() if one.name == name)

    def detail(self, name: str, limit: int = 20) -> QueueDetail:
        found = self.reader.queue(name, NOW, limit)
        assert found is not None
        return found


def why(job: Job, *others: Resource) -> Why:
    return Desk(job, *others).why(job)


# Why a Job waits


def test_a_waiting_job_tells_what_it_needs_what_is_free_and_who_holds_it() -> None:
    train, first, second = running("train-6", 6), waiting("first", 5, 3), waiting("second", 6, 4)

    answer = why(second, first, train, a_queue(), a_quota(train))

    assert answer.summary == "second is waiting (4 m), place 2 of 2 in queue q"
    (wait,) = answer.waits
    assert wait.message == "queue q has no room: needs gpu 4, free 2; job/train-6 holds gpu 6"
    assert (wait.reason, wait.key, wait.place, wait.of) == ("QuotaTaken", "q", 2, 2)
    assert (wait.needs, wait.free) == ({"gpu": 4}, {"gpu": 2})
    (holder,) = wait.holders
    assert (holder.job, holder.holds) == ("train-6", {"gpu": 6, "tasks": 1})


def test_holders_are_named_with_who_holds_most_first() -> None:
    small, large = running("small", 1), running("large", 5)
    job = waiting("job", 5, 8)

    answer = why(job, small, large, a_queue(), a_quota(small, large))

    (wait,) = answer.waits
    assert wait.message.endswith("free 2; job/large and 1 more hold gpu 6")
    assert [one.job for one in wait.holders] == ["large", "small"]
    lines = told(to_builtins(answer), NOW)
    assert lines[3:] == [
        "  held by   job/large (Running, 4 m): gpu 5, tasks 1",
        "  held by   job/small (Running, 4 m): gpu 1, tasks 1",
    ]


@pytest.mark.parametrize(
    ("places", "words", "named"),
    [
        pytest.param(("team-b",), "a Job of another namespace holds gpu 2", [], id="one"),
        pytest.param(("a", "b"), "2 Jobs of other namespaces hold gpu 4", [], id="two"),
        pytest.param(("a", "default"), "job/h1 and 1 more hold gpu 4", ["h1"], id="and one of its"),
    ],
)
def test_jobs_of_other_namespaces_are_counted_and_not_named(
    places: tuple[str, ...], words: str, named: list[str]
) -> None:
    holders = [running(f"h{n}", 2, namespace=place) for n, place in enumerate(places)]

    (wait,) = why(waiting("job", 5), *holders, a_queue(), a_quota(*holders)).waits

    assert wait.message.endswith(words)
    assert [one.job for one in wait.holders] == named


def test_who_is_before_a_job_in_another_namespace_is_not_named() -> None:
    first = waiting("first", 4, namespace="team-b")
    train = running("train", 2)
    queue = a_queue(order=QueueOrder.STRICT_FIFO)

    (wait,) = why(waiting("job", 5, 1), first, train, queue, a_quota(train)).waits

    assert "a Job of another namespace is before it, which needs gpu 8, free 6" in wait.message


def test_of_many_holders_a_few_are_named() -> None:
    holders = [running(f"j{n}", 1) for n in range(12)]
    answer = why(waiting("job", 5), *holders, a_queue(gpu=12), a_quota(*holders))

    lines = told(to_builtins(answer), NOW)
    assert len(lines) == 3 + 10 + 1
    assert lines[-1].strip() == "and 2 more"


REFUSALS = [
    pytest.param((), "NoSuchQueue", "there is no queue q; make it", id="not there"),
    pytest.param(
        (a_queue(namespace_selector=NamespaceSelector(match_names=("other",))),),
        "QueueNotAllowed",
        "queue q is not for Jobs of namespace default",
        id="not for it",
    ),
    pytest.param(
        (a_queue(stop=StopPolicy.HOLD),),
        "QueueStopped",
        "queue q lets nobody in: its spec.stop says so",
        id="stopped",
    ),
    pytest.param(
        (a_queue(gpu=7),),
        "QuotaTooSmall",
        "it asks for more than queue q has in all (gpu 8 a task)",
        id="never fits",
    ),
]


@pytest.mark.parametrize(("others", "reason", "message"), REFUSALS)
def test_what_is_no_question_of_room_is_told_alone(
    others: tuple[Resource, ...], reason: str, message: str
) -> None:
    (wait,) = why(waiting("job", 5), *others).waits

    assert wait.reason == reason
    assert wait.message.startswith(message)


@pytest.mark.parametrize(
    ("order", "gpu", "message"),
    [
        pytest.param(
            QueueOrder.STRICT_FIFO,
            2,
            "queue q keeps its order: job/first is before it, which needs gpu 8, free 2",
            id="behind one that does not fit",
        ),
        pytest.param(
            QueueOrder.BEST_EFFORT_FIFO,
            2,
            "queue q has room for it: it is let in as soon as its turn is looked at",
            id="may pass it",
        ),
        pytest.param(
            QueueOrder.STRICT_FIFO,
            3,
            "queue q has no room: needs gpu 3, free 2; job/train holds gpu 6",
            id="does not fit itself",
        ),
    ],
)
def test_the_order_of_a_queue_is_told_where_it_decides(
    order: QueueOrder, gpu: int, message: str
) -> None:
    train, first = running("train", 6), waiting("first", 4, 8)
    job = waiting("job", 5, gpu)

    (wait,) = why(job, first, train, a_queue(order=order), a_quota(train)).waits

    assert wait.message == message


def test_who_could_never_be_let_in_holds_up_nobody() -> None:
    huge, job = waiting("huge", 4, 9), waiting("job", 5, 2)

    (wait,) = why(job, huge, a_queue(order=QueueOrder.STRICT_FIFO)).waits

    assert wait.message.startswith("queue q has room for it")


def test_with_how_few_tasks_it_would_start_is_told() -> None:
    train = running("train", 7)
    job = waiting("job", 5, 1, parallelism=Parallelism(count=8), min_parallelism=2)

    (wait,) = why(job, train, a_queue(), a_quota(train)).waits

    assert wait.message.startswith("queue q has no room: needs gpu 2, free 1 (to start with 2);")


def test_a_queue_that_allows_less_now_than_is_held_has_nothing_free() -> None:
    train = running("train", 6)

    desk = Desk(waiting("job", 5, 1), train, a_queue(gpu=4), a_quota(train))

    use = desk.short("q").resources["gpu"]
    assert (use.quota, use.used, use.free) == (4, 6, 0)
    assert "needs gpu 1, free 0" in desk.detail("q").why


GATED = WaitForPodsReady(enable=True, block_admission=True, timeout=Duration(minutes=5))


def let_in(job: Job, ready: int) -> Job:
    """The Job, let in at noon, with so many of its tasks ready."""
    active = tuple(
        TaskStatus(
            index=n,
            attempt=0,
            name=f"t{n}",
            state=TaskState.RUNNING,
            created_at=T0,
            ready=n < ready,
        )
        for n in range(job.status.execution.total)
    )
    admission = replace(job.status.admission, admitted_at=T0)
    execution = replace(job.status.execution, active=active)
    return replace(job, status=replace(job.status, admission=admission, execution=execution))


def test_who_keeps_others_out_until_it_is_ready_is_told() -> None:
    train = let_in(running("train-6", 1, tasks=3), ready=2)
    desk = Desk(waiting("job", 5, 2), train, a_queue(wait_for_pods_ready=GATED), a_quota(train))

    (wait,) = desk.why(waiting("job", 5, 2)).waits

    assert wait.reason == "WaitingForPodsReady"
    assert wait.message == (
        "queue q lets nobody in before job/train-6 is ready (2 of 3 so far);"
        " it is put back at 12:05:00 UTC at the latest"
    )
    assert wait.until == T0 + timedelta(minutes=5)
    (gate,) = desk.short("q").gate
    assert (gate.job, gate.ready, gate.until) == ("train-6", "2 of 3", wait.until)
    item = to_builtins(desk.detail("q"))
    assert gate_of(item).startswith("default/train-6 is not ready (2 of 3), until ")


def test_what_is_lacking_besides_is_told_too() -> None:
    train = let_in(running("train", 6), ready=0)
    queue = a_queue(wait_for_pods_ready=GATED)

    (wait,) = why(waiting("job", 5, 4), train, queue, a_quota(train)).waits

    assert wait.message.endswith("; then needs gpu 4, free 2")
    assert (wait.needs, wait.free) == ({"gpu": 4}, {"gpu": 2})


def test_a_job_of_another_namespace_that_is_not_ready_is_not_named() -> None:
    train = let_in(running("train", 1, namespace="team-b"), ready=0)
    queue = a_queue(wait_for_pods_ready=GATED)

    (wait,) = why(waiting("job", 5, 2), train, queue, a_quota(train)).waits

    assert wait.message.startswith("queue q lets nobody in before a Job of another namespace is")
    assert wait.holders == ()


def test_one_that_is_ready_keeps_nobody_out() -> None:
    train = running("train", 1)
    ready = Condition(
        type="PodsReady",
        status=ConditionStatus.TRUE,
        reason="Started",
        message="",
        last_transition_time=T0,
    )
    train = replace(train, status=replace(train.status, conditions=(ready,)))
    queue = a_queue(wait_for_pods_ready=GATED)

    desk = Desk(waiting("job", 5, 2), train, queue, a_quota(train))

    assert desk.short("q").gate == ()
    assert "has room for it" in desk.detail("q").why


def test_a_holder_that_makes_room_is_told_as_one() -> None:
    train = running("train", 8)
    going = replace(train, status=replace(train.status, phase=JobPhase.EVICTING))

    (wait,) = why(waiting("job", 5, 2), going, a_queue(), a_quota(train)).waits

    assert wait.message.endswith("job/train holds gpu 8, and is being put back")


SUSPENDED = Wait(reason=WaitReason.SUSPENDED)


def test_a_job_that_is_held_back_is_told_of_that_alone() -> None:
    train = running("train", 8)
    job = waiting("job", 5, suspend=True)
    admission = replace(job.status.admission, waits=(SUSPENDED,))
    job = replace(job, status=replace(job.status, admission=admission))

    answer = why(job, train, a_queue(), a_quota(train))

    assert [wait.reason for wait in answer.waits] == ["Suspended"]
    assert answer.summary == "job is waiting (4 m)"


def test_a_lock_comes_first_and_the_queue_only_if_it_would_keep_the_job_too() -> None:
    holder = a_job("holder", status=running("x", 1).status, locks=(a_request(),))
    lock = a_lock(holders=(a_holder(holder, token=3),))
    train, job = running("train", 8), waiting("job", 5, locks=(a_request(),))

    free = why(job, holder, lock, a_queue())
    full = why(job, holder, lock, train, a_queue(), a_quota(train))

    assert [wait.reason for wait in free.waits] == ["LockTaken"]
    assert [wait.reason for wait in full.waits] == ["LockTaken", "QuotaTaken"]


def test_who_waits_for_room_has_no_place_in_front_of_a_lock() -> None:
    holder = a_job("holder", locks=(a_request(),), status=running("x", 1).status)
    first = waiting("first", 3, locks=(a_request(),))
    second = a_job(
        "second",
        version=5,
        status=JobStatus(admission=AdmissionStatus(sequence=5)),
        locks=(a_request(),),
    )
    desk = Desk(first, second, holder, a_lock(holders=(a_holder(holder, token=3),)), a_queue())

    (lock,) = desk.lines.locks("")

    assert lock.waiters == ("second",)


def test_what_pods_request_is_told_under_the_names_of_the_queue() -> None:
    limits = {"nvidia.com/gpu": "4", "cpu": "1"}
    container = {"name": "main", "image": "x", "resources": {"limits": limits}}
    job = waiting("job", 5, resources=None, pod=PodTemplate(spec={"containers": [container]}))
    train = running("train", 6)

    (wait,) = why(job, train, a_queue(), a_quota(train)).waits

    assert wait.message.startswith("queue q has no room: needs gpu 4, free 2;")


# When there will be room


def ends(job: Job, minutes: int) -> Job:
    return replace(job, spec=replace(job.spec, timeout=Duration(minutes=minutes)))


@pytest.mark.parametrize(
    ("limits", "needs", "minutes"),
    [
        pytest.param((10, 20), (4,), 10, id="the first gives back enough"),
        pytest.param((20, 10), (4,), 10, id="whoever ends first"),
        pytest.param((10, 20), (5,), 20, id="both have to"),
        pytest.param((10, 20), (4, 4), 20, id="and for who is before it"),
        pytest.param((10, None), (4,), 10, id="of one it is known"),
        pytest.param((10, None), (5,), None, id="that is not enough"),
        pytest.param((None, None), (4,), None, id="of none"),
        pytest.param((3, 20), (4,), None, id="one that should have ended"),
    ],
)
def test_room_is_told_for_the_moment_when_the_holders_end_at_the_latest(
    limits: tuple[int | None, int | None], needs: tuple[int, ...], minutes: int | None
) -> None:
    held = [running(f"h{n}", 4) for n in range(2)]
    holders = [ends(job, limit) if limit else job for job, limit in zip(held, limits, strict=True)]
    line = [waiting(f"w{n}", 5 + n, gpu) for n, gpu in enumerate(needs)]

    (wait,) = why(line[-1], *line[:-1], *holders, a_queue(), a_quota(*holders)).waits

    assert wait.until == (T0 + timedelta(minutes=minutes) if minutes else None)


# What a Job holds


def test_a_job_that_was_let_in_tells_what_it_holds() -> None:
    train = running("train", 2, tasks=3, done="0")

    answer = why(train, a_queue(), a_quota(train))

    assert ("holds", "of queue q: gpu 4, tasks 2") in answer.details


def test_a_status_alone_proves_nothing() -> None:
    train = running("train", 2)
    starting = replace(train, status=replace(train.status, phase=JobPhase.STARTING))

    answer = why(starting, a_queue(), a_quota())

    assert answer.summary.startswith("train was not let in, whatever its status says")
    assert ("claims", "room in queue q, but its quota does not name this Job") in answer.details


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (EvictionReason.REQUEUED, "requeued"),
        (EvictionReason.QUEUE_STOPPED, "its queue was drained"),
        (EvictionReason.DEACTIVATED, "taken out of its queue"),
    ],
)
def test_why_a_job_was_put_back_is_told(reason: EvictionReason, words: str) -> None:
    job = waiting("job", 5)
    eviction = Eviction(reason=reason, began_at=T0, ended_at=T0)
    admission = replace(job.status.admission, eviction=eviction, evictions=1)
    job = replace(job, status=replace(job.status, admission=admission))

    (told,) = [text for label, text in why(job, a_queue()).details if label == "put back"]

    assert told == f"1 time, last at 12:00:00 UTC, {words}"


# The Queues


def test_a_queue_in_short() -> None:
    train = running("train", 2, tasks=2)
    jobs = [waiting("a", 7, 8, priority=5), waiting("b", 6, 8)]
    younger = replace(
        jobs[0], metadata=replace(jobs[0].metadata, creation_timestamp=T0 + timedelta(minutes=1))
    )

    answer = Desk(younger, jobs[1], train, a_queue(), a_quota(train)).short("q")

    assert to_builtins(answer) == {
        "name": "q",
        "resources": {"gpu": {"quota": 8, "used": 4, "free": 4, "borrowed": 0}},
        "cohort": None,
        "order": "BestEffortFIFO",
        "stop": "None",
        "missing": False,
        "gate": (),
        "namespaces": None,
        "admitted": 1,
        "waiting": 2,
        # The first of the line is not the one that has waited the longest.
        "oldest": "2026-01-05T12:00:00Z",
    }


def test_a_queue_with_who_holds_it_and_its_line() -> None:
    train = ends(running("train", 2, tasks=3, done="0"), 10)
    jobs = [waiting(f"j{n}", 5 + n, 5) for n in range(3)]

    found = Desk(*jobs, train, a_queue(), a_quota(train)).detail("q", limit=2)

    (holder,) = found.holders
    assert (holder.job, holder.tasks, holder.holds) == ("train", 3, {"gpu": 4, "tasks": 2})
    assert holder.ends_by == T0 + timedelta(minutes=10)
    assert [(one.place, one.job, one.needs) for one in found.waiters] == [
        (1, "j0", {"gpu": 5, "tasks": 1}),
        (2, "j1", {"gpu": 5, "tasks": 1}),
    ]
    assert (found.waiting, found.why) == (
        3,
        "queue q has no room: needs gpu 5, free 4; job/train holds gpu 4",
    )


def test_who_was_granted_its_part_waits_no_more() -> None:
    """The record is written first, and that the Job may start a moment later."""
    granted, second, third = waiting("granted", 5, 4), waiting("second", 6), waiting("third", 7)
    desk = Desk(granted, second, third, a_queue(), a_quota(granted))

    found = desk.detail("q", limit=1)

    assert (found.admitted, found.waiting) == (1, 2)
    assert [(one.place, one.job) for one in found.waiters] == [(1, "second")]
    assert found.why.endswith("free 4; job/granted holds gpu 4")
    assert desk.why(third).summary == "third is waiting (4 m), place 2 of 2 in queue q"
    assert desk.why(granted).summary == "granted is waiting (4 m)"
    assert [one.waiting for one in desk.reader.levels()] == [2]


def test_what_is_not_there_is_told_as_far_as_it_matters_to_somebody() -> None:
    train = running("train", 2)
    desk = Desk(waiting("job", 5, queue="nope"), train, a_quota(train))

    assert [(one.name, one.missing, one.admitted, one.waiting) for one in desk.reader.queues()] == [
        ("nope", True, 0, 1),
        ("q", True, 1, 0),
    ]
    assert desk.detail("nope").why.startswith("there is no queue nope")
    assert desk.reader.queue("other", NOW) is None


def test_who_is_over_or_was_put_back_holds_nothing() -> None:
    over, again, there = running("over", 2), running("again", 2), running("there", 2)
    record = a_quota(over, again, there)
    ended = replace(
        over,
        status=replace(over.status, execution=ExecutionStatus(result=JobResult.SUCCEEDED)),
    )
    put_back = replace(again, status=JobStatus(admission=AdmissionStatus(epoch=1, sequence=9)))

    found = Desk(ended, put_back, there, a_queue(), record).detail("q")

    assert [holder.job for holder in found.holders] == ["there"]
    assert found.resources["gpu"].used == 2


def test_of_jobs_that_are_not_known_what_they_were_granted_counts() -> None:
    away = running("away", 3, namespace="team-b")
    record = a_quota(away)

    everywhere, alone = Desk(a_queue(), record), Desk(a_queue(), record, namespace="default")

    assert everywhere.short("q").resources["gpu"].used == 0
    assert alone.short("q").resources["gpu"].used == 3
    (holder,) = alone.detail("q").holders
    assert (holder.job, holder.phase) == ("away", "Gone")


def test_levels_are_told_to_those_who_watch() -> None:
    train = running("train", 2)
    desk = Desk(waiting("job", 5), train, a_queue(), a_queue("idle", gpu=1), a_quota(train))
    registry = CollectorRegistry()
    registry.register(QueueMetrics(desk.reader))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"interlock_queue_{name}", labels)

    assert value("pending_jobs", queue="q") == 1
    assert value("admitted_jobs", queue="q") == 1
    assert value("quota", queue="q", resource="gpu") == 8
    assert value("quota_used", queue="q", resource="gpu") == 2
    assert value("pending_jobs", queue="idle") == 0
    assert value("quota_used", queue="idle", resource="gpu") == 0


def test_about_when_turns_come_is_told_once_a_line_moves() -> None:
    def let_in(name: str, minute: int) -> Job:
        job = running(name, 1)
        at = NOW - timedelta(minutes=minute)
        admission = replace(job.status.admission, admitted_at=at)
        metadata = replace(job.metadata, creation_timestamp=at - timedelta(minutes=5))
        return replace(job, metadata=metadata, status=replace(job.status, admission=admission))

    line = (waiting("first", 5), waiting("second", 6), waiting("large", 7, gpu=9))
    before = [let_in(f"job-{minute}", minute) for minute in (35, 25, 15, 5)]

    moves = Desk(*line, *before, a_queue(), a_quota(*before)).detail("q")
    stands = Desk(*line, *before[1:], a_queue(), a_quota(*before[1:])).detail("q")

    expected = [NOW + timedelta(minutes=5), NOW + timedelta(minutes=15), None]
    assert [one.about for one in moves.waiters] == expected
    assert [one.about for one in stands.waiters] == [None, None, None]


# The lines

NAMES = ("a", "b", "c", "d")


@st.composite
def turns(draw: st.DrawFn) -> list[tuple[str, Job | None]]:
    """Jobs as they come, change and go."""
    found: list[tuple[str, Job | None]] = []
    for version in range(1, draw(st.integers(1, 15))):
        name = draw(st.sampled_from(NAMES))
        if draw(st.integers(0, 4)) == 0:
            found.append((name, None))
            continue
        job = waiting(
            name,
            version,
            queue=draw(st.sampled_from(["q", "p", None])),
            resources=None,
            priority=draw(st.sampled_from([0, 0, 5])),
            suspend=draw(st.booleans()),
            active=draw(st.sampled_from([True, True, False])),
        )
        if draw(st.booleans()):
            job = replace(job, status=running(name, 1).status)
        found.append((name, job))
    return found


@given(turns())
def test_lines_are_those_of_who_waits_however_it_came_to_be(
    told: list[tuple[str, Job | None]],
) -> None:
    places, now = QueuePlaces(), dict[str, Job]()
    for name, job in told:
        if job is None:
            gone = now.pop(name, None)
            places.remove(gone.metadata.uid if gone is not None else "none")
        else:
            now[name] = job
            places.put(job)

        for queue in ("q", "p"):
            line = [
                job
                for job in now.values()
                if job.spec.queue == queue
                and stands_in_line(job)
                and not job.spec.suspend
                and job.spec.active
            ]
            line.sort(key=lambda job: (-job.spec.priority, job.version))
            assert [place.job for place in places.of(queue)] == [job.key for job in line]
            assert [places.place(job) for job in line] == [n + 1 for n in range(len(line))]
            oldest = min(line, key=lambda job: place_of(job).sequence, default=None)
            assert places.oldest(queue) == (oldest.key if oldest is not None else None)
            assert (queue in places.queues()) is bool(line)


def test_a_job_of_no_queue_is_nobody_s() -> None:
    desk = Desk(a_job("job"), a_queue())

    assert desk.reader.view_of(a_job("job")) is None
    assert desk.reader.has_part(a_job("job"))
    assert desk.roster.places.place(a_job("job")) == 0
    assert list(desk.roster.places.queues()) == []


def test_the_time_of_waiting_begins_anew_with_every_return() -> None:
    at = T0 + timedelta(minutes=2)
    job = waiting("job", 5)
    eviction = Eviction(reason=EvictionReason.REQUEUED, began_at=T0, ended_at=at)
    admission = replace(job.status.admission, eviction=eviction, evictions=1)
    job = replace(job, status=replace(job.status, admission=admission))

    found: datetime | None = Desk(job, a_queue()).short("q").oldest

    assert found == at
