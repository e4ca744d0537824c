"""Control planes on a cluster: the real runtime for pods, on a simulated API server and nodes."""

from __future__ import annotations

from functools import partial
from random import Random

from interlock.control.runtime import Runtime
from interlock.errors import FencedError
from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.kube.pods.informers import Informers
from interlock.kube.pods.models import BatchJob, Node, Pod, T
from interlock.kube.pods.runtime import PodRuntime
from interlock.resources.job import Job
from interlock.resources.modes import Mode
from interlock.resources.tasks import TaskOrder
from interlock.runtimes.router import Router
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.cluster import Cluster, is_ours
from support.simulation.faults import CALM, FaultRates
from support.simulation.faulty_objects import (
    FaultyObjects,
    FaultyRecords,
    Lateness,
    draw_lateness,
)
from support.simulation.judge import Judge
from support.simulation.kube_api import (
    Happened,
    gates_of,
    is_going,
    is_over,
    node_of,
    uid_of,
)
from support.simulation.kubelet import order_of
from support.simulation.pod_promises import POD_PROMISES
from support.simulation.pod_script import in_pods, spoiled
from support.simulation.script import (
    PLANES,
    Act,
    CrashNode,
    CreateJob,
    DeletePod,
    DenyPods,
    KillJob,
    LoseMachine,
    LoseNode,
    RemoveNode,
    Step,
)
from support.simulation.world import Plane, World


class PodPlane(Plane):
    """A control plane that runs pods."""

    def __init__(self, world: PodWorld, number: int, life: int) -> None:
        super().__init__(world, number, life)
        self._pods = self._objects(world, "Pod", Pod)
        self._jobs = self._objects(world, "Job", BatchJob)
        self._nodes = self._objects(world, "Node", Node)
        self._runtime: PodRuntime | None = None

    def start(self) -> None:
        """Begin, inside the process."""
        self._sight = Informers(
            self._pods, self._jobs, self._nodes, self.clock, self.luck, part=self._world.part
        )
        self._seeing = self._world.loop.create_task(self._sight.run())
        super().start()

    async def connect(self, term: int) -> Runtime:
        """Run pods in the name of a term."""
        if self._runtime is not None:
            self._runtime.abandon()
        records = FaultyRecords(self.store)
        self._runtime = self._sight.lead(partial(self._check, term), records=records)
        return Router({"pods": self._runtime}, own="pods", check=self.plane.fence.check)

    def _check(self, term: int) -> None:
        self.plane.fence.check()
        if self.plane.fence.term != term:
            raise FencedError(f"term {term} is over")

    def disconnect(self) -> None:
        """The process is gone, and those it was connected to notice."""
        super().disconnect()
        for objects in (self._pods, self._jobs, self._nodes):
            objects.disconnect()

    def _objects(self, world: PodWorld, kind: str, type: type[T]) -> FaultyObjects[T]:
        wire = self.wire(world.cluster.process)
        return FaultyObjects(world.cluster, kind, type, wire, world.loop, world.lateness)


class PodWorld(World):
    """One seed's world on a cluster."""

    name = "PodWorld"
    mode = Mode.CLUSTER

    def __init__(
        self,
        seed: int,
        script: tuple[Step, ...] | None = None,
        rates: FaultRates | None = None,
        lateness: Lateness | None = None,
    ) -> None:
        super().__init__(seed, script, rates)
        luck = Random(f"{seed}:pods")
        drawn = draw_lateness(luck)
        self.lateness = lateness or (drawn if rates is None else Lateness())
        self.script = in_pods(self.script, luck)
        if script is None:
            self.script = spoiled(self.script, luck)
        if self._is_calm():
            # One portion is under way, and another may begin before the news is there.
            self.truth.made_after_stop = 2 * self.launches_at_once * (PLANES if self.rivals else 1)

    def _is_calm(self) -> bool:
        """Whether everybody hears of everything at once; requests may take long all the same."""
        acts = (CreateJob, KillJob)
        is_quiet = self.rates == CALM and not self.lateness.late and not self.lateness.cut
        return is_quiet and all(isinstance(step.act, acts) for step in self.script)

    def committed(self, change: Change) -> None:
        """A write was committed; what a Job owned is collected some time after it."""
        super().committed(change)
        resource = change.event.resource
        if isinstance(resource, Job) and change.event.type is EventType.DELETED:
            self.cluster.owner_is_gone(resource.metadata.uid)

    def _lay_ground(self) -> None:
        cluster = Cluster(self.loop, Random(f"{self.seed}:cluster"), self.history, self.epoch)
        self.cluster = cluster
        self._pod_promises = [promise(self.truth, cluster) for promise in POD_PROMISES]
        usual = [promise(self.truth) for promise in self.promises]
        self.judge = Judge(self.truth, [*usual, *self._pod_promises])
        cluster.hooks.started.append(self._started)
        cluster.hooks.ended.append(self.judge.ended)
        cluster.hooks.given_up.append(self._given_up)
        cluster.hooks.stripped.append(self._stripped)
        cluster.api.listeners["judge"] = self._pod_changed

    def _plane(self, number: int, life: int) -> Plane:
        return PodPlane(self, number, life)

    # What really happens

    def _started(self, life: Life) -> None:
        if life.order.id not in self.truth.written_off:
            self.judge.started(life)

    def _given_up(self, order: TaskOrder, code: int) -> None:
        """A container that never ran was said to have failed: there is no other truth of it."""
        self.truth.ends.setdefault(order.id, (code, None))

    def _stripped(self, order: TaskOrder) -> None:
        self.truth.written_off[order.id] = None

    def _pod_changed(self, happened: Happened) -> None:
        if happened.kind != "Pod" or not is_ours(happened.body):
            return
        self._note(happened)
        before, pod, caller = happened.before, happened.body, self.cluster.api.caller
        stops = before is not None and is_going(pod) and not is_going(before)
        if caller and stops and not is_over(pod):
            self.judge.stopped(order_of(pod).id)
        for promise in self._pod_promises:
            promise.pod_changed(happened)

    def _note(self, happened: Happened) -> None:
        if self.cluster.api.caller:
            order, pod = order_of(happened.body), happened.body
            told = f"pod {order.name} ({uid_of(pod)[:4]}) v{happened.version} {_in_words(happened)}"
            self.history.note(self.cluster.api.caller, told, order.job)

    # Trouble

    def _shake(self, act: Act) -> bool:
        match act:
            case LoseNode(node, seconds):
                self.cluster.lose_node(node, seconds)
            case CrashNode(node, seconds):
                self.cluster.crash_node(node, seconds)
            case RemoveNode(node):
                self.cluster.remove_node(node)
            case DeletePod(job, force, strip):
                self.cluster.delete_pod(job, force=force, strip=strip)
            case DenyPods(how, seconds):
                self.cluster.deny(how, seconds)
            case LoseMachine(seconds):
                self.cluster.set_reachable(False)
                self._later(seconds, self.cluster.set_reachable, True)
            case _:
                return False
        return True

    def _heal(self) -> None:
        self.cluster.heal()
        self.lateness.late = self.lateness.cut = self.lateness.slow_s = 0.0

    def _end_trouble(self) -> None:
        super()._end_trouble()
        # What is still on its way arrives before anybody may say that all is settled.
        self.loop.run_until(max(self.lateness.until, self.loop.time()) + 1.0)

    def _calls(self) -> int:
        return self.cluster.calls

    def _check_ground(self) -> None:
        """What is left of pods is a promise of its own."""


class RivalPodWorld(PodWorld):
    """Both control planes believe that they lead: what runs may not rest on the lease."""

    name = "RivalPodWorld"
    rivals = True


def _in_words(happened: Happened) -> str:
    pod = happened.body
    words = [{"ADDED": "created", "DELETED": "removed"}.get(happened.type, "changed")]
    words += ["gated"] if gates_of(pod) else []
    words += [f"on {node_of(pod)}"] if node_of(pod) else []
    words += [pod["status"]["phase"]]
    words += ["going"] if is_going(pod) else []
    words += ["held"] if pod["metadata"].get("finalizers") else []
    return " ".join(words)
