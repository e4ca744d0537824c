"""The controller of a cluster: any number of processes, one of which leads."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from argparse import Namespace
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from random import Random
from ssl import SSLContext
from typing import Any

from prometheus_client import CollectorRegistry

from interlock.api.app import ApiApp
from interlock.api.checking import Check
from interlock.api.server import HttpServer, ListenError, bind
from interlock.control.clock import Clock, SystemClock, pause
from interlock.control.stopping import end_task
from interlock.errors import InterlockError
from interlock.kube.client.api_client import Client, Patience, usual_patience
from interlock.kube.client.config import KubeConfigError, load_config
from interlock.kube.client.reviews import Reviews
from interlock.kube.install.installation import Installation
from interlock.kube.slots.app import PREFIX
from interlock.modes.cluster_contact import Contact
from interlock.modes.cluster_guard import ClusterGuard
from interlock.modes.cluster_log import log_to_terminal
from interlock.modes.cluster_plane import ClusterPlane, lease_times
from interlock.modes.serving import (
    Certificate,
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
    DEFAULT_LISTEN,
    ControllerSettings,
    Listen,
    SettingsError,
    read_controller_settings,
    read_listen,
)
from interlock.modes.webhook import Webhook, WebhookSettings
from interlock.resources.modes import Mode

logger = logging.getLogger("interlock.controller")

#: How often it is looked whether the files of the certificate were replaced.
_REREAD_S = 60.0
_NO_CLUSTER = "set KUBECONFIG, or give --kubeconfig FILE and --context NAME"


def serve(given: Namespace) -> int:
    """Run the controller as the whole program; returns its exit code."""
    try:
        settings = read_controller_settings(given, os.environ)
    except InterlockError as error:
        return tell_error(error)
    return run_to_the_end(partial(serve_until, settings, identity_of(os.environ)))


def identity_of(environment: Mapping[str, str]) -> str:
    """A name that no two processes share: a pod that is started again keeps its own."""
    name = environment.get("POD_NAME") or socket.gethostname()
    return f"{name}-{os.getpid()}-{secrets.token_hex(4)}"


async def serve_until(settings: ControllerSettings, identity: str, say: Say, stop: Stop) -> None:
    """Run the controller until it is told to stop.

    Raises:
        InterlockError: It cannot run; the message says why.
    """
    certificate = read_certificate(settings.tls_cert, settings.tls_key)
    listen, listener = _listen(settings)
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)
        stack.callback(log_to_terminal().close)
        clock = SystemClock()
        stack.callback(clock.close)
        begun = clock.monotonic()
        client = _client(settings, clock)
        stack.push_async_callback(client.close)
        registry = CollectorRegistry()
        plane = ClusterPlane(client, clock, settings, identity, registry)
        contact = Contact(client, plane.store, clock, say)
        webhook = await _webhook(stack, settings, client, clock, plane.leads)

        def checks() -> Sequence[Check]:
            asks = (Check("webhook", ", ".join(webhook.not_ready())),) if webhook else ()
            return (
                Check("api-server", contact.waits_for or ""),
                Check("caches", ", ".join(plane.not_ready())),
                *asks,
            )

        app = ApiApp(
            plane.store,
            clock.now,
            security=_guard(client, plane, clock, settings),
            routes=plane.routes,
            ready=checks,
            metrics=registry,
            mode=Mode.CLUSTER,
            desk=plane.desk,
        )
        tls = _encryption(settings, certificate, webhook)
        server = HttpServer(app, listener, tls)
        await server.start()
        stack.push_async_callback(server.stop)
        extends = await _extender(stack, settings, plane, tls)
        if certificate is not None:
            await _beside(stack, _keep_reading(certificate, clock))
        url = url_of(listen, listener, encrypted=tls is not None)
        say(f"Interlock {short_version()}  ·  {client.config.server}  ·  {url}")
        if extends:
            say(f"a scheduler asks about slots at {extends}")
        if not await _unless(stop, contact.made()):
            return
        plane.start()
        # Stopped before the server: whoever is to lead next need not wait for slow clients.
        stack.push_async_callback(plane.stop)
        if not await _unless(stop, plane.synced()):
            return
        calm_the_collector()
        seconds = clock.monotonic() - begun
        say(f"ready in {seconds:.1f} s   as {identity}, lease in {settings.lease_namespace}")
        await _unless(stop, plane.broken())
        say("stopping: decisions under way are carried out, tasks go on")
    say("stopped")


def _guard(
    client: Client, plane: ClusterPlane, clock: Clock, settings: ControllerSettings
) -> ClusterGuard:
    return ClusterGuard(Reviews(client, clock), plane.roster.key_of, namespace=settings.namespace)


def _encryption(
    settings: ControllerSettings, certificate: Certificate | None, webhook: Webhook | None
) -> SSLContext | None:
    """What the API is served with: a certificate that was given, else the webhook's."""
    if certificate is not None:
        return certificate.context
    if webhook is not None and not settings.plain_http:
        return webhook.tls
    return None


async def _webhook(
    stack: AsyncExitStack,
    settings: ControllerSettings,
    client: Client,
    clock: Clock,
    leads: Callable[[], bool],
) -> Webhook | None:
    """Begin to answer the API server's questions, if that is wanted."""
    if settings.webhook_listen is None:
        return None
    install = Installation(
        namespace=settings.lease_namespace,
        everywhere=not settings.namespace,
        adopts=settings.adopts,
    )
    listen = read_listen(settings.webhook_listen)
    webhook = Webhook(client, clock, WebhookSettings(listen=listen, install=install), leads)
    await webhook.start()
    stack.push_async_callback(webhook.stop)
    return webhook


async def _extender(
    stack: AsyncExitStack, settings: ControllerSettings, plane: ClusterPlane, tls: SSLContext | None
) -> str:
    """Begin to answer schedulers, if that is wanted; returns where."""
    if settings.extender_listen is None or plane.slots is None:
        return ""
    listen = read_listen(settings.extender_listen)
    listener = open_listener(listen)
    stack.callback(listener.close)
    server = HttpServer(plane.slots.app, listener, tls)
    await server.start()
    stack.push_async_callback(server.stop)
    return url_of(listen, listener, encrypted=tls is not None) + PREFIX


def _listen(settings: ControllerSettings) -> tuple[Listen, socket.socket]:
    """Where to answer. A usual address that is taken is no reason not to run."""
    if settings.listen is not None:
        listen = read_listen(settings.listen)
        return listen, open_listener(listen)
    usual = read_listen(DEFAULT_LISTEN)
    try:
        return usual, bind(usual.host, usual.port)
    except ListenError:
        listen = Listen(usual.host, 0)
        return listen, open_listener(listen)


def _client(settings: ControllerSettings, clock: Clock) -> Client:
    try:
        config = load_config(settings.kubeconfig, settings.context)
        # A renewal has time for two attempts, one of which may find a connection that is dead.
        lease = Patience(timeout_s=lease_times(settings).renew_by_s * 0.5, attempts=1)
        return Client(config, clock, Random(), patience=partial(usual_patience, lease=lease))
    except KubeConfigError as error:
        # A parser's complaint goes over several lines; a log takes one.
        raise SettingsError(" ".join(str(error).split()), _NO_CLUSTER) from error


async def _unless(stop: Stop, work: Coroutine[Any, Any, None]) -> bool:
    """Do something unless we are told to stop first; returns whether it was done."""
    doing = asyncio.ensure_future(work)
    asked = asyncio.ensure_future(stop.asked.wait())
    try:
        await asyncio.wait((doing, asked), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            doing.result()
        return doing.done()
    finally:
        await end_task(doing)
        asked.cancel()


async def _beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.get_running_loop().create_task(work)
    stack.push_async_callback(end_task, task)


async def _keep_reading(certificate: Certificate, clock: Clock) -> None:
    """Show a new certificate when there is one; a bad one does not replace a good one."""
    while True:
        await pause(clock, _REREAD_S)
        try:
            certificate.read()
        except SettingsError as error:
            logger.warning("%s; the one before is still shown", error)
