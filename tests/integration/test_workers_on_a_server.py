"""Workers on a real server: steps are done once, whatever becomes of worker or server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from websockets.exceptions import ConnectionClosed

from interlock.resources.steps import Elaboration, PythonSpec, Step, StepWork
from interlock.testing.clients import Client, Object
from interlock.testing.serving import Server
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
