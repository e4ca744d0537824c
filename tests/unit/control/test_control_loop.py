"""The loop: one bad object harms itself only, and nothing that was decided is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import pytest
from control_world import Script, World
from msgspec.structs import replace

from interlock.control.reconciler import Change
from interlock.resources.actions import (
    Decision,
    DeleteResource,
    ForgetTask,
    LaunchTask,
    RecordAdmission,
)
from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.errors import FencedError, UnavailableError
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.tasks import ReportState, TaskId, TaskOrder
from interlock.testing.builders import T0

ADMITTED = AdmissionStatus(phase=AdmissionPhase.ADMITTED, admitted_at=T0)


def cached(world: World, key: Key) -> Job | None:
    job: Job | None = world.caches["Job"].get(key)
    return job


def admits(world: World) -> Callable[[Key], Decision]:
    """Admit every Job that waits."""

    def look(key: Key) -> Decision:
        job = cached(world, key)
        if job is None or job.status.admission.phase is not AdmissionPhase.WAITING:
            return Decision()
        return Decision((RecordAdmission(job, ADMITTED),), reason="room enough")

    return look


async def stored(world: World, name: str = "job") -> Job:
    job = await world.store.get(Key("Job", "default", name))
    assert isinstance(job, Job)
    return job


def is_admitted(job: Job) -> bool:
    return job.status.admission.phase is AdmissionPhase.ADMITTED


def test_what_a_room_decides_is_carried_out_recorded_and_settles() -> None:
    world = World()
    room = Script(admits(world))
    loop = world.loop(room)

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
    world = World()
    room = Script(admits(world))
    loop = world.loop(room)

    async def check() -> None:
        loop.start()
        job = await world.create_job()
        world.caches["Job"].note(job)
        loop.wake("room", job.key)
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
        world.caches["Job"].note(job)
        loop.wake("room", job.key)
        await world.passes(1)
        assert cached(world, job.key) is None

    world.run(check())


@pytest.mark.parametrize("bad_room_fails_in", ["look", "apply"])
def test_one_bad_object_harms_itself_only(bad_room_fails_in: str) -> None:
    world = World()
    admit = admits(world)

    def look(key: Key) -> Decision:
        if key.name != "bad":
            return admit(key)
        if bad_room_fails_in == "look":
            raise ZeroDivisionError("a bug")
        job = cached(world, key)
        assert job is not None
        # A move that is not in the table: the applier refuses to write it.
        done = replace(job, status=replace(job.status, phase="Succeeded"))
        return Decision((RecordAdmission(done, ADMITTED),))

    loop = world.loop(Script(look))

    async def check() -> None:
        await world.inform(loop)
        for name in ("a", "bad", "b"):
            await world.create_job(name)
        await world.passes(120)
        assert is_admitted(await stored(world, "a"))
        assert is_admitted(await stored(world, "b"))
        trouble = (await stored(world, "bad")).status.trouble
        assert trouble is not None
        assert trouble.room == "room"
        assert trouble.message
        assert trouble.since == T0
        # Tried again and again, but later and later.
        assert 3 <= world.sample("failures_total", room="room") < 30

    world.run(check())


def test_trouble_goes_when_the_next_look_goes_well_and_wakes_nobody() -> None:
    world = World()
    failing = True

    def look(key: Key) -> Decision:
        if failing:
            raise ValueError("not yet")
        return Decision()

    room = Script(look)
    loop = world.loop(room)

    async def check() -> None:
        nonlocal failing
        await world.inform(loop)
        await world.create_job()
        await world.passes(1)
        assert (await stored(world)).status.trouble is not None
        failing = False
        await world.passes(60)
        assert (await stored(world)).status.trouble is None
        looks = len(room.looks)
        await world.passes(600)
        assert len(room.looks) == looks

    world.run(check())


def test_two_rooms_in_trouble_do_not_wake_each_other_for_ever() -> None:
    world = World()
    count = 0

    def look(key: Key) -> Decision:
        nonlocal count
        count += 1
        raise ValueError(f"failure number {count}")

    rooms = Script(look, "admission"), Script(look, "execution")
    loop = world.loop(*rooms)

    async def check() -> None:
        await world.inform(loop)
        await world.create_job()
        await world.passes(300)
        trouble = (await stored(world)).status.trouble
        assert trouble is not None
        assert trouble.room == "admission"
        assert len(rooms[0].looks) + len(rooms[1].looks) < 80

    world.run(check())


def test_a_room_that_cannot_be_woken_fails_where_it_is_seen() -> None:
    world = World()

    class Broken(Script):
        def wakes(self, change: Change) -> Iterable[Key]:
            raise KeyError("broken")

    def look(key: Key) -> Decision:
        raise KeyError("broken")

    broken, sound = Broken(look, "broken"), Script(admits(world), "sound")
    loop = world.loop(broken, sound)

    async def check() -> None:
        await world.inform(loop, "Job")
        await world.create_job()
        await world.passes(1)
        job = await stored(world)
        assert is_admitted(job)
        assert job.status.trouble is not None
        assert job.status.trouble.room == "broken"

    world.run(check())


def test_a_stale_decision_is_made_again_when_the_cache_has_caught_up() -> None:
    world = World()
    room = Script(admits(world))
    loop = world.loop(room)

    async def check() -> None:
        loop.start()
        job = await world.create_job()
        newer = await world.store.update(replace(job, spec=replace(job.spec, title="newer")))
        world.caches["Job"].note(job)
        loop.wake("room", job.key)
        await world.passes(0.01)
        assert not is_admitted(await stored(world))
        before = world.caches["Job"].note(newer)
        loop.changed([Change(before, newer)])
        await world.passes(0.01)
        assert is_admitted(await stored(world))
        outcomes = [entry.outcome for entry in await world.journalled()]
        assert outcomes == ["ConflictError", ""]

    world.run(check())
    assert world.sample("conflicts_total", room="room") == 1


def test_a_cache_that_does_not_catch_up_is_not_asked_all_the_time() -> None:
    world = World()
    room = Script(admits(world))
    loop = world.loop(room)

    async def check() -> None:
        loop.start()
        job = await world.create_job()
        await world.store.update(replace(job, spec=replace(job.spec, title="newer")))
        world.caches["Job"].note(job)
        loop.wake("room", job.key)
        await world.passes(60)
        assert 4 <= len(room.looks) < 20

    world.run(check())


def test_after_an_outage_everything_is_tried_again_promptly() -> None:
    world = World()
    loop = world.loop(Script(admits(world)))
    down = False

    def fail(call: str) -> None:
        if down and call == "update_status":
            raise UnavailableError("disk full")

    async def check() -> None:
        nonlocal down
        world.store.before = fail
        await world.inform(loop)
        down = True
        for number in range(50):
            await world.create_job(f"job-{number}")
        await world.passes(200)
        assert world.queue.backing_off == 50
        down = False
        # One of them tries within half a minute; then all do.
        while not is_admitted(await stored(world, "job-0")):
            await world.passes(0.1)
        await world.passes(1)
        assert world.queue.backing_off == 0
        for number in range(50):
            job = await stored(world, f"job-{number}")
            assert is_admitted(job)
            assert job.status.trouble is None

    world.run(check())
    assert world.sample("failures_total", room="room") == 0


def an_order(job: Job) -> TaskOrder:
    return TaskOrder(
        job_uid=job.metadata.uid,
        index=0,
        attempt=0,
        name=f"{job.metadata.name}-0-0",
        namespace="default",
        job=job.metadata.name,
        command=("true",),
    )


def launches(world: World) -> Callable[[Key], Decision]:
    """Launch the one task of each Job as long as the runtime does not know it."""

    def look(key: Key) -> Decision:
        job = cached(world, key)
        if job is None or not world.reports.complete or world.reports.of(job.metadata.uid):
            return Decision()
        return Decision((LaunchTask(job, an_order(job)),))

    return look


def test_a_launched_task_is_known_at_once_and_a_forgotten_one_no_more() -> None:
    world = World()
    room = Script(launches(world))
    loop = world.loop(room)

    async def check() -> None:
        world.events.create_task(world.reports.run())
        await world.inform(loop)
        await world.reports.synced.wait()
        job = await world.create_job()
        await world.passes(1)
        assert [name for name, _ in world.runtime.calls] == ["reports", "launch"]
        assert world.reports.count(ReportState.ACCEPTED) == 1
        loop.wake("room", job.key)
        await world.passes(1)
        assert len(world.runtime.calls) == 2

        room._look = lambda _: Decision((ForgetTask(job, TaskId(job.metadata.uid, 0, 0)),))
        loop.wake("room", job.key)
        await world.passes(1)
        assert not world.reports.of(job.metadata.uid)
        # Who forgets what is nothing that a person wants to read.
        assert [entry.actions for entry in await world.journalled()] == [("launch job-0-0",)]

    world.run(check())
    assert world.sample("tasks_launched_total") == 1


def test_after_the_runtime_was_away_it_is_read_again_and_jobs_are_looked_at() -> None:
    world = World()
    loop = world.loop(Script(launches(world)))

    async def check() -> None:
        world.events.create_task(world.reports.run())
        await world.inform(loop)
        await world.reports.synced.wait()
        world.runtime.failure = UnavailableError("keeper restarts")
        for number in range(10):
            await world.create_job(f"job-{number}")
        await world.passes(100)
        assert not world.reports.complete
        world.runtime.failure = None
        await world.passes(31)
        launched = [things for name, things in world.runtime.calls if name == "launch"]
        assert len({order.job for order in launched[-1]}) == 10
        assert world.reports.count(ReportState.ACCEPTED) == 10

    world.run(check())


def test_nobody_looks_while_the_gate_is_shut_and_all_do_when_it_opens() -> None:
    world = World()
    room = Script(admits(world))
    loop = world.loop(room)

    async def check() -> None:
        world.gate.shut("not leading")
        await world.inform(loop)
        await world.create_job()
        await world.passes(10)
        assert room.looks == []
        world.gate.open(2)
        loop.ready()
        await world.passes(1)
        assert is_admitted(await stored(world))

    world.run(check())


def test_a_runtime_that_follows_a_newer_leader_stops_this_one() -> None:
    world = World()
    loop = world.loop(Script(launches(world)))

    async def check() -> None:
        world.events.create_task(world.reports.run())
        await world.inform(loop)
        await world.reports.synced.wait()
        world.runtime.failure = FencedError("term 7 leads")
        await world.create_job()
        await world.passes(1)
        assert not world.gate.is_open
        assert (await stored(world)).status.trouble is None

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
        loop.revisit()
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
    world = World()
    loop = world.loop(Script(admits(world)))

    async def check() -> None:
        await world.inform(loop)
        await world.create_job()
        await world.passes(1)

    with caplog.at_level(logging.INFO, logger="interlock.loop"):
        world.run(check())
    assert caplog.messages == ["job/default/job room v2: admit (room enough)"]


def test_stopping_finishes_what_is_under_way_and_begins_nothing() -> None:
    world = World()
    loop = world.loop(Script(admits(world)))

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
