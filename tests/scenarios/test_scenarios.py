"""The project's own table of scenarios, and the examples for users: each plays as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.forecast.rehearsal.player import Played, play
from interlock.modes.cli.rehearsal.command_line import CommandHands
from interlock.modes.cli.rehearsal.scenario_files import load_scenario

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "scenarios"
SCENARIOS = [*sorted(HERE.glob("*/*.yaml")), *sorted(EXAMPLES.glob("*.yaml"))]


def played(path: Path) -> Played:
    script = load_scenario(str(path))
    return play(script, lambda front: CommandHands(front, script.settings.namespace))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_scenario_plays_as_it_says(path: Path) -> None:
    told = [
        f"{each.path} at {each.at}: expected {each.expected}, found {each.found} {each.detail}"
        for each in played(path).differences
    ]

    assert told == []


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_scenario_says_what_it_shows_and_checks_it(path: Path) -> None:
    script = load_scenario(str(path))

    assert script.title
    assert script.expected
