"""What CONTRIBUTING.md says one writes to add a kind or a work type is what the toys write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def section(title: str) -> str:
    """The text below a heading."""
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def steps(title: str) -> list[str]:
    """The first column of the section's table."""
    rows = [line for line in section(title).splitlines() if line.startswith("| ")]
    return [row.split("|")[1].strip() for row in rows[1:]]


@pytest.mark.parametrize("title", ["To add a kind", "To add a work type"])
def test_every_file_that_is_named_is_there(title: str) -> None:
    words = [word for word in re.findall(r"`([^`]+)`", section(title)) if "/" in word]
    assert words
    for word in words:
        assert (ROOT / word).exists() or (ROOT / "src/interlock" / word).exists(), word


def test_a_kind_takes_the_steps_of_the_toy_kinds() -> None:
    toys = (ROOT / "tests/support/toy_kinds.py").read_text("utf-8")
    taken = [line.removeprefix("# The ") for line in toys.splitlines() if line.startswith("# The ")]
    assert steps("To add a kind") == taken


def test_a_work_type_takes_the_steps_of_the_toy_work_type() -> None:
    toys = (ROOT / "tests/unit/control/test_toy_work_type.py").read_text("utf-8")
    (line,) = re.findall(r"^# The type: (.*)$", toys, re.MULTILINE)
    assert steps("To add a work type") == [step.removeprefix("its ") for step in line.split(", ")]
