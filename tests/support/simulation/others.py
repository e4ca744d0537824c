"""Others: the owners of batch Jobs and pods that ask for a Queue, and the webhook in their way.

They act on the API server itself and know nothing of us but labels.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from interlock.errors import InterlockError
from interlock.forecast.rehearsal.simulated_loop import SimLoop
from interlock.kube.webhook.holding import hold
from interlock.kube.webhook.review import Change
from interlock.resources.adopted import MIN_PARALLELISM_ANNOTATION, PRIORITY_LABEL, QUEUE_LABEL
from support.simulation.adopted_truth import is_let_run
from support.simulation.batch_controller import BatchController, end_of, is_active, part_of
from support.simulation.cluster import Cluster
from support.simulation.history import History
from support.simulation.kube_api import Body, Happened, is_going, place_of, uid_of
from support.simulation.people import NAMESPACE
from support.simulation.script import ChangeTheirs, CreateTheirs, DeletePart, DeleteTheirs

#: Marks a pod in whose place another one is made, so many times at the most.
REPLACED = "others/replaced"
_MOST_REPLACED = 4


class Others:
    """Makes, changes and deletes what is theirs."""

    def __init__(
        self,
        cluster: Cluster,
        batch: BatchController,
        loop: SimLoop,
        history: History,
        now: Callable[[], datetime],
    ) -> None:
        self._cluster = cluster
        self._api = cluster.api
        self._batch = batch
        self._loop = loop
        self._history = history
        self._now = now
        self._replaced = 0
        batch.completed = self.held
        self._api.listeners[self] = self._changed

    def held(self, kind: str, body: Body) -> Body:
        """What our webhook makes of a new object."""
        given = {**body, "kind": kind, "spec": dict(body["spec"])}
        change = Change(uid="", operation="CREATE", object=given)
        for one in hold(change, set(), self._now()).patch:
            given["spec"][one["path"].removeprefix("/spec/")] = one["value"]
        return given

    def create(self, act: CreateTheirs) -> None:
        """Make something; while nobody answers for its Queue a pod is refused."""
        kind = "Pod" if act.is_pod else "Job"
        body = _pod(act) if act.is_pod else _batch_job(act)
        if act.is_held:
            body = self.held(kind, body)
        elif act.is_pod:
            return
        self._do(act.name, "make it", lambda: self._api.create(kind, NAMESPACE, body))

    def change(self, act: ChangeTheirs) -> None:
        """Change something."""
        place, patch = (NAMESPACE, act.name), act.patch
        for kind in self._kinds(act.name):
            self._do(act.name, f"write {patch}", partial(self._api.patch, kind, place, patch))

    def delete(self, act: DeleteTheirs) -> None:
        """Delete something; what it owned is collected."""
        for kind in self._kinds(act.name):
            place = (NAMESPACE, act.name)
            self._do(act.name, "delete it", partial(self._api.delete, kind, place))

    def delete_part(self, act: DeletePart) -> None:
        """Delete the newest pod of a batch Job."""
        for job in self._jobs():
            pods = [pod for pod in self._batch.pods_of(uid_of(job)) if is_active(pod)]
            if job["metadata"]["name"] == act.name and pods:
                place = place_of(pods[-1])
                do = partial(self._api.delete, "Pod", place)
                self._do(act.name, f"delete {place[1]}", do)

    def tidy_up(self) -> None:
        """Have everything go on that its owner suspended itself."""
        for job in self._jobs():
            is_paused = is_let_run(job) and job["spec"].get("suspend")
            if is_paused and not end_of(job) and not is_going(job):
                self.change(ChangeTheirs(job["metadata"]["name"], {"spec": {"suspend": False}}))

    def _changed(self, happened: Happened) -> None:
        """Another pod is made in the place of one that is gone."""
        pod = happened.body
        if happened.kind != "Pod" or happened.type != "DELETED" or part_of(pod):
            return
        marks = pod["metadata"].get("annotations") or {}
        if REPLACED not in marks or pod["status"]["phase"] == "Succeeded":
            return
        if self._replaced < _MOST_REPLACED:
            self._replaced += 1
            context = self._cluster.process.context.copy()
            self._loop.call_later(1.0, self._replace, pod, self._replaced, context=context)

    def _replace(self, pod: Body, number: int) -> None:
        name = f"{pod['metadata']['name'].partition('.')[0]}.{number}"
        theirs = {QUEUE_LABEL, PRIORITY_LABEL}
        given = pod["metadata"].get("labels") or {}
        metadata = {
            "name": name,
            "labels": {label: value for label, value in given.items() if label in theirs},
            "annotations": {REPLACED: "true"},
        }
        kept = {"nodeName", "schedulingGates"}
        spec = {field: value for field, value in pod["spec"].items() if field not in kept}
        body = self.held("Pod", {"apiVersion": "v1", "metadata": metadata, "spec": spec})
        self._do(name, "make it again", lambda: self._api.create("Pod", NAMESPACE, body))

    def _kinds(self, name: str) -> list[str]:
        """Of which kinds there is something of that name."""
        return [
            kind
            for kind in ("Job", "Pod")
            if any(one["metadata"]["name"] == name for one in self._api.all(kind))
        ]

    def _jobs(self) -> list[Body]:
        return self._api.all("Job")

    def _do(self, name: str, what: str, do: Callable[[], Body]) -> None:
        self._history.note("others", f"{name}: {what}", name)
        try:
            do()
        except InterlockError as error:
            self._history.note("others", f"{name}: {error}", name)


def _metadata(act: CreateTheirs) -> dict[str, Any]:
    labels = {QUEUE_LABEL: act.queue} if act.queue else {}
    if act.priority:
        labels[PRIORITY_LABEL] = act.priority
    notes = {} if act.least is None else {MIN_PARALLELISM_ANNOTATION: str(act.least)}
    if act.is_replaced:
        notes[REPLACED] = "true"
    return {"name": act.name, "labels": labels, "annotations": notes}


def _pod_spec(act: CreateTheirs) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "work",
        "command": list(act.command),
        "resources": {"requests": dict(act.requests)},
    }
    return {"containers": [container], "restartPolicy": "Never"}


def _pod(act: CreateTheirs) -> Body:
    spec = {**_pod_spec(act), "terminationGracePeriodSeconds": 30}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(act), "spec": spec}


def _batch_job(act: CreateTheirs) -> Body:
    labels = {QUEUE_LABEL: act.queue} if act.labels_parts else {}
    spec: dict[str, Any] = {
        "parallelism": act.parallelism,
        "suspend": False,
        "template": {"metadata": {"labels": labels}, "spec": _pod_spec(act)},
    }
    if act.completions is not None:
        spec["completions"] = act.completions
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(act), "spec": spec}
