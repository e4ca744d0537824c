"""The context of an attempt: what a step is told beside its arguments, and what it may say."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from threading import Event
from typing import Any, Protocol

import msgspec

from interlock.resources.steps import TARGET_LOCKS
from interlock.sdk.app_errors import StepCancelled


class Sink(Protocol):
    """Where what an attempt says goes."""

    def report(self, percent: float, text: str) -> None:
        """Take in how far it is."""

    def log(self, text: str) -> None:
        """Take in whole lines."""


class Nowhere:
    """A sink that keeps nothing."""

    def report(self, percent: float, text: str) -> None: ...

    def log(self, text: str) -> None: ...


class Context:
    """What a step is told about its attempt. Tests make one: `Context(attempt=2)`."""

    def __init__(
        self,
        *,
        step: str = "step",
        job: str = "job",
        namespace: str = "default",
        target: str = "",
        creator: str = "",
        attempt: int = 1,
        undoing: bool = False,
        args: Mapping[str, Any] | None = None,
        results: Mapping[str, str] | None = None,
        fences: Mapping[str, int] | None = None,
        sink: Sink | None = None,
    ) -> None:
        #: The name of the step in its operation.
        self.step = step
        self.job = job
        self.namespace = namespace
        #: The path of what the operation is done to.
        self.target = target
        #: Who asked for the operation.
        self.creator = creator
        #: The number of this attempt, from 1.
        self.attempt = attempt
        #: Whether the step is being undone.
        self.undoing = undoing
        #: What the function is called with.
        self.args: Mapping[str, Any] = args or {}
        #: The fencing token of each lock, by its key.
        self.fences: Mapping[str, int] = fences or {}
        #: Is set once the attempt is to stop.
        self.cancelled = Event()
        self._results = results or {}
        self._sink = sink or Nowhere()

    @property
    def fence(self) -> int:
        """The fencing token of the target: only ever rises. 0 when there is no target."""
        return self.fences.get(f"{TARGET_LOCKS}{self.target}", 0) if self.target else 0

    @property
    def results(self) -> dict[str, Any]:
        """What steps returned that are done, by their names; of one to be undone its own."""
        return {name: msgspec.json.decode(text) for name, text in self._results.items() if text}

    def report(self, percent: float, text: str = "") -> None:
        """Say how far it is, from 0 to 100, and in words what it is at."""
        if not 0 <= percent <= 100:
            raise ValueError(f"percent: {percent!r}: expected 0 to 100")
        self._sink.report(float(percent), text)

    def log(self, text: object) -> None:
        """Write lines for people: `interlock logs JOB --step STEP` shows them."""
        self._sink.log(f"{text}\n")

    def check(self) -> None:
        """End here if the attempt is to stop.

        Raises:
            StepCancelled: It is.
        """
        if self.cancelled.is_set():
            raise StepCancelled(f"{self.step} of {self.job} was told to stop")


#: The attempt that the code that runs belongs to.
current: ContextVar[Context | None] = ContextVar("interlock_context", default=None)


class ContextHandler(logging.Handler):
    """Writes what is logged within an attempt into the log of that attempt."""

    def emit(self, record: logging.LogRecord) -> None:
        context = current.get()
        if context is not None:
            try:
                context.log(self.format(record))
            except Exception:
                self.handleError(record)
