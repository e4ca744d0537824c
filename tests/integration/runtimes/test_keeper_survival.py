"""Killing servers and keepers: no task is killed, doubled or lost, and what is told is true."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.control.runtime import TaskStop
from interlock.errors import FencedError, UnavailableError
from interlock.resources.tasks import ReportState, TaskId, TaskReport
from interlock.runtimes.keeper.protocol import KEEPER_LOG_NAME
from interlock.runtimes.keeper.recovery import ADOPTED, GONE_UNSEEN
from interlock.runtimes.processes import ProcessRuntime
from interlock.testing.keepers import end_everything, keeper_pid, kill_and_wait, kill_keeper, living
from interlock.testing.runtime_contract import (
    FOREVER_S,
    Exits,
    ExitsWhenTold,
    LeavesChild,
    RunsOn,
    WorkShop,
    is_over,
)
from support.workshop import ProcessShop

#: A server that launches tasks, says so, and does nothing more.
_SERVER = """
import asyncio, sys
from pathlib import Path
from interlock.testing.runtime_contract import ExitsWhenTold
from support.workshop import ProcessShop

async def serve(place, count):
    shop = ProcessShop(place)
    await shop.lead(term=1)
    await shop.runtime.launch([shop.order(ExitsWhenTold(i % 200), index=i) for i in range(count)])
    print("launched", flush=True)
    await asyncio.Event().wait()

asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
"""

#: A program that starts a keeper, as a server does, and goes when it would wait for it.
_IMPATIENT = """
import os, sys
from interlock.runtimes.keeper.main import main

starter, read = os.getpid(), os.read
os.read = lambda *what: read(*what) if os.getpid() != starter else os._exit(0)
main(sys.argv[1])
"""


def play(scene: object, place: Path) -> None:
    ProcessShop.play(scene, place)  # type: ignore[arg-type]


def test_200_tasks_outlive_a_killed_server(tmp_path: Path) -> None:
    count = 200
    tasks = [TaskId("uid-job", index, 1) for index in range(count)]

    async def scene(shop: ProcessShop) -> None:
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(tmp_path), str(count)], stdout=subprocess.PIPE
        )
        try:
            assert server.stdout is not None
            assert await asyncio.to_thread(server.stdout.readline) == b"launched\n"
            for task in tasks:
                await shop.until_begun(task)
        finally:
            server.kill()
            server.communicate()
        for task in tasks[:100]:
            shop.let_go(task)
        await shop.lead(term=2)
        for task in tasks[100:]:
            shop.let_go(task)
        told = await shop.until(is_over(*tasks))
        assert [told[task].exit_code for task in tasks] == [i % 200 for i in range(count)]
        assert [shop.starts(task) for task in tasks] == [1] * count

    play(scene, tmp_path)


def test_tasks_of_a_killed_keeper_go_on_and_can_be_stopped(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        stays, leaves = shop.order(RunsOn()), shop.order(LeavesChild(), index=1)
        ends = shop.order(Exits(4), index=2)
        await shop.runtime.launch([stays, leaves, ends])
        await shop.until_begun(stays.id)
        await shop.until_begun(leaves.id)
        await shop.until(is_over(ends.id))
        await asyncio.to_thread(kill_keeper, shop.data_dir)

        told = await shop.until(lambda told: told[stays.id].message == ADOPTED)
        assert told[stays.id].state is ReportState.RUNNING
        assert told[ends.id].exit_code == 4
        await shop.runtime.stop([TaskStop(stays.id, FOREVER_S), TaskStop(leaves.id, FOREVER_S)])
        told = await shop.until(is_over(stays.id, leaves.id))
        assert told[stays.id].state is ReportState.UNKNOWN
        assert told[stays.id].message == GONE_UNSEEN
        assert told[stays.id].stopped
        assert shop.alive() == 0
        assert shop.starts(stays.id) == 1

    play(scene, tmp_path)


def test_what_ended_without_a_keeper_is_unknown(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        order = shop.order(RunsOn())
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)
        shop.runtime.abandon()
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        for pid in living(shop.data_dir):
            await asyncio.to_thread(kill_and_wait, pid)
        await shop.lead()
        report = (await shop.until(is_over(order.id)))[order.id]
        assert (report.state, report.message) == (ReportState.UNKNOWN, GONE_UNSEEN)
        assert report.exit_code is None
        await shop.runtime.launch([order])
        assert shop.starts(order.id) == 1

    play(scene, tmp_path)


def test_stopping_what_is_over_again_and_again_costs_no_room(tmp_path: Path) -> None:
    """A server that comes back orders the stop of every attempt whose end nobody saw."""

    async def scene(shop: ProcessShop) -> None:
        order = shop.order(Exits())
        await shop.runtime.launch([order])
        await shop.until(is_over(order.id))
        journal = shop.data_dir / "keeper.journal"
        before = journal.stat().st_size
        for _ in range(3):
            await shop.runtime.stop([TaskStop(order.id, 1.0, order.namespace, order.job)])
        assert journal.stat().st_size == before

    play(scene, tmp_path)


def test_a_keeper_killed_at_any_moment_starts_nothing_twice(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        orders = [shop.order(Exits(), index=index) for index in range(60)]
        for round_ in range(6):
            part = orders[round_ * 10 : round_ * 10 + 10]
            launching = asyncio.ensure_future(_insist(shop, part))
            await asyncio.to_thread(kill_keeper, shop.data_dir)
            await launching
        told = await shop.until(is_over(*(order.id for order in orders)))
        for order in orders:
            starts = shop.starts(order.id)
            assert starts <= 1
            if told[order.id].state is ReportState.ENDED:
                assert (starts, told[order.id].exit_code) == (1, 0)
            else:
                assert told[order.id].state is ReportState.UNKNOWN

    play(scene, tmp_path)


async def _insist(shop: ProcessShop, orders: list) -> None:  # type: ignore[type-arg]
    while True:
        try:
            await shop.runtime.launch(orders)
            return
        except UnavailableError:
            continue


def test_the_keeper_is_apart_from_the_server(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        pid = shop.runtime.keeper_pid
        assert pid == keeper_pid(shop.data_dir)
        assert os.getsid(pid) == pid
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGHUP)
        order = shop.order(Exits(6))
        await shop.runtime.launch([order])
        assert (await shop.until(is_over(order.id)))[order.id].exit_code == 6
        assert shop.runtime.keeper_pid == pid

    play(scene, tmp_path)


def test_a_keeper_serves_although_its_starter_is_gone(tmp_path: Path) -> None:
    """A slow machine may take longer to start a keeper than whoever starts it waits."""

    async def scene() -> None:
        runtime = await ProcessRuntime.connect(tmp_path, term=1)
        assert runtime.keeper_pid == keeper_pid(tmp_path)
        await runtime.close()

    try:
        subprocess.run([sys.executable, "-c", _IMPATIENT, str(tmp_path)], check=True)
        asyncio.run(scene())
        assert "Traceback" not in (tmp_path / KEEPER_LOG_NAME).read_text()
    finally:
        end_everything(tmp_path)


def test_an_idle_keeper_goes_with_its_server_and_its_memory_stays(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        order = shop.order(Exits(9))
        await shop.runtime.launch([order])
        await shop.until(is_over(order.id))
        await shop.runtime.close()
        await shop.until_so(lambda: keeper_pid(shop.data_dir) is None)
        await shop.lead()
        assert (await shop.until(is_over(order.id)))[order.id].exit_code == 9

    play(scene, tmp_path)


def test_a_lower_term_is_refused(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        await shop.lead(term=5)
        with pytest.raises(FencedError):
            await ProcessRuntime.connect(shop.data_dir, term=4)
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        with pytest.raises(FencedError):
            await ProcessRuntime.connect(shop.data_dir, term=4)

    play(scene, tmp_path)


def test_a_data_directory_with_a_long_name(tmp_path: Path) -> None:
    place = tmp_path / ("long-" * 20) / ("longer-" * 20)
    place.mkdir(parents=True)

    async def scene(shop: WorkShop) -> None:
        order = shop.order(Exits(2))
        await shop.runtime.launch([order])
        assert (await shop.until(is_over(order.id)))[order.id].exit_code == 2

    play(scene, place)


def test_a_full_disk_starts_nothing_and_loses_nothing(tmp_path: Path) -> None:
    """The limit on the keeper's file size stands in for the disk."""

    async def scene(shop: ProcessShop) -> None:
        runs = shop.order(ExitsWhenTold(8))
        await shop.runtime.launch([runs])
        await shop.until_begun(runs.id)
        pid = shop.runtime.keeper_pid
        size = (shop.data_dir / "keeper.journal").stat().st_size
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
        refused = shop.order(Exits(), index=1)
        with pytest.raises(UnavailableError):
            await shop.runtime.launch([refused])
        shop.let_go(runs.id)
        await shop.until_so(lambda: shop.alive() == 0)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        told = await shop.until(is_over(runs.id))
        assert told[runs.id].exit_code == 8
        assert refused.id not in told
        assert shop.starts(refused.id) == 0
        await shop.runtime.launch([refused])
        await shop.until(is_over(refused.id))
        assert shop.starts(refused.id) == 1

    play(scene, tmp_path)


def test_news_come_again_after_a_lost_connection(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        heard: dict[TaskId, TaskReport] = {}
        shop.runtime.subscribe(lambda reports: heard.update({r.id: r for r in reports}))
        order = shop.order(Exits(1))
        await shop.runtime.launch([order])
        await shop.until(is_over(order.id))
        heard.clear()
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        await shop.until_so(lambda: order.id in heard)
        assert heard[order.id].exit_code == 1

    play(scene, tmp_path)
