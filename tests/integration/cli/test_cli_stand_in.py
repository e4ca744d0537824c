"""The command line and whoever stands between it and a cluster: kubelets, proxies, doorkeepers.

An API server is played here where a real one cannot be made to do what the test is about.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from interlock.modes.cli.main import main
from interlock.testing.serving import PATIENCE_S

Job = dict[str, Any]
JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"


class Handler(BaseHTTPRequestHandler):
    """Answers with what the test says about a path."""

    protocol_version = "HTTP/1.1"
    server: StandIn

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        for check in self.server.checks:
            if check(self):
                return
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        key = f"{address.path} watch" if "watch" in query else address.path
        answer = self.server.answers[key]
        if callable(answer):
            self.stream(answer())
        else:
            self.send(200, answer)

    def do_POST(self) -> None:
        """Answer as to any other request."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def do_CONNECT(self) -> None:
        """Be a proxy: whatever is asked for is answered here as well."""
        self.server.asked.append(f"CONNECT {self.path}")
        self.send_response(200)
        self.end_headers()

    def send(self, status: int, body: object, **headers: str) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, parts: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


class StandIn(ThreadingHTTPServer):
    """An API server that says what a test wants it to say."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        #: Each may answer a request itself, and then tells so.
        self.checks: list[Callable[[Handler], bool]] = []
        self.answers: dict[str, Any] = {"/version": {"gitVersion": "v1.36.3"}}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def standing_in() -> Iterator[StandIn]:
    with StandIn() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def server() -> Iterator[StandIn]:
    with standing_in() as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("INTERLOCK_SERVER", "INTERLOCK_DATA", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def log_in(folder: Path, url: str, user: Job | None = None, proxy: str = "") -> list[str]:
    """Flags that name a kubeconfig for the server."""
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": url, "proxy-url": proxy}}],
        "users": [{"name": "x", "user": user or {}}],
    }
    (folder / "config").write_text(yaml.safe_dump(config))
    return ["--kubeconfig", str(folder / "config")]


def a_job(phase: str, version: int, **execution: Any) -> Job:
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": "x",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": str(version),
        },
        "spec": {"pod": {"spec": {"containers": [{"name": "main"}]}}},
        "status": {
            "phase": phase,
            "admission": {"phase": "Admitted"},
            "execution": {"startedAt": "2026-01-05T12:00:00Z", "total": 1, **execution},
        },
    }


def test_a_pod_is_followed_until_its_attempt_is_over(
    server: StandIn, folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    attempt = {"index": 0, "attempt": 0, "name": "x-0-0"}
    running = a_job("Running", 1, active=[attempt | {"state": "Running"}])
    over = a_job("Succeeded", 2, ended=[attempt | {"result": "Succeeded", "exitCode": 0}])
    printed = threading.Event()

    def log() -> Iterator[bytes]:
        yield b"one\n"
        yield b"two\n"
        printed.set()

    def watch() -> Iterator[bytes]:
        assert printed.wait(PATIENCE_S)
        yield json.dumps({"type": "MODIFIED", "object": over}).encode() + b"\n"

    pods = "/api/v1/namespaces/default/pods/x-0-0"
    server.answers |= {
        JOBS: {"metadata": {"resourceVersion": "1"}, "items": [running]},
        f"{JOBS} watch": watch,
        f"{JOBS}/x": running,
        pods: {
            "metadata": {"name": "x-0-0", "namespace": "default"},
            "spec": {"containers": [{"name": "side"}, {"name": "main"}]},
        },
        f"{pods}/log": log,
    }

    assert main(["logs", "-f", "x", *log_in(folder, server.url)]) == 0

    assert capfdbinary.readouterr().out == b"one\ntwo\n"
    (asked,) = [path for path in server.asked if "/log" in path]
    assert asked == f"{pods}/log?container=main&follow=true"


def test_a_token_that_is_not_believed_is_found_out_anew(server: StandIn, folder: Path) -> None:
    (folder / "token").write_text("old")

    def door(handler: Handler) -> bool:
        if handler.headers["Authorization"] == "Bearer new":
            return False
        (folder / "token").write_text("new")
        handler.send(401, {"message": "who are you?"})
        return True

    server.checks.append(door)
    assert main(["version", *log_in(folder, server.url, {"tokenFile": "token"})]) == 0
    server.answers[JOBS] = {"columnDefinitions": [], "rows": []}
    assert main(["get", "jobs", *log_in(folder, server.url, {"tokenFile": "token"})]) == 0


def test_a_token_that_stays_bad_is_refused_once(server: StandIn, folder: Path) -> None:
    (folder / "token").write_text("old")

    def door(handler: Handler) -> bool:
        handler.send(401, {"message": "who are you?"})
        return True

    server.checks.append(door)
    assert main(["get", "jobs", *log_in(folder, server.url, {"tokenFile": "token"})]) == 6
    assert len(server.asked) == 2


def test_a_server_that_puts_one_off_is_asked_again(server: StandIn, folder: Path) -> None:
    left = [1, 1]

    def busy(handler: Handler) -> bool:
        if not left:
            return False
        left.pop()
        handler.send(429, {"message": "not now"}, Retry_After="0")
        return True

    server.checks.append(busy)
    server.answers[JOBS] = {"columnDefinitions": [], "rows": []}
    assert main(["get", "jobs", *log_in(folder, server.url)]) == 0
    assert len(server.asked) == 3


def test_warnings_of_a_cluster_are_told_once(
    server: StandIn, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def warn(handler: Handler) -> bool:
        handler.send(200, a_job("Queued", 1), Warning='299 - "spec.x is \\"old\\""')
        return True

    server.checks.append(warn)
    assert main(["get", "job/x", "job/x", "-o", "json", *log_in(folder, server.url)]) == 0
    assert capsys.readouterr().err == 'warning: spec.x is "old"\n'


def test_a_proxy_of_the_kubeconfig_is_gone_through(server: StandIn, folder: Path) -> None:
    server.answers[JOBS] = {"columnDefinitions": [], "rows": []}
    flags = log_in(folder, "http://cluster.invalid:6443", proxy=server.url)
    assert main(["get", "jobs", *flags]) == 0
    assert server.asked[0] == "CONNECT cluster.invalid:6443"
    flags = log_in(folder, "http://cluster.invalid:6443", proxy="socks5://x:1")
    assert main(["get", "jobs", *flags]) == 2


def test_no_server_is_told_who_asks(
    server: StandIn,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("USER", "ann of ops")
    path = "/controlledjobs/default/engine/start"
    server.answers[path] = {"message": "job/engine-1 created\n  until noon", "object": {}}

    assert main(["start", "engine", "--server", server.url]) == 0

    assert server.asked == [path]
    assert capsys.readouterr().out == "job/engine-1 created\n  until noon\n"
