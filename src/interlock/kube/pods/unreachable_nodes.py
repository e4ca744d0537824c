"""Unreachable nodes: whom to ask about their pods, when to look again, when to use force."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct

from interlock.control.clock import Clock
from interlock.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnavailableError,
)
from interlock.kube.pods.background import Background
from interlock.kube.pods.informer import Informer, Place
from interlock.kube.pods.manifest import mark_forced
from interlock.kube.pods.models import Node, Pod
from interlock.kube.pods.objects import Objects
from interlock.kube.pods.reporting import NodeState, force_at, is_doubtful

#: A person says so of a node that is switched off.
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class PodTimes(Struct, frozen=True, kw_only=True):
    """How long to wait for kubelets."""

    #: A pod that is not over so long after its grace period is one that nobody looks after.
    overdue: timedelta = timedelta(seconds=60)
    #: How often a node is asked about such a pod.
    ask_again: timedelta = timedelta(seconds=15)
    #: How long the controller of batch Jobs may act on what it knew before.
    settle: timedelta = timedelta(seconds=5)


class UnreachableNodes:
    """Follows the pods that have not ended when they should have, and those that are doubtful.

    Whether force is used is the Job's choice, and rests on two things: the time it gave has
    passed, and the node does not say that it is well.
    """

    def __init__(
        self,
        pods: Informer[Pod],
        nodes: Objects[Node],
        clock: Clock,
        times: PodTimes,
        errands: Background,
        check: Callable[[], None],
        look: Callable[[Pod], None],
    ) -> None:
        self._pods = pods
        self._nodes = nodes
        self._clock = clock
        self._times = times
        self._errands = errands
        self._check = check
        #: Called when a pod, although it did not change, may have to be told of differently.
        self._look = look
        self._states: dict[str, NodeState] = {}

    def node_of(self, pod: Pod) -> NodeState:
        """What was last heard of the node of a pod that is followed."""
        return self._states.get(pod.metadata.uid, NodeState.UNTOLD)

    def follow(self, pod: Pod) -> None:
        """Look at a pod again when that is due."""
        due = self._due(pod)
        if due is None:
            # What was heard of its node stays: a pod of a node that is gone needs no other look.
            self._errands.cancel(("look at", *pod.place))
        else:
            seconds = (due - self._clock.now()).total_seconds()
            self._again(pod.place, seconds)

    def leave(self, pod: Pod) -> None:
        """Follow a pod no more."""
        self._errands.cancel(("look at", *pod.place))
        self._states.pop(pod.metadata.uid, None)

    def _again(self, place: Place, seconds: float) -> None:
        about = ("look at", *place)
        self._errands.later(
            about, seconds, lambda: self._errands.run(about, lambda: self._ask(place))
        )

    def _due(self, pod: Pod) -> datetime | None:
        """When something may have to be told or done about a pod."""
        now = self._clock.now()
        if self._needs_node(pod, now):
            return now
        gone_by = pod.metadata.deletion_timestamp
        if gone_by is None or pod.is_over or pod.never_ran:
            return None
        moments = (gone_by + self._times.overdue, force_at(pod))
        return min((one for one in moments if one is not None and one > now), default=None)

    def _needs_node(self, pod: Pod, now: datetime) -> bool:
        """Whether what is told or done depends on the node."""
        if is_doubtful(pod):
            return self.node_of(pod) is not NodeState.GONE
        forced_at = force_at(pod)
        return forced_at is not None and now >= forced_at and not pod.never_ran

    async def _ask(self, place: Place) -> None:
        """Ask the node of a pod where that matters, and do what its answer allows."""
        pod = self._pods.get(place)
        if pod is not None and self._needs_node(pod, self._clock.now()):
            state = await self._state_of(pod.spec.node_name)
            self._states[pod.metadata.uid] = state
            if force_at(pod) is not None and state in (NodeState.SILENT, NodeState.GONE):
                await self._force(pod, state)
        pod = self._pods.get(place)
        if pod is not None:
            self._look(pod)
            if self._needs_node(pod, self._clock.now()):
                self._again(place, self._times.ask_again.total_seconds())

    async def _state_of(self, name: str) -> NodeState:
        try:
            node = await self._nodes.get("", name)
        except NotFoundError:
            return NodeState.GONE
        except (ForbiddenError, UnavailableError):
            return NodeState.UNTOLD
        if any(taint.key == _OUT_OF_SERVICE for taint in node.spec.taints):
            return NodeState.GONE
        ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
        return NodeState.READY if ready else NodeState.SILENT

    async def _force(self, pod: Pod, state: NodeState) -> None:
        """Remove a pod although nobody says that it ended.

        It is marked last, and held by its finalizer until that is recorded: whoever comes after a
        crash finds either a pod to remove once more, or one that says why it is gone.
        """
        namespace, name = pod.place
        uid = pod.metadata.uid
        try:
            self._check()
            left = await self._pods.objects.delete(namespace, name, uid=uid, grace_s=0)
            if left is None or not left.is_held:
                return
            self._check()
            patch = mark_forced(pod, _why(pod, state))
            self._pods.take(await self._pods.objects.patch(namespace, name, patch))
        except (NotFoundError, ConflictError, UnavailableError):
            return  # What is still there is asked about again.


def _why(pod: Pod, state: NodeState) -> str:
    after = pod.metadata.annotations.force_delete_after
    node = pod.spec.node_name
    found = f"node {node} is gone" if state is NodeState.GONE else f"node {node} is not ready"
    return f"removed by force {after} s after its grace period, as the Job asks for: {found}"
