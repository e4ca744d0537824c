"""The routes: one table of what is served, who may ask for it, and who answers.

The paths of resources are those of a Kubernetes API server. A route cannot be without a right, and
nothing is served that is not in the table: whoever judges a request judges the very match that
its answer is made from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, get_args

from msgspec import Struct

from interlock.api.answers import Answer, RefusedError
from interlock.api.callers import Access
from interlock.api.parameters import Parameter
from interlock.api.requests import FLAGS, SOCKET, Request, Send
from interlock.resources.kinds import JOBS, KINDS, Kind
from interlock.resources.metadata import GROUP, Key, Noun

#: Longer paths name nothing that there is.
MAX_PATH = 2048
#: Paths whose meaning is remembered.
_REMEMBERED = 8192

#: Answers a request; None when the answer was sent part by part.
Serve = Callable[[Request, Send], Awaitable[Answer | None]]


class Target(Struct, frozen=True):
    """A kind, and which of its resources."""

    kind: Kind
    #: None means every namespace, or a kind that has none.
    namespace: str | None
    #: Empty means all of them.
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """Where the store keeps the one resource that is meant."""
        return Key(self.kind.name, self.namespace or "", self.name)


class Said(Struct, frozen=True):
    """Where a request says a word: in a part of its path, in a parameter, or nowhere."""

    part: str = ""
    parameter: str = ""
    otherwise: str = ""

    def read(self, request: Request) -> str:
        """The word itself."""
        if self.part:
            return request.match.parts[self.part]
        if self.parameter:
            return request.query.get(self.parameter, self.otherwise)
        return self.otherwise

    def __str__(self) -> str:
        if self.part:
            return f"{{{self.part}}}"
        more = f", else {self.otherwise}" if self.otherwise else ""
        return f"?{self.parameter}={more}" if self.parameter else self.otherwise


class ForAll(Struct, frozen=True):
    """Nobody need say who they are: it tells nothing, and whoever watches over us has no token."""

    def __str__(self) -> str:
        return "everybody"


class ForKnown(Struct, frozen=True):
    """Whoever is known may ask."""

    def __str__(self) -> str:
        return "whoever is known"


class OnPath(Struct, frozen=True):
    """The right to a path that is no resource."""

    verb: str

    def __str__(self) -> str:
        return f"{self.verb} this path"


class OnResource(Struct, frozen=True, kw_only=True):
    """The right to do something to resources, in the words of a cluster."""

    verb: str
    resource: str
    group: str = GROUP
    subresource: str = ""
    #: Nothing said means all namespaces.
    namespace: Said = Said()
    name: Said = Said()
    #: A part of the path that is the uid of the resource, and so tells its namespace and name.
    uid: str = ""
    #: A parameter that may say another kind than `resource`.
    kind: str = ""

    def resource_of(self, request: Request) -> str:
        """The resource that is meant, by its plural."""
        named = KINDS.get(request.query.get(self.kind, "")) if self.kind else None
        return named.plural if named else self.resource

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        what += f"/{self.subresource}" if self.subresource else ""
        what += f" (or what ?{self.kind}= says)" if self.kind else ""
        if self.uid:
            return f"{self.verb} {what} in the namespace of that one"
        place = f" in {self.namespace}" if str(self.namespace) else ""
        return f"{self.verb} {what}{place}"


class OnEach(Struct, frozen=True):
    """Several rights, all of which are needed: an answer that is made of several kinds."""

    rights: tuple[OnResource, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.rights))


Right = ForAll | ForKnown | OnPath | OnResource | OnEach


def rights_on_resources(right: Right) -> tuple[OnResource, ...]:
    """The rights to resources that somebody needs; none for what is about no resource."""
    match right:
        case OnResource():
            return (right,)
        case OnEach(rights):
            return rights
    return ()


class When(Struct, frozen=True):
    """A parameter without which a route is not meant."""

    parameter: str
    #: Whether it must say true, or just anything.
    is_flag: bool = False

    def holds(self, request: Request) -> bool:
        """Whether a request gives it."""
        if not request.query_string:
            return False
        if self.is_flag:
            # What is neither true nor false is refused by whoever answers.
            return FLAGS.get(request.query.get(self.parameter, ""), False)
        return bool(request.query.get(self.parameter))

    def __str__(self) -> str:
        return f"?{self.parameter}={'true' if self.is_flag else ''}"


class Route(Struct, frozen=True, kw_only=True, eq=False):
    """One row of the table. GET is for HEAD too; `SOCKET` is the method of WebSockets."""

    method: str
    #: Parts in braces stand for any word. A first part such as `{path...}` stands for one or more,
    #: in paths that begin like none of the other routes.
    path: str
    right: Right
    serve: Serve
    #: What people are told that it gives.
    gives: str = ""
    #: On a server with named tokens: the right that it takes. None reads it off `right`, and takes
    #: an admin for what is about nothing that others may have to do with.
    access: Access | None = None
    #: Whether who answers leaves out all that the caller does not see (`Caller.sees`), or shows
    #: nothing that is anybody's. Else it takes a right on everything.
    filtered: bool = False
    #: Whether an answer may go on for ever; whoever loses the right to it is cut off.
    lasts: bool = False
    #: What may be said in its query.
    query: tuple[Parameter, ...] = ()
    #: What may be said in headers of its own.
    headers: tuple[Parameter, ...] = ()
    #: The headers of its answers with a code, as far as not all refusals with that have them. Not
    #: every answer with the code need have them.
    tells: Mapping[int, tuple[Parameter, ...]] = {}
    #: What its body is, in words; empty when it takes none.
    takes: str = ""
    #: The type of its body, when that is one of ours and no resource.
    body: type[Noun] | None = None
    #: The schema of its body, when that is neither.
    form: Mapping[str, Any] | None = None
    #: What it answers with when that is JSON: a type of ours.
    shows: Any = None
    #: The same for codes with which it answers otherwise.
    shows_also: Mapping[int, Any] = {}
    media: str = "application/json"
    #: The codes with which it may answer well, beside 200.
    successes: tuple[int, ...] = ()
    #: Whether it is there for what it says to whoever takes the wrong way.
    only_refuses: bool = False
    #: How it may refuse, beside the ways that every route has.
    refusals: tuple[int, ...] = ()
    when: When | None = None
    #: Set when it is about resources.
    kind: Kind | None = None
    verb: str = ""
    subresource: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.right, get_args(Right)):
            raise TypeError(f"{self.method} {self.path}: a route needs a right")
        for right in rights_on_resources(self.right):
            said = {right.namespace.part, right.name.part, right.uid} - {""}
            if missing := said - set(_words(self.path)):
                raise TypeError(f"{self.method} {self.path}: no part is named {missing}")


class Match(Struct, frozen=True):
    """A route, and the words of a path that it stands for."""

    route: Route
    parts: Mapping[str, str] = {}
    #: The path without slashes at its end.
    path: str = ""
    #: What is meant, when the route is about resources.
    target: Target | None = None
    #: When the route is no route: the methods that the path is served with.
    allowed: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether nobody need say who they are."""
        return isinstance(self.route.right, ForAll)


async def _refuse(request: Request, send: Send) -> Answer:  # noqa: ARG001
    allowed = request.match.allowed
    if not allowed:
        raise RefusedError(404, "the server could not find the requested resource")
    if request.method == SOCKET:
        raise RefusedError(404, "there is no WebSocket here; the change stream is at /jobs/stream")
    methods = ", ".join(method for method in allowed if method != SOCKET)
    raise RefusedError(
        405,
        f"the server does not allow this method on the requested resource: {methods or 'none'}",
        headers=((b"allow", methods.encode()),),
    )


def _nowhere(method: str) -> Route:
    """What stands for everything that is not in the table: it is asked for, and refused."""
    right = OnPath(method.lower())
    # Which paths there are is told to whoever may read anything at all.
    return Route(
        method=method, path="", right=right, serve=_refuse, access=Access.READ, filtered=True
    )


class Router:
    """Finds the one route of a request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        #: The whole table.
        self.routes = tuple(routes)
        self._shapes: dict[tuple[str, ...], dict[str, list[Route]]] = {}
        self._tails: dict[tuple[str, ...], dict[str, list[Route]]] = {}
        for route in self.routes:
            self._add(route)
        # A word of its own goes before one that stands for any.
        self._order = sorted(self._shapes, key=lambda shape: [not word for word in shape])
        self._taken = {shape[0] for shape in self._shapes if shape and shape[0]}
        self._found = lru_cache(maxsize=_REMEMBERED)(self._find)

    def _add(self, route: Route) -> None:
        shape = tuple("" if _is_word(part) else part for part in _split(route.path))
        shapes = self._shapes
        if _is_path(route.path):
            shape, shapes = shape[1:], self._tails
        rows = shapes.setdefault(shape, {}).setdefault(route.method, [])
        if any(row.when == route.when for row in rows):
            raise ValueError(f"{route.method} {route.path}: there are two routes")
        rows.append(route)
        rows.sort(key=lambda row: row.when is None)

    def match(self, request: Request) -> Match:
        """What a request means; never nothing, for what means nothing is refused by a route too."""
        method = "GET" if request.method == "HEAD" else request.method
        found = self._find if len(request.path) > MAX_PATH else self._found
        options = found(method, request.path)
        for option in options[:-1]:
            if option.route.when is None or option.route.when.holds(request):
                return option
        return options[-1]

    def _find(self, method: str, path: str) -> tuple[Match, ...]:
        """The matches of a path, one of which is meant; the last refuses."""
        words = _split(path)
        if len(path) > MAX_PATH or not path.startswith("/") or not all(map(_is_good, words)):
            return (Match(_nowhere(method), path=path),)
        for shape in self._order:
            if len(shape) == len(words) and all(
                not part or part == word for part, word in zip(shape, words, strict=True)
            ):
                rows = self._shapes[shape]
                refused = Match(_nowhere(method), path=path, allowed=tuple(rows))
                return (*(_matched(row, words) for row in rows.get(method, ())), refused)
        return (*self._find_tail(method, path, words), Match(_nowhere(method), path=path))

    def _find_tail(self, method: str, path: str, words: list[str]) -> Iterator[Match]:
        """The matches of a path that begins like no other route."""
        if not words or words[0] in self._taken:
            return
        for shape, rows in self._tails.items():
            many = len(words) - len(shape)
            if many > 0 and tuple(words[many:]) == shape:
                joined = ["/".join(words[:many]), *words[many:]]
                yield from (_matched(row, joined, path) for row in rows.get(method, ()))
                yield Match(_nowhere(method), path=path, allowed=tuple(rows))


def _matched(route: Route, words: list[str], path: str = "") -> Match:
    parts = {
        _word(part): word
        for part, word in zip(_split(route.path), words, strict=True)
        if _is_word(part)
    }
    target = None
    if route.kind is not None:
        name = parts.get("name", "")
        target = Target(route.kind, parts.get("namespace"), name, route.subresource)
    return Match(route, parts, path or "/" + "/".join(words), target)


def _split(path: str) -> list[str]:
    return path.rstrip("/").split("/")[1:]


def _is_word(part: str) -> bool:
    return part.startswith("{")


def _word(part: str) -> str:
    return part[1:-1].removesuffix("...")


def _words(path: str) -> Iterator[str]:
    return (_word(part) for part in _split(path) if _is_word(part))


def _is_path(path: str) -> bool:
    """Whether the first part of a route stands for several words."""
    return path.partition("}")[0].endswith("...")


def _is_good(word: str) -> bool:
    """Whether a part of a path may name something; no client means these as names."""
    return word not in ("", ".", "..")


class Row(NamedTuple):
    """What may be done to resources of a kind: where, how, and what it is called."""

    path: str
    method: str
    verb: str
    subresource: str = ""
    when: When | None = None


def collection_path(kind: Kind) -> str:
    """Where all resources of a kind are listed."""
    root = f"/apis/{kind.group}" if kind.group else "/api"
    return f"{root}/{kind.version}/{kind.plural}"


_WATCHING = When("watch", is_flag=True)


def rows_of(kind: Kind) -> Iterator[Row]:
    """Every row about a kind."""
    everywhere = here = collection_path(kind)
    if kind.namespaced:
        here = f"{everywhere.rpartition('/')[0]}/namespaces/{{namespace}}/{kind.plural}"
        yield Row(everywhere, "GET", "list")
        yield Row(everywhere, "GET", "watch", when=_WATCHING)
    yield Row(here, "GET", "list")
    yield Row(here, "GET", "watch", when=_WATCHING)
    yield Row(here, "POST", "create")
    yield Row(here, "DELETE", "deletecollection")
    one = f"{here}/{{name}}"
    yield Row(one, "GET", "get")
    yield Row(one, "GET", "watch", when=_WATCHING)
    yield Row(one, "PUT", "update")
    yield Row(one, "PATCH", "patch")
    yield Row(one, "DELETE", "delete")
    if kind.has_status:
        yield Row(f"{one}/status", "GET", "get", "status")
        yield Row(f"{one}/status", "PUT", "update", "status")
        yield Row(f"{one}/status", "PATCH", "patch", "status")


def resource_routes(serve_of: Callable[[str], Serve]) -> Iterator[Route]:
    """The routes of all kinds; a verb has one who answers for all of them."""
    for kind in KINDS.values():
        for row in rows_of(kind):
            words = set(_words(row.path))
            yield Route(
                method=row.method,
                path=row.path,
                right=OnResource(
                    verb=row.verb,
                    resource=kind.plural,
                    group=kind.group,
                    subresource=row.subresource,
                    namespace=Said("namespace") if "namespace" in words else Said(),
                    name=Said("name") if "name" in words else Said(),
                ),
                serve=serve_of(row.verb),
                when=row.when,
                lasts=row.verb == "watch",
                kind=kind,
                verb=row.verb,
                subresource=row.subresource,
            )


def on_jobs(verb: str, namespace: Said, name: Said | None = None) -> OnResource:
    """The right to do something to Jobs."""
    return OnResource(verb=verb, resource=JOBS.plural, namespace=namespace, name=name or Said())
