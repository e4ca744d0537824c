"""Real workers on a real server: killed, stopped and ended in the middle of steps."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import broker_app
import pytest

from interlock.testing.clients import Client, Object
from interlock.testing.serving import PATIENCE_S, Server
from support.worker_program import Pipe, WorkerProgram

_JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
_START = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"


class Place:
    """A directory with the application, a server, and pipes on which steps and tests meet."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self.server = server
        self.client = Client(server.url)
        self.here, self.go = Pipe(folder / "here"), Pipe(folder / "go")

    def submit(self, manifest: dict[str, Any], name: str) -> str:
        manifest = {**manifest, "metadata": {"name": name}}
        status, body = self.client.ask("POST", _JOBS, manifest)
        assert status == 201, body
        return name

    def ends(self, name: str) -> Object:
        return self.client.phase(name, "Succeeded", "Failed", "Killed", "Stuck")

    def result(self, name: str) -> Any:
        job = self.ends(name)
        assert job["status"]["phase"] == "Succeeded", job["status"]
        return json.loads(job["status"]["execution"]["operation"]["result"])

    @property
    def notes(self) -> list[str]:
        return (self.folder / "notes").read_text().splitlines()

    def worker(self, *arguments: str, connects: bool = True) -> WorkerProgram:
        env = os.environ | {"INTERLOCK_DATA": str(self.server.data)}
        words = ["broker_app:app", *arguments]
        return WorkerProgram(words, cwd=self.folder, env=env, connects=connects)

    def interlock(self, *words: str) -> str:
        command = [sys.executable, "-c", _START, "--server", self.server.url, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        return done.stdout


def a_place(tmp_path: Path, *server: str) -> Iterator[Place]:
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(Path(broker_app.__file__), folder)
    with Server(tmp_path / "data", *server, cwd=folder) as running:
        place = Place(folder, running)
        yield place
        place.here.close()
        place.go.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield from a_place(tmp_path)


@pytest.fixture
def short_leases(tmp_path: Path) -> Iterator[Place]:
    yield from a_place(tmp_path, "--worker-lease", "2s")


def create(application: str) -> dict[str, Any]:
    return broker_app.app.request(broker_app.create_application, application)


def meeting() -> dict[str, Any]:
    return broker_app.app.request(broker_app.hold_meeting, "here")


def test_an_operation_is_done(place: Place) -> None:
    with place.worker() as worker:
        assert "7 operations, 8 steps loaded from broker_app:app" in worker.said
        name = place.submit(create("shop"), "create-shop")
        gear = {"id": "gear-17", "size": "small"}
        assert place.result(name) == {"name": "shop.example", "gear": gear}
        assert place.notes == ["reserve", "dns gear-17"]
        said = worker.until_said("RuntimeError: no room yet")
        assert "step reserve_gear of job create-shop failed" in said
        worker.process.send_signal(signal.SIGTERM)
        assert worker.wait() == 0
    # What an attempt wrote is with that attempt: the error of the first one too.
    log = place.interlock("logs", name, "--task", "0", "--attempt", "1")
    assert "attempt 1 of reserve_gear" in log
    assert "RuntimeError: no room yet" in log


def test_what_was_done_is_undone(place: Place) -> None:
    with place.worker():
        job = place.ends(place.submit(create("bad"), "create-bad"))
    assert job["status"]["phase"] == "Failed"
    assert "ValueError: SERVFAIL" in job["status"]["execution"]["operation"]["error"]
    assert place.notes == ["reserve", "release Gear(id='gear-17', size='small') small"]


def test_a_step_whose_worker_is_killed_is_taken_up_by_another(place: Place) -> None:
    with place.worker("--processes", "2") as worker:
        name = place.submit(meeting(), "meeting")
        killed = int(place.here.read())
        os.kill(killed, signal.SIGKILL)
        again = int(place.here.read())
        place.go.let_go()
        met, _ = place.result(name)
        worker.until_said("a worker process was ended by signal 9")
    assert met == again != killed
    # It was undone first, as it demands before it is run again.
    assert place.notes == ["meet", "part None", "meet"]


def test_who_is_beside_a_step_that_kills_its_worker_does_not_pay(place: Place) -> None:
    """The meeting may not be cut off at all, as far as that counts."""
    patient = meeting()
    patient["spec"]["maxInterruptions"] = 0
    bad = broker_app.app.request(broker_app.tear_down, "cellar")
    with place.worker("--concurrency", "2"):
        name = place.submit(patient, "meeting")
        place.here.read()
        killer = place.submit(bad, "tear-down")
        place.here.read()
        place.go.let_go()
        place.result(name)
        job = place.ends(killer)
    assert job["status"]["phase"] == "Failed"
    # Once beside the meeting, which counts for nobody, and twice alone.
    assert place.notes.count("crash") == 3
    assert place.notes.count("meet") == 2


def test_a_function_that_ignores_its_timeout_does_not_keep_its_place(place: Place) -> None:
    asleep = broker_app.app.request(broker_app.sleep, "here")
    asleep["spec"]["gracePeriod"] = "100ms"
    other = broker_app.app.request(broker_app.tell_pid, "me")
    with place.worker("--concurrency", "1") as worker:
        name = place.submit(asleep, "asleep")
        pid = int(place.here.read())
        job = place.ends(name)
        (end,) = [one for one in job["status"]["execution"]["ended"] if one["index"] == 0]
        assert (end["result"], end["stopCause"]) == ("Killed", "TaskTimeout")
        # There is room for one, and that is taken as long as the process lives.
        assert place.result(place.submit(other, "other")) != pid
        worker.until_said("step sleepwalk of job asleep goes on although it counts for nothing")
        worker.process.send_signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert place.notes.count("sleepwalk") == 1
    assert (
        place.client.job(name)["status"]["execution"]["ended"]
        == job["status"]["execution"]["ended"]
    )


def test_a_worker_that_was_stopped_past_its_lease_records_nothing(short_leases: Place) -> None:
    place = short_leases
    with place.worker() as stopped:
        name = place.submit(meeting(), "meeting")
        pid = int(place.here.read())
        os.kill(pid, signal.SIGSTOP)
        with place.worker():
            # The lease ends, and the step is begun by whoever is awake.
            assert int(place.here.read()) != pid
            os.kill(pid, signal.SIGCONT)
            stopped.until_said("step meet of job meeting does not count")
            # For the one that was stopped too, and for any that a busy machine interrupts.
            place.go.let_go(1000)
            met, _ = place.result(name)
    assert met != pid


def test_a_worker_that_is_to_end_finishes_what_it_runs_and_no_more(place: Place) -> None:
    with place.worker() as worker:
        first = place.submit(meeting(), "first")
        pid = int(place.here.read())
        worker.process.send_signal(signal.SIGTERM)
        worker.until_said("ends once this has: step meet of job first")
        second = place.submit(create("shop"), "second")
        place.go.let_go()
        assert worker.wait() == 0
    assert place.client.job(second)["status"]["phase"] != "Succeeded"
    with place.worker():
        # The step that ran was recorded, and is not run again; the next ones go elsewhere.
        met, other = place.result(first)
        assert (met, other != pid) == (pid, True)
        place.result(second)
    assert place.notes.count("meet") == 1


def test_a_worker_that_is_told_twice_cuts_off_what_it_runs(place: Place) -> None:
    with place.worker() as worker:
        place.submit(meeting(), "first")
        place.here.read()
        worker.process.send_signal(signal.SIGTERM)
        worker.until_said("ends once this has")
        worker.process.send_signal(signal.SIGTERM)
        worker.until_said("step meet of job first is cut off: it did not end in time")
        assert worker.wait() == 1


def test_a_worker_goes_on_when_nobody_reads_what_it_says(place: Place) -> None:
    with place.worker() as worker:
        worker.stop_reading()
        # It has much to say: the first attempt fails.
        assert place.result(place.submit(create("shop"), "create-shop"))["name"] == "shop.example"
        assert place.ends(place.submit(create("bad"), "bad"))["status"]["phase"] == "Failed"
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("operation", ["call_in", "visit"])
def test_a_worker_ends_beside_an_operation_that_does_not_go_on(
    place: Place, operation: str
) -> None:
    """What it did is recorded; nobody is to wait until a person comes, or the time of a retry."""
    manifest = broker_app.app.request(getattr(broker_app, operation), "hall")
    with place.worker() as worker:
        name = place.submit(manifest, "held")
        place.client.phase(name, "Stuck", "RetryBackoff")
        worker.process.send_signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_a_process_is_replaced_after_so_many_jobs(place: Place) -> None:
    with place.worker("--max-jobs", "1"):
        pids = [
            place.result(
                place.submit(broker_app.app.request(broker_app.tell_pid, "x"), f"tell-{n}")
            )
            for n in range(3)
        ]
    assert len(set(pids)) == 3


def test_a_step_goes_on_while_the_server_is_killed(place: Place) -> None:
    with place.worker() as worker:
        name = place.submit(meeting(), "meeting")
        pid = int(place.here.read())
        place.server.kill()
        worker.until_said("it is tried again")
        # It has another address now: the worker finds it as it found it first.
        place.server.start()
        place.client = Client(place.server.url)
        worker.until_said("again\n")
        place.go.let_go()
        met, _ = place.result(name)
    assert met == pid
    assert place.notes == ["meet"]


def test_a_worker_without_a_server_waits_for_one_and_ends_when_told(place: Place) -> None:
    place.server.kill()
    with place.worker(connects=False) as worker:
        worker.until_said("it is tried again")
        worker.process.send_signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_an_application_that_cannot_be_loaded_ends_the_worker(place: Place) -> None:
    (place.folder / "broker_app.py").write_text("import nowhere\n")
    with place.worker("--processes", "2", connects=False) as worker:
        assert worker.wait() == 2
    assert "broker_app:app cannot be loaded: ModuleNotFoundError" in worker.said
    assert "broker_app.py, line 1" in worker.said
    assert "the next one begins" not in worker.said


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (403, 6, "does not let this worker in (HTTP 403)"),
        (401, 6, "give the token of a worker with --token-file"),
        (404, 2, "serves no workers (HTTP 404)"),
    ],
)
def test_a_worker_that_is_not_let_in_from_the_first_ends(
    tmp_path: Path, status: int, code: int, told: str
) -> None:
    class Refusing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_error(status)

        def log_message(self, format: str, *args: Any) -> None: ...

    shutil.copy(Path(broker_app.__file__), tmp_path)
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        words = ["broker_app:app", "--server", f"http://127.0.0.1:{server.server_port}"]
        try:
            with WorkerProgram(words, cwd=tmp_path, env=os.environ, connects=False) as worker:
                assert worker.wait() == code
        finally:
            server.shutdown()
            thread.join()
    assert told in worker.said


def test_a_worker_speaks_https(tmp_path: Path) -> None:
    certificate = Path(__file__).parents[1] / "api" / "certificate"
    tls = (
        "--tls-cert",
        str(certificate / "localhost.crt"),
        "--tls-key",
        str(certificate / "localhost.key"),
    )
    for place in a_place(tmp_path, *tls):
        with place.worker() as worker:
            assert f"·  {place.server.url}  ·" in worker.said
            assert place.server.url.startswith("https://")
