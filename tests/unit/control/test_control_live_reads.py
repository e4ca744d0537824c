"""What the caches cannot prove is asked of the store, once, and its key is looked at again."""

from __future__ import annotations

from control_world import ADMITTED, World
from msgspec.structs import replace

from interlock.control.live_reads import LiveReads
from interlock.resources.admission import Grant
from interlock.resources.job import Job
from interlock.resources.lock import Lock, LockStatus, is_held_by, lock_name
from interlock.resources.metadata import Key
from interlock.resources.transitions import with_admission
from interlock.testing.builders import T0, a_holder, a_lock

LOCK = Key("Lock", "default", lock_name("db"))
GRANT = Grant(key="db", token=5)


class Court:
    """A store with a lock and a Job that says it holds it, and caches that have heard nothing."""

    def __init__(self) -> None:
        self.world = World()
        self.woken: list[Key] = []
        self.proofs = LiveReads(self.world.store, self.world.caches, self.world.clock)
        self.proofs.wake = self.woken.append

    async def job(self) -> Job:
        job = await self.world.create_job()
        admission = replace(ADMITTED, grants=(GRANT,))
        return replace(job, status=with_admission(job, admission, T0))

    async def lock(self, *, names: Job) -> Lock:
        made = await self.world.store.create(a_lock())
        holders = (a_holder(names, token=GRANT.token),)
        return await self.world.store.update_status(
            replace(made, status=LockStatus(holders=holders))
        )

    def is_proven(self, job: Job) -> bool:
        return self.proofs.is_not_granted(LOCK, job, lambda lock: is_held_by(lock, job, GRANT))


def test_a_cache_that_has_heard_enough_proves_it_at_once() -> None:
    court = Court()

    async def check() -> None:
        job = await court.job()
        court.world.caches["Lock"].settle(job.version)

        assert court.is_proven(job)
        assert "get" not in court.world.store.calls

    court.world.run(check())


def test_a_record_that_names_another_is_proof_enough() -> None:
    court = Court()

    async def check() -> None:
        other = await court.world.create_job("other")
        await court.lock(names=other)
        job = await court.job()

        assert not court.is_proven(job)
        await court.world.passes(1)
        assert court.woken == [job.key]
        assert court.is_proven(job)
        assert court.world.store.calls.count("get") == 1

    court.world.run(check())


def test_a_record_that_is_not_there_is_proof_enough() -> None:
    court = Court()

    async def check() -> None:
        job = await court.job()

        assert not court.is_proven(job)
        await court.world.passes(1)
        assert court.is_proven(job)

    court.world.run(check())


def test_a_record_that_names_the_job_proves_only_that_the_cache_is_behind() -> None:
    court = Court()

    async def check() -> None:
        job = await court.job()
        await court.lock(names=job)

        assert not court.is_proven(job)
        await court.world.passes(5)
        assert court.woken == [job.key]
        assert not court.is_proven(job)

    court.world.run(check())
