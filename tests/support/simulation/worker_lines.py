"""The connections of simulated workers: what they are told and say, as frames, until they break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from interlock.errors import FencedError
from interlock.forecast.rehearsal.simulated_loop import SimProcess
from interlock.runtimes.workers.dispatcher import RefusedWorkerError
from interlock.runtimes.workers.protocol import (
    FromServer,
    FromWorker,
    Hello,
    encode,
    read_from_server,
    read_from_worker,
)
from interlock.runtimes.workers.runtime import Connection, WorkerRuntime
from interlock.runtimes.workers.terms import WorkerTerms
from support.simulation.faults import Wire

if TYPE_CHECKING:
    from support.simulation.worker_life import SimWorker
    from support.simulation.workers import Crowd


class Server(Struct, frozen=True):
    """A control plane, as workers reach it."""

    name: str
    process: SimProcess
    terms: WorkerTerms


class Line:
    """One connection of a worker: frames in order, until it breaks."""

    def __init__(self, crowd: Crowd, worker: SimWorker, server: Server) -> None:
        self._crowd = crowd
        self.worker = worker
        self.server = server
        self.is_broken = False
        #: Whether the server has answered.
        self.is_welcome = False
        self._runtime: WorkerRuntime | None = None
        self._connection: Connection | None = None
        self._wire = Wire(
            crowd.loop,
            worker.process,
            server.process,
            crowd.weather,
            crowd.luck,
            lambda _: None,
            in_order=True,
        )

    def cut(self) -> None:
        """It breaks: what is on its way is lost, and each side notices by itself."""
        if self.is_broken:
            return
        self.is_broken = True
        self._crowd.lines.pop(self, None)
        self._crowd.later(self.worker.process, self.worker.lost, self)
        self._crowd.later(self.server.process, self._left, "the connection broke")

    # The worker's side

    def open(self) -> None:
        """Say hello."""
        frame = encode(self.worker.desk.hello())
        self._wire.send(self._enter, frame)

    def say(self, message: FromWorker) -> None:
        """Send a message."""
        self._wire.send(self._hear, encode(message))
        if self._crowd.happens(self._crowd.rates.breaks):
            self.cut()

    def _told(self, frame: bytes) -> None:
        if not self.is_broken:
            self.worker.hear(self, read_from_server(frame))

    def _closed(self) -> None:
        self.is_broken = True
        self.worker.lost(self)

    # The server's side

    def _enter(self, frame: bytes) -> None:
        runtime = self.server.terms.runtime
        hello = read_from_worker(frame)
        assert isinstance(hello, Hello)
        if self.is_broken or runtime is None or runtime.is_over:
            self._wire.reply(self._closed)
            return
        try:
            self._connection = runtime.enter(hello)
        except (FencedError, RefusedWorkerError):
            self._wire.reply(self._closed)
            return
        self._runtime = runtime
        self._crowd.judge.entered(runtime, self._connection, hello)
        self._crowd.loop.spawn(self.server.process, self._talk(self._connection))

    def _hear(self, frame: bytes) -> None:
        if self._connection is None or self._runtime is None or self.is_broken:
            return
        message = read_from_worker(frame)
        self._crowd.judge.heard(self._runtime, self._connection, message)
        self._runtime.hear(self._connection, message)

    async def _talk(self, connection: Connection) -> None:
        while told := await connection.outgoing():
            for message in told:
                self._send(message)
        self._left(connection.closed or "it is over")
        self._wire.reply(self._closed)

    def _send(self, message: FromServer) -> None:
        assert self._runtime is not None
        self._crowd.judge.sends(self._runtime, self.worker.incarnation, message)
        self._wire.reply(self._told, encode(message))
        if self._crowd.happens(self._crowd.rates.breaks):
            self.cut()

    def _left(self, why: str) -> None:
        self._crowd.lines.pop(self, None)
        runtime, connection = self._runtime, self._connection
        self._connection = None
        if runtime is not None and connection is not None:
            runtime.leave(connection, why, is_ours=runtime.is_over)
            # Whoever waits for something to be sent is woken, to find that nothing comes.
            connection.wake()
