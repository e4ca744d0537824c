"""What a runtime is told to run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from execution_builders import ADMITTED, a_task, an_admitted_job, started
from msgspec.structs import replace

from interlock.execution.orders import order_again, order_of
from interlock.resources.admission import Grant
from interlock.resources.job import CREATOR_ANNOTATION, Job, Parallelism
from interlock.resources.operation import (
    OperationStatus,
    StepState,
    StepStatus,
    run_task,
    undo_task,
)
from interlock.resources.pods import BatchJobTemplate, PodTemplate, TemplateMetadata
from interlock.resources.process import EnvFile, ProcessLimits, ProcessSpec
from interlock.resources.steps import PythonSpec, Step, StepWork, Target
from interlock.resources.tasks import TaskId, process_of
from interlock.resources.values.durations import Duration
from interlock.resources.variables import UnknownVariableError
from interlock.resources.work import BatchWork, PodWork, PythonCall, PythonWork


def test_every_text_gets_its_values_once() -> None:
    process = ProcessSpec(
        command=("convert", "in-${task.index}.png"),
        args=("${args.size}", "${HOME}"),
        env={"WHERE": "${task.key}", "INTERLOCK_JOB": "forged"},
        env_from=(EnvFile(file="${task.key}.env"),),
        working_dir="/data/${job.name}",
        stdin="attempt ${task.attempt}",
        limits=ProcessLimits(nice=5),
    )
    job = an_admitted_job(
        process=process, parallelism=Parallelism(keys=("a", "b")), args={"size": "${task.index}"}
    )
    order = order_of(job, 1, 2)

    work = process_of(order)
    assert work.command == ("convert", "in-1.png", "${task.index}", "${HOME}")
    assert work.env["WHERE"] == "b"
    assert work.env_from == (EnvFile(file="b.env"),)
    assert work.working_dir == "/data/job"
    assert work.stdin == "attempt 2"
    assert work.limits == ProcessLimits(nice=5)
    assert order.id == TaskId("uid-default-job", 1, 2)
    assert order.name == order.env["INTERLOCK_TASK"] == "job-1-2"
    assert order.env["INTERLOCK_JOB"] == "job"


def test_a_task_is_told_about_itself() -> None:
    env = order_of(an_admitted_job(), 0, 0).env

    assert env == {
        "INTERLOCK_JOB": "job",
        "INTERLOCK_NAMESPACE": "default",
        "INTERLOCK_JOB_UID": "uid-default-job",
        "INTERLOCK_TASK": "job-0-0",
        "INTERLOCK_TASK_INDEX": "0",
        "INTERLOCK_ATTEMPT": "0",
        "INTERLOCK_ROUND": "0",
    }


def test_a_task_gets_its_fences() -> None:
    grants = (Grant(key="db/main", token=42), Grant(key='"odd"', token=7))
    env = order_of(an_admitted_job(admission=replace(ADMITTED, grants=grants)), 0, 0).env

    assert (env["INTERLOCK_LOCK"], env["INTERLOCK_FENCE"]) == ("db/main", "42")
    assert json.loads(env["INTERLOCK_FENCES"]) == {"db/main": 42, '"odd"': 7}


def test_indexes_far_apart_never_share_a_name() -> None:
    job = an_admitted_job(parallelism=Parallelism(count=10_000))

    assert len({order_of(job, index, 0).name for index in range(0, 10_000, 7)}) == 1429


def test_an_unknown_variable_is_an_error() -> None:
    job = an_admitted_job(process=ProcessSpec(command=("echo", "${args.missing}")))

    with pytest.raises(UnknownVariableError):
        order_of(job, 0, 0)


class TestInACluster:
    def test_every_text_of_a_pod_gets_its_values_once(self) -> None:
        container = {
            "name": "main",
            "image": "a:${args.tag}",
            "args": ["${task.key}", "${HOME}", "$${job.x}", 7, None, True],
            "env": [{"name": "WHERE", "value": "${job.name}"}],
        }
        template = PodTemplate(
            spec={"containers": [container], "nodeSelector": {"${job.name}": "${task.index}"}},
            metadata=TemplateMetadata(
                labels={"task": "t-${task.index}"}, annotations={"why": "${args.tag}"}
            ),
        )
        job = an_admitted_job(
            pod=template, parallelism=Parallelism(keys=("a", "b")), args={"tag": "${job.uid}"}
        )
        order = order_of(job, 1, 2)

        assert isinstance(order.work, PodWork)
        made = order.work.template
        assert made.spec["containers"] == [
            {
                "name": "main",
                "image": "a:${job.uid}",
                "args": ["b", "${HOME}", "${job.x}", 7, None, True],
                "env": [{"name": "WHERE", "value": "job"}],
            }
        ]
        assert made.spec["nodeSelector"] == {"${job.name}": "1"}
        assert made.metadata.labels == {"task": "t-1"}
        assert made.metadata.annotations == {"why": "${job.uid}"}
        assert container["image"] == "a:${args.tag}"

    def test_a_pod_without_variables_is_not_copied(self) -> None:
        template = PodTemplate(spec={"containers": [{"name": "main", "image": "a"}]})

        work = order_of(an_admitted_job(pod=template), 0, 0).work

        assert isinstance(work, PodWork)
        assert work.template is template

    def test_a_batch_job_is_ordered_whole(self) -> None:
        spec = {"completions": 3, "template": {"metadata": {"labels": {"a": "${task.name}"}}}}
        job = an_admitted_job(batch_job=BatchJobTemplate(spec=spec))
        order = order_of(job, 0, 1)

        assert order.work == BatchWork(
            template=BatchJobTemplate(
                spec={"completions": 3, "template": {"metadata": {"labels": {"a": "job-0-1"}}}}
            )
        )

    def test_what_a_cluster_needs_to_stop_it_goes_with_the_order(self) -> None:
        job = an_admitted_job(
            pod=PodTemplate(spec={}),
            grace_period=Duration(seconds=7),
            force_delete_after=Duration(minutes=5),
        )
        order = order_of(job, 0, 0)

        assert (order.grace, order.force_delete_after) == (
            Duration(seconds=7),
            Duration(minutes=5),
        )
        process = order_of(an_admitted_job(), 0, 0)
        # The keeper itself gives a process this one.
        assert order.env == process.env | {"INTERLOCK_TASK_ID": str(order.id)}

    def test_an_unknown_variable_is_an_error(self) -> None:
        job = an_admitted_job(pod=PodTemplate(spec={"a": [{"b": "${args.missing}"}]}))

        with pytest.raises(UnknownVariableError):
            order_of(job, 0, 0)


# Functions in workers


def a_python_job(**changes: Any) -> Job:
    """An operation of two steps; the first is done, and returned something."""
    steps = (
        Step(name="reserve", run=StepWork(python=PythonSpec(function="reserve"))),
        Step(
            name="configure",
            run=StepWork(
                python=PythonSpec(
                    function="configure", args={"gear": {"$result": "reserve"}}, queue="slow"
                )
            ),
            undo=StepWork(python=PythonSpec(function="forget")),
        ),
    )
    operation = OperationStatus(
        steps=(
            StepStatus(name="reserve", state=StepState.DONE, runs=1, result='"gear-17"'),
            StepStatus(name="configure", state=StepState.RUNNING, runs=1),
        ),
        elaborated=steps,
    )
    given: dict[str, Any] = {
        "python": PythonSpec(function="create", queue="fast"),
        "execution": started(a_task(index=7, attempt=3), operation=operation),
        "admission": replace(ADMITTED, grants=(Grant(key="target/shop", token=9),)),
        "target": Target(path="shop"),
        "metadata": {"annotations": {CREATOR_ANNOTATION: "ana"}},
    }
    return an_admitted_job(**(given | changes))


def test_a_function_is_told_everything_about_its_operation() -> None:
    order = order_of(a_python_job(), run_task(1), 0)

    assert order.runtime == "workers"
    assert order.work == PythonWork(
        function="configure",
        args={"gear": "gear-17"},
        call=PythonCall.RUN,
        step="configure",
        results={"reserve": '"gear-17"'},
        queue="slow",
        fences={"target/shop": 9},
        target="shop",
        creator="ana",
        open_attempts=((7, 3),),
    )


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param(run_task(0), "fast", id="that of the request"),
        pytest.param(run_task(1), "slow", id="its own"),
        pytest.param(undo_task(1), "fast", id="an undo names its own, or has that of the request"),
    ],
)
def test_which_queue_a_step_goes_to(task: int, expected: str) -> None:
    work = order_of(a_python_job(), task, 0).work

    assert isinstance(work, PythonWork)
    assert work.queue == expected


def test_an_order_that_is_repeated_says_so() -> None:
    """Whoever gets it cannot know whether others were told to do the same."""
    again = order_again(a_python_job(), a_task(index=run_task(0), runtime="workers"))

    assert isinstance(again.work, PythonWork)
    assert again.work.again
    process = order_again(an_admitted_job(), a_task())
    assert process == order_of(an_admitted_job(), 0, 0)
