"""Eligibility: what can be moved, what is left, and why; and in which order Jobs stand."""

from __future__ import annotations

from typing import Any, NamedTuple

from interlock.client.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, KINDS
from interlock.client.outcomes import execution_of, has_ended, phase_of
from interlock.migration.annotations import MOVED_TO, annotation, created, mark_of

Job = dict[str, Any]

#: What is only copied, and what is handed over with a plan for it: schedules, and Jobs after them.
#: What stays is the system's own record, or Kubernetes'.
COPIED_KINDS = tuple(kind for kind in KINDS if kind.moves == "copied")
SCHEDULE_KINDS = (JOB_CONFIGS, CONTROLLED_JOBS)
MOVED_KINDS = (*COPIED_KINDS, *SCHEDULE_KINDS, JOBS)

MOVED = "moved"
WOULD_MOVE = "would move"
#: An earlier move has done all that there is to do.
THERE_ALREADY = "there already"
#: In the cluster, and suspended there for a reason that the source has.
HELD_BACK = "held back"
#: It started, or is over: it stays where it is.
LEFT = "left"
NOT_MOVABLE = "not movable"
CONFLICT = "conflict"

#: What of a process a pod does not know.
_STAYS = ("envFrom", "stdin", "user", "group", "limits")


class What(NamedTuple):
    """A resource at the source, by kind and name."""

    namespace: str
    kind: str
    name: str

    @classmethod
    def of(cls, thing: Job) -> What:
        """What a document is about."""
        metadata = thing["metadata"]
        return cls(metadata["namespace"], thing["kind"], metadata["name"])

    @property
    def told(self) -> str:
        """As people write it."""
        return f"{self.kind.lower()}/{self.name}"


class Verdict(NamedTuple):
    """What becomes of something, and why."""

    outcome: str
    why: str


def judge(job: Job, cluster: str, image: str) -> Verdict | None:
    """Why a Job is not moved; None when it can be."""
    metadata = job["metadata"]
    if metadata.get("deletionTimestamp"):
        return Verdict(LEFT, "it is being deleted")
    if has_ended(job):
        return Verdict(LEFT, f"it has ended: {phase_of(job)}")
    if has_begun(job):
        return Verdict(LEFT, f"it has started: {phase_of(job)}")
    if mark_of(job).get("cluster", cluster) != cluster:
        other = annotation(job, MOVED_TO) or "another cluster"
        return Verdict(CONFLICT, f"it is being moved to {other}: finish that first")
    if owners := metadata.get("ownerReferences"):
        told = ", ".join(f"{one['kind'].lower()}/{one['name']}" for one in owners)
        return Verdict(NOT_MOVABLE, f"it belongs to {told}")
    return _judge_process(job["spec"].get("process"), image)


def _judge_process(process: Job | None, image: str) -> Verdict | None:
    if process is None:
        return None
    if not image:
        why = "it runs a process of this machine; --image makes it a pod with that image"
        return Verdict(NOT_MOVABLE, why)
    lost = [name for name in _STAYS if process.get(name)]
    if lost:
        return Verdict(NOT_MOVABLE, f"a pod does not know what its process has: {', '.join(lost)}")
    return None


def judge_schedule(thing: Job, cluster: str, image: str) -> Verdict | None:
    """Why a JobConfig or a ControlledJob is not moved; None when it can be."""
    if thing["metadata"].get("deletionTimestamp"):
        return Verdict(LEFT, "it is being deleted")
    if mark_of(thing).get("cluster", cluster) != cluster:
        other = annotation(thing, MOVED_TO) or "another cluster"
        return Verdict(CONFLICT, f"it was moved to {other}, or is being moved there")
    return _judge_process(template_of(thing)["spec"].get("process"), image)


def template_of(thing: Job) -> Job:
    """What a JobConfig or a ControlledJob makes Jobs of."""
    spec = thing["spec"]
    template: Job = spec["template"] if thing["kind"] == JOB_CONFIGS.name else spec["jobTemplate"]
    return template


def calendars_of(thing: Job) -> set[str]:
    """The calendars that a JobConfig or a ControlledJob names."""
    spec = thing["spec"]
    parts = [one for part in ("schedules", "events", "windows") for one in spec.get(part) or []]
    return {name for one in parts for use in ("exclude", "only") for name in one.get(use) or []}


def schedule_in_the_way(thing: Job, others: list[Job]) -> str:
    """The unfinished Job of the other side that one of its Jobs would have to wait for."""
    kind, name = thing["kind"].lower(), thing["metadata"]["name"]
    policy = (thing["spec"].get("concurrency") or {}).get("policy")
    own = {"key": f"{kind}/{name}", "whenTaken": policy}
    locks = [own, *(template_of(thing)["spec"].get("locks") or [])]
    return in_the_way({"metadata": thing["metadata"], "spec": {"locks": locks}}, others)


def has_begun(job: Job) -> bool:
    """Whether the Job was let in; from then on it stays where it is."""
    admission = (job.get("status") or {}).get("admission") or {}
    is_waiting = admission.get("phase", "Waiting") == "Waiting"
    return not is_waiting or bool(execution_of(job).get("startedAt"))


def place(job: Job) -> tuple[int, int, str]:
    """Where the Job stands in every line: priority, then the order of creation."""
    return -int(job["spec"].get("priority") or 0), *created(job)


def in_the_way(job: Job, others: list[Job]) -> str:
    """The unfinished Job of the other side that asks for one of the Job's locks, in words."""
    keys = {
        lock["key"]
        for lock in job["spec"].get("locks") or []
        if lock.get("whenTaken") != "Allow"  # It would not wait for the lock anyway.
    }
    for other in others:
        if other["metadata"]["namespace"] != job["metadata"]["namespace"] or has_ended(other):
            continue
        for lock in other["spec"].get("locks") or []:
            if lock["key"] in keys:
                return f"job/{other['metadata']['name']} is left there and needs lock {lock['key']}"
    return ""
