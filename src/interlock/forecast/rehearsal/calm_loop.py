"""The simulated loop without luck: everything happens in the order it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from interlock.forecast.rehearsal.simulated_loop import SimLoop, SpinningError

#: How many callbacks may run at one moment before a world is said to spin.
MOST_AT_ONCE = 5_000_000


class CalmLoop(SimLoop):
    """Jumps from one moment at which something is due to the next."""

    def __init__(self, most_steps: int | None = None) -> None:
        """Begin; with `most_steps`, no more callbacks than that are ever run."""
        super().__init__(Random(0))
        self._most_steps = most_steps
        #: Called whenever all that is due at a moment has happened, before time moves on.
        self.on_settled: Callable[[], None] = lambda: None
        self._steps_before = 0

    def play_until(self, moment_us: int) -> None:
        """Let everything happen that is due up to a microsecond, and end there.

        Raises:
            SpinningError: Callbacks keep making callbacks at one moment.
        """
        with self._running():
            while True:
                self._drain()
                if not self._is_more_now():
                    self.on_settled()
                if not self._advance(moment_us):
                    break
        self._now_us = max(self._now_us, moment_us)

    def arrive(self, moment_us: int) -> None:
        """Move on to a moment at which nothing that is due has happened yet."""
        self._now_us = max(self._now_us, moment_us)

    def _is_more_now(self) -> bool:
        """Whether something else is due at this very moment."""
        return bool(self._timers) and self._timers[0][0] <= self._now_us

    def _drain(self) -> bool:
        self._steps_before = self.steps
        while self._step():
            if self.steps - self._steps_before > MOST_AT_ONCE:
                raise SpinningError(f"more than {MOST_AT_ONCE} callbacks at {self.time():.6f} s")
            if self._most_steps is not None and self.steps > self._most_steps:
                raise SpinningError(f"more than {self._most_steps} callbacks are needed")
        return True

    def _step(self) -> bool:
        """Run what one process has ready now; False when nobody has anything."""
        for process in self.processes:
            ready = process.ready
            if not ready or process.paused:
                continue
            for _ in range(len(ready)):
                if not ready or process.paused:
                    break
                handle = ready.popleft()
                if not handle._cancelled:
                    self.steps += 1
                    handle.run()
            return True
        return False
