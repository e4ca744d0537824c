"""Requests a second through a real server: create, patch and get, by 1, 16 and 256 clients.

Server and clients share the machine's cores, so a client that is cheap matters: it speaks just
enough HTTP over raw sockets. Every mode runs for a fixed time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.table import show
from interlock.testing.serving import Server

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
MERGE = "application/merge-patch+json"


COLUMNS = ("mode", "clients", "per s", "p50 ms", "p99 ms", "server us")


class Row(NamedTuple):
    """What one mode came to."""

    mode: str
    clients: int
    per_second: float
    p50_ms: float
    p99_ms: float
    #: Processor time that the server took for one request, all its threads together.
    server_us: float


#: Makes the n-th request of a client.
MakeRequest = Callable[[int, int], bytes]


def request(method: str, path: str, body: object = None, media: str = "application/json") -> bytes:
    """One request as bytes."""
    data = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def a_job(name: str) -> dict[str, object]:
    """A Job that is held back, so that only the request itself is measured."""
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"bench": "http"}},
        "spec": {"process": {"command": ["true"]}, "suspend": True},
    }


class Client:
    """One connection, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, data: bytes) -> bytes:
        """Send a request; returns the body of a good answer."""
        self._writer.write(data)
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head[9:12] in (b"200", b"201"), head
        _, _, rest = head.lower().partition(b"content-length: ")
        return await self._reader.readexactly(int(rest.partition(b"\r\n")[0]))

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


def processor_seconds(pid: int) -> float:
    """The processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(
    server: Server, clients: int, seconds: float, mode: str, make: MakeRequest
) -> Row:
    """Run one mode."""
    port, pid = int(server.url.rpartition(":")[2]), server.process.pid
    connections = [
        Client(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(clients)
    ]
    took: list[float] = []
    taken = processor_seconds(pid)
    begun = time.perf_counter()
    end = begun + seconds

    async def work(number: int, client: Client) -> None:
        turn = 0
        while (now := time.perf_counter()) < end:
            await client.ask(make(number, turn))
            took.append(time.perf_counter() - now)
            turn += 1

    await asyncio.gather(*(work(number, client) for number, client in enumerate(connections)))
    whole = time.perf_counter() - begun
    taken = processor_seconds(pid) - taken
    for client in connections:
        client.close()
    took.sort()
    return Row(
        mode,
        clients,
        len(took) / whole,
        took[len(took) // 2] * 1000,
        took[int(len(took) * 0.99)] * 1000,
        taken / len(took) * 1_000_000,
    )


async def bench(server: Server, seconds: float) -> list[Row]:
    """Every mode with every number of clients."""
    rows = []
    for clients in (1, 16, 256):
        prefix = f"c{clients}"

        def create(number: int, turn: int, prefix: str = prefix) -> bytes:
            return request("POST", JOBS, a_job(f"{prefix}-{number}-{turn}"))

        def patch(number: int, turn: int, prefix: str = prefix) -> bytes:
            change = {"spec": {"title": f"turn {turn}"}}
            return request("PATCH", f"{JOBS}/{prefix}-{number}-0", change, MERGE)

        def get(number: int, _: int, prefix: str = prefix) -> bytes:
            return request("GET", f"{JOBS}/{prefix}-{number}-0")

        for mode, make in (("create", create), ("patch", patch), ("get", get)):
            rows.append(await measure(server, clients, seconds, mode, make))
    return rows


def main(argv: Sequence[str] = ()) -> None:
    """Start a server, measure, print."""
    parser = argparse.ArgumentParser(prog="bench http", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each mode")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place, Server(Path(place) / "data") as server:
        rows = asyncio.run(bench(server, arguments.seconds))
    show("Requests through HTTP, durable, one server process", COLUMNS, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
