"""GET /jobs/{namespace}/{name}/log: what a task wrote, so far or as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from interlock.api.answers import RefusedError, bad_request
from interlock.api.requests import FLAGS, Request, Send
from interlock.reporting.parameters import LOG, check_known, moment_in, number_in
from interlock.resources.job import Job, is_operation, steps_of, task_words
from interlock.resources.operation import ELABORATION, is_undo, step_of
from interlock.resources.tasks import number_in_round, round_of
from interlock.resources.words import plural

_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]


class LogQuery(Struct, frozen=True, kw_only=True):
    """Which part of which log."""

    task: int = 0
    #: None means the newest attempt.
    attempt: int | None = None
    follow: bool = False
    since: datetime | None = None
    #: Only so many lines from the end.
    tail: int | None = None


class Logs(Protocol):
    """Where the output of tasks is kept."""

    def newest_attempt(self, job_uid: str, task: int) -> int | None:
        """The newest attempt of a task that has a log, or None."""
        ...

    def read(
        self,
        job_uid: str,
        task: int,
        attempt: int,
        *,
        since: datetime | None,
        tail: int | None,
        follow: bool,
    ) -> AsyncIterator[bytes]:
        """The output, part by part; with `follow`, until the attempt is over."""
        ...


def read_query(query: Mapping[str, str]) -> LogQuery:
    """Read the parameters of a log.

    Raises:
        RefusedError: One that is not known, or cannot be read.
    """
    check_known(query, LOG)
    follow = query.get("follow", "false")
    if follow not in FLAGS:
        raise bad_request(f"follow: expected true or false, got {follow[:40]!r}")
    return LogQuery(
        task=number_in(query, "task") or 0,
        attempt=number_in(query, "attempt"),
        follow=FLAGS[follow],
        since=moment_in(query, "since"),
        tail=number_in(query, "tail"),
    )


async def serve_log(logs: Logs, job: Job, request: Request, send: Send) -> None:
    """Answer with the log; a follower is let go when the attempt is over, or when it leaves."""
    asked = read_query(request.query)
    uid = job.metadata.uid
    newest = logs.newest_attempt(uid, asked.task)
    attempt = asked.attempt if asked.attempt is not None else newest
    if attempt is None:
        raise RefusedError(404, _no_log(job, asked.task))
    if (newest is None or attempt > newest) and not _is_active(job, asked.task, attempt):
        raise RefusedError(
            404, f"task {asked.task} of job/{job.metadata.name} had {_attempts(newest)} so far"
        )
    parts = logs.read(
        uid, asked.task, attempt, since=asked.since, tail=asked.tail, follow=asked.follow
    )
    if not asked.follow:
        # What cannot be read at all is refused, not broken off. A follower may wait long for the
        # first part, and is let in at once.
        parts = _begun(await anext(parts, b""), parts)
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    gone = asyncio.ensure_future(request.gone())
    reading = asyncio.ensure_future(_send_parts(parts, send))
    try:
        await asyncio.wait((gone, reading), return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
            await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()
        reading.cancel()


def _is_active(job: Job, task: int, attempt: int) -> bool:
    """Whether an attempt is on record that may not have written anything yet."""
    active = job.status.execution.active
    return any((one.index, one.attempt) == (task, attempt) for one in active)


async def _begun(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in rest:
        yield part


async def _send_parts(parts: AsyncIterator[bytes], send: Send) -> None:
    async for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})


def _no_log(job: Job, task: int) -> str:
    name = job.metadata.name
    if is_operation(job.spec):
        told = f"{task_words(job, task)} of job/{name} has not written anything here"
        if _is_of_workers(job, task):
            told += ": it writes with ctx.log, and on a cluster its worker's own pod has the log"
        return told
    total = job.status.execution.total
    if total and task >= total:
        return f"job/{name} has no task {task}: its tasks are 0 to {total - 1}"
    return f"task {task} of job/{name} has not written anything: it is {job.status.phase.value}"


def _is_of_workers(job: Job, task: int) -> bool:
    steps, at = steps_of(job), step_of(task)
    if task >= ELABORATION or at >= len(steps):
        # What workers make of requests they nearly always do themselves.
        return job.spec.python is not None
    part = steps[at].undo if is_undo(task) else steps[at].run
    return part is not None and part.python is not None


def _attempts(newest: int | None) -> str:
    if newest is None:
        return plural(0, "attempt")
    made = plural(number_in_round(newest) + 1, "attempt")
    round = round_of(newest)
    return f"{made} in round {round + 1}" if round else made
