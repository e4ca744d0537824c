"""Refusals of commands, as errors of the command line.

Apart from the other errors, because every start of the program loads those.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from interlock.client.errors import BAD_INPUT, CONFLICT, CommandError
from interlock.commands.errors import OrderRefusedError, Refusal


def told_as_command(error: OrderRefusedError) -> CommandError:
    """The refusal of a command, in terms of the flags that gave its options."""
    message = error.message
    if error.option:
        given = f" {error.found!r}" if error.found else ""
        message = f"--{_FLAGS.get(error.option, error.option)}{given}: {message}"
    code = CONFLICT if error.refusal is Refusal.CONFLICT else BAD_INPUT
    return CommandError(message, hint=error.hint, code=code)


#: Options of commands that are typed by another name.
_FLAGS = {"lasts": "for"}


@contextmanager
def refusals() -> Iterator[None]:
    """Have refusals of commands end the command line as its own errors do."""
    try:
        yield
    except OrderRefusedError as error:
        raise told_as_command(error) from None
