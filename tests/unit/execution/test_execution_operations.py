"""Operations: the sheet's traces and arithmetic, step by step, on the pure decision."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from interlock.execution.children import Children
from interlock.execution.operations import begun, move, take_in
from interlock.resources.job import JobPhase, JobSpec, task_words
from interlock.resources.operation import (
    CompletionState,
    OperationState,
    StepState,
    run_task,
    undo_task,
)
from interlock.resources.steps import (
    BeforeRetry,
    ChildRequest,
    Elaboration,
    PythonSpec,
    Step,
    StepRetries,
    StepWork,
    Target,
    UndoRetries,
)
from interlock.resources.tasks import EndedTask, ExecutionReason, Returned, TaskResult
from interlock.resources.values.durations import Duration
from support.operation_play import T0, Outcome, Play, Script, a_step, an_operation, by_workers


def retries(limit: int, delay: float = 0) -> StepRetries:
    return StepRetries(limit=limit, delay=Duration(seconds=delay))


def undo_retries(limit: int, delay: float | None = None) -> UndoRetries:
    given = None if delay is None else Duration(seconds=delay)
    return UndoRetries(limit=limit, delay=given)


def fails(times: int) -> tuple[str, ...]:
    return ("fail",) * times


FUNCTION = StepWork(python=PythonSpec(function="f"))
#: Four retries that fail are more than any limit below.
EVER = fails(9)
ONE = an_operation(a_step("a", retries=retries(3, 10), undo_retries=undo_retries(3)))


TRACES = [
    pytest.param(ONE, {}, "q00 e00 c(success)", id="T1 success"),
    pytest.param(
        ONE,
        {"a": fails(3)},
        "q00 e00 e10 q10 e20 q20 e30 c(success)",
        id="T2 success on the third retry",
    ),
    pytest.param(
        ONE,
        {"a": EVER, "-a": fails(2)},
        "q00 e00 e10 q10 e20 q20 e30 r30 q30 r31 q31 r32 c(failed)",
        id="T3 undone on the second retry",
    ),
    pytest.param(
        ONE,
        {"a": EVER, "-a": EVER},
        "q00 e00 e10 q10 e20 q20 e30 r30 q30 r31 q31 r32 q32 r33",
        id="T4 stuck",
    ),
    pytest.param(ONE, {"a": fails(1)}, "q00 e00 e10 c(success)", id="T5 at once"),
    pytest.param(
        an_operation(a_step("a", retries=retries(1))),
        {"a": EVER},
        "q00 e00 e10 r10 c(failed)",
        id="T6 one retry",
    ),
    pytest.param(an_operation(a_step("a")), {"a": EVER}, "q00 e00 r00 c(failed)", id="T7 no retry"),
    pytest.param(
        an_operation(a_step("a"), a_step("b", retries=retries(3, 10)), a_step("c")),
        {"b": fails(2)},
        "q00 e00 e10 q10 e20 e00 c(success)",
        id="T8 a step in the middle",
    ),
    pytest.param(
        an_operation(
            a_step("a", undo_retries=undo_retries(1)),
            a_step("b", retries=retries(1), undo_retries=undo_retries(1)),
        ),
        {"b": EVER, "-a": fails(1), "-b": fails(1)},
        "q00 e00 e10 r10 q10 r11 r10 q10 r11 c(failed)",
        id="T9 each undo fails once",
    ),
    pytest.param(ONE, {"a": ("cut",)}, "q00 e00 q00 e00 c(success)", id="T10 worker killed"),
    pytest.param(
        an_operation(a_step("a", undo=None, retries=retries(1))),
        {"a": EVER},
        "q00 e00 e10 c(failed)",
        id="T11 nothing to undo",
    ),
]


@pytest.mark.parametrize(("spec", "script", "trace"), TRACES)
def test_traces(spec: JobSpec, script: Script, trace: str) -> None:
    assert " ".join(Play(spec, script).run().states) == trace


@pytest.mark.parametrize("tells_starts", [True, False], ids=["seen to run", "over at once"])
@pytest.mark.parametrize(("spec", "script", "trace"), TRACES)
def test_traces_of_functions(spec: JobSpec, script: Script, trace: str, tells_starts: bool) -> None:
    """They are the same although nobody knows beforehand when a worker takes a step."""
    play = Play(by_workers(spec), script)
    play.tells_starts = tells_starts

    assert " ".join(play.run().states) == trace


@pytest.mark.parametrize(
    ("delay", "limit", "lasts", "attempts", "undo_at"),
    [
        pytest.param(10, 3, 0, [0, 0, 10, 30], 30, id="waits 10+20"),
        pytest.param(5, 4, 0, [0, 0, 5, 15, 30], 30, id="waits 5+10+15"),
        pytest.param(60, 1, 0, [0, 0], 0, id="never queued for a retry"),
        pytest.param(60, 0, 0, [0], 0, id="the limit beats the retry at once"),
        pytest.param(10, 2, 4, [0, 4, 18], 22, id="the delay runs from the recorded failure"),
    ],
)
def test_when_a_step_is_tried_again(
    delay: float, limit: int, lasts: float, attempts: list[float], undo_at: float
) -> None:
    spec = an_operation(a_step("a", retries=retries(limit, delay)))
    play = Play(spec, {"a": (Outcome("fail", lasts),) * 9}).run()

    assert play.times_of("a") == attempts
    assert play.times_of("-a") == [undo_at]


@pytest.mark.parametrize(
    ("failures", "undone_at"),
    [
        pytest.param(9, [30, 30, 40, 60], id="never works: stuck at 60"),
        pytest.param(2, [30, 30, 40], id="works on the second retry"),
    ],
)
def test_when_a_step_is_undone_again(failures: int, undone_at: list[float]) -> None:
    play = Play(ONE, {"a": EVER, "-a": fails(failures)}).run()

    assert play.times_of("-a") == undone_at
    assert (play.operation.stuck_at is not None) is (failures > 3)


CHAIN = (a_step("a"), a_step("b"), a_step("f", needs=("a",)))


@pytest.mark.parametrize(
    ("before", "named", "order"),
    [
        pytest.param(BeforeRetry.AS_IS, (), "a b f c c", id="as is"),
        pytest.param(BeforeRetry.ROLL_BACK_FIRST, (), "a b f c -c c", id="itself first"),
        pytest.param(
            BeforeRetry.ROLL_BACK, ("b",), "a b f c -c -b b c", id="b, and c that needs it"
        ),
        pytest.param(
            BeforeRetry.ROLL_BACK, ("a",), "a b f c -f -c -b -a a b f c", id="a, and all above it"
        ),
    ],
)
def test_what_is_undone_before_a_retry(
    before: BeforeRetry, named: tuple[str, ...], order: str
) -> None:
    """Chain a-b-c, and f that needs a alone."""
    last = a_step("c", needs=("b",), retries=retries(1), before_retry=before, roll_back=named)
    play = Play(an_operation(*CHAIN, last), {"c": fails(1)}).run()

    assert " ".join(play.names) == order
    assert play.operation.completion_state is CompletionState.SUCCESS
    assert not any(state.startswith("r") for state in play.states)


def test_an_undo_before_a_retry_that_fails_is_a_failed_retry() -> None:
    step = a_step("a", retries=retries(2, 10), before_retry=BeforeRetry.ROLL_BACK_FIRST)
    play = Play(an_operation(step), {"a": fails(1), "-a": fails(1)}).run()

    assert play.names == ["a", "-a", "-a", "a"]
    assert play.times_of("-a") == [0, 10]
    assert " ".join(play.states) == "q00 e00 e10 q10 e20 c(success)"


def test_out_of_retries_by_undoing_the_operation_is_rolled_back() -> None:
    step = a_step(
        "a",
        retries=retries(1),
        undo_retries=undo_retries(1),
        before_retry=BeforeRetry.ROLL_BACK_FIRST,
    )
    play = Play(an_operation(step), {"a": EVER, "-a": fails(1)}).run()

    assert " ".join(play.states) == "q00 e00 e10 r10 c(failed)"


class TestIrreversible:
    SPEC = an_operation(a_step("a"), a_step("b", irreversible=True, undo=None), a_step("c"))

    def test_from_its_start_on_nothing_is_rolled_back(self) -> None:
        play = Play(self.SPEC, {"c": EVER}).run()

        assert play.operation.stuck_at is not None
        assert play.operation.state is OperationState.EXECUTING
        assert play.job.status.phase is JobPhase.STUCK
        assert play.names == ["a", "b", "c"]

    def test_before_it_all_is(self) -> None:
        play = Play(self.SPEC, {"a": EVER}).run()

        assert play.names == ["a", "-a"]
        assert play.operation.completion_state is CompletionState.FAILED

    def test_a_stop_comes_too_late(self) -> None:
        play = Play(self.SPEC, {"b": (Outcome("ok", 5),)})
        play.run(until=lambda: "b" in play.names)
        play.change(spec=replace(play.job.spec, kill_at=play.now))
        play.run()

        assert play.operation.completion_state is CompletionState.SUCCESS


def test_an_undo_that_another_covers_is_left_out() -> None:
    spec = an_operation(a_step("gear"), a_step("content", undo_covered_by="gear"), a_step("dns"))
    play = Play(spec, {"dns": EVER}).run()

    assert play.names == ["gear", "content", "dns", "-dns", "-gear"]


DIAMOND = (
    a_step("a"),
    a_step("b", needs=("a",), retries=retries(2, 10)),
    a_step("c", needs=("a",), retries=retries(2, 30)),
    a_step("d", needs=("b", "c")),
)


class TestGraph:
    def test_steps_that_need_not_each_other_run_side_by_side(self) -> None:
        play = Play(an_operation(*DIAMOND, steps_at_once=2), {"d": EVER}).run()

        assert play.most_at_once == 2
        assert play.names[:4] == ["a", "b", "c", "d"]
        assert play.names[4] == "-d"
        assert set(play.names[5:7]) == {"-b", "-c"}
        assert play.names[7:] == ["-a"]

    def test_one_at_a_time_unless_more_are_allowed(self) -> None:
        assert Play(an_operation(*DIAMOND), {}).run().most_at_once == 1

    def test_the_operation_waits_for_the_longest_of_their_delays(self) -> None:
        script: Script = {"b": fails(2), "c": fails(2)}
        play = Play(an_operation(*DIAMOND, steps_at_once=2), script).run()

        assert play.times_of("b") == [0, 0, 30]
        assert play.times_of("c") == [0, 0, 30]

    def test_a_step_under_way_ends_before_the_rollback(self) -> None:
        script: Script = {"b": EVER, "c": (Outcome("ok", 100),)}
        play = Play(an_operation(*DIAMOND, steps_at_once=2), script).run()

        assert play.times_of("-b") == [100]
        assert play.times_of("-c") == [100]


class TestInterruptions:
    def test_they_use_up_no_retry_but_have_a_limit_of_their_own(self) -> None:
        spec = an_operation(a_step("a"), max_interruptions=2)
        play = Play(spec, {"a": ("cut",) * 9}).run()

        assert play.names == ["a", "a", "a", "-a"]
        assert play.operation.completion_state is CompletionState.FAILED

    def test_a_rollback_goes_on_where_it_was(self) -> None:
        spec = an_operation(a_step("a"), a_step("b"))
        play = Play(spec, {"b": EVER, "-a": ("cut",)}).run()

        assert play.names == ["a", "b", "-b", "-a", "-a"]
        assert play.operation.rollback_retry_count == 0


class TestEndedEarly:
    SPEC = an_operation(a_step("a"), a_step("b"), a_step("c"))
    SCRIPT: Script = {"b": (Outcome("ok", 60),)}

    def test_a_stop_lets_the_step_end_and_undoes_all(self) -> None:
        play = Play(self.SPEC, self.SCRIPT)
        play.run(until=lambda: "b" in play.names)
        play.change(spec=replace(play.job.spec, kill_at=play.now))
        play.run()

        assert play.names == ["a", "b", "-b", "-a"]
        assert play.times_of("-b") == [60]
        assert play.job.status.phase is JobPhase.KILLED
        assert play.operation.completion_state is CompletionState.FAILED

    def test_a_stop_does_not_wait_for_a_worker_that_may_never_come(self) -> None:
        called = StepWork(python=PythonSpec(function="nobody_has_it"))
        spec = an_operation(a_step("a"), a_step("b", run=called))
        play = Play(spec, {"b": (Outcome("wait", 60),)})
        play.run(until=lambda: "b" in play.names)
        play.change(spec=replace(play.job.spec, kill_at=play.now))
        play.run()

        assert play.times_of("-b") == [0]
        assert play.job.status.phase is JobPhase.KILLED

    def test_a_kill_does_not_wait_for_it(self) -> None:
        play = Play(self.SPEC, self.SCRIPT)
        play.run(until=lambda: "b" in play.names)
        play.change(spec=replace(play.job.spec, kill_at=play.now, grace_period=Duration()))
        play.run()

        assert play.times_of("-b") == [0]

    def test_a_timeout_does_not_either(self) -> None:
        play = Play(replace(self.SPEC, timeout=Duration(seconds=20)), self.SCRIPT).run()

        assert play.times_of("-b") == [20]
        assert play.job.status.execution.reason is ExecutionReason.TIMEOUT

    def test_a_step_out_of_time_has_failed(self) -> None:
        step = a_step("b", timeout=Duration(seconds=5), retries=retries(1))
        script: Script = {"b": (Outcome("ok", 60), Outcome("ok", 1))}
        play = Play(an_operation(a_step("a"), step), script).run()

        assert play.times_of("b") == [0, 5]
        assert play.operation.completion_state is CompletionState.SUCCESS

    def test_one_that_is_suspended_begins_no_further_step(self) -> None:
        play = Play(self.SPEC, self.SCRIPT)
        play.run(until=lambda: "b" in play.names)
        play.change(spec=replace(play.job.spec, suspend=True))
        play.run()
        assert play.names == ["a", "b"]

        play.change(spec=replace(play.job.spec, suspend=False))
        play.run()
        assert play.operation.completion_state is CompletionState.SUCCESS


class TestOrders:
    STUCK = an_operation(a_step("a"), a_step("b"), a_step("c", undo_retries=undo_retries(1)))

    def stuck(self) -> Play:
        play = Play(self.STUCK, {"c": fails(1), "-b": fails(1)}).run()
        assert play.job.status.phase is JobPhase.STUCK
        assert play.names == ["a", "b", "c", "-c", "-b"]
        return play

    def test_nobody_else_acts(self) -> None:
        play = self.stuck()
        assert play.look() is None
        assert play.names == ["a", "b", "c", "-c", "-b"]

    def test_retry_goes_forward_from_there(self) -> None:
        play = self.stuck()
        play.order("retry")
        play.run()

        assert play.names[5:] == ["b", "c"]
        assert play.operation.completion_state is CompletionState.SUCCESS

    def test_roll_back_tries_the_undo_again(self) -> None:
        play = self.stuck()
        play.order("roll-back")
        play.run()

        assert play.names[5:] == ["-b", "-a"]
        assert play.operation.completion_state is CompletionState.FAILED

    def test_what_is_rolled_back_though_it_is_not_stuck_says_who_wanted_it(self) -> None:
        play = Play(self.STUCK, {"c": (Outcome("ok", 60),)})
        play.run(until=lambda: "c" in play.names)
        play.order("roll-back")
        play.run()

        assert play.names[3:] == ["-c", "-b", "-a"]
        assert play.operation.error == play.job.status.execution.message == "rolled back because"

    @pytest.mark.parametrize(
        ("verb", "phase"),
        [("succeeded", JobPhase.SUCCEEDED), ("failed", JobPhase.FAILED)],
    )
    def test_resolve_ends_it(self, verb: str, phase: JobPhase) -> None:
        play = self.stuck()
        play.order(verb)
        play.run()

        assert play.names[5:] == []
        assert play.job.status.phase is phase
        assert play.job.status.execution.reason is ExecutionReason.RESOLVED

    def test_remove_lets_it_go_once_it_is_deleted(self) -> None:
        play = self.stuck()
        play.order("remove")
        play.run()
        assert play.operation.stuck_at is not None

        metadata = replace(play.job.metadata, deletion_timestamp=play.now)
        play.change(metadata=metadata)
        play.run()
        assert play.job.status.phase is JobPhase.KILLED

    def test_an_order_is_carried_out_once(self) -> None:
        play = Play(self.STUCK, {"c": EVER, "-b": EVER}).run()
        play.order("retry")
        play.run()

        assert play.job.status.phase is JobPhase.STUCK
        assert play.operation.interventions == 1


class TestChildren:
    SPEC = an_operation(a_step("a"))

    def test_it_is_over_when_all_of_them_are(self) -> None:
        play = Play(self.SPEC, {}, Children(unfinished=1)).run()
        assert play.operation.state is not OperationState.COMPLETE

        play.children = Children(succeeded=1)
        play.run()
        assert play.operation.completion_state is CompletionState.SUCCESS

    @pytest.mark.parametrize(
        ("children", "completion"),
        [
            (Children(), CompletionState.SUCCESS),
            (Children(succeeded=2), CompletionState.SUCCESS),
            (Children(failed=2), CompletionState.FAILED),
            (Children(succeeded=1, failed=1), CompletionState.PARTIAL_SUCCESS),
        ],
    )
    def test_what_they_come_to_is_what_it_comes_to(
        self, children: Children, completion: CompletionState
    ) -> None:
        play = Play(self.SPEC, {}, children).run()
        assert play.operation.completion_state is completion


@pytest.mark.parametrize(
    ("step", "starts"),
    [
        pytest.param(a_step("a"), False, id="a process"),
        pytest.param(a_step("a", run=FUNCTION, undo=FUNCTION), True, id="functions"),
        pytest.param(a_step("a", run=FUNCTION), False, id="a function undone by a process"),
    ],
)
def test_what_workers_do_takes_no_room_on_this_machine(step: Step, starts: bool) -> None:
    job = Play(an_operation(step), {}).job
    found = move(job, begun(job), frozenset(), 0, T0)

    assert bool(found.attempts) is starts
    assert found.starved is not starts


class TestPartsOfARequest:
    """Parts that a worker names: made once all steps are done, and waited for."""

    @staticmethod
    def play(*steps: Step, script: Script = {}) -> Play:  # noqa: B006 (it is not changed)
        play = Play(JobSpec(python=PythonSpec(function="rename"), owner="ana"), script)
        parts = tuple(
            ChildRequest(python=PythonSpec(function="move"), target=Target(path=f"apps/{n}"))
            for n in range(2)
        )
        play.elaboration = Elaboration(steps=steps, children=parts)
        return play

    def test_they_are_made_after_all_steps_with_what_their_parent_says(self) -> None:
        play = self.play(a_step("a"))
        play.run(lambda: bool(play.made))

        assert play.names == ["elaborate", "a"]
        assert [job.metadata.name for job in play.made] == ["op-u-0", "op-u-1"]
        spec = play.made[0].spec
        assert (spec.parent, spec.owner) == ("op", "ana")
        assert spec.target == Target(path="apps/0")

    def test_only_what_is_missing_is_made(self) -> None:
        play = self.play()
        play.children = Children(unfinished=1, names=frozenset({"op-u-0"}))
        play.run(lambda: bool(play.made))

        assert [job.metadata.name for job in play.made] == ["op-u-1"]

    def test_it_is_over_when_they_are_and_makes_none_again(self) -> None:
        play = self.play()
        play.run(lambda: bool(play.made))
        play.children = Children(unfinished=2, names=frozenset({"op-u-0", "op-u-1"}))
        play.run()
        assert play.operation.children == ()
        assert play.operation.percentage == 0.0

        # One of them was deleted: it counts as over, and is not made again.
        play.made.clear()
        play.children = Children(unfinished=1, names=frozenset({"op-u-1"}))
        play.run()
        assert not play.made

        play.children = Children(succeeded=1, names=frozenset({"op-u-1"}))
        play.run()
        assert play.operation.completion_state is CompletionState.SUCCESS

    def test_what_is_rolled_back_makes_none(self) -> None:
        play = self.play(a_step("a"), script={"a": EVER}).run()

        assert not play.made
        assert play.operation.completion_state is CompletionState.FAILED

    @pytest.mark.parametrize(
        ("path", "above"),
        [
            pytest.param("domains/acme/applications/shop", "op", id="its own target"),
            pytest.param("domains/acme", "top", id="that of one above it"),
        ],
    )
    def test_one_that_would_wait_for_it_fails_it_before_anything_is_begun(
        self, path: str, above: str
    ) -> None:
        play = self.play(a_step("a"))
        target = Target(path="domains/acme/applications/shop")
        play.change(spec=replace(play.job.spec, target=target, parent="top"))
        play.targets_above = {"domains/acme": "top"}
        parts = tuple(
            ChildRequest(python=PythonSpec(function="move"), target=Target(path=one))
            for one in ("domains/acme/applications/other", path)
        )
        play.elaboration = Elaboration(steps=(a_step("a"),), children=parts)
        play.run()

        assert play.names == ["elaborate"] * 4
        assert play.states[-2:] == ["e30", "c(failed)"]
        assert not play.made
        assert play.operation.error == (
            f"elaborate: failed: children[1].target.path: job/{above}, which it is a part of, is"
            f" done to {path} too and ends only after its parts: it would wait for ever"
        )

    def test_the_names_of_its_steps_are_all_that_is_kept_of_them(self) -> None:
        """Their logs are asked for by name, and nothing else says which there were."""
        play = self.play(a_step("a"), a_step("dns"), script={"dns": EVER}).run()

        assert play.operation.steps == ()
        assert play.operation.elaborated is None
        assert play.operation.step_names == ("a", "dns")
        assert task_words(play.job, undo_task(1)) == "undo of step dns"

    def test_a_request_may_have_neither_steps_nor_parts(self) -> None:
        play = self.play()
        play.elaboration = Elaboration()
        play.run()

        assert play.operation.completion_state is CompletionState.SUCCESS


def test_what_is_over_has_no_steps_any_more_but_its_result() -> None:
    play = Play(an_operation(a_step("a"), a_step("b")), {}).run()

    assert play.operation.steps == ()
    # Its definition has their names.
    assert play.operation.step_names == ()
    assert task_words(play.job, run_task(1)) == "step b"
    assert play.operation.result == '{"a":1,"b":1}'
    assert play.operation.percentage == 100.0
    assert play.job.status.execution.total == 2
    assert len(play.job.status.execution.succeeded) == 2


def test_a_function_that_fails_is_told_without_an_exit_code() -> None:
    step = Step(name="a", run=FUNCTION, undo=FUNCTION)
    play = Play(JobSpec(steps=(step,)), {"a": EVER, "-a": fails(1)}).run()

    assert play.operation.error == "a: failed"
    assert play.operation.failures[-1] == "undo a: failed"


def test_the_last_error_is_that_of_running_a_step_not_of_undoing_one() -> None:
    play = Play(ONE, {"a": EVER, "-a": fails(1)}).run()

    assert play.operation.error == "a: failed with exit code 1"
    assert play.operation.failures[-1] == "undo a: failed with exit code 1"
    assert play.now - timedelta(seconds=30) == play.job.status.execution.started_at


def test_a_result_that_is_too_long_fails_the_step_with_its_name_and_the_limit() -> None:
    job = Play(an_operation(a_step("reserve"), a_step("b")), {}).job
    operation = begun(job)
    end = EndedTask(
        name="op-0-0",
        index=run_task(0),
        attempt=0,
        result=TaskResult.SUCCEEDED,
        ended_at=T0,
        started_at=T0,
        exit_code=0,
        returned=Returned(dropped_bytes=5000),
    )

    after, fresh = take_in(job, operation, (end,), {}, T0, {})

    assert fresh == {0}
    assert after.steps[0].state is StepState.FAILED
    told = "reserve returned 5000 bytes of JSON, and at most 4096 are kept"
    assert told in after.steps[0].message
    assert told in after.error


@pytest.mark.parametrize(
    ("started_at", "counted"),
    [pytest.param(T0, 1, id="it ran"), pytest.param(None, 0, id="nobody saw it begin")],
)
def test_only_what_ran_counts_as_cut_off(started_at: datetime | None, counted: int) -> None:
    """An operation that waits for a worker may live through any number of restarts."""
    job = Play(an_operation(a_step("a")), {}).job
    end = EndedTask(
        name="op-0-0",
        index=run_task(0),
        attempt=0,
        result=TaskResult.INTERRUPTED,
        ended_at=T0,
        started_at=started_at,
    )

    after, _ = take_in(job, begun(job), (end,), {}, T0, {})

    assert after.steps[0].interruptions == counted
    assert after.steps[0].interrupted
    assert after.steps[0].not_before == T0
