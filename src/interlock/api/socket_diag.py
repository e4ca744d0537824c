"""Socket diagnostics: whose the other end of a connection on this machine is, by the kernel's word.

One question (sock_diag) finds one socket by its two addresses, however many sockets there are.
Where the kernel does not take such questions, its table in `/proc/net` is searched instead.

A socket that its owner has closed belongs to nobody, and the kernel then says user 0. So only a
socket that a process still has open counts, and only while our own end is open too: before it is
closed nobody else can have a connection between the same two addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import socket
import struct
from functools import cache
from pathlib import Path
from typing import Protocol

from msgspec import Struct

_LOG = logging.getLogger("interlock.api")

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
#: nlmsghdr: length, type, flags, sequence number, port.
_HEADER = struct.Struct("=IHHII")
#: inet_diag_req_v2: family, protocol, extensions, states; then the two ends of the socket.
_QUESTION = struct.Struct("=BBBxI")
#: inet_diag_sockid: ports, addresses; then interface and cookie, of which any will do.
_ENDS = struct.Struct("!HH16s16s")
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
#: inet_diag_msg: family, state, timer, retransmits; the ends; expiry, queues, user, inode.
_FOUND = struct.Struct("=BBBB48sIIIII")

_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2 = 1, 4, 5
#: A client that has sent all it wants to say may have closed its half.
_OPEN_STATES = frozenset({_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2})

#: Where a request's scope says who is at the other end of its connection.
PEER = "interlock.peer"

#: An address and a port.
End = tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]


class Found(Struct, frozen=True):
    """A socket as the kernel shows it."""

    uid: int
    state: int
    #: 0 when no process has it open any more.
    inode: int


class Peer(Struct, frozen=True):
    """Who is at the other end of a connection."""

    #: None when nobody can tell.
    uid: int | None
    #: Why nobody can tell.
    why: str = ""


UNASKED = Peer(None, "the kernel was not asked whose it is")


def peer_of(found: Found | None) -> Peer:
    """Whose a socket is, as far as that can be believed."""
    if found is None:
        return Peer(
            None,
            "the kernel knows no such connection here: it was closed already, or it comes out of "
            "another network namespace, a container's say",
        )
    if found.inode == 0 or found.state not in _OPEN_STATES:
        return Peer(None, "its other end was closed already, and so belongs to nobody")
    return Peer(found.uid)


class Diagnostics(Protocol):
    """Finds a socket by its own end and the end that it is connected to."""

    def find(self, own: End, other: End) -> Found | None:
        """The socket, or None when there is none.

        Raises:
            OSError: The kernel does not tell.
        """
        ...


class SockDiag:
    """Asks the kernel by netlink."""

    def __init__(self) -> None:
        self._sock: socket.socket | None = None
        self._number = 0

    def find(self, own: End, other: End) -> Found | None:
        """The socket; one exchange with the kernel, which answers before the sending returns."""
        family = socket.AF_INET if own[0].version == 4 else socket.AF_INET6
        ends = _ENDS.pack(own[1], other[1], own[0].packed, other[0].packed)
        try:
            answer = self._exchange(
                _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + ends
            )
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            self.close()
            raise
        found_family, state, _, _, sockid, _, _, _, uid, inode = _FOUND.unpack_from(answer)
        if _plain_ends(found_family, sockid) != (own, other):
            return None
        return Found(uid, state, inode)

    def close(self) -> None:
        """Let the socket go; the next question opens another."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _exchange(self, question: bytes) -> bytes:
        if self._sock is None:
            kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            self._sock = socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG)
        self._number = number = self._number % 0xFFFF_FFFF + 1
        length = _HEADER.size + len(question) + len(_ANY)
        head = _HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, number, 0)
        self._sock.send(head + question + _ANY)
        while True:
            answer = self._sock.recv(8192)
            _, kind_of_answer, _, answered, _ = _HEADER.unpack_from(answer)
            if answered != number:  # Of a question that was given up.
                continue
            if kind_of_answer == _NLMSG_ERROR:
                code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
                raise OSError(code, os.strerror(code))
            return answer[_HEADER.size :]


def _plain_ends(family: int, sockid: bytes) -> tuple[End, End]:
    own_port, other_port, own, other = _ENDS.unpack_from(sockid)
    size = 4 if family == socket.AF_INET else 16
    return (
        (_plain(ipaddress.ip_address(own[:size])), own_port),
        (_plain(ipaddress.ip_address(other[:size])), other_port),
    )


class SocketTable:
    """Searches the kernel's table of all sockets: slower, the more there are."""

    def __init__(self, place: Path = Path("/proc/self/net")) -> None:
        self._place = place

    def find(self, own: End, other: End) -> Found | None:
        """The socket; of several with these ends, the one that a process has open."""
        wanted = f" {_table_end(own)} {_table_end(other)} ".encode()
        found = self._search("tcp", wanted) if own[0].version == 4 else None
        if found is None:
            # A socket of IPv6 may be connected to an address of IPv4.
            mapped = f" {_table_end(_mapped(own))} {_table_end(_mapped(other))} ".encode()
            found = self._search("tcp6", mapped)
        return found

    def _search(self, name: str, wanted: bytes) -> Found | None:
        try:
            table = (self._place / name).read_bytes()
        except FileNotFoundError:
            return None
        best, at = None, -1
        while (at := table.find(wanted, at + 1)) >= 0:
            words = table[at + len(wanted) : at + len(wanted) + 200].split(None, 7)
            one = Found(int(words[4]), int(words[0], 16), int(words[6]))
            if best is None or one.inode:
                best = one
        return best


def _table_end(end: End) -> str:
    packed = end[0].packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{end[1]:04X}"


def _mapped(end: End) -> End:
    address, port = end
    if isinstance(address, ipaddress.IPv6Address):
        return end
    return ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed), port


def _plain(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address of IPv4 that is written as one of IPv6, as what it is."""
    return getattr(address, "ipv4_mapped", None) or address


@cache
def diagnostics() -> Diagnostics | None:
    """The best way to ask that works here, tried on a connection of our own; or None."""
    ways: tuple[Diagnostics, ...] = (SockDiag(), SocketTable())
    for way in ways:
        if _works(way):
            if isinstance(way, SocketTable):
                _LOG.warning(
                    "the kernel takes no questions about single sockets (sock_diag): its table of "
                    "all sockets is read for every new connection"
                )
            return way
    _LOG.warning(
        "the kernel does not tell whose a connection is: without a token nobody is let in; "
        "give --token-file, or --any-local-user"
    )
    return None


def _works(way: Diagnostics) -> bool:
    with contextlib.ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            client = stack.enter_context(socket.create_connection(listener.getsockname()))
            accepted = stack.enter_context(listener.accept()[0])
            return ask(way, accepted).uid == os.geteuid() and client.fileno() >= 0
        except OSError:
            return False


def ask(way: Diagnostics, accepted: socket.socket) -> Peer:
    """Whose the other end of a connection is that was accepted here."""
    try:
        own, other = _end(accepted.getsockname()), _end(accepted.getpeername())
        if not other[0].is_loopback and other[0] != own[0]:
            return Peer(None, "it comes from another machine")
        peer = peer_of(way.find(other, own))
        # Still connected: so what was found is the other end of this very connection.
        accepted.getpeername()
    except OSError as error:
        return Peer(None, f"the kernel does not tell whose it is ({error.strerror})")
    return peer


def _end(name: tuple[str, int]) -> End:
    return _plain(ipaddress.ip_address(name[0].partition("%")[0])), name[1]


def peer_at(transport: asyncio.BaseTransport) -> Peer:
    """Whose the other end of a connection is; asked once, as soon as it is accepted."""
    way = diagnostics()
    given = transport.get_extra_info("socket")
    if way is None or given is None or given.family not in (socket.AF_INET, socket.AF_INET6):
        return UNASKED
    # The event loop's own object may remember what the kernel would say otherwise by now.
    accepted = socket.socket(fileno=given.fileno())
    try:
        return ask(way, accepted)
    finally:
        accepted.detach()
