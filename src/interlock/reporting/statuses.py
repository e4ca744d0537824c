"""The statuses of Jobs one by one, and waiting for them by notification."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Protocol

from interlock.api.submitting import Asked
from interlock.control.reconciler import Change
from interlock.reporting.job_record import JobView, is_stuck, state_of
from interlock.reporting.listing import Listing, Part
from interlock.reporting.live_jobs import LiveJobs
from interlock.reporting.pending_places import PendingPlaces
from interlock.reporting.visibility import Sees, everything, sees_job
from interlock.resources.job import Job
from interlock.resources.transitions import has_ended

#: What was just made is heard of at once; after this long an answer goes without it.
_HEARD_S = 2.0


class Archive(Protocol):
    """Jobs that are over and were removed, as far as they are kept."""

    async def find(self, uid: str) -> JobView | None:
        """The Job with this uid, when it is kept."""
        ...

    async def named(self, namespace: str, name: str) -> Asked | None:
        """The newest Job of a name, when it is kept."""
        ...

    async def part(self, listing: Listing, sees: Sees) -> Part[JobView]:
        """The first Jobs of a list, and how far was looked."""
        ...

    async def related(self, views: Sequence[JobView]) -> tuple[JobView, ...]:
        """The same with children and parents that are kept here."""
        ...


class Waiters:
    """Those who wait for Jobs, each told of every change of its Job."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._is_stopped = False

    def observe(self, change: Change) -> None:
        """Tell whoever waits for the Job that this is about."""
        if not self._waiting:
            return
        for seen in (change.before, change.after):
            if isinstance(seen, Job):
                for event in self._waiting.get(seen.metadata.uid, ()):
                    event.set()

    def stop(self) -> None:
        """Let everybody go, and nobody wait any more."""
        self._is_stopped = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    async def until(
        self, uid: str, is_so: Callable[[], bool], seconds: float, gone: Awaitable[Any]
    ) -> None:
        """Wait until something is so of a Job; not longer than that, nor than anybody listens."""
        event = asyncio.Event()
        self._waiting.setdefault(uid, set()).add(event)
        left = asyncio.ensure_future(gone)
        try:
            async with asyncio.timeout(seconds):
                while not (is_so() or self._is_stopped or left.done()):
                    news = asyncio.ensure_future(event.wait())
                    try:
                        await asyncio.wait((news, left), return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        news.cancel()
                    event.clear()
        except TimeoutError:
            return
        finally:
            left.cancel()
            events = self._waiting[uid]
            events.discard(event)
            if not events:
                del self._waiting[uid]


class Statuses:
    """What the status API knows of single Jobs: those that are stored, and those that were."""

    def __init__(
        self,
        live: LiveJobs,
        waiters: Waiters,
        archive: Archive | None = None,
        places: PendingPlaces | None = None,
    ) -> None:
        self._live = live
        self._waiters = waiters
        self._archive = archive
        self._places = places

    @property
    def shape(self) -> type[JobView]:
        """What the status of a Job is made of."""
        return JobView

    def stop(self) -> None:
        """Answer all who wait with what is known."""
        self._waiters.stop()

    async def find(self, uid: str, sees: Sees = everything) -> JobView | None:
        """The status of a Job; None when there is none that is seen."""
        job = self._live.by_uid(uid)
        view: JobView | None = None
        if job is not None:
            if not sees_job(sees, job):
                return None
            view = self._live.view(job)
            if self._archive is None or view.completion_state is None:
                return view
        elif self._archive is not None:
            view = await self._archive.find(uid)
        if view is None or self._archive is None or not _is_seen(view, sees):
            return None
        return (await self._archive.related([view]))[0]

    def state_of(self, job: Job) -> str:
        """In which of four states a Job is."""
        return state_of(job).value

    def place_for(self, job: Job) -> AbstractContextManager[None]:
        """Hold a place in the line of a Job's target, where the store itself does not count."""
        return nullcontext() if self._places is None else self._places.held(job)

    async def kept(self, namespace: str, name: str) -> Asked | None:
        """The newest Job of a name that was removed and whose status is kept."""
        return None if self._archive is None else await self._archive.named(namespace, name)

    async def heard(self, uids: Sequence[str]) -> None:
        """Wait until Jobs that were just made can be read: their statuses are asked for next."""
        for uid in uids:
            if self._live.by_uid(uid) is None:
                known = partial(self._is_known, uid)
                await self._waiters.until(uid, known, _HEARD_S, asyncio.Event().wait())

    def _is_known(self, uid: str) -> bool:
        return self._live.by_uid(uid) is not None

    async def settled(
        self, uid: str, seconds: float, gone: Awaitable[None], *, made: bool = False
    ) -> None:
        """Wait until a Job is over, stuck, or no more; one that was just `made` is to come yet."""
        was_there = not made

        def is_so() -> bool:
            nonlocal was_there
            job = self._live.by_uid(uid)
            if job is None:
                return was_there
            was_there = True
            return has_ended(job) or is_stuck(job)

        await self._waiters.until(uid, is_so, seconds, gone)


def _is_seen(view: JobView, sees: Sees) -> bool:
    path = view.target_path if isinstance(view.target_path, str) else ""
    return sees(view.owner_login or "", view.creator_login or "", path)
