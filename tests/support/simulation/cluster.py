"""A cluster: an API server, nodes, and the controllers that act on pods beside us.

The scheduler places what has no gate. The lifecycle controller notices silent nodes and has their
pods deleted. The collector of pods declares those of removed nodes over. The garbage collector
deletes what has no owner any more. All of them are late, and none asks us.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from interlock.errors import ForbiddenError, InvalidError
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.client.errors import CannotNowError, NoRightError, OverQuotaError
from interlock.kube.pods import naming
from interlock.resources.tasks import TaskId
from support.simulation.history import History
from support.simulation.kube_api import (
    Body,
    Happened,
    Place,
    SimApi,
    gates_of,
    is_going,
    is_over,
    node_of,
    place_of,
    uid_of,
)
from support.simulation.kubelet import Box, Hooks, Kubelet, order_of
from support.simulation.script import Denial

NODES = 3
#: A node that said nothing for so long is not ready; its pods are deleted a while after that.
NOT_READY_S = 40.0
EVICT_S = 60.0
#: Pods of a node that is not there are collected after about this time.
COLLECT_S = 45.0
#: The scheduler looks again at what it could not place.
LOOK_AGAIN_S = 5.0


class Cluster:
    """Everything there is beside the control planes."""

    def __init__(self, loop: SimLoop, random: Random, history: History, origin: datetime) -> None:
        self._loop = loop
        self._random = random
        self._history = history
        self._origin = origin
        self.process = loop.start_process("cluster")
        self.api = SimApi(self.now, random)
        self.hooks = Hooks()
        #: Whether control planes reach the API server's pods.
        self.reachable = True
        #: What the API server refuses them now, and how often it was told to.
        self.denials: Counter[Denial] = Counter()
        #: Attempts that had their pod denied, and those whose pod is refused for what it is.
        self.denied: set[TaskId] = set()
        self.refused: set[TaskId] = set()
        #: How often control planes had something changed.
        self.calls = 0
        self.nodes: dict[str, Kubelet] = {}
        self._joined = 0
        #: Uids of Jobs that are gone.
        self._orphaned: dict[str, None] = {}
        self.api.listeners[self] = self._changed
        for _ in range(NODES):
            self._join()

    def now(self) -> datetime:
        """The cluster's own clock."""
        return self._origin + timedelta(microseconds=self._loop.now_us)

    # What control planes have done

    def asked(self, caller: str, do: Callable[[], Body]) -> Body:
        """Carry out the request of a control plane."""
        self.calls += 1
        self.api.caller = caller
        try:
            return do()
        finally:
            self.api.caller = ""

    # What happens to a cluster

    def lose_node(self, number: int, seconds: float) -> None:
        """Cut a node off for a while."""
        self._trouble(number, seconds, Kubelet.cut_off)

    def crash_node(self, number: int, seconds: float) -> None:
        """Have a node lose power for a while."""
        self._trouble(number, seconds, Kubelet.lose_power)

    def remove_node(self, number: int) -> None:
        """A machine is gone for good; somebody removes its node, and another one joins."""
        node = self._node(number)
        if node is not None:
            node.lose_power()
            node.doomed = True
            self._later(self._random.choice((0.0, 20.0, 200.0)), self._remove, node)

    def delete_pod(self, job: str, *, force: bool, strip: bool) -> None:
        """A person deletes the newest pod of a Job."""
        pods = [pod for pod in self.api.all("Pod") if order_of(pod).job == job]
        if not pods:
            return
        pod, place = pods[-1], place_of(pods[-1])
        self._note(pod, "is deleted by a person" + (" by force" if force else ""))
        self.api.delete("Pod", place, uid=uid_of(pod), grace_s=0 if force else None)
        if strip and self.api.find("Pod", uid_of(pod)) is not None:
            self._note(pod, "is stripped of what holds it")
            for told in self.hooks.stripped:
                told(order_of(pod))
            self.api.patch("Pod", place, {"metadata": {"finalizers": []}})

    def set_reachable(self, reachable: bool) -> None:
        """Lose or find the API server, as control planes see it."""
        if reachable != self.reachable:
            self._history.note("cluster", "answers again" if reachable else "answers nobody")
        self.reachable = reachable

    def deny(self, how: Denial, seconds: float) -> None:
        """Refuse some orders of control planes for a while."""
        self._history.note("cluster", f"denies: {how}")
        self.denials[how] += 1
        self._later(seconds, self._allow, how)

    def _allow(self, how: Denial) -> None:
        if self.denials[how]:
            self.denials[how] -= 1

    def create(self, kind: str, namespace: str, manifest: Mapping[str, Any]) -> Body:
        """Store what a control plane sends, unless that is denied now."""
        if kind != "Pod":
            return self.api.create(kind, namespace, manifest)
        task = order_of(dict(manifest)).id
        try:
            self._may_create()
            return self.api.create(kind, namespace, manifest)
        except InvalidError:
            self.refused.add(task)
            raise
        except (ForbiddenError, CannotNowError):
            self.denied.add(task)
            raise

    def _may_create(self) -> None:
        """Refuse as a real server does, in its order: rights, what others say, quota."""
        if self.denials[Denial.NO_CREATE]:
            raise NoRightError("pods is forbidden: you cannot create pods")
        if self.denials[Denial.DEAD_WEBHOOK]:
            raise CannotNowError("Internal error occurred: failed calling webhook")
        if self.denials[Denial.QUOTA]:
            raise OverQuotaError("exceeded quota: none, requested: pods=1, used: pods=0")

    def delete(self, kind: str, place: Place, *, uid: str, grace_s: int | None) -> Body:
        """Have something go that a control plane wants gone, unless that is denied now."""
        if kind == "Pod" and self.denials[Denial.NO_DELETE]:
            raise ForbiddenError(f'pods "{place[1]}" is forbidden: you cannot delete pods')
        return self.api.delete(kind, place, uid=uid, grace_s=grace_s)

    def patch(self, kind: str, place: Place, patch: Mapping[str, Any]) -> Body:
        """Change what a control plane wants changed, unless that is denied now."""
        if kind == "Pod" and self.denials[Denial.NO_PATCH]:
            raise NoRightError(f'pods "{place[1]}" is forbidden: you cannot patch pods')
        return self.api.patch(kind, place, patch)

    def heal(self) -> None:
        """End all trouble."""
        self.set_reachable(True)
        self.denials.clear()
        for node in self.nodes.values():
            self._come_back(node)

    def owner_is_gone(self, uid: str) -> None:
        """A Job is gone: the garbage collector will find what it left."""
        self._orphaned[uid] = None
        for pod in self.api.all("Pod"):
            self._look_for_owner(pod)

    # What really is

    def box_of(self, task: TaskId) -> tuple[Kubelet, Box] | None:
        """The container of an attempt, if one was ever made."""
        for node in self.nodes.values():
            for box in node.boxes.values():
                if box.order.id == task:
                    return node, box
        return None

    # The scheduler

    def _changed(self, happened: Happened) -> None:
        if happened.kind != "Pod":
            return
        pod = happened.body
        node = self.nodes.get(node_of(pod))
        if node is not None:
            node.hear(pod)
        if happened.type == "DELETED":
            return
        if happened.type == "ADDED":
            self._look_for_owner(pod)
        was_free = happened.before is not None and not gates_of(happened.before)
        if not gates_of(pod) and not node_of(pod) and not is_going(pod) and not was_free:
            self._later(self._random.choice((0.0, 0.02, 0.5, 8.0)), self._place, uid_of(pod))

    def _place(self, uid: str) -> None:
        pod = self.api.find("Pod", uid)
        if pod is None or is_going(pod) or node_of(pod):
            return
        ready = [body["metadata"]["name"] for body in self.api.all("Node") if _is_ready(body)]
        if not ready:
            told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            self.api.set_status("Pod", place_of(pod), uid, conditions=[told])
            self._later(LOOK_AGAIN_S, self._place, uid)
            return
        node = self._random.choice(ready)
        if self.api.bind(place_of(pod), uid, node):
            self._note(pod, f"is placed on {node}")

    # The lifecycle of nodes

    def _join(self) -> None:
        name = f"node-{self._joined}"
        self._joined += 1
        manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        body = self.api.create("Node", "", manifest)
        self.api.set_status("Node", ("", name), uid_of(body), conditions=[_ready("True")])
        self.nodes[name] = Kubelet(
            name, self.api, self._loop, self.process, self._random, self._history, self.hooks
        )

    def _node(self, number: int) -> Kubelet | None:
        there = [node for node in self.nodes.values() if not node.doomed]
        return there[number % len(there)] if there else None

    def _trouble(self, number: int, seconds: float, happens: Callable[[Kubelet], None]) -> None:
        node = self._node(number)
        if node is None:
            return
        happens(node)
        self._later(NOT_READY_S, self._notice, node)
        self._later(NOT_READY_S + EVICT_S, self._evict, node)
        self._later(seconds, self._come_back, node)

    def _come_back(self, node: Kubelet) -> None:
        body = self._body_of(node)
        if body is None or node.doomed:
            return
        node.come_back()
        self.api.set_status("Node", place_of(body), uid_of(body), conditions=[_ready("True")])

    def _notice(self, node: Kubelet) -> None:
        body = self._body_of(node)
        if body is not None and not node.online:
            self._history.note("cluster", f"{node.name} is not ready")
            conditions = [_ready("Unknown")]
            self.api.set_status("Node", place_of(body), uid_of(body), conditions=conditions)

    def _evict(self, node: Kubelet) -> None:
        if node.online or self._body_of(node) is None:
            return
        for pod in self._pods_on(node):
            if not is_going(pod):
                self._note(pod, "is evicted")
                self.api.delete("Pod", place_of(pod), uid=uid_of(pod))

    def _remove(self, node: Kubelet) -> None:
        body = self._body_of(node)
        if body is None:
            return
        self._history.note("cluster", f"{node.name} is removed")
        self.api.delete("Node", place_of(body), uid=uid_of(body))
        self._join()
        self._later(COLLECT_S * self._random.uniform(0.2, 1.5), self._collect, node)

    def _collect(self, node: Kubelet) -> None:
        """Declare the pods of a node over that is not there, and remove them by force."""
        for pod in self._pods_on(node):
            if is_over(pod) and is_going(pod):
                continue  # All was done that can be, and somebody holds it.
            self._note(pod, "is collected")
            told = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
            if not is_over(pod):
                place, uid = place_of(pod), uid_of(pod)
                self.api.set_status("Pod", place, uid, phase="Failed", conditions=[told])
            self.api.delete("Pod", place_of(pod), uid=uid_of(pod), grace_s=0)
        if any(node_of(pod) == node.name for pod in self.api.all("Pod")):
            self._later(COLLECT_S, self._collect, node)

    def _body_of(self, node: Kubelet) -> Body | None:
        return next((b for b in self.api.all("Node") if b["metadata"]["name"] == node.name), None)

    def _pods_on(self, node: Kubelet) -> Sequence[Body]:
        return [pod for pod in self.api.all("Pod") if node_of(pod) == node.name]

    # The garbage collector

    def _look_for_owner(self, pod: Body) -> None:
        if any(owner in self._orphaned for owner in _owners(pod)):
            self._later(self._random.choice((0.1, 3.0, 30.0)), self._delete_orphan, uid_of(pod))

    def _delete_orphan(self, uid: str) -> None:
        pod = self.api.find("Pod", uid)
        if pod is not None and not is_going(pod):
            self._note(pod, "has no owner and is deleted")
            self.api.delete("Pod", place_of(pod), uid=uid)

    def _later(self, seconds: float, callback: Callable[..., None], *args: object) -> None:
        context = self.process.context.copy()
        self._loop.call_later(seconds, callback, *args, context=context)

    def _note(self, pod: Body, what: str) -> None:
        order = order_of(pod)
        self._history.note("pods", f"{order.name} ({uid_of(pod)[:4]}) {what}", order.job)


def _owners(pod: Body) -> Sequence[str]:
    references: Sequence[Mapping[str, str]] = pod["metadata"].get("ownerReferences") or ()
    return [reference["uid"] for reference in references]


def _ready(status: str) -> Body:
    return {"type": "Ready", "status": status}


def _is_ready(node: Body) -> bool:
    return _ready("True") in (node["status"].get("conditions") or ())


def is_ours(pod: Body) -> bool:
    """Whether a pod was made for an attempt."""
    return naming.JOB_UID in (pod["metadata"].get("labels") or {})
