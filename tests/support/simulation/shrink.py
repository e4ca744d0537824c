"""Cuts a failing script down to the steps that matter."""

from __future__ import annotations

from collections.abc import Sequence

from support.simulation.faults import CALM, FaultRates
from support.simulation.script import Step
from support.simulation.world import Outcome, World

#: How many worlds may be run to make a failure smaller.
EFFORT = 300


class Shrinker:
    """Tries smaller scripts as long as the same promise is broken."""

    def __init__(self, world: type[World], seed: int, promise: str) -> None:
        self._world = world
        self._seed = seed
        self._promise = promise
        self._runs = 0
        self.rates: FaultRates | None = None
        self.best: Outcome | None = None

    def shrink(self, script: Sequence[Step]) -> tuple[Step, ...]:
        """The smallest script that was found; chunks are left out first, then single steps."""
        steps = tuple(script)
        if self._fails(steps, CALM):
            self.rates = CALM
        size = max(1, len(steps) // 2)
        while size >= 1 and self._runs < EFFORT:
            shorter = self._without_chunks(steps, size)
            if len(shorter) == len(steps):
                size //= 2
            steps = shorter
        return steps

    def _without_chunks(self, steps: tuple[Step, ...], size: int) -> tuple[Step, ...]:
        at = 0
        while at < len(steps) and self._runs < EFFORT:
            shorter = steps[:at] + steps[at + size :]
            if self._fails(shorter, self.rates):
                steps = shorter
            else:
                at += size
        return steps

    def _fails(self, steps: tuple[Step, ...], rates: FaultRates | None) -> bool:
        self._runs += 1
        outcome = self._world(self._seed, steps, rates).run()
        same = outcome.broken is not None and outcome.broken.promise == self._promise
        if same:
            self.best = outcome
        return same
