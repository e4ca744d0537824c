"""How resources are shown: whole, as rows of a table, or their metadata alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Raw, Struct

from interlock.api.answers import Answer, bad_request
from interlock.api.encodings import Encodings
from interlock.api.requests import Form, Request, negotiate
from interlock.api.routing import Target
from interlock.resources.codec import encode
from interlock.resources.describe.columns import Column
from interlock.resources.kinds import Kind, columns_of
from interlock.resources.metadata import Metadata, Resource
from interlock.store.contract import Now, Page

#: What the rows of a table may carry beside their cells.
INCLUDES = ("None", "Metadata", "Object")
#: A list of more than this is sent in parts, and others get their turn in between.
PART = 500


class _Partial(Struct, frozen=True, rename="camel"):
    """A resource's metadata alone."""

    kind: str
    api_version: str
    metadata: Metadata


def partial(resource: Resource) -> bytes:
    """The metadata of a resource alone."""
    return encode(_Partial(Form.PARTIAL.value, "meta.k8s.io/v1", resource.metadata))


@lru_cache(maxsize=64)
def _definitions(kind: str) -> bytes:
    return encode([_definition(column) for column in columns_of(kind)])


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name == "Name" else "",
        "description": column.description,
        "priority": column.priority,
    }


class Views:
    """Shows resources in the form that a request asks for."""

    def __init__(self, encodings: Encodings, now: Now) -> None:
        self._encodings = encodings
        self._now = now

    def one(self, target: Target, request: Request, resource: Resource) -> Answer:
        """A single resource."""
        match negotiate(request.accept):
            case Form.TABLE:
                version = resource.metadata.resource_version
                rows = self._rows(target.kind, (resource,), include_object(request))
                return Answer(200, b"".join(_table(target.kind, version, rows)))
            case Form.PARTIAL:
                return Answer(200, partial(resource))
            case _:
                return Answer(200, self._encodings.of(resource))

    def list(self, target: Target, request: Request, page: Page) -> Answer:
        """A list, or part of one."""
        kind = target.kind
        metadata = _list_metadata(page)
        match negotiate(request.accept):
            case Form.TABLE:
                rows = self._rows(kind, page.items, include_object(request))
                return _whole_or_parts(_table(kind, metadata, rows), page)
            case Form.PARTIAL | Form.PARTIAL_LIST:
                head = _head("PartialObjectMetadataList", "meta.k8s.io/v1", metadata)
                items = map(partial, page.items)
            case _:
                head = _head(f"{kind.name}List", kind.api_version, metadata)
                items = map(self._encodings.once, page.items)
        return _whole_or_parts(_joined(head + b',"items":[', items, b"]}"), page)

    def event_object(self, kind: Kind, form: Form, include: str, resource: Resource) -> bytes:
        """A resource inside a watch event."""
        match form:
            case Form.TABLE:
                version = resource.metadata.resource_version
                return b"".join(_table(kind, version, self._rows(kind, (resource,), include)))
            case Form.PARTIAL | Form.PARTIAL_LIST:
                return partial(resource)
            case _:
                return self._encodings.of(resource)

    def _rows(self, kind: Kind, resources: Sequence[Resource], include: str) -> Iterator[bytes]:
        columns, now = columns_of(kind.name), self._now()
        for resource in resources:
            row: dict[str, Any] = {"cells": [column.value(resource, now) for column in columns]}
            if include == "Metadata":
                row["object"] = Raw(partial(resource))
            elif include == "Object":
                row["object"] = Raw(self._encodings.once(resource))
            yield encode(row)


def include_object(request: Request) -> str:
    """What the rows of a table carry beside their cells.

    Raises:
        RefusedError: It is nothing that they can.
    """
    given = request.query.get("includeObject", "Metadata")
    if given not in INCLUDES:
        raise bad_request(f"includeObject: expected None, Metadata or Object, got {given[:40]!r}")
    return given


def _list_metadata(page: Page) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _head(kind: str, api_version: str, metadata: dict[str, Any]) -> bytes:
    return encode({"kind": kind, "apiVersion": api_version, "metadata": metadata})[:-1]


def _table(kind: Kind, metadata: dict[str, Any] | str, rows: Iterator[bytes]) -> Iterator[bytes]:
    if isinstance(metadata, str):
        metadata = {"resourceVersion": metadata}
    head = _head("Table", "meta.k8s.io/v1", metadata)
    opening = head + b',"columnDefinitions":' + _definitions(kind.name) + b',"rows":['
    return _joined(opening, rows, b"]}")


def _joined(head: bytes, items: Iterator[bytes], tail: bytes) -> Iterator[bytes]:
    """The parts of a document whose items are separated by commas."""
    held, lead = [], head
    for item in items:
        held.append(item)
        if len(held) >= PART:
            yield lead + b",".join(held)
            held, lead = [], b","
    if held or lead is head:
        yield lead + b",".join(held) + tail
    else:
        yield tail


def _whole_or_parts(parts: Iterator[bytes], page: Page) -> Answer:
    return Answer(200, parts if len(page.items) > PART else b"".join(parts))
