"""The sweeper at work: on demand over HTTP, and on an interval where this control plane leads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from msgspec import Struct
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from interlock.api.answers import Answer, bad_request, json_answer, unavailable
from interlock.api.parameters import LENGTH, Parameter
from interlock.api.requests import Request, Send
from interlock.api.routing import Route, Said, on_jobs
from interlock.control.cache import Cache
from interlock.control.clock import Clock, pause
from interlock.control.loop import Loop
from interlock.control.turns import in_parts
from interlock.execution.sweeping import Lost, Sweep, SweepView, stuck_since, sweep
from interlock.modes.settings import Sweeping
from interlock.reporting.job_index import PHASE, JobIndex
from interlock.reporting.parameters import check_known
from interlock.resources.job import Job, JobPhase
from interlock.resources.transitions import JOB_MOVES
from interlock.resources.values.durations import parse_duration
from interlock.resources.words import plural

logger = logging.getLogger("interlock.sweeper")

#: So many of each are told one by one.
MOST_TOLD = 1000
_OPEN = tuple((PHASE, phase.value) for phase, after in JOB_MOVES.items() if after)
_QUERY = (
    Parameter(
        name="olderThan",
        says="Only what was left alone for longer (10m); 0 for any age.",
        pattern=LENGTH,
    ),
    Parameter(name="target", says="Only operations on this target, or on one below it."),
    Parameter(name="namespace", says="Only in this namespace (all)."),
)


class Swept(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An operation that was woken, or that is stuck."""

    namespace: str
    name: str
    #: When anything was last done about it; since when it is stuck.
    since: datetime
    target: str = ""
    #: Why it was woken, in a word; why it is stuck, in words.
    reason: str = ""


class SweepAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a sweep found, and did about it."""

    #: Operations that are not over, and of them those with an attempt under way.
    operations: int
    under_way: int
    #: Wake-ups that were posted, by their reason. One that was there already counts for nothing.
    posted: Mapping[str, int]
    woken: tuple[Swept, ...]
    #: How many are stuck: nobody acts on them but a person, a sweep neither.
    stuck_count: int
    #: The first of them, longest stuck first.
    stuck: tuple[Swept, ...]


class Sweeper(Collector):
    """Posts wake-ups to the loop of whoever leads; it executes nothing."""

    def __init__(
        self,
        leading: Callable[[], Loop | None],
        jobs: Cache[Job],
        roster: JobIndex,
        clock: Clock,
        sweeping: Sweeping,
    ) -> None:
        #: The loop of the present leadership; None while another leads.
        self._leading = leading
        self._jobs = jobs
        self._roster = roster
        self._clock = clock
        self._every_s = sweeping.every_s
        self._older_than = timedelta(seconds=sweeping.older_than_s)
        #: When an operation was woken by us last, in this leadership.
        self._woken: dict[str, datetime] = {}
        self._loop: Loop | None = None
        #: The stuck ones that the log has told of.
        self._told: frozenset[tuple[str, str]] = frozenset()
        self._sweeps = 0
        self._posted = dict.fromkeys(Lost, 0)

    def routes(self) -> tuple[Route, ...]:
        """What it answers itself."""
        return (
            Route(
                method="POST",
                path="/operations/sweep",
                right=on_jobs("patch", Said(parameter="namespace")),
                serve=self._serve,
                gives="have operations looked at that were left alone for too long",
                query=_QUERY,
                shows=SweepAnswer,
                refusals=(503,),
            ),
        )

    def collect(self) -> Iterator[Metric]:
        """What was counted, and how many are stuck now."""
        yield CounterMetricFamily("interlock_sweeps", "Sweeps for lost operations.", self._sweeps)
        posted = CounterMetricFamily(
            "interlock_sweep_wakeups",
            "Operations left alone for long that a sweep had looked at again.",
            labels=("reason",),
        )
        for reason, number in self._posted.items():
            posted.add_metric((reason.value,), number)
        yield posted
        yield GaugeMetricFamily(
            "interlock_operations_stuck",
            "Operations that nobody acts on but a person.",
            self._roster.count(JobPhase.STUCK.value),
        )

    async def run(self) -> None:
        """Sweep on the interval while this control plane leads, until cancelled; 0 is never."""
        if not self._every_s:
            await asyncio.get_running_loop().create_future()
        while True:
            await pause(self._clock, self._every_s)
            try:
                if self._leading() is not None:
                    self._tell(await self.sweep(self._older_than))
            except Exception:
                # The next sweep is not to be missed for what went wrong in this one.
                logger.exception("a sweep failed; the next one is in %g s", self._every_s)

    async def sweep(
        self, older_than: timedelta, *, target: str = "", namespace: str = ""
    ) -> SweepAnswer:
        """Look through all operations that are not over, and post what is missing.

        Raises:
            RefusedError: Another control plane leads: only that one knows what is under way.
        """
        jobs = await self._open_jobs(namespace)
        loop = self._own_loop()
        under_way = frozenset(job.metadata.uid for job in jobs if loop.is_under_way(job))
        if not namespace:
            there = {job.metadata.uid for job in jobs}
            self._woken = {uid: at for uid, at in self._woken.items() if uid in there}
        view = SweepView(jobs=jobs, under_way=under_way, woken=self._woken, target=target)
        now = self._clock.now()
        return self._post(loop, sweep(view, now, older_than), now)

    def _own_loop(self) -> Loop:
        loop = self._leading()
        if loop is None:
            told = "another control plane leads, and knows what is under way: ask that one"
            raise unavailable(told)
        if loop is not self._loop:
            # A loop that begins looks at everything: what was posted to another one is over.
            self._loop, self._woken = loop, {}
        return loop

    async def _open_jobs(self, namespace: str) -> tuple[Job, ...]:
        entries = list(self._roster.walk((_OPEN,), after=None, newest=False))
        found: list[Job] = []
        async for part in in_parts(entries):
            for entry in part:
                key = self._roster.key_of(entry.uid)
                if key is None or namespace not in ("", key.namespace):
                    continue
                job = self._jobs.get(key)
                if job is not None:
                    found.append(job)
        return tuple(found)

    def _post(self, loop: Loop, found: Sweep, now: datetime) -> SweepAnswer:
        posted = dict.fromkeys(Lost, 0)
        woken: list[Swept] = []
        for wake_up in found.wake_ups:
            is_news = loop.post(wake_up.job)
            self._woken[wake_up.job.metadata.uid] = now
            if is_news:
                posted[wake_up.reason] += 1
                self._posted[wake_up.reason] += 1
                woken.append(_swept(wake_up.job, wake_up.since, wake_up.reason))
        self._sweeps += 1
        return SweepAnswer(
            operations=found.operations,
            under_way=found.under_way,
            posted={reason.value: number for reason, number in posted.items()},
            woken=tuple(woken[:MOST_TOLD]),
            stuck_count=len(found.stuck),
            stuck=tuple(_stuck(job, now) for job in found.stuck[:MOST_TOLD]),
        )

    def _tell(self, answer: SweepAnswer) -> None:
        """A line in the log when there is something to tell, of a stuck one once."""
        if answer.woken:
            names = ", ".join(
                f"{one.namespace}/{one.name} ({one.reason})" for one in answer.woken[:5]
            )
            number = plural(sum(answer.posted.values()), "operation")
            logger.info("%s left alone for long, looked at again: %s", number, names)
        stuck = frozenset((one.namespace, one.name) for one in answer.stuck)
        if stuck - self._told:
            names = ", ".join("/".join(one) for one in sorted(stuck - self._told)[:5])
            number = plural(answer.stuck_count, "operation")
            logger.warning("%s stuck, new ones: %s", number, names)
        self._told = stuck

    async def _serve(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        query = request.query
        check_known(query, _QUERY)
        try:
            given = query.get("olderThan", "")
            older_than = parse_duration(given) if given else self._older_than
        except ValueError as error:
            raise bad_request(f"olderThan: {error}, got {query['olderThan'][:40]!r}") from error
        target, namespace = query.get("target", "").strip("/"), query.get("namespace", "")
        return json_answer(await self.sweep(older_than, target=target, namespace=namespace))


def _swept(job: Job, since: datetime, reason: str) -> Swept:
    return Swept(
        namespace=job.metadata.namespace,
        name=job.metadata.name,
        since=since,
        target=job.spec.target.path if job.spec.target is not None else "",
        reason=reason,
    )


def _stuck(job: Job, now: datetime) -> Swept:
    operation = job.status.execution.operation
    told = operation.stuck_message if operation is not None else ""
    return _swept(job, stuck_since(job) or now, told)
