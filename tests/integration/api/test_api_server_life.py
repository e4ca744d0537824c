"""The embedded server as a process: starting, refusing to start, stopping, coming back."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from interlock.testing.serving import PATIENCE_S, Server

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
JOB = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "kept"},
    "spec": {"process": {"command": ["true"]}, "suspend": True},
}
#: A certificate of nobody, for localhost, good until 2126.
PLACE = Path(__file__).parent / "certificate"
UP = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"


def ask(url: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url, data=data, headers={"content-type": "application/json", **(headers or {})}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.loads(answer.read())


def refused_start(*arguments: str) -> str:
    """Start a server that cannot; returns its complaint."""
    done = subprocess.run(
        [sys.executable, "-c", UP, "up", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode not in (0, -signal.SIGTERM)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_answers_with_and_without_a_body_share_a_connection(tmp_path: Path) -> None:
    body = json.dumps(JOB).encode()
    head = (
        f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    ).encode()
    with Server(tmp_path / "data") as server:
        place = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        with socket.create_connection(place, PATIENCE_S) as sock, sock.makefile("rb") as answers:
            sock.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
            while answers.readline() != b"\r\n":
                pass
            sock.sendall(head)
            assert answers.readline() == b"HTTP/1.1 100 Continue\r\n"
            sock.sendall(body)
            assert answers.readline() == b"\r\n"
            assert answers.readline() == b"HTTP/1.1 201 Created\r\n"


def test_others_may_look_into_an_open_directory_but_not_into_its_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o755)
    (tmp_path / "data/server.log").touch()
    (tmp_path / "data/server.log").chmod(0o644)
    with Server(tmp_path / "data"):
        found = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "data").iterdir()}
    ours = {name: mode for name, mode in found.items() if not name.startswith("interlock.db")}
    assert set(ours) >= {"server.json", "server.log", "keeper.lock", "keeper.journal"}
    assert set(ours.values()) == {0o600}


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        first = ask(server.url + JOBS, JOB)
        told = json.loads((tmp_path / "data" / "server.json").read_text())
        assert (told["url"], told["pid"]) == (server.url, server.process.pid)
        assert server.stop() == 0
        assert not (tmp_path / "data" / "server.json").exists()
        server.start()
        again = ask(f"{server.url}{JOBS}/kept")
        assert again["metadata"]["uid"] == first["metadata"]["uid"]
        server.kill()
        server.start()
        assert ask(f"{server.url}{JOBS}/kept")["metadata"]["uid"] == first["metadata"]["uid"]


def test_sigint_stops_it_too(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        server.process.send_signal(signal.SIGINT)
        assert server.wait() == 0
        assert "stopped" in server.output


def test_watches_end_cleanly_and_requests_under_way_finish(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        place = server.url.removeprefix("http://")
        watch = http.client.HTTPConnection(place, timeout=PATIENCE_S)
        watch.request("GET", f"{JOBS}?watch=true")
        stream = watch.getresponse()
        slow = http.client.HTTPConnection(place, timeout=PATIENCE_S)
        body = json.dumps(JOB).encode()
        slow.putrequest("POST", JOBS)
        slow.putheader("content-type", "application/json")
        slow.putheader("content-length", str(len(body)))
        slow.endheaders()
        slow.send(body[:10])
        # Another request behind the slow one: once it is answered, the slow one is under way.
        ask(f"{server.url}/version")
        server.process.send_signal(signal.SIGTERM)
        rest = stream.read()
        assert rest == b"" or rest.endswith(b"\n")
        slow.send(body[10:])
        answer = slow.getresponse()
        assert answer.status == 201
        answer.read()
        slow.close()
        watch.close()
        assert server.wait() == 0
        server.start()
        assert ask(f"{server.url}{JOBS}/kept")["metadata"]["name"] == "kept"


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        slow = socket.create_connection(
            ("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=PATIENCE_S
        )
        with slow:
            head = f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
            slow.sendall(head.encode())
            ask(f"{server.url}/version")
            server.process.send_signal(signal.SIGTERM)
            while "stopping" not in server.output:
                assert server._read_some()
            server.process.send_signal(signal.SIGTERM)
            assert server.wait() == 128 + signal.SIGTERM


def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        told = refused_start("--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
        assert "in use" in told
        assert str(server.process.pid) in told


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        told = refused_start("--data", str(tmp_path / "data"), "--listen", listen)
    assert listen in told
    assert "--listen" in told


@pytest.mark.parametrize(
    ("listen", "word"),
    [
        ("nonsense", "HOST:PORT"),
        ("127.0.0.1:99999", "HOST:PORT"),
        (":8470", "HOST:PORT"),
        ("0.0.0.0:0", "--token-file"),
        ("[::]:0", "--token-file"),
    ],
)
def test_bad_addresses_are_told(tmp_path: Path, listen: str, word: str) -> None:
    assert word in refused_start("--data", str(tmp_path / "data"), "--listen", listen)
    assert not (tmp_path / "data").exists()


def test_data_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    assert str(file) in refused_start("--data", str(file), "--listen", "127.0.0.1:0")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "interlock.db").write_bytes(b"this is no database at all" * 1000)
    assert "damaged" in refused_start("--data", str(broken), "--listen", "127.0.0.1:0")


def test_other_addresses_need_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-for-this-test\n")
    token.chmod(0o600)
    arguments = ("--listen", "0.0.0.0:0", "--token-file", str(token))
    with Server(tmp_path / "data", *arguments) as server:
        url = f"http://127.0.0.1:{server.url.rpartition(':')[2]}{JOBS}"
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(url)
        assert refused.value.code == 401
        refused.value.close()
        bearer = {"authorization": "Bearer a-token-for-this-test"}
        assert ask(url, headers=bearer)["kind"] == "JobList"
        assert "a-token" not in server.output


def test_examples_are_applied_once(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "one.yaml").write_text(json.dumps(JOB))
    with Server(tmp_path / "data", "--examples", cwd=tmp_path) as server:
        assert ask(f"{server.url}{JOBS}/kept")["metadata"]["namespace"] == "default"
        request = urllib.request.Request(f"{server.url}{JOBS}/kept", method="DELETE")
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()
        assert server.stop() == 0
        server.start()
        items = ask(server.url + JOBS)["items"]
        assert all("deletionTimestamp" in item["metadata"] for item in items)


def test_an_endless_head_is_refused(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            answered = threading.Event()
            sending = threading.Thread(target=_send_headers, args=(connection, answered))
            sending.start()
            answer = connection.recv(4096)
            answered.set()
            sending.join(PATIENCE_S)
        assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))
        assert ask(f"{server.url}/version")["major"] == "1"


def _send_headers(connection: socket.socket, answered: threading.Event) -> None:
    line = b"X-Endless: " + b"x" * 1000 + b"\r\n"
    try:
        while not answered.is_set():
            connection.sendall(line)
    except OSError:
        return


def test_https(tmp_path: Path) -> None:
    cert, key = PLACE / "localhost.crt", PLACE / "localhost.key"
    arguments = ("--tls-cert", str(cert), "--tls-key", str(key))
    with Server(tmp_path / "data", *arguments) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(f"{server.url}/version", context=trusting) as answer:
            assert answer.status == 200
        assert json.loads((tmp_path / "data/server.json").read_text())["caFile"] == str(cert)


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    told = refused_start("--data", str(tmp_path / "d"), "--tls-cert", str(tmp_path / "no.pem"))
    assert "--tls-key" in told
