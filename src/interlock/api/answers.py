"""Responses, and the Kubernetes `Status` body of every refusal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from interlock.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    FencedError,
    ForbiddenError,
    InterlockError,
    InvalidError,
    NotFoundError,
    Problem,
    TooManyPendingError,
    UnavailableError,
)
from interlock.resources.codec import encode
from interlock.resources.kinds import KINDS, Kind
from interlock.resources.metadata import Key

JSON = b"application/json"

#: The reason that goes with a code when nothing more precise is known.
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    408: "Timeout",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    431: "RequestHeaderFieldsTooLarge",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Answer(Struct, frozen=True):
    """A whole answer. A body in parts is sent part by part, so that no list blocks the loop."""

    status: int
    body: bytes | Iterator[bytes]
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Cause(Struct, frozen=True, omit_defaults=True):
    """One problem of a refused object, as clients expect it."""

    reason: str
    message: str
    field: str = ""


class Details(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a refusal is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The body of every refusal, and of deletions that are done."""

    kind: str = field(default_factory=lambda: "Status")
    api_version: str = field(default_factory=lambda: "v1")
    metadata: dict[str, str] = field(default_factory=dict)
    status: str = field(default_factory=lambda: "Failure")
    message: str = ""
    reason: str = ""
    details: Details | None = None
    code: int


class RefusedError(Exception):
    """A request that is answered with a `Status` of the given code."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        details: Details | None = None,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(message)
        self.status = Status(
            code=code, message=message, reason=reason or REASONS[code], details=details
        )
        self.headers = tuple(headers)


def bad_request(message: str) -> RefusedError:
    """A request that makes no sense."""
    return RefusedError(400, message)


def too_many(message: str, retry_after_s: int = 1) -> RefusedError:
    """A request that may be repeated later."""
    return RefusedError(
        429,
        message,
        details=Details(retry_after_seconds=retry_after_s),
        headers=((b"retry-after", str(retry_after_s).encode()),),
    )


def unavailable(message: str, retry_after_s: int = 1) -> RefusedError:
    """A request that may be repeated as soon as the server, or another one, can answer it."""
    return RefusedError(
        503,
        message,
        details=Details(retry_after_seconds=retry_after_s),
        headers=((b"retry-after", str(retry_after_s).encode()),),
    )


def json_answer(body: object, status: int = 200) -> Answer:
    """Any value as JSON."""
    return Answer(status, encode(body))


def refusal(error: RefusedError) -> Answer:
    """The answer for a refused request."""
    return Answer(error.status.code, encode(error.status), JSON, error.headers)


def refusal_of(error: InterlockError, kind: Kind | None = None, name: str = "") -> RefusedError:
    """Our errors in the words that Kubernetes' clients know."""
    match error:
        case InvalidError(problems=problems):
            return _invalid(error, kind, problems)
        case NotFoundError(key=key):
            return RefusedError(
                404, f'{_resource(key)} "{key.name}" not found', details=_details(key)
            )
        case AlreadyExistsError(key=key):
            message = f'{_resource(key)} "{key.name}" already exists'
            return RefusedError(409, message, reason="AlreadyExists", details=_details(key))
        case ConflictError(key=key):
            return _conflict(error, key)
        case TooManyPendingError():
            return RefusedError(
                409, str(error), reason="TooManyPending", details=_about(kind, name)
            )
        case ForbiddenError():
            return RefusedError(403, str(error), details=_about(kind, name))
        case ExpiredError():
            return RefusedError(410, str(error))
        case BadRequestError(reason=reason):
            return RefusedError(400, str(error), reason=reason)
        case UnavailableError() | FencedError():
            return unavailable(str(error))
        case _:
            return RefusedError(500, str(error))


def _invalid(error: InvalidError, kind: Kind | None, problems: Iterable[Problem]) -> RefusedError:
    told = [str(problem) for problem in problems]
    joined = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    known = kind or KINDS.get(error.kind)
    title = f"{error.kind}.{known.group}" if known and known.group else error.kind
    details = Details(
        name=error.name,
        group=known.group if known else "",
        kind=error.kind,
        causes=tuple(
            Cause(
                reason="FieldValueRequired" if problem.found is None else "FieldValueInvalid",
                message=problem.message,
                field=problem.path,
            )
            for problem in error.problems
        ),
    )
    return RefusedError(422, f'{title} "{error.name}" is invalid: {joined}', details=details)


def _conflict(error: ConflictError, key: Key) -> RefusedError:
    why = (
        "the object has been modified; please apply your changes to the latest version "
        f"and try again (stored {error.found}, given {error.expected})"
    )
    message = f'Operation cannot be fulfilled on {_resource(key)} "{key.name}": {why}'
    return RefusedError(409, message, details=_details(key))


def success(kind: Kind, name: str, uid: str) -> Status:
    """The body of a deletion that is done."""
    details = Details(name=name, group=kind.group, kind=kind.plural, uid=uid)
    return Status(status="Success", details=details, code=200)


def _resource(key: Key) -> str:
    kind = KINDS[key.kind]
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def _details(key: Key) -> Details:
    return _about(KINDS[key.kind], key.name)


def _about(kind: Kind | None, name: str) -> Details:
    if kind is None:
        return Details(name=name)
    return Details(name=name, group=kind.group, kind=kind.plural)


def warning_headers(warnings: Iterable[str]) -> tuple[tuple[bytes, bytes], ...]:
    """`Warning` headers, which kubectl prints; only what a header may carry."""
    return tuple((b"warning", _warning(text)) for text in warnings)


def _warning(text: str) -> bytes:
    plain = "".join(char if char.isprintable() else " " for char in text)[:1000]
    quoted = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode("ascii", "replace")


def as_object(status: Status) -> dict[str, Any]:
    """A status as the object of an ERROR event."""
    return {"type": "ERROR", "object": status}
