"""The books of a worker: no result is lost, none is told twice as if it counted."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.resources.work import PythonCall
from interlock.runtimes.workers.protocol import (
    Call,
    Cancel,
    Done,
    Drain,
    FromWorker,
    Hello,
    Orders,
    Outcome,
    Ref,
    Touch,
    Touched,
    Welcome,
    Wrote,
    encode,
    read_from_worker,
)
from interlock.sdk.calling import Answer
from interlock.sdk.worker.desk import Attempt, Desk, WorkerIdentity

WELCOME = Welcome(lease_s=30, touch_every_s=10)


def a_call(job: str = "shop", step: str = "dns", attempt: int = 0, **more: Any) -> Call:
    given: dict[str, Any] = {
        "ref": Ref(f"uid-{job}", 2, attempt),
        "namespace": "default",
        "job": job,
        "function": step,
        "call": PythonCall.RUN,
        "step": step,
    }
    return Call(**(given | more))


class Worker:
    """A desk with nobody behind it: what is started is kept, what it says too."""

    def __init__(self, max_jobs: int = 0) -> None:
        self.started: list[Attempt] = []
        self.said: list[str] = []
        self.refused: list[Attempt] = []
        identity = WorkerIdentity(
            name="host/1", incarnation="i", app="broker:app", functions=("dns",), concurrency=4
        )
        self.desk = Desk(
            identity,
            start=self.started.append,
            say=self.said.append,
            refused=self.refused.append,
            max_jobs=max_jobs,
        )
        self.desk.connected(WELCOME)

    def order(self, *calls: Call, **more: Any) -> None:
        self.desk.read(Orders(calls=calls, **more))

    def end(self, attempt: Attempt, returned: str = "1", error: str = "") -> None:
        self.desk.finished(attempt, None if error else Answer(returned), error)

    def take(self, *, touch: bool = False) -> list[FromWorker]:
        told = self.desk.take(touch=touch)
        assert [read_from_worker(encode(message)) for message in told] == told
        return told


def test_results_of_many_attempts_are_one_message() -> None:
    worker = Worker()
    calls = [a_call(f"shop-{n}") for n in range(3)]
    worker.order(*calls)
    for attempt in worker.started[:2]:
        worker.end(attempt)
    worker.end(worker.started[2], error="ValueError: no")

    assert worker.take() == [
        Done(
            items=(
                Outcome(ref=calls[0].ref, returned="1"),
                Outcome(ref=calls[1].ref, returned="1"),
                Outcome(ref=calls[2].ref, error="ValueError: no"),
            )
        )
    ]
    assert worker.take() == []


def test_a_result_is_kept_until_it_is_recorded() -> None:
    worker, call = Worker(), a_call()
    worker.order(call)
    worker.end(worker.started[0])
    done = [Done(items=(Outcome(ref=call.ref, returned="1"),))]
    assert worker.take() == done
    # The connection breaks, and nobody knows whether it arrived.
    assert worker.desk.hello().held == (call.ref,)
    worker.desk.connected(WELCOME)
    assert worker.take() == done
    worker.order(recorded=(call.ref,))
    assert worker.desk.hello().held == ()
    worker.desk.connected(WELCOME)
    assert worker.take() == []
    assert worker.said == []


def test_what_is_at_work_goes_on_after_a_broken_connection() -> None:
    worker, call = Worker(), a_call()
    worker.order(call)
    assert worker.desk.hello() == Hello(
        protocol=1,
        worker="host/1",
        incarnation="i",
        app="broker:app",
        functions=("dns",),
        concurrency=4,
        held=(call.ref,),
    )
    worker.desk.connected(WELCOME)
    worker.order(call)
    assert len(worker.started) == 1


def test_a_result_that_does_not_count_is_told_and_dropped() -> None:
    worker, call = Worker(), a_call()
    worker.order(call)
    worker.end(worker.started[0])
    worker.take()
    worker.order(refused=((call.ref, "worker host/2 has it"),))
    assert worker.said == ["result of step dns of job shop does not count: worker host/2 has it"]
    worker.desk.connected(WELCOME)
    assert worker.desk.hello().held == ()
    assert worker.take() == []


def test_an_attempt_that_does_not_count_is_told_to_stop_and_hands_nothing_in() -> None:
    worker, call = Worker(), a_call()
    worker.order(call)
    (attempt,) = worker.started
    worker.order(refused=((call.ref, "it was silent"),))
    worker.order(refused=((call.ref, "it was silent"),))
    assert len(worker.said) == 1
    assert attempt.context.cancelled.is_set()
    # It takes up room as long as it runs, and every server knows that.
    assert worker.take(touch=True) == [Touch(items=(Touched(ref=call.ref),), read=3)]
    hello = worker.desk.hello()
    assert (hello.held, hello.lost) == ((), (call.ref,))
    worker.desk.connected(WELCOME)
    # Of this connection it has read none yet.
    assert worker.take(touch=True) == [Touch(items=(Touched(ref=call.ref),), read=0)]
    worker.end(attempt)
    assert worker.take() == []
    assert not worker.desk.left


def test_a_call_that_is_done_and_told_again_is_not_done_again() -> None:
    worker, call = Worker(), a_call()
    worker.order(call)
    worker.end(worker.started[0])
    worker.take()
    worker.order(call)
    assert len(worker.started) == 1
    assert [type(message) for message in worker.take()] == [Done]


def test_what_is_written_comes_before_the_end_and_progress_at_once() -> None:
    worker, call = Worker(), a_call()
    worker.order(call)
    (attempt,) = worker.started
    attempt.context.log("one")
    attempt.context.report(40, "halfway")
    assert worker.take() == [
        Wrote(ref=call.ref, text="one\n"),
        Touch(items=(Touched(ref=call.ref, percent=40.0, text="halfway"),), partial=True),
    ]
    assert worker.take() == []
    attempt.context.log("two")
    worker.end(attempt)
    assert [type(message) for message in worker.take(touch=True)] == [Wrote, Done, Touch]


def test_lines_that_come_too_fast_are_left_out_and_that_is_told() -> None:
    worker = Worker()
    worker.order(a_call())
    (attempt,) = worker.started
    for _ in range(20):
        attempt.context.log("x" * 100_000)
    (wrote,) = worker.take()
    assert isinstance(wrote, Wrote)
    assert wrote.text.count("x" * 100_000) == 2
    assert "lines were left out here" in wrote.text


@pytest.mark.parametrize("how", ["told", "jobs"])
def test_a_drain_is_told_once_and_over_when_all_is_recorded(how: str) -> None:
    worker = Worker(max_jobs=2 if how == "jobs" else 0)
    first, second = a_call("one"), a_call("two")
    worker.order(first)
    worker.order(a_call("one", "next", attempt=0, ref=Ref("uid-one", 4, 0)))
    assert not worker.desk.is_draining
    worker.order(second)
    if how == "told":
        worker.desk.drain()
    assert worker.take() == [Drain()]
    assert worker.take() == []
    for attempt in worker.started:
        worker.end(attempt)
    refs = [attempt.call.ref for attempt in worker.started]
    assert not worker.desk.is_over
    worker.order(recorded=tuple(refs))
    assert worker.desk.is_over


def test_a_drain_is_told_again_on_another_connection() -> None:
    worker = Worker()
    worker.order(a_call())
    worker.desk.drain()
    worker.take()
    worker.desk.connected(WELCOME)
    assert worker.take() == [Drain()]


def test_an_attempt_is_cancelled() -> None:
    worker = Worker()
    stopped: list[str] = []
    worker.order(a_call("one"), a_call("two"))
    for attempt in worker.started:
        name = attempt.call.job
        attempt.on_cancel = lambda name=name: stopped.append(name)  # type: ignore[misc]
    worker.desk.read(Cancel(items=(a_call("one").ref, a_call("gone").ref), grace_s=5))
    assert stopped == ["one"]
    worker.desk.cancel_all()
    assert stopped == ["one", "one", "two"]


def test_long_results_are_several_messages() -> None:
    worker = Worker()
    calls = [a_call(f"shop-{n}") for n in range(3)]
    worker.order(*calls)
    for attempt in worker.started:
        worker.end(attempt, error="x" * 300_000)
    assert [len(one.items) for one in worker.take() if isinstance(one, Done)] == [1, 1, 1]


def test_attempts_are_counted_from_one() -> None:
    worker = Worker()
    worker.order(a_call(attempt=2, fences={"target/a": 9}, target="a", creator="ana"))
    ctx = worker.started[0].context
    assert (ctx.attempt, ctx.fence, ctx.creator, ctx.step) == (3, 9, "ana", "dns")


def test_what_goes_on_although_it_does_not_count_is_given_up() -> None:
    """It ends with its process, which waits for all else."""
    worker = Worker()
    worker.order(a_call("stuck"), a_call("other"))
    stuck, other = worker.started
    worker.order(refused=((stuck.call.ref, "it is over"),))
    assert worker.refused == [stuck]

    assert worker.desk.give_up(stuck)

    assert any(isinstance(message, Drain) for message in worker.take())
    assert "step dns of job stuck goes on although it counts for nothing" in worker.said[-1]
    was_over = [worker.desk.is_over]
    worker.end(other)
    worker.take()
    was_over.append(worker.desk.is_over)
    worker.order(recorded=(other.call.ref,))
    assert [*was_over, worker.desk.is_over] == [False, False, True]
    assert list(worker.desk.at_work) == [stuck.call.ref]


def test_what_has_ended_in_time_is_not_given_up() -> None:
    worker = Worker()
    worker.order(a_call())
    (attempt,) = worker.started
    worker.order(refused=((attempt.call.ref, "it is over"),))
    worker.end(attempt)

    assert not worker.desk.give_up(attempt)
    assert not worker.desk.is_draining
