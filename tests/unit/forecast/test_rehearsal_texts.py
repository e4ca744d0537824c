"""What people write into scenarios: paths and moments."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from interlock.forecast.rehearsal.paths import find, read_path
from interlock.forecast.rehearsal.times import read_moment
from interlock.timing.zones import find_zone

LONDON = find_zone("Europe/London")
START = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
OBJECT: dict[str, Any] = {
    "metadata": {"labels": {"interlock.dev/x": "y"}},
    "status": {
        "active": 2,
        "skips": [{"reason": "TooOld"}, {"reason": "Missed"}],
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Suspended", "status": "False", "observedGeneration": 3},
        ],
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(".", OBJECT, id="the whole object"),
        pytest.param(".status.active", 2, id="a field"),
        pytest.param(".status.nothing.below", None, id="what is not there is null"),
        pytest.param('.metadata.labels["interlock.dev/x"]', "y", id="a quoted name"),
        pytest.param(".status.skips[0].reason", "TooOld", id="an element"),
        pytest.param(".status.skips[-1].reason", "Missed", id="the last element"),
        pytest.param(".status.skips[7]", None, id="no such element"),
        pytest.param(".status.conditions[type=Suspended].status", "False", id="by a field"),
        pytest.param('.status.conditions[type="Ready"].status', "True", id="by a quoted value"),
        pytest.param(".status.conditions[observedGeneration=3].type", "Suspended", id="a number"),
        pytest.param(".status.conditions[type=Other].status", None, id="no such element by field"),
        pytest.param(".status.skips[].reason", ["TooOld", "Missed"], id="of every element"),
        pytest.param(".status.skips|length", 2, id="how many"),
        pytest.param(".status.skips[].reason | length", 2, id="how many of every element"),
        pytest.param(".nothing|length", 0, id="nothing has no length"),
    ],
)
def test_a_path_finds_what_it_leads_to(path: str, expected: object) -> None:
    assert find(read_path(path), OBJECT) == expected


@pytest.mark.parametrize("path", ["", "status", ".a..b", ".a[", ".a[x", ".a|size", ".a b"])
def test_a_path_that_cannot_be_read_is_refused_with_examples(path: str) -> None:
    with pytest.raises(ValueError, match=r"expected a path such as \.status\.active"):
        read_path(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2026-03-29T09:00:00Z", "2026-03-29T09:00:00+00:00", id="UTC"),
        pytest.param("2026-03-29T09:00:00+02:00", "2026-03-29T07:00:00+00:00", id="an offset"),
        pytest.param("2026-03-29 09:00", "2026-03-29T08:00:00+00:00", id="on the wall, in summer"),
        pytest.param("2026-03-28T09:00:30", "2026-03-28T09:00:30+00:00", id="in winter"),
        pytest.param("2026-03-30", "2026-03-29T23:00:00+00:00", id="a day is its first moment"),
        pytest.param("2026-03-29 01:30", "2026-03-29T01:00:00+00:00", id="skipped: right after"),
        pytest.param("+5m", "2026-03-28T12:05:00+00:00", id="counted"),
        pytest.param("+1d2h", "2026-03-29T14:00:00+00:00", id="counted, not on the wall"),
    ],
)
def test_a_moment_is_read_with_its_zone_on_the_wall_or_counted(text: str, expected: str) -> None:
    assert read_moment(text, LONDON, START).isoformat() == expected


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "5m", "+", "+5x", "2026-13-01", "2026-03-29 25:00", "1900-01-01"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_moment(text, LONDON, START)


def test_the_start_cannot_be_counted_from_itself() -> None:
    with pytest.raises(ValueError, match="the start is a moment itself"):
        read_moment("+5m", LONDON, None)
