"""Things come out when they are due, in order, at most once."""

from __future__ import annotations

from interlock.control.timer_heap import TimerHeap


def test_what_is_due_comes_in_order_and_equals_in_the_order_they_were_put() -> None:
    table: TimerHeap[str, int] = TimerHeap()
    for thing, when in (("late", 9), ("b", 3), ("a", 3), ("first", 1)):
        table.put(thing, when)

    assert table.earliest() == 1
    assert table.take_due(3) == ["first", "b", "a"]
    assert table.take_due(3) == []
    assert table.earliest() == 9


def test_a_thing_has_one_moment() -> None:
    table: TimerHeap[str, int] = TimerHeap()
    table.put("a", 5)
    table.put("a", 2)
    assert table.take_due(10) == ["a"]

    table.put("a", 2)
    table.put("a", 5)
    assert table.take_due(4) == []
    assert table.take_due(5) == ["a"]


def test_a_cancelled_thing_never_comes() -> None:
    table: TimerHeap[str, int] = TimerHeap()
    table.put("a", 1)
    table.cancel("a")
    table.cancel("never put")

    assert table.earliest() is None
    assert len(table) == 0
    assert "a" not in table


def test_entries_that_count_no_longer_do_not_pile_up() -> None:
    table: TimerHeap[str, int] = TimerHeap()
    for when in range(10_000, 0, -1):
        table.put("a", when)

    assert len(table._heap) < 200
    assert table.take_all() == ["a"]
    assert table.earliest() is None
