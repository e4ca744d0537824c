"""What a pod says about its attempt: a pure function of the pod, its node and the moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import Enum

from interlock.kube.pods.models import (
    Condition,
    ContainerStatus,
    KubeObject,
    Pod,
    Terminated,
    seconds_of,
)
from interlock.kube.pods.naming import GATE
from interlock.resources.tasks import PendingReason, ReportState, TaskId, TaskReport

#: How much of what others wrote is passed on.
LONGEST = 300
#: A start before this is none: a kubelet that lost a container says 1970.
_NEVER = datetime(1971, 1, 1, tzinfo=UTC)
#: Reasons that say nothing which the exit code does not.
_PLAIN = ("", "Completed", "Error")
#: What every pod and every container waits for at first.
_USUAL = ("", "SchedulingGated", "ContainerCreating", "PodInitializing")

#: What schedulers and kubelets call it. A kubelet goes back and forth between those of an image.
_REASONS = {
    "Unschedulable": PendingReason.UNSCHEDULABLE,
    "SchedulerError": PendingReason.UNSCHEDULABLE,
    "ErrImagePull": PendingReason.IMAGE,
    "ImagePullBackOff": PendingReason.IMAGE,
    "ImageInspectError": PendingReason.IMAGE,
    "ErrImageNeverPull": PendingReason.IMAGE,
    "InvalidImageName": PendingReason.IMAGE,
    "RegistryUnavailable": PendingReason.IMAGE,
    "CreateContainerConfigError": PendingReason.CONTAINER,
    "CreateContainerError": PendingReason.CONTAINER,
    "RunContainerError": PendingReason.CONTAINER,
    "CrashLoopBackOff": PendingReason.CONTAINER,
}


class NodeState(Enum):
    """What is known of the node of a pod."""

    #: It was not asked, could not be, or we may not read nodes.
    UNTOLD = "untold"
    #: It says that it is well.
    READY = "ready"
    #: It is there and does not say so.
    SILENT = "silent"
    #: There is no such node, or a person says that it is switched off.
    GONE = "gone"


def report_of(
    pod: Pod, now: datetime, *, node: NodeState = NodeState.UNTOLD, overdue: timedelta
) -> TaskReport:
    """Say what is known of the attempt that a pod was made for.

    Being over is checked first, so that a pod which ended in its own time and was then deleted
    keeps its end. What is not over is believed as long as somebody can have looked.
    """
    if pod.metadata.annotations.forced:
        return _forced(pod, now)
    if pod.is_over:
        if is_doubtful(pod) and node is not NodeState.GONE:
            return told_by(pod, ReportState.UNKNOWN, message=_doubt(pod), started_at=_start(pod))
        return _ended(pod, node)
    if pod.is_going and pod.never_ran:
        # The API server binds no pod that is going, so this one will never run.
        return told_by(pod, ReportState.NOT_STARTED, message=_NEVER_PLACED, stopped=True)
    if is_overdue(pod, now, overdue):
        return told_by(
            pod,
            ReportState.UNKNOWN,
            message=_silent(pod),
            started_at=_start(pod),
            stopped=True,
        )
    if has_run(pod):
        return told_by(
            pod,
            ReportState.RUNNING,
            started_at=_start(pod),
            stopped=pod.is_going,
            ready=_is_ready(pod),
        )
    reason, message = _why_waiting(pod)
    return told_by(
        pod,
        ReportState.ACCEPTED,
        message=message,
        reason=reason,
        stopped=pod.is_going,
        placed_at=_placed_at(pod),
    )


_NEVER_PLACED = "the pod was deleted before it was placed on a node"


def gone_report(pod: Pod, now: datetime, *, overdue: timedelta, seen: bool) -> TaskReport:
    """Say what is known of an attempt whose pod is gone; `seen` when this was its last state."""
    last = report_of(pod, now, node=NodeState.UNTOLD, overdue=overdue)
    if last.state in (ReportState.ENDED, ReportState.NOT_STARTED):
        return last
    if seen and pod.never_ran:
        return told_by(pod, ReportState.NOT_STARTED, message=_NEVER_PLACED, stopped=True)
    where = f" on node {pod.spec.node_name}" if pod.spec.node_name else ""
    return told_by(
        pod,
        ReportState.UNKNOWN,
        message=f"the pod{where} was removed before anybody saw it end",
        started_at=_start(pod),
    )


def is_forgotten(pod: Pod) -> bool:
    """Whether its end was recorded: nothing holds it any more and nothing of it can run."""
    over = pod.is_over or bool(pod.metadata.annotations.forced)
    return not pod.is_held and (over or (pod.is_going and pod.never_ran))


def is_overdue(pod: Pod, now: datetime, overdue: timedelta) -> bool:
    """Whether it should have ended long ago, and its kubelet does not say that it has."""
    gone_by = pod.metadata.deletion_timestamp
    return gone_by is not None and not pod.is_over and now >= gone_by + overdue


def force_at(pod: Pod) -> datetime | None:
    """When it may be removed by force, if it is going and that was asked for."""
    after_s = seconds_of(pod.metadata.annotations.force_delete_after)
    gone_by = pod.metadata.deletion_timestamp
    if after_s is None or gone_by is None or pod.is_over or pod.metadata.annotations.forced:
        return None
    return gone_by + timedelta(seconds=after_s)


def is_doubtful(pod: Pod) -> bool:
    """Whether it was declared over while containers were last seen to run.

    The collector of pods does so when a node is lost. The container may run on there.
    """
    if not pod.is_over:
        return False
    statuses = _statuses(pod)
    if any(one.state.running is not None for one in statuses):
        return True
    collected = _condition(pod, "DisruptionTarget")
    if collected is None or collected.reason != "DeletionByPodGC":
        return False
    return any(one.state.terminated is None for one in statuses)


def has_run(pod: Pod) -> bool:
    """Whether any container of it was started."""
    if pod.status.phase == "Running":
        return True
    return any(
        one.state.running or one.state.terminated or one.last_state.terminated
        for one in _statuses(pod)
    )


def short(text: str) -> str:
    """What others wrote, on one line and bounded."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def told_by(
    thing: KubeObject,
    state: ReportState,
    *,
    message: str = "",
    started_at: datetime | None = None,
    ended_at: datetime | None = None,
    exit_code: int | None = None,
    stopped: bool = False,
    reason: PendingReason | None = None,
    ready: bool | None = None,
    placed_at: datetime | None = None,
) -> TaskReport:
    """A report of the attempt that an object was made for."""
    task, labels = thing.task, thing.metadata.labels
    assert task is not None, f"{thing.place}: made for no attempt"
    version = thing.metadata.annotations.job_version
    return TaskReport(
        job_uid=task.job_uid,
        index=task.task,
        attempt=task.attempt,
        namespace=thing.metadata.namespace,
        job=labels.job,
        state=state,
        started_at=started_at,
        ended_at=ended_at,
        exit_code=exit_code,
        stopped=stopped,
        prepared=state is ReportState.ACCEPTED and thing.is_waiting and not thing.is_going,
        message=short(message),
        reason=reason,
        ready=ready,
        placed_at=placed_at,
        job_version=int(version) if version.isdecimal() else 0,
    )


def never_report(
    task: TaskId, namespace: str, job: str, why: str, job_version: int = 0
) -> TaskReport:
    """A report of an attempt for which nothing was made, and why."""
    return TaskReport(
        job_uid=task.job_uid,
        index=task.task,
        attempt=task.attempt,
        namespace=namespace,
        job=job,
        state=ReportState.NOT_STARTED,
        message=short(why),
        job_version=job_version,
    )


def _ended(pod: Pod, node: NodeState) -> TaskReport:
    ended_at = _latest(one.finished_at for one in _ends(_statuses(pod)))
    message = _why_ended(pod)
    if node is NodeState.GONE and is_doubtful(pod):
        message = f"its node {pod.spec.node_name} is gone; {message}".rstrip("; ")
    return told_by(
        pod,
        ReportState.ENDED,
        message=message,
        started_at=_start(pod),
        ended_at=ended_at,
        exit_code=_exit_code(pod),
        stopped=_was_stopped(pod, ended_at),
    )


def _forced(pod: Pod, now: datetime) -> TaskReport:
    return told_by(
        pod,
        ReportState.ENDED,
        message=pod.metadata.annotations.forced,
        started_at=_start(pod),
        ended_at=pod.metadata.deletion_timestamp or now,
        stopped=True,
    )


def _exit_code(pod: Pod) -> int | None:
    """The first code that is not 0, of the containers in their order, then of those before them.

    A pod that failed although every container ended well, as one that ran out of time and obeyed,
    has no code: 0 would say that it succeeded.
    """
    if pod.status.phase == "Succeeded":
        return 0
    failed = _failed(pod)
    return failed[1].exit_code if failed is not None else None


def _failed(pod: Pod) -> tuple[str, Terminated] | None:
    """The container that gives the pod its exit code, and its end."""
    for statuses in (_in_order(pod), pod.status.init_container_statuses):
        for one in statuses:
            if one.state.terminated is not None and one.state.terminated.exit_code != 0:
                return one.name, one.state.terminated
    return None


def _why_ended(pod: Pod) -> str:
    parts = [pod.status.reason, pod.status.message]
    failed = _failed(pod)
    if failed is not None:
        name, end = failed
        told = [end.reason] if end.reason not in _PLAIN else []
        told += [end.message] if end.message else []
        if told and len(pod.spec.containers) > 1:
            told.insert(0, f"container {name}")
        parts += told
    return ": ".join(part for part in parts if part)


def _was_stopped(pod: Pod, ended_at: datetime | None) -> bool:
    """Whether it was deleted before it ended.

    A pod that is over gets no grace when it is deleted, and so does one that is deleted by force:
    then it depends on which came first.
    """
    gone_by = pod.metadata.deletion_timestamp
    if gone_by is None or pod.metadata.deletion_grace_period_seconds:
        return gone_by is not None
    return ended_at is not None and ended_at > gone_by


def _why_waiting(pod: Pod) -> tuple[PendingReason | None, str]:
    """What keeps it from running, if somebody said so."""
    gates = [gate.name for gate in pod.spec.scheduling_gates if gate.name != GATE]
    if gates:
        told = f"waits for scheduling gates of others: {', '.join(gates)}"
        return PendingReason.GATED, told
    if pod.is_waiting:
        return None, ""
    placed = _condition(pod, "PodScheduled")
    if placed is not None and placed.status == "False" and placed.reason not in _USUAL:
        return _reason(placed.reason), _words(placed.reason, placed.message)
    for one in (*pod.status.init_container_statuses, *_in_order(pod)):
        waiting = one.state.waiting
        if waiting is not None and waiting.reason not in _USUAL:
            return _reason(waiting.reason), _words(waiting.reason, waiting.message)
    return None, ""


def _reason(told: str) -> PendingReason:
    return _REASONS.get(told, PendingReason.OTHER)


def _words(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def _placed_at(pod: Pod) -> datetime | None:
    """When a node took it; whoever binds pods need not say so in a condition."""
    if pod.never_ran:
        return None
    placed = _condition(pod, "PodScheduled")
    told = placed.last_transition_time if placed is not None and placed.status == "True" else None
    return told or pod.metadata.creation_timestamp


def _is_ready(pod: Pod) -> bool | None:
    """Whether its kubelet says that it can do its work; None when it says nothing of it."""
    ready = _condition(pod, "Ready")
    return None if ready is None else ready.status == "True"


def _doubt(pod: Pod) -> str:
    told = _why_ended(pod)
    because = f" ({told})" if told else ""
    return (
        f"the pod was declared {pod.status.phase.lower()}{because} while a container was last seen "
        f"to run on node {pod.spec.node_name}, which may still be there"
    )


def _silent(pod: Pod) -> str:
    return (
        f"node {pod.spec.node_name} does not say that the pod ended, "
        "which was told to stop and whose grace period is over"
    )


def _statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    return pod.status.container_statuses + pod.status.init_container_statuses


def _in_order(pod: Pod) -> list[ContainerStatus]:
    """The containers as the pod lists them; kubelets sort them by name."""
    by_name = {one.name: one for one in pod.status.container_statuses}
    known = [by_name.pop(named.name) for named in pod.spec.containers if named.name in by_name]
    return [*known, *by_name.values()]


def _condition(pod: Pod, type: str) -> Condition | None:
    return next((one for one in pod.status.conditions if one.type == type), None)


def _ends(statuses: Iterable[ContainerStatus]) -> Iterator[Terminated]:
    for one in statuses:
        if one.state.terminated is not None:
            yield one.state.terminated
        if one.last_state.terminated is not None:
            yield one.last_state.terminated


def _start(pod: Pod) -> datetime | None:
    """When its first container was started."""
    moments = [one.started_at for one in _ends(_statuses(pod))]
    moments += [one.state.running.started_at for one in _statuses(pod) if one.state.running]
    known = [moment for moment in moments if moment is not None and moment > _NEVER]
    if known:
        return min(known)
    return pod.status.start_time if has_run(pod) else None


def _latest(moments: Iterable[datetime | None]) -> datetime | None:
    return max((one for one in moments if one is not None and one > _NEVER), default=None)
