"""The cycle: who of a whole line is granted a part of a quota, decided on one view.

Why two control planes that both believe they lead cannot overdraw a quota:

- A grant is a compare-and-set on the quota's record, which holds what the Queue allows (as it was
  when that was written down) and everyone who was granted a part. It is made only where all that
  the holders were granted, as far as it is not proven given back, leaves so much room. Whoever
  decided on an older record fails.
- A grant, or a part of it, counts no more on facts alone that cannot become untrue: those of
  `claims/proof.py`, and that tasks of a Job came to their ends, which is final until it is put
  back. So an old view of a Job counts too much, and never too little.
- What a Queue allows is written into the record with the version of the Queue, and one that is
  older is never written over it. Where a Queue allows less than its Jobs hold, nothing is granted
  until enough of them are gone.

Why Jobs never wait in a ring: the record is granted first, and only to a Job whose locks are all
free for it at that moment; a Job with a Queue stands in the line of a lock only while it holds its
part of the quota (`reconciler.py`), and gives that back as soon as a lock is taken. So whoever
waits for another to end holds nothing.

Why nobody is starved: the order is one of priority and creation. Where what comes first does not
fit, in a StrictFIFO line all others wait; in a BestEffortFIFO line those that fit go on, by its
users' choice. One that waits for something other than room is passed over in both.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

from interlock.admission.claims.proof import is_unheard
from interlock.admission.lines import Place, may_be_granted
from interlock.admission.queues.demands import (
    KnownQueues,
    blocks,
    could_ever_fit,
    is_ready,
    job_of,
    limits_of,
    most_tasks,
)
from interlock.admission.queues.lines import QueueLines, Shape
from interlock.admission.queues.preemption import MOST_VICTIMS, Holding, coming_free, victims_for
from interlock.resources.actions import (
    CreateResource,
    Decision,
    DeleteResource,
    RecordAdmission,
    RecordStatus,
)
from interlock.resources.admission import AdmissionPhase, Eviction, EvictionReason
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Metadata
from interlock.resources.queue import (
    TASKS,
    Demand,
    Member,
    PreemptionPolicy,
    Queue,
    QueueOrder,
    QueueQuota,
    QuotaHolder,
    QuotaSpec,
    QuotaStatus,
    StopPolicy,
    charged,
    in_terms_of,
    quota_name,
    taken,
)
from interlock.resources.transitions import ended_at
from interlock.resources.values.amounts import Amount

#: So many Jobs are granted a part in one write; the rest in the next.
MOST_GRANTS = 200
#: Those who are over are taken off the record with the next grant, or after this time.
KEPT_ON_RECORD = timedelta(seconds=1)
#: What was not heard yet of a Job that holds a part is heard by then, or listened for again.
LISTENS_FOR = timedelta(seconds=5)

#: Whether the locks of a Job are free for it, beside what this cycle has promised already.
WayIsClear = Callable[[Job, Mapping[Key, int]], bool]


class Part(Struct, frozen=True):
    """What a Job is to be granted."""

    job: Job
    demand: Demand
    tasks: int


class Victim(Struct, frozen=True):
    """A Job that is to be put back, so that another finds room."""

    job: Job
    makes_room_for: Job


class QuotaRecordView(Struct, frozen=True, kw_only=True):
    """One Queue: what it allows, its record, who of its holders counts, and who is next."""

    name: str
    queue: Queue | None
    record: QueueQuota | None
    #: Holders that may still be doing something. All others are proven not to.
    kept: tuple[QuotaHolder, ...] = ()
    #: When the first of those who are proven to hold nothing was over, if that is known.
    over_since: datetime | None = None
    #: Who is next, in order, with as much as there is room for.
    parts: tuple[Part, ...] = ()
    #: Who has to make room for somebody who comes first, and for whom.
    victims: tuple[Victim, ...] = ()
    #: Whether anybody waits.
    is_wanted: bool = False
    #: Whether the Job of a holder is not found, and not all about Jobs was heard up to its grant.
    is_unheard: bool = False


def view_of(
    known: KnownQueues, lines: QueueLines, name: str, way_is_clear: WayIsClear
) -> QuotaRecordView:
    """All that a decision about a quota depends on."""
    queue, record = known.queue(name), known.quota(name)
    holders = record.status.holders if record is not None else ()
    jobs = known.jobs
    kept = tuple(h for h in holders if not known.is_done(h))
    cycle = None
    if queue is not None and record is not None and _lets_in(queue, record):
        cycle = _Cycle(known, lines, queue, kept, way_is_clear)
        cycle.run()
    over = [ended_at(job) for h in holders if h not in kept and (job := jobs.get(job_of(h)))]
    return QuotaRecordView(
        name=name,
        queue=queue,
        record=record,
        kept=kept,
        over_since=min((at for at in over if at is not None), default=None),
        parts=tuple(cycle.parts) if cycle is not None else (),
        victims=tuple(cycle.victims) if cycle is not None else (),
        is_wanted=bool(lines.shapes(name)),
        is_unheard=any(is_unheard(h, job_of(h), jobs) for h in kept),
    )


class _Cycle:
    """One look at a line: grants as much as there is, in the order of the line.

    What is free now is not all that counts. A Job for which others are put back has what they
    hold as good as granted: whoever comes after it may have what is left beside.
    """

    def __init__(
        self,
        known: KnownQueues,
        lines: QueueLines,
        queue: Queue,
        kept: tuple[QuotaHolder, ...],
        way_is_clear: WayIsClear,
    ) -> None:
        self._known = known
        self._lines = lines
        self._queue = queue
        self._way_is_clear = way_is_clear
        self._limits = limits_of(queue)
        self._policy = queue.spec.preemption.within_queue
        self._granted = {(holder.uid, holder.epoch) for holder in kept}
        self._promised: dict[Key, int] = {}
        self._holdings: list[Holding] = []
        counted = []
        for holder in kept:
            job = known.jobs.get(job_of(holder))
            counted.append(charged(holder, job))
            if job is not None and job.metadata.uid == holder.uid:
                self._holdings.append(Holding(job, holder, counted[-1]))
        self._free = room(self._limits, counted)
        self._most = MOST_GRANTS
        if blocks(queue):
            # One at a time, and the next when that one is ready.
            is_clear = all(is_ready(known.jobs.get(job_of(holder)), holder) for holder in kept)
            self._most = 1 if is_clear else 0
        #: What is free once all are gone who are being put back.
        self._later = dict(self._free)
        if self._policy is not PreemptionPolicy.NEVER:
            for name, amount in coming_free(self._holdings).items():
                if name in self._later:
                    self._later[name] += amount
        self.parts: list[Part] = []
        self.victims: list[Victim] = []

    def run(self) -> None:
        """Go through the line."""
        shapes = self._lines.shapes(self._queue.metadata.name)
        heads = [
            (places[0], 0, shape)
            for shape, places in shapes.items()
            if self._known.serves(self._queue, shape.namespace)
        ]
        heapq.heapify(heads)
        while heads and len(self.parts) < self._most and len(self.victims) < MOST_VICTIMS:
            if self._is_full:
                return
            place, at, shape = heads[0]
            match self._look(place, shape):
                case _Next.LINE_IS_HELD_UP:
                    return
                case _Next.NONE_ALIKE:
                    heapq.heappop(heads)
                case _Next.ALIKE if at + 1 < len(shapes[shape]):
                    heapq.heapreplace(heads, (shapes[shape][at + 1], at + 1, shape))
                case _Next.ALIKE:
                    heapq.heappop(heads)

    def _look(self, place: Place, shape: Shape) -> _Next:
        job = self._known.jobs.get(place.job)
        if job is None or (job.metadata.uid, job.status.admission.epoch) in self._granted:
            return _Next.ALIKE
        if not may_be_granted(job):
            return _Next.ALIKE
        demand = Demand(
            queue=self._queue.metadata.name,
            tasks=shape.tasks,
            least=shape.least,
            each=dict(shape.each),
            is_of_pods=shape.is_of_pods,
        )
        demand = in_terms_of(self._queue.spec, demand)
        tasks = most_tasks(demand.each, demand.tasks, self._free)
        if self._later != self._free:
            tasks = min(tasks, most_tasks(demand.each, demand.tasks, self._later))
        if not could_ever_fit(demand, self._limits):
            return _Next.NONE_ALIKE
        if (tasks >= demand.least or self._may_preempt) and not self._way_is_clear(
            job, self._promised
        ):
            # What keeps the first of alike Jobs waiting keeps those behind it waiting too.
            return _Next.NONE_ALIKE
        if tasks < demand.tasks and self._makes_room(job, place, demand, demand.tasks):
            return self._held_up(_Next.ALIKE)
        if tasks >= demand.least:
            self._grant(job, demand, tasks, shape)
            return _Next.ALIKE
        if self._makes_room(job, place, demand, demand.least):
            return self._held_up(_Next.ALIKE)
        return self._held_up(_Next.NONE_ALIKE)

    @property
    def _is_full(self) -> bool:
        """Whether there is no room for a single task more, whatever else it asks for."""
        return not self._may_preempt and self._free.get(TASKS, 1000) < 1000

    @property
    def _may_preempt(self) -> bool:
        return self._policy is not PreemptionPolicy.NEVER

    def _held_up(self, other: _Next) -> _Next:
        strict = self._queue.spec.order is QueueOrder.STRICT_FIFO
        return _Next.LINE_IS_HELD_UP if strict else other

    def _grant(self, job: Job, demand: Demand, tasks: int, shape: Shape) -> None:
        self.parts.append(Part(job, demand, tasks))
        _take(self._free, demand, tasks)
        _take(self._later, demand, tasks)
        for lock, _ in shape.locks:
            self._promised[lock] = self._promised.get(lock, 0) + 1

    def _makes_room(self, job: Job, place: Place, demand: Demand, tasks: int) -> bool:
        """Keep room for a Job that others make way for, or are to."""
        if not self._may_preempt:
            return False
        wanted = taken(tasks, demand.each)
        lacks = any(amount > self._later.get(name, amount) for name, amount in wanted.items())
        if lacks:
            victims = victims_for(place, wanted, self._later, self._holdings, self._policy)
            if not victims:
                return False
            self.victims += [Victim(victim, job) for victim in victims]
            going = {victim.key for victim in victims}
            for holding in self._holdings:
                if holding.job.key in going:
                    _add(self._later, holding.amounts)
            self._holdings = [one for one in self._holdings if one.job.key not in going]
        _take(self._later, demand, tasks)
        return True


class _Next(Enum):
    """Who is looked at after a Job."""

    ALIKE = auto()
    NONE_ALIKE = auto()
    LINE_IS_HELD_UP = auto()


def _take(free: dict[str, int], demand: Demand, tasks: int) -> None:
    for name, amount in taken(tasks, demand.each).items():
        if name in free:
            free[name] -= amount


def _add(free: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        if name in free:
            free[name] += amount


def room(limits: Mapping[str, int], parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """What is left of each resource; less than nothing where more is held than is allowed now."""
    free = dict(limits)
    for part in parts:
        for name, amount in part.items():
            if name in free:
                free[name] -= amount
    return free


def _lets_in(queue: Queue, record: QueueQuota) -> bool:
    """Whether the Queue lets anybody in; not as it was before what the record knows of it."""
    known = member_of(record, queue.metadata.name)
    is_old = known is not None and queue.version < known.version
    return not is_old and not queue.is_going and queue.spec.stop is StopPolicy.NONE


def member_of(record: QueueQuota, queue: str) -> Member | None:
    """What a record knows of a Queue."""
    return next((one for one in record.status.members if one.queue == queue), None)


def decide_quota(view: QuotaRecordView, now: datetime) -> Decision:
    """Take those off the record who are proven done, and grant parts to those who are next."""
    record = view.record
    if record is None:
        if view.queue is None or view.queue.is_going or not view.is_wanted:
            return Decision()
        made = QueueQuota(
            metadata=Metadata(name=quota_name(view.name)), spec=QuotaSpec(queue=view.name)
        )
        return Decision((CreateResource(made),), reason=f"first use of queue {view.name}")
    if record.is_going:
        return Decision()
    members = _members(view, record)
    is_news = bool(view.parts or view.victims) or members != record.status.members
    gone = len(record.status.holders) - len(view.kept)
    drop_at = view.over_since + KEPT_ON_RECORD if view.over_since is not None else now
    if gone and not is_news and drop_at > now:
        return Decision(wake_at=drop_at)
    if gone or is_news:
        return _written(view, record, members, now)
    if view.is_unheard:
        # That its Job is gone is not news again when the rest is heard: nobody else would look.
        return Decision(wake_at=now + LISTENS_FOR)
    if view.queue is None and not view.kept and not view.is_wanted:
        return Decision((DeleteResource(record),), reason=f"queue {view.name} is gone")
    return Decision()


def _written(
    view: QuotaRecordView, record: QueueQuota, members: tuple[Member, ...], now: datetime
) -> Decision:
    first = max(record.version, record.status.last_token + 1)
    new = tuple(_holder(part, first + at, now) for at, part in enumerate(view.parts))
    status = QuotaStatus(
        members=members,
        holders=(*view.kept, *new),
        last_token=new[-1].token if new else record.status.last_token,
        trouble=record.status.trouble,
    )
    told = [f"lets {_named([one.job for one in new])} in"] if new else []
    left = [holder.job for holder in record.status.holders if holder not in view.kept]
    told += [f"takes the room back of {_named(left)}"] if left else []
    told += ["takes in what the queue allows"] if members != record.status.members else []
    told += (
        [f"puts {_named([one.job.metadata.name for one in view.victims])} back for others"]
        if (view.victims)
        else []
    )
    # Whoever did not get a part in this write may in the next.
    again = now if len(new) == MOST_GRANTS or len(view.victims) >= MOST_VICTIMS else None
    changed = (RecordStatus(record, status),) if status != record.status else ()
    put_back = (_put_back(victim, now) for victim in view.victims)
    return Decision((*changed, *put_back), again, "; ".join(told))


def _put_back(victim: Victim, now: datetime) -> RecordAdmission:
    """Have a Job make room; it holds what it holds until its attempts are proven gone."""
    first = victim.makes_room_for.metadata
    # Whoever reads of a Job need not see those of other namespaces.
    is_near = first.namespace == victim.job.metadata.namespace
    who = f"job/{first.name}" if is_near else "a Job of another namespace"
    told = f"{who} comes before it in its queue, and needs the room"
    eviction = Eviction(reason=EvictionReason.PREEMPTED, message=told, began_at=now)
    admission = replace(
        victim.job.status.admission, phase=AdmissionPhase.EVICTING, eviction=eviction
    )
    return RecordAdmission(victim.job, admission)


def _named(jobs: list[str]) -> str:
    more = len(jobs) - 5
    return ", ".join(jobs[:5]) + (f" and {more} more" if more > 0 else "")


def _holder(part: Part, token: int, now: datetime) -> QuotaHolder:
    job = part.job
    return QuotaHolder(
        queue=part.demand.queue,
        job=job.metadata.name,
        namespace=job.metadata.namespace,
        uid=job.metadata.uid,
        epoch=job.status.admission.epoch,
        token=token,
        tasks=part.tasks,
        each={name: Amount(milli) for name, milli in part.demand.each.items()},
        granted_at=now,
        job_version=job.version,
    )


def _members(view: QuotaRecordView, record: QueueQuota) -> tuple[Member, ...]:
    """What the record is to know of its Queue: the newest there is."""
    queue = view.queue
    if queue is None:
        return record.status.members
    known = member_of(record, view.name)
    newest = Member(
        queue=view.name,
        version=queue.version,
        limits=queue.spec.resources,
        order=queue.spec.order,
        stop=queue.spec.stop,
        blocks=blocks(queue),
    )
    if known is not None and (known.version >= queue.version or _same(known, newest)):
        return record.status.members
    return (newest,)


def _same(known: Member, newest: Member) -> bool:
    """Whether a Queue changed in nothing that matters to its record."""
    return replace(known, version=newest.version) == newest
