"""The wire of the client with threads: pooled connections, and plans carried out on them."""

from __future__ import annotations

import threading
from collections.abc import Generator
from time import monotonic
from typing import Any, TypeVar

from interlock.client.api import Api, query_of
from interlock.client.errors import CommandError, UnreachableError
from interlock.client.http_client import Answer, Wire
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

T = TypeVar("T")
#: So many connections are kept for the next request.
_KEPT = 16


class SyncWire:
    """The way to one server, for any number of threads."""

    def __init__(self, target: Target, timeout_s: float) -> None:
        self.target = target
        self._timeout_s = timeout_s
        self._idle: list[Wire] = []
        self._lock = threading.Lock()
        self._is_closed = threading.Event()

    def close(self) -> None:
        """Let all connections go; whoever pauses goes on at once."""
        self._is_closed.set()
        with self._lock:
            idle, self._idle = self._idle, []
        for wire in idle:
            wire.close()

    def run(self, plan: Plan[T]) -> T:
        """Carry out a plan that hands out nothing."""
        steps = self.iterate(plan)
        try:
            while True:
                next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def iterate(self, plan: Plan[Any]) -> Generator[Any, None, Any]:
        """Carry out a plan, and hand out what it hands out."""
        run = _Run(self)
        try:
            effect = next(plan)
            while True:
                if isinstance(effect, Emit):
                    yield effect.value
                    effect = plan.send(None)
                    continue
                try:
                    result = run.do(effect)
                except CommandError as error:
                    effect = plan.throw(error)
                else:
                    effect = plan.send(result)
        except StopIteration as stop:
            return stop.value
        except CommandError as error:
            raise error_of(error) from None
        finally:
            run.close()
            plan.close()

    def exchange(self, call: Call) -> Reply:
        """Ask, and read the whole answer."""
        wire = self._take()
        wire.answer_s = self._timeout_s + call.held_s
        answer = wire.request(call.method, path_of(call), headers_of(call), call.body)
        reply = self.read(answer)
        wire.keep(answer)
        self._give_back(wire)
        return reply

    def open(self, call: Call) -> tuple[Reply, Answer]:
        """Open a stream; the body of a refusal is read."""
        answer = Wire(self.target).stream(call.method, path_of(call), headers_of(call), call.body)
        if answer.status < 300:
            return Reply(answer.status, answer.headers, b""), answer
        reply = self.read(answer)
        answer.close()
        return reply, answer

    def read(self, answer: Answer) -> Reply:
        """The whole answer."""
        try:
            return Reply(answer.status, answer.headers, answer.read())
        except OSError as error:
            answer.close()
            raise lost(self.target, error) from None

    def pause(self, seconds: float) -> None:
        """Let time pass, unless the client is closed."""
        self._is_closed.wait(seconds)

    def _take(self) -> Wire:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return Wire(self.target)

    def _give_back(self, wire: Wire) -> None:
        with self._lock:
            if len(self._idle) < _KEPT and not self._is_closed.is_set():
                self._idle.append(wire)
                return
        wire.close()


class _Run:
    """One plan being carried out; it has one stream at most."""

    def __init__(self, wire: SyncWire) -> None:
        self._wire = wire
        self._answer: Answer | None = None

    def do(self, effect: Effect) -> Any:
        """Do what the plan asks."""
        match effect:
            case Call():
                return self._wire.exchange(effect)
            case Open(call):
                self.close()
                reply, self._answer = self._wire.open(call)
                return reply
            case Receive(timeout_s):
                return self._receive(timeout_s)
            case Pause(seconds):
                return self._wire.pause(seconds)
            case Tick():
                return monotonic()
            case Renew():
                return self._wire.target.renew()
            case Work(do):
                return do_work(self._wire.target, do)
            case Emit():
                raise AssertionError("whoever iterates takes it")

    def _receive(self, timeout_s: float | None) -> Any:
        assert self._answer is not None, "Open comes first"
        if not self._answer.ready(timeout_s):
            return OVERDUE
        try:
            return self._answer.receive()
        except OSError as error:
            raise lost(self._wire.target, error) from None

    def close(self) -> None:
        """Let the stream go."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None


def do_work(target: Target, do: Any) -> Any:
    """Have the command line's client work something out, on a connection of its own."""
    api = Api(target)
    api.warns = False
    try:
        return do(api)
    finally:
        api.close()


def lost(target: Target, error: OSError) -> UnreachableError:
    """That an answer broke off."""
    return UnreachableError(
        f"lost the connection to {target.url} ({told_of(error)})",
        hint=target.hint,
        sent=True,
    )


def told_of(error: OSError) -> str:
    """What went wrong; an answer that did not come in time says nothing by itself."""
    return error.strerror or str(error) or "no answer in time"


def path_of(call: Call) -> str:
    """The path and the query of a request."""
    return call.path + query_of(call.query)


def headers_of(call: Call) -> dict[str, str]:
    """The headers of a request."""
    headers = {"Accept": call.accept, **call.headers}
    if call.body:
        headers["Content-Type"] = call.content_type
    return headers
