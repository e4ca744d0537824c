"""Who asks, as the door found out, is what is recorded; and marks that mean nothing are refused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.api.callers import trusted
from interlock.api.requests import Request
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.metadata import Key
from interlock.resources.tasks import ExecutionStatus, TaskState, TaskStatus
from interlock.store.memory import MemoryJournal
from interlock.testing.asking import JOB, JOBS, Asker, Reply, asking
from interlock.testing.builders import T0

MERGE = {"content-type": "application/merge-patch+json"}
CONTROLLED = JOBS.replace("/jobs", "/controlledjobs")
ENGINE: dict[str, Any] = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "ControlledJob",
    "metadata": {"name": "engine"},
    "spec": {"jobTemplate": {"spec": {"process": {"command": ["true"]}}}},
}


class NamingGuard:
    """A guard that has found out who asks."""

    def __init__(self, person: str) -> None:
        self.person = person

    async def admit(self, request: Request) -> None:
        request.caller = trusted(self.person)


class Desk:
    """A server behind such a guard."""

    def __init__(self, person: str = "alice") -> None:
        self.guard = NamingGuard(person)
        self.journal = MemoryJournal()
        self.asker = Asker(security=self.guard, journal=self.journal)
        self._ask = asking(self.asker)

    def ask(self, method: str, path: str, body: Any = None) -> Reply:
        headers = MERGE if method == "PATCH" else {}
        return self._ask(method, path, body, headers)

    def notes(self, path: str = f"{JOBS}/hello") -> dict[str, str]:
        """Our annotations on a resource, by the ends of their names."""
        held = self.ask("GET", path).json["metadata"].get("annotations", {})
        return {name.removeprefix("interlock.dev/"): text for name, text in held.items()}

    def patch(self, notes: dict[str, str | None], **spec: Any) -> Reply:
        annotations = {f"interlock.dev/{name}": text for name, text in notes.items()}
        change = {"metadata": {"annotations": annotations}, "spec": spec}
        return self.ask("PATCH", f"{JOBS}/hello", change)

    def deletions(self) -> list[tuple[str, str]]:
        """Who deleted what, as the journal has it, newest first."""
        entries = [entry for _, entry in run_now(self.journal.read())]
        return [(f"{entry.kind} {entry.name}", entry.reason) for entry in entries]

    def lose(self) -> None:
        """Have the Job become Unknown."""
        store = self.asker.store
        job = run_now(store.get(Key("Job", "default", "hello")))
        assert isinstance(job, Job)
        task = TaskStatus(
            name="hello-0-0", index=0, attempt=0, state=TaskState.UNKNOWN, created_at=T0
        )
        status = JobStatus(
            phase=JobPhase.UNKNOWN,
            admission=AdmissionStatus(phase=AdmissionPhase.ADMITTED),
            execution=ExecutionStatus(total=1, started_at=T0, active=(task,)),
        )
        run_now(store.update_status(replace(job, status=status)))


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    assert made.ask("POST", JOBS, JOB).status == 201
    return made


def test_the_creator_is_whoever_asked() -> None:
    desk = Desk()
    claims = {"name": "hello", "annotations": {"interlock.dev/creator": "bob"}}
    desk.ask("POST", JOBS, {**JOB, "metadata": claims})

    assert desk.notes() == {"creator": "alice"}
    assert desk.patch({"creator": "bob"}).status == 422
    put = desk.ask("PUT", f"{JOBS}/hello", JOB)
    assert put.header("warning") == '299 - "the mark interlock.dev/creator stays"'
    assert desk.notes() == {"creator": "alice"}


def test_no_client_is_believed_where_nobody_is_proven() -> None:
    desk = Desk(person="")
    claims = {"name": "hello", "annotations": {"interlock.dev/creator": "bob"}}
    desk.ask("POST", JOBS, {**JOB, "metadata": claims})
    desk.patch(
        {"stopped-because": "stopped by bob: he asked", "stopped-by": "bob"},
        killAt="2026-01-05T12:00:00Z",
    )

    assert desk.notes() == {"stopped-because": "stopped: he asked"}
    assert history(desk) == ["stopped by somebody whom the server does not know"]


def test_whoever_stops_suspends_and_resumes_is_recorded(desk: Desk) -> None:
    desk.guard.person = "carol"
    desk.patch({}, suspend=True, suspendReason="month end")
    assert desk.notes() == {"creator": "alice", "suspended-by": "carol"}
    desk.guard.person = "dave"
    desk.patch({}, suspend=None, suspendReason=None)
    assert desk.notes() == {"creator": "alice"}
    desk.patch({"stopped-because": "stopped by bob"}, killAt="2026-01-05T12:00:00Z")
    assert desk.notes() == {
        "creator": "alice",
        "stopped-because": "stopped",
        "stopped-by": "dave",
    }


def test_exceptions_are_in_the_name_of_whoever_asked() -> None:
    desk = Desk()
    desk.ask("POST", CONTROLLED, ENGINE)
    hold = {"action": "Hold", "from": "2026-01-05T12:00:00Z", "until": "2026-01-06T12:00:00Z"}
    path = f"{CONTROLLED}/engine"
    desk.ask("PATCH", path, {"spec": {"overrides": [{**hold, "by": "bob"}]}})
    desk.guard.person = "carol"
    later = {**hold, "until": "2026-01-07T12:00:00Z", "by": "alice"}
    desk.ask("PATCH", path, {"spec": {"overrides": [{**hold, "by": "bob"}, later]}})

    overrides = desk.ask("GET", path).json["spec"]["overrides"]
    assert [one["by"] for one in overrides] == ["alice", "carol"]


def test_a_release_is_taken_for_what_is_unknown_now_and_in_the_name_of_whoever_gave_it(
    desk: Desk,
) -> None:
    early = desk.patch({"release": "I was in a hurry"})
    assert (early.status, early.json["details"]["causes"][0]["field"]) == (
        422,
        'metadata.annotations["interlock.dev/release"]',
    )
    desk.lose()
    assert desk.patch({"release": "looked", "released-attempts": "3-0"}).status == 422
    assert desk.patch({"release": "looked"}).status == 200
    assert desk.notes() == {
        "creator": "alice",
        "release": "looked",
        "released-attempts": "0-0",
        "released-by": "alice",
    }


def test_whoever_deletes_leaves_a_name(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.ask("POST", CONTROLLED, ENGINE)
    desk.guard.person = "carol"
    with caplog.at_level("INFO", logger="interlock.loop"):
        desk.ask("DELETE", f"{JOBS}/hello?dryRun=All")
        desk.ask("DELETE", f"{JOBS}/nobody")
        assert desk.deletions() == []
        desk.ask("DELETE", f"{JOBS}/hello")
        desk.guard.person = ""
        desk.ask("DELETE", CONTROLLED)

    assert desk.deletions() == [
        (
            "ControlledJob engine",
            "deleted by somebody whom the server does not know (created by alice)",
        ),
        ("Job hello", "deleted by carol (created by alice)"),
    ]
    assert any("deleted by carol" in message for message in caplog.messages)


def test_marks_that_nobody_knows_are_refused(desk: Desk) -> None:
    assert desk.patch({"colour": "red"}).status == 422
    strange = {"name": "other", "labels": {"interlock.dev/team": "ops"}}
    refused = desk.ask("POST", JOBS, {**JOB, "metadata": strange})
    assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (
        422,
        'metadata.labels["interlock.dev/team"]',
    )


def history(desk: Desk, name: str = "hello", kind: str = "Job") -> list[str]:
    """What people did to a resource, oldest first."""
    rows = run_now(desk.journal.read(Key(kind, "default", name)))
    return [entry.reason for _, entry in reversed(rows) if entry.room == "api"]


def test_what_people_do_is_in_the_history_with_their_names(desk: Desk) -> None:
    desk.patch({}, suspend=True, suspendReason="month end")
    desk.guard.person = "carol"
    desk.patch({"suspended-by": "mallory"}, suspend=True)
    desk.patch({}, suspend=None, suspendReason=None)
    desk.patch({}, suspend=None)
    desk.patch({}, priority=3)
    desk.patch({"stopped-by": "mallory"}, killAt="2026-01-05T12:00:00Z")
    desk.patch({}, gracePeriod="0s")
    desk.guard.person = "dave"
    desk.ask("DELETE", f"{JOBS}/hello?dryRun=All")
    desk.ask("DELETE", f"{JOBS}/hello")

    assert history(desk) == [
        "suspended by alice: month end",
        "changed by carol",
        "resumed by carol",
        "changed by carol",
        "stopped by carol",
        "given 0s to stop by carol",
        "deleted by dave (created by alice)",
    ]


def test_a_release_is_in_the_history(desk: Desk) -> None:
    desk.lose()
    desk.patch({"release": "looked", "released-by": "mallory"})

    assert history(desk) == ["released by alice: looked"]


def test_deleting_many_is_in_the_history_of_each(desk: Desk) -> None:
    desk.ask("DELETE", JOBS)

    assert history(desk) == ["deleted by alice (created by alice)"]


def test_exceptions_are_in_the_history() -> None:
    desk = Desk()
    desk.ask("POST", CONTROLLED, ENGINE)
    hold = {"action": "Hold", "from": "2026-01-05T12:00:00Z", "until": "2026-01-05T13:00:00Z"}
    change = {"spec": {"overrides": [{**hold, "by": "mallory", "reason": "audit"}]}}
    desk.ask("PATCH", f"{CONTROLLED}/engine", change)
    desk.ask("PATCH", f"{CONTROLLED}/engine", {"spec": {"overrides": None}})

    what = "Hold 2026-01-05T12:00:00Z to 2026-01-05T13:00:00Z"
    assert history(desk, "engine", "ControlledJob") == [
        f"{what} asked for by alice: audit",
        f"{what} taken back by alice",
    ]


def test_where_nobody_knows_who_asks_that_is_said() -> None:
    desk = Desk(person="")
    desk.ask("POST", JOBS, JOB)
    desk.patch({"stopped-by": "bob"}, killAt="2026-01-05T12:00:00Z")
    desk.ask("DELETE", f"{JOBS}/hello")

    assert history(desk) == [
        "stopped by somebody whom the server does not know",
        "deleted by somebody whom the server does not know",
    ]
