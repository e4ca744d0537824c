"""What a resource must keep to beyond its types, and what of it may change later.

Everything here is a pure function of the resource. Typical objects pay for what they use: a part
that is not given is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from math import prod

from interlock.resources.cluster import Lease
from interlock.resources.durations import Duration
from interlock.resources.errors import Problem
from interlock.resources.job import (
    JOB_FINALIZER,
    Job,
    JobSpec,
    LockRequest,
    Parallelism,
    Retries,
)
from interlock.resources.kinds import KINDS
from interlock.resources.lock import Lock
from interlock.resources.metadata import Metadata, Resource
from interlock.resources.naming import MAX_JOB_NAME, MAX_LABEL, MAX_SUBDOMAIN, check_metadata
from interlock.resources.process import ProcessLimits, ProcessSpec
from interlock.resources.quantities import parse_quantity
from interlock.resources.suggestions import Findings, child, did_you_mean, shortened
from interlock.resources.transitions import has_ended, is_admitted
from interlock.resources.variables import PREFIXES, longest_values, names_in, texts_of

MAX_OBJECT_BYTES = 1 << 20
MAX_TASKS = 10_000
MAX_RETRIES = 1_000
MAX_LOCKS = 64
MAX_LOCK_LIMIT = 1_000_000
MAX_OPEN_FILES = 1 << 20
MAX_LINE = 1_000
#: The kernel takes no longer argument or variable.
MAX_ARGUMENT_BYTES = (1 << 17) - 1

_LOCK_KEY = re.compile(r"[A-Za-z0-9._/:-]{1,253}")
_ENV_NAME = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*")
_ARG_NAME = re.compile(r"[A-Za-z0-9_.-]{1,253}")
_MATRIX_NAME = re.compile(r"[a-z0-9_-]{1,63}")
_ACCOUNT = re.compile(r"[0-9]{1,10}|[A-Za-z_][A-Za-z0-9_.@-]{0,254}\$?")
_KEY_RULE = "expected 1 to 253 letters, digits, '.', '_', '-', '/' and ':'"
_API_VERSIONS = {kind.type: kind.api_version for kind in KINDS.values()}
_ZERO = timedelta(0)
_SECOND = timedelta(seconds=1)


def problems_of(resource: Resource) -> tuple[Problem, ...]:
    """Everything that is wrong with a resource, in the order of its fields."""
    found = Findings()
    api_version = _API_VERSIONS[type(resource)]
    if resource.api_version != api_version:
        found.add("apiVersion", f"expected {api_version}", resource.api_version)
    _check_names(type(resource), resource.metadata, found)
    if isinstance(resource, Job):
        _check_job(resource.spec, found)
    if isinstance(resource, Lock) and not _LOCK_KEY.fullmatch(resource.spec.key):
        found.add("spec.key", _KEY_RULE, resource.spec.key)
    return found.problems if len(found) else ()


def problems_of_spec(spec: JobSpec) -> tuple[Problem, ...]:
    """What is wrong with what a Job asks for, its names left out."""
    found = Findings()
    _check_job(spec, found)
    return found.problems if len(found) else ()


def problems_of_names(kind: str, metadata: Metadata) -> tuple[Problem, ...]:
    """What is wrong with the metadata alone, when the rest cannot be read."""
    found = Findings()
    _check_names(KINDS[kind].type, metadata, found)
    return found.problems


def _check_names(cls: type[Resource], metadata: Metadata, to: Findings) -> None:
    dotted = cls is Lease
    longest = MAX_JOB_NAME if cls is Job else MAX_SUBDOMAIN if dotted else MAX_LABEL
    check_metadata(metadata, longest, dotted=dotted, to=to)


def _check_job(spec: JobSpec, to: Findings) -> None:
    if (spec.process is None) == (spec.noop is None):
        number = "none" if spec.process is None else "both"
        to.add("spec", f"expected exactly one of process and noop, found {number}")
    if spec.process is not None:
        _check_process(spec.process, to)
    if spec.parallelism is not None:
        _check_parallelism(spec.parallelism, to)
    if spec.retries is not _NO_RETRIES:
        _check_retries(spec.retries, to)
    _check_times(spec, to)
    if spec.locks:
        _check_locks(spec.locks, to)
    _within("spec.priority", spec.priority, -(1 << 31), (1 << 31) - 1, to)
    if spec.title or spec.suspend_reason:
        _check_line("spec.title", spec.title, to)
        _check_line("spec.suspendReason", spec.suspend_reason, to)
    if spec.args or spec.substitutions:
        _check_values(spec, to)
    _check_variables(spec, to)


_NO_RETRIES = JobSpec().retries


def _check_process(process: ProcessSpec, to: Findings) -> None:
    if not process.command:
        to.add("spec.process.command", "expected the program to run", [])
    elif not process.command[0]:
        to.add("spec.process.command[0]", "expected the program to run", "")
    _check_words("spec.process.command", process.command, to)
    if process.args:
        _check_words("spec.process.args", process.args, to)
    for name, value in process.env.items():
        if not _ENV_NAME.fullmatch(name):
            message = "bad name: expected letters, digits, '_', '-' and '.', no digit first"
            to.add(child("spec.process.env", name), message, name)
        if _is_suspect(value):
            _check_word(child("spec.process.env", name), value, to)
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


def _check_words(path: str, words: Iterable[str], to: Findings) -> None:
    for at, word in enumerate(words):
        if _is_suspect(word):
            _check_word(f"{path}[{at}]", word, to)


def _is_suspect(word: str) -> bool:
    """Whether a text needs a closer look. Paths are dear to make, so few are made for nothing."""
    return "\0" in word or len(word) > MAX_ARGUMENT_BYTES // 4


def _check_word(path: str, word: str, to: Findings) -> None:
    if "\0" in word:
        to.add(path, "holds a NUL byte, which no program can be given", word)
    elif len(word) > MAX_ARGUMENT_BYTES // 4 and len(word.encode()) > MAX_ARGUMENT_BYTES:
        to.add(path, f"expected at most {MAX_ARGUMENT_BYTES} bytes", word)


def _check_path(path: str, value: str, to: Findings) -> None:
    if not value:
        to.add(path, "expected a path", value)
    _check_word(path, value, to)


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
        _within(f"{path}.openFiles", limits.open_files, 1, MAX_OPEN_FILES, to)
    if limits.nice is not None:
        _within(f"{path}.nice", limits.nice, 0, 19, to)


def _check_parallelism(parallelism: Parallelism, to: Findings) -> None:
    path = "spec.parallelism"
    count, keys, matrix = parallelism.count, parallelism.keys, parallelism.matrix
    given = (count is not None) + (keys is not None) + (matrix is not None)
    if given != 1:
        to.add(path, f"expected exactly one of count, keys and matrix, found {given}")
    if count is not None:
        _within(f"{path}.count", count, 1, MAX_TASKS, to)
    if keys is not None:
        _within(f"{path}.keys", len(keys), 1, MAX_TASKS, to, of="keys")
        _check_choices(f"{path}.keys", keys, to)
    if matrix is not None:
        _check_matrix(f"{path}.matrix", matrix, to)
    if parallelism.at_once is not None:
        _within(f"{path}.atOnce", parallelism.at_once, 1, MAX_TASKS, to)


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
        elif _is_suspect(choice):
            _check_word(f"{path}[{at}]", choice, to)
        seen.add(choice)


def _check_retries(retries: Retries, to: Findings) -> None:
    path = "spec.retries"
    _within(f"{path}.limit", retries.limit, 0, MAX_RETRIES, to)
    if not 0.0 <= retries.jitter <= 1.0:
        to.add(f"{path}.jitter", "expected 0 to 1", retries.jitter)
    if not retries.retry_exit_codes and not retries.fail_exit_codes:
        return
    for name, codes in (
        ("retryExitCodes", retries.retry_exit_codes),
        ("failExitCodes", retries.fail_exit_codes),
    ):
        for at, code in enumerate(codes):
            _within(f"{path}.{name}[{at}]", code, 0, 255, to)
    both = set(retries.retry_exit_codes) & set(retries.fail_exit_codes)
    for code in sorted(both):
        to.add(f"{path}.failExitCodes", "is among retryExitCodes too", code)


def _check_times(spec: JobSpec, to: Findings) -> None:
    if spec.task_timeout is not None:
        _positive("spec.taskTimeout", spec.task_timeout, to)
    if spec.timeout is not None:
        _positive("spec.timeout", spec.timeout, to)
    after, by = spec.start_after, spec.start_by
    if after is not None and by is not None and by <= after:
        to.add("spec.startBy", "expected a moment after spec.startAfter", by.isoformat())


def _positive(path: str, length: Duration, to: Findings) -> None:
    if length <= _ZERO:
        to.add(path, "expected more than 0s", str(length))


def _check_locks(locks: tuple[LockRequest, ...], to: Findings) -> None:
    if len(locks) > MAX_LOCKS:
        to.add("spec.locks", f"expected at most {MAX_LOCKS} locks", len(locks))
    seen: set[str] = set()
    for at, lock in enumerate(locks):
        if not _LOCK_KEY.fullmatch(lock.key):
            to.add(f"spec.locks[{at}].key", _KEY_RULE, lock.key)
        elif lock.key in seen:
            to.add(f"spec.locks[{at}].key", "is there twice", lock.key)
        seen.add(lock.key)
        if not 1 <= lock.limit <= MAX_LOCK_LIMIT:
            to.add(f"spec.locks[{at}].limit", f"expected 1 to {MAX_LOCK_LIMIT}", lock.limit)


def _check_line(path: str, line: str, to: Findings) -> None:
    if len(line) > MAX_LINE:
        to.add(path, f"expected at most {MAX_LINE} characters", line)
    elif not line.isprintable():
        # Also keeps terminal escapes out of everybody's tables.
        to.add(path, "expected one line without control characters", line)


def _check_values(spec: JobSpec, to: Findings) -> None:
    for name, value in spec.args.items():
        if not _ARG_NAME.fullmatch(name):
            message = "bad name: expected letters, digits, '_', '.' and '-'"
            to.add(child("spec.args", name), message, name)
        _check_word(child("spec.args", name), value, to)
    for name, value in spec.substitutions.items():
        prefix, _, rest = name.partition(".")
        if prefix not in PREFIXES or not _ARG_NAME.fullmatch(rest):
            message = 'expected the full name of a variable, such as "option.region"'
            to.add(child("spec.substitutions", name), message, name)
        _check_word(child("spec.substitutions", name), value, to)


def _check_variables(spec: JobSpec, to: Findings) -> None:
    """Refuse unknown variables, and texts that would grow beyond what a program can be given.

    A long value that is named many times would otherwise take all memory when a task starts.
    """
    lengths: dict[str, int] | None = None
    for field, at, text in texts_of(spec):
        if "${" in text:
            lengths = lengths or longest_values(spec)
            _check_text(field, at, text, lengths, to)


def _check_text(
    field: str, at: str | int | None, text: str, lengths: dict[str, int], to: Findings
) -> None:
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


def _within(path: str, value: int, low: int, high: int, to: Findings, of: str = "") -> None:
    if not low <= value <= high:
        to.add(path, f"expected {low} to {high}{of and ' ' + of}", value)


#: Fields that tasks were, or may have been, started with.
_FROZEN = {
    "process": "process",
    "noop": "noop",
    "parallelism": "parallelism",
    "completion": "completion",
    "start_after": "startAfter",
    "args": "args",
    "substitutions": "substitutions",
}


def check_update(old: Resource, new: Resource) -> tuple[Problem, ...]:
    """What a change asks for that is no longer possible. Of the metadata only our hold is kept.

    Before a Job is admitted everything may change. From then on, what its tasks are made of may
    not; once it has ended, only how long it is kept.
    """
    found = Findings()
    if isinstance(old, Job) and isinstance(new, Job) and old.spec != new.spec:
        if has_ended(old):
            _refuse_after_end(old.spec, new.spec, found)
        elif is_admitted(old):
            _refuse_after_admission(old.spec, new.spec, found)
    if isinstance(old, Job) and not has_ended(old) and _lets_go(old, new):
        message = f"{JOB_FINALIZER} stays until the Job's tasks are proven gone"
        found.add("metadata.finalizers", message, list(new.metadata.finalizers))
    if isinstance(old, Lock) and isinstance(new, Lock) and old.spec.key != new.spec.key:
        found.add("spec.key", "may not change", new.spec.key)
    return found.problems


def _lets_go(old: Resource, new: Resource) -> bool:
    """Whether a change would take the hold off a Job that may still have tasks."""
    held, kept = old.metadata.finalizers, new.metadata.finalizers
    return JOB_FINALIZER in held and JOB_FINALIZER not in kept


def _refuse_after_admission(old: JobSpec, new: JobSpec, to: Findings) -> None:
    for name, path in _FROZEN.items():
        if getattr(old, name) != getattr(new, name):
            to.add(f"spec.{path}", "may not change once the Job is admitted")
    if {lock.key for lock in old.locks} != {lock.key for lock in new.locks}:
        to.add("spec.locks", "keys may not change once the Job is admitted")


def _refuse_after_end(old: JobSpec, new: JobSpec, to: Findings) -> None:
    for name, path in zip(old.__struct_fields__, old.__struct_encode_fields__, strict=True):
        if name != "ttl_after_finished" and getattr(old, name) != getattr(new, name):
            to.add(f"spec.{path}", "may not change once the Job has ended")
