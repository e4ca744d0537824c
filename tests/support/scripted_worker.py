"""A worker that says what the test tells it to say, over a real connection."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from socket import SHUT_RDWR
from types import TracebackType
from typing import Any

from websockets.sync.client import ClientConnection, connect

from interlock.resources.steps import Elaboration
from interlock.runtimes.workers.protocol import (
    MAX_FRAME,
    PATH,
    PROTOCOL,
    Call,
    Cancel,
    Done,
    FromWorker,
    Hello,
    Orders,
    Outcome,
    Ref,
    Touch,
    Touched,
    Welcome,
    encode,
    read_from_server,
)
from interlock.testing.serving import PATIENCE_S

_numbers = itertools.count(1)


class ScriptedWorker:
    """Connects on `enter`, and keeps what it is told until the test asks for it."""

    def __init__(self, url: str, *functions: str, token: str = "", **hello: Any) -> None:
        number = next(_numbers)
        self._address = url.replace("http", "ws", 1) + PATH
        self.hello = Hello(
            protocol=PROTOCOL,
            worker=hello.pop("worker", f"host/{number}"),
            incarnation=hello.pop("incarnation", f"incarnation-{number}"),
            app=hello.pop("app", "broker:app"),
            functions=functions,
            **hello,
        )
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._stack = ExitStack()
        self._socket: ClientConnection | None = None
        self.calls: list[Call] = []
        self.recorded: list[Ref] = []
        self.refused: dict[Ref, str] = {}
        self.cancelled: list[Ref] = []
        self.welcome: Welcome | None = None

    @property
    def socket(self) -> ClientConnection:
        """The open connection."""
        assert self._socket is not None, "the worker is not connected"
        return self._socket

    def enter(self) -> ScriptedWorker:
        """Connect, and say hello."""
        self._socket = self._stack.enter_context(
            connect(
                self._address,
                open_timeout=PATIENCE_S,
                max_size=MAX_FRAME,
                ping_interval=None,
                compression=None,
                additional_headers=self._headers,
            )
        )
        self.say(self.hello)
        return self

    def say(self, message: FromWorker) -> None:
        """Send one message."""
        self.socket.send(encode(message).decode())

    def hear(self) -> None:
        """Take in one message of the server."""
        message = read_from_server(self.socket.recv(timeout=PATIENCE_S))
        match message:
            case Welcome():
                self.welcome = message
            case Orders(calls=calls, recorded=recorded, refused=refused):
                self.calls += calls
                self.recorded += recorded
                self.refused.update(refused)
            case Cancel(items=items):
                self.cancelled += items

    def next_call(self) -> Call:
        """Wait for something to do."""
        while not self.calls:
            self.hear()
        return self.calls.pop(0)

    def until_recorded(self, ref: Ref) -> None:
        """Wait until a result is durable."""
        while ref not in self.recorded:
            self.hear()

    def until_refused(self, ref: Ref) -> str:
        """Wait until a result is refused; returns why."""
        while ref not in self.refused:
            self.hear()
        return self.refused[ref]

    def until_cancelled(self, ref: Ref) -> None:
        """Wait until an attempt is to stop."""
        while ref not in self.cancelled:
            self.hear()

    def done(
        self,
        call: Call | Ref,
        returned: str = "",
        error: str = "",
        elaboration: Elaboration | None = None,
    ) -> Ref:
        """Say that an attempt is over."""
        ref = call.ref if isinstance(call, Call) else call
        outcome = Outcome(ref=ref, returned=returned, error=error, elaboration=elaboration)
        self.say(Done(items=(outcome,)))
        return ref

    def touch(self, call: Call, percent: float | None = None, text: str = "") -> None:
        """Say that an attempt goes on."""
        self.say(Touch(items=(Touched(ref=call.ref, percent=percent, text=text),)))

    def vanish(self) -> None:
        """Lose the connection without a word."""
        self.socket.socket.shutdown(SHUT_RDWR)

    def __enter__(self) -> ScriptedWorker:
        return self.enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
