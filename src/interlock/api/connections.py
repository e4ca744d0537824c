"""The connections of a server, bounded: so many in all, so many from one address.

A descriptor that a stranger holds is one that the store, the keeper and the logs cannot have. When
there is no room, whoever has asked for nothing longest makes it; whoever is being answered stays.
"""

from __future__ import annotations

import ipaddress
import logging
import resource
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

_LOG = logging.getLogger("interlock.api")

#: More are not served, however many descriptors there are.
_MOST = 10_000
#: Descriptors that are kept for everything else, unless that is more than a quarter of all.
_RESERVE = 256
#: What is wrong with connections is told this often, with how often it happened since.
_TOLD_EVERY_S = 60.0


class Limits(Struct, frozen=True, kw_only=True):
    """How long clients may take, and how many there may be."""

    #: For the first byte of a connection.
    first_byte_s: float = 10.0
    #: For the whole head of a request, from its first byte on.
    head_s: float = 20.0
    #: For the whole body of a request.
    body_s: float = 120.0
    #: For agreeing on how to encrypt.
    handshake_s: float = 10.0
    #: Connections in all; None means what the descriptors of this process allow.
    most: int | None = None
    #: Connections from one address; None means three quarters of all.
    most_each: int | None = None


class Guest(Protocol):
    """A connection, to those who count."""

    @property
    def address(self) -> str:
        """Where it comes from."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether nothing was asked for that is still being answered."""
        ...


class Connections:
    """Who is connected, in the order they came."""

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.most = limits.most or most_connections()
        self.most_each = limits.most_each or max(1, self.most * 3 // 4)
        self._all: dict[Guest, None] = {}
        self._by_address: dict[str, dict[Guest, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, guest: Guest) -> Guest | None:
        """Count a newcomer; returns who has to go for it: the newcomer itself when nobody idles.

        Whoever has to go is counted until it has left.
        """
        here = self._by_address.setdefault(place_of(guest.address), {})
        goes: Guest | None = None
        if len(here) >= self.most_each:
            goes = _first_idle(here) or guest
        elif len(self._all) >= self.most:
            goes = _first_idle(self._all) or guest
        self._all[guest] = here[guest] = None
        return goes

    def leave(self, guest: Guest) -> None:
        """Count it no more; one that has left already is passed over."""
        self._all.pop(guest, None)
        here = self._by_address.get(place_of(guest.address), {})
        here.pop(guest, None)
        if not here:
            self._by_address.pop(place_of(guest.address), None)


def _first_idle(guests: Iterable[Guest]) -> Guest | None:
    return next((guest for guest in guests if guest.is_idle), None)


@lru_cache(maxsize=1024)
def place_of(address: str) -> str:
    """What counts as one address: in version 6 a whole network, for a client has all of it."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address) and not ip.is_loopback:
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


def most_connections() -> int:
    """How many connections the descriptors of this process allow, with some kept in reserve.

    The limit is taken as it is found and not raised: tasks have the limit of the server.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST
    return max(1, min(_MOST, files - min(_RESERVE, files // 4)))


class Complaints:
    """Says in the log what is wrong with connections, now and then."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._told_at: dict[str, float] = {}
        self._since: dict[str, int] = {}

    def tell(self, what: str, *details: object) -> None:
        """Say it, unless it was said shortly before; then it is counted."""
        count = self._since.get(what, 0) + 1
        told_at = self._told_at.get(what)
        if told_at is not None and self._now() - told_at < _TOLD_EVERY_S:
            self._since[what] = count
            return
        self._told_at[what] = self._now()
        self._since[what] = 0
        _LOG.warning(f"{what} (%d times since it was last told)", *details, count)
