"""Events tell people what happened to a Job: each thing once, counted up, and never in the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from aiohttp import web
from kube_fakes import Handler, ScriptedServer, a_client, refuses, run, says, serving
from msgspec.structs import replace

from interlock.control.clock import SystemClock
from interlock.control.reconciler import Change
from interlock.control.write_fence import WriteFence
from interlock.kube.events.jobs import worth_telling
from interlock.kube.events.recorder import Events
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Grant,
    RefusalReason,
    Wait,
    WaitReason,
)
from interlock.resources.job import Job, JobStatus
from interlock.resources.metadata import Trouble
from interlock.resources.tasks import (
    EndedTask,
    ExecutionReason,
    ExecutionStatus,
    JobResult,
    RetryWait,
    TaskResult,
    TaskState,
    TaskStatus,
)
from interlock.testing.builders import T0, a_job

FRESH = a_job()
ADMITTED = AdmissionStatus(
    phase=AdmissionPhase.ADMITTED, admitted_at=T0, grants=(Grant(key="db", token=7),)
)


def after(
    admission: AdmissionStatus = ADMITTED, trouble: Trouble | None = None, **execution: Any
) -> Job:
    """The Job with another status."""
    status = JobStatus(admission=admission, execution=ExecutionStatus(**execution), trouble=trouble)
    return replace(FRESH, status=status)


def waiting(*waits: Wait) -> Job:
    return after(AdmissionStatus(waits=waits))


def ended(attempt: int, result: TaskResult, index: int = 0, **more: Any) -> EndedTask:
    return EndedTask(
        name=f"job-{index}-{attempt}",
        index=index,
        attempt=attempt,
        result=result,
        ended_at=T0,
        **more,
    )


LOCKED = Wait(reason=WaitReason.LOCK_TAKEN, key="db")
STARTED = after(total=2, started_at=T0)
FAILED_ONCE = ended(1, TaskResult.FAILED, exit_code=3)
RETRY = RetryWait(index=0, attempt=2, not_before=T0)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(FRESH, waiting(LOCKED), [("Normal", "Held", "lock db is taken")], id="held"),
        pytest.param(waiting(LOCKED), waiting(LOCKED), [], id="still held"),
        pytest.param(
            waiting(LOCKED),
            waiting(LOCKED, Wait(reason=WaitReason.SUSPENDED)),
            [("Normal", "Held", "lock db is taken; suspended")],
            id="held for more",
        ),
        pytest.param(waiting(LOCKED), after(), [], id="admitted"),
        pytest.param(
            after(), STARTED, [("Normal", "Started", "2 tasks, holds db (fence 7)")], id="started"
        ),
        pytest.param(
            FRESH,
            after(
                AdmissionStatus(
                    phase=AdmissionPhase.REFUSED,
                    refusal=RefusalReason.LOCK_FORBIDDEN,
                    message="lock db is held by x",
                )
            ),
            [("Warning", "Refused", "LockForbidden: lock db is held by x")],
            id="refused",
        ),
        pytest.param(
            STARTED,
            after(total=2, started_at=T0, ended=(FAILED_ONCE,), retrying=(RETRY,)),
            [
                ("Warning", "TaskFailed", "job-0-1: Failed, exit code 3"),
                ("Normal", "Retrying", "task 0: attempt 2 not before 2026-01-05T12:00:00+00:00"),
            ],
            id="failed and tried again",
        ),
        pytest.param(
            STARTED,
            after(total=2, started_at=T0, ended=(ended(1, TaskResult.SUCCEEDED),)),
            [],
            id="a task that went well",
        ),
        pytest.param(
            STARTED,
            after(
                total=9,
                started_at=T0,
                ended=tuple(ended(1, TaskResult.FAILED, index) for index in range(5)),
            ),
            [
                (
                    "Warning",
                    "TaskFailed",
                    "job-0-1: Failed; job-1-1: Failed; job-2-1: Failed; and 2 more",
                )
            ],
            id="many tasks in one line",
        ),
        pytest.param(
            STARTED,
            after(total=2, started_at=T0, stopping_for=ExecutionReason.KILLED),
            [("Normal", "Stopping", "Killed: tasks that run are told to stop")],
            id="stopping",
        ),
        pytest.param(
            STARTED,
            after(total=2, started_at=T0, result=JobResult.KILLED, reason=ExecutionReason.KILLED),
            [("Normal", "Killed", "Killed: 0 of 2 tasks succeeded")],
            id="killed",
        ),
        pytest.param(
            STARTED,
            after(
                total=2, started_at=T0, result=JobResult.FAILED, reason=ExecutionReason.TASK_FAILED
            ),
            [("Warning", "Failed", "TaskFailed: 0 of 2 tasks succeeded")],
            id="failed",
        ),
        pytest.param(
            STARTED,
            after(
                total=2,
                started_at=T0,
                active=(
                    TaskStatus(
                        name="job-0-1",
                        index=0,
                        attempt=1,
                        state=TaskState.UNKNOWN,
                        created_at=T0,
                        message="node a is silent",
                    ),
                ),
            ),
            [("Warning", "TaskUnknown", "job-0-1: node a is silent")],
            id="unknown",
        ),
        pytest.param(
            FRESH,
            after(AdmissionStatus(), Trouble(room="admission", message="no", since=T0)),
            [("Warning", "Trouble", "admission: no")],
            id="trouble",
        ),
    ],
)
def test_what_is_told(before: Job, now: Job, expected: list[tuple[str, str, str]]) -> None:
    told = [(each.type, each.reason, each.message) for each in worth_telling(before, now)]
    assert [(kind, reason) for kind, reason, _ in told] == [each[:2] for each in expected]
    for (_, _, message), (_, _, words) in zip(told, expected, strict=True):
        assert words in message


def test_another_job_of_the_same_name_is_another_story() -> None:
    other = replace(STARTED, metadata=replace(STARTED.metadata, uid="other"))
    assert worth_telling(after(), other) == []


def test_a_message_fits_whatever_it_quotes() -> None:
    trouble = Trouble(room="admission", message="x" * 5000, since=T0)
    (told,) = worth_telling(FRESH, after(AdmissionStatus(), trouble))
    assert len(told.message) <= 1000


class Watched:
    """Events that are written to a server."""

    def __init__(self, events: Events, server: ScriptedServer, fence: WriteFence) -> None:
        self.events = events
        self.server = server
        self.fence = fence

    async def settled(self, requests: int) -> list[tuple[str, Any]]:
        """The requests so far, once there are so many."""
        while len(self.server.requests) < requests or self.events.written + self.events.dropped < (
            requests
        ):
            await asyncio.sleep(0.01)
        return [(one.method, json.loads(await one.read())) for one in self.server.requests]


@asynccontextmanager
async def writing(*script: Handler, waiting: int = 100) -> AsyncIterator[Watched]:
    clock = SystemClock()
    fence = WriteFence(clock)
    fence.open(1)
    async with serving(*script) as server, a_client(server.url) as client:
        events = Events(client, clock, Random(7), fence, "me", waiting=waiting, pause_s=0.0)
        running = asyncio.create_task(events.run())
        try:
            yield Watched(events, server, fence)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


HELD = Change(FRESH, waiting(LOCKED))
BEGUN = Change(after(), STARTED)
GOOD = says({})


def test_an_event_is_about_the_very_job() -> None:
    async def check() -> None:
        async with writing(GOOD) as watched:
            watched.events.observe(BEGUN)
            ((method, body),) = await watched.settled(1)
            assert method == "POST"
            assert watched.server.requests[0].path == "/api/v1/namespaces/default/events"
            about = body["involvedObject"]
            assert (about["uid"], about["kind"]) == (FRESH.metadata.uid, "Job")
            assert (body["reason"], body["type"], body["count"]) == ("Started", "Normal", 1)

    run(check)


def test_what_happens_again_is_counted_up() -> None:
    async def check() -> None:
        async with writing(GOOD) as watched:
            watched.events.observe(HELD)
            await watched.settled(1)
            watched.events.observe(HELD)
            await watched.settled(2)
            watched.events.observe(HELD)
            (_, made), *again = await watched.settled(3)
            assert [(method, body["count"]) for method, body in again] == [
                ("PATCH", 2),
                ("PATCH", 3),
            ]
            assert watched.server.requests[1].path.endswith(made["metadata"]["name"])

    run(check)


def test_an_event_that_the_cluster_forgot_is_written_anew() -> None:
    async def check() -> None:
        gone = refuses(404, "NotFound", name="x", kind="events")
        async with writing(GOOD, gone, GOOD) as watched:
            watched.events.observe(HELD)
            await watched.settled(1)
            watched.events.observe(HELD)
            while watched.events.written < 2:
                await asyncio.sleep(0.01)
            methods = [request.method for request in watched.server.requests]
            assert methods == ["POST", "PATCH", "POST"]

    run(check)


def test_only_a_leader_tells() -> None:
    async def check() -> None:
        async with writing(GOOD) as watched:
            watched.fence.shut("another leads")
            watched.events.observe(BEGUN)
            watched.fence.open(2)
            # What was there when it began to look happened before.
            watched.events.observe(Change(None, STARTED))
            watched.events.observe(Change(STARTED, None))
            watched.events.observe(HELD)
            ((_, body),) = await watched.settled(1)
            assert body["reason"] == "Held"

    run(check)


def test_what_does_not_fit_is_dropped_and_counted() -> None:
    async def check() -> None:
        go_on = asyncio.Event()

        async def slowly(request: web.Request) -> web.StreamResponse:
            await go_on.wait()
            return await GOOD(request)

        async with writing(slowly, waiting=3) as watched:
            watched.events.observe(HELD)
            while not watched.server.requests:
                await asyncio.sleep(0.01)
            for number in range(10):
                uid = replace(FRESH.metadata, uid=f"uid-{number}")
                before, now = (replace(job, metadata=uid) for job in (after(), STARTED))
                watched.events.observe(Change(before, now))
            # One request at a time, and a short line behind it.
            assert len(watched.server.requests) == 1
            assert watched.events.dropped == 7
            go_on.set()
            while watched.events.written < 4:
                await asyncio.sleep(0.01)
            assert len(watched.server.requests) == 4

    run(check)


def test_a_server_that_refuses_events_costs_nothing_but_them() -> None:
    async def check() -> None:
        async with writing(refuses(403, "Forbidden"), GOOD) as watched:
            watched.events.observe(HELD)
            watched.events.observe(BEGUN)
            await watched.settled(2)
            assert (watched.events.dropped, watched.events.written) == (1, 1)

    run(check)


def test_times_do_not_make_two_events_of_one() -> None:
    later = Wait(reason=WaitReason.NOT_YET_DUE, until=T0 + timedelta(hours=1))
    (first,) = worth_telling(FRESH, waiting(later))
    (second,) = worth_telling(waiting(LOCKED), waiting(later))
    assert first == second
