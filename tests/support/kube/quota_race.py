"""Two controllers race for the last unit of a quota, many times, on a real control plane.

Each controller serves a namespace of its own, so both lead and neither waits for the other; what
they share are Queues, which belong to no namespace, each with one unit that a Job of each
namespace wants at the same moment. What is told is worked out from what the API server's watches
told of records and Jobs, in the order of its versions.
"""

from __future__ import annotations

import http.client
import json
import select
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from interlock.testing.serving import PATIENCE_S
from support.kube.access import Access, User
from support.kube.controllers import Controller
from support.kube.recording import Recorder
from support.kube.verdict import Seen

_OURS = "/apis/interlock.dev/v1alpha1"
QUEUES = f"{_OURS}/queues"
JOBS = f"{_OURS}/namespaces/{{}}/jobs"
QUOTAS = f"{_OURS}/queuequotas"
_LOOK_EVERY_S = 0.5


class Outcome(NamedTuple):
    """What came of some races."""

    #: Versions of a record at which more than one Job held the unit.
    both: list[str]
    #: Grants of the unit, by namespace: who was first, and all of them.
    first: dict[str, int]
    grants: int
    #: Jobs that came to their end.
    ended: int
    #: Races in which the loser was in line before the winner was over.
    met: int


def race(access: Access, folder: Path, races: int) -> Outcome:
    """Have two controllers race so many times."""
    with ExitStack() as stack:
        sides = [stack.enter_context(access.namespace()) for _ in range(2)]
        # No other test has Queues of such names.
        names = [f"{sides[0]}-{number}" for number in range(races)]
        for side in sides:
            controller = stack.enter_context(Controller(access, folder, namespace=side))
            controller.wait_until_leading()
        recorders = [
            Recorder(access, sides[0], {"Job": JOBS, "QueueQuota": QUOTAS}),
            Recorder(access, sides[1], {"Job": JOBS}),
        ]
        queues = [_a_queue(name) for name in names]
        stack.callback(_remove_all, access, names)
        _create(access, QUEUES, queues, lambda: None)
        with recorders[0], recorders[1]:
            _meet(access, sides, names)
            ended = _await_ends(access, sides, races)
        history = [seen for recorder in recorders for seen in recorder.history]
    return _judge(history, frozenset(names), ended)


def _meet(access: Access, sides: list[str], names: list[str]) -> None:
    """Create a Job for each Queue on both sides, each pair at the same moment."""
    together = threading.Barrier(len(sides), timeout=PATIENCE_S)
    troubles: list[BaseException] = []

    def work(side: str) -> None:
        try:
            jobs = [_a_job(name) for name in names]
            _create(access, JOBS.format(side), jobs, together.wait)
        except BaseException as error:
            troubles.append(error)
            together.abort()

    threads = [threading.Thread(target=work, args=(side,)) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]


def _create(
    access: Access, path: str, bodies: list[dict[str, Any]], before: Callable[[], object]
) -> None:
    """Create all of these on one connection."""
    with access.connected(User.ADMIN) as (connection, headers):
        for body in bodies:
            before()
            connection.request(
                "POST", path, json.dumps(body), {**headers, "Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            told = answer.read()
            assert answer.status == http.client.CREATED, f"{path}: {answer.status} {told!r}"


def _await_ends(access: Access, sides: list[str], races: int) -> int:
    """Wait until all Jobs are over, as long as any of them gets there; how many are."""
    until, ended = time.monotonic() + PATIENCE_S, 0
    while ended < 2 * races and time.monotonic() < until:
        select.select([], [], [], _LOOK_EVERY_S)
        found = 0
        for side in sides:
            items = access.read(JOBS.format(side))["items"]
            found += sum("endedAt" in _part(item, "execution") for item in items)
        if found > ended:
            ended, until = found, time.monotonic() + PATIENCE_S
    return ended


def _judge(history: list[Seen], names: frozenset[str], ended: int) -> Outcome:
    """Go through all versions: whoever was granted the unit holds it until its Job is over."""
    both: list[str] = []
    first: dict[str, int] = {}
    holding: dict[str, dict[tuple[str, int], str]] = {name: {} for name in names}
    waiting: dict[str, set[str]] = {name: set() for name in names}
    over: set[str] = set()
    granted: set[tuple[str, str, int]] = set()
    met = 0
    for seen in sorted(history, key=lambda one: one.version):
        name, _, uid = _names(seen)
        if seen.kind == "Job" and name in names:
            waiting[name].add(uid)
            if seen.gone or "endedAt" in _part(seen.object, "execution"):
                over.add(uid)
                holding[name] = {key: one for key, one in holding[name].items() if key[0] != uid}
            continue
        queue = name.removeprefix("queue.")
        if seen.kind != "QueueQuota" or queue not in names:
            continue
        holders = () if seen.gone else seen.object.get("status", {}).get("holders", ())
        for holder in holders:
            key = holder["uid"], holder["epoch"]
            if (queue, *key) in granted:
                continue
            granted.add((queue, *key))
            if not any(one[0] == queue for one in granted if one != (queue, *key)):
                first[holder["namespace"]] = first.get(holder["namespace"], 0) + 1
                met += len(waiting[queue]) == 2
            if holder["uid"] not in over:
                holding[queue][key] = f"{holder['namespace']}/{holder['job']}"
        if len(holding[queue]) > 1:
            both.append(f"version {seen.version}: {sorted(holding[queue].values())} hold {queue}")
    return Outcome(both, first, len(granted), ended, met)


def _names(seen: Seen) -> tuple[str, str, str]:
    metadata = seen.object["metadata"]
    return metadata["name"], metadata.get("namespace", ""), metadata["uid"]


def _part(job: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = job.get("status", {}).get(name) or {}
    return found


def _a_queue(name: str) -> dict[str, Any]:
    spec = {"resources": {"tasks": 1}}
    return _ours("Queue", name, spec)


def _a_job(name: str) -> dict[str, Any]:
    return _ours("Job", name, {"noop": {}, "queue": name})


def _ours(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _remove_all(access: Access, names: list[str]) -> None:
    for name in names:
        access.ask("DELETE", f"{QUEUES}/{name}")
        access.ask("DELETE", f"{QUOTAS}/queue.{name}")
