"""Cooperative work: much of it on one event loop, a part at a time.

Whoever goes through everything there is in one turn keeps all others waiting: a lease that is not
renewed in time is lost, and the next leadership would begin with the same work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

T = TypeVar("T")

#: So many things are dealt with in one turn.
PART = 500


async def in_parts(things: Sequence[T], part: int = PART) -> AsyncIterator[Sequence[T]]:
    """The things, so many at a time; between two parts others get their turn."""
    for at in range(0, len(things), part):
        if at:
            await asyncio.sleep(0)
        yield things[at : at + part]
