"""Storms over workers that are killed, hung and sent away, and what finds a broken promise there.

They are measured in kills and operations, never in seconds, as all storms are.
"""

from __future__ import annotations

from pathlib import Path

from support.storm.__main__ import lines_of
from support.storm.plants import Plant
from support.storm.workers import WorkersPlan, run_workers


def test_no_promise_is_broken_in_a_storm_over_workers(tmp_path: Path) -> None:
    outcome = run_workers(WorkersPlan(seed=1, kills=10, hangs=2, operations=40, where=tmp_path))

    assert not outcome.broken, "\n".join(lines_of(outcome))


def test_what_is_handed_out_twice_is_found(tmp_path: Path) -> None:
    """Every order goes to two workers, for as long as there are two."""
    plan = WorkersPlan(seed=1, kills=2, hangs=0, operations=20, plant=Plant.TWICE, where=tmp_path)

    outcome = run_workers(plan)

    found = {check.name for check in outcome.broken}
    assert "attempts begun twice" in found, "\n".join(lines_of(outcome))
