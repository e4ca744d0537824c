"""SIGHUP: tokens, certificate and logs are taken up anew, and nothing else changes."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from interlock.control.clock import SystemClock
from interlock.kube.webhook.signing import Pair, make_authority, make_certificate
from interlock.testing.keepers import end_everything, keeper_pid
from interlock.testing.serving import PATIENCE_S, Server

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
ANN, BOB, CAROL = (f"{name}-{'0123456789abcdef' * 2}" for name in ("ann", "bob", "carol"))


def until(true: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up, f"this never came: {what}"
        select.select([], [], [], 0.02)


def write_tokens(file: Path, *lines: str) -> None:
    file.touch(mode=0o600)
    file.write_text("".join(f"{line}\n" for line in lines))


class Stream:
    """An answer that goes on."""

    def __init__(self, url: str, path: str, token: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
        self._connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200

    def line(self) -> bytes:
        """The next line; nothing when it is over."""
        return self._answer.readline()

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


def status(url: str, token: str, method: str = "GET", body: object = None) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    data = None if body is None else json.dumps(body)
    try:
        connection.request(method, JOBS, data, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def test_tokens_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    write_tokens(file, f"ann:{ANN}", f"bob:{BOB}")
    with Server(tmp_path / "data", "--token-file", str(file)) as server:
        log = server.data / "server.log"
        ends = Stream(server.url, f"{JOBS}?watch=true", BOB)
        stays = Stream(server.url, f"{JOBS}?watch=true", ANN)
        address = f"{server.url.replace('http', 'ws')}/jobs/stream"
        bearer = {"Authorization": f"Bearer {BOB}"}
        with connect(address, additional_headers=bearer, open_timeout=PATIENCE_S) as socket:
            assert json.loads(str(socket.recv(timeout=PATIENCE_S)))["type"] == "sync"
            write_tokens(file, f"ann:{ANN}", f"carol:{CAROL}")
            server.process.send_signal(signal.SIGHUP)
            assert ends.line() == b""
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=PATIENCE_S)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008
        assert (status(server.url, BOB), status(server.url, CAROL)) == (401, 200)
        job = {"metadata": {"name": "seen"}, "spec": {"noop": {}, "suspend": True}}
        assert status(server.url, CAROL, "POST", job) == 201
        seen = json.loads(stays.line())
        marks = seen["object"]["metadata"]["annotations"]
        assert marks["interlock.dev/creator"] == "carol"
        write_tokens(file, "short")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "the tokens of before stay" in log.read_text(), "a word about the file")
        assert (status(server.url, ANN), status(server.url, CAROL)) == (200, 200)
        for stream in (ends, stays):
            stream.close()
        assert server.stop() == 0
        assert "stopped" in server.output


def test_a_client_cannot_say_that_it_is_another(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    write_tokens(file, f"ann:{ANN}", f"bob:{BOB}")
    with Server(tmp_path / "data", "--token-file", str(file)) as server:
        watch = Stream(server.url, f"{JOBS}?watch=true", ANN)
        claims = {"name": "made", "annotations": {"interlock.dev/creator": "ann"}}
        job = {"metadata": claims, "spec": {"noop": {}, "suspend": True}}
        assert status(server.url, BOB, "POST", job) == 201
        made = json.loads(watch.line())["object"]
        assert made["metadata"]["annotations"]["interlock.dev/creator"] == "bob"
        watch.close()


def test_logs_are_opened_again(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        logs = [server.data / name for name in ("server.log", "keeper.log")]
        for log in logs:
            log.rename(f"{log}.1")
        pid = keeper_pid(server.data)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: all(log.exists() for log in logs), "the new logs")
        assert [log.stat().st_mode & 0o777 for log in logs] == [0o600, 0o600]
        until(lambda: "read again" in logs[0].read_text(), "a line in the new log")
        assert keeper_pid(server.data) == pid
        assert server.stop() == 0


def test_a_certificate_is_read_again(tmp_path: Path) -> None:
    now = SystemClock().now()
    authority = make_authority(now)
    trusting = ssl.create_default_context(cadata=authority.certificate)
    cert, key = tmp_path / "server.crt", tmp_path / "server.key"

    def write(pair: Pair) -> None:
        cert.write_text(pair.certificate)
        key.write_text(pair.key)

    def shown(url: str) -> str:
        place = urlsplit(url)
        secure = http.client.HTTPSConnection(place.netloc, timeout=PATIENCE_S, context=trusting)
        secure.connect()
        raw = secure.sock.getpeercert(binary_form=True)
        secure.close()
        assert raw is not None
        return ssl.DER_cert_to_PEM_cert(raw)

    first, second = (make_certificate(authority, ["127.0.0.1"], now) for _ in range(2))
    write(first)
    arguments = ("--tls-cert", str(cert), "--tls-key", str(key))
    with Server(tmp_path / "data", *arguments) as server:
        log = server.data / "server.log"
        assert shown(server.url) == first.certificate
        write(Pair(second.certificate, first.key))
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "the certificate of before stays" in log.read_text(), "a word about it")
        assert shown(server.url) == first.certificate
        write(second)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: shown(server.url) == second.certificate, "the new certificate")
        assert server.stop() == 0


#: Becomes the first process of a terminal, as a shell that is replaced by a server does.
_IN_TERMINAL = """
import fcntl, os, signal, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
# Whoever runs the tests may have been started with nohup.
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[1] == "nohup" else signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[2:]])
"""
_START = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"


@pytest.mark.parametrize("how", ["plain", "nohup"])
def test_a_server_goes_with_its_terminal_unless_told_otherwise(tmp_path: Path, how: str) -> None:
    keyboard, screen = os.openpty()
    data = tmp_path / "data"
    command = [sys.executable, "-c", _IN_TERMINAL, how, _START]
    with subprocess.Popen(
        [*command, "up", "--data", str(data), "--listen", "127.0.0.1:0"],
        stdin=screen,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as server:
        os.close(screen)
        try:
            assert server.stdout is not None
            while b"ready in" not in (line := server.stdout.readline()):
                assert line, "the server did not start"
            os.close(keyboard)
            if how == "plain":
                assert server.wait(PATIENCE_S) == 0
            else:
                log = data / "server.log"
                until(lambda: "as SIGHUP asks for" in log.read_text(), "the signal")
                assert server.poll() is None
        finally:
            server.kill()
            end_everything(data)
