"""Operations: which step is run, retried or undone next, and when an operation is over or stuck.

Every step is run by tasks of its own (`resources/operation.py` says which), so starting, watching,
stopping and proving gone are those of all tasks. What is here is the arithmetic between them:

- A step that failed is tried again at once the first time, and then each time after its delay times
  the retries already made, counted from when the failure was recorded. All but the first wait in
  the queue: that is recorded before the next attempt is.
- A step that is out of retries has the operation rolled back: against the order in which steps need
  each other, every step that was begun is undone. Every retry of an undo waits in the queue.
- An undo that is out of retries leaves the operation stuck, and so does a step that is out of
  retries when an irreversible one was begun. Then nobody acts but a person.
- Steps under way are never cut off in order to roll back: they end first, as they will.

A step that is recorded as done is not run again unless it was undone in between; one that is
recorded as undone is not undone again; what is being rolled back does not go forward again by
itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import DecodeError
from msgspec.structs import replace

from interlock.execution.children import Children
from interlock.execution.quarantine import is_counted, is_suspected_after
from interlock.execution.view import JobReports
from interlock.execution.wording import how_it_ended
from interlock.findings import Findings
from interlock.resources.checks.operations import check_steps
from interlock.resources.checks.validator import check_rules
from interlock.resources.job import Job, steps_of
from interlock.resources.operation import (
    ELABORATION,
    CompletionState,
    OperationState,
    OperationStatus,
    StepState,
    StepStatus,
    is_undo,
    run_task,
    step_of,
    undo_task,
)
from interlock.resources.references import resolved_json
from interlock.resources.steps import (
    BeforeRetry,
    Elaboration,
    Step,
    StepRetries,
    StepWork,
    needs_of,
)
from interlock.resources.tasks import (
    MAX_RETURNED_BYTES,
    EndedTask,
    ExecutionReason,
    TaskResult,
)
from interlock.resources.values.durations import Duration

#: So many failures of attempts are kept in the status.
KEPT_FAILURES = 20
#: How a request is turned into steps: as a step that leaves nothing behind.
_ELABORATION_RETRIES = StepRetries(limit=3, delay=Duration(seconds=10))

_BEGUN = frozenset(
    {StepState.DONE, StepState.FAILED, StepState.TO_UNDO, StepState.UNDO_FAILED, StepState.RUNNING}
)
_UNDER_WAY = frozenset({StepState.RUNNING, StepState.UNDOING})
_NOT_UNDONE = frozenset(
    {StepState.TO_UNDO, StepState.UNDOING, StepState.UNDO_FAILED, StepState.RUNNING}
)
#: Attempts that were cut off without their doing.
_INTERRUPTED = frozenset({TaskResult.INTERRUPTED, TaskResult.WRITTEN_OFF})


class Next(NamedTuple):
    """An operation after a look, and what is to be started."""

    operation: OperationStatus
    #: Numbers of tasks and attempts, in the order in which they start.
    attempts: tuple[tuple[int, int], ...] = ()
    #: Whether more would start if there were room.
    starved: bool = False
    #: Whether something is due that has to be recorded as waiting first.
    is_due: bool = False


def begun(job: Job) -> OperationStatus:
    """The status of an operation: as recorded, or as it is when nothing was done yet."""
    operation = job.status.execution.operation
    if operation is not None:
        return operation
    if job.spec.steps is None:
        return OperationStatus(steps=(StepStatus(name="elaborate"),))
    steps = tuple(StepStatus(name=step.name) for step in job.spec.steps)
    return OperationStatus(steps=steps, percentage=0.0)


def specs_of(job: Job, operation: OperationStatus) -> tuple[Step, ...]:
    """The steps as they were defined; as long as there are none, the one that makes them."""
    if job.spec.steps is not None:
        return job.spec.steps
    if operation.elaborated is not None:
        return operation.elaborated
    work = StepWork(python=job.spec.python)
    return (Step(name="elaborate", run=work, retries=_ELABORATION_RETRIES),)


def _task_of(job: Job, operation: OperationStatus, at: int) -> int:
    is_elaborating = job.spec.steps is None and operation.elaborated is None
    return ELABORATION if is_elaborating else run_task(at)


# What ended


def take_in(
    job: Job,
    operation: OperationStatus,
    over: Sequence[EndedTask],
    reports: JobReports,
    now: datetime,
) -> tuple[OperationStatus, frozenset[int]]:
    """The operation after attempts ended, and the numbers of the steps they were of."""
    fresh: set[int] = set()
    for end in over:
        if end.index == ELABORATION:
            report = reports.get((end.index, end.attempt))
            made = None if report is None else report.elaboration
            operation = _elaborated(job, operation, end, made, now)
            if operation.elaborated is None:
                fresh.add(0)
            continue
        at = step_of(end.index)
        if at >= len(operation.steps):
            # Of steps that were pruned: it was told too late to matter.
            continue
        fresh.add(at)
        ended = _undo_ended if is_undo(end.index) else _run_ended
        operation = ended(job, operation, at, end, now)
    return operation, frozenset(fresh)


def _run_ended(
    job: Job, operation: OperationStatus, at: int, end: EndedTask, now: datetime
) -> OperationStatus:
    step, spec = operation.steps[at], specs_of(job, operation)[at]
    end = _with_result(end, step.name)
    if end.result is TaskResult.SUCCEEDED:
        done = replace(
            step,
            state=StepState.DONE,
            retries=0,
            interruptions=0,
            suspected=False,
            not_before=None,
            ended_at=end.ended_at,
            message="",
            result=end.returned.json if end.returned is not None else "",
        )
        return _with(operation, at, done)
    told = how_it_ended(end, of_function=spec.calls_function())
    operation = _told(replace(operation, error=f"{step.name}: {told}"), step.name, told)
    failed = replace(step, state=StepState.FAILED, message=told)
    if is_interrupted(end):
        again = _cut_off(failed, end, job.spec.max_interruptions, now)
    elif step.retries < spec.retries.limit:
        again = replace(failed, suspected=False, not_before=now + spec.retries.delay * step.retries)
    else:
        again = replace(failed, suspected=False, not_before=None)
    return _with(operation, at, again)


def _with_result(end: EndedTask, step: str) -> EndedTask:
    """An end; that of a step whose result cannot be kept is a failure, not one without a result."""
    if end.returned is None or not end.returned.dropped_bytes:
        return end
    told = (
        f"{step} returned {end.returned.dropped_bytes} bytes of JSON, and at most"
        f" {MAX_RETURNED_BYTES} are kept: return where it is, not what it is"
    )
    return replace(end, result=TaskResult.FAILED, exit_code=1, message=told)


def is_interrupted(end: EndedTask) -> bool:
    """Whether an attempt was cut off without its doing: that uses up no retry."""
    if end.result in _INTERRUPTED:
        return True
    # A process without an exit code was lost to a restart of its machine.
    return end.result is TaskResult.FAILED and end.exit_code is None and end.signal is None


def _cut_off(step: StepStatus, end: EndedTask, most: int, now: datetime) -> StepStatus:
    """A step to be gone on with, unless it was cut off too often: then it is out of retries.

    Whether it is to blame is the rule of `quarantine`.
    """
    times = step.interruptions + is_counted(step, end)
    step = replace(step, suspected=is_suspected_after(step, end))
    if times > most:
        told = f"{step.message}; cut off {times} times"
        return replace(step, interruptions=times, not_before=None, message=told)
    return replace(step, interruptions=times, interrupted=True, not_before=now)


def _undo_ended(
    job: Job, operation: OperationStatus, at: int, end: EndedTask, now: datetime
) -> OperationStatus:
    step, specs = operation.steps[at], specs_of(job, operation)
    if end.result is TaskResult.SUCCEEDED:
        state = StepState.UNDONE if operation.reverting else StepState.WAITS
        undone = replace(
            step,
            state=state,
            undo_retries=0,
            # Another undo for the same retry may have failed just now: then it waits.
            undo_for="",
            message="",
            result="",
            started_at=None,
            ended_at=None,
        )
        return _with(operation, at, undone)
    told = how_it_ended(end, of_function=specs[at].calls_function(undo=True))
    operation = _told(operation, f"undo {step.name}", told)
    # It is not done any more, and nobody knows what is left of it.
    failed = replace(step, state=StepState.UNDO_FAILED, message=told, ended_at=None)
    if operation.reverting:
        return _with(operation, at, _undo_again(job, specs[at], failed, end, now))
    # What had to be undone before a retry is a part of that retry.
    operation = _with(operation, at, replace(failed, not_before=None))
    of = next((n for n, one in enumerate(operation.steps) if one.name == step.undo_for), at)
    retried, limits = operation.steps[of], specs[of].retries
    told = f"undo of {step.name} before a retry {told}"
    operation = replace(operation, error=f"{retried.name}: {told}")
    if is_interrupted(end):
        if retried.not_before is not None:
            # Another undo for it has failed already: it waits for that.
            return operation
        failed = replace(retried, message=told)
        again = _cut_off(failed, end, job.spec.max_interruptions, now)
    elif retried.retries < limits.limit:
        due = now + limits.delay * retried.retries
        again = replace(retried, suspected=False, not_before=due, interrupted=False, message=told)
    else:
        again = replace(retried, suspected=False, not_before=None, message=told)
    if again.not_before is None:
        # It need not have failed itself, so its state cannot say that it is out of retries.
        operation = replace(operation, reverting_for=ExecutionReason.TASK_FAILED.value)
    return _with(operation, of, again)


def _undo_again(
    job: Job, spec: Step, failed: StepStatus, end: EndedTask, now: datetime
) -> StepStatus:
    if is_interrupted(end):
        return _cut_off(failed, end, job.spec.max_interruptions, now)
    failed = replace(failed, suspected=False)
    limit = spec.undo_retries.limit if spec.undo_retries is not None else 0
    if failed.undo_retries >= limit:
        return replace(failed, not_before=None)
    return replace(failed, not_before=now + undo_delay(spec) * failed.undo_retries)


def undo_delay(spec: Step) -> timedelta:
    """How long to wait, for each retry made, before what a step did is undone again."""
    given = spec.undo_retries.delay if spec.undo_retries is not None else None
    return spec.retries.delay if given is None else given


def _elaborated(
    job: Job,
    operation: OperationStatus,
    end: EndedTask,
    made: Elaboration | None,
    now: datetime,
) -> OperationStatus:
    """The operation once a worker has said which steps it has; bad ones are a failed attempt."""
    if operation.elaborated is not None:
        return operation
    if end.result is TaskResult.SUCCEEDED:
        told = _flaws_of(made)
        if not told:
            assert made is not None
            steps = tuple(StepStatus(name=step.name) for step in made.steps)
            return replace(
                operation,
                elaborated=made.steps,
                children=made.children,
                returns=made.returns,
                steps=steps,
                percentage=0.0,
            )
        end = replace(end, result=TaskResult.FAILED, exit_code=1, message=told)
    return _run_ended(job, operation, 0, end, now)


def _flaws_of(made: Elaboration | None) -> str:
    if made is None:
        return "the worker made no steps of it"
    found = Findings()
    check_rules("elaboration", made, found)
    check_steps(made.steps, found, "steps")
    if len({step.name for step in made.steps}) < len(made.steps):
        found.add("steps", "a name is there twice")
    return "; ".join(map(str, found.problems[:3]))


# What comes next


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
        if operation.reverting_for or _is_exhausted(operation):
            if is_active:
                return Next(operation)
            operation = roll_back(operation, specs, now)
            if operation.stuck_at is not None or is_over(operation):
                return Next(operation)
            fresh = frozenset()
        else:
            return _go_forward(job, operation, specs, fresh, room, now)
    return _go_back(job, operation, specs, fresh, room, now)


def _is_exhausted(operation: OperationStatus) -> bool:
    """Whether a step is out of retries."""
    return any(s.state is StepState.FAILED and s.not_before is None for s in operation.steps)


def is_begun(step: StepStatus) -> bool:
    """Whether a step was run, in part or in whole, since it was undone the last time.

    One that waits to be run again may have left something behind.
    """
    return step.state in _BEGUN or (step.state is StepState.WAITS and step.started_at is not None)


def is_done(operation: OperationStatus) -> bool:
    """Whether every step was done."""
    return all(step.state is StepState.DONE for step in operation.steps)


def is_over(operation: OperationStatus) -> bool:
    """Whether it is rolled back, and nothing of it is left."""
    if not operation.reverting:
        return False
    return all(step.state in (StepState.UNDONE, StepState.WAITS) for step in operation.steps)


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
        self.operation = _with(self.operation, at, step)

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


def under_way(operation: OperationStatus) -> int:
    """How many steps are run or undone."""
    return sum(step.state in _UNDER_WAY for step in operation.steps)


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
        if step.state is StepState.TO_UNDO and _may_undo(starts.operation, specs, at):
            starts.undo(at)
    done = {s.name for s in starts.operation.steps if s.state is StepState.DONE}
    held = _held_back(starts.operation, specs)
    for at, step in enumerate(starts.operation.steps):
        if not starts.may:
            break
        is_next = step.state is StepState.WAITS and step.not_before is None and at not in held
        if is_next and done.issuperset(needs_of(specs, at)):
            starts.run(at)
    return _settled(starts, is_due)


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
    undone = _to_undo(operation, specs, at)
    if any(operation.steps[one].state in _UNDER_WAY for one in undone):
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
    if not _has_own_undo(specs, undone, at):
        return replace(
            step, state=StepState.WAITS, undo_for="", started_at=None, ended_at=None, result=""
        )
    return replace(step, state=StepState.TO_UNDO, undo_for=retried, undo_retries=0)


def _to_undo(operation: OperationStatus, specs: tuple[Step, ...], at: int) -> tuple[int, ...]:
    """The steps that are undone before a step is run again."""
    steps = operation.steps
    left = [n for n, one in enumerate(steps) if one.undo_for == specs[at].name]
    if left:
        # The retry before this one did not get through with it.
        return tuple(left)
    return tuple(n for n in sorted(_demanded(specs, at)) if is_begun(steps[n]) or n == at)


def _demanded(specs: tuple[Step, ...], at: int) -> frozenset[int]:
    """The steps that are to be undone before a step is run again, if they were begun."""
    spec = specs[at]
    if spec.before_retry is BeforeRetry.ROLL_BACK_FIRST:
        return frozenset((at,))
    if spec.before_retry is BeforeRetry.AS_IS:
        return frozenset()
    named = {n for n, one in enumerate(specs) if one.name in spec.roll_back}
    above = _dependents(specs)
    return frozenset(named.union(*(above[n] for n in named), {at}))


def _held_back(operation: OperationStatus, specs: tuple[Step, ...]) -> frozenset[int]:
    """The steps that are run again once all is undone that a retry demands, and not before."""
    retried = {step.undo_for for step in operation.steps if step.undo_for}
    if not retried:
        return frozenset()
    return frozenset().union(
        *(_demanded(specs, at) for at, spec in enumerate(specs) if spec.name in retried)
    )


def _has_own_undo(specs: tuple[Step, ...], undone: Sequence[int], at: int) -> bool:
    """Whether a step is undone by itself: not without an undo, nor where another's covers it."""
    spec = specs[at]
    if spec.undo is None:
        return False
    covering = (specs[n] for n in undone if specs[n].name == spec.undo_covered_by)
    return not any(one.undo is not None for one in covering)


def _dependents(specs: tuple[Step, ...]) -> list[frozenset[int]]:
    """For each step all that need it, directly or through others."""
    number = {spec.name: at for at, spec in enumerate(specs)}
    direct: list[set[int]] = [set() for _ in specs]
    for at in range(len(specs)):
        for name in needs_of(specs, at):
            direct[number[name]].add(at)
    found: list[frozenset[int]] = []
    for at in range(len(specs)):
        above: set[int] = set()
        left = [at]
        while left:
            for one in direct[left.pop()]:
                if one not in above:
                    above.add(one)
                    left.append(one)
        found.append(frozenset(above))
    return found


def _may_undo(operation: OperationStatus, specs: tuple[Step, ...], at: int) -> bool:
    """Whether nothing that needs the step is to be undone first, and its retry has begun."""
    steps = operation.steps
    if not operation.reverting:
        retried = next((one for one in steps if one.name == steps[at].undo_for), None)
        if retried is not None and retried.not_before is not None:
            return False
    return not any(steps[above].state in _NOT_UNDONE for above in _dependents(specs)[at])


def roll_back(
    operation: OperationStatus, specs: tuple[Step, ...], now: datetime
) -> OperationStatus:
    """Begin to undo everything that was begun; or get stuck, when that must not be."""
    final = [
        s for s, spec in zip(operation.steps, specs, strict=True) if spec.irreversible and s.runs
    ]
    if final:
        told = f"{final[0].name} cannot be taken back, and {operation.error or 'it was to end'}"
        return replace(operation, stuck_at=now, stuck_message=told)
    return reverting(operation, specs)


def reverting(operation: OperationStatus, specs: tuple[Step, ...]) -> OperationStatus:
    """The operation with every step that was begun marked to be undone."""
    begun = [at for at, step in enumerate(operation.steps) if is_begun(step)]
    # Nothing waits for its retry any more, not even what is undone already for one.
    steps = [replace(s, not_before=None, interrupted=False, undo_for="") for s in operation.steps]
    for at in begun:
        undo = _has_own_undo(specs, begun, at)
        steps[at] = replace(
            steps[at],
            state=StepState.TO_UNDO if undo else StepState.UNDONE,
            undo_retries=0,
            interruptions=0,
            suspected=False,
        )
    why = operation.reverting_for or ExecutionReason.TASK_FAILED.value
    return replace(operation, steps=tuple(steps), reverting=True, reverting_for=why)


def forward(operation: OperationStatus, specs: tuple[Step, ...]) -> OperationStatus:
    """A stuck operation that is to go forward again, with all its retries.

    What was done and not undone stays done, unless what it needs has to be done again.
    """
    kept: set[str] = set()
    # What is needed, and what covers an undo, may stand behind a step.
    for _ in specs:
        kept.update(
            spec.name
            for at, spec in enumerate(specs)
            if _is_kept(operation.steps[at], spec, kept) and kept.issuperset(needs_of(specs, at))
        )
    steps = tuple(_forward(step, is_kept=step.name in kept) for step in operation.steps)
    return replace(
        operation,
        steps=steps,
        reverting=False,
        reverting_for="",
        stuck_at=None,
        stuck_message="",
        interventions=operation.interventions + 1,
    )


def _is_kept(step: StepStatus, spec: Step, kept: set[str]) -> bool:
    if step.ended_at is None:
        return False
    # One that has no undo of its own was only passed over; what covers it may have undone it.
    is_passed = step.state is StepState.UNDONE and spec.undo is not None
    return not is_passed or spec.undo_covered_by in kept


def _forward(step: StepStatus, *, is_kept: bool) -> StepStatus:
    return replace(
        step,
        state=StepState.DONE if is_kept else StepState.WAITS,
        retries=0,
        undo_retries=0,
        interruptions=0,
        suspected=False,
        interrupted=False,
        not_before=None,
        undo_for="",
        started_at=None if step.state is StepState.UNDONE and not is_kept else step.started_at,
        ended_at=step.ended_at if is_kept else None,
    )


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
        if step.state is StepState.TO_UNDO and _may_undo(starts.operation, specs, at):
            starts.undo(at)
    return _settled(starts, is_due)


def _is_lost(step: StepStatus) -> bool:
    """Whether a step cannot be undone: its undo is out of retries."""
    return step.state is StepState.UNDO_FAILED and step.not_before is None


def _settled(starts: _Starts, is_due: bool) -> Next:
    return Next(starts.operation, tuple(starts.attempts), starts.starved, is_due)


# What is told


def told(
    before: OperationStatus, operation: OperationStatus, children: Children, now: datetime
) -> OperationStatus:
    """The operation with its state, counters and percentage worked out of its steps."""
    steps = operation.steps
    is_active = any(step.state in _UNDER_WAY for step in steps)
    waits = [step.not_before for step in steps if step.not_before is not None]
    state = operation.state
    if operation.stuck_at is not None or is_active:
        reverts = operation.reverting
        state = OperationState.REVERTING if reverts else OperationState.EXECUTING
    elif waits:
        state = OperationState.QUEUED
    retries, undo_retries = operation.retry_count, operation.rollback_retry_count
    if operation.reverting:
        undone = (s.undo_retries for s in steps if s.state is not StepState.UNDONE)
        undo_retries = max(undone, default=0)
    elif not operation.reverting_for and not _is_exhausted(operation):
        open_steps = (s.retries for s in steps if s.state is not StepState.DONE)
        retries = max(open_steps, default=0)
    made = replace(
        operation,
        state=state,
        retry_count=retries,
        rollback_retry_count=undo_retries,
        percentage=_percentage(operation, children),
        next_attempt_at=max(waits) if waits and not is_active else None,
    )
    return made if made == before else replace(made, updated_at=now)


def _percentage(operation: OperationStatus, children: Children) -> float | None:
    """What is done of all that is known to be done: steps, and parts that are over."""
    parts = max(children.total, len(operation.children))
    total = len(operation.steps) + parts
    if operation.percentage is None or not total:
        return operation.percentage
    done = sum(
        step.ended_at is not None and step.state is not StepState.UNDONE for step in operation.steps
    )
    return round(100 * (done + children.finished) / total, 1)


def completed(operation: OperationStatus, to: CompletionState, now: datetime) -> OperationStatus:
    """An operation that is over: pruned of its steps, with what it returned."""
    success = to is not CompletionState.FAILED
    result = operation.result
    if success:
        results = {step.name: step.result for step in operation.steps if step.result}
        result = _returned(operation, results)
    return replace(
        operation,
        state=OperationState.COMPLETE,
        completion_state=to,
        retry_count=0 if success else operation.retry_count,
        rollback_retry_count=0 if success else operation.rollback_retry_count,
        percentage=100.0 if success else operation.percentage,
        steps=(),
        elaborated=None,
        children=(),
        returns="",
        next_attempt_at=None,
        stuck_at=None,
        stuck_message="",
        result=result,
        updated_at=now,
    )


def _returned(operation: OperationStatus, results: Mapping[str, str]) -> str:
    """What the operation returns: what it says itself, or else what its steps returned."""
    if operation.returns:
        try:
            return resolved_json(operation.returns, results)
        except DecodeError:
            return operation.returns
    inside = ",".join(f'"{name}":{text}' for name, text in results.items())
    return f"{{{inside}}}" if inside else ""


def moments(operation: OperationStatus) -> Iterator[datetime]:
    """When time alone makes a difference to the steps."""
    for step in operation.steps:
        if step.not_before is not None:
            yield step.not_before


def _with(operation: OperationStatus, at: int, step: StepStatus) -> OperationStatus:
    steps = operation.steps
    return replace(operation, steps=(*steps[:at], step, *steps[at + 1 :]))


def _told(operation: OperationStatus, what: str, how: str) -> OperationStatus:
    failures = (*operation.failures, f"{what}: {how}")[-KEPT_FAILURES:]
    return replace(operation, failures=failures)


def step_spec(job: Job, task: int) -> Step | None:
    """The step that a task is of; None for the task that makes the steps."""
    steps = steps_of(job)
    at = step_of(task)
    return steps[at] if task < ELABORATION and at < len(steps) else None
