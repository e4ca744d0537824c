"""The runtime protocol: what the loop asks of whatever runs tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from interlock.errors import InterlockError, UnavailableError
from interlock.resources.metadata import Order
from interlock.resources.tasks import TaskId, TaskOrder, TaskReport

Listener = Callable[[Sequence[TaskReport]], None]


class TaskStop(Struct, frozen=True):
    """An order to stop one attempt."""

    task: TaskId
    #: From SIGTERM to SIGKILL. A second stop may shorten what is left, never lengthen it.
    grace_s: float
    #: Whose attempt it is: what is told of one that was never launched must name its Job too.
    namespace: str = ""
    job: str = ""
    #: The runtime that has it; empty for the mode's own.
    runtime: str = ""
    #: The name of what runs it, where that is an object of somebody else.
    object: str = ""


class RuntimeUnavailableError(UnavailableError):
    """It was a runtime, not the store, that could not be reached."""

    def __init__(self, message: str, runtime: str = "") -> None:
        super().__init__(message)
        #: Which one; empty for the mode's own.
        self.runtime = runtime


class PartOfReportsError(UnavailableError):
    """Some runtimes of several could not be asked; what the others know is here."""

    def __init__(self, message: str, reports: Sequence[TaskReport], silent: frozenset[str]) -> None:
        super().__init__(message)
        self.reports = reports
        #: Those that could not be asked.
        self.silent = silent


class OrderDeniedError(InterlockError):
    """An order is refused for now, for a reason that is not its own: told, and given again.

    Whoever refuses may have carried it out in part; giving it again is harmless.
    """

    retryable = True

    def __init__(self, order: Order, message: str) -> None:
        super().__init__(message)
        self.order = order


class Runtime(Protocol):
    """Starts, stops and watches attempts. Every backend passes `testing.runtime_contract`.

    All calls may raise `UnavailableError`, after which nothing is known, and `FencedError`
    once a runtime was taken over by a newer leader. Orders to launch and to stop may raise
    `OrderDeniedError`: the others of the same call were carried out.
    """

    @property
    def groups_orders(self) -> bool:
        """Whether the orders of several Jobs are cheaper in one call: else each Job's go alone, and
        none waits for another's.
        """
        ...

    async def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Start attempts. Durable when it returns: after any crash each is known or runs.

        An attempt that is already known is left as it is, so repeating a launch is harmless.
        One that cannot be started is reported as `NotStarted`; it does not fail the call.
        """
        ...

    async def stop(self, stops: Sequence[TaskStop]) -> None:
        """Have attempts stopped; durable when it returns, done when a report says so.

        One that is not known is never started afterwards: it is reported as `NotStarted`.
        """
        ...

    async def forget(self, tasks: Sequence[TaskId]) -> None:
        """Drop what is known of attempts that are over. Others are left alone."""
        ...

    async def reports(self) -> Sequence[TaskReport]:
        """Everything that is known of every attempt, as durable facts.

        Raises:
            PartOfReportsError: There are several runtimes, and some could not be asked.
        """
        ...

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each batch of new reports, until the returned call is made."""
        ...
