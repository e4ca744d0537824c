"""Operations: whatever fails, what is done stays done, and what is undone is undone in reverse."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.findings import Findings
from interlock.resources.checks.operations import check_steps
from interlock.resources.job import JobSpec
from interlock.resources.operation import OperationState, OperationStatus, StepState
from interlock.resources.steps import BeforeRetry, Step, StepRetries, UndoRetries, needs_of
from interlock.resources.transitions import has_ended
from interlock.resources.values.durations import Duration
from support.operation_play import WORK, Play, an_operation

NAMES = tuple(f"s{n}" for n in range(5))
OUTCOMES = st.lists(st.sampled_from(["ok", "fail", "fail", "cut"]), max_size=6).map(tuple)
SCRIPTS = st.dictionaries(
    st.sampled_from([f"{sign}{name}" for name in NAMES for sign in ("", "-")]), OUTCOMES
)


@st.composite
def operations(draw: st.DrawFn) -> JobSpec:
    """Good operations: graphs of some steps, with all that a step may say."""
    steps: list[Step] = []
    for at in range(draw(st.integers(1, len(NAMES)))):
        earlier = st.lists(st.sampled_from(NAMES[:at]), unique=True).map(tuple) if at else st.none()
        needs = draw(st.none() | earlier)
        has_undo = draw(st.sampled_from([True, True, True, False]))
        before = draw(st.sampled_from([BeforeRetry.AS_IS, *BeforeRetry]))
        named = (draw(st.sampled_from(NAMES[: at + 1])),) if before is BeforeRetry.ROLL_BACK else ()
        limit = UndoRetries(limit=draw(st.integers(0, 2))) if has_undo else None
        steps.append(
            Step(
                name=NAMES[at],
                run=WORK,
                undo=WORK if has_undo else None,
                needs=needs,
                retries=StepRetries(limit=draw(st.integers(0, 2)), delay=Duration(seconds=5)),
                undo_retries=limit,
                before_retry=before,
                roll_back=named,
                irreversible=draw(st.integers(0, 9)) == 0,
            )
        )
    found = Findings()
    check_steps(tuple(steps), found)
    assume(not found)
    return an_operation(*steps, steps_at_once=draw(st.integers(1, 3)), max_interruptions=2)


@given(spec=operations(), script=SCRIPTS)
def test_an_operation_keeps_its_promises_whatever_fails(
    spec: JobSpec, script: dict[str, tuple[str, ...]]
) -> None:
    assert spec.steps is not None
    specs = {step.name: step for step in spec.steps}
    play = Play(spec, script)
    play.checks.append(lambda before, after: check_write(specs, before, after))
    play.run()

    assert play.is_settled, play.states
    assert play.most_at_once <= spec.steps_at_once
    names = play.names
    play.look()
    assert play.names == names, "it acts although it is over or stuck"
    if has_ended(play.job):
        assert play.operation.state is OperationState.COMPLETE


def check_write(
    specs: dict[str, Step], before: OperationStatus | None, after: OperationStatus
) -> None:
    """What every write keeps to."""
    assert (after.completion_state is not None) is (after.state is OperationState.COMPLETE)
    if before is None or not before.steps or not after.steps:
        return
    assert after.reverting >= before.reverting, "it goes forward out of a rollback"
    now_by_name = {step.name: step for step in after.steps}
    for was in before.steps:
        now, spec = now_by_name[was.name], specs[was.name]
        assert was.runs <= now.runs <= was.runs + 1
        assert was.undos <= now.undos <= was.undos + 1
        assert now.retries <= spec.retries.limit
        assert now.undo_retries <= (spec.undo_retries.limit if spec.undo_retries else 0)
        if was.state is StepState.DONE and now.runs > was.runs:
            assert spec.undo is None, f"{now.name} was done, and is run again"
        if was.state is StepState.UNDONE:
            assert now == was, f"{now.name} was undone"
    steps = tuple(specs.values())
    for at, spec in enumerate(steps):
        needs = [now_by_name[name].state for name in needs_of(steps, at)]
        if now_by_name[spec.name].state is StepState.RUNNING:
            assert set(needs) <= {StepState.DONE}, f"{spec.name} runs before what it needs"
        if StepState.UNDOING in needs:
            left = now_by_name[spec.name].state
            assert left in (StepState.WAITS, StepState.UNDONE), f"{spec.name} is undone too late"
