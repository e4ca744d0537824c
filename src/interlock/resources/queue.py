"""A Queue: an ordered line in front of a quota; and a QueueQuota, the record of who has it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec.structs import replace

from interlock.resources.default_queue import queue_asked
from interlock.resources.job import (
    ASKED_BY_ALL,
    INT32,
    QUEUE_NAME,
    RESOURCE_NAMES,
    Job,
    JobSpec,
    TaskCount,
)
from interlock.resources.metadata import Moment, NoStatus, Noun, Resource, Status
from interlock.resources.namespace_selector import NamespaceSelector
from interlock.resources.pod_requests import requests_of_batch_job, requests_of_pod
from interlock.resources.ready_gate import BlockScope, WaitForPodsReady
from interlock.resources.rules import Entries, ExactlyOne, NounRule, OnlyWith
from interlock.resources.transitions import tasks_left
from interlock.resources.values.amounts import Amount
from interlock.resources.variables import task_count

MAX_RESOURCES = 32
TASKS = ASKED_BY_ALL


class QueueOrder(StrEnum):
    """What becomes of the Jobs behind one that does not fit."""

    #: They wait too: nobody starts before those who came first.
    STRICT_FIFO = "StrictFIFO"
    #: Those that fit start.
    BEST_EFFORT_FIFO = "BestEffortFIFO"


class StopPolicy(StrEnum):
    """Whether a Queue lets Jobs in."""

    #: It does.
    NONE = "None"
    #: It lets nobody in; what was let in goes on.
    HOLD = "Hold"
    #: It lets nobody in, and what was let in is put back; operations, which keep their turn, go on.
    HOLD_AND_DRAIN = "HoldAndDrain"


class PreemptionPolicy(StrEnum):
    """Which Jobs are put back for one that finds no room."""

    #: None.
    NEVER = "Never"
    #: Those of a lower priority.
    LOWER_PRIORITY = "LowerPriority"
    #: Those of a lower priority, and those of the same that came later.
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"


class ReclaimPolicy(StrEnum):
    """Whose Jobs are put back, where other Queues of the cohort hold more than is theirs."""

    #: Nobody's.
    NEVER = "Never"
    #: Those of a lower priority.
    LOWER_PRIORITY = "LowerPriority"
    #: Anybody's.
    ANY = "Any"


class BorrowPolicy(StrEnum):
    """Whose Jobs are put back for one for which its Queue has to borrow."""

    #: Nobody's.
    NEVER = "Never"
    #: Those of a lower priority, which themselves run on what was borrowed.
    LOWER_PRIORITY = "LowerPriority"


class BorrowWithinCohort(Noun):
    """Whether Jobs of other Queues are put back for one for which its Queue has to borrow."""

    #: Whose are.
    policy: BorrowPolicy = BorrowPolicy.NEVER
    #: Those of a higher priority than this are let be; by default it is the Job's own that counts.
    max_priority_threshold: Annotated[int, INT32] | None = None


class Preemption(Noun):
    """Who has to make room for whom."""

    #: Which of the Queue's own Jobs are put back for another of its Jobs.
    within_queue: PreemptionPolicy = PreemptionPolicy.NEVER
    #: Which Jobs of other Queues of the cohort are put back, that run on what this Queue has lent
    #: them, for a Job that asks for no more than is this Queue's own.
    reclaim_within_cohort: ReclaimPolicy = ReclaimPolicy.NEVER
    #: The same for a Job for which the Queue has to borrow.
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()


class FairSharing(Noun):
    """How much of what a cohort has to lend a Queue gets beside others that want it too."""

    #: A Queue of weight 2 gets twice as much as one of weight 1; one of weight 0 gets what nobody
    #: else wants.
    weight: Amount = Amount(1000, 1)


Lots = Annotated[dict[str, Amount], Entries(0, MAX_RESOURCES, "resources"), RESOURCE_NAMES]


class QueueSpec(Noun):
    """How much the Jobs of a Queue may take at a time, and in which order they get it."""

    RULES: ClassVar[tuple[NounRule, ...]] = tuple(
        OnlyWith(name, "cohort", expected="is for a Queue of a spec.cohort")
        for name in ("borrowing_limit", "lending_limit", "fair_sharing")
    )

    #: How much of each resource its Jobs may hold together: `cpu`, `memory`, any other name, and
    #: `tasks`, of which every task takes one. Of what pods request only that counts which is named
    #: here, `nvidia.com/gpu` as `gpu` too. A Job that asks by `spec.resources` for another resource
    #: than these and `tasks` is not let in.
    resources: Annotated[
        dict[str, Amount],
        Entries(1, MAX_RESOURCES, "resources", expected=f"expected 1 to {MAX_RESOURCES} resources"),
        RESOURCE_NAMES,
    ]
    #: Queues of one cohort lend each other what they do not use.
    cohort: Annotated[str, QUEUE_NAME] | None = None
    #: How much of a resource it may hold beyond its own; what is not named has no such limit.
    borrowing_limit: Lots | None = None
    #: How much of a resource others may use of its own while it does not; what is not named they
    #: may use all of.
    lending_limit: Lots | None = None
    #: Whether what the cohort has to lend is shared by weight. It is where a Queue of it says so.
    fair_sharing: FairSharing | None = None
    #: Of several Queues of a cohort the one with the higher priority lets in first, before the
    #: priorities of their Jobs are looked at.
    priority: Annotated[int, INT32] = 0
    #: What becomes of the Jobs behind one that does not fit.
    order: QueueOrder = QueueOrder.BEST_EFFORT_FIFO
    #: Whether it lets Jobs in.
    stop: StopPolicy = StopPolicy.NONE
    #: Who has to make room for whom.
    preemption: Preemption = Preemption()
    #: Whether its Jobs have to be ready in time, all their tasks at once.
    wait_for_pods_ready: WaitForPodsReady | None = None
    #: The namespaces whose Jobs may use it; every namespace where it is not given.
    namespace_selector: NamespaceSelector | None = None


class Queue(Resource, tag="Queue", kw_only=True):
    """A line of Jobs in front of a quota. It is of the whole cluster: Jobs name it."""

    spec: QueueSpec
    status: NoStatus = NoStatus()


class QuotaSpec(Noun):
    """Whose quota the record is about."""

    RULES: ClassVar[tuple[NounRule, ...]] = (ExactlyOne("queue", "cohort"),)

    #: The name of the Queue that has the record for itself.
    queue: Annotated[str, QUEUE_NAME] | None = None
    #: The name of the cohort whose Queues share the record.
    cohort: Annotated[str, QUEUE_NAME] | None = None


class Member(Noun):
    """What a Queue allows, as it was when this was written down: grants keep to this."""

    queue: str
    #: The version of the Queue. One that is older is never written over it.
    version: int
    limits: dict[str, Amount] = {}
    #: How much more than that it may hold, where that has a limit, and how much it lends.
    borrowing: dict[str, Amount] | None = None
    lending: dict[str, Amount] | None = None
    order: QueueOrder = QueueOrder.BEST_EFFORT_FIFO
    stop: StopPolicy = StopPolicy.NONE
    #: Whether nobody is let in while somebody who was is not ready, and of whom that is asked.
    blocks: bool = False
    #: What holds for all Queues that do not say otherwise, as the control plane was told: the JSON
    #: of a waitForPodsReady. A text, since an API server bounds what the rules in a list may cost.
    ready: str = ""
    scope: BlockScope = BlockScope.QUEUE
    #: The number of its seat in this record; a lower one than is written here is of the past.
    seat: int = 0
    #: Whether it has left: nothing is granted to its Jobs here any more.
    left: bool = False


class Seat(Noun):
    """In which record a Queue's Jobs are granted their parts; written in the Queue's own record."""

    #: The name of the record, and which of that name.
    record: str
    uid: str = ""
    #: Rises with every move.
    number: int = 0
    #: The version of the Queue for which it was taken; an older one moves it nowhere.
    version: int = 0
    #: The record that it had before: whoever holds a part there is taken along.
    came_from: str = ""


class QuotaHolder(Noun):
    """A Job that was granted a part of the quota, and may still be doing something."""

    queue: str
    job: str
    namespace: str
    uid: str
    #: The Job's epoch for which the grant was made; a grant of an older epoch counts for nothing.
    epoch: int
    #: Rises with every grant of this record.
    token: int
    #: How many tasks at a time.
    tasks: int
    granted_at: Moment
    #: What each of them takes, beside one of `tasks`.
    each: dict[str, Amount] = {}
    #: A version of the store at which the Job was there: one that is missing later is gone.
    job_version: int = 0


class QuotaStatus(Status):
    """Who holds what. Written by the admission room alone, by compare-and-set."""

    members: tuple[Member, ...] = ()
    holders: tuple[QuotaHolder, ...] = ()
    last_token: int = 0
    #: Where a Queue's own record says that its Jobs are granted their parts; here if it does not.
    seat: Seat | None = None


class QueueQuota(Resource, tag="QueueQuota", kw_only=True):
    """The record of a quota: what its Queues allow, and who was granted a part of it."""

    spec: QuotaSpec
    status: QuotaStatus = QuotaStatus()


def quota_name(queue: str) -> str:
    """The name of a Queue's own record."""
    return f"queue.{queue}"


def cohort_name(cohort: str) -> str:
    """The name of the record that the Queues of a cohort share."""
    return f"cohort.{cohort}"


def record_wanted(queue: Queue) -> str:
    """The name of the record in which a Queue's definition wants its Jobs to be granted parts."""
    cohort = queue.spec.cohort
    return quota_name(queue.metadata.name) if cohort is None else cohort_name(cohort)


def records_for(own: QueueQuota | None, queue: str) -> tuple[str, ...]:
    """The names of the records in which Jobs of a Queue may have their parts: its home first.

    `own` is the Queue's own record. While a Queue moves, its Jobs may be in the one that it left.
    """
    seat = own.status.seat if own is not None else None
    if seat is None:
        return (quota_name(queue),)
    found = dict.fromkeys((seat.record, seat.came_from, quota_name(queue)))
    return tuple(name for name in found if name)


def member_of(record: QueueQuota, queue: str) -> Member | None:
    """What a record knows of a Queue."""
    return next((one for one in record.status.members if one.queue == queue), None)


class Demand(Noun):
    """What a Job asks of its Queue.

    A Job of the same uid and generation asks for the same of a Queue that it names as long as a
    round lasts; one that was put back asks for no more tasks than are left of it. Of the default
    Queue it asks as long as there is one, and for nothing before and after that.
    """

    queue: str
    #: How many tasks it wants to run at a time, and with how many it may start.
    tasks: TaskCount
    least: TaskCount
    #: What each of them takes, in thousandths.
    each: dict[str, int] = {}
    #: Whether that is what its pods ask for, of which only that counts which the Queue has.
    is_of_pods: bool = False


def demand_of(job: Job, default: str = "") -> Demand | None:
    """What a Job asks of a Queue; None for one that asks for nothing.

    It is the same as long as a round lasts: what succeeds meanwhile makes the grant count for
    less (`charged`), and the demand smaller once the Job is put back. `default` is the Queue that
    it asks if it names none; empty where there is none.
    """
    spec = job.spec
    queue = queue_asked(spec, default)
    if queue is None:
        return None
    tasks = wanted_at_once(spec, job.status.execution.succeeded_before)
    least = tasks if spec.min_parallelism is None else min(tasks, spec.min_parallelism)
    each, is_of_pods = _asked_by_each(spec)
    return Demand(queue=queue, tasks=tasks, least=least, each=each, is_of_pods=is_of_pods)


def _asked_by_each(spec: JobSpec) -> tuple[dict[str, int], bool]:
    """What each task asks for, in thousandths, and whether it is its pods that ask."""
    if spec.resources is not None:
        return {name: one.milli for name, one in spec.resources.items() if one.milli}, False
    if spec.adopted is not None:
        return {name: one.milli for name, one in spec.adopted.requests.items() if one.milli}, True
    if spec.pod is not None:
        return requests_of_pod(spec.pod), True
    if spec.batch_job is not None:
        return requests_of_batch_job(spec.batch_job), True
    return {}, False


def in_terms_of(queue: QueueSpec, demand: Demand) -> Demand:
    """What a Job asks for, under the names that its Queue has for it.

    What pods ask for by a full name, such as `nvidia.com/gpu`, counts as `gpu` in a Queue that
    names only that.
    """
    if not demand.is_of_pods:
        return demand
    each: dict[str, int] = {}
    for name, amount in demand.each.items():
        known = name if name in queue.resources else name.rpartition("/")[2]
        if known in queue.resources:
            each[known] = each.get(known, 0) + amount
    return replace(demand, each=each)


def wanted_at_once(spec: JobSpec, done: int = 0) -> int:
    """How many tasks the Job would run at a time if there were room for all it may run, of which
    some are done and not run again.
    """
    if spec.steps is not None:
        return min(spec.steps_at_once, len(spec.steps))
    if spec.python is not None:
        return spec.steps_at_once
    if spec.adopted is not None:
        return spec.adopted.pods
    total = max(1, task_count(spec) - done)
    at_once = spec.parallelism.at_once if spec.parallelism is not None else None
    return total if at_once is None else min(total, at_once)


def charged(holder: QuotaHolder, job: Job | None) -> dict[str, int]:
    """What a grant still counts for, in thousandths.

    Tasks that are over for good, which is final within an epoch, count no more. What is not known
    of a Job counts as it was granted.
    """
    tasks = holder.tasks
    if job is not None and job.metadata.uid == holder.uid:
        tasks = min(tasks, tasks_left(job, tasks))
    return taken(tasks, {name: amount.milli for name, amount in holder.each.items()})


def taken(tasks: int, each: dict[str, int]) -> dict[str, int]:
    """What so many tasks take, in thousandths."""
    counted = {name: amount * tasks for name, amount in each.items()}
    counted[TASKS] = tasks * 1000
    return counted


def is_granted(quota: QueueQuota | None, job: Job) -> bool:
    """Whether the record says what a Job's status says: that the Job was granted a part of it.

    Of the two the record is the one that counts.
    """
    grant = job.status.admission.quota
    if quota is None or grant is None:
        return False
    uid, epoch = job.metadata.uid, job.status.admission.epoch
    for holder in reversed(quota.status.holders):
        if holder.token == grant.token and holder.uid == uid and holder.epoch == epoch:
            return True
    return False
