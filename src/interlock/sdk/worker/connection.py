"""The connection of a worker process: made again for ever, after growing pauses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    WebSocketException,
)

from interlock.client.errors import BAD_INPUT, FORBIDDEN, CommandError
from interlock.client.target import Target
from interlock.client.tls import context_of
from interlock.runtimes.workers.protocol import (
    MAX_FRAME,
    PATH,
    BadMessage,
    FromWorker,
    Welcome,
    encode,
    read_from_server,
)
from interlock.sdk.worker.desk import Desk

#: The pauses before the connection is tried again grow up to this.
_LONGEST_PAUSE_S = 30.0
_FIRST_PAUSE_S = 0.1
_ANSWERS_WITHIN_S = 20.0
#: With this code a server closes what it cannot talk with, and the reason says why.
_REFUSED = 1002
_NOT_ALLOWED = (401, 403)


class Connection:
    """Carries messages between the books and the server."""

    def __init__(
        self, desk: Desk, find: Callable[[], Target], say: Callable[[str], None], loaded: str
    ) -> None:
        self._desk = desk
        self._find = find
        self._say = say
        self._loaded = loaded
        self._changed = asyncio.Event()
        self._was_connected = False
        self._told = ""
        self._luck = Random(loaded)
        self._pauses = self._growing()

    def changed(self) -> None:
        """Something is to be sent; called on the loop."""
        self._changed.set()

    async def serve(self) -> None:
        """Take orders until the books say that it is over.

        Raises:
            CommandError: The server cannot be found, or does not want this worker, from the first.
        """
        while not self._desk.is_over:
            try:
                await self._serve_once(self._find())
            except CommandError as error:
                if not self._was_connected:
                    raise
                self._tell_lost(error.message)
            except (OSError, WebSocketException, TimeoutError, BadMessage) as error:
                self._tell_lost(_why(error))
            if not self._desk.is_over:
                await self._pause(next(self._pauses))

    async def _serve_once(self, target: Target) -> None:
        try:
            async with _opened(target) as socket:
                await self._converse(socket, target)
        except InvalidStatus as error:
            raise _refused_by(error, target) from None
        except ConnectionClosed as error:
            if error.rcvd is not None and error.rcvd.code == _REFUSED:
                raise CommandError(
                    f"{target.url} does not take this worker: {error.rcvd.reason}", code=BAD_INPUT
                ) from None
            raise

    async def _converse(self, socket: ClientConnection, target: Target) -> None:
        await socket.send(encode(self._desk.hello()).decode())
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            first = read_from_server(await socket.recv())
        if not isinstance(first, Welcome):
            raise msgspec.DecodeError(f"expected a welcome, found {type(first).__name__}")
        self._desk.connected(first)
        self._pauses = self._growing()
        self._tell_connected(target)
        tasks = [asyncio.create_task(self._read(socket)), asyncio.create_task(self._send(socket))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ended:
            if isinstance(end, Exception):
                raise end

    async def _read(self, socket: ClientConnection) -> None:
        async for frame in socket:
            self._desk.read(read_from_server(frame))
            self._changed.set()
        if not self._desk.is_over:
            raise ConnectionResetError(socket.close_reason or "it ended the connection")

    async def _send(self, socket: ClientConnection) -> None:
        """Send what there is to be sent, and touch what is at work, until nothing is left."""
        loop = asyncio.get_running_loop()
        touch_at = loop.time()
        while not self._desk.is_over:
            is_due = loop.time() >= touch_at
            self._changed.clear()
            for message in self._desk.take(touch=is_due):
                await self._send_one(socket, message)
            if is_due:
                touch_at = loop.time() + self._desk.touch_every_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(touch_at):
                    await self._changed.wait()
        await socket.close()

    async def _send_one(self, socket: ClientConnection, message: FromWorker) -> None:
        await socket.send(encode(message).decode())

    async def _pause(self, seconds: float) -> None:
        """Wait before the next try, unless there is nothing to wait for any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._desk.is_over:
                    self._changed.clear()
                    await self._changed.wait()

    def _growing(self) -> Iterator[float]:
        """Longer and longer, and not the same for workers that lost one server together."""
        pause = _FIRST_PAUSE_S
        while True:
            yield pause * self._luck.uniform(0.5, 1.0)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _tell_connected(self, target: Target) -> None:
        if not self._was_connected:
            self._say(f"{self._loaded}  ·  {target.url}  ·  waits for work")
        elif self._told:
            self._say(f"connected to {target.url} again")
        self._was_connected, self._told = True, ""

    def _tell_lost(self, why: str) -> None:
        if why != self._told:
            self._say(f"no connection: {why}; it is tried again")
        self._told = why


def _opened(target: Target) -> connect:
    """A connection to be made, as the target asks."""
    if not target.may_tell_secrets:
        raise CommandError(
            f"the token would travel to {target.url} in the clear",
            hint="use https://; or, when something else encrypts, --insecure-token",
            code=BAD_INPUT,
        )
    headers = list(target.headers)
    if target.token:
        headers.append(("Authorization", f"Bearer {target.token}"))
    scheme = "wss" if target.is_https else "ws"
    tls: dict[str, Any] = {}
    if target.is_https:
        tls = {"ssl": context_of(target), "server_hostname": target.tls_name or target.host}
    return connect(
        f"{scheme}://{target.authority}{target.base}{PATH}",
        additional_headers=headers,
        compression=None,
        max_size=2 * MAX_FRAME,
        open_timeout=_ANSWERS_WITHIN_S,
        proxy=target.proxy_url or None,
        **tls,
    )


def _refused_by(error: InvalidStatus, target: Target) -> CommandError | OSError:
    status = error.response.status_code
    if status in _NOT_ALLOWED:
        return CommandError(
            f"{target.url} does not let this worker in (HTTP {status})",
            hint="give the token of a worker with --token-file or INTERLOCK_TOKEN_FILE",
            code=FORBIDDEN,
        )
    if status == 404:
        return CommandError(
            f"{target.url} serves no workers (HTTP 404)", hint=target.hint, code=BAD_INPUT
        )
    body = (error.response.body or b"").decode(errors="replace")[:200].strip()
    return OSError(f"{target.url} answered with HTTP {status} {body}".rstrip())


def _why(error: Exception) -> str:
    if isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.reason:
        return error.rcvd.reason
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, InvalidHandshake):
        return f"no WebSocket is served there ({error})"
    return str(error) or type(error).__name__
