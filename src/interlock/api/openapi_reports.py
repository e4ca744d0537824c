"""The OpenAPI document of everything that is no resource: reports, health, discovery.

It is made of the router's table. Its version is 3.1, whose schemas are plain JSON Schema; no client
of Kubernetes reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from interlock import __version__
from interlock.api.operations import HEADERS_OF_REFUSALS, STATUS, told
from interlock.api.parameters import Parameter
from interlock.api.requests import SOCKET, Media
from interlock.api.routing import ForAll, Route
from interlock.resources.describe.schema import noun_schema

#: How any route may refuse: names and pages are judged first, and clients may be slow or verbose.
_EVERYWHERE = (400, 403, 408, 431, 500)
_STATUS = {"application/json": {"schema": {"$ref": "#/components/schemas/Status"}}}


def reports_document(routes: Sequence[Route]) -> dict[str, Any]:
    """The document of all routes that are about no resource."""
    told_of = [route for route in routes if route.kind is None and route.method != SOCKET]
    types = {id(one): one for route in told_of for one in _shown(route) if one is not None}
    schemas, components = msgspec.json.schema_components(
        types.values(), ref_template="#/components/schemas/{name}"
    )
    shown = dict(zip(types, schemas, strict=True))
    sockets = {route.path for route in routes if route.method == SOCKET}
    paths: dict[str, Any] = {}
    for route in told_of:
        method = route.method.lower()
        path = route.path.replace("...", "")
        if method in paths.get(path, {}):
            continue  # The same, told more narrowly by a parameter.
        also = " It is also a WebSocket." if route.path in sockets else ""
        paths.setdefault(path, {})[method] = _operation(route, shown, also)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Interlock reports", "version": __version__},
        "paths": paths,
        "components": {"schemas": {**components, "Status": STATUS}},
    }


def _shown(route: Route) -> tuple[Any, ...]:
    """The types that a route answers with."""
    return (route.shows, *route.shows_also.values())


def _operation(route: Route, shown: Mapping[int, dict[str, Any]], also: str) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for code in (200, *route.successes):
        schema = shown.get(id(route.shows_also.get(code, route.shows)))
        content = {route.media: {"schema": schema} if schema else {}}
        responses[str(code)] = {"description": route.gives, "content": content}
    for code in _codes(route):
        if code == 503 and isinstance(route.right, ForAll):
            # What is wrong with a server is told in the same words as that nothing is.
            responses[str(code)] = {"description": told(code), "content": content}
            continue
        headers = _headers(HEADERS_OF_REFUSALS.get(code, ()), is_always=True)
        responses[str(code)] = {"description": told(code), "content": _STATUS, **headers}
    for code, more in route.tells.items():
        headers = responses[str(code)].setdefault("headers", {})
        headers |= _headers(more, is_always=False)["headers"]
    body = {"requestBody": _body(route)} if route.takes else {}
    return {
        "operationId": _operation_id(route),
        "description": f"{route.gives[:1].upper()}{route.gives[1:]}.{also}",
        "parameters": [*_in_path(route.path), *_in_query(route), *_in_headers(route)],
        **body,
        "responses": responses,
    }


def _headers(headers: Sequence[Parameter], *, is_always: bool) -> dict[str, Any]:
    """The part of a response about its headers; nothing when it has none of its own."""
    made = {
        one.name: {"description": one.says, "required": is_always, "schema": one.schema()}
        for one in headers
    }
    return {"headers": made} if made else {}


def _body(route: Route) -> dict[str, Any]:
    if route.body is not None:
        schema = noun_schema(route.body)
        content = {Media.JSON.value: {"schema": schema}}
        return {"description": route.takes, "required": "required" in schema, "content": content}
    form = route.form if route.form is not None else {"type": "object"}
    plain = {"schema": {**form, "description": route.takes}}
    whole = {media.value: plain for media in (Media.JSON, Media.YAML)}
    return {"description": route.takes, "required": True, "content": whole}


def _codes(route: Route) -> list[int]:
    known = () if isinstance(route.right, ForAll) else (401, 503)
    return sorted({*_EVERYWHERE, *known, *route.refusals})


def _in_path(path: str) -> Iterable[dict[str, Any]]:
    for name, many in re.findall(r"{(\w+)(\.\.\.)?}", path):
        told = {"description": "One name, or several with '/' between them."} if many else {}
        yield {"in": "path", "name": name, "required": True, "schema": {"type": "string"}, **told}


def _in_query(route: Route) -> Iterable[dict[str, Any]]:
    for one in route.query:
        yield {"in": "query", "name": one.name, "description": one.says, "schema": one.schema()}


def _in_headers(route: Route) -> Iterable[dict[str, Any]]:
    for one in route.headers:
        yield {"in": "header", "name": one.name, "description": one.says, "schema": one.schema()}


def _operation_id(route: Route) -> str:
    path = route.path.replace("...", "")
    words = [part.strip("{}") for part in re.split(r"/|\b\.", path) if part]
    return route.method.lower() + "".join(
        f"{word[:1].upper()}{word[1:]}" for word in words or ["page"]
    )
