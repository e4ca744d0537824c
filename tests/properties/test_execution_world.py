"""Promises of the execution room, kept in a small world that crashes, forgets and kills.

The world holds one Job, a runtime that does what it is told, and a process that may die between
any two actions. After every step the promises are checked, whatever was drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.execution.decide import decide
from interlock.execution.view import ExecutionView
from interlock.resources.actions import (
    Action,
    AddFinalizer,
    Decision,
    DeleteResource,
    ForgetTask,
    LaunchTask,
    RecordExecution,
    RemoveFinalizer,
    StopTask,
)
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import (
    JOB_FINALIZER,
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    Completion,
    Job,
    JobPhase,
    JobStatus,
    Parallelism,
    Retries,
    unknown_attempts,
)
from interlock.resources.tasks import (
    KEPT_ENDED,
    MOST_AT_ONCE,
    ExecutionReason,
    JobResult,
    ReportState,
    TaskId,
    TaskReport,
    TaskState,
)
from interlock.resources.transitions import has_ended, with_execution
from interlock.resources.values.durations import Duration
from interlock.testing.builders import T0, a_job

UID = "uid-default-job"
LIVE = (ReportState.ACCEPTED, ReportState.RUNNING, ReportState.UNKNOWN)
OVER = (ReportState.ENDED, ReportState.NOT_STARTED)


class World:
    """One Job, one runtime, and every promise about the two."""

    def __init__(self, job: Job, capacity: int, patience: timedelta) -> None:
        self.job = job
        self.room = capacity
        self.patience = patience
        self.now = T0
        #: The version of the Job that was decided on.
        self.read = job.version
        self.complete = True
        self.reports: dict[tuple[int, int], TaskReport] = {}
        self.told: dict[TaskId, datetime] = {}
        #: Every attempt that was ever launched, and how often a process was made for it.
        self.processes: dict[tuple[int, int], int] = {}
        self._gone = False
        self.end: Job | None = None

    # What the room does

    def look(self, crash_after: int | None = None) -> Decision:
        """Look, decide, and carry out; a crash comes after so many actions."""
        view = ExecutionView(
            job=self.job,
            reports=dict(self.reports),
            reports_complete=self.complete,
            capacity=self.room - len(self.job.status.execution.active),
            told=dict(self.told),
            patience=self.patience,
        )
        self.read = self.job.version
        decision = decide(view, self.now)
        assert decision == decide(view, self.now)
        assert decision.wake_at is None or decision.wake_at > self.now
        assert bool(decision.reason) is bool(decision.actions)
        for done, action in enumerate(decision.actions):
            if done == crash_after:
                self.told.clear()
                return decision
            self.carry_out(action)
            self.check()
        return decision

    def carry_out(self, action: Action) -> None:
        match action:
            case RecordExecution(job, execution):
                assert job.version == self.read
                self.write(status=with_execution(self.job, execution, self.now))
            case LaunchTask(_, task):
                self.launch(task.index, task.attempt)
            case StopTask(_, task):
                self.told[task] = self.now
                self.stop(task.task, task.attempt)
            case ForgetTask(_, task):
                assert self.reports[task.task, task.attempt].state in OVER
                assert not self.is_active(task.task, task.attempt)
                del self.reports[task.task, task.attempt]
            case AddFinalizer():
                self.write(finalizers=(JOB_FINALIZER,))
            case RemoveFinalizer():
                assert all(r.state in OVER for r in self.reports.values()) or self.is_released()
                self._gone = True
            case DeleteResource():
                assert has_ended(self.job)
                self.write(deletion_timestamp=self.now)
            case _:
                raise AssertionError(action)

    def launch(self, index: int, attempt: int) -> None:
        assert self.is_active(index, attempt), "launched without a record"
        assert JOB_FINALIZER in self.job.metadata.finalizers
        assert index not in self.job.status.execution.succeeded
        if (index, attempt) not in self.reports:
            self.processes[index, attempt] = self.processes.get((index, attempt), 0) + 1
            assert self.processes[index, attempt] == 1, "one attempt ran twice"
            self.report(index, attempt, ReportState.ACCEPTED)

    def stop(self, index: int, attempt: int) -> None:
        held = self.reports.get((index, attempt))
        if held is None:
            self.processes.setdefault((index, attempt), 0)
            self.report(index, attempt, ReportState.NOT_STARTED, stopped=True)
        elif held.state in LIVE:
            self.reports[index, attempt] = replace(held, stopped=True)

    # What happens to it

    def report(self, index: int, attempt: int, state: ReportState, **more: Any) -> None:
        self.reports[index, attempt] = TaskReport(
            job_uid=UID,
            index=index,
            attempt=attempt,
            namespace="default",
            job="job",
            state=state,
            **more,
        )

    def write(self, status: JobStatus | None = None, **metadata: Any) -> None:
        version = str(self.job.version + 1)
        self.job = replace(
            self.job,
            status=status or self.job.status,
            metadata=replace(self.job.metadata, resource_version=version, **metadata),
        )

    def edit(self, **spec: Any) -> None:
        self.job = replace(self.job, spec=replace(self.job.spec, **spec))
        self.write(generation=self.job.metadata.generation + 1)

    def progress(self, choice: int, outcome: int) -> None:
        """Something happens to one of the attempts that are not over."""
        live = sorted(key for key, report in self.reports.items() if report.state in LIVE)
        if not live:
            return
        key = live[choice % len(live)]
        held = self.reports[key]
        if outcome == 0 and held.started_at is None:
            self.report(*key, ReportState.NOT_STARTED, stopped=held.stopped, message="no command")
        elif outcome == 1:
            self.reports[key] = replace(held, state=ReportState.UNKNOWN, message="lost")
        elif outcome == 2 or held.started_at is None:
            self.reports[key] = replace(
                held, state=ReportState.RUNNING, started_at=held.started_at or self.now, pid=1
            )
        else:
            code = {3: 0, 4: 0, 5: 0, 6: 1, 7: 75}.get(outcome)
            self.reports[key] = replace(
                held, state=ReportState.ENDED, ended_at=self.now, exit_code=code
            )

    # What must hold

    def is_active(self, index: int, attempt: int) -> bool:
        active = self.job.status.execution.active
        return any((task.index, task.attempt) == (index, attempt) for task in active)

    def is_gone(self) -> bool:
        return self._gone

    def is_released(self) -> bool:
        """Whether a person wrote tasks off; other tasks of the Job may still have to stop."""
        execution = self.job.status.execution
        is_going = execution.stopping_for is ExecutionReason.RELEASED
        return is_going or execution.result is JobResult.FINISHED_UNKNOWN

    def check(self) -> None:
        execution = self.job.status.execution
        indexes = [task.index for task in execution.active]
        indexes += [wait.index for wait in execution.retrying]
        assert len(indexes) == len(set(indexes)), "two attempts of one task at once"
        assert not set(indexes) & set(execution.succeeded), "a task that is done goes on"
        assert not set(indexes) & set(execution.failed)
        assert len(indexes) <= MOST_AT_ONCE
        assert len(execution.ended) <= KEPT_ENDED
        limit = self.job.spec.retries.limit
        assert all(task.attempt <= limit for task in execution.active)
        self.check_machine()
        self.check_end()

    def check_machine(self) -> None:
        for key, report in self.reports.items():
            if report.state is ReportState.RUNNING and not self.is_released():
                assert self.is_active(*key), "something runs that no status knows of"
        running = [key[0] for key, r in self.reports.items() if r.state is ReportState.RUNNING]
        if self.job.status.execution.stopping_for is None and not has_ended(self.job):
            assert len(running) == len(set(running))

    def check_end(self) -> None:
        if self.end is None and has_ended(self.job):
            self.end = self.job
        if self.end is not None:
            assert self.end.status.execution == self.job.status.execution, "an end is final"


RETRIES = st.builds(
    Retries,
    limit=st.integers(0, 2),
    delay=st.sampled_from([Duration(), Duration(seconds=2)]),
    retry_exit_codes=st.sampled_from([(), (75,)]),
)
LENGTHS = st.sampled_from([None, None, Duration(seconds=3), Duration(seconds=10)])
SPECS = st.fixed_dictionaries(
    {
        "parallelism": st.builds(
            Parallelism,
            count=st.integers(1, 4),
            at_once=st.sampled_from([None, 1, 2]),
        ),
        "completion": st.sampled_from(list(Completion)),
        "retries": RETRIES,
        "timeout": LENGTHS,
        "task_timeout": LENGTHS,
        "pending_timeout": st.sampled_from([Duration(), Duration(seconds=4)]),
        "ttl_after_finished": LENGTHS,
    }
)

Step = Callable[[World], object]

LOOKS: st.SearchStrategy[Step] = st.one_of(
    st.just(lambda w: w.look()),
    st.just(lambda w: w.look()),
    st.integers(0, 3).map(lambda n: lambda w: w.look(crash_after=n)),
)
EVENTS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.integers(0, 5), st.integers(0, 9)).map(lambda d: lambda w: w.progress(*d)),
    st.tuples(st.integers(0, 5), st.integers(2, 7)).map(lambda d: lambda w: w.progress(*d)),
)
TIMES: st.SearchStrategy[Step] = st.sampled_from([-7, 0, 1, 2, 5]).map(
    lambda s: lambda w: setattr(w, "now", w.now + timedelta(seconds=s))
)
ORDERS: st.SearchStrategy[Step] = st.sampled_from(
    [
        lambda w: w.edit(kill_at=w.now),
        lambda w: w.edit(kill_at=w.now + timedelta(seconds=3)),
        lambda w: w.edit(kill_at=None),
        lambda w: w.edit(grace_period=Duration()),
        lambda w: w.edit(suspend=True),
        lambda w: w.edit(suspend=False),
        lambda w: w.write(deletion_timestamp=w.now),
        lambda w: w.write(
            annotations={
                RELEASE_ANNOTATION: "I looked",
                RELEASED_ATTEMPTS_ANNOTATION: ",".join(unknown_attempts(w.job)),
            }
        ),
        lambda w: setattr(w, "complete", False),
        lambda w: setattr(w, "complete", True),
    ]
)
STEPS = st.lists(st.one_of(LOOKS, EVENTS, EVENTS, LOOKS, TIMES, ORDERS), min_size=15, max_size=50)


def a_world(spec: dict[str, Any], capacity: int, patience: timedelta) -> World:
    admission = AdmissionStatus(phase=AdmissionPhase.ADMITTED, sequence=1, admitted_at=T0)
    status = JobStatus(phase=JobPhase.STARTING, admission=admission)
    job = a_job(status=status, metadata={"finalizers": ()}, **spec)
    return World(job, capacity, patience)


def run(world: World, steps: list[Step]) -> None:
    for step in steps:
        if world.is_gone():
            return
        step(world)


def settle(world: World) -> None:
    """Let the world come to rest: nothing new from outside, every task ends when it is stopped."""
    world.complete = True
    world.edit(suspend=False)
    for _ in range(200):
        if world.is_gone():
            return
        decision = world.look()
        stopped = [key for key, r in world.reports.items() if r.state in LIVE and r.stopped]
        for key in stopped:
            held = world.reports[key]
            world.reports[key] = replace(
                held, state=ReportState.ENDED, ended_at=world.now, signal=15
            )
        if not decision.actions and not stopped:
            return
    raise AssertionError("the world does not settle")


WORLDS = st.builds(
    a_world, SPECS, st.integers(0, 4), st.sampled_from([timedelta(), timedelta(seconds=1)])
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(world=WORLDS, steps=STEPS)
def test_promises_hold_whatever_happens(world: World, steps: list[Step]) -> None:
    """No attempt runs unrecorded or twice, no task is doubled, ends are final, sizes bounded."""
    run(world, steps)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(world=WORLDS, steps=STEPS)
def test_the_world_settles(world: World, steps: list[Step]) -> None:
    """Without news from outside the decisions become empty, and stay so."""
    run(world, steps)
    settle(world)
    if not world.is_gone():
        assert world.look().actions == ()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(world=WORLDS, steps=STEPS)
def test_a_killed_job_stays_killed(world: World, steps: list[Step]) -> None:
    """From the order to stop on nothing new starts, and the Job comes to an end."""
    run(world, steps)
    if world.is_gone():
        return
    ended_before = has_ended(world.job)
    world.edit(kill_at=world.now)
    world.look()
    known = set(world.processes)
    world.edit(kill_at=None)
    # What was lost is found again, so that nothing stays unproven.
    for key, report in world.reports.items():
        if report.state is ReportState.UNKNOWN:
            world.reports[key] = replace(
                report, state=ReportState.RUNNING, started_at=report.started_at or world.now
            )
    settle(world)
    if world.is_gone() or ended_before:
        return
    assert set(world.processes) == known
    assert world.job.status.execution.result is not None


@settings(max_examples=200, deadline=None, derandomize=True)
@given(world=WORLDS, steps=STEPS)
def test_a_deleted_job_leaves_nothing_running(world: World, steps: list[Step]) -> None:
    """The object goes, and only once everything of it is proven over."""
    run(world, steps)
    if world.is_gone():
        return
    for key, report in world.reports.items():
        if report.state is ReportState.UNKNOWN:
            world.reports[key] = replace(
                report, state=ReportState.RUNNING, started_at=report.started_at or world.now
            )
    world.write(deletion_timestamp=world.now)
    settle(world)

    going_without_hold = JOB_FINALIZER not in world.job.metadata.finalizers
    assert world.is_gone() or going_without_hold
    assert all(report.state in OVER for report in world.reports.values())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(world=WORLDS, steps=STEPS)
def test_a_job_left_to_itself_succeeds(world: World, steps: list[Step]) -> None:
    """A fresh Job whose tasks all exit 0 succeeds, however its steps are cut up by crashes."""
    world.room = max(1, world.room)
    for step in (None, *steps):
        world.look()
        if step is not None and not world.is_gone():
            live = [key for key, report in world.reports.items() if report.state in LIVE]
            if live:
                world.report(*live[0], ReportState.ENDED, exit_code=0, ended_at=T0, started_at=T0)
    for _ in range(20):
        for key, report in world.reports.items():
            if report.state in LIVE:
                world.reports[key] = replace(
                    report, state=ReportState.ENDED, exit_code=0, ended_at=T0, stopped=False
                )
        if not world.is_gone():
            world.look()
    assert world.job.status.execution.result is JobResult.SUCCEEDED
    assert not any(task.state is TaskState.UNKNOWN for task in world.job.status.execution.active)
