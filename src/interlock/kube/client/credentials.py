"""Credentials: what a request carries to prove who we are, kept fresh."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import subprocess
import sys
import tempfile
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct

from interlock.control.clock import Clock
from interlock.errors import UnavailableError
from interlock.kube.client.config import ClusterConfig, ExecPlugin, KubeConfigError
from interlock.resources.metadata import Moment

#: A token in a file is read again after this; clusters replace it long before it runs out.
REREAD_S = 60.0
#: A program's answer is not used in its last moments: a request on its way could come too late.
MARGIN = timedelta(seconds=30)
#: Programs that talk to a person may take long; none takes longer.
PLUGIN_TIMEOUT_S = 120.0


class _Told(Struct, rename="camel", kw_only=True):
    """What a program told."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Moment | None = None


class _ExecCredential(Struct, rename="camel"):
    api_version: str = ""
    status: _Told | None = None


class Credentials:
    """The headers and the TLS context of requests to one cluster."""

    def __init__(self, config: ClusterConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._fixed = _fixed_headers(config)
        self._token = config.user.token
        self._read_at: float | None = None
        self._told: _Told | None = None
        self._asking = asyncio.Lock()
        self._tls = tls_context(config, config.user.certificate, config.user.key)

    @property
    def tls(self) -> ssl.SSLContext | None:
        """How to encrypt; None for a server that does not."""
        return self._tls

    async def headers(self) -> list[tuple[str, str]]:
        """The headers that say who we are, as of now.

        Raises:
            UnavailableError: A program or file does not tell.
        """
        user = self._config.user
        if user.token_file is not None:
            self._reread()
        if user.exec is not None and self._is_stale():
            async with self._asking:
                if self._is_stale():
                    await self._ask(user.exec)
        if self._token:
            return [*self._fixed, ("Authorization", f"Bearer {self._token}")]
        return self._fixed

    def forget(self) -> bool:
        """The server did not believe us: find out anew; returns whether that may help."""
        user = self._config.user
        self._read_at = None
        self._told = None
        return user.token_file is not None or user.exec is not None

    def _reread(self) -> None:
        file, now = self._config.user.token_file, self._clock.monotonic()
        assert file is not None
        if self._read_at is not None and now - self._read_at < REREAD_S:
            return
        try:
            self._token = file.read_text().strip()
        except OSError as error:
            if not self._token:
                raise UnavailableError(f"cannot read the token in {file}: {error}") from error
            # The old one may still do until the file is back.
        self._read_at = now

    def _is_stale(self) -> bool:
        told = self._told
        if told is None:
            return True
        expires = told.expiration_timestamp
        return expires is not None and self._clock.now() >= expires - MARGIN

    async def _ask(self, plugin: ExecPlugin) -> None:
        told = await asyncio.to_thread(ask_plugin, plugin)
        self._told, self._token = told, told.token
        if told.client_certificate_data:
            certificate, key = told.client_certificate_data, told.client_key_data
            self._tls = tls_context(self._config, certificate.encode(), key.encode())


def _fixed_headers(config: ClusterConfig) -> list[tuple[str, str]]:
    user = config.user
    headers = list(user.impersonation)
    if user.username:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        headers.append(("Authorization", f"Basic {pair}"))
    return headers


def ask_plugin(plugin: ExecPlugin) -> _Told:
    """Run the program and read what it tells. It blocks: call it from a thread.

    Raises:
        UnavailableError: It cannot be started, fails, or tells nothing that can be used.
    """
    interactive = plugin.interactive != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive == "Always" and not interactive:
        raise UnavailableError(f"{plugin.command} wants to ask a person, and there is no terminal")
    info: dict[str, Any] = {"interactive": interactive}
    if plugin.cluster is not None:
        info["cluster"] = plugin.cluster
    about = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": info}
    try:
        done = subprocess.run(
            [plugin.command, *plugin.args],
            env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(about)},
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.PIPE,
            timeout=PLUGIN_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise UnavailableError(f"no credentials from {plugin.command}: {error}{hint}") from error
    if done.returncode:
        said = (done.stderr or b"").decode(errors="replace").strip()[-500:]
        raise UnavailableError(
            f"no credentials from {plugin.command}: it ended with {done.returncode}: {said}"
        )
    return _read_answer(plugin, done.stdout)


def _read_answer(plugin: ExecPlugin, output: bytes) -> _Told:
    try:
        answer = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.DecodeError as error:
        raise UnavailableError(
            f"no credentials from {plugin.command}: it did not tell an ExecCredential: {error}"
        ) from error
    if answer.api_version != plugin.api_version:
        raise UnavailableError(
            f"no credentials from {plugin.command}: it answers in {answer.api_version!r}, "
            f"the kubeconfig says {plugin.api_version!r}"
        )
    told = answer.status
    if told is None or not (told.token or told.client_certificate_data):
        raise UnavailableError(
            f"no credentials from {plugin.command}: neither a token nor a certificate was told"
        )
    return told


def tls_context(config: ClusterConfig, certificate: bytes, key: bytes) -> ssl.SSLContext | None:
    """How connections are encrypted; None when the server speaks plainly.

    Raises:
        KubeConfigError: A certificate or key cannot be used.
    """
    if not config.server.startswith("https://"):
        return None
    try:
        context = ssl.create_default_context(cadata=config.authority or None)
        if config.skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate:
            _load_pair(context, certificate, key)
    except (OSError, ValueError) as error:
        raise KubeConfigError(f"{config.source}: bad certificate or key: {error}") from error
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate and key that are not in a file; the library reads files alone."""
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)
