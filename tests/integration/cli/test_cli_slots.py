"""Slots on a real server: who is in which, who waits, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_program import Program

from interlock.testing.clients import Client, phase_of
from interlock.testing.serving import Server

BEDS = """\
apiVersion: interlock.dev/v1alpha1
kind: TestBed
metadata: {name: bed}
spec: {slotsPerNode: 4, resourcesPerSlot: {cpu: 1m, memory: 1Mi}}
---
apiVersion: interlock.dev/v1alpha1
kind: TestBed
metadata: {name: vast}
spec: {slotsPerNode: 2, resourcesPerSlot: {cpu: 1000000}}
"""
LASTS = ("--", "sleep", "100000")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", cwd=tmp_path) as running:
        yield running


@pytest.fixture
def interlock(server: Server, tmp_path: Path) -> Program:
    """The program, with two test beds."""
    made = Program(server.url, tmp_path)
    (tmp_path / "beds.yaml").write_text(BEDS)
    made("apply", "-f", "beds.yaml")
    return made


def runs(client: Client, *names: str) -> dict[str, dict[str, object]]:
    """Wait until these Jobs run; all Jobs."""
    return client.wait(
        lambda jobs: all(
            name in jobs and phase_of(jobs[name]) == "Running" and _are_seated(jobs[name])
            for name in names
        )
    )


def _are_seated(job: dict[str, object]) -> bool:
    status = job["status"]
    assert isinstance(status, dict)
    active = status["execution"].get("active", ())
    return len(active) == len(status["admission"]["slots"]["ids"])


def waits(client: Client, name: str, reason: str) -> None:
    def is_so(jobs: dict[str, dict[str, object]]) -> bool:
        status = jobs[name]["status"] if name in jobs else {}
        assert isinstance(status, dict)
        found = status.get("admission", {}).get("waits", ())
        return [wait["reason"] for wait in found] == [reason]

    client.wait(is_so)


def test_who_is_in_which_slot_and_who_waits(interlock: Program, server: Server) -> None:
    client = Client(server.url)
    on_bed = ("run", "--test-bed", "bed", "--name")
    interlock(*on_bed, "wide", "--count", "3", *LASTS)
    runs(client, "wide")
    interlock(*on_bed, "large", "--count", "5", *LASTS)
    waits(client, "large", "TestBedTooSmall")
    interlock(*on_bed, "exact", "--slot", "machine/1", *LASTS)
    waits(client, "exact", "SlotsTaken")

    drawn = interlock("slots", "bed").splitlines()
    assert drawn[0].split() == ["0", "1", "2", "3"]
    assert re.split(" {2,}", drawn[1]) == [
        *("machine", "■ wide-0-0", "■ wide-1-0", "■ wide-2-0", "□ free")
    ]
    assert drawn[2] == "4 slots on 1 node: 3 occupied, 0 reserved, 1 free"
    assert drawn[3] == "waiting: large, exact; why: interlock why large"
    told = interlock("why", "exact")
    assert "slot machine/1 of test bed bed, held by job/wide (Running" in told
    assert "of test bed bed: machine/0, machine/1, machine/2" in interlock("why", "wide")
    assert "not even when it is empty" in interlock("why", "large")
    seat = interlock.json("slots", "bed")["seats"][1]
    assert (seat["slot"], seat["position"], seat["job"]) == ("machine/1", 1, "wide")

    interlock("stop", "wide")
    runs(client, "exact")
    assert [one["slot"] for one in client.job("exact")["status"]["execution"]["active"]] == [
        "machine/1"
    ]


def test_a_slot_of_its_own_for_each_task_which_it_is_told(interlock: Program) -> None:
    command = ("sh", "-c", "echo $INTERLOCK_TEST_BED $INTERLOCK_SLOT ${task.slot}")
    interlock(
        "run", "--test-bed", "bed", "--name", "gang", "--count", "3", "--wait", "--", *command
    )

    told = {interlock("logs", "gang", "--task", str(task)).strip() for task in range(3)}

    assert told == {f"bed machine/{number} machine/{number}" for number in range(3)}


def test_a_node_without_room_for_a_bed_is_told_of(interlock: Program) -> None:
    _until(lambda: bool(interlock.json("slots", "vast")["problems"]))

    listed = {item["name"]: item for item in interlock.json("slots")["items"]}
    assert (listed["bed"]["slots"], listed["vast"]["slots"]) == (4, 0)
    (problem,) = listed["vast"]["problems"]
    assert problem["node"] == "machine"
    assert "2 slots need 2000000 of cpu" in problem["message"]
    assert "machine has no slots: 2 slots need" in interlock("slots", "vast")


def test_after_a_kill_everybody_is_where_he_was(interlock: Program, server: Server) -> None:
    client = Client(server.url)
    interlock("run", "--test-bed", "bed", "--name", "stays", "--count", "2", *LASTS)
    before = runs(client, "stays")["stays"]["status"]

    server.kill()
    server.start()
    client = Client(server.url)
    interlock.env["INTERLOCK_SERVER"] = server.url
    interlock("run", "--test-bed", "bed", "--name", "next", "--count", "2", *LASTS)
    after = runs(client, "stays", "next")

    assert after["stays"]["status"] == before
    assert interlock.json("slots", "bed")["free"] == 0


def test_asking_for_other_slots_puts_a_job_back_and_in_there(
    interlock: Program, server: Server
) -> None:
    client = Client(server.url)
    interlock("run", "--test-bed", "bed", "--name", "moves", "--slot", "machine/0", *LASTS)
    runs(client, "moves")

    client.patch("moves", {"spec": {"slots": {"ids": ["machine/3"]}}})

    def is_there(jobs: dict[str, dict[str, object]]) -> bool:
        status = jobs["moves"]["status"]
        assert isinstance(status, dict)
        active = status["execution"].get("active", ())
        return [(one["slot"], one["state"]) for one in active] == [("machine/3", "Running")]

    moved = client.wait(is_there)["moves"]["status"]
    assert isinstance(moved, dict)
    assert moved["admission"]["eviction"]["reason"] == "SlotsChanged"
    assert moved["admission"]["evictions"] == 1


def test_who_is_in_a_bed_that_is_deleted_stays_until_it_is_over(
    interlock: Program, server: Server
) -> None:
    client = Client(server.url)
    interlock("run", "--test-bed", "bed", "--name", "inside", *LASTS)
    runs(client, "inside")

    interlock("delete", "testbed", "bed")
    _until(
        lambda: (
            interlock.json("slots", "bed")["missing"]
            and not interlock.json("slots", "bed")["slots"]
        )
    )

    assert "machine/0 is not there any more, and is still held by inside" in interlock(
        "slots", "bed"
    )
    interlock("run", "--test-bed", "bed", "--name", "late", *LASTS)
    waits(client, "late", "TestBedTooSmall")
    interlock("stop", "inside")
    waits(client, "late", "NoSuchTestBed")


def test_what_cannot_be_is_refused_with_its_flag_or_field(interlock: Program) -> None:
    interlock("slots", "nowhere", code=4)
    assert '"nowhere" not found' in interlock.errors
    interlock("run", "--slot", "machine/1", *LASTS, code=2)
    assert "--slot: is for slots of a spec.slots.testBed" in interlock.errors
    interlock("run", "--test-bed", "bed", "--slot", "machine", *LASTS, code=2)
    assert "--slot: expected NODE/NUMBER" in interlock.errors


def _until(is_so: Callable[[], bool]) -> None:
    """Ask again and again until something is so."""
    while not is_so():
        pass
