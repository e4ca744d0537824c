"""What a Job must keep to beyond its types, wherever it is written: by itself or in a template.

Typical Jobs pay for what they use: a part that is not given is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from math import prod

from interlock.resources.durations import Duration
from interlock.resources.job import JobSpec, LockRequest, Parallelism, Retries
from interlock.resources.pod_checks import check_batch_job, check_pod
from interlock.resources.process import ProcessLimits, ProcessSpec
from interlock.resources.quantities import parse_quantity
from interlock.resources.suggestions import Findings, child, did_you_mean, nearest, shortened
from interlock.resources.variables import PREFIXES, longest_values, names_in, texts_of
from interlock.resources.word_checks import (
    MAX_ARGUMENT_BYTES,
    check_word,
    check_words,
    is_suspect,
    within,
)

MAX_OBJECT_BYTES = 1 << 20
MAX_TASKS = 10_000
MAX_RETRIES = 1_000
MAX_LOCKS = 64
MAX_LOCK_LIMIT = 1_000_000
MAX_OPEN_FILES = 1 << 20
MAX_LINE = 1_000

LOCK_KEY = re.compile(r"[A-Za-z0-9._/:-]{1,253}")
KEY_RULE = "expected 1 to 253 letters, digits, '.', '_', '-', '/' and ':'"
_ENV_NAME = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*")
ARG_NAME = re.compile(r"[A-Za-z0-9_.-]{1,253}")
_MATRIX_NAME = re.compile(r"[a-z0-9_-]{1,63}")
_ACCOUNT = re.compile(r"[0-9]{1,10}|[A-Za-z_][A-Za-z0-9_.@-]{0,254}\$?")
_NO_FORCE = "is for pods and batch Jobs alone: a process is killed after spec.gracePeriod"
_ZERO = timedelta(0)
_SECOND = timedelta(seconds=1)


def check_job(spec: JobSpec, to: Findings, values: Mapping[str, int] = {}) -> None:
    """Check what a Job asks for.

    `values` are variables beside those that every Job has, with the lengths they may have.
    """
    _check_work(spec, to)
    if spec.parallelism is not None:
        _check_parallelism(spec.parallelism, to)
    if spec.retries is not _NO_RETRIES:
        _check_retries(spec.retries, to)
    _check_times(spec, to)
    if spec.locks:
        _check_locks(spec.locks, to)
    within("spec.priority", spec.priority, -(1 << 31), (1 << 31) - 1, to)
    if spec.title or spec.suspend_reason:
        check_line("spec.title", spec.title, to)
        check_line("spec.suspendReason", spec.suspend_reason, to)
    if spec.args or spec.substitutions:
        _check_values(spec, to)
    _check_variables(spec, values, to)


_NO_RETRIES = JobSpec().retries
#: What a Job can run, each with the name it has in JSON.
WORK = {"process": "process", "pod": "pod", "batch_job": "batchJob", "noop": "noop"}


def _check_work(spec: JobSpec, to: Findings) -> None:
    given = [path for name, path in WORK.items() if getattr(spec, name) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        to.add("spec", f"expected exactly one of {_CHOICES}, found {found}")
    if spec.process is not None:
        _check_process(spec.process, to)
    if spec.pod is not None:
        check_pod(spec.pod, to)
    if spec.batch_job is not None:
        check_batch_job(spec.batch_job, to)


_CHOICES = "process, pod, batchJob and noop"


def _check_process(process: ProcessSpec, to: Findings) -> None:
    if not process.command:
        to.add("spec.process.command", "expected the program to run", [])
    elif not process.command[0]:
        to.add("spec.process.command[0]", "expected the program to run", "")
    check_words("spec.process.command", process.command, to)
    if process.args:
        check_words("spec.process.args", process.args, to)
    for name, value in process.env.items():
        if not _ENV_NAME.fullmatch(name):
            message = "bad name: expected letters, digits, '_', '-' and '.', no digit first"
            to.add(child("spec.process.env", name), message, name)
        if is_suspect(value):
            check_word(child("spec.process.env", name), value, to)
    for at, source in enumerate(process.env_from):
        _check_path(f"spec.process.envFrom[{at}].file", source.file, to)
    if process.working_dir is not None:
        _check_path("spec.process.workingDir", process.working_dir, to)
    for path, account in (("user", process.user), ("group", process.group)):
        if account is not None and not _ACCOUNT.fullmatch(account):
            to.add(f"spec.process.{path}", f"expected a {path}'s name or number", account)
    if process.limits is not _NO_LIMITS:
        _check_limits(process.limits, to)


_NO_LIMITS = ProcessSpec(command=()).limits


def _check_path(path: str, value: str, to: Findings) -> None:
    if not value:
        to.add(path, "expected a path", value)
    check_word(path, value, to)


def _check_limits(limits: ProcessLimits, to: Findings) -> None:
    path = "spec.process.limits"
    if limits.cpu_time is not None and limits.cpu_time < _SECOND:
        to.add(f"{path}.cpuTime", "expected at least 1s", str(limits.cpu_time))
    if limits.memory is not None:
        try:
            if parse_quantity(limits.memory) < 1:
                to.add(f"{path}.memory", "expected more than nothing", limits.memory)
        except ValueError as error:
            to.add(f"{path}.memory", str(error), limits.memory)
    if limits.open_files is not None:
        within(f"{path}.openFiles", limits.open_files, 1, MAX_OPEN_FILES, to)
    if limits.nice is not None:
        within(f"{path}.nice", limits.nice, 0, 19, to)


def _check_parallelism(parallelism: Parallelism, to: Findings) -> None:
    path = "spec.parallelism"
    count, keys, matrix = parallelism.count, parallelism.keys, parallelism.matrix
    given = (count is not None) + (keys is not None) + (matrix is not None)
    if given != 1:
        to.add(path, f"expected exactly one of count, keys and matrix, found {given}")
    if count is not None:
        within(f"{path}.count", count, 1, MAX_TASKS, to)
    if keys is not None:
        within(f"{path}.keys", len(keys), 1, MAX_TASKS, to, of="keys")
        _check_choices(f"{path}.keys", keys, to)
    if matrix is not None:
        _check_matrix(f"{path}.matrix", matrix, to)
    if parallelism.at_once is not None:
        within(f"{path}.atOnce", parallelism.at_once, 1, MAX_TASKS, to)


def _check_matrix(path: str, matrix: dict[str, tuple[str, ...]], to: Findings) -> None:
    if not matrix:
        to.add(path, "expected at least one name with values", {})
    for name, choices in matrix.items():
        if not _MATRIX_NAME.fullmatch(name):
            message = "bad name: expected lower-case letters, digits, '_' and '-'"
            to.add(child(path, name), message, name)
        if not choices:
            to.add(child(path, name), "expected at least one value", [])
        _check_choices(child(path, name), choices, to)
    tasks = prod(map(len, matrix.values())) if len(matrix) <= MAX_TASKS else MAX_TASKS + 1
    if tasks > MAX_TASKS:
        to.add(path, f"expected at most {MAX_TASKS} combinations", tasks)


def _check_choices(path: str, choices: tuple[str, ...], to: Findings) -> None:
    seen: set[str] = set()
    for at, choice in enumerate(choices):
        if not choice:
            to.add(f"{path}[{at}]", "expected text that is not empty", choice)
        elif choice in seen:
            to.add(f"{path}[{at}]", "is there twice", choice)
        elif is_suspect(choice):
            check_word(f"{path}[{at}]", choice, to)
        seen.add(choice)


def _check_retries(retries: Retries, to: Findings) -> None:
    path = "spec.retries"
    within(f"{path}.limit", retries.limit, 0, MAX_RETRIES, to)
    if not 0.0 <= retries.jitter <= 1.0:
        to.add(f"{path}.jitter", "expected 0 to 1", retries.jitter)
    if not retries.retry_exit_codes and not retries.fail_exit_codes:
        return
    for name, codes in (
        ("retryExitCodes", retries.retry_exit_codes),
        ("failExitCodes", retries.fail_exit_codes),
    ):
        for at, code in enumerate(codes):
            within(f"{path}.{name}[{at}]", code, 0, 255, to)
    both = set(retries.retry_exit_codes) & set(retries.fail_exit_codes)
    for code in sorted(both):
        to.add(f"{path}.failExitCodes", "is among retryExitCodes too", code)


def _check_times(spec: JobSpec, to: Findings) -> None:
    if spec.task_timeout is not None:
        positive("spec.taskTimeout", spec.task_timeout, to)
    if spec.timeout is not None:
        positive("spec.timeout", spec.timeout, to)
    if spec.force_delete_after is not None:
        positive("spec.forceDeleteAfter", spec.force_delete_after, to)
        if spec.pod is None and spec.batch_job is None:
            to.add("spec.forceDeleteAfter", _NO_FORCE, str(spec.force_delete_after))
    after, by = spec.start_after, spec.start_by
    if after is not None and by is not None and by <= after:
        to.add("spec.startBy", "expected a moment after spec.startAfter", by.isoformat())


def positive(path: str, length: Duration, to: Findings) -> None:
    """Check that a length of time is more than nothing."""
    if length <= _ZERO:
        to.add(path, "expected more than 0s", str(length))


def _check_locks(locks: tuple[LockRequest, ...], to: Findings) -> None:
    if len(locks) > MAX_LOCKS:
        to.add("spec.locks", f"expected at most {MAX_LOCKS} locks", len(locks))
    seen: set[str] = set()
    for at, lock in enumerate(locks):
        if not LOCK_KEY.fullmatch(lock.key):
            to.add(f"spec.locks[{at}].key", KEY_RULE, lock.key)
        elif lock.key in seen:
            to.add(f"spec.locks[{at}].key", "is there twice", lock.key)
        seen.add(lock.key)
        if not 1 <= lock.limit <= MAX_LOCK_LIMIT:
            to.add(f"spec.locks[{at}].limit", f"expected 1 to {MAX_LOCK_LIMIT}", lock.limit)
        if lock.max_waiting is not None:
            within(f"spec.locks[{at}].maxWaiting", lock.max_waiting, 0, MAX_LOCK_LIMIT, to)


def check_line(path: str, line: str, to: Findings) -> None:
    """Check a line for people."""
    if len(line) > MAX_LINE:
        to.add(path, f"expected at most {MAX_LINE} characters", line)
    elif not line.isprintable():
        # Also keeps terminal escapes out of everybody's tables.
        to.add(path, "expected one line without control characters", line)


def _check_values(spec: JobSpec, to: Findings) -> None:
    for name, value in spec.args.items():
        if not ARG_NAME.fullmatch(name):
            message = "bad name: expected letters, digits, '_', '.' and '-'"
            to.add(child("spec.args", name), message, name)
        check_word(child("spec.args", name), value, to)
    for name, value in spec.substitutions.items():
        prefix, _, rest = name.partition(".")
        if prefix not in PREFIXES or not ARG_NAME.fullmatch(rest):
            near = nearest(prefix, sorted(PREFIXES)) if rest else None
            meant = f'; did you mean "{near}.{shortened(rest)}"?' if near else ""
            message = f'expected the full name of a variable, such as "option.region"{meant}'
            to.add(child("spec.substitutions", name), message, name)
        check_word(child("spec.substitutions", name), value, to)


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
    # A pod is an object of the cluster; a process may have far more than the kernel ever takes.
    most = MAX_OBJECT_BYTES if spec.process is None else 8 * MAX_OBJECT_BYTES
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
    most = MAX_OBJECT_BYTES if field == "spec.process.stdin" else MAX_ARGUMENT_BYTES
    if grown > most:
        message = f"grows beyond {most} bytes once its variables have values"
        to.add(field if at is None else child(field, at), message, text)
    return grown
