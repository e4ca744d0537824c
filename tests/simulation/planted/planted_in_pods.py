"""What is forgotten where attempts become pods: gates, names, proof, force, finalizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import count
from typing import Any

from msgspec.structs import replace
from mutation import Seam, Worlds, mutation

from interlock.control.runtime import OrderDeniedError
from interlock.execution.view import ExecutionView
from interlock.kube.pods.forget_retries import ForgetRetries
from interlock.kube.pods.models import Pod
from interlock.kube.pods.records import Wanted
from interlock.kube.pods.reporting import NodeState
from interlock.kube.pods.stopping import Stopping, let_go
from interlock.resources.job import JobSpec, LockRequest, Parallelism, Retries
from interlock.resources.tasks import ReportState, TaskOrder, TaskReport
from interlock.resources.values.durations import Duration
from support.simulation.faults import CALM, FaultRates
from support.simulation.faulty_objects import Lateness
from support.simulation.pod_script import pod_of
from support.simulation.pod_world import PodWorld, RivalPodWorld
from support.simulation.script import (
    Act,
    CreateJob,
    DeleteJob,
    DeletePod,
    Denial,
    DenyPods,
    KillJob,
    LoseNode,
    RemoveNode,
    Step,
)

#: So many worlds are tried for one bug.
MOST = 40


def a_creation(name: str, seconds: float, *, tasks: int = 1) -> CreateJob:
    """A person creates a Job that needs the lock `db`, and whose tasks ignore SIGTERM."""
    spec = JobSpec(
        pod=pod_of("work", f"{seconds}", "exits=1", "deaf"),
        locks=(LockRequest(key="db", limit=2),),
        parallelism=Parallelism(count=tasks),
        retries=Retries(limit=1),
        grace_period=Duration(seconds=5),
        pending_timeout=Duration(),
    )
    return CreateJob(name=name, spec=spec)


def every(seconds: float, acts: Iterable[Act]) -> tuple[Step, ...]:
    """One thing after another."""
    return tuple(Step(seconds * number, act) for number, act in enumerate(acts, 1))


def _come_and_go() -> Iterator[Act]:
    """Jobs of one name that are deleted as soon as they begin, again and again."""
    for _ in range(40):
        yield a_creation("job-0", 2.0, tasks=3)
        yield DeleteJob("job-0")


def _begin_and_stop() -> Iterator[Act]:
    """Jobs that are told to stop as soon as they begin."""
    for number in range(12):
        yield a_creation(f"job-{number}", 20.0, tasks=2)
        yield KillJob(f"job-{number}")


def _begin_much_and_stop() -> Iterator[Act]:
    """Jobs of many tasks that are told to stop while they are being launched."""
    for number in range(6):
        yield a_creation(f"job-{number}", 20.0, tasks=12)
        yield KillJob(f"job-{number}")


def _begin() -> Iterator[Act]:
    """Jobs that are left alone."""
    return (a_creation(f"job-{number}", 5.0, tasks=8) for number in range(12))


def _lost_nodes() -> Iterator[Act]:
    """Jobs whose nodes are silent while they are told to stop, and whose pods people delete."""
    for number in range(2):
        yield a_creation(f"job-{number}", 500.0, tasks=2)
    yield LoseNode(0, 400.0)
    yield LoseNode(1, 400.0)
    yield DeletePod("job-0", force=True)
    yield DeletePod("job-1", force=True, strip=True)
    yield KillJob("job-0")
    yield RemoveNode(2)


def _denied() -> Iterator[Act]:
    """Jobs whose turn comes while the cluster denies pods."""
    for number, how in enumerate((Denial.QUOTA, Denial.NO_CREATE, Denial.NO_DELETE)):
        yield DenyPods(how, 25.0)
        yield a_creation(f"job-{number}", 5.0, tasks=2)
        yield KillJob(f"job-{number}")


def _denied_changes() -> Iterator[Act]:
    """Jobs that are told to stop, and whose pods may not be let go when they are over."""
    yield a_creation("job-0", 40.0, tasks=2)
    yield DenyPods(Denial.NO_PATCH, 60.0)
    yield KillJob("job-0")
    for number in range(1, 5):
        yield a_creation(f"job-{number}", 5.0)
        yield KillJob(f"job-{number}")


#: Worlds that are made for one sort of trouble.
LATE = (
    every(4.0, _come_and_go()),
    FaultRates(watch_late=0.8, longest_stall=6.0),
    Lateness(late=0.5, latest_s=100.0),
)
SLOW = (
    every(3.0, _begin_and_stop()),
    FaultRates(watch_late=0.7, longest_stall=12.0),
    Lateness(slow_s=25.0),
)
WIDE = (every(3.0, _begin_much_and_stop()), CALM, Lateness(slow_s=25.0))
CRASHING = (every(6.0, _begin()), FaultRates(crash_before=0.05), Lateness())
SILENT = (every(10.0, _lost_nodes()), CALM, Lateness())
DENIED = (every(6.0, _denied()), CALM, Lateness())
UNCHANGED = (every(4.0, _denied_changes()), CALM, Lateness())

Trouble = tuple[tuple[Step, ...], FaultRates, Lateness]
TROUBLES: tuple[Trouble, ...] = (LATE, SLOW, WIDE, CRASHING, SILENT, DENIED, UNCHANGED)


def troubled(world: type[PodWorld], trouble: Trouble) -> Worlds:
    """Worlds of a sort with one sort of trouble."""
    script, rates, lateness = trouble
    return lambda seed: world(seed, script, rates, replace(lateness))


MANIFEST = Seam("interlock.kube.pods.manifest", "pod_of")
REPORT_OF = Seam("interlock.kube.pods.reporting", "report_of")

GATES = "A pod is made with a gate, and let run once its attempt is on record."
NAMES = "The name of a pod follows from its attempt: what was made once is not made again."
PROVEN = "An attempt is over when its node says so, or is proven gone."

Manifest = Callable[[TaskOrder], dict[str, Any]]
ReportOf = Callable[..., TaskReport]


# Launching


@mutation(
    GATES, MANIFEST, caught_by="ArmedOnRecord", in_worlds=troubled(PodWorld, LATE), most_worlds=MOST
)
def created_without_a_gate(really: Manifest) -> Manifest:
    def pod_of_order(order: TaskOrder) -> dict[str, Any]:
        made = really(order)
        return {**made, "spec": {**made["spec"], "schedulingGates": []}}

    return pod_of_order


@mutation(
    NAMES,
    MANIFEST,
    caught_by="OnePod",
    in_worlds=troubled(RivalPodWorld, CRASHING),
    most_worlds=MOST,
)
@mutation(
    NAMES,
    MANIFEST,
    caught_by="NothingLeftToRun",
    in_worlds=troubled(RivalPodWorld, LATE),
    most_worlds=MOST,
    seen_in=15,
)
def names_are_never_the_same(really: Manifest) -> Manifest:
    numbers = count()

    def pod_of_order(order: TaskOrder) -> dict[str, Any]:
        made = really(order)
        named = {**made["metadata"], "name": f"{order.name}-{next(numbers)}"}
        return {**made, "metadata": named}

    return pod_of_order


@mutation(
    "Before a pod is let run, the record is asked anew whether it is wanted.",
    Seam("interlock.kube.pods.records", "Wanted.ask"),
    caught_by="ArmedOnRecord",
    in_worlds=troubled(RivalPodWorld, SLOW),
    most_worlds=MOST,
)
def armed_without_a_look_at_the_record(_: object) -> Any:
    async def everything(self: Wanted, things: Any) -> list[Any]:
        self.tasks.update(thing.task for thing in things)
        return []

    return everything


@mutation(
    "A pod that was made and not let run is told of, so that somebody goes on with it.",
    Seam("interlock.kube.pods.reporting", "told_by"),
    caught_by="Settles",
    in_worlds=troubled(PodWorld, CRASHING),
    most_worlds=160,
    seen_in=72,
)
def what_was_prepared_is_left_alone(really: ReportOf) -> ReportOf:
    return lambda *args, **more: replace(really(*args, **more), prepared=False)


@mutation(
    "A quota that is full for a moment, or a right that is missing, ends no attempt.",
    Seam("interlock.kube.pods.launching", "Launching._try"),
    caught_by="NotBurnt",
    in_worlds=troubled(PodWorld, DENIED),
    most_worlds=MOST,
)
def denied_is_taken_for_refused(really: Callable[..., Any]) -> Any:
    async def try_once(self: Any, order: TaskOrder) -> Any:
        try:
            return await really(self, order)
        except OrderDeniedError as error:
            self._refuse(order, str(error))

    return try_once


@mutation(
    "Of a Job that is told to stop, hardly a pod is still made.",
    Seam("interlock.execution.reconciler", "ExecutionReconciler._view_of"),
    caught_by="StopsAreHeard",
    in_worlds=troubled(PodWorld, WIDE),
    most_worlds=MOST,
)
def launched_all_at_once(really: Callable[..., ExecutionView]) -> Any:
    return lambda self, *args: replace(really(self, *args), launches_at_once=1_000)


# Stopping and ending


def _reporting(really: ReportOf, change: Callable[[Pod, TaskReport], TaskReport]) -> ReportOf:
    def report_of(pod: Pod, now: datetime, **more: Any) -> TaskReport:
        return change(pod, really(pod, now, **more))

    return report_of


def _ended(report: TaskReport) -> TaskReport:
    return replace(report, state=ReportState.ENDED, prepared=False)


@mutation(
    PROVEN, REPORT_OF, caught_by="TrueEnds", in_worlds=troubled(PodWorld, SILENT), most_worlds=MOST
)
def deleting_is_taken_for_gone(really: ReportOf) -> ReportOf:
    return _reporting(really, lambda pod, report: _ended(report) if pod.is_going else report)


@mutation(
    PROVEN, REPORT_OF, caught_by="TrueEnds", in_worlds=troubled(PodWorld, SILENT), most_worlds=MOST
)
def declared_failed_is_taken_for_the_end(really: ReportOf) -> ReportOf:
    """A node is silent, a person deletes its pod by force, and that is believed."""

    def change(pod: Pod, report: TaskReport) -> TaskReport:
        forced = pod.is_going and not pod.metadata.deletion_grace_period_seconds
        return _ended(report) if forced or report.state is ReportState.UNKNOWN else report

    return _reporting(really, change)


@mutation(
    PROVEN,
    Seam("interlock.kube.pods.reporting", "gone_report"),
    caught_by="TrueEnds",
    in_worlds=troubled(PodWorld, SILENT),
    most_worlds=MOST,
)
def a_pod_that_vanished_succeeded(really: ReportOf) -> ReportOf:
    def gone_report(pod: Pod, now: datetime, **more: Any) -> TaskReport:
        told = really(pod, now, **more)
        return replace(told, state=ReportState.ENDED, exit_code=0)

    return gone_report


@mutation(
    "A pod is deleted by its uid, never by its name alone.",
    Seam("support.simulation.faulty_objects", "FaultyObjects.delete"),
    caught_by="StopsForCause",
    in_worlds=troubled(PodWorld, LATE),
    most_worlds=MOST,
)
def deleted_whatever_pod_has_the_name(really: Callable[..., Any]) -> Any:
    async def delete(self: Any, namespace: str, name: str, **more: Any) -> Any:
        return await really(self, namespace, name, **{**more, "uid": ""})

    return delete


@mutation(
    "A pod is removed by force only where its Job asks for that.",
    Seam("interlock.kube.pods.stopping", "Stopping.stop_pod"),
    caught_by="ForcedForCause",
    in_worlds=troubled(PodWorld, SILENT),
    most_worlds=MOST,
)
def force_needs_no_reason(really: Callable[..., Any]) -> Any:
    async def stop_pod(self: Stopping, pod: Pod, grace_s: int | None) -> None:
        await really(self, pod, 0)

    return stop_pod


# Forgetting


@mutation(
    "A pod is held until the end of its attempt is recorded.",
    Seam("interlock.kube.pods.runtime", "PodRuntime._look_at_pod"),
    caught_by="HeldUntilRecorded",
    in_worlds=troubled(PodWorld, SILENT),
    most_worlds=MOST,
)
def let_go_before_the_end_is_recorded(really: Callable[..., None]) -> Callable[..., None]:
    def look_at_pod(self: Any, pod: Pod) -> None:
        if pod.is_over and pod.is_held:
            self._errands.run(("go", pod.place), lambda: let_go(self._pods, pod, self._check))
        really(self, pod)

    return look_at_pod


@mutation(
    "A pod whose end is recorded is let go.",
    Seam("interlock.kube.pods.sorts", "let_go"),
    caught_by="NothingIsLeft",
    in_worlds=troubled(PodWorld, SILENT),
    most_worlds=MOST,
)
def never_let_go(_: object) -> Any:
    async def keep(*_: Any) -> None:
        return

    return keep


@mutation(
    "What may not be let go of now is let go of once it may.",
    Seam("interlock.kube.pods.forget_retries", "ForgetRetries.forget"),
    caught_by="NothingIsLeft",
    in_worlds=troubled(PodWorld, UNCHANGED),
    most_worlds=MOST,
)
def what_is_refused_once_is_never_let_go(_: object) -> Any:
    return ForgetRetries._try


@mutation(
    "A node that is removed does not come back: nobody waits for it.",
    Seam("interlock.kube.pods.unreachable_nodes", "UnreachableNodes._state_of"),
    caught_by="NothingIsLeft",
    in_worlds=troubled(PodWorld, SILENT),
    most_worlds=MOST,
)
def nodes_that_are_gone_are_waited_for(_: object) -> Any:
    async def state_of(self: Any, name: str) -> NodeState:
        return NodeState.SILENT

    return state_of
