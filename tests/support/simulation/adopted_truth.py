"""What is really so of the things of others: what their owners asked for, and who let them run."""

from __future__ import annotations

from typing import NamedTuple

from interlock.kube.pods import naming
from interlock.resources.adopted import PRIORITY_LABEL, QUEUE_LABEL
from interlock.resources.metadata import API_VERSION
from interlock.resources.tasks import TaskOrder
from support.simulation.batch_controller import part_of
from support.simulation.cluster import Cluster
from support.simulation.kube_api import Body, Happened, is_going, uid_of
from support.simulation.kubelet import order_of


class Asked(NamedTuple):
    """What an object asks for."""

    queue: str
    priority: str
    #: How many pods at a time.
    pods: int


class Theirs:
    """Follows what others make, and tells what is their doing from what is ours."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        #: All that an object ever asked for, by its uid; the last is what it asks for now.
        self.asked: dict[str, list[Asked]] = {}
        #: Batch Jobs that run because their owners would have it so, since we last let them run.
        self.went_past: dict[str, None] = {}
        #: Those that were let run by us, and of which their owners have asked for more since.
        self.raised: dict[str, None] = {}
        #: Pods that were there when their batch Job was told to stop, or came after.
        self.told_to_go: dict[str, None] = {}
        self._parallelism: dict[str, int] = {}

    def take(self, happened: Happened) -> None:
        """Take over a change."""
        body, before, uid = happened.body, happened.before, uid_of(happened.body)
        if happened.kind == "Job":
            self._take_job(body, before, uid)
        self._take_stop(happened)
        asked, known = self._asked(happened.kind, body), self.asked.setdefault(uid, [])
        if not known or known[-1] != asked:
            known.append(asked)

    def _take_job(self, body: Body, before: Body | None, uid: str) -> None:
        is_ours, now = bool(self.cluster.api.caller), body["spec"]
        was = before["spec"] if before is not None else {"suspend": True, "parallelism": 0}
        resumed = was.get("suspend") and not now.get("suspend")
        if is_ours and resumed:
            self.went_past.pop(uid, None)
            self.raised.pop(uid, None)
        elif resumed and not is_let_run(body):
            self.went_past[uid] = None
        if not is_ours and now["parallelism"] != was["parallelism"]:
            self._parallelism[uid] = now["parallelism"]
            if now["parallelism"] > was["parallelism"]:
                self.raised[uid] = None

    def _take_stop(self, happened: Happened) -> None:
        uid = uid_of(happened.body) if happened.kind == "Job" else part_of(happened.body)
        job = self.cluster.api.find("Job", uid) if uid else None
        if job is None or is_stopped(job) or is_going(job):
            there = (uid_of(pod) for pod in self.cluster.api.all("Pod") if part_of(pod) == uid)
            self.told_to_go.update(dict.fromkeys(there) if uid else ())

    def _asked(self, kind: str, body: Body) -> Asked:
        labels = body["metadata"].get("labels") or {}
        pods = 1
        if kind == "Job":
            pods = self._parallelism[uid_of(body)]
            completions = body["spec"].get("completions")
            pods = max(1, pods if completions is None else min(pods, completions))
        return Asked(labels.get(QUEUE_LABEL, ""), labels.get(PRIORITY_LABEL, ""), pods)

    def parallelism(self, uid: str) -> int:
        """What the owner of a batch Job last wrote there."""
        return self._parallelism[uid]

    def is_doing_of_owner(self, uid: str) -> bool:
        """Whether that more runs of a batch Job than was granted is what its owner did."""
        return uid in self.went_past or uid in self.raised


def is_theirs(body: Body) -> bool:
    """Whether an object was made by others."""
    owners = body["metadata"].get("ownerReferences") or ()
    return all(owner["apiVersion"] != API_VERSION for owner in owners)


def is_queued_by_itself(pod: Body) -> bool:
    """Whether a pod is no part of a batch Job, which is what is queued."""
    return is_theirs(pod) and not part_of(pod)


def is_held(body: Body) -> bool:
    """Whether an object has our finalizer."""
    return naming.FINALIZER in (body["metadata"].get("finalizers") or ())


def is_let_run(job: Body) -> bool:
    """Whether a batch Job was let run by us, and not stopped since."""
    marks = job["metadata"].get("annotations") or {}
    return is_held(job) and naming.ARMED_AT in marks and not is_stopped(job)


def is_stopped(job: Body) -> bool:
    """Whether a batch Job was told to stop by us."""
    return naming.STOPPED_AT in (job["metadata"].get("annotations") or {})


def order_of_job(job: Body) -> TaskOrder:
    """The order for which a batch Job was claimed last."""
    return order_of({**job, "spec": job["spec"]["template"]["spec"]})
