"""Threads and an event loop for the functions of an application, apart from the connection.

A function that blocks holds up neither the connection nor the leases of others.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Thread
from typing import Any

from interlock.sdk.app import App
from interlock.sdk.calling import Answer, Bound, bind, error_of, traceback_of
from interlock.sdk.context import ContextHandler, current
from interlock.sdk.worker.desk import Attempt
from interlock.sdk.worker.telling import tell

#: Told what an attempt returned, or how it failed; from any thread.
Finished = Callable[[Attempt, Answer | None, str], None]


class Running:
    """Runs attempts: plain functions in threads, async ones on a loop of their own."""

    def __init__(self, app: App, concurrency: int, finished: Finished) -> None:
        self._app = app
        self._finished = finished
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="step")
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="async-steps", daemon=True)
        self._thread.start()

    def start(self, attempt: Attempt) -> None:
        """Begin an attempt; it is told when it is over."""
        self._pool.submit(contextvars.Context().run, self._run, attempt)

    def close(self) -> None:
        """End, once nothing is at work."""
        self._pool.shutdown()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, attempt: Attempt) -> None:
        call, ctx = attempt.call, attempt.context
        current.set(ctx)
        try:
            bound = bind(self._app, call.function, call.call, call.args, ctx)
            if bound.is_async:
                self._run_async(attempt, bound)
                return
            answer = bound.read(bound.start())
        except BaseException as error:
            self._failed(attempt, error)
        else:
            self._finished(attempt, answer, "")

    def _run_async(self, attempt: Attempt, bound: Bound) -> None:
        future = asyncio.run_coroutine_threadsafe(self._awaited(bound, attempt), self._loop)

        def ended(_: object) -> None:
            try:
                answer = bound.read(future.result())
            except BaseException as error:
                self._failed(attempt, error)
            else:
                self._finished(attempt, answer, "")

        future.add_done_callback(ended)

    async def _awaited(self, bound: Bound, attempt: Attempt) -> Any:
        current.set(attempt.context)
        task = asyncio.current_task()
        assert task is not None
        attempt.on_cancel = lambda: self._loop.call_soon_threadsafe(task.cancel)
        if attempt.context.cancelled.is_set():
            raise asyncio.CancelledError
        return await bound.start()

    def _failed(self, attempt: Attempt, error: BaseException) -> None:
        if isinstance(error, (CancelledError, asyncio.CancelledError)):
            self._finished(attempt, None, "StepCancelled: it was told to stop")
            return
        told = traceback_of(error)
        attempt.log(told)
        tell(sys.stderr, f"{attempt.words} failed\n{told}")
        self._finished(attempt, None, error_of(error))


def log_by_attempt() -> None:
    """Have what is logged within an attempt written to its log too."""
    handler = ContextHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
