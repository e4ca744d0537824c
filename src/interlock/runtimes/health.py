"""Health of the keeper as the server sees it: told when it changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger("interlock.keeper")

#: A keeper that has not answered for so long counts as hanging.
PATIENCE_S = 10.0


class Health:
    """What keeps the keeper from its work; empty when nothing is known to."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self.trouble = ""
        #: Set while there is trouble.
        self.troubled = asyncio.Event()

    def tell(self, trouble: str) -> None:
        """Something is wrong; it stays so until `well` is told."""
        if trouble != self.trouble:
            logger.warning("nothing is started: %s", trouble)
        self.trouble = trouble
        self.troubled.set()

    def well(self) -> None:
        """The keeper answered."""
        if self.trouble:
            logger.info("the keeper works again")
        self.trouble = ""
        self.troubled.clear()

    @contextmanager
    def expecting(self, trouble: Callable[[], str]) -> Iterator[None]:
        """Whatever is waited for within should come soon; when it does not, this is the trouble.

        Nothing is given up: a keeper that goes on later answers then.
        """
        late = asyncio.get_running_loop().call_later(self.patience_s, lambda: self.tell(trouble()))
        try:
            yield
        finally:
            late.cancel()
