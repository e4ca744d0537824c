"""What a cluster stores is told as our own server would tell it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from interlock.client.cluster.leading import judge

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def a_lease(holder: str = "a", renewed: str = "2026-01-05T11:59:58.000000Z") -> dict[str, Any]:
    return {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 3}


@pytest.mark.parametrize(
    ("lease", "leads", "told"),
    [
        pytest.param(a_lease(), True, "a, renewed 2.0 s ago", id="it leads"),
        pytest.param(
            a_lease(renewed="2026-01-05T11:59:53.000000Z"), True, "a, renewed", id="clocks differ"
        ),
        pytest.param(
            a_lease(renewed="2026-01-05T11:57:00.000000Z"),
            False,
            "no controller leads: a last renewed its lease 3 m ago",
            id="it is silent",
        ),
        pytest.param(a_lease(holder=""), False, "the last one stopped", id="it let go"),
        pytest.param({}, False, "no controller leads", id="an empty lease"),
    ],
)
def test_who_leads(lease: dict[str, Any], leads: bool, told: str) -> None:
    leader = judge(lease, NOW)
    assert leader.leads is leads
    assert told in leader.told
