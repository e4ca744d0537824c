"""What is known of objects: the newest state wins, whoever brings it, and what is gone stays so."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import permutations
from random import Random
from typing import Generic

import pytest
from msgspec.structs import replace
from pod_builders import RUNS, a_pod, ended

from interlock.errors import ExpiredError, UnavailableError
from interlock.forecast.rehearsal.simulated_clock import SimClock
from interlock.forecast.rehearsal.simulated_loop import SimLoop, run_now
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.models import Pod, T
from interlock.kube.pods.objects import Event, Listed
from interlock.resources.tasks import TaskId
from interlock.testing.builders import T0

TASK = TaskId("uid", 0, 1)


def version(number: int, pod: Pod, uid: str = "pod-uid") -> Pod:
    metadata = replace(pod.metadata, resource_version=str(number), uid=uid)
    return replace(pod, metadata=metadata)


PENDING = version(3, a_pod("Pending", node=""))
RUNNING = version(5, a_pod("Running", RUNS))
OVER = version(8, a_pod("Succeeded", ended()))


class Scripted(Generic[T]):
    """Lists and watches that answer what a test wrote down, one after another."""

    def __init__(
        self,
        lists: Sequence[Listed[T] | Exception],
        watches: Sequence[Sequence[Sequence[Event[T]]] | Exception] = (),
    ) -> None:
        self._lists = list(lists)
        self._watches = list(watches)
        #: The versions that watches were begun at.
        self.since: list[int] = []

    async def list(self, selector: str = "", *, namespace: str | None = None) -> Listed[T]:
        answer = self._lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def watch(
        self, selector: str, *, since: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Event[T]]]]:
        return self._watch(since)

    @asynccontextmanager
    async def _watch(self, since: int) -> AsyncGenerator[AsyncIterator[Sequence[Event[T]]], None]:
        self.since.append(since)
        script = self._watches.pop(0) if self._watches else ()
        if isinstance(script, Exception):
            raise script
        yield self._batches(script)

    async def _batches(
        self, script: Sequence[Sequence[Event[T]]]
    ) -> AsyncIterator[Sequence[Event[T]]]:
        for batch in script:
            yield batch

    async def get(self, namespace: str, name: str) -> T:
        raise NotImplementedError

    async def create(self, namespace: str, manifest: object) -> T:
        raise NotImplementedError

    async def patch(self, namespace: str, name: str, patch: object) -> T:
        raise NotImplementedError

    async def delete(self, namespace: str, name: str, *, uid: str, grace_s: int | None) -> T | None:
        raise NotImplementedError


def followed(
    script: Scripted[Pod], *, for_s: float = 60.0
) -> tuple[Informer[Pod], list[Pod | None]]:
    """A mirror that has followed a script for a while, and all that it told."""
    loop = SimLoop(Random(0))
    mirror: Informer[Pod] = Informer(script, SimClock(loop, loop.world, T0), Random(0))
    told: list[Pod | None] = []
    mirror.subscribe(lambda changes: told.extend(seen.after for seen in changes))
    loop.spawn(loop.world, mirror.run())
    loop.run_until(for_s)
    assert not loop.errors
    loop.close()
    return mirror, told


def a_mirror(*lists: Listed[Pod] | Exception) -> Informer[Pod]:
    loop = SimLoop(Random(0))
    return Informer(Scripted(lists), SimClock(loop, loop.world, T0), Random(0))


@pytest.mark.parametrize("order", list(permutations((PENDING, RUNNING, OVER))))
def test_the_newest_state_wins(order: tuple[Pod, ...]) -> None:
    mirror = a_mirror()

    for pod in order:
        mirror.take(pod)

    assert list(mirror) == list(mirror.of_task(TASK)) == list(mirror.of_job("uid")) == [OVER]


def test_what_is_gone_does_not_come_back_with_a_late_answer() -> None:
    mirror, _ = followed(
        Scripted([Listed([PENDING], 3)], [[[Event("DELETED", version(9, RUNNING), 9)]]])
    )

    mirror.take(OVER)

    assert not list(mirror)


def test_what_has_its_label_again_is_known_again() -> None:
    """A watch tells of what has lost its label as of what is gone."""
    mirror, _ = followed(Scripted([Listed([PENDING], 3)], [[[Event("DELETED", RUNNING, 5)]]]))

    mirror.take(OVER)

    assert list(mirror) == [OVER]


def test_what_a_list_has_shown_to_be_gone_has_its_label_again() -> None:
    mirror = a_mirror(Listed([], 6))
    mirror.take(PENDING)
    run_now(mirror.listed_after(mirror.mark))

    mirror.take(RUNNING)
    assert not list(mirror)
    mirror.take(OVER)

    assert list(mirror) == [OVER]


def test_a_new_object_of_the_same_name_takes_the_place() -> None:
    mirror = a_mirror()
    mirror.take(OVER)
    again = version(12, PENDING, uid="another")

    mirror.take(again)
    mirror.take(version(20, OVER))

    assert list(mirror) == [again]


def test_a_list_shows_what_went_and_not_what_came_after_it() -> None:
    gone, newer = PENDING, version(30, RUNNING)
    newer = replace(newer, metadata=replace(newer.metadata, name="newer", uid="newer"))
    mirror = a_mirror(Listed([], 20))
    mirror.take(gone)
    mirror.take(newer)

    run_now(mirror.listed_after(mirror.mark))

    assert list(mirror) == [newer]


def test_a_list_that_is_new_enough_is_not_read_twice() -> None:
    mirror = a_mirror(Listed([PENDING], 3))
    before = mirror.mark
    run_now(mirror.listed_after(before))

    run_now(mirror.listed_after(before))

    assert list(mirror) == [PENDING]


def test_a_list_that_fails_is_told_to_whoever_needs_it() -> None:
    mirror = a_mirror(UnavailableError("away"))

    with pytest.raises(UnavailableError):
        run_now(mirror.listed_after(mirror.mark))


def test_a_watch_that_ends_goes_on_from_where_it_was() -> None:
    script = Scripted(
        [Listed([PENDING], 3)],
        [[[Event("MODIFIED", RUNNING, 5)], [Event("BOOKMARK", None, 7)]], [], UnavailableError("")],
    )

    mirror, told = followed(script)

    assert script.since[:4] == [3, 7, 7, 7]
    assert told == [PENDING, RUNNING]
    assert list(mirror) == [RUNNING]


def test_a_version_that_is_too_old_is_listed_anew() -> None:
    script = Scripted([Listed([PENDING], 3), Listed([OVER], 10)], [ExpiredError(3, 9)])

    mirror, told = followed(script)

    assert script.since[:2] == [3, 10]
    assert told == [PENDING, OVER]
    assert list(mirror) == [OVER]


def test_after_a_lost_watch_everything_is_listed_before_it_is_trusted() -> None:
    script = Scripted(
        [Listed([PENDING], 3), Listed([OVER], 10)], [UnavailableError("away") for _ in range(99)]
    )
    mirror, _ = followed(script, for_s=1.0)

    run_now(mirror.listed_after(0))

    assert list(mirror) == [OVER]
