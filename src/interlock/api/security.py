"""Who may ask. On loopback anyone on the machine; elsewhere whoever has the token.

A page in a browser is not "anyone on the machine": a foreign `Origin` is always refused, and on
loopback a foreign `Host` too, so that no name that an attacker points at 127.0.0.1 gets in.
"""

from __future__ import annotations

import hmac
import ipaddress
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from interlock.api.answers import RefusedError
from interlock.api.requests import Request
from interlock.resources.errors import InterlockError

#: These tell nothing, and whoever watches over a server has no token.
OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
MIN_TOKEN = 16


class TokenFileError(InterlockError):
    """The token file cannot be used."""


class Guard(Protocol):
    """Stands at the door of a server."""

    async def admit(self, request: Request) -> None:
        """Let a request in; one for a WebSocket counts as a GET.

        Raises:
            RefusedError: It is not let in, and why.
            InterlockError: Whoever would know cannot be asked.
        """
        ...


class Security(Struct, frozen=True, kw_only=True):
    """The rules for one listener."""

    #: Whether only this machine can reach the listener.
    loopback: bool = True
    #: Any of these lets in; empty means that no token is needed.
    tokens: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        return f"Security(loopback={self.loopback}, tokens={len(self.tokens)})"

    async def admit(self, request: Request) -> None:
        """Let a request in.

        Raises:
            RefusedError: It comes from a foreign page, or without a token.
        """
        headers = request.headers
        host = headers.get(b"host", b"")
        if self.loopback and not _is_local(host):
            raise RefusedError(403, "this server answers to names of the loopback interface only")
        origin = headers.get(b"origin")
        if origin is not None and not _is_own(origin, host):
            raise RefusedError(403, "requests from pages of other sites are refused")
        if self.tokens and request.path not in OPEN_PATHS:
            self._check_token(headers.get(b"authorization", b""))

    def _check_token(self, authorization: bytes) -> None:
        scheme, _, given = authorization.partition(b" ")
        known = False
        if scheme.lower() == b"bearer":
            # Every token is compared, so that the time tells nothing.
            for token in self.tokens:
                known |= hmac.compare_digest(token, given.strip())
        if not known:
            raise unauthorized("a valid token is needed: Authorization: Bearer TOKEN")


def unauthorized(message: str) -> RefusedError:
    """The refusal of somebody who is not known."""
    return RefusedError(401, message, headers=((b"www-authenticate", b"Bearer"),))


def read_tokens(path: Path) -> tuple[bytes, ...]:
    """The tokens of a file, one a line; blank lines and lines with # are left out.

    Raises:
        TokenFileError: There is none, or one that is too short to be a secret.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise TokenFileError(f"{path}: {error.strerror}") from error
    tokens = tuple(line.strip() for line in lines if line.strip() and not line.startswith(b"#"))
    if not tokens:
        raise TokenFileError(f"{path}: expected a token, found none")
    if any(len(token) < MIN_TOKEN for token in tokens):
        raise TokenFileError(f"{path}: expected tokens of at least {MIN_TOKEN} characters")
    return tokens


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
