"""A worker process: the application, the books, the threads and the connection put together.

Its supervisor speaks to it through its standard input: `drain`, then `cancel`; the end of it means
that the supervisor is gone. It says one thing to the supervisor there: that it retires.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import uuid
from contextlib import suppress
from typing import NoReturn

import msgspec

from interlock.client.errors import FAILED, OK, CommandError
from interlock.client.target import Target, find_target
from interlock.sdk.app import App
from interlock.sdk.calling import Answer
from interlock.sdk.worker.connection import Connection
from interlock.sdk.worker.desk import Attempt, Desk, WorkerIdentity
from interlock.sdk.worker.loading import load
from interlock.sdk.worker.running import Running, log_by_attempt
from interlock.sdk.worker.settings import WorkerSettings
from interlock.sdk.worker.telling import tell

DRAIN, CANCEL = b"d", b"c"
#: It takes nothing more, and something that it runs may never end: another is to take its place.
RETIRE = b"r"
#: What was told to stop has so long to hand in what came of it.
_GRACE_S = 2.0
#: What does not count any more may go on for so long before the process retires because of it.
_STUCK_AFTER_S = 5.0


def main() -> int:
    """Run one worker process; returns its exit code."""
    settings = msgspec.json.decode(sys.argv[1], type=WorkerSettings)
    control = os.dup(0)
    # Nothing of the application reads what the supervisor says.
    with open(os.devnull) as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        app = load(settings.app)
        log_by_attempt()
        return asyncio.run(WorkerProcess(app, settings, control).run())
    except CommandError as error:
        hint = f"\n  {error.hint}" if error.hint else ""
        tell(sys.stderr, f"error: {error.message}{hint}\n")
        return error.code


class WorkerProcess:
    """One process that takes orders, until it is told to end or has done its share."""

    def __init__(self, app: App, settings: WorkerSettings, control: int) -> None:
        self._app = app
        self._settings = settings
        self._control = control
        self._name = f"{socket.gethostname()}/{os.getpid()}"
        self._is_stopping = False
        self._terms = 0
        self._gives_up = asyncio.Event()
        identity = WorkerIdentity(
            name=self._name,
            incarnation=uuid.uuid4().hex,
            app=settings.app,
            functions=app.functions,
            queues=settings.queues,
            concurrency=settings.concurrency,
        )
        self._desk = Desk(
            identity,
            start=self._start,
            say=self._say,
            changed=self._changed,
            refused=self._refused,
            max_jobs=settings.max_jobs,
        )
        loaded = (
            f"worker {self._name}  ·  {_count(len(app.operations), 'operation')},"
            f" {_count(len(app.steps), 'step')} loaded from {settings.app}"
        )
        self._connection = Connection(self._desk, self._find, self._tell, loaded)

    async def run(self) -> int:
        """Serve; returns the exit code."""
        self._loop = asyncio.get_running_loop()
        self._running = Running(self._app, self._settings.concurrency, self._finished)
        self._loop.add_signal_handler(signal.SIGTERM, self._stop)
        os.set_blocking(self._control, False)
        self._loop.add_reader(self._control, self._ordered)
        serving = asyncio.create_task(self._connection.serve())
        giving_up = asyncio.create_task(self._gives_up.wait())
        await asyncio.wait((serving, giving_up), return_when=asyncio.FIRST_COMPLETED)
        giving_up.cancel()
        if serving.done():
            serving.result()
            if self._desk.at_work:
                return self._leave(OK)
            self._running.close()
            return OK
        return await self._give_up(serving)

    async def _give_up(self, serving: asyncio.Task[None]) -> int:
        """Tell all that is at work to stop, hand in what comes of it at once, and go."""
        self._desk.cancel_all()
        await asyncio.wait((serving,), timeout=_GRACE_S)
        if serving.done():
            return OK
        for words in self._desk.left:
            self._say(f"{words} is cut off: it did not end in time")
        return self._leave(FAILED)

    def _leave(self, code: int) -> NoReturn:
        """End at once: threads of the application may still run, and nothing else ends them."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    # What happens on other threads

    def _start(self, attempt: Attempt) -> None:
        self._running.start(attempt)

    def _finished(self, attempt: Attempt, answer: Answer | None, error: str) -> None:
        self._loop.call_soon_threadsafe(self._take_in, attempt, answer, error)

    def _take_in(self, attempt: Attempt, answer: Answer | None, error: str) -> None:
        self._desk.finished(attempt, answer, error)
        self._connection.changed()

    def _changed(self) -> None:
        with suppress(RuntimeError):  # The loop has ended: nobody is left to be told.
            self._loop.call_soon_threadsafe(self._connection.changed)

    def _refused(self, attempt: Attempt) -> None:
        self._loop.call_later(_STUCK_AFTER_S, self._retire, attempt)

    def _retire(self, attempt: Attempt) -> None:
        """A function cannot be ended, and its process can: another one has all its places."""
        if self._desk.give_up(attempt) and not self._is_stopping:
            self._is_stopping = True
            with suppress(OSError):
                os.write(self._control, RETIRE)

    # What it is told

    def _find(self) -> Target:
        return find_target(self._settings.connection)

    def _ordered(self) -> None:
        try:
            said = os.read(self._control, 64)
        except BlockingIOError:
            return
        except ConnectionResetError:
            said = b""
        if not said:
            self._loop.remove_reader(self._control)
            self._say("its supervisor is gone: it ends once its steps have")
        if not said or DRAIN in said:
            self._drain()
        if CANCEL in said:
            self._gives_up.set()

    def _stop(self) -> None:
        # Who ends a whole group of processes ends the supervisor too, which then says it once more.
        self._terms += 1
        if self._terms > 1:
            self._gives_up.set()
        self._drain()

    def _drain(self) -> None:
        if self._is_stopping:
            return
        self._is_stopping = True
        if self._desk.at_work:
            left = ", ".join(attempt.words for attempt in self._desk.at_work.values())
            self._say(f"takes nothing more, and ends once this has: {left}")
        self._desk.drain()
        if self._settings.drain_timeout_s is not None:
            self._loop.call_later(self._settings.drain_timeout_s, self._gives_up.set)

    # What it says

    def _say(self, text: str) -> None:
        self._tell(f"worker {self._name}: {text}")

    def _tell(self, text: str) -> None:
        line = text if text.startswith("worker ") else f"worker {self._name}: {text}"
        tell(sys.stdout, f"{line}\n")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
