"""Redaction: what an owner names as secret is not stored, and so is in no status, log or journal.

It is taken out where a resource comes in. Work does not get it either: it is given a reference, the
name of a file or of a variable, and reads the secret itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlock.findings import Findings, child
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job, JobSpec
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Resource

R = TypeVar("R", bound=Resource)

#: What stands in the place of a secret.
REDACTED = "[redacted]"
#: Where whoever applies a file keeps what was sent, spec and all.
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def redacted(resource: R) -> R:
    """The resource without the values that it names as secret; itself when it names none."""
    spec = _with_redaction(resource)
    if spec is None:
        return resource
    notes = dict(resource.metadata.annotations)
    notes.pop(_APPLIED, None)
    return replace(resource, spec=spec, metadata=replace(resource.metadata, annotations=notes))


def _with_redaction(resource: Resource) -> Struct | None:
    """The spec of a resource without secrets; None when there are none in it."""
    match resource:
        case Job(spec=spec):
            made = redacted_spec(spec)
            return None if made is spec else made
        case JobConfig(spec=config):
            made = redacted_spec(config.template.spec)
            if made is config.template.spec:
                return None
            return replace(config, template=replace(config.template, spec=made))
        case ControlledJob(spec=controlled):
            made = redacted_spec(controlled.job_template.spec)
            if made is controlled.job_template.spec:
                return None
            template = replace(controlled.job_template, spec=made)
            return replace(controlled, job_template=template)
    return None


def redacted_spec(spec: JobSpec) -> JobSpec:
    """What a Job asks for without the arguments that it names as secret; itself without any."""
    if not spec.redact:
        return spec
    args = _without(spec.args, spec.redact)
    python = spec.python
    if python is not None:
        python = replace(python, args=_without(python.args, spec.redact))
    made = replace(spec, args=args, python=python)
    return spec if made == spec else made


def check_redaction(
    spec: JobSpec, texts: Iterable[tuple[str, str | int | None, str]], to: Findings
) -> None:
    """Refuse work that would be given what is not stored: `texts` with their fields and places."""
    secrets = [f"${{args.{name}}}" for name in spec.redact]
    for field, at, text in texts:
        for secret in secrets:
            if secret in text:
                message = f"names {secret}, which spec.redact keeps from being stored"
                hint = "give the name of a file or of a variable that holds it"
                to.add(field if at is None else child(field, at), f"{message}: {hint}", text)


def _without(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    made = dict(given)
    for name in names:
        if name in made:
            made[name] = REDACTED
        else:
            _put_out(made, name.split("."))
    return made


def _put_out(held: dict[str, Any], way: list[str]) -> None:
    """Take out what is found by a way of names, and leave what was given untouched."""
    name, *further = way
    if name not in held:
        return
    held[name] = _inside(held[name], further) if further else REDACTED


def _inside(value: Any, way: list[str]) -> Any:
    """The value without what is found by a way of names; in a list, in whatever it holds."""
    if isinstance(value, list | tuple):
        return [_inside(one, way) for one in value]
    if not isinstance(value, dict):
        return value
    made = dict(value)
    _put_out(made, way)
    return made
