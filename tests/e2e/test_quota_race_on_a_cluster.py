"""The last unit of a quota on a real cluster: of two controllers that want it, one gets it."""

from __future__ import annotations

from pathlib import Path

from support.cluster_store import install
from support.kube import Access
from support.kube.quota_race import race

RACES = 20


def test_of_two_controllers_one_gets_the_last_unit(cluster: Access, tmp_path: Path) -> None:
    """`python -m bench cluster_race` runs a thousand of these."""
    install(cluster)

    outcome = race(cluster, tmp_path, RACES)

    assert outcome.both == []
    assert outcome.ended == 2 * RACES
    assert outcome.grants == 2 * RACES
