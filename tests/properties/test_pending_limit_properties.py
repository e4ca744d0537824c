"""The pending limit: whoever submits at once, no target has more unfinished Jobs than it may.

Both ways of counting are held to it: that of a store, where writes are decided, and that of the
leader of a cluster, which counts what it was asked for and has not heard of yet.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any, TypeVar

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.admission.pending_limit import PendingLimit
from interlock.control.cache import Cache
from interlock.control.reconciler import Change
from interlock.errors import TooManyPendingError
from interlock.reporting.job_index import JobIndex
from interlock.reporting.pending_places import PendingPlaces
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import Key, Resource
from interlock.resources.steps import Target
from interlock.resources.tasks import ExecutionStatus, JobResult
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryStore
from interlock.testing.builders import T0, a_job

OVER = JobStatus(
    phase=JobPhase.SUCCEEDED,
    execution=ExecutionStatus(total=1, started_at=T0, ended_at=T0, result=JobResult.SUCCEEDED),
)
R = TypeVar("R", bound=Resource)

PATHS = st.sampled_from(["a", "a/b", ""])
SUBMITS = st.tuples(st.just("submit"), PATHS, st.none() | st.integers(1, 3))
ENDS = st.tuples(st.sampled_from(["end", "delete"]), st.integers(0, 11))
#: What is asked for at once, wave by wave.
WAVES = st.lists(st.lists(SUBMITS | ENDS, min_size=1, max_size=8), max_size=5)


def a_submission(number: int, path: str, most: int | None) -> Job:
    target = Target(path=path, max_pending=most) if path else None
    job = a_job(f"job-{number}", target=target)
    metadata = replace(job.metadata, uid="", resource_version="", finalizers=())
    return replace(job, metadata=metadata)


class SlowStore(MemoryStore):
    """A store that is not at the write when it is asked for it: others come between."""

    def __init__(self, luck: Random) -> None:
        super().__init__(lambda: T0, SeededIdentities(luck))
        self._luck = luck

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        for _ in range(self._luck.randrange(4)):
            await asyncio.sleep(0)
        return await super().create(resource, dry_run=dry_run)


class Submitters:
    """Those who submit, end and delete Jobs of some targets, all at once."""

    def __init__(self, seed: int, most: int, *, is_leader: bool) -> None:
        self.store = SlowStore(Random(seed))
        self._most = most
        self._made = 0
        self.taken_on: list[Job] = []
        self.refused: list[tuple[Job, int]] = []
        self._cache: Cache[Job] = Cache("Job")
        self._roster = JobIndex()
        self._places: PendingPlaces | None = None
        if is_leader:
            self._places = PendingPlaces(self._roster, self._newest, most)
        else:
            self.store.guard(PendingLimit(most))

    def _newest(self, key: Key) -> Resource | None:
        return self._cache.get(key)

    def unfinished(self) -> Counter[str]:
        """How many Jobs of each target are stored and not over."""
        jobs = [job for job in self.store.find_all("Job") if isinstance(job, Job)]
        open_jobs = [job for job in jobs if job.status.phase is not JobPhase.SUCCEEDED]
        return Counter(job.spec.target.path for job in open_jobs if job.spec.target is not None)

    async def carry_out(self, what: str, *how: Any) -> None:
        if what == "submit":
            await self._submit(*how)
        elif how[0] < len(self.taken_on):
            await self._end(how[0], is_deleted=what == "delete")

    async def _submit(self, path: str, most: int | None) -> None:
        self._made += 1
        job = a_submission(self._made, path, most)
        try:
            if self._places is None:
                made = await self.store.create(job)
            else:
                with self._places.held(job):
                    made = await self.store.create(job)
                    self._hear(made)
        except TooManyPendingError as error:
            self.refused.append((job, error.limit))
            return
        self.taken_on.append(made)

    async def _end(self, number: int, *, is_deleted: bool) -> None:
        key = self.taken_on[number].key
        if self.store.find(key) is None:
            return
        job = await self.store.get(key)
        assert isinstance(job, Job)
        if is_deleted:
            await self.store.delete(key)
            self._cache.drop(key, self.store.version)
            self._roster.observe(Change(job, None))
        else:
            self._hear(await self.store.update_status(replace(job, status=OVER)))

    def _hear(self, job: Job) -> None:
        before = self._cache.note(job)
        self._roster.observe(Change(before if before is not job else None, job))


@given(waves=WAVES, most=st.integers(1, 4), seed=st.integers(0, 9), is_leader=st.booleans())
def test_as_many_as_may_be_are_taken_on_and_not_one_more(
    waves: list[list[Any]], most: int, seed: int, is_leader: bool
) -> None:
    async def told() -> None:
        submitters = Submitters(seed, most, is_leader=is_leader)
        for wave in waves:
            before, refused = submitters.unfinished(), len(submitters.refused)
            taken_on = len(submitters.taken_on)
            await asyncio.gather(*(submitters.carry_out(*one) for one in wave))
            now = submitters.unfinished()
            assert all(count <= most for count in now.values())
            turned_away = {job.metadata.name for job, _ in submitters.refused}
            names = {job.metadata.name for job in submitters.store.find_all("Job")}
            assert not names & turned_away, "what was refused is stored"
            for job, limit in submitters.refused:
                assert job.spec.target is not None
                assert limit == min(most, job.spec.target.max_pending or most)
            if all(what == "submit" and limit is None for what, *_, limit in wave):
                asked = Counter(path for _, path, _ in wave if path)
                for path, number in asked.items():
                    assert now[path] == min(most, before[path] + number)
                new = len(submitters.taken_on) - taken_on
                assert new + len(submitters.refused) - refused == len(wave)

    asyncio.run(told())
