"""Stepping: which steps are run, tried again or undone next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from interlock.execution.operations.graph import has_own_undo, held_back, may_undo, to_undo
from interlock.execution.operations.record import (
    UNDER_WAY,
    is_exhausted,
    is_over,
    specs_of,
    under_way,
    with_step,
)
from interlock.execution.operations.rollback import roll_back
from interlock.resources.job import Job
from interlock.resources.operation import (
    ELABORATION,
    OperationStatus,
    StepState,
    StepStatus,
    run_task,
    undo_task,
)
from interlock.resources.steps import Step, needs_of


class Next(NamedTuple):
    """An operation after a look, and what is to be started."""

    operation: OperationStatus
    #: Numbers of tasks and attempts, in the order in which they start.
    attempts: tuple[tuple[int, int], ...] = ()
    #: Whether more would start if there were room.
    starved: bool = False
    #: Whether something is due that has to be recorded as waiting first.
    is_due: bool = False


def move(
    job: Job,
    operation: OperationStatus,
    fresh: frozenset[int],
    room: int,
    now: datetime,
) -> Next:
    """Start what is due of an operation: retries, steps whose needs are done, undos.

    `room` is how many further attempts it may have. Steps in `fresh` failed just now: of these only
    the first retry of a step does not wait in the queue.
    """
    if operation.stuck_at is not None:
        return Next(operation)
    specs = specs_of(job, operation)
    is_active = under_way(operation) > 0
    if not operation.reverting:
        if operation.reverting_for or is_exhausted(operation):
            if is_active:
                return Next(operation)
            operation = roll_back(operation, specs, now)
            if operation.stuck_at is not None or is_over(operation):
                return Next(operation)
            fresh = frozenset()
        else:
            return _go_forward(job, operation, specs, fresh, room, now)
    return _go_back(job, operation, specs, fresh, room, now)


def _go_forward(
    job: Job,
    operation: OperationStatus,
    specs: tuple[Step, ...],
    fresh: frozenset[int],
    room: int,
    now: datetime,
) -> Next:
    starts = _Starts(job, operation, specs, room, now)
    due, is_due = _due(operation, fresh, under_way(operation), now)
    for at in due:
        # One that is undone for another's retry does not begin its own.
        waits = starts.operation.steps[at].not_before is not None
        if waits and starts.may and starts.has_room(at):
            _begin_retry(starts, specs, at)
    for at, step in enumerate(starts.operation.steps):
        if not starts.may:
            break
        if step.state is StepState.TO_UNDO and may_undo(starts.operation, specs, at):
            starts.undo(at)
    done = {s.name for s in starts.operation.steps if s.state is StepState.DONE}
    held = held_back(starts.operation, specs)
    for at, step in enumerate(starts.operation.steps):
        if not starts.may:
            break
        is_next = step.state is StepState.WAITS and step.not_before is None and at not in held
        if is_next and done.issuperset(needs_of(specs, at)):
            starts.run(at)
    return _settled(starts, is_due)


def _go_back(
    job: Job,
    operation: OperationStatus,
    specs: tuple[Step, ...],
    fresh: frozenset[int],
    room: int,
    now: datetime,
) -> Next:
    lost = next((s for s in operation.steps if _is_lost(s)), None)
    if lost is not None:
        if under_way(operation):
            return Next(operation)
        told = f"undo of {lost.name} is out of retries: {lost.message}"
        return Next(replace(operation, stuck_at=now, stuck_message=told))
    starts = _Starts(job, operation, specs, room, now)
    due, is_due = _due(operation, fresh, under_way(operation), now)
    for at in due:
        if not starts.may or not starts.has_room(at):
            break
        step = starts.operation.steps[at]
        retries = step.undo_retries if step.interrupted else step.undo_retries + 1
        starts.put(at, replace(step, undo_retries=retries, interrupted=False, not_before=None))
        starts.undo(at)
    for at, step in enumerate(starts.operation.steps):
        if not starts.may:
            break
        if step.state is StepState.TO_UNDO and may_undo(starts.operation, specs, at):
            starts.undo(at)
    return _settled(starts, is_due)


def _is_lost(step: StepStatus) -> bool:
    """Whether a step cannot be undone: its undo is out of retries."""
    return step.state is StepState.UNDO_FAILED and step.not_before is None


def _settled(starts: _Starts, is_due: bool) -> Next:
    return Next(starts.operation, tuple(starts.attempts), starts.starved, is_due)


def _due(
    operation: OperationStatus, fresh: frozenset[int], under_way: int, now: datetime
) -> tuple[list[int], bool]:
    """The steps whose retry begins, and whether one would if it had been recorded as waiting.

    With nothing under way the operation as a whole waits in the queue, for the last of them.
    """
    waiting = [at for at, step in enumerate(operation.steps) if step.not_before is not None]
    at_once = [at for at in waiting if at in fresh and _is_at_once(operation, at)]
    queued = [at for at in waiting if at not in at_once]
    moments = [_not_before(operation, at) for at in queued]
    if not under_way and not at_once and moments and max(moments) > now:
        return [], False
    ready = [at for at, moment in zip(queued, moments, strict=True) if moment <= now]
    return at_once + [at for at in ready if at not in fresh], any(at in fresh for at in ready)


def _not_before(operation: OperationStatus, at: int) -> datetime:
    moment = operation.steps[at].not_before
    assert moment is not None
    return moment


def _is_at_once(operation: OperationStatus, at: int) -> bool:
    """Whether it is the first retry of a step: that one alone does not wait in the queue."""
    step = operation.steps[at]
    is_first = step.state is StepState.FAILED and step.retries == 0
    return is_first and not step.interrupted and not operation.reverting


def _begin_retry(starts: _Starts, specs: tuple[Step, ...], at: int) -> None:
    """Begin to try a step again, with what it demands to be undone before that."""
    operation, spec = starts.operation, specs[at]
    undone = to_undo(operation, specs, at)
    if any(operation.steps[one].state in UNDER_WAY for one in undone):
        return
    step = operation.steps[at]
    retries = step.retries if step.interrupted else step.retries + 1
    step = replace(step, retries=retries, interrupted=False, not_before=None)
    if step.state is StepState.FAILED:
        step = replace(step, state=StepState.WAITS)
    starts.put(at, step)
    for one in undone:
        starts.put(one, _for_retry(starts.operation.steps[one], specs, undone, one, spec.name))


def _for_retry(
    step: StepStatus, specs: tuple[Step, ...], undone: Sequence[int], at: int, retried: str
) -> StepStatus:
    """A step that is undone before another, or itself, is tried again."""
    if step.name != retried:
        # What was done counts from 0 already. What failed too keeps its count: two steps that take
        # each other back would never come to an end.
        step = replace(step, not_before=None, interrupted=False)
    if not has_own_undo(specs, undone, at):
        return replace(
            step, state=StepState.WAITS, undo_for="", started_at=None, ended_at=None, result=""
        )
    return replace(step, state=StepState.TO_UNDO, undo_for=retried, undo_retries=0)


class _Starts:
    """Collects what is started, as far as there is room for it."""

    def __init__(
        self,
        job: Job,
        operation: OperationStatus,
        specs: tuple[Step, ...],
        room: int,
        now: datetime,
    ) -> None:
        self._job = job
        self._specs = specs
        self._now = now
        self.operation = operation
        self.attempts: list[tuple[int, int]] = []
        self.starved = False
        self._free = job.spec.steps_at_once - under_way(operation)
        #: How many further attempts the machine has room for.
        self._room = room

    @property
    def may(self) -> bool:
        """Whether the operation may have another attempt under way."""
        return self._free > len(self.attempts)

    def run(self, at: int) -> None:
        """Start to run a step."""
        if not self.take_room(at):
            return
        step = self.operation.steps[at]
        task = _task_of(self._job, self.operation, at)
        self.attempts.append((task, step.runs))
        self.put(
            at,
            replace(step, state=StepState.RUNNING, runs=step.runs + 1, started_at=self._now),
        )

    def undo(self, at: int) -> None:
        """Start to undo a step."""
        if not self.take_room(at):
            return
        step = self.operation.steps[at]
        self.attempts.append((undo_task(at), step.undos))
        self.put(
            at,
            replace(step, state=StepState.UNDOING, undos=step.undos + 1, started_at=self._now),
        )

    def put(self, at: int, step: StepStatus) -> None:
        """Take in what became of a step."""
        self.operation = with_step(self.operation, at, step)

    def has_room(self, at: int) -> bool:
        """Whether there is room on the machine for a step; if not, that is noted."""
        if self._room > 0 or not _takes_room(self._specs[at]):
            return True
        self.starved = True
        return False

    def take_room(self, at: int) -> bool:
        """Take room for an attempt of a step, if there is any."""
        if not self.has_room(at):
            return False
        self._room -= _takes_room(self._specs[at])
        return True


def _takes_room(spec: Step) -> bool:
    """Whether something of a step runs on this machine, and not on that of a worker."""
    return spec.run.python is None or (spec.undo is not None and spec.undo.python is None)


def _task_of(job: Job, operation: OperationStatus, at: int) -> int:
    is_elaborating = job.spec.steps is None and operation.elaborated is None
    return ELABORATION if is_elaborating else run_task(at)
