"""Waits: until a Job is over, by notification and never by asking again and again.

The server is asked to hold its answer, piece by piece. A cluster's API server has no such thing: it
is watched. A server that is away for a while is waited for, because Jobs go on without it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from interlock.client.errors import UnreachableError
from interlock.client.http_client import quote
from interlock.client.kinds import JOBS
from interlock.client.watching import Lines
from interlock.sdk.asking import Site, ask, find_status_api, open_stream
from interlock.sdk.effects import OVERDUE, Call, Pause, Plan, Receive, Tick
from interlock.sdk.errors import (
    Conflict,
    NotFound,
    OperationFailed,
    OperationStuck,
    Refused,
    StillRunning,
)
from interlock.sdk.reading import get, job_item
from interlock.sdk.record import JobRecord, read_record, record_of

#: So long a server is asked to hold an answer.
PIECE_S = 30.0
#: So long a server may be away while something is waited for.
AWAY_S = 120.0
#: A server that does not hold its answers is not asked more often than this.
_LEAST_S = 1.0
_GONE = "the Job was deleted while it was waited for"


def wait(site: Site, record: JobRecord, timeout_s: float | None) -> Plan[JobRecord]:
    """The record of a Job that is over.

    Raises:
        OperationStuck: Nobody acts but a person: waiting is of no use.
        StillRunning: The time is over, and the Job is not.
    """
    begun: float = yield Tick()
    deadline = None if timeout_s is None else begun + timeout_s
    if (yield from find_status_api(site)):
        return (yield from _held(site, record, deadline))
    return (yield from _watched(site, record, deadline))


def _held(site: Site, record: JobRecord, deadline: float | None) -> Plan[JobRecord]:
    path = f"/jobs/{quote(record.job_id)}"
    while True:
        now: float = yield Tick()
        piece_s = PIECE_S if deadline is None else min(PIECE_S, deadline - now)
        held_s = max(0, math.ceil(piece_s))
        query = {"wait": f"{held_s}s"} if held_s else {}
        call = Call(method="GET", path=path, query=query, held_s=float(held_s))
        reply = yield from ask(site, call, patience_s=_patience(deadline, now))
        record = settled(read_record(reply.body))
        if record.is_over:
            return record
        after: float = yield Tick()
        if deadline is not None and after >= deadline:
            raise still_running(record)
        if after - now < min(_LEAST_S, held_s):
            yield Pause(_LEAST_S)


def _watched(site: Site, record: JobRecord, deadline: float | None) -> Plan[JobRecord]:
    item = yield from job_item(site, record.job_id, namespace=record.namespace, name=record.name)
    record = settled(record_of(item))
    version = item["metadata"]["resourceVersion"]
    while not record.is_over:
        now: float = yield Tick()
        left = None if deadline is None else deadline - now
        if left is not None and left <= 0:
            raise still_running(record)
        try:
            item = yield from next_change(site, item, version, left, _patience(deadline, now))
        except Conflict as error:
            if error.status != 410:
                raise
            # What happened in between is not told any more: it is looked up.
            item = yield from get(site, JOBS, record.namespace, record.name)
            if item["metadata"]["uid"] != record.job_id:
                raise NotFound(404, "NotFound", _GONE) from None
        version = item["metadata"]["resourceVersion"]
        record = settled(record_of(item))
    return record


def next_change(
    site: Site,
    item: Mapping[str, Any],
    version: str,
    timeout_s: float | None,
    patience_s: float = AWAY_S,
) -> Plan[Any]:
    """A Job as it is after its next change, or as it was when none came in time."""
    metadata = item["metadata"]
    query = {
        "watch": "true",
        "fieldSelector": f"metadata.name={metadata['name']}",
        "resourceVersion": version,
    }
    call = Call(method="GET", path=JOBS.path(metadata["namespace"]), query=query)
    yield from open_stream(site, call, patience_s=patience_s)
    lines = Lines()
    while True:
        try:
            part = yield Receive(timeout_s)
        except UnreachableError:
            part = None  # It is looked for when the watch is opened again.
        if part is None or part is OVERDUE:
            return item
        for line in lines.feed(part):
            event = json.loads(line)
            found = event["object"]
            if event["type"] == "ERROR":
                raise _ended_watch(found)
            if event["type"] == "BOOKMARK":
                continue
            if event["type"] == "DELETED" or found["metadata"]["uid"] != metadata["uid"]:
                raise NotFound(404, "NotFound", _GONE)
            return {"apiVersion": JOBS.api_version, "kind": JOBS.name, **found}


def _ended_watch(status: Mapping[str, Any]) -> Refused:
    code = int(status.get("code") or 410)
    kind = Conflict if code == 410 else Refused
    return kind(code, str(status.get("reason") or ""), str(status.get("message") or "it ended"))


def _patience(deadline: float | None, now: float) -> float:
    return AWAY_S if deadline is None else max(0.0, min(AWAY_S, deadline - now))


def settled(record: JobRecord) -> JobRecord:
    """The record, unless only a person can go on with the Job."""
    if record.is_stuck:
        since = f" since {record.stuck_at:%Y-%m-%d %H:%M:%S} UTC" if record.stuck_at else ""
        told = f": {record.error}" if record.error else ""
        raise OperationStuck(
            f"job/{record.name} is stuck{since}{told}",
            record,
            hint="decide about it: go_forward, roll_back, resolve or let_go",
        )
    return record


def still_running(record: JobRecord) -> StillRunning:
    """That the time is over, and not the Job."""
    return StillRunning(f"job/{record.name} ({record.job_id}) is still {record.state}", record)


def succeeded(record: JobRecord) -> JobRecord:
    """The record of a Job that is over, unless it came to less than success."""
    if not record.succeeded:
        told = record.error or "it tells no reason"
        raise OperationFailed(
            f"job/{record.name} came to {record.completion_state}: {told}", record
        )
    return record
