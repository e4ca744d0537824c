"""The HTTP routes of forecasts: next, timelines and plans, from what the caches hold.

No question can stall the event loop. What is stored is taken from the caches there, which is
quick; all that is worked out of it is worked out in one thread beside the loop, one question at a
time, and within bounds: so many due times, rows, objects and steps of a trial, whatever is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any, NoReturn, TypeVar

from interlock.api.answers import Answer, json_answer, too_many
from interlock.api.callers import Access
from interlock.api.requests import Request, Send
from interlock.api.routing import OnEach, OnResource, Right, Route, Said, Serve, Target, on_jobs
from interlock.api.writes import proposed
from interlock.control.caches import Caches
from interlock.control.clock import Clock
from interlock.errors import BadRequestError, NotFoundError
from interlock.forecast.plan import (
    DAYS,
    Change,
    Plan,
    Proposal,
    Surroundings,
    Verdict,
    different_fields,
    planned,
    tried,
    written,
)
from interlock.forecast.rehearsal.silence import silence
from interlock.forecast.rehearsal.simulated_loop import SpinningError
from interlock.forecast.timeline.chart import chart_of, in_order, jobs_by_owner
from interlock.forecast.timeline.model import Timeline
from interlock.forecast.trial import AtOnce
from interlock.forecast.upcoming import Definitions, Effort, UpcomingPage, next_page
from interlock.reporting.parameters import (
    LARGEST_PAGE,
    NEXT,
    NEXT_OF_ONE,
    NEXT_USUAL,
    PAGE,
    PLAN,
    PLAN_DAYS,
    TIMELINE,
    TIMELINE_DAYS,
    TIMELINE_OF_ONE,
    check_known,
    day_in,
    moment_in,
    number_in,
)
from interlock.resources.codec import to_builtins
from interlock.resources.job import Job
from interlock.resources.kinds import CALENDARS, CONTROLLED_JOBS, JOB_CONFIGS, JOBS, LOCKS, Kind
from interlock.resources.metadata import Key, Resource
from interlock.resources.modes import Mode
from interlock.schedules.calendars import calendars_named_by
from interlock.timing.local_time import day_at
from interlock.timing.months import FIRST_YEAR, LAST_YEAR
from interlock.timing.zones import Zone

T = TypeVar("T")

#: So many due times are looked at for one question: a second or three of one processor.
MOST_LOOKS = 200_000
#: A page of a timeline has no more rows than this, and fewer objects the more days there are.
MOST_ROWS = 500
#: What a change would do at once is not tried where more objects than this take part,
MOST_OBJECTS = 2_000
#: nor for more steps than this: a second or two of one processor.
MOST_STEPS = 50_000
#: So many questions wait for their turn; more are told to come back.
MOST_WAITING = 16

_INSTANT = timedelta(microseconds=1)
_DAY = timedelta(days=1)


class _Beside:
    """Answers questions beside the event loop, one at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="forecast")
        self._waiting = 0

    async def answer(self, work: Callable[[], T]) -> T:
        """Work something out.

        Raises:
            RefusedError: Too many others wait for an answer.
        """
        if self._waiting >= MOST_WAITING:
            raise too_many(f"{MOST_WAITING} forecasts are being worked out already")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, copy_context().run, work)
        finally:
            self._waiting -= 1


class Forecasting:
    """Answers what is next, what was and will be, and what a change would do."""

    def __init__(
        self,
        *,
        caches: Caches,
        clock: Clock,
        mode: Mode = Mode.EMBEDDED,
    ) -> None:
        self._caches = caches
        self._clock = clock
        self._mode = mode
        self._beside = _Beside()

    def routes(self) -> tuple[Route, ...]:
        """What is served, and who may ask for it."""
        asked = Said(parameter="namespace")
        scheduled = (JOB_CONFIGS, CONTROLLED_JOBS)
        lists = tuple(_on(kind, "list", asked) for kind in (*scheduled, JOBS))
        there = Said("namespace")
        one = "{namespace}/{name}"
        return (
            _get(
                "/next",
                OnEach(lists),
                self._next,
                "what will run, start, stop and be skipped",
                query=NEXT,
                shows=UpcomingPage,
            ),
            _get(
                "/timeline",
                OnEach(lists),
                self._timeline,
                "windows, runs, skips and exceptions of each day",
                query=TIMELINE,
                shows=Timeline,
            ),
            *(
                _get(
                    f"/{kind.plural}/{one}/next",
                    _on(kind, "get", there, Said("name")),
                    self._of_one(kind, self._next_of),
                    "what will come of it",
                    query=NEXT_OF_ONE,
                    shows=UpcomingPage,
                    refusals=(404,),
                )
                for kind in (*scheduled, JOBS)
            ),
            *(
                _get(
                    f"/{kind.plural}/{one}/timeline",
                    OnEach((_on(kind, "get", there, Said("name")), on_jobs("list", there))),
                    self._of_one(kind, self._timeline_of),
                    "its windows, runs, skips and exceptions of each day",
                    query=TIMELINE_OF_ONE,
                    shows=Timeline,
                    refusals=(404,),
                )
                for kind in scheduled
            ),
            *(
                Route(
                    method="POST",
                    path=f"/{kind.plural}/{one}/plan",
                    right=OnEach(_to_plan(kind)),
                    access=Access.READ,
                    serve=self._planning(kind),
                    gives="what would change if the body were stored; nothing is",
                    takes=f"a {kind.name}, whole, as it would be stored",
                    query=PLAN,
                    shows=Plan,
                    refusals=(413, 415, 422),
                )
                for kind in (*scheduled, CALENDARS, JOBS)
            ),
        )

    # What is next

    async def _next(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        query = request.query
        check_known(query, NEXT)
        kinds = (JOB_CONFIGS, CONTROLLED_JOBS, JOBS, CALENDARS)
        held = self._held(*kinds)
        return await self._tell_next(request, lambda: _defined(held, query.get("namespace", "")))

    async def _next_of(self, request: Request, one: Resource) -> Answer:
        check_known(request.query, NEXT_OF_ONE)
        held = (one, *self._calendars_of(one))
        return await self._tell_next(request, lambda: _defined(held))

    async def _tell_next(self, request: Request, define: Callable[[], Definitions]) -> Answer:
        query, now = request.query, self._clock.now()
        begin, end = _moment(query, "from"), _moment(query, "to")
        limit = number_in(query, "limit", 1, LARGEST_PAGE) or NEXT_USUAL
        if end is not None and end <= (begin or now):
            first = "from" if begin else "now"
            raise BadRequestError(f"to: expected a moment after {first}, got {query['to']!r}")
        # What is due at the first moment itself is to be told too.
        after = begin - _INSTANT if begin else now
        return await self._answer(lambda: next_page(define(), after, end, limit))

    # Timelines

    async def _timeline(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        query = request.query
        check_known(query, TIMELINE)
        limit = number_in(query, "limit", 1, LARGEST_PAGE) or PAGE
        held = self._held(JOB_CONFIGS, CONTROLLED_JOBS, CALENDARS)
        return await self._tell_timeline(
            request,
            lambda: _defined(held, query.get("namespace", "")),
            limit,
        )

    async def _timeline_of(self, request: Request, one: Resource) -> Answer:
        check_known(request.query, TIMELINE_OF_ONE)
        held = (one, *self._calendars_of(one))
        return await self._tell_timeline(request, lambda: _defined(held), 1)

    async def _tell_timeline(
        self,
        request: Request,
        define: Callable[[], Definitions],
        limit: int,
    ) -> Answer:
        query, now = request.query, self._clock.now()
        jobs: tuple[Job, ...] = tuple(self._caches[JOBS.name])
        first, last = _days(query, now)
        after = query.get("after", "")
        count = min(limit, max(1, MOST_ROWS // ((last - first) // _DAY + 1)))

        def days(zone: Zone) -> tuple[date, date]:
            today = day_at(now, zone)
            begin = day_in(query, "from") or today - _DAY
            return begin, day_in(query, "to") or max(today + _DAY, begin)

        def work() -> Timeline:
            definitions, following = _page_of(define(), after, count)
            chart = chart_of(definitions, jobs_by_owner(definitions, jobs), days, now)
            return chart.data(following)

        return await self._answer(work)

    # Plans

    def _planning(self, kind: Kind) -> Serve:
        async def serve(request: Request, send: Send) -> Answer:  # noqa: ARG001
            return await self._plan(kind, request)

        return serve

    async def _plan(self, kind: Kind, request: Request) -> Answer:
        check_known(request.query, PLAN)
        days = number_in(request.query, "days", 1, PLAN_DAYS) or DAYS
        data = await request.body()
        target = Target(kind, *_place(request))
        now = self._clock.now()
        old = self._caches[kind.name].get(target.key)
        held = {kind.name: tuple(self._caches[kind.name]) for kind in _AROUND}

        def work() -> Plan:
            new = proposed(target, request, data, old, now, self._mode)
            proposal = _proposal(old, new)
            around = _surroundings(held, target.namespace or "", kind)
            proposals = around.affected([proposal])
            jobs, problems = self._tried(proposals, around, now)
            effort = Effort(MOST_LOOKS)
            found = planned(proposals, around, jobs, now, days=days, effort=effort)
            return Plan(tuple(one.data() for one in found), problems)

        return await self._answer(work)

    def _tried(
        self, proposals: list[Proposal], around: Surroundings, now: datetime
    ) -> tuple[list[AtOnce], tuple[str, ...]]:
        """What a change would do at once, or why that is not known."""
        left_out = "what it would do at once was not tried"
        if len(around.stored(proposals)) > MOST_OBJECTS:
            return [], (f"{left_out}: more than {MOST_OBJECTS} objects take part in it",)
        try:
            return tried(proposals, around, now, self._mode, most_steps=MOST_STEPS), ()
        except SpinningError:
            return [], (f"{left_out} to its end: it takes more than {MOST_STEPS} steps",)

    # What all have in common

    async def _answer(self, work: Callable[[], Any]) -> Answer:
        def answer() -> Answer:
            with silence():
                return json_answer(work())

        return await self._beside.answer(answer)

    def _held(self, *kinds: Kind) -> tuple[Resource, ...]:
        return tuple(one for kind in kinds for one in self._caches[kind.name])

    def _calendars_of(self, one: Resource) -> tuple[Resource, ...]:
        calendars, namespace = self._caches[CALENDARS.name], one.metadata.namespace
        keys = (Key(CALENDARS.name, namespace, name) for name in calendars_named_by(one))
        return tuple(found for key in keys if (found := calendars.get(key)) is not None)

    def _of_one(self, kind: Kind, tell: Callable[[Request, Resource], Any]) -> Serve:
        """Answer about the one object that a path names."""

        async def serve(request: Request, send: Send) -> Answer:  # noqa: ARG001
            key = Key(kind.name, *_place(request))
            one = self._caches[kind.name].get(key)
            if one is None:
                raise NotFoundError(key)
            answer: Answer = await tell(request, one)
            return answer

        return serve


def _get(path: str, right: Right, serve: Serve, gives: str, **more: Any) -> Route:
    return Route(method="GET", path=path, right=right, serve=serve, gives=gives, **more)


def _on(kind: Kind, verb: str, namespace: Said, name: Said | None = None) -> OnResource:
    return OnResource(verb=verb, resource=kind.plural, namespace=namespace, name=name or Said())


def _to_plan(kind: Kind) -> tuple[OnResource, ...]:
    """Whoever could store it may ask what would come of it, and must be allowed to see that."""
    there, named = Said("namespace"), Said("name")
    seen = (JOBS, JOB_CONFIGS, CONTROLLED_JOBS) if kind is CALENDARS else (JOBS,)
    return (
        _on(kind, "create", there),
        _on(kind, "patch", there, named),
        *(_on(other, "list", there) for other in seen),
    )


def _place(request: Request) -> tuple[str, str]:
    parts = request.match.parts
    return parts["namespace"], parts["name"]


def _defined(held: Iterable[Resource], namespace: str = "") -> Definitions:
    definitions = Definitions(Effort(MOST_LOOKS))
    for one in held:
        if not namespace or one.metadata.namespace == namespace:
            definitions.add(one)
    return definitions


def _moment(query: Mapping[str, str], name: str) -> datetime | None:
    moment = moment_in(query, name)
    if moment is None:
        return None
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        _refuse_year(name, query[name])
    if not FIRST_YEAR <= moment.year < LAST_YEAR:
        _refuse_year(name, query[name])
    return moment


def _days(query: Mapping[str, str], now: datetime) -> tuple[date, date]:
    """The first and the last day, about: which day it is depends on the zone of an object."""
    begin, end = day_in(query, "from"), day_in(query, "to")
    for name, day in (("from", begin), ("to", end)):
        if day is not None and not FIRST_YEAR <= day.year < LAST_YEAR:
            _refuse_year(name, query[name])
    first = begin or now.date() - _DAY
    last = end or max(now.date() + _DAY, first)
    if last < first:
        raise BadRequestError(f"to: expected a day from {first} on, got {last}")
    if (last - first).days >= TIMELINE_DAYS:
        told = f"expected at most {TIMELINE_DAYS} days, got {(last - first).days + 1}"
        raise BadRequestError(f"to: {told} from {first} on")
    return first, last


def _refuse_year(name: str, text: str) -> NoReturn:
    told = f"expected a year from {FIRST_YEAR} to {LAST_YEAR - 1}, got {text[:40]!r}"
    raise BadRequestError(f"{name}: {told}")


def _page_of(definitions: Definitions, after: str, count: int) -> tuple[Definitions, str]:
    """Some of what is defined, and where the rest goes on; calendars are there for all."""
    rest = [one for one in in_order(definitions) if not after or _mark(one) > _read_mark(after)]
    shown = list(islice(rest, count))
    definitions.show_only(one.key for one in shown)
    return definitions, "/".join(_mark(shown[-1])) if len(rest) > count else ""


def _mark(one: Resource) -> tuple[str, str, str]:
    return one.metadata.namespace, one.metadata.name, one.kind


def _read_mark(text: str) -> tuple[str, str, str]:
    parts = text.split("/")
    if len(parts) != 3:
        told = f"expected namespace/name/Kind, the next of a page, got {text[:40]!r}"
        raise BadRequestError(f"after: {told}")
    return parts[0], parts[1], parts[2]


def _proposal(old: Resource | None, new: Resource) -> Proposal:
    if old is None:
        return Proposal(verdict=Verdict.CREATED, fields=(), change=Change(None, new))
    fields = tuple(different_fields(written(to_builtins(old)), written(to_builtins(new))))
    verdict = Verdict.CONFIGURED if fields else Verdict.UNCHANGED
    return Proposal(verdict=verdict, fields=fields, change=Change(old, new))


#: What a plan is worked out among.
_AROUND = (JOBS, LOCKS, JOB_CONFIGS, CONTROLLED_JOBS, CALENDARS)


def _surroundings(
    held: Mapping[str, tuple[Resource, ...]], namespace: str, kind: Kind
) -> Surroundings:
    def every(*names: str) -> tuple[Resource, ...]:
        found = (one for name in names for one in held[name])
        return tuple(one for one in found if one.metadata.namespace == namespace)

    return Surroundings(
        calendars=every("Calendar"),
        schedules=every("JobConfig", "ControlledJob") if kind is CALENDARS else (),
        jobs=every("Job"),
        locks=every("Lock"),
    )
