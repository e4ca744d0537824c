"""Restores the whole way: a real server, a real keeper, and processes that go on meanwhile."""

from __future__ import annotations

import os
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from interlock.testing.clients import Client, phase_of
from interlock.testing.keepers import kill_keeper, living
from interlock.testing.serving import PATIENCE_S, Server


def shell(script: str, *arguments: object) -> dict[str, list[str]]:
    return {"command": ["sh", "-c", script, "sh", *map(str, arguments)]}


def on(*keys: str) -> list[dict[str, str]]:
    return [{"key": key} for key in keys]


def back_up(server: Server, file: Path) -> Path:
    request = urllib.request.Request(f"{server.url}/admin/backup", method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        file.write_bytes(answer.read())
    return file


def is_ready(server: Server) -> bool:
    with urllib.request.urlopen(f"{server.url}/readyz", timeout=PATIENCE_S) as answer:
        return bool(answer.read() == b"ok")


def exit_codes(job: dict[str, Any]) -> list[int | None]:
    return [ended.get("exitCode") for ended in job["status"]["execution"]["ended"]]


class Fifo:
    """Holds a process back until it is told which code to exit with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)

    @property
    def process(self) -> dict[str, list[str]]:
        return shell('echo "$INTERLOCK_JOB" >> "$1.ran"; read code < "$1"; exit "$code"', self.path)

    def end(self, code: int) -> None:
        """Have whoever waits, or comes to wait, exit with this code."""
        self._held = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        os.write(self._held, f"{code}\n".encode())

    @property
    def runs(self) -> int:
        ran = self.path.with_name(self.path.name + ".ran")
        return len(ran.read_text().splitlines()) if ran.exists() else 0


def test_tokens_rise_from_restore_to_restore(tmp_path: Path) -> None:
    """In place again and again, and at last where nothing is left: it works as if nothing was."""
    fences = tmp_path / "fences"
    process = shell('echo "$INTERLOCK_FENCE" >> "$1"', fences)

    def run(server: Server, name: str) -> None:
        client = Client(server.url)
        client.create(name, process=process, locks=on("ledger"))
        client.phase(name, "Succeeded")

    with Server(tmp_path / "data", cwd=tmp_path) as server:
        run(server, "first")
        backup = back_up(server, tmp_path / "backup")
        for turn in range(2):
            run(server, f"more-{turn}")
            server.kill()
            server.start()
        for turn in range(2):
            server.put_back(backup)
            assert is_ready(server)
            assert [*Client(server.url).wait(bool)] == ["first"]
            run(server, f"restored-{turn}")
        server.stop()
        shutil.rmtree(server.data)
        server.put_back(backup)
        run(server, "made-anew")

    given = [int(line) for line in fences.read_text().split()]
    assert len(given) == 1 + 2 + 2 + 1
    assert given == sorted(set(given))


@pytest.mark.parametrize("keeper", ["alive", "killed"])
def test_what_runs_is_found_or_told_apart(tmp_path: Path, keeper: str) -> None:
    """What the backup knows goes on as it went; what it does not is gone before others start."""
    kept, ended, waited = (Fifo(tmp_path / name) for name in ("kept", "ended", "waited"))
    at_work, fences = tmp_path / "at-work", tmp_path / "fences"
    told = 'echo "$INTERLOCK_JOB starts" >> "$1"; echo "$INTERLOCK_FENCE" >> "$2"; '
    goes_slowly = 'trap \'sleep 0.3; echo "$INTERLOCK_JOB ends" >> "$1"; exit\' TERM; '
    endless = shell(f"{goes_slowly}{told}while :; do sleep 0.01; done", at_work, fences)
    with Server(tmp_path / "data", cwd=tmp_path) as server:
        client = Client(server.url)
        client.create("kept", process=kept.process, locks=on("kept"))
        client.create("ended", process=ended.process, locks=on("db"))
        client.phase("kept", "Running")
        client.phase("ended", "Running")
        client.create("next", process=shell(told, at_work, fences), locks=on("db"))
        client.create("waited", process=waited.process, suspend=True)
        client.wait(lambda jobs: phase_of(jobs["next"]) == "Queued")
        backup = back_up(server, tmp_path / "backup")

        client.delete("next")
        ended.end(3)
        client.phase("ended", "Failed")
        client.patch("waited", {"spec": {"suspend": False}})
        waited.end(0)
        client.phase("waited", "Succeeded")
        client.create("late", process=endless, locks=on("db"))
        client.phase("late", "Running")
        server.stop()
        if keeper == "killed":
            kill_keeper(server.data)
        server.put_back(backup)

        client = Client(server.url)
        jobs = client.wait(lambda jobs: phase_of(jobs["next"]) == "Succeeded")
        assert is_ready(server)
        # It waited in the backup, and was first in line: yet it started last.
        assert at_work.read_text().splitlines() == ["late starts", "late ends", "next starts"]
        late, later = map(int, fences.read_text().split())
        assert later > late
        assert "late" not in jobs
        # What ran in the backup and is over: as it went, although everybody had forgotten it.
        assert (phase_of(jobs["ended"]), exit_codes(jobs["ended"])) == ("Failed", [3])
        # What waited in the backup and is over: told, and not run again.
        client.patch("waited", {"spec": {"suspend": False}})
        assert exit_codes(client.phase("waited", "Succeeded")) == [0]
        # What ran in the backup and still does: found.
        assert phase_of(client.job("kept")) == "Running"
        kept.end(5)
        if keeper == "alive":
            assert exit_codes(client.phase("kept", "Failed")) == [5]
        else:
            client.phase("kept", "Unknown")
        assert (kept.runs, ended.runs, waited.runs) == (1, 1, 1)
        assert living(server.data) == []
