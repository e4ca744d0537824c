"""The checks of Schedulings: what no rule can say, and what may change of one."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.errors import InvalidError
from interlock.resources.door.checking import check_update, problems_of
from interlock.resources.door.validation import read_resource
from interlock.resources.metadata import Resource


def a_plan(**spec: Any) -> Resource:
    """A plan with a spec as people write it."""
    body = {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Scheduling",
        "metadata": {"name": "evening", "namespace": "default"},
        "spec": {"testBed": "bed"} | spec,
    }
    return read_resource(body)[0]


def jobs(**slots: Any) -> dict[str, Any]:
    """Jobs with their slots: texts as slotIds, numbers as positions."""
    named = [
        {"name": name} | ({"slotIds": given} if isinstance(given[0], str) else {"positions": given})
        for name, given in slots.items()
    ]
    return {"jobs": named}


QUEUE = {"queueBased": ["a", "a", "b"]}
SLOTS = {"slotBased": jobs(a=[0, 1], b=["n/2"])}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        pytest.param(QUEUE, [], id="a queue, with entries of one Job twice"),
        pytest.param(SLOTS, [], id="slots by position and as what they are"),
        pytest.param({}, ["spec"], id="neither"),
        pytest.param(QUEUE | SLOTS, ["spec"], id="both"),
        pytest.param(
            QUEUE | {"positions": [0], "slotIds": ["n/0"]}, ["spec.positions"], id="two parts"
        ),
        pytest.param(
            {"slotBased": jobs(a=[0, 3]), "positions": [0, 1]},
            ["spec.slotBased.jobs[0].positions[1]"],
            id="a position outside of the part",
        ),
        pytest.param(
            {"slotBased": jobs(a=["n/0"], b=["n/1"]), "slotIds": ["n/0"]},
            ["spec.slotBased.jobs[1].slotIds[0]"],
            id="a slot outside of the part",
        ),
        pytest.param(
            {"slotBased": jobs(a=[7]), "slotIds": ["n/0"]}, [], id="what only the bed can tell"
        ),
        pytest.param(
            {"slotBased": jobs(**{f"j{n}": list(range(1000)) for n in range(6)})},
            ["spec.slotBased.jobs"],
            id="more slots than a record can hold",
        ),
    ],
)
def test_what_a_plan_says_of_slots(spec: dict[str, Any], paths: list[str]) -> None:
    try:
        found = problems_of(a_plan(**spec))
    except InvalidError as error:
        found = error.problems

    assert [problem.path for problem in found] == paths


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        pytest.param(QUEUE, {"queueBased": ["a", "a", "b", "a", "c"]}, "", id="a longer queue"),
        pytest.param(QUEUE, {"queueBased": ["a", "a"]}, "spec.queueBased", id="a shorter one"),
        pytest.param(QUEUE, {"queueBased": ["a", "b", "a"]}, "spec.queueBased", id="another order"),
        pytest.param(QUEUE, QUEUE | {"whenFailed": "Stop"}, "", id="another policy"),
        pytest.param(QUEUE, QUEUE | {"testBed": "c"}, "spec.testBed", id="another bed"),
        pytest.param(QUEUE, QUEUE | {"positions": [1]}, "spec.positions", id="another part"),
        pytest.param(QUEUE, SLOTS, "spec", id="another sort of plan"),
        pytest.param(SLOTS, {"slotBased": jobs(a=[0, 1], b=["n/2"], c=[3])}, "", id="one more Job"),
        pytest.param(
            SLOTS, {"slotBased": jobs(a=[0], b=["n/2"])}, "spec.slotBased.jobs", id="other slots"
        ),
        pytest.param(
            SLOTS,
            {"slotBased": SLOTS["slotBased"] | {"mode": "relaxed"}},
            "spec.slotBased.mode",
            id="another mode",
        ),
    ],
)
def test_a_plan_can_only_be_extended_at_its_end(
    before: dict[str, Any], after: dict[str, Any], path: str
) -> None:
    found = check_update(a_plan(**before), a_plan(**after))

    assert [problem.path for problem in found] == ([path] if path else [])
