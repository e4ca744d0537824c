"""A play of one operation: the pure decision, a script of outcomes, and a clock that jumps.

Nothing but `decide` is run: what it records is kept, what it launches ends as the script says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from interlock.execution.children import Children
from interlock.execution.decide import decide
from interlock.execution.view import ExecutionView
from interlock.resources.actions import (
    CreateJob,
    ForgetTask,
    LaunchTask,
    RecordExecution,
    StopTask,
)
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import (
    OPERATE_ANNOTATION,
    OPERATE_FOR_ANNOTATION,
    OPERATE_REASON_ANNOTATION,
    Job,
    JobPhase,
    JobSpec,
    JobStatus,
    interventions,
    steps_of,
)
from interlock.resources.metadata import Metadata
from interlock.resources.operation import (
    ELABORATION,
    OperationState,
    OperationStatus,
    is_undo,
    step_of,
)
from interlock.resources.process import ProcessSpec
from interlock.resources.steps import Elaboration, PythonSpec, Step, StepWork
from interlock.resources.tasks import ReportState, TaskId, TaskReport, returned_of
from interlock.resources.transitions import has_ended, with_execution

T0 = datetime.fromisoformat("2026-01-05T12:00:00+00:00")
WORK = StepWork(process=ProcessSpec(command=("true",)))
#: So many looks are enough for any play that comes to an end.
MOST_LOOKS = 2_000


class Attempt(NamedTuple):
    """Something that was started: which step, to run or to undo it, and when, in seconds."""

    what: str
    at: float


class Outcome(NamedTuple):
    """How an attempt ends, and after how many seconds."""

    #: "ok", "fail" or "cut"; "wait" never begins.
    how: str = "ok"
    lasts: float = 0.0


#: For "a" and "-a" (to undo it) how the attempts end, one after another; after the last all is ok.
Script = Mapping[str, tuple[Outcome | str, ...]]


class Play:
    """One operation from its admission on."""

    def __init__(self, spec: JobSpec, script: Script, children: Children = Children()) -> None:  # noqa: B008
        admitted = JobStatus(
            phase=JobPhase.STARTING,
            admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=1),
        )
        metadata = Metadata(
            name="op", namespace="default", uid="u", finalizers=("interlock.dev/tasks",)
        )
        self.job = Job(metadata=metadata, spec=spec, status=admitted)
        self.now = T0
        self.children = children
        #: What a worker makes of the request, of an operation whose steps are not given.
        self.elaboration: Elaboration | None = None
        #: The targets of the operations that it is a part of, and the names of these.
        self.targets_above: dict[str, str] = {}
        #: The Jobs that were made of parts of it.
        self.made: list[Job] = []
        self.states = ["q00"]
        self.attempts: list[Attempt] = []
        self.most_at_once = 0
        #: Whether it is told that an attempt runs, or only that it did once it is over.
        self.tells_starts = True
        self._script = script
        self._used: dict[str, int] = {}
        self._news = False
        self._reports: dict[tuple[int, int], TaskReport] = {}
        self._ends: dict[tuple[int, int], tuple[datetime, Outcome]] = {}
        self._gone: set[tuple[int, int]] = set()
        #: Tasks and attempts that the runtime was told to forget, in order.
        self.forgotten: list[tuple[int, int]] = []
        #: Called after every write with the operation as it was and as it is.
        self.checks: list[Callable[[OperationStatus | None, OperationStatus], None]] = []

    @property
    def operation(self) -> OperationStatus:
        found = self.job.status.execution.operation
        assert found is not None
        return found

    @property
    def names(self) -> list[str]:
        """What was started, in order: "a", "-a"."""
        return [attempt.what for attempt in self.attempts]

    def times_of(self, what: str) -> list[float]:
        return [attempt.at for attempt in self.attempts if attempt.what == what]

    @property
    def is_settled(self) -> bool:
        return has_ended(self.job) or self.operation.stuck_at is not None

    def order(self, verb: str) -> None:
        """Have a person order something."""
        notes = {
            OPERATE_ANNOTATION: verb,
            OPERATE_REASON_ANNOTATION: "because",
            OPERATE_FOR_ANNOTATION: str(interventions(self.job)),
        }
        self.change(metadata=replace(self.job.metadata, annotations=notes))

    def change(self, **parts: object) -> None:
        self.job = replace(self.job, **parts)

    def run(self, until: Callable[[], bool] | None = None) -> Play:
        """Look until nothing is to be done any more, or until something is so."""
        for _ in range(MOST_LOOKS):
            if until is not None and until():
                return self
            wake_at = self.look()
            ends = [moment for moment, _ in self._ends.values()]
            news, self._news = self._news, False
            moments = [m for m in (wake_at, *ends) if m is not None] + [self.now] * news
            if not moments:
                return self
            self.now = max(self.now, min(moments))
            # What is over at once was seen to run before.
            if not news:
                self._end_due()
        raise AssertionError(f"no end after {MOST_LOOKS} looks: {self.states[-10:]}")

    def look(self) -> datetime | None:
        """Decide once and carry it out."""
        view = ExecutionView(
            job=self.job,
            reports=self._reports,
            children=self.children,
            targets_above=self.targets_above,
        )
        decision = decide(view, self.now)
        for action in decision.actions:
            if isinstance(action, RecordExecution):
                before = self.job.status.execution.operation
                status = with_execution(self.job, action.execution, self.now)
                self.job = replace(self.job, status=status)
                for check in self.checks:
                    check(before, self.operation)
                self._note()
            elif isinstance(action, LaunchTask):
                self._launch(action.task.index, action.task.attempt)
            elif isinstance(action, StopTask):
                self._stop(action.task)
            elif isinstance(action, CreateJob):
                self.made.append(action.job)
            elif isinstance(action, ForgetTask):
                self._forget(action.task)
        return decision.wake_at

    def _note(self) -> None:
        state = tuple_of(self.operation)
        if state != self.states[-1]:
            self.states.append(state)

    def _name(self, task: int) -> str:
        if task >= ELABORATION:
            return "elaborate"
        steps = steps_of(self.job)
        return ("-" if is_undo(task) else "") + steps[step_of(task)].name

    def _launch(self, task: int, attempt: int) -> None:
        assert (task, attempt) not in self._gone, f"{(task, attempt)} was done before"
        if (task, attempt) in self._reports:
            return
        what = self._name(task)
        self.attempts.append(Attempt(what, (self.now - T0).total_seconds()))
        used = self._used.get(what, 0)
        self._used[what] = used + 1
        outcomes = self._script.get(what, ())
        given = outcomes[used] if used < len(outcomes) else "ok"
        outcome = given if isinstance(given, Outcome) else Outcome(given)
        waits = outcome.how == "wait" or not self.tells_starts
        state = ReportState.ACCEPTED if waits else ReportState.RUNNING
        self._reports[task, attempt] = self._report(task, attempt, state)
        self._news = True
        self._ends[task, attempt] = (self.now + timedelta(seconds=outcome.lasts), outcome)
        self.most_at_once = max(self.most_at_once, len(self._ends))

    def _stop(self, task: TaskId) -> None:
        key = (task.task, task.attempt)
        if key in self._ends:
            del self._ends[key]
            self._news = True
            report = self._report(*key, ReportState.ENDED)
            self._reports[key] = replace(report, signal=15, stopped=True, ended_at=self.now)

    def _forget(self, task: TaskId) -> None:
        key = (task.task, task.attempt)
        active = {(one.index, one.attempt) for one in self.job.status.execution.active}
        assert key not in active, f"{key} is forgotten, and not recorded as over"
        del self._reports[key]
        self._gone.add(key)
        self.forgotten.append(key)

    def _end_due(self) -> None:
        for key, (moment, outcome) in tuple(self._ends.items()):
            if moment > self.now:
                continue
            del self._ends[key]
            report = self._report(*key, ReportState.ENDED)
            self._reports[key] = replace(
                report,
                ended_at=self.now,
                exit_code=0 if outcome.how == "ok" else 1,
                interrupted=outcome.how == "cut",
                returned=returned_of(b"1") if outcome.how == "ok" else None,
                elaboration=self.elaboration if key[0] >= ELABORATION else None,
            )

    def _report(self, task: int, attempt: int, state: ReportState) -> TaskReport:
        return TaskReport(
            job_uid="u",
            index=task,
            attempt=attempt,
            namespace="default",
            job="op",
            state=state,
            started_at=None if state is ReportState.ACCEPTED else self.now,
        )


def tuple_of(operation: OperationStatus) -> str:
    """The state in the sheet's short form: q12, e00, r30, c(failed)."""
    if operation.state is OperationState.COMPLETE:
        return f"c({operation.completion_state})"
    counts = f"{operation.retry_count}{operation.rollback_retry_count}"
    return f"{operation.state.value[0]}{counts}"


def by_workers(spec: JobSpec) -> JobSpec:
    """The same operation, with a function in place of everything that is run."""
    function = StepWork(python=PythonSpec(function="f"))
    steps = tuple(
        replace(step, run=function, undo=None if step.undo is None else function)
        for step in spec.steps or ()
    )
    return replace(spec, steps=steps)


def a_step(name: str, **fields: object) -> Step:
    """A step that can be undone, unless it is said otherwise."""
    return Step(**{"name": name, "run": WORK, "undo": WORK, **fields})  # type: ignore[arg-type]


def an_operation(*steps: Step, **fields: object) -> JobSpec:
    return JobSpec(steps=steps, **fields)  # type: ignore[arg-type]
