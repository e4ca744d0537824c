"""Errors that are raised on purpose, and problems of what was given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from interlock.resources.metadata import Key


class InterlockError(Exception):
    """Base of every error this package raises on purpose."""

    #: True when the same call, repeated later, may succeed.
    retryable: ClassVar[bool] = False


class Problem(NamedTuple):
    """One thing that is wrong with an object: where, what was found, what was expected."""

    #: The field, as a person would write it: ``spec.retries.delay``, ``spec.locks[0].key``.
    path: str
    #: What is wrong and, where one can be guessed, what was probably meant.
    message: str
    #: The value that was found, shortened; None when a field is missing.
    found: object = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class InvalidError(InterlockError):
    """An object was refused at the door; nothing of it was stored."""

    def __init__(self, kind: str, name: str, problems: Iterable[Problem]) -> None:
        self.kind = kind
        self.name = name
        self.problems = tuple(problems)
        told = "; ".join(map(str, self.problems))
        super().__init__(f"{kind} {name or '(no name)'} is invalid: {told}")


class BadRequestError(InterlockError):
    """A request that makes no sense whatever is stored: a bad selector, a bad continue token."""

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        #: What programs tell this sort of them by; empty when it is of none.
        self.reason = reason


class NotFoundError(InterlockError):
    """There is no such resource."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"{key}: not found")
        self.key = key


class AlreadyExistsError(InterlockError):
    """A resource with that kind, namespace and name is already there."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"{key}: already exists")
        self.key = key


class ConflictError(InterlockError):
    """A resource changed after the caller read it, or is not the one the caller meant."""

    retryable = True

    def __init__(self, key: Key, *, expected: str, found: str) -> None:
        super().__init__(f"{key}: stored version is {found}, caller read {expected}")
        self.key = key
        self.expected = expected
        self.found = found


class ForbiddenError(InterlockError):
    """The request is understood and refused, whatever is retried."""


class TooManyPendingError(InterlockError):
    """As many Jobs as there may be for one target are not over yet."""

    retryable = True

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(
            f"there are {limit} unfinished Jobs for {path} already, and there may be {limit}: "
            "nothing was stored"
        )
        self.path = path
        self.limit = limit


class ExpiredError(InterlockError):
    """A version to resume from is older than what the store still remembers: list again."""

    def __init__(self, version: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {version} ({oldest})")
        self.version = version
        self.oldest = oldest


class UnavailableError(InterlockError):
    """The store or runtime cannot serve now (disk full, stopping, not reachable)."""

    retryable = True


class FencedError(InterlockError):
    """A newer leader has taken over; what this one asks for is refused."""
