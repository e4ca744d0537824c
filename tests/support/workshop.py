"""A workshop of real processes: work as shell commands that leave a trace of what they do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from interlock.control.runtime import Runtime
from interlock.errors import UnavailableError
from interlock.resources.process import FileProbe, ReadinessProbe
from interlock.resources.tasks import TaskId, TaskOrder, task_name
from interlock.resources.values.durations import Duration
from interlock.resources.work import ProcessWork
from interlock.runtimes.keeper import kernel
from interlock.runtimes.processes import ProcessRuntime
from interlock.testing.keepers import end_everything, keeper_pid, living, logger_pid
from interlock.testing.runtime_contract import (
    CannotStart,
    Exits,
    ExitsWhenTold,
    IgnoresSigterm,
    LeavesChild,
    ReadyWhenTold,
    RunsOn,
    Scene,
    Told,
    Work,
)

#: Nothing that works takes as long, however slow the machine is.
_DEADLINE_S = 120.0
_ASK_AGAIN_S = 0.5
_LOOK_S = 0.02
_SHELL = "/bin/sh"
_OFTEN = Duration(milliseconds=100)


class ProcessShop:
    """Implements `runtime_contract.WorkShop` with a keeper and a scratch directory."""

    def __init__(self, place: Path) -> None:
        self.data_dir = place / "data"
        self._traces = place / "traces"
        self.data_dir.mkdir(exist_ok=True)
        self._traces.mkdir(exist_ok=True)
        self._runtimes: list[ProcessRuntime] = []
        self._news = asyncio.Event()

    @property
    def runtime(self) -> ProcessRuntime:
        """The runtime of the present leader."""
        return self._runtimes[-1]

    async def lead(self, term: int | None = None) -> ProcessRuntime:
        """Become the leader, with a higher term than all before unless one is given."""
        runtime = await ProcessRuntime.connect(
            self.data_dir, term=term if term is not None else len(self._runtimes) + 1
        )
        runtime.subscribe(lambda _: self._news.set())
        self._runtimes.append(runtime)
        return runtime

    def order(self, work: Work, *, job: str = "job", index: int = 0, attempt: int = 1) -> TaskOrder:
        """An order for some work, as a shell script that counts its own starts."""
        task = TaskId(f"uid-{job}", index, attempt)
        trace = str(self._trace(task))
        match work:
            case CannotStart():
                command: tuple[str, ...] = (str(self._traces / "no-such-program"),)
            case _:
                command = (_SHELL, "-c", _script(work), _SHELL, trace)
        return TaskOrder(
            job_uid=task.job_uid,
            index=index,
            attempt=attempt,
            name=task_name(job, index, attempt),
            namespace="default",
            job=job,
            work=ProcessWork(command=command, readiness_probe=self._probe_of(work, task)),
        )

    async def until(self, true: Callable[[Told], bool]) -> Told:
        """Wait until the reports are so."""
        async with asyncio.timeout(_DEADLINE_S):
            while True:
                self._news.clear()
                # A runtime may be out of reach at any moment: then nothing is known yet.
                with contextlib.suppress(UnavailableError):
                    told = {report.id: report for report in await self.runtime.reports()}
                    if true(told):
                        return told
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), _ASK_AGAIN_S)

    async def until_begun(self, task: TaskId) -> None:
        """Wait until the work itself says that it runs."""
        await self.until_so(lambda: self.starts(task) > 0)

    async def until_so(self, true: Callable[[], bool]) -> None:
        """Wait for something that nobody reports."""
        await until_so(true)

    def let_go(self, task: TaskId) -> None:
        """Tell work that waits for it to exit."""
        self._trace(task).with_suffix(".go").touch()

    def make_ready(self, task: TaskId, ready: bool) -> None:
        """Put the file there that the probe of work looks for, or take it away."""
        sign = self._trace(task).with_suffix(".ready")
        sign.touch() if ready else sign.unlink()

    def _probe_of(self, work: Work, task: TaskId) -> ReadinessProbe | None:
        if not isinstance(work, ReadyWhenTold):
            return None
        sign = FileProbe(path=str(self._trace(task).with_suffix(".ready")))
        patient = Duration(seconds=_DEADLINE_S)
        return ReadinessProbe(file=sign, period=_OFTEN, timeout=patient, failure_threshold=1)

    def starts(self, task: TaskId) -> int:
        """How many lines the work wrote into its trace."""
        trace = self._trace(task)
        return len(trace.read_text().splitlines()) if trace.exists() else 0

    def alive(self) -> int:
        """How many processes of any attempt live."""
        return len(living(self.data_dir))

    def launchers(self) -> list[int]:
        """The processes that fork for the keeper: its children that are none of a task."""
        pid = keeper_pid(self.data_dir)
        others = [*living(self.data_dir), logger_pid(self.data_dir)]
        return [child for child in kernel.children_of(pid or 0) if child not in others]

    async def crash(self) -> None:
        """Drop the connection without a word, and let the next leader come."""
        self._runtimes[-1].abandon()
        await self.lead()

    async def usurp(self) -> Runtime:
        """Let a newer leader take over while the old one lives."""
        old = self.runtime
        await self.lead()
        return old

    async def close(self) -> None:
        """Disconnect every leader there was, without a word."""
        for runtime in self._runtimes:
            runtime.abandon()
            await runtime.close()

    @classmethod
    def play(cls, scene: Scene, place: Path) -> None:
        """Run a scene with a fresh keeper, and end all that it leaves."""

        async def run() -> None:
            shop = cls(place)
            try:
                await shop.lead()
                await scene(shop)
            finally:
                await shop.close()

        try:
            asyncio.run(run())
        finally:
            # Last: a client that is still there would start another keeper.
            end_everything(place / "data")

    def _trace(self, task: TaskId) -> Path:
        return self._traces / str(task).replace("/", "-")


async def until_so(true: Callable[[], bool]) -> None:
    """Wait for something that nobody reports."""
    async with asyncio.timeout(_DEADLINE_S):
        while not true():
            await asyncio.sleep(_LOOK_S)


def _script(
    work: Exits | RunsOn | ExitsWhenTold | ReadyWhenTold | IgnoresSigterm | LeavesChild,
) -> str:
    begun = 'echo begun >> "$1"; '
    match work:
        case Exits(code):
            return f"{begun} exit {code}"
        case RunsOn() | ReadyWhenTold():
            return f"{begun} exec sleep 100000"
        case ExitsWhenTold(code):
            return f'{begun} while [ ! -e "$1.go" ]; do sleep 0.05; done; exit {code}'
        case IgnoresSigterm():
            return f"trap '' TERM; {begun} exec sleep 100000"
        case LeavesChild(code):
            # The child is orphaned at once, in a session of its own, without our variables
            # or descriptors; it alone says that the work has begun.
            child = 'env -i setsid /bin/sh -c \'echo begun >> "$1"; exec sleep 100000\' sh "$1"'
            return f"({child} >/dev/null 2>&1 </dev/null &); exit {code}"
        case _:
            assert_never(work)
