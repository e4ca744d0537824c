"""Errors of the client: refusals, servers that do not answer, and operations that came to nothing.

All are `ClientError`s. A name says what happened, as in `except NotFound`; who waits for several
outcomes catches the base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from interlock.client.errors import (
    CONFLICT,
    FORBIDDEN,
    NOT_FOUND,
    AnswerError,
    CommandError,
    UnreachableError,
)
from interlock.errors import InterlockError, Problem

if TYPE_CHECKING:
    from interlock.sdk.record import JobRecord


class ClientError(InterlockError):
    """Base of every error that a client raises."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message = message
        #: What to do about it, where that can be told.
        self.hint = hint


class BadInput(ClientError, ValueError):
    """What was given makes no sense; no server was asked."""


class Unreachable(ClientError, ConnectionError):
    """No server answers, or the answer was lost."""

    retryable = True

    def __init__(self, message: str, *, hint: str = "", sent: bool = False) -> None:
        super().__init__(message, hint=hint)
        #: Whether the server may have been asked, and so may have done it.
        self.sent = sent


class Cause(NamedTuple):
    """One reason of a refusal."""

    #: Kubernetes' word for it.
    reason: str
    message: str
    #: The field that is wrong: `spec.steps[0].run`; empty when it is about no field.
    field: str = ""


class Refused(ClientError):
    """The server answered, and said no. Nothing of what was asked was done."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        causes: Sequence[Cause] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        #: The status of HTTP: 404.
        self.status = status
        #: The stable word for it: `NotFound`, `AlreadyExists`, `TooManyPending`.
        self.code = code
        self.causes = tuple(causes)


class NotFound(Refused):
    """There is no such thing, or nobody may know that there is."""


class Conflict(Refused):
    """It is not in the state that this needs, exists already, or changed meanwhile."""


class TooManyPending(Conflict):
    """The target has as many operations waiting as it may; nothing was stored."""

    retryable = True


class Forbidden(Refused):
    """The server does not know who asks, or does not allow it."""


class Invalid(Refused):
    """An object or an option is not good; `problems` tells field by field."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Each field that is wrong, and why."""
        return tuple(Problem(one.field, one.message) for one in self.causes if one.field)


class _AboutJob(ClientError):
    def __init__(self, message: str, record: JobRecord, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        #: The Job as it was seen last.
        self.record = record


class OperationFailed(_AboutJob):
    """The Job is over, and did not succeed; `record` tells what it came to."""

    @property
    def completion_state(self) -> str:
        """`failed` or `partial_success`."""
        return self.record.completion_state or ""


class OperationStuck(_AboutJob):
    """The Job is stuck: nobody acts on it but a person."""


class ResultMismatch(_AboutJob, ValueError):
    """What a Job returned is not of the type that was asked for."""


class StillRunning(_AboutJob, TimeoutError):
    """The time to wait is over, and the Job is not. It goes on."""


_BY_STATUS: dict[int, type[Refused]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Conflict,
    422: Invalid,
}


#: What is found out here, of a cluster, in the words of a server.
_BY_CODE = {
    CONFLICT: (409, "Conflict"),
    FORBIDDEN: (403, "Forbidden"),
    NOT_FOUND: (404, "NotFound"),
}


def error_of(error: CommandError) -> ClientError:
    """What an error of the command line's client is to those who program."""
    match error:
        case UnreachableError():
            return Unreachable(error.message, hint=error.hint, sent=error.sent)
        case AnswerError():
            return refused(error)
        case _ if error.code in _BY_CODE:
            status, word = _BY_CODE[error.code]
            return _BY_STATUS[status](status, word, error.message, hint=error.hint)
        case _:
            return BadInput(error.message, hint=error.hint)


def refused(error: AnswerError) -> Refused:
    """A refusal, by what it is about."""
    causes = [
        Cause(str(one.get("reason", "")), str(one.get("message", "")), str(one.get("field", "")))
        for one in error.causes
    ]
    suggested = next((one.message for one in causes if one.reason == "Suggestion"), "")
    kind = _BY_STATUS.get(error.status, Refused)
    if error.reason == "TooManyPending":
        kind = TooManyPending
    return kind(
        error.status,
        error.reason or str(error.status),
        error.message,
        hint=error.hint or suggested,
        causes=causes,
    )
