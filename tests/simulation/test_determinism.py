"""The same seed gives the same world, in this process and in any other."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.simulation.__main__ import main
from support.simulation.world import World
from support.simulation.worlds import WORLDS

_DIGESTS = """
from support.simulation.worlds import WORLDS
for seed in (3, 8):
    for world in WORLDS.values():
        print(world(seed).run().digest)
"""

#: Their histories once hung on the order in which the functions of a worker are gone through.
_LEFT_WORKERS = """
from support.simulation.worker_world import RivalWorkerOperationWorld
for seed in (0, 2, 5):
    print(RivalWorkerOperationWorld(seed).run().digest)
"""


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize("seed", [3, 8])
def test_the_same_seed_gives_the_same_history(world: type[World], seed: int) -> None:
    first, second = world(seed).run(), world(seed).run()

    assert first.digest == second.digest
    assert [str(line) for line in first.history.lines] == [
        str(line) for line in second.history.lines
    ]


@pytest.mark.parametrize(
    ("digests", "hash_seeds"),
    [
        pytest.param(_DIGESTS, "12", id="two seeds of every world"),
        pytest.param(_LEFT_WORKERS, "0123", id="orders that nobody can do when a worker goes"),
    ],
)
def test_the_order_of_sets_does_not_matter(digests: str, hash_seeds: str) -> None:
    """Python orders sets of text differently in every process; no history may depend on it."""
    told = {
        subprocess.run(
            [sys.executable, "-c", digests],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
            timeout=600,
        ).stdout
        for hash_seed in hash_seeds
    }

    assert len(told) == 1


def test_a_good_seed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--world", "World", "--verbose"]) == 0
    told = capsys.readouterr().out
    assert "World seed 3: every promise was kept" in told
    assert "lease is held by" in told


def test_many_seeds_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1", "--start", "3"]) == 0
    told = capsys.readouterr().out
    assert f"{len(WORLDS)} worlds in" in told
    assert "seeds/s" in told
    assert "simulated hours" in told
