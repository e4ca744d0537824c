"""Everything that is served beside resources: discovery, schemas, health, metrics, the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from interlock.api import discovery, openapi
from interlock.api.answers import Answer, RefusedError, json_answer
from interlock.api.checking import Check, Checks, health_answer
from interlock.api.openapi_reports import reports_document
from interlock.api.page import page
from interlock.api.parameters import Parameter
from interlock.api.requests import Form, Request, Send, negotiate, wanted
from interlock.api.routing import ForAll, OnPath, Route, Serve
from interlock.resources.codec import encode

#: Makes a document; None when there is none.
_Answering = Callable[[Request], Answer | None]


class Documents:
    """Answers for paths that name no resource."""

    def __init__(
        self,
        registry: CollectorRegistry,
        ready: Checks,
        others: Sequence[Route] = (),
    ) -> None:
        self._registry = registry
        self._ready = ready
        self._others = others

    def routes(self) -> Iterator[Route]:
        """What is served."""
        for path in ("/healthz", "/livez"):
            yield _open(path, _liveness, "whether the server lives")
        yield _open(
            "/readyz", self._readiness, "whether it is ready, and what is wrong", refusals=(503,)
        )
        yield _read("/", self._page, "this page", media="text/html")
        yield _read(
            "/metrics",
            self._metrics,
            "measurements for Prometheus",
            media="text/plain",
            filtered=False,
        )
        yield _read("/openapi/v3/reports", self._reports, "the schemas of all but the resources")
        yield from _STATIC

    def _reports(self, request: Request) -> Answer:  # noqa: ARG002
        return Answer(200, self._reports_document)

    @cached_property
    def _reports_document(self) -> bytes:
        return encode(reports_document((*self.routes(), *self._others)))

    def _page(self, request: Request) -> Answer:  # noqa: ARG002
        shown = (*self.routes(), *self._others)
        return Answer(200, page(shown), b"text/html; charset=utf-8")

    def _metrics(self, request: Request) -> Answer:  # noqa: ARG002
        kind = b"text/plain; version=0.0.4; charset=utf-8"
        return Answer(200, generate_latest(self._registry), kind)

    def _readiness(self, request: Request) -> Answer:
        checks = (_PING, *self._ready())
        return health_answer("readyz", checks, verbose="verbose" in request.query)


def _read(
    path: str,
    answer: _Answering,
    gives: str,
    *,
    media: str = "application/json",
    refusals: tuple[int, ...] = (),
    filtered: bool = True,
) -> Route:
    return Route(
        method="GET",
        path=path,
        right=OnPath("get"),
        filtered=filtered,
        serve=_serving(answer),
        gives=gives,
        media=media,
        refusals=refusals,
    )


def _open(path: str, answer: _Answering, gives: str, refusals: tuple[int, ...] = ()) -> Route:
    return Route(
        method="GET",
        path=path,
        right=ForAll(),
        serve=_serving(answer),
        gives=gives,
        media="text/plain",
        query=(_VERBOSE,),
        refusals=refusals,
    )


_VERBOSE = Parameter(name="verbose", says="Name every check, whatever is said here.")


def _serving(answer: _Answering) -> Serve:
    async def serve(request: Request, send: Send) -> Answer:  # noqa: ARG001
        found = answer(request)
        if found is None:
            raise RefusedError(404, "the server could not find the requested resource")
        return found

    return serve


def _group(request: Request) -> Answer | None:
    return _maybe(discovery.group_document(request.match.parts["group"]))


def _resources(request: Request) -> Answer | None:
    parts = request.match.parts
    return _maybe(discovery.resource_list(parts.get("group", ""), parts["version"]))


def _schemas(request: Request) -> Answer | None:
    found = _v3_documents().get(request.match.path.removeprefix("/openapi/v3/"))
    return None if found is None else Answer(200, found)


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
        if entry.type in ("application/json", "*/*", "application/*"):
            return Answer(200, _v2_json())
    raise RefusedError(406, "the schemas are served as JSON; kubectl reads them since 1.27")


@lru_cache(maxsize=1)
def _v2_json() -> bytes:
    return encode(openapi.version_2())


@lru_cache(maxsize=1)
def _v3_documents() -> dict[str, bytes]:
    return {place: encode(openapi.version_3(place)) for place in openapi.places()}


#: Whoever reads this was answered.
_PING = Check("ping")


def _liveness(request: Request) -> Answer:
    name = request.match.path.strip("/")
    return health_answer(name, (_PING,), verbose="verbose" in request.query)


#: What is the same for every server.
_STATIC = (
    _read(
        "/version",
        lambda _: json_answer(discovery.version_document()),
        "the version, as Kubernetes' clients ask for it",
    ),
    _read(
        "/api",
        lambda request: _discovered(request, discovery.core_versions(), core=True),
        "the versions of the group without a name",
        refusals=(406,),
    ),
    _read(
        "/apis",
        lambda request: _discovered(request, discovery.group_list(), core=False),
        "the groups of kinds",
        refusals=(406,),
    ),
    _read("/api/{version}", _resources, "the kinds of a version", refusals=(404,)),
    _read("/apis/{group}", _group, "the versions of a group", refusals=(404,)),
    _read(
        "/apis/{group}/{version}", _resources, "the kinds of a group and version", refusals=(404,)
    ),
    _read("/openapi/v2", _openapi_v2, "the schemas, OpenAPI version 2", refusals=(406,)),
    _read(
        "/openapi/v3",
        lambda _: json_answer(openapi.index()),
        "the schemas, OpenAPI version 3",
    ),
    _read("/openapi/v3/api/{version}", _schemas, "the schemas of a version", refusals=(404,)),
    _read(
        "/openapi/v3/apis/{group}/{version}",
        _schemas,
        "the schemas of a group and version",
        refusals=(404,),
    ),
)
