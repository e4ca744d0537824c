"""What the runtime said: never older than known, and never taken for complete too early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from control_world import NotedRuntime, World

from interlock.control.reports import Reports
from interlock.control.runtime import PartOfReportsError
from interlock.errors import UnavailableError
from interlock.resources.tasks import ReportState, TaskOrder, TaskReport
from interlock.resources.work import ProcessWork
from interlock.testing.builders import T0

OTHER = "others"


def a_report(state: ReportState = ReportState.RUNNING, index: int = 0, **more: Any) -> TaskReport:
    given: dict[str, Any] = {
        "job_uid": "uid",
        "index": index,
        "attempt": 0,
        "namespace": "default",
        "job": "job",
        "state": state,
    }
    return TaskReport(**(given | more))


def an_order(index: int = 0) -> TaskOrder:
    return TaskOrder(
        job_uid="uid",
        index=index,
        attempt=0,
        name=f"job-{index}-0",
        namespace="default",
        job="job",
        work=ProcessWork(command=("true",)),
    )


def states(world: World) -> dict[int, ReportState]:
    return {index: report.state for (index, _), report in world.reports.of("uid").items()}


def complete(world: World) -> bool:
    return world.reports.complete


def test_nothing_is_complete_before_everything_was_read() -> None:
    world = World()
    world.runtime.failure = UnavailableError("starting")
    world.runtime.known = [a_report()]

    async def check() -> None:
        world.events.create_task(world.reports.run())
        await world.passes(10)
        assert not complete(world)
        world.runtime.failure = None
        await world.reports.synced.wait()
        assert complete(world)
        assert states(world) == {0: ReportState.RUNNING}
        assert world.reports.count(ReportState.RUNNING) == 1

    world.run(check())


def test_what_is_told_is_held_and_published_once() -> None:
    world = World()
    published: list[TaskReport] = []
    world.reports.publish = published.extend

    async def check() -> None:
        world.events.create_task(world.reports.run())
        await world.reports.synced.wait()
        world.runtime.tell(a_report())
        world.runtime.tell(a_report(), a_report(ReportState.ENDED, exit_code=0))
        assert [report.state for report in published] == [ReportState.RUNNING, ReportState.ENDED]
        assert world.reports.count(ReportState.RUNNING) == 0

    world.run(check())


S = ReportState


@pytest.mark.parametrize(
    ("held", "told", "kept"),
    [
        pytest.param(S.ACCEPTED, S.RUNNING, S.RUNNING, id="it started"),
        pytest.param(S.ENDED, S.RUNNING, S.ENDED, id="an end is never taken back"),
        pytest.param(S.NOT_STARTED, S.ACCEPTED, S.NOT_STARTED, id="nor one that never began"),
        pytest.param(S.RUNNING, S.ACCEPTED, S.RUNNING, id="a late word changes nothing"),
        pytest.param(S.RUNNING, S.UNKNOWN, S.UNKNOWN, id="it was lost sight of"),
        pytest.param(S.UNKNOWN, S.RUNNING, S.RUNNING, id="it was found again"),
        pytest.param(S.UNKNOWN, S.ENDED, S.ENDED, id="its end became known"),
    ],
)
def test_the_better_report_is_kept(held: S, told: S, kept: S) -> None:
    world = World()
    world.reports._hear([a_report(held)])
    world.reports._hear([a_report(told)])

    assert states(world) == {0: kept}


def test_what_is_told_while_reading_is_newer_than_what_is_read() -> None:
    world = World()
    reports = world.reports
    read = [a_report(S.RUNNING, 0), a_report(S.RUNNING, 1), a_report(S.RUNNING, 2)]
    reports._hear([a_report(S.RUNNING, 1), a_report(S.RUNNING, 5)])

    reports._touched = {}
    reports._hear([a_report(S.UNKNOWN, 0)])
    reports.forgotten([a_report(index=1).id])
    reports.launched([an_order(3)])
    touched, reports._touched = reports._touched, None
    news = reports._replace(read, touched, frozenset())

    assert states(world) == {0: S.UNKNOWN, 2: S.RUNNING, 3: S.ACCEPTED}
    assert [report.index for report in news] == [2, 5]


def test_a_launch_makes_an_attempt_known_without_undoing_what_is_known() -> None:
    world = World()
    world.reports._hear([a_report(S.NOT_STARTED, 1)])
    world.reports.launched([an_order(0), an_order(1)])

    assert states(world) == {0: S.ACCEPTED, 1: S.NOT_STARTED}


def test_after_the_runtime_could_not_be_reached_everything_is_read_again() -> None:
    world = World()
    completions: list[bool] = []
    world.reports.on_complete = lambda: completions.append(True)

    async def check() -> None:
        world.runtime.known = [a_report(index=0), a_report(index=1)]
        world.events.create_task(world.reports.run())
        await world.reports.synced.wait()
        world.runtime.known = [a_report(S.ENDED, 1)]
        world.reports.suspect()
        assert not complete(world)
        await world.passes(1)
        assert complete(world)
        assert states(world) == {1: S.ENDED}
        assert len(completions) == 2

    world.run(check())


def test_a_job_that_is_not_known_has_no_reports() -> None:
    assert World().reports.of("nobody") == {}
    assert a_report(started_at=T0).started_at == T0


class TwoRuntimes(NotedRuntime):
    """Two runtimes, of which the other can be out of reach."""

    is_down = True

    async def reports(self) -> Sequence[TaskReport]:
        known = await super().reports()
        if not self.is_down:
            return known
        told = [report for report in known if report.runtime != OTHER]
        raise PartOfReportsError("others: down", told, frozenset({OTHER}))


class TestSeveralRuntimes:
    """One that cannot be asked leaves the others' word as good as ever."""

    def a_world(self) -> tuple[World, TwoRuntimes]:
        world, runtime = World(), TwoRuntimes()
        runtime.known = [a_report(S.RUNNING, 0), a_report(S.RUNNING, 1, runtime=OTHER)]
        world.reports = Reports(runtime, world.clock, world.luck)
        return world, runtime

    def test_those_that_answer_are_heard_and_the_others_are_asked_again(self) -> None:
        world, runtime = self.a_world()
        seen: list[tuple[bool, bool, bool]] = []

        def note() -> None:
            reports = world.reports
            seen.append((reports.has_heard(""), reports.has_heard(OTHER), reports.complete))

        async def scene() -> None:
            note()
            world.reports.on_complete = note
            world.events.create_task(world.reports.run())
            await world.passes(60.0)
            assert states(world) == {0: S.RUNNING}
            runtime.is_down = False
            await world.reports.synced.wait()
            assert states(world) == {0: S.RUNNING, 1: S.RUNNING}

        world.run(scene())

        # Nobody is told again and again that one is still missing.
        assert seen == [(False, False, False), (True, False, False), (True, True, True)]

    def test_what_a_runtime_told_stays_while_it_cannot_be_asked(self) -> None:
        world, runtime = self.a_world()

        async def scene() -> None:
            runtime.is_down = False
            world.events.create_task(world.reports.run())
            await world.reports.synced.wait()
            runtime.is_down = True
            runtime.known = []

            world.reports.suspect(OTHER)
            assert world.reports.has_heard("")
            await world.passes(60.0)

            assert states(world) == {1: S.RUNNING}
            assert (world.reports.has_heard(""), world.reports.has_heard(OTHER)) == (True, False)

        world.run(scene())
