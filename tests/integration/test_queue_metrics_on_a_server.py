"""What a real server tells at /metrics of a Job that was let in, ready, and put back."""

from __future__ import annotations

import json
import select
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.testing.serving import PATIENCE_S, Server

ROOT = "/apis/interlock.dev/v1alpha1"
JOBS = f"{ROOT}/namespaces/default/jobs"
QUEUE = {
    "metadata": {"name": "gangs"},
    "spec": {"resources": {"tasks": 4}, "waitForPodsReady": {"enable": True, "timeout": "1h"}},
}
TRAIN = {
    "metadata": {"name": "train"},
    "spec": {"queue": "gangs", "priority": 7, "process": {"command": ["sleep", "600"]}},
}
COUNTS = {
    'admission_wait_seconds_count{priority="7",queue="gangs"}': 1.0,
    'ready_wait_seconds_count{priority="7",queue="gangs"}': 1.0,
    'admitted_until_ready_seconds_count{priority="7",queue="gangs"}': 1.0,
    'evicted_jobs_total{cause="",priority="7",queue="gangs",reason="Deactivated"}': 1.0,
    'evicted_jobs_once_total{cause="",priority="7",queue="gangs",reason="Deactivated"}': 1.0,
    'ready_to_evicted_seconds_count{cause="",queue="gangs",reason="Deactivated"}': 1.0,
    'eviction_latency_seconds_count{queue="gangs",reason="Deactivated"}': 1.0,
}


def test_a_job_that_is_let_in_and_put_back_is_counted(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        ask(server, "POST", f"{ROOT}/queues", QUEUE)
        ask(server, "POST", JOBS, TRAIN)
        until(lambda: is_ready(job(server)), "the Job is ready")

        ask(server, "PATCH", f"{JOBS}/train", {"spec": {"active": False}})
        until(lambda: told(server) == COUNTS, "everything of it is counted, once")


def told(server: Server) -> dict[str, float]:
    """The numbers of those that are counted here."""
    lines = dict(line.rsplit(" ", 1) for line in read(server, "/metrics").splitlines())
    found = {name: lines.get(f"interlock_queue_{name}", "nan") for name in COUNTS}
    return {name: float(value) for name, value in found.items()}


def is_ready(found: dict[str, Any]) -> bool:
    conditions = found.get("status", {}).get("conditions", ())
    return any(one["type"] == "PodsReady" and one["status"] == "True" for one in conditions)


def job(server: Server) -> dict[str, Any]:
    return dict(json.loads(read(server, f"{JOBS}/train")))


def read(server: Server, path: str) -> str:
    with urllib.request.urlopen(f"{server.url}{path}", timeout=PATIENCE_S) as answer:
        text: str = answer.read().decode()
        return text


def ask(server: Server, method: str, path: str, body: object) -> None:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"content-type": kind}
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        assert answer.status < 300


def until(true: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up, f"this never came: {what}"
        select.select([], [], [], 0.02)
