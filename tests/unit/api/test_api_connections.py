"""Who may stay connected, and what is said about it."""

from __future__ import annotations

import logging

import pytest
from msgspec import Struct

from interlock.api.connections import Complaints, Connections, Limits, most_connections, place_of


class Someone(Struct, frozen=True, eq=False):
    """A connection that idles or does not."""

    address: str = "10.0.0.1"
    is_idle: bool = True


def full(*guests: Someone, most: int, most_each: int) -> Connections:
    connections = Connections(Limits(most=most, most_each=most_each))
    for guest in guests:
        assert connections.enter(guest) is None
    return connections


def test_who_idles_longest_makes_room() -> None:
    busy, first, second = Someone("a", is_idle=False), Someone("b"), Someone("c")
    connections = full(busy, first, second, most=3, most_each=3)

    assert connections.enter(Someone("d")) is first


def test_an_address_that_is_full_makes_room_itself() -> None:
    other, own, newcomer = Someone("a"), Someone("b"), Someone("b")
    connections = full(other, own, most=9, most_each=1)

    assert connections.enter(newcomer) is own


@pytest.mark.parametrize(("most", "most_each"), [(2, 9), (9, 2)])
def test_nobody_who_is_answered_goes(most: int, most_each: int) -> None:
    connections = full(
        Someone(is_idle=False), Someone(is_idle=False), most=most, most_each=most_each
    )
    newcomer = Someone()

    assert connections.enter(newcomer) is newcomer


def test_who_has_left_is_not_counted() -> None:
    guest = Someone()
    connections = full(guest, most=1, most_each=1)
    connections.leave(guest)
    connections.leave(guest)

    assert len(connections) == 0
    assert connections.enter(Someone()) is None


def test_one_address_cannot_have_all() -> None:
    connections = Connections(Limits(most=100))

    assert connections.most_each < connections.most
    assert 0 < most_connections() <= 10_000


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::1", "127.0.0.1", False),
        ("", "10.0.0.1", False),
    ],
)
def test_what_counts_as_one_address(one: str, other: str, same: bool) -> None:
    assert (place_of(one) == place_of(other)) is same


def test_what_goes_wrong_all_the_time_is_told_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    complaints = Complaints(lambda: now[0])
    with caplog.at_level(logging.WARNING, "interlock.api"):
        for _ in range(5):
            complaints.tell("too many from %s", "ann")
        now[0] = 60.0
        complaints.tell("too many from %s", "bob")

    assert [record.getMessage() for record in caplog.records] == [
        "too many from ann (1 times since it was last told)",
        "too many from bob (5 times since it was last told)",
    ]
