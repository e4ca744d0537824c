"""Other users of the machine, and the server: let in by the kernel's word, or by a token."""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import select
import signal
import socket
import ssl
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from interlock.api import socket_diag
from interlock.api.socket_diag import SockDiag, SocketTable
from interlock.modes.cli.main import main
from interlock.modes.embedded import serve
from interlock.modes.settings import EmbeddedSettings
from interlock.testing.clients import Client
from interlock.testing.serving import PATIENCE_S, Server

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
JOB = {"kind": "Job", "metadata": {"name": "planted"}, "spec": {"process": {"command": ["id"]}}}
NOBODY, SOMEBODY = 65534, 65533
_PR_SET_SECUREBITS, _NO_SETUID_FIXUP = 28, 4
CERTIFICATE = Path(__file__).parent / "api" / "certificate"

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def become(uid: int) -> None:
    """Be another user to the kernel's sockets, who may still read where Python is installed."""
    assert ctypes.CDLL(None).prctl(_PR_SET_SECUREBITS, _NO_SETUID_FIXUP) == 0
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def as_user(uid: int, work: Callable[[], Any]) -> Any:
    """Do something as another user, in a child; gives what it came to."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(uid)
            told = json.dumps({"value": work()})
        except BaseException:
            told = json.dumps({"trouble": traceback.format_exc()})
        os.write(write, told.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        came_to = json.loads(answer.read())
    os.waitpid(child, 0)
    assert "trouble" not in came_to, came_to["trouble"]
    return came_to["value"]


@contextlib.contextmanager
def served(uid: int, **settings: Any) -> Iterator[str]:
    """The API of a server that runs as some user; gives its address."""
    with tempfile.TemporaryDirectory() as place:
        os.chown(place, uid, uid)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                become(uid)
                sys.stdout = sys.stderr = io.TextIOWrapper(os.fdopen(write, "wb"))
                listen = {"listen": "127.0.0.1:0", **settings}
                serve(EmbeddedSettings(data=Path(place) / "data", **listen), make_plane=None)
            finally:
                os._exit(0)
        os.close(write)
        try:
            with os.fdopen(read) as told:
                first = told.readline()
                yield next(word for word in first.split() if word.startswith("http"))
        finally:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("users") / "data") as running:
        yield running


def place_of(url: str) -> tuple[str, int]:
    host, _, port = url.partition("://")[2].rpartition(":")
    return host.strip("[]"), int(port)


def status(url: str, token: str = "") -> int:
    """What a plain request for the Jobs is answered with."""
    with socket.create_connection(place_of(url), PATIENCE_S) as sock:
        tls = ssl.create_default_context(cafile=CERTIFICATE / "localhost.crt")
        encrypted = url.startswith("https")
        sock = tls.wrap_socket(sock, server_hostname="localhost") if encrypted else sock
        shown = f"Authorization: Bearer {token}\r\n" if token else ""
        sock.sendall(f"GET {JOBS} HTTP/1.1\r\nHost: localhost\r\n{shown}\r\n".encode())
        with sock.makefile("rb") as answer:
            return int(answer.readline().split()[1])


@only_root
def test_another_user_gets_nothing_but_health(server: Server) -> None:
    client = Client(server.url)
    code, body = as_user(NOBODY, lambda: client.ask("GET", JOBS))
    assert code == 403
    assert "connections of root alone" in body["message"]
    assert "belongs to nobody" in body["message"]
    for method, path in (("GET", "/jobs"), ("POST", "/admin/backup"), ("GET", "/metrics")):
        assert as_user(NOBODY, partial(client.ask, method, path))[0] == 403
    assert as_user(NOBODY, lambda: client.ask("POST", JOBS, JOB)[0]) == 403
    assert as_user(NOBODY, lambda: client.ask("GET", "/healthz")[0]) == 200
    assert client.ask("GET", f"{JOBS}/planted")[0] == 404


@only_root
def test_another_user_gets_no_stream(server: Server) -> None:
    address = server.url.replace("http", "ws") + "/jobs/stream"

    def try_it() -> int:
        try:
            with connect(address):
                return 101
        except InvalidStatus as error:
            return error.response.status_code

    assert as_user(NOBODY, try_it) == 403
    assert try_it() == 101


def send_and_close(place: tuple[str, int], request: bytes) -> None:
    with socket.create_connection(place, PATIENCE_S) as sock:
        sock.sendall(request)


def send_and_be_forgotten(place: tuple[str, int], request: bytes) -> None:
    with socket.create_connection(place, PATIENCE_S) as sock:
        own = (ip_address(sock.getsockname()[0]), sock.getsockname()[1])
        sock.sendall(request)
    # From here on the kernel says root's, for as long as it knows the connection at all.
    while (found := SocketTable().find(own, (ip_address(place[0]), place[1]))) and found.uid:
        select.select([], [], [], 0.01)


def send_and_close_half(place: tuple[str, int], request: bytes) -> None:
    with socket.create_connection(place, PATIENCE_S) as sock:
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(65536):
            pass


def send_and_reset(place: tuple[str, int], request: bytes) -> None:
    with socket.create_connection(place, PATIENCE_S) as sock:
        sock.sendall(request)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def attack(place: tuple[str, int], how: Callable[[tuple[str, int], bytes], None]) -> None:
    """Have Jobs created as somebody who does not wait for an answer."""
    for number in range(10):
        name = f"{how.__name__.replace('_', '-')}-{number}"
        body = json.dumps({**JOB, "metadata": {"name": name}}).encode()
        head = (
            f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        how(place, head.encode() + body)


@only_root
def test_a_client_that_is_gone_already_is_not_taken_for_root(tmp_path: Path) -> None:
    """The kernel says user 0 of a socket that nobody has any more."""
    with Server(tmp_path / "data") as server:
        place = place_of(server.url)
        for how in (send_and_close, send_and_close_half, send_and_reset):
            as_user(NOBODY, partial(attack, place, how))
        server.process.send_signal(signal.SIGSTOP)
        as_user(NOBODY, partial(attack, place, send_and_be_forgotten))
        server.process.send_signal(signal.SIGCONT)
        # What was accepted before it ends is carried out before it ends.
        server.stop()
        server.start()
        assert Client(server.url).ask("GET", JOBS)[1]["items"] == []


@only_root
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, [200, 200, 403], id="IPv4"),
        pytest.param({"listen": "[::1]:0"}, [200, 200, 403], id="IPv6"),
        pytest.param({"listen": "localhost:0"}, [200, 200, 403], id="by name"),
        pytest.param({"any_local_user": True}, [200, 200, 200], id="any user"),
        pytest.param(
            {
                "tls_cert": CERTIFICATE / "localhost.crt",
                "tls_key": CERTIFICATE / "localhost.key",
            },
            [200, 200, 403],
            id="TLS",
        ),
    ],
)
def test_a_server_of_a_plain_user_answers_that_one_and_root(
    settings: dict[str, Any], expected: list[int]
) -> None:
    with served(NOBODY, **settings) as url:
        assert [as_user(uid, lambda: status(url)) for uid in (NOBODY, 0, SOMEBODY)] == expected


@only_root
def test_a_token_lets_everybody_in(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-for-this-test")
    token.chmod(0o600)
    with served(0, token_file=token) as url:
        for uid in (0, NOBODY):
            assert as_user(uid, lambda: status(url)) == 401
            assert as_user(uid, lambda: status(url, "a-token-for-this-test")) == 200


@only_root
def test_the_command_line_says_how_to_get_in(server: Server) -> None:
    def ask() -> tuple[int, str]:
        with contextlib.redirect_stderr(io.StringIO()) as told:
            code = main(["get", "jobs", "--server", server.url])
        return code, told.getvalue()

    code, told = as_user(NOBODY, ask)
    assert code == 6
    assert "belongs to nobody" in told
    assert "--any-local-user" in told


class Silent:
    """A kernel that does not tell."""

    def find(self, own: socket_diag.End, other: socket_diag.End) -> socket_diag.Found | None:
        raise PermissionError(1, "Operation not permitted")


def test_a_kernel_that_does_not_tell_lets_nobody_in() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        caller = socket_diag.ask(Silent(), accepted)
    assert caller.uid is None
    assert "Operation not permitted" in caller.why


@pytest.mark.parametrize("way", [SockDiag(), SocketTable()], ids=["sock_diag", "table"])
@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("::", "127.0.0.1"),
        ("::", "::ffff:127.0.0.1"),
    ],
)
def test_both_ways_to_ask_tell_our_own(
    way: socket_diag.Diagnostics, listen: str, address: str
) -> None:
    family = socket.AF_INET6 if ":" in listen else socket.AF_INET
    both = listen == "::"
    with (
        socket.create_server((listen, 0), family=family, dualstack_ipv6=both) as listener,
        socket.create_connection((address, listener.getsockname()[1])) as client,
        listener.accept()[0] as accepted,
    ):
        assert socket_diag.ask(way, accepted).uid == os.geteuid()
        client.shutdown(socket.SHUT_WR)
        assert socket_diag.ask(way, accepted).uid == os.geteuid()
        client.close()
        assert socket_diag.ask(way, accepted).uid is None
        assert way.find((ip_address("192.0.2.1"), 9), (ip_address("192.0.2.2"), 9)) is None
