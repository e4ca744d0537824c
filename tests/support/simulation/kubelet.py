"""A node: what really runs on it, and what its kubelet gets to know and to say.

The two differ on purpose. A kubelet that is cut off goes on with what it knows: it starts what it
was given before, does not hear of deletions, and tells of ends when it is back. The checks look at
what really runs (`Box.life`); the control planes only ever see what kubelets wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from interlock.forecast.rehearsal.simulated_loop import SimHandle, SimLoop, SimProcess
from interlock.forecast.rehearsal.simulated_machine import SIGKILL, SIGTERM, Life, read_behaviour
from interlock.kube.pods import naming
from interlock.resources.tasks import TaskOrder, process_of
from interlock.resources.work import ProcessWork
from support.simulation.history import History
from support.simulation.kube_api import (
    Body,
    Place,
    SimApi,
    command_of,
    is_going,
    is_over,
    place_of,
    uid_of,
)

#: What a container that was ended by a signal exits with.
KILLED, TERMINATED = 128 + SIGKILL, 128 + SIGTERM
#: What is told of a container that was running when its machine lost power.
LOST_POWER = 255


class Box:
    """A pod on a node, from when its kubelet heard of it."""

    __slots__ = (
        "kill_us",
        "life",
        "order",
        "part_of",
        "place",
        "pulls",
        "ready",
        "started_at",
        "state",
        "uid",
    )

    def __init__(self, pod: Body) -> None:
        self.place: Place = place_of(pod)
        self.uid = uid_of(pod)
        self.order = order_of(pod)
        #: The uid of the batch Job that it belongs to; empty where it belongs to none.
        self.part_of = (pod["metadata"].get("labels") or {}).get(naming.CONTROLLER_UID, "")
        self.life: Life | None = None
        #: Waiting, running or terminated, as the kubelet knows.
        self.state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
        self.started_at = ""
        #: When it will be killed; None while nobody wants it gone.
        self.kill_us: int | None = None
        self.pulls = "unpullable" not in command_of(pod)
        #: What its probe says; one without a probe is ready as soon as it runs.
        self.ready = True

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs or will run."""
        return "terminated" in self.state


class Hooks:
    """Who is told of what really happens."""

    def __init__(self) -> None:
        self.started: list[Callable[[Life], None]] = []
        self.ended: list[Callable[[Life], None]] = []
        #: Told of a container that never ran, and that its kubelet will say failed.
        self.given_up: list[Callable[[TaskOrder, int], None]] = []
        #: Told of a pod whose end nobody will see, because a person would have it so.
        self.stripped: list[Callable[[TaskOrder], None]] = []


class Kubelet:
    """One node and its agent."""

    def __init__(
        self,
        name: str,
        api: SimApi,
        loop: SimLoop,
        process: SimProcess,
        random: Random,
        history: History,
        hooks: Hooks,
    ) -> None:
        self.name = name
        self._api = api
        self._loop = loop
        self._process = process
        self._random = random
        self._history = history
        self._hooks = hooks
        self.boxes: dict[str, Box] = {}
        #: Whether it reaches the API server.
        self.online = True
        #: Whether the machine has power; rises with each start, so that older plans are void.
        self.powered = True
        self._boot = 0
        #: Whether the machine is gone for good.
        self.doomed = False

    # What happens to a node

    def cut_off(self) -> None:
        """Nobody reaches it, and it reaches nobody; its containers go on."""
        self._history.note(self.name, "is cut off")
        self.online = False

    def lose_power(self) -> None:
        """Everything on it ends at once, and nobody is told."""
        self._history.note(self.name, "loses power")
        self.online = self.powered = False
        self._boot += 1
        for box in self.boxes.values():
            if box.life is not None and not box.has_ended:
                self._ends(box, LOST_POWER)
            elif not box.has_ended:
                self._gives_up(box)

    def come_back(self) -> None:
        """It has power and reaches the API server, and sees what happened meanwhile."""
        if not self.online:
            self._history.note(self.name, "is back")
        self.online = self.powered = True
        for uid in tuple(self.boxes):
            self._soon(self._sync, uid)
        for pod in self._api.all("Pod"):
            self.hear(pod)

    def hear(self, pod: Body) -> None:
        """A pod of this node was changed, or is gone."""
        if pod["spec"].get("nodeName") == self.name:
            self._soon(self._sync, uid_of(pod))

    def finish(self, box: Box) -> None:
        """Have a container end by itself now."""
        self._exit(box)

    # What a kubelet does

    def _sync(self, uid: str) -> None:
        """Make true what is wanted of a pod, and tell how it is."""
        if not self.online:
            return
        pod = self._api.find("Pod", uid)
        box = self.boxes.get(uid)
        if pod is None:
            if box is not None:
                self._stop(box, 1)
            return
        if box is None:
            if is_over(pod):
                self._finalize(pod)
                return
            box = self.boxes[uid] = Box(pod)
            if not is_going(pod):
                self._later(self._random.choice((0.0, 0.05, 1.0, 5.0)), self._start, box)
        if is_going(pod) or is_over(pod):
            self._stop(box, pod["metadata"].get("deletionGracePeriodSeconds") or 1)
        self._tell(box, pod)

    def _start(self, box: Box) -> None:
        if box.has_ended or box.life is not None or box.kill_us is not None:
            return
        if not box.pulls:
            box.state = {"waiting": {"reason": "ErrImagePull", "message": "there is no such image"}}
            self._soon(self._sync, box.uid)
            return
        behaviour = read_behaviour(process_of(box.order).command)
        life = Life(box.order, behaviour, self._loop.now_us)
        box.life = life
        box.started_at = self._api.moment()
        box.state = {"running": {"startedAt": box.started_at}}
        life.ending = self._later(behaviour.seconds, self._exit, box)
        if behaviour.ready_after is not None:
            box.ready = False
            self._later(behaviour.ready_after, self._turns, box, True)
        self._note(box, f"starts on {self.name}")
        for told in self._hooks.started:
            told(life)
        self._soon(self._sync, box.uid)

    def turn(self, box: Box, ready: bool) -> None:
        """Have the probe of a container say that it is ready, or is not."""
        box.ready = ready
        self._soon(self._sync, box.uid)

    def _turns(self, box: Box, ready: bool) -> None:
        if box.life is None or box.has_ended:
            return
        self.turn(box, ready)
        self._later(box.life.behaviour.turns_after(ready), self._turns, box, not ready)

    def _stop(self, box: Box, grace_s: float) -> None:
        """Send SIGTERM, and SIGKILL after the grace; a second order may only shorten that."""
        if box.has_ended:
            return
        kill_us = self._loop.now_us + int(grace_s * 1e6)
        if box.kill_us is not None and box.kill_us <= kill_us:
            return
        first, box.kill_us = box.kill_us is None, kill_us
        if box.life is None:
            self._gives_up(box)
            return
        behaviour = box.life.behaviour
        if first and not behaviour.deaf:
            polite = "polite" in process_of(box.order).command
            code = 0 if polite else TERMINATED
            self._later(min(behaviour.slow, grace_s), self._die, box, code)
        self._later(grace_s, self._die, box, KILLED)

    def _die(self, box: Box, code: int) -> None:
        life = box.life
        if box.has_ended or life is None or (code == KILLED and life.signal == SIGKILL):
            return
        life.code = code
        life.signal = {KILLED: SIGKILL, TERMINATED: SIGTERM}.get(code)
        if life.ending is not None:
            life.ending.cancel()
        delay = life.behaviour.slow if code == KILLED else 0.0
        life.ending = self._later(delay, self._exit, box)

    def _exit(self, box: Box) -> None:
        if box.life is not None and not box.has_ended:
            assert box.life.code is not None
            self._ends(box, box.life.code)
            self._soon(self._sync, box.uid)

    def _ends(self, box: Box, code: int) -> None:
        life = box.life
        assert life is not None
        if life.ending is not None:
            life.ending.cancel()
        life.code = code
        box.state = {
            "terminated": {
                "exitCode": code,
                "reason": "Completed" if code == 0 else "Error",
                "startedAt": box.started_at,
                "finishedAt": self._api.moment(),
            }
        }
        self._note(box, f"ends with {code} on {self.name}")
        for told in self._hooks.ended:
            told(life)

    def _gives_up(self, box: Box) -> None:
        """A container that never ran is said to have failed, for want of anything better."""
        box.state = {
            "terminated": {
                "exitCode": KILLED,
                "reason": "ContainerStatusUnknown",
                "message": "The container could not be located when the pod was terminated",
            }
        }
        self._note(box, f"is given up on {self.name}")
        for told in self._hooks.given_up:
            told(box.order, KILLED)

    # What a kubelet says

    def _tell(self, box: Box, pod: Body) -> None:
        if is_over(pod) and "terminated" not in _state_of(pod) and not box.has_ended:
            return  # Others declared it over; it is told of once that is true.
        name = pod["spec"]["containers"][0].get("name", "")
        self._api.set_status(
            "Pod",
            box.place,
            box.uid,
            phase=pod["status"]["phase"] if is_over(pod) else _phase(box),
            startTime=pod["status"].get("startTime") or self._api.moment(),
            containerStatuses=[{"name": name, "state": box.state}],
            conditions=_with_ready(pod, "running" in box.state and box.ready),
        )
        newest = self._api.find("Pod", box.uid)
        if newest is not None and box.has_ended:
            self._finalize(newest)

    def _finalize(self, pod: Body) -> None:
        """Let the object of a pod go that is over and that nobody wants any more."""
        if is_going(pod) and pod["metadata"].get("deletionGracePeriodSeconds"):
            self._soon(self._remove, uid_of(pod))

    def _remove(self, uid: str) -> None:
        pod = self._api.find("Pod", uid)
        if pod is not None and is_going(pod) and self.online:
            self._api.delete("Pod", place_of(pod), uid=uid, grace_s=0)

    # Time

    def _soon(self, callback: Callable[..., None], *args: object) -> None:
        self._later(self._random.choice((0.0, 0.0, 0.02, 0.5)), callback, *args)

    def _later(self, seconds: float, callback: Callable[..., None], *args: object) -> SimHandle:
        boot = self._boot

        def due() -> None:
            if boot == self._boot and self.powered:
                callback(*args)

        context = self._process.context.copy()
        return self._loop.call_later(seconds, due, context=context)

    def _note(self, box: Box, what: str) -> None:
        order = box.order
        self._history.note("pods", f"{order.name} ({box.uid[:4]}) {what}", order.job)


def order_of(pod: Body) -> TaskOrder:
    """The order that a pod was made for, read from what the container is told."""
    labels: Mapping[str, str] = pod["metadata"].get("labels") or {}
    namespace, name = place_of(pod)
    container = pod["spec"]["containers"][0]
    env = {each["name"]: each["value"] for each in container.get("env") or ()}
    return TaskOrder(
        job_uid=labels.get(naming.JOB_UID, ""),
        index=int(labels.get(naming.TASK, 0)),
        attempt=int(labels.get(naming.ATTEMPT, 0)),
        name=name,
        namespace=namespace,
        job=labels.get(naming.JOB, name),
        work=ProcessWork(command=command_of(pod)),
        env=env,
    )


def _phase(box: Box) -> str:
    if "terminated" in box.state:
        return "Succeeded" if box.state["terminated"]["exitCode"] == 0 else "Failed"
    return "Running" if box.life is not None else "Pending"


def _with_ready(pod: Body, ready: bool) -> list[Mapping[str, Any]]:
    """The conditions of a pod, with that of its kubelet among them."""
    others = [one for one in pod["status"].get("conditions") or () if one["type"] != "Ready"]
    return [*others, {"type": "Ready", "status": "True" if ready else "False"}]


def _state_of(pod: Body) -> Mapping[str, Any]:
    statuses = pod["status"].get("containerStatuses") or ()
    return statuses[0]["state"] if statuses else {}
