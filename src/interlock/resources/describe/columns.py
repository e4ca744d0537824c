"""Printer columns: what a list shows of each resource, in `kubectl get` and ours."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from interlock.resources.cluster import Lease, Namespace, Node
from interlock.resources.describe import plan_columns as plans
from interlock.resources.describe.schedule_columns import (
    CALENDAR,
    CONFIG,
    CONFIG_WIDE,
    CONTROLLED,
    CONTROLLED_WIDE,
    Pointer,
    Told,
)
from interlock.resources.ends import telling_end
from interlock.resources.job import CREATOR_ANNOTATION, Job
from interlock.resources.lock import Lock
from interlock.resources.metadata import Order, Resource
from interlock.resources.queue import Queue, QueueQuota
from interlock.resources.readiness import pods_ready, ready_words
from interlock.resources.test_bed import TestBed, TestBedSlots
from interlock.resources.transitions import ended_at, has_ended
from interlock.resources.variables import task_count
from interlock.resources.waits import column_words
from interlock.resources.words import format_age

_R = TypeVar("_R", bound=Resource)

#: In every list.
ALWAYS = 0
#: In a wide list only.
WIDE = 1


class Column(NamedTuple):
    """One column of a list."""

    name: str
    #: As OpenAPI calls it: string, integer.
    type: str
    #: ALWAYS or WIDE.
    priority: int
    #: What stands in the column at some moment; the text is ready to be shown.
    value: Callable[[Any, datetime], object]
    description: str = ""
    #: Where a definition points an API server for it.
    at: Pointer = Pointer("")


def _moment(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _age(resource: Resource, now: datetime) -> str:
    created = resource.metadata.creation_timestamp
    return format_age(now - created) if created else "<unknown>"


def _queue_order(queue: Queue) -> str:
    return queue.spec.order.value


def _queue_cohort(queue: Queue) -> str:
    return queue.spec.cohort or ""


def _queue_stop(queue: Queue) -> str:
    return queue.spec.stop.value


def _queue_resources(queue: Queue) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in queue.spec.resources.items())


def _quota_cohort(quota: QueueQuota) -> str:
    return quota.spec.cohort or ""


def _quota_queue(quota: QueueQuota) -> str:
    return quota.spec.queue or ""


def _quota_holders(quota: QueueQuota) -> str:
    return ",".join(holder.job for holder in quota.status.holders)


def _tasks(job: Job, _: datetime) -> str:
    execution = job.status.execution
    return f"{len(execution.succeeded)}/{execution.total or task_count(job.spec)}"


def _phase(job: Job, _: datetime) -> str:
    going = job.is_going and not has_ended(job)
    return f"{job.status.phase.value} (deleting)" if going else job.status.phase.value


def _waits_for(job: Job, now: datetime) -> str:
    """What holds the Job back, in a few words; empty when nothing does."""
    if has_ended(job):
        return ""
    status = job.status
    if status.admission.waits:
        first, more = status.admission.waits[0], len(status.admission.waits) - 1
        return column_words(first, now) + (f" (+{more})" if more else "")
    if status.execution.retrying:
        soonest = min(wait.not_before for wait in status.execution.retrying)
        return f"retry in {format_age(max(soonest - now, timedelta(0)))}"
    if status.trouble is not None and status.trouble.order is not None:
        return _DENIED[status.trouble.order]
    return ""


#: What a Job waits for whose orders are denied.
_DENIED = {Order.LAUNCH: "the cluster", Order.STOP: "a denied stop"}


def _exit(job: Job, _: datetime) -> str:
    """How the attempt ended that says most about the Job: its exit code, or its signal."""
    end = telling_end(job)
    if end is None:
        return ""
    if end.exit_code is not None:
        return str(end.exit_code)
    return f"signal {end.signal}" if end.signal is not None else ""


def plain_column(
    name: str,
    of: Callable[[_R], object],
    description: str,
    at: Pointer,
    *,
    wide: bool = False,
    type: str = "string",
) -> Column:
    """A column that does not depend on the time."""
    shown = WIDE if wide else ALWAYS
    return Column(name, type, shown, lambda one, _: of(one), description, at)


#: The first column of every list.
NAME = plain_column(
    "Name",
    lambda resource: resource.metadata.name,
    "The name, within its namespace.",
    Pointer(".metadata.name"),
)
#: What every list shows of how long something has been there.
AGE = Column(
    "Age",
    "string",
    ALWAYS,
    _age,
    "Time since it was created.",
    Pointer(".metadata.creationTimestamp"),
)


def _job_locks(job: Job) -> str:
    return ",".join(lock.key for lock in job.spec.locks)


def _job_queue(job: Job) -> str:
    return job.spec.queue or ""


def _job_started(job: Job) -> str:
    return _moment(job.status.execution.started_at)


def _job_ended(job: Job) -> str:
    return _moment(ended_at(job))


def _job_by(job: Job) -> str:
    return job.metadata.annotations.get(CREATOR_ANNOTATION, "")


def _job_message(job: Job) -> str:
    return job.status.execution.message or job.status.admission.message


def _job_ready(job: Job) -> str:
    """How many tasks are ready, and where the Job is on its way to that; empty when over."""
    condition = pods_ready(job)
    if condition is None or has_ended(job):
        return ""
    return f"{ready_words(job)} {condition.reason}"


def _job_title(job: Job) -> str:
    return job.spec.title


def _lock_key(lock: Lock) -> str:
    return lock.spec.key


def _lock_holders(lock: Lock) -> str:
    return ",".join(holder.job for holder in lock.status.holders)


def _lock_limit(lock: Lock) -> int:
    return lock.status.limit


def _lock_token(lock: Lock) -> int:
    return lock.status.last_token


def _node_allocatable(node: Node) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(node.status.allocatable.items()))


def _bed_nodes(bed: TestBed) -> str:
    return str(bed.status.nodes)


def _bed_slots(bed: TestBed) -> str:
    return str(bed.status.slots)


def _bed_per_node(bed: TestBed) -> str:
    return str(bed.spec.slots_per_node)


def _bed_problems(bed: TestBed) -> str:
    return ", ".join(one.node for one in bed.status.problems)


def _record_slots(record: TestBedSlots) -> str:
    held = sum(len(holder.slots) for holder in record.status.holders)
    return f"{held}/{sum(place.slots for place in record.status.places)}"


def _record_holders(record: TestBedSlots) -> str:
    return ", ".join(holder.job for holder in record.status.holders)


def _namespace_status(namespace: Namespace) -> str:
    return "Terminating" if namespace.is_going else namespace.status.phase


def _lease_holder(lease: Lease) -> str:
    return lease.spec.holder_identity


def _told(columns: tuple[Told, ...], *, wide: bool = False) -> tuple[Column, ...]:
    """Columns that do not depend on the time; those that count are known by their names."""
    made = (plain_column(name, of, what, at, wide=wide) for name, of, what, at in columns)
    return tuple(one._replace(type="integer") if one.name in _COUNTS else one for one in made)


_COUNTS = ("Active", "Queued", "Skipped", "Nodes", "Per node")

JOB_COLUMNS = (
    NAME,
    Column(
        "Phase",
        "string",
        ALWAYS,
        _phase,
        "Where the Job is in its life.",
        Pointer(".status.phase"),
    ),
    Column(
        "Tasks",
        "string",
        ALWAYS,
        _tasks,
        "Tasks that succeeded, of all tasks.",
        Pointer(".status.execution.succeeded", "Numbers of the tasks that succeeded."),
    ),
    Column(
        "Waits for",
        "string",
        ALWAYS,
        _waits_for,
        "What holds the Job back.",
        Pointer(".status.admission.waits[0].reason", "The first thing it waits for."),
    ),
    AGE,
    plain_column(
        "Locks",
        _job_locks,
        "The locks the Job needs.",
        Pointer(".spec.locks[0].key", "The first lock the Job needs."),
        wide=True,
    ),
    plain_column(
        "Queue",
        _job_queue,
        "The Queue in whose quota it has to find room.",
        Pointer(".spec.queue"),
        wide=True,
    ),
    plain_column(
        "Started",
        _job_started,
        "When its first task was recorded.",
        Pointer(".status.execution.startedAt"),
        wide=True,
    ),
    plain_column(
        "Ended", _job_ended, "When it was over.", Pointer(".status.execution.endedAt"), wide=True
    ),
    Column(
        "Exit",
        "string",
        WIDE,
        _exit,
        "Exit code of the task it failed for, else the newest.",
        Pointer(
            ".status.execution.ended[-1:].exitCode",
            "Exit code of the newest attempt that is over.",
        ),
    ),
    plain_column(
        "Ready",
        _job_ready,
        "Tasks that are ready or done, of as many as have to be, and how far that is.",
        Pointer('.status.conditions[?(@.type=="PodsReady")].reason', "Why it is ready, or not."),
        wide=True,
    ),
    plain_column(
        "By",
        _job_by,
        "Who created it.",
        Pointer(r".metadata.annotations.interlock\.dev/creator"),
        wide=True,
    ),
    plain_column(
        "Message",
        _job_message,
        "Why it ended, or is being stopped.",
        Pointer(".status.execution.message"),
        wide=True,
    ),
    plain_column(
        "Title", _job_title, "The owner's line for people.", Pointer(".spec.title"), wide=True
    ),
)
JOB_CONFIG_COLUMNS = (NAME, *_told(CONFIG), AGE, *_told(CONFIG_WIDE, wide=True))
CONTROLLED_JOB_COLUMNS = (NAME, *_told(CONTROLLED), AGE, *_told(CONTROLLED_WIDE, wide=True))
CALENDAR_COLUMNS = (NAME, *_told(CALENDAR), AGE)
QUEUE_COLUMNS = (
    NAME,
    plain_column(
        "Cohort",
        _queue_cohort,
        "The Queues that lend each other what they do not use.",
        Pointer(".spec.cohort"),
    ),
    plain_column("Order", _queue_order, "In which order it lets Jobs in.", Pointer(".spec.order")),
    plain_column("Stop", _queue_stop, "Whether it lets Jobs in.", Pointer(".spec.stop")),
    plain_column(
        "Resources",
        _queue_resources,
        "What its Jobs may hold together.",
        Pointer(".spec.resources"),
    ),
    AGE,
)
QUOTA_COLUMNS = (
    NAME,
    plain_column("Queue", _quota_queue, "The Queue that it is of.", Pointer(".spec.queue")),
    plain_column(
        "Cohort",
        _quota_cohort,
        "The cohort whose Queues share it.",
        Pointer(".spec.cohort"),
    ),
    plain_column(
        "Holders",
        _quota_holders,
        "The Jobs that were granted a part of it.",
        Pointer(".status.holders[0].job", "The first Job that was granted a part of it."),
    ),
    AGE,
)
LOCK_COLUMNS = (
    NAME,
    plain_column("Key", _lock_key, "The key that Jobs ask for.", Pointer(".spec.key")),
    plain_column(
        "Holders",
        _lock_holders,
        "The Jobs that hold the lock.",
        Pointer(".status.holders[0].job", "The first Job that holds the lock."),
    ),
    plain_column(
        "Limit", _lock_limit, "How many may hold it.", Pointer(".status.limit"), type="integer"
    ),
    plain_column(
        "Token",
        _lock_token,
        "The last fencing token.",
        Pointer(".status.lastToken"),
        type="integer",
    ),
    AGE,
)
SCHEDULING_COLUMNS = (
    NAME,
    plain_column("State", plans.state, "How far it is.", Pointer(".status.state")),
    plain_column("Bed", plans.bed, "Its TestBed.", Pointer(".spec.testBed")),
    plain_column(
        "Jobs", plans.total, "How many Jobs it has.", Pointer(".status.total"), type="integer"
    ),
    plain_column(
        "Completed",
        plans.completed,
        "How many of them did what they were asked to.",
        Pointer(".status.completed"),
        type="integer",
    ),
    plain_column(
        "Failed",
        plans.failed,
        "How many of them are over without that.",
        Pointer(".status.failed"),
        type="integer",
    ),
    AGE,
    plain_column(
        "Waits for",
        plans.waits_for,
        "What it waits for, and who has it.",
        Pointer(".status.waits[0].message", "What it waits for first, and who has it."),
    ),
)
SCHEDULING_CLAIMS_COLUMNS = (
    NAME,
    plain_column(
        "Holders",
        plans.holders,
        "The plans that have what they need.",
        Pointer(".status.holders[0].scheduling", "The first plan that has what it needs."),
    ),
    AGE,
)
NAMESPACE_COLUMNS = (
    NAME,
    plain_column(
        "Status", _namespace_status, "In use or on its way out.", Pointer(".status.phase")
    ),
    AGE,
)
NODE_COLUMNS = (
    NAME,
    plain_column(
        "Allocatable", _node_allocatable, "What there is of it.", Pointer(".status.allocatable")
    ),
    AGE,
)
TEST_BED_COLUMNS = (
    NAME,
    plain_column("Nodes", _bed_nodes, "How many nodes have slots of it.", Pointer(".status.nodes")),
    plain_column("Slots", _bed_slots, "How many slots there are.", Pointer(".status.slots")),
    plain_column(
        "Per node", _bed_per_node, "How many of them on each node.", Pointer(".spec.slotsPerNode")
    ),
    plain_column(
        "Problems",
        _bed_problems,
        "The nodes that cannot have slots.",
        Pointer(".status.problems[0].message", "Why the first such node has no slots."),
    ),
    AGE,
)
TEST_BED_SLOTS_COLUMNS = (
    NAME,
    plain_column(
        "Slots",
        _record_slots,
        "Slots that somebody is in, of all there are.",
        Pointer(".status.places[0].slots", "How many slots there are on the first node."),
    ),
    plain_column(
        "Holders",
        _record_holders,
        "The Jobs that are in them.",
        Pointer(".status.holders[0].job", "The first Job that was granted slots."),
    ),
    AGE,
)
LEASE_COLUMNS = (
    NAME,
    plain_column("Holder", _lease_holder, "Who leads.", Pointer(".spec.holderIdentity")),
    AGE,
)
