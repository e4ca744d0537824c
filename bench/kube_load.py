"""Load on a real control plane, and what it costs whom: for measurements on a cluster.

Everything shares the machine's cores, so the driver reads no more of an answer than it must.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from support.cluster_store import install
from support.kube import VERSIONS, Access, Cluster, User, find
from support.kube.binaries import HELP

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

#: So many requests to create are under way at a time.
AT_ONCE = 64
#: Nothing here takes longer; what does is lost.
PATIENCE_S = 1_200.0
_TICKS = os.sysconf("SC_CLK_TCK")
#: What is counted is named so, and its own name is the first of that sort in its lines.
_NAME = re.compile(rb'"name":"(bench-[0-9-]+)"')
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
_COUNTED = re.compile(r"apiserver_request_total\{([^}]*)\} ([0-9.e+]+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")


def on_a_cluster(measure: Callable[[Cluster, str], Coroutine[Any, Any, None]]) -> None:
    """Measure in a namespace of a control plane of our own, if there is one to start."""
    programs = find()
    if programs is None:
        print(f"nothing measured: {HELP}")
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(programs.folder, Path(folder)) as cluster,
        cluster.namespace() as namespace,
    ):
        install(cluster.access)
        asyncio.run(measure(cluster, namespace))


class Load:
    """A session with the API server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """Send one request; the answer must be good. A PATCH is merged."""
        data = None if body is None else json.dumps(body).encode()
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Content-Type": media}
        async with self._session.request(
            method, self._url + path, data=data, headers=headers
        ) as answer:
            told = await answer.read()
            assert answer.status < 300, f"{method} {path}: {answer.status} {told[:300]!r}"
            return told

    async def create_all(self, path: str, bodies: Iterator[Mapping[str, Any]]) -> None:
        """Create all of these, many at a time."""

        async def work() -> None:
            for body in bodies:
                await self.send("POST", path, body)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def until(self, path: str, wanted: int, holds: Callable[[bytes], bool]) -> float:
        """When so many objects there were seen for which that holds; of some moment before all."""
        seen: set[bytes] = set()
        version = _newest(await self.send("GET", f"{path}?limit=1"))
        while len(seen) < wanted:
            query = f"?watch=1&resourceVersion={version}&allowWatchBookmarks=true"
            async with self._session.get(self._url + path + query) as answer:
                if answer.status != 200:
                    raise AssertionError(f"watching {path}: {answer.status}")
                async for line in answer.content:
                    version = _newest(line) or version
                    name = _NAME.search(line)
                    if name is not None and holds(line):
                        seen.add(name[1])
                        if len(seen) == wanted:
                            break
        return time.perf_counter()

    async def writes(self) -> Counter[str]:
        """How many writes the API server has answered, by method and what was written."""
        found: Counter[str] = Counter()
        for labels, count in _COUNTED.findall((await self.send("GET", "/metrics")).decode()):
            told = dict(_LABEL.findall(labels))
            if told["verb"] in _WRITES:
                part = f"/{told['subresource']}" if told["subresource"] else ""
                found[f"{told['verb']} {told['resource']}{part}"] += int(float(count))
        return found


def _newest(data: bytes) -> int:
    return max(map(int, _VERSION.findall(data)), default=0)


@asynccontextmanager
async def load_on(access: Access) -> AsyncGenerator[Load, None]:
    """A session with a cluster, as somebody whom it does not throttle."""
    context = ssl.create_default_context(cafile=str(access.authority))
    connector = aiohttp.TCPConnector(limit=0, ssl=context)
    headers = {"Authorization": f"Bearer {access.tokens[User.ADMIN]}"}
    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with aiohttp.ClientSession(
        connector=connector, headers=headers, timeout=timeout, read_bufsize=1 << 22
    ) as session:
        yield Load(session, access.url)


def processor_s(pid: int) -> float:
    """The processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mib(pid: int, line: str = "VmRSS") -> float:
    """The memory of a process, now or (VmHWM) at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{line}:")[2].split()[0]) / 1024


def conflicts(access: Access, resource: str) -> int:
    """How many writes of a kind the API server refused since somebody else had been before."""
    told = access.ask("GET", "/metrics").body["message"]
    found = [(dict(_LABEL.findall(labels)), count) for labels, count in _COUNTED.findall(told)]
    return sum(
        int(float(count))
        for labels, count in found
        if labels["resource"] == resource and labels["code"] == "409"
    )


class Clocks:
    """The processor time of every program of a cluster, the controller and this driver."""

    def __init__(self, cluster: Cluster, controller: int) -> None:
        self._pids = {name: cluster.component(name).pid for name in VERSIONS}
        self._pids |= {"controller": controller, "driver": os.getpid()}
        self._before = self._now()

    def _now(self) -> dict[str, float]:
        return {name: processor_s(pid) for name, pid in self._pids.items()}

    def taken(self) -> dict[str, float]:
        """What each has taken since this was made."""
        return {name: now - self._before[name] for name, now in self._now().items()}
