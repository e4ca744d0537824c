"""What is told of Queues of a cohort: what they borrowed, and who has what a Job of one lacks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from test_reporting_queues import NOW, Desk, a_queue, amounts, ends, running, waiting

from interlock.modes.cli.verbs.queue import headlines
from interlock.modes.cli.verbs.queues import used_told
from interlock.resources.codec import to_builtins
from interlock.resources.job import Job
from interlock.resources.metadata import Metadata
from interlock.resources.queue import (
    BorrowPolicy,
    BorrowWithinCohort,
    Member,
    Preemption,
    Queue,
    QueueQuota,
    QuotaHolder,
    QuotaSpec,
    QuotaStatus,
    ReclaimPolicy,
    Seat,
    cohort_name,
    quota_name,
)
from interlock.testing.builders import T0


def a_member(name: str, gpu: int, **spec: Any) -> Queue:
    return a_queue(name, gpu=gpu, cohort="lab", **spec)


def of(queue: str, gpu: int, name: str = "", **spec: Any) -> Job:
    """A Job that holds so much, of a Queue."""
    return running(name or f"{queue}-{gpu}", gpu, queue=queue, **spec)


def a_cohort(*queues: Queue, held: tuple[Job, ...] = ()) -> list[Any]:
    """The Queues, their seats, and the record in which their Jobs hold what they do."""
    record = cohort_name("lab")
    members = tuple(
        Member(
            queue=one.metadata.name,
            version=1,
            limits=one.spec.resources,
            borrowing=one.spec.borrowing_limit,
            lending=one.spec.lending_limit,
            seat=1,
        )
        for one in queues
    )
    holders = tuple(
        QuotaHolder(
            queue=job.spec.queue or "",
            job=job.metadata.name,
            namespace=job.metadata.namespace,
            uid=job.metadata.uid,
            epoch=0,
            token=1,
            tasks=1,
            each=job.spec.resources or {},
            granted_at=T0,
        )
        for job in held
    )
    seats = [
        QueueQuota(
            metadata=Metadata(name=quota_name(one.metadata.name), resource_version="1"),
            spec=QuotaSpec(queue=one.metadata.name),
            status=QuotaStatus(seat=Seat(record=record, uid="lab", number=1)),
        )
        for one in queues
    ]
    shared = QueueQuota(
        metadata=Metadata(name=record, uid="lab", resource_version="1"),
        spec=QuotaSpec(cohort="lab"),
        status=QuotaStatus(members=members, holders=holders, last_token=1),
    )
    return [*queues, *seats, shared, *held]


def why_blue(gpu: int, *resources: Any) -> str:
    """Why a Job of the Queue blue waits that needs so much."""
    job = waiting("job", 5, gpu, queue="blue")
    (wait,) = Desk(job, *resources).why(job).waits
    return wait.message


RECLAIMS = Preemption(reclaim_within_cohort=ReclaimPolicy.ANY)
RECLAIMS_LOWER = Preemption(reclaim_within_cohort=ReclaimPolicy.LOWER_PRIORITY)
BORROWS = Preemption(borrow_within_cohort=BorrowWithinCohort(policy=BorrowPolicy.LOWER_PRIORITY))


@pytest.mark.parametrize(
    ("preemption", "words"),
    [
        pytest.param(Preemption(), "which comes back as Jobs there end", id="it waits"),
        pytest.param(
            RECLAIMS, "which is reclaimed: Jobs there are put back for it", id="it reclaims"
        ),
        pytest.param(
            RECLAIMS_LOWER,
            "which comes back as Jobs there end; those of a lower priority are put back for it",
            id="it reclaims from those of a lower priority",
        ),
    ],
)
def test_who_has_borrowed_what_is_its_own_is_told(preemption: Preemption, words: str) -> None:
    queues = a_member("blue", 4, preemption=preemption), a_member("red", 2)
    held = of("blue", 1), of("red", 5)

    assert why_blue(2, *a_cohort(*queues, held=held)) == (
        "queue blue has no room: needs gpu 2, free 0; job/blue-1 holds gpu 1;"
        f" queue red has borrowed gpu 3 of what is its own, {words}"
    )


@pytest.mark.parametrize(
    ("preemption", "words"),
    [
        pytest.param(Preemption(), "it can borrow more as Jobs there end", id="it waits"),
        pytest.param(
            BORROWS, "it can borrow more as Jobs there end, or make room for it", id="it preempts"
        ),
    ],
)
def test_who_holds_what_it_would_borrow_is_told(preemption: Preemption, words: str) -> None:
    queues = a_member("blue", 4, preemption=preemption), a_member("red", 4)
    held = of("blue", 4), of("red", 3)

    assert why_blue(2, *a_cohort(*queues, held=held)) == (
        "queue blue has no room: needs gpu 2, free 1; job/blue-4 holds gpu 4;"
        f" in cohort lab queue red holds gpu 3; {words}"
    )


def test_its_own_limit_is_told_where_that_keeps_it_from_borrowing() -> None:
    blue = a_member("blue", 4, borrowing_limit=amounts(gpu=1))

    message = why_blue(2, *a_cohort(blue, a_member("red", 4), held=(of("blue", 4),)))

    assert message.endswith("free 1; job/blue-4 holds gpu 4; its borrowingLimit is gpu 1")


def test_that_others_lend_no_more_is_told() -> None:
    red = a_member("red", 4, lending_limit=amounts(gpu=1))

    message = why_blue(2, *a_cohort(a_member("blue", 4), red, held=(of("blue", 4),)))

    assert message.endswith("free 1; job/blue-4 holds gpu 4; the others of cohort lab lend no more")


def test_of_many_queues_a_few_are_named() -> None:
    others = [a_member(f"q{n}", 0) for n in range(5)]
    held = tuple(of(f"q{n}", 5 - n) for n in range(5))

    message = why_blue(15, *a_cohort(a_member("blue", 15), *others, held=held))

    assert "queue q0 has borrowed gpu 5, queue q1 gpu 4, queue q2 gpu 3, 2 more gpu 3 of" in message


def test_jobs_of_other_queues_are_named_as_holders_where_they_may_be_known() -> None:
    held = (
        of("blue", 1),
        of("red", 1, "ours"),
        of("red", 4, "theirs", namespace="team-b"),
        of("green", 1, "not-borrowed"),
    )
    queues = a_member("blue", 4), a_member("red", 2), a_member("green", 1)
    job = waiting("job", 5, 2, queue="blue")

    (wait,) = Desk(job, *a_cohort(*queues, held=held)).why(job).waits

    assert [one.job for one in wait.holders] == ["blue-1", "ours"]


@pytest.mark.parametrize(
    ("needs", "minutes"),
    [
        pytest.param(1, 10, id="the first that borrowed gives back enough"),
        pytest.param(3, 20, id="both have to"),
        pytest.param(5, None, id="one of which nothing is known has to end"),
    ],
)
def test_room_is_told_for_the_moment_when_those_end_who_borrowed(
    needs: int, minutes: int | None
) -> None:
    held = ends(of("red", 2, "a"), 10), ends(of("red", 2, "b"), 20), of("red", 2, "c")
    queues = a_member("blue", 5), a_member("red", 1)
    job = waiting("job", 5, needs, queue="blue")

    (wait,) = Desk(job, *a_cohort(*queues, held=held)).why(job).waits

    assert wait.until == (T0 + timedelta(minutes=minutes) if minutes else None)


def test_what_is_borrowed_is_shown_with_what_is_used() -> None:
    queues = a_member("blue", 4), a_member("red", 2)
    desk = Desk(*a_cohort(*queues, held=(of("blue", 1), of("red", 5))))

    blue, red = (to_builtins(desk.short(name)) for name in ("blue", "red"))

    assert (blue["cohort"], red["cohort"]) == ("lab", "lab")
    assert used_told(blue["resources"]["gpu"]) == "1/4"
    assert used_told(red["resources"]["gpu"]) == "5/2 (+3)"
    assert headlines(red) == ["queue red   BestEffortFIFO   cohort lab   1 admitted, 0 waiting"]


def test_what_is_in_two_records_while_a_queue_moves_counts_once() -> None:
    red, held = a_member("red", 2), of("red", 5)
    blue, *rest = a_cohort(a_member("blue", 4), red, held=(held,))
    (shared,) = (one for one in rest if one.metadata.name == cohort_name("lab"))
    left = replace(
        shared,
        metadata=Metadata(name=cohort_name("old"), uid="old", resource_version="1"),
        spec=QuotaSpec(cohort="old"),
    )
    seat = Seat(record=cohort_name("lab"), uid="lab", number=2, came_from=cohort_name("old"))
    rest = [
        replace(one, status=QuotaStatus(seat=seat))
        if one.metadata.name == quota_name("red")
        else one
        for one in rest
    ]
    desk = Desk(blue, *rest, left)

    assert (desk.short("red").admitted, desk.short("red").resources["gpu"].used) == (1, 5)
    assert desk.short("blue").resources["gpu"].free == desk.detail("blue").resources["gpu"].free
    assert [level.used["gpu"] for level in desk.reader.levels()] == [0, 5000]


def test_a_queue_that_has_no_seat_yet_is_told_as_one_alone() -> None:
    blue = a_member("blue", 4)
    job = waiting("job", 5, 5, queue="blue")

    found = Desk(job, blue).reader.queue("blue", NOW)

    assert found is not None
    assert found.cohort == "lab"
    assert found.why.startswith("queue blue has no room: needs gpu 5, free 4")
