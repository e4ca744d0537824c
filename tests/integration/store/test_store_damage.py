"""Damage to the files of a store: nothing that was acknowledged is missing without a word."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random

import pytest

from interlock.store.contract import JournalEntry
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite import CorruptFileError, LostWritesError, SqliteStore
from interlock.store.sqlite.restoring import restore
from interlock.store.sqlite.schema import migrate
from interlock.store.sqlite.witness import Claim, read_claim
from interlock.testing.builders import T0
from interlock.testing.store_contract.suite import new_job, with_spec

ENDINGS = ("", "-wal", "-shm", ".witness")
JOBS = 60


@asynccontextmanager
async def opened(
    path: Path, *, remembered: int = 16, accept_loss: bool = False
) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(
        path, lambda: T0, RandomIdentities(), remembered=remembered, accept_loss=accept_loss
    )
    try:
        yield store
    finally:
        await store.close()


def entry(number: int) -> JournalEntry:
    return JournalEntry(
        at=T0, kind="Job", namespace="default", name="a", room="test", actions=(),
        reason="step", version=number,
    )  # fmt: skip


async def work(store: SqliteStore, count: int, prefix: str = "job") -> None:
    """Make jobs, change them, delete every third; some alone, and some together."""
    for start in range(0, count, 4):
        numbers = range(start, min(start + 4, count))
        new = (store.create(new_job("default", f"{prefix}-{n}")) for n in numbers)
        for number, job in enumerate(await asyncio.gather(*new), start):
            store.journal.append(entry(number))
            job = await store.update(with_spec(job, priority=number))
            if number % 3 == 0:
                await store.delete(job.key)


def copy(path: Path, place: Path, endings: tuple[str, ...] = ENDINGS) -> Path:
    """The files as they are at this moment: what a process leaves that is killed now."""
    place.mkdir()
    for ending in endings:
        file = path.with_name(path.name + ending)
        if file.exists():
            shutil.copy(file, place / file.name)
    return place / path.name


async def contents(
    path: Path, *, remembered: int = 16, accept_loss: bool = False
) -> dict[str, int]:
    """All jobs and their versions."""
    async with opened(path, remembered=remembered, accept_loss=accept_loss) as store:
        return {job.metadata.name: job.version for job in (await store.list("Job")).items}


class Image:
    """What a killed process left, and what it had acknowledged."""

    def __init__(self, path: Path, jobs: dict[str, int]) -> None:
        self.path = path
        self.jobs = jobs

    def file(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    def damaged(self, place: Path, ending: str, harm: Callable[[bytearray], object]) -> Path:
        """Another image, with one file harmed."""
        harmed = copy(self.path, place)
        file = harmed.with_name(harmed.name + ending)
        data = bytearray(file.read_bytes())
        harm(data)
        file.write_bytes(data)
        return harmed


async def killed(tmp_path: Path, fold: str = "") -> Image:
    path = tmp_path / "live" / "interlock.db"
    async with opened(path) as store:
        await work(store, JOBS)
        if fold:
            store._connection.execute(f"PRAGMA wal_checkpoint({fold})")
        jobs = {job.metadata.name: job.version for job in (await store.list("Job")).items}
        return Image(copy(path, tmp_path / "killed"), jobs)


def flip(at: int) -> Callable[[bytearray], object]:
    def harm(data: bytearray) -> None:
        data[at] ^= 0x10

    return harm


async def told_or_harmless(image: Image, harmed: Path) -> bool:
    """Whether the harm was told; if not, everything that was acknowledged must be there."""
    try:
        found = await contents(harmed)
    except CorruptFileError:
        return True
    assert found == image.jobs
    return False


@pytest.mark.parametrize(
    ("ending", "fold"),
    [
        pytest.param("-wal", "", id="write-ahead log"),
        pytest.param("-wal", "PASSIVE", id="write-ahead log that was folded in"),
        pytest.param("", "TRUNCATE", id="file"),
    ],
)
def test_a_flipped_bit_is_harmless_or_told(tmp_path: Path, ending: str, fold: str) -> None:
    async def run() -> None:
        image = await killed(tmp_path, fold)
        size = image.file(ending).stat().st_size
        random = Random(20261118)
        places = [*range(0, 32, 3), *(random.randrange(size) for _ in range(150))]
        told = 0
        for turn, at in enumerate(places):
            harmed = image.damaged(tmp_path / f"flip-{turn}", ending, flip(at))
            told += await told_or_harmless(image, harmed)
            shutil.rmtree(harmed.parent)
        assert told

    asyncio.run(run())


def shortened(part: float) -> Callable[[bytearray], object]:
    def harm(data: bytearray) -> None:
        del data[int(len(data) * part) :]

    return harm


@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.7, 0.999])
def test_a_log_that_was_cut_is_told(tmp_path: Path, part: float) -> None:
    async def run() -> None:
        image = await killed(tmp_path)
        harmed = image.damaged(tmp_path / "cut", "-wal", shortened(part))
        with pytest.raises(CorruptFileError):
            await contents(harmed)

    asyncio.run(run())


@pytest.mark.parametrize("ending", ["-wal", ""])
def test_a_file_that_was_deleted_or_put_back_is_told(tmp_path: Path, ending: str) -> None:
    async def run() -> None:
        path = tmp_path / "live" / "interlock.db"
        async with opened(path) as store:
            await work(store, 8, "early")
            if not ending:
                store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            early = copy(path, tmp_path / "early")
            await work(store, 30)
            if not ending:
                store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            image = Image(copy(path, tmp_path / "killed"), {})
        old = early.with_name(early.name + ending).read_bytes()
        for turn, data in enumerate((None, old)):
            harmed = copy(image.path, tmp_path / f"turn-{turn}")
            file = harmed.with_name(harmed.name + ending)
            file.unlink()
            if data is not None:
                file.write_bytes(data)
            with pytest.raises(LostWritesError, match="are missing, the last of them acknowledged"):
                await contents(harmed)

    asyncio.run(run())


def test_a_refusal_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """What a person may still save must not be tidied up; and it is refused again."""

    async def run() -> None:
        image = await killed(tmp_path)
        middle = image.file("-wal").stat().st_size // 2
        harmed = image.damaged(tmp_path / "flip", "-wal", flip(middle))
        files = [harmed.with_name(harmed.name + ending) for ending in ("", "-wal", ".witness")]
        before = [file.read_bytes() for file in files]
        for _ in range(2):
            with pytest.raises(LostWritesError, match="are missing"):
                await contents(harmed)
        assert [file.read_bytes() for file in files] == before

    asyncio.run(run())


def damage_a_version(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE log SET data = replace(data, 'default', 'defauld')")


def damage_a_fact(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE facts SET value = value + 1 WHERE name = 'floor'")


def lose_a_fact(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM facts WHERE name = 'dropped'")


def lose_a_version(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM log WHERE number = (SELECT min(number) FROM log)")
        connection.execute("DELETE FROM log WHERE number = 1")


def damage_the_history(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE log SET data = '[]' WHERE number = -1 OR number = -2")
        connection.execute("UPDATE log SET kind = 'x' WHERE number < 0")


def cut_the_log(path: Path) -> None:
    wal = path.with_name(path.name + "-wal")
    os.truncate(wal, wal.stat().st_size // 2)


def lose_the_file(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


HARMS = [
    damage_a_version,
    damage_a_fact,
    lose_a_fact,
    lose_a_version,
    damage_the_history,
    cut_the_log,
    lose_the_file,
]


@pytest.mark.parametrize("harm", HARMS)
def test_a_loss_is_refused_until_it_is_accepted(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Then versions go on above all that were given out, and the loss is written down."""

    async def run() -> None:
        image = await killed(tmp_path)
        newest = read_claim(image.path).version
        harm(image.path)
        with pytest.raises(LostWritesError) as refused:
            await contents(image.path)
        async with opened(image.path, accept_loss=True) as store:
            assert store.is_restored
            assert store.accepted == str(refused.value.loss)
            assert all(job.version > newest for job in (await store.list("Job")).items)
            await work(store, 8, "later")
        losses = image.file(".losses").read_text()
        assert losses == f"{T0.isoformat()} {refused.value.loss}\n"
        found = await contents(image.path)
        assert "later-1" in found
        assert image.file(".losses").read_text() == losses

    asyncio.run(run())


def test_nothing_is_lifted_when_nothing_is_lost(tmp_path: Path) -> None:
    async def run() -> None:
        image = await killed(tmp_path)
        assert await contents(image.path, accept_loss=True) == image.jobs
        assert not image.file(".losses").exists()

    asyncio.run(run())


def witnesses(path: Path, earlier: bytes) -> list[bytes | None]:
    """What may be left of a witness when the power fails: missing, empty, older, torn."""
    newest = path.with_name(path.name + ".witness").read_bytes()
    torn = [newest[:at] + earlier[at:] for at in range(0, len(newest), 5)]
    blank = [newest[:at] + bytes(len(newest) - at) for at in range(0, len(newest), 5)]
    return [None, b"", earlier, newest, *torn, *blank]


@pytest.mark.parametrize("remembered", [1, 3, 16])
def test_no_healthy_store_is_refused(tmp_path: Path, remembered: int) -> None:
    """Killed after any write, with whatever is left of the witness, and again, and again."""

    async def run() -> None:
        path = tmp_path / "live" / "interlock.db"
        random = Random(remembered)
        earlier = b""
        for turn in range(25):
            async with opened(path, remembered=remembered) as store:
                await work(store, random.randrange(1, 9), f"t{turn}")
                if turn % 4 == 0:
                    store._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                jobs = {job.metadata.name: job.version for job in (await store.list("Job")).items}
                image = copy(path, tmp_path / f"turn-{turn}")
            for left in random.sample(witnesses(image, earlier), 4):
                witness = image.with_name(image.name + ".witness")
                witness.unlink(missing_ok=True)
                if left is not None:
                    witness.write_bytes(left)
                assert await contents(image, remembered=remembered) == jobs
            earlier = path.with_name(path.name + ".witness").read_bytes()
            shutil.rmtree(image.parent)

    asyncio.run(run())


def test_a_failed_write_leaves_no_false_alarm(tmp_path: Path) -> None:
    """Its version was given out and is not in the file; neither sums nor witness miss it."""

    async def run() -> None:
        path = tmp_path / "live" / "interlock.db"
        async with opened(path) as store:
            await work(store, 8)
            store._connection.execute("PRAGMA query_only = 1")
            results = await asyncio.gather(work(store, 8, "no"), return_exceptions=True)
            assert isinstance(results[0], Exception)
            assert await contents(copy(path, tmp_path / "failed"))
            store._connection.execute("PRAGMA query_only = 0")
            await work(store, 8, "yes")
            assert "yes-1" in await contents(copy(path, tmp_path / "mended"))

    asyncio.run(run())


def test_an_older_file_is_brought_up_to_date(tmp_path: Path) -> None:
    """One without seals is believed as it is found; from then on it is not."""

    async def run() -> None:
        image = await killed(tmp_path)
        with closing(sqlite3.connect(image.path, isolation_level=None)) as connection:
            rows = connection.execute("SELECT number, kind, gone, data FROM log").fetchall()
            (floor,) = connection.execute("SELECT value FROM facts WHERE name='floor'").fetchone()
        old = tmp_path / "old" / "interlock.db"
        old.parent.mkdir()
        with closing(sqlite3.connect(old, isolation_level=None)) as connection:
            migrate(connection, upto=1)
            connection.executemany("INSERT INTO log VALUES (?,?,?,?)", rows)
            connection.execute("UPDATE facts SET value = ?", (floor,))
        restore(old, tmp_path / "restored" / "interlock.db", now=T0)
        assert set(await contents(tmp_path / "restored" / "interlock.db")) == set(image.jobs)
        assert await contents(old) == image.jobs
        assert await contents(old) == image.jobs
        damage_a_version(old)
        with pytest.raises(LostWritesError, match="not as written"):
            await contents(old)

    asyncio.run(run())


def test_a_damaged_backup_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        path, backup = tmp_path / "live" / "interlock.db", tmp_path / "backup"
        async with opened(path) as store:
            await work(store, 8)
            await store.back_up(backup)
        damage_a_version(backup)
        with pytest.raises(CorruptFileError, match="not as written"):
            restore(backup, path, now=T0)

    asyncio.run(run())


def test_a_backup_of_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """While the server runs it is the first to read the file."""

    async def run() -> None:
        path, backup = tmp_path / "live" / "interlock.db", tmp_path / "backup"
        async with opened(path) as store:
            await work(store, 8)
            store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            at = path.read_bytes().index(b'"name":"job-1"')
            with path.open("r+b") as file:
                file.seek(at + len('"name":"j'))
                file.write(b"0")
            with pytest.raises(CorruptFileError, match="not as written"):
                await store.back_up(backup)
            assert not backup.exists()

    asyncio.run(run())


def test_a_restore_goes_on_above_the_witness(tmp_path: Path) -> None:
    """Also when the file that is replaced knows less than it, and its journal is another."""

    async def run() -> None:
        path, backup = tmp_path / "live" / "interlock.db", tmp_path / "backup"
        async with opened(path) as store:
            await work(store, 8)
            await store.back_up(backup)
            await work(store, 20, "late")
        newest = read_claim(path).version
        path.write_bytes(b"no store any more")
        # So early that the clock says nothing.
        restore(backup, path, now=T0.replace(year=1970))
        found = await contents(path)
        assert found
        assert min(found.values()) > newest

    asyncio.run(run())


def test_a_witness_that_says_nothing_claims_nothing(tmp_path: Path) -> None:
    assert read_claim(tmp_path / "interlock.db") == Claim()
