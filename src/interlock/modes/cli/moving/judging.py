"""Which Jobs can be moved, which are left, and why; and in which order they stand."""

from __future__ import annotations

from typing import Any, NamedTuple

from interlock.modes.cli.kinds import CALENDARS, CONTROLLED_JOBS, JOB_CONFIGS, JOBS
from interlock.modes.cli.moving.marks import MOVED_TO, annotation, created, mark_of
from interlock.modes.cli.outcomes import execution_of, has_ended, phase_of

Job = dict[str, Any]

#: The kinds that are moved. Locks are the system's own record; other kinds are Kubernetes'.
MOVED_KINDS = (JOBS,)
#: The kinds that a person moves: a schedule that were in two places would make every Job twice.
LEFT_KINDS = (JOB_CONFIGS, CONTROLLED_JOBS, CALENDARS)

MOVED = "moved"
WOULD_MOVE = "would move"
#: In the cluster, and suspended there for a reason that the source has.
HELD_BACK = "held back"
#: It started, or is over: it stays where it is.
LEFT = "left"
NOT_MOVABLE = "not movable"
CONFLICT = "conflict"

#: What of a process a pod does not know.
_STAYS = ("envFrom", "stdin", "user", "group", "limits")


class Verdict(NamedTuple):
    """What becomes of a Job, and why."""

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
