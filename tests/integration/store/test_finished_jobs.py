"""The archive of finished Jobs: what is kept with a removal, and what is let go of when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.reporting.finished_jobs import FinishedJobs
from interlock.reporting.job_index import JobIndex
from interlock.reporting.live_jobs import LiveJobs
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.steps import Target
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite.store import SqliteStore
from interlock.testing.builders import T0, a_job

OVER = ExecutionStatus(total=1, started_at=T0, ended_at=T0, result=JobResult.SUCCEEDED)


class Desk:
    """A store, what is known of it, and what it keeps."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.roster = JobIndex()
        self.jobs: Cache[Job] = Cache("Job")
        self.finished = FinishedJobs(store, LiveJobs(self.roster, self.jobs))
        store.keeps = self.finished.keep

    async def make(self, name: str, *, over: bool, **spec: object) -> Job:
        job = a_job(name, target=Target(path=f"t/{name}"), **spec)  # type: ignore[arg-type]
        metadata = replace(
            job.metadata, uid="", resource_version="", creation_timestamp=None, finalizers=()
        )
        made = await self.store.create(replace(job, metadata=metadata))
        if over:
            status = JobStatus(phase=JobPhase.SUCCEEDED, execution=OVER)
            made = await self.store.update_status(replace(made, status=status))
        self.jobs.note(made)
        self.roster.observe(Change(None, made))
        return made

    async def remove(self, job: Job) -> None:
        await self.store.delete(job.key)
        self.jobs.drop(job.key, job.version + 1)
        self.roster.observe(Change(job, None))

    async def prune(self, after: timedelta) -> int:
        return await self.finished.prune(T0 + after, self.roster, self.jobs)


def with_desk(path: Path, story: Callable[[Desk], Awaitable[None]]) -> None:
    async def told() -> None:
        store = await SqliteStore.open(path / "i.db", lambda: T0, RandomIdentities())
        try:
            await story(Desk(store))
        finally:
            await store.close()

    asyncio.run(told())


def test_only_what_is_over_and_asked_for_by_its_status_is_kept(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        kept = await desk.make("kept", over=True)
        going = await desk.make("going", over=False)
        for job in (kept, going):
            await desk.remove(job)
        found = await desk.finished.find(kept.metadata.uid)
        assert found is not None
        assert (found.job_id, found.name) == (kept.metadata.uid, "kept")
        assert await desk.finished.find(going.metadata.uid) is None
        assert await desk.finished.named("default", "kept") is not None

    with_desk(tmp_path, story)


def test_nothing_is_let_go_of_before_its_parent_and_children_are_over(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        parent = await desk.make("parent", over=False)
        part = await desk.make("part", over=True, parent="parent")
        alone = await desk.make("alone", over=True)
        for job in (part, alone):
            await desk.remove(job)

        assert await desk.prune(timedelta()) == 0
        assert await desk.prune(timedelta(seconds=1)) == 1
        assert await desk.finished.find(alone.metadata.uid) is None
        assert await desk.finished.find(part.metadata.uid) is not None
        await desk.remove(parent)
        assert await desk.prune(timedelta(seconds=1)) == 1
        assert await desk.finished.find(part.metadata.uid) is None

    with_desk(tmp_path, story)
