"""Routes of reports: /jobs, /locks, /history and so on, beside the resources themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from interlock.api.answers import Answer, RefusedError, bad_request, json_answer
from interlock.api.requests import SOCKET, Request, Send
from interlock.api.routing import (
    ForKnown,
    OnEach,
    OnResource,
    Right,
    Route,
    Said,
    Serve,
    When,
    on_jobs,
)
from interlock.api.waits import wait_in
from interlock.control.caches import Caches
from interlock.control.clock import Clock
from interlock.errors import NotFoundError
from interlock.reporting.job_index import CREATOR, OWNER, PATH, Facet, JobIndex
from interlock.reporting.job_record import JobView
from interlock.reporting.listing import JobPage, page, read_listing
from interlock.reporting.live_jobs import LiveJobs
from interlock.reporting.lock_queue import LineReader, LockAnswer
from interlock.reporting.logs import Logs, serve_log
from interlock.reporting.parameters import (
    HISTORY,
    LARGEST_PAGE,
    LISTING,
    LOCKS,
    LOG,
    PAGE,
    QUEUE,
    STATUS,
    STREAM,
    check_known,
    number_in,
)
from interlock.reporting.pending_places import PendingPlaces
from interlock.reporting.plan_why import plans_of
from interlock.reporting.queue_lines import WAITERS, QueueAnswer, QueueDetail, QueueReader
from interlock.reporting.schedule_reader import ScheduleReader
from interlock.reporting.schedule_why import ScheduleWhy
from interlock.reporting.slot_beds import BedAnswer, BedDetail, BedReader
from interlock.reporting.statuses import Archive, Statuses, Waiters
from interlock.reporting.streams import Streams
from interlock.reporting.visibility import sees_job, sight_of, visible
from interlock.reporting.why import Why, explain, stalls
from interlock.resources.codec import to_builtins
from interlock.resources.job import Job
from interlock.resources.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, KINDS, QUEUES, TEST_BEDS
from interlock.resources.kinds import LOCKS as LOCK_KIND
from interlock.resources.lock import Lock
from interlock.resources.metadata import Key
from interlock.resources.queue import Queue, QueueQuota
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.scheduling import Scheduling
from interlock.resources.steps import TARGET_PATH
from interlock.resources.test_bed import TestBed, TestBedSlots
from interlock.resources.transitions import has_ended
from interlock.store.contract import Journal, JournalEntry, Store

#: Writes a copy of the store, part by part, while it is in use.
Backup = Callable[[], AsyncIterator[bytes]]


class LockList(Struct, frozen=True):
    """Every lock that is held or waited for."""

    items: tuple[LockAnswer, ...]


class QueueList(Struct, frozen=True):
    """Every Queue: what of its quota is used, and how many wait."""

    items: tuple[QueueAnswer, ...]


class BedList(Struct, frozen=True):
    """Every TestBed: how many of its slots are free, and how many Jobs wait."""

    items: tuple[BedAnswer, ...]


class Numbered(JournalEntry, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A decision, and its number."""

    number: int


class HistoryPage(Struct, frozen=True, omit_defaults=True):
    """Decisions, newest first."""

    items: tuple[Numbered, ...]
    #: What to give as `before` for the next page; none on the last.
    next: int = 0


class Reporting:
    """Answers the questions of people and programs."""

    def __init__(
        self,
        *,
        store: Store,
        caches: Caches,
        roster: JobIndex,
        journal: Journal,
        logs: Logs,
        clock: Clock,
        backup: Backup | None = None,
        stalled: Callable[[], str] = str,
        waiters: Waiters | None = None,
        archive: Archive | None = None,
        places: PendingPlaces | None = None,
        namespace: str = "",
        system: WaitForPodsReady | None = None,
        default_queue: str = "",
    ) -> None:
        """Answer from caches; `namespace` is the one whose Jobs are known, empty for all.

        `system` is what holds for all Queues that do not say otherwise; `default_queue` is the
        Queue of Jobs that name none, empty where there is none.
        """
        self._stalled = stalled
        self._jobs = caches.of(Job)
        self._roster = roster
        #: What is told of Queues.
        self.queues = QueueReader(
            self._jobs,
            caches.of(Queue),
            caches.of(QueueQuota),
            roster.places,
            namespace,
            system,
            default_queue,
            caches.get("Namespace"),
        )
        self._lines = LineReader(self._jobs, caches.of(Lock), self.queues.has_part)
        self._plans = caches.of(Scheduling)
        self._beds = BedReader(self._jobs, caches.of(TestBed), caches.of(TestBedSlots))
        self._journal = journal
        self._logs = logs
        self._clock = clock
        self._schedules = ScheduleReader(caches)
        self._backup = backup
        self._streams = Streams(store, clock)
        self._live = LiveJobs(roster, self._jobs)
        self._archive = archive
        #: The statuses of Jobs one by one.
        self.statuses = Statuses(self._live, waiters or Waiters(), archive, places)

    def routes(self) -> tuple[Route, ...]:
        """What is served, and who may ask for it."""
        there, named = Said("namespace"), Said("name")
        asked = Said(parameter="namespace")
        about = on_jobs("get", namespace=there, name=named)
        stream = on_jobs("watch", namespace=asked)
        return (
            _get(
                "/jobs",
                on_jobs("list", namespace=asked),
                self._list_jobs,
                "Jobs and their statuses",
                filtered=True,
                query=LISTING,
                shows=JobPage,
            ),
            _get(
                "/user/jobs",
                on_jobs("list", namespace=asked),
                self._list_own,
                "Jobs of whoever asks: what they own, and what they asked for",
                filtered=True,
                query=LISTING,
                shows=JobPage,
            ),
            _get(
                "/{path...}/jobs",
                on_jobs("list", namespace=asked),
                self._list_below,
                "Jobs of a target, and of all below it",
                filtered=True,
                query=LISTING,
                shows=JobPage,
                refusals=(404,),
            ),
            _get(
                "/jobs/stream",
                stream,
                self._streams.serve_events,
                "changes as they happen",
                lasts=True,
                query=STREAM,
                media="text/event-stream",
                refusals=(410, 429),
            ),
            Route(
                method=SOCKET,
                path="/jobs/stream",
                right=stream,
                serve=self._streams.serve_socket,
                gives="changes as they happen",
                lasts=True,
            ),
            _get(
                "/jobs/{uid}",
                OnResource(verb="get", resource=JOBS.plural, uid="uid"),
                self._by_uid,
                "the status of a Job",
                query=STATUS,
                shows=JobView,
                filtered=True,
                refusals=(404,),
            ),
            _get(
                "/jobs/{namespace}/{name}",
                about,
                self._by_name,
                "the status of a Job",
                query=STATUS,
                shows=JobView,
                filtered=True,
                refusals=(404,),
            ),
            _get(
                "/jobs/{namespace}/{name}/why",
                about,
                self._explain,
                "why it is as it is",
                shows=Why,
                refusals=(404,),
            ),
            _get(
                "/jobs/{namespace}/{name}/log",
                OnResource(
                    verb="get", group="", resource="pods", subresource="log", namespace=there
                ),
                self._serve_log,
                "what a task printed",
                filtered=True,
                lasts=True,
                query=LOG,
                media="text/plain",
                refusals=(404,),
            ),
            *(
                _get(
                    f"/{kind.plural}/{{namespace}}/{{name}}/why",
                    OnResource(verb="get", resource=kind.plural, namespace=there, name=named),
                    explain_schedule,
                    "why it is as it is",
                    shows=ScheduleWhy,
                    refusals=(404,),
                )
                for kind, explain_schedule in (
                    (JOB_CONFIGS, self._explain_config),
                    (CONTROLLED_JOBS, self._explain_controlled),
                )
            ),
            _get(
                "/locks",
                OnResource(verb="list", resource=LOCK_KIND.plural, namespace=asked),
                self._list_locks,
                "holders, waiters and tokens of each lock",
                query=LOCKS,
                shows=LockList,
            ),
            _get(
                "/queues",
                OnResource(verb="list", resource=QUEUES.plural),
                self._list_queues,
                "of each queue what is used of its quota, and how many wait",
                query=(),
                shows=QueueList,
            ),
            _get(
                "/queues/{name}",
                OnEach(
                    (
                        OnResource(verb="get", resource=QUEUES.plural, name=named),
                        on_jobs("list", Said()),
                    )
                ),
                self._tell_queue,
                "one queue: who holds its quota, who waits, and why",
                query=QUEUE,
                shows=QueueDetail,
                refusals=(404,),
            ),
            _get(
                "/slots",
                OnResource(verb="list", resource=TEST_BEDS.plural, namespace=asked),
                self._list_beds,
                "of each test bed how many slots are free, and how many Jobs wait",
                query=LOCKS,
                shows=BedList,
            ),
            _get(
                "/slots/{namespace}/{name}",
                OnEach(
                    (
                        OnResource(
                            verb="get", resource=TEST_BEDS.plural, namespace=there, name=named
                        ),
                        on_jobs("list", there),
                    )
                ),
                self._tell_bed,
                "one test bed: each of its slots, who is in it, and who waits",
                query=(),
                shows=BedDetail,
                refusals=(404,),
            ),
            _get(
                "/history",
                on_jobs("list", Said()),
                self._read_history,
                "what was decided",
                query=HISTORY,
                shows=HistoryPage,
            ),
            _get(
                "/history",
                OnResource(
                    verb="list",
                    resource=JOBS.plural,
                    kind="kind",
                    namespace=Said(parameter="namespace", otherwise="default"),
                ),
                self._read_history,
                "what was decided about one resource",
                when=When("name"),
            ),
            Route(
                method="POST",
                path="/admin/backup",
                right=ForKnown(),
                serve=self._serve_backup,
                gives="the whole store, as a SQLite file",
                media="application/vnd.sqlite3",
                refusals=(404,),
            ),
        )

    async def _list_jobs(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        return await self._page(request)

    async def _list_own(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        if not request.person:
            raise bad_request("who asks is not known, so nothing is theirs; GET /jobs lists all")
        return await self._page(request, (CREATOR, request.person), (OWNER, request.person))

    async def _list_below(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        path = request.match.parts["path"]
        if not TARGET_PATH.fullmatch(path):
            raise RefusedError(404, "the server could not find the requested resource")
        return await self._page(request, (PATH, path))

    async def _page(self, request: Request, *choice: Facet) -> Answer:
        """A page of the Jobs that have one of these facets, of all when none is given."""
        listing = read_listing(request.query, (choice,) if choice else ())
        sees, version = sight_of(request), self._live.version
        # What goes from one to the other meanwhile is in both then, and not in neither.
        live = self._live.part(listing, sees)
        if self._archive is None:
            return json_answer(page(listing, live, version=version))
        kept = await self._archive.part(listing, sees)
        found = page(listing, live, kept, version=version)
        return json_answer(replace(found, items=await self._archive.related(found.items)))

    async def _by_uid(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        uid = request.match.parts["uid"]
        sees, wait = sight_of(request), _wait(request)
        view = await self.statuses.find(uid, sees)
        if view is not None and wait and view.completion_state is None:
            await self.statuses.settled(uid, wait, request.gone())
            view = await self.statuses.find(uid, sees)
        if view is None:
            raise RefusedError(404, f"there is no Job with the id {uid[:80]}")
        return json_answer(view)

    async def _by_name(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        job, wait = self._job(request), _wait(request)
        if wait:
            await self.statuses.settled(job.metadata.uid, wait, request.gone())
        view = await self.statuses.find(job.metadata.uid, sight_of(request))
        if view is None:
            raise NotFoundError(job.key)
        return json_answer(view)

    async def _explain(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        job = self._job(request)
        queue = self.queues.view_of(job) if not has_ended(job) else None
        sees = sight_of(request)
        children = tuple(one for one in self._live.children(job) if sees_job(sees, one))
        view = replace(
            self._lines.why_view(job),
            children=children,
            queue=queue,
            slots=self._beds.wait_of(job) if not has_ended(job) else None,
            knows_slots=True,
            plans=plans_of(job, self._plans),
            stalled=self._stalled(),
        )
        return json_answer(explain(view, self._clock.now()))

    async def _serve_log(self, request: Request, send: Send) -> None:
        await serve_log(self._logs, self._job(request), request, send)

    async def _explain_config(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        why = self._schedules.why_config(*_place(request), self._clock.now())
        return json_answer(self._unless_stalled(why))

    async def _explain_controlled(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        why = self._schedules.why_controlled(*_place(request), self._clock.now())
        return json_answer(self._unless_stalled(why))

    def _unless_stalled(self, why: ScheduleWhy) -> ScheduleWhy:
        return replace(why, waits=(*stalls(self._stalled()), *why.waits))

    async def _list_locks(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        return json_answer({"items": list(self._lines.locks(request.query.get("namespace", "")))})

    async def _list_queues(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        check_known(request.query, ())
        return json_answer({"items": list(self.queues.queues())})

    async def _tell_queue(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        check_known(request.query, QUEUE)
        name = request.match.parts["name"]
        limit = number_in(request.query, "limit", 0, LARGEST_PAGE)
        found = self.queues.queue(name, self._clock.now(), WAITERS if limit is None else limit)
        if found is None:
            raise NotFoundError(Key("Queue", "", name))
        return json_answer(found)

    async def _list_beds(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        check_known(request.query, LOCKS)
        return json_answer({"items": list(self._beds.beds(request.query.get("namespace", "")))})

    async def _tell_bed(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        check_known(request.query, ())
        namespace, name = _place(request)
        found = self._beds.bed(namespace, name)
        if found is None:
            raise NotFoundError(Key("TestBed", namespace, name))
        return json_answer(found)

    async def _read_history(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        query = request.query
        limit = number_in(query, "limit", 1, LARGEST_PAGE) or PAGE
        if query.get("kind", "Job") not in KINDS:
            raise bad_request(f"kind: expected one of {', '.join(KINDS)}")
        key = None
        if query.get("name"):
            kind = KINDS[query.get("kind", "Job")]
            place = query.get("namespace", "default") if kind.namespaced else ""
            key = Key(kind.name, place, query["name"])
        elif query.get("kind") or query.get("namespace"):
            raise bad_request("name: needed when kind or namespace is given")
        rows = await self._journal.read(key, limit=limit, before=request.number("before"))
        items = [{"number": number, **to_builtins(entry)} for number, entry in rows]
        body: dict[str, object] = {"items": items}
        if len(rows) == limit:
            body["next"] = rows[-1][0]
        return json_answer(body)

    async def _serve_backup(self, request: Request, send: Send) -> None:  # noqa: ARG002
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

    def _job(self, request: Request) -> Job:
        key = Key("Job", *_place(request))
        job = self._jobs.get(key)
        if job is None or not visible(request, job):
            raise NotFoundError(key)
        return job


def _get(
    path: str,
    right: Right,
    serve: Serve,
    gives: str,
    **more: Any,
) -> Route:
    return Route(method="GET", path=path, right=right, serve=serve, gives=gives, **more)


def _wait(request: Request) -> float:
    """For how many seconds an answer is held at most."""
    check_known(request.query, STATUS)
    return wait_in(request.query) or 0.0


def _place(request: Request) -> tuple[str, str]:
    """The namespace and the name in a path."""
    parts = request.match.parts
    return parts["namespace"], parts["name"]
