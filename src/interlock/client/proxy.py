"""HTTP CONNECT tunnels through a proxy, as a kubeconfig may ask for."""

from __future__ import annotations

import base64
import socket
from urllib.parse import unquote, urlsplit

from interlock.client.errors import BAD_INPUT, CommandError, UnreachableError
from interlock.client.http_client import open_socket, read_answer
from interlock.client.target import Target


def open_through(target: Target) -> socket.socket:
    """A connection to the target by way of its proxy."""
    proxy = urlsplit(target.proxy_url)
    if proxy.scheme != "http" or not proxy.hostname:
        raise CommandError(
            f"proxy-url {target.proxy_url!r} cannot be used",
            hint="a proxy is written as http://HOST:PORT",
            code=BAD_INPUT,
        )
    place = f"{f'[{target.host}]' if ':' in target.host else target.host}:{target.port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if proxy.username:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair).decode()}")
    try:
        sock = open_socket(proxy.hostname, proxy.port or 80)
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        answer = read_answer(sock)
    except OSError as error:
        told = error.strerror or error
        raise UnreachableError(
            f"no answer from the proxy {proxy.hostname} ({told})", hint=target.hint
        ) from None
    if answer.status != 200:
        sock.close()
        raise UnreachableError(
            f"the proxy {proxy.hostname} answered {answer.status}", hint=target.hint
        )
    return sock
