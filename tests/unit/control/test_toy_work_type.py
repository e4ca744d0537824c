"""A new type of work is its noun, its check, its work, its runtime and one entry.

Here a type that the product does not know is added, and its Jobs live a whole life in a control
plane beside those of processes, on a runtime of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from control_world import World
from msgspec import json
from msgspec.structs import replace

from interlock.control.lease import Election
from interlock.control.runtime import Listener, Runtime, TaskStop
from interlock.control.write_fence import WriteFence
from interlock.errors import Problem, UnavailableError
from interlock.findings import Findings
from interlock.plane import ControlPlane
from interlock.resources.admission import AdmissionPhase
from interlock.resources.door.checking import problems_of_spec
from interlock.resources.job import Job, JobPhase, JobSpec, Parallelism
from interlock.resources.metadata import Key, Metadata, Noun
from interlock.resources.modes import Mode, problems_for_mode
from interlock.resources.process import ProcessSpec
from interlock.resources.rules import ExactlyOne, NounRule
from interlock.resources.tasks import (
    Progress,
    ReportState,
    Returned,
    TaskId,
    TaskOrder,
    TaskReport,
    TaskState,
    is_ready,
    progress_of,
    returned_of,
)
from interlock.resources.variables import substitute
from interlock.resources.work import Work
from interlock.resources.work_types import Text, Values, WorkType, register
from interlock.runtimes.router import Router
from support.simulation.workshop import SimWorkShop

# The type: its noun, its check, its work, its entry


class EchoSpec(Noun):
    """Words to say."""

    words: tuple[str, ...]


class ToySpec(JobSpec):
    RULES: ClassVar[tuple[NounRule, ...]] = (
        ExactlyOne("process", "pod", "batch_job", "noop", "echo"),
        *JobSpec.RULES[1:],
    )

    echo: EchoSpec | None = None


class ToyJob(Job, tag="Job", kw_only=True):
    spec: ToySpec


class EchoWork(Work, tag="echo"):
    words: tuple[str, ...]


def check_echo(echo: EchoSpec, to: Findings) -> None:
    for at, word in enumerate(echo.words):
        if not word:
            to.add(f"spec.echo.words[{at}]", "expected a word", word)


def echo_texts(echo: EchoSpec) -> Iterator[Text]:
    for at, word in enumerate(echo.words):
        yield "spec.echo.words", at, word


def echo_work(echo: EchoSpec, values: Values) -> EchoWork:
    return EchoWork(words=tuple(substitute(word, values()) for word in echo.words))


ECHO = WorkType(
    field="echo",
    path="echo",
    check=check_echo,
    modes=frozenset({Mode.EMBEDDED}),
    elsewhere="a cluster says nothing",
    texts=echo_texts,
    work=echo_work,
    runtime="echoes",
)


@pytest.fixture(autouse=True)
def echo() -> Iterator[None]:
    withdraw = register(ECHO)
    yield
    withdraw()


class Echoes:
    """A runtime that says words, and ends when a test lets it."""

    groups_orders = True

    def __init__(self) -> None:
        self.is_down = False
        self.said: dict[TaskId, tuple[str, ...]] = {}
        self.known: dict[TaskId, TaskReport] = {}
        self._listeners: list[Listener] = []

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        self._answer()
        for order in orders:
            assert isinstance(order.work, EchoWork)
            if order.id not in self.known:
                self.said[order.id] = order.work.words
                self.tell(_running(order))

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        self._answer()
        for stop in stops:
            self.say(stop.task, state=ReportState.ENDED, stopped=True, exit_code=1)

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        self._answer()
        for task in tasks:
            self.known.pop(task, None)

    async def reports(self) -> Sequence[TaskReport]:
        self._answer()
        return tuple(self.known.values())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def say(self, task: TaskId, **news: Any) -> None:
        self.tell(replace(self.known[task], **news))

    def tell(self, report: TaskReport) -> None:
        self.known[report.id] = report
        for listener in self._listeners:
            listener((report,))

    def _answer(self) -> None:
        if self.is_down:
            raise UnavailableError("nobody answers")


def _running(order: TaskOrder) -> TaskReport:
    return TaskReport(
        job_uid=order.job_uid,
        index=order.index,
        attempt=order.attempt,
        namespace=order.namespace,
        job=order.job,
        state=ReportState.RUNNING,
        ready=False,
        job_version=order.job_version,
    )


class Ground:
    """A control plane over an in-memory store, with a simulated machine and echoes behind it."""

    def __init__(self, world: World, *, with_echoes: bool = True) -> None:
        self.world = world
        self.echoes = Echoes()
        self._machine = SimWorkShop(world.events)
        self._with_echoes = with_echoes
        self.plane = ControlPlane(
            store=world.store,
            journal=world.journal,
            clock=world.clock,
            luck=world.luck,
            connect=self._connect,
            election=Election(
                world.store, world.clock, world.luck, WriteFence(world.clock), "plane"
            ),
        )
        self.plane.start()

    async def create(self, name: str, **spec: Any) -> None:
        made = ToyJob(
            metadata=Metadata(name=name, namespace="default"),
            spec=ToySpec(grace_period=JobSpec().grace_period, **spec),
        )
        await self.world.store.create(made)

    async def until(self, name: str, true: Callable[[Job], bool]) -> Job:
        while True:
            job = await self.world.store.get(Key("Job", "default", name))
            assert isinstance(job, Job)
            if true(job):
                return job
            await self.world.passes(0.1)

    async def until_phase(self, name: str, phase: JobPhase) -> Job:
        return await self.until(name, lambda job: job.status.phase is phase)

    async def _connect(self, term: int) -> Runtime:
        del term
        runtimes: dict[str, Runtime] = {"processes": self._machine.runtime}
        if self._with_echoes:
            runtimes["echoes"] = self.echoes
        return Router(runtimes, own="processes", check=self.plane.fence.check)


PROCESS = ProcessSpec(command=("work", "1"))


def test_its_jobs_run_beside_those_of_processes_on_a_runtime_of_their_own() -> None:
    world = World()

    async def scene() -> None:
        ground = Ground(world)
        words = ("${job.name}", "${task.index}")
        await ground.create("talk", echo=EchoSpec(words=words), parallelism=Parallelism(count=2))
        await ground.create("work", process=PROCESS)

        job = await ground.until_phase("talk", JobPhase.RUNNING)
        await ground.until_phase("work", JobPhase.SUCCEEDED)
        tasks = [TaskId(job.metadata.uid, index, 0) for index in (0, 1)]
        assert ground.echoes.said == {tasks[0]: ("talk", "0"), tasks[1]: ("talk", "1")}
        assert {task.runtime for task in job.status.execution.active} == {"echoes"}

        for index, task in enumerate(tasks):
            told = returned_of(json.encode({"index": index}))
            ground.echoes.say(task, state=ReportState.ENDED, exit_code=0, returned=told)
        job = await ground.until_phase("talk", JobPhase.SUCCEEDED)
        assert [end.returned for end in job.status.execution.ended] == [
            Returned(json='{"index":0}'),
            Returned(json='{"index":1}'),
        ]
        await world.passes(10)
        assert ground.echoes.known == {}, "what is recorded is forgotten where it was"

    world.run(scene())


def test_readiness_and_progress_are_kept_without_a_write_for_each_word() -> None:
    world = World()

    async def scene() -> None:
        ground = Ground(world)
        await ground.create("talk", echo=EchoSpec(words=("a",)))
        job = await ground.until("talk", lambda job: bool(job.status.execution.active))
        task = TaskId(job.metadata.uid, 0, 0)
        running = await ground.until_phase("talk", JobPhase.RUNNING)
        assert not is_ready(running.status.execution.active[0])

        ground.echoes.say(task, ready=True)
        ready = await ground.until("talk", lambda job: is_ready(job.status.execution.active[0]))
        writes = 0
        for percent in range(101):
            ground.echoes.say(task, progress=progress_of(percent, f"word {percent}"))
            await world.passes(1)
            now = await ground.until("talk", lambda _: True)
            writes += now.version != ready.version
            ready = now

        held = ready.status.execution.active[0]
        assert held.progress == Progress(percent=100, text="word 100")
        assert writes == 11

    world.run(scene())


def test_a_stop_goes_to_its_runtime() -> None:
    world = World()

    async def scene() -> None:
        ground = Ground(world)
        stop_at = world.clock.now() + timedelta(seconds=30)
        await ground.create("talk", echo=EchoSpec(words=("a",)), kill_at=stop_at)
        job = await ground.until_phase("talk", JobPhase.KILLED)
        assert [end.stop_cause for end in job.status.execution.ended] == ["Killed"]

    world.run(scene())


def test_while_its_runtime_is_down_only_its_own_jobs_wait() -> None:
    world = World()

    async def scene() -> None:
        ground = Ground(world)
        ground.echoes.is_down = True
        await ground.create("talk", echo=EchoSpec(words=("a",)))
        await world.passes(5)
        for number in range(5):
            await ground.create(f"work-{number}", process=PROCESS)
            await ground.until_phase(f"work-{number}", JobPhase.SUCCEEDED)
        assert ground.echoes.said == {}

        ground.echoes.is_down = False
        job = await ground.until_phase("talk", JobPhase.RUNNING)
        assert job.status.trouble is None
        assert job.status.execution.active[0].state is TaskState.RUNNING

    world.run(scene())


def test_without_its_runtime_the_job_says_so_and_harms_no_other() -> None:
    world = World()

    async def scene() -> None:
        ground = Ground(world, with_echoes=False)
        await ground.create("talk", echo=EchoSpec(words=("a",)))
        job = await ground.until("talk", lambda job: job.status.trouble is not None)
        assert job.status.trouble is not None
        assert 'no runtime "echoes" here, only: processes' in job.status.trouble.message
        await ground.create("work", process=PROCESS)
        await ground.until_phase("work", JobPhase.SUCCEEDED)

    world.run(scene())


BAD: list[tuple[ToySpec, str, str]] = [
    (ToySpec(echo=EchoSpec(words=("a", ""))), "spec.echo.words[1]", "expected a word"),
    (
        ToySpec(echo=EchoSpec(words=("${args.who}",))),
        "spec.echo.words[0]",
        "unknown variable ${args.who}",
    ),
    (
        ToySpec(),
        "spec",
        "expected exactly one of process, pod, batchJob, noop and echo, found none",
    ),
    (
        ToySpec(echo=EchoSpec(words=("a",)), process=PROCESS),
        "spec",
        "expected exactly one of process, pod, batchJob, noop and echo, found process and echo",
    ),
]


@pytest.mark.parametrize(("spec", "path", "message"), BAD)
def test_what_is_wrong_with_it_is_told_with_its_path(
    spec: ToySpec, path: str, message: str
) -> None:
    found = problems_of_spec(spec)

    assert [problem.path for problem in found] == [path]
    assert message in found[0].message


def test_a_bad_one_is_refused_by_the_control_plane() -> None:
    world = World()

    async def scene() -> None:
        ground = Ground(world)
        await ground.create("talk", echo=EchoSpec(words=("",)))
        job = await ground.until_phase("talk", JobPhase.REFUSED)
        assert job.status.admission.phase is AdmissionPhase.REFUSED
        assert "spec.echo.words[0]" in job.status.admission.message

    world.run(scene())


def test_it_is_refused_where_it_cannot_run() -> None:
    spec = ToySpec(echo=EchoSpec(words=("a",)))

    assert problems_for_mode(spec, Mode.EMBEDDED) == ()
    assert problems_for_mode(spec, Mode.CLUSTER) == (
        Problem("spec.echo", "a cluster says nothing"),
    )
