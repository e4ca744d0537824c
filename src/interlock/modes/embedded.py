"""The embedded server: one process, one data directory, everything in it."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from interlock import __version__
from interlock.admission.pending_limit import PendingLimit
from interlock.api.app import ApiApp
from interlock.api.checking import Check
from interlock.api.routing import Route
from interlock.api.server import HttpServer
from interlock.api.socket_diag import diagnostics
from interlock.api.submitting import Desk
from interlock.api.writes import prepared
from interlock.control.clock import Clock, SystemClock, pause
from interlock.modes.machine import Machine
from interlock.modes.machine_node import lay_out_node
from interlock.modes.machine_queue import lay_out_queue
from interlock.modes.ready_policy import ReadyPolicyError
from interlock.modes.reloading import Reloading
from interlock.modes.server_log import log_to
from interlock.modes.serving import (
    Say,
    Stop,
    calm_the_collector,
    open_listener,
    read_certificate,
    run_to_the_end,
    short_version,
    tell_error,
    url_of,
)
from interlock.modes.settings import (
    EmbeddedSettings,
    SettingsError,
    read_listen,
    read_settings,
    security_of,
)
from interlock.private_files import NotPrivateError, make_directory, open_private
from interlock.resources.door.manifests import read_manifests
from interlock.resources.door.validation import read_resource
from interlock.resources.kinds import KINDS
from interlock.runtimes.keeper.journal import newest_term
from interlock.runtimes.keeper.protocol import JOURNAL_NAME
from interlock.store.contract import Store
from interlock.store.identities import RandomIdentities
from interlock.store.sqlite import SqliteStore

logger = logging.getLogger("interlock.server")

#: The file in the data directory that holds every resource.
STORE_FILE = "interlock.db"
#: Tells the command line where the server is; there as long as the server runs.
SERVER_FILE = "server.json"
EXAMPLES = Path("examples")
#: Watches that see nothing are told this often how far the store is.
BOOKMARK_S = 30.0


class Plane(Protocol):
    """What runs beside the API on the same store."""

    @property
    def routes(self) -> Sequence[Route]:
        """What it answers itself, and for whom."""
        ...

    @property
    def desk(self) -> Desk:
        """Knows how Jobs are."""
        ...

    def checks(self) -> Sequence[Check]:
        """What has to be well, and what is wrong with it."""
        ...

    async def ready(self) -> None:
        """Wait until it is at work."""
        ...

    def reopen_logs(self) -> None:
        """Go on in new files where logs were moved away."""
        ...

    async def start(self) -> None:
        """Begin to work."""
        ...

    async def stop(self) -> None:
        """Stop working; what was started in the world goes on."""
        ...


#: Makes the control plane of a server.
MakePlane = Callable[[SqliteStore, Clock, EmbeddedSettings, CollectorRegistry], Plane]


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
    certificate = read_certificate(settings.tls_cert, settings.tls_key)
    listen = read_listen(settings.listen)
    _take_directory(settings.data)
    listener = open_listener(listen)
    url = url_of(listen, listener, encrypted=certificate is not None)
    is_new = not (settings.data / STORE_FILE).exists()
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)
        store = await _open_store(settings, clock)
        log = log_to(settings.data)
        stack.callback(log.close)
        if store.accepted:
            logger.warning("went on without what was lost: %s", store.accepted)
        stack.push_async_callback(store.close)
        registry = CollectorRegistry()
        plane = make_plane(store, clock, settings, registry) if make_plane else None
        app = ApiApp(
            store,
            clock.now,
            security=security,
            routes=plane.routes if plane else (),
            ready=plane.checks if plane else lambda: (),
            metrics=registry,
            journal=store.journal,
            desk=plane.desk if plane else None,
        )
        applied = await _apply_examples(store) if settings.examples and is_new else 0
        if plane is not None:
            await lay_out_queue(store, settings.queue)
            await lay_out_node(store)
            await plane.start()
            stack.push_async_callback(plane.stop)
        if security.asks_the_kernel:
            diagnostics()
        server = HttpServer(app, listener, certificate.context if certificate else None)
        await server.start()
        stack.push_async_callback(server.stop)
        _write_server_file(settings, url)
        stack.callback(_remove_server_file, settings.data)
        await stack.enter_async_context(_bookmarks(store, clock))
        calm_the_collector()
        say(f"Interlock {short_version()}  ·  data {settings.data}  ·  {url}")
        await stack.enter_async_context(_telling(plane, applied, begun, clock, say))
        stop.reload = Reloading(settings, security, certificate, log, app, plane).read_again
        await stop.asked.wait()
        say("stopping: requests under way finish, tasks go on")
    say("stopped")


def _take_directory(data: Path) -> None:
    """Make sure that the data directory is our own: what is in it is run as us.

    Raises:
        SettingsError: Others could have prepared it, or it cannot be had.
    """
    try:
        make_directory(data)
    except NotPrivateError as error:
        raise SettingsError(
            f"--data {data}: {error}", f"{error.hint}; another one is named with --data DIR"
        ) from error
    except OSError as error:
        raise SettingsError(f"--data {data}: {error.strerror}") from error


async def _open_store(settings: EmbeddedSettings, clock: Clock) -> SqliteStore:
    # The keeper refuses terms below the newest it knows: a store that was put back must rise above.
    known = await asyncio.to_thread(newest_term, settings.data / JOURNAL_NAME)
    return await SqliteStore.open(
        settings.data / STORE_FILE,
        clock.now,
        RandomIdentities(),
        known=known,
        accept_loss=settings.accept_loss,
    )


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
            is_inside = KINDS[resource.kind].namespaced
            namespace = (resource.metadata.namespace or "default") if is_inside else ""
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
    draft.unlink(missing_ok=True)
    with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(msgspec.json.encode(told) + b"\n")
    draft.replace(target)


def _remove_server_file(data: Path) -> None:
    (data / SERVER_FILE).unlink(missing_ok=True)


@asynccontextmanager
async def _telling(
    plane: Plane | None, applied: int, begun: float, clock: Clock, say: Say
) -> AsyncIterator[None]:
    """Say that the server is ready; when it is not, say why, and say it once it is."""

    async def later(plane: Plane) -> None:
        await plane.ready()
        say(_hints(clock.monotonic() - begun, applied))

    wrong = [check for check in plane.checks() if check.trouble] if plane is not None else []
    if plane is None or not wrong:
        say(_hints(clock.monotonic() - begun, applied))
        yield
        return
    say(_not_ready(clock.monotonic() - begun, wrong))
    telling = asyncio.create_task(later(plane))
    try:
        yield
    finally:
        telling.cancel()


def _not_ready(seconds: float, wrong: Sequence[Check]) -> str:
    return (
        f"not ready after {seconds:.1f} s: {wrong[0].trouble}\n"
        "  requests are answered, but nothing is started until that is mended; it is tried again "
        "by itself\n"
        "  what happens is told in server.log and keeper.log of the data directory, and by /readyz"
    )


def _hints(seconds: float, applied: int) -> str:
    program = _program()
    first = f"ready in {seconds:.1f} s   try:  "
    lines = [f"{program} run --follow -- echo hello", f"{program} get jobs"]
    if applied:
        lines.append(f"{program} describe job/hello   # {applied} examples were applied")
        lines.append(f"{program} next                 # what their schedules will do")
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


def _machine(
    store: SqliteStore, clock: Clock, settings: EmbeddedSettings, registry: CollectorRegistry
) -> Plane:
    store.guard(PendingLimit(settings.max_pending))
    return Machine(
        store,
        clock,
        settings.data,
        registry,
        keeper_patience_s=settings.keeper_patience_s,
        worker_lease_s=settings.worker_lease_s,
        sweeping=settings.sweeping,
        keep_finished_s=settings.keep_finished_s,
        wait_for_pods_ready=settings.wait_for_pods_ready,
    )


def serve(given: Namespace | EmbeddedSettings, make_plane: MakePlane | None = _machine) -> int:
    """Run the server as the whole program; returns its exit code."""
    try:
        settings = given if isinstance(given, EmbeddedSettings) else read_settings(given)
    except ReadyPolicyError as error:
        return tell_error(error)
    return run_to_the_end(lambda say, stop: serve_until(settings, say, stop, make_plane))
