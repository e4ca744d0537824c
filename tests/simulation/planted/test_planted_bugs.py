"""The simulation can fail: each mutation breaks a promise, and is caught by it.

Worlds are run one after another until one of them notices; which one does is the same every time.
"""

from __future__ import annotations

from importlib import import_module

import pytest
from mutation import MUTATIONS, Mutation, Seam, UnknownSeamError, breaches
from planted_in_pods import TROUBLES, Trouble, troubled

from support.simulation.adopted_promises import ADOPTED_PROMISES
from support.simulation.line_promises import LINE_PROMISES
from support.simulation.operation_promises import OPERATION_PROMISES
from support.simulation.pod_promises import POD_PROMISES
from support.simulation.pod_world import PodWorld, RivalPodWorld
from support.simulation.promises import PROMISES
from support.simulation.queue_promises import QUEUE_PROMISES
from support.simulation.ready_promises import READY_PROMISES
from support.simulation.request_promises import REQUEST_PROMISES, REQUEST_WORKER_PROMISES
from support.simulation.restore_world import RESTORE_PROMISES
from support.simulation.schedule_promises import SCHEDULE_PROMISES
from support.simulation.slot_promises import SLOT_PROMISES
from support.simulation.worker_promises import WORKER_PROMISES

ALL_PROMISES = {
    *PROMISES,
    *POD_PROMISES,
    *ADOPTED_PROMISES,
    *RESTORE_PROMISES,
    *SCHEDULE_PROMISES,
    *OPERATION_PROMISES,
    *WORKER_PROMISES,
    *QUEUE_PROMISES,
    *READY_PROMISES,
    *LINE_PROMISES,
    *REQUEST_PROMISES,
    *REQUEST_WORKER_PROMISES,
    *SLOT_PROMISES,
}

#: Where mutations are declared.
for _table in (
    "admission",
    "adoption",
    "cohorts",
    "default_queue",
    "eviction",
    "execution",
    "lines",
    "loop_and_store",
    "operations",
    "pods",
    "queues",
    "ready",
    "requests",
    "schedules",
    "slots",
    "workers",
):
    import_module(f"planted_in_{_table}")


@pytest.mark.parametrize("planted", MUTATIONS, ids=[each.name for each in MUTATIONS])
def test_a_planted_bug_is_caught(planted: Mutation) -> None:
    noticed: list[str] = []
    for broken in breaches(planted):
        noticed.append(broken.promise)
        if broken.promise == planted.caught_by:
            return

    pytest.fail(f"{planted.rule} {planted.caught_by} did not notice; noticed was {noticed}")


@pytest.mark.parametrize("promise", sorted(each.__name__ for each in ALL_PROMISES))
def test_every_promise_catches_something(promise: str) -> None:
    assert any(each.caught_by == promise for each in MUTATIONS)


def test_a_bug_is_there_for_everybody_and_then_for_nobody() -> None:
    [planted] = [each for each in MUTATIONS if each.name.startswith("priority_is_ignored")]
    users = [import_module(f"interlock.admission.{name}") for name in ("lines", "reconciler")]
    really = [user.place_of for user in users]
    with planted.in_place():
        assert users[0].place_of is users[1].place_of is not really[0]

    assert [user.place_of for user in users] == really


@pytest.mark.parametrize(
    ("module", "name", "told"),
    [
        ("interlock.admission.nowhere", "decide", "there is no such module"),
        ("interlock.admission.lines", "place_off", "is it place_of now?"),
        ("interlock.admission.claims.claim", "ClaimView.is_fre", "is it is_free now?"),
    ],
)
def test_what_is_called_otherwise_is_told_at_once(module: str, name: str, told: str) -> None:
    with pytest.raises(UnknownSeamError, match=told.replace("?", r"\?")):
        Seam(module, name)


@pytest.mark.parametrize("trouble", TROUBLES, ids=range(len(TROUBLES)))
@pytest.mark.parametrize("world", [PodWorld, RivalPodWorld])
@pytest.mark.parametrize("seed", range(3))
def test_worlds_of_trouble_are_well_without_a_bug(
    world: type[PodWorld], trouble: Trouble, seed: int
) -> None:
    assert str(troubled(world, trouble)(seed).run().broken) == "None"
