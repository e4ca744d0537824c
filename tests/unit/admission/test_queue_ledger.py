"""The ledger: how much a Queue may use, of its own and of what is lent to it."""

from __future__ import annotations

from math import inf

import pytest

from interlock.admission.queues.ledger import Ledger
from interlock.resources.queue import Member
from interlock.resources.values.amounts import Amount


def a_member(
    queue: str, gpu: int, *, lends: int | None = None, borrows: int | None = None
) -> Member:
    def amounts(number: int | None) -> dict[str, Amount] | None:
        return None if number is None else {"gpu": Amount.read(number)}

    return Member(
        queue=queue,
        version=1,
        limits={"gpu": Amount.read(gpu)},
        lending=amounts(lends),
        borrowing=amounts(borrows),
    )


def a_ledger(blue: Member, red: Member | None, used: dict[str, int]) -> Ledger:
    ledger = Ledger((blue,) if red is None else (blue, red))
    for queue, gpu in used.items():
        ledger.add(queue, {"gpu": gpu * 1000, "tasks": 1000})
    return ledger


ALONE, BLUE, RED = a_member("blue", 4), a_member("blue", 4), a_member("red", 6)
FREE = [
    ("alone", ALONE, None, {}, 4),
    ("alone, half used", ALONE, None, {"blue": 3}, 1),
    ("alone, with less than is used", ALONE, None, {"blue": 5}, 0),
    ("what others do not use", BLUE, RED, {}, 10),
    ("nor it itself", BLUE, RED, {"blue": 4, "red": 1}, 5),
    ("beside what others borrowed", BLUE, RED, {"red": 8}, 2),
    ("nothing, where others use all", BLUE, RED, {"red": 10}, 0),
    ("no more than it may borrow", a_member("blue", 4, borrows=2), RED, {}, 6),
    (
        "what it may borrow counts beyond its own",
        a_member("blue", 4, borrows=2),
        RED,
        {"blue": 5},
        1,
    ),
    ("to borrow nothing", a_member("blue", 4, borrows=0), RED, {}, 4),
    ("no more than others lend", BLUE, a_member("red", 6, lends=1), {}, 5),
    ("what others keep is never lent", BLUE, a_member("red", 6, lends=0), {"red": 0}, 4),
    ("what it keeps is its own", a_member("blue", 4, lends=1), RED, {"red": 7}, 3),
    ("and what others borrowed comes back", a_member("blue", 4, lends=1), RED, {"red": 6}, 4),
    ("one that has left uses what is lent", BLUE, RED, {"gone": 7}, 3),
    ("but not what is kept", a_member("blue", 4, lends=1), RED, {"gone": 9}, 3),
]


@pytest.mark.parametrize(
    ("blue", "red", "used", "free"), [row[1:] for row in FREE], ids=[row[0] for row in FREE]
)
def test_how_much_more_a_queue_may_use(
    blue: Member, red: Member | None, used: dict[str, int], free: int
) -> None:
    assert a_ledger(blue, red, used).free("blue") == {"gpu": free * 1000}


@pytest.mark.parametrize(
    ("blue", "red", "most"),
    [
        (ALONE, None, 4),
        (BLUE, RED, 10),
        (a_member("blue", 4, borrows=1), RED, 5),
        (BLUE, a_member("red", 6, lends=2), 6),
        (a_member("blue", 4, lends=0), RED, 10),
    ],
)
def test_how_much_a_queue_could_ever_use(blue: Member, red: Member | None, most: int) -> None:
    ledger = a_ledger(blue, red, {"blue": 1, "red": 3})
    assert ledger.most("blue") == {"gpu": most * 1000}


def test_what_is_given_back_leaves_the_ledger_as_it_was() -> None:
    ledger = a_ledger(a_member("blue", 4, lends=1), RED, {"blue": 2})
    before = ledger.free("blue"), ledger.free("red")
    for queue in ("blue", "red", "gone"):
        ledger.add(queue, {"gpu": 5000})
        ledger.add(queue, {"gpu": 5000}, -1)
    assert (ledger.free("blue"), ledger.free("red")) == before


def test_a_copy_is_changed_apart() -> None:
    ledger = a_ledger(BLUE, RED, {})
    ledger.copy().add("blue", {"gpu": 3000})
    assert ledger.free("red") == {"gpu": 10000}


def test_room_is_its_own_only_as_far_as_that_goes() -> None:
    ledger = a_ledger(BLUE, RED, {"blue": 3})
    assert ledger.has_room("blue", {"gpu": 1000}, may_borrow=False)
    assert not ledger.has_room("blue", {"gpu": 2000}, may_borrow=False)
    assert ledger.has_room("blue", {"gpu": 7000, "tasks": 99000})
    assert not ledger.has_room("blue", {"gpu": 8000})


@pytest.mark.parametrize(
    ("used", "weight", "share"),
    [(2, 1000, 0.0), (4, 1000, 0.0), (6, 1000, 0.2), (6, 2000, 0.1), (9, 1000, 0.5), (5, 0, inf)],
)
def test_the_part_of_what_is_lent_by_weight(used: int, weight: int, share: float) -> None:
    found = a_ledger(BLUE, RED, {"blue": used}).share("blue", weight)
    assert found == (inf if share == inf else pytest.approx(share * 1000 / 1000 / 1000))
