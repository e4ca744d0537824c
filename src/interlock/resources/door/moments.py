"""UTC conversion of moments that people write: past the door there is no other clock."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlock.errors import InvalidError, Problem
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Resource

_S = TypeVar("_S", bound=Struct)

#: The fields of moments, each with its name in JSON.
_OF_JOB = (("kill_at", "killAt"), ("start_after", "startAfter"), ("start_by", "startBy"))
_OF_SCHEDULE = (("not_before", "notBefore"), ("not_after", "notAfter"))
_OF_OVERRIDE = (("begin", "from"), ("until", "until"))


class _BeyondError(Exception):
    """In UTC the moment lies before the year 1, or after 9999."""

    def __init__(self, path: str, moment: datetime) -> None:
        super().__init__(path)
        self.problem = Problem(
            path, "expected a moment after the year 1 and before 10000", moment.isoformat()
        )


def in_utc(resource: Resource) -> Resource:
    """The resource with all moments that people write in UTC.

    Raises:
        InvalidError: A moment has none.
    """
    try:
        match resource:
            case Job():
                return _with(resource, _moved(resource.spec, _OF_JOB, "spec"))
            case JobConfig():
                return _with(resource, _all_moved(resource.spec, "schedules", _OF_SCHEDULE))
            case ControlledJob():
                return _with(resource, _all_moved(resource.spec, "overrides", _OF_OVERRIDE))
    except _BeyondError as error:
        raise InvalidError(resource.kind, resource.metadata.name, [error.problem]) from error
    return resource


def _with(resource: Job | JobConfig | ControlledJob, spec: Struct) -> Resource:
    return resource if spec is resource.spec else replace(resource, spec=spec)


def _all_moved(spec: _S, name: str, fields: Iterable[tuple[str, str]]) -> _S:
    before: tuple[Any, ...] = getattr(spec, name)
    after = tuple(_moved(one, fields, f"spec.{name}[{at}]") for at, one in enumerate(before))
    if all(new is old for new, old in zip(after, before, strict=True)):
        return spec
    return replace(spec, **{name: after})


def _moved(noun: _S, fields: Iterable[tuple[str, str]], path: str) -> _S:
    moved: dict[str, datetime] = {}
    for name, written in fields:
        moment = getattr(noun, name)
        if moment is not None and moment.tzinfo is not UTC:
            try:
                moved[name] = moment.astimezone(UTC)
            except OverflowError as error:
                raise _BeyondError(f"{path}.{written}", moment) from error
    return replace(noun, **moved) if moved else noun
