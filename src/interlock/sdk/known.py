"""What a handle knows without asking anybody, and what a Job returned."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.resources.codec import decode_special
from interlock.sdk import waiting
from interlock.sdk.errors import ResultMismatch
from interlock.sdk.record import JobRecord


class Known:
    """What a handle knows without asking anybody."""

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
