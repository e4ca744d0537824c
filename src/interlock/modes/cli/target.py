"""Which server a command is for, and how to prove who asks."""

from __future__ import annotations

import os

from interlock.modes.cli.errors import BAD_INPUT, CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

DEFAULT_URL = "http://127.0.0.1:8470"
START_HINT = "is the server running? start it with: interlock up"


class Target:
    """An address, and what is needed to be let in there."""

    def __init__(self, url: str, *, token: str = "", hint: str = START_HINT) -> None:
        scheme, found, rest = url.partition("://")
        if not found:
            scheme, rest = "http", url
        if scheme not in ("http", "https"):
            raise CommandError(
                f"{url!r} is not an address", hint=f"write it as {DEFAULT_URL}", code=BAD_INPUT
            )
        self.authority, _, path = rest.partition("/")
        self.is_https = scheme == "https"
        self.base = f"/{path}".rstrip("/")
        self.url = f"{scheme}://{rest}".rstrip("/")
        self.host, self.port = _host_and_port(self.authority, 443 if self.is_https else 80, url)
        self.token = token
        self.hint = hint
        #: The namespace that the kubeconfig context names.
        self.namespace = ""
        #: Whether a kubeconfig or a pod's service account named it: most likely a cluster.
        self.by_context = False
        #: What named it, for people.
        self.source = ""
        self.ca_file = ""
        self.ca_data = ""
        #: Further headers of every request, beside the token.
        self.headers: list[tuple[str, str]] = []
        #: Finds out anew what proves who asks; False when that cannot change anything.
        self.renew: Callable[[], bool] = lambda: False
        self.proxy_url = ""
        self.cert_data = b""
        self.key_data = b""
        self.tls_name = ""
        self.skip_verify = False

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, and so sees the same files."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def _host_and_port(authority: str, default: int, url: str) -> tuple[str, int]:
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, str(default)
    host = host.strip("[]")
    if not host or not port.isdigit() or int(port) > 65535:
        raise CommandError(
            f"{url!r} is not an address", hint=f"write it as {DEFAULT_URL}", code=BAD_INPUT
        )
    return host, int(port)


def find_target(args: Namespace) -> Target:
    """The server that is meant: what was typed, then the environment, then what is found here.

    A server whose data directory is here comes before a KUBECONFIG that is set for other
    programs too, and that before the pod that one may be in. The kubeconfig in the home
    directory counts only when a context was typed: nobody gets to a cluster by accident.
    """
    if args.context or args.kubeconfig:
        if args.server:
            raise CommandError(
                "--server names a server, --context and --kubeconfig name another",
                hint="give one of them",
                code=BAD_INPUT,
            )
        from interlock.modes.cli.kubeconfig import read_context

        return read_context(args.kubeconfig, args.context)
    url = args.server or os.environ.get("INTERLOCK_SERVER", "")
    token_file = args.token_file or os.environ.get("INTERLOCK_TOKEN_FILE", "")
    ca_file = args.ca_file or os.environ.get("INTERLOCK_CA_FILE", "")
    if not url:
        told = _running_here()
        url = told.get("url") or ""
        token_file = token_file or told.get("tokenFile") or ""
        ca_file = ca_file or told.get("caFile") or ""
    if not url and (cluster := _cluster_around()):
        return cluster
    target = Target(url or DEFAULT_URL, token=_read_token(token_file))
    target.ca_file = ca_file
    return target


def _cluster_around() -> Target | None:
    """The cluster of KUBECONFIG, or the one that this is a pod of."""
    if os.environ.get("KUBECONFIG"):
        from interlock.modes.cli.kubeconfig import read_context

        return read_context("", "")
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        from interlock.modes.cli.kubeconfig import own_cluster

        return own_cluster()
    return None


def _running_here() -> dict[str, str]:
    """What the server whose data directory is here wrote about itself."""
    data = os.environ.get("INTERLOCK_DATA") or ".interlock"
    try:
        with open(f"{data}/server.json", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to import
            text = file.read()
    except OSError:
        return {}
    import json

    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _read_token(path: str) -> str:
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to import
            return file.read().strip()
    except OSError as error:
        raise CommandError(
            f"cannot read the token in {path}: {error.strerror}", code=BAD_INPUT
        ) from None
