"""Whatever becomes of a Job's tasks, its condition PodsReady and its clock tell the truth."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from interlock.resources.admission import AdmissionPhase, AdmissionStatus
from interlock.resources.job import Parallelism
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.process import FileProbe, ProcessSpec, ReadinessProbe
from interlock.resources.readiness import with_readiness
from interlock.resources.tasks import ExecutionStatus, TaskState, TaskStatus
from interlock.resources.values.indexes import IndexSet
from interlock.testing.builders import T0, a_job

TASKS = 3
PHASES = (AdmissionPhase.WAITING, AdmissionPhase.ADMITTED, AdmissionPhase.EVICTING)
PROBE = ReadinessProbe(file=FileProbe(path="up"))
JOB = a_job(
    process=ProcessSpec(command=("serve",), readiness_probe=PROBE),
    parallelism=Parallelism(count=TASKS, at_once=2),
)
#: What a task is at: none of these for one that waits for its turn.
TASK = st.sampled_from(["ready", "not ready", "starting", "succeeded", "waits"])
LOOKS = st.lists(
    st.tuples(st.sampled_from(PHASES), st.lists(TASK, min_size=TASKS, max_size=TASKS)), max_size=20
)


def execution_of(tasks: list[str]) -> ExecutionStatus:
    succeeded = [at for at, task in enumerate(tasks) if task == "succeeded"]
    active = tuple(
        TaskStatus(
            name=f"job-{at}-0",
            index=at,
            attempt=0,
            state=TaskState.STARTING if task == "starting" else TaskState.RUNNING,
            created_at=T0,
            ready=task == "ready",
        )
        for at, task in enumerate(tasks)
        if task in ("ready", "not ready", "starting")
    )
    done = IndexSet().union(succeeded) if succeeded else IndexSet()
    return ExecutionStatus(total=TASKS, active=active, succeeded=done)


@given(looks=LOOKS)
def test_the_condition_tells_the_truth(looks: list[tuple[AdmissionPhase, list[str]]]) -> None:
    """Ready means two of three at work or done; lost is only what was ready since it was let in."""
    held: tuple[Condition, ...] = ()
    was_ready = False
    for at, (phase, tasks) in enumerate(looks):
        now = T0 + timedelta(minutes=at)
        before = held
        held = with_readiness(JOB, held, AdmissionStatus(phase=phase), execution_of(tasks), now)
        if phase is AdmissionPhase.EVICTING:
            assert held is before
            continue
        (condition,) = held
        good = tasks.count("ready") + tasks.count("succeeded") >= 2
        is_let_in = phase is AdmissionPhase.ADMITTED
        was_ready = was_ready and is_let_in
        is_true = condition.status is ConditionStatus.TRUE
        assert is_true is (is_let_in and good)
        if not is_true:
            assert condition.reason == ("WaitForRecovery" if was_ready else "WaitForStart")
        was_ready = was_ready or is_true

        is_flip = not before or before[0].status is not condition.status
        assert condition.last_transition_time == (
            now if is_flip else before[0].last_transition_time
        )
        is_same = bool(before) and before[0].reason == condition.reason
        assert (held is before) is (is_same and not is_flip)
