"""A store is put back while tasks run, as the trial `restores` of storms does for longer."""

from __future__ import annotations

from pathlib import Path

from support.storm.__main__ import lines_of
from support.storm.restores import RestorePlan, run_restores


def test_no_promise_is_broken_by_restores_in_place(tmp_path: Path) -> None:
    outcome = run_restores(RestorePlan(seed=1, times=2, where=tmp_path))

    assert not outcome.broken, "\n".join(lines_of(outcome))
