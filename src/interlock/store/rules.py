"""Write rules: what a write makes of a resource, shared by every backend, all of them pure.

They are the Kubernetes API server's rules: which fields the caller may write with which verb,
when the generation moves, what holds a resource that is to go.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol, TypeVar, cast

import msgspec
from msgspec.structs import replace

from interlock.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    Problem,
)
from interlock.resources.cluster import Namespace, NamespaceStatus
from interlock.resources.kinds import KINDS, ByKind, Kind
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.store.contract import DeleteOptions, Propagation

R = TypeVar("R", bound=Resource)

#: Exists from the beginning, and for good.
DEFAULT_NAMESPACE = "default"
#: Kept on a namespace until everything in it is gone.
CONTENTS_FINALIZER = "interlock.dev/contents"
#: Kept on a resource until its dependents are gone.
FOREGROUND_FINALIZER = "foregroundDeletion"
#: Kept on a resource until its dependents were let go of.
ORPHAN_FINALIZER = "orphan"


class _Whole(Protocol):
    """A resource with both of its halves; every kind has them."""

    @property
    def metadata(self) -> Metadata: ...
    @property
    def spec(self) -> object: ...
    @property
    def status(self) -> object: ...


def _empty_status(kind: Kind) -> object:
    (field,) = (f for f in msgspec.structs.fields(kind.type) if f.name == "status")
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


#: The status that new resources of a kind begin with; None for kinds without one.
_EMPTY_STATUS: ByKind[Any] = ByKind(lambda kind: _empty_status(kind) if kind.has_status else None)


def kind_of(name: str) -> Kind:
    """The kind of a name.

    Raises:
        BadRequestError: There is no such kind.
    """
    kind = KINDS.get(name)
    if kind is None:
        raise BadRequestError(f"there is no kind {name!r}")
    return kind


def created(resource: R, key: Key, *, uid: str, version: int, now: datetime) -> R:
    """The resource as it is stored first.

    Raises:
        BadRequestError: A namespace where the kind has none, or none where it needs one.
    """
    kind, namespace, name = key
    given = resource.metadata
    if KINDS[kind].namespaced is not bool(namespace):
        raise _wrong_scope(kind, namespace)
    finalizers = given.finalizers
    if kind == "Namespace" and CONTENTS_FINALIZER not in finalizers:
        finalizers = (*finalizers, CONTENTS_FINALIZER)
    metadata = Metadata(
        name=name,
        generate_name=given.generate_name,
        namespace=namespace,
        uid=uid,
        resource_version=str(version),
        generation=1,
        creation_timestamp=now,
        creation_version=version,
        labels=given.labels,
        annotations=given.annotations,
        finalizers=finalizers,
        owner_references=given.owner_references,
    )
    empty = _EMPTY_STATUS[kind]
    if empty is None:
        return replace(resource, metadata=metadata)
    return replace(resource, metadata=metadata, status=empty)


def generated_key(resource: Resource, suffix: str) -> Key:
    """Where to store a resource that has only the beginning of a name.

    Raises:
        InvalidError: It does not have that either.
    """
    metadata = resource.metadata
    if metadata.generate_name:
        return Key(resource.kind, metadata.namespace, metadata.generate_name + suffix)
    problem = Problem("metadata.name", "a name or generateName is required")
    raise InvalidError(resource.kind, "", [problem])


def _wrong_scope(kind: str, namespace: str) -> BadRequestError:
    if namespace:
        return BadRequestError(f"a {kind} has no namespace, found {namespace!r}")
    return BadRequestError(f"a {kind} needs a namespace")


def updated(stored: R, given: R, *, version: int) -> R:
    """The stored resource with the spec and metadata that were given.

    Returns `stored` itself when nothing would change.

    Raises:
        ConflictError: `given` was read from another version, or is another object.
        InvalidError: A finalizer would be added to a resource that is going.
    """
    held, wanted = stored.metadata, given.metadata
    check_version(stored.key, held, uid=wanted.uid, resource_version=wanted.resource_version)
    if held.deletion_timestamp is not None:
        _refuse_new_finalizers(stored, wanted)
    same_spec = _same_spec(stored, given)
    if same_spec and _same_metadata(held, wanted):
        return stored
    metadata = replace(
        held,
        resource_version=str(version),
        generation=held.generation if same_spec else held.generation + 1,
        labels=wanted.labels,
        annotations=wanted.annotations,
        finalizers=wanted.finalizers,
        owner_references=wanted.owner_references,
    )
    if _EMPTY_STATUS[stored.kind] is None:
        return replace(given, metadata=metadata)
    return replace(given, metadata=metadata, status=cast("_Whole", stored).status)


def with_ties(stored: R, given: R) -> R:
    """The stored resource with the finalizers and owners that were given, as `given` was read."""
    wanted = given.metadata
    metadata = replace(
        stored.metadata,
        uid=wanted.uid,
        resource_version=wanted.resource_version,
        finalizers=wanted.finalizers,
        owner_references=wanted.owner_references,
    )
    return replace(stored, metadata=metadata)


def _same_spec(stored: Resource, given: Resource) -> bool:
    """Whether all but metadata and status is the same. Structs are compared, never bytes."""
    old, new = cast("_Whole", stored), cast("_Whole", given)
    return bool(old.spec == new.spec) and stored.api_version == given.api_version


def _same_metadata(held: Metadata, wanted: Metadata) -> bool:
    return (
        held.labels == wanted.labels
        and held.annotations == wanted.annotations
        and held.finalizers == wanted.finalizers
        and held.owner_references == wanted.owner_references
    )


def _refuse_new_finalizers(stored: Resource, wanted: Metadata) -> None:
    new = [name for name in wanted.finalizers if name not in stored.metadata.finalizers]
    if new:
        problem = Problem(
            "metadata.finalizers", "no finalizer can be added to a resource that is going", new
        )
        raise InvalidError(stored.kind, stored.metadata.name, [problem])


def with_status(stored: R, given: R, *, version: int) -> R:
    """The stored resource with the status that was given; `stored` itself if it is the same.

    Raises:
        ConflictError: `given` was read from another version, or is another object.
        BadRequestError: The kind has no status.
    """
    held, wanted = stored.metadata, given.metadata
    check_version(stored.key, held, uid=wanted.uid, resource_version=wanted.resource_version)
    if _EMPTY_STATUS[stored.kind] is None:
        raise BadRequestError(f"a {stored.kind} has no status")
    status = cast("_Whole", given).status
    if cast("_Whole", stored).status == status:
        return stored
    return replace(stored, metadata=replace(held, resource_version=str(version)), status=status)


def check_version(key: Key, held: Metadata, *, uid: str, resource_version: str) -> None:
    """Make sure that the caller means this object, at this version; empty means any.

    Raises:
        ConflictError: It does not.
    """
    if resource_version and resource_version != held.resource_version:
        raise ConflictError(key, expected=resource_version, found=held.resource_version)
    if uid and uid != held.uid:
        raise ConflictError(key, expected=f"uid {uid}", found=f"uid {held.uid}")


def to_delete(stored: R, options: DeleteOptions, *, version: int, now: datetime) -> R:
    """The resource as deleting leaves it: removed when `is_removable`, else marked as going.

    Returns `stored` itself when it is marked already and nothing would change.

    Raises:
        ConflictError: A precondition does not hold.
        ForbiddenError: It is the namespace that must always be there.
    """
    key, held = stored.key, stored.metadata
    check_version(key, held, uid=options.uid or "", resource_version=options.resource_version or "")
    if key == ("Namespace", "", DEFAULT_NAMESPACE):
        raise ForbiddenError("the namespace default can not be deleted")
    finalizers = _deletion_finalizers(held.finalizers, options.propagation)
    if not finalizers:
        return replace(stored, metadata=replace(held, finalizers=(), resource_version=str(version)))
    if held.deletion_timestamp is not None:
        if finalizers == held.finalizers:
            return stored
        return replace(
            stored, metadata=replace(held, finalizers=finalizers, resource_version=str(version))
        )
    going = replace(
        held,
        finalizers=finalizers,
        resource_version=str(version),
        generation=held.generation + 1,
        deletion_timestamp=now,
        deletion_grace_period_seconds=0,
    )
    marked = replace(stored, metadata=going)
    if isinstance(marked, Namespace):
        return replace(marked, status=NamespaceStatus(phase="Terminating"))
    return marked


def _deletion_finalizers(held: tuple[str, ...], propagation: Propagation | None) -> tuple[str, ...]:
    """The finalizers with those that carry out the propagation, and not those of another one."""
    if propagation is None:
        return held
    kept = tuple(name for name in held if name not in (FOREGROUND_FINALIZER, ORPHAN_FINALIZER))
    if propagation is Propagation.FOREGROUND:
        return (*kept, FOREGROUND_FINALIZER)
    if propagation is Propagation.ORPHAN:
        return (*kept, ORPHAN_FINALIZER)
    return kept


def is_removable(metadata: Metadata) -> bool:
    """Whether a resource that is going has nothing left that holds it."""
    return metadata.deletion_timestamp is not None and not metadata.finalizers


def with_version(resource: R, version: int | str) -> R:
    """The same resource at another version."""
    return replace(
        resource, metadata=replace(resource.metadata, resource_version=str(version or ""))
    )
