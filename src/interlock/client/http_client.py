"""An HTTP/1.1 client on a plain socket: the least that a command needs, quick to start."""

from __future__ import annotations

import selectors
import socket

from interlock.client.errors import BAD_INPUT, CommandError, UnreachableError
from interlock.client.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from ssl import SSLContext

_CONNECT_S = 10.0
#: An ordinary request that was not answered by then is given up.
ANSWER_S = 120.0
#: A head, or a line between chunks, is never longer.
_MOST_HEAD, _MOST_LINE = 65_536, 4096
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def quote(text: str) -> str:
    """The text as it may stand in a path or a query."""
    return "".join(
        chr(b) if b in _UNRESERVED else f"%{b:02X}" for b in text.encode(errors="surrogateescape")
    )


class Body:
    """Takes the body of an answer out of the bytes it is sent as, however they are cut."""

    def __init__(self, headers: dict[str, str], *, empty: bool) -> None:
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length")
        #: Bytes left of the body or of the chunk; None means up to the end of the connection.
        self._left: int | None = 0 if self._chunked else int(length) if length else None
        self._held = b""
        #: Whether the last chunk has come, which is empty.
        self._is_last = False
        self.done = empty or (not self._chunked and self._left == 0)
        #: Whether only the end of the connection ends the body.
        self.until_close = not self._chunked and length is None and not empty

    def feed(self, data: bytes) -> bytes:
        """The part of the body that these bytes carry."""
        if self.done:
            return b""
        if self._chunked:
            return self._feed_chunks(data)
        if self._left is None:
            return data
        taken = data[: self._left]
        self._left -= len(taken)
        self.done = self._left == 0
        return taken

    def _feed_chunks(self, data: bytes) -> bytes:
        self._held += data
        parts = []
        while self._held and not self.done:
            if self._left:
                part = self._held[: self._left]
                parts.append(part)
                self._held = self._held[len(part) :]
                self._left -= len(part)
                if self._left == 0:
                    self._left = None  # The line end after the chunk comes next.
                continue
            if not self._next_chunk():
                break
        return b"".join(parts)

    def _next_chunk(self) -> bool:
        """Read a chunk's size, or what follows the last chunk; False when more has to come."""
        skip = 2 if self._left is None else 0
        end = self._held.find(b"\r\n", skip)
        if end < 0:
            if len(self._held) > _MOST_LINE:
                raise ConnectionResetError("the server sent nonsense")
            return False
        line, self._held = self._held[skip:end], self._held[end + 2 :]
        if self._is_last:
            # Lines after the last chunk say nothing to us; the empty one is the end.
            self.done = not line
            return True
        self._left = _size(line)
        self._is_last = self._left == 0
        return True


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or digits.strip(b"0123456789abcdefABCDEF"):
        raise ConnectionResetError("the server sent nonsense")
    return int(digits, 16)


class Answer:
    """A status, headers, and a body that is read as it comes."""

    def __init__(self, sock: socket.socket, status: int, headers: dict[str, str], rest: bytes):
        self.status = status
        self.headers = headers
        #: What the server wants people to know beside the answer.
        self.warnings: list[str] = []
        self._sock = sock
        self.body = Body(headers, empty=status in (204, 304) or status < 200)
        self._first: bytes | None = self.body.feed(rest)

    def fileno(self) -> int:
        """For waiting on several answers at once."""
        return self._sock.fileno()

    @property
    def waiting(self) -> bool:
        """Whether bytes are here already, which waiting on the socket would not tell."""
        pending = getattr(self._sock, "pending", None)
        return bool(self._first) or self.body.done or bool(pending and pending())

    def receive(self) -> bytes | None:
        """The next part of the body, perhaps empty; None after its end."""
        if self._first:
            first, self._first = self._first, None
            return first
        if self.body.done:
            return None
        data = self._sock.recv(65536)
        if data:
            return self.body.feed(data)
        if not self.body.until_close:
            raise ConnectionResetError("the server closed the connection in the middle")
        self.body.done = True
        return None

    def parts(self) -> Iterator[bytes]:
        """The body, as it comes."""
        while (part := self.receive()) is not None:
            if part:
                yield part

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self.parts())

    def ready(self, timeout_s: float | None) -> bool:
        """Wait until there is something to receive; False when the time is over."""
        if self.waiting:
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, selectors.EVENT_READ)
            return bool(selector.select(timeout_s))

    def close(self) -> None:
        """Let the connection go."""
        self._sock.close()


class Wire:
    """The way to one server. Plain requests share a connection; each stream has its own."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._idle: socket.socket | None = None
        #: So long an ordinary request may take to be answered.
        self.answer_s = ANSWER_S

    def request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Ask; `keep` the answer once it was read, so that the connection is used again."""
        keep_secrets(self._target)
        sock = self._take_idle() or self._connect()
        sock.settimeout(self.answer_s)
        return self._exchange(sock, method, path, headers, body)

    def keep(self, answer: Answer) -> None:
        """Keep the connection of an answer that was read to its end for the next request."""
        if answer.body.done and not answer.body.until_close:
            close = answer.headers.get("connection", "").lower() == "close"
            if not close and self._idle is None:
                self._idle = answer._sock
                return
        answer.close()

    def stream(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Ask for an answer without a foreseeable end."""
        keep_secrets(self._target)
        sock = self._connect()
        sock.settimeout(ANSWER_S)
        answer = self._exchange(sock, method, path, headers, body)
        sock.settimeout(None)
        return answer

    def close(self) -> None:
        """Let the kept connection go."""
        if self._idle is not None:
            self._idle.close()
            self._idle = None

    def _take_idle(self) -> socket.socket | None:
        sock, self._idle = self._idle, None
        if sock is None:
            return None
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            if selector.select(0):  # It was closed from the other side meanwhile.
                sock.close()
                return None
        return sock

    def _connect(self) -> socket.socket:
        target = self._target
        context = None
        if target.is_https:
            from interlock.client.tls import context_of

            context = context_of(target)
        if target.proxy_url:
            from interlock.client.proxy import open_through

            return self._encrypted(open_through(target), context)
        try:
            sock = open_socket(target.host, target.port)
        except OSError as error:
            raise UnreachableError(
                f"no answer from {target.url} ({error.strerror or error})", hint=target.hint
            ) from None
        return self._encrypted(sock, context)

    def _encrypted(self, sock: socket.socket, context: SSLContext | None) -> socket.socket:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            return sock
        from interlock.client.tls import wrap

        return wrap(sock, self._target, context)

    def _exchange(
        self, sock: socket.socket, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> Answer:
        try:
            sock.sendall(head_of(self._target, method, path, headers, body) + body)
            return read_answer(sock)
        except OSError as error:
            sock.close()
            raise UnreachableError(
                f"lost the connection to {self._target.url} ({error.strerror or error})",
                hint=self._target.hint,
                sent=True,
            ) from None


def keep_secrets(target: Target) -> None:
    """Refuse to show a token where everybody on the way could read it."""
    if not target.may_tell_secrets:
        raise CommandError(
            f"the token would travel to {target.url} in the clear",
            hint="use https://; or, when something else encrypts, --insecure-token "
            "(INTERLOCK_INSECURE_TOKEN=1)",
            code=BAD_INPUT,
        )


def head_of(target: Target, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
    """What goes before the body of a request."""
    lines = [f"{method} {target.base}{path} HTTP/1.1", f"Host: {target.authority}"]
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body)}")
    if target.token:
        lines.append(f"Authorization: Bearer {target.token}")
    lines += [f"{name}: {value}" for name, value in target.headers]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def open_socket(host: str, port: int) -> socket.socket:
    """Try every address that the host has. Bytes spare the import of a codec for names."""
    name = host.encode() if host.isascii() else host.encode("idna")
    failure = OSError("it has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(name, port, 0, socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_CONNECT_S)
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    raise failure


def read_answer(sock: socket.socket) -> Answer:
    """The head of what comes, and the body as far as it came along."""
    held = b""
    while True:
        end = held.find(b"\r\n\r\n")
        if end >= 0:
            answer = _parse_head(sock, held[:end], held[end + 4 :])
            if answer.status != 100:
                return answer
            held = held[end + 4 :]
            continue
        data = sock.recv(65536)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        held += data
        if len(held) > _MOST_HEAD and b"\r\n\r\n" not in held:
            raise ConnectionResetError("the server sent nonsense")


def _parse_head(sock: socket.socket, head: bytes, rest: bytes) -> Answer:
    status, pairs = parse_head(head)
    answer = Answer(sock, status, dict(pairs), rest)
    answer.warnings = [value for name, value in pairs if name == "warning"]
    return answer


def parse_head(head: bytes) -> tuple[int, list[tuple[str, str]]]:
    """The status of an answer, and its headers with their names in small letters."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
        raise ConnectionResetError("that is no HTTP server")
    pairs = [
        (name.strip().lower(), value.strip())
        for name, _, value in (line.partition(":") for line in lines)
    ]
    return int(words[1]), pairs
