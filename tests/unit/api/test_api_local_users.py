"""Whose a connection is, and whether its user is let in."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path

import pytest

from interlock.api.requests import Request
from interlock.api.security import Security, Token, UserNames
from interlock.api.socket_diag import UNASKED, Found, Peer, SocketTable, peer_of
from interlock.private_files import user_name
from interlock.testing.asking import JOBS, Asker, asking, in_time, scope_of

ME = os.geteuid()
STRANGER = Peer(12_345_678)


@pytest.mark.parametrize(
    ("found", "uid"),
    [
        pytest.param(Found(1000, 1, 7), 1000, id="open"),
        pytest.param(Found(1000, 4, 7), 1000, id="has sent all, not yet acknowledged"),
        pytest.param(Found(1000, 5, 7), 1000, id="has sent all"),
        pytest.param(Found(0, 1, 7), 0, id="root's"),
        pytest.param(Found(0, 1, 0), None, id="no process has it"),
        pytest.param(Found(0, 4, 0), None, id="closed, not yet acknowledged"),
        pytest.param(Found(0, 5, 0), None, id="closed"),
        pytest.param(Found(0, 6, 0), None, id="only waited for"),
        pytest.param(Found(0, 2, 7), None, id="another one that is being connected"),
        pytest.param(Found(0, 10, 7), None, id="one that listens"),
        pytest.param(Found(0, 7, 7), None, id="over"),
        pytest.param(None, None, id="unknown"),
    ],
)
def test_a_socket_is_its_users_while_a_process_has_it(found: Found | None, uid: int | None) -> None:
    peer = peer_of(found)
    assert peer.uid == uid
    assert bool(peer.why) is (uid is None)


@pytest.mark.parametrize(
    ("security", "peer", "status"),
    [
        pytest.param(Security(), Peer(ME), 200, id="our own user"),
        pytest.param(Security(), Peer(0), 200, id="root"),
        pytest.param(Security(), STRANGER, 403, id="another user"),
        pytest.param(Security(), UNASKED, 403, id="nobody can tell"),
        pytest.param(Security(users=frozenset({5})), Peer(6), 403, id="not of these"),
        pytest.param(Security(any_local_user=True), STRANGER, 200, id="any user"),
        pytest.param(Security(any_local_user=True), UNASKED, 200, id="anybody"),
        pytest.param(
            Security(tokens=(Token(b"x" * 16),)), Peer(0), 401, id="a token is needed of all"
        ),
    ],
)
def test_who_gets_in_without_a_token(security: Security, peer: Peer, status: int) -> None:
    answer = asking(Asker(security=security))("GET", JOBS, peer=peer)
    assert answer.status == status
    if status == 403:
        assert f"connections of {user_name(ME)}" in answer.json["message"]
        (cause,) = answer.json["details"]["causes"]
        assert cause["reason"] == "OtherUser"
        assert "--any-local-user" in cause["message"]
        assert "--token-file" in cause["message"]


def test_health_is_told_to_everybody() -> None:
    assert asking(Asker())("GET", "/healthz", peer=STRANGER).status == 200
    assert asking(Asker())("GET", "/metrics", peer=STRANGER).status == 403


@pytest.mark.parametrize(
    ("security", "peer", "person"),
    [
        pytest.param(Security(), Peer(ME), user_name(ME), id="by the kernel's word"),
        pytest.param(Security(any_local_user=True), STRANGER, "uid:12345678", id="without a name"),
        pytest.param(Security(any_local_user=True), UNASKED, "", id="unknown"),
        pytest.param(Security(tokens=(Token(b"x" * 16),)), UNASKED, "", id="a token has no name"),
        pytest.param(
            Security(tokens=(Token(b"x" * 16),)), Peer(ME), user_name(ME), id="token and user"
        ),
        pytest.param(
            Security(tokens=(Token(b"x" * 16, "bob"),)), Peer(ME), "bob", id="a token with a name"
        ),
    ],
)
def test_who_it_was(security: Security, peer: Peer, person: str) -> None:
    scope = scope_of("GET", JOBS, headers={"authorization": "Bearer " + "x" * 16}, peer=peer)
    request = Request(scope, _nothing)
    request.match = Asker().app.router.match(request)
    in_time(security.admit(request))
    assert request.person == person


async def _nothing() -> dict[str, object]:
    raise AssertionError("no body is needed to know who asks")


def test_a_name_is_asked_for_once() -> None:
    names = UserNames()
    assert in_time(names.of(ME)) == in_time(names.of(ME)) == user_name(ME)


TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1035 1 0
   1: 0100007F:85E6 0100007F:9C3B 06 00000000:00000000 03:0000176F 00000000     0        0 0 3 0
   2: 0100007F:85E6 0100007F:9C3B 01 00000000:00000000 00:00000000 00000000  1000        0 42 1 0
   3: 0100007F:9C3B 0100007F:85E6 01 00000000:00000000 00:00000000 00000000     0        0 43 1 0
   4: 0100007F:85E7 0100007F:9C3B 06 00000000:00000000 03:0000176F 00000000     0        0 0 3 0
"""
TABLE6 = """\
  sl  local_address                         remote_address                        st ...
   0: 00000000000000000000000001000000:0050 00000000000000000000000001000000:0051 01 0:0 0:0 0 7 0 8
   1: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:0051 01 0:0 0:0 0 9 0 8
"""


@pytest.mark.parametrize(
    ("address", "ports", "expected"),
    [
        ("127.0.0.1", (0x85E6, 0x9C3B), Found(1000, 1, 42)),
        ("127.0.0.1", (0x9C3B, 0x85E6), Found(0, 1, 43)),
        ("127.0.0.1", (0x85E7, 0x9C3B), Found(0, 6, 0)),
        ("127.0.0.1", (0x9C3B, 0x9C3B), None),
        ("::1", (0x50, 0x51), Found(7, 1, 8)),
        ("127.0.0.1", (0x50, 0x51), Found(9, 1, 8)),
        ("::1", (0x85E6, 0x9C3B), None),
    ],
)
def test_the_table_of_all_sockets(
    address: str, ports: tuple[int, int], expected: Found | None, tmp_path: Path
) -> None:
    (tmp_path / "tcp").write_text(TABLE)
    (tmp_path / "tcp6").write_text(TABLE6)
    place = ip_address(address)
    own, other = ((place, port) for port in ports)
    assert SocketTable(tmp_path).find(own, other) == expected
