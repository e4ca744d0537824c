"""A start that never finishes holds up nobody: it can be seen, stopped, and is never made twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.control.runtime import TaskStop
from interlock.resources.process import EnvFile
from interlock.resources.tasks import ReportState, TaskOrder
from interlock.runtimes.keeper.recovery import ADOPTED, GONE_UNSEEN
from interlock.runtimes.keeper.starting import STILL_STARTING
from interlock.testing.builders import with_process
from interlock.testing.keepers import kill_keeper
from interlock.testing.runtime_contract import FOREVER_S, Exits, RunsOn, is_over
from support.dead_files import can_mount, dead_file_system
from support.workshop import ProcessShop

needs_mount = pytest.mark.skipif(not can_mount(), reason="only root may mount a file system")


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[Path]:
    with dead_file_system(tmp_path / "dead") as place:
        yield place


def play(scene: object, place: Path) -> None:
    ProcessShop.play(scene, place)  # type: ignore[arg-type]


async def others_live(shop: ProcessShop, index: int) -> None:
    """Another task starts and ends, and one that runs can be stopped."""
    ends, runs = shop.order(Exits(4), index=index), shop.order(RunsOn(), index=index + 1)
    await shop.runtime.launch([ends, runs])
    told = await shop.until(is_over(ends.id))
    assert told[ends.id].exit_code == 4
    await shop.until_begun(runs.id)
    await shop.runtime.stop([TaskStop(runs.id, FOREVER_S)])
    told = await shop.until(is_over(runs.id))
    assert told[runs.id].signal == signal.SIGTERM


@needs_mount
@pytest.mark.parametrize(
    ("field", "told"),
    [
        pytest.param("program", "program", id="the program"),
        pytest.param("directory", "working directory", id="the working directory"),
        pytest.param("variables", "envFrom: ", id="a file of variables"),
        pytest.param("path", "program", id="a directory of the PATH"),
    ],
)
def test_a_start_that_hangs_harms_no_other_and_can_be_stopped(
    field: str, told: str, dead: Path, tmp_path: Path
) -> None:
    fields: dict[str, dict[str, Any]] = {
        "program": {"command": (str(dead / "program"),)},
        "directory": {"working_dir": str(dead)},
        "variables": {"env_from": (EnvFile(file=str(dead / "env")),)},
        "path": {"command": ("program",), "env": {"PATH": str(dead)}},
    }
    given = fields[field]

    async def scene(shop: ProcessShop) -> None:
        hangs = with_process(shop.order(Exits()), **given)
        await shop.runtime.launch([hangs])
        await others_live(shop, 1)
        seen = await shop.until(lambda all_: STILL_STARTING in all_[hangs.id].message)
        assert seen[hangs.id].state is ReportState.ACCEPTED
        assert told in seen[hangs.id].message
        assert shop.alive() == 1
        await shop.runtime.launch([hangs])
        await others_live(shop, 3)

        await shop.runtime.stop([TaskStop(hangs.id, FOREVER_S)])
        report = (await shop.until(is_over(hangs.id)))[hangs.id]
        assert report.stopped
        assert report.started_at is None
        assert shop.alive() == 0
        assert shop.starts(hangs.id) == 0

    play(scene, tmp_path)


@needs_mount
def test_many_starts_that_hang(dead: Path, tmp_path: Path) -> None:
    """More than are handed over at a time, and stopped before they can be seen to hang."""

    async def scene(shop: ProcessShop) -> None:
        hang = [
            with_process(shop.order(Exits(), index=index), command=(str(dead / "program"),))
            for index in range(40)
        ]
        await shop.runtime.launch(hang)
        await others_live(shop, 100)
        await shop.runtime.stop([TaskStop(order.id, FOREVER_S) for order in hang])
        told = await shop.until(is_over(*(order.id for order in hang)))
        assert all(told[order.id].stopped for order in hang)
        assert shop.alive() == 0

    play(scene, tmp_path)


@needs_mount
def test_a_keeper_killed_in_the_middle_of_a_start(dead: Path, tmp_path: Path) -> None:
    """What hangs carries its mark: it is found, not started again, and can be stopped."""

    async def scene(shop: ProcessShop) -> None:
        hangs = with_process(shop.order(Exits()), command=(str(dead / "program"),))
        await shop.runtime.launch([hangs])
        await shop.until(lambda told: STILL_STARTING in told[hangs.id].message)
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        await shop.until(lambda told: told[hangs.id].message == ADOPTED)
        assert shop.alive() == 1
        await shop.runtime.launch([hangs])
        await others_live(shop, 1)
        await shop.runtime.stop([TaskStop(hangs.id, FOREVER_S)])
        report = (await shop.until(is_over(hangs.id)))[hangs.id]
        assert (report.state, report.message) == (ReportState.UNKNOWN, GONE_UNSEEN)
        assert shop.alive() == 0

    play(scene, tmp_path)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("pipe", "is a pipe, and no regular file", id="a pipe that nobody writes to"),
        pytest.param("/dev/zero", "is a device, and no regular file", id="a file without an end"),
        pytest.param("directory", "is a directory, and no regular file", id="a directory"),
        pytest.param("large", "is larger than 1 MiB", id="too large"),
        pytest.param("binary", "is no text in UTF-8", id="no text"),
    ],
)
def test_a_file_of_variables_that_is_none_says_so(kind: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "env"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    elif kind == "large":
        file.write_bytes(b"A=1\n" * (1 << 18) + b"B=2\n")
    elif kind == "binary":
        file.write_bytes(b"A=\xff\n")
    else:
        file = Path(kind)

    async def scene(shop: ProcessShop) -> None:
        bad: TaskOrder = with_process(shop.order(Exits()), env_from=(EnvFile(file=str(file)),))
        await shop.runtime.launch([bad])
        await others_live(shop, 1)
        report = (await shop.until(is_over(bad.id)))[bad.id]
        assert report.state is ReportState.NOT_STARTED
        assert report.message == f"envFrom: {file} {expected}"
        assert shop.starts(bad.id) == 0

    play(scene, tmp_path)


def test_a_program_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "program", 0o777)

    async def scene(shop: ProcessShop) -> None:
        bad = with_process(shop.order(Exits()), command=(str(tmp_path / "program"),))
        await shop.runtime.launch([bad])
        await others_live(shop, 1)
        report = (await shop.until(is_over(bad.id)))[bad.id]
        assert report.state is ReportState.NOT_STARTED
        assert "Permission denied" in report.message

    play(scene, tmp_path)


@pytest.mark.parametrize("which", ["argument", "arguments"])
def test_arguments_that_are_too_long_say_so(which: str, tmp_path: Path) -> None:
    words = ("x" * (1 << 18),) if which == "argument" else ("x" * 100_000,) * 40

    async def scene(shop: ProcessShop) -> None:
        bad = with_process(shop.order(Exits()), command=("/bin/true", *words))
        await shop.runtime.launch([bad])
        await others_live(shop, 1)
        report = (await shop.until(is_over(bad.id)))[bad.id]
        assert report.state is ReportState.NOT_STARTED
        assert "arguments and variables are too long" in report.message

    play(scene, tmp_path)


def test_a_launcher_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """No start is lost with it, and none is made twice."""

    async def scene(shop: ProcessShop) -> None:
        runs = shop.order(RunsOn(), index=1000)
        await shop.runtime.launch([runs])
        await shop.until_begun(runs.id)
        orders = [shop.order(Exits(3), index=index) for index in range(100)]
        for at in range(0, len(orders), 20):
            launching = asyncio.ensure_future(shop.runtime.launch(orders[at : at + 20]))
            for pid in shop.launchers():
                os.kill(pid, signal.SIGKILL)
            await launching
        told = await shop.until(is_over(*(order.id for order in orders)))
        assert {told[order.id].exit_code for order in orders} == {3}
        assert {shop.starts(order.id) for order in orders} == {1}
        assert told[runs.id].state is ReportState.RUNNING

    play(scene, tmp_path)
