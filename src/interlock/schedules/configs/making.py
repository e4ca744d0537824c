"""Making Jobs of a config: for a due time, or because somebody asks for one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from interlock.errors import Problem
from interlock.findings import Findings, child, did_you_mean
from interlock.resources.door.checking import problems_of
from interlock.resources.job import (
    JOB_FINALIZER,
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    RELEASED_BY_ANNOTATION,
    RETRY_OF_ANNOTATION,
    Job,
    LockRequest,
    WhenTaken,
)
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import API_VERSION, Metadata, OwnerReference
from interlock.resources.naming import GENERATED, MAX_JOB_NAME, cut_name
from interlock.resources.option_values import evaluate_options
from interlock.resources.schedule import (
    CONFIG_LABEL,
    CONTROLLED_LABEL,
    MANUAL_ANNOTATION,
    RUN_ID_ANNOTATION,
    SCHEDULED_AT_ANNOTATION,
    STOPPED_BECAUSE_ANNOTATION,
    STOPPED_BY_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    SUSPENDED_BY_ANNOTATION,
    TEMPLATE_HASH_ANNOTATION,
    written_moment,
)
from interlock.resources.variables import CONFIG_NAMES, longest_values

#: What is said about one Job, and so is not taken from a template.
_OF_ONE_JOB = (
    MANUAL_ANNOTATION,
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    RELEASED_BY_ANNOTATION,
    RETRY_OF_ANNOTATION,
    RUN_ID_ANNOTATION,
    SCHEDULED_AT_ANNOTATION,
    STOPPED_BECAUSE_ANNOTATION,
    STOPPED_BY_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    SUSPENDED_BY_ANNOTATION,
    TEMPLATE_HASH_ANNOTATION,
)
_SUFFIX = 5


class Made(Struct, frozen=True):
    """A Job to be created, and what is wrong with it."""

    job: Job
    problems: tuple[Problem, ...] = ()


def scheduled_job(config: JobConfig, at: datetime, name: str | None = None) -> Made:
    """The Job for a due time. It does not start before it is in the config's books.

    Everything about it follows from the config and the due time, so whoever makes it twice makes
    one.
    """
    values, problems = evaluate_options(config.spec.options, {})
    metadata = Metadata(
        name=name or job_name(config, at), annotations={SCHEDULED_AT_ANNOTATION: written_moment(at)}
    )
    return _checked(_job(config, metadata, values, at), problems)


def job_on_demand(
    config: JobConfig,
    values: Mapping[str, object],
    now: datetime,
    *,
    name: str = "",
    generate_name: str = "",
    start_after: datetime | None = None,
    policy: WhenTaken | None = None,
    substitutions: Mapping[str, str] = {},
) -> Made:
    """The Job that somebody asks for, with values for the options.

    Without a name it gets one made of the config's. `policy` is what it does when as many run as
    may; None is what the config says. `substitutions` are values of variables by their full
    names, and win over everything. It needs no books: no schedule made it.
    """
    evaluated, problems = evaluate_options(config.spec.options, values)
    problems += _unknown_variables(config, substitutions)
    if not name and not generate_name:
        generate_name = f"{cut_name(config.metadata.name, MAX_JOB_NAME - GENERATED - 1)}-"
    metadata = Metadata(
        name=name, generate_name=generate_name, annotations={MANUAL_ANNOTATION: "true"}
    )
    job = _job(config, metadata, evaluated, now, policy)
    spec = replace(job.spec, substitutions=job.spec.substitutions | dict(substitutions))
    if start_after is not None:
        spec = replace(spec, start_after=start_after)
    return _checked(replace(job, spec=spec), problems)


def job_name(config: JobConfig, at: datetime) -> str:
    """The name of the Job for a due time. A long name of the config is cut to make room."""
    end = f"-{int(at.timestamp())}"
    return cut_name(config.metadata.name, MAX_JOB_NAME - len(end)) + end


def spare_name(config: JobConfig, at: datetime) -> str:
    """The name of the Job for a due time when somebody else's has its name: the config's own."""
    own = sha256(config.metadata.uid.encode()).hexdigest()[:_SUFFIX]
    end = f"-{int(at.timestamp())}-{own}"
    return config.metadata.name[: MAX_JOB_NAME - len(end)] + end


def lock_of(config: JobConfig, policy: WhenTaken | None = None) -> LockRequest:
    """The lock that keeps Jobs of a config from running too many at once."""
    concurrency = config.spec.concurrency
    when_taken = policy or concurrency.policy
    # Only who waits can find the line full.
    waits = when_taken is WhenTaken.ENQUEUE
    return LockRequest(
        key=lock_key(config),
        limit=concurrency.max_concurrency,
        when_taken=when_taken,
        max_waiting=concurrency.max_queued if waits else None,
    )


def lock_key(config: JobConfig) -> str:
    """The key of that lock."""
    return f"jobconfig/{config.metadata.name}"


def _job(
    config: JobConfig,
    metadata: Metadata,
    options: dict[str, str],
    at: datetime,
    policy: WhenTaken | None = None,
) -> Job:
    template = config.spec.template
    given = template.metadata
    annotations = {n: text for n, text in given.annotations.items() if n not in _OF_ONE_JOB}
    labels = {name: text for name, text in given.labels.items() if name != CONTROLLED_LABEL}
    owner = OwnerReference(
        api_version=API_VERSION,
        kind="JobConfig",
        name=config.metadata.name,
        uid=config.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    own = lock_of(config, policy)
    others = tuple(lock for lock in template.spec.locks if lock.key != own.key)
    # What the template substitutes wins over every other value, as in a Job by itself.
    substitutions = options | _variables(config, at) | template.spec.substitutions
    return Job(
        metadata=replace(
            metadata,
            namespace=config.metadata.namespace,
            labels=labels | {CONFIG_LABEL: config.metadata.name},
            annotations=annotations | metadata.annotations,
            finalizers=(JOB_FINALIZER,),
            owner_references=(owner,),
        ),
        spec=replace(template.spec, locks=(own, *others), substitutions=substitutions),
    )


def _variables(config: JobConfig, at: datetime) -> dict[str, str]:
    """What a Job knows of the config it is of, as it was when the Job was made."""
    metadata = config.metadata
    return {
        "jobconfig.name": metadata.name,
        "jobconfig.namespace": metadata.namespace,
        "jobconfig.uid": metadata.uid,
        "jobconfig.scheduled_at": written_moment(at.astimezone(UTC)),
    }


def _unknown_variables(config: JobConfig, substitutions: Mapping[str, str]) -> tuple[Problem, ...]:
    """The names that are no variable of the config's Jobs: a value for them would do nothing."""
    options = (f"option.{option.name}" for option in config.spec.options)
    known = {*longest_values(config.spec.template.spec), *CONFIG_NAMES, *options}
    found = Findings()
    for name, value in substitutions.items():
        if name not in known:
            message = f"unknown variable{did_you_mean(name, sorted(known))}"
            found.add(child("spec.substitutions", name), message, value)
    return found.problems


def _checked(job: Job, problems: tuple[Problem, ...]) -> Made:
    # Without the values of its options a Job has variables that are not known: the same thing
    # would be told twice.
    return Made(job, problems or problems_of(job))
