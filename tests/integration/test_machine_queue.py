"""The default Queue of a server: made once, and then whoever's word is the last stands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from interlock.errors import NotFoundError
from interlock.modes.machine_queue import lay_out_queue, usual_resources
from interlock.modes.machine_size import MachineSize
from interlock.resources.metadata import Key, Metadata
from interlock.resources.queue import Queue, QueueSpec, StopPolicy
from interlock.resources.values.amounts import Amount
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite import SqliteStore
from interlock.testing.builders import T0

MACHINE = Key("Queue", "", "machine")
T = TypeVar("T")


def with_store(place: Path, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
    """Do something with the store of a data directory, from its opening to its close."""

    async def opened() -> T:
        store = await SqliteStore.open(place / "store.db", lambda: T0, RandomIdentities())
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(opened())


def start(place: Path, **flags: int | str) -> Queue | None:
    """Start a server, as far as its Queue goes; what the Queue is then."""
    wanted = {name: Amount.read(value) for name, value in flags.items()}

    async def started(store: SqliteStore) -> Queue | None:
        await lay_out_queue(store, wanted)
        try:
            found = await store.get(MACHINE)
        except NotFoundError:
            return None
        assert isinstance(found, Queue)
        return found

    return with_store(place, started)


def edit(place: Path, resources: Mapping[str, int], stop: StopPolicy = StopPolicy.NONE) -> None:
    async def edited(store: SqliteStore) -> None:
        found = await store.get(MACHINE)
        assert isinstance(found, Queue)
        amounts = {name: Amount.read(value) for name, value in resources.items()}
        await store.update(replace(found, spec=QueueSpec(resources=amounts, stop=stop)))

    with_store(place, edited)


def delete(place: Path) -> None:
    async def deleted(store: SqliteStore) -> None:
        await store.delete(MACHINE)

    with_store(place, deleted)


def allows(queue: Queue | None) -> dict[str, int | str]:
    assert queue is not None
    return {name: amount.written for name, amount in queue.spec.resources.items()}


def test_the_first_start_makes_it(tmp_path: Path) -> None:
    assert set(allows(start(tmp_path))) == {"cpu", "memory", "tasks"}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (MachineSize(500, 256), {"cpu": "500m", "memory": "256Mi", "tasks": 64}),
        (MachineSize(4000, 8192), {"cpu": 4, "memory": "8192Mi", "tasks": 128}),
        (MachineSize(64000, 1 << 20), {"cpu": 64, "memory": "1048576Mi", "tasks": 512}),
    ],
)
def test_it_allows_what_the_machine_has(size: MachineSize, expected: dict[str, int | str]) -> None:
    assert {name: one.written for name, one in usual_resources(size).items()} == expected


def test_an_edit_stands(tmp_path: Path) -> None:
    start(tmp_path)
    edit(tmp_path, {"tasks": 3}, StopPolicy.HOLD)
    found = start(tmp_path)
    assert allows(found) == {"tasks": 3}
    assert found is not None
    assert found.spec.stop is StopPolicy.HOLD


def test_a_flag_changes_what_it_names_and_is_kept(tmp_path: Path) -> None:
    assert allows(start(tmp_path, tasks=7))["tasks"] == 7
    edit(tmp_path, {"tasks": 3, "gpu": 1}, StopPolicy.HOLD)
    found = start(tmp_path, cpu="1500m")
    assert allows(found) == {"tasks": 3, "gpu": 1, "cpu": "1500m"}
    assert found is not None
    assert found.spec.stop is StopPolicy.HOLD
    assert allows(start(tmp_path)) == allows(found)


def test_a_start_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    before, after = start(tmp_path, tasks=7), start(tmp_path, tasks=7)
    assert before == after


def test_whoever_deletes_it_does_not_get_it_back(tmp_path: Path) -> None:
    start(tmp_path)
    delete(tmp_path)
    assert start(tmp_path) is None
    assert start(tmp_path) is None


def test_a_flag_asks_for_it_again(tmp_path: Path) -> None:
    start(tmp_path)
    delete(tmp_path)
    again = allows(start(tmp_path, tasks=9))
    assert again["tasks"] == 9
    assert set(again) == {"cpu", "memory", "tasks"}


def test_one_of_that_name_of_before_stays_as_it_is(tmp_path: Path) -> None:
    """A data directory of an older release, in which somebody called a Queue so."""
    spec = QueueSpec(resources={"gpu": Amount.read(2)})

    async def made(store: SqliteStore) -> None:
        await store.create(Queue(metadata=Metadata(name="machine"), spec=spec))

    with_store(tmp_path, made)
    assert allows(start(tmp_path)) == {"gpu": 2}
    delete(tmp_path)
    assert start(tmp_path) is None


def test_a_backup_knows_that_it_was_deleted(tmp_path: Path) -> None:
    start(tmp_path)
    delete(tmp_path)
    copy = tmp_path / "copy"
    copy.mkdir()
    with_store(tmp_path, lambda store: store.back_up(copy / "store.db"))
    assert start(copy) is None
