"""A keeper that hangs or cannot be started: it is told wherever somebody asks."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from interlock.testing.clients import Client
from interlock.testing.keepers import keeper_pid
from interlock.testing.serving import PATIENCE_S, Server

TRUE = {"command": ["true"]}
SOON = "1s"


def until_readiness(server: Server, begins: str) -> str:
    """Wait until /readyz answers like this; returns all of it."""
    until = time.monotonic() + PATIENCE_S
    while True:
        _, told = Client(server.url).ask("GET", "/readyz")
        if told.startswith(begins):
            return str(told)
        assert time.monotonic() < until, told
        select.select([], [], [], 0.05)


def why(server: Server, name: str) -> list[Any]:
    status, told = Client(server.url).ask("GET", f"/jobs/default/{name}/why")
    assert status == 200, told
    return [wait["message"] for wait in told["waits"]]


def test_a_keeper_that_hangs_is_told_and_so_is_its_recovery(tmp_path: Path) -> None:
    with Server(tmp_path / "data", "--keeper-patience", SOON, cwd=tmp_path) as server:
        client = Client(server.url)
        until_readiness(server, "ok")
        pid = keeper_pid(server.data)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        hangs = (
            f"the keeper (process {pid}) has not answered for more than 1 s: somebody stopped it"
        )
        told = until_readiness(server, f"not ready: {hangs}")
        assert f"kill -CONT {pid}" in told
        status, checks = client.ask("GET", "/readyz?verbose")
        assert status == 503
        assert "[+]store ok\n" in checks
        assert "[-]keeper failed: the keeper (process" in checks
        assert client.ask("GET", "/livez") == (200, "ok")
        client.create("waits", process=TRUE)
        message = why(server, "waits")[0]
        assert message.startswith("nothing is started: the keeper (process ")
        os.kill(pid, signal.SIGCONT)
        until_readiness(server, "ok")
        client.phase("waits", "Succeeded")
        assert keeper_pid(server.data) == pid
        log = (server.data / "server.log").read_text()
        assert "has not answered for more than 1 s" in log
        assert "the keeper works again" in log


def test_a_server_that_meets_a_hanging_keeper_says_so(tmp_path: Path) -> None:
    endless = {"command": [sys.executable, "-c", "import signal; signal.pause()"]}
    with Server(tmp_path / "data", "--keeper-patience", SOON, cwd=tmp_path) as server:
        client = Client(server.url)
        client.create("stays", process=endless)
        client.phase("stays", "Running")
        pid = keeper_pid(server.data)
        assert pid is not None
        server.kill()
        os.kill(pid, signal.SIGSTOP)
        server.launch()
        server.wait_until_said("not ready after")
        assert "ready in" not in server.output
        assert f"kill -CONT {pid}" in server.output
        client = Client(server.url)
        assert client.ask("GET", "/readyz")[0] == 503
        os.kill(pid, signal.SIGCONT)
        server.wait_until_ready()
        until_readiness(server, "ok")


def test_a_keeper_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "keeper.log").mkdir(parents=True, mode=0o700)
    data.chmod(0o700)
    # Leaving ends what was started, also when it was never ready.
    server = Server(data, "--keeper-patience", SOON, cwd=tmp_path)
    server.launch()
    try:
        server.wait_until_said("not ready after")
        assert "ready in" not in server.output
        assert "the keeper cannot start: " in server.output
        assert "nothing is started until" in server.output
        client = Client(server.url)
        status, told = client.ask("GET", "/readyz")
        assert (status, told.startswith("not ready: the keeper cannot start: ")) == (503, True)
        client.create("early", process=TRUE)
        message = why(server, "early")[0]
        assert message.startswith("nothing is started: the keeper cannot start: ")
        (data / "keeper.log").rmdir()
        server.wait_until_ready()
        client.phase("early", "Succeeded")
        until_readiness(server, "ok")
    finally:
        server.__exit__(None, None, None)


def test_a_keeper_that_is_dead_and_cannot_be_replaced_is_told(tmp_path: Path) -> None:
    with Server(tmp_path / "data", "--keeper-patience", SOON, cwd=tmp_path) as server:
        client = Client(server.url)
        pid = keeper_pid(server.data)
        assert pid is not None
        log = server.data / "keeper.log"
        log.rename(server.data / "keeper.log.before")
        log.mkdir(mode=0o700)
        os.kill(pid, signal.SIGKILL)
        until_readiness(server, "not ready: the keeper cannot start: ")
        client.create("waits", process=TRUE)
        assert why(server, "waits")[0].startswith("nothing is started: the keeper cannot start: ")
        log.rmdir()
        until_readiness(server, "ok")
        client.phase("waits", "Succeeded")


def test_a_patience_that_is_none_is_refused(tmp_path: Path) -> None:
    start = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
    command = [sys.executable, "-c", start, "up", "--data", str(tmp_path / "d")]
    done = subprocess.run(
        [*command, "--keeper-patience", "0s"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--keeper-patience" in done.stderr
