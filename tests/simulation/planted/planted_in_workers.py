"""What is forgotten about workers: who has an attempt, how long, whose word counts, and when."""

from __future__ import annotations

from datetime import datetime
from math import inf
from typing import Any

from grounds import cut_off, killers, operations, side_by_side
from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.resources.job import Job
from interlock.resources.operation import StepState, StepStatus
from interlock.resources.tasks import EndedTask, TaskId, TaskOrder, TaskReport
from interlock.resources.work import PythonWork
from interlock.runtimes.workers.attempts import At, Attempt, Phase, Worker, task_of
from interlock.runtimes.workers.protocol import Outcome
from support.simulation.worker_world import RivalWorkerOperationWorld, WorkerOperationWorld

DISPATCHER = "interlock.runtimes.workers.dispatcher"
ACKNOWLEDGEMENT = "interlock.runtimes.workers.acknowledgement"
DONE = Seam(DISPATCHER, "Dispatcher._done")
LAUNCH = Seam(DISPATCHER, "Dispatcher.launch")
BLAME = Seam("interlock.execution.quarantine", "is_counted")
CUT_OFF = Seam("interlock.execution.operations.ends", "_cut_off")

ONCE = "An order is handed out once, whatever becomes of it."
WAITED = "No worker was ever told to do what a status has as waiting for one."
SPARED = "A step that kills its worker comes to an end, and who is beside it does not pay for it."
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
            self._placement.place(attempt, at)

    return _lose


@mutation(
    ONCE,
    Seam(DISPATCHER, "Dispatcher.inherit"),
    LAUNCH,
    caught_by="HandedOutOnce",
    in_worlds=operations(WorkerOperationWorld),
    seen_in=384,
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


# What waits


@mutation(
    WAITED,
    Seam("interlock.resources.tasks", "waits_for_worker"),
    caught_by="WaitingIsTrue",
    in_worlds=operations(WorkerOperationWorld),
)
def an_inherited_order_is_given_at_once(_: Any) -> Any:
    return lambda task: task.started_at is None


@mutation(
    WAITED,
    Seam("interlock.runtimes.workers.placement", "Placement.assign"),
    caught_by="WaitingIsTrue",
    in_worlds=operations(WorkerOperationWorld),
)
def what_is_recorded_to_wait_is_handed_out(_: Any) -> Any:
    def assign(self: Any, worker: Worker, attempt: Attempt, at: At) -> None:
        self.give(worker, attempt, at)

    return assign


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
        self._ledger.tell(self._ledger.add(task, Phase.INHERITED, report))

    return _inherit


# Who killed it


@mutation(SPARED, BLAME, caught_by="RetriesKept", in_worlds=killers(WorkerOperationWorld))
def whoever_is_beside_a_killer_pays(_: Any) -> Any:
    return lambda _step, end: end.started_at is not None


@mutation(SPARED, BLAME, caught_by="RetriesKept", in_worlds=killers(WorkerOperationWorld))
def a_killer_never_pays(_: Any) -> Any:
    return lambda _step, _end: False


@mutation(
    SPARED,
    Seam(DISPATCHER, "Dispatcher._cut"),
    caught_by="NeighboursSpared",
    in_worlds=killers(WorkerOperationWorld),
)
def whoever_is_lost_is_told_to_have_been_alone(really: Any) -> Any:
    def _cut(self: Any, attempt: Attempt, why: str, at: At, *, beside_others: bool) -> None:
        assert beside_others in (True, False)
        really(self, attempt, why, at, beside_others=False)

    return _cut


@mutation(
    SPARED,
    Seam("interlock.runtimes.workers.placement", "Placement.place"),
    caught_by="NeighboursSpared",
    in_worlds=killers(WorkerOperationWorld),
)
def suspects_are_run_beside_others(really: Any) -> Any:
    def place(self: Any, attempt: Attempt, at: At) -> None:
        attempt.is_alone = False
        really(self, attempt, at)

    return place


# Whose word counts


@mutation(
    COUNTS, DONE, caught_by="WordsCount", in_worlds=operations(WorkerOperationWorld), seen_in=68
)
def a_late_result_is_taken(really: Any) -> Any:
    def _done(self: Any, worker: Worker, outcome: Outcome, at: At) -> None:
        attempt = self._ledger.get(task_of(outcome.ref))
        if attempt is not None and attempt.phase is Phase.OVER and not attempt.teller:
            attempt.worker = worker
            worker.at_work[attempt.id] = attempt
        really(self, worker, outcome, at)

    return _done


@mutation(
    "A worker is told that what it says does not count.",
    Seam(ACKNOWLEDGEMENT, "Acknowledgements.refuse"),
    caught_by="OrdersAreDone",
    in_worlds=operations(WorkerOperationWorld),
)
def nobody_is_told_that_it_does_not_count(_: Any) -> Any:
    return lambda *_: None


@mutation(
    ROOM,
    Seam(ACKNOWLEDGEMENT, "Acknowledgements.refuse_held"),
    caught_by="RoomKept",
    in_worlds=cut_off(WorkerOperationWorld),
)
def what_a_worker_comes_back_with_in_vain_takes_no_room(_: Any) -> Any:
    def refuse_held(self: Any, worker: Worker, task: TaskId) -> None:
        self.refuse(worker, task)

    return refuse_held


@mutation(
    ROOM,
    Seam("interlock.runtimes.workers.attempts", "Worker.has_room"),
    caught_by="RoomKept",
    in_worlds=operations(WorkerOperationWorld),
    seen_in=45,
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
        attempt = self._ledger.get(task_of(outcome.ref))
        if attempt is not None:
            self._acks.confirm(attempt)

    return _done


@mutation(
    KEPT,
    Seam(ACKNOWLEDGEMENT, "Acknowledgements.note_recorded"),
    caught_by="RecordedIsKept",
    in_worlds=side_by_side(WorkerOperationWorld),
)
def any_launch_says_that_all_is_recorded(really: Any) -> Any:
    def note_recorded(self: Any, job_uid: str, _open: Any) -> None:
        really(self, job_uid, ())

    return note_recorded


@mutation(
    "A worker is told in the end that a result is recorded.",
    Seam(ACKNOWLEDGEMENT, "Acknowledgements.confirm"),
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
    Seam("interlock.execution.operations.record", "begun"),
    caught_by="DoneOnce",
    in_worlds=operations(WorkerOperationWorld),
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
