"""The fuzzer: whatever a client sends, a real server answers, refuses, and goes on.

Requests are drawn from a seed: the routes that the server itself tells of, with good documents that
were bent, queries, headers and methods of all sorts. A request is named by its number, so a seed
and a number are enough to send it again.
"""

from __future__ import annotations

import copy
import json
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import yaml
from msgspec import Struct
from msgspec import inspect as shape

from interlock.resources.describe.shapes import fields_of, plain
from interlock.resources.kinds import KINDS, Kind
from interlock.testing.clients import Object
from interlock.testing.serving import PATIENCE_S
from support.storm.checker import Check
from support.storm.ground import Ground, StandstillError, until
from support.storm.kills import Outcome
from support.storm.people import JOBS

T = TypeVar("T")

#: What may be answered above 499: not served, not now, and a version of the future.
_ALLOWED = frozenset({501, 503, 504})
#: After so many requests it is seen whether the server lives, and what was deleted is made again.
_LOOK_AFTER = 100

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")
#: Where and how things are called that are there, and where there is nothing.
_NAMESPACES = ("default",)
_NAMES = ("one", "two", "three")
_NOWHERE = (
    "nobody",
    "other",
    "interlock-system",
    "",
    "a" * 300,
    "..",
    "%2e%2e%2f",
    "ONE",
    "%00%ff",
)
#: The routes that the OpenAPI documents do not tell of.
_REPORTS = (
    "/jobs/{namespace}/{name}",
    "/jobs/{namespace}/{name}/why",
    "/jobs/{namespace}/{name}/log",
    "/jobconfigs/{namespace}/{name}/why",
    "/controlledjobs/{namespace}/{name}/why",
    "/jobs/stream",
    "/jobs/{name}",
)
_TEXTS = (
    *("", " ", "a", "one", "default", "*", "..", "/", "\0", "\ud800", "ü", "\N{PILE OF POO}"),
    *("a=b", "a in (b,c)", "a in (", "!a", "a!=b", "metadata.name=one", "status.phase=Queued"),
    *(
        "0",
        "1",
        "-1",
        "99999999999999999999",
        "1e999",
        "NaN",
        "true",
        "null",
        "5m",
        "-5s",
        "10 min",
    ),
    *(
        "2026-01-05T12:00:00Z",
        "9999-12-31T23:59:60Z",
        "* * * * *",
        "0 30 2 * * * *",
        "Europe/London",
    ),
    *("${task.index}", "${job.nothing}", "$${", "interlock.dev/release", "x" * 5_000),
)
_VALUES: tuple[object, ...] = (
    *_TEXTS,
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**31,
        2**63,
        2**64,
        -(2**70),
        0.5,
        1e308,
        [],
        {},
        [[]],
        {"": ""},
    ),
)
_PARAMETERS = (
    *("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "watch", "dryRun"),
    *("resourceVersionMatch", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents"),
    *("fieldValidation", "propagationPolicy", "includeObject", "namespace", "name", "kind"),
    *("before", "state", "since", "follow", "task", "tail", "cursor", "gracePeriodSeconds"),
)
_MEDIA = (
    *("application/json", "application/yaml", "application/merge-patch+json"),
    *("application/json-patch+json", "application/apply-patch+yaml", "text/plain", "", ";;="),
    *("application/vnd.kubernetes.protobuf", "application/strategic-merge-patch+json"),
)
#: What a method is mostly sent with, and how often it is sent with nothing.
_FITTING = {"POST": _MEDIA[:2], "PUT": _MEDIA[:2], "PATCH": _MEDIA[2:4], "DELETE": _MEDIA[:1]}
_EMPTY = {"GET": 0.9, "HEAD": 0.9, "DELETE": 0.7}
_ACCEPTS = (
    *("*/*", "application/json", "application/yaml", "", ",,;=", "text/html", "a;b;q=x"),
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/vnd.kubernetes.protobuf",
)
_ODD_HEADERS = (
    ("Origin", "http://evil.example"),
    ("Authorization", "Bearer x"),
    ("Accept-Encoding", "gzip;q=0, *"),
    ("If-None-Match", "*"),
    ("Upgrade", "websocket"),
    ("X-Forwarded-For", "1.2.3.4"),
    ("Range", "bytes=0-"),
    ("Cookie", "\xff" * 50),
)


class Route(NamedTuple):
    """A path with gaps, and the methods that are told of."""

    path: str
    methods: tuple[str, ...]


class Request(NamedTuple):
    """One thing to ask, byte by byte."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def wire(self, host: str) -> bytes:
        """What goes over the wire."""
        heads = (("Host", host), *self.headers, ("Content-Length", str(len(self.body))))
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{k}: {v}" for k, v in heads), "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace") + self.body

    @property
    def name(self) -> str:
        """What is asked, without the details."""
        return f"{self.method} {self.target[:100]}"

    def __str__(self) -> str:
        return f"{self.method} {self.target[:1_000]} {dict(self.headers)} {self.body[:200]!r}"


class Fuzzer:
    """Draws requests from a seed, for the routes there are."""

    def __init__(self, random: Random, routes: Sequence[Route]) -> None:
        self._random = random
        self._routes = routes
        self._documents = documents()
        #: How bodies are written, by their media type; a method has some that fit it.
        self._writers: dict[str, Callable[[Object], bytes]] = {
            "application/json": self._json,
            "application/yaml": self._yaml,
            "application/merge-patch+json": self._merge_patch,
            "application/json-patch+json": self._operations,
            "application/vnd.kubernetes.protobuf": self._protobuf,
        }

    def requests(self, count: int) -> Iterator[Request]:
        """So many requests, always the same."""
        for _ in range(count):
            route = self._random.choice(self._routes)
            method = self._mostly(0.8, route.methods, _METHODS)
            media = self._mostly(0.9, _FITTING.get(method, _MEDIA), _MEDIA)
            writer = self._writers.get(media, self._json)
            body = b"" if self._chance(_EMPTY.get(method, 0.05)) else writer(self._document(route))
            headers = tuple(self._headers(self._mostly(0.95, (media,), _MEDIA)))
            yield Request(method, self._target(route), headers, self._garble(body))

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    def _mostly(self, of: float, these: Sequence[T], those: Sequence[T]) -> T:
        return self._random.choice(these if self._chance(of) else those)

    def _target(self, route: Route) -> str:
        path = route.path.replace("{namespace}", self._mostly(0.9, _NAMESPACES, _NOWHERE))
        path = path.replace("{name}", self._mostly(0.8, _NAMES, _NOWHERE))
        if self._chance(0.05):
            pieces = path.split("/")
            at = self._random.randrange(len(pieces))
            pieces[at : at + self._random.randint(0, 2)] = [self._random.choice(_NOWHERE)]
            path = "/".join(pieces) or "/"
        pairs = []
        while self._chance(0.25):
            value = self._random.choice(_TEXTS).encode("utf-8", "surrogatepass")
            pairs.append(f"{self._random.choice(_PARAMETERS)}={quote(value)}")
        return path + ("?" + "&".join(pairs) if pairs else "")

    def _headers(self, media: str) -> Iterator[tuple[str, str]]:
        yield "Content-Type", media
        if self._chance(0.3):
            yield "Accept", self._random.choice(_ACCEPTS)
        if self._chance(0.05):
            yield self._random.choice(_ODD_HEADERS)

    def _garble(self, body: bytes) -> bytes:
        if body and self._chance(0.1):
            at = self._random.randrange(len(body))
            piece = self._random.choice((b"", self._random.randbytes(3), b"\0", b"[" * 2_000))
            body = body[:at] + piece + body[at + self._random.randint(0, 20) :]
        return body

    def _json(self, document: Object) -> bytes:
        return json.dumps(document).encode()

    def _yaml(self, document: Object) -> bytes:
        return yaml.safe_dump(document, allow_unicode=True).encode("utf-8", "replace")

    def _merge_patch(self, document: Object) -> bytes:
        part = self._random.choice(list(document)) if document else ""
        return json.dumps({part: document.get(part)}).encode()

    def _operations(self, _document: Object) -> bytes:
        names = ("add", "remove", "replace", "move", "copy", "test", "", None)
        paths = ("", "/", "/spec", "/spec/locks/-", "/metadata/labels", "/status/phase", "/a/~1", 7)
        operations = [
            {
                "op": self._random.choice(names),
                "path": self._random.choice(paths),
                "from": self._random.choice(paths),
                "value": self._random.choice(_VALUES),
            }
            for _ in range(self._random.randint(0, 4))
        ]
        return json.dumps(operations).encode()

    def _protobuf(self, _document: Object) -> bytes:
        return b"k8s\0" + self._random.randbytes(self._random.randrange(60))

    def _document(self, route: Route) -> Object:
        """A good document that was bent in a few places; mostly of a kind that fits."""
        every = self._documents
        fitting = [each for each in every if _plural(each["kind"]) in route.path.split("/")]
        document = copy.deepcopy(self._mostly(0.9, fitting or every, every))
        document["metadata"]["name"] = self._random.choice(_NAMES)
        for _ in range(self._random.choice((0, 0, 0, 1, 1, 2, 5))):
            self._bend(document)
        return document

    def _bend(self, document: Object) -> None:
        holders = list(_holders(document))
        if not holders:
            return
        holder, key = self._random.choice(holders)
        match self._random.randrange(4):
            case 0:
                holder.pop(key)
            case 1 if isinstance(holder, dict):
                holder[self._random.choice(("x", "", "spec", "kind", "ü"))] = holder.pop(key)
            case 2:
                other, its = self._random.choice(holders)
                holder[key] = copy.deepcopy(other[its])
            case _:
                holder[key] = self._random.choice(_VALUES)


def _plural(kind: str) -> str:
    return KINDS[kind].plural if kind in KINDS else ""


def _holders(thing: Any) -> Iterator[tuple[Any, Any]]:
    """Everything in a document that can be changed: what holds it, and under which key."""
    for key, value in list(thing.items() if isinstance(thing, dict) else enumerate(thing)):
        yield thing, key
        if isinstance(value, dict | list):
            yield from _holders(value)


class FuzzPlan(Struct, frozen=True, kw_only=True):
    """How much is asked."""

    seed: int
    requests: int = 100_000
    where: Path | None = None


def run_fuzz(plan: FuzzPlan) -> Outcome:
    """Ask a server of its own so many things, and judge."""
    with Ground(plan.where) as ground:
        fuzzer = Fuzzer(Random(f"fuzz {plan.seed}"), routes_of(ground))
        connection = Connection(ground.server.url)
        memory = ground.memory()
        began = monotonic()
        try:
            for number, request in enumerate(fuzzer.requests(plan.requests)):
                connection.send(number, request)
                if number % _LOOK_AFTER == 0:
                    _stock(ground, _NAMES[number // _LOOK_AFTER % len(_NAMES)])
        except StandstillError as error:
            connection.faults.append(str(error))
        finally:
            connection.close()
        outcome = Outcome(
            {
                "seed": plan.seed,
                "seconds": round(monotonic() - began),
                "requests": sum(connection.answers.values()),
                "answers": ", ".join(f"{k}: {v}" for k, v in sorted(connection.answers.items())),
                "slowest": f"{connection.slowest[0]:.2f} s: {connection.slowest[1]}",
                "memory at the beginning": memory,
                "memory at the end": ground.memory(),
            },
            (
                Check(
                    "internal errors", sum(connection.answers.values()), tuple(connection.faults)
                ),
                _canary(ground),
                ground.complaints(),
            ),
            ground.folder,
        )
        ground.keep = bool(outcome.broken)
        return outcome


def routes_of(ground: Ground) -> list[Route]:
    """Every route that the server tells of, and those of the reports."""
    told = ground.insist("GET", "/openapi/v2")["paths"]
    routes = [
        Route(path, tuple(sorted(method.upper() for method in verbs.keys() - {"parameters"})))
        for path, verbs in told.items()
    ]
    status, page = ground.client.ask("GET", "/")
    assert status == 200, page
    others = {*re.findall(r'href="([^"]+)"', page), *_REPORTS} - set(told)
    return sorted([*routes, *(Route(path, ("GET",)) for path in others)])


def _stock(ground: Ground, name: str) -> None:
    """Make good things under a name, so that there is something to ask after.

    Raises:
        StandstillError: The server does not answer any more.
    """
    for document in documents():
        kind = KINDS.get(document["kind"])
        if kind is not None:
            ground.answer("POST", _place(kind), {**document, "metadata": {"name": name}})


def _canary(ground: Ground) -> Check:
    """After all that, a plain Job still runs."""
    body = {"metadata": {"generateName": "canary-"}, "spec": {"process": {"command": ["true"]}}}
    try:
        made = ground.insist("POST", JOBS, body)
        path = f"{JOBS}/{made['metadata']['name']}"

        def has_succeeded() -> bool | None:
            return ground.insist("GET", path).get("status", {}).get("phase") == "Succeeded" or None

        until(has_succeeded, "the end of a plain Job")
    except (StandstillError, AssertionError) as error:
        return Check("canaries that died", 1, (str(error),))
    return Check("canaries that died", 1, ())


class Connection:
    """One connection to a server, made anew whenever it breaks; notes what is answered."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url)
        self._socket: socket.socket | None = None
        #: How many answers there were of each code; 0 is none at all.
        self.answers: Counter[int] = Counter()
        self.faults: list[str] = []
        self.slowest = (0.0, "")

    def send(self, number: int, request: Request) -> None:
        """Send a request, and note what comes back."""
        began = monotonic()
        try:
            status, told = self._ask(request)
        except TimeoutError:
            self.faults.append(f"request {number} has no answer: {request}")
            status, told = 0, b""
        except (OSError, HTTPException):
            # Refused before it was read to its end: the connection is of no use any more.
            status, told = 0, b""
        if status == 0:
            self.close()
        self.answers[status] += 1
        self.slowest = max(self.slowest, (monotonic() - began, f"request {number}, {request.name}"))
        if status >= 500 and status not in _ALLOWED:
            self.faults.append(f"request {number} is answered {status} {told[:200]!r}: {request}")

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, request: Request) -> tuple[int, bytes]:
        if self._socket is None:
            address = (self._place.hostname, self._place.port)
            self._socket = socket.create_connection(address, PATIENCE_S)
        self._socket.sendall(request.wire(self._place.netloc))
        answer = HTTPResponse(self._socket, method=request.method)
        try:
            answer.begin()
            # What has no length may go on for ever: a watch, a stream, a log that is followed.
            # So may the answer to a HEAD of it, on a connection that is then of no use.
            is_whole = answer.getheader("Content-Length") is not None
            told = answer.read() if is_whole else b""
            if not is_whole or answer.will_close:
                self.close()
            return answer.status, told
        finally:
            answer.close()


def _place(kind: Kind) -> str:
    """Where resources of a kind are made."""
    root = "apis" if kind.group else "api"
    where = f"namespaces/{_NAMESPACES[0]}/" if kind.namespaced else ""
    return f"/{root}/{kind.api_version}/{where}{kind.plural}"


def _document(kind: str, spec: Object, version: str = "interlock.dev/v1alpha1") -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "one"}, "spec": spec}


_NOOP: Object = {"noop": {}, "locks": [{"key": "db", "limit": 1}]}
#: Good documents to begin with. Nothing in them does any harm, however it is put together.
_DOCUMENTS: tuple[Object, ...] = (
    _document("Job", _NOOP),
    _document(
        "Job",
        {
            "process": {
                "command": ["true", "${task.index}"],
                "env": {"A": "b"},
                "workingDir": "/",
                "stdin": "x",
                "limits": {"openFiles": 64},
            },
            "parallelism": {"count": 2, "atOnce": 1},
            "retries": {"limit": 1, "delay": "1s", "backoff": "Linear", "retryExitCodes": [1]},
            "timeout": "5m",
            "killAt": "2030-01-01T00:00:00Z",
            "ttlAfterFinished": "1s",
            "args": {"a": "b"},
            "priority": 3,
        },
    ),
    _document(
        "JobConfig",
        {
            "schedules": [{"cron": ["0 0 1 1 *"], "timezone": "Europe/London", "exclude": ["one"]}],
            "concurrency": {"policy": "Forbid", "maxConcurrency": 2},
            "catchUp": {"atMost": 3, "notOlderThan": "6h"},
            "options": [{"name": "region", "type": "Select", "values": ["a", "b"], "default": "a"}],
            "template": {"spec": _NOOP, "metadata": {"labels": {"a": "b"}}},
        },
    ),
    _document(
        "ControlledJob",
        {
            "timezone": {"name": "America/New_York", "offset": 60},
            "windows": [{"from": "09:00", "to": "17:30", "days": "MON-FRI", "exclude": ["one"]}],
            "events": [{"action": "start", "cron": "0 9 1W * *"}],
            "jobTemplate": {"spec": _NOOP},
            "overrides": [
                {"action": "Skip", "from": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z"}
            ],
        },
    ),
    _document("Calendar", {"days": [{"day": "2030-01-01", "name": "a"}, {"day": "easter+1"}]}),
    _document("Namespace", {}, "v1"),
    _document("Lease", {"holderIdentity": "me"}, "coordination.k8s.io/v1"),
    {"kind": "DeleteOptions", "metadata": {}, "preconditions": {"uid": "x"}, "dryRun": ["All"]},
)


def documents() -> tuple[Object, ...]:
    """The good documents, and a sketch of every other kind that people write."""
    known = {document["kind"] for document in _DOCUMENTS}
    others = (kind for kind in KINDS.values() if kind.is_written_by_people)
    return (*_DOCUMENTS, *(_sketch(kind) for kind in others if kind.name not in known))


def _sketch(kind: Kind) -> Object:
    spec = _sketched(fields_of(kind.type)["spec"].type)
    return _document(kind.name, spec, kind.api_version)


def _sketched(type: shape.Type) -> Any:
    """A value of a type, with what must be there and nothing else."""
    match plain(type)[0]:
        case shape.StructType(cls=cls):
            fields = fields_of(cls).items()
            return {name: _sketched(field.type) for name, field in fields if field.required}
        case shape.VarTupleType(item_type=item):
            return [_sketched(item)]
        case shape.DictType():
            return {}
        case shape.IntType() | shape.FloatType():
            return 1
        case shape.BoolType():
            return True
        case shape.EnumType(cls=cls):
            return next(iter(cls)).value
    return "one"
