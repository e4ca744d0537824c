"""A router of orders: a `Runtime` over several, each of which runs work of its own types.

One of them is the mode's own, and what names no runtime belongs to it, as everything did that was
stored before there were several. A runtime that is out of reach harms its own orders alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlock.control.batching import Batcher
from interlock.control.runtime import (
    Listener,
    OrderDeniedError,
    PartOfReportsError,
    Runtime,
    RuntimeUnavailableError,
    TaskStop,
)
from interlock.errors import FencedError, InterlockError, UnavailableError
from interlock.resources.metadata import Order
from interlock.resources.tasks import TaskId, TaskOrder, TaskReport

T = TypeVar("T")
_Call = Callable[[Sequence[T]], Awaitable[None]]


class _Route(Struct, frozen=True):
    """The way to one runtime."""

    #: As orders and reports have it: empty for the mode's own.
    name: str
    #: As people know it.
    title: str
    runtime: Runtime
    launch: _Call[TaskOrder]
    stop: _Call[TaskStop]


class Router:
    """Implements `control.runtime.Runtime` over runtimes by their names.

    Orders of one turn are joined here, for each runtime that wants it so: those of one Job never
    wait for, or fail with, those of another runtime. `check` is asked again before they go out.
    """

    groups_orders = False

    def __init__(
        self, runtimes: Mapping[str, Runtime], *, own: str, check: Callable[[], None]
    ) -> None:
        assert own in runtimes, f"{own} is the mode's own runtime, and not among {list(runtimes)}"
        self._check = check
        routes = [
            self._route("" if name == own else name, name, runtimes[name]) for name in runtimes
        ]
        self._routes = {route.name: route for route in routes}
        self._own = self._routes[""]
        #: Attempts that runtimes other than the mode's own are known to have.
        self._elsewhere: dict[TaskId, str] = {}

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Have each order carried out by the runtime that it is for."""
        first = orders[0].runtime if orders else ""
        if all(order.runtime == first for order in orders):
            # Nearly always: one Job asks for one type of work.
            await self._launch(first, orders)
            return
        parts: dict[str, list[TaskOrder]] = {}
        for order in orders:
            parts.setdefault(order.runtime, []).append(order)
        await _all(self._launch(name, part) for name, part in parts.items())

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Have each attempt stopped by the runtime that has it."""
        parts: dict[str, list[TaskStop]] = {}
        for stop in stops:
            name = stop.runtime or self._elsewhere.get(stop.task, "")
            parts.setdefault(name, []).append(stop)
        await _all(self._stop(name, part) for name, part in parts.items())

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Have each attempt forgotten by the runtime that has it."""
        parts: dict[str, list[TaskId]] = {}
        for task in tasks:
            parts.setdefault(self._elsewhere.get(task, ""), []).append(task)
        await _all(self._forget(name, part) for name, part in parts.items())

    async def reports(self) -> Sequence[TaskReport]:
        """What all of them know.

        Raises:
            PartOfReportsError: Some could not be asked.
            FencedError: One was taken over by a newer leader.
            UnavailableError: None could be asked.
        """
        if len(self._routes) == 1:
            return await self._own.runtime.reports()
        routes = tuple(self._routes.values())
        answers = await asyncio.gather(*map(_ask, routes))
        failed = {
            route: answer
            for route, answer in zip(routes, answers, strict=True)
            if isinstance(answer, InterlockError)
        }
        _raise_worst([error for error in failed.values() if isinstance(error, FencedError)])
        if len(failed) == len(routes):
            _raise_worst(list(failed.values()))
        told = [
            report
            for route, answer in zip(routes, answers, strict=True)
            if not isinstance(answer, InterlockError)
            for report in self._stamped(route, answer)
        ]
        if failed:
            why = "; ".join(f"{route.title}: {error}" for route, error in failed.items())
            raise PartOfReportsError(why, told, frozenset(route.name for route in failed))
        return told

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear what each of them tells."""
        ends = [self._subscribe(route, listener) for route in self._routes.values()]

        def unsubscribe() -> None:
            for end in ends:
                end()

        return unsubscribe

    def _subscribe(self, route: _Route, listener: Listener) -> Callable[[], None]:
        if not route.name:
            return route.runtime.subscribe(listener)
        return route.runtime.subscribe(lambda reports: listener(self._stamped(route, reports)))

    def _stamped(self, route: _Route, reports: Sequence[TaskReport]) -> Sequence[TaskReport]:
        """Reports that say whose they are."""
        if not route.name:
            return reports
        self._elsewhere.update((report.id, route.name) for report in reports)
        return [replace(report, runtime=route.name) for report in reports]

    # One runtime

    def _route(self, name: str, title: str, runtime: Runtime) -> _Route:
        return _Route(
            name,
            title,
            runtime,
            self._joined(runtime, runtime.launch),
            self._joined(runtime, runtime.stop),
        )

    def _joined(self, runtime: Runtime, call: _Call[T]) -> _Call[T]:
        if not runtime.groups_orders:
            return call

        async def checked(things: Sequence[T]) -> None:
            # The gate may have shut since they were gathered.
            self._check()
            await call(things)

        return Batcher(checked).add

    async def _launch(self, name: str, orders: Sequence[TaskOrder]) -> None:
        route = self._routes.get(name)
        if route is None:
            raise OrderDeniedError(Order.LAUNCH, self._unknown(name))
        if name:
            self._elsewhere.update((order.id, name) for order in orders)
        await _carried_out(route, route.launch, orders)

    async def _stop(self, name: str, stops: Sequence[TaskStop]) -> None:
        route = self._routes.get(name)
        if route is None:
            raise OrderDeniedError(Order.STOP, self._unknown(name))
        if name:
            self._elsewhere.update((stop.task, name) for stop in stops)
        await _carried_out(route, route.stop, stops)

    async def _forget(self, name: str, tasks: Sequence[TaskId]) -> None:
        route = self._routes[name]
        await _carried_out(route, route.runtime.forget, tasks)
        if name:
            for task in tasks:
                self._elsewhere.pop(task, None)

    def _unknown(self, name: str) -> str:
        known = ", ".join(route.title for route in self._routes.values())
        return f'there is no runtime "{name}" here, only: {known}'


async def _carried_out(route: _Route, call: _Call[T], things: Sequence[T]) -> None:
    """Make a call, and say whose fault it is that nothing is known of it."""
    try:
        await call(things)
    except UnavailableError as error:
        if not route.name:
            raise
        raise RuntimeUnavailableError(f"{route.title}: {error}", route.name) from error


async def _ask(route: _Route) -> Sequence[TaskReport] | InterlockError:
    try:
        return await route.runtime.reports()
    except InterlockError as error:
        return error


async def _all(calls: Iterable[Awaitable[None]]) -> None:
    """Make all calls, whatever becomes of each, and raise the worst that went wrong."""
    begun = tuple(calls)
    if len(begun) == 1:
        await begun[0]
        return
    answers = await asyncio.gather(*begun, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, InterlockError):
            raise answer
    _raise_worst([answer for answer in answers if isinstance(answer, InterlockError)])


def _raise_worst(errors: Sequence[InterlockError]) -> None:
    """Being fenced ends everything, an outage leaves all unknown, a denial is one order's own."""
    if errors:
        raise min(errors, key=_rank)


def _rank(error: InterlockError) -> int:
    if isinstance(error, FencedError):
        return 0
    return 1 if isinstance(error, UnavailableError) else 2
