"""The SQLite store and journal keep the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from interlock.store.contract import Journal, Store
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite import SqliteStore
from interlock.testing.builders import T0
from interlock.testing.store_contract import JournalContract, StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "interlock.db"

    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[Store]:
        store = await SqliteStore.open(self.path, lambda: T0, RandomIdentities())
        try:
            yield store
        finally:
            await store.close()


class TestSqliteJournal(JournalContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "interlock.db"

    @asynccontextmanager
    async def open_journal(self) -> AsyncIterator[Journal]:
        store = await SqliteStore.open(
            self.path, lambda: T0, RandomIdentities(), journal_entries=5_000
        )
        try:
            yield store.journal
        finally:
            await store.close()
