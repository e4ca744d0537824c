"""The embedded server and a cluster tell the same story of the same Jobs."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

import pytest

from support.differential import Scenario, play, play_schedule
from support.differential.cluster import ClusterStage
from support.differential.embedded import EmbeddedStage
from support.differential.scenarios import SCENARIOS, SCHEDULES
from support.kube import Access


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStage]:
    with EmbeddedStage(tmp_path_factory.mktemp("embedded")) as stage:
        yield stage


@pytest.fixture(scope="module")
def on_cluster(cluster: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterStage]:
    with ClusterStage(cluster, tmp_path_factory.mktemp("controller")) as stage:
        yield stage


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_both_modes_tell_the_same_story(
    scenario: Scenario, embedded: EmbeddedStage, on_cluster: ClusterStage
) -> None:
    there, here = play(scenario, on_cluster), play(scenario, embedded)

    found = unified_diff(here, there, "embedded", "cluster", n=0, lineterm="")
    assert here == there, "\n".join(found)


@pytest.mark.parametrize("name", SCHEDULES)
def test_both_modes_tell_the_same_story_of_schedules(
    name: str, embedded: EmbeddedStage, on_cluster: ClusterStage
) -> None:
    act = SCHEDULES[name]
    there, here = play_schedule(name, act, on_cluster), play_schedule(name, act, embedded)

    found = unified_diff(here, there, "embedded", "cluster", n=0, lineterm="")
    assert here == there, "\n".join(found)
