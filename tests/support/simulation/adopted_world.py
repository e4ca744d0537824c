"""Worlds in which batch Jobs and pods of others stand in Queues, beside Jobs of ours."""

from __future__ import annotations

from random import Random
from typing import Any

from interlock.control.reconciler import Change as CacheChange
from interlock.control.runtime import Runtime
from interlock.errors import InterlockError
from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.kube.adoption.adopter import Adopter
from interlock.kube.adoption.models import ForeignJob, ForeignPod
from interlock.kube.pods.models import T
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.tasks import TaskId
from interlock.resources.transitions import has_ended
from interlock.store.contract import DeleteOptions
from support.simulation.adopted_promises import ADOPTED_PROMISES
from support.simulation.adopted_script import with_theirs
from support.simulation.adopted_truth import Theirs, is_theirs, order_of_job
from support.simulation.batch_controller import BatchController
from support.simulation.faults import FaultRates, FaultyStore
from support.simulation.faulty_objects import FaultyObjects
from support.simulation.judge import Judge
from support.simulation.kube_api import Body, Happened, uid_of
from support.simulation.line_promises import LINE_PROMISES
from support.simulation.others import Others
from support.simulation.people import People
from support.simulation.pod_world import PodPlane, PodWorld, RivalPodWorld
from support.simulation.queue_people import QueuePeople
from support.simulation.queue_promises import QUEUE_PROMISES
from support.simulation.queue_script import with_gates, with_preemption, with_queues
from support.simulation.queue_world import RestsFirst
from support.simulation.script import (
    Act,
    ChangeTheirs,
    CreateTheirs,
    DeletePart,
    DeleteTheirs,
    KillJob,
    OrderStandIn,
    StandInVerb,
    Step,
    SuspendJob,
)
from support.simulation.world import Plane

#: How late the garbage collector is.
_COLLECT_S = (0.1, 3.0, 30.0)


class _FencedObjects(FaultyObjects[T]):
    """Objects that are written only by who leads, as the client of a controller has it."""

    plane: AdoptingPlane

    async def _write(self, what: str, do: Any) -> T:
        self.plane.plane.fence.check()
        return await super()._write(what, do)


class _FencedStore(FaultyStore):
    """A store that is written only by who leads."""

    plane: AdoptingPlane

    def _write(self, work: Any) -> Any:
        try:
            self.plane.plane.fence.check()
        except InterlockError:
            work.close()
            raise
        return super()._write(work)


class AdoptingPlane(PodPlane):
    """A control plane that runs pods, and adopts those of others."""

    def __init__(self, world: AdoptedWorld, number: int, life: int) -> None:
        super().__init__(world, number, life)
        self._their_jobs = self._theirs(world, "Job", ForeignJob)
        self._their_pods = self._theirs(world, "Pod", ForeignPod)
        self._their_store = _FencedStore(
            world.store, self.wire(world.store_process), world.loop, world.truth
        )
        self._their_store.plane = self

    def start(self) -> None:
        """Begin, inside the process."""
        self._adopter = Adopter(
            self._their_jobs,
            self._their_pods,
            self._known,
            self._their_store,
            self.clock,
            self.luck,
            lambda: self.plane.fence.is_open,
            lambda _, __: None,
        )
        super().start()
        self._adopting = self._world.loop.create_task(self._adopter.run())

    def observe(self, change: CacheChange) -> None:
        """Something in a cache changed."""
        self._adopter.observe(change)

    async def connect(self, term: int) -> Runtime:
        """Run pods in the name of a term, and look at what is of others."""
        runtime = await super().connect(term)
        self._adopter.begin()
        return runtime

    def disconnect(self) -> None:
        """The process is gone, and those it was connected to notice."""
        super().disconnect()
        self._their_store.disconnect()
        self._their_jobs.disconnect()
        self._their_pods.disconnect()

    def _known(self, key: Key) -> Job | None:
        return self.plane.cache(Job).get(key)

    def _theirs(self, world: AdoptedWorld, kind: str, type: type[T]) -> FaultyObjects[T]:
        wire = self.wire(world.cluster.process)
        made = _FencedObjects(world.cluster, kind, type, wire, world.loop, world.lateness)
        made.plane = self
        return made


class AdoptingPeople(QueuePeople):
    """People who also give orders about what stands for things of others."""

    others: Others

    async def _do(self, act: Act) -> None:
        if not isinstance(act, OrderStandIn):
            await super()._do(act)
            return
        jobs = [
            job
            for job in self._truth.jobs.values()
            if job.spec.adopted is not None and not has_ended(job) and not job.is_going
        ]
        if not jobs:
            return
        name = jobs[int(act.luck * len(jobs))].metadata.name
        match act.verb:
            case StandInVerb.KILL:
                await super()._do(KillJob(name))
            case StandInVerb.DELETE:
                await self._delete(name)
            case StandInVerb.SUSPEND:
                await super()._do(SuspendJob(name, True))

    async def collect(self, owner: str) -> None:
        """Delete what belongs to an object that is gone, as a cluster does."""
        for key, job in tuple(self._truth.jobs.items()):
            owners = [one.uid for one in job.metadata.owner_references]
            if owner in owners and not job.is_going:
                self._truth.to_delete[job.metadata.uid] = None
                try:
                    await self._store.delete(key, DeleteOptions(uid=job.metadata.uid))
                except InterlockError:
                    continue

    async def tidy_up(self) -> None:
        """Have what others suspended themselves go on too."""
        self.others.tidy_up()
        await super().tidy_up()


class AdoptedWorld(RestsFirst, PodWorld):
    """Jobs, Queues, and batch Jobs and pods of others, on a cluster."""

    name = "AdoptedWorld"
    who: type[People] = AdoptingPeople
    promises = (*QUEUE_PROMISES, *LINE_PROMISES)

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is not None:
            return
        luck = Random(f"{seed}:theirs")
        self.script = with_theirs(with_queues(self.script, luck), luck)
        if luck.random() < 0.5:
            self.script = with_preemption(self.script, luck)
        if luck.random() < 0.3:
            self.script = with_gates(self.script, luck)

    def _lay_ground(self) -> None:
        super()._lay_ground()
        cluster = self.cluster
        self.batch = BatchController(cluster, self.loop, Random(f"{self.seed}:batch"))
        self.batch.ended.append(self._batch_job_ended)
        self.others = Others(cluster, self.batch, self.loop, self.history, self._now)
        self.theirs = Theirs(cluster)
        self._their_promises = [
            promise(self.truth, cluster, self.theirs) for promise in ADOPTED_PROMISES
        ]
        self.judge = Judge(self.truth, [*self.judge.promises, *self._their_promises])
        cluster.api.listeners["others"] = self._theirs_changed

    def _plane(self, number: int, life: int) -> Plane:
        return AdoptingPlane(self, number, life)

    def _people(self) -> People:
        people = super()._people()
        assert isinstance(people, AdoptingPeople)
        people.others = self.others
        return people

    # What really happens

    def _started(self, life: Life) -> None:
        if life.order.job_uid:
            super()._started(life)
            return
        for promise in self._their_promises:
            promise.part_starts(life)

    def _batch_job_ended(self, job: Body, complete: bool) -> None:
        """What becomes of a batch Job is what its controller says."""
        order = order_of_job(job)
        if order.job_uid:
            task = TaskId(order.job_uid, order.index, order.attempt)
            self.truth.ends[task] = (0 if complete else 1, None)

    def _theirs_changed(self, happened: Happened) -> None:
        if happened.kind == "Node" or not is_theirs(happened.body):
            return
        self.truth.activity += 1
        self._note_theirs(happened)
        self.theirs.take(happened)
        for promise in self._their_promises:
            promise.object_changed(happened)
        if happened.type == "DELETED":
            self._later(self._fate.choice(_COLLECT_S), self._collect, uid_of(happened.body))

    def _collect(self, owner: str) -> None:
        assert isinstance(self.people, AdoptingPeople)
        self.loop.spawn(self._user, self.people.collect(owner))

    def _note_theirs(self, happened: Happened) -> None:
        body, spec = happened.body, happened.body["spec"]
        metadata = body["metadata"]
        words = [happened.kind, metadata["name"], uid_of(body)[:4], f"v{happened.version}"]
        words.append({"ADDED": "created", "DELETED": "removed"}.get(happened.type, "changed"))
        if happened.kind == "Job":
            words.append("suspended" if spec.get("suspend") else f"runs x{spec['parallelism']}")
            words += [f"{k}={v}" for k, v in body["status"].items() if k != "conditions"]
            words += [
                f"{one['type']}={one['status']}" for one in body["status"].get("conditions") or ()
            ]
        labels = metadata.get("labels") or {}
        words += [f"{k.rpartition('/')[2]}={v}" for k, v in labels.items()]
        notes = metadata.get("annotations") or {}
        words += [k.rpartition("/")[2] for k in notes]
        words += ["held"] if metadata.get("finalizers") else []
        words += ["going"] if "deletionTimestamp" in metadata else []
        name = labels.get("interlock.dev/job") or metadata["name"]
        self.history.note(self.cluster.api.caller or "others", " ".join(words), name)

    # Trouble

    def _shake(self, act: Act) -> bool:
        match act:
            case CreateTheirs():
                self.others.create(act)
            case ChangeTheirs():
                self.others.change(act)
            case DeleteTheirs():
                self.others.delete(act)
            case DeletePart():
                self.others.delete_part(act)
            case _:
                return super()._shake(act)
        return True


class RivalAdoptedWorld(AdoptedWorld, RivalPodWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalAdoptedWorld"
