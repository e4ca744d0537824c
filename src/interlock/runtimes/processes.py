"""The server's side of the keeper: a `Runtime` that runs tasks as processes of this machine.

It starts a keeper when there is none, connects again whenever the connection breaks, and never
blocks the loop. What was in flight when a connection broke is `UnavailableError`: nothing is known
of it, and everything may be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from interlock.control.runtime import Listener, TaskStop
from interlock.errors import FencedError, UnavailableError
from interlock.resources.tasks import TaskId, TaskOrder, TaskReport
from interlock.resources.work import ProcessWork
from interlock.runtimes.health import Health
from interlock.runtimes.keeper import kernel
from interlock.runtimes.keeper.connections import short_path
from interlock.runtimes.keeper.orders import ProcessOrder, process_order
from interlock.runtimes.keeper.protocol import (
    BATCH,
    KEEPER_LOG_NAME,
    LOCK_NAME,
    PROTOCOL,
    SOCKET_NAME,
    Forget,
    Hello,
    Launch,
    Leave,
    Request,
    Stop,
    StopOrder,
)
from interlock.runtimes.link import Link, Reports

Some = TypeVar("Some")

#: What every task inherits of the server's own environment.
INHERITED = ("PATH", "HOME", "LANG", "TZ", "USER")
#: How long to try to reach or start a keeper before a call fails.
_PATIENCE_S = 30.0
_MAX_PAUSE_S = 1.0
_NO_ANSWER = "the keeper that has the lock does not answer"
#: What a hanging keeper waits for, by the letter that the kernel has for its state.
_STATES = {
    "T": "somebody stopped it; let it go on with: kill -CONT {pid}",
    "t": "a debugger stopped it",
    "D": "it waits for the disk",
}
#: Orders with more text than this in them go in frames of their own.
_BIG_ORDER = 64 << 10
_START = (
    "import sys; sys.path[:0] = sys.argv[2:];"
    "from interlock.runtimes.keeper.main import main;"
    "sys.exit(main(sys.argv[1]))"
)


class ProcessRuntime:
    """Implements `control.runtime.Runtime` by asking the keeper of a data directory."""

    groups_orders = True

    def __init__(self, data_dir: Path, hello: Hello, health: Health | None = None) -> None:
        self._data_dir = data_dir
        self._hello = hello
        self._health = health or Health()
        self._watching: asyncio.Task[None] | None = None
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._listeners: list[Listener] = []
        self._fenced: str | None = None
        self._closed = False
        self._reconnecting: asyncio.Task[None] | None = None
        #: The process id of the keeper that was connected last.
        self.keeper_pid = 0

    @classmethod
    async def connect(
        cls,
        data_dir: Path,
        *,
        term: int,
        working_dir: Path | None = None,
        env: Mapping[str, str] | None = None,
        umask: int | None = None,
        health: Health | None = None,
    ) -> ProcessRuntime:
        """Reach the keeper of a data directory, and start one if there is none.

        Tasks start in `working_dir` unless they name another, with the variables of `env` and with
        `umask`; by default those are the server's directory, the INHERITED part of its environment
        and its own mask. What is wrong with the keeper is told to `health`.

        Raises:
            FencedError: A server with a higher term has taken over.
            UnavailableError: No keeper could be started; the message says why.
        """
        if env is None:
            env = {name: os.environ[name] for name in INHERITED if name in os.environ}
        place = (working_dir or Path.cwd()).resolve()
        hello = Hello(
            seq=0,
            protocol=PROTOCOL,
            term=term,
            working_dir=str(place),
            env=dict(env),
            umask=own_umask() if umask is None else umask,
        )
        runtime = cls(data_dir.resolve(), hello, health)
        await runtime._connected()
        runtime._watching = asyncio.get_running_loop().create_task(runtime._watch_over())
        return runtime

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Have attempts started; their intents are durable when it returns."""
        given = [_for_keeper(order) for order in orders]
        await self._ask_all([_launch(part) for part in _order_parts(given)])

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Have attempts stopped; that is durable when it returns."""
        given = [StopOrder(stop.task, stop.grace_s, stop.namespace, stop.job) for stop in stops]
        await self._ask_all([_stop(part) for part in _parts(given)])

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Drop attempts that are over."""
        await self._ask_all([_forget(part) for part in _parts(tasks)])

    async def reports(self) -> Sequence[TaskReport]:
        """Everything the keeper knows durably."""
        link = await self._connected()
        try:
            return await link.tell()
        except FencedError as error:
            self._fenced = str(error)
            raise

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear of every change; after a broken connection, of everything once more."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    async def close(self) -> None:
        """Leave the keeper to its tasks; one without tasks goes at once."""
        self._closed = True
        going_on = [task for task in (self._reconnecting, self._watching) if task is not None]
        for task in going_on:
            task.cancel()
        await asyncio.gather(*going_on, return_exceptions=True)
        link, self._link = self._link, None
        if link is not None:
            with contextlib.suppress(UnavailableError, FencedError, TimeoutError):
                # A keeper that hangs must not keep the server from ending.
                async with asyncio.timeout(self._health.patience_s):
                    await link.ask(Leave)
            await link.close()

    def reopen_log(self) -> None:
        """Have the keeper open its log again; one that is out of reach does when it starts."""
        if self._link is not None and not self._link.is_lost and self.keeper_pid:
            with contextlib.suppress(OSError):
                os.kill(self.keeper_pid, signal.SIGHUP)

    def abandon(self) -> None:
        """Hang up without a word, as a server that is killed does."""
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
        if self._link is not None:
            self._link.abort()

    async def _ask_all(self, requests: Sequence[Callable[[int], Request]]) -> None:
        """Send every request before the first answer is awaited."""
        if not requests:
            return
        link = await self._connected()
        try:
            if len(requests) == 1:
                # Most calls: a task per request would cost more than the request.
                await link.ask(requests[0])
                return
            answers = await asyncio.gather(*map(link.ask, requests), return_exceptions=True)
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
        except FencedError as error:
            self._fenced = str(error)
            raise

    async def _connected(self) -> Link:
        """The connection; made anew when it is broken."""
        if self._link is not None and not self._link.is_lost and self._fenced is None:
            return self._link
        async with self._connecting:
            if self._closed:
                raise UnavailableError("the runtime is closed")
            if self._fenced is not None:
                raise FencedError(self._fenced)
            if self._link is None or self._link.is_lost:
                self._link = await self._reach()
            return self._link

    async def _reach(self) -> Link:
        loop = asyncio.get_running_loop()
        began = loop.time()
        give_up = began + _PATIENCE_S
        pause = 0.01
        while True:
            try:
                link = await self._greet()
                self._health.well()
                return link
            except UnavailableError as error:
                problem = str(error)
            except OSError:
                problem = await asyncio.to_thread(start_keeper, self._data_dir)
            # One that was just started has had no time to answer.
            if problem != _NO_ANSWER or loop.time() > began + self._health.patience_s:
                self._health.tell(problem)
            if loop.time() > give_up:
                raise UnavailableError(f"no keeper for {self._data_dir}: {problem}")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MAX_PAUSE_S)

    async def _greet(self) -> Link:
        loop = asyncio.get_running_loop()
        with short_path(self._data_dir) as place:
            _, link = await loop.create_unix_connection(
                lambda: Link(self._hear, self._lost), f"{place}/{SOCKET_NAME}"
            )
        try:
            with self._health.expecting(self._hanging):
                done = await link.ask(lambda seq: msgspec.structs.replace(self._hello, seq=seq))
                self.keeper_pid = done.pid
                if self._listeners:
                    await link.hear_all()
        except BaseException as error:
            if isinstance(error, FencedError):
                self._fenced = str(error)
            await link.close()
            raise
        return link

    async def _watch_over(self) -> None:
        """Ask now and then whether the keeper is well: one that hangs says nothing by itself."""
        nothing = _forget(())
        while not self._closed:
            await asyncio.sleep(self._health.patience_s / 2)
            link = self._link
            if link is None or link.is_lost:
                continue  # It is being connected anew, and that tells what is wrong.
            try:
                with self._health.expecting(self._hanging):
                    await link.ask(nothing)
                self._health.well()
            except FencedError:
                return
            except UnavailableError as error:
                if not link.is_lost:
                    self._health.tell(str(error))

    def _hanging(self) -> str:
        """That the keeper does not answer, and what it waits for."""
        pid = _keeper_of(self._data_dir)
        stat = kernel.stat_of(pid) if pid else None
        why = _STATES.get(stat.state, "") if stat else ""
        told = f"has not answered for more than {self._health.patience_s:g} s"
        who = f"the keeper (process {pid})" if pid else "the keeper"
        return f"{who} {told}" + (f": {why.format(pid=pid)}" if why else "")

    def _hear(self, reports: Reports) -> None:
        if reports:
            for listener in tuple(self._listeners):
                listener(reports)

    def _lost(self, link: Link) -> None:
        """Connect again at once: news would be missed until somebody asks for something."""
        if link is self._link and not self._closed and self._fenced is None:
            self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())

    async def _reconnect(self) -> None:
        while not self._closed:
            try:
                await self._connected()
                return
            except FencedError:
                return
            except UnavailableError:
                await asyncio.sleep(_MAX_PAUSE_S)


def start_keeper(data_dir: Path) -> str:
    """Start a keeper unless one serves the directory; returns what went wrong, if anything did.

    It starts without site-packages: only the two places that it needs are on its path.
    """
    places = [_place_of("interlock"), _place_of("msgspec")]
    command = [sys.executable, "-I", "-S", "-c", _START, str(data_dir), *places]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the keeper could not be started: {error}"
    if done.returncode == 0:
        return _NO_ANSWER
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    if not said:
        return f"the keeper ended; see {data_dir / KEEPER_LOG_NAME}"
    # A traceback comes after its own words, or instead of them.
    told = next((line for line in said if line.startswith("the keeper")), "")
    return told or f"the keeper cannot start: {said[-1]}"


def _keeper_of(data_dir: Path) -> int:
    """The process that has the keeper's lock, as it wrote there; 0 when that is not known."""
    said = kernel.read_file(str(data_dir / LOCK_NAME)).strip()
    return int(said) if said.isdigit() else 0


def own_umask() -> int:
    """The mask of this process. Asking for it in the old way would change it for a moment."""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    said = re.search(r"^Umask:\s*([0-7]+)", status, re.MULTILINE)
    return int(said[1], 8) if said else 0o022


def _place_of(package: str) -> str:
    """The directory that has to be on the path for a package to be found."""
    file = sys.modules[package].__file__
    assert file is not None
    return str(Path(file).parent.parent)


def _launch(orders: tuple[ProcessOrder, ...]) -> Callable[[int], Request]:
    return lambda seq: Launch(seq, orders)


def _stop(stops: tuple[StopOrder, ...]) -> Callable[[int], Request]:
    return lambda seq: Stop(seq, stops)


def _forget(tasks: tuple[TaskId, ...]) -> Callable[[int], Request]:
    return lambda seq: Forget(seq, tasks)


def _for_keeper(order: TaskOrder) -> ProcessOrder:
    work = order.work
    assert isinstance(work, ProcessWork), f"{order.name}: a keeper starts processes alone"
    return process_order(order, work)


def _parts(items: Sequence[Some]) -> Iterator[tuple[Some, ...]]:
    for start in range(0, len(items), BATCH):
        yield tuple(items[start : start + BATCH])


def _order_parts(orders: Sequence[ProcessOrder]) -> Iterator[tuple[ProcessOrder, ...]]:
    """As `_parts`, with orders that carry much text alone, so that frames stay small."""
    small = [order for order in orders if _text_of(order) <= _BIG_ORDER]
    yield from _parts(small)
    if len(small) < len(orders):
        yield from ((order,) for order in orders if _text_of(order) > _BIG_ORDER)


def _text_of(order: ProcessOrder) -> int:
    given = sum(map(len, order.command)) + sum(map(len, order.env.values()))
    return given + len(order.stdin or "")
