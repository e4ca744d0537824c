"""Which free slots which Jobs of a plan get: the arithmetic, with the examples it is told by."""

from __future__ import annotations

import pytest

from interlock.resources.scheduling import PlanMode
from interlock.slots.plans.placing import place_named, place_queue


@pytest.mark.parametrize(
    ("queue", "free", "most", "expected"),
    [
        pytest.param("1122333444", "12345678", 8, {"1": "12", "2": "34", "3": "567"}, id="thesis"),
        pytest.param("444", "348", 8, {"4": "348"}, id="thesis, once job 2 is over"),
        pytest.param("444", "8", 8, {}, id="thesis, with one slot free"),
        pytest.param("2121", "0123", 4, {"2": "02", "1": "13"}, id="entries of two take turns"),
        pytest.param("2121", "012", 4, {"2": "02"}, id="the second is short of one"),
        pytest.param("112", "1", 2, {}, id="nobody overtakes the first"),
        pytest.param("12", "", 2, {}, id="nothing is free"),
        pytest.param("", "12", 2, {}, id="nobody waits"),
        pytest.param("21112", "0123", 4, {"2": "01"}, id="entries further apart than the bed"),
        pytest.param("21112", "0123", 9, {}, id="the same in a bed that has room later"),
        pytest.param("111", "12", 2, {}, id="more entries than the bed has slots"),
    ],
)
def test_the_entries_of_a_queue_are_paired_with_the_free_slots(
    queue: str, free: str, most: int, expected: dict[str, str]
) -> None:
    placed = place_queue(tuple(queue), tuple(free), most)

    assert placed == {name: tuple(slots) for name, slots in expected.items()}


JOBS = (("a", ("0", "1")), ("b", ("1", "2")), ("c", ("3",)))


@pytest.mark.parametrize(
    ("free", "strict", "relaxed"),
    [
        pytest.param("0123", "a", "ac", id="the second wants what the first gets"),
        pytest.param("123", "", "bc", id="the first waits"),
        pytest.param("013", "a", "ac", id="the second waits"),
        pytest.param("", "", "", id="nothing is free"),
    ],
)
def test_named_slots_are_given_where_they_are_free(free: str, strict: str, relaxed: str) -> None:
    for mode, expected in ((PlanMode.STRICT, strict), (PlanMode.RELAXED, relaxed)):
        placed = place_named(JOBS, frozenset(free), mode)

        assert placed == {name: slots for name, slots in JOBS if name in expected}
