"""What is wrong with an application, with what it is told, or with what it returned."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.errors import InterlockError, Problem


class DeclarationError(InterlockError):
    """A step, an undo or an operation is declared wrongly: it is told when the module is loaded."""


class StepCallError(InterlockError):
    """A step or an operation was called where it cannot be."""


class ElaborationError(InterlockError):
    """An operation cannot be turned into steps."""


class ArgumentsError(InterlockError):
    """A function cannot be called with what was given."""

    def __init__(self, function: str, problems: Iterable[Problem]) -> None:
        self.function = function
        self.problems = tuple(problems)
        super().__init__(f"{function}: {'; '.join(map(str, self.problems))}")


class NotJsonError(InterlockError):
    """A value cannot be written as JSON, or not within the bounds of what is kept."""


class StepCancelled(InterlockError):  # noqa: N818 - said of what happened, as CancelledError is
    """The attempt was told to stop; raised by `ctx.check()`."""


class OperationFailed(InterlockError):  # noqa: N818 - the operation did, and not the caller
    """An operation that was run locally was not done: it was undone, or is stuck."""

    def __init__(self, message: str, *, history: tuple[str, ...], stuck: bool) -> None:
        super().__init__(message)
        #: What was run and undone, in order: "reserve", "dns failed: ...", "undo reserve".
        self.history = history
        #: Whether it could not be undone, so that on a server a person would have to decide.
        self.stuck = stuck
