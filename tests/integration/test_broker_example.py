"""The example broker, end to end: a server, workers that are killed, and its web service."""

from __future__ import annotations

import base64
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from infrastructure import Infrastructure, TooLateError
from interlock import Client
from interlock.sdk.handle import Handle
from interlock.sdk.record import JobRecord
from interlock.testing.serving import PATIENCE_S, Server
from support.worker_program import WorkerProgram

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "broker"
OLD = "application/json; version=1"
#: More often than any step is tried.
ALWAYS = 99


class Answer(NamedTuple):
    status: int
    body: Any
    location: str


class Web:
    """The web service in a process of its own, as a user sees it."""

    def __init__(self, env: dict[str, str]) -> None:
        self._said = b""
        self._process = subprocess.Popen(
            [sys.executable, EXAMPLE / "web.py", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
        )
        self._port = self._find_port()

    def _find_port(self) -> int:
        assert self._process.stdout is not None
        file = self._process.stdout.fileno()
        while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)", self._said)):
            ready, _, _ = select.select([file], [], [], PATIENCE_S)
            assert ready, self._said
            piece = os.read(file, 65536)
            assert piece, self._said
            self._said += piece
        return int(found[1])

    def ask(self, line: str, body: object = None, *, user: str = "ana", **headers: str) -> Answer:
        method, path = line.split(" ")
        who = base64.b64encode(f"{user}:secret".encode()).decode()
        sent = {"authorization": f"Basic {who}"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            where = answer.getheader("location") or ""
            return Answer(answer.status, json.loads(answer.read()), where)
        finally:
            connection.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Place:
    """Everything that runs, and the world that it changes."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.server = server
        self.client = Client(server.url)
        (folder / "world").mkdir()
        (folder / "world" / "deeds").touch()
        self.world = Infrastructure(folder / "world")
        self.env = os.environ | {
            "INTERLOCK_SERVER": server.url,
            "BROKER_ROOT": str(folder / "world"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.web = Web(self.env)

    def worker(self, *arguments: str, **env: str) -> WorkerProgram:
        """`interlock worker`, with more variables."""
        return WorkerProgram(["broker:app", *arguments], cwd=EXAMPLE, env=self.env | env)

    def over(self, answer: Answer) -> JobRecord:
        """The job that was asked for, once it is over."""
        assert answer.status == 202, answer
        return self.job(answer).wait(PATIENCE_S)

    def job(self, answer: Answer) -> Handle:
        return self.client.job(answer.location.removeprefix("/jobs/"))

    def deeds(self, name: str) -> list[str]:
        """What was done to one thing and to all that is below it: "+ dns"."""
        return [
            f"{deed.sign} {deed.kind}"
            for deed in self.world.deeds()
            if deed.name == name or deed.name.startswith(f"{name}/")
        ]

    def close(self) -> None:
        self.client.close()
        self.web.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Server(tmp_path / "data", cwd=tmp_path) as running:
        made = Place(tmp_path, running)
        yield made
        made.close()


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place without workers, which tests share that look at what the web service answers."""
    folder = tmp_path_factory.mktemp("quiet")
    with Server(folder / "data", cwd=folder) as running:
        made = Place(folder, running)
        yield made
        made.close()


@pytest.fixture
def busy(place: Place) -> Iterator[Place]:
    """A place with two workers."""
    with place.worker("--concurrency", "8"), place.worker("--concurrency", "8"):
        yield place


def create(web: Web, application: str, domain: str = "acme", **more: Any) -> Answer:
    path = f"POST /domains/{domain}/applications"
    headers = {name: more.pop(name) for name in ("user", "accept") if name in more}
    answer = web.ask(path, {"application": application, **more}, **headers)
    assert answer.location, answer
    return answer


def test_the_ten_calls_do_what_they_say(busy: Place) -> None:
    web, world = busy.web, busy.world
    made = create(web, "shop")
    record = busy.over(made)
    assert (record.state, record.completion_state) == ("complete", "success")
    assert (record.title, record.owner_login) == ("Create application 'shop'", "ana")
    assert record.result is not None
    assert record.result.output == "shop-acme.example.org"
    # One call after the other on one target: each sees what the one before it did.
    shop = "/domains/acme/applications/shop"
    events = [
        web.ask(f"POST {shop}/events", {"event": "restart"}),
        web.ask(f"POST {shop}/cartridges", {"cartridge": "db"}),
        web.ask(f"POST {shop}/cartridges/db/events", {"event": "start"}),
    ]
    assert {busy.over(one).completion_state for one in events} == {"success"}
    assert world.things("cartridge") == {"acme/shop/db": "installed"}

    assert busy.over(web.ask("POST /user/keys", {"key": "laptop", "content": "one"})).succeeded
    assert world.things("key") == {"users/ana/laptop": "one", "acme/shop/laptop": "one"}
    assert busy.over(web.ask("PUT /user/keys/laptop", {"content": "two"})).succeeded
    assert world.things("key") == {"users/ana/laptop": "two", "acme/shop/laptop": "two"}
    renamed = busy.over(web.ask("PUT /domains/acme", {"to": "apex"}))
    assert renamed.succeeded
    assert len(renamed.child_jobs) == 1
    assert world.things("dns") == {"acme/shop": "shop-apex.example.org"}
    assert busy.over(web.ask("DELETE /user/keys/laptop")).succeeded
    assert world.things("key") == {}

    assert busy.over(web.ask(f"DELETE {shop}/cartridges/db")).succeeded
    assert world.things("cartridge") == {}
    assert busy.over(web.ask(f"DELETE {shop}")).succeeded
    for kind in ("gear", "process", "dns"):
        assert world.things(kind) == {}


def test_an_old_client_gets_the_end(busy: Place) -> None:
    web = busy.web
    done = create(web, "shop", accept=OLD, fail={"configure_dns": 1})
    assert done[:2] == (200, {"result": "shop-acme.example.org"})
    # The last error is that of the step, not of a rollback that had trouble too.
    fail = {"configure_dns": ALWAYS, "undo start_gear": 2}
    failed = create(web, "news", accept=OLD, fail=fail)
    assert failed.status == 500
    assert failed.body["error"].startswith("configure_dns: failed")
    assert "configure_dns was told to fail" in failed.body["error"]
    record = busy.job(failed).status
    assert (record.state, record.completion_state) == ("complete", "failed")
    assert busy.world.things("gear") == {"acme/shop": "small"}


def test_a_client_that_waits_for_a_stuck_job_is_told_at_once(busy: Place) -> None:
    fail = {"configure_dns": ALWAYS, "undo start_gear": ALWAYS}
    stuck = create(busy.web, "shop", accept=OLD, fail=fail)
    assert stuck.status == 500
    assert "undo start_gear was told to fail" in stuck.body["error"]
    assert busy.web.ask(f"GET {stuck.location}").body["phase"] == "Stuck"
    steps = {one["name"]: one for one in busy.web.ask(f"GET {stuck.location}/steps").body}
    assert steps["configure_dns"]["state"] == "Undone"
    assert steps["start_gear"]["state"] == "UndoFailed"
    # It blocks its target, and nobody else.
    behind = busy.web.ask("DELETE /domains/acme/applications/shop")
    assert busy.over(create(busy.web, "news")).succeeded
    assert busy.job(behind).status.state == "queued"


def test_a_part_that_fails_makes_a_partial_success(busy: Place) -> None:
    for application in ("news", "shop"):
        assert busy.over(create(busy.web, application)).succeeded
    fail = {"write on domains/acme/applications/news": ALWAYS}
    added = busy.web.ask("POST /user/keys", {"key": "laptop", "content": "one", "fail": fail})
    record = busy.over(added)
    assert record.completion_state == "partial_success"
    assert len(record.child_jobs) == 2
    assert busy.world.things("key") == {"users/ana/laptop": "one", "acme/shop/laptop": "one"}


def test_a_job_is_seen_by_its_owner_alone(busy: Place) -> None:
    made = create(busy.web, "shop")
    busy.over(made)
    assert busy.web.ask(f"GET {made.location}").body["owner_login"] == "ana"
    other = busy.web.ask(f"GET {made.location}", user="ben")
    nobody = busy.web.ask("GET /jobs/00000000-0000-4000-8000-000000000000", user="ben")
    assert (other.status, nobody.status) == (404, 404)


@pytest.mark.parametrize(
    ("line", "body", "status", "told"),
    [
        pytest.param("POST /nothing", {}, 404, "there is no POST /nothing", id="no such call"),
        pytest.param("POST /user/keys", {"key": "a"}, 400, "content: is missing", id="missing"),
        pytest.param("PUT /domains/acme", {"to": "A/B"}, 400, "to: ", id="no name"),
        pytest.param("PUT /domains/acme", {"to": "b", "x": 1}, 400, "x: there is no", id="unknown"),
        pytest.param("PUT /domains/acme", [], 400, "an object of JSON", id="no object"),
    ],
)
def test_what_makes_no_sense_is_refused(
    quiet: Place, line: str, body: object, status: int, told: str
) -> None:
    before = list(quiet.client.jobs())
    answer = quiet.web.ask(line, body)
    assert answer.status == status
    assert told in answer.body["error"]
    assert list(quiet.client.jobs()) == before


def test_who_says_not_who_they_are_is_refused(quiet: Place) -> None:
    assert quiet.web.ask("PUT /domains/acme", {"to": "b"}, user="").status == 401


def test_the_world_refuses_a_writer_that_is_too_late(tmp_path: Path) -> None:
    world = Infrastructure(tmp_path)
    world.put("dns", "acme/shop", "new", fence=8)
    with pytest.raises(TooLateError, match="dns acme/shop: 7 comes after 8"):
        world.put("dns", "acme/shop", "old", fence=7)
    assert world.things("dns") == {"acme/shop": "new"}


def test_a_request_that_is_sent_again_is_one_job(quiet: Place) -> None:
    first, second = (
        quiet.web.ask("PUT /domains/acme", {"to": "apex"}, idempotency_key="k") for _ in range(2)
    )
    other = quiet.web.ask("PUT /domains/acme", {"to": "apex"}, idempotency_key="k", user="ben")
    assert first.location == second.location != other.location


def kill(*workers: WorkerProgram) -> None:
    """Kill programs and their processes, in the middle of whatever they do."""
    for worker in workers:
        worker.process.kill()
        for pid in re.findall(r"^worker \S+/(\d+)", worker.said, re.MULTILINE):
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def until_told(place: Place, many: int, words: str = "") -> None:
    """Wait until the world tells of so many deeds that begin with these words."""
    process = subprocess.Popen(
        ["tail", "-n", "+1", "-f", Path(place.env["BROKER_ROOT"], "deeds")], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        told = ""
        while len(re.findall(f"^{re.escape(words)}.*\n", told, re.MULTILINE)) < many:
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
            assert ready, f"nothing more comes:\n{told}"
            told += os.read(process.stdout.fileno(), 65536).decode()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


MADE = ["+ gear", "+ process", "+ dns"]
UNMADE = ["- dns", "- process", "- gear"]
FAILS = {"signal": ALWAYS}


@pytest.mark.parametrize(
    ("step", "fail", "deed", "deeds"),
    [
        pytest.param(
            "reserve_gear",
            {},
            "+ gear",
            ["+ gear", "(+) gear", "+ process", "+ dns"],
            id="in the first step",
        ),
        pytest.param("configure_dns", {}, "+ dns", [*MADE, "(+) dns"], id="in a later step"),
        pytest.param(
            "configure_dns", FAILS, "+ dns", [*MADE, "(+) dns", *UNMADE], id="and it is undone"
        ),
        pytest.param(
            "undo start_gear",
            FAILS,
            "- process",
            [*MADE, "- dns", "- process", "(-) process", "- gear"],
            id="while it is undone",
        ),
    ],
)
def test_a_step_whose_worker_is_killed_is_done_again_and_no_other(
    place: Place, step: str, fail: dict[str, int], deed: str, deeds: list[str]
) -> None:
    """The worker dies after the deed and before the record of it."""
    answer = create(place.web, "shop", fail=fail)
    with place.worker(BROKER_STEP_S="100000", BROKER_SLOW_STEP=step) as worker:
        until_told(place, 1, deed)
        kill(worker)
    with place.worker():
        record = place.over(answer)
    assert record.completion_state == ("failed" if fail else "success")
    assert place.deeds("acme/shop") == deeds


def test_whatever_is_killed_the_world_is_what_the_operations_say(place: Place) -> None:
    names = [f"app-{n}" for n in range(24)]
    fails = {name: {"signal": ALWAYS} for name in names[::3]}
    asked = {name: create(place.web, name, fail=fails.get(name, {})) for name in names}
    # A step may be cut off five times before it counts as failed, and a busy machine may cut one
    # off as well.
    for round in range(3):
        with (
            place.worker("--concurrency", "4", BROKER_STEP_S="0.05") as first,
            place.worker("--concurrency", "4", BROKER_STEP_S="0.05") as second,
        ):
            until_told(place, 12 * (round + 1))
            kill(first, second)
    with place.worker("--processes", "2"):
        records = {name: place.over(answer) for name, answer in asked.items()}

    assert {name for name, one in records.items() if not one.succeeded} == set(fails)
    there = {f"acme/{name}" for name in names if name not in fails}
    assert there == set(place.world.things("gear")) == set(place.world.things("dns"))
    for name in names:
        # A step that was cut off is done again before anything else, and none that was recorded.
        done = [deed.replace("(", "").replace(")", "") for deed in place.deeds(f"acme/{name}")]
        once = [deed for deed, _ in groupby(done)]
        assert once == MADE + (UNMADE if name in fails else []), place.deeds(f"acme/{name}")
