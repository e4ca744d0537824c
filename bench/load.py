"""Creates Jobs through HTTP and sees them end, with a client that costs next to nothing.

Client, server and keeper share the machine's cores, so whatever the client takes is missing from
what is measured. It is one thread on raw sockets that never builds an object from an answer.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from interlock.testing.keepers import keeper_pid
from interlock.testing.serving import Server

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
ALL_JOBS = "/apis/interlock.dev/v1alpha1/jobs"
#: Whoever sees nothing end for so long has lost something.
PATIENCE_S = 120.0
_ENDED = "status.phase%3DSucceeded"
_EVENT = b'{"type":"ADDED"'
_TICKS = os.sysconf("SC_CLK_TCK")


def creation(spec: dict[str, object], name: str) -> bytes:
    """The request that creates a Job."""
    made = {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": spec,
    }
    return request("POST", JOBS, json.dumps(made).encode())


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """One request, as it goes over the wire."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Costs(NamedTuple):
    """Processor time in seconds, and how often each had to be woken."""

    server: float
    keeper: float
    client: float
    server_switches: int
    keeper_switches: int

    def since(self, before: Costs) -> Costs:
        """What was taken between two looks."""
        return Costs(
            self.server - before.server,
            self.keeper - before.keeper,
            self.client - before.client,
            self.server_switches - before.server_switches,
            self.keeper_switches - before.keeper_switches,
        )


def costs_of(server: Server) -> Costs:
    """What was taken so far by the server, its keeper and this process, without its children."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    keeper = keeper_pid(server.data)
    return Costs(
        _processor_s(server.process.pid),
        _processor_s(keeper),
        own.ru_utime + own.ru_stime,
        _switches(server.process.pid),
        _switches(keeper),
    )


def _processor_s(pid: int | None) -> float:
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _switches(pid: int | None) -> int:
    """How often the threads of a process gave up the processor of their own accord."""
    if pid is None:
        return 0
    found = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        status = (thread / "status").read_text()
        found += int(status.partition("\nvoluntary_ctxt_switches:")[2].split("\n", 1)[0])
    return found


def peak_memory_mib(server: Server) -> float:
    """The most memory that the server ever had."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Client:
    """Some connections that create, and one that watches Jobs succeed."""

    def __init__(self, server: Server, connections: int) -> None:
        self._address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        self._creators = [self._connect() for _ in range(connections)]
        self._watch = self._connect()
        self._tail = b""
        #: How many Jobs were seen to succeed.
        self.ended = 0
        self._begin_watch()

    def _connect_again(self) -> None:
        """Begin with fresh connections: a server hangs up on those that were silent for long."""
        for each in self._creators:
            each.close()
        self._creators = [self._connect() for _ in self._creators]

    def _connect(self) -> socket.socket:
        made = socket.create_connection(self._address, PATIENCE_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _begin_watch(self) -> None:
        """Watch from now on, without what has succeeded already."""
        query = (
            f"watch=1&fieldSelector={_ENDED}"
            "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
        )
        self._watch.sendall(request("GET", f"{ALL_JOBS}?{query}"))
        head = self._watch.recv(65536)
        assert b" 200 " in head.partition(b"\r\n")[0], head

    def close(self) -> None:
        """Hang up."""
        for each in (*self._creators, self._watch):
            each.close()

    def get(self, name: str) -> dict[str, Any]:
        """A Job as it is."""
        answer = self._ask(self._creators[0], request("GET", f"{JOBS}/{name}"))
        found: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
        return found

    def create(self, request: bytes) -> None:
        """Create one Job, and wait for the answer."""
        self._ask(self._creators[0], request)

    def create_and_await(self, requests: Sequence[bytes]) -> float:
        """Create Jobs on all connections at once; returns the seconds until all have ended."""
        self._connect_again()
        begun = time.perf_counter()
        target = self.ended + len(requests)
        waiting = iter(requests)
        with selectors.DefaultSelector() as ready:
            ready.register(self._watch, selectors.EVENT_READ)
            for each in self._creators:
                if self._send_next(each, waiting):
                    ready.register(each, selectors.EVENT_READ)
            while self.ended < target:
                events = ready.select(PATIENCE_S)
                assert events, f"nothing happens any more: {target - self.ended} have not ended"
                for key, _ in events:
                    if key.fileobj is self._watch:
                        self._count()
                        continue
                    creator = key.fileobj
                    assert isinstance(creator, socket.socket)
                    _take_answer(creator)
                    if not self._send_next(creator, waiting):
                        ready.unregister(creator)
        return time.perf_counter() - begun

    def create_when_due(self, due: Sequence[float], requests: Sequence[bytes]) -> float:
        """Create Jobs, each when it is due, and wait until all have ended.

        Returns by how much they came late in the mean: a server that is busy holds up whoever asks.
        """
        self._connect_again()
        begun, late, sent = time.perf_counter(), 0.0, 0
        target = self.ended + len(requests)
        idle = list(self._creators)
        with selectors.DefaultSelector() as ready:
            for each in (self._watch, *self._creators):
                ready.register(each, selectors.EVENT_READ)
            while self.ended < target:
                now = time.perf_counter() - begun
                while idle and sent < len(requests) and due[sent] <= now:
                    idle.pop().sendall(requests[sent])
                    late += now - due[sent]
                    sent += 1
                is_next = bool(idle) and sent < len(requests)
                events = ready.select(max(0.0, due[sent] - now) if is_next else PATIENCE_S)
                assert events or is_next, f"nothing happens: {target - self.ended} have not ended"
                for key, _ in events:
                    if key.fileobj is self._watch:
                        self._count()
                        continue
                    creator = key.fileobj
                    assert isinstance(creator, socket.socket)
                    if creator in idle:
                        # The server hangs up on those that were silent for long.
                        idle.remove(creator)
                        ready.unregister(creator)
                        continue
                    _take_answer(creator)
                    idle.append(creator)
        return late / len(requests)

    def create_all(self, requests: Sequence[bytes]) -> float:
        """Create Jobs on all connections at once; returns the seconds until all are durable."""
        self._connect_again()
        begun = time.perf_counter()
        waiting = iter(requests)
        with selectors.DefaultSelector() as ready:
            for each in self._creators:
                if self._send_next(each, waiting):
                    ready.register(each, selectors.EVENT_READ)
            while ready.get_map():
                events = ready.select(PATIENCE_S)
                assert events, "the server answers no more"
                for key, _ in events:
                    creator = key.fileobj
                    assert isinstance(creator, socket.socket)
                    _take_answer(creator)
                    if not self._send_next(creator, waiting):
                        ready.unregister(creator)
        return time.perf_counter() - begun

    def await_ended(self, count: int) -> None:
        """Wait until so many were seen to succeed, since the beginning."""
        while self.ended < count:
            self._count()

    def _count(self) -> None:
        """Take in what the watch tells; an event may be cut anywhere."""
        got = self._watch.recv(1 << 20)
        assert got, "the watch was ended"
        data = self._tail + got
        self.ended += data.count(_EVENT)
        cut = data.rfind(_EVENT)
        self._tail = data[max(cut + 1, len(data) - len(_EVENT) + 1) :]

    def _send_next(self, creator: socket.socket, waiting: Iterator[bytes]) -> bool:
        request = next(waiting, None)
        if request is None:
            return False
        creator.sendall(request)
        return True

    def _ask(self, connection: socket.socket, request: bytes) -> bytes:
        connection.sendall(request)
        return _take_answer(connection)


def _take_answer(connection: socket.socket) -> bytes:
    """One whole answer, which must be a good one."""
    data = connection.recv(65536)
    assert data[9:12] in (b"200", b"201"), data[:500]
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    missing = length - len(body)
    while missing > 0:
        more = connection.recv(missing)
        assert more, "the server hung up"
        data += more
        missing -= len(more)
    return data


@contextmanager
def client_of(server: Server, connections: int) -> Iterator[Client]:
    """A client that hangs up in the end."""
    client = Client(server, connections)
    try:
        yield client
    finally:
        client.close()
