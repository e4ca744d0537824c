"""Everything that is served beside resources: discovery, schemas, health, metrics, the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from interlock.api import discovery, openapi
from interlock.api.answers import Answer, RefusedError, json_answer
from interlock.api.openapi_protobuf import encode_document
from interlock.api.page import page
from interlock.api.requests import Form, Request, negotiate, wanted
from interlock.resources.codec import encode

_NOT_FOUND = "the server could not find the requested resource"
_PROTOBUF = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#: Older clients write the same format with an @, which their own reader then refuses.
_PROTOBUF_NAMES = frozenset({_PROTOBUF.decode(), _PROTOBUF.decode().replace(".v1.0", "@v1.0")})


class Documents:
    """Answers for paths that name no resource."""

    def __init__(
        self,
        registry: CollectorRegistry,
        ready: Callable[[], Sequence[str]],
        mounted: Sequence[str] = (),
    ) -> None:
        self._registry = registry
        self._ready = ready
        self._mounted = mounted

    async def answer(self, request: Request) -> Answer:
        """The document at a path.

        Raises:
            RefusedError: There is none, or it cannot be written.
        """
        answer = self._find(request)
        if answer is None:
            raise RefusedError(404, _NOT_FOUND)
        if request.method not in ("GET", "HEAD"):
            raise RefusedError(405, "the server does not allow this method on this path")
        return answer

    def _find(self, request: Request) -> Answer | None:
        match request.path.rstrip("/"):
            case "":
                return Answer(200, page(self._mounted), b"text/html; charset=utf-8")
            case "/healthz" | "/livez":
                return _text("ok")
            case "/readyz":
                return self._readiness()
            case "/metrics":
                kind = b"text/plain; version=0.0.4; charset=utf-8"
                return Answer(200, generate_latest(self._registry), kind)
        return _static(request)

    def _readiness(self) -> Answer:
        missing = self._ready()
        if not missing:
            return _text("ok")
        return _text("".join(f"not ready: {what}\n" for what in missing), 503)


def _static(request: Request) -> Answer | None:
    match request.path.rstrip("/").split("/")[1:]:
        case ["version"]:
            return json_answer(discovery.version_document())
        case ["api"]:
            return _discovered(request, discovery.core_versions(), core=True)
        case ["apis"]:
            return _discovered(request, discovery.group_list(), core=False)
        case ["api", version]:
            return _maybe(discovery.resource_list("", version))
        case ["apis", group]:
            return _maybe(discovery.group_document(group))
        case ["apis", group, version]:
            return _maybe(discovery.resource_list(group, version)) if group else None
        case ["openapi", "v2"]:
            return _openapi_v2(request)
        case ["openapi", "v3"]:
            return json_answer(openapi.index())
        case ["openapi", "v3", *place]:
            return _openapi_v3("/".join(place))
    return None


def _discovered(request: Request, plain: dict[str, Any], *, core: bool) -> Answer:
    if negotiate(request.accept) is not Form.DISCOVERY:
        return json_answer(plain)
    version = next(
        entry.get("v", "") for entry in wanted(request.accept) if entry.get("as") == Form.DISCOVERY
    )
    if version not in ("v2", "v2beta1"):
        return json_answer(plain)
    kind = f"application/json;g=apidiscovery.k8s.io;v={version};as={Form.DISCOVERY}"
    return Answer(200, encode(discovery.aggregated(version, core=core)), kind.encode())


def _maybe(document: dict[str, Any] | None) -> Answer | None:
    return None if document is None else json_answer(document)


def _openapi_v2(request: Request) -> Answer:
    for entry in wanted(request.accept):
        if entry.type in _PROTOBUF_NAMES:
            return Answer(200, _v2_protobuf(), _PROTOBUF)
        if entry.type in ("application/json", "*/*", "application/*"):
            return Answer(200, _v2_json())
    raise RefusedError(406, "the schemas are served as JSON and as protobuf")


@lru_cache(maxsize=1)
def _v2_json() -> bytes:
    return encode(openapi.version_2())


@lru_cache(maxsize=1)
def _v2_protobuf() -> bytes:
    return encode_document(openapi.version_2())


@lru_cache(maxsize=1)
def _v3_documents() -> dict[str, bytes]:
    return {place: encode(openapi.version_3(place)) for place in openapi.places()}


def _openapi_v3(place: str) -> Answer | None:
    found = _v3_documents().get(place)
    return None if found is None else Answer(200, found)


def _text(body: str, status: int = 200) -> Answer:
    return Answer(status, body.encode(), b"text/plain; charset=utf-8")
