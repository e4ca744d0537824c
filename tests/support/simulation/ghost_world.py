"""A world of ghosts: extenders and keepers that fail, a scheduler that asks, and pods that die.

The scheduler keeps to what the real one does, as far as slots depend on it: it acts on a picture of
the pods that is older than they are, asks for the nodes that have room, else for victims, deletes
those and looks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from interlock.errors import ConflictError, ExpiredError, InterlockError, UnavailableError
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop, SimProcess
from interlock.kube.pods.informer import Informer, Seen
from interlock.kube.pods.objects import Event, Listed
from interlock.kube.slots import naming
from interlock.kube.slots.extender import Extender
from interlock.kube.slots.ghost_manifest import GhostSettings
from interlock.kube.slots.ghosts import COMES_WITHIN, GhostView, SlotState, decide, slots_of
from interlock.kube.slots.holds import ghost_slot, hold_of, record_of, reservation_of
from interlock.kube.slots.keeper import BedFacts, Keeper
from interlock.kube.slots.models import SlotPod
from interlock.kube.slots.naming import Bed, Slot
from interlock.kube.slots.protocol import (
    FilterArgs,
    MetaPod,
    MetaVictims,
    PreemptionArgs,
)
from interlock.kube.slots.sight import Sight
from interlock.testing.builders import T0
from support.simulation.kube_api import Body, Happened, SimApi, is_going, is_over, node_of, place_of

T = TypeVar("T")

BED = Bed("default", "bed")
#: For so long things go wrong, and for so long after that everything is given its time.
TROUBLE_S, CALM_S = 600.0, 900.0
_ANSWER_S = 5.0
#: Marks a pod that is never placed.
STUCK = "stuck"


class GhostTroubles(Struct):
    """How often each thing goes wrong; drawn for one world."""

    slow_s: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    cut: float = 0.0
    kill: float = 0.0
    stall: float = 0.0
    delete_ghost: float = 0.0
    #: How many pods are such that they are never placed, as if a volume of theirs was missing.
    stuck: float = 0.0
    two_leaders: bool = False


def draw(random: Random) -> GhostTroubles:
    """Troubles for one world; many of them none."""

    def rate(*choices: float) -> float:
        return random.choice((0.0, *choices))

    return GhostTroubles(
        slow_s=random.choice((0.0, 0.02, 0.5)),
        lost=rate(0.02, 0.15),
        late=rate(0.05, 0.4),
        cut=rate(0.02, 0.2),
        kill=rate(0.02, 0.1),
        stall=rate(0.02, 0.1),
        delete_ghost=rate(0.05, 0.4),
        stuck=rate(0.1, 0.3),
        two_leaders=random.random() < 0.5,
    )


class World:
    """Nodes with slots, two replicas, a scheduler, and owners of pods who come and go."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.loop = SimLoop(Random(seed + 1))
        self.troubles = draw(random)
        self.api = SimApi(self.now, Random(seed + 2))
        self.nodes = [f"n{at}" for at in range(random.choice((1, 2, 3)))]
        self.per_node = random.choice((1, 2))
        #: How many more pods a node has room for, beside its slots.
        self.beside = random.choice((0, 1, 2))
        self.wanted = dict.fromkeys(self.nodes, self.per_node)
        self.broken: list[str] = []
        self.calm = False
        self.replicas: list[Replica] = []
        self._named = 0
        self.api.listeners[self] = self._happened
        #: Set whenever a pod has changed.
        self.news = asyncio.Event()
        #: How many pods were placed that are no ghosts.
        self.placed = 0

    def now(self) -> Any:
        """The cluster's own clock."""
        return T0 + timedelta(microseconds=self.loop.now_us)

    def run(self) -> list[str]:
        """Play it to its end; returns what was broken."""
        for at in range(2):
            self.replicas.append(Replica(self, f"replica-{at}", leads=at == 0))
        cluster = self.loop.start_process("cluster")
        self.loop.spawn(cluster, Scheduler(self).run())
        self.loop.spawn(cluster, self._owners())
        self.loop.spawn(cluster, self._drains())
        self.loop.run_until(TROUBLE_S)
        self._calm_down()
        self.loop.run_until(TROUBLE_S + CALM_S / 2)
        self.broken += self._held_too_long()
        for pod in self._tenants():
            if STUCK in pod["metadata"]["annotations"]:
                self.api.delete("Pod", place_of(pod), grace_s=0)
        self.loop.run_until(TROUBLE_S + CALM_S)
        self.broken += [f"raised: {error}" for error in self.loop.errors]
        self.broken += self._left_behind()
        self.loop.close()
        return self.broken

    def chance(self, of: float) -> bool:
        """Whether something goes wrong now."""
        return not self.calm and self.random.random() < of

    def pods(self) -> list[SlotPod]:
        """All pods, as they are."""
        return [msgspec.convert(body, SlotPod) for body in self.api.all("Pod")]

    # Troubles

    async def _owners(self) -> None:
        """Create pods, end them, delete them, and do harm, for a while."""
        while self.loop.time() < TROUBLE_S:
            await asyncio.sleep(self.random.uniform(0.0, 8.0))
            if self.loop.time() > TROUBLE_S * 0.9:
                continue
            self.random.choice(
                (self._create, self._create, self._end, self._delete, self._resize)
            )()
            if self.chance(self.troubles.kill):
                self._kill()
            if self.chance(self.troubles.stall):
                self._stall()
            if self.chance(self.troubles.cut):
                self.api.forget_events()

    async def _drains(self) -> None:
        """Delete ghosts, as a person may, or whoever drains a node, for a while."""
        while self.loop.time() < TROUBLE_S:
            await asyncio.sleep(self.random.uniform(0.0, 5.0))
            if self.chance(self.troubles.delete_ghost):
                self._delete_ghost()

    def _create(self) -> None:
        if sum(not is_over(body) for body in self._tenants()) > 6:
            return
        self._named += 1
        annotations = {naming.TEST_BED: BED.name}
        if self.random.random() < 0.5:
            slots = [str(Slot(n, node)) for node in self.nodes for n in range(self.per_node)]
            chosen = self.random.sample(slots, self.random.randint(1, len(slots)))
            annotations[naming.SLOTS] = ",".join(chosen)
        if self.random.random() < self.troubles.stuck:
            annotations[STUCK] = "true"
        metadata = {"name": f"p{self._named}", "annotations": annotations}
        spec = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
        self.api.create("Pod", BED.namespace, {"metadata": metadata, "spec": spec})

    def _tenants(self) -> list[Body]:
        return [body for body in self.api.all("Pod") if body["metadata"]["name"].startswith("p")]

    def _end(self) -> None:
        there = [body for body in self._tenants() if node_of(body) and not is_over(body)]
        if there:
            pod = self.random.choice(there)
            phase = self.random.choice(("Succeeded", "Failed"))
            self.api.set_status("Pod", place_of(pod), pod["metadata"]["uid"], phase=phase)

    def _delete(self) -> None:
        if self._tenants():
            pod = self.random.choice(self._tenants())
            left = self.api.delete("Pod", place_of(pod))
            if is_going(left):
                self.loop.call_later(self.random.uniform(0.0, 40.0), self._gone, left)

    def _gone(self, pod: Body) -> None:
        found = self.api.find("Pod", pod["metadata"]["uid"])
        if found is not None:
            self.api.delete("Pod", place_of(found), grace_s=0)

    def _delete_ghost(self) -> None:
        ghosts = [body for body in self.api.all("Pod") if body not in self._tenants()]
        held = [ghost for ghost in ghosts if ghost["metadata"].get("finalizers")]
        if ghosts:
            self.api.delete("Pod", place_of(self.random.choice(held or ghosts)), grace_s=0)

    def _resize(self) -> None:
        node = self.random.choice(self.nodes)
        self.wanted[node] = self.random.choice((0, self.per_node, self.per_node))
        self._wake()

    def _kill(self) -> None:
        at = self.random.randrange(len(self.replicas))
        self.loop.kill(self.replicas[at].process)
        self._named += 1
        self.replicas[at] = Replica(self, f"replica-{self._named}", leads=self.replicas[at].leads)

    def _stall(self) -> None:
        process = self.random.choice(self.replicas).process
        process.paused = True
        self.loop.call_later(self.random.uniform(0.0, 60.0), self._resume, process)

    def _resume(self, process: SimProcess) -> None:
        process.paused = False

    def _calm_down(self) -> None:
        self.calm = True
        self.wanted = dict.fromkeys(self.nodes, self.per_node)
        for replica in self.replicas:
            replica.process.paused = False
        self._wake()

    def _wake(self) -> None:
        for replica in self.replicas:
            self.loop.call_soon(replica.keeper.wake, (BED,), context=replica.process.context.copy())

    # Promises

    def _happened(self, happened: Happened) -> None:
        self.news.set()
        holders: dict[Slot, list[str]] = {}
        for pod in self.pods():
            hold = hold_of(pod)
            if hold is not None:
                holders.setdefault(hold.slot, []).append(pod.metadata.name)
        for slot, names in holders.items():
            if len(names) > 1:
                self._broke(f"{slot} has {' and '.join(names)}")
        pod = msgspec.convert(happened.body, SlotPod)
        told = record_of(pod).slot
        if pod.spec.node_name and told and not told.startswith(f"{pod.spec.node_name}/"):
            self._broke(f"{pod.metadata.name} has {told} and is on {pod.spec.node_name}")

    def _broke(self, what: str) -> None:
        if what not in self.broken:
            self.broken.append(what)

    def _held_too_long(self) -> list[str]:
        """Pods that do not come to the slot they were told, and have it all the same."""
        since = self.now() - COMES_WITHIN - timedelta(seconds=30)
        pods = {pod.uid: pod for pod in self.pods()}
        told = []
        for pod in pods.values():
            hold = hold_of(pod)
            if hold is not None and hold.at < since and not pod.spec.node_name:
                told.append(f"{pod.metadata.name} is kept {hold.slot}")
            reservation = reservation_of(pod)
            asker = pods.get(reservation.pod) if reservation is not None else None
            is_late = reservation is not None and reservation.at < since
            if asker is not None and is_late and not asker.spec.node_name:
                told.append(f"{asker.metadata.name} is kept {pod.metadata.name}")
        return told

    def _left_behind(self) -> list[str]:
        """What should not be so any more, once everybody had time."""
        sight = Sight()
        pods = self.pods()
        sight.observe([Seen(None, pod) for pod in pods])
        view = GhostView(
            bed=BED,
            wanted=self.wanted,
            size={"cpu": 1000},
            sight=sight.bed(BED),
            pods=sight.by_uid,
            allocatable=self.allocatable,
            taken=sight.taken,
        )
        found = decide(view, self.now())
        told = [f"left to be done: {action}" for action in found.actions]
        states = slots_of(view)
        told += [
            f"{ghost.metadata.name} is leaked" for ghost in pods if self._is_leaked(ghost, sight)
        ]
        strays = {pod.spec.node_name for pod in pods if self._strayed(pod)}
        for slot, state in states.items():
            if state is SlotState.MISSING and slot.node not in strays:
                told.append(f"{slot} is missing")
        free = {str(slot) for slot, state in states.items() if state is SlotState.FREE}
        for pod in pods:
            wanted = set(filter(None, pod.metadata.annotations.slots.split(",")))
            if self.waits(pod) and (free & wanted if wanted else free):
                told.append(f"{pod.metadata.name} waits, and {free} are free")
        return told

    def _is_leaked(self, ghost: SlotPod, sight: Sight) -> bool:
        """Whether a ghost is reserved for a pod that is gone, or is elsewhere."""
        reservation = reservation_of(ghost)
        if reservation is None:
            return False
        pod = sight.by_uid.get(reservation.pod)
        hold = hold_of(pod) if pod is not None else None
        return pod is None or (hold is not None and hold.ghost != ghost.uid)

    def _strayed(self, pod: SlotPod) -> bool:
        """Whether a pod was placed after what it was told had been taken back."""
        asks = bool(pod.metadata.annotations.test_bed)
        return asks and bool(pod.spec.node_name) and not pod.is_over and hold_of(pod) is None

    def is_stuck(self, pod: SlotPod) -> bool:
        """Whether a pod is never placed."""
        found = self.api.find("Pod", pod.uid)
        return found is not None and STUCK in found["metadata"]["annotations"]

    def waits(self, pod: SlotPod) -> bool:
        """Whether a pod is to get a slot."""
        asks = bool(pod.metadata.annotations.test_bed)
        return asks and not pod.spec.node_name and not pod.is_going and not pod.is_over

    @property
    def allocatable(self) -> dict[str, dict[str, int]]:
        """What each node has."""
        room = (self.per_node + self.beside) * 1000
        return {node: {"cpu": room, "pods": 100_000} for node in self.nodes}


class Replica:
    """A process with an extender and a keeper."""

    def __init__(self, world: World, name: str, *, leads: bool) -> None:
        self._world = world
        self.leads = leads
        self.process = world.loop.start_process(name)
        clock = SimClock(world.loop, self.process, T0)
        objects = Wire(world, self.process)
        luck = Random(world.random.getrandbits(32))
        self.pods: Informer[SlotPod] = Informer(objects, clock, luck, part=1 << 30, selector="")
        self.sight = Sight()
        self.pods.subscribe(self.sight.observe)
        self.extender = Extender(self.pods, self.sight, clock)
        self.keeper = Keeper(
            self.pods, self.sight, objects, self._facts, clock, luck, self._leads, GhostSettings()
        )
        self.keeper.wake((BED,))
        for work in (self.pods.run(), self.keeper.act()):
            world.loop.spawn(self.process, work)

    def _leads(self) -> bool:
        return self.leads or (self._world.troubles.two_leaders and not self._world.calm)

    def _facts(self, bed: Bed) -> BedFacts | None:
        if bed != BED:
            return None
        world = self._world
        return BedFacts(
            uid="bed-uid",
            wanted=dict(world.wanted),
            size={"cpu": 1000},
            allocatable=world.allocatable,
        )


class Wire:
    """Implements `Objects[SlotPod]` for one process: slow, lossy, and late."""

    def __init__(self, world: World, process: SimProcess) -> None:
        self._world = world
        self._process = process

    async def list(self, selector: str = "", *, namespace: str | None = None) -> Listed[SlotPod]:
        """All pods, as they are at one version."""
        del selector, namespace
        return await self._ask(lambda: Listed(self._world.pods(), self._world.api.version))

    def watch(
        self, selector: str, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event[SlotPod]]]]:
        """What happens after a version."""
        del selector
        return self._watch(since)

    @asynccontextmanager
    async def _watch(
        self, since: int
    ) -> AsyncGenerator[AsyncIterator[Sequence[Event[SlotPod]]], None]:
        self._world.api.since("Pod", since)
        yield self._events(since)

    async def _events(self, since: int) -> AsyncIterator[Sequence[Event[SlotPod]]]:
        world = self._world
        while True:
            if not world.api.since("Pod", since):
                world.news.clear()
                await world.news.wait()
            await asyncio.sleep(world.random.uniform(0.0, 0.05 + world.troubles.slow_s))
            if world.chance(world.troubles.cut):
                return
            if world.chance(world.troubles.stall):
                await asyncio.sleep(world.random.uniform(0.0, 20.0))
            happened = world.api.since("Pod", since)
            if happened:
                since = happened[-1].version
                yield [
                    Event(one.type, msgspec.convert(one.body, SlotPod), one.version)
                    for one in happened
                ]

    async def get(self, namespace: str, name: str) -> SlotPod:
        """The newest version of a pod."""
        return await self._ask(lambda: self._read(self._world.api.get("Pod", (namespace, name))))

    async def create(self, namespace: str, manifest: Mapping[str, Any]) -> SlotPod:
        """Store a pod, now or much later."""
        return await self._write(lambda: self._world.api.create("Pod", namespace, manifest))

    async def patch(self, namespace: str, name: str, patch: Mapping[str, Any]) -> SlotPod:
        """Change a pod, now or much later."""
        return await self._write(lambda: self._world.api.patch("Pod", (namespace, name), patch))

    async def delete(
        self, namespace: str, name: str, *, uid: str, grace_s: int | None
    ) -> SlotPod | None:
        """Ask for a pod to go, now or much later."""
        return await self._write(
            lambda: self._world.api.delete("Pod", (namespace, name), uid=uid, grace_s=grace_s)
        )

    def _read(self, body: Body) -> SlotPod:
        return msgspec.convert(body, SlotPod)

    async def _write(self, do: Callable[[], Body]) -> SlotPod:
        world = self._world
        if world.chance(world.troubles.late):
            world.loop.call_later(
                world.random.uniform(0.0, 90.0),
                _arrive,
                do,
                context=world.loop.world.context.copy(),
            )
            await asyncio.sleep(world.random.uniform(0.0, 5.0))
            raise UnavailableError("nobody answered in time")
        return await self._ask(lambda: self._read(do()))

    async def _ask(self, do: Callable[[], T]) -> T:
        world = self._world
        await asyncio.sleep(world.random.uniform(0.0, world.troubles.slow_s))
        if world.chance(world.troubles.lost):
            raise UnavailableError("lost on the way")
        answer = do()
        await asyncio.sleep(world.random.uniform(0.0, world.troubles.slow_s))
        if world.chance(world.troubles.lost):
            raise UnavailableError("the answer was lost")
        return answer


class Scheduler:
    """Places what is not placed, by a picture that is older than what it does."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self) -> None:
        """Go round for ever."""
        world = self._world
        while True:
            await asyncio.sleep(world.random.uniform(0.1, 2.0))
            picture = world.pods()
            waiting = [pod for pod in picture if self._world.waits(pod) or _is_new_ghost(pod)]
            world.random.shuffle(waiting)
            for pod in waiting[:3]:
                await asyncio.sleep(world.random.uniform(0.0, 0.3))
                await self._schedule(pod, picture)

    async def _schedule(self, pod: SlotPod, picture: list[SlotPod]) -> None:
        found = ghost_slot(pod)
        with_room = [node for node in self._world.nodes if self._has_room(node, picture)]
        if found is not None:
            if found[1].node in with_room:
                await self._bind(pod, found[1].node)
            return
        if with_room:
            answer = await self._ask(
                lambda extender: extender.filter(FilterArgs(pod=pod, node_names=with_room))
            )
            if answer is None:
                return
            if answer.node_names:
                await self._bind(pod, answer.node_names[0])
                return
        await self._preempt(pod, picture, with_room)

    async def _preempt(self, pod: SlotPod, picture: list[SlotPod], with_room: list[str]) -> None:
        offered: dict[str, MetaVictims | None] = {}
        for node in self._world.nodes:
            ghosts = [one for one in picture if ghost_slot(one) and one.spec.node_name == node]
            if ghosts and node not in with_room:
                offered[node] = MetaVictims([MetaPod(self._world.random.choice(ghosts).uid)])
        if not offered:
            return
        answer = await self._ask(
            lambda extender: extender.preempt(PreemptionArgs(pod=pod, meta_victims=offered))
        )
        for node, victims in (answer.meta_victims if answer else {}).items():
            for victim in victims.pods or ():
                self._evict(victim.uid, node, picture)

    def _evict(self, uid: str, node: str, picture: list[SlotPod]) -> None:
        known = [pod for pod in picture if pod.uid == uid and pod.spec.node_name == node]
        if known and ghost_slot(known[0]) is None:
            self._world._broke(f"{known[0].metadata.name} is evicted, and is no ghost")
        if known and self._world.api.find("Pod", uid) is not None:
            self._world.api.delete("Pod", known[0].place, uid=uid)

    async def _bind(self, pod: SlotPod, node: str) -> None:
        await asyncio.sleep(self._world.random.uniform(0.0, 1.0))
        if self._world.is_stuck(pod):
            return
        if self._has_room(node, self._world.pods()):
            self._world.api.bind(pod.place, pod.uid, node)
            found = self._world.api.find("Pod", pod.uid)
            if found is not None:
                self._world.api.set_status("Pod", pod.place, pod.uid, phase="Running")
                self._world.placed += ghost_slot(pod) is None

    def _has_room(self, node: str, pods: list[SlotPod]) -> bool:
        there = [pod for pod in pods if pod.spec.node_name == node and not pod.is_over]
        return len(there) < self._world.per_node + self._world.beside

    async def _ask(self, ask: Callable[[Extender], Any]) -> Any:
        """Ask one of the replicas; None where it does not answer in time."""
        replica = self._world.random.choice(self._world.replicas)
        asked = self._world.loop.spawn(replica.process, ask(replica.extender))
        done, _ = await asyncio.wait((asked,), timeout=_ANSWER_S)
        return asked.result() if done else None


def _is_new_ghost(pod: SlotPod) -> bool:
    return ghost_slot(pod) is not None and not pod.spec.node_name and not pod.is_going


def _arrive(do: Callable[[], Body]) -> None:
    try:
        do()
    except (InterlockError, ConflictError, ExpiredError):
        return  # It is refused, and nobody is there to be told.
