"""Which server a command is for, and how to prove who asks."""

from __future__ import annotations

import os

from interlock.modes.cli.errors import BAD_INPUT, CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

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
        self.ca_file = ""
        self.ca_data = ""
        self.cert_file = ""
        self.key_file = ""
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
    """The server that the flags, the environment or the working directory name, in this order."""
    if args.context or args.kubeconfig:
        from interlock.modes.cli.kubeconfig import read_context

        return read_context(args.kubeconfig, args.context)
    url = args.server or os.environ.get("INTERLOCK_SERVER", "")
    token_file = args.token_file or os.environ.get("INTERLOCK_TOKEN_FILE", "")
    ca_file = args.ca_file or os.environ.get("INTERLOCK_CA_FILE", "")
    if not url:
        told = _running_here()
        url = told.get("url") or DEFAULT_URL
        token_file = token_file or told.get("tokenFile") or ""
        ca_file = ca_file or told.get("caFile") or ""
    target = Target(url, token=_read_token(token_file))
    target.ca_file = ca_file
    return target


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
