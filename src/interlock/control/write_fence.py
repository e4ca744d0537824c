"""The write fence: open while this control plane leads, shut the moment it may not write."""

from __future__ import annotations

from math import inf

from interlock.control.clock import Clock
from interlock.errors import FencedError


class WriteFence:
    """Passed before every write. It starts shut, and shuts by itself when a lease runs out.

    The deadline is compared at every write, so that a process which was stopped and goes on
    later finds the fence shut before any timer of its own has rung.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = -inf
        #: The number of the leadership that the fence is or was open for; rises with each.
        self.term = 0
        #: Why the fence is shut.
        self.reason = "not leading yet"

    @property
    def is_open(self) -> bool:
        """Whether a write would pass."""
        return self._clock.monotonic() < self._until

    def open(self, term: int, until: float = inf) -> None:
        """Let writes pass until a moment of the monotonic clock."""
        self.term = term
        self._until = until
        self.reason = "the lease ran out"

    def shut(self, reason: str) -> None:
        """Let no write pass any more."""
        self._until = -inf
        self.reason = reason

    def shut_for(self, term: int, reason: str) -> None:
        """Let no write of a term pass any more, because another leads.

        That is often heard late: the same control plane may have begun another term since, which
        goes on.
        """
        if self.is_open and self.term == term:
            self.shut(reason)

    def check(self) -> None:
        """Pass the fence.

        Raises:
            FencedError: It is shut.
        """
        if self._clock.monotonic() >= self._until:
            raise FencedError(f"writing was stopped: {self.reason}")
