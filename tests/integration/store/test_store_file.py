"""The file: one owner, no room left, damage, copies, and what is found after a restart."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from interlock.errors import (
    ConflictError,
    ExpiredError,
    NotFoundError,
    UnavailableError,
)
from interlock.resources.job import Job
from interlock.store.contract import EventType
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite import CorruptFileError, FileInUseError, SqliteStore
from interlock.store.sqlite.file import ForeignContentError
from interlock.store.sqlite.restoring import restore
from interlock.store.sqlite.schema import MIGRATIONS, NewerFileError
from interlock.testing.builders import T0
from interlock.testing.store_contract.suite import new_job, with_spec


@asynccontextmanager
async def opened(path: Path, remembered: int = 16_384) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, lambda: T0, RandomIdentities(), remembered=remembered)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "interlock.db"


async def create(store: SqliteStore, *names: str) -> list[Job]:
    return list(await asyncio.gather(*(store.create(new_job("default", n)) for n in names)))


async def names(store: SqliteStore) -> list[str]:
    return [job.metadata.name for job in (await store.list("Job")).items]


def test_everything_is_there_after_a_restart(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            a, b, c = await create(store, "a", "b", "c")
            changed = await store.update(with_spec(a, priority=4))
            gone = await store.delete(b.key)
        async with opened(path) as store:
            assert (await store.list("Job")).items == (changed, c)
            assert store.version == gone.version
            (d,) = await create(store, "d")
            # A version is never given twice, not even that of something deleted.
            assert d.version == gone.version + 1

    asyncio.run(run())


def test_a_watch_resumes_across_a_restart(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            a, _ = await create(store, "a", "b")
            since = store.version
            changed = await store.update(with_spec(a, priority=4))
            gone = await store.delete(a.key)
        async with opened(path) as store, store.watch("Job", since=since) as batches:
            *events, end = await anext(batches)
        assert [event.resource for event in events] == [changed, gone]
        assert (end.type, end.version) == (EventType.BOOKMARK, since + 2)

    asyncio.run(run())


def test_a_second_owner_is_refused(path: Path) -> None:
    """Also one in another process, which is told who the owner is."""

    async def run() -> subprocess.CompletedProcess[str]:
        async with opened(path):
            with pytest.raises(FileInUseError, match=f"process {os.getpid()}"):
                await SqliteStore.open(path, lambda: T0, RandomIdentities())
            return await asyncio.to_thread(open_elsewhere, path)

    answer = asyncio.run(run())
    assert answer.returncode == 1
    assert f"in use by process {os.getpid()}" in answer.stderr


def open_elsewhere(path: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import asyncio, sys\n"
        "from interlock.store.identities import RandomIdentities\n"
        "from interlock.store.sqlite import SqliteStore\n"
        "asyncio.run(SqliteStore.open(sys.argv[1], None, RandomIdentities()))\n"
    )
    order = [sys.executable, "-c", code, str(path)]
    return subprocess.run(order, capture_output=True, text=True, check=False)


def test_a_second_owner_is_refused_without_a_lock_file_too(path: Path) -> None:
    """Whoever deletes it gives nobody the right to the file; a restore has it no more either."""

    async def run() -> None:
        async with opened(path) as store:
            await create(store, "a")
            await store.back_up(path.with_name("backup"))
            path.with_name("interlock.db.lock").unlink()
            for _ in range(2):
                with pytest.raises(FileInUseError, match="its lock file was deleted"):
                    await SqliteStore.open(path, lambda: T0, RandomIdentities())
            with pytest.raises(FileInUseError):
                restore(path.with_name("backup"), path, now=T0)
            await create(store, "b")
        async with opened(path) as store:
            assert await names(store) == ["a", "b"]

    asyncio.run(run())


def delete_all(path: Path) -> None:
    for ending in ("", "-wal", "-shm", ".lock", ".witness"):
        path.with_name(path.name + ending).unlink()


def delete_the_log(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


def replace_the_file(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def move_the_directory(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


GONE = [delete_all, delete_the_log, replace_the_file, move_the_directory]


@pytest.mark.parametrize("harm", GONE)
def test_files_that_are_gone_are_noticed_and_can_be_saved(
    path: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """No write is acknowledged that would not last, and what was acknowledged can be saved."""
    backup, saved = tmp_path / "backup", tmp_path / "saved" / "interlock.db"

    async def run() -> None:
        async with opened(path) as store:
            await create(store, "a", "b")
            assert store.trouble == ""
            harm(path)
            assert "deleted or replaced while the server runs" in store.trouble
            for _ in range(2):
                with pytest.raises(UnavailableError, match="deleted or replaced"):
                    await create(store, "c")
            with pytest.raises(UnavailableError):
                await store.journal.read()
            assert await names(store) == ["a", "b"]
            await store.back_up(backup)
        restore(backup, saved, now=T0)
        async with opened(saved) as store:
            assert await names(store) == ["a", "b"]

    asyncio.run(run())


def test_a_directory_that_is_put_back_is_written_again(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            move_the_directory(path)
            with pytest.raises(UnavailableError, match="deleted or replaced"):
                await create(store, "a")
            path.parent.with_name("elsewhere").rename(path.parent)
            await create(store, "b")
            assert store.trouble == ""

    asyncio.run(run())


def test_no_room_loses_nothing(path: Path) -> None:
    """A process whose file may not grow says so, and goes on once it may."""
    order = [sys.executable, str(Path(__file__).with_name("full_disk.py")), str(path)]
    done = subprocess.run(order, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "not made durable" in told["said"]

    async def run() -> None:
        async with opened(path) as store:
            assert sorted(await names(store)) == sorted(told["acknowledged"])

    asyncio.run(run())


def test_a_full_database_fails_all_that_builds_on_it(path: Path) -> None:
    """Writes decided on top of one that failed fail with it, and nothing of them is seen."""

    async def run() -> None:
        async with opened(path) as store:
            (kept,) = await create(store, "kept")
            limit_pages(store, 1)
            big = replace(kept, spec=replace(kept.spec, title="x" * 200_000))
            first = asyncio.create_task(store.update(big))
            second = asyncio.create_task(store.create(new_job("default", "new")))
            results = await asyncio.gather(first, second, return_exceptions=True)
            assert isinstance(results[0], UnavailableError)
            assert isinstance(results[1], UnavailableError)
            assert (await store.list("Job")).items == (kept,)
            limit_pages(store, 10**6)
            await store.update(big)
            assert await names(store) == ["kept"]

    asyncio.run(run())


def test_trouble_is_told_until_writing_works_again(path: Path) -> None:
    """By a write of somebody's, or by the one that the store makes itself to find out."""

    async def run() -> None:
        async with opened(path) as store:
            for turn in range(2):
                assert store.trouble == ""
                store._connection.execute("PRAGMA query_only = 1")
                with pytest.raises(UnavailableError, match="readonly"):
                    await create(store, "no")
                assert "readonly" in store.trouble
                assert await probed(store) is not None
                assert "readonly" in store.trouble
                store._connection.execute("PRAGMA query_only = 0")
                if turn:
                    await create(store, "yes")
                else:
                    assert await probed(store) is None
            assert store.trouble == ""
            assert await names(store) == ["yes"]

    asyncio.run(run())


async def probed(store: SqliteStore) -> Exception | None:
    outcome = store._probe()
    assert outcome is not None
    return await outcome


def limit_pages(store: SqliteStore, pages: int) -> None:
    store._connection.execute(f"PRAGMA max_page_count = {pages}")


def test_a_refusal_that_rests_on_a_failed_write_is_no_refusal(path: Path) -> None:
    """ "Already exists" is only said once what exists is durable."""

    async def run() -> None:
        async with opened(path) as store:
            limit_pages(store, 1)
            big = new_job("default", "a", annotations={"big": "x" * 200_000})
            tries = [store.create(big), store.create(new_job("default", "a"))]
            results = await asyncio.gather(*tries, return_exceptions=True)
            assert [type(result) for result in results] == [UnavailableError, UnavailableError]
            limit_pages(store, 10**6)
            await create(store, "a")

    asyncio.run(run())


def test_a_cancelled_writer_harms_nobody(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            tasks = [
                asyncio.create_task(store.create(new_job("default", f"job-{n}"))) for n in range(9)
            ]
            await asyncio.sleep(0)
            tasks[4].cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert sum(isinstance(result, Job) for result in results) == 8
            # The write was under way, so it was made all the same.
            assert len(await names(store)) == 9

    asyncio.run(run())


def test_readers_see_only_what_is_durable(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            write = asyncio.create_task(store.create(new_job("default", "a")))
            await asyncio.sleep(0)
            if not write.done():
                with pytest.raises(NotFoundError):
                    await store.get(new_job("default", "a").key)
            made = await write
            assert await store.get(made.key) == made
            # A chain of writes, each decided on the one before, before any is durable.
            one = asyncio.create_task(store.update(with_spec(made, priority=1)))
            two = asyncio.create_task(store.update(with_spec(made, priority=2)))
            assert (await one).spec.priority == 1
            with pytest.raises(ConflictError):
                await two

    asyncio.run(run())


def test_old_versions_are_dropped(path: Path) -> None:
    """The log stays as long as what is remembered, and a restart finds the same."""

    async def run() -> None:
        async with opened(path, remembered=100) as store:
            (job,) = await create(store, "a")
            for priority in range(1, 1001):
                job = await store.update(with_spec(job, priority=priority))
            gone = await create(store, "gone")
            await store.delete(gone[0].key)
        assert rows_in(path) < 400
        async with opened(path, remembered=100) as store:
            assert (await store.list("Job")).items == (job,)
            with pytest.raises(ExpiredError):
                async with store.watch("Job", since=1):
                    pass
            async with store.watch("Job", since=store.version - 50) as batches:
                *events, end = await anext(batches)
                assert (len(events), end.type) == (50, EventType.BOOKMARK)

    asyncio.run(run())


def rows_in(path: Path) -> int:
    connection = sqlite3.connect(path)
    (rows,) = connection.execute("SELECT count(*) FROM log").fetchone()
    connection.close()
    return int(rows)


def test_a_backup_is_of_one_moment_and_can_be_restored(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"

    async def run() -> None:
        async with opened(path) as store:
            await create(store, *(f"job-{n}" for n in range(100)))
            later = asyncio.gather(*(create(store, f"late-{n}") for n in range(100)))
            await store.back_up(backup)
            await later
            with pytest.raises(FileInUseError):
                restore(backup, path, now=T0)
        restore(backup, path, now=T0)
        async with opened(path) as store:
            found = await names(store)
            assert {f"job-{n}" for n in range(100)} <= set(found)
            await create(store, "new")
        restore(backup, tmp_path / "elsewhere" / "interlock.db", now=T0)
        async with opened(tmp_path / "elsewhere" / "interlock.db") as store:
            assert await names(store) == found

    asyncio.run(run())


def test_versions_go_on_above_all_that_were_given_out(path: Path, tmp_path: Path) -> None:
    """Of the same backup, restored again and again: in place, and elsewhere at a later time."""
    backup, elsewhere = tmp_path / "backup.db", tmp_path / "elsewhere" / "interlock.db"

    async def newest(place: Path) -> int:
        async with opened(place) as store:
            kept = (await store.list("Job")).items
            # Everything has another version: whoever read it before may not take it for unchanged.
            assert min(job.version for job in kept) > newest_before[-1]
            with pytest.raises(ExpiredError):
                async with store.watch("Job", since=newest_before[-1]):
                    pass
            (job,) = await create(store, "later")
            return job.version

    async def run() -> None:
        async with opened(path) as store:
            await create(store, "a", "b")
            await store.back_up(backup)
            (late,) = await create(store, "late")
            newest_before.append(late.version)
        for now in (T0, T0, T0 - timedelta(days=1)):
            restore(backup, path, now=now)
            newest_before.append(await newest(path))
        restore(backup, elsewhere, now=T0 + timedelta(days=1))
        newest_before.append(await newest(elsewhere))

    newest_before: list[int] = []
    asyncio.run(run())
    assert newest_before == sorted(newest_before)
    # Exact in every reader of JSON, in this century and the next.
    assert newest_before[-1] < 2**53


def test_a_store_that_others_know_to_be_older_goes_on_above_it(path: Path) -> None:
    """The file was deleted, or an old one put back by hand, and the keeper's memory was not."""

    async def run() -> None:
        async with opened(path) as store:
            (a,) = await create(store, "a")
        identities = RandomIdentities()
        again = await SqliteStore.open(path, lambda: T0, identities, known=a.version + 500)
        try:
            assert again.is_restored
            assert (await again.get(a.key)).version > a.version + 500
            await again.settled()
        finally:
            await again.close()
        async with opened(path) as store:
            assert not store.is_restored
            assert await names(store) == ["a"]

    asyncio.run(run())


def test_a_restore_is_open_until_it_is_settled(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"

    async def run() -> None:
        async with opened(path) as store:
            await create(store, "a")
            await store.back_up(backup)
            assert not store.is_restored
        restore(backup, path, now=T0)
        for _ in range(2):
            async with opened(path) as store:
                assert store.is_restored
                await create(store, f"job-{store.version}")
        async with opened(path) as store:
            await store.settled()
            assert not store.is_restored

    asyncio.run(run())


FOREIGN = (
    "CREATE TRIGGER t AFTER INSERT ON log BEGIN DELETE FROM log; END",
    "CREATE VIEW v AS SELECT * FROM log",
    "CREATE TABLE more (a)",
    "CREATE INDEX i ON log (kind)",
    "ALTER TABLE log ADD COLUMN more",
)


@pytest.mark.parametrize("statement", FOREIGN)
def test_what_is_not_ours_is_not_restored(path: Path, tmp_path: Path, statement: str) -> None:
    backup = tmp_path / "backup.db"

    async def run() -> None:
        async with opened(path) as store:
            await create(store, "a")
            await store.back_up(backup)
        with closing(sqlite3.connect(backup)) as connection:
            connection.execute(statement)
        with pytest.raises(ForeignContentError, match="not ours"):
            restore(backup, path, now=T0)
        async with opened(path) as store:
            assert await names(store) == ["a"]
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(statement)
        with pytest.raises(ForeignContentError, match="not ours"):
            async with opened(path):
                pass

    asyncio.run(run())


def test_any_other_database_is_no_backup(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "empty.db")) as connection:
        connection.execute("PRAGMA user_version = 0")
        connection.execute("VACUUM")
    with pytest.raises(CorruptFileError):
        restore(tmp_path / "empty.db", path, now=T0)
    assert not path.exists()


def test_only_its_owner_can_read_what_a_store_writes(path: Path, tmp_path: Path) -> None:
    """Whatever the umask, and also what an earlier release left readable."""
    backup, elsewhere = tmp_path / "backup.db", tmp_path / "new" / "interlock.db"

    def modes(place: Path) -> set[int]:
        return {stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()}

    async def run() -> None:
        async with opened(path) as store:
            await create(store, "a")
            await store.back_up(backup)
            assert modes(path.parent) == {0o600}
        path.chmod(0o644)
        async with opened(path) as store:
            await create(store, "b")
            assert modes(path.parent) == {0o600}
        restore(backup, elsewhere, now=T0)
        assert modes(elsewhere.parent) == {0o600}

    umask = os.umask(0)
    try:
        asyncio.run(run())
    finally:
        os.umask(umask)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(elsewhere.parent.stat().st_mode) == 0o700


def test_a_damaged_backup_replaces_nothing(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    backup.write_bytes(b"this is no database" * 1000)

    async def run() -> None:
        async with opened(path) as store:
            await create(store, "a")
        with pytest.raises(CorruptFileError):
            restore(backup, path, now=T0)
        with pytest.raises(UnavailableError, match="no backup"):
            restore(tmp_path / "absent.db", path, now=T0)
        async with opened(path) as store:
            assert await names(store) == ["a"]

    asyncio.run(run())


def damage_the_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 8192] = b"\xa5" * 8192
    path.write_bytes(data)


def make_it_something_else(path: Path) -> None:
    path.write_bytes(b"this is no database" * 1000)


def make_a_row_unreadable(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE log SET data = x'7b' WHERE number = 5")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("harm", [damage_the_middle, make_it_something_else, make_a_row_unreadable])
def test_damage_is_found_at_the_start(path: Path, harm: object) -> None:
    async def run() -> None:
        async with opened(path) as store:
            await create(store, *(f"job-{n}" for n in range(200)))
        assert callable(harm)
        harm(path)
        with pytest.raises(CorruptFileError, match="damaged"):
            await SqliteStore.open(path, lambda: T0, RandomIdentities())
        # The refusal let go of the file.
        with pytest.raises(CorruptFileError):
            await SqliteStore.open(path, lambda: T0, RandomIdentities())

    asyncio.run(run())


def test_a_file_of_a_later_release_is_refused(path: Path) -> None:
    async def run() -> None:
        async with opened(path):
            pass
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
        connection.close()
        with pytest.raises(NewerFileError, match="newer release"):
            await SqliteStore.open(path, lambda: T0, RandomIdentities())

    asyncio.run(run())


def test_a_closed_store_says_so(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            await create(store, "a")
            watch = store.watch("Job", since=store.version)
            batches = await watch.__aenter__()
        with pytest.raises(UnavailableError, match="closed"):
            await create(store, "b")
        with pytest.raises(StopAsyncIteration):
            await anext(batches)
        await watch.__aexit__(None, None, None)

    asyncio.run(run())
