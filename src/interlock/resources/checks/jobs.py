"""Validation of Jobs beyond their types and rules, in themselves or in a template.

What one field must keep to, or a few together, is said beside them (`rules`). Here is the rest.
Typical Jobs pay for what they use: a part that is not given is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

import msgspec

from interlock.findings import Findings, child, did_you_mean, nearest, shortened
from interlock.resources.checks.operations import check_operation
from interlock.resources.checks.validator import check_rules
from interlock.resources.job import (
    ARG_NAME,
    ASKED_BY_ALL,
    ASKED_BY_ALL_TOLD,
    MAX_ARGS_BYTES,
    MAX_TASKS,
    JobSpec,
    Retries,
    is_operation,
)
from interlock.resources.redaction import check_redaction
from interlock.resources.steps import StepWork
from interlock.resources.values.texts import MAX_ARGUMENT_BYTES, MAX_OBJECT_BYTES
from interlock.resources.variables import PREFIXES, longest_values, names_in
from interlock.resources.work_types import WorkType, parts_of, texts_of, types_of

_ARG_NAME = re.compile(ARG_NAME)


def check_job(spec: JobSpec, to: Findings, values: Mapping[str, int] = {}) -> None:
    """Check what a Job asks for.

    `values` are variables beside those that every Job has, with the lengths they may have.
    """
    check_rules("spec", spec, to)
    check_rest_of_job(spec, to, values)


def check_rest_of_job(spec: JobSpec, to: Findings, values: Mapping[str, int] = {}) -> None:
    """Check what the rules cannot say."""
    for path, part in parts_of(spec):
        for type in types_of(part):
            _check_work(path, type, part, to)
    if is_operation(spec):
        check_operation(spec, to)
    if spec.parallelism is not None and spec.parallelism.matrix is not None:
        _check_combinations(spec.parallelism.matrix, to)
    if spec.retries.retry_exit_codes and spec.retries.fail_exit_codes:
        _check_exit_codes(spec.retries, to)
    if spec.resources and ASKED_BY_ALL in spec.resources:
        found = str(spec.resources[ASKED_BY_ALL])
        to.add(f"spec.resources.{ASKED_BY_ALL}", ASKED_BY_ALL_TOLD, found)
    if spec.substitutions:
        _check_substitutions(spec.substitutions, to)
    if spec.redact:
        check_redaction(spec, texts_of(spec), to)
    _check_args(spec, to)
    _check_variables(spec, values, to)


def _check_args(spec: JobSpec, to: Findings) -> None:
    """Refuse arguments that are larger than any status should be: they are shown with it."""
    given = [("spec.args", spec.args)] if spec.args else []
    if spec.python is not None and spec.python.args:
        given.append(("spec.python.args", spec.python.args))
    for path, args in given:
        try:
            size = len(msgspec.json.encode(args))
        except (TypeError, ValueError, RecursionError):
            continue  # That they are no JSON is said by whoever checks them.
        if size > MAX_ARGS_BYTES:
            to.add(path, f"expected at most {MAX_ARGS_BYTES} bytes as JSON, found {size}")


def _check_work(path: str, type: WorkType, part: JobSpec | StepWork, to: Findings) -> None:
    if path == "spec":
        type.check(type.given(part), to)
        return
    found = Findings()
    type.check(type.given(part), found)
    for problem in found.problems:
        to.add(problem.path.replace("spec", path, 1), problem.message, problem.found)


def _check_combinations(matrix: dict[str, tuple[str, ...]], to: Findings) -> None:
    tasks = prod(map(len, matrix.values())) if len(matrix) <= MAX_TASKS else MAX_TASKS + 1
    if tasks > MAX_TASKS:
        message = f"expected at most {MAX_TASKS} combinations"
        to.add("spec.parallelism.matrix", message, tasks)


def _check_exit_codes(retries: Retries, to: Findings) -> None:
    for code in sorted(set(retries.retry_exit_codes) & set(retries.fail_exit_codes)):
        to.add("spec.retries.failExitCodes", "is among retryExitCodes too", code)


def _check_substitutions(given: dict[str, str], to: Findings) -> None:
    for name in given:
        prefix, _, rest = name.partition(".")
        if prefix not in PREFIXES or not _ARG_NAME.fullmatch(rest):
            near = nearest(prefix, sorted(PREFIXES)) if rest else None
            meant = f'; did you mean "{near}.{shortened(rest)}"?' if near else ""
            message = f'expected the full name of a variable, such as "option.region"{meant}'
            to.add(child("spec.substitutions", name), message, name)


def _check_variables(spec: JobSpec, values: Mapping[str, int], to: Findings) -> None:
    """Refuse unknown variables, and texts that would grow beyond what a program can be given.

    A long value that is named many times would otherwise take all memory when a task starts.
    """
    lengths: dict[str, int] | None = None
    in_all = 0
    for field, at, text in texts_of(spec):
        if "${" in text:
            lengths = lengths or {**values, **longest_values(spec)}
            in_all += _check_text(field, at, text, lengths, to)
    if lengths is None:
        return  # No text names a variable, so none grows.
    most = max(
        (type.most_text for _, part in parts_of(spec) for type in types_of(part)),
        default=MAX_OBJECT_BYTES,
    )
    if in_all > most:
        message = f"its texts grow beyond {most} bytes in all once their variables have values"
        to.add("spec", message)


def _check_text(
    field: str, at: str | int | None, text: str, lengths: dict[str, int], to: Findings
) -> int:
    """Check one text; returns how long it may grow."""
    grown = len(text)
    for name in names_in(text):
        length = lengths.get(name)
        if length is not None:
            grown += length
        elif not to.is_full:
            message = f"unknown variable ${{{shortened(name)}}}{did_you_mean(name, lengths)}"
            to.add(field if at is None else child(field, at), message, text)
    most = MAX_OBJECT_BYTES if field.endswith(".process.stdin") else MAX_ARGUMENT_BYTES
    if grown > most:
        message = f"grows beyond {most} bytes once its variables have values"
        to.add(field if at is None else child(field, at), message, text)
    return grown
