"""What the prober makes of looks that went well or did not."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.runtimes.keeper.prober import FILE, Packets, Task, packet


def a_task(ready: bool | None, successes: int, failures: int) -> Task:
    order: Any = None
    look: Any = {
        "kind": FILE,
        "successes": successes,
        "failures": failures,
        "timeout_s": 1.0,
        "period_s": 1.0,
    }
    return Task(1, order, look, ready)


@pytest.mark.parametrize(
    ("ready", "thresholds", "looks", "told"),
    [
        pytest.param(False, (1, 3), "+", "+", id="the first good look makes it ready"),
        pytest.param(False, (1, 3), "--+", "..+", id="bad ones before are not told"),
        pytest.param(False, (1, 3), "---", "..-", id="why it does not begin is told"),
        pytest.param(False, (1, 3), "------+", "..-...+", id="once"),
        pytest.param(False, (3, 1), "++-+++", "..-..+", id="so many good ones in a row"),
        pytest.param(True, (1, 3), "--+--", ".....", id="too few bad ones in a row"),
        pytest.param(True, (1, 3), "---+", "..-+", id="lost and found"),
        pytest.param(True, (2, 2), "--+-++", ".-...+", id="lost, and found by two in a row"),
        pytest.param(None, (1, 2), "-+", ".+", id="found again: nothing is known of it"),
        pytest.param(None, (1, 2), "--", ".-", id="found again, and not ready"),
        pytest.param(True, (1, 3), "+++", "...", id="it stays ready"),
    ],
)
def test_what_is_told_of_looks(
    ready: bool | None, thresholds: tuple[int, int], looks: str, told: str
) -> None:
    task = a_task(ready, *thresholds)

    heard = ""
    for look in looks:
        is_told = task.judge("" if look == "+" else "why")
        heard += ("+" if task.ready else "-") if is_told else "."

    assert heard == told


def test_what_is_said_is_cut_as_it_was_put_together() -> None:
    said = [("watch", 1, {"a": (1, 2)}, None), ("end", 2**40), ("turned", 3, True, "x" * 100_000)]
    data = b"".join(packet(*one) for one in said)
    packets = Packets()

    heard = [one for at in range(0, len(data), 1000) for one in packets.feed(data[at : at + 1000])]

    assert heard == said
