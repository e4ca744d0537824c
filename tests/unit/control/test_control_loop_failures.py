"""The loop in trouble: one bad object harms itself only, and nothing decided is lost."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from control_world import ADMITTED, Script, World, admits, admitting, cached, is_admitted, stored
from msgspec.structs import replace

from interlock.control.reconciler import Change
from interlock.errors import ForbiddenError, UnavailableError
from interlock.resources.actions import Decision, RecordAdmission, ReviseJob
from interlock.resources.metadata import Key
from interlock.testing.builders import T0


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


def test_what_a_decision_tells_of_trouble_stands_until_it_is_over() -> None:
    world = World()
    told = "its lock names another"

    room = Script(lambda _: Decision(trouble=told))
    loop = world.loop(room)

    async def check() -> None:
        nonlocal told
        await world.inform(loop)
        await world.create_job()
        await world.passes(1)
        trouble = (await stored(world)).status.trouble
        assert trouble is not None
        assert (trouble.room, trouble.message, trouble.since) == ("room", told, T0)
        looks, writes = len(room.looks), world.store.calls.count("update_status")
        await world.passes(600)
        loop.wake("room", Key("Job", "default", "job"))
        await world.passes(600)
        assert (len(room.looks), world.store.calls.count("update_status")) == (looks + 1, writes)
        told = ""
        loop.wake("room", Key("Job", "default", "job"))
        await world.passes(1)
        assert (await stored(world)).status.trouble is None

    world.run(check())


def test_that_trouble_is_over_is_written_even_if_that_fails_at_first() -> None:
    """Nothing else may ever have the key looked at again (PodWorld, seed 10761)."""
    world = World()
    told = "its lock names another"
    loop = world.loop(Script(lambda _: Decision(trouble=told)))

    def fail_once(call: str) -> None:
        if call == "update_status":
            world.store.before = lambda _: None
            raise UnavailableError("the request was lost")

    async def check() -> None:
        nonlocal told
        await world.inform(loop)
        await world.create_job()
        await world.passes(1)
        assert (await stored(world)).status.trouble is not None
        told = ""
        world.store.before = fail_once
        loop.wake("room", Key("Job", "default", "job"))
        await world.passes(60)
        assert (await stored(world)).status.trouble is None

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
    world, _, loop = admitting()

    async def check() -> None:
        loop.start()
        job = await world.create_job()
        newer = await world.store.update(replace(job, spec=replace(job.spec, title="newer")))
        world.show(loop, job)
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
    world, room, loop = admitting()

    async def check() -> None:
        loop.start()
        job = await world.create_job()
        await world.store.update(replace(job, spec=replace(job.spec, title="newer")))
        world.show(loop, job)
        await world.passes(60)
        assert 4 <= len(room.looks) < 20

    world.run(check())


def test_after_an_outage_everything_is_tried_again_promptly() -> None:
    world, _, loop = admitting()
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


def test_trouble_names_the_other_object_that_could_not_be_written() -> None:
    world = World()

    def before(call: str) -> None:
        if call == "update":
            raise ForbiddenError("no")

    def revises_another(key: Key) -> Decision:
        other = cached(world, Key("Job", "default", "other"))
        if key.name != "job" or other is None:
            return Decision()
        return Decision((ReviseJob(other, other.spec),))

    async def check() -> None:
        loop = world.loop(Script(revises_another))
        await world.inform(loop)
        await world.create_job("other")
        world.store.before = before
        await world.create_job()
        await world.passes(60)
        trouble = (await stored(world)).status.trouble
        assert trouble is not None
        assert trouble.about is not None
        assert trouble.about.key == Key("Job", "default", "other")
        assert (await stored(world, "other")).status.trouble is None

    world.run(check())
