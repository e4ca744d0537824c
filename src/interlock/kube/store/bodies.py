"""Request bodies of writes: only what the caller may say, as the server reads it.

Our own kinds are sent whole. Of Kubernetes' own kinds only what differs is sent, so that fields
we do not know survive our writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from interlock.resources.codec import encode, to_builtins
from interlock.resources.kinds import KINDS, ByKind
from interlock.resources.metadata import GROUP, Metadata, Resource
from interlock.store.contract import DeleteOptions

#: What every kind's status is before anyone wrote one; identical objects are left out on encoding.
_EMPTY_STATUS: ByKind[Any] = ByKind(
    lambda kind: next(f.default for f in fields(kind.type) if f.name == "status")
)


@runtime_checkable
class _Whole(Protocol):
    """A resource with a spec and a status, as all kinds that are stored have them."""

    @property
    def spec(self) -> Any: ...

    @property
    def status(self) -> Any: ...


class _Kind(Struct):
    kind: str = ""


_KIND = msgspec.json.Decoder(_Kind)


def to_create(resource: Resource) -> bytes:
    """A new resource; what the system fills in is left to it."""
    given = resource.metadata
    metadata = _said(given, generate_name=given.generate_name)
    if KINDS[resource.kind].group != GROUP:
        return encode(_plain(resource, metadata))
    return encode(replace(resource, metadata=metadata, status=_EMPTY_STATUS[resource.kind]))


def to_update(resource: Resource) -> bytes:
    """One of our resources with another spec or other metadata."""
    given = resource.metadata
    metadata = _said(given, uid=given.uid, resource_version=given.resource_version)
    return encode(replace(resource, metadata=metadata, status=_EMPTY_STATUS[resource.kind]))


def to_update_status(resource: Resource) -> bytes:
    """One of our resources with another status."""
    given = resource.metadata
    metadata = Metadata(
        name=given.name,
        namespace=given.namespace,
        uid=given.uid,
        resource_version=given.resource_version,
    )
    # Servers take the spec from what is stored; it is sent all the same, because an object
    # without one is no valid object to some of them.
    return encode(replace(resource, metadata=metadata))


def to_patch(stored: Resource, wanted: Resource, part: str) -> bytes | None:
    """What makes the stored one the wanted one, or None when nothing is to be done.

    It names the version it was made for: a resource that changed since is not patched.
    """
    if part:
        changes = _difference({"status": _status(stored)}, {"status": _status(wanted)})
    else:
        changes = _difference(_writable(stored), _writable(wanted))
    if not changes:
        return None
    metadata = dict(changes.get("metadata") or {})
    metadata["resourceVersion"] = stored.metadata.resource_version
    return encode({**changes, "metadata": metadata})


def to_ties(resource: Resource) -> bytes:
    """The finalizers and owners of a resource, for that version of that very object only.

    The record of who wrote which field is dropped with it. It is for those who apply a part of an
    object, and there is little left to apply once we tie it; kept up to date at every write of a
    status it takes an API server as long as all the rest of that write.
    """
    metadata = resource.metadata
    ties: dict[str, Any] = {
        "finalizers": list(metadata.finalizers),
        "ownerReferences": [to_builtins(owner) for owner in metadata.owner_references],
        "managedFields": [{}],
    }
    if metadata.uid:
        ties["uid"] = metadata.uid
    if metadata.resource_version:
        ties["resourceVersion"] = metadata.resource_version
    return encode({"metadata": ties})


def to_delete(options: DeleteOptions, *, uid: str, dry_run: bool) -> bytes:
    """How to delete, and only if what."""
    preconditions = {"uid": uid}
    if options.resource_version:
        preconditions["resourceVersion"] = options.resource_version
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
    }
    if options.propagation is not None:
        body["propagationPolicy"] = options.propagation.value
    if dry_run:
        body["dryRun"] = ["All"]
    return encode(body)


def is_resource(data: bytes, kind: str) -> bool:
    """Whether an answer is a resource of the kind, and not a word about it."""
    try:
        return _KIND.decode(data).kind == kind
    except msgspec.DecodeError:
        return False


def _said(
    given: Metadata, *, generate_name: str = "", uid: str = "", resource_version: str = ""
) -> Metadata:
    """What a caller may say of any resource, and more that belongs to this write."""
    return Metadata(
        name=given.name,
        namespace=given.namespace,
        labels=given.labels,
        annotations=given.annotations,
        finalizers=given.finalizers,
        owner_references=given.owner_references,
        generate_name=generate_name,
        uid=uid,
        resource_version=resource_version,
    )


def _plain(resource: Resource, metadata: Metadata) -> dict[str, Any]:
    body = {"apiVersion": resource.api_version, "kind": resource.kind}
    spec = {name: value for name, value in _spec(resource).items() if value is not None}
    return {**body, "metadata": to_builtins(metadata), "spec": spec}


def _writable(resource: Resource) -> dict[str, Any]:
    metadata = resource.metadata
    return {
        "metadata": {
            "labels": metadata.labels,
            "annotations": metadata.annotations,
            "finalizers": list(metadata.finalizers),
            "ownerReferences": to_builtins(metadata.owner_references),
        },
        "spec": _spec(resource),
    }


def _spec(resource: Resource) -> dict[str, Any]:
    """Every field of the spec, with None for what is empty: the server refuses empty names."""
    assert isinstance(resource, _Whole)
    spec = resource.spec
    return {f.encode_name: _value(getattr(spec, f.name)) for f in fields(type(spec))}


def _status(resource: Resource) -> Any:
    assert isinstance(resource, _Whole)
    return to_builtins(resource.status)


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        # Leases are read with exactly six digits after the point, also when they are zeros.
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if value in ("", ()):
        return None
    return to_builtins(value)


def _difference(old: Any, new: Any) -> dict[str, Any]:
    """A merge patch that makes `new` of `old`."""
    changes: dict[str, Any] = {}
    for name in {**old, **new}:
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            if inner := _difference(before, after):
                changes[name] = inner
        else:
            changes[name] = after
    return changes
