"""Operations of a real server: what was run and undone in which order, and what was told of it.

Each step writes down that it is run, and fails as often as it is told to. What is told is every
state that was stored, as state, retries, and retries of the rollback: q12 is queued, c is complete.
"""

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

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
#: What a step does: it counts itself, writes down its name, and fails the first FAILS times.
DOES = """\
cd "$1"; n=$(($(cat "./$2.count" 2>/dev/null || echo 0) + 1)); echo $n > "./$2.count"
echo "$2" >> log; [ $n -gt $3 ]
"""
ALWAYS = 99


def a_step(
    name: str, fails: int = 0, undo_fails: int = 0, *, limit: int = 0, undo_limit: int = 0,
    delay: str = "10ms", **more: Any,
) -> dict[str, Any]:  # fmt: skip
    return {
        "name": name,
        "run": {"fails": fails},
        "undo": {"fails": undo_fails},
        "retries": {"limit": limit, "delay": delay},
        "undoRetries": {"limit": undo_limit},
        **more,
    }


def fanned(*, rolls_back: str) -> list[dict[str, Any]]:
    """A, then B and F beside each other; C needs B, fails twice, and has others undone before."""
    c = a_step("C", 2, limit=2, needs=["B"], beforeRetry="RollBack", rollBack=[rolls_back])
    return [a_step("A"), a_step("B"), a_step("F", needs=["A"]), c]


class Told(NamedTuple):
    """What is to be written down by the steps, and told by the server."""

    log: str
    trace: str
    completion: str = "success"


STORIES: dict[str, tuple[list[dict[str, Any]], Told]] = {
    "each step has its own retries": (
        [a_step("a"), a_step("b", 2, limit=3), a_step("c", 2, limit=3)],
        Told("a b b b c c c", "q00 e00 e10 q10 e20 e00 e10 q10 e20 c"),
    ),
    "as it is": (
        [a_step("a"), a_step("b", 1, limit=1)],
        Told("a b b", "q00 e00 e10 c"),
    ),
    "rolled back first": (
        [a_step("a"), a_step("b", 2, limit=2, beforeRetry="RollBackFirst")],
        Told("a b -b b -b b", "q00 e00 e10 q10 e20 c"),
    ),
    "what it names and what needs that": (
        fanned(rolls_back="B"),
        Told("A B F C -C -B B C -C -B B C", "q00 e00 e10 q10 e20 c"),
    ),
    "everything after the first": (
        fanned(rolls_back="A"),
        Told("A B F C -F -C -B -A A B F C -F -C -B -A A B F C", "q00 e00 e10 q10 e20 c"),
    ),
    "each undo has its own retries": (
        [a_step("a", 0, 1, undo_limit=2), a_step("b", ALWAYS, 1, limit=1, undo_limit=2)],
        Told("a b b -b -b -a -a", "q00 e00 e10 r10 q10 r11 r10 q10 r11 c", "failed"),
    ),
    "a rollback before a retry that fails is a retry that failed": (
        [a_step("a"), a_step("b", ALWAYS, 1, limit=2, beforeRetry="RollBackFirst")],
        Told("a b -b -b b -b -a", "q00 e00 e10 q10 e20 r20 c", "failed"),
    ),
    "the last of these ends in a rollback of all": (
        [a_step("a"), a_step("b", ALWAYS, 1, limit=1, beforeRetry="RollBackFirst")],
        Told("a b -b -b -a", "q00 e00 e10 r10 c", "failed"),
    ),
}


def work_of(folder: Path, name: str, fails: int) -> dict[str, Any]:
    command = ["sh", "-c", DOES, "sh", str(folder), name, str(fails)]
    return {"process": {"command": command}}


def submit(server: Server, folder: Path, story: str) -> str:
    """Ask for an operation; the name that it got."""
    folder.mkdir()
    steps = [
        {
            **step,
            "run": work_of(folder, step["name"], step["run"]["fails"]),
            "undo": work_of(folder, f"-{step['name']}", step["undo"]["fails"]),
        }
        for step in STORIES[story][0]
    ]
    spec = {"target": {"path": folder.name}, "steps": steps}
    code, accepted = Client(server.url).ask("POST", "/operations", {"spec": spec})
    assert code == 202, accepted
    return str(accepted["name"])


def state_of(job: dict[str, Any]) -> str:
    operation = (job.get("status", {}).get("execution") or {}).get("operation") or {}
    state = operation.get("state", "queued")
    if state == "complete":
        return "c"
    return f"{state[0]}{operation.get('retryCount', 0)}{operation.get('rollbackRetryCount', 0)}"


class Ended(NamedTuple):
    """What became of an operation."""

    log: str
    trace: str
    completion: str


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("operations") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def ended(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """All stories, told beside each other."""
    place = tmp_path_factory.mktemp("steps")
    version = Client(server.url).ask("GET", JOBS)[1]["metadata"]["resourceVersion"]
    folders = {story: place / f"story-{at}" for at, story in enumerate(STORIES)}
    names = {submit(server, folder, story): story for story, folder in folders.items()}
    traces: dict[str, list[str]] = {name: [] for name in names}
    completions: dict[str, str] = {}
    for job in changes(server, version):
        name, state = job["metadata"]["name"], state_of(job)
        if name in traces and traces[name][-1:] != [state]:
            traces[name].append(state)
        if name in traces and state == "c":
            completions[name] = job["status"]["execution"]["operation"]["completionState"]
        if len(completions) == len(names):
            break
    return {
        story: Ended(
            " ".join((folders[story] / "log").read_text().split()),
            " ".join(traces[name]),
            completions[name],
        )
        for name, story in names.items()
    }


def changes(server: Server, version: str) -> Iterator[dict[str, Any]]:
    """Every state of every Job that is stored after a version."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
    connection.request("GET", f"{JOBS}?watch=1&resourceVersion={version}")
    answer = connection.getresponse()
    try:
        while line := answer.readline():
            job: dict[str, Any] = json.loads(line)["object"]
            yield job
    finally:
        connection.close()


@pytest.mark.parametrize("story", STORIES)
def test_steps_are_run_undone_and_told_in_order(ended: dict[str, Ended], story: str) -> None:
    assert ended[story] == Ended(*STORIES[story][1])


def test_being_looked_at_again_and_again_runs_nothing_twice(server: Server, tmp_path: Path) -> None:
    wait = f"until [ -e {tmp_path}/go ]; do sleep 0.01; done"
    command = ["sh", "-c", f"echo ran >> {tmp_path}/log; {wait}"]
    step = {"name": "a", "run": {"process": {"command": command}}}
    body = {"spec": {"target": {"path": "looked-at"}, "steps": [step]}}
    client = Client(server.url)
    made = client.ask("POST", "/operations", body)[1]
    with ThreadPoolExecutor(10) as many:
        list(many.map(lambda _: client.ask("POST", "/operations/sweep?olderThan=0s"), range(10)))
    (tmp_path / "go").touch()

    assert client.ask("GET", f"{made['url']}?wait=100s")[1]["completion_state"] == "success"
    assert (tmp_path / "log").read_text() == "ran\n"


def test_a_server_that_dies_while_it_rolls_back_undoes_the_rest_and_nothing_twice(
    tmp_path: Path,
) -> None:
    """Nor does it go forward again."""
    wait = f"until [ -e {tmp_path}/go ]; do sleep 0.01; done"

    def does(name: str, then: str = "") -> dict[str, Any]:
        command = ["sh", "-c", f"echo {name} >> {tmp_path}/log; {then}"]
        return {"process": {"command": command}}

    waits = {"-b": wait}
    steps = [
        {"name": name, "run": does(name, then), "undo": does(f"-{name}", waits.get(f"-{name}", ""))}
        for name, then in (("a", ""), ("b", ""), ("c", ""), ("d", "false"))
    ]
    with Server(tmp_path / "data") as server:
        client = Client(server.url)
        spec = {"target": {"path": "dies"}, "steps": steps}
        made = client.ask("POST", "/operations", {"spec": spec})[1]
        version = client.ask("GET", JOBS)[1]["metadata"]["resourceVersion"]
        steps_told = ("status", "execution", "operation", "steps")

        def is_undoing_b(job: Any) -> bool:
            for part in steps_told:
                job = job.get(part) or {}
            return any(one["name"] == "b" and one.get("state") == "Undoing" for one in job)

        job = client.ask("GET", f"{JOBS}/{made['name']}")[1]
        if not is_undoing_b(job):
            next(filter(is_undoing_b, changes(server, version)))
        server.kill()
        server.start()
        (tmp_path / "go").touch()
        told = Client(server.url).ask("GET", f"{made['url']}?wait=100s")[1]

    assert (told["state"], told["completion_state"]) == ("complete", "failed")
    assert (tmp_path / "log").read_text().split() == ["a", "b", "c", "d", "-d", "-c", "-b", "-a"]
