"""The keeper's journal: what was written is read again, and nothing else is."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from interlock.resources.tasks import TaskId
from interlock.runtimes.keeper.journal import Journal, newest_term
from interlock.runtimes.keeper.records import Booted, Forgot, Founded, Record, TookOver

RECORDS: tuple[Record, ...] = (
    Founded(7, 7 << 32),
    Booted("boot"),
    Forgot((TaskId("uid", 0, 1), TaskId("uid", 1, 2))),
)


def a_journal(place: Path, *records: Record) -> Path:
    path = place / "journal"
    journal = Journal(path)
    journal.read()
    for record in records:
        journal.append(record)
    assert journal.write()
    journal.close()
    return path


def settle(journal: Journal) -> None:
    journal.write()
    journal.sync()
    select.select([journal.ready_fd], [], [], 60)
    journal.settle()


def read_again(path: Path) -> list[object]:
    journal = Journal(path)
    try:
        return list(journal.read())
    finally:
        journal.close()


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    assert read_again(a_journal(tmp_path, *RECORDS)) == list(RECORDS)


def test_every_torn_tail_is_cut_to_the_last_whole_record(tmp_path: Path) -> None:
    whole = a_journal(tmp_path, *RECORDS).read_bytes()
    ends = [len(a_journal(_fresh(tmp_path, n), *RECORDS[:n]).read_bytes()) for n in range(4)]
    torn = tmp_path / "torn"
    for length in range(len(whole)):
        torn.write_bytes(whole[:length])
        expected = max(n for n in range(4) if ends[n] <= length)
        assert read_again(torn) == list(RECORDS[:expected])
        assert torn.stat().st_size == ends[expected]


def test_a_flipped_byte_ends_the_journal(tmp_path: Path) -> None:
    path = a_journal(tmp_path, *RECORDS)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert read_again(path) == list(RECORDS[:2])


def test_the_newest_term_is_read_without_a_keeper(tmp_path: Path) -> None:
    """Also while one writes: a torn tail ends the reading."""
    assert newest_term(tmp_path / "absent") == 0
    path = a_journal(tmp_path, *RECORDS, TookOver(12, "/", {}), TookOver(31, "/", {}), RECORDS[1])
    assert newest_term(path) == 31
    path.write_bytes(path.read_bytes()[:-3])
    assert newest_term(path) == 31


def test_waiters_are_told_after_the_sync(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    told: list[str] = []
    journal.append(RECORDS[0], lambda: told.append("first"))
    journal.append(None, lambda: told.append("second"))
    journal.write()
    assert told == []
    settle(journal)
    assert told == ["first", "second"]
    assert journal.is_quiet
    journal.close()


def test_rewriting_keeps_what_waits(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    told: list[str] = []
    journal.append(RECORDS[0])
    journal.write()
    journal.append(RECORDS[2], lambda: told.append("durable"))
    journal.rewrite(RECORDS[:2])
    assert told == ["durable"]
    journal.close()
    assert read_again(path) == list(RECORDS)


def test_a_full_disk_fails_what_may_fail_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    told: list[str] = []
    real = os.pwrite

    def full(fd: int, data: memoryview, at: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        journal.append(
            RECORDS[0], lambda: told.append("launched"), lambda _: told.append("refused")
        )
        journal.append(RECORDS[1], lambda: told.append("ended"))
        assert not journal.write()
    assert os.pwrite is real
    assert told == ["refused"]
    assert journal.is_stuck
    settle(journal)
    assert told == ["refused", "ended"]
    journal.close()
    assert read_again(path) == [RECORDS[1]]


def test_after_a_failed_sync_the_file_is_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    told: list[str] = []

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", broken)
        journal.append(RECORDS[0], lambda: told.append("launched"), lambda _: told.append("no"))
        journal.append(RECORDS[1], lambda: told.append("ended"))
        settle(journal)
    assert told == ["no"]
    assert journal.broken is not None
    journal.rewrite(())
    assert told == ["no", "ended"]
    journal.close()
    assert read_again(path) == [RECORDS[1]]


def _fresh(place: Path, number: int) -> Path:
    path = place / str(number)
    path.mkdir()
    return path
