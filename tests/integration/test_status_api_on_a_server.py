"""The status API of a real server: what is taken on, waited for, listed, and kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from interlock.testing.clients import Client
from interlock.testing.serving import PATIENCE_S, Server


class Reply(NamedTuple):
    """An answer with its headers, whose names are in lower case."""

    status: int
    headers: dict[str, str]
    body: Any


class Api:
    """Asks a server, and keeps what the headers say."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url).netloc

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = HTTPConnection(self._place, timeout=PATIENCE_S)
        try:
            data = None if body is None else json.dumps(body)
            given = {"content-type": "application/json", **(headers or {})}
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            text = answer.read()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, told, json.loads(text))
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        reply = self.ask("GET", path)
        assert reply.status == 200, reply.body
        return reply.body

    def submit(self, body: object, query: str = "", **headers: str) -> Reply:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", f"/operations{query}", body, named)

    def names(self, path: str) -> list[str]:
        return [item["name"] for item in self.get(path)["items"]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("statuses") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def api(server: Server) -> Api:
    return Api(server.url)


def steps(*commands: list[str]) -> list[dict[str, Any]]:
    return [
        {"name": f"s{at}", "run": {"process": {"command": command}}}
        for at, command in enumerate(commands)
    ]


def on(path: str, *commands: list[str], **more: Any) -> dict[str, Any]:
    """A body that asks for an operation."""
    return {"spec": {"target": {"path": path}, "steps": steps(*commands or (["true"],)), **more}}


def held(path: str, **more: Any) -> dict[str, Any]:
    """One that does not begin before somebody says so."""
    return on(path, suspend=True, **more)


def test_what_is_taken_on_is_answered_with_its_url_and_can_be_read_at_once(api: Api) -> None:
    reply = api.submit(on("domains/acme/applications/shop", title="Create shop"))

    assert reply.status == 202
    url = f"/jobs/{reply.body['job_id']}"
    assert (reply.headers["location"], reply.body["url"]) == (url, url)
    assert int(reply.headers["retry-after"]) > 0
    done = api.get(f"{url}?wait=100s")
    assert (done["state"], done["completion_state"]) == ("complete", "success")
    assert (done["title"], done["percentage_complete"]) == ("Create shop", 100.0)
    assert (done["domain_name"], done["application_name"]) == ("acme", "shop")


@pytest.mark.parametrize(
    ("command", "query", "status", "reason"),
    [
        pytest.param("true", "?async=false", 200, None, id="done"),
        pytest.param("exit 3", "?async=false", 422, "OperationFailed", id="failed"),
        pytest.param("exit 3", "?wait=100s", 422, "OperationFailed", id="failed, with a wait"),
    ],
)
def test_whoever_waits_is_told_the_end(
    api: Api, command: str, query: str, status: int, reason: str | None
) -> None:
    reply = api.submit(on("waited", ["sh", "-c", command]), query)

    assert (reply.status, reply.body.get("reason")) == (status, reason)
    if reason is not None:
        assert "exit" in reply.body["message"]
        assert api.get(reply.headers["location"])["completion_state"] == "failed"


def test_whoever_waits_too_shortly_is_told_that_it_goes_on(api: Api) -> None:
    reply = api.submit(held("slow"), "?wait=10ms")
    assert (reply.status, reply.body["state"]) == (202, "queued")
    preferred = api.submit(held("slow"), "", Prefer="respond-async, wait=0")
    assert (preferred.status, preferred.headers["preference-applied"]) == (202, "wait=0")


def test_a_stuck_one_answers_at_once_as_an_error(api: Api) -> None:
    step = {
        "name": "destroy",
        "run": {"process": {"command": ["false"]}},
        "irreversible": True,
    }
    reply = api.submit({"spec": {"target": {"path": "stuck"}, "steps": [step]}}, "?async=false")

    assert (reply.status, reply.body["reason"]) == (409, "OperationStuck")
    told = api.get(f"{reply.headers['location']}?wait=300s")
    assert (told["state"], told["completion_state"]) == ("executing", None)
    assert told["stuck_at"] is not None


def test_a_part_that_is_stuck_keeps_the_whole_from_its_end(api: Api, server: Server) -> None:
    whole = api.submit({**held("whole"), "metadata": {"name": "whole"}}).body["job_id"]
    good = api.submit(on("whole/good", parent="whole")).body["job_id"]
    step = {"name": "jam", "run": {"process": {"command": ["false"]}}, "irreversible": True}
    spec = {"target": {"path": "whole/bad"}, "parent": "whole", "steps": [step]}
    bad = api.submit({"metadata": {"name": "bad"}, "spec": spec}).body["job_id"]
    api.get(f"/jobs/{good}?wait=100s")
    assert api.get(f"/jobs/{bad}?wait=100s")["stuck_at"] is not None
    client = Client(server.url)
    client.patch("whole", {"spec": {"suspend": False}})
    client.wait(lambda jobs: jobs["whole"]["status"].get("phase") == "Running")

    told = api.get("/jobs/default/whole/why")
    assert [wait["message"] for wait in told["waits"]] == [
        "1 of 2 parts is not over: job/bad (Stuck)"
    ]
    status = api.get(f"/jobs/{whole}")
    assert (status["state"], status["completion_state"]) == ("executing", None)
    assert (status["child_jobs"], status["percentage_complete"]) == ([good, bad], 50.0)
    order = {"reason": "seen to it", "outcome": "failed"}
    assert api.ask("POST", "/jobs/default/bad/resolve", order).status == 200
    status = api.get(f"/jobs/{whole}?wait=100s")
    assert (status["state"], status["completion_state"]) == ("complete", "partial_success")


def test_one_key_gives_one_job(api: Api) -> None:
    body = on("keyed", title="once")
    with ThreadPoolExecutor(16) as many:
        replies = [
            each.result()
            for each in [many.submit(api.submit, body, Idempotency_Key="k1") for _ in range(16)]
        ]

    assert {reply.status for reply in replies} == {202}
    assert len({reply.body["job_id"] for reply in replies}) == 1
    assert len(api.names("/keyed/jobs")) == 1
    other = api.submit(on("keyed", title="twice"), Idempotency_Key="k1")
    assert (other.status, other.body["reason"]) == (422, "IdempotencyKeyReused")
    differs = api.submit({"spec": {**body["spec"], "idempotencyKey": "k2"}}, Idempotency_Key="k1")
    assert differs.status == 400


@pytest.mark.parametrize(
    ("body", "query", "status"),
    [
        pytest.param({"spec": {}}, "", 422, id="nothing to run"),
        pytest.param([], "", 400, id="no object"),
        pytest.param({"items": []}, "", 400, id="no items"),
        pytest.param({"items": [on("a")]}, "?wait=1s", 400, id="items are not waited for"),
        pytest.param(on("a"), "?wait=soon", 400, id="no duration"),
        pytest.param(on("a"), "?colour=red", 400, id="unknown parameter"),
        pytest.param(on("a"), "?namespace=nowhere", 404, id="no such namespace"),
        pytest.param(on("a/"), "", 422, id="a path that is none"),
    ],
)
def test_what_cannot_be_taken_on_is_refused(
    api: Api, body: object, query: str, status: int
) -> None:
    assert api.submit(body, query).status == status


def test_several_are_answered_one_by_one(api: Api) -> None:
    items = [on(f"many/{at}") for at in range(20)]
    items[7] = on("many/7", retries={"limit": 3})
    reply = api.submit({"items": items})

    assert reply.status == 202
    refused = [at for at, item in enumerate(reply.body["items"]) if "refusal" in item]
    assert refused == [7]
    assert reply.body["items"][7]["refusal"]["code"] == 422
    assert len(api.names("/many/jobs")) == 19


def test_lists_are_by_path_and_by_person_and_filters_combine(api: Api) -> None:
    for path, owner in (("domains/d1", "ana"), ("domains/d1/applications/a", "bob")):
        api.submit({**held(path, owner=owner), "metadata": {"name": f"l-{owner}"}})
    api.submit({**held("domains/d10"), "metadata": {"name": "l-other"}})
    target = {"path": "things/9", "type": "application", "id": "app-9"}
    by_id = {"metadata": {"name": "l-by-id"}, "spec": {"target": target, "noop": {}}}
    api.submit(by_id, "?async=false")

    assert api.names("/domains/d1/jobs?sort=created") == ["l-ana", "l-bob"]
    assert api.names("/domains/d1/applications/jobs") == ["l-bob"]
    assert api.names("/domains/d1/jobs?owner=ana&state=queued") == ["l-ana"]
    assert api.names("/domains/d1/jobs?state=complete") == []
    assert api.names("/applications/app-9/jobs") == api.names("/things/jobs") == ["l-by-id"]
    assert "l-by-id" in api.names("/user/jobs?completion_state=success&state=complete")
    ids = [item["job_id"] for item in api.get("/domains/jobs")["items"]]
    assert len(api.names(f"/jobs?ids={','.join(ids)},no-such-id")) == len(ids)
    assert api.ask("GET", f"/jobs?ids={','.join(map(str, range(501)))}").status == 400


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/jobs/no-such-id", id="an id"),
        pytest.param("/jobs/no-such-id?wait=100s", id="an id to wait for"),
        pytest.param("/apis/nothing/v1/jobs", id="below the resources"),
        pytest.param("/locks/jobs", id="below a report"),
        pytest.param("/nowhere/at/all", id="anything else"),
        pytest.param("/do%20mains/jobs", id="no path of a target"),
    ],
)
def test_what_is_not_there_is_not_found(api: Api, path: str) -> None:
    assert api.ask("GET", path).status == 404


@pytest.mark.parametrize("sort", ["created", "-created"])
def test_pages_neither_lose_nor_repeat_while_jobs_arrive(api: Api, sort: str) -> None:
    path = f"pages/{sort.strip('-')}{len(sort)}"
    there = {item["job_id"] for item in submit_many(api, path, 10)}
    found: list[str] = []
    cursor = ""
    while True:
        page = api.get(f"/{path}/jobs?limit=3&sort={sort}{cursor}")
        found += [item["job_id"] for item in page["items"]]
        if "next" not in page:
            break
        cursor = f"&cursor={page['next']}"
        if len(found) < 10:
            submit_many(api, path, 1)

    assert len(found) == len(set(found))
    assert there <= set(found)
    if sort == "-created":
        assert there == set(found)


def submit_many(api: Api, path: str, count: int) -> list[dict[str, Any]]:
    reply = api.submit({"items": [held(path) for _ in range(count)]})
    items: list[dict[str, Any]] = reply.body["items"]
    assert all(item.get("job_id") for item in items), items
    return items


def test_a_part_that_would_wait_for_what_waits_for_it_is_refused(api: Api) -> None:
    top = api.submit(held("domains/ring"))
    shop = api.submit(held("domains/ring/applications/shop", parent=top.body["name"]))
    assert (top.status, shop.status) == (202, 202)

    for path in ("domains/ring", "domains/ring/applications/shop"):
        reply = api.submit(on(path, parent=shop.body["name"]))
        assert reply.status == 422
        assert f"is done to {path} too and ends only after its parts" in reply.body["message"]
    assert len(api.names("/domains/ring/jobs")) == 2


def test_the_pending_limit_is_exact_whoever_submits_how(api: Api, server: Server) -> None:
    path = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
    spec = held("full")["spec"]
    spec["target"]["maxPending"] = 7

    def submit(at: int) -> Reply:
        if at % 3 == 0:
            document = {"kind": "Job", "metadata": {"name": f"full-{at}"}, "spec": spec}
            return api.ask("POST", path, document)
        if at % 3 == 1:
            document = {"metadata": {"name": f"full-{at}"}, "spec": spec}
            return api.ask("POST", f"/jobs/default/full-{at}/apply", document)
        return api.submit({"spec": spec})

    with ThreadPoolExecutor(25) as many:
        replies = list(many.map(submit, range(50)))

    refused = [reply for reply in replies if reply.status >= 400]
    stored = [
        job["metadata"]["name"]
        for job in api.get(path)["items"]
        if job["spec"].get("target", {}).get("path") == "full"
    ]
    assert len(replies) - len(refused) == len(stored) == 7
    assert {(one.status, one.body["reason"]) for one in refused} == {(409, "TooManyPending")}
    assert "there may be 7" in refused[0].body["message"]
    assert " full " in refused[0].body["message"]
    # One that is over makes room for one.
    name = stored[0]
    Client(server.url).delete(name)
    Client(server.url).wait(lambda jobs: name not in jobs)
    assert api.submit({"spec": spec}).status == 202
    assert api.submit({"spec": spec}).status == 409


def test_what_was_removed_stays_readable_across_a_restart_and_a_backup(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        api = Api(server.url)
        parent = {"metadata": {"name": "above"}, **on("kept", owner="ana")}
        parent["spec"]["suspend"] = True
        first = api.submit(parent).body["job_id"]
        part = on("kept/part", parent="above", type="part", ttlAfterFinished="0s")
        child = api.submit(part, Idempotency_Key="part").body["job_id"]
        api.get(f"/jobs/{child}?wait=100s")
        client = Client(server.url)
        client.patch("above", {"spec": {"suspend": False, "ttlAfterFinished": "0s"}})
        client.wait(lambda jobs: not jobs)
        before = api.get(f"/jobs/{first}")
        assert before["completion_state"] == "success"
        assert (before["child_jobs"], before["owner_login"]) == ([child], "ana")

        server.kill()
        server.start()
        api = Api(server.url)
        assert api.get(f"/jobs/{first}") == before
        assert api.get(f"/jobs/{child}")["parent_job"] == first
        assert api.names("/kept/jobs?sort=created")[0] == "above"
        assert api.names("/kept/part/jobs") == [api.get(f"/jobs/{child}")["name"]]
        assert api.names("/user/jobs?owner=ana") == ["above"]
        assert len(api.names("/jobs?state=complete&completion_state=success")) == 2
        again = api.submit(part, Idempotency_Key="part")
        assert (again.status, again.body["job_id"]) == (202, child)
        later = submit_many(api, "kept/later", 1)[0]["name"]
        page = api.get("/kept/jobs?limit=2")
        rest = api.get(f"/kept/jobs?limit=2&cursor={page['next']}")
        assert page["items"][0]["name"] == later
        assert [item["name"] for item in rest["items"]] == ["above"]
        assert "next" not in rest
