"""Reads: resources, records, reasons, the history, and what is due."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from interlock.client.api import MERGE_PATCH, PAGE, Api
from interlock.client.http_client import quote
from interlock.client.kinds import (
    CALENDARS,
    CONTROLLED_JOBS,
    JOB_CONFIGS,
    JOBS,
    Kind,
)
from interlock.client.moments import server_now, write_moment
from interlock.commands.merging import last_applied, three_way_patch, with_last_applied
from interlock.resources.codec import encode, from_builtins, to_builtins
from interlock.resources.operation import StepStatus
from interlock.sdk.asking import Site, ask, ask_json, find_cluster, find_status_api
from interlock.sdk.effects import Call, Emit, Plan, Work
from interlock.sdk.errors import BadInput, Conflict, NotFound
from interlock.sdk.manifests import kind_for
from interlock.sdk.record import JobRecord, read_page, read_record, record_of

Item = dict[str, Any]

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: A server looks for so many ids at a time.
_MOST_IDS = 500
#: How often somebody else may create or delete the same thing in between.
_ROUNDS = 5


def get(site: Site, kind: Kind, namespace: str, name: str) -> Plan[Item]:
    """One resource, as it is stored."""
    if not name:
        raise BadInput(f"the name of a {kind.name} is empty")
    item: Item = yield from ask_json(site, Call(method="GET", path=kind.path(namespace, name)))
    return item


def list_all(
    site: Site, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = ""
) -> Plan[None]:
    """Every resource of a kind, one after the other."""
    query: dict[str, object] = {"limit": PAGE, "labelSelector": labels, "fieldSelector": fields}
    while True:
        page = yield from ask_json(site, Call(method="GET", path=kind.path(namespace), query=query))
        for item in page.get("items") or ():
            yield Emit({"apiVersion": kind.api_version, "kind": kind.name, **item})
        query["continue"] = (page.get("metadata") or {}).get("continue") or ""
        if not query["continue"]:
            return


def delete(site: Site, kind: Kind, namespace: str, name: str) -> Plan[None]:
    """Delete a resource; one that is going may take its time."""
    if not name:
        raise BadInput(f"the name of a {kind.name} is empty")
    yield from ask_json(site, Call(method="DELETE", path=kind.path(namespace, name)))


def apply(site: Site, document: Mapping[str, Any]) -> Plan[Item]:
    """Make a resource what a document says, and leave alone what others wrote."""
    kind = kind_for(str(document.get("kind") or ""))
    metadata = document["metadata"]
    namespace, name = metadata["namespace"], metadata.get("name")
    if not name:
        raise BadInput("what is applied must be found again: give it metadata.name")
    wanted = with_last_applied({"apiVersion": kind.api_version, **document})
    for tries_left in reversed(range(_ROUNDS)):
        try:
            return (yield from _applied(site, kind, namespace, name, wanted))
        except (Conflict, NotFound) as error:
            if not tries_left or error.code not in ("AlreadyExists", "Conflict", "NotFound"):
                raise
    raise AssertionError("the last try returns or raises")


def _applied(
    site: Site, kind: Kind, namespace: str, name: str, wanted: Mapping[str, Any]
) -> Plan[Item]:
    strict = {"fieldManager": "interlock", "fieldValidation": "Strict"}
    try:
        stored = yield from get(site, kind, namespace, name)
    except NotFound:
        call = Call(method="POST", path=kind.path(namespace), query=strict, body=encode(wanted))
    else:
        patch = three_way_patch(last_applied(stored), dict(wanted), stored)
        if not patch:
            return stored
        call = Call(
            method="PATCH",
            path=kind.path(namespace, name),
            query=strict,
            body=encode(patch),
            content_type=MERGE_PATCH,
        )
    item: Item = yield from ask_json(site, call)
    return item


def find_job(site: Site, id_or_name: str, namespace: str) -> Plan[JobRecord]:
    """The record of a Job by its id or its name."""
    if not id_or_name:
        raise BadInput("the id or the name of a Job is empty")
    if _UID.fullmatch(id_or_name):
        try:
            return (yield from read_job(site, id_or_name))
        except NotFound:
            pass  # A name may look like an id.
    item = yield from get(site, JOBS, namespace, id_or_name.removeprefix("job/"))
    if (yield from find_status_api(site)):
        return (yield from read_job(site, item["metadata"]["uid"]))
    return record_of(item)


def read_job(site: Site, uid: str, *, namespace: str = "", name: str = "") -> Plan[JobRecord]:
    """The record of the Job with an id; its name, where that is known, spares a search."""
    if (yield from find_status_api(site)):
        reply = yield from ask(site, Call(method="GET", path=f"/jobs/{quote(uid)}"))
        return read_record(reply.body)
    return record_of((yield from job_item(site, uid, namespace=namespace, name=name)))


def job_item(site: Site, uid: str, *, namespace: str = "", name: str = "") -> Plan[Item]:
    """The Job with an id, as it is stored."""
    missing = NotFound(404, "NotFound", f"there is no Job with the id {uid}")
    if name:
        item = yield from get(site, JOBS, namespace, name)
        if item["metadata"]["uid"] != uid:
            raise missing
        return item
    found = yield from collected(list_all(site, JOBS, None), lambda one: _uid(one) == uid)
    if not found:
        raise missing
    only: Item = found[0]
    return only


def _uid(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["uid"])


def collected(plan: Plan[Any], holds: Any = None) -> Plan[list[Any]]:
    """What a plan would hand out, where it holds, as a list."""
    found: list[Any] = []
    sent: Any = None
    failure: BaseException | None = None
    while True:
        try:
            effect = plan.throw(failure) if failure is not None else plan.send(sent)
        except StopIteration:
            return found
        sent, failure = None, None
        if isinstance(effect, Emit):
            if holds is None or holds(effect.value):
                found.append(effect.value)
            continue
        try:
            sent = yield effect
        except Exception as error:  # The plan may know what to do about it.
            failure = error


class Wanted:
    """Which Jobs are asked for; what is not said does not matter."""

    def __init__(
        self,
        *,
        states: Iterable[str] = (),
        creator: str = "",
        path: str = "",
        ids: Iterable[str] | None = None,
        newest_first: bool = True,
        limit: int | None = None,
    ) -> None:
        self.states = (states,) if isinstance(states, str) else tuple(states)
        self.creator = creator
        self.path = path.strip("/")
        self.ids = None if ids is None else tuple(ids)
        self.newest_first = newest_first
        self.limit = limit

    def fits(self, record: JobRecord) -> bool:
        """Whether a Job is wanted."""
        target = record.target_path or ""
        return (
            (not self.states or record.state in self.states)
            and (not self.creator or record.creator_login == self.creator)
            and (self.ids is None or record.job_id in self.ids)
            and (not self.path or target == self.path or target.startswith(f"{self.path}/"))
        )


def jobs(site: Site, wanted: Wanted, namespace: str | None) -> Plan[None]:
    """The records of Jobs, page by page where the server has pages."""
    if (yield from find_status_api(site)):
        yield from _pages_of_jobs(site, wanted, namespace)
        return
    items = yield from collected(list_all(site, JOBS, namespace))
    records = [record for record in map(record_of, items) if wanted.fits(record)]
    for record in _in_order(records, wanted):
        yield Emit(record)


def _pages_of_jobs(site: Site, wanted: Wanted, namespace: str | None) -> Plan[None]:
    if wanted.ids is None or len(wanted.ids) <= _MOST_IDS:
        if wanted.ids != ():
            yield from _pages(site, wanted, namespace, wanted.ids, wanted.limit)
        return
    records: list[JobRecord] = []
    for begin in range(0, len(wanted.ids), _MOST_IDS):
        some = wanted.ids[begin : begin + _MOST_IDS]
        records += yield from collected(_pages(site, wanted, namespace, some, None))
    for record in _in_order(records, wanted):
        yield Emit(record)


def _in_order(records: list[JobRecord], wanted: Wanted) -> list[JobRecord]:
    records.sort(
        key=lambda one: (one.created_at is not None, one.created_at, one.job_id),
        reverse=wanted.newest_first,
    )
    return records[: wanted.limit]


def _pages(
    site: Site,
    wanted: Wanted,
    namespace: str | None,
    ids: tuple[str, ...] | None,
    limit: int | None,
) -> Plan[None]:
    left = limit
    query: dict[str, object] = {
        "namespace": namespace,
        "state": ",".join(wanted.states),
        "creator": wanted.creator,
        "ids": None if ids is None else ",".join(ids),
        "sort": "-created" if wanted.newest_first else "created",
    }
    path = f"/{'/'.join(map(quote, wanted.path.split('/')))}/jobs" if wanted.path else "/jobs"
    while left is None or left > 0:
        query["limit"] = PAGE if left is None else min(left, PAGE)
        reply = yield from ask(site, Call(method="GET", path=path, query=query))
        page = read_page(reply.body)
        for record in page.items:
            yield Emit(record)
        left = None if left is None else left - len(page.items)
        query["cursor"] = page.next
        if not page.next:
            return


def steps(site: Site, record: JobRecord) -> Plan[tuple[StepStatus, ...]]:
    """How every step of an operation is going; none once it is over, or has not begun."""
    item = yield from job_item(site, record.job_id, namespace=record.namespace, name=record.name)
    execution = (item.get("status") or {}).get("execution") or {}
    told = (execution.get("operation") or {}).get("steps") or ()
    return tuple(from_builtins(one, StepStatus) for one in told)


def why(site: Site, kind: Kind, namespace: str, name: str) -> Plan[Item]:
    """Why something runs, or does not."""
    if kind not in (JOBS, JOB_CONFIGS, CONTROLLED_JOBS):
        raise BadInput(f"there is nothing to tell about {kind.plural}")
    if (yield from find_cluster(site)):
        told: Item = yield Work(lambda api: _why_on_cluster(api, kind, namespace, name))
        return told
    path = f"/{kind.plural}/{quote(namespace)}/{quote(name)}/why"
    item: Item = yield from ask_json(site, Call(method="GET", path=path))
    return item


def _why_on_cluster(api: Api, kind: Kind, namespace: str, name: str) -> Item:
    from interlock.client.cluster.reports import ClusterReports

    reports = ClusterReports(api)
    if kind is JOBS:
        return reports.why(namespace, name)
    return reports.why_schedule(kind, namespace, name)


def history(
    site: Site, kind: Kind | None, namespace: str, name: str, limit: int
) -> Plan[list[Item]]:
    """What was decided, newest first, about one thing or about all."""
    key = {} if kind is None else {"kind": kind.name, "namespace": namespace, "name": name}
    on_cluster = yield from find_cluster(site)
    items: list[Item] = yield Work(lambda api: _history(api, key, limit, on_cluster=on_cluster))
    return items


def _history(api: Api, key: dict[str, str], limit: int, *, on_cluster: bool) -> list[Item]:
    if on_cluster:
        from interlock.client.cluster.reports import ClusterReports

        return list(ClusterReports(api).history(key, limit, None)["items"])
    from interlock.client.reports import ServerReports

    return list(ServerReports(api).history(key, limit, None)["items"])


def upcoming(
    site: Site,
    kind: Kind | None,
    namespace: str,
    name: str,
    begin: datetime | None,
    end: datetime | None,
    limit: int,
) -> Plan[list[Item]]:
    """What is due, in order: of one schedule or of all in the namespace."""
    if (yield from find_cluster(site)):
        due: list[Item] = yield Work(
            lambda api: _due_on_cluster(api, kind, namespace, name, begin, end, limit)
        )
        return due
    query: dict[str, object] = {
        "from": write_moment(begin) if begin else None,
        "to": write_moment(end) if end else None,
        "limit": limit,
    }
    path = "/next"
    if kind is None:
        query["namespace"] = namespace
    else:
        path = f"/{kind.plural}/{quote(namespace)}/{quote(name)}/next"
    answer = yield from ask_json(site, Call(method="GET", path=path, query=query))
    return list(answer["items"])


def _due_on_cluster(
    api: Api,
    kind: Kind | None,
    namespace: str,
    name: str,
    begin: datetime | None,
    end: datetime | None,
    limit: int,
) -> list[Item]:
    """The same, worked out here from the definitions that a cluster stores."""
    from interlock.client.cluster.snapshot import pages
    from interlock.client.schedules import read_calendars, read_one
    from interlock.forecast.upcoming import Definitions, bounded

    definitions = Definitions()
    if kind is not None:
        resource = read_one(api, kind, namespace, name)
        for found in (resource, *read_calendars(api, resource)):
            definitions.add(found)
    else:
        for each in (JOB_CONFIGS, CONTROLLED_JOBS, JOBS, CALENDARS):
            for items in pages(api, each, namespace):
                for found in items.items:
                    definitions.add(found)
    coming = definitions.coming(begin or server_now(api))
    return [to_builtins(each.data()) for each in islice(bounded(coming, end, limit), limit)]


def one_or_all(kind: str | None, name: str) -> Kind | None:
    """The kind of the one thing that is meant; None for everything."""
    if (kind is None) != (not name):
        raise BadInput("give a kind and a name, or neither")
    return None if kind is None else kind_for(kind)
