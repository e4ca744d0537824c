"""The cycle: who of the lines of a record's Queues is granted a part, decided on one view.

Which Queue comes first: one that asks for what is its own before one that borrows; then by the
Queue's priority, the Job's, and the order of creation. Where a cohort shares by weight it is the
Queue that would have the smallest part of what is lent, with its Job.

Why nobody is starved: within a Queue the order is one of priority and creation. Where what comes
first does not fit, in a StrictFIFO line all others wait; in a BestEffortFIFO line those that fit go
on, by its users' choice. One that waits for something other than room is passed over in both. What
a Queue has of its own it gets back from those who borrowed it as their Jobs end, or at once where
it reclaims.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from msgspec import Struct

from interlock.admission.lines import Place, may_be_granted
from interlock.admission.queues.demands import (
    blockers,
    could_ever_fit,
    is_ready,
    most_tasks,
)
from interlock.admission.queues.known import KnownQueues, Standing
from interlock.admission.queues.ledger import Ledger
from interlock.admission.queues.lines import Head, QueueLines, Shape, lacks_room
from interlock.admission.queues.preemption import (
    MOST_VICTIMS,
    Comer,
    Holding,
    may_preempt,
    victims_for,
)
from interlock.admission.ready_timers import policy_of
from interlock.resources.job import Job, keeps_its_turn
from interlock.resources.metadata import Key
from interlock.resources.queue import (
    Demand,
    Member,
    Queue,
    QueueOrder,
    QuotaHolder,
    StopPolicy,
    in_terms_of,
    taken,
)
from interlock.resources.ready_gate import BlockScope
from interlock.resources.transitions import is_evicting

#: So many Jobs are granted a part in one write; the rest in the next.
MOST_GRANTS = 200

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
    #: Whether that is of another Queue, which takes back what it has lent.
    is_reclaimed: bool = False


class Outcome(NamedTuple):
    """Who is next, in order, with as much as there is room for; and who has to make room."""

    parts: Sequence[Part] = ()
    victims: Sequence[Victim] = ()


def run_cycle(
    known: KnownQueues,
    lines: QueueLines,
    members: Iterable[Member],
    standings: Sequence[Standing],
    way_is_clear: WayIsClear,
) -> Outcome:
    """Grant as much as there is to those who come first in the lines of some Queues."""
    there = tuple(members)
    if not any(lines.shapes(member.queue) for member in there):
        return Outcome()
    cycle = _Cycle(known, lines, there, standings, way_is_clear)
    cycle.run()
    return Outcome(cycle.parts, cycle.victims)


class _Front:
    """One Queue in a cycle: who of its line is looked at next."""

    def __init__(
        self,
        known: KnownQueues,
        queue: Queue,
        member: Member,
        lines: QueueLines,
        ledger: Ledger,
    ) -> None:
        self._known = known
        self.queue, self.member = queue, member
        self.name = queue.metadata.name
        self.policy = queue.spec.preemption
        self.may_preempt = may_preempt(self.policy)
        #: Whether it lets nobody in before others are ready, and may only have room made.
        self.is_gated = False
        #: Whether who finds no room matters to nobody: others neither wait for that nor make room.
        self.passes_over = not self.may_preempt and queue.spec.order is QueueOrder.BEST_EFFORT_FIFO
        self._lines = lines
        self._shapes = lines.shapes(self.name)
        #: What its Jobs could use if nobody else did.
        self.most = ledger.most(self.name)
        self._asked: tuple[Shape, Demand] | None = None
        free = ledger.free(self.name)
        self._heads = lines.heads(self.name, free if self.passes_over else None)
        self.told_of_room(free, 0)

    def told_of_room(self, free: Mapping[str, int], at: int) -> None:
        """Take in how much the Queue may use still, after so many grants."""
        self.free, self.told_at = free, at
        self._has_room = self.may_preempt or self._lines.has_room_for_any(self.name, free)

    def head(self) -> Place | None:
        """Whose turn it is, if there is anything that it could be granted."""
        if not self._has_room or (self.is_gated and not self.may_preempt):
            return None
        while self._heads:
            place, _, shape = self._heads[0]
            if self._known.serves(self.queue, shape.namespace) and not (
                self.passes_over and lacks_room(shape, self.free)
            ):
                return place
            heapq.heappop(self._heads)
        return None

    @property
    def shape(self) -> Shape:
        """What the head asks for."""
        return self._heads[0].shape

    def demand_of(self, shape: Shape) -> Demand:
        """What alike Jobs ask for, in the Queue's terms. Mostly they are as the last one was."""
        if self._asked is None or self._asked[0] is not shape:
            demand = Demand(
                queue=self.name,
                tasks=shape.tasks,
                least=shape.least,
                each=dict(shape.each),
                is_of_pods=shape.is_of_pods,
            )
            self._asked = shape, in_terms_of(self.queue.spec, demand)
        return self._asked[1]

    def move_on(self, what: _Next) -> None:
        """Go on after the head."""
        _, at, shape = self._heads[0]
        places = self._shapes[shape]
        match what:
            case _Next.LINE_IS_HELD_UP:
                self._heads.clear()
            case _Next.ALIKE if at + 1 < len(places):
                heapq.heapreplace(self._heads, Head(places[at + 1], at + 1, shape))
            case _:
                heapq.heappop(self._heads)


#: What comes first is least: by share or by whether it borrows, then the Queue's priority.
_Rank = tuple[float, int, Place, str]


class _Cycle:
    """One look at the lines of a record: grants as much as there is, in order.

    What is free now is not all that counts. A Job for which others are put back has what they
    hold as good as granted: whoever comes after it may have what is left beside.
    """

    def __init__(
        self,
        known: KnownQueues,
        lines: QueueLines,
        members: tuple[Member, ...],
        standings: Sequence[Standing],
        way_is_clear: WayIsClear,
    ) -> None:
        self._known = known
        self._lines = lines
        self._way_is_clear = way_is_clear
        self._granted = {one.round for one in standings}
        self._promised: dict[Key, int] = {}
        self._now = Ledger(members)
        for name, amounts in _used(standings).items():
            self._now.add(name, amounts)
        self._fronts = {
            member.queue: _Front(known, queue, member, lines, self._now)
            for member in members
            if lines.shapes(member.queue) and (queue := _open(known, member))
        }
        #: Those that let nobody in while somebody is not ready.
        self._gated = [front for front in self._fronts.values() if front.member.blocks]
        self._preempts = any(front.may_preempt for front in self._fronts.values())
        self._holdings: list[Holding] = []
        going: list[Holding] = []
        # Only who may put others back asks who they are.
        for one in standings if self._preempts else ():
            if one.job is not None:
                holding = Holding(one.job, one.holder, one.amounts)
                (going if is_evicting(one.job) else self._holdings).append(holding)
        #: What is in use once all are gone who are being put back.
        self._later = self._now
        if self._preempts:
            self._later = self._now.copy()
            for holding in going:
                self._later.add(holding.holder.queue, holding.amounts, -1)
        self._is_same = not going
        weights = {name: _weight(known.queue(name)) for name in (one.queue for one in members)}
        is_fair = any(weight is not None for weight in weights.values())
        self._weights = (
            {name: 1000 if weight is None else weight for name, weight in weights.items()}
            if is_fair
            else None
        )
        self._close_gates(standings)
        self.parts: list[Part] = []
        self.victims: list[Victim] = []

    def run(self) -> None:
        """Go through the lines."""
        ranks: list[_Rank] = []
        for front in self._fronts.values():
            self._line_up(front, ranks)
        while ranks and len(self.parts) < MOST_GRANTS and len(self.victims) < MOST_VICTIMS:
            _, _, place, name = heapq.heappop(ranks)
            front = self._fronts[name]
            self._tell_of_room(front)
            if front.head() == place:
                front.move_on(self._look(front, place, front.shape))
                self._tell_of_room(front)
            self._line_up(front, ranks)

    def _tell_of_room(self, front: _Front) -> None:
        """Have a Queue know what is left, where others were granted something since."""
        if front.told_at != len(self.parts):
            front.told_of_room(self._now.free(front.name), len(self.parts))

    def _line_up(self, front: _Front, ranks: list[_Rank]) -> None:
        place = front.head()
        if place is None:
            return
        first = 0.0
        if len(self._fronts) > 1:
            asked = front.demand_of(front.shape)
            wanted = taken(asked.least, asked.each)
            if self._weights is not None:
                weight = self._weights[front.name]
                first = self._now.share(front.name, weight, wanted)
            else:
                first = float(self._now.borrows(front.name, wanted))
        heapq.heappush(ranks, (first, -front.queue.spec.priority, place, front.name))

    # Gates

    def _close_gates(self, standings: Iterable[Standing]) -> None:
        """Find the Queues that let nobody in before others are ready."""
        if not self._gated:
            return
        unready = {holder.queue for holder in self._unready(one.holder for one in standings)}
        for front in self._gated:
            match front.member.scope:
                case BlockScope.QUEUE:
                    front.is_gated = front.name in unready
                case BlockScope.COHORT:
                    front.is_gated = bool(unready)
                case BlockScope.SYSTEM:
                    blocker = next(blockers(self._known, front.queue), None)
                    front.is_gated = bool(unready) or blocker is not None

    def _unready(self, holders: Iterable[QuotaHolder]) -> Iterator[QuotaHolder]:
        for holder in holders:
            if not is_ready(self._known, holder):
                yield holder

    def _is_let_in(self, front: _Front, job: Job) -> None:
        """Close the gates behind whoever was just let in: it is not ready."""
        if not self._gated or keeps_its_turn(job.spec):
            return
        if not policy_of(job, front.queue, self._known.system).is_on:
            return
        for other in self._gated:
            if other is front or other.member.scope is not BlockScope.QUEUE:
                other.is_gated = True

    # Who is next

    def _look(self, front: _Front, place: Place, shape: Shape) -> _Next:
        job = self._known.jobs.get(place.job)
        if job is None or (job.metadata.uid, job.status.admission.epoch) in self._granted:
            return _Next.ALIKE
        if not may_be_granted(job):
            return _Next.ALIKE
        demand = front.demand_of(shape)
        if not could_ever_fit(demand, front.most):
            return _Next.NONE_ALIKE
        tasks = most_tasks(demand.each, demand.tasks, front.free)
        if not self._is_same:
            later = self._later.free(front.name)
            tasks = min(tasks, most_tasks(demand.each, demand.tasks, later))
        if (tasks >= demand.least or front.may_preempt) and not self._way_is_clear(
            job, self._promised
        ):
            # What keeps the first of alike Jobs waiting keeps those behind it waiting too.
            return _Next.NONE_ALIKE
        if tasks < demand.tasks and self._makes_room(front, job, place, demand, demand.tasks):
            return _held_up(front, _Next.ALIKE)
        if tasks >= demand.least:
            if front.is_gated:
                # Room is made for whoever comes first alone: the others would wait with it.
                return _Next.LINE_IS_HELD_UP
            self._grant(front, job, demand, tasks, shape)
            return _Next.ALIKE
        if self._makes_room(front, job, place, demand, demand.least):
            return _held_up(front, _Next.ALIKE)
        return _held_up(front, _Next.NONE_ALIKE)

    def _grant(self, front: _Front, job: Job, demand: Demand, tasks: int, shape: Shape) -> None:
        self.parts.append(Part(job, demand, tasks))
        amounts = taken(tasks, demand.each)
        self._now.add(front.name, amounts)
        if self._later is not self._now:
            self._later.add(front.name, amounts)
        for lock, _ in shape.locks:
            self._promised[lock] = self._promised.get(lock, 0) + 1
        self._is_let_in(front, job)

    def _makes_room(
        self, front: _Front, job: Job, place: Place, demand: Demand, tasks: int
    ) -> bool:
        """Keep room for a Job that others make way for, or are to."""
        if not front.may_preempt:
            return False
        wanted = taken(tasks, demand.each)
        if not self._later.has_room(front.name, wanted):
            comer = Comer(front.name, place, wanted, front.policy, self._weights)
            victims = victims_for(comer, self._later, self._holdings)
            if not victims:
                return False
            for one in victims:
                self.victims.append(Victim(one.job, job, one.holder.queue != front.name))
                self._later.add(one.holder.queue, one.amounts, -1)
            going = {one.job.key for one in victims}
            self._holdings = [one for one in self._holdings if one.job.key not in going]
        self._later.add(front.name, wanted)
        self._is_same = False
        return True


class _Next(Enum):
    """Who is looked at after a Job."""

    ALIKE = auto()
    NONE_ALIKE = auto()
    LINE_IS_HELD_UP = auto()


def _used(standings: Iterable[Standing]) -> Mapping[str, Mapping[str, int]]:
    """How much is in use by Jobs of each Queue."""
    used: dict[str, dict[str, int]] = {}
    for one in standings:
        of = used.setdefault(one.holder.queue, {})
        for name, amount in one.amounts.items():
            of[name] = of.get(name, 0) + amount
    return used


def _open(known: KnownQueues, member: Member) -> Queue | None:
    """The Queue, if it lets anybody in; not as it was before what the record knows of it."""
    queue = known.queue(member.queue)
    if queue is None or queue.version < member.version or queue.is_going:
        return None
    return queue if queue.spec.stop is StopPolicy.NONE else None


def _weight(queue: Queue | None) -> int | None:
    if queue is None or queue.spec.fair_sharing is None:
        return None
    return queue.spec.fair_sharing.weight.milli


def _held_up(front: _Front, other: _Next) -> _Next:
    strict = front.queue.spec.order is QueueOrder.STRICT_FIFO
    return _Next.LINE_IS_HELD_UP if strict else other
