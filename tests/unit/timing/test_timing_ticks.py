"""How far a search goes: a line that is never due again is found out in one walk."""

from __future__ import annotations

import pytest

from interlock.timing.cron import read_cron
from interlock.timing.ticks import OnGap, Rule, next_tick, previous_tick
from interlock.timing.zones import find_zone

#: A moment of 2026.
NOW = 1_774_000_000
#: The months that there are, from 1970 to 2099.
MONTHS = 130 * 12


class NoDays:
    """Days that calendars left over: none. It counts the questions."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, month: int) -> int:
        """No day of any month."""
        assert 0 <= month < MONTHS
        self.asked += 1
        return 0


@pytest.mark.parametrize("zone", ["UTC", "Europe/Dublin", "Australia/Lord_Howe", "Pacific/Apia"])
@pytest.mark.parametrize("text", ["* * * * *", "30 2 * * SUN", "0 0 15W * *"])
def test_a_line_without_a_day_is_found_out_in_one_walk(zone: str, text: str) -> None:
    days = NoDays()
    rule = Rule(line=read_cron(text, ""), zone=find_zone(zone), on_gap=OnGap.RUN_AFTER, among=days)

    assert next_tick(rule, NOW) is None
    assert previous_tick(rule, NOW) is None
    # Each month once, and a few for every change of the clocks.
    assert days.asked < 2 * MONTHS
