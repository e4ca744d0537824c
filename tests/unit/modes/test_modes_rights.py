"""Somebody with rights in one namespace learns nothing of another, by any path or transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.api.app import ApiApp
from interlock.api.requests import SOCKET
from interlock.kube.client.reviews import Deed, Person
from interlock.modes.cluster_guard import ClusterGuard
from interlock.resources.cluster import Namespace
from interlock.resources.metadata import Metadata, Resource
from interlock.resources.queue import (
    Queue,
    QueueOrder,
    QueueQuota,
    QueueSpec,
    QuotaHolder,
    QuotaSpec,
    QuotaStatus,
    quota_name,
)
from interlock.resources.values.amounts import Amount
from interlock.store.contract import JournalEntry
from interlock.testing.asking import Asker, a_store, in_time, scope_of
from interlock.testing.builders import T0, a_job, a_lock, a_request
from interlock.testing.config_builders import a_job_config
from interlock.testing.controlled_builders import a_controlled, a_window
from support.reports import Reports

#: Stands in everything that is kept in the other namespace.
SECRET = "hidden"
TOKEN = {"authorization": "Bearer good"}


class Rights:
    """Knows one person, who may do what a rule says."""

    def __init__(self, rule: Callable[[Deed], bool]) -> None:
        self._rule = rule

    async def who(self, token: str) -> Person | None:
        return Person(username="ann") if token == "good" else None

    async def may(self, person: Person, deed: Deed) -> bool:
        return self._rule(deed)


class PrintedLogs:
    """Every task printed the name of its Job's namespace."""

    def newest_attempt(self, job_uid: str, task: int) -> int | None:
        return 0

    async def read(
        self,
        job_uid: str,
        task: int,
        attempt: int,
        *,
        since: datetime | None,
        tail: int | None,
        follow: bool,
    ) -> AsyncIterator[bytes]:
        yield job_uid.encode()


def everything(namespace: str) -> Iterator[Resource]:
    """One of each kind, all of which tell the namespace."""
    yield Namespace(metadata=Metadata(name=namespace))
    yield a_job("job", namespace=namespace, locks=(a_request("db"),), title=namespace)
    yield a_lock("db", namespace=namespace)
    # What is held of the quota is held by a Job of the other namespace.
    asked = {"cpu": Amount.read(1)}
    yield a_job(f"{namespace}-waits", namespace=namespace, queue="q", resources=asked)
    for one in (a_job_config("config"), a_controlled(a_window())):
        placed = replace(one.metadata, name=f"{namespace}-{one.kind.lower()}", namespace=namespace)
        yield replace(one, metadata=placed)


def a_quota_of(job: Resource) -> QueueQuota:
    """The record of a quota, all of which one Job holds."""
    holder = QuotaHolder(
        queue="q", job=job.metadata.name, namespace=job.metadata.namespace, epoch=0, token=1,
        uid=f"uid-{job.metadata.namespace}-{job.metadata.name}", tasks=1, granted_at=T0,
        each={"cpu": Amount.read(1)},
    )  # fmt: skip
    return QueueQuota(
        metadata=Metadata(name=quota_name("q"), resource_version="9"),
        spec=QuotaSpec(queue="q"),
        status=QuotaStatus(holders=(holder,)),
    )


def a_queue() -> Queue:
    """A Queue that everybody may use."""
    spec = QueueSpec(resources={"cpu": Amount.read(1)}, order=QueueOrder.STRICT_FIFO)
    return Queue(metadata=Metadata(name="q", resource_version="9"), spec=spec)


async def an_app(rule: Callable[[Deed], bool]) -> ApiApp:
    store = a_store()
    reports = Reports(store, PrintedLogs())
    reports.note(a_queue())
    for resource in (*everything("open"), *everything(SECRET)):
        new = replace(resource.metadata, resource_version="", uid="")
        made = await store.create(replace(resource, metadata=new))
        if isinstance(made, Namespace):
            continue
        reports.note(replace(made, metadata=replace(made.metadata, uid=resource.metadata.uid)))
        name = made.metadata.name
        if name == f"{SECRET}-waits":
            reports.note(a_quota_of(made))
        reports.journal.append(
            JournalEntry(
                at=T0, kind=made.kind, namespace=made.metadata.namespace, name=name, room="r",
                actions=(), reason=made.metadata.namespace, version=1,
            )
        )  # fmt: skip
    guard = ClusterGuard(Rights(rule), reports.roster.key_of)
    return Asker(security=guard, routes=reports.routes(), store=store).app


async def visit(app: ApiApp, method: str, path: str) -> bytes:
    """Everything that is sent to a client that asks, listens a little, and leaves."""
    is_socket = method == SOCKET
    scope = scope_of("GET" if is_socket else method, path, b"", TOKEN)
    if is_socket:
        scope |= {"type": "websocket", "extensions": {"websocket.http.response": {}}}
    kind = "websocket" if is_socket else "http"
    first = {"type": "websocket.connect"} if is_socket else {"type": "http.request", "body": b""}
    waiting: list[dict[str, Any]] = [first]
    sent: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop()
        for _ in range(20):
            await asyncio.sleep(0)
        return {"type": f"{kind}.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message.get("body") or message.get("text", "").encode())

    await app(scope, receive, send)
    return b"".join(sent)


API = "/apis/interlock.dev/v1alpha1"
PLACES = ["open", SECRET, "..", "%2e%2e", ""]
QUERIES = [
    "", "namespace=open", f"namespace={SECRET}", f"namespace=open&namespace={SECRET}",
    "namespace=open&namespace=", "since=0", "since=0&namespace=open", "name=job&namespace=open",
    f"name=job&namespace={SECRET}", "watch=true", f"kind=Lock&name=db&namespace={SECRET}",
    "follow=true", f"fieldSelector=metadata.namespace={SECRET}",
]  # fmt: skip


def paths() -> Iterator[str]:
    """Every path of the table and many others, in both namespaces and between them."""
    yield from ("/queues", "/queues/q", "/jobs/open/open-waits/why")
    yield from ("/jobs", "/jobs/stream", "/locks", "/history", "/jobs/", "//jobs", "/jobs/stream/")
    yield from (f"/jobs/uid-{place}-job" for place in ("open", SECRET))
    plurals = ("jobs", "locks", "jobconfigs", "controlledjobs", "calendars")
    for place, plural in product(PLACES, plurals):
        yield f"{API}/{plural}"
        yield f"{API}/namespaces/{place}/{plural}"
        yield f"{API}/namespaces/open/../{place}/{plural}"
        for name in ("job", "db", f"{SECRET}-jobconfig", f"{SECRET}-controlledjob", ".."):
            yield f"{API}/namespaces/{place}/{plural}/{name}"
            yield f"{API}/namespaces/{place}/{plural}/{name}/status"
            yield f"/{plural}/{place}/{name}"
            yield f"/{plural}/{place}/{name}/why"
            yield f"/{plural}/{place}/{name}/log"
            yield f"/{plural}/open/../{place}/{name}/why"


def asked() -> Iterator[tuple[str, str]]:
    reads = ("GET", "HEAD", "OPTIONS", "BREW", SOCKET)
    for method, path, query in product(reads, sorted(set(paths())), QUERIES):
        yield method, f"{path}?{query}"


def in_open(deed: Deed) -> bool:
    return deed.namespace == "open"


@pytest.mark.parametrize(
    ("rule", "sees"),
    [
        pytest.param(in_open, False, id="all rights in one namespace"),
        pytest.param(
            lambda deed: in_open(deed) and deed.verb == "get", False, id="get in one namespace"
        ),
        pytest.param(lambda deed: bool(deed.path), False, id="every path that is no resource"),
        pytest.param(lambda _: True, True, id="everything"),
    ],
)
def test_what_is_in_another_namespace_is_not_told(rule: Callable[[Deed], bool], sees: bool) -> None:
    async def told() -> set[str]:
        app = await an_app(rule)
        found: set[str] = set()
        for method, path in asked():
            body = await visit(app, method, path)
            # A refusal repeats what was asked for; only what was told besides counts.
            if SECRET.encode() in body and b'"kind":"Status"' not in body:
                found.add(method)
        return found

    assert in_time(told()) == ({"GET", "HEAD", SOCKET} if sees else set())


@pytest.mark.parametrize("path", ["/jobs", "/jobs/ws", "/jobs/open/job", "/jobs/open/job/why", API])
def test_a_socket_is_opened_at_the_stream_alone(path: str) -> None:
    async def answers() -> tuple[bytes, bytes]:
        app = await an_app(lambda _: True)
        here = await visit(app, SOCKET, path)
        return here, await visit(app, SOCKET, "/jobs/stream?since=0")

    here, stream = in_time(answers())

    assert b'"code":404' in here
    assert b'"type":"added"' in stream


def test_a_socket_is_refused_with_its_reason() -> None:
    async def answer() -> bytes:
        return await visit(await an_app(in_open), SOCKET, f"/jobs/stream?namespace={SECRET}")

    assert b'cannot watch resource \\"jobs\\"' in in_time(answer())
