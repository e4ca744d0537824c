"""Whatever workers, time and the control plane do, the dispatcher keeps its promises."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlock.resources.tasks import ReportState, TaskId, TaskReport
from interlock.runtimes.workers.attempts import Phase, Worker
from interlock.runtimes.workers.protocol import Ref
from support.dispatcher_desk import Desk

NAMES = st.sampled_from(["a", "b", "c"])
FUNCTIONS = st.sampled_from([("make",), ("make", "undo"), ("undo",)])
PICK = st.integers(0, 30)
_OVER = (ReportState.ENDED, ReportState.NOT_STARTED)


class Dispatching(RuleBasedStateMachine):
    """Attempts with new numbers, workers that come and go, and time."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.workers: dict[str, Worker] = {}
        self.everybody: list[Worker] = []
        self.launched: list[TaskId] = []
        self.ended: dict[TaskId, TaskReport] = {}
        self.forgotten: set[TaskId] = set()
        self.told: dict[TaskId, str] = {}

    @rule(function=st.sampled_from(["make", "undo"]), job=st.integers(0, 3), alone=st.booleans())
    def launch(self, function: str, job: int, alone: bool) -> None:
        attempt = len(self.launched)
        task = self.desk.launch(f"job-{job}", attempt=attempt, function=function, alone=alone)
        self.launched.append(task)

    @rule(pick=PICK)
    def launch_once_more(self, pick: int) -> None:
        if self.launched:
            task = self.launched[pick % len(self.launched)]
            job = task.job_uid.removeprefix("uid-default-")
            self.desk.launch(job, attempt=task.attempt, function="make", again=bool(pick % 2))

    @rule(name=NAMES, functions=FUNCTIONS, concurrency=st.integers(1, 3))
    def come(self, name: str, functions: tuple[str, ...], concurrency: int) -> None:
        held = tuple(Ref(*task) for task in self.launched[-3:])
        worker = self.desk.worker(name, *functions, concurrency=concurrency, held=held)
        self.workers[name] = worker
        self.everybody.append(worker)

    @rule(name=NAMES)
    def go(self, name: str) -> None:
        worker = self.workers.pop(name, None)
        if worker is not None:
            self.desk.leave(worker)

    @rule(name=NAMES)
    def drain(self, name: str) -> None:
        if name in self.workers:
            self.desk.drain(self.workers[name])

    @rule(pick=PICK, who=PICK, fails=st.booleans())
    def say_done(self, pick: int, who: int, fails: bool) -> None:
        """Anybody says of anything that it is done, also who was lost long ago."""
        if not self.launched or not self.everybody:
            return
        task = self.launched[pick % len(self.launched)]
        worker = self.everybody[who % len(self.everybody)]
        counts = self.desk.dispatcher.has(worker, task) and worker.closed is None
        said = f"{worker.hello.worker}-{len(self.told)}"
        if counts:
            assert task not in self.told, "two results of one attempt count"
            self.told[task] = said
        self.desk.done(worker, task, f'"{said}"', error="no" if fails else "")
        report = self.desk.told[task]
        if counts:
            assert report.state is ReportState.ENDED
            assert report.exit_code == (1 if fails else 0)

    @rule(name=NAMES)
    def touch(self, name: str) -> None:
        if name in self.workers:
            worker = self.workers[name]
            self.desk.touch(worker, *worker.at_work)

    @rule(pick=PICK, grace_s=st.sampled_from([0.0, 5.0, 40.0]))
    def stop(self, pick: int, grace_s: float) -> None:
        if self.launched:
            self.desk.stop(self.launched[pick % len(self.launched)], grace_s)

    @rule(pick=PICK)
    def record(self, pick: int) -> None:
        """What was said last of an attempt is durable."""
        if self.launched:
            self.desk.record(self.launched[pick % len(self.launched)])

    @rule(pick=PICK)
    def forget(self, pick: int) -> None:
        if self.launched:
            task = self.launched[pick % len(self.launched)]
            self.desk.forget(task)
            if self.desk.state(task) in _OVER:
                self.forgotten.add(task)

    @rule(seconds=st.sampled_from([1.0, 9.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.desk.wait(seconds)

    @invariant()
    def an_end_never_changes(self) -> None:
        for task, report in self.desk.told.items():
            if report.state in _OVER:
                assert self.ended.setdefault(task, report) == report
            else:
                assert task not in self.ended

    @invariant()
    def nothing_is_handed_out_twice(self) -> None:
        given = [task for worker in self.everybody for task in self.desk.has(worker)]
        assert len(given) == len(set(given))

    @invariant()
    def nobody_is_given_more_than_it_takes(self) -> None:
        for worker in self.workers.values():
            held = len(worker.hello.held)
            assert len(worker.at_work) <= max(worker.hello.concurrency, held)

    @invariant()
    def nothing_waits_while_somebody_has_room_for_it(self) -> None:
        known: dict[TaskId, Any] = {r.id: r for r in self.desk.dispatcher.reports()}
        waiting = [task for task, r in known.items() if r.state is ReportState.ACCEPTED]
        assert len(waiting) == self.desk.dispatcher.waiting
        free = {f for w in self.workers.values() if w.has_room for f in w.hello.functions}
        idle = {f for w in self.workers.values() if w.is_idle for f in w.hello.functions}
        for task in waiting:
            alone = self.desk.dispatcher.is_alone(task)
            assert self.function_of(task) not in (idle if alone else free)

    @invariant()
    def what_is_alone_has_nothing_given_beside_it(self) -> None:
        """What a worker comes back with it has already."""
        for worker in self.workers.values():
            given = set(self.desk.has(worker))
            if any(one.is_alone and one.id in given for one in worker.at_work.values()):
                assert len(given & worker.at_work.keys()) <= 1

    @invariant()
    def nobody_is_kept_free_for_what_does_not_wait(self) -> None:
        for worker in self.workers.values():
            if worker.kept_for is not None:
                assert worker.kept_for.phase is Phase.WAITING

    def function_of(self, task: TaskId) -> str:
        return self.desk.dispatcher.need_of(task)[0]

    @invariant()
    def what_was_told_to_wait_is_handed_out_when_it_is_recorded_to_have_started(self) -> None:
        """Else a server that comes after this one would take it for one that nobody has."""
        given = {task for worker in self.everybody for task in self.desk.has(worker)}
        assert not (given & self.desk.told_waiting) - self.desk.recorded_running

    @invariant()
    def who_is_at_work_has_a_lease(self) -> None:
        held = [one for worker in self.workers.values() for one in worker.at_work.values()]
        at_work = any(one.phase is Phase.AT_WORK for one in held)
        assert not at_work or self.desk.dispatcher.next_at() is not None


TestDispatching = Dispatching.TestCase
