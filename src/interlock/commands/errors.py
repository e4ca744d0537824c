"""Refusals of orders: what is wrong, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

from interlock.errors import InterlockError, Problem


class Refusal(StrEnum):
    """Whose fault a refusal is."""

    #: What was asked for makes no sense, whatever the state.
    INVALID = "Invalid"
    #: The object is not in a state that allows it.
    CONFLICT = "Conflict"


class OrderRefusedError(InterlockError):
    """An order that is not carried out; nothing was changed."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        refusal: Refusal = Refusal.INVALID,
        option: str = "",
        found: str = "",
        problems: tuple[Problem, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        #: What to do about it, in the words of the command line.
        self.hint = hint
        self.refusal = refusal
        #: The option that is to blame, by its name in the command's options; empty for none.
        self.option = option
        #: What was given for it.
        self.found = found
        #: Single things that are wrong, when the message tells of several.
        self.problems = problems


def conflict(message: str, hint: str = "") -> OrderRefusedError:
    """The refusal of an order that the state does not allow."""
    return OrderRefusedError(message, hint=hint, refusal=Refusal.CONFLICT)
