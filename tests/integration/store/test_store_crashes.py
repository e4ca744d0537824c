"""A store whose process is killed at any moment has lost nothing that it acknowledged."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from random import Random

from interlock.resources.job import Job
from interlock.resources.metadata import Resource
from interlock.store.contract import EventType
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite import SqliteStore
from interlock.testing.builders import T0

ROUNDS = 20
WRITER = Path(__file__).with_name("crash_writer.py")
LAST_STEP = 3
DELETED_STEP = 4


def kill_after(path: Path, prefix: str, lines: int) -> dict[str, tuple[int, int]]:
    """Let a process write until it has told so many writes, kill it, and give all it told.

    What it told is the last step and version of each job.
    """
    order = [sys.executable, str(WRITER), str(path), prefix]
    told: dict[str, tuple[int, int]] = {}
    with subprocess.Popen(order, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for count, line in enumerate(process.stdout):
            if not line.endswith("\n"):
                break
            name, step, version = line.split()
            told[name] = (int(step), int(version))
            if count == lines:
                process.kill()
    return told


async def reopened(path: Path) -> tuple[dict[str, Resource], list[int]]:
    """What is stored, and the version of every change that is remembered."""
    store = await SqliteStore.open(path, lambda: T0, RandomIdentities(), remembered=10**6)
    found = {job.metadata.name: job for job in (await store.list("Job")).items}
    versions: list[int] = []
    async with store.watch("Job", since=1) as batches:
        while not versions or versions[-1] < store.version:
            versions += [e.version for e in await anext(batches) if e.type != EventType.BOOKMARK]
    await store.close()
    return found, versions


def check_job(name: str, step: int, version: int, found: Resource | None) -> None:
    """Make sure that the job is as it was acknowledged, or one step further."""
    allowed = {step, step + 1} if step < DELETED_STEP else {DELETED_STEP}
    if found is None:
        assert DELETED_STEP in allowed, f"{name}: step {step} was acknowledged and is lost"
        return
    assert isinstance(found, Job)
    assert found.spec.priority in allowed, f"{name}: acknowledged {step}, found {found.spec}"
    assert found.version >= version


def test_killed_again_and_again(tmp_path: Path) -> None:
    """Every acknowledged write is there, and no group was committed by half."""
    random = Random(20260105)
    path = tmp_path / "interlock.db"
    told: dict[str, tuple[int, int]] = {}
    for number in range(ROUNDS):
        told |= kill_after(path, f"r{number}", random.randrange(1, 400))
        found, versions = asyncio.run(reopened(path))
        for name, (step, version) in told.items():
            check_job(name, step, version, found.get(name))
        # Versions are given out without gaps, so a gap would be a write whose group came apart.
        # The first version is the namespace's.
        assert versions == list(range(2, versions[-1] + 1))
    assert len(told) > ROUNDS


def test_the_journal_survives_with_the_writes(tmp_path: Path) -> None:
    """The entry that rode along with an acknowledged write is as durable as the write."""
    path = tmp_path / "interlock.db"
    told = kill_after(path, "j", 300)

    async def entries() -> set[tuple[str, int]]:
        store = await SqliteStore.open(path, lambda: T0, RandomIdentities())
        found = await store.journal.read(limit=100_000)
        await store.close()
        return {(entry.name, entry.version) for _, entry in found}

    kept = asyncio.run(entries())
    for name, (step, _) in told.items():
        for written in range(1, min(step, LAST_STEP) + 1):
            assert (name, written) in kept


def test_the_lock_of_a_killed_process_stops_nobody(tmp_path: Path) -> None:
    """The right to the file ends with its holder, though the lock file stays."""
    path = tmp_path / "interlock.db"
    told = kill_after(path, "k", 1)
    assert path.with_name("interlock.db.lock").exists()
    found, _ = asyncio.run(reopened(path))

    assert set(told) <= set(found)
