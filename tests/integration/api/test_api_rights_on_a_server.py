"""Rights on a real server: who sees what, what a worker's token opens, and what SIGHUP takes."""

from __future__ import annotations

import http.client
import json
import signal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from interlock.testing.serving import PATIENCE_S, Server

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
SECRETS = {
    name: f"{name}-0123456789abcdef" for name in ("root", "ann", "bob", "acme", "watch", "work")
}
RIGHTS: dict[str, Any] = {
    "root": {"rights": ["admin"]},
    "ann": {"rights": ["operate"]},
    "bob": {"rights": ["read"]},
    "acme": {"rights": ["read"], "paths": ["domains/acme"]},
    "watch": {"rights": ["read"], "paths": ["/"]},
    "work": {"rights": ["worker"]},
}


def write(file: Path, rights: dict[str, Any]) -> None:
    rows = [{"name": name, "token": SECRETS[name], **held} for name, held in rights.items()]
    file.touch(mode=0o600)
    file.write_text(json.dumps(rows))


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {SECRETS[name]}"}


def ask(server: Server, name: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE_S)
    try:
        headers = {**bearer(name), "content-type": "application/json"}
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        shown = answer.read()
        is_json = answer.getheader("content-type", "").startswith("application/json")
        return answer.status, json.loads(shown) if is_json else shown
    finally:
        connection.close()


def seen(server: Server, name: str) -> set[str]:
    status, told = ask(server, name, "GET", "/jobs")
    assert status == 200
    return {job["name"] for job in told["items"]}


def test_everybody_sees_their_own_and_a_worker_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    write(file, RIGHTS)
    with Server(tmp_path / "data", "--tokens", str(file)) as server:
        target = {"path": "domains/acme/applications/shop"}
        for name, more in (("of-bob", {"owner": "bob"}), ("of-acme", {"target": target})):
            job = {"metadata": {"name": name}, "spec": {"noop": {}, "suspend": True, **more}}
            assert ask(server, "root", "POST", JOBS, job)[0] == 201
        everything = {"of-bob", "of-acme"}
        whose = {name: seen(server, name) for name in RIGHTS if name != "work"}
        assert whose == {
            "root": everything, "ann": set(), "bob": {"of-bob"}, "acme": {"of-acme"},
            "watch": everything,
        }  # fmt: skip
        unknown = ask(server, "ann", "GET", "/jobs/default/nothing")
        hidden = ask(server, "ann", "GET", "/jobs/default/of-bob")
        assert (unknown[0], hidden[0]) == (404, 404)
        assert ask(server, "ann", "POST", "/jobs/default/of-bob/stop", {})[0] == 404
        assert ask(server, "bob", "POST", "/jobs/default/of-bob/stop", {})[0] == 403
        for method, path in (
            ("GET", "/jobs"), ("GET", JOBS), ("POST", JOBS), ("GET", "/history"), ("GET", "/"),
            ("POST", "/admin/backup"), ("GET", "/metrics"), ("GET", "/nowhere"),
            ("POST", "/jobs/default/of-bob/stop"), ("DELETE", f"{JOBS}/of-bob"),
        ):  # fmt: skip
            assert ask(server, "work", method, path)[0] == 403
        address = f"{server.url.replace('http', 'ws')}/jobs/stream"
        with pytest.raises(InvalidStatus) as refused:
            connect(address, additional_headers=bearer("work"), open_timeout=PATIENCE_S)
        assert refused.value.response.status_code == 403
        assert server.stop() == 0


def test_sighup_takes_rights_away_from_what_is_open(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    write(file, RIGHTS)
    with Server(tmp_path / "data", "--tokens", str(file)) as server:
        address = f"{server.url.replace('http', 'ws')}/jobs/stream"

        def stream(name: str) -> Any:
            return connect(address, additional_headers=bearer(name), open_timeout=PATIENCE_S)

        with stream("watch") as ends, stream("root") as stays:
            for socket in (ends, stays):
                assert json.loads(str(socket.recv(timeout=PATIENCE_S)))["type"] == "sync"
            write(file, {**RIGHTS, "watch": {"rights": ["read"]}})
            server.process.send_signal(signal.SIGHUP)
            with pytest.raises(ConnectionClosed) as closed:
                ends.recv(timeout=PATIENCE_S)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008
            assert ask(server, "watch", "GET", "/jobs/stream")[0] == 403
            job = {"metadata": {"name": "seen"}, "spec": {"noop": {}, "suspend": True}}
            assert ask(server, "root", "POST", JOBS, job)[0] == 201
            assert json.loads(str(stays.recv(timeout=PATIENCE_S)))["type"] != "sync"
        assert seen(server, "watch") == set()
        assert server.stop() == 0


def test_tokens_of_both_files_let_in_and_none_of_them_is_given_twice(tmp_path: Path) -> None:
    file, plain = tmp_path / "tokens.json", tmp_path / "token"
    write(file, {"bob": RIGHTS["bob"]})
    plain.touch(mode=0o600)
    plain.write_text(f"root:{SECRETS['root']}\n")
    options = ("--tokens", str(file), "--token-file", str(plain))
    with Server(tmp_path / "data", *options) as server:
        assert ask(server, "root", "GET", JOBS)[0] == 200
        assert ask(server, "bob", "GET", JOBS)[0] == 403
        plain.write_text(f"root:{SECRETS['bob']}\n")
        server.process.send_signal(signal.SIGHUP)
        told = server.data / "server.log"
        give_up = 0
        while "given twice" not in told.read_text():
            give_up += 1
            assert ask(server, "root", "GET", "/healthz")[0] == 200
            assert give_up < 10_000, "nothing was said about the token"
        assert ask(server, "root", "GET", JOBS)[0] == 200
        assert server.stop() == 0
