"""The API client: requests sent once, tried again when that is safe, refused in our words.

There is no fixed rate. Each kind may have a few requests under way, more while the server answers
quickly. The server also says when it is busy and for how long to wait, and a request that waits
keeps its place. So a busy server gets fewer requests by itself, and a storm about one kind leaves
the others their turn.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from msgspec import Struct

from interlock.control.backoff import delay_after
from interlock.control.clock import Clock, pause
from interlock.errors import InterlockError, UnavailableError
from interlock.kube.client.adaptive_limit import AdaptiveLimit
from interlock.kube.client.config import ClusterConfig
from interlock.kube.client.credentials import Credentials
from interlock.kube.client.errors import DistrustedError, error_of, read_status
from interlock.kube.client.sending import Guard, fence_of, guarded
from interlock.kube.client.sockets import Sockets
from interlock.resources.metadata import Key

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
#: How we are named in the server's logs and in managed fields.
AGENT = "interlock"
#: A server that asks for a longer pause is asked again after this all the same.
LONGEST_PAUSE_S = 10.0
#: How much of a stream is read ahead.
_READ_AHEAD = 1 << 20
_NO_QUERY: Mapping[str, str] = {}


class Patience(Struct, frozen=True, kw_only=True):
    """How long a request may take, and how often it is sent."""

    timeout_s: float = 30.0
    attempts: int = 6


_USUAL = Patience()
#: Others wait for these, and nothing is lost without them: reviews of who asks, and events.
_LITTLE = Patience(timeout_s=10.0, attempts=3)
#: A renewal is tried again by whoever renews, who knows how much time is left.
_ONCE = Patience(timeout_s=4.0, attempts=1)


def usual_patience(kind: str, *, lease: Patience = _ONCE) -> Patience:
    """How patient to be with requests about a kind."""
    match kind:
        case "Lease":
            return lease
        case "TokenReview" | "SubjectAccessReview" | "Event":
            return _LITTLE
        case _:
            return _USUAL


_CONNECT_S = 5.0
#: As often as patience allows.
_MANY = 1 << 30


class Call(Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    path: str
    #: What it is about; for errors, and to be fair between kinds.
    key: Key
    query: Mapping[str, str] = _NO_QUERY
    body: bytes | None = None
    media: str = JSON
    #: The version that a write is to replace.
    expected: str = ""
    #: The version that a list or watch is to begin at.
    version: int = 0
    #: Asked whenever the request is about to be sent; a write without one is always let pass.
    guard: Guard | None = None

    @property
    def is_read(self) -> bool:
        """Whether it can be sent twice without harm."""
        return self.method == "GET"


class _NotAnsweredError(Exception):
    """A request that got no usable answer."""

    def __init__(self, error: InterlockError, *, again: int, pause_s: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        #: How often in all it is safe and sensible to send the request.
        self.again = again
        #: How long the server asked to wait.
        self.pause_s = pause_s


class Stream:
    """An answer that goes on: bytes as they come."""

    def __init__(self, response: aiohttp.ClientResponse, what: str) -> None:
        self._response = response
        self._what = what

    async def read(self) -> bytes:
        """What came next; nothing at the end.

        Raises:
            UnavailableError: The connection was lost, or silent for too long.
        """
        import aiohttp

        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnavailableError(f"{self._what}: lost: {_told(error)}") from error

    def close(self) -> None:
        """Leave; the connection is not used again."""
        self._response.close()


class Client:
    """One API server. Open it on the event loop that uses it, and close it there."""

    def __init__(
        self,
        config: ClusterConfig,
        clock: Clock,
        luck: Random,
        *,
        at_once: int | None = None,
        patience: Callable[[str], Patience] = usual_patience,
    ) -> None:
        self.config = config
        self._patience = patience
        self._clock = clock
        self._luck = luck
        self._credentials = Credentials(config, clock)
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()
        #: By kind, and apart from the others what ends something: a stop waits for no start.
        self._places: defaultdict[tuple[str, bool], AdaptiveLimit] = defaultdict(
            lambda: (
                AdaptiveLimit(clock) if at_once is None else AdaptiveLimit(clock, at_once, at_once)
            )
        )
        #: How many answers there were, by kind, method and HTTP status; 0 when there was none.
        self.answers: Counter[tuple[str, str, int]] = Counter()
        #: How often watches were resumed, by kind.
        self.resumed: Counter[str] = Counter()

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        await self._sockets.close(self._clock)

    @property
    def open_sockets(self) -> int:
        """How many connections there are."""
        return len(self._sockets.open)

    async def send(self, call: Call) -> bytes:
        """The body of the answer.

        Reads are sent again when the server is busy or does not answer; writes only when the
        server said, or the connection shows, that nothing was done.

        Raises:
            FencedError: The guard let it pass no more, and nothing was done.
            InterlockError: What the server refused, or that it does not answer.
        """
        patience = self._patience(call.key.kind)
        async with self._place(call):
            return await self._persist(patience, lambda: self._ask(call, patience))

    async def stream(self, call: Call, *, silent_s: float) -> Stream:
        """The beginning of an answer that goes on; it counts as lost when silent for too long.

        Raises:
            InterlockError: As with `send`.
        """
        patience = self._patience(call.key.kind)
        async with self._place(call):
            return await self._persist(patience, lambda: self._begin(call, patience, silent_s))

    def _place(self, call: Call) -> AbstractAsyncContextManager[None]:
        places = self._places[call.key.kind, call.method == "DELETE"]
        # How long a list takes says how much there is, not how busy the server is.
        return places.place(counts=not call.is_read)

    async def _persist(self, patience: Patience, attempt: Callable[[], Awaitable[T]]) -> T:
        failures = 0
        while True:
            try:
                return await attempt()
            except _NotAnsweredError as failure:
                failures += 1
                if failures >= min(failure.again, patience.attempts):
                    raise failure.error from failure.__cause__
                # Spread, so that those who were refused together do not come back together.
                delay_s = delay_after(failures, self._luck)
                await pause(self._clock, delay_s + min(failure.pause_s, LONGEST_PAUSE_S))

    async def _ask(self, call: Call, patience: Patience) -> bytes:
        import aiohttp

        response = await self._respond(call, patience)
        try:
            async with asyncio.timeout(patience.timeout_s):
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # The server was at work on it when the answer broke off.
            raise self._lost(call, error, nothing_done=False) from error
        finally:
            response.release()
        if response.status >= 300:
            raise self._refused(call, response, body)
        self.answers[call.key.kind, call.method, response.status] += 1
        return body

    async def _begin(self, call: Call, patience: Patience, silent_s: float) -> Stream:
        response = await self._respond(call, patience, silent_s)
        if response.status < 300:
            self.answers[call.key.kind, "WATCH", response.status] += 1
            return Stream(response, f"watching {call.key.kind}")
        try:
            body = await response.read()
        finally:
            response.release()
        raise self._refused(call, response, body)

    async def _respond(
        self, call: Call, patience: Patience, silent_s: float | None = None
    ) -> aiohttp.ClientResponse:
        """Send the request and wait for the head of the answer."""
        import aiohttp
        from yarl import URL

        session = self._session or self._open()
        url = f"{self.config.server}{call.path}"
        if call.query:
            url = f"{url}?{urlencode(call.query, quote_via=quote)}"
        headers = await self._credentials.headers()
        body: Any = call.body
        if call.body is not None:
            headers = [*headers, ("Content-Type", call.media)]
        if call.guard is not None:
            call.guard()
            body = guarded(call.body or b"", call.guard)
        options: dict[str, Any] = {"ssl": self._credentials.tls or True}
        if self.config.tls_server_name:
            options["server_hostname"] = self.config.tls_server_name
        if self.config.proxy_url:
            options["proxy"] = self.config.proxy_url
        try:
            async with asyncio.timeout(patience.timeout_s):
                return await session.request(
                    call.method,
                    URL(url, encoded=True),
                    data=body,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(sock_connect=_CONNECT_S, sock_read=silent_s),
                    read_bufsize=_READ_AHEAD,
                    allow_redirects=False,
                    **options,
                )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise self._lost(call, error, nothing_done=True) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if (fence := fence_of(error)) is not None:
                raise fence from error
            raise self._lost(call, error, nothing_done=False) from error

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp

        self._session = aiohttp.ClientSession(
            # How much is under way is limited by kind; watches must not use up a common limit.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=60.0, socket_factory=self._sockets.make
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": AGENT},
        )
        return self._session

    def _lost(self, call: Call, error: Exception, *, nothing_done: bool) -> _NotAnsweredError:
        import aiohttp

        self.answers[call.key.kind, call.method, 0] += 1
        # A certificate that is not trusted is not trusted a second later either.
        distrusted = isinstance(error, aiohttp.ClientSSLError)
        kind = DistrustedError if distrusted else UnavailableError
        told = kind(f"{self.config.server} does not answer ({self.config.source}): {_told(error)}")
        safe = not distrusted and (nothing_done or call.is_read)
        return _NotAnsweredError(told, again=_MANY if safe else 1)

    def _refused(
        self, call: Call, response: aiohttp.ClientResponse, body: bytes
    ) -> _NotAnsweredError:
        code = response.status
        self.answers[call.key.kind, call.method, code] += 1
        status = read_status(code, body)
        error = error_of(status, call.key, expected=call.expected, version=call.version)
        if code == 401:
            # Once more with fresh credentials, where there may be any.
            return _NotAnsweredError(error, again=2 if self._credentials.forget() else 1)
        # With 429 the server says that it did not even begin. All else may have been done.
        safe = code == 429 or (code >= 500 and call.is_read)
        asked = response.headers.get("Retry-After", "")
        pause_s = float(asked) if asked.isdigit() else 0.0
        return _NotAnsweredError(error, again=_MANY if safe else 1, pause_s=pause_s)


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__


def path_of(
    group: str, version: str, plural: str, *, namespace: str = "", name: str = "", part: str = ""
) -> str:
    """Where an API server keeps resources, one of them, or a part of one."""
    pieces = ["apis", group, version] if group else ["api", version]
    if namespace:
        pieces += ["namespaces", namespace]
    pieces.append(plural)
    if name:
        pieces.append(name)
    if part:
        pieces.append(part)
    return "/" + "/".join(quote(piece, safe="") for piece in pieces)
