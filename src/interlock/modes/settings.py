"""Server settings: what a person chooses, checked before anything is touched."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from interlock.api.security import Security, Token, is_loopback, read_tokens
from interlock.api.token_lists import check_unlike, read_token_list
from interlock.control.lease import SYSTEM_NAMESPACE
from interlock.errors import InterlockError
from interlock.execution.sweeping import USUAL_AGE
from interlock.modes.ready_policy import read_ready_policy
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.values.amounts import Amount
from interlock.runtimes.health import PATIENCE_S as KEEPER_PATIENCE_S
from interlock.runtimes.workers.dispatcher import LEASE_S

DEFAULT_LISTEN = "127.0.0.1:8470"
#: So many Jobs for one target may be unfinished at a time.
DEFAULT_MAX_PENDING = 100
#: The statuses of Jobs that are over and were removed are kept for so long.
DEFAULT_KEEP_FINISHED_S = 30 * 86_400.0
DEFAULT_DATA = Path(".interlock")
#: A leader that is killed is followed after this and a little more, so within 5 s.
DEFAULT_LEASE_S = 3
#: So many tasks of all Jobs are under way at a time. A cluster has limits of its own, by quotas and
#: nodes; this one only keeps a mistake from filling it without end.
DEFAULT_MOST_TASKS = 100_000


class SettingsError(InterlockError):
    """A server cannot be started like this; the message says what to change."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Listen(Struct, frozen=True):
    """Where to listen; port 0 takes any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Sweeping(Struct, frozen=True, kw_only=True):
    """When operations are looked for that nobody looks at."""

    #: How often; 0 is never, but on demand.
    every_s: float = 600.0
    #: How long one is left alone beyond the delay that it waits for anyhow.
    older_than_s: float = USUAL_AGE.total_seconds()


class EmbeddedSettings(Struct, frozen=True, kw_only=True):
    """How to run the embedded server."""

    data: Path = DEFAULT_DATA
    listen: str = DEFAULT_LISTEN
    #: Tokens that may do everything.
    token_file: Path | None = None
    #: Named tokens with their rights.
    tokens: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Let every user of this machine in, not our own and root alone.
    any_local_user: bool = False
    #: Go on although the store lacks something that was acknowledged.
    accept_loss: bool = False
    #: Apply the examples when the store is empty.
    examples: bool = False
    #: A keeper that has not answered for so long counts as hanging.
    keeper_patience_s: float = KEEPER_PATIENCE_S
    sweeping: Sweeping = Sweeping()
    #: A worker that is silent for so long loses what it does.
    worker_lease_s: float = LEASE_S
    #: How many Jobs for one target may be unfinished.
    max_pending: int = DEFAULT_MAX_PENDING
    #: For how long the statuses of Jobs are kept that are over and were removed.
    keep_finished_s: float = DEFAULT_KEEP_FINISHED_S
    #: What holds for all Queues that do not say otherwise.
    wait_for_pods_ready: WaitForPodsReady | None = None
    #: What the default Queue is to allow, by the name of the resource; of others it stays as it is.
    queue: Mapping[str, Amount] = {}


def read_settings(given: Namespace) -> EmbeddedSettings:
    """The settings that were typed; what was not typed is as usual.

    Raises:
        ReadyPolicyError: The policy for all Queues cannot be used.
    """
    wanted: dict[str, Any] = {}
    for name in ("data", "token_file", "tokens", "tls_cert", "tls_key"):
        if value := getattr(given, name, None):
            wanted[name] = Path(value)
    if listen := getattr(given, "listen", None):
        wanted["listen"] = listen
    for name in ("any_local_user", "accept_loss", "examples"):
        wanted[name] = bool(getattr(given, name, False))
    if patience := getattr(given, "keeper_patience", None):
        wanted["keeper_patience_s"] = patience
    wanted["sweeping"] = _sweeping(given)
    if lease := getattr(given, "worker_lease", None):
        wanted["worker_lease_s"] = lease
    for name, field in (("max_pending", "max_pending"), ("keep_finished", "keep_finished_s")):
        if (value := getattr(given, name, None)) is not None:
            wanted[field] = value
    if policy := getattr(given, "wait_for_pods_ready", None):
        wanted["wait_for_pods_ready"] = read_ready_policy(policy)
    amounts = {name: getattr(given, f"queue_{name}", None) for name in ("cpu", "memory", "tasks")}
    wanted["queue"] = {name: Amount.read(one) for name, one in amounts.items() if one is not None}
    return EmbeddedSettings(**wanted)


def _sweeping(given: Namespace) -> Sweeping:
    typed = {
        "every_s": getattr(given, "sweep_every", None),
        "older_than_s": getattr(given, "sweep_older_than", None),
    }
    return Sweeping(**{name: value for name, value in typed.items() if value is not None})


def read_listen(text: str) -> Listen:
    """Read HOST:PORT.

    Raises:
        SettingsError: It is not an address.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    usable = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65_536
    if not colon or not host or not usable:
        raise SettingsError(
            f"--listen {text}: expected HOST:PORT", f"for example --listen {DEFAULT_LISTEN}"
        )
    return Listen(host, int(port))


def security_of(settings: EmbeddedSettings) -> Security:
    """Who may ask a server with these settings.

    Raises:
        SettingsError: Others could reach it, and no token would stop them.
        TokenFileError: The token file cannot be used.
    """
    loopback = is_loopback(read_listen(settings.listen).host)
    has_tokens = settings.token_file is not None or settings.tokens is not None
    if not loopback and not has_tokens:
        raise SettingsError(
            f"--listen {settings.listen} can be reached from other machines, so it needs a token",
            "give --token-file FILE or --tokens FILE, or listen on 127.0.0.1",
        )
    if settings.any_local_user and has_tokens:
        asks = "--token-file" if settings.token_file is not None else "--tokens"
        raise SettingsError(
            f"--any-local-user lets in without a token, and {asks} asks for one",
            "give one of them",
        )
    if (settings.tls_cert is None) is not (settings.tls_key is None):
        raise SettingsError("--tls-cert and --tls-key are given together or not at all")
    tokens = tokens_of(settings)
    return Security(loopback=loopback, tokens=tokens, any_local_user=settings.any_local_user)


def tokens_of(settings: EmbeddedSettings) -> tuple[Token, ...]:
    """All tokens that let in: those that may do everything, and those with rights of their own.

    Raises:
        TokenFileError: A file cannot be used, or two of them give one token.
    """
    plain = read_tokens(settings.token_file) if settings.token_file else ()
    named = read_token_list(settings.tokens) if settings.tokens else ()
    check_unlike((*plain, *named))
    return (*plain, *named)


class ControllerSettings(Struct, frozen=True, kw_only=True):
    """How to run the controller of a cluster."""

    #: A kubeconfig; None finds the cluster as every tool does.
    kubeconfig: Path | None = None
    context: str = ""
    #: Serve this namespace alone; empty serves all.
    namespace: str = ""
    #: Where the lease is kept.
    lease_namespace: str = SYSTEM_NAMESPACE
    #: A leader that is gone is followed after this.
    lease_lasts_s: int = DEFAULT_LEASE_S
    #: None takes the usual address, or any port of this machine when that is taken.
    listen: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Others may reach the controller without encryption; something else must see to it.
    plain_http: bool = False
    #: Where the API server asks about Jobs; None asks nobody.
    webhook_listen: str | None = None
    most_tasks: int = DEFAULT_MOST_TASKS
    sweeping: Sweeping = Sweeping()
    #: How many Jobs for one target may be unfinished.
    max_pending: int = DEFAULT_MAX_PENDING
    #: What holds for all Queues that do not say otherwise.
    wait_for_pods_ready: WaitForPodsReady | None = None
    #: Whether batch Jobs and pods of others that are labelled with a Queue wait in it.
    adopts: bool = True
    #: Where a scheduler asks about pods and slots; None has no ghosts, and answers nobody.
    extender_listen: str | None = None


def read_controller_settings(
    given: Namespace, environment: Mapping[str, str]
) -> ControllerSettings:
    """The settings that were typed; what was not typed is as usual, or as the pod says.

    The lease is kept where the controller is: in its pod's namespace, else in the one that it
    serves, else in our own.

    Raises:
        SettingsError: They cannot be used.
        ReadyPolicyError: The policy for all Queues cannot be used.
    """
    for flag in ("server", "token_file", "ca_file"):
        if getattr(given, flag, None):
            raise SettingsError(
                f"--{flag.replace('_', '-')} says nothing to a controller",
                "it finds its cluster by --kubeconfig and --context, which also knows all tokens",
            )
    namespace = given.namespace or ""
    policy = getattr(given, "wait_for_pods_ready", None)
    files = {name: getattr(given, name) for name in ("kubeconfig", "tls_cert", "tls_key")}
    settings = ControllerSettings(
        **{name: Path(value) for name, value in files.items() if value},
        context=given.context or "",
        namespace=namespace,
        lease_namespace=(
            given.lease_namespace
            or environment.get("POD_NAMESPACE")
            or namespace
            or SYSTEM_NAMESPACE
        ),
        lease_lasts_s=given.lease_lasts or DEFAULT_LEASE_S,
        listen=given.listen,
        plain_http=given.plain_http,
        webhook_listen=given.webhook_listen,
        most_tasks=given.most_tasks or DEFAULT_MOST_TASKS,
        sweeping=_sweeping(given),
        max_pending=getattr(given, "max_pending", None) or DEFAULT_MAX_PENDING,
        wait_for_pods_ready=read_ready_policy(policy) if policy else None,
        adopts=getattr(given, "adopt_workloads", "true") == "true",
        extender_listen=getattr(given, "extender_listen", None),
    )
    _check_controller(settings)
    return settings


def _check_controller(settings: ControllerSettings) -> None:
    listen = read_listen(settings.listen or DEFAULT_LISTEN)
    if (settings.tls_cert is None) is not (settings.tls_key is None):
        raise SettingsError("--tls-cert and --tls-key are given together or not at all")
    has_tls = settings.tls_cert is not None or settings.webhook_listen is not None
    if not has_tls and not settings.plain_http and not is_loopback(listen.host):
        raise SettingsError(
            f"--listen {settings.listen} can be reached from other machines, and the tokens that "
            "they send must not travel in the clear",
            "give --tls-cert and --tls-key, or --plain-http when something else encrypts",
        )
    if settings.extender_listen is None:
        return
    if settings.namespace:
        raise SettingsError(
            "--extender-listen is for a controller of all namespaces: slots are on nodes, and "
            "nodes are everybody's",
            "leave out --namespace, or --extender-listen",
        )
    extender = read_listen(settings.extender_listen)
    if not has_tls and not settings.plain_http and not is_loopback(extender.host):
        raise SettingsError(
            f"--extender-listen {extender} can be reached from other machines without encryption",
            "give --tls-cert and --tls-key, or --plain-http when something else encrypts",
        )
