"""Operations: what the simulation found, each as the smallest play that shows it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.execution.leftovers import past_reports
from interlock.execution.view import ExecutionView
from interlock.resources.job import Job, JobSpec
from interlock.resources.metadata import Metadata
from interlock.resources.operation import (
    ELABORATION,
    CompletionState,
    OperationStatus,
    StepState,
    StepStatus,
    run_task,
    undo_task,
)
from interlock.resources.steps import BeforeRetry, PythonSpec, StepRetries
from interlock.resources.tasks import ExecutionStatus, ReportState, TaskReport
from interlock.resources.transitions import has_ended
from interlock.resources.values.durations import Duration
from interlock.resources.values.indexes import IndexSet
from support.operation_play import Outcome, Play, Script, a_step, an_operation

FAILS = ("fail",) * 9


def retries(limit: int, delay: float = 0) -> StepRetries:
    return StepRetries(limit=limit, delay=Duration(seconds=delay))


def kill(play: Play) -> None:
    play.change(spec=replace(play.job.spec, kill_at=play.now))


def test_a_step_whose_retry_has_begun_and_has_no_place_yet_is_undone_too() -> None:
    """Both wait for the same moment; then the one has used up its retries before the other runs."""
    steps = [a_step(name, needs=(), retries=retries(2, 10)) for name in "ab"]
    play = Play(an_operation(*steps), {"a": FAILS, "b": ("fail", "fail")}).run()

    assert play.names == ["a", "a", "b", "b", "a", "-a", "-b"]


def test_what_was_undone_in_part_is_undone_again_when_it_does_not_go_forward() -> None:
    play = Play(an_operation(a_step("a"), a_step("b")), {"b": FAILS, "-a": ("fail",)}).run()
    play.order("retry")
    kill(play)
    play.run()

    assert play.names == ["a", "b", "-b", "-a", "-a"]
    assert has_ended(play.job)


@pytest.mark.parametrize(
    ("before", "roll_back"),
    [
        pytest.param(BeforeRetry.AS_IS, (), id="as is"),
        pytest.param(BeforeRetry.ROLL_BACK_FIRST, (), id="after its own undo"),
        pytest.param(BeforeRetry.ROLL_BACK, ("a",), id="after the undo of another"),
    ],
)
def test_a_step_that_is_cut_off_again_and_again_comes_to_an_end(
    before: BeforeRetry, roll_back: tuple[str, ...]
) -> None:
    b = a_step("b", before_retry=before, roll_back=roll_back)
    play = Play(an_operation(a_step("a"), b, max_interruptions=2), {"b": ("cut",) * 90}).run()

    assert play.names.count("b") == 3
    assert has_ended(play.job)


def test_what_was_done_and_has_no_undo_is_not_done_again_by_going_forward() -> None:
    steps = (a_step("a", undo=None), a_step("b"))
    play = Play(an_operation(*steps), {"b": ("fail",), "-b": ("fail",)}).run()
    play.order("retry")
    play.run()

    assert play.names == ["a", "b", "-b", "b"]
    assert play.operation.percentage == 100.0


def test_what_needs_a_step_that_is_done_again_is_done_again_too() -> None:
    """It has no undo of its own, and what it was built upon was taken away."""
    steps = (a_step("z"), a_step("a"), a_step("b", undo=None), a_step("c"))
    play = Play(an_operation(*steps), {"c": ("fail",), "-z": ("fail",)}).run()
    play.order("retry")
    play.run()

    assert play.names == ["z", "a", "b", "c", "-c", "-a", "-z", "z", "a", "b", "c"]


@pytest.mark.parametrize("undo", [True, False])
def test_what_is_undone_for_a_retry_is_not_undone_again_when_all_is(undo: bool) -> None:
    """The retry waits, because what it demanded could not be undone; then the Job is killed."""
    b = a_step("b", before_retry=BeforeRetry.ROLL_BACK, roll_back=("a",), retries=retries(3, 10))
    if not undo:
        b = replace(b, undo=None)
    play = Play(an_operation(a_step("a"), b), {"b": FAILS, "-a": ("fail",)})
    play.run(until=lambda: "-a" in play.names and play.operation.next_attempt_at is not None)
    kill(play)
    play.run()

    assert play.names == ["a", "b", *(["-b"] if undo else []), "-a", "-a"]
    assert has_ended(play.job)


def test_nothing_is_run_again_before_all_is_undone_that_the_retry_demands() -> None:
    """What has no undo of its own need not be waited for, but what was built upon it must be."""
    b = a_step("b", before_retry=BeforeRetry.ROLL_BACK, roll_back=("a",), retries=retries(1))
    script: Script = {"b": ("fail",), "-b": (Outcome("ok", 5),)}
    play = Play(an_operation(a_step("a", undo=None), b, steps_at_once=2), script).run()

    assert play.names == ["a", "b", "-b", "a", "b"]
    assert play.times_of("a") == [0, 5]


def test_what_could_not_be_undone_for_a_retry_is_not_taken_as_done_by_going_forward() -> None:
    """Its undo was tried, so nobody knows what is left of it."""
    c = a_step("c", before_retry=BeforeRetry.ROLL_BACK, roll_back=("b",), retries=retries(1))
    script = {"c": ("fail",), "-b": ("fail",), "-z": ("fail",)}
    play = Play(
        an_operation(a_step("z", needs=()), a_step("b", needs=()), replace(c, needs=("b",))), script
    )
    play.run()
    play.order("retry")
    play.run()

    assert play.names.count("b") == 2


def test_a_retry_waits_for_its_undo_also_when_another_ended_with_it() -> None:
    """What could not be undone is heard of together with what could: the retry is not forgotten."""
    b = a_step("b", needs=("a",))
    c = a_step(
        "c",
        needs=("a",),
        before_retry=BeforeRetry.ROLL_BACK,
        roll_back=("a",),
        retries=retries(3, 10),
    )
    script: Script = {"c": (Outcome("fail", 5),), "-b": ("fail",)}
    play = Play(an_operation(a_step("a"), b, c, steps_at_once=2), script).run()

    assert play.names == ["a", "b", "c", "-b", "-c", "-b", "-a", "a", "b", "c"]
    assert play.times_of("-b") == [5, 15]
    assert has_ended(play.job)


def test_two_steps_that_take_each_other_back_come_to_an_end() -> None:
    """Each runs the other anew, and that must not give the other its retries back."""
    above = (
        a_step(
            name,
            needs=("s",),
            before_retry=BeforeRetry.ROLL_BACK,
            roll_back=("s",),
            retries=retries(3, 10),
        )
        for name in "ab"
    )
    play = Play(an_operation(a_step("s"), *above), {"a": FAILS * 9, "b": FAILS * 9}).run()

    assert has_ended(play.job)
    assert play.names[-1] == "-s"


@pytest.mark.parametrize(
    ("task", "attempt", "is_past"),
    [
        pytest.param(run_task(0), 0, True, id="a step that is done"),
        pytest.param(run_task(1), 0, True, id="an attempt before the one that is on record"),
        pytest.param(undo_task(0), 0, False, id="an undo that is not on record yet"),
        pytest.param(run_task(1), 2, False, id="an attempt that is not on record yet"),
    ],
)
def test_what_is_not_on_record_yet_is_left_alone(task: int, attempt: int, is_past: bool) -> None:
    """Somebody else has begun it: numbers of steps that are done are not numbers of tasks."""
    report = TaskReport(
        job_uid="u",
        index=task,
        attempt=attempt,
        namespace="default",
        job="op",
        state=ReportState.RUNNING,
    )
    steps = (
        StepStatus(name="a", state=StepState.DONE, runs=1),
        StepStatus(name="b", state=StepState.DONE, runs=2),
    )
    execution = ExecutionStatus(
        operation=OperationStatus(steps=steps, percentage=100.0), succeeded=IndexSet((0, 1))
    )
    view = ExecutionView(job=None, reports={(task, attempt): report})

    assert past_reports(view, execution) == ([report] if is_past else [])


@pytest.mark.parametrize(
    ("task", "is_past"),
    [
        pytest.param(run_task(0), False, id="a step that is not known here yet"),
        pytest.param(ELABORATION, True, id="an attempt to make the steps"),
    ],
)
def test_a_step_that_is_not_known_to_be_made_yet_is_left_alone(task: int, is_past: bool) -> None:
    """Somebody else has begun it: how often it was tried to make the steps says nothing of it."""
    report = TaskReport(
        job_uid="u",
        index=task,
        attempt=0,
        namespace="default",
        job="op",
        state=ReportState.RUNNING,
    )
    steps = (StepStatus(name="elaborate", state=StepState.RUNNING, runs=2),)
    execution = ExecutionStatus(operation=OperationStatus(steps=steps))
    job = Job(metadata=Metadata(name="op"), spec=JobSpec(python=PythonSpec(function="make")))
    view = ExecutionView(job=job, reports={(task, 0): report})

    assert past_reports(view, execution) == ([report] if is_past else [])


def test_what_is_just_being_undone_is_waited_for_by_a_retry_that_takes_back_what_it_needs() -> None:
    """Otherwise that would be run again beside the undo."""
    below = a_step("a", undo=None)
    taking = a_step(
        "b",
        undo=None,
        needs=("a",),
        retries=retries(2),
        before_retry=BeforeRetry.ROLL_BACK,
        roll_back=("a",),
    )
    beside = a_step("c", needs=("a",), retries=retries(2), before_retry=BeforeRetry.ROLL_BACK_FIRST)
    fails = {"b": (Outcome("fail", 2),), "c": (Outcome("fail", 1),), "-c": (Outcome("ok", 5),)}
    play = Play(an_operation(below, taking, beside, steps_at_once=3), fails).run()

    assert play.attempts[3:6] == [("-c", 1.0), ("a", 6.0), ("b", 6.0)]
    assert play.operation.completion_state is CompletionState.SUCCESS
