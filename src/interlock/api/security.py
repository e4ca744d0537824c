"""Authentication. On loopback the server's own user and root; elsewhere whoever has a token.

Whose a connection on this machine is, the kernel says. A page in a browser is not its user: a
foreign `Origin` is always refused, and on loopback a foreign `Host` too, so that no name that an
attacker points at 127.0.0.1 gets in. What somebody who is in may do says `authorization`.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
import re
import threading
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from interlock.api.answers import Cause, Details, RefusedError
from interlock.api.authorization import check_access
from interlock.api.callers import Access, Caller, trusted
from interlock.api.requests import Request
from interlock.api.socket_diag import PEER, UNASKED, Peer
from interlock.errors import InterlockError
from interlock.private_files import (
    NotPrivateError,
    own_users,
    read_secret,
    token_lines,
    user_name,
)

MIN_TOKEN = 16
#: What a token's owner may be called: users, mail addresses, and accounts of services.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+/-]{0,127}")
NAME_WORDS = "letters, digits and . _ @ + / -, at most 128"
#: Marks the refusal of a connection that belongs to another user.
OTHER_USER = "OtherUser"
_WAYS_IN = (
    "start the server with --token-file FILE and show a token of it, or with --any-local-user to "
    "let every user of this machine run commands as the server's user"
)
#: A directory service that has not told a name by then is not waited for.
_NAME_S = 2.0
#: What a browser says of a request that a page of another site made.
_FOREIGN_SITES = frozenset({b"cross-site", b"same-site"})


class TokenFileError(InterlockError):
    """The token file cannot be used."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Guard(Protocol):
    """Stands at the door of a server."""

    async def admit(self, request: Request) -> None:
        """Let a request in; `request.match` says which route of the table it means.

        Raises:
            RefusedError: It is not let in, and why.
            InterlockError: Whoever would know cannot be asked.
        """
        ...


class UserNames:
    """What users are called, found out once each, and away from the event loop.

    A directory service may take its time, or never answer.
    """

    def __init__(self) -> None:
        self._known: dict[int, Future[str]] = {}
        self._slow: set[int] = set()

    async def of(self, uid: int) -> str:
        """The name of a user; `uid:1234` when there is none, or nobody tells it."""
        known = self._known.get(uid)
        if known is None:
            known = self._known[uid] = Future()
            # A thread of its own, that nobody waits for at the end of the program.
            threading.Thread(target=_find_name, args=(uid, known), daemon=True).start()
        if not known.done() and uid not in self._slow:
            await asyncio.wait([asyncio.wrap_future(known)], timeout=_NAME_S)
        if known.done():
            return known.result()
        self._slow.add(uid)
        return f"uid:{uid}"


def _find_name(uid: int, known: Future[str]) -> None:
    known.set_result(user_name(uid))


class Token(Struct, frozen=True):
    """What lets its owner in, and who that is; without a name it proves nobody."""

    secret: bytes
    name: str = ""
    rights: frozenset[Access] = frozenset({Access.ADMIN})
    paths: frozenset[str] = frozenset()

    @property
    def caller(self) -> Caller:
        """Whoever shows it."""
        return Caller(name=self.name, rights=self.rights, paths=self.paths)

    def __repr__(self) -> str:
        return f"Token({self.name!r})"


class Security(Struct, kw_only=True):
    """The rules for one listener. Its tokens may be exchanged while it is open."""

    #: Whether only this machine can reach the listener.
    loopback: bool = True
    #: Any of these lets in; empty means that no token is needed.
    tokens: tuple[Token, ...] = ()
    #: On loopback and without tokens: let in every user of this machine.
    any_local_user: bool = False
    #: Else these.
    users: frozenset[int] = field(default_factory=own_users)
    names: UserNames = field(default_factory=UserNames)

    def __repr__(self) -> str:
        return f"Security(loopback={self.loopback}, tokens={len(self.tokens)})"

    @property
    def asks_the_kernel(self) -> bool:
        """Whether it depends on the kernel's word who gets in."""
        return self.loopback and not self.tokens and not self.any_local_user

    async def admit(self, request: Request) -> None:
        """Let a request in.

        Raises:
            RefusedError: It comes from a foreign page, without a token, from another user, or
                from somebody without the right to it.
        """
        check_origin(request)
        headers = request.headers
        host = headers.get(b"host", b"")
        if self.loopback and not _is_local(host):
            raise RefusedError(403, "this server answers to names of the loopback interface only")
        if request.match.is_open:
            return
        peer: Peer = request.scope.get("state", {}).get(PEER, UNASKED)
        caller = trusted()
        if self.tokens:
            token = self._token_of(request)
            if token is None:
                raise unauthorized("a valid token is needed: Authorization: Bearer TOKEN")
            # Whose the connection is says less: a proxy's is one and the same for everybody.
            caller = token.caller
        elif self.asks_the_kernel and peer.uid not in self.users:
            raise await self._other_user(peer)
        if not caller.name and peer.uid is not None:
            name = await self.names.of(peer.uid)
            caller = replace(caller, name=name) if self.tokens else trusted(name)
        request.caller = caller
        check_access(request.match.route, caller)

    def knows(self, request: Request) -> bool:
        """Whether the token of a request that was let in still allows all that it did."""
        if not self.tokens or request.match.is_open:
            return True
        token, had = self._token_of(request), request.caller
        return (
            token is not None
            and token.name in ("", had.name)
            and token.rights >= had.rights
            and token.paths >= had.paths
        )

    async def _other_user(self, peer: Peer) -> RefusedError:
        me = os.geteuid()
        mine = f"{await self.names.of(me)} and root" if me else "root"
        told = peer.why
        if peer.uid is not None:
            told = f"the kernel says that it belongs to {await self.names.of(peer.uid)}"
        return RefusedError(
            403,
            f"this server answers connections of {mine} alone, and not this one: {told}",
            details=Details(causes=(Cause(OTHER_USER, _WAYS_IN),)),
        )

    def _token_of(self, request: Request) -> Token | None:
        """The token that a request shows, when it is one of ours."""
        scheme, _, given = request.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        known = None
        # Every token is compared, so that the time tells nothing.
        for token in self.tokens:
            if hmac.compare_digest(token.secret, given.strip()):
                known = token
        return known


def check_origin(request: Request) -> None:
    """Refuse what a page of another site had a browser send, and what names two hosts.

    Raises:
        RefusedError: It is one of these.
    """
    headers = request.headers
    if sum(name == b"host" for name, _ in request.scope["headers"]) > 1:
        raise RefusedError(400, "there is more than one Host header")
    origin = headers.get(b"origin")
    if origin is not None:
        if not _is_own(origin, headers.get(b"host", b"")):
            raise RefusedError(403, "requests from pages of other sites are refused")
    elif (
        request.method not in ("GET", "HEAD")
        and headers.get(b"sec-fetch-site", b"none") in _FOREIGN_SITES
    ):
        raise RefusedError(403, "requests from pages of other sites are refused")


def unauthorized(message: str) -> RefusedError:
    """The refusal of somebody who is not known."""
    return RefusedError(401, message, headers=((b"www-authenticate", b"Bearer"),))


def read_tokens(path: Path) -> tuple[Token, ...]:
    """The tokens of a file, one a line, NAME:TOKEN or TOKEN.

    Raises:
        TokenFileError: There is none, or one that is no secret: too short, or known to others; or
            a name that is none.
    """
    try:
        lines = token_lines(read_secret(path))
    except NotPrivateError as error:
        raise TokenFileError(error.message, error.hint) from error
    except OSError as error:
        raise TokenFileError(f"{path}: {error.strerror}") from error
    if not lines:
        raise TokenFileError(f"{path}: expected a token, found none")
    named: dict[bytes, str] = {}
    for name, secret in lines:
        if len(secret) < MIN_TOKEN:
            whose = f" of {name[:80]!r}" if name else ""
            expected = f"expected tokens of at least {MIN_TOKEN} characters"
            raise TokenFileError(f"{path}: {expected}, found one{whose} with {len(secret)}")
        if name and not NAME.fullmatch(name):
            hint = "a line is NAME:TOKEN, or TOKEN alone"
            raise TokenFileError(f"{path}: {name[:80]!r} is no name: expected {NAME_WORDS}", hint)
        if named.setdefault(secret, name) != name:
            whose = f"{named[secret] or 'nobody'} and {name or 'nobody'}"
            raise TokenFileError(f"{path}: one token is given twice, for {whose}")
    return tuple(Token(secret, name) for secret, name in named.items())


def is_loopback(host: str) -> bool:
    """Whether a listening address can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _is_local(host: bytes) -> bool:
    name = _host_name(host.decode("latin-1"))
    return name is not None and is_loopback(name)


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _is_own(origin: bytes, host: bytes) -> bool:
    """Whether a page was served by this very server: the same name and port."""
    given = origin.decode("latin-1").lower()
    scheme, _, place = given.partition("://")
    return scheme in ("http", "https") and bool(place) and place == host.decode("latin-1").lower()
