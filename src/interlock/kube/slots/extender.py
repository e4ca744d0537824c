"""The scheduler extender: answers from the cache of pods, and writes what the answer rests on.

Every replica answers. What two of them, or one that was killed, leave behind is explained at the
head of `holds`; here each step is one write, and after each the next is decided anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Set
from typing import Any, assert_never

from interlock.control.clock import Clock
from interlock.errors import ConflictError, InterlockError, NotFoundError
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.manifest import exactly
from interlock.kube.slots import naming
from interlock.kube.slots.assignment import (
    Refused,
    Reserve,
    Seated,
    Settle,
    Tell,
    asks,
    next_step,
)
from interlock.kube.slots.holds import Record, ghost_slot, written
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import Bed
from interlock.kube.slots.protocol import (
    NOBODY,
    FilterArgs,
    FilterResult,
    PreemptionArgs,
    PreemptionResult,
    as_offered,
    evict,
    none_of,
    offered_nodes,
    offered_victims,
    only,
    unchanged,
)
from interlock.kube.slots.sight import Sight

logger = logging.getLogger("interlock.slots")

#: A pod gets a slot in three writes. Others are faster now and then, but not for ever.
_MOST_STEPS = 64
#: A scheduler waits for its extenders, pod after pod. What was begun then is gone on with when it
#: asks again.
ANSWER_WITHIN_S = 3.0
_NOTHING: frozenset[str] = frozenset()


class Extender:
    """Says on which node a pod has a slot, and which ghost makes room for it."""

    def __init__(
        self,
        pods: Informer[SlotPod],
        sight: Sight,
        clock: Clock,
        *,
        granted: Callable[[Bed], Set[str]] = lambda _: _NOTHING,
        answer_within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        self._pods = pods
        self._sight = sight
        self._clock = clock
        #: The slots of a TestBed that Jobs were granted.
        self._granted = granted
        self._answer_within_s = answer_within_s
        #: Ghosts that an answer is about to reserve.
        self._busy: Counter[str] = Counter()
        self._has_looked = False

    async def filter(self, args: FilterArgs) -> FilterResult:
        """Which of the nodes suit a pod: the one where it has its slot."""
        if not asks(args.pod):
            return unchanged(args)
        found = await self._seat(args.pod, offered_nodes(args))
        if isinstance(found, Seated):
            return only(args, found.slot)
        return none_of(args, found.why)

    async def preempt(self, args: PreemptionArgs) -> PreemptionResult:
        """Who is to go for a pod: the ghost of its slot, and nobody else."""
        victims = offered_victims(args)
        if not asks(args.pod):
            return as_offered(victims)
        known = {pod.uid for one in victims.values() for pod in one.pods or ()}
        found = await self._seat(args.pod, victims, known)
        if isinstance(found, Refused) or found.ghost is None or found.slot.node not in victims:
            # Nobody's going would help: it has no slot here, or its ghost has gone already.
            return NOBODY
        if found.ghost.spec.node_name != found.slot.node:
            return NOBODY
        return evict(found.slot, found.ghost)

    async def _seat(
        self, asked: SlotPod, nodes: Collection[str], victims: Set[str] = _NOTHING
    ) -> Seated | Refused:
        """Do what it takes until a pod has a slot, or gets none."""
        try:
            async with asyncio.timeout(self._answer_within_s):
                return await self._take_steps(asked, nodes, victims)
        except TimeoutError:
            return Refused("the API server took too long")
        except InterlockError as error:
            logger.warning("pod %s/%s gets no slot now: %s", *asked.place, error)
            return Refused(f"the API server refused: {error}")

    async def _take_steps(
        self, asked: SlotPod, nodes: Collection[str], victims: Set[str]
    ) -> Seated | Refused:
        if not self._has_looked:
            # Who knows of no pods would say that there are no slots.
            await self._pods.listed_after(0)
            self._has_looked = True
        bed = Bed(asked.metadata.namespace, asked.metadata.annotations.test_bed)
        passed_over: set[str] = set()
        for _ in range(_MOST_STEPS):
            pod = await self._newest(asked)
            if pod is None:
                return Refused("it is gone")
            step = next_step(
                self._sight.bed(bed),
                pod,
                nodes,
                self._clock.now(),
                victims=victims,
                others=self._busy.keys() | passed_over,
                granted=self._granted(bed),
            )
            if isinstance(step, Seated | Refused):
                return step
            if await self._take(step):
                continue
            match step:
                case Reserve(ghost):
                    passed_over.add(ghost.uid)
                case Tell():
                    return Refused("it is gone")
                case Settle(ghost):
                    found = ghost_slot(ghost)
                    assert found is not None, "what is settled is a ghost"
                    return Seated(found[1], None)
        return Refused("others are faster")

    async def _newest(self, asked: SlotPod) -> SlotPod | None:
        """A pod as it is known; the scheduler may have heard of it before we did."""
        known = self._pods.get(asked.place)
        if known is not None and known.uid == asked.uid:
            return known
        return await self._read(asked)

    async def _read(self, pod: SlotPod) -> SlotPod | None:
        try:
            found = await self._pods.objects.get(*pod.place)
        except NotFoundError:
            return None
        if found.uid != pod.uid:
            return None
        self._pods.take(found)
        return found

    async def _take(self, step: Reserve | Tell | Settle) -> bool:
        """Take a step, or know why not; returns whether what it was about is still there."""
        thing, patch = _patch(step)
        if isinstance(step, Reserve):
            self._busy[thing.uid] += 1
        try:
            self._pods.take(await self._pods.objects.patch(*thing.place, patch))
        except (ConflictError, NotFoundError):
            # Only of ghosts that the watch has told of is a newer state taken in: see `holds`.
            return await self._read(thing) is not None
        finally:
            if isinstance(step, Reserve):
                self._busy -= Counter((thing.uid,))
        return True


def _patch(step: Reserve | Tell | Settle) -> tuple[SlotPod, Mapping[str, Any]]:
    """What a step changes, and how; nothing where that was changed meanwhile."""
    match step:
        case Reserve(ghost, reservation):
            held = [*ghost.metadata.finalizers, naming.FINALIZER]
            return ghost, _changed(
                ghost, {naming.RESERVED: written(reservation)}, finalizers=_once(held)
            )
        case Tell(pod, record):
            told = {naming.SLOT: record.slot, naming.HOLD: written(record)}
            return pod, _changed(pod, told)
        case Settle(ghost):
            return ghost, settled(ghost)
        case _:
            assert_never(step)


def settled(ghost: SlotPod) -> Mapping[str, Any]:
    """A patch that lets go of a ghost whose pod was told."""
    return _changed(ghost, {}, finalizers=_without_ours(ghost))


def give_up(ghost: SlotPod) -> Mapping[str, Any]:
    """A patch that gives up the reservation of a ghost."""
    return _changed(ghost, {naming.RESERVED: None}, finalizers=_without_ours(ghost))


def take_back(pod: SlotPod, record: Record) -> Mapping[str, Any]:
    """A patch that takes back what a pod was told."""
    return _changed(pod, {naming.SLOT: None, naming.HOLD: written(record)})


def _changed(thing: SlotPod, annotations: Mapping[str, str | None], **more: Any) -> dict[str, Any]:
    return {"metadata": {**exactly(thing), "annotations": annotations, **more}}


def _once(names: Collection[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _without_ours(ghost: SlotPod) -> list[str]:
    return [one for one in ghost.metadata.finalizers if one != naming.FINALIZER]
