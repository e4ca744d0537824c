"""Variables: what ${...} stands for in a Job, and which task of a Job is which.

A value is put in once and never looked at again, so a value that itself holds ${...} stays as it
is. `$${` is written for a plain `${`. A name that begins with none of our prefixes, such as
${HOME}, is not ours and stays too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from interlock.resources.job import Job, JobSpec, Parallelism
from interlock.resources.tasks import number_in_round, task_name

#: The first part of every name that is ours. Others are left to whoever reads the text.
PREFIXES = frozenset({"job", "task", "args", "option", "jobconfig", "lock", "locks"})

JOB_NAMES = ("job.name", "job.namespace", "job.uid", "job.max_attempts")
TASK_NAMES = (
    "task.name",
    "task.namespace",
    "task.index",
    "task.index_num",
    "task.retry_index",
    "task.attempt",
)
#: What the Jobs of a JobConfig have besides.
CONFIG_NAMES = (
    "jobconfig.name",
    "jobconfig.namespace",
    "jobconfig.uid",
    "jobconfig.scheduled_at",
)
KEY_NAMES = ("task.key", "task.index_key")
#: What the tasks of a Job with slots have besides: where they are, as NODE/NUMBER.
SLOT_NAME = "task.slot"

_REFERENCE = re.compile(r"\$\$\{|\$\{([^${}]*)\}")


class UnknownVariableError(ValueError):
    """A name with one of our prefixes has no value."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown variable ${{{name}}}")
        self.name = name


class TaskLabels(NamedTuple):
    """What tells one task of a Job from the others, beside its number."""

    #: The task's key, for a Job with keys.
    key: str | None = None
    #: The task's combination, for a Job with a matrix.
    matrix: Mapping[str, str] = {}


def _is_ours(name: str) -> bool:
    prefix, dot, _ = name.partition(".")
    return bool(dot) and prefix in PREFIXES


def names_in(text: str) -> tuple[str, ...]:
    """The variables of ours that a text refers to, in order, repeats included."""
    if "${" not in text:
        return ()
    return tuple(name for name in _REFERENCE.findall(text) if _is_ours(name))


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Put the values in, once.

    Raises:
        UnknownVariableError: A name of ours has no value.
    """
    if "${" not in text:
        return text
    return _REFERENCE.sub(_value_from(values), text)


def with_blanks(text: str) -> str:
    """The text with an `x` for the value of each variable: what is certain of it beforehand."""
    if "${" not in text:
        return text
    return _REFERENCE.sub(lambda found: "x" if _is_ours(found[1] or "") else found[0], text)


def _value_from(values: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return "${"
        if not _is_ours(name):
            return found[0]
        if name not in values:
            raise UnknownVariableError(name)
        return values[name]

    return value


def task_count(spec: JobSpec) -> int:
    """How many tasks the Job has."""
    parallelism = spec.parallelism
    if parallelism is None:
        return 1
    if parallelism.keys is not None:
        return len(parallelism.keys)
    if parallelism.matrix is not None:
        return prod(map(len, parallelism.matrix.values()))
    return 1 if parallelism.count is None else parallelism.count


def task_labels(parallelism: Parallelism | None, index: int) -> TaskLabels:
    """The key or the combination of task number `index`.

    The names of a matrix are sorted, and the last one varies fastest: the order never depends on
    the order in which the matrix was written.
    """
    if parallelism is None:
        return TaskLabels()
    if parallelism.keys is not None:
        return TaskLabels(key=parallelism.keys[index])
    if parallelism.matrix is not None:
        return TaskLabels(matrix=_combination(parallelism.matrix, index))
    return TaskLabels()


def _combination(matrix: Mapping[str, tuple[str, ...]], index: int) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for name in sorted(matrix, reverse=True):
        index, at = divmod(index, len(matrix[name]))
        chosen[name] = matrix[name][at]
    return dict(sorted(chosen.items()))


def context_of(job: Job, index: int, attempt: int) -> dict[str, str]:
    """Every variable and its value, for one attempt of one task.

    `spec.substitutions` comes last, and so wins over all others.
    """
    spec, metadata = job.spec, job.metadata
    values = {
        "job.name": metadata.name,
        "job.namespace": metadata.namespace,
        "job.uid": metadata.uid,
        "job.max_attempts": str(spec.retries.limit + 1),
        "task.name": task_name(metadata.name, index, attempt),
        "task.namespace": metadata.namespace,
        "task.index": str(index),
        "task.index_num": str(index),
        "task.retry_index": str(number_in_round(attempt)),
        "task.attempt": str(number_in_round(attempt)),
    }
    labels = task_labels(spec.parallelism, index)
    if labels.key is not None:
        values["task.key"] = values["task.index_key"] = labels.key
    for name, value in labels.matrix.items():
        values[f"task.matrix.{name}"] = values[f"task.index_matrix.{name}"] = value
    if spec.slots is not None:
        values[SLOT_NAME] = slot_of(job, index, attempt)
    for name, value in spec.args.items():
        values[f"args.{name}"] = value
    return values | spec.substitutions


def slot_of(job: Job, index: int, attempt: int) -> str:
    """The slot that an attempt which is recorded runs in; empty for one without."""
    for task in job.status.execution.active:
        if task.index == index and task.attempt == attempt:
            return task.slot
    return ""


def longest_values(spec: JobSpec) -> dict[str, int]:
    """Every variable that the Job's texts may use, with the length its value may have."""
    lengths = dict.fromkeys((*JOB_NAMES, *TASK_NAMES), 63)
    lengths |= {f"args.{name}": len(value) for name, value in spec.args.items()}
    lengths |= _parallel_lengths(spec.parallelism)
    if spec.slots is not None:
        lengths[SLOT_NAME] = 257
    return lengths | {name: len(value) for name, value in spec.substitutions.items()}


def _parallel_lengths(parallelism: Parallelism | None) -> dict[str, int]:
    if parallelism is None:
        return {}
    lengths: dict[str, int] = {}
    if parallelism.keys:
        lengths |= dict.fromkeys(KEY_NAMES, max(map(len, parallelism.keys)))
    for name, choices in (parallelism.matrix or {}).items():
        longest = max(map(len, choices), default=0)
        lengths[f"task.matrix.{name}"] = lengths[f"task.index_matrix.{name}"] = longest
    return lengths
