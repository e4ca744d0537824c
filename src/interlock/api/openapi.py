"""The schemas of everything that is served, as OpenAPI documents that clients understand.

kubectl reads them for `explain`, to know whether the server checks fields itself, and, before
1.25, to check fields on its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from interlock import __version__
from interlock.api.discovery import group_versions
from interlock.api.operations import (
    DELETE_OPTIONS,
    HEADERS_OF_REFUSALS,
    PARAMETERS,
    STATUS,
    refusals_of,
    told,
)
from interlock.api.parameters import Parameter
from interlock.api.requests import Media
from interlock.api.routing import rows_of
from interlock.resources.codec import encode
from interlock.resources.describe.schema import components
from interlock.resources.kinds import KINDS, Kind
from interlock.resources.rules import whole

_V3_REF = "#/components/schemas/"
_V2_REF = "#/definitions/"
#: Nouns that every group has, under the names that Kubernetes' tools know.
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_STATUS = f"{_META}.Status"
_DELETE_OPTIONS = f"{_META}.DeleteOptions"
_META_NAMES = frozenset({"ObjectMeta", "OwnerReference", "Condition"})
#: What bodies are written in, and what is in them when that is not the kind itself.
_BODIES: dict[str, dict[str, dict[str, Any] | None]] = {
    "post": {Media.JSON.value: None, Media.YAML.value: None},
    "put": {Media.JSON.value: None, Media.YAML.value: None},
    "delete": {Media.JSON.value: None},
    "patch": {
        Media.MERGE_PATCH.value: {"type": "object"},
        Media.JSON_PATCH.value: {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["op", "path"],
                "properties": {
                    "op": {
                        "type": "string",
                        "enum": ["add", "remove", "replace", "move", "copy", "test"],
                    },
                    "path": {"type": "string"},
                    "from": {"type": "string"},
                    "value": {},
                },
            },
        },
    },
}


def _title(kind: Kind) -> str:
    """The name of a kind's schema, in the manner of Kubernetes."""
    return f"{_prefix(kind)}.{kind.name}"


def _prefix(kind: Kind) -> str:
    if not kind.group:
        return f"io.k8s.api.core.{kind.version}"
    return ".".join(reversed(kind.group.split("."))) + f".{kind.version}"


def _group_version_kind(kind: Kind, suffix: str = "") -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.name + suffix}


def _schemas(kinds: list[Kind]) -> dict[str, Any]:
    """The schemas of some kinds and all that they use, with references as in version 3."""
    known = components()
    prefix = _prefix(kinds[0])
    found: dict[str, Any] = {}
    left = [kind.name for kind in kinds]
    while left:
        name = left.pop()
        if _full(prefix, name) not in found:
            left.extend(sorted(_references(known[name])))
            found[_full(prefix, name)] = _retitled(known[name], prefix)
    for kind in kinds:
        found[f"{_title(kind)}List"] = _list_schema(kind)
        found[_title(kind)] = _identified(kind, found[_title(kind)])
    found[_STATUS], found[_DELETE_OPTIONS] = STATUS, DELETE_OPTIONS
    return dict(sorted(found.items()))


def _identified(kind: Kind, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a kind with what its objects say of themselves."""
    known = {"kind": kind.name, "apiVersion": kind.api_version}
    properties = {
        name: {**part, "enum": [known[name]]} if name in known else part
        for name, part in schema["properties"].items()
    }
    metadata = properties["metadata"]
    named = {**metadata, "allOf": [*metadata["allOf"], _named(kind)]}
    return {**schema, "properties": {**properties, "metadata": named}}


def _named(kind: Kind) -> dict[str, Any]:
    """What names of a kind are like; an empty one is none."""
    rule = kind.name_rule
    name = {"maxLength": rule.longest, "pattern": whole(f"{rule.pattern}|")}
    return {"properties": {"name": name}}


def _full(prefix: str, name: str) -> str:
    return f"{_META}.{name}" if name in _META_NAMES else f"{prefix}.{name}"


def _references(schema: Any) -> set[str]:
    """The names of the schemas that a schema uses."""
    if isinstance(schema, list):
        return set[str]().union(*map(_references, schema))
    if not isinstance(schema, dict):
        return set()
    if "$ref" in schema:
        return {schema["$ref"].rpartition("/")[2]}
    return set[str]().union(*map(_references, schema.values()))


def _retitled(schema: Any, prefix: str) -> Any:
    """The schema with references to full titles."""
    if isinstance(schema, list):
        return [_retitled(part, prefix) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": _V3_REF + _full(prefix, schema["$ref"].rpartition("/")[2])}
    return {name: _retitled(value, prefix) for name, value in schema.items()}


def _list_schema(kind: Kind) -> dict[str, Any]:
    return {
        "description": f"A list of {kind.plural}.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "enum": [kind.api_version]},
            "kind": {"type": "string", "enum": [f"{kind.name}List"]},
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": {"$ref": _V3_REF + _title(kind)}},
        },
        "x-kubernetes-group-version-kind": [_group_version_kind(kind, "List")],
    }


class _Operations:
    """The operations on a kind; the two versions of OpenAPI write them differently."""

    def __init__(self, kind: Kind, *, version: int) -> None:
        self._kind = kind
        self._version = version
        self._root = _V3_REF if version == 3 else _V2_REF
        self._reference = self._root + _title(kind)

    def paths(self) -> dict[str, Any]:
        """Every path of the kind.

        Writes of a status, and of kinds that only the system writes, are named too: a client that
        does not find them fails on its own, before the server can say why it refuses.
        """
        kind = self._kind
        wanted: dict[str, list[tuple[str, str]]] = {}
        for row in rows_of(kind):
            if row.when is None:
                wanted.setdefault(row.path, []).append((row.method.lower(), row.verb))
        return {path: self._item(rows, path) for path, rows in wanted.items()}

    def _item(self, wanted: list[tuple[str, str]], path: str) -> dict[str, Any]:
        item: dict[str, Any] = {
            method: self._operation(method, verb, path) for method, verb in wanted
        }
        names = [name for name in ("namespace", "name") if f"{{{name}}}" in path]
        if names:
            item["parameters"] = [
                {**self._parameter("path", Parameter(name=name)), "required": True}
                for name in names
            ]
        return item

    def _operation(self, method: str, verb: str, path: str) -> dict[str, Any]:
        kind = self._kind
        operation: dict[str, Any] = {
            "tags": [kind.api_version.replace("/", "_")],
            "description": f"{verb} {kind.plural}",
            "operationId": _operation_id(verb, kind, path),
            "parameters": [self._parameter("query", one) for one in PARAMETERS[verb]],
            "responses": self._responses(verb),
            "x-kubernetes-action": {"get": "get", "update": "put", "create": "post"}.get(
                verb, verb
            ),
            "x-kubernetes-group-version-kind": _group_version_kind(kind),
        }
        if method != "get":
            self._add_body(operation, method)
        return operation

    def _add_body(self, operation: dict[str, Any], method: str) -> None:
        bodies = _BODIES[method]
        own = {"$ref": self._reference if method != "delete" else self._root + _DELETE_OPTIONS}
        if self._version == 3:
            content = {media: {"schema": schema or own} for media, schema in bodies.items()}
            operation["requestBody"] = {"required": method != "delete", "content": content}
        else:
            operation["consumes"] = list(bodies)
            schema = {"type": "object"} if method == "patch" else own
            body = {"in": "body", "name": "body", "required": method != "delete", "schema": schema}
            operation["parameters"] = [body, *operation["parameters"]]

    def _parameter(self, place: str, given: Parameter) -> dict[str, Any]:
        parameter: dict[str, Any] = {"in": place, "name": given.name}
        if given.says:
            parameter["description"] = given.says
        if self._version == 3:
            return {**parameter, "schema": given.schema()}
        return {**parameter, **given.plain_schema()}

    def _responses(self, verb: str) -> dict[str, Any]:
        listed = {"$ref": f"{self._reference}List"}
        shown = {"$ref": self._reference}
        if verb in ("list", "deletecollection"):
            shown = listed
        done: dict[str, Any] = {"200": self._response("OK", shown)}
        if verb == "delete":
            # What is held by its finalizers is shown as it goes.
            done = {"200": self._response("OK", {"type": "object"})}
        elif verb == "create":
            done = {"201": self._response("Created", shown)}
        refused = {
            str(code): {
                **self._response(told(code), {"$ref": self._root + _STATUS}),
                **self._headers(HEADERS_OF_REFUSALS.get(code, ())),
            }
            for code in refusals_of(verb)
        }
        return done | refused

    def _headers(self, headers: Sequence[Parameter]) -> dict[str, Any]:
        """The part of a response about its headers; nothing when it has none of its own."""
        made: dict[str, Any] = {}
        for one in headers:
            shown = {"description": one.says}
            if self._version == 3:
                made[one.name] = {**shown, "required": True, "schema": one.schema()}
            else:
                made[one.name] = {**shown, **one.plain_schema()}
        return {"headers": made} if made else {}

    def _response(self, description: str, schema: dict[str, Any]) -> dict[str, Any]:
        if self._version == 3:
            content = {Media.JSON.value: {"schema": schema}}
            return {"description": description, "content": content}
        return {"description": description, "schema": schema}


def _operation_id(verb: str, kind: Kind, path: str) -> str:
    """A name for the operation that no other has."""
    where = "Namespaced" if "{namespace}" in path else ""
    part = "Status" if path.endswith("/status") else ""
    group = "".join(word.title() for word in kind.group.split(".")[:1]) or "Core"
    return f"{verb}{group}{kind.version.title()}{where}{kind.name}{part}"


def places() -> list[str]:
    """The documents of version 3: one for each group and version."""
    return [f"apis/{group}/{name}" if group else f"api/{name}" for group, name in group_versions()]


def index() -> dict[str, Any]:
    """Where the documents of version 3 are; the hash tells clients when to read one again."""
    paths = {place: {"serverRelativeURL": _url(place)} for place in places()}
    return {"paths": {**paths, "reports": {"serverRelativeURL": "/openapi/v3/reports"}}}


@cache
def _url(place: str) -> str:
    digest = hashlib.sha256(encode(version_3(place))).hexdigest()[:32].upper()
    return f"/openapi/v3/{place}?hash={digest}"


@cache
def version_3(place: str) -> dict[str, Any]:
    """The document of one group and version."""
    kinds = dict(zip(places(), group_versions().values(), strict=True))[place]
    paths: dict[str, Any] = {}
    for kind in kinds:
        paths |= _Operations(kind, version=3).paths()
    return {
        "openapi": "3.0.0",
        "info": {"title": "Interlock", "version": __version__},
        "paths": paths,
        "components": {"schemas": _schemas(kinds)},
    }


@cache
def version_2() -> dict[str, Any]:
    """The one document of version 2, for everything."""
    definitions: dict[str, Any] = {}
    for kinds in group_versions().values():
        definitions |= _schemas(kinds)
    paths: dict[str, Any] = {}
    for kind in KINDS.values():
        paths |= _Operations(kind, version=2).paths()
    return {
        "swagger": "2.0",
        "info": {"title": "Interlock", "version": __version__},
        "paths": paths,
        "definitions": {name: _as_version_2(schema) for name, schema in definitions.items()},
    }


#: What a schema of version 2 may say; the rest would make old clients refuse the document.
_V2_WORDS = frozenset(
    ("format", "title", "description", "pattern", "required", "enum", "type", "readOnly")
) | {"minimum", "maximum", "maxItems"}


def _as_version_2(schema: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            made[name] = {key: _as_version_2(part) for key, part in value.items()}
        elif name == "$ref":
            made[name] = value.replace(_V3_REF, _V2_REF)
        elif name == "allOf" and "$ref" in value[0]:
            made["$ref"] = value[0]["$ref"].replace(_V3_REF, _V2_REF)
        elif name in ("items", "additionalProperties") and isinstance(value, Mapping):
            made[name] = _as_version_2(value)
        elif name == "enum":
            made[name] = [one for one in value if one is not None]
        elif name in _V2_WORDS or name.startswith("x-"):
            made[name] = value
    return made
