"""Damage to the files of a real server: it is told, and nothing goes on in silence."""

from __future__ import annotations

import resource
import select
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from interlock.testing.clients import Client
from interlock.testing.serving import PATIENCE_S, Server

JOBS = 40
JOBS_PATH = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
NEW = {"kind": "Job", "metadata": {"name": "new"}, "spec": {"process": {"command": ["true"]}}}


def create(server: Server) -> tuple[int, Any]:
    return Client(server.url).ask("POST", JOBS_PATH, NEW)


def readiness(server: Server) -> str:
    try:
        with urllib.request.urlopen(f"{server.url}/readyz", timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()


def flip_a_byte(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(data)


def test_a_server_does_not_go_on_with_less_than_it_acknowledged(tmp_path: Path) -> None:
    """It says what is missing; with --accept-loss it goes on, with higher fencing tokens."""
    fences = tmp_path / "fences"
    process = {"command": ["sh", "-c", f'echo "$INTERLOCK_FENCE" >> {fences}']}
    locks = [{"key": "ledger"}]
    with Server(tmp_path / "data", cwd=tmp_path) as server:
        client = Client(server.url)
        for number in range(JOBS):
            client.create(f"job-{number}", process=process, suspend=True)
        client.create("last", process=process, locks=locks)
        client.phase("last", "Succeeded")
        server.kill()
        flip_a_byte(server.data / "interlock.db-wal")
        for _ in range(2):
            server.launch()
            assert server.wait() == 1
            assert "are missing, the last of them acknowledged at" in server.output
            assert "interlock up --accept-loss" in server.output
    with Server(tmp_path / "data", "--accept-loss", cwd=tmp_path) as server:
        client = Client(server.url)
        client.create("after", process=process, locks=locks)
        client.phase("after", "Succeeded")
        assert len(client.wait(bool)) < JOBS
        assert "are missing" in (server.data / "interlock.db.losses").read_text()
        assert "went on without what was lost" in (server.data / "server.log").read_text()
    before, after = map(int, fences.read_text().split())
    assert after > before


def test_a_server_that_cannot_write_is_not_ready(tmp_path: Path) -> None:
    """It says why, and is ready again by itself once it can."""
    with Server(tmp_path / "data", cwd=tmp_path) as server:
        assert readiness(server) == "ok"
        pid = server.process.pid
        usual = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, usual[1]))
        status, told = create(server)
        assert status == 503
        assert "not made durable" in told["message"]
        assert readiness(server).startswith("not ready: nothing can be written: ")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, usual)
        until = time.monotonic() + PATIENCE_S
        while readiness(server) != "ok":
            assert time.monotonic() < until, readiness(server)
            select.select([], [], [], 0.05)
        assert create(server)[0] == 201
        assert "nothing can be written" in (server.data / "server.log").read_text()


def test_a_server_whose_files_are_deleted_says_so_and_can_be_saved(tmp_path: Path) -> None:
    with Server(tmp_path / "data", cwd=tmp_path) as server:
        client = Client(server.url)
        client.create("kept", process={"command": ["true"]})
        client.phase("kept", "Succeeded")
        (server.data / "interlock.db.lock").unlink()
        with pytest.raises(AssertionError, match="is in use by process"):
            Server(tmp_path / "data", cwd=tmp_path).start()
        assert readiness(server) == "ok"
        for file in server.data.glob("interlock.db*"):
            file.unlink()
        assert "deleted or replaced while the server runs" in readiness(server)
        status, told = create(server)
        assert status == 503
        assert "deleted or replaced while the server runs" in told["message"]
        assert "deleted or replaced" in (server.data / "server.log").read_text()
        backup = back_up(server, tmp_path / "backup")
        server.put_back(backup)
        assert readiness(server) == "ok"
        assert [*Client(server.url).wait(bool)] == ["kept"]


def back_up(server: Server, file: Path) -> Path:
    request = urllib.request.Request(f"{server.url}/admin/backup", method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        file.write_bytes(answer.read())
    return file
