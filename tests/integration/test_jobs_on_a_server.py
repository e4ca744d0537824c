"""Jobs the whole way: a real server, a real keeper, real processes, real signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.testing.clients import Client, Object, phase_of
from interlock.testing.keepers import kill_keeper
from interlock.testing.serving import Server

ENDS = ("Succeeded", "Failed", "Killed", "Refused", "FinishedUnknown")


class Gate:
    """Holds processes back until it is opened: they read from a pipe that nobody writes to."""

    def __init__(self, directory: Path, name: str = "gate") -> None:
        self.path = directory / name
        os.mkfifo(self.path)

    def open(self) -> None:
        """Let everyone go who waits, or comes to wait from now on."""
        # A writer that stays would keep readers waiting: write so much that each gets a line.
        self._held = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        os.write(self._held, b"\n" * 1000)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", "--queue-tasks", "1000", cwd=tmp_path) as running:
        yield running


def shell(script: str, *arguments: object) -> dict[str, list[str]]:
    return {"command": ["sh", "-c", script, "sh", *map(str, arguments)]}


def waits_at(gate: Gate) -> dict[str, list[str]]:
    return shell('echo started; read line < "$1"', gate.path)


def test_killing_the_server_neither_kills_nor_doubles_nor_loses_a_task(
    server: Server, tmp_path: Path
) -> None:
    """Half of the tasks end while the server is down, half after it is back."""
    count = 200
    early, late = Gate(tmp_path, "early"), Gate(tmp_path, "late")
    marks = tmp_path / "marks"
    marks.mkdir()
    script = 'echo ran >> "$2/$INTERLOCK_JOB"; read line < "$1"; exit "$3"'
    client = Client(server.url)
    for i in range(count):
        gate = early if i % 2 else late
        client.create(f"job-{i}", process=shell(script, gate.path, marks, i % 7))
    client.wait(lambda jobs: [phase_of(job) for job in jobs.values()].count("Running") == count)

    server.kill()
    early.open()
    server.start()
    client = Client(server.url)
    client.wait(lambda jobs: all(phase_of(jobs[f"job-{i}"]) in ENDS for i in range(1, count, 2)))
    late.open()
    jobs = client.wait(lambda jobs: all(phase_of(job) in ENDS for job in jobs.values()))

    assert len(jobs) == count
    for i in range(count):
        (ended,) = jobs[f"job-{i}"]["status"]["execution"]["ended"]
        assert ended["exitCode"] == i % 7
        assert (marks / f"job-{i}").read_text() == "ran\n"


def test_a_server_that_was_paused_stays_the_only_one(server: Server, tmp_path: Path) -> None:
    """Nobody else gets at its data while it is paused, and it goes on as if nothing had been."""
    client = Client(server.url)
    marks, gate = tmp_path / "marks", Gate(tmp_path)
    script = 'echo ran >> "$2"; read line < "$1"; exit 3'
    client.create("once", process=shell(script, gate.path, marks))
    client.phase("once", "Running")

    server.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(AssertionError, match="is in use by process"):
            Server(server.data, cwd=tmp_path).start()
        gate.open()
    finally:
        server.process.send_signal(signal.SIGCONT)
    job = client.phase("once", *ENDS)

    (ended,) = job["status"]["execution"]["ended"]
    assert (ended["exitCode"], marks.read_text()) == (3, "ran\n")


def test_a_lock_is_handed_on_in_order_with_rising_tokens(server: Server, tmp_path: Path) -> None:
    client = Client(server.url)
    gate = Gate(tmp_path)
    client.create("first", process=waits_at(gate), locks=[{"key": "db"}])
    for name in ("second", "third"):
        client.create(name, process=shell("true"), locks=[{"key": "db"}])
    client.create("urgent", process=shell("true"), locks=[{"key": "db"}], priority=5)
    client.phase("first", "Running")
    status, why = client.ask("GET", "/jobs/default/second/why")
    gate.open()
    jobs = client.wait(lambda jobs: all(phase_of(job) in ENDS for job in jobs.values()))

    tokens = {name: _token(job) for name, job in jobs.items()}
    assert sorted(tokens, key=tokens.__getitem__) == ["first", "urgent", "second", "third"]
    assert status == 200
    assert why["waits"][0]["key"] == "db"


def test_forbid_is_refused_and_replace_takes_the_place(server: Server, tmp_path: Path) -> None:
    client = Client(server.url)
    client.create("holder", process=waits_at(Gate(tmp_path)), locks=[{"key": "db"}])
    client.phase("holder", "Running")
    forbid = [{"key": "db", "whenTaken": "Forbid"}]
    client.create("polite", process=shell("true"), locks=forbid)
    assert client.phase("polite", *ENDS)["status"]["admission"]["refusal"] == "LockForbidden"

    replace = [{"key": "db", "whenTaken": "Replace"}]
    client.create("newer", process=shell("true"), locks=replace)

    assert phase_of(client.phase("newer", *ENDS)) == "Succeeded"
    assert phase_of(client.job("holder")) == "Killed"


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(
    server: Server, tmp_path: Path
) -> None:
    client = Client(server.url)
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = 'trap "" TERM; echo > "$1"; while :; do read line < "$2"; done'
    process = shell(script, ready, Gate(tmp_path).path)
    client.create("stubborn", process=process, gracePeriod="1s")
    ready.read_bytes()
    client.patch("stubborn", {"spec": {"killAt": "2020-01-01T00:00:00Z"}})

    job = client.phase("stubborn", *ENDS)

    (ended,) = job["status"]["execution"]["ended"]
    assert (phase_of(job), ended["signal"]) == ("Killed", 9)


def test_a_deleted_job_goes_when_its_processes_are_gone_and_not_before(
    server: Server, tmp_path: Path
) -> None:
    client = Client(server.url)
    child = tmp_path / "child"
    os.mkfifo(child)
    # A child in a session of its own, which the shell does not wait for.
    script = 'setsid sh -c "echo \\$\\$ > $1; read line < $2" & read line < "$2"'
    process = shell(script, child, Gate(tmp_path).path)
    client.create("parent", process=process, locks=[{"key": "db"}])
    client.create("next", process=shell("true"), locks=[{"key": "db"}])
    pid = child.read_text().strip()

    client.delete("parent")
    client.wait(lambda jobs: "parent" not in jobs)

    assert not Path(f"/proc/{pid}").exists()
    assert phase_of(client.phase("next", *ENDS)) == "Succeeded"


def test_an_unknown_job_keeps_its_lock_until_a_person_releases_it(
    server: Server, tmp_path: Path
) -> None:
    client = Client(server.url)
    gate = Gate(tmp_path)
    client.create("lost", process=waits_at(gate), locks=[{"key": "db"}])
    client.create("next", process=shell("true"), locks=[{"key": "db"}])
    client.phase("lost", "Running")
    kill_keeper(server.data)
    gate.open()
    lost = client.phase("lost", "Unknown")
    assert lost["status"]["execution"]["active"][0]["message"]
    assert phase_of(client.job("next")) == "Queued"

    reason = "looked on the machine: it is gone"
    client.patch("lost", {"metadata": {"annotations": {"interlock.dev/release": reason}}})

    assert phase_of(client.phase("lost", *ENDS)) == "FinishedUnknown"
    assert phase_of(client.phase("next", *ENDS)) == "Succeeded"


def test_ten_thousand_tasks_stay_readable(server: Server) -> None:
    client = Client(server.url)
    client.create("wide", noop={}, parallelism={"count": 10_000})

    job = client.phase("wide", *ENDS)

    assert phase_of(job) == "Succeeded"
    assert job["status"]["execution"]["succeeded"] == "0-9999"


def _token(job: Object) -> int:
    (grant,) = job["status"]["admission"]["grants"]
    token: int = grant["token"]
    return token
