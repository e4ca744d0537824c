"""Write options: how a write or a deletion is to be done, by the query and the body."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from interlock.api.answers import RefusedError, bad_request
from interlock.api.requests import Media, Request
from interlock.api.views import include_object
from interlock.resources.door.validation import FieldValidation
from interlock.store.contract import DeleteOptions, Propagation


class WriteOptions(Struct, frozen=True):
    """The options of create, update and patch."""

    dry_run: bool
    field_validation: FieldValidation


_PLAIN = WriteOptions(False, FieldValidation.WARN)


def write_options(request: Request) -> WriteOptions:
    """The options in the query of a write; as in Kubernetes, unknown fields warn by default."""
    if not request.query_string:
        return _PLAIN
    query = request.query
    # Before anything is written: an answer that cannot be shown comes too late.
    include_object(request)
    given = query.get("fieldValidation", FieldValidation.WARN)
    try:
        validation = FieldValidation(given)
    except ValueError:
        raise bad_request(
            f"fieldValidation: expected Strict, Warn or Ignore, got {given[:40]!r}"
        ) from None
    return WriteOptions(_is_dry(query.get("dryRun")), validation)


def _is_dry(given: str | None) -> bool:
    if given not in (None, "All"):
        raise bad_request(f"dryRun: expected All, got {given[:40]!r}")
    return given == "All"


class _Preconditions(Struct, frozen=True, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteBody(Struct, frozen=True, rename="camel"):
    """`DeleteOptions` as clients send them; what else they say is left out."""

    kind: str = "DeleteOptions"
    api_version: str = ""
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: _Preconditions | None = None
    dry_run: Annotated[list[str], Meta(max_length=1)] | None = None
    grace_period_seconds: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


_DELETE_BODY = msgspec.json.Decoder(_DeleteBody)


class Deletion(Struct, frozen=True):
    """How to delete, and whether only to say what would happen."""

    options: DeleteOptions
    dry_run: bool


def deletion(request: Request, data: bytes) -> Deletion:
    """The options of a deletion; the body wins over the query."""
    body = _read_delete_body(request, data)
    query = request.query
    asked = query.get("propagationPolicy")
    _propagation(asked)
    policy = asked if body.propagation_policy is None else body.propagation_policy
    request.number("gracePeriodSeconds")
    include_object(request)
    orphan = body.orphan_dependents
    if orphan is None and "orphanDependents" in query:
        orphan = request.flag("orphanDependents")
    if policy is not None and orphan is not None:
        raise bad_request("propagationPolicy and orphanDependents may not both be given")
    if policy is None and orphan is not None:
        policy = Propagation.ORPHAN if orphan else Propagation.BACKGROUND
    _is_dry(query.get("dryRun"))
    dry = body.dry_run[0] if body.dry_run else query.get("dryRun")
    wanted = body.preconditions or _Preconditions()
    options = DeleteOptions(
        propagation=_propagation(policy),
        uid=wanted.uid or None,
        resource_version=wanted.resource_version or None,
    )
    return Deletion(options, _is_dry(dry))


def _propagation(policy: str | None) -> Propagation | None:
    if policy is None:
        return None
    try:
        return Propagation(policy)
    except ValueError:
        raise RefusedError(
            422,
            f"propagationPolicy: expected Background, Foreground or Orphan, got {policy[:40]!r}",
        ) from None


def _read_delete_body(request: Request, data: bytes) -> _DeleteBody:
    if not data:
        return _DeleteBody()
    if request.media() is not Media.JSON:
        raise RefusedError(415, "the options of a deletion must be JSON")
    try:
        body = _DELETE_BODY.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the options of the deletion cannot be read: {error}") from error
    if body.kind != "DeleteOptions":
        raise bad_request(f"expected DeleteOptions, got a {body.kind[:40]!r}")
    return body
