"""${...}: what is replaced, what stays, and which task is which."""

from __future__ import annotations

import pytest

from interlock.resources.job import Parallelism, Retries
from interlock.resources.variables import (
    TaskLabels,
    UnknownVariableError,
    context_of,
    names_in,
    substitute,
    task_count,
    task_labels,
)
from interlock.testing.builders import a_job

VALUES = {"job.name": "resize", "args.a": "${job.name}", "option.b": "$${job.name}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain", "plain", id="nothing to do"),
        pytest.param("a-${job.name}-b", "a-resize-b", id="in the middle"),
        pytest.param("${job.name}${job.name}", "resizeresize", id="twice"),
        pytest.param("${args.a}", "${job.name}", id="a value is never expanded again"),
        pytest.param("${option.b}", "$${job.name}", id="an escape in a value stays"),
        pytest.param("$${job.name}", "${job.name}", id="escaped"),
        pytest.param("$$${job.name}", "$${job.name}", id="a dollar, then escaped"),
        pytest.param("${HOME} ${a.b} ${job}", "${HOME} ${a.b} ${job}", id="not ours"),
        pytest.param("$job.name {job.name} ${", "$job.name {job.name} ${", id="not whole"),
        pytest.param("${ job.name }", "${ job.name }", id="with spaces it is not ours"),
        pytest.param("${${job.name}}", "${resize}", id="the inner one, once"),
    ],
)
def test_substitution(text: str, expected: str) -> None:
    assert substitute(text, VALUES) == expected


@pytest.mark.parametrize("name", ["job.nme", "task.index", "args.a.b", "locks.x", "option."])
def test_an_unknown_variable_is_an_error(name: str) -> None:
    with pytest.raises(UnknownVariableError, match="unknown variable"):
        substitute(f"x ${{{name}}}", VALUES)


def test_names_in_a_text() -> None:
    text = "${job.name} $${job.uid} ${HOME} ${args.a}${job.name}"

    assert names_in(text) == ("job.name", "args.a", "job.name")
    assert names_in("none") == ()


def test_tasks_of_a_job_that_is_not_parallel() -> None:
    assert task_count(a_job().spec) == 1
    assert task_labels(None, 0) == TaskLabels()


def test_tasks_by_count_and_keys() -> None:
    keys = Parallelism(keys=("x", "y"))

    assert task_count(a_job(parallelism=Parallelism(count=7)).spec) == 7
    assert task_labels(Parallelism(count=7), 6) == TaskLabels()
    assert task_count(a_job(parallelism=keys).spec) == 2
    assert task_labels(keys, 1) == TaskLabels(key="y")


def test_the_last_name_of_a_matrix_varies_fastest_whatever_the_order_written() -> None:
    one = Parallelism(matrix={"b": ("1", "2", "3"), "a": ("x", "y")})
    other = Parallelism(matrix={"a": ("x", "y"), "b": ("1", "2", "3")})
    expected = [{"a": a, "b": b} for a in "xy" for b in "123"]

    assert task_count(a_job(parallelism=one).spec) == 6
    for matrix in (one, other):
        assert [task_labels(matrix, at).matrix for at in range(6)] == expected


def test_the_context_of_an_attempt() -> None:
    job = a_job(
        "resize",
        parallelism=Parallelism(matrix={"size": ("s", "l")}),
        retries=Retries(limit=3),
        args={"day": "Monday"},
        substitutions={"option.region": "emea", "job.name": "mine"},
    )

    assert context_of(job, 1, 2) == {
        "job.name": "mine",
        "job.namespace": "default",
        "job.uid": "uid-default-resize",
        "job.max_attempts": "4",
        "task.name": "resize-1-2",
        "task.namespace": "default",
        "task.index": "1",
        "task.index_num": "1",
        "task.retry_index": "2",
        "task.attempt": "2",
        "task.matrix.size": "l",
        "task.index_matrix.size": "l",
        "args.day": "Monday",
        "option.region": "emea",
    }


def test_the_context_of_a_task_with_a_key() -> None:
    context = context_of(a_job(parallelism=Parallelism(keys=("x", "y"))), 1, 0)

    assert context["task.key"] == context["task.index_key"] == "y"
    assert context["task.index"] == "1"
