"""About when a waiting Job may be let in: what is known is told, and else nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.admission.queues.ledger import Ledger
from interlock.reporting.estimate import Basis, Estimate, by_pace, pace_of
from interlock.reporting.queue_places import REMEMBERED, QueuePlaces
from interlock.reporting.queue_why import QueueView, Share, Unready
from interlock.reporting.why import WhyView, explain
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    QuotaGrant,
    Wait,
    WaitReason,
)
from interlock.resources.job import Job, JobPhase, JobStatus
from interlock.resources.queue import Demand, Member, QueueOrder, QuotaHolder
from interlock.resources.tasks import ExecutionStatus
from interlock.resources.values.amounts import Amount
from interlock.testing.builders import T0, a_job

NOW = T0 + timedelta(hours=1)


def minutes(*given: float) -> tuple[datetime, ...]:
    """Moments so many minutes after T0: now is at 60."""
    return tuple(T0 + timedelta(minutes=minute) for minute in given)


@pytest.mark.parametrize(
    ("let_in", "place", "expected"),
    [
        pytest.param((20, 30, 40, 50), 1, 60 + 10, id="a turn every ten minutes: one is due now"),
        pytest.param((25, 35, 45, 55), 1, 65, id="the next turn"),
        pytest.param((25, 35, 45, 55), 3, 85, id="the third"),
        pytest.param((25, 25, 35, 35, 45, 45, 55, 55), 2, 65, id="two a turn: both in the next"),
        pytest.param((25, 25, 35, 35, 45, 45, 55, 55), 3, 75, id="two a turn: the one after"),
        pytest.param((0, 2, 4, 6), 2, 64, id="a turn that is late is counted from now on"),
        pytest.param((25, 35, 45), 1, None, id="too few turns"),
        pytest.param((50,) * 30, 1, None, id="many in one turn tell nothing of the next"),
        pytest.param((), 1, None, id="nobody"),
        pytest.param((-1500, -1490, -1480, -1470, 55), 1, None, id="long ago"),
    ],
)
def test_a_line_moves_on_as_it_did(
    let_in: Sequence[float], place: int, expected: float | None
) -> None:
    pace = pace_of(minutes(*let_in), NOW)

    found = None if pace is None else pace.reaches(place, NOW)

    assert found == (None if expected is None else minutes(expected)[0])


@given(ago=st.lists(st.integers(0, 3000), max_size=20), place=st.integers(1, 500))
def test_an_estimate_is_never_past_and_later_for_those_behind(ago: list[int], place: int) -> None:
    pace = pace_of(sorted(NOW - timedelta(seconds=20 * one) for one in ago), NOW)

    if pace is not None:
        assert NOW < pace.reaches(place, NOW) <= pace.reaches(place + 1, NOW)


def test_what_it_was_worked_out_from_is_said() -> None:
    pace = pace_of(minutes(25, 35, 45, 55), NOW)
    assert pace is not None

    assert by_pace(pace, 1, NOW).message == (
        "about 13:05:00 UTC, in 5 m: 4 Jobs that had to wait came in within 35 m, and it is next"
    )
    assert by_pace(pace, 3, NOW).message.endswith("within 35 m, and 2 are before it")


def a_waiter(*waits: Wait) -> Job:
    status = JobStatus(phase=JobPhase.QUEUED, admission=AdmissionStatus(sequence=5, waits=waits))
    return a_job("train", queue="q", status=status)


def a_share(*, ends: float | None = None) -> Share:
    """A Job that holds all there is, and is stopped at some minute."""
    kill_at = None if ends is None else minutes(ends)[0]
    job = a_job("other", kill_at=kill_at, status=JobStatus(phase=JobPhase.RUNNING))
    holder = QuotaHolder(
        queue="q",
        job="other",
        namespace="default",
        uid=job.metadata.uid,
        epoch=0,
        token=1,
        tasks=1,
        granted_at=T0,
    )
    return Share(holder, job, {"tasks": 1000})


def a_view(**more: Any) -> QueueView:
    """A Queue with one task, which somebody else has."""
    told: dict[str, Any] = {
        "name": "q",
        "order": QueueOrder.BEST_EFFORT_FIFO,
        "demand": Demand(queue="q", tasks=1, least=1),
        "free": {"tasks": 0},
        "shares": (a_share(),),
        "place": 1,
        "of": 3,
    }
    told |= more
    ledger = Ledger((Member(queue="q", version=1, limits={"tasks": Amount.read(1)}),))
    for share in told["shares"]:
        ledger.add("q", share.held)
    return QueueView(**told, ledger=ledger)


PACE = minutes(25, 35, 45, 55)
FREE = {"free": {"tasks": 1000}, "shares": ()}
GATE = (Unready(a_share(), minutes(62)[0]),)


def clocked(minute: float) -> Wait:
    return Wait(reason=WaitReason.BACKOFF, until=minutes(minute)[0])


@pytest.mark.parametrize(
    ("waits", "queue", "expected"),
    [
        pytest.param((), a_view(), None, id="nothing known"),
        pytest.param((), a_view(let_in=PACE), (65, Basis.PACE), id="by how the line moves"),
        pytest.param((), a_view(shares=(a_share(ends=90),)), (90, Basis.ENDS), id="by its end"),
        pytest.param(
            (), a_view(shares=(a_share(ends=90),), let_in=PACE), (65, Basis.PACE), id="the earlier"
        ),
        pytest.param((), a_view(place=2, let_in=PACE), (75, Basis.PACE), id="behind another"),
        pytest.param((clocked(80),), a_view(**FREE), (80, Basis.CLOCK), id="after its backoff"),
        pytest.param(
            (clocked(80),), a_view(let_in=PACE), (80, Basis.CLOCK), id="the backoff is longer"
        ),
        pytest.param(
            (clocked(61),), a_view(let_in=PACE), (65, Basis.PACE), id="the line takes longer"
        ),
        pytest.param((clocked(80),), a_view(), None, id="of one of two nothing is known"),
        pytest.param((), a_view(**FREE), None, id="room is there: at once"),
        pytest.param(
            (), a_view(**FREE, unready=GATE), (62, Basis.ENDS), id="the gate, and it is next"
        ),
        pytest.param((), a_view(**FREE, unready=GATE, place=2), None, id="the gate, not next"),
        pytest.param(
            (),
            a_view(refusal=Wait(reason=WaitReason.QUEUE_STOPPED, key="q"), let_in=PACE),
            None,
            id="the queue is stopped",
        ),
        pytest.param(
            (Wait(reason=WaitReason.SUSPENDED),), a_view(let_in=PACE), None, id="a person holds it"
        ),
    ],
)
def test_an_estimate_needs_all_that_is_waited_for(
    waits: tuple[Wait, ...], queue: QueueView, expected: tuple[float, Basis] | None
) -> None:
    found = explain(WhyView(job=a_waiter(*waits), queue=queue), NOW).estimate

    assert told(found) == expected


def told(found: Estimate | None) -> tuple[float, Basis] | None:
    return None if found is None else ((found.at - T0) / timedelta(minutes=1), found.basis)


def test_a_job_that_runs_has_no_estimate() -> None:
    job = a_waiter()
    execution = ExecutionStatus(total=1, started_at=T0)
    running = replace(job, status=replace(job.status, phase=JobPhase.RUNNING, execution=execution))

    assert explain(WhyView(job=running, queue=a_view(let_in=PACE)), NOW).estimate is None


def let_in_at(name: str, seconds: float) -> Job:
    admission = AdmissionStatus(
        phase=AdmissionPhase.ADMITTED,
        quota=QuotaGrant(queue="q", token=1, tasks=1),
        admitted_at=T0 + timedelta(seconds=seconds),
    )
    job = a_job(name, queue="q", status=JobStatus(admission=admission))
    return replace(job, metadata=replace(job.metadata, creation_timestamp=T0))


def test_only_those_who_had_to_wait_are_remembered_once_and_not_too_many() -> None:
    places = QueuePlaces()
    for at in (30, 0.5, 10, 20, 10):
        places.put(let_in_at(f"job-{at}", at))

    assert [(at - T0).total_seconds() for at in places.let_in("q")] == [10, 20, 30]

    for at in range(100, 100 + REMEMBERED):
        places.put(let_in_at(f"job-{at}", at))
    places.put(let_in_at("job-20", 20))

    known = places.let_in("q")
    assert (len(known), known[0]) == (REMEMBERED, T0 + timedelta(seconds=100))
    assert places.let_in("other") == ()
