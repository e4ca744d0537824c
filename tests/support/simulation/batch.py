"""Many worlds, over several processes."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Iterable, Iterator

from msgspec import Struct

from support.simulation.worlds import WORLDS


class Result(Struct, frozen=True):
    """What is worth telling of one world."""

    world: str
    seed: int
    simulated_s: float
    steps: int
    broken: str = ""


def run_all(work: Iterable[tuple[str, int]], jobs: int) -> Iterator[Result]:
    """Run worlds, in this process or in several, and tell of each as it is done."""
    if jobs <= 1:
        yield from map(run_one, work)
        return
    # A fresh interpreter per worker: a fork would copy whatever threads the parent has.
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(run_one, work, chunksize=4)


def run_one(which: tuple[str, int]) -> Result:
    """Run the world of a name and a seed."""
    logging.disable(logging.CRITICAL)
    name, seed = which
    outcome = WORLDS[name](seed).run()
    broken = str(outcome.broken) if outcome.broken is not None else ""
    return Result(name, seed, outcome.simulated_s, outcome.steps, broken)
