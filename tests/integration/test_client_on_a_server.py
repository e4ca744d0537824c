"""The Python clients on a real server: with threads, with an event loop, and as on a cluster."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.sdk.async_client import AsyncClient
from interlock.sdk.client import Client
from interlock.sdk.errors import (
    BadInput,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    OperationFailed,
    OperationStuck,
    Refused,
    StillRunning,
    TooManyPending,
    Unreachable,
)
from interlock.sdk.handle import AsyncHandle
from interlock.testing.serving import PATIENCE_S, Server
from support.kube.ports import Ports


def process(*command: str) -> dict[str, Any]:
    return {"process": {"command": list(command)}}


def failing(message: str = "no such zone") -> dict[str, Any]:
    return process("sh", "-c", f"echo {message}; exit 1")


def an_operation(*steps: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"steps": list(steps), **spec}}


def a_step(name: str, run: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "run": run, **more}


GOOD = an_operation(a_step("reserve", process("echo", "reserved")))
BAD = an_operation(
    a_step("reserve", process("true"), undo=process("echo", "given back")),
    a_step("dns", failing()),
)
FOR_EVER = {"spec": process("sleep", "600")}


class Blocking:
    """A client with an event loop, or a handle of it, used as the one with threads is."""

    def __init__(self, thing: Any, runner: asyncio.Runner) -> None:
        self._thing = thing
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        if not callable(found):
            return found

        def call(*args: Any, **named: Any) -> Any:
            plain = [one._thing if isinstance(one, Blocking) else one for one in args]
            return self._settled(found(*plain, **named))

        return call

    def _settled(self, result: Any) -> Any:
        if inspect.isasyncgen(result):
            return self._iterated(result)
        if inspect.isawaitable(result):
            return self._wrapped(self._wait(result))
        return self._wrapped(result)

    def _wait(self, result: Any) -> Any:
        async def awaited() -> Any:
            return await result

        return self._runner.run(awaited())

    def _iterated(self, result: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    one = self._wait(anext(result))
                except StopAsyncIteration:
                    return
                yield one
        finally:
            self._wait(result.aclose())

    def _wrapped(self, result: Any) -> Any:
        if isinstance(result, list):
            return [self._wrapped(one) for one in result]
        return Blocking(result, self._runner) if isinstance(result, AsyncHandle) else result


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("client") / "data") as running:
        yield running


@pytest.fixture(scope="module", params=["threads", "event loop", "as on a cluster"])
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[Any]:
    if request.param == "event loop":
        with asyncio.Runner() as runner:
            wrapped = Blocking(AsyncClient(server.url), runner)
            yield wrapped
            wrapped.close()
        return
    with Client(server.url) as made:
        if request.param == "as on a cluster":
            # Nothing is asked then but what any API server of Kubernetes answers.
            made.site.has_status_api = False
            made.site.on_cluster = True
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest, client: Any) -> str:
    """A name that no other test uses."""
    return f"t-{sha256(request.node.name.encode()).hexdigest()[:12]}"


def test_an_operation_is_submitted_waited_for_and_read(client: Any) -> None:
    handle = client.submit({**GOOD, "spec": {**GOOD["spec"], "title": "Reserve"}})
    assert handle.state == "queued"

    record = handle.wait(PATIENCE_S)

    assert (record.state, record.completion_state) == ("complete", "success")
    assert (record.title, record.percentage_complete) == ("Reserve", 100.0)
    assert handle.result() is None
    assert handle.refresh() == handle.status == record
    assert client.job(handle.id).name == handle.name
    assert client.job(handle.name).id == handle.id


def test_what_its_steps_print_is_read(server: Server, client: Any) -> None:
    if client.site.on_cluster:
        pytest.skip("the logs of a cluster are those of pods")
    handle = client.submit(BAD)
    handle.wait(PATIENCE_S)

    assert list(handle.logs(step="dns")) == ["no such zone"]
    assert list(handle.logs(step="reserve", undo=True)) == ["given back"]
    with pytest.raises(BadInput, match=r"no step 'nds': its steps are reserve, dns"):
        list(handle.logs(step="nds"))


def test_a_failed_operation_raises_with_its_last_error(client: Any) -> None:
    handle = client.submit(BAD)

    with pytest.raises(OperationFailed, match="dns: failed with exit code 1") as caught:
        handle.result(PATIENCE_S)
    assert caught.value.completion_state == "failed"
    assert caught.value.record.is_over


def test_a_stuck_operation_is_told_and_decided(client: Any) -> None:
    stuck = an_operation(a_step("mail", failing(), irreversible=True))
    handle = client.submit(stuck)

    with pytest.raises(OperationStuck, match="mail") as caught:
        handle.wait(PATIENCE_S)
    assert caught.value.record.is_stuck
    assert [step.name for step in handle.steps()] == ["mail"]

    with pytest.raises(BadInput, match="outcome: expected succeeded or failed"):
        client.resolve(handle.name, reason="sent by hand", outcome="done")
    client.resolve(handle.name, reason="sent by hand", outcome="succeeded")
    assert handle.wait(PATIENCE_S).completion_state == "success"


def test_a_key_makes_one_job(client: Any, name: str) -> None:
    first = client.submit(GOOD, idempotency_key=name)
    second = client.submit(GOOD, idempotency_key=name)

    assert first.id == second.id


def test_the_request_of_an_application_is_submitted(client: Any) -> None:
    """It says how a name may begin; the key of the submission makes the name."""
    request = {**GOOD, "metadata": {"generateName": "create-shop-"}}

    first, second = (client.submit(request, idempotency_key=key) for key in ("one", None))
    (third,) = client.submit_many([request], idempotency_key="many")

    assert len({first.id, second.id, third.id}) == 3
    assert client.submit(request, idempotency_key="one").id == first.id


def test_a_name_is_taken_once(client: Any, name: str) -> None:
    manifest = {**GOOD, "metadata": {"name": name}}
    handle = client.submit(manifest)

    assert handle.name == name
    with pytest.raises(Conflict) as caught:
        client.submit(manifest)
    assert caught.value.code == "AlreadyExists"


def test_a_bad_manifest_is_refused_field_by_field(client: Any) -> None:
    with pytest.raises(Invalid) as caught:
        client.submit({"spec": {"steps": []}})
    assert [problem.path for problem in caught.value.problems] == ["spec.steps"]


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ({"kind": "JobConfig", "spec": {}}, "kind: expected Job, found 'JobConfig'"),
        ({"metadata": "x", "spec": {}}, "metadata: expected an object, found str"),
        (7, "a manifest is a mapping, a resource or a file, not int"),
        ("nowhere.yaml", "cannot read nowhere.yaml: No such file"),
    ],
)
def test_what_is_no_manifest_is_refused_here(client: Any, manifest: Any, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        client.submit(manifest)


def test_a_file_is_submitted(client: Any, tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    file.write_text(yaml.safe_dump(GOOD))

    assert client.submit(file).wait(PATIENCE_S).succeeded
    file.write_text(yaml.safe_dump_all([GOOD, GOOD]))
    with pytest.raises(BadInput, match="expected one document, found 2"):
        client.submit(str(file))


def test_many_are_submitted_and_a_bad_one_keeps_back_none(client: Any) -> None:
    many = [GOOD, {"spec": {"noop": {}}}, {"spec": {}}, {"spec": process("true")}]

    made = client.submit_many(many, chunk=3)

    assert [isinstance(one, Refused) for one in made] == [False, False, True, False]
    assert isinstance(made[2], Invalid)
    for one in (made[0], made[1], made[3]):
        assert one.wait(PATIENCE_S).succeeded
    with pytest.raises(BadInput, match="chunk: expected 1 to 1000, found 0"):
        client.submit_many(many, chunk=0)


def test_many_are_submitted_again_with_their_key(client: Any, name: str) -> None:
    many = [GOOD, {"spec": {"noop": {}}}, {**GOOD, "metadata": {"name": name}}]

    first = client.submit_many(many, idempotency_key=name)
    again = client.submit_many(many, idempotency_key=name, chunk=1)

    assert [one.id for one in first] == [one.id for one in again]


def test_a_wait_ends_and_the_job_goes_on_until_it_is_cancelled(client: Any) -> None:
    handle = client.submit(FOR_EVER)

    with pytest.raises(StillRunning) as caught:
        handle.wait(0.1)
    assert not caught.value.record.is_over
    ordered = handle.cancel(reason="enough")
    assert ordered.name == handle.name
    record = handle.wait(PATIENCE_S)
    assert (record.phase, record.completion_state) == ("Killed", "failed")


def test_jobs_are_found_by_what_they_are(client: Any, name: str) -> None:
    target = {"target": {"path": f"domains/{name}/applications/shop"}}
    made = [client.submit(an_operation(*GOOD["spec"]["steps"], **target)) for _ in range(3)]
    for one in made:
        one.wait(PATIENCE_S)
    ids = [one.id for one in made]

    def found(**wanted: Any) -> list[str]:
        return [record.job_id for record in client.jobs(**wanted)]

    assert found(path=f"domains/{name}", newest_first=False) == ids
    assert found(path=f"domains/{name}") == ids[::-1]
    assert found(ids=ids[:2], newest_first=False) == ids[:2]
    assert found(ids=ids, state=["queued", "executing"]) == []
    assert found(ids=ids, state="complete", limit=2) == ids[:0:-1]
    assert found(ids=[]) == []


def test_what_is_not_there_is_not_found(client: Any) -> None:
    questions: list[Callable[[], Any]] = [
        lambda: client.job("nobody"),
        lambda: client.job("00000000-0000-4000-8000-000000000000"),
        lambda: client.get("JobConfig", "nobody"),
        lambda: client.delete("jobs", "nobody"),
        lambda: client.stop("nobody"),
        lambda: client.why("job", "nobody"),
        lambda: client.run("nobody"),
    ]
    for asked in questions:
        with pytest.raises(NotFound):
            asked()
    with pytest.raises(BadInput, match="there is no kind 'Jbo'"):
        client.get("Jbo", "x")


def a_config(name: str) -> dict[str, Any]:
    job = {"spec": process("sh", "-c", "echo ${option.region}")}
    option = {"name": "region", "type": "String", "default": "emea"}
    schedules = [{"cron": "41 2 29 2 *"}]
    return {
        "kind": "JobConfig",
        "metadata": {"name": name, "labels": {"test": name}},
        "spec": {"schedules": schedules, "options": [option], "template": job},
    }


def test_a_job_config_is_applied_run_asked_and_deleted(client: Any, name: str) -> None:
    stored = client.apply(a_config(name))
    assert client.apply(a_config(name))["metadata"]["uid"] == stored["metadata"]["uid"]
    assert [
        one["metadata"]["name"] for one in client.list("jobconfigs", labels=f"test={name}")
    ] == [name]

    handle = client.run(name, options={"region": "apac"}, name=f"{name}-run")
    assert handle.name == f"{name}-run"
    assert handle.wait(PATIENCE_S).succeeded
    with pytest.raises((Invalid, BadInput), match="regoin"):
        client.run(name, options={"regoin": "apac"})

    assert client.disable(name).object["spec"]["schedules"][0]["disabled"] is True
    client.enable(f"jobconfig/{name}", schedule=0)
    assert client.next("JobConfig", name, limit=2)[1]["name"] == name
    assert client.why("JobConfig", name)
    client.suspend(f"jobconfig/{name}", reason="holidays")
    assert client.get("JobConfig", name)["spec"]["suspend"] is True
    client.resume(f"jobconfig/{name}")

    client.delete("JobConfig", name)
    with pytest.raises(NotFound):
        client.get("JobConfig", name)


def test_a_controlled_job_is_steered(client: Any, name: str) -> None:
    client.apply(
        {
            "kind": "ControlledJob",
            "metadata": {"name": name},
            "spec": {
                "timezone": {"name": "UTC"},
                "events": [
                    {"action": "start", "cron": "0 0 29 2 *"},
                    {"action": "stop", "cron": "1 0 29 2 *"},
                ],
                "jobTemplate": {"spec": process("sleep", "600")},
            },
        }
    )
    started = client.start(name)
    handle = client.job(started.name)
    assert not handle.status.is_over
    client.stop(f"controlledjob/{name}", reason="by hand")
    assert handle.wait(PATIENCE_S).phase == "Killed"
    skipped = client.skip(name, count=1, reason="not now")
    assert skipped.name == name
    with pytest.raises((Invalid, BadInput, Conflict)):
        client.hold(name, lasts=timedelta(hours=1), until="19:00")
    client.delete("ControlledJob", name)


def test_an_order_that_does_not_fit_is_a_conflict(client: Any) -> None:
    handle = client.submit(GOOD)
    handle.wait(PATIENCE_S)

    with pytest.raises(Conflict, match="is over"):
        client.go_forward(handle.name, reason="again")
    with pytest.raises(BadInput, match="is not a Job"):
        client.kill("jobconfig/x")
    again = client.job(client.retry(handle.name).name)
    assert again.id != handle.id
    assert again.wait(PATIENCE_S).succeeded


def test_changes_are_streamed_from_a_version(client: Any, name: str) -> None:
    version = client.apply({**a_job(name), "spec": {"noop": {}}})["metadata"]["resourceVersion"]

    seen = []
    for change in client.stream(since=version):
        if change.job.name == name:
            seen.append(change)
            if change.job.ended_at is not None:
                break

    assert seen[-1].job.state == "Succeeded"
    assert {change.type for change in seen} == {"modified"}


def test_a_log_is_followed_from_before_it_begins_to_its_end(client: Any, tmp_path: Path) -> None:
    if client.site.on_cluster:
        pytest.skip("the logs of a cluster are those of pods")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    handle = client.submit({"spec": process("sh", "-c", f"echo begun; cat {pipe}")})

    lines = iter(handle.logs(follow=True))
    assert next(lines) == "begun"
    pipe.write_text("ä\nend")
    assert list(lines) == ["ä", "end"]


def test_history_tells_what_was_decided(server: Server, client: Any) -> None:
    if client.site.on_cluster:
        pytest.skip("the history of a cluster is its events")
    handle = client.submit(GOOD)
    handle.wait(PATIENCE_S)

    told = client.history("Job", handle.name, limit=1)
    assert told[0]["name"] == handle.name
    assert len(client.history(limit=3)) == 3
    with pytest.raises(BadInput, match="give a kind and a name, or neither"):
        client.history("Job")


def a_job(name: str) -> dict[str, Any]:
    return {"kind": "Job", "metadata": {"name": name}}


# Servers that are gone, restarted, protected or named by a kubeconfig


Make = Callable[..., Any]
CERTIFICATE = Path(__file__).parent / "api" / "certificate"


@pytest.fixture(params=["threads", "event loop"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes clients of either sort."""
    with ExitStack() as made:
        if request.param == "threads":
            yield lambda *args, **named: made.enter_context(Client(*args, **named))
            return
        runner = made.enter_context(asyncio.Runner())

        def make_async(*args: Any, **named: Any) -> Blocking:
            client = Blocking(AsyncClient(*args, **named), runner)
            made.callback(client.close)
            return client

        yield make_async


def test_a_server_that_is_gone_is_unreachable(make: Make) -> None:
    with socket.socket() as taken:
        # Nobody listens there, and nobody else can.
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match="no answer from"):
            make(f"http://127.0.0.1:{taken.getsockname()[1]}", patience=0).submit(GOOD)


@pytest.fixture
def ports() -> Iterator[Ports]:
    """Ports that nobody takes while a server is away."""
    made = Ports()
    yield made
    made.close()


def test_a_wait_outlives_a_restart_of_the_server(make: Make, ports: Ports, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Server(tmp_path / "data", "--listen", f"127.0.0.1:{ports.take()}") as server:
        client = make(server.url)
        handle = client.submit({"spec": process("cat", str(pipe))})
        with pytest.raises(StillRunning):
            handle.wait(0)

        server.kill()
        restarted = threading.Thread(target=lambda: (server.start(), pipe.write_text("go")))
        restarted.start()
        try:
            assert handle.wait(PATIENCE_S).succeeded
        finally:
            restarted.join()


def test_a_token_is_shown_and_missed(make: Make, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("ana:a-secret-that-ana-has\n")
    token.chmod(0o600)
    with Server(tmp_path / "data", "--token-file", str(token)) as server:
        with pytest.raises(Forbidden):
            make(server.url).submit(GOOD)
        assert (
            make(server.url, token="a-secret-that-ana-has").submit(GOOD).wait(PATIENCE_S).succeeded
        )
        with pytest.raises(BadInput, match="give one"):
            make(server.url, token="x", token_file=token)


def test_a_server_is_trusted_by_its_certificate(make: Make, tmp_path: Path) -> None:
    cert, key = CERTIFICATE / "localhost.crt", CERTIFICATE / "localhost.key"
    arguments = ("--tls-cert", str(cert), "--tls-key", str(key))
    with Server(tmp_path / "data", *arguments) as server:
        client = make(server.url, ca_file=cert)
        assert client.submit(GOOD).wait(PATIENCE_S).succeeded
        with pytest.raises(Unreachable, match="is not trusted"):
            make(server.url, patience=0).submit(GOOD)
        plain = server.url.replace("https", "http")
        with pytest.raises((Unreachable, Refused)):
            make(plain, patience=0).submit(GOOD)


def test_a_kubeconfig_names_the_server(make: Make, server: Server, tmp_path: Path) -> None:
    context = {"cluster": "x", "user": "x", "namespace": "default"}
    config = {
        "current-context": "other",
        "contexts": [{"name": "x", "context": context}],
        "clusters": [{"name": "x", "cluster": {"server": server.url}}],
        "users": [{"name": "x", "user": {}}],
    }
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(config))

    client = make(kubeconfig=file, context="x")

    handle = client.submit(GOOD)
    assert handle.wait(PATIENCE_S).succeeded
    assert list(handle.logs(step="reserve")) == ["reserved"]
    with pytest.raises(BadInput, match="name another: give one"):
        make(server.url, context="x")


def test_a_target_takes_so_many_and_refuses_the_rest(make: Make, tmp_path: Path) -> None:
    waits = an_operation(*GOOD["spec"]["steps"], target={"path": "domains/acme"}, suspend=True)
    with Server(tmp_path / "data", "--max-pending", "3") as server:
        client = make(server.url)
        client.submit(waits)
        made = client.submit_many([waits] * 4)
        assert [type(one) for one in made if isinstance(one, Refused)] == [TooManyPending] * 2
        with pytest.raises(TooManyPending) as caught:
            client.submit(waits)
        assert (caught.value.status, caught.value.code) == (409, "TooManyPending")
        assert len(list(client.jobs(path="domains/acme"))) == 3


def test_a_record_outlives_its_job(make: Make, server: Server) -> None:
    client = make(server.url)
    handle = client.submit(GOOD)
    handle.wait(PATIENCE_S)
    since = client.get("Job", handle.name)["metadata"]["resourceVersion"]
    client.delete("Job", handle.name)
    for change in client.stream(since=since):
        if (change.type, change.job.id) == ("deleted", handle.id):
            break

    with pytest.raises(NotFound):
        client.get("Job", handle.name)
    assert handle.wait(PATIENCE_S).succeeded
    assert client.job(handle.id).status.succeeded


def test_threads_share_a_client(server: Server) -> None:
    with Client(server.url) as client:
        found: list[bool] = []

        def work() -> None:
            handles = [client.submit({"spec": {"noop": {}}}) for _ in range(5)]
            found.extend(handle.wait(PATIENCE_S).succeeded for handle in handles)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 40


def test_an_event_loop_waits_for_many_at_once(server: Server) -> None:
    async def work() -> list[bool]:
        async with AsyncClient(server.url) as client:
            made = await client.submit_many([{"spec": {"noop": {}}}] * 300, chunk=100)
            handles = [one for one in made if isinstance(one, AsyncHandle)]
            records = await asyncio.gather(*(one.wait(PATIENCE_S) for one in handles))
            return [record.succeeded for record in records]

    assert asyncio.run(work()) == [True] * 300
