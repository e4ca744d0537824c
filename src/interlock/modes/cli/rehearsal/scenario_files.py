"""Scenario files: found, read, and refused with the line of every problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.errors import Problem
from interlock.forecast.rehearsal.reading import ScenarioError, read_scenario
from interlock.forecast.rehearsal.script import Script
from interlock.modes.cli.input.documents import Given, Refusal
from interlock.modes.cli.input.files import read_file
from interlock.resources.door.manifests import Document, ManifestError, read_manifests


class BadScenarioError(CommandError):
    """A scenario that cannot be played."""

    def __init__(self, refusal: ScenarioRefusal) -> None:
        super().__init__("", code=BAD_INPUT)
        self.refusal = refusal


class ScenarioRefusal(Refusal):
    """Everything that is wrong with a scenario."""

    def lines(self) -> list[str]:
        """For people: where, what was found, what to do."""
        return [f"{self.given.file}: this scenario cannot be played", *super().lines()[1:]]


def load_scenario(name: str) -> Script:
    """Read and check a scenario.

    Raises:
        BadScenarioError: Something in it is wrong.
        CommandError: There is no such file, or it holds no scenario.
    """
    document = _document(name)
    above = Path(name).parent
    try:
        return read_scenario(document.data, lambda other: _manifests(above / other))
    except ScenarioError as error:
        problems = tuple(_shown(one) for one in error.problems)
        refusal = ScenarioRefusal(Given(name, document), problems)
        raise BadScenarioError(refusal) from None


def _shown(problem: Problem) -> Problem:
    found = problem.found
    small = found if isinstance(found, str | int | float | bool | None) else "{…}"
    return Problem(problem.path, problem.message, small)


def _document(name: str) -> Document:
    try:
        documents = read_manifests(read_file(name))
    except ManifestError as error:
        place = f", line {error.line}" if error.line else ""
        raise CommandError(f"{name}{place}: {error.message}", code=BAD_INPUT) from None
    if len(documents) != 1:
        hint = "a scenario is one document; its objects stand under `objects`"
        raise CommandError(f"{name} holds {len(documents)} documents", hint=hint, code=BAD_INPUT)
    return documents[0]


def _manifests(path: Path) -> list[dict[str, Any]]:
    """The manifests of a file that a scenario names.

    Raises:
        ValueError: It cannot be read.
    """
    try:
        return [document.data for document in read_manifests(read_file(str(path)))]
    except CommandError as error:
        raise ValueError(error.message) from None
    except ManifestError as error:
        raise ValueError(f"{path}: {error}") from None
