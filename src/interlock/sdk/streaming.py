"""Streams: changes of Jobs as they happen, and what tasks print."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from interlock.client.cluster.pod_logs import LogRequest, log_requests
from interlock.client.errors import NOT_FOUND, CommandError, UnreachableError
from interlock.client.http_client import quote
from interlock.client.kinds import JOBS
from interlock.client.moments import write_moment
from interlock.client.reports import Excerpt as Asked
from interlock.client.watching import Lines
from interlock.kube.store.codec import WIRES
from interlock.reporting.summaries import JobSummary, summary_of
from interlock.resources.codec import encode
from interlock.resources.job import Job
from interlock.resources.operation import run_task, undo_task
from interlock.sdk.asking import Site, ask_json, find_cluster, open_stream
from interlock.sdk.effects import Call, Emit, Plan, Receive, Work
from interlock.sdk.errors import BadInput, Conflict, Invalid, NotFound
from interlock.sdk.pod_log import Place, call_of, follow
from interlock.sdk.reading import get, job_item
from interlock.sdk.record import JobRecord, record_of
from interlock.sdk.waiting import AWAY_S, next_change


class Change(Struct, frozen=True, kw_only=True):
    """Something that happened to a Job."""

    #: Where to go on from: `stream(since=version)`.
    version: str
    #: `added`, `modified` or `deleted`.
    type: str
    #: The Job in short.
    job: JobSummary


class Excerpt(Struct, frozen=True, kw_only=True):
    """Which part of which log."""

    task: int = 0
    #: None means the newest.
    attempt: int | None = None
    step: str = ""
    undo: bool = False
    follow: bool = False
    since: datetime | None = None
    tail: int | None = None


class Events:
    """Puts Server-Sent Events together from parts, however they are cut."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, part: bytes) -> Iterator[dict[str, str]]:
        """The events that are whole now, as their fields."""
        *whole, self._held = (self._held + part).split(b"\n\n")
        for event in whole:
            fields = {}
            for line in event.decode().splitlines():
                name, _, value = line.partition(":")
                if name:  # A line without one is a comment.
                    fields[name] = value.removeprefix(" ")
            if fields:
                yield fields


def stream(site: Site, namespace: str | None, labels: str, since: str) -> Plan[None]:
    """Every change of Jobs, without an end. What is missed while a server is away is made up for.

    Raises:
        Conflict: `since`, or where it was left, is too old: list, and begin anew.
    """
    if (yield from find_cluster(site)):
        yield from _watched(site, namespace, labels, since)
        return
    while True:
        query = {"namespace": namespace, "label": labels, "since": since}
        call = Call(method="GET", path="/jobs/stream", query=query, accept="text/event-stream")
        yield from open_stream(site, call, patience_s=AWAY_S)
        events = Events()
        while (part := (yield from _received())) is not None:
            for event in events.feed(part):
                if event.get("event") == "expired":
                    break  # Too slow: it is let go, and goes on where it was.
                since = event.get("id") or since
                if event.get("event") != "sync":
                    job = msgspec.json.decode(event["data"], type=JobSummary)
                    yield Emit(Change(version=since, type=event["event"], job=job))


def _received() -> Plan[Any]:
    """The next part of a stream; None when it ended, however it did."""
    try:
        return (yield Receive())
    except UnreachableError:
        return None


def _watched(site: Site, namespace: str | None, labels: str, since: str) -> Plan[None]:
    if not since:
        page = yield from ask_json(
            site, Call(method="GET", path=JOBS.path(namespace), query={"limit": 1})
        )
        since = str(page["metadata"]["resourceVersion"])
    while True:
        query = {
            "watch": "true",
            "labelSelector": labels,
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
        }
        call = Call(method="GET", path=JOBS.path(namespace), query=query)
        yield from open_stream(site, call, patience_s=AWAY_S)
        lines = Lines()
        while (part := (yield from _received())) is not None:
            for line in lines.feed(part):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    told = event["object"]
                    raise Conflict(int(told["code"]), told["reason"], told["message"])
                since = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    job = _noun(event["object"])
                    kind = event["type"].lower()
                    yield Emit(Change(version=since, type=kind, job=summary_of(job)))


def _noun(item: dict[str, Any]) -> Job:
    job = WIRES["Job"].one(encode({"apiVersion": JOBS.api_version, "kind": JOBS.name, **item}))
    assert isinstance(job, Job), "the API serves Jobs where it is asked for Jobs"
    return job


def logs(site: Site, record: JobRecord, excerpt: Excerpt) -> Plan[None]:
    """What an attempt printed, line by line; followed, until the attempt is over."""
    item = yield from job_item(site, record.job_id, namespace=record.namespace, name=record.name)
    task = _task_of(item, excerpt)
    if (yield from find_cluster(site)):
        yield from _of_pods(site, item, task, excerpt)
        return
    metadata = item["metadata"]
    query = {
        "task": task,
        "attempt": excerpt.attempt,
        "follow": "true" if excerpt.follow else None,
        "since": write_moment(excerpt.since) if excerpt.since else None,
        "tail": excerpt.tail,
    }
    path = f"/jobs/{quote(metadata['namespace'])}/{quote(metadata['name'])}/log"
    call = Call(method="GET", path=path, query=query, accept="text/plain")
    yield from _begun(site, call, item, excerpt)
    yield from _lines()


def _begun(site: Site, call: Call, item: dict[str, Any], excerpt: Excerpt) -> Plan[None]:
    """Open a log; whoever follows waits for one that is yet to be written."""
    while True:
        try:
            yield from open_stream(site, call)
        except NotFound:
            if not excerpt.follow or record_of(item).is_over:
                raise
        else:
            return
        item = yield from _changed(site, item)


def _changed(site: Site, item: dict[str, Any]) -> Plan[dict[str, Any]]:
    """The Job as it is now, if that is something else; or else after its next change."""
    metadata = item["metadata"]
    fresh: dict[str, Any] = yield from get(site, JOBS, metadata["namespace"], metadata["name"])
    if _version(fresh) == _version(item):
        fresh = yield from next_change(site, item, _version(item), None)
    return fresh


def _version(item: dict[str, Any]) -> str:
    return str(item["metadata"]["resourceVersion"])


def _lines() -> Plan[None]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    held = ""
    while (part := (yield Receive())) is not None:
        *whole, held = (held + decoder.decode(part)).split("\n")
        for line in whole:
            yield Emit(line)
    held += decoder.decode(b"", final=True)
    if held:
        yield Emit(held)


def _of_pods(site: Site, item: dict[str, Any], task: int, excerpt: Excerpt) -> Plan[None]:
    """What the pods of an attempt printed, one pod after the other."""
    asked = Asked(
        task=task,
        attempt=excerpt.attempt,
        since=write_moment(excerpt.since) if excerpt.since else "",
        tail=excerpt.tail,
        follow=excerpt.follow,
    )
    for at, request in enumerate((yield from _begun_pods(site, item, asked))):
        place = Place()
        if at:
            yield from open_stream(site, call_of(request, place))
        yield from follow(site, request, place) if request.query["follow"] else _lines()


def _begun_pods(site: Site, item: dict[str, Any], asked: Asked) -> Plan[list[LogRequest]]:
    """Find the logs of the pods and open the first; whoever follows waits for it to begin."""
    metadata = item["metadata"]
    while True:
        try:
            requests: list[LogRequest] = yield Work(
                lambda api: list(log_requests(api, metadata["namespace"], metadata["name"], asked))
            )
            yield from open_stream(site, call_of(requests[0], Place()))
        except (CommandError, NotFound, Invalid) as error:
            # Of a container that is yet to start an API server says that the request is bad.
            is_early = not isinstance(error, CommandError) or error.code == NOT_FOUND
            if not asked.follow or not is_early or record_of(item).is_over:
                raise
        else:
            return requests
        item = yield from _changed(site, item)


def _task_of(item: dict[str, Any], excerpt: Excerpt) -> int:
    if not excerpt.step:
        if excerpt.undo:
            raise BadInput("undo: say of which step")
        return excerpt.task
    spec, status = item["spec"], item.get("status") or {}
    operation = (status.get("execution") or {}).get("operation") or {}
    names = [one["name"] for one in spec.get("steps") or operation.get("elaborated") or ()]
    if excerpt.step not in names:
        known = f"its steps are {', '.join(names)}" if names else "it has none"
        raise BadInput(f"job/{item['metadata']['name']} has no step {excerpt.step!r}: {known}")
    at = names.index(excerpt.step)
    return undo_task(at) if excerpt.undo else run_task(at)
