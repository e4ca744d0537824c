"""The embedded server: one process, one data directory, everything in it."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import socket
import ssl
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from interlock import __version__
from interlock.api.app import ApiApp
from interlock.api.requests import Handler
from interlock.api.server import HttpServer, ListenError, Tls, bind
from interlock.api.writes import prepared
from interlock.control.clock import Clock, SystemClock, pause
from interlock.modes.machine import Machine
from interlock.modes.server_log import log_to
from interlock.modes.settings import (
    EmbeddedSettings,
    SettingsError,
    read_listen,
    read_settings,
    security_of,
)
from interlock.resources.errors import InterlockError
from interlock.resources.manifests import read_manifests
from interlock.resources.validation import read_resource
from interlock.store.contract import Store
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite import SqliteStore

#: The file in the data directory that holds every resource.
STORE_FILE = "interlock.db"
#: Tells the command line where the server is; there as long as the server runs.
SERVER_FILE = "server.json"
EXAMPLES = Path("examples")
#: Watches that see nothing are told this often how far the store is.
BOOKMARK_S = 30.0

Say = Callable[[str], None]


class Plane(Protocol):
    """What runs beside the API on the same store."""

    @property
    def mounts(self) -> Mapping[str, Handler]:
        """What it answers itself, by the beginning of the path."""
        ...

    def not_ready(self) -> Sequence[str]:
        """What is not ready yet."""
        ...

    async def start(self) -> None:
        """Begin to work."""
        ...

    async def stop(self) -> None:
        """Stop working; what was started in the world goes on."""
        ...


#: Makes the control plane of a server.
MakePlane = Callable[[SqliteStore, Clock, Path, CollectorRegistry], Plane]


class Stop:
    """The wish to stop, from outside: once for politely, twice for now."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def ask(self, number: int) -> None:
        """Stop politely; when that was asked before, at once. What was acknowledged is durable."""
        if self.asked.is_set():
            os._exit(128 + number)
        self.asked.set()

    def listen_to_signals(self) -> None:
        """Take SIGINT and SIGTERM as the wish."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.ask, number)


async def serve_until(
    settings: EmbeddedSettings, say: Say, stop: Stop, make_plane: MakePlane | None = None
) -> None:
    """Run the server until it is told to stop.

    Raises:
        InterlockError: It cannot start; the message says why.
    """
    clock = SystemClock()
    begun = clock.monotonic()
    security = security_of(settings)
    tls = _tls(settings)
    listener = _listen(settings)
    url = _url(settings, listener, tls)
    is_new = not (settings.data / STORE_FILE).exists()
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)
        store = await _open_store(settings.data, clock)
        stack.callback(log_to(settings.data).close)
        stack.push_async_callback(store.close)
        registry = CollectorRegistry()
        plane = make_plane(store, clock, settings.data, registry) if make_plane else None
        app = ApiApp(
            store,
            clock.now,
            security=security,
            mounts=plane.mounts if plane else {},
            ready=plane.not_ready if plane else lambda: (),
            metrics=registry,
        )
        applied = await _apply_examples(store) if settings.examples and is_new else 0
        if plane is not None:
            await plane.start()
            stack.push_async_callback(plane.stop)
        server = HttpServer(app, listener, tls)
        await server.start()
        stack.push_async_callback(server.stop)
        _write_server_file(settings, url)
        stack.callback(_remove_server_file, settings.data)
        await stack.enter_async_context(_bookmarks(store, clock))
        _calm_the_collector()
        say(f"Interlock {_short_version()}  ·  data {settings.data}  ·  {url}")
        say(_hints(clock.monotonic() - begun, applied))
        await stop.asked.wait()
        say("stopping: requests under way finish, tasks go on")
    say("stopped")


def _tls(settings: EmbeddedSettings) -> Tls | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"--tls-cert and --tls-key cannot be used: {error}") from error
    return Tls(settings.tls_cert, settings.tls_key)


def _listen(settings: EmbeddedSettings) -> socket.socket:
    listen = read_listen(settings.listen)
    try:
        return bind(listen.host, listen.port)
    except ListenError as error:
        hint = "stop what listens there, or choose another with --listen HOST:PORT"
        raise SettingsError(str(error), hint) from error


def _url(settings: EmbeddedSettings, listener: socket.socket, tls: Tls | None) -> str:
    listen = replace(read_listen(settings.listen), port=listener.getsockname()[1])
    return f"{'https' if tls else 'http'}://{listen}"


async def _open_store(data: Path, clock: Clock) -> SqliteStore:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--data {data}: {error.strerror}") from error
    return await SqliteStore.open(data / STORE_FILE, clock.now, RandomIdentities())


@asynccontextmanager
async def _bookmarks(store: SqliteStore, clock: Clock) -> AsyncIterator[None]:
    """Tell idle watches now and then how far the store is, so that they resume from there."""

    async def tick() -> None:
        while True:
            await pause(clock, BOOKMARK_S)
            store.tick()

    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()


async def _apply_examples(store: Store) -> int:
    """Put the examples into a new store; returns how many there were.

    Raises:
        InterlockError: One of them is not good.
    """
    applied = 0
    for file in sorted(EXAMPLES.glob("*.yaml")):
        for document in read_manifests(file.read_bytes()):
            resource, _ = read_resource(document.data)
            namespace = resource.metadata.namespace or "default"
            placed = replace(resource, metadata=replace(resource.metadata, namespace=namespace))
            await store.create(prepared(placed))
            applied += 1
    return applied


def _write_server_file(settings: EmbeddedSettings, url: str) -> None:
    """Say where the server is; whole or not at all, for others read it at any moment."""
    told: dict[str, object] = {"url": url, "pid": os.getpid(), "version": __version__}
    if settings.token_file:
        told["tokenFile"] = str(settings.token_file.absolute())
    if settings.tls_cert:
        told["caFile"] = str(settings.tls_cert.absolute())
    target = settings.data / SERVER_FILE
    draft = target.with_suffix(".new")
    draft.write_bytes(msgspec.json.encode(told) + b"\n")
    draft.replace(target)


def _remove_server_file(data: Path) -> None:
    (data / SERVER_FILE).unlink(missing_ok=True)


def _calm_the_collector() -> None:
    """Look for cycles seldom, and never among what was loaded: resources cannot form any."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def _short_version() -> str:
    return ".".join(__version__.split(".")[:2])


def _hints(seconds: float, applied: int) -> str:
    program = _program()
    first = f"ready in {seconds:.1f} s   try:  "
    lines = [f"{program} run --follow -- echo hello", f"{program} get jobs"]
    if applied:
        lines.append(f"{program} describe job/hello   # {applied} examples were applied")
    return first + f"\n{' ' * len(first)}".join(lines)


def _program() -> str:
    """How this person can call the command line from here."""
    called = Path(sys.argv[0])
    if called.name != "interlock" or shutil.which("interlock") == str(called):
        return "interlock"
    try:
        return str(called.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(called)


def serve(given: Namespace | EmbeddedSettings, make_plane: MakePlane | None = Machine) -> int:
    """Run the server as the whole program; returns its exit code."""
    settings = given if isinstance(given, EmbeddedSettings) else read_settings(given)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_main(settings, make_plane))
    except InterlockError as error:
        hint = getattr(error, "hint", "")
        sys.stderr.write(f"error: {error}\n" + (f"  {hint}\n" if hint else ""))
        return 1
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster event loop where there is one; everything works on the plain one too."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _main(settings: EmbeddedSettings, make_plane: MakePlane | None) -> None:
    stop = Stop()
    stop.listen_to_signals()
    await serve_until(settings, _say, stop, make_plane)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
