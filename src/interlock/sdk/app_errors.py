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
