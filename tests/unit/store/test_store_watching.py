"""The hub: resuming, falling behind, bookmarks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from interlock.errors import ExpiredError
from interlock.resources.job import Job
from interlock.store.contract import Event, EventType, Selection
from interlock.store.selectors import matcher_for
from interlock.store.watching import BOOKMARK_EVERY, Change, Hub, Watcher, seen_through
from interlock.testing.builders import a_job, a_lock

RED, BLUE = {"team": "red"}, {"team": "blue"}


def labelled(version: int, labels: dict[str, str]) -> Job:
    return a_job(version=version, metadata={"labels": labels})


def change(version: int, before: Any = None, after: Any = None, *, gone: bool = False) -> Change:
    resource = after if after is not None else a_job(f"job-{version}", version=version)
    kind = EventType.DELETED if gone else EventType.MODIFIED if before else EventType.ADDED
    return Change(resource.key, before, Event(kind, resource, version), version)


def lock_change(version: int) -> Change:
    return change(version, after=a_lock(version=version))


def taken(watcher: Watcher) -> Sequence[Event]:
    async def take() -> Sequence[Event]:
        return await asyncio.wait_for(anext(watcher), 60)

    return asyncio.run(take())


@pytest.mark.parametrize(
    ("before", "after", "gone", "expected"),
    [
        pytest.param(None, RED, False, EventType.ADDED, id="created inside"),
        pytest.param(None, BLUE, False, None, id="created outside"),
        pytest.param(RED, RED, False, EventType.MODIFIED, id="changed inside"),
        pytest.param(BLUE, BLUE, False, None, id="changed outside"),
        pytest.param(BLUE, RED, False, EventType.ADDED, id="came into sight"),
        pytest.param(RED, BLUE, False, EventType.DELETED, id="left"),
        pytest.param(RED, RED, True, EventType.DELETED, id="deleted inside"),
        pytest.param(BLUE, BLUE, True, None, id="deleted outside"),
    ],
)
def test_a_selection_is_a_window(
    before: dict[str, str] | None, after: dict[str, str], gone: bool, expected: EventType | None
) -> None:
    matcher = matcher_for("Job", Selection(labels="team=red"))
    assert matcher is not None
    old = None if before is None else labelled(1, before)
    event = seen_through(matcher, change(2, old, labelled(2, after), gone=gone))

    assert (event.type if event else None) is expected
    if event is not None:
        assert event.resource is not None
        assert event.resource.version == event.version == 2
        if expected is EventType.DELETED:
            assert event.resource.metadata.labels == RED


def test_a_watch_resumes_from_what_is_remembered() -> None:
    hub = Hub()
    hub.publish([change(1), change(2), lock_change(3), change(4)])

    events = taken(hub.join("Job", None, 1))
    assert [event.version for event in events] == [2, 4, 4]
    assert events[-1].type is EventType.BOOKMARK


def test_what_is_forgotten_cannot_be_resumed() -> None:
    hub = Hub(remembered=8)
    forgotten: list[Change] = []
    for version in range(1, 21):
        forgotten += hub.publish([change(version)])

    assert hub.floor == forgotten[-1].version >= 20 - 8 - 2
    with pytest.raises(ExpiredError):
        hub.join("Job", None, hub.floor - 1)
    events = taken(hub.join("Job", None, hub.floor))
    assert [event.version for event in events[:-1]] == list(range(hub.floor + 1, 21))
    assert events[-1] == Event(EventType.BOOKMARK, None, 20)


def test_a_version_of_the_future_is_not_of_this_store() -> None:
    with pytest.raises(ExpiredError):
        Hub(version=5).join("Job", None, 6)


def test_a_watcher_that_falls_behind_is_told() -> None:
    hub = Hub(buffered=3)
    slow, other = hub.join("Job", None, 0), hub.join("Lock", None, 0)
    for version in range(1, 6):
        hub.publish([change(version)])
    hub.publish([lock_change(6)])

    with pytest.raises(ExpiredError):
        taken(slow)
    with pytest.raises(ExpiredError):
        taken(slow)
    assert [event.version for event in taken(other)] == [6]


def test_a_watcher_that_sees_nothing_hears_how_far_the_store_is() -> None:
    hub = Hub()
    watcher = hub.join("Lock", None, 0)
    for version in range(1, BOOKMARK_EVERY + 1):
        hub.publish([change(version)])

    (event,) = taken(watcher)
    assert event == Event(EventType.BOOKMARK, None, BOOKMARK_EVERY)


def test_a_tick_sends_bookmarks_to_those_who_are_behind() -> None:
    hub = Hub()
    watcher = hub.join("Lock", None, 0)
    hub.publish([change(1)])
    hub.tick()
    hub.tick()

    assert taken(watcher) == [Event(EventType.BOOKMARK, None, 1)]


def test_a_closed_hub_lets_watchers_finish() -> None:
    hub = Hub()
    watcher = hub.join("Job", None, 0)
    hub.publish([change(1)])
    hub.close()

    assert len(taken(watcher)) == 1

    async def count() -> int:
        return len([batch async for batch in watcher])

    assert asyncio.run(count()) == 0


def test_a_watcher_that_left_is_forgotten() -> None:
    hub = Hub()
    watcher = hub.join("Job", None, 0)
    hub.leave(watcher)
    hub.leave(watcher)
    hub.publish([change(1)])
    hub.close()

    assert watcher.seen == 0
