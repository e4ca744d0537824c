"""Workers on a real server: steps are done once, whatever becomes of worker or server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest
from msgspec.structs import replace
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from interlock.resources.steps import Elaboration, PythonSpec, Step, StepWork
from interlock.runtimes.workers.protocol import PATH, Ref, Wrote
from interlock.testing.clients import Client, Object, phase_of
from interlock.testing.serving import PATIENCE_S, Server
from support.scripted_worker import ScriptedWorker


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", cwd=tmp_path) as running:
        yield running


def python(name: str, **more: Any) -> Object:
    return {"name": name, "run": {"python": {"function": f"broker.{name}"}}, **more}


def step_states(job: Object) -> dict[str, str]:
    steps = job["status"]["execution"]["operation"]["steps"]
    return {step["name"]: step["state"] for step in steps}


def ends(client: Client, name: str) -> Object:
    return client.phase(name, "Succeeded", "Failed", "Killed")


def test_steps_are_done_by_a_worker_one_round_trip_each(server: Server) -> None:
    client = Client(server.url)
    steps = [
        python("reserve"),
        {
            "name": "configure",
            "run": {
                "python": {
                    "function": "broker.configure",
                    "args": {"gear": {"$result": "reserve"}, "size": "small"},
                }
            },
        },
    ]
    with ScriptedWorker(server.url, "broker.reserve", "broker.configure") as worker:
        client.create("create-shop", steps=steps, target={"path": "applications/shop"})

        first = worker.next_call()
        assert (first.function, first.step, first.job) == (
            "broker.reserve", "reserve", "create-shop",
        )  # fmt: skip
        assert list(first.fences) == ["target/applications/shop"]
        assert first.target == "applications/shop"
        worker.done(first, '"gear-17"')
        second = worker.next_call()
        # The answer to a recorded step carries the next one.
        assert worker.recorded == [first.ref]
        assert second.args == {"gear": "gear-17", "size": "small"}
        assert second.results == {"reserve": '"gear-17"'}
        worker.done(second)
        worker.until_recorded(second.ref)

        assert ends(client, "create-shop")["status"]["phase"] == "Succeeded"
        assert not worker.refused


def test_a_worker_turns_a_request_into_steps(server: Server) -> None:
    client = Client(server.url)
    with ScriptedWorker(server.url, "broker.create", "broker.reserve", queues=("slow",)) as worker:
        client.create("create-shop", python={"function": "broker.create", "queue": "slow"})

        request = worker.next_call()
        assert request.call.value == "elaborate"
        step = Step(name="reserve", run=StepWork(python=PythonSpec(function="broker.reserve")))
        made = Elaboration(steps=(step,), returns='{"$result": "reserve"}')
        worker.done(request, elaboration=made)
        call = worker.next_call()
        assert (call.step, call.call.value) == ("reserve", "run")
        worker.done(call, "[1, 2]")

        job = ends(client, "create-shop")
        assert job["status"]["phase"] == "Succeeded"
        assert job["status"]["execution"]["operation"]["result"] == "[1,2]"


def test_a_step_is_taken_up_again_when_its_worker_is_lost(server: Server) -> None:
    client = Client(server.url)
    with (
        ScriptedWorker(server.url, "broker.reserve") as first,
        ScriptedWorker(server.url, "broker.reserve") as second,
    ):
        client.create("create-shop", steps=[python("reserve")])
        # Whoever has it now is lost in the middle of it.
        lost, other = _who_has_it(client, first, second)
        call = lost.next_call()
        lost.vanish()

        again = other.next_call()
        assert (again.ref.task, again.ref.attempt) == (call.ref.task, call.ref.attempt + 1)
        late = ScriptedWorker(
            server.url,
            "broker.reserve",
            incarnation=lost.hello.incarnation,
            worker=lost.hello.worker,
            held=(call.ref,),
        )
        with late:
            late.done(call, '"too late"')
            assert f"worker {lost.hello.worker} was lost" in late.until_refused(call.ref)
            other.done(again, '"in time"')
            other.until_recorded(again.ref)
        job = ends(client, "create-shop")
        assert job["status"]["phase"] == "Succeeded"
        assert [one["result"] for one in job["status"]["execution"]["ended"]] == [
            "Interrupted", "Succeeded",
        ]  # fmt: skip


def _who_has_it(client: Client, *workers: ScriptedWorker) -> tuple[ScriptedWorker, ScriptedWorker]:
    """The worker that has the one attempt there is, and the other."""
    client.phase("create-shop", "Running")
    listed = client.ask("GET", "/workers")[1]["items"]
    (busy,) = [one["name"] for one in listed if one["atWork"]]
    first, second = workers
    return (first, second) if first.hello.worker == busy else (second, first)


def test_a_server_that_is_killed_records_a_held_result_once(server: Server) -> None:
    client = Client(server.url)
    worker = ScriptedWorker(server.url, "broker.reserve").enter()
    client.create("create-shop", steps=[python("reserve")])
    call = worker.next_call()
    client.phase("create-shop", "Running")

    server.kill()
    with pytest.raises(ConnectionClosed):
        worker.hear()
    server.start()
    client = Client(server.url)
    back = ScriptedWorker(server.url, "broker.reserve", incarnation=worker.hello.incarnation)
    back.hello = replace(back.hello, held=(call.ref,))
    with back:
        back.done(call, '"gear-17"')
        back.until_recorded(call.ref)

        job = ends(client, "create-shop")
        assert job["status"]["phase"] == "Succeeded"
        assert job["status"]["execution"]["attempts"] == 1
        assert not back.refused
        assert not back.calls


def test_what_waited_when_its_server_was_killed_is_handed_out_at_once(tmp_path: Path) -> None:
    """A lease is much longer than this test waits: nobody but the one that has it needs one."""
    with Server(tmp_path / "data", "--worker-lease", "1h", cwd=tmp_path) as server:
        client = Client(server.url)
        busy = ScriptedWorker(server.url, "broker.reserve").enter()
        client.create("has-one", steps=[python("reserve")])
        held = busy.next_call()
        client.create("no-room", steps=[python("reserve")])
        client.create("no-worker", steps=[python("start")])
        client.wait(lambda jobs: "is busy" in active_message(jobs, "no-room"))
        client.wait(lambda jobs: "no worker has" in active_message(jobs, "no-worker"))

        server.kill()
        server.start()
        client = Client(server.url)
        with ScriptedWorker(server.url, "broker.reserve", "broker.start") as worker:
            for _ in range(2):
                worker.done(worker.next_call())

            for name in ("no-room", "no-worker"):
                assert ends(client, name)["status"]["phase"] == "Succeeded"
            # The one that somebody may have is waited for.
            assert client.job("has-one")["status"]["phase"] == "Running"
            assert held.ref not in [call.ref for call in worker.calls]


def test_what_a_step_writes_is_in_its_log(server: Server) -> None:
    client = Client(server.url)
    with ScriptedWorker(server.url, "broker.reserve") as worker:
        client.create("create-shop", steps=[python("reserve"), python("other")])
        call = worker.next_call()
        worker.say(Wrote(ref=call.ref, text="looks for a gear\n"))
        worker.say(Wrote(ref=call.ref, text="found gear-17"))
        other = Ref(call.ref.job_uid, call.ref.task, call.ref.attempt + 7)
        worker.say(Wrote(ref=other, text="of an attempt that it does not have"))
        worker.done(call)
        worker.until_recorded(call.ref)

    path = "/jobs/default/create-shop/log"
    assert client.ask("GET", f"{path}?task=0") == (200, "looks for a gear\nfound gear-17\n")
    code, told = client.ask("GET", f"{path}?task=2")
    assert code == 404
    assert told["message"].startswith("step other of job/create-shop has not written anything")


def test_what_a_step_wrote_is_found_by_its_name_when_all_is_over(server: Server) -> None:
    """The steps of a request are pruned then: nothing but their names says which there were."""
    client = Client(server.url)
    functions = ("broker.create", "broker.reserve", "broker.dns")
    made = Elaboration(steps=tuple(map(a_call, ("reserve", "dns"))))
    with ScriptedWorker(server.url, *functions) as worker:
        client.create("create-shop", python={"function": "broker.create"})
        for elaboration in (made, None, None):
            call = worker.next_call()
            worker.say(Wrote(ref=call.ref, text=f"by {call.step or 'what makes the steps'}"))
            worker.done(call, elaboration=elaboration)
        assert ends(client, "create-shop")["status"]["phase"] == "Succeeded"

    assert logs_of(server, "create-shop", "--step", "reserve") == "by reserve\n"
    assert logs_of(server, "create-shop", "--step", "dns") == "by dns\n"
    assert logs_of(server, "create-shop", "--step", "elaborate") == "by what makes the steps\n"
    with pytest.raises(CalledProcessError) as refused:
        logs_of(server, "create-shop", "--step", "nothing")
    assert "its steps are reserve, dns" in refused.value.stderr
    _, told = client.ask("GET", "/jobs/default/create-shop/log?task=3")
    assert told["message"].startswith("undo of step dns of job/create-shop has not written")


def a_call(name: str) -> Step:
    return Step(name=name, run=StepWork(python=PythonSpec(function=f"broker.{name}")))


def logs_of(server: Server, name: str, *arguments: str) -> str:
    """What `interlock logs` prints."""
    start = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
    command = [sys.executable, "-c", start, "--server", server.url, "logs", name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout


def test_why_tells_that_no_worker_can_do_it(server: Server) -> None:
    client = Client(server.url)
    client.create("create-shop", steps=[python("reserve")])
    client.wait(lambda jobs: "no worker has loaded broker.reserve" in active_message(jobs))

    _, told = client.ask("GET", "/jobs/default/create-shop/why")
    assert "no worker has loaded broker.reserve" in str(told)
    with ScriptedWorker(server.url, "broker.reserve") as worker:
        worker.done(worker.next_call())
        assert ends(client, "create-shop")["status"]["phase"] == "Succeeded"


def test_an_operation_is_queued_until_a_worker_takes_it_up(server: Server) -> None:
    client = Client(server.url)
    client.create("create-shop", steps=[python("reserve")])
    jobs = client.wait(lambda jobs: "no worker has loaded" in active_message(jobs))
    assert state_of(jobs) == "queued"

    with ScriptedWorker(server.url, "broker.reserve") as worker:
        call = worker.next_call()
        client.wait(lambda jobs: state_of(jobs) == "executing")
        worker.done(call)
        client.wait(lambda jobs: state_of(jobs) == "complete")


def state_of(jobs: dict[str, Object]) -> str:
    operation: Object = jobs["create-shop"]["status"]["execution"]["operation"]
    # What is as it was at the beginning is left out.
    return str(operation.get("state", "queued"))


def active_message(jobs: dict[str, Object], name: str = "create-shop") -> str:
    active = jobs[name].get("status", {}).get("execution", {}).get("active", [])
    return " ".join(one.get("message", "") for one in active)


def test_a_step_that_is_stopped_is_cancelled_in_its_worker(server: Server) -> None:
    client = Client(server.url)
    with ScriptedWorker(server.url, "broker.reserve") as worker:
        client.create("create-shop", steps=[python("reserve", timeout="100ms")])
        call = worker.next_call()
        worker.until_cancelled(call.ref)
        worker.done(call, error="cancelled")

        job = ends(client, "create-shop")
    assert job["status"]["phase"] == "Failed"
    (end,) = job["status"]["execution"]["ended"]
    assert (end["result"], end["stopCause"]) == ("Killed", "TaskTimeout")


def test_a_result_that_is_too_long_fails_its_step_by_name(server: Server) -> None:
    client = Client(server.url)
    with ScriptedWorker(server.url, "broker.reserve") as worker:
        client.create("create-shop", steps=[python("reserve")])
        worker.done(worker.next_call(), f'"{"x" * 5000}"')

        job = ends(client, "create-shop")
    assert job["status"]["phase"] == "Failed"
    told = job["status"]["execution"]["operation"]["error"]
    assert "reserve returned 5002 bytes of JSON, and at most 4096 are kept" in told


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param("{", "a message cannot be understood", id="no JSON"),
        pytest.param('{"say": "sing"}', "a message cannot be understood", id="an unknown word"),
        pytest.param('{"say": "drain"}', "expected a hello first", id="no hello"),
        pytest.param(
            '{"say": "hello", "protocol": 9, "worker": "w", "incarnation": "i", "app": "a:a",'
            ' "functions": []}',
            "protocol 9 is spoken by the worker, 1 by this server",
            id="another protocol",
        ),
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_reason(
    server: Server, said: str, reason: str
) -> None:
    worker = ScriptedWorker(server.url)
    with connect(server.url.replace("http", "ws", 1) + PATH, open_timeout=PATIENCE_S) as socket:
        socket.send(said)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=PATIENCE_S)
    assert closed.value.rcvd is not None
    assert reason in closed.value.rcvd.reason
    with worker:
        # The server serves on.
        worker.hear()
        assert worker.welcome is not None


def test_a_bad_message_ends_one_connection_and_its_step_is_taken_up_again(server: Server) -> None:
    client = Client(server.url)
    with ScriptedWorker(server.url, "broker.reserve") as bad:
        client.create("create-shop", steps=[python("reserve")])
        bad.next_call()
        bad.socket.send('{"say": "done", "items": 3}')
        with ScriptedWorker(server.url, "broker.reserve") as good:
            again = good.next_call()
            assert again.ref.attempt == 1
            good.done(again)
            assert ends(client, "create-shop")["status"]["phase"] == "Succeeded"


def test_workers_are_counted_and_listed(server: Server) -> None:
    client = Client(server.url)
    with ScriptedWorker(
        server.url, "broker.reserve", worker="host/7", queues=("slow",), concurrency=4
    ) as worker:
        worker.hear()
        (told,) = client.ask("GET", "/workers")[1]["items"]
        text = client.ask("GET", "/metrics")[1]

    assert told.pop("since")
    assert told == {
        "name": "host/7",
        "app": "broker:app",
        "queues": ["slow"],
        "concurrency": 4,
        "atWork": 0,
        "draining": False,
    }
    assert "interlock_workers_connected 1.0" in text
    assert "interlock_worker_room 4.0" in text


def test_a_server_that_stops_leaves_attempts_to_their_workers(server: Server) -> None:
    """It is not the worker that was lost: the result is recorded by the next server."""
    client = Client(server.url)
    with ScriptedWorker(server.url, "broker.reserve") as worker:
        client.create("create-shop", steps=[python("reserve")])
        call = worker.next_call()
        client.phase("create-shop", "Running")
        assert server.stop() == 0
        with pytest.raises(ConnectionClosed):
            worker.hear()
    server.start()
    client = Client(server.url)
    back = ScriptedWorker(
        server.url, "broker.reserve", incarnation=worker.hello.incarnation, held=(call.ref,)
    )
    with back:
        back.done(call, '"gear-17"')
        back.until_recorded(call.ref)
        job = ends(client, "create-shop")
    assert job["status"]["execution"]["attempts"] == 1
    assert job["status"]["phase"] == "Succeeded"


def test_a_worker_that_does_not_read_holds_up_nobody(server: Server) -> None:
    """Its socket is full, and its steps are cut off when it goes; others are served meanwhile."""
    client = Client(server.url)
    args = {f"text-{n}": "x" * 100_000 for n in range(5)}
    big = {"python": {"function": "broker.big", "args": args}}
    with ScriptedWorker(server.url, "broker.big", concurrency=100) as deaf:
        for n in range(20):
            client.create(f"big-{n}", steps=[{"name": "big", "run": big}])
        with ScriptedWorker(server.url, "broker.reserve") as worker:
            client.create("create-shop", steps=[python("reserve")])
            worker.done(worker.next_call())
            assert ends(client, "create-shop")["status"]["phase"] == "Succeeded"
        deaf.vanish()
        with ScriptedWorker(server.url, "broker.big", concurrency=100) as other:
            for _ in range(20):
                other.done(other.next_call())
            client.wait(
                lambda jobs: all(phase_of(jobs[f"big-{n}"]) == "Succeeded" for n in range(20))
            )
