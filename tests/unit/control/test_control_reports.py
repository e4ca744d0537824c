"""What the runtime said: never older than known, and never taken for complete too early."""

from __future__ import annotations

from typing import Any

import pytest
from control_world import World

from interlock.resources.errors import UnavailableError
from interlock.resources.tasks import ReportState, TaskOrder, TaskReport
from interlock.testing.builders import T0


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
        command=("true",),
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
    news = reports._replace(read, touched)

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
