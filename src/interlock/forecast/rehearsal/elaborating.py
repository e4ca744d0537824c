"""What a worker of a rehearsal makes of a request: the steps that a rule gives as its result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import json

from interlock.errors import BadRequestError, InvalidError, Problem
from interlock.findings import child, did_you_mean
from interlock.forecast.rehearsal.scenario import WorkRule
from interlock.forecast.rehearsal.work import ELABORATE
from interlock.resources.door.validation import read_resource
from interlock.resources.job import Job
from interlock.resources.steps import Elaboration

EXPECTED = "expected {steps: [...]}, and what the operation returns as `returns`"
#: What somebody is told whose scenario has a function for an operation, and not its steps.
MISSING = (
    "no rule under `work` says which steps it has:"
    " give one with match: {step: elaborate} and result: {steps: [...]}"
)
_FIELDS = ("steps", "returns")


def is_elaboration(rule: WorkRule) -> bool:
    """Whether a rule is for nothing but the making of steps."""
    return rule.match.step == ELABORATE


def flaws_of(result: Any, path: str) -> Iterator[Problem]:
    """Everything that is wrong with what a rule makes of a request."""
    if not isinstance(result, dict) or not isinstance(result.get("steps"), list):
        yield Problem(path, EXPECTED, result)
        return
    for name in result:
        if name not in _FIELDS:
            yield Problem(child(path, name), f"unknown field{did_you_mean(name, _FIELDS)}")
    try:
        read_resource(_manifest(result))
    except InvalidError as error:
        for one in error.problems:
            yield Problem(f"{path}{one.path.removeprefix('spec')}", one.message, one.found)
    except BadRequestError as error:
        yield Problem(path, str(error))


def elaboration_of(result: Any) -> Elaboration | None:
    """The steps that a rule gives; none when it gives none that are good."""
    if any(flaws_of(result, "")):
        return None
    job, _ = read_resource(_manifest(result))
    assert isinstance(job, Job)
    returns = result.get("returns")
    told = "" if returns is None else json.encode(returns).decode()
    return Elaboration(steps=job.spec.steps or (), returns=told)


def _manifest(result: dict[str, Any]) -> dict[str, Any]:
    """The steps as those of a Job: so they are held to the same rules."""
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "elaborated"},
        "spec": {"steps": result["steps"]},
    }
