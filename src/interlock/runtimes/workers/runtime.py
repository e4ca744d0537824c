"""The runtime of workers: a dispatcher on an event loop, for one term of leadership."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from interlock.control.clock import Clock, Timer
from interlock.control.runtime import Listener, TaskStop
from interlock.errors import FencedError
from interlock.resources.job import Job
from interlock.resources.tasks import TaskId, TaskOrder, TaskReport
from interlock.runtimes.workers.attempts import At, Worker, WorkerInfo
from interlock.runtimes.workers.dispatcher import Dispatcher
from interlock.runtimes.workers.protocol import Drain, FromServer, FromWorker, Hello

#: So much that is unread makes a worker one that does not read.
_MOST_UNREAD = 50_000


class Connection:
    """One worker's connection: what is to be sent on it, and whether it is to be closed."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._woken = asyncio.Event()
        #: Set once the worker has to go.
        self.closing = asyncio.Event()

    async def outgoing(self) -> Sequence[FromServer]:
        """Wait for something to be sent; nothing more comes once the connection is to be closed."""
        while self.closed is None:
            told = self.worker.mail.take()
            if told:
                return told
            self._woken.clear()
            await self._woken.wait()
        return ()

    @property
    def closed(self) -> str | None:
        """Why the worker has to go; None while it is welcome."""
        return self.worker.closed

    def wake(self) -> None:
        """There is mail, or the worker has to go."""
        self._woken.set()
        if self.closed is not None:
            self.closing.set()


class WorkerRuntime:
    """Implements `control.runtime.Runtime` by what connected workers do.

    `check` raises `FencedError` once the term is over: then nothing is handed out or reported any
    more, and workers are sent away to where the next leader is.
    """

    groups_orders = False

    def __init__(self, clock: Clock, check: Callable[[], None], dispatcher: Dispatcher) -> None:
        self._clock = clock
        self._check = check
        self.dispatcher = dispatcher
        self._connections: dict[Worker, Connection] = {}
        self._listeners: list[Listener] = []
        self._timer: Timer | None = None
        self._rings_at: float | None = None
        self._over: str | None = None

    # The control plane's side

    def inherit(self, jobs: Iterable[Job]) -> None:
        """Take over what may be at work somewhere, by the statuses of Jobs."""
        if self._over is None:
            self.dispatcher.inherit(jobs, self._at())
            self._flush()

    def heard(self, job: Job) -> None:
        """Take in what is durable of a Job by now."""
        if self._over is not None or not self.dispatcher.awaits(job.metadata.uid):
            return
        try:
            self._pass()
        except FencedError:
            return
        self.dispatcher.heard(job, self._at())
        self._flush()

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Have attempts made. A Job's status is what is durable of it, and was written before."""
        self._pass()
        for order in orders:
            self.dispatcher.launch(order, self._at())
        self._flush()

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Have attempts stopped: their workers are told."""
        self._pass()
        for stop in stops:
            self.dispatcher.stop(
                stop.task, stop.grace_s, self._at(), namespace=stop.namespace, job=stop.job
            )
        self._flush()

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Drop attempts that are over; whoever did them may forget them too."""
        self._pass()
        for task in tasks:
            self.dispatcher.forget(task)
        self._flush()

    async def reports(self) -> Sequence[TaskReport]:
        """What is known of every attempt."""
        self._pass()
        return self.dispatcher.reports()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear of every change."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def close(self, why: str) -> None:
        """Send all workers elsewhere and say nothing more, without a word about attempts."""
        if self._over is not None:
            return
        self._over = why
        if self._timer is not None:
            self._timer.cancel()
        self.dispatcher.close(why)
        for connection in self._connections.values():
            connection.wake()

    @property
    def is_over(self) -> bool:
        """Whether it has nothing more to say."""
        return self._over is not None

    def workers(self) -> Sequence[WorkerInfo]:
        """Every connected worker."""
        return self.dispatcher.workers()

    # The workers' side

    def enter(self, hello: Hello) -> Connection:
        """Let a worker in.

        Raises:
            RefusedWorkerError: It cannot be taken.
            FencedError: Another server leads.
        """
        self._pass()
        worker = self.dispatcher.enter(hello, self._at())
        connection = self._connections[worker] = Connection(worker)
        self._flush()
        return connection

    def hear(self, connection: Connection, message: FromWorker) -> None:
        """Take in what a worker says; once another server leads it is sent there instead."""
        if self._over is not None:
            return
        try:
            self._pass()
        except FencedError:
            return
        self.dispatcher.hear(connection.worker, message, self._at())
        self._flush()

    def leave(self, connection: Connection, why: str, *, is_ours: bool = False) -> None:
        """A connection is closed. What it had is cut off, unless this server is what ends."""
        self._connections.pop(connection.worker, None)
        if self._over is not None:
            return
        try:
            self._pass()
        except FencedError:
            return
        if is_ours:
            self.dispatcher.hear(connection.worker, Drain(), self._at())
        else:
            self.dispatcher.leave(connection.worker, why, self._at())
        self._flush()

    def has(self, connection: Connection, task: TaskId) -> bool:
        """Whether what this worker says of an attempt counts."""
        return self._over is None and self.dispatcher.has(connection.worker, task)

    # Both

    def _at(self) -> At:
        return At(self._clock.now(), self._clock.monotonic())

    def _pass(self) -> None:
        """Pass the fence; from the first time that it is shut nothing is said any more.

        Raises:
            FencedError: Another server leads.
        """
        if self._over is not None:
            raise FencedError(self._over)
        try:
            self._check()
        except FencedError as error:
            self.close(str(error))
            raise

    def _flush(self) -> None:
        """Tell what is new, wake who has mail, and set the clock."""
        for worker in self.dispatcher.take_dirty():
            if len(worker.mail) > _MOST_UNREAD and worker.closed is None:
                self.dispatcher.dismiss(worker, "it does not read what it is told")
            connection = self._connections.get(worker)
            if connection is not None:
                connection.wake()
        news = self.dispatcher.take_news()
        if news:
            for listener in tuple(self._listeners):
                listener(news)
        self._arm()

    def _arm(self) -> None:
        """Have the clock ring in time. One that rings too early is not set anew every time."""
        rings_at = self.dispatcher.next_at()
        if rings_at is None or (self._rings_at is not None and self._rings_at <= rings_at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = rings_at
        wait_s = max(0.0, rings_at - self._clock.monotonic())
        self._timer = self._clock.call_later(wait_s, self._ring)

    def _ring(self) -> None:
        self._timer = self._rings_at = None
        try:
            self._pass()
        except FencedError:
            return
        self.dispatcher.tick(self._at())
        self._flush()
