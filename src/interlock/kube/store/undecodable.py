"""Stored objects that cannot be read: told once, remembered, and in nobody's way."""

from __future__ import annotations

import logging

from interlock.kube.store.codec import Undecodable
from interlock.resources.metadata import Key

logger = logging.getLogger("interlock.kube.store")


class Undecodables:
    """The objects that could not be read when they were last seen."""

    def __init__(self) -> None:
        self._held: dict[Key, Undecodable] = {}
        #: How often one was met.
        self.seen = 0

    @property
    def held(self) -> tuple[Undecodable, ...]:
        """All of them."""
        return tuple(self._held.values())

    def note(self, bad: Undecodable) -> None:
        """Remember one, and tell it unless it was told."""
        self.seen += 1
        before = self._held.get(bad.key)
        self._held[bad.key] = bad
        if before is None or before.version != bad.version:
            logger.warning("%s (uid %s) cannot be read: %s", bad.key, bad.uid, bad.problem)

    def clear(self, key: Key) -> None:
        """The object of this name was read, or is gone."""
        if self._held:
            self._held.pop(key, None)
