"""Error translation: the API server's Status objects become our errors."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from interlock.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InterlockError,
    InvalidError,
    NotFoundError,
    Problem,
    UnavailableError,
)
from interlock.resources.metadata import Key


class NotServedError(UnavailableError):
    """The server does not know the kind; it may learn of it."""


class UnknownCallerError(UnavailableError):
    """The server does not know who we are; credentials are replaced while we run."""


class DistrustedError(UnavailableError):
    """The server's certificate is not one that we trust."""


class CannotNowError(UnavailableError):
    """The server answered, and cannot do it now: it, or somebody whom it asks, is in trouble."""


class NoRightError(ForbiddenError):
    """Whoever asks may not do that at all, whatever is asked for."""


class OverQuotaError(ForbiddenError):
    """There is no room in the namespace for one more, which may change at any time."""


class NamespaceGoingError(ForbiddenError):
    """Nothing is made any more in a namespace that is being deleted."""


class Cause(Struct, frozen=True):
    """One thing that is wrong with what was sent."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(Struct, frozen=True, rename="camel", kw_only=True):
    """What a refusal is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(Struct, frozen=True, kw_only=True):
    """The server's answer when it is not a resource."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: Details | None = None
    code: int = 0


_DECODER = msgspec.json.Decoder(Status)
#: What every too old version is told with.
_TOO_OLD = re.compile(r"too old resource version: (\d+) \((\d+)\)")
#: That a quota is used up, or was not counted yet, is told by no field. Only the words of the quota
#: itself are taken, in their place: what others say of quotas stays a refusal.
_QUOTA = re.compile(
    r'[\w.-]+ "[^"]*" is forbidden: ((?:exceeded quota|status unknown for quota): .*)', re.DOTALL
)
#: How much of an answer that is no Status is shown.
_SHOWN = 300


def read_status(code: int, body: bytes) -> Status:
    """The refusal in an answer; proxies and dying servers answer with plain text."""
    try:
        status = _DECODER.decode(body)
        if status.kind == "Status":
            return status if status.code else msgspec.structs.replace(status, code=code)
    except msgspec.DecodeError:
        pass
    said = body[:_SHOWN].decode(errors="replace").strip()
    return Status(code=code, message=said or f"HTTP status {code}")


def error_of(status: Status, key: Key, *, expected: str = "", version: int = 0) -> InterlockError:
    """Our error for a refusal of something about `key`.

    `expected` is the version that a write was to replace, `version` the one a list or watch was
    to begin at.
    """
    details = status.details or Details()
    match status.code:
        case 404:
            return _not_found(status, details, key)
        case 409 if status.reason == "AlreadyExists":
            return AlreadyExistsError(Key(key.kind, key.namespace, details.name or key.name))
        case 409:
            return _conflict(status, key, expected)
        case 410:
            return _expired(status, version)
        case 422:
            return InvalidError(key.kind, details.name or key.name, _problems(status, details))
        case 403:
            return _forbidden(status, details, key)
        case 401:
            return UnknownCallerError(f"the API server does not know who we are: {status.message}")
        case code if 400 <= code < 500 and code not in (408, 429):
            return BadRequestError(status.message)
        case _:
            return CannotNowError(f"the API server cannot answer now: {status.message}")


def _forbidden(status: Status, details: Details, key: Key) -> ForbiddenError:
    """What of a refusal can be told apart: all else is about what was asked for."""
    for cause in details.causes:
        if cause.reason == "NamespaceTerminating":
            return NamespaceGoingError(cause.message or status.message)
    if key.name and details.kind and not details.name:
        # Rights are looked at before the body is read, and the name of what is created is there
        # only. Whoever looks at the body names it.
        return NoRightError(status.message)
    if (found := _QUOTA.match(status.message)) is not None:
        return OverQuotaError(found[1])
    return ForbiddenError(status.message)


def _not_found(status: Status, details: Details, key: Key) -> InterlockError:
    """Only a 404 that names the object proves that it is not there."""
    if status.reason != "NotFound" or not details.name:
        return NotServedError(
            f"the API server does not serve {key.kind}: {status.message.strip()}; "
            "are the custom resource definitions installed?"
        )
    if details.kind == "namespaces":
        return NotFoundError(Key("Namespace", "", details.name))
    return NotFoundError(key)


def _conflict(status: Status, key: Key, expected: str) -> InterlockError:
    if "UID" in status.message or "uid" in status.message:
        return ConflictError(key, expected=expected or "another uid", found="another object's")
    return ConflictError(key, expected=expected or "an older one", found="a newer one")


def _expired(status: Status, version: int) -> InterlockError:
    if found := _TOO_OLD.search(status.message):
        return ExpiredError(int(found[1]), int(found[2]))
    return ExpiredError(version, version + 1)


def _problems(status: Status, details: Details) -> list[Problem]:
    if not details.causes:
        return [Problem("", status.message)]
    return [Problem(cause.field.lstrip("."), cause.message) for cause in details.causes]
