"""How much room a rehearsed machine has: what may be written, and who is placed where."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.forecast.rehearsal.reading import ScenarioError, read_scenario
from interlock.forecast.rehearsal.simulated_capacity import Capacity, needs_of
from interlock.resources.pods import PodTemplate
from interlock.resources.tasks import TaskId
from interlock.resources.values.amounts import Amount
from interlock.testing.builders import a_job

SPAN = {"start": "2026-01-05T10:00:00Z", "end": "+1h"}
BOTH = {"capacity": {"cpu": 1}, "nodes": [{"cpu": 1}]}


@pytest.mark.parametrize(
    ("more", "path", "words"),
    [
        pytest.param({"capacity": {"cpu": -1}}, "capacity.cpu", "expected 0 to", id="negative"),
        pytest.param({"capacity": {"cpu": "x"}}, "capacity.cpu", "an amount such as", id="text"),
        pytest.param({"capacity": 3}, "capacity", "expected an object", id="a number"),
        pytest.param({"capacity": {}}, "capacity", "1 to 32 resources", id="nothing named"),
        pytest.param({"capacity": {"c p": 1}}, 'capacity["c p"]', "bad name", id="a bad name"),
        pytest.param({"nodes": [{"cpu": 1}, {}]}, "nodes[1]", "1 to 32", id="an empty node"),
        pytest.param({"nodes": {"cpu": 1}}, "nodes", "expected a list", id="no list"),
        pytest.param({"nodes": [{"a": 1}] * 1001}, "nodes", "at most 1000", id="too many"),
        pytest.param(BOTH, "nodes", "expected capacity or nodes, found both", id="both"),
    ],
)
def test_bad_capacity_is_told_with_its_place(more: dict[str, Any], path: str, words: str) -> None:
    assert words in problems_of({"settings": more})[f"settings.{path}"]


@pytest.mark.parametrize(
    ("flaps", "path", "words"),
    [
        pytest.param({"ready": "5s"}, "flaps.unready", "is required", id="half"),
        pytest.param({"ready": "0s", "unready": "5s"}, "flaps.ready", "longer than 0s", id="0s"),
        pytest.param({"ready": "5s", "unready": "x"}, "flaps.unready", "duration", id="none"),
    ],
)
def test_bad_flaps_are_told_with_their_place(flaps: object, path: str, words: str) -> None:
    assert words in problems_of({"work": [{"flaps": flaps}]})[f"work[0].{path}"]


def problems_of(more: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ScenarioError) as refused:
        read_scenario({**SPAN, **more}, lambda _: [])
    return {problem.path: problem.message for problem in refused.value.problems}


def task(number: int) -> TaskId:
    return TaskId("uid", number, 0)


@pytest.mark.parametrize(
    ("nodes", "needs", "placed"),
    [
        pytest.param([{"cpu": 3}], [2, 2, 1], [0, 2], id="a small one passes a wide one"),
        pytest.param([{"cpu": 2}, {"cpu": 2}], [1, 1, 2, 1], [0, 1, 2], id="whole on one node"),
        pytest.param([{"gpu": 1}], [9, 9], [0, 1], id="what is not named there is enough of"),
        pytest.param([{"cpu": 9, "tasks": 1}], [1, 1], [0], id="tasks count"),
        pytest.param([{"cpu": 2}], [2], [0], id="exact fit"),
        pytest.param([{"cpu": 2}], [3], [], id="never"),
    ],
)
def test_tasks_are_placed_where_they_fit(
    nodes: list[dict[str, int]], needs: list[int], placed: list[int]
) -> None:
    capacity = Capacity(nodes)

    found = [
        at for at, cpu in enumerate(needs) if capacity.take(task(at), {"cpu": cpu, "tasks": 1})
    ]

    assert found == placed
    assert [at for at in range(len(needs)) if capacity.waits(task(at))] == [
        at for at in range(len(needs)) if at not in placed
    ]


def test_places_that_come_free_go_to_those_who_fit_in_the_order_in_which_they_came() -> None:
    capacity = Capacity([{"cpu": 2}])
    for at, cpu in enumerate((2, 3, 1, 1, 1)):
        capacity.take(task(at), {"cpu": cpu})

    capacity.give_back(task(3))
    capacity.give_back(task(0))

    assert capacity.place_more() == [task(2), task(4)]
    assert capacity.place_more() == []


def test_a_task_takes_what_its_job_says_whether_it_is_of_a_queue_or_not() -> None:
    pods = {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}
    card = a_job("card", process=None, pod=PodTemplate(spec=pods["spec"]))

    assert needs_of(a_job("cpu", resources={"cpu": Amount(500)})) == {"cpu": 500, "tasks": 1000}
    assert needs_of(a_job("none")) == {"tasks": 1000}
    assert needs_of(None) == {"tasks": 1000}
    assert Capacity([{"gpu": 1000}]).take(task(0), needs_of(card))
    assert not Capacity([{"gpu": 0}]).take(task(0), needs_of(card))
