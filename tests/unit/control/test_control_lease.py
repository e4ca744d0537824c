"""The lease: one leader at a time as far as a lease can tell, and the next one soon after."""

from __future__ import annotations

import asyncio
import logging
from random import Random

import pytest
from control_world import World

from interlock.control.lease import LEASE, Election, LeaseTimes
from interlock.control.stopping import end_task
from interlock.control.write_fence import WriteFence
from interlock.errors import FencedError, NotFoundError, UnavailableError
from interlock.resources.cluster import Lease, Namespace
from interlock.resources.metadata import Metadata

TIMES = LeaseTimes()


class Candidate:
    """A control plane that would like to lead."""

    def __init__(self, world: World, name: str, *, sole: bool = False, namespace: str = "") -> None:
        self.world = world
        self.fence = WriteFence(world.clock)
        self.election = Election(
            world.store,
            world.clock,
            Random(name),
            self.fence,
            name,
            sole=sole,
            times=TIMES,
            namespace=namespace,
        )
        self.terms: list[int] = []
        self.losses = 0
        self.election.on_lead = self.terms.append
        self.election.on_lost = self._lost

    def _lost(self) -> None:
        self.losses += 1

    def start(self) -> asyncio.Task[None]:
        return self.world.events.create_task(self.election.run())

    async def stop(self, task: asyncio.Task[None]) -> None:
        await end_task(task)
        await self.election.release()


async def the_lease(world: World) -> Lease:
    lease = await world.store.get(LEASE)
    assert isinstance(lease, Lease)
    return lease


def test_the_first_one_leads_and_keeps_leading() -> None:
    world = World()
    first, second = Candidate(world, "first"), Candidate(world, "second")

    async def check() -> None:
        first.start()
        await first.election.leading.wait()
        second.start()
        await world.passes(3600)
        assert first.fence.is_open
        assert not second.fence.is_open
        assert (len(first.terms), second.terms) == (1, [])
        assert (await the_lease(world)).spec.holder_identity == "first"

    world.run(check())


def test_a_clean_stop_hands_over_at_once_with_a_higher_term() -> None:
    world = World()
    first, second = Candidate(world, "first"), Candidate(world, "second")

    async def check() -> None:
        task = first.start()
        await first.election.leading.wait()
        second.start()
        await world.passes(60)
        await first.stop(task)
        assert not first.fence.is_open
        assert first.losses == 1
        began = world.clock.monotonic()
        await second.election.leading.wait()
        assert world.clock.monotonic() - began < TIMES.lasts_s / 2
        assert second.terms[0] > first.terms[0]
        assert (await the_lease(world)).spec.lease_transitions == 1

    world.run(check())


def test_a_leader_that_vanishes_is_followed_when_its_lease_ran_out() -> None:
    world = World()
    first, second = Candidate(world, "first"), Candidate(world, "second")

    async def check() -> None:
        task = first.start()
        await first.election.leading.wait()
        second.start()
        await world.passes(60)
        task.cancel()
        began = world.clock.monotonic()
        await second.election.leading.wait()
        assert world.clock.monotonic() - began >= TIMES.lasts_s - TIMES.every_s
        # Nobody told the first one, and yet nothing of it passes any more.
        with pytest.raises(FencedError):
            first.fence.check()

    world.run(check())


def test_a_leader_that_cannot_renew_stops_before_another_begins() -> None:
    world = World()
    first, second = Candidate(world, "first"), Candidate(world, "second")
    failing = False

    async def check() -> None:
        nonlocal failing
        first.start()
        await first.election.leading.wait()
        await world.passes(60)
        failing = True
        began = world.clock.monotonic()
        while first.election.leading.is_set():
            await world.passes(0.1)
        assert world.clock.monotonic() - began <= TIMES.renew_by_s + 1
        assert not first.fence.is_open
        failing = False
        second.start()
        await world.passes(120)
        assert first.fence.is_open != second.fence.is_open
        terms = first.terms + second.terms
        assert terms == sorted(terms)

    def fail(call: str) -> None:
        if failing and call == "update":
            raise UnavailableError("down")

    world.store.before = fail
    world.run(check())


def test_a_store_that_never_answers_shuts_the_gate_all_the_same() -> None:
    world = World()
    fence = WriteFence(world.clock)
    election = Election(world.store, world.clock, Random(0), fence, "me")

    async def never(key: object) -> Lease:
        await asyncio.Event().wait()
        raise AssertionError

    async def check() -> None:
        world.events.create_task(election.run())
        await election.leading.wait()
        world.store.get = never  # type: ignore[method-assign]
        world.store.update = never  # type: ignore[assignment, method-assign]
        await world.passes(TIMES.renew_by_s + TIMES.every_s)
        assert not fence.is_open
        assert not election.leading.is_set()

    world.run(check())


def test_with_proof_that_no_other_runs_the_lease_is_taken_at_once_and_costs_nothing() -> None:
    world = World()
    dead, sole = Candidate(world, "dead"), Candidate(world, "sole", sole=True)

    async def check() -> None:
        task = dead.start()
        await dead.election.leading.wait()
        task.cancel()
        running = sole.start()
        began = world.clock.monotonic()
        await sole.election.leading.wait()
        assert world.clock.monotonic() == began
        calls = len(world.store.calls)
        await world.passes(3600)
        assert sole.fence.is_open
        assert len(world.store.calls) == calls
        assert sole.terms[0] > dead.terms[0]
        await sole.stop(running)
        assert (await the_lease(world)).spec.holder_identity == ""

    world.run(check())


def test_a_leader_that_was_fenced_off_resigns_and_may_lead_again_later() -> None:
    world = World()
    only = Candidate(world, "only")

    async def check() -> None:
        only.start()
        await only.election.leading.wait()
        only.fence.shut("a runtime follows a newer leader")
        await world.passes(60)
        assert only.losses == 1
        assert only.fence.is_open
        assert only.terms == sorted(set(only.terms))
        assert len(only.terms) == 2

    world.run(check())


def test_releasing_in_an_outage_does_not_fail() -> None:
    world = World()
    only = Candidate(world, "only")

    async def check() -> None:
        task = only.start()
        await only.election.leading.wait()
        world.store.before = _down
        await only.stop(task)
        assert not only.fence.is_open

    world.run(check())


def _down(call: str) -> None:
    raise UnavailableError("down")


def test_an_outage_at_the_start_only_delays() -> None:
    world = World()
    only = Candidate(world, "only")

    async def check() -> None:
        world.store.before = _down
        only.start()
        await world.passes(60)
        assert not only.terms
        world.store.before = lambda _: None
        await only.election.leading.wait()
        assert only.fence.is_open

    world.run(check())


def test_a_namespace_that_is_not_ours_is_waited_for_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """On a cluster somebody else makes namespaces, and we may not."""
    world = World()
    only = Candidate(world, "only", namespace="batch")

    async def check() -> None:
        only.start()
        await world.passes(600)
        assert not only.fence.is_open
        assert await_told(caplog) == ["its namespace batch is not there; it is taken once it is"]
        await world.store.create(Namespace(metadata=Metadata(name="batch")))
        await only.election.leading.wait()
        assert (await world.store.get(only.election.key)).metadata.namespace == "batch"
        with pytest.raises(NotFoundError):
            await world.store.get(LEASE)

    with caplog.at_level(logging.INFO, "interlock.lease"):
        world.run(check())


def await_told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Why the lease could not be taken, as often as it was said."""
    begin = "the lease could not be taken: "
    lines = (record.getMessage() for record in caplog.records)
    return [line.removeprefix(begin) for line in lines if line.startswith(begin)]


def test_a_renewal_whose_answer_was_lost_is_no_reason_to_stop() -> None:
    """The write happened, and the leader does not know; it finds its own name and goes on."""
    world = World()
    only = Candidate(world, "only")
    update = world.store.update
    lost = 0

    async def lose_one(resource: Lease) -> Lease:
        nonlocal lost
        written = await update(resource)
        if not lost:
            lost += 1
            raise UnavailableError("the answer was lost")
        return written

    async def check() -> None:
        only.start()
        await only.election.leading.wait()
        world.store.update = lose_one  # type: ignore[assignment, method-assign]
        await world.passes(3600)
        assert (lost, only.losses, len(only.terms)) == (1, 0, 1)
        assert only.fence.is_open

    world.run(check())


def test_a_lease_that_somebody_deleted_ends_the_lead_at_once() -> None:
    """Whoever comes next makes a new one without waiting, so the leader must not go on."""
    world = World()
    only = Candidate(world, "only")

    async def check() -> None:
        only.start()
        await only.election.leading.wait()
        await world.store.delete(LEASE)
        await world.passes(2 * TIMES.every_s)
        assert only.losses == 1

    world.run(check())


@pytest.mark.parametrize("slow_s", [0.5, 3.0, 9.0, 9.9, 12.0])
def test_however_slow_renewals_are_a_leader_stops_before_another_begins(slow_s: float) -> None:
    """A renewal counts from when it was begun; others count from when they saw it."""
    world = World()
    first, second = Candidate(world, "first"), Candidate(world, "second")
    update = world.store.update

    async def slowly(resource: Lease) -> Lease:
        written = await update(resource)
        if resource.spec.holder_identity == "first":
            await world.passes(slow_s)
        return written

    async def check() -> None:
        first.start()
        await first.election.leading.wait()
        world.store.update = slowly  # type: ignore[assignment, method-assign]
        second.start()
        for _ in range(3000):
            await world.passes(0.1)
            assert not (first.fence.is_open and second.fence.is_open)

    world.run(check())
