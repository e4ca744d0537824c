"""A child that sheds all that tells whose it is still belongs to its task, by its cgroup."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.control.runtime import TaskStop
from interlock.resources.tasks import ReportState, TaskOrder
from interlock.runtimes.keeper import kernel
from interlock.runtimes.keeper.cgroups import can_make_cgroups, own_cgroup
from interlock.runtimes.keeper.protocol import KEEPER_LOG_NAME
from interlock.runtimes.keeper.recovery import ADOPTED
from interlock.testing.builders import with_process
from interlock.testing.keepers import base_of, kill_and_wait, kill_keeper
from interlock.testing.runtime_contract import FOREVER_S, Exits, LeavesChild, RunsOn, is_over
from support.workshop import ProcessShop

needs_cgroups = pytest.mark.skipif(
    not can_make_cgroups(), reason="only root, or a user with a delegated tree, may make cgroups"
)
#: Leaves a child in a session of its own, without its mark and its variables, and ends after that.
_SHEDS = """
import os, resource, signal, sys
trace, mount, *words = sys.argv[1:]
hear, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        locks = 10
        _, hard = resource.getrlimit(locks)
        resource.setrlimit(locks, (hard, hard))
        if "ignores" in words:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "moves" in words:
            path = open("/proc/self/cgroup").read().rpartition("0::")[2].strip()
            assert "/interlock-" in path
            os.mkdir(f"{mount}{path}/below")
            open(f"{mount}{path}/below/cgroup.procs", "w").write("0")
        with open(trace, "w") as file:
            file.write(str(os.getpid()))
        os.execve("/bin/sleep", ["sleep", "100000"], {})
    os._exit(0)
os.close(tell)
os.read(hear, 1)
if "stays" in words:
    signal.pause()
sys.exit(3)
"""


class Shed:
    """A task with such a child."""

    def __init__(self, shop: ProcessShop, *words: str) -> None:
        self._shop = shop
        self._trace = shop.data_dir / "shed"
        mount = own_cgroup().removesuffix(_own_path())
        command = (sys.executable, "-c", _SHEDS, str(self._trace), mount, *words)
        self.order: TaskOrder = with_process(shop.order(Exits()), command=command)

    async def launch(self) -> None:
        """Start it, and wait until its child is on its own."""
        await self._shop.runtime.launch([self.order])
        await self._shop.until_so(self._has_shed)

    @property
    def pid(self) -> int:
        """The child."""
        return int(self._trace.read_text())

    def lives(self) -> bool:
        """Whether the child does."""
        stat = kernel.stat_of(self.pid)
        return stat is not None and not stat.is_dead

    def _has_shed(self) -> bool:
        if not self._trace.exists() or not self._trace.read_text():
            return False
        stat = kernel.stat_of(self.pid)
        return stat is not None and not stat.is_copy

    async def main_ended(self) -> None:
        """Wait until its main process is known to have ended, or all of it."""
        told = await self._shop.until(
            lambda told: (
                told[self.order.id].state is ReportState.ENDED
                or "children of it still run" in told[self.order.id].message
            )
        )
        assert told[self.order.id].state is ReportState.RUNNING
        assert self.lives()


def _own_path() -> str:
    return Path("/proc/self/cgroup").read_text().rpartition("0::")[2].strip().rstrip("/")


def cgroups_of(shop: ProcessShop) -> list[str]:
    """The cgroups of the tasks of a shop."""
    place = Path(own_cgroup())
    found = place.glob(f"interlock-{base_of(shop.data_dir):08x}-*/*")
    return [path.name for path in found if path.is_dir()]


def play(scene: object, place: Path) -> None:
    try:
        ProcessShop.play(scene, place)  # type: ignore[arg-type]
    finally:
        # Where it was not found, nobody else ends it.
        trace = place / "data" / "shed"
        if trace.exists():
            kill_and_wait(int(trace.read_text()))


@needs_cgroups
@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), id="it obeys SIGTERM"),
        pytest.param(("ignores",), id="it ignores SIGTERM"),
        pytest.param(("moves",), id="in a cgroup below its task's"),
        pytest.param(("ignores", "moves"), id="ignores SIGTERM in a cgroup below"),
    ],
)
def test_a_task_is_not_over_while_it_lives_and_stopping_ends_it(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    async def scene(shop: ProcessShop) -> None:
        shed = Shed(shop, *words)
        await shed.launch()
        await shed.main_ended()
        grace_s = 0.1 if "ignores" in words else FOREVER_S
        await shop.runtime.stop([TaskStop(shed.order.id, grace_s)])
        told = await shop.until(is_over(shed.order.id))
        assert told[shed.order.id].exit_code == 3
        assert not shed.lives()
        await shop.until_so(lambda: cgroups_of(shop) == [])

    play(scene, tmp_path)


@needs_cgroups
def test_stopping_ends_it_with_its_main_process(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        shed = Shed(shop, "stays")
        await shed.launch()
        await shop.runtime.stop([TaskStop(shed.order.id, FOREVER_S)])
        told = await shop.until(is_over(shed.order.id))
        assert told[shed.order.id].signal == signal.SIGTERM
        assert not shed.lives()

    play(scene, tmp_path)


@needs_cgroups
def test_a_task_is_over_when_it_ends_by_itself(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        shed = Shed(shop)
        await shed.launch()
        await shed.main_ended()
        kill_and_wait(shed.pid)
        told = await shop.until(is_over(shed.order.id))
        assert told[shed.order.id].exit_code == 3

    play(scene, tmp_path)


@needs_cgroups
@pytest.mark.parametrize("main_ends", [True, False])
def test_a_new_keeper_finds_it(main_ends: bool, tmp_path: Path) -> None:
    """Also when it is all that is left of its task."""

    async def scene(shop: ProcessShop) -> None:
        shed = Shed(shop) if main_ends else Shed(shop, "stays")
        await shed.launch()
        if main_ends:
            await shed.main_ended()
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        await shop.until(lambda told: told[shed.order.id].message == ADOPTED)
        assert shed.lives()
        await shop.runtime.stop([TaskStop(shed.order.id, FOREVER_S)])
        told = await shop.until(is_over(shed.order.id))
        assert told[shed.order.id].exit_code == (3 if main_ends else None)
        assert not shed.lives()
        await shop.until_so(lambda: cgroups_of(shop) == [])

    play(scene, tmp_path)


@needs_cgroups
def test_a_new_keeper_in_another_cgroup_finds_it(tmp_path: Path) -> None:
    elsewhere = Path(own_cgroup(), f"elsewhere-{os.getpid()}")
    enter = 'echo 0 > "$0"/cgroup.procs; exec "$@"'
    start = "import sys, pathlib; from interlock.runtimes.processes import start_keeper;"
    start += "start_keeper(pathlib.Path(sys.argv[1]))"

    async def scene(shop: ProcessShop) -> None:
        shed = Shed(shop)
        await shed.launch()
        await shed.main_ended()
        shop.runtime.abandon()
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        program = (sys.executable, "-c", start, shop.data_dir)
        subprocess.run(["sh", "-c", enter, elsewhere, *program], check=True)
        await shop.lead()
        assert list(elsewhere.glob("interlock-*"))
        told = await shop.until(lambda told: told[shed.order.id].message == ADOPTED)
        assert told[shed.order.id].state is ReportState.RUNNING
        await shop.runtime.stop([TaskStop(shed.order.id, FOREVER_S)])
        await shop.until(is_over(shed.order.id))
        assert not shed.lives()

    elsewhere.mkdir()
    try:
        play(scene, tmp_path)
    finally:
        elsewhere.rmdir()


@needs_cgroups
def test_cgroups_go_with_their_tasks_and_their_keeper(tmp_path: Path) -> None:
    async def scene(shop: ProcessShop) -> None:
        runs, ends = shop.order(RunsOn()), [shop.order(Exits(), index=n) for n in range(1, 9)]
        await shop.runtime.launch([runs, *ends])
        await shop.until(is_over(*(order.id for order in ends)))
        await shop.until_begun(runs.id)
        await shop.until_so(lambda: len(cgroups_of(shop)) == 1)
        # It ends while there is no keeper; the next one clears up.
        shop.runtime.abandon()
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        for pid in kernel.marked(base_of(shop.data_dir)).popitem()[1]:
            kill_and_wait(pid)
        assert len(cgroups_of(shop)) == 1
        await shop.lead()
        await shop.until(is_over(runs.id))
        await shop.until_so(lambda: cgroups_of(shop) == [])
        base = base_of(shop.data_dir)
        await shop.runtime.close()
        await shop.until_so(lambda: not list(Path(own_cgroup()).glob(f"interlock-{base:08x}-*")))

    play(scene, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may take a mount away")
def test_without_cgroups_marks_do(tmp_path: Path) -> None:
    script = (
        f"import sys; from pathlib import Path; sys.path.insert(0, {str(Path(__file__).parent)!r});"
        "import test_shed_children; test_shed_children.play_a_marked_child(Path(sys.argv[1]))"
    )
    unmounted = 'umount --lazy --all --types cgroup2 && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", unmounted, "sh", sys.executable, "-c", script, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "data" / KEEPER_LOG_NAME).read_text() == (
        "tasks are known by their marks, as they get no cgroups: cgroup v2 is not mounted\n"
    )


def play_a_marked_child(place: Path) -> None:
    """Have a task leave a child that sheds its session and its variables, and stop both."""

    async def scene(shop: ProcessShop) -> None:
        order = shop.order(LeavesChild(3))
        await shop.runtime.launch([order])
        await shop.until_begun(order.id)
        told = await shop.until(lambda told: "still run" in told[order.id].message)
        assert told[order.id].state is ReportState.RUNNING
        await shop.runtime.stop([TaskStop(order.id, FOREVER_S)])
        told = await shop.until(is_over(order.id))
        assert told[order.id].exit_code == 3
        assert shop.alive() == 0

    play(scene, place)


def test_what_is_told_of_is_what_lives(tmp_path: Path) -> None:
    """Of children that outlive their parent the one that is named is alive."""
    script = """
for n in 1 2; do
  sh -c 'echo $$ >> "$0"; exec sleep 1000' "$0" &
done
until [ $(wc -l < "$0") = 2 ]; do sleep 0.05; done
exit 3
"""

    async def scene(shop: ProcessShop) -> None:
        trace = shop.data_dir / "children"
        order = with_process(shop.order(Exits()), command=("sh", "-c", script, str(trace)))
        await shop.runtime.launch([order])
        told = await shop.until(lambda told: "still run" in told[order.id].message)
        children = {int(pid) for pid in trace.read_text().split()}
        first = told[order.id].pid
        assert first in children
        kill_and_wait(first)
        told = await shop.until(lambda told: told[order.id].pid != first)
        assert told[order.id].pid in children
        await asyncio.to_thread(kill_keeper, shop.data_dir)
        told = await shop.until(lambda told: told[order.id].message == ADOPTED)
        assert told[order.id].pid in children - {first}
        await shop.runtime.stop([TaskStop(order.id, FOREVER_S)])
        told = await shop.until(is_over(order.id))
        assert told[order.id].exit_code == 3

    play(scene, tmp_path)
