"""The memory store and journal keep the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from interlock.store.contract import Journal, Store
from interlock.store.identities import SeededIdentities
from interlock.store.memory import MemoryJournal, MemoryStore
from interlock.testing.builders import T0
from interlock.testing.store_contract import JournalContract, StoreContract


class TestMemoryStore(StoreContract):
    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[Store]:
        yield MemoryStore(lambda: T0, SeededIdentities(Random(7)))


class TestMemoryJournal(JournalContract):
    @asynccontextmanager
    async def open_journal(self) -> AsyncIterator[Journal]:
        yield MemoryJournal(entries=5_000)
