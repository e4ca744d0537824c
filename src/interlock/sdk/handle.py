"""Handles: one Job that was submitted or found, to wait for, read and steer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from interlock.resources.codec import decode_special
from interlock.resources.operation import StepStatus
from interlock.sdk import reading, waiting
from interlock.sdk.errors import ResultMismatch
from interlock.sdk.orders import Ordered
from interlock.sdk.record import JobRecord

if TYPE_CHECKING:
    from interlock.sdk.async_client import AsyncClient
    from interlock.sdk.client import Client

T = TypeVar("T")


class _Known:
    """What both handles know without asking anybody."""

    def __init__(self, record: JobRecord) -> None:
        self._record = record

    @property
    def id(self) -> str:
        """What the Job is asked for by, for ever."""
        return self._record.job_id

    @property
    def name(self) -> str:
        """The name of the Job, which is free again once it is deleted."""
        return self._record.name

    @property
    def namespace(self) -> str:
        """The namespace of the Job."""
        return self._record.namespace

    @property
    def status(self) -> JobRecord:
        """The record as it was seen last; `refresh` and `wait` look anew."""
        return self._record

    @property
    def state(self) -> str:
        """`queued`, `executing`, `reverting` or `complete`, as it was seen last."""
        return self._record.state

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.namespace}/{self.name} {self.id} {self.state}>"


def output_of(record: JobRecord, type: Any) -> Any:
    """What a Job that succeeded returned, as the type that was asked for.

    Raises:
        OperationFailed: It did not succeed.
        ResultMismatch: It is not of that type.
    """
    output = waiting.succeeded(record).result
    value = output.output if output is not None else None
    if type is None:
        return value
    try:
        return msgspec.convert(value, type, dec_hook=decode_special)
    except msgspec.ValidationError as error:
        told = f"what job/{record.name} returned does not fit: {error}"
        raise ResultMismatch(told, record) from None


class Handle(_Known):
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


class AsyncHandle(_Known):
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
