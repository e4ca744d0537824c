"""What may be written as the steps of an operation: a graph that names only what there is."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.resources.codec import from_builtins
from interlock.resources.door.checking import problems_of_spec
from interlock.resources.job import JobSpec

WORK = {"process": {"command": ["true"]}}


def problems(*steps: dict[str, Any], **spec: Any) -> list[str]:
    """Each problem as its path and its words."""
    made = [{"name": "ab"[at] if at < 2 else "c", "run": WORK} | s for at, s in enumerate(steps)]
    found = problems_of_spec(from_builtins({"steps": made} | spec, JobSpec))
    return [f"{problem.path}: {problem.message}" for problem in found]


def test_a_chain_and_a_graph_are_good() -> None:
    assert problems({}, {}, {}) == []
    assert problems({}, {"needs": []}, {"needs": ["a", "b"]}, stepsAtOnce=2) == []


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [{"needs": ["b"]}, {}],
            "spec.steps: they need each other in a ring: a -> b -> a",
            id="a ring",
        ),
        pytest.param(
            [{"needs": ["a"]}, {}],
            "spec.steps: they need each other in a ring: a -> a",
            id="a step that needs itself",
        ),
        pytest.param(
            [{"name": "reserve"}, {"needs": ["reserv"]}],
            'spec.steps[1].needs[0]: there is no such step; did you mean "reserve"?',
            id="what is not there",
        ),
        pytest.param(
            [{}, {"needs": ["a", "a"]}], "spec.steps[1].needs[1]: is there twice", id="twice"
        ),
        pytest.param(
            [{}, {"name": "a"}], "spec.steps[1].name: is there twice", id="one name, and no ring"
        ),
        pytest.param(
            [{"beforeRetry": "RollBackFirst"}],
            "spec.steps[0].beforeRetry: expected an undo to roll back with",
            id="rolled back without an undo",
        ),
        pytest.param(
            [{}, {"beforeRetry": "RollBack"}],
            "spec.steps[1].rollBack: expected the steps to be undone before a retry",
            id="rolled back, and not what",
        ),
        pytest.param(
            [{}, {"rollBack": ["a"]}],
            "spec.steps[1].rollBack: is for beforeRetry RollBack alone",
            id="what, and not that it is",
        ),
        pytest.param(
            [{}, {"needs": []}, {"needs": ["b"], "beforeRetry": "RollBack", "rollBack": ["a"]}],
            "spec.steps[2].rollBack[0]: c does not need it, directly or otherwise",
            id="what it does not build on",
        ),
        pytest.param(
            [{"irreversible": True}, {"beforeRetry": "RollBack", "rollBack": ["a"]}],
            "spec.steps[1].rollBack[0]: a would have to be taken back with it, and is irreversible",
            id="what cannot be taken back",
        ),
        pytest.param(
            [{}, {"undo": WORK, "undoCoveredBy": "b"}],
            "spec.steps[1].undoCoveredBy: expected another step",
            id="covered by itself",
        ),
        pytest.param(
            [{"undoRetries": {"limit": 1}}],
            "spec.steps[0].undoRetries: means nothing without undo",
            id="retries of no undo",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(steps: list[dict[str, Any]], expected: str) -> None:
    assert problems(*steps) == [expected]


def test_what_a_job_says_for_its_tasks_an_operation_says_by_step() -> None:
    assert problems({}, retries={"limit": 1}) == [
        "spec.retries: an operation has them by step: give retries to spec.steps[N]"
    ]
