"""What is forgotten where decisions are carried out and kept: wake-ups, versions, restores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from grounds import busy
from msgspec.structs import replace
from mutation import Seam, mutation
from planted_in_execution import WAS_FORGOTTEN

from interlock.control.informer import Informer
from interlock.control.queue import Item, WorkQueue
from interlock.resources.cluster import Namespace
from interlock.resources.job import Job
from interlock.resources.metadata import Metadata, Resource
from interlock.store.contract import Event
from interlock.store.rules import with_version
from support.simulation.restore_world import RestoreWorld
from support.simulation.world import RivalWorld, World

VERSION_AFTER = Seam("interlock.store.sqlite.restoring", "version_after")

VERSIONS = "Versions, and so tokens, go on rising over a restore, whatever was restored before."


# The store


@mutation(
    "A write names the version that it was made from, and is refused for another.",
    Seam("interlock.store.rules", "check_version"),
    caught_by="NeverTwice",
    in_worlds=busy(RivalWorld),
)
def versions_are_not_compared(_: object) -> Callable[..., None]:
    return lambda *_, **__: None


@mutation(
    "Only its owner writes a spec.",
    Seam("interlock.store.rules", "with_ties"),
    caught_by="NeverLost",
    in_worlds=busy(World),
)
def specs_are_touched(really: Callable[[Resource, Resource], Resource]) -> Callable[..., Resource]:
    def with_ties(stored: Resource, given: Resource) -> Resource:
        made = really(stored, given)
        if not isinstance(made, Job):
            return made
        return replace(made, spec=replace(made.spec, title="touched"))

    return with_ties


# The loop


@mutation(
    "Who asked to look again at a moment is woken then.",
    Seam("interlock.control.queue", "WorkQueue.done"),
    caught_by="Settles",
    in_worlds=busy(World),
)
def moments_are_forgotten(really: Callable[..., None]) -> Callable[..., None]:
    def done(self: WorkQueue, item: Item, wake_at: datetime | None = None) -> None:
        really(self, item)

    return done


@mutation(
    "What failed is tried again.",
    Seam("interlock.control.queue", "WorkQueue.retry"),
    Seam("interlock.control.queue", "WorkQueue.retry_now"),
    caught_by="Settles",
    in_worlds=busy(World),
    seen_in=34,
)
def failures_are_not_tried_again(*_: object) -> tuple[Callable[..., None], Callable[..., None]]:
    def retry(self: WorkQueue, item: Item, cause: str = "") -> None:
        self._leave_work(item)

    return retry, retry


@mutation(
    "Every event reaches the cache.",
    Seam("interlock.control.informer", "Informer._hear"),
    caught_by="Settles",
    in_worlds=busy(World),
)
def some_events_are_not_heard(really: Callable[..., None]) -> Callable[..., None]:
    heard = [0]

    def hear(self: Informer[Any], batch: Sequence[Event]) -> None:
        heard[0] += 1
        if heard[0] % 10:
            really(self, batch)
        else:
            self._cache.settle(batch[-1].version)

    return hear


@mutation(
    "A term that is over leaves nothing behind.",
    Seam("interlock.control.queue", "WorkQueue.close"),
    caught_by="TermsLeaveNothing",
    in_worlds=busy(World),
    seen_in=70,
)
def terms_go_on_listening(really: Callable[..., None]) -> Callable[..., None]:
    def close(self: WorkQueue) -> None:
        self._stop_listening = lambda: None
        really(self)

    return close


# Restores


@mutation(VERSIONS, VERSION_AFTER, caught_by="Settles", in_worlds=busy(RestoreWorld))
@mutation(VERSIONS, VERSION_AFTER, caught_by="TokensRise", in_worlds=busy(RestoreWorld))
def versions_go_back_with_the_backup(_: object) -> Callable[..., int]:
    return lambda known, _: known


@mutation(VERSIONS, VERSION_AFTER, caught_by="TokensRise", in_worlds=busy(RestoreWorld), seen_in=20)
def versions_go_on_by_a_thousand(_: object) -> Callable[..., int]:
    """A jump that another restore of the same backup makes again, into the same numbers."""
    return lambda known, _: known + 1000


@mutation(
    VERSIONS,
    Seam("interlock.store.sqlite.restoring", "renumbered"),
    caught_by="TokensRise",
    in_worlds=busy(RestoreWorld),
)
def restored_locks_keep_their_versions(_: object) -> Callable[..., Iterator[Resource]]:
    """The next write is lifted, and the token of the next grant is not."""

    def renumbered(held: Any, version: int) -> Iterator[Resource]:
        yield from sorted(held, key=lambda resource: resource.version)
        yield with_version(Namespace(metadata=Metadata(name="last")), version)

    return renumbered


@mutation(
    "What runs, and a restored store does not know, is gone before anything starts.",
    Seam("interlock.execution.restoring", "clear_away"),
    caught_by="NeverTwice",
    in_worlds=busy(RestoreWorld),
)
def nobody_waits_for_what_a_restored_store_does_not_know(_: object) -> Callable[..., Any]:
    async def clear_away(*_: object) -> None:
        return

    return clear_away


@mutation(
    "How an attempt ended is remembered where it ran, also when the store has forgotten it.",
    WAS_FORGOTTEN,
    caught_by="StartsOnce",
    in_worlds=busy(RestoreWorld),
)
def how_forgotten_attempts_ended_is_lost(_: object) -> Callable[..., bool]:
    """They are launched again under their names, as if they had never been."""
    return lambda *_: False
