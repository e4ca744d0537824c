"""The loop: what a room decides is carried out, recorded, told, and seen at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

import pytest
from control_world import Script, World, admitting, cached, is_admitted, stored

from interlock.control.reconciler import Change
from interlock.control.turns import PART
from interlock.resources.actions import Decision, DeleteResource
from interlock.resources.job import Job, JobStatus
from interlock.resources.metadata import Key
from interlock.resources.tasks import (
    ExecutionStatus,
    ReportState,
    TaskReport,
    TaskState,
    TaskStatus,
)
from interlock.testing.builders import T0, a_job


def test_what_a_room_decides_is_carried_out_recorded_and_settles() -> None:
    world, room, loop = admitting()

    async def check() -> None:
        await world.inform(loop)
        created = await world.create_job()
        await world.passes(1)
        assert is_admitted(await stored(world))
        [entry] = await world.journalled()
        assert (entry.room, entry.name, entry.reason) == ("room", "job", "room enough")
        assert (entry.actions, entry.outcome) == (("admit",), "")
        assert entry.version == created.version
        # One look for the creation, one for what the loop itself wrote; then it is quiet.
        assert len(room.looks) == 2
        assert loop.is_idle

    world.run(check())
    assert world.sample("decisions_total", room="room") == 1
    assert world.sample("looks_total", room="room") == 2
    assert world.sample("store_writes_total") == 1


def test_a_room_sees_its_own_write_before_the_store_tells_of_it() -> None:
    """Without a watch on Jobs, only what the write returned can have ended the looking."""
    world, _, loop = admitting()

    async def check() -> None:
        loop.start()
        job = await world.create_job()
        world.show(loop, job)
        await world.passes(1)
        held = cached(world, job.key)
        assert held is not None
        assert is_admitted(held)

    world.run(check())


def test_a_deletion_is_seen_at_once() -> None:
    world = World()

    def look(key: Key) -> Decision:
        job = cached(world, key)
        return Decision((DeleteResource(job),)) if job else Decision()

    loop = world.loop(Script(look))

    async def check() -> None:
        loop.start()
        job = await world.create_job(metadata={"finalizers": ()})
        world.show(loop, job)
        await world.passes(1)
        assert cached(world, job.key) is None

    world.run(check())


def test_nobody_looks_while_the_gate_is_shut_and_all_do_when_it_opens() -> None:
    world, room, loop = admitting()

    async def check() -> None:
        world.fence.shut("not leading")
        await world.inform(loop)
        await world.create_job()
        await world.passes(10)
        assert room.looks == []
        world.fence.open(2)
        loop.ready()
        await world.passes(1)
        assert is_admitted(await stored(world))

    world.run(check())


def test_a_moment_that_a_decision_asks_for_is_kept() -> None:
    world = World()
    due = T0 + timedelta(hours=1)

    def look(key: Key) -> Decision:
        return Decision() if world.clock.now() >= due else Decision(wake_at=due)

    room = Script(look)
    loop = world.loop(room)

    async def check() -> None:
        await world.inform(loop)
        await world.create_job()
        await world.passes(3599)
        looks = len(room.looks)
        await world.passes(2)
        assert len(room.looks) == looks + 1
        await world.passes(7200)
        assert len(room.looks) == looks + 1

    world.run(check())


def test_who_asks_is_told_of_every_change_once_trouble_included() -> None:
    world = World()
    told: list[str] = []

    def look(key: Key) -> Decision:
        raise ValueError("a bug")

    def hear(changes: Sequence[Change]) -> None:
        jobs = [change.after for change in changes if isinstance(change.after, Job)]
        told.extend("trouble" if job.status.trouble else "sound" for job in jobs)

    loop = world.loop(Script(look))
    loop.on_changed = hear

    async def check() -> None:
        await world.inform(loop)
        await world.create_job()
        await world.passes(1)
        await loop.revisit()
        await world.passes(1)
        assert told == ["sound", "trouble"]

    world.run(check())


def test_many_changes_of_one_batch_are_one_look_each() -> None:
    world = World()
    room = Script(lambda _: Decision())
    loop = world.loop(room)

    async def check() -> None:
        loop.start()
        job = await world.create_job()
        loop.changed([Change(None, job)] * 100)
        await world.passes(1)
        assert len(room.looks) == 1

    world.run(check())


def test_there_is_one_line_in_the_log_per_decision(caplog: pytest.LogCaptureFixture) -> None:
    world, _, loop = admitting()

    async def check() -> None:
        await world.inform(loop)
        await world.create_job()
        await world.passes(1)

    with caplog.at_level(logging.INFO, logger="interlock.loop"):
        world.run(check())
    assert caplog.messages == ["job/default/job room v2: admit (room enough)"]


def test_stopping_finishes_what_is_under_way_and_begins_nothing() -> None:
    world, _, loop = admitting()

    async def check() -> None:
        await world.inform(loop)
        job = await world.create_job()
        await world.passes(1)
        loop.stop_looking()
        await loop.drained()
        await world.create_job("late")
        await world.passes(1)
        assert not is_admitted(await stored(world, "late"))
        assert loop.is_idle
        assert job.version

    world.run(check())


def test_everything_is_told_of_in_parts_and_what_changes_meanwhile_after_that() -> None:
    world = World()
    told: list[tuple[str, bool]] = []

    class Listens(Script):
        def wakes(self, change: Change) -> Sequence[Key]:
            resource = change.after or change.before
            assert resource is not None
            told.append((resource.metadata.name, change.before is None))
            return ()

    loop = world.loop(Listens(lambda _: Decision()))

    async def check() -> None:
        jobs = [await world.create_job(f"job-{number}") for number in range(2 * PART + 1)]
        for job in jobs:
            world.caches["Job"].note(job)
        telling = asyncio.ensure_future(loop.revisit())
        await asyncio.sleep(0)
        assert len(told) == PART
        # One that was not told of yet goes, and so does one that was.
        for job in (jobs[0], jobs[-1]):
            world.caches["Job"].drop(job.key, job.version + 1)
            loop.changed([Change(job, None)])
        assert len(told) == PART
        await telling
        names = [job.metadata.name for job in jobs]
        assert told[: 2 * PART] == [(name, True) for name in names[:-1]]
        assert told[2 * PART :] == [(names[0], False), (names[-1], False)]

    world.run(check())


def test_what_nobody_was_told_of_is_found_by_posting_it_however_often() -> None:
    """A wake-up was lost: the cache knows the Job, and no room does."""
    world, room, loop = admitting()

    async def check() -> None:
        loop.start()
        job = await world.create_job()
        world.caches["Job"].note(job)
        await world.passes(3600)
        assert room.looks == []
        assert [loop.post(job) for _ in range(10)] == [True] + [False] * 9
        await world.passes(1)
        assert is_admitted(await stored(world))
        looks = len(room.looks)
        assert loop.post(job)
        await world.passes(1)
        assert len(room.looks) == looks + 1
        assert len(await world.journalled()) == 1

    world.run(check())


@pytest.mark.parametrize(
    ("state", "prepared", "expected"),
    [
        (ReportState.ACCEPTED, False, True),
        (ReportState.ACCEPTED, True, False),
        (ReportState.RUNNING, False, True),
        (ReportState.UNKNOWN, False, False),
        (ReportState.ENDED, False, False),
        (ReportState.NOT_STARTED, False, False),
    ],
)
def test_what_is_under_way_is_what_a_runtime_says(
    state: ReportState, prepared: bool, expected: bool
) -> None:
    world, _, loop = admitting()

    async def check() -> None:
        job = await world.create_job()
        uid = job.metadata.uid
        world.runtime.known = [
            TaskReport(
                job_uid=uid, index=0, attempt=0, namespace="default", job="job", state=state,
                prepared=prepared,
            )
        ]  # fmt: skip
        assert not loop.is_under_way(job)
        await world.inform_and_report(loop)
        assert loop.is_under_way(job) is expected

    world.run(check())


def test_until_the_runtime_was_heard_an_attempt_may_be_under_way() -> None:
    world, _, loop = admitting()

    async def check() -> None:
        task = TaskStatus(
            name="job-0-0", index=0, attempt=0, state=TaskState.RUNNING, created_at=T0
        )
        status = JobStatus(execution=ExecutionStatus(active=(task,)))
        job = a_job(status=status)
        assert loop.is_under_way(job)
        await world.inform_and_report(loop)
        assert not loop.is_under_way(job)

    world.run(check())
