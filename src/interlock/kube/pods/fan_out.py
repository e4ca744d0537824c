"""Fan-out: many requests at once, of which single ones may fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from interlock.errors import FencedError, InterlockError, UnavailableError

Item = TypeVar("Item")

#: So many orders of one Job are carried out at once. The client has a limit of its own for all: a
#: Job with one task waits behind no more than this of each that has thousands.
AT_ONCE = 16


async def for_each(
    items: Sequence[Item], work: Callable[[Item], Awaitable[object]]
) -> list[InterlockError]:
    """Do something for every item, a few at a time; returns what went wrong with single ones."""
    waiting = iter(items)
    errors: list[InterlockError] = []

    async def next_ones() -> None:
        for item in waiting:
            try:
                await work(item)
            except InterlockError as error:
                errors.append(error)

    if len(items) == 1:
        await next_ones()
    elif items:
        await asyncio.gather(*(next_ones() for _ in range(min(AT_ONCE, len(items)))))
    return errors


def raise_worst(errors: Sequence[InterlockError]) -> None:
    """Raise what the caller must know before all else, if anything went wrong."""
    # Of several the same one every time, in whatever order they came.
    errors = sorted(errors, key=str)
    for kind in (FencedError, UnavailableError, InterlockError):
        for error in errors:
            if isinstance(error, kind):
                raise error
