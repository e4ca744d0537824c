"""The store on a real Kubernetes API server keeps the contract."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from interlock.kube.store.journal import KubernetesJournal
from interlock.store.contract import Journal, Store
from interlock.testing.store_contract import JournalContract, StoreContract
from support.cluster_store import install, store_on
from support.kube import Access, find, shared
from support.kube.binaries import HELP


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """The control plane that all tests of the run share, with our kinds installed."""
    programs = find()
    if programs is None:
        pytest.skip(f"there is no Kubernetes control plane here: {HELP}")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Each test process has its own folder within the run's.
        base = base.parent
    with shared(programs.folder, base / "kube") as access:
        install(access)
        yield access


class TestKubernetesStore(StoreContract):
    fills_in_late = True
    tells_creation = False

    @pytest.fixture(autouse=True)
    def _place(self, access: Access) -> None:
        self.access = access

    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[Store]:
        async with store_on(self.access) as store:
            yield store


class TestKubernetesJournal(JournalContract):
    @asynccontextmanager
    async def open_journal(self) -> AsyncIterator[Journal]:
        yield KubernetesJournal(entries=5_000)
