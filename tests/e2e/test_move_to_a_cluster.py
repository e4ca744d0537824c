"""Queued Jobs move from a real server to a real cluster: none is lost, none doubled, ever."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from installing import install_definitions
from moving_scenes import Budget, Ground, Job, StoppedError, context_of, is_clean, is_suspended, put

from interlock.client.errors import AnswerError
from interlock.client.kinds import JOBS
from interlock.migration import annotations as marks
from interlock.testing.serving import Server
from support.kube import Cluster
from support.kube.controllers import Controller

LATER = "2999-01-01T00:00:00Z"
#: Three Jobs of which each has four writes; one of them was suspended by a person.
QUEUED: dict[str, Job] = {
    "a": {"startAfter": LATER, "priority": 1},
    "b": {"suspend": True, "suspendReason": "rest"},
    "c": {"startAfter": LATER, "priority": 2, "locks": [{"key": "db"}]},
}
WRITES = 4 * len(QUEUED)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture
def ground(own_cluster: Cluster, server: Server, tmp_path: Path) -> Iterator[Ground]:
    install_definitions(own_cluster.access)
    with own_cluster.namespace() as name:
        made = Ground(server, own_cluster.access, name, tmp_path)
        yield made
        made.close()


@pytest.mark.parametrize("loses_answer", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("cut", range(WRITES))
def test_a_move_that_is_killed_at_any_write_is_finished_by_the_next(
    ground: Ground, cut: int, loses_answer: bool
) -> None:
    made = {name: ground.queue(name, **spec) for name, spec in QUEUED.items()}
    first, second = Budget(cut, loses_answer=loses_answer), Budget()

    with pytest.raises(StoppedError):
        ground.move(first)

    here, there = ground.jobs(ground.ours), ground.jobs(ground.theirs)
    assert here.keys() | there.keys() == made.keys()
    assert all(is_suspended(here.get(name)) or name not in there for name in made)
    assert all(is_suspended(there.get(name)) or name not in here for name in made)

    assert set(ground.move(second).values()) <= {"moved"}

    assert ground.jobs(ground.ours) == {}
    there = ground.jobs(ground.theirs)
    origins = {name: marks.annotation(job, marks.MOVED_FROM) for name, job in there.items()}
    assert origins == {name: job["metadata"]["uid"] for name, job in made.items()}
    assert all(map(is_clean, there.values()))
    spec = there["b"]["spec"]
    assert (spec["suspend"], spec["suspendReason"]) == (True, "rest")
    assert not is_suspended(there["a"])
    assert not is_suspended(there["c"])
    created = first.names("create copy") + second.names("create copy")
    assert created == ["a", "b", "c"]
    let_go = first.names("change copy") + second.names("change copy")
    assert list(dict.fromkeys(let_go)) == ["c", "a", "b"]
    assert set(ground.move().values()) <= {"moved"}


def test_holding_begins_at_the_end_of_the_line(ground: Ground) -> None:
    for name, spec in QUEUED.items():
        ground.queue(name, **spec)
    budget = Budget()
    ground.move(budget)
    held = list(dict.fromkeys(budget.names("change source")))
    assert held == ["b", "a", "c"]


def test_what_started_ended_or_runs_a_process_is_left(ground: Ground) -> None:
    ground.queue("over")
    ground.program.plain("--server", ground.url, "-n", ground.namespace, "wait", "over")
    ground.queue("process", process={"command": ["true"]}, suspend=True)
    ground.queue("fine", startAfter=LATER)
    before = {name: job["spec"] for name, job in ground.jobs(ground.ours).items()}

    assert ground.move() == {"over": "left", "process": "not movable", "fine": "moved"}
    left = ground.jobs(ground.ours)
    assert {name: job["spec"] for name, job in left.items()} | {"fine": before["fine"]} == before
    assert all(map(is_clean, left.values()))
    assert list(ground.jobs(ground.theirs)) == ["fine"]


def test_a_job_that_starts_before_it_is_held_is_left(ground: Ground) -> None:
    ground.queue("a", startAfter=LATER)
    budget = Budget()
    budget.before["change source", "a"] = lambda: ground.start("a")
    assert ground.move(budget) == {"a": "left"}
    assert ground.jobs(ground.theirs) == {}
    assert is_clean(ground.jobs(ground.ours)["a"])


def test_a_job_that_a_person_starts_after_it_was_copied_loses_its_copy(ground: Ground) -> None:
    ground.queue("a", startAfter=LATER)
    budget = Budget()
    budget.before["remove source", "a"] = lambda: ground.start("a")
    assert ground.move(budget) == {"a": "left"}
    assert ground.jobs(ground.theirs) == {}


def test_an_interrupted_move_of_a_job_that_started_since_loses_its_copy(ground: Ground) -> None:
    ground.queue("a", startAfter=LATER)
    with pytest.raises(StoppedError):
        ground.move(Budget(2))
    assert list(ground.jobs(ground.theirs)) == ["a"]
    ground.start("a")
    assert ground.move() == {"a": "left"}
    assert ground.jobs(ground.theirs) == {}


def test_a_job_that_a_person_deletes_meanwhile_is_gone_on_both_sides(ground: Ground) -> None:
    ground.queue("a", startAfter=LATER)
    budget = Budget()
    path = JOBS.path(ground.namespace, "a")
    budget.before["remove source", "a"] = lambda: ground.ours.call("DELETE", path)
    assert ground.move(budget) == {"a": "left"}
    assert ground.jobs(ground.theirs) == {}


def test_another_job_of_that_name_in_the_cluster_is_a_conflict(ground: Ground) -> None:
    before = ground.queue("a", startAfter=LATER)
    other = put(ground.theirs, ground.namespace, "a", {"title": "another"})
    assert ground.move() == {"a": "conflict"}
    assert ground.jobs(ground.theirs)["a"]["metadata"]["uid"] == other["metadata"]["uid"]
    assert ground.jobs(ground.ours)["a"]["spec"] == before["spec"]
    assert is_clean(ground.jobs(ground.ours)["a"])


def test_a_conflict_that_comes_late_puts_the_source_back_as_it_was(ground: Ground) -> None:
    before = ground.queue("a", suspend=True, suspendReason="rest")
    budget = Budget()
    budget.before["create copy", "a"] = lambda: put(ground.theirs, ground.namespace, "a", {})
    assert ground.move(budget) == {"a": "conflict"}
    after = ground.jobs(ground.ours)["a"]
    assert after["spec"] == before["spec"]
    assert is_clean(after)


def test_an_image_makes_pods_of_processes(ground: Ground) -> None:
    process = {"command": ["sh", "-c"], "args": ["echo $(date)"], "env": {"A": "1"}}
    ground.queue("a", process=process | {"workingDir": "/srv"}, suspend=True)
    ground.queue("b", process={"command": ["cat"], "stdin": "text"}, suspend=True)
    assert ground.move(image="tools:1") == {"a": "moved", "b": "not movable"}
    spec = ground.jobs(ground.theirs)["a"]["spec"]
    assert "process" not in spec
    (container,) = spec["pod"]["spec"]["containers"]
    assert container == {
        "name": "main",
        "image": "tools:1",
        "command": ["sh", "-c"],
        "args": ["echo $$(date)"],
        "env": [{"name": "A", "value": "1"}],
        "workingDir": "/srv",
    }


def test_a_lock_that_is_held_at_the_server_holds_jobs_back_in_the_cluster(ground: Ground) -> None:
    flags = ("--server", ground.url, "-n", ground.namespace)
    ground.program.plain(*flags, "run", "--name", "r", "--lock", "db", "--", "sleep", "1000")
    ground.program.plain(*flags, "wait", "r", "--for", "started")
    ground.queue("a", locks=[{"key": "db"}])
    ground.queue("b", startAfter=LATER)

    assert ground.move() == {"r": "left", "a": "held back", "b": "moved"}
    there = ground.jobs(ground.theirs)
    assert is_suspended(there["a"])
    assert "job/r is left there" in there["a"]["spec"]["suspendReason"]
    assert not is_suspended(there["b"])
    assert ground.move()["a"] == "held back"

    ground.program.plain(*flags, "kill", "--wait", "r")
    assert ground.move()["a"] == "moved"
    moved = ground.jobs(ground.theirs)["a"]
    assert not is_suspended(moved)
    assert is_clean(moved)


def test_moved_jobs_run_in_the_cluster_once_and_in_order(ground: Ground, tmp_path: Path) -> None:
    lock = [{"key": "db"}]
    names = [f"job-{number}" for number in range(4)]
    for name in names:
        ground.queue(name, locks=lock, startAfter=LATER)
    assert set(ground.move().values()) == {"moved"}
    for name in names:
        ground.theirs.patch(JOBS, ground.namespace, name, {"spec": {"startAfter": None}})
    # A Job's place is the version it is first looked at with; nobody looks while they are changed.
    with Controller(ground.access, tmp_path / "controller", namespace=ground.namespace):
        flags = ("--kubeconfig", ground.kubeconfig, "-n", ground.namespace)
        ground.program.plain(*flags, "wait", *names)
    ran = ground.jobs(ground.theirs)
    tokens = [ran[name]["status"]["admission"]["grants"][0]["token"] for name in names]
    assert len(set(tokens)) == len(names)
    sequences = [ran[name]["status"]["admission"]["sequence"] for name in names]
    assert sequences == sorted(sequences)


def test_two_servers_do_not_take_each_others_copies_for_their_own(
    ground: Ground, tmp_path: Path
) -> None:
    ground.queue("a", startAfter=LATER)
    with pytest.raises(StoppedError):
        ground.move(Budget(2))
    with Server(tmp_path / "other") as other:
        elsewhere = Ground(other, ground.access, ground.namespace, tmp_path)
        assert elsewhere.move() == {}
        elsewhere.close()
    assert is_suspended(ground.jobs(ground.theirs)["a"])
    assert ground.move() == {"a": "moved"}


def test_the_verb_tells_what_it_would_do_and_what_it_did(ground: Ground) -> None:
    ground.queue("a", startAfter=LATER)
    ground.queue("p", process={"command": ["true"]}, suspend=True)
    flags = ("--from", ground.url, "--to", context_of(ground), "-n", ground.namespace)
    program = ground.program

    told = program.plain("move", *flags, "--dry-run", KUBECONFIG=ground.kubeconfig)
    assert told.splitlines()[-1] == "1 would move, 1 not movable"
    assert ground.jobs(ground.theirs) == {}
    assert is_clean(ground.jobs(ground.ours)["a"])

    told = program.plain("move", *flags, "-o", "json", KUBECONFIG=ground.kubeconfig)
    assert json.loads(told)["summary"] == {"moved": 1, "not movable": 1}
    told = program.plain("move", *flags, KUBECONFIG=ground.kubeconfig)
    assert told.splitlines()[-1].endswith("1 not movable")
    put(ground.theirs, ground.namespace, "x", {})
    ground.queue("x", suspend=True)
    told = program.plain("move", *flags, KUBECONFIG=ground.kubeconfig, code=1)
    assert "the cluster has another job/x" in told


def test_a_namespace_that_the_cluster_does_not_have_is_a_conflict(
    ground: Ground, server: Server
) -> None:
    place = f"{ground.namespace}-other"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
    ground.ours.call("POST", "/api/v1/namespaces", None, body)
    put(ground.ours, place, "a", {"suspend": True})
    flags = ("--from", server.url, "--to", context_of(ground), "-n", place)
    told = ground.program.plain("move", *flags, KUBECONFIG=ground.kubeconfig, code=1)
    assert "the cluster refuses it" in told
    with pytest.raises(AnswerError):
        ground.theirs.get(JOBS, place, "a")
