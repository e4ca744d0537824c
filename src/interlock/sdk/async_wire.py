"""The wire of the client with an event loop: the same plans, on asyncio's streams.

Heads and bodies are read by the parser of the command line's client, so that the SDK needs no HTTP
library.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from interlock.client.errors import CommandError, UnreachableError
from interlock.client.http_client import ANSWER_S, Body, head_of, keep_secrets, parse_head
from interlock.client.target import Target
from interlock.sdk.effects import (
    OVERDUE,
    Call,
    Effect,
    Emit,
    Open,
    Pause,
    Plan,
    Receive,
    Renew,
    Reply,
    Tick,
    Work,
)
from interlock.sdk.errors import error_of
from interlock.sdk.wire import do_work, headers_of, lost, path_of, told_of

T = TypeVar("T")
#: So many connections are kept for the next request.
_KEPT = 16
#: So many requests are under way at a time, and beside them so many whose answers are held: who
#: waits for Jobs keeps nobody from asking.
_MOST, _MOST_HELD = 64, 512
_CONNECT_S = 10.0
_PART = 65536
#: The heads of answers are never longer.
_MOST_HEAD = 65_536


class Connection:
    """One connection, and the answer that is read from it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self._body = Body({}, empty=True)
        self._first = b""

    @property
    def is_usable(self) -> bool:
        """Whether the other side has not closed it, and the last answer was read to its end."""
        is_read = self._body.done and not self._body.until_close
        will_close = self.headers.get("connection", "").lower() == "close"
        return is_read and not will_close and not self._reader.at_eof()

    async def ask(self, head: bytes, body: bytes) -> None:
        """Send a request, and read the head of its answer."""
        self._writer.write(head + body)
        await self._writer.drain()
        status = 100
        while status == 100:
            found = await self._reader.readuntil(b"\r\n\r\n")
            status, pairs = parse_head(found.removesuffix(b"\r\n\r\n"))
        self.status, self.headers = status, dict(pairs)
        self._body = Body(self.headers, empty=status in (204, 304))

    async def receive(self) -> bytes | None:
        """The next part of the body, perhaps empty; None after its end."""
        if self._body.done:
            return None
        data = await self._reader.read(_PART)
        if data:
            return self._body.feed(data)
        if not self._body.until_close:
            raise ConnectionResetError("the server closed the connection in the middle")
        self._body.done = True
        return None

    async def read(self) -> bytes:
        """The whole body."""
        parts = []
        while (part := await self.receive()) is not None:
            parts.append(part)
        return b"".join(parts)

    def drop(self) -> None:
        """Let it go."""
        self._writer.close()

    async def close(self) -> None:
        """Let it go, and see it gone."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


class AsyncWire:
    """The way to one server, for any number of tasks of one event loop."""

    def __init__(self, target: Target, timeout_s: float) -> None:
        self.target = target
        self._timeout_s = timeout_s
        self._idle: list[Connection] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(_MOST)
        self._held_places = asyncio.Semaphore(_MOST_HELD)

    async def close(self) -> None:
        """Let all connections go."""
        self._stay_in_loop()
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    async def run(self, plan: Plan[T]) -> T:
        """Carry out a plan that hands out nothing."""
        driver = _Driver(self, plan)
        try:
            while True:
                await driver.step()
        except _Done as done:
            result: T = done.value
            return result
        finally:
            await driver.close()

    async def iterate(self, plan: Plan[Any]) -> AsyncGenerator[Any, None]:
        """Carry out a plan, and hand out what it hands out."""
        driver = _Driver(self, plan)
        try:
            while True:
                yield await driver.step()
        except _Done:
            return
        finally:
            await driver.close()

    async def exchange(self, call: Call) -> Reply:
        """Ask, and read the whole answer."""
        self._stay_in_loop()
        async with self._held_places if call.held_s else self._places:
            connection = await self._take()
            try:
                async with asyncio.timeout(self._timeout_s + call.held_s):
                    await self._ask(connection, call)
                    data = await connection.read()
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
                connection.drop()
                raise lost(self.target, _as_os_error(error)) from None
            except BaseException:
                connection.drop()
                raise
            self._give_back(connection)
            return Reply(connection.status, connection.headers, data)

    async def open(self, call: Call) -> tuple[Reply, Connection]:
        """Open a stream; the body of a refusal is read."""
        self._stay_in_loop()
        connection = await self._connect()
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._ask(connection, call)
                data = b"" if connection.status < 300 else await connection.read()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            connection.drop()
            raise lost(self.target, _as_os_error(error)) from None
        except BaseException:
            connection.drop()
            raise
        return Reply(connection.status, connection.headers, data), connection

    async def _ask(self, connection: Connection, call: Call) -> None:
        head = head_of(self.target, call.method, path_of(call), headers_of(call), call.body)
        await connection.ask(head, call.body)

    def _stay_in_loop(self) -> None:
        """Forget connections of an event loop that is no more."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._idle.clear()
            self._loop = loop
            self._places = asyncio.Semaphore(_MOST)
            self._held_places = asyncio.Semaphore(_MOST_HELD)

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable:
                return connection
            connection.drop()
        return await self._connect()

    def _give_back(self, connection: Connection) -> None:
        if connection.is_usable and len(self._idle) < _KEPT:
            self._idle.append(connection)
        else:
            connection.drop()

    async def _connect(self) -> Connection:
        target = self.target
        keep_secrets(target)
        context = None
        if target.is_https:
            from interlock.client.tls import context_of

            context = context_of(target)
        name = (target.tls_name or target.host) if context is not None else None
        try:
            async with asyncio.timeout(_CONNECT_S):
                if target.proxy_url:
                    from interlock.client.proxy import open_through

                    tunnel = await asyncio.to_thread(open_through, target)
                    pair = await asyncio.open_connection(
                        sock=tunnel, ssl=context, server_hostname=name, limit=_MOST_HEAD
                    )
                else:
                    pair = await asyncio.open_connection(
                        target.host,
                        target.port,
                        ssl=context,
                        server_hostname=name,
                        limit=_MOST_HEAD,
                    )
        except ssl.SSLError as error:
            from interlock.client.tls import refused_by

            raise refused_by(target, error) from None
        except OSError as error:
            told = told_of(error)
            raise UnreachableError(
                f"no answer from {target.url} ({told})", hint=target.hint
            ) from None
        sock = pair[1].get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Connection(*pair)


def _as_os_error(error: Exception) -> OSError:
    if isinstance(error, OSError):
        return error
    return ConnectionResetError("the server closed the connection")


class _Done(Exception):  # noqa: N818 - no error: a generator may not let StopIteration through
    def __init__(self, value: Any) -> None:
        self.value = value


class _Driver:
    """One plan being carried out; it has one stream at most."""

    def __init__(self, wire: AsyncWire, plan: Plan[Any]) -> None:
        self._wire = wire
        self._plan = plan
        self._stream: Connection | None = None
        self._result: Any = None

    async def step(self) -> Any:
        """Go on up to the next value that is handed out, which is returned.

        Raises:
            _Done: The plan has ended.
        """
        try:
            effect = self._plan.send(self._result)
            while not isinstance(effect, Emit):
                try:
                    result = await self._do(effect)
                except CommandError as error:
                    effect = self._plan.throw(error)
                else:
                    effect = self._plan.send(result)
        except StopIteration as stop:
            raise _Done(stop.value) from None
        except CommandError as error:
            raise error_of(error) from None
        self._result = None
        return effect.value

    async def _do(self, effect: Effect) -> Any:
        match effect:
            case Call():
                return await self._wire.exchange(effect)
            case Open(call):
                await self._let_go()
                reply, self._stream = await self._wire.open(call)
                return reply
            case Receive(timeout_s):
                return await self._receive(timeout_s)
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case Tick():
                return monotonic()
            case Renew():
                return await asyncio.to_thread(self._wire.target.renew)
            case Work(do):
                return await asyncio.to_thread(do_work, self._wire.target, do)
            case Emit():
                raise AssertionError("whoever iterates takes it")

    async def _receive(self, timeout_s: float | None) -> Any:
        assert self._stream is not None, "Open comes first"
        try:
            async with asyncio.timeout(timeout_s):
                return await self._stream.receive()
        except TimeoutError:
            return OVERDUE
        except OSError as error:
            raise lost(self._wire.target, error) from None

    async def _let_go(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.close()

    async def close(self) -> None:
        """Let the stream and the plan go."""
        self._plan.close()
        await self._let_go()
