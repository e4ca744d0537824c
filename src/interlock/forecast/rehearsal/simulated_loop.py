"""An event loop without a clock, a socket or luck: the same seed gives the same run.

Everything of a world runs on one such loop in one thread. The loop knows *processes*: callbacks
belong to the process in whose context they were made. Callbacks of one process run in the order
they were made, as asyncio promises; which process goes next is drawn from the seed. A process can
be killed in the middle of anything, and paused and resumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: How many callbacks may run before a world is said to spin; most worlds need a few thousand.
MOST_STEPS = 200_000


class SpinningError(Exception):
    """Callbacks keep making callbacks, and time hardly moves."""


class SimProcess:
    """A process of the operating system: what lives, stands still and dies together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused = False
        self.ready: deque[SimHandle] = deque()
        #: Held so that the collector does not unwind the tasks of a killed process, which
        #: would run their `finally` blocks: a killed process runs nothing any more.
        self.tasks: list[asyncio.Task[Any]] = []
        self.context = copy_context()
        self.context.run(_CURRENT.set, self)

    def hold(self, task: asyncio.Task[Any]) -> None:
        """Keep a task until it is done."""
        if len(self.tasks) > 512:
            self.tasks = [held for held in self.tasks if not held.done()]
        self.tasks.append(task)

    def __repr__(self) -> str:
        return f"SimProcess({self.name!r})"


#: Whose code is running.
_CURRENT: ContextVar[SimProcess] = ContextVar("process")


def _nothing() -> None:
    """What a cancelled handle would call."""


class SimHandle(asyncio.TimerHandle):
    """A callback of a process, now or at a moment."""

    __slots__ = ("process",)

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context,
        when: float = 0.0,
    ) -> None:
        # The base's own start is passed over: it asks the loop for its debug mode each time.
        self._callback = callback
        self._args = args
        self._context = context
        self._cancelled = False
        self._when = when
        self.process: SimProcess = context[_CURRENT]

    def cancel(self) -> None:
        """Make sure that the callback does not run any more."""
        self._cancelled = True
        # As asyncio does: what is not to be called any more is not held either.
        self._callback = _nothing
        self._args = ()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled

    def when(self) -> float:
        """The moment it is due, in the loop's seconds."""
        return self._when

    def run(self) -> None:
        """Run the callback in the context it was made in."""
        self._context.run(self._callback, *self._args)

    def __repr__(self) -> str:
        return f"SimHandle({self._callback!r})"


class SimLoop(asyncio.BaseEventLoop):
    """Simulated time, seeded order, processes that die."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._now_us = 0
        self._timers: list[tuple[int, int, SimHandle]] = []
        self._made = 0
        self.processes: list[SimProcess] = []
        #: Callbacks that were run so far.
        self.steps = 0
        #: What was raised where nobody could catch it.
        self.errors: list[str] = []
        #: Code that belongs to no other process: the script and the checks.
        self.world = self.start_process("world")

    # Processes

    def start_process(self, name: str) -> SimProcess:
        """A new process, with nothing to run yet."""
        process = SimProcess(name)
        self.processes.append(process)
        return process

    def kill(self, process: SimProcess) -> None:
        """Nothing of the process runs any more, `finally` blocks included."""
        process.alive = False
        process.ready.clear()

    def spawn(self, process: SimProcess, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine as part of a process."""
        return process.context.copy().run(self.create_task, work)

    async def freeze(self) -> None:
        """Never return: how a killed process looks from inside."""
        await self.create_future()

    # Time

    def time(self) -> float:
        """Seconds since the world began."""
        return self._now_us / 1e6

    @property
    def now_us(self) -> int:
        """Microseconds since the world began; whole, so that no moment is lost to rounding."""
        return self._now_us

    # What asyncio asks of a loop

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimHandle:
        """Run a callback after those that its process already waits to run."""
        handle = SimHandle(callback, args, context if context is not None else self._context())
        if handle.process.alive:
            handle.process.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> SimHandle:
        """Run a callback once time has passed."""
        return self.call_at_us(
            self._now_us + max(0, math.ceil(delay * 1e6)), callback, *args, context=context
        )

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> SimHandle:
        """Run a callback at a moment of `time`."""
        return self.call_at_us(math.ceil(when * 1e6 - 1e-3), callback, *args, context=context)

    def call_at_us(
        self,
        when_us: int,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> SimHandle:
        """Run a callback at a microsecond."""
        made = context if context is not None else self._context()
        handle = SimHandle(callback, args, made, when_us / 1e6)
        self._made += 1
        heapq.heappush(self._timers, (when_us, self._made, handle))
        return handle

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """A task of the process that asks for it."""
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, name="task", context=context)
        if name is not None:
            task.set_name(str(name))
        holder = _CURRENT.get(None) if context is None else context.get(_CURRENT)
        (holder or self.world).hold(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Remember what nobody caught."""
        error = context.get("exception")
        self.errors.append(f"{context.get('message')}: {error!r}")

    def get_debug(self) -> bool:
        """Debugging of asyncio itself would read the real clock."""
        return False

    def _context(self) -> Context:
        if _CURRENT.get(None) is None:
            return self.world.context.copy()
        return copy_context()

    # Running

    def run_until(self, moment: float) -> None:
        """Run everything that is due up to a moment of `time`, and end there."""
        limit_us = math.ceil(moment * 1e6)
        with self._running():
            while self._drain() and self._advance(limit_us):
                pass
        self._now_us = max(self._now_us, limit_us)

    def run(self, work: Coroutine[Any, Any, T], *, within: float = 3600.0) -> T:
        """Run a coroutine of the world to its end.

        Raises:
            TimeoutError: It did not end within that much simulated time.
        """
        task = self.spawn(self.world, work)
        limit_us = self._now_us + math.ceil(within * 1e6)
        with self._running():
            while not task.done():
                if not self._step() and not self._advance(limit_us):
                    raise TimeoutError(f"not done within {within} simulated seconds")
        return task.result()

    def run_in_executor(
        self,
        executor: Executor | None,  # noqa: ARG002
        func: Callable[[*Ts], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        """Threads have no place in simulated time: what is meant for one is done at once."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def close(self) -> None:
        """Unwind every task that is left, when nobody looks any more."""
        for process in self.processes:
            process.alive = False
            process.ready.clear()
            for task in process.tasks:
                if not task.done():
                    _unwind(task)
            process.tasks.clear()
        self._timers.clear()
        super().close()

    def __del__(self) -> None:
        """A loop without sockets that never ran has nothing to close."""

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Be the running loop of this thread for a while; one world may try out another."""
        assert not self.is_closed(), "this world is over"
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            yield
        finally:
            events._set_running_loop(outer)

    def _drain(self) -> bool:
        while self._step():
            if self.steps > MOST_STEPS:
                raise SpinningError(f"more than {MOST_STEPS} callbacks by {self.time():.6f} s")
        return True

    def _step(self) -> bool:
        """Run a few callbacks of one process; False when nobody has any."""
        able = [p for p in self.processes if p.ready and not p.paused]
        if not able:
            return False
        process = able[0] if len(able) == 1 else able[int(self._random.random() * len(able))]
        ready = process.ready
        for _ in range(1 + int(self._random.random() * 4)):
            if not ready or process.paused:
                break
            handle = ready.popleft()
            if not handle._cancelled:
                self.steps += 1
                self._run_handle(handle)
        return True

    def _run_handle(self, handle: SimHandle) -> None:
        try:
            handle.run()
        except Exception as error:
            self.errors.append(f"{handle.process.name}: {error!r}")
            raise

    def _advance(self, limit_us: int) -> bool:
        """Go to the next moment at which something is due; False when there is none in time."""
        timers = self._timers
        while timers:
            when_us, _, handle = timers[0]
            if handle._cancelled or not handle.process.alive:
                heapq.heappop(timers)
                continue
            if when_us > limit_us:
                return False
            self._now_us = max(self._now_us, when_us)
            while timers and timers[0][0] <= self._now_us:
                due = heapq.heappop(timers)[2]
                if not due._cancelled and due.process.alive:
                    due.process.ready.append(due)
            return True
        return False


def current_process() -> SimProcess:
    """The process whose code is running."""
    return _CURRENT.get()


def _unwind(task: asyncio.Task[Any]) -> None:
    """Close a coroutine that will never run again, whatever its `finally` blocks say."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    work = task.get_coro()
    for _ in range(8):
        with contextlib.suppress(BaseException):
            work.close()
            return


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine that waits for nothing to its end.

    Raises:
        AssertionError: It waited for something.
    """
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise AssertionError(f"{work!r} waits")
