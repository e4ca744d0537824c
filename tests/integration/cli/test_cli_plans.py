"""Plans on a real server: who has its turn, who waits for whom, and what a deletion puts back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_program import Program

from interlock.testing.clients import Client
from interlock.testing.serving import Server

BED = """\
apiVersion: interlock.dev/v1alpha1
kind: TestBed
metadata: {name: bed}
spec: {slotsPerNode: 4, resourcesPerSlot: {cpu: 1m, memory: 1Mi}}
"""
JOB = (
    "{{apiVersion: interlock.dev/v1alpha1, kind: Job, metadata: {{name: {}}},"
    " spec: {{slots: {{}}, process: {{command: [sh, -c, '{}']}}}}}}"
)
PLAN = (
    "{{apiVersion: interlock.dev/v1alpha1, kind: Scheduling, metadata: {{name: {}}},"
    " spec: {{testBed: bed, {}}}}}"
)
#: Goes on until the test says so.
HOLDS = "until [ -e go ]; do sleep 0.05; done"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", cwd=tmp_path) as running:
        yield running


@pytest.fixture
def interlock(server: Server, tmp_path: Path) -> Program:
    """The program, with a test bed of four slots."""
    made = Program(server.url, tmp_path)
    (tmp_path / "bed.yaml").write_text(BED)
    made("apply", "-f", "bed.yaml")
    return made


def define(interlock: Program, jobs: dict[str, str], **plans: str) -> None:
    """Apply Jobs that leave their slots to plans, and plans."""
    parts = [JOB.format(*job) for job in jobs.items()]
    parts += [PLAN.format(*plan) for plan in plans.items()]
    (interlock.folder / "plans.yaml").write_text("\n---\n".join(parts))
    interlock("apply", "-f", "plans.yaml")


def plans_are(client: Client, **states: str) -> dict[str, dict[str, Any]]:
    """Wait until plans are so far; all plans."""

    def is_so(plans: dict[str, dict[str, Any]]) -> bool:
        return all(plans[name]["status"].get("state") == state for name, state in states.items())

    return client.wait(is_so, "schedulings")


def slots_of(client: Client, name: str) -> list[str]:
    found: list[str] = client.job(name)["status"]["admission"]["slots"]["ids"]
    return found


def test_a_queue_has_its_turns_and_tells_of_them(interlock: Program, server: Server) -> None:
    client = Client(server.url)
    define(
        interlock,
        {"a": HOLDS, "b": "true", "c": "exit 1"},
        evening="queueBased: [a, a, a, b, b, c]",
    )
    plans_are(client, evening="Submitting")

    assert "it waits for its turn in scheduling/evening" in interlock("why", "b")
    assert "b waits for slots machine/0, machine/1, machine/2" in interlock("get", "schedulings")

    drawn = interlock("slots", "bed")
    assert "scheduling/evening   queue, 0 of 3 jobs over, Submitting; b waits for" in drawn

    (interlock.folder / "go").touch()
    status = plans_are(client, evening="Completed")["evening"]["status"]

    assert (status["total"], status["completed"], status["failed"]) == (3, 2, 1)
    assert "scheduling" not in interlock("slots", "bed")
    assert slots_of(client, "a") == ["machine/0", "machine/1", "machine/2"]
    assert slots_of(client, "b") == ["machine/0", "machine/1"]
    assert slots_of(client, "c") == ["machine/2"]
    assert "exit code 1" in interlock("describe", "scheduling/evening")


def test_plans_wait_for_each_other_by_name_and_go_on_when_one_is_deleted(
    interlock: Program, server: Server
) -> None:
    client = Client(server.url)
    define(interlock, {"a": HOLDS, "b": "true"}, one="queueBased: [a, a, a, a, b]")
    plans_are(client, one="Submitting")
    define(
        interlock,
        {},
        two="slotBased: {jobs: [{name: b, positions: [3]}, {name: a, slotIds: [machine/0]}]}",
    )
    waits = plans_are(client, two="Acquiring")["two"]["status"]["waits"]
    assert {wait["heldBy"] for wait in waits} == {"scheduling/one"}

    interlock("delete", "scheduling", "one")
    client.phase("b", "Succeeded")
    job = client.phase("a", "Running")

    assert slots_of(client, "b") == ["machine/3"]
    assert job["status"]["admission"]["slots"]["ids"] == ["machine/0"]
    assert job["status"]["admission"]["evictions"] == 1
    (interlock.folder / "go").touch()
    plans_are(client, two="Completed")


def test_a_plan_goes_on_where_it_was_after_the_server_was_killed(
    interlock: Program, server: Server
) -> None:
    client = Client(server.url)
    define(interlock, {"a": HOLDS, "b": "true"}, one="queueBased: [a, a, a, b, b]")
    plans_are(client, one="Submitting")
    before = client.job("a")["status"]["execution"]["active"]

    server.kill()
    (interlock.folder / "go").touch()
    server.start()

    # It listens elsewhere since.
    client = Client(server.url)
    plans_are(client, one="Completed")
    assert [one["attempt"] for one in before] == [0]
    assert slots_of(client, "b") == ["machine/0", "machine/1"]


def test_what_may_not_change_of_a_plan_is_refused_with_its_path(interlock: Program) -> None:
    define(interlock, {"a": HOLDS}, one="queueBased: [a, x]")
    (interlock.folder / "plans.yaml").write_text(PLAN.format("one", "queueBased: [x, a]"))

    interlock("apply", "-f", "plans.yaml", code=2)

    assert "spec.queueBased" in interlock.errors
