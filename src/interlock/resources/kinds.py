"""The registry of kinds: one entry feeds the store, the API, the command line, the cluster's
definitions and rights, and the docs.

To add a kind is to write its noun, its checks and its columns, and to register it (CONTRIBUTING
tells the steps). What others make of a kind they make when it is first asked for (`ByKind`), so a
kind that is registered before anything is served, stored or listed is known everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from interlock.findings import Findings
from interlock.resources.calendar import Calendar
from interlock.resources.checks.calendars import calendar_doubts, check_calendar
from interlock.resources.checks.job_changes import check_job_change
from interlock.resources.checks.jobs import check_job
from interlock.resources.checks.schedules import check_controlled_job, check_job_config
from interlock.resources.checks.schedulings import check_scheduling, check_scheduling_change
from interlock.resources.checks.validator import check_rules
from interlock.resources.checks.weekdays import weekday_doubts
from interlock.resources.cluster import Lease, Namespace, Node
from interlock.resources.codec import decoder_for
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.describe import columns
from interlock.resources.describe.columns import Column
from interlock.resources.job import Job, JobSpec
from interlock.resources.job_config import JobConfig
from interlock.resources.lock import Lock, LockStatus
from interlock.resources.metadata import GROUP, VERSION, Resource, Status
from interlock.resources.namespace_selector import check_selector
from interlock.resources.naming import (
    MAX_CONFIG_NAME,
    MAX_CONTROLLED_NAME,
    MAX_JOB_NAME,
    MAX_LABEL,
    MAX_SUBDOMAIN,
    SUBDOMAIN,
    SUBDOMAIN_RULE,
)
from interlock.resources.queue import Queue, QueueQuota, QuotaStatus
from interlock.resources.rules import DnsLabel, Matches
from interlock.resources.scheduling import (
    Scheduling,
    SchedulingClaims,
    SchedulingClaimsStatus,
    SchedulingStatus,
)
from interlock.resources.test_bed import TestBed, TestBedSlots, TestBedSlotsStatus

T = TypeVar("T")


def _named(resource: Resource) -> str:
    return str(resource.key)


def _goes(resource: Resource, _: Status) -> str:
    return f"tell how {resource.key} goes"


class Moves(StrEnum):
    """How `interlock move` takes a kind from a server to a cluster."""

    #: It stays where it is.
    NOT = ""
    #: It does nothing by itself, so one on each side does no harm.
    COPIED = "copied"
    #: It acts on one side at a time; the migration has a plan for it.
    HANDED_OVER = "handed over"


class Kind(Struct, frozen=True, kw_only=True, eq=False):
    """Everything about a kind that is not in its type."""

    type: type[Resource]
    plural: str
    group: str = GROUP
    version: str = VERSION
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    #: Whether the status is written apart from the spec.
    has_status: bool = True
    #: People may read but not write it.
    made_by_system: bool = False
    #: How long a name may be; shorter for kinds whose names are part of other names.
    longest_name: int = MAX_LABEL
    #: Whether a name may have dots.
    dotted_names: bool = False
    #: What a resource must keep to beyond its types.
    check: Callable[[Any, Findings], None] = lambda _, __: None
    #: What a change may not do, given the resource before and after it.
    check_change: Callable[[Any, Any, Findings], None] = lambda _, __, ___: None
    #: What of a good resource may mean something else than its author thinks.
    doubts: Callable[[Any], tuple[str, ...]] = lambda _: ()
    #: The columns of a list, in their order.
    columns: tuple[Column, ...] = (columns.NAME, columns.AGE)
    #: Fields by which an API server can select, beside the name.
    selectable: tuple[str, ...] = ()
    #: Where a kind that runs something says what; empty for one that runs nothing.
    work_path: str = ""
    #: How resources get from a server to a cluster.
    moves: Moves = Moves.NOT
    #: Whether one is held back from deletion, by a finalizer, until nothing of it is left.
    is_held_back: bool = False
    #: Whether one that goes with its namespace must stay for now, because others rely on it.
    is_needed: Callable[[Any], bool] = lambda _: False
    #: How the log and the history name one.
    title: Callable[[Any], str] = _named
    #: What the log and the history say when its status is written.
    status_line: Callable[[Any, Any], str] = _goes

    @property
    def name(self) -> str:
        """The kind's name, as in `kind: Job`."""
        return str(self.type.__struct_config__.tag)

    @property
    def singular(self) -> str:
        """The kind's name as one would say it."""
        return self.name.lower()

    @property
    def api_version(self) -> str:
        """The group and version as written in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_ours(self) -> bool:
        """Whether it is one of Interlock's own kinds, and not one of Kubernetes'."""
        return self.group == GROUP

    @property
    def is_written_by_people(self) -> bool:
        """Whether it is one of our kinds that people define."""
        return self.is_ours and not self.made_by_system

    @property
    def owns(self) -> bool:
        """Whether it owns what is made of it: Jobs, or what a Job runs as."""
        return bool(self.work_path)

    @property
    def name_rule(self) -> Matches:
        """What the names of resources must keep to."""
        if self.dotted_names:
            return Matches(SUBDOMAIN, SUBDOMAIN_RULE, longest=self.longest_name)
        return DnsLabel(self.longest_name)

    def work_in(self, spec: Any) -> JobSpec | None:
        """What a spec says to run, or to have Jobs run; None for a kind that runs nothing."""
        if not self.work_path:
            return None
        for name in _ATTRIBUTES[self.name]:
            spec = getattr(spec, name)
        assert isinstance(spec, JobSpec)
        return spec


#: Every kind, by its name, in the order of discovery.
KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Make a kind known; before anything is served, stored or listed.

    Raises:
        ValueError: One of its names is another kind's.
    """
    words = {kind.name, kind.plural, *kind.short_names}
    for other in KINDS.values():
        if taken := words & {other.name, other.plural, *other.short_names}:
            raise ValueError(f"{kind.name}: {', '.join(sorted(taken))} is a {other.name}")
    KINDS[kind.name] = kind
    return kind


class ByKind(dict[str, T]):
    """Something for each kind, made when it is first asked for."""

    def __init__(self, make: Callable[[Kind], T]) -> None:
        self._make = make

    def __missing__(self, name: str) -> T:
        made = self[name] = self._make(KINDS[name])
        return made


def _attributes(kind: Kind) -> tuple[str, ...]:
    """The fields that lead from a kind's spec to what it runs."""
    names: list[str] = []
    cls: Any = kind.type
    for written in kind.work_path.split("."):
        field = next(f for f in msgspec.structs.fields(cls) if f.encode_name == written)
        names.append(field.name)
        cls = field.type
    return tuple(names[1:])


_ATTRIBUTES = ByKind(_attributes)


def _check_job(job: Job, to: Findings) -> None:
    check_job(job.spec, to)


def _check_config(config: JobConfig, to: Findings) -> None:
    check_job_config(config.spec, _identity(config), to)


def _check_controlled(controlled: ControlledJob, to: Findings) -> None:
    check_controlled_job(controlled.spec, _identity(controlled), to)


def _identity(resource: Resource) -> str:
    """What decides where an `H` falls; good for one is good for all, so a guess will do."""
    return f"{resource.metadata.namespace}/{resource.metadata.name}"


def _check_days(calendar: Calendar, to: Findings) -> None:
    check_calendar(calendar.spec, to)


def _calendar_doubts(calendar: Calendar) -> tuple[str, ...]:
    return calendar_doubts(calendar.spec)


def _check_lock(lock: Lock, to: Findings) -> None:
    check_rules("spec", lock.spec, to)


def _check_lock_change(old: Lock, new: Lock, to: Findings) -> None:
    if old.spec.key != new.spec.key:
        to.add("spec.key", "may not change", new.spec.key)


def _is_held(lock: Lock) -> bool:
    return bool(lock.status.holders)


def _lock_title(lock: Lock) -> str:
    return f"lock {lock.spec.key}"


def _lock_line(lock: Lock, status: LockStatus) -> str:
    holders = ", ".join(holder.job for holder in status.holders)
    return f"lock {lock.spec.key}: {f'held by {holders}' if holders else 'free'}"


def _check_queue(queue: Queue, to: Findings) -> None:
    check_rules("spec", queue.spec, to)
    if queue.spec.namespace_selector is not None:
        check_selector("spec.namespaceSelector", queue.spec.namespace_selector, to)


def _check_quota(quota: QueueQuota, to: Findings) -> None:
    check_rules("spec", quota.spec, to)


def _quota_title(quota: QueueQuota) -> str:
    return f"quota of {_whose(quota)}"


def _whose(quota: QueueQuota) -> str:
    cohort = quota.spec.cohort
    return f"queue {quota.spec.queue}" if cohort is None else f"cohort {cohort}"


def _quota_line(quota: QueueQuota, status: QuotaStatus) -> str:
    before = {holder.token for holder in quota.status.holders}
    new = [holder.job for holder in status.holders if holder.token not in before]
    held = f"{len(status.holders)} of its Jobs hold it"
    return f"{_whose(quota)}: grants {', '.join(new)}" if new else f"quota: {held}"


def _check_bed(bed: TestBed, to: Findings) -> None:
    check_rules("spec", bed.spec, to)


def _check_slots(record: TestBedSlots, to: Findings) -> None:
    check_rules("spec", record.spec, to)


def _are_held(record: TestBedSlots) -> bool:
    return bool(record.status.holders)


def _slots_title(record: TestBedSlots) -> str:
    return f"slots of test bed {record.spec.test_bed}"


def _slots_line(record: TestBedSlots, status: TestBedSlotsStatus) -> str:
    before = {holder.token for holder in record.status.holders}
    new = [holder for holder in status.holders if holder.token not in before]
    if new:
        given = "; ".join(f"{', '.join(one.slots)} to {one.job}" for one in new)
        return f"test bed {record.spec.test_bed}: gives {given}"
    held = sum(len(holder.slots) for holder in status.holders)
    there = sum(place.slots for place in status.places)
    return f"test bed {record.spec.test_bed}: {there} slots, {held} held"


def _plan_title(plan: Scheduling) -> str:
    return f"scheduling {plan.metadata.name}"


def _plan_line(plan: Scheduling, status: SchedulingStatus) -> str:
    over = status.completed + status.failed
    return f"scheduling {plan.metadata.name}: {status.state.value}, {over} of {status.total} over"


def _plan_claims_title(_: SchedulingClaims) -> str:
    return "claims of schedulings"


def _plan_claims_line(_: SchedulingClaims, status: SchedulingClaimsStatus) -> str:
    holders = ", ".join(holder.scheduling for holder in status.holders)
    return f"schedulings that have what they need: {holders or 'none'}"


JOBS = register(
    Kind(
        type=Job,
        plural="jobs",
        short_names=("ijob",),
        categories=("all", "interlock"),
        longest_name=MAX_JOB_NAME,
        check=_check_job,
        check_change=check_job_change,
        columns=columns.JOB_COLUMNS,
        selectable=(".status.phase", ".status.admission.phase", ".spec.suspend"),
        work_path="spec",
        is_held_back=True,
        moves=Moves.HANDED_OVER,
    )
)
JOB_CONFIGS = register(
    Kind(
        type=JobConfig,
        plural="jobconfigs",
        short_names=("jc",),
        categories=("all", "interlock"),
        longest_name=MAX_CONFIG_NAME,
        check=_check_config,
        doubts=weekday_doubts,
        columns=columns.JOB_CONFIG_COLUMNS,
        selectable=(".status.state", ".spec.suspend"),
        work_path="spec.template.spec",
        moves=Moves.HANDED_OVER,
    )
)
CONTROLLED_JOBS = register(
    Kind(
        type=ControlledJob,
        plural="controlledjobs",
        short_names=("ctj",),
        categories=("all", "interlock"),
        longest_name=MAX_CONTROLLED_NAME,
        check=_check_controlled,
        doubts=weekday_doubts,
        columns=columns.CONTROLLED_JOB_COLUMNS,
        selectable=(".status.isRunning", ".status.shouldBeRunning", ".spec.suspend"),
        work_path="spec.jobTemplate.spec",
        moves=Moves.HANDED_OVER,
    )
)
CALENDARS = register(
    Kind(
        type=Calendar,
        plural="calendars",
        short_names=("cal",),
        categories=("interlock",),
        has_status=False,
        check=_check_days,
        doubts=_calendar_doubts,
        columns=columns.CALENDAR_COLUMNS,
        moves=Moves.COPIED,
    )
)
LOCKS = register(
    Kind(
        type=Lock,
        plural="locks",
        categories=("interlock",),
        made_by_system=True,
        check=_check_lock,
        check_change=_check_lock_change,
        columns=columns.LOCK_COLUMNS,
        selectable=(".spec.key",),
        title=_lock_title,
        is_needed=_is_held,
        status_line=_lock_line,
    )
)
QUEUES = register(
    Kind(
        type=Queue,
        plural="queues",
        categories=("interlock",),
        namespaced=False,
        has_status=False,
        check=_check_queue,
        columns=columns.QUEUE_COLUMNS,
        moves=Moves.COPIED,
    )
)
QUOTAS = register(
    Kind(
        type=QueueQuota,
        plural="queuequotas",
        categories=("interlock",),
        namespaced=False,
        made_by_system=True,
        longest_name=MAX_SUBDOMAIN,
        dotted_names=True,
        check=_check_quota,
        columns=columns.QUOTA_COLUMNS,
        title=_quota_title,
        status_line=_quota_line,
    )
)
TEST_BEDS = register(
    Kind(
        type=TestBed,
        plural="testbeds",
        short_names=("tb",),
        categories=("interlock",),
        check=_check_bed,
        columns=columns.TEST_BED_COLUMNS,
        moves=Moves.COPIED,
    )
)
TEST_BED_SLOTS = register(
    Kind(
        type=TestBedSlots,
        plural="testbedslots",
        categories=("interlock",),
        made_by_system=True,
        check=_check_slots,
        columns=columns.TEST_BED_SLOTS_COLUMNS,
        title=_slots_title,
        is_needed=_are_held,
        status_line=_slots_line,
    )
)
SCHEDULINGS = register(
    Kind(
        type=Scheduling,
        plural="schedulings",
        short_names=("sched",),
        categories=("all", "interlock"),
        check=check_scheduling,
        check_change=check_scheduling_change,
        columns=columns.SCHEDULING_COLUMNS,
        selectable=(".status.state", ".spec.testBed"),
        is_held_back=True,
        moves=Moves.COPIED,
        title=_plan_title,
        status_line=_plan_line,
    )
)
SCHEDULING_CLAIMS = register(
    Kind(
        type=SchedulingClaims,
        plural="schedulingclaims",
        categories=("interlock",),
        made_by_system=True,
        columns=columns.SCHEDULING_CLAIMS_COLUMNS,
        title=_plan_claims_title,
        status_line=_plan_claims_line,
    )
)
NAMESPACES = register(
    Kind(
        type=Namespace,
        plural="namespaces",
        group="",
        version="v1",
        short_names=("ns",),
        namespaced=False,
        columns=columns.NAMESPACE_COLUMNS,
        selectable=(".status.phase",),
    )
)
NODES = register(
    Kind(
        type=Node,
        plural="nodes",
        group="",
        version="v1",
        short_names=("no",),
        namespaced=False,
        longest_name=MAX_SUBDOMAIN,
        dotted_names=True,
        columns=columns.NODE_COLUMNS,
    )
)
LEASES = register(
    Kind(
        type=Lease,
        plural="leases",
        group="coordination.k8s.io",
        version="v1",
        has_status=False,
        longest_name=MAX_SUBDOMAIN,
        dotted_names=True,
        columns=columns.LEASE_COLUMNS,
    )
)

#: One decoder per kind, made once.
_DECODERS: ByKind[msgspec.json.Decoder[Any]] = ByKind(lambda kind: decoder_for(kind.type))


def our_kinds() -> Iterator[Kind]:
    """Interlock's own kinds, in the order of discovery."""
    return (kind for kind in KINDS.values() if kind.is_ours)


#: A kind as plain words: its names, its API version, whether it is in namespaces, how it moves.
Row = tuple[str, str, tuple[str, ...], str, bool, str]


def rows() -> tuple[Row, ...]:
    """Every kind as plain words, for those who would rather not load the types."""
    return tuple(
        (
            kind.name,
            kind.plural,
            kind.short_names,
            kind.api_version,
            kind.namespaced,
            kind.moves.value,
        )
        for kind in KINDS.values()
    )


def columns_of(kind: str) -> tuple[Column, ...]:
    """The columns of a kind, those of wide lists included, in their order."""
    return KINDS[kind].columns


def decode(kind: str, data: bytes | str) -> Resource:
    """Read a stored resource of a known kind.

    Raises:
        msgspec.ValidationError: It is not one.
    """
    resource: Resource = _DECODERS[kind].decode(data)
    return resource
