"""The paths of this room: /jobs, /locks, /history and so on, beside the resources themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import parse_qsl

from interlock.api.answers import RefusedError, bad_request
from interlock.api.requests import Handler, Receive, Request, Scope, Send
from interlock.control.cache import Cache
from interlock.control.clock import Clock
from interlock.reporting.lines import LineReader
from interlock.reporting.listing import page, read_listing
from interlock.reporting.logs import Logs, serve_log
from interlock.reporting.roster import Roster
from interlock.reporting.schedule_reader import ScheduleReader
from interlock.reporting.streams import Streams
from interlock.reporting.summaries import summary_of
from interlock.reporting.why import explain
from interlock.resources.codec import encode, to_builtins
from interlock.resources.errors import NotFoundError
from interlock.resources.job import Job
from interlock.resources.lock import Lock
from interlock.resources.metadata import Key
from interlock.store.contract import Journal, Store

#: Writes a copy of the store, part by part, while it is in use.
Backup = Callable[[], AsyncIterator[bytes]]

#: Works out the body of an answer from a request.
_Body = Callable[[Request], Awaitable[object]]

_LARGEST_PAGE = 1000


class Reporting:
    """Answers the questions of people and programs."""

    def __init__(
        self,
        *,
        store: Store,
        jobs: Cache[Job],
        locks: Cache[Lock],
        roster: Roster,
        journal: Journal,
        logs: Logs,
        clock: Clock,
        schedules: ScheduleReader,
        backup: Backup | None = None,
    ) -> None:
        self._jobs = jobs
        self._roster = roster
        self._lines = LineReader(jobs, locks)
        self._journal = journal
        self._logs = logs
        self._clock = clock
        self._schedules = schedules
        self._backup = backup
        self._streams = Streams(store, clock)

    def mounts(self) -> dict[str, Handler]:
        """What is served, by the beginning of its path."""
        return {
            "/jobs": self._serve_jobs,
            "/jobconfigs": _serving(self._explain_schedule),
            "/controlledjobs": _serving(self._explain_schedule),
            "/locks": _serving(self._list_locks),
            "/history": _serving(self._read_history),
            "/admin/backup": self._serve_backup,
        }

    async def _serve_jobs(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            query = dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=100))
            await self._streams.serve_socket(query, receive, send)
            return
        request = Request(scope, receive)
        if request.method not in ("GET", "HEAD"):
            raise RefusedError(405, "Jobs are only read here; write them at /apis/interlock.dev")
        match request.path.strip("/").split("/"):
            case ["jobs"]:
                listing = read_listing(request.query)
                await _send_json(send, page(listing, self._roster, self._jobs))
            case ["jobs", "stream"]:
                await self._streams.serve_events(request, send)
            case ["jobs", uid]:
                await _send_json(send, summary_of(self._by_uid(uid)))
            case ["jobs", namespace, name]:
                await _send_json(send, summary_of(self._job(namespace, name)))
            case ["jobs", namespace, name, "why"]:
                view = self._lines.why_view(self._job(namespace, name))
                await _send_json(send, explain(view, self._clock.now()))
            case ["jobs", namespace, name, "log"]:
                await serve_log(self._logs, self._job(namespace, name), request, send)
            case _:
                raise RefusedError(404, f"there is nothing at {request.path}")

    async def _explain_schedule(self, request: Request) -> object:
        match request.path.strip("/").split("/"):
            case ["jobconfigs", namespace, name, "why"]:
                return self._schedules.why_config(namespace, name, self._clock.now())
            case ["controlledjobs", namespace, name, "why"]:
                return self._schedules.why_controlled(namespace, name, self._clock.now())
        plural = request.path.strip("/").partition("/")[0]
        raise RefusedError(
            404,
            f"there is nothing at {request.path}: ask for /{plural}/NAMESPACE/NAME/why, or"
            f" for the resources themselves at /apis/interlock.dev/v1alpha1/{plural}",
        )

    async def _list_locks(self, request: Request) -> object:
        return {"items": list(self._lines.locks(request.query.get("namespace", "")))}

    async def _read_history(self, request: Request) -> object:
        query = request.query
        limit = min(request.number("limit") or 100, _LARGEST_PAGE)
        key = None
        if query.get("name"):
            kind = query.get("kind", "Job")
            key = Key(kind, query.get("namespace", "default"), query["name"])
        elif query.get("kind") or query.get("namespace"):
            raise bad_request("name: needed when kind or namespace is given")
        rows = await self._journal.read(key, limit=limit, before=request.number("before"))
        items = [{"number": number, **to_builtins(entry)} for number, entry in rows]
        body: dict[str, object] = {"items": items}
        if len(rows) == limit:
            body["next"] = rows[-1][0]
        return body

    async def _serve_backup(self, scope: Scope, receive: Receive, send: Send) -> None:
        if Request(scope, receive).method != "POST":
            raise RefusedError(405, "a backup is asked for with POST")
        if self._backup is None:
            raise RefusedError(404, "this server's store is not backed up here")
        headers = [(b"content-type", b"application/vnd.sqlite3")]
        begun = False
        async for part in self._backup():
            if not begun:
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                begun = True
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    def _job(self, namespace: str, name: str) -> Job:
        job = self._jobs.get(Key("Job", namespace, name))
        if job is None:
            raise NotFoundError(Key("Job", namespace, name))
        return job

    def _by_uid(self, uid: str) -> Job:
        key = self._roster.key_of(uid)
        job = self._jobs.get(key) if key is not None else None
        if job is None:
            raise RefusedError(404, f"there is no Job with the id {uid}")
        return job


def _serving(body: _Body) -> Handler:
    """A handler for paths that are only read."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method not in ("GET", "HEAD"):
            raise RefusedError(405, f"{request.path} is only read")
        await _send_json(send, await body(request))

    return serve


async def _send_json(send: Send, body: object) -> None:
    data = encode(body)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(data)).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": data})
