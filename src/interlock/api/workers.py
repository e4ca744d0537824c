"""The door of workers: one WebSocket each, and the list of those who are connected.

A worker that says what it must not say is sent away with the reason, and so is one that does not
read. Nobody waits for it but itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from interlock.api.answers import Answer, bad_request, json_answer, unavailable
from interlock.api.requests import SOCKET, Request, Send
from interlock.api.routing import OnPath, Route
from interlock.errors import FencedError
from interlock.resources.tasks import TaskId
from interlock.runtimes.workers.admittance import RefusedWorkerError
from interlock.runtimes.workers.attempts import WorkerInfo, task_of
from interlock.runtimes.workers.protocol import (
    MAX_FRAME,
    PATH,
    BadMessage,
    FromWorker,
    Hello,
    Wrote,
    encode,
    read_from_worker,
)
from interlock.runtimes.workers.runtime import Connection, WorkerRuntime

#: What a worker needs the right to, and those who ask which there are.
WORKER_RIGHT = OnPath("get")
WORKERS_PATH = "/workers"
#: A worker says who it is within this.
_HELLO_S = 20.0
#: What is still to be read by one that is sent away it may read for so long.
_LAST_WORDS_S = 5.0
#: The close codes of WebSockets.
_GOING_AWAY, _BAD_MESSAGE, _TOO_LONG, _RESTART, _LATER = 1001, 1002, 1009, 1012, 1013

#: The runtime of the present term; None while this server does not lead.
Present = Callable[[], WorkerRuntime | None]


class Writing(Protocol):
    """Keeps what attempts write."""

    async def write(self, task: TaskId, text: str) -> None:
        """Add lines to the output of an attempt."""
        ...


class WorkerList(Struct, frozen=True):
    """Every connected worker."""

    items: Sequence[WorkerInfo]


class _GoneError(Exception):
    """The connection is over; the message says why."""

    def __init__(self, why: str, code: int = 0, *, is_ours: bool = False) -> None:
        super().__init__(why)
        #: With which the connection is still to be closed; 0 when it is closed.
        self.code = code
        #: Whether this server ends, not the worker.
        self.is_ours = is_ours


class WorkerDoor:
    """Serves workers for whoever leads here."""

    def __init__(self, present: Present, output: Writing | None = None) -> None:
        self._present = present
        self._output = output

    def routes(self) -> tuple[Route, ...]:
        """What is served, and who may ask for it."""
        return (
            Route(
                method=SOCKET,
                path=PATH,
                right=WORKER_RIGHT,
                serve=self._serve,
                gives="orders for a worker, which answers with results",
                lasts=True,
            ),
            Route(
                method="GET",
                path=PATH,
                right=WORKER_RIGHT,
                serve=_refuse,
                only_refuses=True,
                gives="nothing: only a WebSocket is served",
            ),
            Route(
                method="GET",
                path=WORKERS_PATH,
                right=WORKER_RIGHT,
                serve=self._list,
                gives="the workers that are connected",
                shows=WorkerList,
                refusals=(503,),
            ),
        )

    async def _list(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        return json_answer(WorkerList(self._leading().workers()))

    def _leading(self) -> WorkerRuntime:
        runtime = self._present()
        if runtime is None or runtime.is_over:
            raise unavailable("this server does not lead: workers are served where it leads")
        return runtime

    async def _serve(self, request: Request, send: Send) -> None:
        runtime = self._leading()
        await request.receive()
        await send({"type": "websocket.accept"})
        try:
            hello = await self._hello(request)
            connection = runtime.enter(hello)
        except _GoneError as gone:
            await _close(send, gone.code, str(gone))
            return
        except RefusedWorkerError as refused:
            await _close(send, _BAD_MESSAGE, str(refused))
            return
        except FencedError as fenced:
            await _close(send, _LATER, str(fenced))
            return
        end = _GoneError("its connection was ended")
        try:
            end = await self._converse(runtime, connection, request, send)
        finally:
            runtime.leave(connection, str(end), is_ours=end.is_ours)
        if end.code:
            await _close(send, end.code, str(end))

    async def _hello(self, request: Request) -> Hello:
        try:
            async with asyncio.timeout(_HELLO_S):
                said = await _receive(request)
        except TimeoutError:
            raise _GoneError("it did not say hello", _BAD_MESSAGE) from None
        if not isinstance(said, Hello):
            raise _GoneError("expected a hello first", _BAD_MESSAGE)
        return said

    async def _converse(
        self, runtime: WorkerRuntime, connection: Connection, request: Request, send: Send
    ) -> _GoneError:
        """Listen and talk until either side ends it; returns why it ended."""
        listening = asyncio.create_task(self._listen(runtime, connection, request))
        talking = asyncio.create_task(_talk(connection, send))
        closing = asyncio.create_task(connection.closing.wait())
        tasks = (listening, talking, closing)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if closing.done() and not listening.done():
                # What is being sent may still arrive; whoever does not read is not waited for.
                await asyncio.wait((talking,), timeout=_LAST_WORDS_S)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        if connection.closed is not None:
            return _GoneError(connection.closed, _LATER, is_ours=runtime.is_over)
        for end in ended:
            if isinstance(end, _GoneError):
                return end
        return _GoneError("the connection broke")

    async def _listen(
        self, runtime: WorkerRuntime, connection: Connection, request: Request
    ) -> None:
        while True:
            said = await _receive(request)
            if not isinstance(said, Wrote):
                runtime.hear(connection, said)
            elif self._output is not None and said.text:
                task = task_of(said.ref)
                if runtime.has(connection, task):
                    # Awaited: what is said next may be that the attempt is over.
                    await self._output.write(task, said.text)


async def _refuse(request: Request, send: Send) -> Answer:  # noqa: ARG001
    raise bad_request("workers connect here by WebSocket")


async def _talk(connection: Connection, send: Send) -> None:
    while told := await connection.outgoing():
        for message in told:
            await send({"type": "websocket.send", "text": encode(message).decode()})


async def _receive(request: Request) -> FromWorker:
    """The next message of a worker.

    Raises:
        _GoneError: There is none, or none that can be understood.
    """
    event = await request.receive()
    if event["type"] != "websocket.receive":
        code = event.get("code", 0)
        reason = event.get("reason") or f"the connection was closed with code {code}"
        raise _GoneError(reason, is_ours=code == _RESTART)
    frame: Any = event.get("text") or event.get("bytes") or b""
    if len(frame) > MAX_FRAME:
        raise _GoneError(f"a message is longer than {MAX_FRAME} bytes", _TOO_LONG)
    try:
        return read_from_worker(frame)
    except (BadMessage, msgspec.MsgspecError, UnicodeError) as error:
        raise _GoneError(f"a message cannot be understood: {error}", _BAD_MESSAGE) from error


async def _close(send: Send, code: int, reason: str) -> None:
    """Close a connection; its reason may be 123 bytes long."""
    short = reason.encode()[:123].decode(errors="ignore")
    with suppress(Exception):  # It may be closed already.
        await send({"type": "websocket.close", "code": code, "reason": short})
