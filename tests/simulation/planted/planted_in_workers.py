"""What is forgotten about workers: who has an attempt, how long, whose word counts, and when."""

from __future__ import annotations

from datetime import datetime
from math import inf
from typing import Any

from grounds import cut_off, operations, side_by_side
from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.resources.job import Job
from interlock.resources.operation import StepState, StepStatus
from interlock.resources.tasks import EndedTask, TaskId, TaskOrder, TaskReport
from interlock.resources.work import PythonWork
from interlock.runtimes.workers.attempts import At, Phase, Worker, task_of
from interlock.runtimes.workers.dispatcher import Dispatcher
from interlock.runtimes.workers.protocol import Outcome
from support.simulation.worker_world import RivalWorkerOperationWorld, WorkerOperationWorld

DISPATCHER = "interlock.runtimes.workers.dispatcher"
DONE = Seam(DISPATCHER, "Dispatcher._done")
LAUNCH = Seam(DISPATCHER, "Dispatcher.launch")
CUT_OFF = Seam("interlock.execution.operations", "_cut_off")

ONCE = "An order is handed out once, whatever becomes of it."
COUNTS = "What is said of an attempt counts once, and only from the worker that has it."
KEPT = "A worker is told that it may forget a result only when that is durable."
ROOM = "What a worker may still be doing takes up its room."
LEASE = "What nobody has spoken of for the length of a lease is cut off."
INTERRUPTED = "An interruption uses up no retry, and comes to an end."


# Who has it


@mutation(
    ONCE,
    Seam(DISPATCHER, "Dispatcher._lose"),
    caught_by="HandedOutOnce",
    in_worlds=operations(WorkerOperationWorld),
)
def what_a_lost_worker_had_goes_to_the_next(really: Any) -> Any:
    def _lose(self: Any, worker: Worker, why: str, at: At) -> None:
        left = [one for one in worker.at_work.values() if one.call is not None]
        for attempt in left:
            del worker.at_work[attempt.id]
            attempt.worker = None
            attempt.phase = Phase.WAITING
        really(self, worker, why, at)
        for attempt in left:
            self._place(attempt, at)

    return _lose


@mutation(
    ONCE,
    Seam(DISPATCHER, "Dispatcher.inherit"),
    LAUNCH,
    caught_by="HandedOutOnce",
    in_worlds=operations(WorkerOperationWorld),
    seen_in=18,
)
def what_is_inherited_is_handed_out_again(_: Any, really: Any) -> Any:
    return lambda *_: None, _first_time(really)


@mutation(ONCE, LAUNCH, caught_by="HandedOutOnce", in_worlds=operations(RivalWorkerOperationWorld))
def an_order_of_a_rival_is_handed_out_too(really: Any) -> Any:
    return _first_time(really)


def _first_time(really: Any) -> Any:
    """Take each order for one that nobody has given before."""

    def launch(self: Any, order: TaskOrder, at: At) -> None:
        if isinstance(order.work, PythonWork):
            order = replace(order, work=replace(order.work, again=False))
        really(self, order, at)

    return launch


# For how long


@mutation(
    LEASE,
    Seam("interlock.runtimes.workers.attempts", "Attempt.due_at"),
    caught_by="WordsCount",
    in_worlds=operations(WorkerOperationWorld),
)
@mutation(
    LEASE,
    Seam("interlock.runtimes.workers.attempts", "Attempt.due_at"),
    caught_by="TargetsApart",
    in_worlds=operations(WorkerOperationWorld),
)
def a_lease_never_ends(_: Any) -> property:
    return property(lambda attempt: inf if attempt.phase is Phase.OVER else attempt.stop_by)


@mutation(
    "What was handed out before a restart is waited for as long as a lease takes, and no longer.",
    Seam(DISPATCHER, "Dispatcher._inherit"),
    caught_by="TargetsApart",
    in_worlds=operations(WorkerOperationWorld),
)
def what_is_inherited_is_waited_for_for_ever(_: Any) -> Any:
    def _inherit(self: Any, task: TaskId, report: TaskReport, _at: At) -> None:
        self._tell(self._add(task, Phase.INHERITED, report))

    return _inherit


# Whose word counts


@mutation(COUNTS, DONE, caught_by="WordsCount", in_worlds=operations(WorkerOperationWorld))
def a_late_result_is_taken(really: Any) -> Any:
    def _done(self: Any, worker: Worker, outcome: Outcome, at: At) -> None:
        attempt = self._attempts.get(task_of(outcome.ref))
        if attempt is not None and attempt.phase is Phase.OVER and not attempt.teller:
            attempt.worker = worker
            worker.at_work[attempt.id] = attempt
        really(self, worker, outcome, at)

    return _done


@mutation(
    "A worker is told that what it says does not count.",
    Seam(DISPATCHER, "Dispatcher._refuse"),
    caught_by="OrdersAreDone",
    in_worlds=operations(WorkerOperationWorld),
)
def nobody_is_told_that_it_does_not_count(_: Any) -> Any:
    return lambda *_: None


@mutation(
    ROOM,
    Seam(DISPATCHER, "Dispatcher._refuse_held"),
    caught_by="RoomKept",
    in_worlds=cut_off(WorkerOperationWorld),
)
def what_a_worker_comes_back_with_in_vain_takes_no_room(_: Any) -> Any:
    def _refuse_held(self: Any, worker: Worker, task: TaskId) -> None:
        self._refuse(worker, task)

    return _refuse_held


@mutation(
    ROOM,
    Seam("interlock.runtimes.workers.attempts", "Worker.has_room"),
    caught_by="RoomKept",
    in_worlds=operations(WorkerOperationWorld),
    seen_in=28,
)
def what_was_cut_off_takes_no_room(_: Any) -> property:
    def has_room(self: Worker) -> bool:
        if self.is_draining or self.closed is not None:
            return False
        return len(self.at_work) < self.hello.concurrency

    return property(has_room)


# Recorded


@mutation(KEPT, DONE, caught_by="RecordedIsKept", in_worlds=operations(WorkerOperationWorld))
def a_result_is_called_recorded_at_once(really: Any) -> Any:
    def _done(self: Any, worker: Worker, outcome: Outcome, at: At) -> None:
        really(self, worker, outcome, at)
        attempt = self._attempts.get(task_of(outcome.ref))
        if attempt is not None:
            self._is_recorded(attempt)

    return _done


@mutation(
    KEPT,
    Seam(DISPATCHER, "Dispatcher._note_recorded"),
    caught_by="RecordedIsKept",
    in_worlds=side_by_side(WorkerOperationWorld),
)
def any_launch_says_that_all_is_recorded(really: Any) -> Any:
    def _note_recorded(self: Dispatcher, job_uid: str, _open: Any) -> None:
        really(self, job_uid, ())

    return _note_recorded


@mutation(
    "A worker is told in the end that a result is recorded.",
    Seam(DISPATCHER, "Dispatcher._is_recorded"),
    caught_by="OrdersAreDone",
    in_worlds=operations(WorkerOperationWorld),
)
def nobody_is_told_what_is_recorded(_: Any) -> Any:
    return lambda *_: None


# Interruptions


@mutation(INTERRUPTED, CUT_OFF, caught_by="RetriesKept", in_worlds=operations(WorkerOperationWorld))
def an_interruption_is_a_failure(_: Any) -> Any:
    def _cut_off(step: StepStatus, _end: EndedTask, _most: int, now: datetime) -> StepStatus:
        return replace(step, not_before=now if step.retries < 1 else None)

    return _cut_off


@mutation(INTERRUPTED, CUT_OFF, caught_by="RetriesKept", in_worlds=operations(WorkerOperationWorld))
def a_worker_may_die_for_ever(_: Any) -> Any:
    def _cut_off(step: StepStatus, _end: EndedTask, _most: int, now: datetime) -> StepStatus:
        return replace(step, interrupted=True, not_before=now)

    return _cut_off


@mutation(
    "What a worker has done is not done again when another one dies.",
    Seam("interlock.execution.operations", "begun"),
    caught_by="DoneOnce",
    in_worlds=operations(WorkerOperationWorld),
    seen_in=10,
)
def a_death_begins_it_all_anew(really: Any) -> Any:
    def begun(job: Job) -> Any:
        operation = really(job)
        if operation.reverting or not any(step.interrupted for step in operation.steps):
            return operation
        steps = tuple(
            replace(step, state=StepState.WAITS) if step.state is StepState.DONE else step
            for step in operation.steps
        )
        return replace(operation, steps=steps)

    return begun
