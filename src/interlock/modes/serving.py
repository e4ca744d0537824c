"""The server process: a place to listen, signals to heed, an exit code."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from interlock import __version__
from interlock.api.server import ListenError, bind
from interlock.errors import InterlockError
from interlock.modes.ready_policy import ReadyPolicyError
from interlock.modes.settings import Listen, SettingsError

Say = Callable[[str], None]


class Stop:
    """The wish to stop, from outside: once for politely, twice for now."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        #: Takes up anew what was read at the start.
        self.reload: Callable[[], None] = lambda: None

    def ask(self, number: int) -> None:
        """Stop politely; when that was asked before, at once. What was acknowledged is durable."""
        if self.asked.is_set():
            os._exit(128 + number)
        self.asked.set()

    def listen_to_signals(self) -> None:
        """Take SIGINT and SIGTERM as the wish, and SIGHUP as the one to read everything again.

        A terminal that is closed sends SIGHUP too. A server that was started in it goes with it,
        as anything does that was not started with `nohup`.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.ask, number)
        goes_along = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and _has_terminal()
        loop.add_signal_handler(signal.SIGHUP, self._hear_hangup, goes_along)

    def _hear_hangup(self, goes_along: bool) -> None:
        if goes_along and not _has_terminal():
            self.ask(signal.SIGHUP)
        else:
            self.reload()


def _has_terminal() -> bool:
    """Whether we belong to a terminal that is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


class Certificate:
    """The certificate that a server shows, read again when its files were replaced."""

    def __init__(self, cert: Path, key: Path) -> None:
        self._cert, self._key = cert, key
        self._read_at = (0.0, 0.0)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2

    def read(self, *, always: bool = False) -> None:
        """Show what is in the files from now on; files that look the same are left unless `always`.

        Raises:
            SettingsError: They cannot be used; what was shown before still is.
        """
        try:
            changed_at = (self._cert.stat().st_mtime, self._key.stat().st_mtime)
            if always or changed_at != self._read_at:
                # Tried on another: a certificate whose key does not fit would be taken by half.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._cert, self._key)
                self.context.load_cert_chain(self._cert, self._key)
                self._read_at = changed_at
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"--tls-cert and --tls-key cannot be used: {error}") from error


def read_certificate(cert: Path | None, key: Path | None) -> Certificate | None:
    """The certificate of these files; None when none are given.

    Raises:
        SettingsError: They cannot be used.
    """
    if cert is None or key is None:
        return None
    made = Certificate(cert, key)
    made.read()
    return made


def open_listener(listen: Listen) -> socket.socket:
    """A listening socket.

    Raises:
        SettingsError: The address cannot be had.
    """
    try:
        return bind(listen.host, listen.port)
    except ListenError as error:
        hint = "stop what listens there, or choose another with --listen HOST:PORT"
        raise SettingsError(str(error), hint) from error


def url_of(listen: Listen, listener: socket.socket, *, encrypted: bool) -> str:
    """Where a server is found that listens there."""
    found = replace(listen, port=listener.getsockname()[1])
    return f"{'https' if encrypted else 'http'}://{found}"


def calm_the_collector() -> None:
    """Look for cycles seldom, and never among what was loaded: resources cannot form any."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def short_version() -> str:
    """The version as people say it."""
    return ".".join(__version__.split(".")[:2])


def run_to_the_end(serve: Callable[[Say, Stop], Coroutine[Any, Any, None]]) -> int:
    """Run a server as the whole program; returns its exit code."""

    async def main() -> None:
        stop = Stop()
        stop.listen_to_signals()
        await serve(_say, stop)

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(main())
    except InterlockError as error:
        return tell_error(error)
    return 0


def tell_error(error: InterlockError) -> int:
    """Say why a server cannot go on, and what to do about it; returns the exit code for that."""
    hint = getattr(error, "hint", "")
    sys.stderr.write(f"error: {error}\n" + (f"  {hint}\n" if hint else ""))
    return 2 if isinstance(error, ReadyPolicyError) else 1


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster event loop where there is one; everything works on the plain one too."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _say(line: str) -> None:
    # Whoever listened may be gone: a terminal that was closed, a pipe that nobody reads.
    with suppress(OSError, ValueError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
