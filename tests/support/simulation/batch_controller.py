"""The controller of batch Jobs: makes their pods, counts them, and says how the whole is.

It acts on what it read some seconds before, one look at a batch Job at a time, and tells of it
later still: what it says of itself is about the past. Nobody else makes pods for a batch Job.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.pods import naming
from support.simulation.cluster import Cluster
from support.simulation.kube_api import Body, Happened, is_going, is_over, place_of, uid_of

#: So many pods may fail.
BACKOFF_LIMIT = 3
#: It acts on what it read so long ago, at the most; the control planes trust in less than 5 s.
_SLOW_S = (0.0, 0.02, 0.5, 3.0)


class _Counts:
    """What it remembers of the pods of one batch Job, also of those that are gone."""

    def __init__(self) -> None:
        self.succeeded: dict[str, None] = {}
        self.failed: dict[str, None] = {}
        self.made = 0


class BatchController:
    """Follows batch Jobs and their pods."""

    def __init__(self, cluster: Cluster, loop: SimLoop, random: Random) -> None:
        self._cluster = cluster
        self._api = cluster.api
        self._loop = loop
        self._random = random
        self._counts: dict[str, _Counts] = {}
        #: Batch Jobs that it is at, and those among them that changed meanwhile.
        self._busy: dict[str, None] = {}
        self._again: dict[str, None] = {}
        #: Told of a batch Job that is over, and whether it is complete.
        self.ended: list[Callable[[Body, bool], None]] = []
        #: Completes what it creates, as those do whom an API server asks.
        self.completed: Callable[[str, Body], Body] = lambda _, body: body
        self._api.listeners[self] = self._changed

    def pods_of(self, uid: str) -> list[Body]:
        """The pods that are there of a batch Job."""
        return [pod for pod in self._api.all("Pod") if part_of(pod) == uid]

    # Hearing

    def _changed(self, happened: Happened) -> None:
        body = happened.body
        if happened.kind == "Job":
            if happened.type == "DELETED":
                self._cluster.owner_is_gone(uid_of(body))
            self._soon(uid_of(body))
        elif happened.kind == "Pod" and (uid := part_of(body)):
            counts = self._counts.setdefault(uid, _Counts())
            if body["status"].get("phase") == "Succeeded":
                counts.succeeded[uid_of(body)] = None
            elif body["status"].get("phase") == "Failed" and not is_going(body):
                counts.failed[uid_of(body)] = None
            self._soon(uid)

    def _soon(self, uid: str) -> None:
        self._later(self._random.choice((0.0, 0.05, 1.0, 6.0)), self._look, uid)

    # Acting

    def _look(self, uid: str) -> None:
        if uid in self._busy:
            self._again[uid] = None
            return
        job = self._api.find("Job", uid)
        if job is not None:
            self._busy[uid] = None
            self._later(self._random.choice(_SLOW_S), self._act, job)

    def _act(self, job: Body) -> None:
        """Do what was right when the batch Job was read."""
        uid, spec = uid_of(job), job["spec"]
        active = [pod for pod in self.pods_of(uid) if is_active(pod)]
        if not is_going(job):
            wanted = 0 if spec.get("suspend") or end_of(job) else self._wanted(job)
            for pod in active[wanted:]:
                self._api.delete("Pod", place_of(pod), uid=uid_of(pod))
            for _ in range(wanted - len(active)):
                self._make(job)
        self._later(self._random.choice((0.0, 0.02, 0.5)), self._tell, job)

    def _wanted(self, job: Body) -> int:
        spec = job["spec"]
        done, at_once = len(self._count(job).succeeded), int(spec.get("parallelism", 1))
        if (completions := spec.get("completions")) is not None:
            return max(0, min(at_once, int(completions) - done))
        # Once one has succeeded no more are made.
        return at_once if not done else 0

    def _make(self, job: Body) -> None:
        counts, (namespace, name) = self._count(job), place_of(job)
        counts.made += 1
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid_of(job)}
        template = job["spec"]["template"]
        labels = (template.get("metadata") or {}).get("labels") or {}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{uid_of(job)[:4]}-{counts.made}",
                "labels": {**labels, naming.CONTROLLER_UID: uid_of(job)},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": template["spec"],
        }
        self._api.create("Pod", namespace, self.completed("Pod", body))

    # Telling

    def _tell(self, job: Body) -> None:
        """Write how it is, with what was read as its will."""
        uid = uid_of(job)
        del self._busy[uid]
        if self._again.pop(uid, self) is None:
            self._soon(uid)
        newest = self._api.find("Job", uid)
        if newest is None:
            return
        pods, counts = self.pods_of(uid), self._count(job)
        changes: dict[str, Any] = {
            "active": sum(map(is_active, pods)),
            "ready": sum(is_active(pod) and _is_ready(pod) for pod in pods),
            "terminating": sum(is_going(pod) and not is_over(pod) for pod in pods),
            "succeeded": len(counts.succeeded),
            "failed": len(counts.failed),
        }
        conditions = list(newest["status"].get("conditions") or ())
        if end_of(newest) is None:
            changes |= self._turned(job, newest, conditions, changes)
        changes["conditions"] = conditions
        self._api.set_status("Job", place_of(newest), uid, **changes)

    def _turned(
        self, job: Body, newest: Body, conditions: list[Body], counted: dict[str, Any]
    ) -> dict[str, Any]:
        """What else changes: that it is over, suspended, or goes on."""
        completions, moment = job["spec"].get("completions"), self._api.moment()
        is_quiet = not counted["active"] and not counted["terminating"]
        done = counted["succeeded"]
        if is_quiet and (done >= completions if completions is not None else done > 0):
            conditions.append(_condition("Complete", "True", moment))
            self._tell_end(newest, complete=True)
            return {"completionTime": moment}
        if counted["failed"] > BACKOFF_LIMIT:
            conditions.append(_condition("Failed", "True", moment))
            self._tell_end(newest, complete=False)
            return {}
        was = next((one for one in conditions if one["type"] == "Suspended"), None)
        is_suspended = bool(job["spec"].get("suspend"))
        told = "True" if is_suspended else "False"
        if was is None and not is_suspended:
            return {} if newest["status"].get("startTime") else {"startTime": moment}
        if was is not None and was["status"] == told:
            return {}
        conditions[:] = [one for one in conditions if one["type"] != "Suspended"]
        conditions.append(_condition("Suspended", told, moment))
        return {} if is_suspended else {"startTime": moment}

    def _tell_end(self, job: Body, *, complete: bool) -> None:
        for told in self.ended:
            told(job, complete)

    def _count(self, job: Body) -> _Counts:
        return self._counts.setdefault(uid_of(job), _Counts())

    def _later(self, seconds: float, callback: Callable[..., None], *args: object) -> None:
        context = self._cluster.process.context.copy()
        self._loop.call_later(seconds, callback, *args, context=context)


def part_of(pod: Body) -> str:
    """The uid of the batch Job that a pod belongs to; empty for one of its own."""
    labels = pod["metadata"].get("labels") or {}
    uid: str = labels.get(naming.CONTROLLER_UID, "")
    return uid


def is_active(pod: Body) -> bool:
    """Whether a pod counts as one that runs or is about to."""
    return not is_over(pod) and not is_going(pod)


def end_of(job: Body) -> str | None:
    """How a batch Job ended, in its own word."""
    conditions = job["status"].get("conditions") or ()
    return next((one["type"] for one in conditions if one["type"] in ("Complete", "Failed")), None)


def _is_ready(pod: Body) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def _condition(type: str, status: str, moment: str) -> Body:
    return {"type": type, "status": status, "lastTransitionTime": moment}
