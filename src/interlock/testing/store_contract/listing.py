"""Listing: order, selectors, and lists in parts that are all of one version."""

from __future__ import annotations

import pytest

from interlock.errors import BadRequestError
from interlock.resources.job import JobPhase
from interlock.store.contract import Page, Selection, Store
from interlock.testing.store_contract.suite import StoreSuite, in_phase, new_job, on_store

RED = {"team": "red", "tier": "web"}
BLUE = {"team": "blue"}

SELECTORS = [
    ("team=red", ["a"]),
    ("team==blue", ["b"]),
    ("team!=red", ["b", "c"]),
    ("team", ["a", "b"]),
    ("!team", ["c"]),
    ("team in (red, blue)", ["a", "b"]),
    ("team notin (red)", ["b", "c"]),
    ("team in (red,blue),tier=web", ["a"]),
    ("team=red,team=blue", []),
    ("", ["a", "b", "c"]),
]


class ListingContract(StoreSuite):
    """What `list` promises."""

    @on_store
    async def test_a_list_is_in_order(self, store: Store, namespace: str) -> None:
        for name in ("c", "a", "b"):
            await store.create(new_job(namespace, name))
        page = await store.list("Job", Selection(namespace=namespace))

        assert names(page) == ["a", "b", "c"]
        assert page.continue_token == ""

    @on_store
    async def test_deleted_and_created_names_are_listed_right(
        self, store: Store, namespace: str
    ) -> None:
        for name in ("c", "a", "b"):
            await store.create(new_job(namespace, name))
        await store.list("Job")
        await store.delete(new_job(namespace, "a").key)
        await store.delete(new_job(namespace, "b").key)
        await store.create(new_job(namespace, "b"))

        assert names(await store.list("Job", Selection(namespace=namespace))) == ["b", "c"]

    @on_store
    async def test_every_namespace_is_listed_in_order(self, store: Store, namespace: str) -> None:
        await store.create(new_job(namespace, "job"))
        other = await store.create(new_job("default", namespace))
        keys = [job.key for job in (await store.list("Job")).items]

        assert {new_job(namespace, "job").key, other.key} <= set(keys)
        assert keys == sorted(keys)
        await store.delete(other.key)

    @pytest.mark.parametrize(("labels", "expected"), SELECTORS)
    def test_labels_select(self, labels: str, expected: list[str]) -> None:
        """Each form of label selector finds what it means."""

        async def check(_: StoreSuite, store: Store, namespace: str) -> None:
            await store.create(new_job(namespace, "a", labels=RED))
            await store.create(new_job(namespace, "b", labels=BLUE))
            await store.create(new_job(namespace, "c"))
            page = await store.list("Job", Selection(namespace=namespace, labels=labels))
            assert names(page) == expected

        on_store(check)(self)

    @on_store
    async def test_fields_select(self, store: Store, namespace: str) -> None:
        await store.create(new_job(namespace, "a"))
        await store.create(new_job(namespace, "b"))
        by_name = Selection(namespace=namespace, fields="metadata.name=b")
        by_namespace = Selection(fields=f"metadata.namespace={namespace},metadata.name!=b")

        assert names(await store.list("Job", by_name)) == ["b"]
        assert names(await store.list("Job", by_namespace)) == ["a"]

    @on_store
    async def test_the_phase_selects(self, store: Store, namespace: str) -> None:
        made = await store.create(new_job(namespace, "a"))
        await store.create(new_job(namespace, "b"))
        await store.update_status(in_phase(made, JobPhase.RUNNING))
        running = Selection(namespace=namespace, fields="status.phase=Running")

        assert names(await store.list("Job", running)) == ["a"]

    @on_store
    async def test_bad_selectors_are_refused(self, store: Store, namespace: str) -> None:
        for labels in ("=", "a in b", "a b", "a in (b", ",", "a=b,,c=d"):
            with pytest.raises(BadRequestError):
                await store.list("Job", Selection(namespace=namespace, labels=labels))
        for fields in ("metadata.name", "spec.nonsense=1", "="):
            with pytest.raises(BadRequestError):
                await store.list("Job", Selection(namespace=namespace, fields=fields))

    @on_store
    async def test_parts_are_of_one_version(self, store: Store, namespace: str) -> None:
        """Whatever is written between two parts, together they are the list as it was."""
        for number in range(5):
            await store.create(new_job(namespace, f"job-{number}"))
        chosen = Selection(namespace=namespace)
        first = await store.list("Job", chosen, limit=2)
        await store.delete(new_job(namespace, "job-3").key)
        await store.create(new_job(namespace, "job-9"))
        second = await store.list("Job", chosen, limit=2, continue_token=first.continue_token)
        third = await store.list("Job", chosen, limit=2, continue_token=second.continue_token)

        found = [*names(first), *names(second), *names(third)]
        assert found == [f"job-{number}" for number in range(5)]
        assert first.version == second.version == third.version
        assert third.continue_token == ""
        assert first.remaining in (3, None)

    @on_store
    async def test_a_bad_token_is_refused(self, store: Store, namespace: str) -> None:
        chosen = Selection(namespace=namespace)
        for token in ("nonsense", "ä", "e30", "WzEsMSwtNV0"):
            with pytest.raises(BadRequestError):
                await store.list("Job", chosen, limit=2, continue_token=token)


def names(page: Page) -> list[str]:
    """The names of what was listed."""
    return [resource.metadata.name for resource in page.items]
