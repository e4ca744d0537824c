"""Damage to the files of a real server: it is told, and nothing goes on in silence."""

from __future__ import annotations

from pathlib import Path

from interlock.testing.clients import Client
from interlock.testing.serving import Server

JOBS = 40


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
