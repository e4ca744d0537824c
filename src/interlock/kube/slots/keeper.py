"""The keeper: has every TestBed's slots held by ghosts, and reservations given up in time.

Every process follows the pods; the one that leads acts. Each thing it does names what it was
decided about, version or uid included, so that done late it is not done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import assert_never

from msgspec import Struct

from interlock.control.backoff import Backoff
from interlock.control.clock import Clock, Timer, pause
from interlock.errors import (
    AlreadyExistsError,
    ConflictError,
    FencedError,
    InterlockError,
    NotFoundError,
)
from interlock.kube.pods.fan_out import for_each, raise_worst
from interlock.kube.pods.informer import Informer, Seen
from interlock.kube.pods.objects import Objects
from interlock.kube.slots.assignment import Settle
from interlock.kube.slots.extender import give_up, settled, take_back
from interlock.kube.slots.ghost_manifest import GhostSettings, ghost_manifest
from interlock.kube.slots.ghosts import (
    Action,
    Ghosts,
    GhostView,
    GiveUp,
    MakeGhost,
    Problem,
    RemoveGhost,
    TakeBack,
    decide,
)
from interlock.kube.slots.holds import reservation_of
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import Bed, Slot, ghost_name
from interlock.kube.slots.sight import Sight

logger = logging.getLogger("interlock.slots")

#: Changes come in swarms: a bed is looked at again no sooner than after this.
_AGAIN_AFTER_S = 0.05
#: A ghost that was made is heard of by then, or made again if it is not there.
_HEARD_WITHIN_S = 5.0


class BedFacts(Struct, frozen=True, kw_only=True):
    """A TestBed as the slots room has it."""

    uid: str
    #: How many slots each node should have.
    wanted: Mapping[str, int]
    #: What a slot holds, and what those nodes have, in thousandths.
    size: Mapping[str, int]
    allocatable: Mapping[str, Mapping[str, int]]


#: What is known of a TestBed that is gone.
GONE = BedFacts(uid="", wanted={}, size={}, allocatable={})


class Keeper:
    """Looks at a TestBed whenever something changes that its ghosts depend on."""

    def __init__(
        self,
        pods: Informer[SlotPod],
        sight: Sight,
        writes: Objects[SlotPod],
        facts: Callable[[Bed], BedFacts | None],
        clock: Clock,
        luck: Random,
        leads: Callable[[], bool],
        settings: GhostSettings,
    ) -> None:
        """Keep ghosts; `facts` are None of a TestBed of which too little is known so far."""
        self._pods = pods
        self._sight = sight
        self._writes = writes
        self._facts = facts
        self._clock = clock
        self._leads = leads
        self._settings = settings
        self._backoff = Backoff(luck)
        self._due: dict[Bed, None] = {}
        self._news = asyncio.Event()
        self._timers: dict[Bed, Timer] = {}
        #: Ghosts that were made and not heard of since, and until when that is waited for: one that
        #: is removed at once may never be heard of.
        self._made: dict[tuple[str, str], float] = {}
        #: Why nodes have fewer slots than they should.
        self.problems: dict[Bed, tuple[Problem, ...]] = {}
        pods.subscribe(self._moved)

    def wake(self, beds: Iterable[Bed]) -> None:
        """Look at TestBeds: something about them, or about their nodes, has changed."""
        self._due.update(dict.fromkeys(beds))
        if self._due:
            self._news.set()

    def known(self) -> Iterable[Bed]:
        """The TestBeds that have pods."""
        return tuple(self._sight.beds)

    def _moved(self, changes: Sequence[Seen[SlotPod]]) -> None:
        woken: dict[Bed, None] = {}
        nodes: set[str] = set()
        for change in changes:
            for pod in (change.before, change.after):
                if pod is not None:
                    woken.update(dict.fromkeys(self._sight.beds_of(pod)))
                    nodes.add(pod.spec.node_name)
                    self._made.pop(pod.place, None)
        for bed, problems in self.problems.items():
            if any(problem.node in nodes for problem in problems):
                woken[bed] = None
        self.wake(woken)

    async def act(self) -> None:
        """Act until cancelled, as long as this process leads."""
        await self._first_look()
        while True:
            await self._news.wait()
            self._news.clear()
            if not self._leads():
                # Whoever begins to lead looks at everything.
                self._due.clear()
                continue
            due, self._due = tuple(self._due), {}
            failed = [bed for bed in due if not await self._settle(bed)]
            if failed:
                await pause(self._clock, self._backoff.failed())
                self.wake(failed)
            else:
                self._backoff.reset()
                await pause(self._clock, _AGAIN_AFTER_S)

    async def _first_look(self) -> None:
        """Wait until the pods are known: who knows of none would make a ghost for every slot."""
        while True:
            try:
                await self._pods.listed_after(0)
            except InterlockError:
                await pause(self._clock, self._backoff.failed())
            else:
                self._backoff.reset()
                return

    async def _settle(self, bed: Bed) -> bool:
        """Decide about a TestBed, and do it; returns whether that is done."""
        facts = self._facts(bed)
        if facts is None:
            return True  # Whoever knows more of it wakes it.
        found = decide(self._view(bed, facts), self._clock.now())
        self._note(bed, found)
        actions = [action for action in found.actions if not self._is_made(bed, action)]

        async def do(action: Action) -> None:
            await self._carry_out(bed, facts, action)

        # Old ghosts go before new ones come: they may need each other's room.
        makes = [action for action in actions if isinstance(action, MakeGhost)]
        others = [action for action in actions if not isinstance(action, MakeGhost)]
        try:
            for part in (others, makes):
                raise_worst(await for_each(part, do))
        except FencedError:
            return True
        except InterlockError as error:
            logger.warning("test bed %s is looked at again: %s", bed, error)
            return False
        return True

    def _view(self, bed: Bed, facts: BedFacts) -> GhostView:
        return GhostView(
            bed=bed,
            wanted=facts.wanted,
            size=facts.size,
            sight=self._sight.bed(bed),
            pods=self._sight.by_uid,
            allocatable=facts.allocatable,
            taken=self._sight.taken,
        )

    def _note(self, bed: Bed, found: Ghosts) -> None:
        if found.problems != self.problems.get(bed, ()):
            for problem in found.problems:
                logger.warning("test bed %s: node %s: %s", bed, problem.node, problem.message)
        if found.problems:
            self.problems[bed] = found.problems
        else:
            self.problems.pop(bed, None)
        timer = self._timers.pop(bed, None)
        if timer is not None:
            timer.cancel()
        if found.wake_at is not None:
            self._timers[bed] = self._ring(bed, found.wake_at)

    def _ring(self, bed: Bed, at: datetime) -> Timer:
        return self._clock.call_at(at, lambda: self.wake((bed,)))

    def _is_made(self, bed: Bed, action: Action) -> bool:
        if not isinstance(action, MakeGhost):
            return False
        until = self._made.get(_place(bed, action.slot))
        return until is not None and self._clock.monotonic() < until

    async def _carry_out(self, bed: Bed, facts: BedFacts, action: Action) -> None:
        match action:
            case MakeGhost(slot):
                await self._make(bed, facts, slot)
            case RemoveGhost(ghost, why):
                logger.info("ghost %s/%s is removed: %s", *ghost.place, why)
                await self._remove(ghost)
            case GiveUp(ghost, why):
                if not await self._is_expected(ghost):
                    logger.info("ghost %s/%s is free again: %s", *ghost.place, why)
                    await self._change(ghost, give_up(ghost))
            case TakeBack(pod, record):
                logger.info("pod %s/%s did not come to its slot in time", *pod.place)
                await self._change(pod, take_back(pod, record))
            case Settle(ghost):
                await self._change(ghost, settled(ghost))
            case _:
                assert_never(action)

    async def _make(self, bed: Bed, facts: BedFacts, slot: Slot) -> None:
        manifest = ghost_manifest(bed, facts.uid, slot, facts.size, self._settings)
        try:
            made = await self._writes.create(bed.namespace, manifest)
        except AlreadyExistsError:
            return  # The watch is about to tell of it.
        # Not taken in: a ghost counts once the watch has told of it, and of all before (`holds`).
        known = self._pods.get(made.place)
        if known is None or known.version < made.version:
            self._made[made.place] = self._clock.monotonic() + _HEARD_WITHIN_S
            self._clock.call_later(_HEARD_WITHIN_S, lambda: self.wake((bed,)))

    async def _remove(self, ghost: SlotPod) -> None:
        try:
            await self._writes.delete(*ghost.place, uid=ghost.uid, grace_s=0)
        except (NotFoundError, ConflictError):
            return

    async def _is_expected(self, ghost: SlotPod) -> bool:
        """Whether the pod that a ghost is reserved for is there, and was not heard of yet."""
        reservation = reservation_of(ghost)
        if reservation is None or reservation.pod in self._sight.by_uid:
            return False
        try:
            found = await self._writes.get(ghost.metadata.namespace, reservation.name)
        except NotFoundError:
            return False
        return found.uid == reservation.pod

    async def _change(self, thing: SlotPod, patch: Mapping[str, object]) -> None:
        try:
            self._pods.take(await self._writes.patch(*thing.place, patch))
        except (NotFoundError, ConflictError):
            return  # The watch tells what became of it.


def _place(bed: Bed, slot: Slot) -> tuple[str, str]:
    return bed.namespace, ghost_name(bed.name, slot)
