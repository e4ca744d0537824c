"""Servers whose dispatcher breaks a promise, to see that the storm over workers finds it."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

from interlock.runtimes.workers.attempts import At, Attempt, Worker
from interlock.runtimes.workers.placement import Placement
from support.storm.ground import PROGRAM

_RUN = "from interlock.modes.cli.main import run; sys.exit(run())"


class Plant(StrEnum):
    """What a server does wrong."""

    NOTHING = "nothing"
    #: What a worker has is handed out to another one too.
    TWICE = "twice"


def program_of(plant: Plant) -> tuple[str, ...]:
    """The program of a server that does this."""
    if plant is Plant.NOTHING:
        return PROGRAM
    tests = str(Path(__file__).parents[2])
    here = f"import sys; sys.path.insert(0, {tests!r}); from support.storm import plants"
    return (sys.executable, "-c", f"{here}; plants.{plant}(); {_RUN}")


def twice() -> None:
    """Hand out everything to two."""
    give = Placement.give

    def give_to_two(self: Placement, worker: Worker, attempt: Attempt, at: At) -> None:
        give(self, worker, attempt, at)
        assert attempt.call is not None
        others = [one for one in self._workers.values() if one is not worker]
        for other in others[:1]:
            other.mail.calls[attempt.id] = (attempt.call, attempt.size)
            self._post(other)

    Placement.give = give_to_two  # type: ignore[method-assign]
