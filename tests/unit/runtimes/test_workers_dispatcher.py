"""The dispatcher: who is given what, whose word counts, and what silence means."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.tasks import (
    MAX_RETURNED_BYTES,
    PendingReason,
    ReportState,
    TaskId,
    TaskState,
    TaskStatus,
)
from interlock.resources.work_types import WORKERS
from interlock.runtimes.workers.admittance import RefusedWorkerError
from interlock.runtimes.workers.attempts import task_of
from interlock.runtimes.workers.placement import WAITS_AFTER_S
from interlock.runtimes.workers.protocol import (
    MAX_FRAME,
    Orders,
    Ref,
    Welcome,
)
from interlock.testing.builders import T0, a_job
from support.dispatcher_desk import LEASE_S, TOUCH_S, Desk


def job_at(job: str, *tasks: int, **changes: Any) -> tuple[Job, list[TaskId]]:
    """A Job whose status has attempts at work."""
    active = tuple(
        replace(
            TaskStatus(
                name=f"{job}-{task}-0",
                index=task,
                attempt=0,
                state=TaskState.RUNNING,
                created_at=T0,
                started_at=T0,
                runtime=WORKERS,
            ),
            **changes,
        )
        for task in tasks
    )
    made = a_job(job)
    execution = replace(made.status.execution, active=active)
    made = replace(made, status=replace(made.status, execution=execution))
    return made, [TaskId(made.metadata.uid, task, 0) for task in tasks]


# Handing out


def test_an_order_goes_to_a_worker_that_is_told_everything() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch(
        args={"size": 1},
        step="reserve",
        results={"before": "1"},
        fences={"target/shop": 7},
        target="shop",
        creator="ana",
    )

    (call,) = desk.calls(worker)
    assert isinstance(desk.all(worker)[0], Welcome)
    assert task_of(call.ref) == task
    assert (call.function, call.step, call.args) == ("make", "reserve", {"size": 1})
    assert (call.results, call.fences) == ({"before": "1"}, {"target/shop": 7})
    assert (call.target, call.creator, call.job) == ("shop", "ana", "job")
    assert desk.told[task].state is ReportState.RUNNING
    assert desk.told[task].started_at == T0


@pytest.mark.parametrize(
    ("hello", "work", "message"),
    [
        pytest.param({}, {"function": "other"}, "no worker has loaded other", id="function"),
        pytest.param(
            {"queues": ("fast",)},
            {"function": "make", "queue": "slow"},
            "no worker has loaded make and serves queue slow",
            id="another queue",
        ),
        pytest.param(
            {"queues": ("fast",)}, {"function": "make"}, "no worker has loaded make", id="no queue"
        ),
    ],
)
def test_an_order_that_nobody_can_do_waits_and_says_why(
    hello: dict[str, Any], work: dict[str, Any], message: str
) -> None:
    desk = Desk()
    worker = desk.worker("w", **hello)
    task = desk.launch(**work)

    assert desk.has(worker) == []
    report = desk.told[task]
    assert (report.state, report.reason) == (ReportState.ACCEPTED, PendingReason.NO_WORKER)
    assert report.message == message
    assert desk.dispatcher.waiting == 1


def test_what_waits_is_given_to_who_comes_the_oldest_first() -> None:
    desk = Desk()
    first, second, third = (desk.launch(f"job-{n}") for n in range(3))
    worker = desk.worker("w", concurrency=2)
    desk.record(first, second, third)

    assert desk.has(worker) == [first, second]
    told = desk.told[third]
    assert told.reason is PendingReason.WORKERS_BUSY
    assert told.message == "every worker that has loaded make is busy"
    desk.done(worker, first)
    desk.record(third)
    assert desk.has(worker) == [first, second, third]
    assert desk.dispatcher.waiting == 0


def test_lines_of_several_functions_are_served_by_arrival() -> None:
    desk = Desk()
    tasks = [desk.launch(f"job-{n}", function=("make", "unmake")[n % 2]) for n in range(4)]
    worker = desk.worker("w", "make", "unmake", concurrency=3)
    desk.record(*tasks)

    assert desk.has(worker) == tasks[:3]


@pytest.mark.parametrize(
    ("lasts_s", "next_is"),
    [
        pytest.param(0.1, "greedy", id="short steps: what was begun goes on"),
        pytest.param(1.5, "late", id="long steps: it comes behind who waited meanwhile"),
    ],
)
def test_a_job_comes_first_for_a_while_and_does_not_starve_others(
    lasts_s: float, next_is: str
) -> None:
    desk = Desk()
    worker = desk.worker("w")
    first, patient, late = (desk.launch(job) for job in ("greedy", "patient", "late"))
    desk.wait(lasts_s)
    desk.done(worker, first)
    desk.record(patient)
    second = desk.launch("greedy", 2)
    desk.done(worker, patient)
    desk.record(late, second)

    given = [task.job_uid for task in desk.has(worker)]
    assert given == [first.job_uid, patient.job_uid, f"uid-default-{next_is}"]


def test_the_next_attempt_goes_to_the_same_worker() -> None:
    desk = Desk()
    workers = [desk.worker(f"w{n}", concurrency=2) for n in range(3)]
    task = desk.launch()
    (owner,) = (worker for worker in workers if desk.has(worker))
    desk.done(owner, task, error="no gear")
    again = desk.launch(attempt=1)

    assert desk.has(owner) == [task, again]


def test_the_next_attempt_goes_elsewhere_when_the_same_worker_is_full() -> None:
    desk = Desk()
    first, second = desk.worker("a"), desk.worker("b", "make", "more")
    task = desk.launch("one")
    owner, other = (first, second) if desk.has(first) else (second, first)
    desk.done(owner, task, error="no gear")
    desk.drain(owner)
    again = desk.launch("one", attempt=1)

    assert desk.has(other) == [again]


def test_several_workers_share_what_there_is() -> None:
    desk = Desk()
    workers = [desk.worker(f"w{n}", concurrency=5) for n in range(4)]
    for n in range(8):
        desk.launch(f"job-{n}")

    assert [len(desk.calls(worker)) for worker in workers] == [2, 2, 2, 2]


def test_a_draining_worker_finishes_what_it_has_and_is_given_nothing() -> None:
    desk = Desk()
    worker = desk.worker("w", concurrency=5)
    task = desk.launch("one")
    desk.drain(worker)
    other = desk.launch("two")
    desk.done(worker, task, "1")

    assert desk.has(worker) == [task]
    assert desk.told[task].exit_code == 0
    assert desk.state(other) is ReportState.ACCEPTED
    (told,) = desk.dispatcher.workers()
    assert (told.draining, told.at_work) == (True, 0)


def test_that_nobody_is_left_is_told_only_when_nobody_comes_back_soon() -> None:
    desk = Desk()
    worker = desk.worker("w")
    desk.launch("busy")
    task = desk.launch("waits")
    desk.leave(worker)
    assert desk.told[task].reason is None

    desk.wait(5)
    assert desk.told[task].message == "no worker has loaded make"
    back = desk.worker("w")
    assert desk.told[task].message == ""
    desk.record(task)
    assert desk.has(back) == [task]


# Results


def test_a_result_is_told_and_recorded_with_the_next_order() -> None:
    desk = Desk()
    worker = desk.worker("w")
    first = desk.launch(task=0)
    desk.done(worker, first, '{"gear": 1}')
    report = desk.told[first]
    assert (report.state, report.exit_code) == (ReportState.ENDED, 0)
    assert report.returned is not None
    assert report.returned.json == '{"gear": 1}'
    assert desk.recorded(worker) == []

    second = desk.launch(task=2)

    message = desk.last_message(worker)
    assert isinstance(message, Orders)
    assert [task_of(call.ref) for call in message.calls] == [second]
    assert [task_of(ref) for ref in message.recorded] == [first]


def test_a_result_that_the_next_order_does_not_know_of_is_not_recorded() -> None:
    """Steps side by side: the one that is launched was decided on before the other ended."""
    desk = Desk()
    worker = desk.worker("w", concurrency=5)
    first, beside = desk.launch(task=0), desk.launch(task=2)
    desk.done(worker, first)
    desk.done(worker, beside)
    desk.launch(task=4, open_attempts=((2, 0),))

    assert desk.recorded(worker) == [first]
    desk.forget(beside)
    assert desk.recorded(worker) == [first, beside]


def test_what_is_forgotten_is_recorded_once() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.done(worker, task)
    desk.launch(attempt=1)
    desk.forget(task)
    desk.forget(task)

    assert desk.recorded(worker) == [task]


@pytest.mark.parametrize(
    ("returned", "error", "expected"),
    [
        pytest.param("", "SERVFAIL from ns1", (1, "SERVFAIL from ns1"), id="an error"),
        pytest.param("", "x" * 5_000, (1, "x" * 1_000), id="a long error is cut"),
        pytest.param("", "", (0, ""), id="nothing returned"),
    ],
)
def test_how_an_attempt_ends(returned: str, error: str, expected: tuple[int, str]) -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.done(worker, task, returned, error)

    report = desk.told[task]
    assert (report.exit_code, report.message) == expected
    assert not report.interrupted


def test_what_is_no_json_is_a_failure_with_words() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.done(worker, task, "{gear")

    assert desk.told[task].exit_code == 1
    assert "what make returned is no JSON" in desk.told[task].message


def test_how_long_a_result_was_is_told_when_it_is_too_long() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.done(worker, task, f'"{"x" * MAX_RETURNED_BYTES}"')

    returned = desk.told[task].returned
    assert returned is not None
    assert (returned.json, returned.dropped_bytes) == ("", MAX_RETURNED_BYTES + 2)


def test_a_call_that_is_too_long_is_never_started() -> None:
    desk = Desk()
    desk.worker("w")
    task = desk.launch(args={"text": "x" * MAX_FRAME})

    assert desk.state(task) is ReportState.NOT_STARTED
    assert "can be sent" in desk.told[task].message


def test_progress_is_told() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.touch(worker, task, percent=41.7, text="copies")
    desk.touch(worker, task)
    progress = desk.told[task].progress

    assert progress is not None
    assert (progress.percent, progress.text) == (41, "copies")


def test_a_result_counts_once_however_often_it_is_told() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.done(worker, task, "1")
    before = desk.told[task]
    desk.done(worker, task, "2")

    assert desk.told[task] == before
    assert desk.refused(worker) == {}


# Leases


def test_silence_for_the_length_of_a_lease_cuts_an_attempt_off() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.wait(LEASE_S - 1)
    assert desk.state(task) is ReportState.RUNNING
    desk.wait(1)

    report = desk.told[task]
    assert (report.state, report.interrupted) == (ReportState.ENDED, True)
    assert report.exit_code is None
    assert report.message == "worker w was silent for 30 s"
    assert list(desk.refused(worker)) == [task]


def test_touching_keeps_an_attempt_for_ever() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    for _ in range(50):
        desk.wait(TOUCH_S)
        desk.touch(worker, task)

    assert desk.state(task) is ReportState.RUNNING


def test_a_worker_that_wakes_too_late_can_record_nothing() -> None:
    desk = Desk()
    slept, other = desk.worker("a"), desk.worker("b", "make", "more")
    task = desk.launch()
    if not desk.has(slept):
        slept, other = other, slept
    desk.wait(LEASE_S)
    again = desk.launch(attempt=1)
    desk.done(slept, task, '"late"')
    desk.touch(slept, again)

    assert desk.has(other) == [again]
    assert desk.told[task].returned is None
    assert desk.refused(slept) == {
        task: "it is over: worker a was silent for 30 s"
        if slept.hello.worker == "a"
        else "it is over: worker b was silent for 30 s",
        again: f"worker {other.hello.worker} has it",
    }
    desk.done(slept, again, '"not mine"')
    assert desk.state(again) is ReportState.RUNNING


def test_what_a_worker_may_still_be_doing_takes_up_its_room() -> None:
    desk = Desk()
    worker = desk.worker("w")
    lost = desk.launch("one")
    desk.wait(LEASE_S)
    task = desk.launch("two")
    desk.touch(worker, lost)
    desk.touch(worker, partial=True)
    assert desk.has(worker) == [lost]

    desk.touch(worker)

    assert desk.has(worker) == [lost, task]


def test_what_a_worker_said_before_it_had_read_an_order_gives_no_room_for_another() -> None:
    """It touches nothing, is given something that is stopped, and then the touch arrives."""
    desk = Desk()
    worker = desk.worker("w")
    lost = desk.launch("one")
    desk.stop(lost, 0.0)
    desk.wait(1)
    assert desk.refused(worker)
    task = desk.launch("two")
    desk.touch(worker, read=0)
    desk.touch(worker, lost, read=2)
    desk.touch(worker, read=1)
    assert desk.has(worker) == [lost]

    desk.touch(worker, read=2)

    assert desk.has(worker) == [lost, task]


def test_what_a_worker_comes_back_with_in_vain_takes_up_its_room() -> None:
    """It would be given more than it can do, which waits for what counts for nothing."""
    desk = Desk()
    lost = desk.launch("one")
    desk.leave(desk.worker("w"))
    worker = desk.worker("w", held=(Ref(*lost),))
    task = desk.launch("two")
    desk.touch(worker, lost)
    assert desk.has(worker) == []

    desk.touch(worker)

    assert desk.has(worker) == [task]


def test_what_another_server_refused_takes_up_room_here_too() -> None:
    desk = Desk()
    elsewhere = TaskId("uid-other", 0, 0)
    worker = desk.worker("w", lost=(Ref(*elsewhere),))
    task = desk.launch()
    assert desk.has(worker) == []
    assert desk.refused(worker) == {}

    desk.touch(worker)

    assert desk.has(worker) == [task]


def test_a_server_that_slept_cuts_nobody_off() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.sleep(3600)
    assert desk.state(task) is ReportState.RUNNING

    desk.touch(worker, task)
    desk.wait(LEASE_S - 1)
    assert desk.state(task) is ReportState.RUNNING


def test_a_broken_connection_cuts_off_at_once() -> None:
    desk = Desk()
    worker = desk.worker("w", concurrency=2)
    told, cut = desk.launch("one"), desk.launch("two")
    desk.done(worker, told, "1")
    desk.leave(worker)

    assert desk.told[told].exit_code == 0
    assert desk.told[cut].interrupted
    assert desk.told[cut].message == "worker w was lost: the connection broke"
    assert desk.dispatcher.workers() == []


def test_a_worker_that_comes_again_before_its_old_connection_is_missed_goes_on() -> None:
    desk = Desk()
    old = desk.worker("w", concurrency=2)
    kept, dropped = desk.launch("one"), desk.launch("two")
    new = desk.worker("w", concurrency=2, held=(Ref(*kept),))
    desk.leave(old)

    assert old.closed is not None
    assert desk.state(kept) is ReportState.RUNNING
    assert desk.told[dropped].interrupted
    desk.done(new, kept, "1")
    assert desk.told[kept].exit_code == 0


def test_a_result_that_was_told_is_offered_again_and_recorded() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task, other = desk.launch("one"), TaskId("uid-nobody", 0, 0)
    desk.done(worker, task, "1")
    desk.leave(worker)
    back = desk.worker("w", held=(Ref(*task), Ref(*other)))
    assert desk.recorded(back) == []
    assert list(desk.refused(back)) == [other]
    desk.forget(task)
    assert desk.recorded(back) == [task]
    desk.leave(back)

    last = desk.worker("w", held=(Ref(*task),))
    assert desk.recorded(last) == [task]


# Stopping


def test_a_worker_is_told_to_stop_and_its_answer_counts() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.stop(task, 5.0)
    assert desk.cancelled(worker) == [(task, 5.0)]
    assert desk.told[task].stopped
    desk.done(worker, task, error="cancelled")

    report = desk.told[task]
    assert (report.state, report.stopped, report.interrupted) == (ReportState.ENDED, True, False)


def test_what_does_not_stop_within_its_grace_counts_as_over() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    desk.stop(task, 5.0)
    desk.wait(5)

    assert (desk.told[task].state, desk.told[task].stopped) == (ReportState.ENDED, True)
    desk.done(worker, task, "1")
    assert desk.told[task].returned is None
    assert "within its grace" in desk.refused(worker)[task]


def test_a_second_stop_shortens_the_grace() -> None:
    desk = Desk()
    worker = desk.worker("w")
    task = desk.launch()
    for grace_s in (20.0, 3.0, 10.0):
        desk.stop(task, grace_s)
        assert desk.cancelled(worker)

    assert desk.cancelled(worker) == [(task, 20.0), (task, 3.0)]
    desk.wait(3)
    assert desk.state(task) is ReportState.ENDED


def test_what_waits_is_stopped_without_being_started() -> None:
    desk = Desk()
    task = desk.launch()
    desk.stop(task)
    worker = desk.worker("w")

    assert desk.state(task) is ReportState.NOT_STARTED
    assert desk.has(worker) == []
    assert desk.dispatcher.waiting == 0


# Other servers, and restarts


def test_what_was_at_work_goes_on_with_the_worker_that_has_it() -> None:
    desk = Desk()
    job, (task,) = job_at("job", 0)
    desk.inherit(job)
    assert desk.state(task) is ReportState.RUNNING
    worker = desk.worker("w", held=(Ref(*task),))
    desk.touch(worker, task)
    desk.wait(LEASE_S - 1)
    desk.done(worker, task, '"gear"')

    report = desk.told[task]
    assert (report.exit_code, report.interrupted, report.started_at) == (0, False, T0)
    assert desk.refused(worker) == {}


def test_what_nobody_comes_back_with_is_cut_off_after_a_lease() -> None:
    desk = Desk()
    job, (task,) = job_at("job", 0)
    desk.inherit(job)
    idle = desk.worker("w")
    desk.wait(LEASE_S)

    assert desk.has(idle) == []
    assert desk.told[task].interrupted
    late = desk.worker("late", held=(Ref(*task),))
    assert list(desk.refused(late)) == [task]
    desk.done(late, task, "1")
    assert desk.told[task].returned is None


@pytest.mark.parametrize("is_known", [True, False])
def test_an_order_that_is_repeated_is_not_handed_out(is_known: bool) -> None:
    desk = Desk()
    job, (task,) = job_at("job", 0, state=TaskState.STARTING, started_at=None)
    if is_known:
        desk.inherit(job)
    worker = desk.worker("w")
    desk.launch(again=True)

    assert desk.has(worker) == []
    assert desk.state(task) is ReportState.ACCEPTED
    desk.wait(LEASE_S)
    assert (desk.told[task].interrupted, desk.told[task].started_at) == (True, None)


def test_an_order_that_is_new_is_handed_out_although_its_record_was_seen_first() -> None:
    desk = Desk()
    job, (task,) = job_at("job", 0, state=TaskState.STARTING, started_at=None)
    desk.inherit(job)
    worker = desk.worker("w")
    desk.launch()

    assert desk.has(worker) == [task]


def test_what_was_to_stop_is_stopped_wherever_it_turns_up() -> None:
    desk = Desk()
    job, (task,) = job_at("job", 0)
    desk.inherit(job)
    desk.stop(task, 20.0)
    worker = desk.worker("w", held=(Ref(*task),))

    assert desk.cancelled(worker) == [(task, 20.0)]


def test_of_two_that_say_they_have_it_one_goes_on() -> None:
    desk = Desk()
    job, (task,) = job_at("job", 0)
    desk.inherit(job)
    first = desk.worker("a", held=(Ref(*task),))
    second = desk.worker("b", held=(Ref(*task),))
    desk.done(second, task, "2")
    desk.done(first, task, "1")

    assert desk.refused(second) == {task: "worker a has it"}
    returned = desk.told[task].returned
    assert returned is not None
    assert returned.json == "1"


# What waits, and is known to


def test_what_waits_for_a_while_is_told_to_although_somebody_can_do_it() -> None:
    desk = Desk()
    desk.worker("w")
    desk.launch("busy")
    task = desk.launch("waits")
    assert desk.told[task].reason is None

    desk.wait(WAITS_AFTER_S)

    assert desk.told[task].reason is PendingReason.WORKERS_BUSY


def test_what_was_told_to_wait_is_handed_out_only_once_it_is_recorded_to_have_started() -> None:
    desk = Desk()
    task = desk.launch()
    worker = desk.worker("w")
    assert desk.state(task) is ReportState.RUNNING
    assert desk.has(worker) == []
    other = desk.launch("other")
    assert desk.has(worker) == []

    desk.record(task)
    desk.record(task)

    assert desk.has(worker) == [task]
    desk.done(worker, task)
    desk.record(other)
    assert desk.has(worker) == [task, other]


def test_what_is_promised_takes_no_lease_until_it_is_given() -> None:
    desk = Desk()
    task = desk.launch()
    worker = desk.worker("w")
    desk.wait(10 * LEASE_S)
    desk.record(task)
    assert desk.has(worker) == [task]

    desk.wait(LEASE_S)

    assert desk.told[task].interrupted


@pytest.mark.parametrize("goes", [True, False])
def test_a_promise_ends_with_its_worker_and_with_a_stop(goes: bool) -> None:
    desk = Desk()
    task = desk.launch()
    worker = desk.worker("w")
    if goes:
        desk.leave(worker)
    else:
        desk.stop(task)
    report = desk.told[task]
    assert (report.state, report.interrupted) == (ReportState.ENDED, goes)
    assert (report.stopped, report.exit_code) == (not goes, None)

    desk.record(task)

    assert desk.has(worker) == []


def waiting_at(job: str, **changes: Any) -> tuple[Job, TaskId]:
    """A Job whose status has an attempt that waits for a worker."""
    waits: dict[str, Any] = {"state": TaskState.STARTING, "started_at": None}
    waits |= {"reason": PendingReason.WORKERS_BUSY, "message": "all are busy"}
    made, (task,) = job_at(job, 0, **(waits | changes))
    return made, task


def test_what_waited_at_another_server_is_over_at_once_if_it_still_waits() -> None:
    desk = Desk()
    job, task = waiting_at("job")
    desk.inherit(job)
    worker = desk.worker("w")

    report = desk.told[task]
    assert (report.state, report.interrupted) == (ReportState.ACCEPTED, True)
    assert report.message == "it waited for a worker when its server was restarted"
    assert desk.has(worker) == []
    again = desk.launch(attempt=1)
    assert desk.has(worker) == [again]
    desk.heard(a_job("job"))
    assert desk.state(task) is ReportState.ENDED


def test_what_another_server_gave_away_after_all_is_waited_for() -> None:
    desk = Desk()
    job, task = waiting_at("job")
    desk.inherit(job)
    desk.wait(LEASE_S - 1)
    started, _ = job_at("job", 0)
    desk.heard(started)
    report = desk.told[task]
    assert (report.state, report.interrupted) == (ReportState.RUNNING, False)
    desk.wait(LEASE_S - 1)
    assert desk.state(task) is ReportState.RUNNING

    desk.wait(1)

    assert (desk.state(task), desk.told[task].interrupted) == (ReportState.ENDED, True)


def test_who_has_what_waited_at_another_server_goes_on_with_it() -> None:
    desk = Desk()
    job, task = waiting_at("job")
    desk.inherit(job)
    worker = desk.worker("w", held=(Ref(*task),))
    assert (desk.state(task), desk.told[task].interrupted) == (ReportState.RUNNING, False)

    desk.done(worker, task)

    assert (desk.told[task].exit_code, desk.told[task].interrupted) == (0, False)


# Who is let in


@pytest.mark.parametrize(
    ("hello", "why"),
    [
        ({"protocol": 2}, "protocol 2 is spoken by the worker, 1 by this server"),
        ({"concurrency": 0}, "concurrency: expected 1 to 1000, got 0"),
        ({"app": ""}, "app: expected 1 to 200 characters, got 0"),
        ({"queues": ("q",) * 101}, "queues: expected at most 100, got 101"),
    ],
)
def test_a_worker_that_cannot_be_served_is_told_why(hello: dict[str, Any], why: str) -> None:
    desk = Desk()

    with pytest.raises(RefusedWorkerError, match=why):
        desk.worker("w", **hello)
    assert desk.dispatcher.workers() == []


def test_calls_are_sent_in_messages_that_fit() -> None:
    desk = Desk()
    worker = desk.worker("w", concurrency=10)
    tasks = [desk.launch(f"job-{n}", args={"text": "x" * (MAX_FRAME // 4)}) for n in range(6)]

    assert desk.has(worker) == tasks
    messages = [m for m in desk.all(worker) if isinstance(m, Orders) and m.calls]
    assert len(messages) > 1


def test_that_an_attempt_runs_is_told_when_it_lasts() -> None:
    """What is done sooner is told once, with when it began."""
    desk = Desk(quiet_s=0.02)
    worker = desk.worker("w", concurrency=2)
    quick, slow = desk.launch("quick"), desk.launch("slow")
    assert not desk.told

    desk.wait(0.01)
    desk.done(worker, quick)
    assert desk.told[quick].state is ReportState.ENDED
    assert desk.told[quick].started_at == T0
    assert slow not in desk.told

    desk.wait(0.01)
    assert desk.told[slow].state is ReportState.RUNNING
    assert desk.told[slow].started_at == T0
