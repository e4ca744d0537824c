"""What lies between a control plane and what it talks to, and all that goes wrong there."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any, TypeVar

from msgspec import Struct

from interlock.control.runtime import Listener, TaskStop
from interlock.errors import (
    ConflictError,
    ExpiredError,
    FencedError,
    InterlockError,
    UnavailableError,
)
from interlock.forecast.rehearsal.simulated_loop import SimLoop, SimProcess, run_now
from interlock.forecast.rehearsal.simulated_machine import Machine
from interlock.resources.metadata import Key, Resource
from interlock.resources.tasks import TaskId, TaskOrder, TaskReport
from interlock.store.contract import DeleteOptions, Event, EventType, Page, Selection, Store
from support.simulation.truth import Truth

T = TypeVar("T")
R = TypeVar("R", bound=Resource)


class FaultRates(Struct, frozen=True, kw_only=True):
    """How often each thing goes wrong, per call or per batch of events."""

    #: The caller dies before a write is sent, or after it took effect.
    crash_before: float = 0.0
    crash_after: float = 0.0
    #: A write is refused as if somebody else had been faster.
    conflict: float = 0.0
    #: An error comes back; a write did not take effect, or did.
    lost_before: float = 0.0
    lost_after: float = 0.0
    #: A request or its answer takes long.
    stall: float = 0.0
    longest_stall: float = 10.0
    #: Events come late, again, merged, or not at all because the watch has to begin anew.
    watch_late: float = 0.0
    watch_repeat: float = 0.0
    watch_merge: float = 0.0
    watch_expire: float = 0.0


CALM = FaultRates()


def draw_rates(random: Random) -> FaultRates:
    """Rates for one world. Many are zero: a world of one kind of trouble finds other bugs."""

    def rate(*choices: float) -> float:
        return random.choice((0.0, *choices))

    return FaultRates(
        crash_before=rate(0.0, 0.005, 0.03),
        crash_after=rate(0.0, 0.005, 0.03),
        conflict=rate(0.02, 0.2),
        lost_before=rate(0.01, 0.1),
        lost_after=rate(0.01, 0.1),
        stall=rate(0.01, 0.1),
        longest_stall=random.choice((0.5, 5.0, 20.0)),
        watch_late=rate(0.05, 0.5),
        watch_repeat=rate(0.1, 0.5),
        watch_merge=rate(0.1, 0.5),
        watch_expire=rate(0.005, 0.05),
    )


class Weather:
    """The rates that hold at this moment, for everybody."""

    def __init__(self, rates: FaultRates) -> None:
        self.rates = rates
        #: Until then the store answers nobody.
        self.stalled_until = 0.0


class Wire:
    """A connection from a process to a server; what the server does outlives the caller."""

    def __init__(
        self,
        loop: SimLoop,
        client: SimProcess,
        server: SimProcess,
        weather: Weather,
        random: Random,
        crash: Callable[[str], None],
        *,
        in_order: bool = False,
    ) -> None:
        self._loop = loop
        self.client = client
        self._server = server
        self.weather = weather
        self.random = random
        self._crash = crash
        #: Messages in one direction do not overtake each other, as on a socket.
        self._in_order = in_order
        self._there_us = 0
        self._back_us = 0

    async def call(self, what: str, do: Callable[[], T], *, key: Key | None = None) -> T:
        """Have the server do something. A `key` tells that it is a write that can conflict."""
        rates, luck = self.weather.rates, self.random.random()
        writes = not what.startswith(("get", "list", "reports"))
        if writes and luck < rates.crash_before:
            self._crash(f"before {what}")
            await self._loop.freeze()
        if key is not None and self.random.random() < rates.conflict:
            raise ConflictError(key, expected="this", found="another")
        fate = self.random.random()
        answer: asyncio.Future[T] = self._loop.create_future()
        self.send(self._serve, what, do, fate, writes, answer)
        return await answer

    def _serve(
        self,
        what: str,
        do: Callable[[], T],
        fate: float,
        writes: bool,
        answer: asyncio.Future[T],
    ) -> None:
        rates = self.weather.rates
        if fate < rates.lost_before:
            error: InterlockError = UnavailableError(f"{what}: the request was lost")
            self.reply(_fail, answer, error)
            return
        try:
            result = do()
        except InterlockError as refused:
            self.reply(_fail, answer, refused)
            return
        fate -= rates.lost_before
        if writes and fate < rates.crash_after:
            if self.client.alive:
                self._crash(f"after {what}")
        elif writes and fate < rates.crash_after + rates.lost_after:
            self.reply(_fail, answer, UnavailableError(f"{what}: the answer was lost"))
        else:
            self.reply(_settle, answer, result)

    def send(self, callback: Callable[..., None], *args: object) -> None:
        """Run a callback at the server, after the time it takes to get there."""
        self._there_us = self._travel(self._there_us, self._server, callback, args)

    def reply(self, callback: Callable[..., None], *args: object) -> None:
        """Run a callback at the client, if it still lives by then."""
        self._back_us = self._travel(self._back_us, self.client, callback, args)

    def _travel(
        self, not_before_us: int, where: SimProcess, callback: Any, args: tuple[object, ...]
    ) -> int:
        delay = self.delay()
        context = where.context.copy()
        arrives_us = self._loop.now_us + int(delay * 1e6)
        if self._in_order:
            arrives_us = max(arrives_us, not_before_us)
        if arrives_us > self._loop.now_us or self._in_order:
            self._loop.call_at_us(arrives_us, callback, *args, context=context)
        else:
            self._loop.call_soon(callback, *args, context=context)
        return arrives_us

    def delay(self) -> float:
        """How long a message takes."""
        luck = self.random.random()
        rates = self.weather.rates
        stalled = max(0.0, self.weather.stalled_until - self._loop.time())
        if luck < rates.stall:
            return stalled + self.random.uniform(0.0, rates.longest_stall)
        return stalled + (0.0 if luck < 0.6 else self.random.choice((0.0005, 0.002, 0.01)))


class FaultyStore:
    """The store as one process sees it."""

    def __init__(self, inner: Store, wire: Wire, loop: SimLoop, truth: Truth) -> None:
        self._inner = inner
        self._wire = wire
        self._loop = loop
        self._truth = truth
        self._watches: dict[BentWatch, None] = {}

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        """Store a new resource."""
        return await self._wire.call(
            f"create {resource.kind}",
            lambda: self._write(self._inner.create(resource, dry_run=dry_run)),
        )

    async def get(self, key: Key) -> Resource:
        """The newest version of a resource."""
        return await self._wire.call("get", lambda: run_now(self._inner.get(key)))

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace spec and metadata."""
        return await self._wire.call(
            f"update {resource.key}",
            lambda: self._write(self._inner.update(resource, dry_run=dry_run)),
            key=resource.key,
        )

    async def update_ties(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace finalizers and owners."""
        return await self._wire.call(
            f"update ties of {resource.key}",
            lambda: self._write(self._inner.update_ties(resource, dry_run=dry_run)),
            key=resource.key,
        )

    async def update_status(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace the status."""
        return await self._wire.call(
            f"update status of {resource.key}",
            lambda: self._write(self._inner.update_status(resource, dry_run=dry_run)),
            key=resource.key,
        )

    async def delete(
        self, key: Key, options: DeleteOptions | None = None, *, dry_run: bool = False
    ) -> Resource:
        """Remove a resource."""
        return await self._wire.call(
            f"delete {key}",
            lambda: self._write(self._inner.delete(key, options, dry_run=dry_run)),
            key=key,
        )

    def _write(self, work: Coroutine[Any, Any, T]) -> T:
        self._truth.writer = self._wire.client.name
        return run_now(work)

    async def list(
        self,
        kind: str,
        selection: Selection | None = None,
        *,
        limit: int | None = None,
        continue_token: str = "",
    ) -> Page:
        """The resources of a kind."""
        return await self._wire.call(
            f"list {kind}",
            lambda: run_now(
                self._inner.list(kind, selection, limit=limit, continue_token=continue_token)
            ),
        )

    def watch(
        self, kind: str, selection: Selection | None = None, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event]]]:
        """Changes after a version, as they come through."""
        inner = self._inner.watch(kind, selection, since=since)
        return BentWatch(inner, self._wire, self._loop, since, self._watches)

    def disconnect(self) -> None:
        """The process is gone: the server ends its watches."""
        for watch in tuple(self._watches):
            watch.disconnect()


class BentWatch(AbstractAsyncContextManager[AsyncIterator[Sequence[Event]]]):
    """A watch whose events come late, again or merged, and that breaks off."""

    def __init__(
        self,
        inner: AbstractAsyncContextManager[AsyncIterator[Sequence[Event]]],
        wire: Wire,
        loop: SimLoop,
        since: int,
        open_watches: dict[BentWatch, None],
    ) -> None:
        self._inner = inner
        self._wire = wire
        self._loop = loop
        self._since = since
        self._open = open_watches
        self._events: AsyncIterator[Sequence[Event]] | None = None
        self._told: deque[Event] = deque(maxlen=5)

    async def __aenter__(self) -> AsyncIterator[Sequence[Event]]:
        await self._wait(self._wire.delay())
        if self._wire.random.random() < self._wire.weather.rates.watch_expire:
            raise ExpiredError(self._since, self._since + 1)
        self._events = await self._inner.__aenter__()
        self._open[self] = None
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.disconnect()

    def __aiter__(self) -> BentWatch:
        return self

    async def __anext__(self) -> Sequence[Event]:
        assert self._events is not None
        events = await self._events.__anext__()
        rates, random = self._wire.weather.rates, self._wire.random
        await self._wait(self._wire.delay())
        if random.random() < rates.watch_late:
            await self._wait(random.uniform(0.0, rates.longest_stall))
        if random.random() < rates.watch_expire:
            raise ExpiredError(events[0].version, events[-1].version)
        if random.random() < rates.watch_merge:
            events = _merged(events)
        again = tuple(self._told) if random.random() < rates.watch_repeat else ()
        self._told.extend(events)
        return (*again, *events)

    def disconnect(self) -> None:
        """End the watch on the server's side."""
        if self._open.pop(self, self) is None:
            with contextlib.suppress(StopAsyncIteration):
                run_now(_leave(self._inner))

    async def _wait(self, seconds: float) -> None:
        if seconds > 0:
            future: asyncio.Future[None] = self._loop.create_future()
            self._loop.call_later(seconds, _settle, future)
            await future


def _settle(future: asyncio.Future[Any], result: object = None) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: InterlockError) -> None:
    if not future.done():
        future.set_exception(error)


async def _leave(watch: AbstractAsyncContextManager[object]) -> None:
    await watch.__aexit__(None, None, None)


def _merged(events: Sequence[Event]) -> Sequence[Event]:
    """Only the last event of each resource, as a store may tell it to one who is behind."""
    last: dict[object, Event] = {}
    for event in events:
        key = event.resource.key if event.resource is not None else None
        last.pop(key, None)
        last[key] = event
    return [
        Event(EventType.MODIFIED, event.resource, event.version)
        if event.type is EventType.ADDED
        else event
        for event in last.values()
    ]


class FaultyRuntime:
    """The machine as one leader of one term sees it."""

    groups_orders = True

    def __init__(self, machine: Machine, wire: Wire, loop: SimLoop, term: int) -> None:
        self._machine = machine
        self._wire = wire
        self._loop = loop
        self._term = term
        self._tokens: list[object] = []

    async def hello(self) -> None:
        """Take the machine over from everyone of an older term."""
        await self._call("hello", lambda: None)

    def disconnect(self) -> None:
        """The process is gone: the machine tells it nothing more."""
        for token in self._tokens:
            self._machine.listeners.pop(token, None)

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Start attempts."""
        await self._call(f"launch of {_names(orders)}", lambda: self._machine.launch(orders))

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Stop attempts."""
        await self._call("stop", lambda: self._machine.stop(stops))

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Drop what is known of attempts that are over."""
        await self._call("forget", lambda: self._machine.forget(tasks))

    async def reports(self) -> Sequence[TaskReport]:
        """All that is known."""
        return await self._call("reports", self._machine.reports)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear of what happens, unless it gets lost."""
        token = object()
        self._tokens.append(token)
        self._machine.listeners[token] = lambda reports: self._tell(listener, reports)
        return lambda: self._machine.listeners.pop(token, None) and None

    async def _call(self, what: str, do: Callable[[], T]) -> T:
        return await self._wire.call(what, lambda: self._served(what, do))

    def _served(self, what: str, do: Callable[[], T]) -> T:
        if not self._machine.reachable:
            raise UnavailableError(f"{what}: the machine cannot be reached")
        if self._term < self._machine.term:
            raise FencedError(f"{what}: term {self._term} is over, {self._machine.term} is on")
        self._machine.term = self._term
        self._machine.caller = self._wire.client.name
        return do()

    def _tell(self, listener: Listener, reports: Sequence[TaskReport]) -> None:
        if self._wire.client.alive:
            self._wire.reply(listener, reports)


def _names(orders: Sequence[TaskOrder]) -> str:
    return ", ".join(order.name for order in orders)
