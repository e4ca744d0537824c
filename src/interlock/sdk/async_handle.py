"""Handles for an event loop: one Job that was submitted or found, to wait for, read and steer.

Those for threads, in `interlock.sdk.handle`, are written from this by tools/write_sync.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from interlock.resources.operation import StepStatus
from interlock.sdk import reading, waiting
from interlock.sdk.known import Known, output_of
from interlock.sdk.orders import Ordered
from interlock.sdk.record import JobRecord

if TYPE_CHECKING:
    from interlock.sdk.async_client import AsyncClient

T = TypeVar("T")


class AsyncHandle(Known):
    """One Job."""

    def __init__(self, client: AsyncClient, record: JobRecord) -> None:
        super().__init__(record)
        self._client = client

    async def refresh(self) -> JobRecord:
        """The record as it is now."""
        plan = reading.read_job(
            self._client.site, self.id, namespace=self.namespace, name=self.name
        )
        self._record = await self._client.run_plan(plan)
        return self._record

    async def wait(self, timeout: float | None = None) -> JobRecord:
        """The record once the Job is over, however it ended.

        Raises:
            StillRunning: It is not over after so many seconds. It goes on.
            OperationStuck: Nobody acts on it but a person.
        """
        self._record = await self._client.run_plan(
            waiting.wait(self._client.site, self._record, timeout)
        )
        return self._record

    @overload
    async def result(self, timeout: float | None = None) -> Any: ...
    @overload
    async def result(self, timeout: float | None = None, *, type: type[T]) -> T: ...
    async def result(self, timeout: float | None = None, *, type: Any = None) -> Any:
        """What the Job returned, once it is done.

        Raises:
            OperationFailed: It is over, and not done: with the last error of its steps.
            ResultMismatch: What it returned is not of the type.
        """
        return output_of(await self.wait(timeout), type)

    async def cancel(self, *, reason: str = "") -> Ordered:
        """Stop it: what runs ends gracefully, and what was done of an operation is undone."""
        return await self._client.stop(self.name, reason=reason, namespace=self.namespace)

    async def steps(self) -> tuple[StepStatus, ...]:
        """How every step is going; none once the operation is over, or has not begun."""
        return await self._client.run_plan(reading.steps(self._client.site, self._record))

    def logs(
        self, *, follow: bool = False, step: str = "", undo: bool = False
    ) -> AsyncIterator[str]:
        """What its newest attempt, or that of a step, printed, line by line."""
        return self._client.logs(self, follow=follow, step=step, undo=undo)
