"""What is forgotten where work is started, stopped, watched and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from grounds import busy
from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.control.runtime import TaskStop
from interlock.execution.decide import Plan
from interlock.execution.view import ExecutionView
from interlock.forecast.rehearsal.simulated_machine import Machine
from interlock.resources.actions import (
    Action,
    Decision,
    DeleteResource,
    ForgetTask,
    LaunchTask,
    RecordExecution,
    RemoveFinalizer,
    StopTask,
)
from interlock.resources.job import JOB_FINALIZER, Job
from interlock.resources.metadata import Key
from interlock.resources.tasks import (
    EndedTask,
    ExecutionStatus,
    JobResult,
    ReportState,
    TaskOrder,
    TaskReport,
    TaskResult,
    TaskState,
    TaskStatus,
)
from interlock.resources.transitions import has_ended
from support.simulation.world import RivalWorld, World

#: All that the room decides about a Job comes out of it.
PLAN = Seam("interlock.execution.decide", "plan")
OBSERVE = Seam("interlock.execution.folding", "observe")
KEPT_ENDED = Seam("interlock.execution.folding", "KEPT_ENDED")
WAS_FORGOTTEN = Seam("interlock.forecast.rehearsal.simulated_machine", "Machine.was_forgotten")

RECORDED = "An attempt is on record before it is launched."
GONE = "A Job is over only when all that it started is proven gone."
FINAL = "What is final does not change."
PROVEN = "An attempt is over only when its runtime says so."
BOUNDED = "A status keeps the newest ends and those that it failed for, and no more."

Planner = Callable[[ExecutionView, datetime], Plan]


# Whether it may start


@mutation(
    "What starts work is the lock's record, not what a status says.",
    Seam("interlock.execution.view", "ExecutionView.may_launch"),
    caught_by="NeverTwice",
    in_worlds=busy(World),
)
def a_status_lets_a_job_in(_: object) -> property:
    return property(lambda _: True)


@mutation(
    "A person releases the attempts that are unknown then, and none that come later.",
    Seam("interlock.execution.decide", "released_attempts"),
    caught_by="TrueEnds",
    in_worlds=busy(World),
)
def a_release_is_for_whatever_comes_later(_: object) -> Callable[..., frozenset[str]]:
    attempts = frozenset(f"{task}-{attempt}" for task in range(10) for attempt in range(10))
    return lambda _: attempts


# What is decided


def _changed(really: Planner, change: Callable[[ExecutionView, Plan, datetime], Plan]) -> Planner:
    return lambda view, now: change(view, really(view, now), now)


def _with_actions(
    really: Planner, change: Callable[[tuple[Action, ...]], Sequence[Action]]
) -> Planner:
    def changed(_: ExecutionView, found: Plan, __: datetime) -> Plan:
        actions = tuple(change(found.decision.actions))
        return found._replace(decision=replace(found.decision, actions=actions))

    return _changed(really, changed)


@mutation(RECORDED, PLAN, caught_by="RecordedFirst", in_worlds=busy(World))
def launched_before_it_is_recorded(really: Planner) -> Planner:
    return _with_actions(
        really, lambda actions: sorted(actions, key=lambda each: not isinstance(each, LaunchTask))
    )


@mutation(RECORDED, PLAN, caught_by="RecordedFirst", in_worlds=busy(World))
def launched_without_being_recorded(really: Planner) -> Planner:
    def change(actions: tuple[Action, ...]) -> Sequence[Action]:
        if not any(isinstance(action, LaunchTask) for action in actions):
            return actions
        return [action for action in actions if not isinstance(action, RecordExecution)]

    return _with_actions(really, change)


@mutation(
    "A machine is told to forget what is recorded.",
    PLAN,
    caught_by="Settles",
    in_worlds=busy(World),
)
def never_told_to_forget(really: Planner) -> Planner:
    return _with_actions(really, lambda actions: _without(actions, ForgetTask))


@mutation("What is to stop is told so.", PLAN, caught_by="Settles", in_worlds=busy(World))
def never_told_to_stop(really: Planner) -> Planner:
    return _with_actions(really, lambda actions: _without(actions, StopTask))


def _without(actions: tuple[Action, ...], sort: type[Action]) -> Sequence[Action]:
    return [action for action in actions if not isinstance(action, sort)]


@mutation(GONE, PLAN, caught_by="NeverTwice", in_worlds=busy(World))
def told_to_stop_counts_as_gone(really: Planner) -> Planner:
    def changed(view: ExecutionView, found: Plan, now: datetime) -> Plan:
        job = view.job
        if job is None or has_ended(job) or job.status.execution.stopping_for is None:
            return found
        over = RecordExecution(job, _killed(job.status.execution, now))
        return found._replace(decision=Decision((over,)))

    return _changed(really, changed)


def _killed(status: ExecutionStatus, now: datetime) -> ExecutionStatus:
    return replace(status, active=(), retrying=(), ended_at=now, result=JobResult.KILLED)


@mutation(GONE, PLAN, caught_by="NeverTwice", in_worlds=busy(World))
def deleted_at_once(really: Planner) -> Planner:
    def changed(view: ExecutionView, found: Plan, _: datetime) -> Plan:
        job = view.job
        if job is None or not job.is_going or JOB_FINALIZER not in job.metadata.finalizers:
            return found
        return found._replace(decision=Decision((RemoveFinalizer(job, JOB_FINALIZER),)))

    return _changed(really, changed)


@mutation(FINAL, PLAN, caught_by="LegalMoves", in_worlds=busy(World))
def ends_are_rewritten(really: Planner) -> Planner:
    def changed(view: ExecutionView, found: Plan, now: datetime) -> Plan:
        job = view.job
        if job is None or job.status.execution.result is None or job.is_going:
            return found
        again = RecordExecution(job, replace(job.status.execution, ended_at=now))
        return found._replace(decision=Decision((again,)))

    return _changed(really, changed)


@mutation("Only what is over is cleared away.", PLAN, caught_by="NeverLost", in_worlds=busy(World))
def running_jobs_are_cleaned_up(really: Planner) -> Planner:
    def changed(view: ExecutionView, found: Plan, _: datetime) -> Plan:
        job = view.job
        if job is None or job.is_going or job.spec.ttl_after_finished is None:
            return found
        return found._replace(decision=Decision((DeleteResource(job),)))

    return _changed(really, changed)


# What is made of reports

Observe = Callable[[TaskStatus, TaskReport | None, bool, datetime], TaskStatus | EndedTask]
Mistaken = Callable[[TaskStatus, TaskReport | None], bool]


def _failed_when(really: Observe, mistaken: Mistaken) -> Observe:
    def observe(
        task: TaskStatus, report: TaskReport | None, complete: bool, now: datetime
    ) -> TaskStatus | EndedTask:
        if not mistaken(task, report):
            return really(task, report, complete, now)
        return EndedTask(
            name=task.name,
            index=task.index,
            attempt=task.attempt,
            result=TaskResult.FAILED,
            ended_at=now,
        )

    return observe


@mutation(PROVEN, OBSERVE, caught_by="NeverTwice", in_worlds=busy(World), seen_in=36)
def a_missing_report_is_taken_for_the_end(really: Observe) -> Observe:
    return _failed_when(really, lambda _, report: report is None)


@mutation(PROVEN, OBSERVE, caught_by="TrueEnds", in_worlds=busy(World))
def unknown_is_taken_for_failed(really: Observe) -> Observe:
    return _failed_when(
        really, lambda _, report: report is not None and report.state is ReportState.UNKNOWN
    )


@mutation(PROVEN, OBSERVE, caught_by="TrueEnds", in_worlds=busy(World))
def killing_is_taken_for_killed(really: Observe) -> Observe:
    return _failed_when(really, lambda task, _: task.state is TaskState.KILLING)


@mutation(
    "How an attempt ended is told as it was.",
    Seam("interlock.execution.folding", "result_of"),
    caught_by="TrueEnds",
    in_worlds=busy(World),
)
def every_exit_is_a_success(_: object) -> Callable[..., TaskResult]:
    return lambda *_: TaskResult.SUCCEEDED


@mutation(
    "A task that is done is not done again.",
    Seam("interlock.execution.launching", "_never_tried"),
    caught_by="RecordedFirst",
    in_worlds=busy(World),
)
def done_tasks_are_tried_again(_: object) -> Callable[[ExecutionStatus], Iterator[int]]:
    def never_tried(status: ExecutionStatus) -> Iterator[int]:
        active = {task.index for task in status.active}
        return (index for index in range(status.total) if index not in active)

    return never_tried


@mutation(BOUNDED, KEPT_ENDED, caught_by="StatusBounded", in_worlds=busy(World))
def every_attempt_is_kept(_: int) -> int:
    return 10_000


@mutation(
    BOUNDED,
    KEPT_ENDED,
    Seam("interlock.execution.folding", "newest"),
    caught_by="StatusBounded",
    in_worlds=busy(World),
)
def only_the_newest_ends_are_kept(_: int, __: object) -> tuple[int, Callable[..., object]]:
    return 1, lambda _, execution, most: execution.ended[-most:]


@mutation(
    "What a plane has not heard of is not taken for gone.",
    Seam("interlock.execution.reconciler", "ExecutionReconciler._strays_of"),
    caught_by="StopsForCause",
    in_worlds=busy(RivalWorld),
)
def unheard_of_is_taken_for_gone(_: object) -> Callable[..., tuple[TaskReport, ...]]:
    def strays_of(self: Any, key: Key, job: Job | None) -> tuple[TaskReport, ...]:
        uids = [uid for uid in self._strays[key] if job is None or job.metadata.uid != uid]
        return tuple(report for uid in uids for report in self._reports.of(uid).values())

    return strays_of


# The machine


@mutation(
    "A machine remembers what it was told to forget, until nobody can order it again.",
    # Told at once: a plane that is late by a second is rare.
    Seam("interlock.control.forgetting", "LATER_S"),
    WAS_FORGOTTEN,
    caught_by="RecordedFirst",
    in_worlds=busy(RivalWorld),
    seen_in=94,
)
def the_machine_forgets_what_it_forgot(_: float, __: object) -> tuple[float, Callable[..., bool]]:
    return 0.0, lambda *_: False


@mutation(
    "Nothing that a definition names is waited for in the keeper's loop.",
    Seam("interlock.forecast.rehearsal.simulated_machine", "Machine._start"),
    Seam("interlock.forecast.rehearsal.simulated_machine", "Machine.stop"),
    caught_by="Settles",
    in_worlds=busy(World),
    seen_in=36,
)
def a_start_that_hangs_holds_up_the_keeper(start: Any, stop: Any) -> tuple[Any, Any]:
    def start_alone(self: Machine, order: TaskOrder) -> None:
        if self._hanging - {order.id}:
            self._later(1.0, self._start, order)
        else:
            start(self, order)

    def stop_later(self: Machine, stops: Sequence[TaskStop]) -> None:
        if self._hanging:
            self._later(1.0, self.stop, stops)
        else:
            stop(self, stops)

    return start_alone, stop_later
