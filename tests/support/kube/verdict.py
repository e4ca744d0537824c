"""Did a run on a cluster keep the promises? Asked of nothing but what the API server told.

A history is every change of Jobs, Locks and pods in the order of the cluster's versions, which
are one sequence for all kinds. The controllers that made it are not asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from support.kube.access import Document

_OVER = ("Succeeded", "Failed")
_JOB_UID = "interlock.dev/job-uid"
_TASK = "interlock.dev/task"
_ATTEMPT = "interlock.dev/attempt"


class Seen(NamedTuple):
    """One change: what an object was after it, or last was when it is gone."""

    version: int
    kind: str
    gone: bool
    object: Document


class Verdict:
    """Takes in a history and notes what was broken on the way."""

    def __init__(self) -> None:
        #: What was broken, in the order in which it was seen.
        self.faults: list[str] = []
        self._version = 0
        self._jobs: dict[str, Document] = {}
        self._ended: dict[str, str] = {}
        #: The pods of each Job that were put on a node and are not over.
        self._alive: defaultdict[str, dict[str, str]] = defaultdict(dict)
        #: The pods that were put on a node, by Job, task and attempt.
        self._begun: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
        #: The highest token of each key, and who got which.
        self._tokens: dict[str, int] = {}
        self._granted: defaultdict[str, dict[int, str]] = defaultdict(dict)
        #: The version that a Job had when it was granted a lock, by key and token.
        self._versions: dict[tuple[str, int], int] = {}
        self._askers: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def take(self, history: Iterable[Seen]) -> Verdict:
        """Go through a history in the order of its versions."""
        for seen in sorted(history, key=lambda one: one.version):
            self._version = seen.version
            match seen.kind:
                case "Job":
                    self._job(seen)
                case "Lock":
                    self._lock(seen)
                case "Pod":
                    self._pod(seen)
        return self

    @property
    def unfinished(self) -> list[str]:
        """The Jobs that have no end."""
        return sorted(_name(job) for uid, job in self._jobs.items() if uid not in self._ended)

    @property
    def results(self) -> dict[str, str]:
        """What each Job came to."""
        return {_name(self._jobs[uid]): result for uid, result in self._ended.items()}

    @property
    def begun(self) -> dict[str, int]:
        """How many attempts of each Job were put on a node."""
        counted: dict[str, int] = dict.fromkeys(map(_name, self._jobs.values()), 0)
        for (uid, _, _), pods in self._begun.items():
            if uid in self._jobs:
                counted[_name(self._jobs[uid])] += len(pods)
        return counted

    def out_of_order(self) -> Iterator[str]:
        """Grants that came before one that was asked for earlier; for lines without priorities."""
        for key, granted in self._granted.items():
            places = [self._place(key, token, granted[token]) for token in sorted(granted)]
            for earlier, later in pairwise(places):
                if later < earlier:
                    yield f"lock {key}: {later[1]} was granted after {earlier[1]}"

    def _place(self, key: str, token: int, uid: str) -> tuple[int, str]:
        """Where a Job stood when it was granted a lock.

        One whose place was not written down yet stood at its version, and when it is written it
        may be later, if others have changed the Job meanwhile.
        """
        job = self._jobs.get(uid, {})
        sequence = _of(job, "status", "admission", "sequence") or 0
        stood = self._versions.get((key, token), 0) or sequence
        return min(sequence, stood), _name(job) if job else uid

    def _job(self, seen: Seen) -> None:
        job, uid = seen.object, seen.object["metadata"]["uid"]
        if seen.gone:
            if uid not in self._ended and self._alive[uid]:
                self._fault(f"Job {_name(job)} is gone while {self._running(uid)} runs")
            for askers in self._askers.values():
                askers.pop(uid, None)
            return
        self._jobs[uid] = job
        for lock in job["spec"].get("locks", ()):
            self._askers[lock["key"]][uid] = int(lock.get("limit", 1))
        result = _of(job, "status", "execution", "result") or _of(
            job, "status", "admission", "refusal"
        )
        before = self._ended.get(uid)
        if before is not None and result != before:
            self._fault(f"Job {_name(job)} ended as {before}, and then as {result}")
        if result and before is None:
            self._ended[uid] = str(result)
            if self._alive[uid]:
                self._fault(f"Job {_name(job)} ended while {self._running(uid)} runs")

    def _lock(self, seen: Seen) -> None:
        if seen.gone:
            return
        key, status = seen.object["spec"]["key"], seen.object.get("status", {})
        holders = status.get("holders", ())
        limits = [self._askers[key].get(holder["uid"], 1) for holder in holders]
        if holders and len(holders) > max(limits):
            names = ", ".join(holder["job"] for holder in holders)
            self._fault(f"lock {key} is held by {names}, and its limit is {max(limits)}")
        last = int(status.get("lastToken", 0))
        if last < self._tokens.get(key, 0):
            self._fault(f"the token of lock {key} fell from {self._tokens[key]} to {last}")
        self._tokens[key] = max(last, self._tokens.get(key, 0))
        for holder in holders:
            token = int(holder["token"])
            self._versions.setdefault((key, token), int(holder.get("jobVersion") or 0))
            before = self._granted[key].setdefault(token, holder["uid"])
            if before != holder["uid"]:
                self._fault(f"token {holder['token']} of lock {key} was given to two Jobs")

    def _pod(self, seen: Seen) -> None:
        pod, metadata = seen.object, seen.object["metadata"]
        labels = metadata.get("labels", {})
        owner, uid = labels.get(_JOB_UID), metadata["uid"]
        if owner is None:
            return
        over = seen.gone or _of(pod, "status", "phase") in _OVER
        if _of(pod, "spec", "nodeName"):
            attempt = (owner, labels.get(_TASK, ""), labels.get(_ATTEMPT, ""))
            self._begun[attempt].add(uid)
            if len(self._begun[attempt]) == 2:
                self._fault(f"{metadata['name']} was started twice")
        elif not over:
            return
        if over:
            self._alive[owner].pop(uid, None)
            return
        if uid not in self._alive[owner]:
            self._alive[owner][uid] = metadata["name"]
            self._check_locks(owner)

    def _check_locks(self, owner: str) -> None:
        """See that the Job that has just begun is not one too many for any of its locks."""
        if owner in self._ended:
            self._fault(f"{self._running(owner)} was started after its Job had ended")
        for key, askers in self._askers.items():
            if owner not in askers:
                continue
            running = [uid for uid in askers if self._alive[uid]]
            if len(running) > max(askers[uid] for uid in running):
                names = ", ".join(sorted(self._running(uid) for uid in running))
                self._fault(f"{names} run at once under lock {key}")

    def _running(self, uid: str) -> str:
        return ", ".join(sorted(self._alive[uid].values()))

    def _fault(self, what: str) -> None:
        self.faults.append(f"version {self._version}: {what}")


def _name(thing: Document) -> str:
    return str(thing["metadata"]["name"])


def _of(thing: Document, *path: str) -> Any:
    for name in path:
        thing = (thing or {}).get(name) or {}
    return thing or None
