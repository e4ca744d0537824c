"""What is to go and is there yet: what it waits for, who can do something, and how."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.client.finalizing import Holdup, holdup_of
from interlock.client.kinds import JOB_CONFIGS, JOBS, KINDS, Kind

NAMESPACES = next(kind for kind in KINDS if kind.name == "Namespace")
STARTED = {"startedAt": "2026-01-05T12:00:00Z"}
STUCK = {"operation": {"state": "reverting", "stuckMessage": "undo of a is out of retries"}}


def a_job(phase: str, execution: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    told = {"phase": phase, "execution": {**STARTED, **(execution or {})}, **status}
    return {"metadata": {"name": "x", "finalizers": ["interlock.dev/tasks"]}, "status": told}


@pytest.mark.parametrize(
    ("job", "told", "way_out", "is_for_people"),
    [
        pytest.param(
            a_job("Stuck", STUCK),
            "it is stuck: undo of a is out of retries",
            "see to it, then: interlock op roll-back | resolve | remove x --reason …",
            True,
            id="stuck",
        ),
        pytest.param(
            a_job("Unknown"),
            "what became of it is not known",
            "if it is surely gone: interlock release x --reason …",
            True,
            id="unknown",
        ),
        pytest.param(
            a_job("Killing", trouble={"order": "Stop", "message": "pods: forbidden"}),
            "its stop is denied: pods: forbidden",
            "",
            True,
            id="denied",
        ),
        pytest.param(
            a_job("Reverting", {"operation": {"state": "reverting"}}),
            "what it did is being undone",
            "interlock op show x",
            False,
            id="reverting",
        ),
        pytest.param(
            a_job("Running", {"operation": {"state": "executing"}}),
            "its steps under way end, then they are undone",
            "interlock op show x",
            False,
            id="executing",
        ),
        pytest.param(
            a_job("Killing"),
            "its tasks are being stopped",
            "to end them at once: interlock kill x",
            False,
            id="running",
        ),
        pytest.param(a_job("Succeeded"), "it is about to go", "", False, id="over"),
        pytest.param(
            {"metadata": {"name": "x"}}, "it is about to go", "", False, id="not looked at"
        ),
    ],
)
def test_a_job(job: dict[str, Any], told: str, way_out: str, is_for_people: bool) -> None:
    assert holdup_of(JOBS, job) == Holdup(told, way_out, is_for_people)


@pytest.mark.parametrize(
    ("kind", "finalizers", "told", "is_for_people"),
    [
        pytest.param(
            JOB_CONFIGS, ["foregroundDeletion"], "what belongs to it goes first", False, id="parts"
        ),
        pytest.param(
            JOB_CONFIGS,
            ["acme.io/keep"],
            "it is held by acme.io/keep, which whoever put it there takes away",
            True,
            id="another's",
        ),
        pytest.param(NAMESPACES, [], "what is in it goes first", False, id="a namespace"),
        pytest.param(JOB_CONFIGS, [], "it is about to go", False, id="nothing"),
    ],
)
def test_other_kinds(kind: Kind, finalizers: list[str], told: str, is_for_people: bool) -> None:
    item = {"metadata": {"name": "x", "finalizers": finalizers}}
    holdup = holdup_of(kind, item)
    assert (holdup.told, holdup.is_for_people) == (told, is_for_people)
