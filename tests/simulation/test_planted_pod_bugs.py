"""Bugs planted where attempts become pods: each breaks a promise, and is caught by it.

As with the other planted bugs, worlds are run one after another until one of them notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

import interlock.kube.pods.manifest as manifest
import interlock.kube.pods.reporting as reporting
import interlock.kube.pods.silence as silence
import interlock.kube.pods.sorts as sorts
from interlock.control.runtime import OrderDeniedError
from interlock.execution.reconciler import ExecutionReconciler
from interlock.execution.view import ExecutionView
from interlock.kube.pods.launching import Launching
from interlock.kube.pods.records import Wanted
from interlock.kube.pods.runtime import PodRuntime
from interlock.kube.pods.stopping import Stopping, let_go
from interlock.kube.pods.wire import Pod
from interlock.resources.durations import Duration
from interlock.resources.job import JobSpec, LockRequest, Parallelism, Retries
from interlock.resources.tasks import ReportState, TaskOrder, TaskReport
from interlock.testing.simulation.faults import CALM, FaultRates
from interlock.testing.simulation.faulty_objects import FaultyObjects, Lateness
from interlock.testing.simulation.pod_script import pod_of
from interlock.testing.simulation.pod_world import PodWorld, RivalPodWorld
from interlock.testing.simulation.script import (
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
from interlock.testing.simulation.world import Outcome

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]

#: So many worlds are tried for one bug.
MOST_WORLDS = 40


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

Trouble = tuple[tuple[Step, ...], FaultRates, Lateness]


# Launching


def created_without_a_gate(patch: Patch) -> None:
    really = manifest.pod_of

    def pod_of_order(order: TaskOrder) -> dict[str, Any]:
        made = really(order)
        return {**made, "spec": {**made["spec"], "schedulingGates": []}}

    patch.setattr(manifest, "pod_of", pod_of_order)


def names_are_never_the_same(patch: Patch) -> None:
    """A name that is taken is what keeps an attempt from being made a second time."""
    really, numbers = manifest.pod_of, count()

    def pod_of_order(order: TaskOrder) -> dict[str, Any]:
        made = really(order)
        named = {**made["metadata"], "name": f"{order.name}-{next(numbers)}"}
        return {**made, "metadata": named}

    patch.setattr(manifest, "pod_of", pod_of_order)


def armed_without_a_look_at_the_record(patch: Patch) -> None:
    patch.setattr(Wanted, "ask", _everything)


async def _everything(self: Wanted, things: Any) -> list[Any]:
    self.tasks.update(thing.task for thing in things)
    return []


def what_was_prepared_is_left_alone(patch: Patch) -> None:
    really = reporting.told_by

    def told_by(*args: Any, **more: Any) -> TaskReport:
        return replace(really(*args, **more), prepared=False)

    patch.setattr(reporting, "_told", told_by)


def denied_is_taken_for_refused(patch: Patch) -> None:
    """A quota that is full for a moment, or a right that is missing, ends the attempt."""
    really = Launching._try

    async def try_once(self: Any, order: TaskOrder) -> Any:
        try:
            return await really(self, order)
        except OrderDeniedError as error:
            self._refuse(order, str(error))

    patch.setattr(Launching, "_try", try_once)


# Stopping and ending


def _reporting(patch: Patch, change: Callable[[Pod, TaskReport], TaskReport]) -> None:
    really = reporting.report_of

    def report_of(pod: Pod, now: datetime, **more: Any) -> TaskReport:
        return change(pod, really(pod, now, **more))

    patch.setattr(reporting, "report_of", report_of)


def _ended(report: TaskReport) -> TaskReport:
    return replace(report, state=ReportState.ENDED, prepared=False)


def deleting_is_taken_for_gone(patch: Patch) -> None:
    _reporting(patch, lambda pod, report: _ended(report) if pod.is_going else report)


def declared_failed_is_taken_for_the_end(patch: Patch) -> None:
    """A node is silent, a person deletes its pod by force, and that is believed."""

    def change(pod: Pod, report: TaskReport) -> TaskReport:
        forced = pod.is_going and not pod.metadata.deletion_grace_period_seconds
        return _ended(report) if forced or report.state is ReportState.UNKNOWN else report

    _reporting(patch, change)


def a_pod_that_vanished_succeeded(patch: Patch) -> None:
    really = reporting.gone_report

    def gone_report(pod: Pod, now: datetime, **more: Any) -> TaskReport:
        told = really(pod, now, **more)
        return replace(told, state=ReportState.ENDED, exit_code=0)

    patch.setattr(reporting, "gone_report", gone_report)


def deleted_whatever_pod_has_the_name(patch: Patch) -> None:
    really = FaultyObjects.delete

    async def delete(self: Any, namespace: str, name: str, **more: Any) -> Any:
        return await really(self, namespace, name, **{**more, "uid": ""})

    patch.setattr(FaultyObjects, "delete", delete)


def force_needs_no_reason(patch: Patch) -> None:
    really = Stopping.stop_pod

    async def stop_pod(self: Stopping, pod: Pod, grace_s: int | None) -> None:
        await really(self, pod, 0)

    patch.setattr(Stopping, "stop_pod", stop_pod)


# Forgetting


def let_go_before_the_end_is_recorded(patch: Patch) -> None:
    really = PodRuntime._look_at_pod

    def look_at_pod(self: Any, pod: Pod) -> None:
        if pod.is_over and pod.is_held:
            self._errands.run(("go", pod.place), lambda: let_go(self._pods, pod, self._check))
        really(self, pod)

    patch.setattr(PodRuntime, "_look_at_pod", look_at_pod)


def never_let_go(patch: Patch) -> None:
    async def keep(*_: Any) -> None:
        return

    patch.setattr(sorts, "let_go", keep)


def nodes_that_are_gone_are_waited_for(patch: Patch) -> None:
    async def state_of(self: Any, name: str) -> reporting.NodeState:
        return reporting.NodeState.SILENT

    patch.setattr(silence.Silence, "_state_of", state_of)


def launched_all_at_once(patch: Patch) -> None:
    really = ExecutionReconciler._view_of

    def view_of(self: Any, *args: Any) -> ExecutionView:
        return replace(really(self, *args), launches_at_once=1_000)

    patch.setattr(ExecutionReconciler, "_view_of", view_of)


BUGS: list[tuple[Plant, type[PodWorld], Trouble, str]] = [
    (denied_is_taken_for_refused, PodWorld, DENIED, "NotBurnt"),
    (launched_all_at_once, PodWorld, WIDE, "StopsAreHeard"),
    (created_without_a_gate, PodWorld, LATE, "ArmedOnRecord"),
    (names_are_never_the_same, RivalPodWorld, CRASHING, "OnePod"),
    (names_are_never_the_same, RivalPodWorld, LATE, "NothingLeftToRun"),
    (armed_without_a_look_at_the_record, RivalPodWorld, SLOW, "ArmedOnRecord"),
    (what_was_prepared_is_left_alone, PodWorld, CRASHING, "Settles"),
    (deleting_is_taken_for_gone, PodWorld, SILENT, "TrueEnds"),
    (declared_failed_is_taken_for_the_end, PodWorld, SILENT, "TrueEnds"),
    (a_pod_that_vanished_succeeded, PodWorld, SILENT, "TrueEnds"),
    (deleted_whatever_pod_has_the_name, PodWorld, LATE, "StopsForCause"),
    (force_needs_no_reason, PodWorld, SILENT, "ForcedForCause"),
    (let_go_before_the_end_is_recorded, PodWorld, SILENT, "HeldUntilRecorded"),
    (never_let_go, PodWorld, SILENT, "NothingIsLeft"),
    (nodes_that_are_gone_are_waited_for, PodWorld, SILENT, "NothingIsLeft"),
]


@pytest.mark.parametrize(
    ("plant", "world", "trouble", "promise"),
    BUGS,
    ids=[f"{bug[0].__name__}-{bug[3]}" for bug in BUGS],
)
def test_a_planted_bug_is_caught(
    plant: Plant, world: type[PodWorld], trouble: Trouble, promise: str, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    broken: dict[str, int] = {}
    for seed in range(MOST_WORLDS):
        outcome = _run(world, seed, trouble)
        if outcome.broken is not None:
            broken.setdefault(outcome.broken.promise, seed)
        if promise in broken:
            return

    pytest.fail(f"{promise} was not broken; broken were {broken}")


@pytest.mark.parametrize("trouble", [LATE, SLOW, WIDE, CRASHING, SILENT, DENIED], ids=range(6))
@pytest.mark.parametrize("world", [PodWorld, RivalPodWorld])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_worlds_without_a_bug_are_well(
    world: type[PodWorld], trouble: Trouble, seed: int
) -> None:
    assert str(_run(world, seed, trouble).broken) == "None"


def _run(world: type[PodWorld], seed: int, trouble: Trouble) -> Outcome:
    script, rates, lateness = trouble
    return world(seed, script, rates, replace(lateness)).run()
