"""Worlds with TestBeds: Jobs want slots on nodes that come and go, of beds that are changed."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from interlock.errors import AlreadyExistsError, ConflictError, NotFoundError
from interlock.resources.cluster import Node
from interlock.resources.job import SlotsRequest
from interlock.resources.metadata import Key, Metadata
from interlock.resources.test_bed import TestBed, TestBedSpec
from interlock.resources.transitions import has_ended
from support.simulation.faults import FaultRates
from support.simulation.people import NAMESPACE, People
from support.simulation.script import (
    Act,
    ApplyBed,
    ChangeSlots,
    CreateJob,
    ForgeStatus,
    PutNode,
    RemoveBed,
    RequeueOne,
    Step,
    TakeNode,
)
from support.simulation.slot_promises import SLOT_PROMISES
from support.simulation.world import RivalWorld, World

BEDS = ("bed-a", "bed-b")
NODES = ("n0", "n1", "n2")
LABEL = "interlock.dev/beds"
#: What a bed is once people have tidied up: every Job of these worlds fits.
AMPLE = TestBedSpec(slots_per_node=4, node_label=LABEL)
_TRIES = 50


class SlotPeople(People):
    """Carries out the steps of a script that people do, those about beds and nodes too."""

    async def _do(self, act: Act) -> None:
        match act:
            case ApplyBed(name, spec):
                await self._apply_bed(name, spec)
            case RemoveBed(name):
                await self._store.delete(Key("TestBed", NAMESPACE, name))
            case PutNode(name, labels):
                await self._put_node(name, labels)
            case TakeNode(name):
                await self._store.delete(Key("Node", "", name))
            case ChangeSlots(name, slots):
                await self._edit(
                    name, lambda job: replace(job, spec=replace(job.spec, slots=slots))
                )
            case _:
                await super()._do(act)

    async def tidy_up(self) -> None:
        """Have every bed there with all its nodes, and every Job name one."""
        await super().tidy_up()
        for number, name in enumerate(NODES):
            labels = {LABEL: str(number)}
            node = self._truth.nodes.get(name)
            if node is None or node.metadata.labels != labels:
                await self.do(PutNode(name, labels))
        for name in BEDS:
            bed = self._truth.beds.get(name)
            if bed is None or bed.spec != AMPLE:
                await self.do(ApplyBed(name, AMPLE))
        for key, job in tuple(self._truth.jobs.items()):
            slots = job.spec.slots
            if slots is not None and slots.test_bed is None and not has_ended(job):
                await self.do(ChangeSlots(key.name, SlotsRequest(test_bed=BEDS[0])))

    async def _apply_bed(self, name: str, spec: TestBedSpec) -> None:
        for _ in range(_TRIES):
            try:
                bed = await self._store.get(Key("TestBed", NAMESPACE, name))
                assert isinstance(bed, TestBed)
                await self._store.update(replace(bed, spec=spec))
            except NotFoundError:
                metadata = Metadata(name=name, namespace=NAMESPACE)
                try:
                    await self._store.create(TestBed(metadata=metadata, spec=spec))
                except AlreadyExistsError:
                    continue
            except ConflictError:
                continue
            return

    async def _put_node(self, name: str, labels: dict[str, str]) -> None:
        for _ in range(_TRIES):
            try:
                node = await self._store.get(Key("Node", "", name))
                metadata = replace(node.metadata, labels=labels)
                await self._store.update(replace(node, metadata=metadata))
            except NotFoundError:
                try:
                    await self._store.create(Node(metadata=Metadata(name=name, labels=labels)))
                except AlreadyExistsError:
                    continue
            except ConflictError:
                continue
            return


class SlotWorld(World):
    """Jobs, locks and TestBeds."""

    name = "SlotWorld"
    who = SlotPeople
    promises = (*World.promises, *SLOT_PROMISES)

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is None:
            self.script = with_slots(self.script, Random(f"{seed}:slots"))


class RivalSlotWorld(SlotWorld, RivalWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalSlotWorld"


def with_slots(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with TestBeds, on whose slots most of its Jobs run."""
    length = script[-1].at if script else 300.0
    beds = BEDS[: random.choice((1, 1, 2))]
    # A stranger whose clock is an hour ahead may take a lock for good; of that other worlds tell.
    kept = [step for step in script if not isinstance(step.act, ForgeStatus)]
    steps = [_seated(step, beds, random) for step in kept]
    steps += [Step(0.0, PutNode(name, _labels(random, at))) for at, name in enumerate(NODES)]
    steps += [Step(random.choice((0.0, 0.0, 40.0)), ApplyBed(bed, _bed(random))) for bed in beds]
    names = [step.act.name for step in kept if isinstance(step.act, CreateJob)]
    for _ in range(random.choice((0, 2, 6, 12))):
        at, act = random.uniform(1.0, length), _meddling(random, beds, names)
        steps += [Step(at, act)] if act is not None else []
    return tuple(sorted(steps, key=lambda step: step.at))


def _meddling(random: Random, beds: tuple[str, ...], names: list[str]) -> Act | None:
    match random.randrange(7):
        case 0:
            return ApplyBed(random.choice(beds), _bed(random))
        case 1:
            return RemoveBed(random.choice(beds))
        case 2:
            at = random.randrange(len(NODES))
            return PutNode(NODES[at], _labels(random, at))
        case 3:
            return TakeNode(random.choice(NODES))
        case 4 | 5 if names:
            return ChangeSlots(random.choice(names), _request(random, beds))
        case _:
            return RequeueOne(random.random())


def _seated(step: Step, beds: tuple[str, ...], random: Random) -> Step:
    act = step.act
    is_process = isinstance(act, CreateJob) and act.spec.process is not None
    if not isinstance(act, CreateJob) or not is_process or random.random() < 0.1:
        return step
    spec = replace(act.spec, slots=_request(random, beds))
    if random.random() < 0.5:
        spec = replace(spec, locks=())
    return Step(step.at, replace(act, spec=spec))


def _request(random: Random, beds: tuple[str, ...]) -> SlotsRequest:
    """Any slots of a bed, certain ones, or none before somebody says of which bed."""
    luck = random.random()
    if luck < 0.1:
        return SlotsRequest()
    bed = random.choice(beds)
    if luck < 0.6:
        return SlotsRequest(test_bed=bed)
    every = [f"{node}/{number}" for node in NODES for number in range(AMPLE.slots_per_node)]
    count = random.choice((1, 1, 2, 3))
    return SlotsRequest(test_bed=bed, ids=tuple(random.sample(every[: count * 3], count)))


def _bed(random: Random) -> TestBedSpec:
    label = random.choice((None, LABEL, LABEL))
    return TestBedSpec(slots_per_node=random.choice((1, 2, 4)), node_label=label)


def _labels(random: Random, number: int) -> dict[str, str]:
    """Mostly as they should be; sometimes not of the bed, twice the same, or no number."""
    label = random.choice((str(number), str(number), str(number), "0", "x", None))
    return {} if label is None else {LABEL: label}
