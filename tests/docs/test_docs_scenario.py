"""The format of scenarios is told whole: every field and every line of the history."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import fields

from interlock.forecast.rehearsal.scenario import (
    EventSpec,
    ExpectSpec,
    LineMatch,
    ScenarioSpec,
    Settings,
    WorkMatch,
    WorkRule,
)
from interlock.resources.admission import EvictionCause, EvictionReason
from interlock.resources.metadata import Noun

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/scenario.md").read_text("utf-8")
TOLD = re.compile(r'yield[ (\n]*(?:\n\s*)?"([A-Z]\w+)"')


@pytest.mark.parametrize(
    "noun", [ScenarioSpec, Settings, WorkMatch, WorkRule, EventSpec, ExpectSpec, LineMatch]
)
def test_every_field_is_told(noun: type[Noun]) -> None:
    names = [field.encode_name for field in fields(noun)]

    assert [name for name in names if not re.search(rf"[`.]{name}\b", PAGE)] == []


@pytest.mark.parametrize("module", ["lines", "queue_lines", "operation_lines"])
def test_every_line_of_the_history_is_told(module: str) -> None:
    source = (ROOT / f"src/interlock/forecast/rehearsal/{module}.py").read_text("utf-8")
    events = set(TOLD.findall(source))

    assert events
    assert [name for name in events if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("name", ["scenario", "metrics"])
def test_every_reason_and_cause_of_an_eviction_is_told(name: str) -> None:
    page = (ROOT / f"docs/reference/{name}.md").read_text("utf-8")
    words = [one.value for one in (*EvictionReason, *EvictionCause)]

    assert [word for word in words if f"`{word}`" not in page] == []
