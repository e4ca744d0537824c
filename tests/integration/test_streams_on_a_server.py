"""The change stream over real connections: it tells, it resumes, and it ends cleanly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from interlock.testing.clients import Client
from interlock.testing.serving import PATIENCE_S, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("streams") / "data") as running:
        yield running


def events(url: str, path: str, until: str) -> list[tuple[str, str, Any]]:
    """The events of an SSE stream, as id, kind and data, up to the end of a Job."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.getheader("content-type") == "text/event-stream"
    told: list[tuple[str, str, Any]] = []
    fields: dict[str, str] = {}
    while True:
        line = answer.readline().decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "data" in fields:
            told.append((fields["id"], fields["event"], json.loads(fields["data"])))
            fields = {}
            job = told[-1][2]
            if job.get("name") == until and job.get("state") == "Succeeded":
                connection.close()
                return told


def test_the_stream_tells_what_happens_and_resumes_from_a_version(server: Server) -> None:
    client = Client(server.url)
    created = client.create("told", noop={})
    version = created["metadata"]["resourceVersion"]

    told = events(server.url, f"/jobs/stream?since={version}", until="told")
    assert [job["name"] for _, kind, job in told if kind == "modified"][-1] == "told"

    again = events(server.url, f"/jobs/stream?since={version}", until="told")
    assert [(at, kind) for at, kind, _ in again if kind == "modified"] == [
        (at, kind) for at, kind, _ in told if kind == "modified"
    ]


def test_a_socket_carries_the_same(server: Server) -> None:
    client = Client(server.url)
    version = client.create("by-socket", noop={})["metadata"]["resourceVersion"]
    address = server.url.replace("http", "ws") + f"/jobs/stream?since={version}"

    with connect(address, open_timeout=PATIENCE_S) as socket:
        states: list[str] = []
        while "Succeeded" not in states:
            message = socket.recv(timeout=PATIENCE_S)
            for line in str(message).splitlines():
                told = json.loads(line)
                if told.get("job", {}).get("name") == "by-socket":
                    states.append(told["job"]["state"])

    assert states[-1] == "Succeeded"


def by_events(url: str, path: str, count: int) -> list[tuple[str, str]]:
    """The first events of an SSE stream, as version and kind."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    connection.request("GET", path)
    answer = connection.getresponse()
    told: list[tuple[str, str]] = []
    fields: dict[str, str] = {}
    while len(told) < count:
        name, _, value = answer.readline().decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "event" in fields:
            told.append((fields["id"], fields["event"]))
            fields = {}
    connection.close()
    return told


def by_socket(url: str, path: str, count: int) -> list[tuple[str, str]]:
    """The first events of a WebSocket, as version and kind."""
    told: list[tuple[str, str]] = []
    with connect(url.replace("http", "ws") + path, open_timeout=PATIENCE_S) as socket:
        while len(told) < count:
            lines = str(socket.recv(timeout=PATIENCE_S)).splitlines()
            told += [(change["version"], change["type"]) for change in map(json.loads, lines)]
    return told[:count]


@pytest.mark.parametrize("read", [by_events, by_socket])
def test_a_stream_says_at_once_how_far_it_is(
    tmp_path: Path, read: Callable[[str, str, int], list[tuple[str, str]]]
) -> None:
    """Nothing happens on this server: whoever waits for a first event would wait for ever."""
    with Server(tmp_path / "data") as idle:
        client = Client(idle.url)
        first = client.create("kept", noop={})["metadata"]["resourceVersion"]
        last = client.phase("kept", "Succeeded")["metadata"]["resourceVersion"]

        ((now, kind),) = read(idle.url, "/jobs/stream", 1)
        assert (int(now) >= int(last), kind) == (True, "sync")

        _, listed = client.ask("GET", "/jobs/default/kept")
        changes = len(events(idle.url, f"/jobs/stream?since={first}", until="kept")) - 1
        told = read(idle.url, f"/jobs/stream?since={first}", 1 + changes + 1)
        assert told[0] == (first, "sync")
        assert told[-2] == (listed["version"], "modified")
        version, kind = told[-1]
        assert (int(version) >= int(last), kind) == (True, "sync")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("/jobs/default/nothing", 404, id="below the Jobs"),
        pytest.param("/jobs/stream/x", 404, id="below the stream"),
        pytest.param("/history", 404, id="elsewhere"),
        pytest.param("/jobs/stream?since=yesterday", 400, id="no version"),
    ],
)
def test_a_socket_is_refused_with_a_reason(server: Server, path: str, code: int) -> None:
    with pytest.raises(InvalidStatus) as caught:
        connect(server.url.replace("http", "ws") + path, open_timeout=PATIENCE_S)

    assert caught.value.response.status_code == code
    assert json.loads(caught.value.response.body)["code"] == code


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/jobs/stream?since=yesterday", id="no version"),
        pytest.param("/jobs/stream?colour=red", id="unknown parameter"),
        pytest.param("/jobs?limit=0", id="no items"),
        pytest.param("/jobs?cursor=%00", id="no cursor"),
    ],
)
def test_what_cannot_be_read_is_refused(server: Server, path: str) -> None:
    status, body = Client(server.url).ask("GET", path)

    assert (status, body["kind"], body["reason"]) == (400, "Status", "BadRequest")


def test_every_link_of_the_page_can_be_opened(server: Server) -> None:
    status, page = Client(server.url).ask("GET", "/")
    links = re.findall(r'href="(/[^"]*)"', page)
    assert status == 200
    assert {"/jobs", "/jobs/stream", "/readyz", "/apis/interlock.dev/v1alpha1/jobs"} <= {*links}
    assert "<link rel=icon href=data:,>" in page
    for link in links:
        connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
        connection.request("GET", link)
        answer = connection.getresponse()
        assert (link, answer.status) == (link, 200)
        connection.close()
    rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td></tr>", page)
    assert ("<code>POST /admin/backup</code>", "the whole store, as a SQLite file") in rows
    assert all(told for _, told in rows)


def test_lists_jobs_by_id_and_by_name(server: Server) -> None:
    client = Client(server.url)
    client.create("listed", noop={}, title="A title")
    client.phase("listed", "Succeeded")

    _, page = client.ask("GET", "/jobs?limit=1000")
    (listed,) = [job for job in page["items"] if job["name"] == "listed"]

    assert listed["title"] == "A title"
    assert client.ask("GET", f"/jobs/{listed['id']}") == (200, listed)
    assert client.ask("GET", "/jobs/default/listed") == (200, listed)
    assert client.ask("GET", "/jobs/default/nobody")[0] == 404


def test_a_log_that_is_not_there_is_not_an_empty_one(server: Server) -> None:
    client = Client(server.url)
    client.create("writes", process={"command": ["echo", "hello"]})
    client.phase("writes", "Succeeded")

    assert client.ask("GET", "/jobs/default/writes/log") == (200, "hello\n")
    assert client.ask("GET", "/jobs/default/writes/log?attempt=0&tail=1") == (200, "hello\n")
    for query in ("attempt=9", "task=1", "task=1&attempt=0"):
        assert client.ask("GET", f"/jobs/default/writes/log?{query}")[0] == 404
    assert client.ask("GET", "/jobs/default/writes/log?since=now")[0] == 400


def test_a_backup_can_be_asked_for(server: Server, tmp_path: Path) -> None:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
    connection.request("POST", "/admin/backup")
    copy = connection.getresponse().read()
    connection.close()

    assert copy.startswith(b"SQLite format 3\x00")
