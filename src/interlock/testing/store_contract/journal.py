"""What a journal promises."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from interlock.resources.metadata import Key
from interlock.store.contract import Journal, JournalEntry
from interlock.testing.builders import T0
from interlock.testing.store_contract.suite import PATIENCE_S


def an_entry(name: str = "job", version: int = 1) -> JournalEntry:
    """A decision about a Job."""
    return JournalEntry(
        at=T0,
        kind="Job",
        namespace="default",
        name=name,
        room="admission",
        actions=("admit",),
        reason="nothing is in the way",
        version=version,
    )


class JournalContract:
    """Base of the tests of a journal."""

    @abstractmethod
    def open_journal(self) -> AbstractAsyncContextManager[Journal]:
        """An empty journal that keeps 5,000 entries or a few more."""
        raise NotImplementedError

    def run(self, test: Callable[[Journal], Awaitable[None]]) -> None:
        """Run a test on a journal."""

        async def run() -> None:
            async with asyncio.timeout(PATIENCE_S), self.open_journal() as journal:
                await test(journal)

        asyncio.run(run())

    def test_the_newest_comes_first(self) -> None:
        """Entries are read back whole, newest first, with rising numbers."""

        async def check(journal: Journal) -> None:
            for version in range(1, 6):
                journal.append(an_entry(version=version))
            found = await journal.read(limit=3)
            assert [entry.version for _, entry in found] == [5, 4, 3]
            numbers = [number for number, _ in found]
            assert numbers == sorted(numbers, reverse=True)
            older = await journal.read(before=numbers[-1])
            assert [entry for _, entry in older] == [an_entry(version=2), an_entry(version=1)]

        self.run(check)

    def test_one_resource_is_found(self) -> None:
        """Only the entries of the key are read, also when another's reason has its name."""

        async def check(journal: Journal) -> None:
            for name in ("a", "b", "a", "aa"):
                journal.append(an_entry(name))
            found = await journal.read(Key("Job", "default", "a"))
            assert [entry.name for _, entry in found] == ["a", "a"]
            assert await journal.read(Key("Job", "other", "a")) == []

        self.run(check)

    def test_the_journal_is_bounded(self) -> None:
        """Old entries go; the newest stay."""

        async def check(journal: Journal) -> None:
            for start in range(0, 20_000, 100):
                for version in range(start + 1, start + 101):
                    journal.append(an_entry(version=version))
                await journal.read(limit=1)
            found = await journal.read(limit=30_000)
            assert 5_000 <= len(found) <= 7_000
            versions = [entry.version for _, entry in found]
            assert versions == list(range(20_000, 20_000 - len(found), -1))

        self.run(check)
