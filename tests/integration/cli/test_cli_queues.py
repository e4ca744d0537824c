"""Queues on a real server: who holds the quota, who waits, and why."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from time import monotonic

import pytest
from cli_program import Program

from interlock.testing.serving import PATIENCE_S, Server

QUEUES = """\
apiVersion: interlock.dev/v1alpha1
kind: Queue
metadata: {name: training}
spec: {resources: {gpu: 4, memory: 16Gi}}
---
apiVersion: interlock.dev/v1alpha1
kind: Queue
metadata: {name: closed}
spec: {resources: {tasks: 2}, order: StrictFIFO, stop: Hold, namespaceSelector: {matchNames: [a]}}
"""
LASTS = ("--", "sleep", "1000")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def interlock(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program, with two queues, one of them full and waited for."""
    made = Program(server.url, tmp_path_factory.mktemp("folder"))
    made("queues")
    (made.folder / "queues.yaml").write_text(QUEUES)
    made("apply", "-f", "queues.yaml")
    run = ("run", "--queue", "training", "--name")
    made(*run, "large", "--resources", "gpu=3,memory=2Gi", "--timeout", "10h", *LASTS)
    until(lambda: made.json("queue", "training")["admitted"] == 1)
    made(*run, "next", "--resources", "gpu=2", "--priority", "5", *LASTS)
    made(*run, "small", "--resources", "gpu=1", *LASTS)
    until(lambda: made.json("queue", "training")["admitted"] == 2)
    return made


def until(is_so: Callable[[], bool]) -> None:
    """Ask again and again until something is so."""
    deadline = monotonic() + PATIENCE_S
    while not is_so():
        assert monotonic() < deadline


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_queues_in_short(interlock: Program) -> None:
    head, closed, machine, training = words(interlock("queues"))

    assert " ".join(head) == "QUEUE CPU GPU MEMORY TASKS ADMITTED WAITING OLDEST STATE GATE"
    assert closed == ["closed", "-", "-", "-", "0/2", "0", "0", "-", "held", "-"]
    assert machine[0] == "machine"
    assert training[:7] == ["training", "-", "4/4", "2Gi/16Gi", "-", "2", "1"]
    listed = {item["name"]: item for item in interlock.json("queues")["items"]}
    assert listed["training"]["resources"]["memory"] == {
        "quota": "16Gi",
        "used": "2Gi",
        "free": "14Gi",
        "borrowed": 0,
    }
    assert listed["closed"]["namespaces"] == ["a"]


def test_a_queue_with_who_holds_it_and_its_line(interlock: Program) -> None:
    lines = words(interlock("queue", "training"))
    told = [" ".join(line) for line in lines]

    assert told[0] == "queue training BestEffortFIFO 2 admitted, 1 waiting"
    assert "gpu 4 4 0" in told
    holders = [line[0] for line in lines if line and line[0].startswith("default/")]
    assert holders == ["default/large", "default/small"]
    (first,) = (line for line in lines if line[:1] == ["1"])
    assert first[:5] == ["1", "default/next", "5", "gpu", "2,"]
    assert told[-1] == (
        "the first waits queue training has no room: needs gpu 2, free 0;"
        " job/large and 1 more hold gpu 4"
    )


def test_a_queue_that_is_closed_says_for_whom_it_is(interlock: Program) -> None:
    first, second, *_ = interlock("queue", "closed").splitlines()

    assert first == "queue closed   StrictFIFO   held   0 admitted, 0 waiting"
    assert second == "for namespaces a"


def test_a_queue_that_is_not_there(interlock: Program) -> None:
    interlock("queue", "trainin", code=4)

    assert "did you mean `training`" in interlock.errors


def test_why_a_job_waits_for_its_queue(interlock: Program) -> None:
    answer = interlock.json("why", "next")

    (wait,) = answer["waits"]
    assert (wait["reason"], wait["place"], wait["of"]) == ("QuotaTaken", 1, 1)
    assert (wait["needs"], wait["free"]) == ({"gpu": 2}, {"gpu": 0})
    assert [holder["job"] for holder in wait["holders"]] == ["large", "small"]
    # The other one ends when it likes, but this one gives back enough.
    assert "until" in wait
    told = interlock("why", "next")
    assert ", place 1 of 1 in queue training\n" in told
    assert "  blocked   queue training has no room: needs gpu 2, free 0;" in told
    assert "  holds     of queue training: gpu 3, memory 2Gi, tasks 1" in interlock("why", "large")


def test_a_wide_list_has_the_queue(interlock: Program) -> None:
    head, line = words(interlock("get", "job", "next", "-o", "wide"))

    assert "QUEUE" in head
    assert "training" in line


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--queue", "q", "--resources", "gpu"], "'gpu' is not of the form NAME=AMOUNT"),
        (["--queue", "q", "--resources", "gpu=1,gpu=2"], "--resources gpu is given more than once"),
        (["--queue", "q", "--resources", "gpu=x"], "--resources gpu: expected an amount such as"),
        (["--queue", "Q"], "--queue: expected lower-case letters"),
    ],
)
def test_flags_that_make_no_sense(interlock: Program, flags: list[str], told: str) -> None:
    interlock("run", *flags, "--", "true", code=2)

    assert told in interlock.errors


def test_completion_knows_the_queues(interlock: Program) -> None:
    assert interlock("__complete", "queue", "").split() == ["closed", "machine", "training"]


def test_levels_are_among_the_metrics(interlock: Program, server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=PATIENCE_S) as answer:
        lines = answer.read().decode().splitlines()

    assert 'interlock_queue_pending_jobs{queue="training"} 1.0' in lines
    assert 'interlock_queue_admitted_jobs{queue="training"} 2.0' in lines
    assert 'interlock_queue_quota{queue="training",resource="gpu"} 4.0' in lines
    assert 'interlock_queue_quota_used{queue="training",resource="gpu"} 4.0' in lines


def test_what_is_asked_for_besides_is_refused(server: Server) -> None:
    for path in ("/queues?namespace=a", "/queues/training?limit=-1", "/queues/training?x=1"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{server.url}{path}", timeout=PATIENCE_S)
        with refused.value as answer:
            assert answer.code == 400


def test_a_job_is_let_in_once_there_is_room(interlock: Program) -> None:
    def holders() -> list[str]:
        return [one["job"] for one in interlock.json("queue", "training")["holders"]]

    interlock("kill", "large")
    until(lambda: holders() == ["small", "next"])
