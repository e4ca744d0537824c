"""Operations run in this process, for tests of an application: no server, no waiting.

What is run, retried and undone next is decided by the same functions as on a server. The clock is
a simulated one that jumps to the next moment at which something is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from interlock.execution.children import Children
from interlock.execution.operations import begun as status_of
from interlock.execution.operations import is_done, is_over, move, specs_of, take_in, told
from interlock.resources.job import Job, JobSpec
from interlock.resources.metadata import Metadata
from interlock.resources.operation import OperationStatus, is_undo, run_task, step_of
from interlock.resources.references import resolve, resolved_json
from interlock.resources.steps import ChildRequest, Step, target_lock
from interlock.resources.tasks import EndedTask, Returned, TaskResult
from interlock.resources.work import PythonCall
from interlock.sdk.calling import bind, error_of
from interlock.sdk.context import Context, current
from interlock.sdk.errors import OperationFailed

if TYPE_CHECKING:
    from interlock.sdk.app import App
    from interlock.sdk.record import JobRecord

_START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
#: Attempts of one operation: with all its limits, far more than it can have.
_MOST = 100_000


class LocalFailure(OperationFailed):
    """An operation that was run locally was not done: it was undone, or is stuck."""

    def __init__(
        self, message: str, record: JobRecord, *, history: tuple[str, ...], stuck: bool
    ) -> None:
        super().__init__(message, record)
        #: What was run and undone, in order: "reserve", "dns failed: ...", "undo reserve".
        self.history = history
        #: Whether it could not be undone, so that on a server a person would have to decide.
        self.stuck = stuck


class LocalRun:
    """What came of an operation that was run locally."""

    def __init__(self, name: str) -> None:
        self.name = name
        #: What was run and undone, in order: "reserve", "dns failed: ...", "undo reserve".
        self.history: tuple[str, ...] = ()
        #: What was logged and reported.
        self.log = ""
        self.reports: list[tuple[str, float, str]] = []
        #: How long the operation would have waited for retries.
        self.waited = timedelta()
        #: Why it failed; empty when it was done.
        self.error = ""
        self.stuck = False
        #: The parts that would be made now that the steps are done; none when it failed.
        self.children: tuple[ChildRequest, ...] = ()
        self._result: Any = None

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return not self.error

    @property
    def result(self) -> Any:
        """What the operation returned.

        Raises:
            LocalFailure: It was not done; whoever catches `errors.OperationFailed` catches it.
        """
        if self.error:
            told = self.error
            raise LocalFailure(told, self._record(), history=self.history, stuck=self.stuck)
        return self._result

    def _record(self) -> JobRecord:
        # It knows the store of a cluster, which workers need not.
        from interlock.sdk.record import JobRecord, Outcome

        return JobRecord(
            job_id="local",
            name=self.name,
            state="reverting" if self.stuck else "complete",
            completion_state=None if self.stuck else "failed",
            stuck_message=self.error if self.stuck else None,
            result=Outcome(error=self.error),
        )

    def settle(self, result: str) -> None:
        """Take in what it returned, as JSON."""
        self._result = msgspec.json.decode(result) if result else None


def play(app: App, manifest: Mapping[str, Any]) -> LocalRun:
    """Run what a Job asks for.

    Raises:
        InterlockError: It cannot be turned into steps.
    """
    spec = msgspec.convert(_known(manifest["spec"]), JobSpec)
    assert spec.python is not None
    bound = bind(app, spec.python.function, PythonCall.ELABORATE, spec.python.args, Context())
    made = bound.read(bound.start()).elaboration
    assert made is not None
    name = manifest["metadata"].get("name") or f"{manifest['metadata']['generateName']}local"
    run = LocalRun(name)
    plain = replace(spec, python=None, steps=made.steps, steps_at_once=1)
    job = Job(metadata=Metadata(name=name, namespace="default", uid="local"), spec=plain)
    _Play(app, job, run).play(made.returns)
    if run.ok:
        run.children = made.children
    return run


def _known(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The request without what says which workers take it: here is only one."""
    python = {key: value for key, value in spec["python"].items() if key != "queue"}
    return {**spec, "python": python}


class _Play:
    """One operation from its first step to its end."""

    def __init__(self, app: App, job: Job, run: LocalRun) -> None:
        self._app = app
        self._job = job
        self._run = run
        self._now = _START
        self._operation = status_of(job)

    def play(self, returns: str) -> None:
        """Run, retry and undo until it is over or stuck."""
        fresh: frozenset[int] = frozenset()
        for _ in range(_MOST):
            found = move(self._job, self._operation, fresh, 1, self._now)
            self._operation = told(
                self._operation, found.operation, Children(), self._now, is_taken_up=True
            )
            if found.attempts:
                fresh = self._attempt(*found.attempts[0])
            elif self._is_settled():
                break
            else:
                self._wait()
                fresh = frozenset()
        operation, run = self._operation, self._run
        run.waited = self._now - _START
        if operation.stuck_at is not None:
            run.stuck, run.error = True, f"stuck: {operation.stuck_message}"
        elif operation.reverting:
            run.error = operation.error
        else:
            results = {step.name: step.result for step in operation.steps}
            run.settle(resolved_json(returns, results))

    def _is_settled(self) -> bool:
        operation = self._operation
        return operation.stuck_at is not None or is_done(operation) or is_over(operation)

    def _wait(self) -> None:
        moments = [s.not_before for s in self._operation.steps if s.not_before is not None]
        assert moments, "the operation waits for nothing"
        self._now = max(self._now, *moments)

    def _attempt(self, task: int, attempt: int) -> frozenset[int]:
        at = step_of(task)
        spec = specs_of(self._job, self._operation)[at]
        what = f"undo {spec.name}" if is_undo(task) else spec.name
        returned, error = self._carry_out(spec, self._operation, task, attempt)
        self._run.history += (f"{what} failed: {error}" if error else what,)
        end = EndedTask(
            name=f"{self._job.metadata.name}-{task}-{attempt}",
            index=task,
            attempt=attempt,
            result=TaskResult.FAILED if error else TaskResult.SUCCEEDED,
            exit_code=1 if error else 0,
            ended_at=self._now,
            message=error,
            returned=Returned(json=returned) if returned else None,
        )
        self._operation, fresh = take_in(self._job, self._operation, (end,), {}, self._now, {})
        return fresh

    def _carry_out(
        self, spec: Step, operation: OperationStatus, task: int, attempt: int
    ) -> tuple[str, str]:
        """Call the function; returns what it returned, and how it failed."""
        work = spec.run if task == run_task(step_of(task)) else spec.undo
        assert work is not None
        assert work.python is not None
        results = {step.name: step.result for step in operation.steps if step.result}
        target = self._job.spec.target
        ctx = Context(
            step=spec.name,
            job=self._job.metadata.name,
            target="" if target is None else target.path,
            attempt=attempt + 1,
            undoing=is_undo(task),
            results=results,
            fences={} if target is None else {target_lock(target): 1},
            sink=_Kept(self._run, spec.name),
        )
        token = current.set(ctx)
        try:
            args = resolve(work.python.args, results)
            call = PythonCall.UNDO if is_undo(task) else PythonCall.RUN
            bound = bind(self._app, work.python.function, call, args, ctx)
            value = asyncio.run(bound.start()) if bound.is_async else bound.start()
            return bound.read(value).returned, ""
        except Exception as error:
            return "", error_of(error)
        finally:
            current.reset(token)


class _Kept:
    """Keeps what attempts say."""

    def __init__(self, run: LocalRun, step: str) -> None:
        self._run = run
        self._step = step

    def report(self, percent: float, text: str) -> None:
        self._run.reports.append((self._step, percent, text))

    def log(self, text: str) -> None:
        self._run.log += text
