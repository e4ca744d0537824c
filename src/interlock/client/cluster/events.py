"""Events of a resource: what happened to it, as the controller wrote it down."""

from __future__ import annotations

from typing import Any

from interlock.client.api import PAGE, Api
from interlock.client.http_client import quote
from interlock.client.kinds import kind_named
from interlock.resources.metadata import GROUP, VERSION

#: What a person should know who misses something.
KEPT = "a cluster keeps events for about an hour"

Event = dict[str, Any]


def read_events(
    api: Api, key: dict[str, str], limit: int, before: int | None = None
) -> dict[str, Any]:
    """The newest events as entries of a history; `before` is the number of an entry."""
    entries = [_entry(event) for event in _list(api, key)]
    entries = [one for one in entries if before is None or one["number"] < before]
    entries.sort(key=lambda entry: int(entry["number"]), reverse=True)
    shown = entries[:limit]
    more = shown[-1]["number"] if len(entries) > limit else None
    return {"items": shown, "next": more}


def _list(api: Api, key: dict[str, str]) -> list[Event]:
    # Without the version a Job of Kubernetes would be mistaken for one of ours.
    kind = kind_named(key["kind"]) if key.get("kind") else None
    fields = {"involvedObject.apiVersion": kind.api_version if kind else f"{GROUP}/{VERSION}"}
    if key.get("name"):
        fields |= {"involvedObject.kind": key["kind"], "involvedObject.name": key["name"]}
    place = f"/namespaces/{quote(key['namespace'])}" if key.get("namespace") else ""
    query: dict[str, object] = {
        "fieldSelector": ",".join(f"{name}={value}" for name, value in fields.items()),
        "limit": PAGE,
    }
    found: list[Event] = []
    while True:
        page = api.call("GET", f"/api/v1{place}/events", query)
        found += page["items"]
        query["continue"] = page["metadata"].get("continue") or ""
        if not query["continue"]:
            return found


def _entry(event: Event) -> dict[str, Any]:
    """An event in the words of a history. Its number rises whenever it is written."""
    about, series = event["involvedObject"], event.get("series") or {}
    times = int(series.get("count") or event.get("count") or 1)
    message = str(event.get("message") or "")
    return {
        "number": int(event["metadata"]["resourceVersion"]),
        "at": _moment(event, series),
        "room": str(event.get("reason") or ""),
        "kind": str(about.get("kind") or ""),
        "namespace": str(about.get("namespace") or ""),
        "name": str(about.get("name") or ""),
        "actions": [],
        "reason": f"{message} ({times} times)" if times > 1 else message,
        "version": str(about.get("resourceVersion") or ""),
        "outcome": "" if event.get("type") == "Normal" else str(event.get("type") or ""),
    }


def _moment(event: Event, series: dict[str, Any]) -> str:
    moments = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event.get("firstTimestamp"),
        event["metadata"].get("creationTimestamp"),
    )
    return str(next(filter(None, moments), ""))
