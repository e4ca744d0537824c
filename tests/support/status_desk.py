"""A status API on a store with its archive, without a control plane: Jobs move when they are told.

What it serves is what a server serves: the same routes, judged by the same door.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

from msgspec.structs import replace

from interlock.api.callers import Access
from interlock.api.security import Security, Token
from interlock.control.caches import Caches
from interlock.control.clock import SystemClock
from interlock.control.reconciler import Change
from interlock.forecast.rehearsal.front import NoLogs
from interlock.reporting.finished_jobs import FinishedJobs
from interlock.reporting.job_index import JobIndex
from interlock.reporting.job_record import JobView
from interlock.reporting.listing import Listing, Part
from interlock.reporting.live_jobs import LiveJobs
from interlock.reporting.service import Reporting
from interlock.reporting.visibility import Sees
from interlock.resources.job import CREATOR_ANNOTATION, Job, JobPhase, JobStatus
from interlock.resources.kinds import KINDS
from interlock.resources.steps import Target
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.store.identities import SeededIdentities
from interlock.store.sqlite.store import SqliteStore
from interlock.testing.asking import Asker, Reply
from interlock.testing.builders import T0, a_job


class _BusyArchive(FinishedJobs):
    """An archive that something happens before, when Jobs were read that are not in it."""

    meanwhile: Callable[[], Any] | None = None

    async def part(self, listing: Listing, sees: Sees) -> Part[JobView]:
        if self.meanwhile is not None:
            await self.meanwhile()
        return await super().part(listing, sees)


def secret_of(name: str) -> str:
    """The token of somebody."""
    return f"{name}-0123456789abcdef"


def a_token(name: str, right: Access, *paths: str) -> Token:
    """What somebody may do, and below which paths."""
    return Token(secret_of(name).encode(), name, frozenset({right}), frozenset(paths))


class StatusDesk:
    """Jobs that are made, end and are removed, and who asks for their statuses."""

    def __init__(self, store: SqliteStore, tokens: tuple[Token, ...]) -> None:
        self.store = store
        self.now = T0
        self.jobs: dict[str, Job] = {}
        self._roster = JobIndex()
        caches = Caches(kind for kind in KINDS.values() if kind.is_ours)
        self._cache = caches.of(Job)
        self.archive = _BusyArchive(store, LiveJobs(self._roster, self._cache))
        store.keeps = self.archive.keep
        reporting = Reporting(
            store=store,
            caches=caches,
            roster=self._roster,
            journal=store.journal,
            logs=NoLogs(),
            clock=SystemClock(),
            archive=self.archive,
        )
        security = Security(loopback=True, tokens=tokens)
        self._asker = Asker(routes=reporting.routes(), security=security)

    async def make(
        self, *, path: str = "", owner: str = "", creator: str = "", **labels: str
    ) -> Job:
        """A Job that is taken on now."""
        target = Target(path=path) if path else None
        name = f"job-{len(self.jobs)}"
        notes = {CREATOR_ANNOTATION: creator} if creator else {}
        job = a_job(name, target=target, owner=owner)
        metadata = replace(
            job.metadata,
            uid="",
            resource_version="",
            creation_timestamp=None,
            finalizers=(),
            annotations=notes,
            labels=labels,
        )
        made = await self.store.create(replace(job, metadata=metadata))
        self._note(made)
        return made

    async def finish(self, name: str, *, well: bool = True) -> None:
        """Have a Job be over."""
        result = JobResult.SUCCEEDED if well else JobResult.FAILED
        phase = JobPhase.SUCCEEDED if well else JobPhase.FAILED
        over = ExecutionStatus(total=1, started_at=self.now, ended_at=self.now, result=result)
        status = JobStatus(phase=phase, execution=over)
        self._note(await self.store.update_status(replace(self.jobs[name], status=status)))

    async def remove(self, name: str) -> None:
        """Have a Job be removed; what is over leaves its status behind."""
        job = self.jobs[name]
        await self.store.delete(job.key)
        self._cache.drop(job.key, self.store.version)
        self._roster.observe(Change(job, None))

    def _note(self, job: Job) -> None:
        before = self._cache.note(job)
        self._roster.observe(Change(before if before is not job else None, job))
        self.jobs[job.metadata.name] = job

    async def ask(self, who: str, path: str, query: dict[str, str] | None = None) -> Reply:
        """What somebody is answered."""
        asked = f"{path}?{urlencode(query)}" if query else path
        headers = {"authorization": f"Bearer {secret_of(who)}"}
        return await self._asker.ask("GET", asked, None, headers)

    async def page(self, who: str, path: str, query: dict[str, str]) -> dict[str, Any]:
        """A page that somebody is given."""
        reply = await self.ask(who, path, query)
        assert reply.status == 200, reply.body
        page: dict[str, Any] = reply.json
        return page

    def tick(self, seconds: int) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


@asynccontextmanager
async def a_desk(*tokens: Token, seed: int = 0) -> AsyncIterator[StatusDesk]:
    """A desk with an empty store of its own."""
    desk: StatusDesk | None = None

    def now() -> datetime:
        return desk.now if desk is not None else T0

    with tempfile.TemporaryDirectory() as folder:
        identities = SeededIdentities(Random(seed))
        store = await SqliteStore.open(Path(folder) / "i.db", now, identities)
        try:
            desk = StatusDesk(store, tokens)
            yield desk
        finally:
            await store.close()
