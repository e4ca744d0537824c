"""The codec of stored objects: straight from an API server's bytes to our structs.

An API server adds what we do not model. In the metadata of every kind it is passed over, and so
it is everywhere in Kubernetes' own kinds, which are therefore never replaced as a whole. Specs
and statuses of our own kinds stay strict: what is stored there and not known here was written by
another version of this software, and must not be lost by our next write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from interlock.kube.store.nesting_limit import bounded, decode_any
from interlock.resources.codec import decoder_for
from interlock.resources.kinds import ByKind, Kind
from interlock.resources.metadata import GROUP, Key, Metadata, Moment, OwnerReference, Resource


class WireOwner(Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """An owner reference, with whatever else there is."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class WireMetadata(Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """Metadata without what only the server needs, managed fields above all."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[WireOwner, ...] = ()


class ListMetadata(Struct, frozen=True, rename="camel", kw_only=True):
    """Which version a list is of, and how it goes on."""

    resource_version: str = "0"
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class Undecodable(NamedTuple):
    """A stored object that is none of ours as far as we can read."""

    key: Key
    uid: str
    version: int
    problem: str


class Items(NamedTuple):
    """A part of a list: what could be read, and what could not."""

    metadata: ListMetadata
    items: list[Resource]
    undecodable: list[Undecodable]


class Happening(NamedTuple):
    """A line of a watch: what happened to what; the raw object of anything but a change."""

    type: str
    resource: Resource | None
    version: int
    undecodable: Undecodable | None = None
    raw: bytes = b""


class _Identified(Struct, frozen=True):
    """The least that any object has."""

    metadata: WireMetadata = WireMetadata()


class _RawList(Struct, frozen=True):
    metadata: ListMetadata = ListMetadata()
    items: tuple[Raw, ...] = ()


class _RawEvent(Struct, frozen=True):
    type: str
    object: Raw


_IDENTIFIED = msgspec.json.Decoder(_Identified)
_RAW_LIST = msgspec.json.Decoder(_RawList)
_RAW_EVENT = msgspec.json.Decoder(_RawEvent)
_CHANGES = ("ADDED", "MODIFIED", "DELETED")


def _metadata(wire: WireMetadata) -> Metadata:
    return Metadata(
        name=wire.name,
        generate_name=wire.generate_name,
        namespace=wire.namespace,
        uid=wire.uid,
        resource_version=wire.resource_version,
        generation=wire.generation,
        creation_timestamp=wire.creation_timestamp,
        deletion_timestamp=wire.deletion_timestamp,
        deletion_grace_period_seconds=wire.deletion_grace_period_seconds,
        labels=wire.labels,
        annotations=wire.annotations,
        finalizers=wire.finalizers,
        owner_references=tuple(map(_owner, wire.owner_references)) if wire.owner_references else (),
    )


def _owner(wire: WireOwner) -> OwnerReference:
    return OwnerReference(
        api_version=wire.api_version,
        kind=wire.kind,
        name=wire.name,
        uid=wire.uid,
        controller=wire.controller,
        block_owner_deletion=wire.block_owner_deletion,
    )


def _half(kind: Kind, name: str) -> tuple[Any, Any, Callable[[Any], Any]]:
    """A spec or status on the wire: its type, its default, and how to make ours of it."""
    (field,) = (field for field in fields(kind.type) if field.name == name)
    strict: Any = field.type
    default = field.default
    if name == "spec" and kind.work_path:
        return strict, default, bounded(kind)
    if kind.group == GROUP:
        return strict, default, lambda value: value
    lenient = _lenient(strict)
    names = [f.name for f in fields(strict)]

    def make(value: Any) -> Any:
        return strict(**{each: getattr(value, each) for each in names})

    return lenient, lenient(), make


def _lenient(strict: Any) -> Any:
    """The same fields, without a word about others."""
    described: list[Any] = []
    for field in fields(strict):
        if field.default_factory is not msgspec.NODEFAULT:
            default = msgspec.field(name=field.encode_name, default_factory=field.default_factory)
        else:
            default = msgspec.field(name=field.encode_name, default=field.default)
        described.append((field.name, field.type, default))
    return msgspec.defstruct(f"Wire{strict.__name__}", described, frozen=True, kw_only=True)


class Wire:
    """Reads everything an API server sends about one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        spec_type, spec_default, self._spec = _half(kind, "spec")
        status_type, status_default, self._status = _half(kind, "status")
        described: list[Any] = [
            ("metadata", WireMetadata),
            # A kind whose spec must be there has no default for it.
            ("spec", spec_type, spec_default)
            if spec_default is not msgspec.NODEFAULT
            else ("spec", spec_type),
            ("status", status_type, status_default),
        ]
        wire_type = msgspec.defstruct(
            f"Wire{kind.name}", described, frozen=True, gc=False, kw_only=True
        )
        event_type = msgspec.defstruct(
            f"Wire{kind.name}Event", [("type", str), ("object", wire_type)], frozen=True, gc=False
        )
        list_type = msgspec.defstruct(
            f"Wire{kind.name}List",
            [("metadata", ListMetadata), ("items", list[wire_type])],  # type: ignore[valid-type]
            frozen=True,
        )
        self._one = decoder_for(wire_type)
        self._event = decoder_for(event_type)
        self._list = decoder_for(list_type)
        self._make = kind.type
        self._api_version = kind.api_version

    def one(self, data: bytes | Raw) -> Resource:
        """A single resource.

        Raises:
            msgspec.ValidationError: It is none that we know.
        """
        return self._ours(decode_any(self._one, data))

    def list(self, data: bytes) -> Items:
        """A list, or part of one. One bad item costs only itself."""
        try:
            read = self._list.decode(data)
            return Items(read.metadata, [self._ours(item) for item in read.items], [])
        except (msgspec.ValidationError, RecursionError):
            return self._list_one_by_one(data)

    def happening(self, line: bytes) -> Happening:
        """One line of a watch.

        Raises:
            msgspec.DecodeError: It is not JSON.
        """
        try:
            # Bookmarks and errors carry another object; servers write the type first.
            if line.startswith((b'{"type":"BOOKMARK"', b'{"type":"ERROR"')):
                return self._other(_RAW_EVENT.decode(line))
            read = self._event.decode(line)
            resource = self._ours(read.object)
        except (msgspec.ValidationError, RecursionError):
            return self._other(decode_any(_RAW_EVENT, line))
        if read.type not in _CHANGES:
            return self._other(_RAW_EVENT.decode(line))
        return Happening(read.type, resource, resource.version)

    def _ours(self, wire: Any) -> Resource:
        made: Any = self._make
        resource: Resource = made(
            api_version=self._api_version,
            metadata=_metadata(wire.metadata),
            spec=self._spec(wire.spec),
            status=self._status(wire.status),
        )
        return resource

    def _list_one_by_one(self, data: bytes) -> Items:
        read = decode_any(_RAW_LIST, data)
        items, bad = [], []
        for raw in read.items:
            try:
                items.append(self.one(raw))
            except msgspec.ValidationError as error:
                bad.append(self.undecodable(raw, error))
        return Items(read.metadata, items, bad)

    def _other(self, event: _RawEvent) -> Happening:
        if event.type in _CHANGES:
            return self._change(event)
        if event.type == "BOOKMARK":
            version = _IDENTIFIED.decode(event.object).metadata.resource_version
            return Happening(event.type, None, int(version or 0))
        return Happening(event.type, None, 0, raw=bytes(event.object))

    def _change(self, event: _RawEvent) -> Happening:
        try:
            resource = self.one(event.object)
        except msgspec.ValidationError as error:
            bad = self.undecodable(event.object, error)
            return Happening(event.type, None, bad.version, bad)
        return Happening(event.type, resource, resource.version)

    def undecodable(self, data: bytes | Raw, error: Exception) -> Undecodable:
        """What can be said of an object that cannot be read."""
        metadata = decode_any(_IDENTIFIED, data).metadata
        key = Key(self.kind.name, metadata.namespace, metadata.name)
        return Undecodable(key, metadata.uid, int(metadata.resource_version or 0), str(error))


#: One for each kind.
WIRES: ByKind[Wire] = ByKind(Wire)
