"""Requests: headers, query, body, and the form that the answer is wanted in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from interlock.api.answers import RefusedError, bad_request
from interlock.api.callers import NOBODY, Caller

if TYPE_CHECKING:
    from interlock.api.routing import Match

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: The method of a request to open a WebSocket: a word that no HTTP request can have as its own.
SOCKET = "(WebSocket)"
#: How clients write truth, and what they mean.
FLAGS = {"true": True, "false": False, "1": True, "0": False, "True": True, "False": False}
#: No request may carry more. A Job with 10,000 parallel keys fits well.
MAX_BODY = 3 * 1024 * 1024


class Form(StrEnum):
    """How a resource is shown."""

    PLAIN = "plain"
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


class Media(StrEnum):
    """What a body is written in."""

    JSON = "application/json"
    YAML = "application/yaml"
    PROTOBUF = "application/vnd.kubernetes.protobuf"
    MERGE_PATCH = "application/merge-patch+json"
    JSON_PATCH = "application/json-patch+json"
    STRATEGIC_PATCH = "application/strategic-merge-patch+json"
    APPLY_PATCH = "application/apply-patch+yaml"
    APPLY_PATCH_CBOR = "application/apply-patch+cbor"


class Wanted(Mapping[str, str]):
    """One entry of an Accept header."""

    def __init__(self, entry: str) -> None:
        kind, *parameters = (part.strip() for part in entry.split(";"))
        self.type = kind.lower()
        self._parameters = {
            name.strip().lower(): value.strip()
            for name, _, value in (parameter.partition("=") for parameter in parameters)
        }

    def __getitem__(self, name: str) -> str:
        return self._parameters[name]

    def __iter__(self) -> Any:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)


@lru_cache(maxsize=512)
def wanted(accept: bytes) -> tuple[Wanted, ...]:
    """The entries of an Accept header, in order; nothing said means anything goes."""
    entries = accept.decode("latin-1").split(",")
    return tuple(Wanted(entry) for entry in entries if entry.strip()) or (Wanted("*/*"),)


@lru_cache(maxsize=512)
def negotiate(accept: bytes) -> Form:
    """The first form in an Accept header that this server can give.

    Raises:
        RefusedError: It can give none of them.
    """
    for entry in wanted(accept):
        if entry.type not in ("application/json", "*/*", "application/*"):
            continue
        shown_as = entry.get("as", "")
        if not shown_as:
            return Form.PLAIN
        if entry.get("g") == "meta.k8s.io" and entry.get("v") in ("v1", "v1beta1"):
            if shown_as in (Form.TABLE, Form.PARTIAL, Form.PARTIAL_LIST):
                return Form(shown_as)
        elif entry.get("g") == "apidiscovery.k8s.io" and shown_as == Form.DISCOVERY:
            return Form.DISCOVERY
    raise RefusedError(406, "only application/json is served, plain or as Table")


@lru_cache(maxsize=1024)
def _read_query(raw: bytes) -> Mapping[str, str]:
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError as error:
        raise bad_request(f"the query cannot be read: {error}") from error
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise bad_request(f"{twice[:40]}: given more than once")
    return found


class Request:
    """One request, read as far as was needed."""

    __slots__ = (
        "caller",
        "headers",
        "match",
        "method",
        "path",
        "query_string",
        "receive",
        "scope",
    )

    #: What it means, as the router found it; set before anybody judges the request.
    match: Match

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        #: Who asks, as the door found out by proof, not by the client's word.
        self.caller: Caller = NOBODY
        self.method: str = SOCKET if scope["type"] == "websocket" else scope["method"]
        self.path: str = scope["path"]
        self.query_string: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.receive = receive

    @property
    def person(self) -> str:
        """The name of who asks; empty when unknown."""
        return self.caller.name

    @property
    def query(self) -> Mapping[str, str]:
        """The query's parameters.

        Raises:
            RefusedError: It cannot be read, or one is given twice.
        """
        return _read_query(self.query_string) if self.query_string else {}

    @property
    def accept(self) -> bytes:
        """The Accept header, empty when there is none."""
        return self.headers.get(b"accept", b"")

    def flag(self, name: str) -> bool:
        """Whether a parameter says true; one that is not given says false.

        Raises:
            RefusedError: It says neither.
        """
        text = self.query.get(name, "false")
        if text not in FLAGS:
            raise bad_request(f"{name}: expected true or false, got {text[:40]!r}")
        return FLAGS[text]

    def number(self, name: str) -> int | None:
        """A parameter that is a whole number, not negative; None when it is not given."""
        text = self.query.get(name)
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise bad_request(f"{name}: expected a whole number, got {text[:40]!r}")
        return int(text)

    def media(self) -> Media:
        """What the body is written in; nothing said means JSON."""
        given = self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if not given:
            return Media.JSON
        try:
            return Media(given.decode("latin-1"))
        except ValueError:
            raise RefusedError(
                415, f"the body of the request was in an unknown format: {given[:80]!r}"
            ) from None

    async def body(self) -> bytes:
        """The whole body.

        Raises:
            RefusedError: It is larger than any request may be, or the client went away.
        """
        said = self.headers.get(b"content-length", b"0")
        if not said.isdigit() or len(said) > 12 or int(said) > MAX_BODY:
            raise _too_large()
        message = await self.receive()
        data: bytes = message.get("body", b"")
        while message.get("more_body") and len(data) <= MAX_BODY:
            message = await self.receive()
            data += message.get("body", b"")
        if len(data) > MAX_BODY:
            raise _too_large()
        if message["type"] == "http.disconnect":
            raise bad_request("the client went away before its request was whole")
        return data

    async def gone(self) -> None:
        """Return once the client has gone away."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


def _too_large() -> RefusedError:
    # The rest of the body is not read, so the connection cannot be used again.
    return RefusedError(
        413,
        f"the request is too large: at most {MAX_BODY} bytes",
        headers=((b"connection", b"close"),),
    )
