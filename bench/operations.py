"""Operations whose steps a worker does, beside a bare loop of durable commits and beside DBOS.

In the same run, in turns: a loop on SQLite that commits each step by itself, with the durability of
the server's own store; a server with one worker process, whose operations are created through
`POST /operations` and seen to end on a watch; and DBOS on SQLite doing the same. Sixteen steps are
under way at a time. Then, one operation at a time on an idle server, how long it takes from the
request to the beginning of its first step. DBOS is no dependency: it is put into a place of its
own, build/dbos, once; when it cannot be had it is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.http import processor_seconds
from bench.load import PATIENCE_S, client_of
from bench.load import Client as Watcher
from bench.operations_app import app, elaborated, first_moment, single
from bench.table import show
from interlock.sdk.client import Client
from interlock.sdk.errors import Refused
from interlock.testing.serving import Server

ROOT = Path(__file__).parents[1]
PEER = ROOT / "build" / "dbos"
WANTED = "dbos==3.4.0"
AT_ONCE = 16
STEPS = 5
#: What the project promises: so many times the steps of DBOS, and of the bare loop.
AIMS = {"DBOS": 10.0, "bare loop": 1.0}
AIM_MS = 10.0
_START = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
#: An idle server rests so long before it is asked again.
_REST_S = 0.05

Manifest = dict[str, Any]


class Round(NamedTuple):
    """What a number of operations came to; processor time is that of one step."""

    steps_per_s: float
    operations_per_s: float
    server_us: float = 0.0
    worker_us: float = 0.0


# What is done


def given(number: int) -> Manifest:
    """An operation whose steps are in the request."""
    steps = [
        {
            "name": f"add-{n}",
            "run": {
                "python": {
                    "function": "add",
                    "args": {"number": {"$result": f"add-{n - 1}"} if n else number},
                }
            },
        }
        for n in range(STEPS)
    ]
    return {"spec": {"steps": steps}}


def of_worker(number: int) -> Manifest:
    """An operation that the worker turns into steps."""
    return app.request(elaborated, number, STEPS)


def of_one_step(number: int) -> Manifest:
    """An operation that is its only step."""
    return app.request(single, number)


class Way(NamedTuple):
    """One sort of operation."""

    make: Callable[[int], Manifest]
    steps: int


WAYS = {
    f"Interlock, {STEPS} steps given": Way(given, STEPS),
    f"Interlock, {STEPS} steps by the worker": Way(of_worker, STEPS),
    "Interlock, 1 step": Way(of_one_step, 1),
}


# The bare loop


def bare_loop(place: Path, count: int, steps: int) -> Round:
    """Commit each step of each operation by itself, one after the other."""
    connection = sqlite3.connect(place, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS step (name TEXT, at INTEGER, body BLOB)")
        begun = time.perf_counter()
        for number in range(count):
            for at in range(steps):
                body = json.dumps({"step": f"add-{at}", "result": number + at}).encode()
                connection.execute("BEGIN")
                connection.execute("INSERT INTO step VALUES (?, ?, ?)", (str(number), at, body))
                connection.execute("COMMIT")
        took = time.perf_counter() - begun
        return Round(count * steps / took, count / took)
    finally:
        connection.close()


# Interlock


@contextmanager
def worker_of(server: Server) -> Iterator[int]:
    """A worker process that is connected; its number."""
    command = [
        sys.executable, "-c", _START, "worker", "bench.operations_app:app",
        "--server", server.url, "--concurrency", str(AT_ONCE),
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        try:
            said = ""
            while "waits for work" not in said:
                more = os.read(started.stdout.fileno(), 65536)
                assert more, f"the worker did not start: {said}"
                said += more.decode()
            yield int(said.partition("/")[2].split()[0])
        finally:
            started.terminate()


class Site(NamedTuple):
    """A server with its worker, and who asks and watches."""

    server: Server
    worker: int
    client: Client
    watcher: Watcher

    def round(self, way: Way, count: int) -> Round:
        """Create so many operations and see all of them succeed."""
        manifests = [way.make(number) for number in range(count)]
        target = self.watcher.ended + count
        pids = (self.server.process.pid, self.worker)
        before = [processor_seconds(pid) for pid in pids]
        begun = time.perf_counter()
        made = self.client.submit_many(manifests)
        refused = [one for one in made if isinstance(one, Refused)]
        assert not refused, refused[:1]
        self.watcher.await_ended(target)
        took = time.perf_counter() - begun
        done = count * way.steps
        spent = [processor_seconds(pid) - old for pid, old in zip(pids, before, strict=True)]
        return Round(done / took, count / took, *(1e6 * each / done for each in spent))

    def first_steps(self, manifest: Manifest, count: int) -> list[float]:
        """Milliseconds from the request to the beginning of the first step, one at a time."""
        found = []
        for _ in range(count):
            time.sleep(_REST_S)
            begun = time.time_ns()
            handle = self.client.submit(manifest)
            told = handle.result(PATIENCE_S)
            began = told["moment"] if isinstance(told, dict) else told
            found.append((began - begun) / 1e6)
        return found


@contextmanager
def site(place: Path) -> Iterator[Site]:
    """A server of its own with one worker process."""
    with (
        Server(place / "data") as server,
        worker_of(server) as worker,
        Client(server.url) as client,
        client_of(server, 1) as watcher,
    ):
        yield Site(server, worker, client, watcher)


# DBOS


def peer_python() -> str:
    """The Python that has DBOS, made when it is not there; empty when it cannot be had."""
    python = str(PEER / "bin" / "python")
    if (PEER / ".ready").exists():
        return python
    venv.create(PEER, clear=True, with_pip=True)
    pip = [python, "-m", "pip", "install", "--quiet", WANTED]
    if subprocess.run(pip, check=False).returncode:
        return ""
    (PEER / ".ready").touch()
    return python


class Peer:
    """DBOS in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def round(self, count: int, steps: int) -> Round:
        """Do so many workflows."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count} {steps} {AT_ONCE}\n")
        self._process.stdin.flush()
        took, spent = map(float, self.hear().split())
        done = count * steps
        return Round(done / took, count / took, 1e6 * spent / done)

    def hear(self) -> str:
        """The next line that it says."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE_S)
        assert ready, "DBOS says nothing for long"
        line = self._process.stdout.readline()
        assert line, "DBOS has ended"
        return line


@contextmanager
def peer(place: Path) -> Iterator[Peer | None]:
    """DBOS on a file of its own; None when it cannot be had."""
    python = peer_python()
    if not python:
        print(f"{WANTED} cannot be had: it is left out", file=sys.stderr)
        yield None
        return
    # Isolated: what is beside that file, such as http.py, is none of its business.
    program = Path(__file__).with_name("operations_peer.py")
    command = [python, "-I", str(program), str(place / "dbos.db")]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            made = Peer(process)
            assert made.hear() == "ready\n"
            yield made
        finally:
            process.kill()


# The tables


def compare(there: Site, other: Peer | None, place: Path, sizes: Sizes) -> None:
    """Print the rates side by side, and what they are to each other."""
    for way in WAYS.values():
        there.round(way, sizes.operations // 10)
    found: dict[str, list[Round]] = {}
    loads = []
    for _ in range(sizes.rounds):
        loads.append(os.getloadavg()[0])
        bare = bare_loop(place / "bare.db", sizes.operations, STEPS)
        found.setdefault("bare loop", []).append(bare)
        for name, way in WAYS.items():
            found.setdefault(name, []).append(there.round(way, sizes.operations))
        if other is not None:
            found.setdefault("DBOS", []).append(other.round(sizes.peer, STEPS))
            found.setdefault("DBOS, 1 step", []).append(other.round(sizes.peer, 1))
    show(
        f"{sizes.operations} operations, {AT_ONCE} at once, the median of {sizes.rounds} rounds",
        ("", "steps/s", "operations/s", "server us/step", "worker us/step"),
        [(name, *map(statistics.median, zip(*all_, strict=True))) for name, all_ in found.items()],
    )
    show("Steps a second beside", ("", "", "times", "aim"), list(_ratios(found)))
    print(f"\nload average {min(loads):.1f} to {max(loads):.1f} on {os.cpu_count()} processors")


def _ratios(found: Mapping[str, Sequence[Round]]) -> Iterator[tuple[object, ...]]:
    for name, way in WAYS.items():
        for base, aim in AIMS.items():
            peers = found.get(f"{base}, 1 step" if way.steps == 1 else base) or found.get(base)
            if peers is None:
                continue
            pairs = zip(found[name], peers, strict=True)
            times = statistics.median(one.steps_per_s / other.steps_per_s for one, other in pairs)
            yield name, base, times, aim


def tell_first_steps(there: Site, count: int) -> None:
    """Print how long the first step of an operation on an idle server takes to begin."""
    run = {"python": {"function": "moment"}}
    ways: dict[str, Manifest] = {
        "steps given": {"spec": {"steps": [{"name": "moment", "run": run}]}},
        "by the worker": app.request(first_moment),
    }
    rows = []
    for name, manifest in ways.items():
        there.first_steps(manifest, 5)
        cuts = statistics.quantiles(there.first_steps(manifest, count), n=100)
        rows.append((name, cuts[49], cuts[98], AIM_MS))
    columns = ("from the request to the first step", "p50 ms", "p99 ms", "aim ms")
    show(f"{count} operations, one at a time on an idle server", columns, rows)


class Sizes(NamedTuple):
    """How much is done in each round."""

    operations: int
    rounds: int
    #: DBOS is slower: it does fewer in a round.
    peer: int
    idle: int


def main(argv: Sequence[str] = ()) -> None:
    """Start everything, measure, print."""
    parser = argparse.ArgumentParser(prog="bench operations", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="operations in each round")
    parser.add_argument("--peer-count", type=int, default=100, help="of DBOS, in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--idle", type=int, default=300, help="operations on an idle server")
    parser.add_argument("--no-peer", action="store_true", help="leave DBOS out")
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    asked = parser.parse_args(argv)
    sizes = Sizes(asked.count, asked.rounds, asked.peer_count, asked.idle)
    if asked.quick:
        sizes = Sizes(200, 3, 40, 100)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder)
        there = stack.enter_context(site(place))
        other = None if asked.no_peer else stack.enter_context(peer(place))
        tell_first_steps(there, sizes.idle)
        compare(there, other, place, sizes)
