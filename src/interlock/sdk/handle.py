"""Handles for threads: one Job that was submitted or found, to wait for, read and steer.

It is `interlock.sdk.async_handle` without an event loop, and written from that by
tools/write_sync.py: change that one, then `make docs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from interlock.resources.operation import StepStatus
from interlock.sdk import reading, waiting
from interlock.sdk.known import Known, output_of
from interlock.sdk.orders import Ordered
from interlock.sdk.record import JobRecord

if TYPE_CHECKING:
    from interlock.sdk.client import Client

T = TypeVar("T")


class Handle(Known):
    """One Job."""

    def __init__(self, client: Client, record: JobRecord) -> None:
        super().__init__(record)
        self._client = client

    def refresh(self) -> JobRecord:
        """The record as it is now."""
        plan = reading.read_job(
            self._client.site, self.id, namespace=self.namespace, name=self.name
        )
        self._record = self._client.run_plan(plan)
        return self._record

    def wait(self, timeout: float | None = None) -> JobRecord:
        """The record once the Job is over, however it ended.

        Raises:
            StillRunning: It is not over after so many seconds. It goes on.
            OperationStuck: Nobody acts on it but a person.
        """
        self._record = self._client.run_plan(waiting.wait(self._client.site, self._record, timeout))
        return self._record

    @overload
    def result(self, timeout: float | None = None) -> Any: ...
    @overload
    def result(self, timeout: float | None = None, *, type: type[T]) -> T: ...
    def result(self, timeout: float | None = None, *, type: Any = None) -> Any:
        """What the Job returned, once it is done.

        Raises:
            OperationFailed: It is over, and not done: with the last error of its steps.
            ResultMismatch: What it returned is not of the type.
        """
        return output_of(self.wait(timeout), type)

    def cancel(self, *, reason: str = "") -> Ordered:
        """Stop it: what runs ends gracefully, and what was done of an operation is undone."""
        return self._client.stop(self.name, reason=reason, namespace=self.namespace)

    def steps(self) -> tuple[StepStatus, ...]:
        """How every step is going; none once the operation is over, or has not begun."""
        return self._client.run_plan(reading.steps(self._client.site, self._record))

    def logs(self, *, follow: bool = False, step: str = "", undo: bool = False) -> Iterator[str]:
        """What its newest attempt, or that of a step, printed, line by line."""
        return self._client.logs(self, follow=follow, step=step, undo=undo)
