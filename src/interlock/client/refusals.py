"""Refusals of commands that are worked out here, as answers that our own server would give.

Apart from the other errors, because every start of the program loads those.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from interlock.client.errors import BAD_INPUT, CONFLICT, AnswerError
from interlock.client.ordering import flag_told
from interlock.commands.errors import OrderRefusedError, Refusal


def told_as_command(error: OrderRefusedError) -> AnswerError:
    """The refusal of a command, in terms of the flags that gave its options."""
    message = error.message
    if error.option:
        message = flag_told(error.option, message, error.found)
    is_conflict = error.refusal is Refusal.CONFLICT
    status, code = (409, CONFLICT) if is_conflict else (422, BAD_INPUT)
    refused = AnswerError(status, {"reason": error.refusal.value}, message, code)
    refused.hint = error.hint
    return refused


@contextmanager
def refusals() -> Iterator[None]:
    """Have refusals of commands end the command line as its own errors do."""
    try:
        yield
    except OrderRefusedError as error:
        raise told_as_command(error) from None
