"""Server selection: which server a command is for, and how to prove who asks."""

from __future__ import annotations

import os

from interlock.client.errors import BAD_INPUT, CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

DEFAULT_URL = "http://127.0.0.1:8470"
#: What to do when the data directory that is here cannot be used.
_ELSE = "name the server with --server URL, or its data directory with INTERLOCK_DATA"
#: What to know when both are set: one of them is as good as not there.
PASSED_OVER = "INTERLOCK_SERVER names it, so INTERLOCK_DATA is not looked at"
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
        #: What people should know about how it was found.
        self.note = ""
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

        #: Send secrets in the clear to other machines too.
        self.insecure_token = False

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, and so sees the same files."""
        return self.host == "localhost" or _is_loopback(self.host)

    @property
    def may_tell_secrets(self) -> bool:
        """Whether nobody on the way can read what proves who asks, or nothing does."""
        if self.is_https or self.insecure_token or (self.is_local and not self.proxy_url):
            return True
        return not self.token and all(name != "Authorization" for name, _ in self.headers)


def _is_loopback(host: str) -> bool:
    """Whether it is an address of the loopback interface; a name that begins like one is none."""
    from socket import AF_INET, AF_INET6, inet_pton

    try:
        if ":" not in host:
            return inet_pton(AF_INET, host)[0] == 127
        packed = inet_pton(AF_INET6, host)
    except OSError:
        return False
    return packed == bytes(15) + b"\1" or packed[:13] == bytes(10) + b"\xff\xff\x7f"


def is_port(text: str) -> bool:
    """Whether it is the number of a port."""
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535


def _host_and_port(authority: str, default: int, url: str) -> tuple[str, int]:
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, str(default)
    brackets = authority.count("[") + authority.count("]")
    is_whole = brackets in (0, 2) and authority.isprintable() and " " not in authority
    host = host.strip("[]")
    if not is_whole or not host or not is_port(port):
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
    target = _find_target(args)
    told = getattr(args, "insecure_token", False) or os.environ.get("INTERLOCK_INSECURE_TOKEN")
    target.insecure_token = bool(told)
    return target


def _find_target(args: Namespace) -> Target:
    if args.context or args.kubeconfig:
        if args.server:
            raise CommandError(
                "--server names a server, --context and --kubeconfig name another",
                hint="give one of them",
                code=BAD_INPUT,
            )
        from interlock.client.kubeconfig import read_context

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
    if os.environ.get("INTERLOCK_DATA") and not args.server and os.environ.get("INTERLOCK_SERVER"):
        target.note = PASSED_OVER
        target.hint = f"{target.hint}; {PASSED_OVER}"
    return target


def _cluster_around() -> Target | None:
    """The cluster of KUBECONFIG, or the one that this is a pod of."""
    if os.environ.get("KUBECONFIG"):
        from interlock.client.kubeconfig import read_context

        return read_context("", "")
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        from interlock.client.kubeconfig import own_cluster

        return own_cluster()
    return None


def _running_here() -> dict[str, str]:
    """What the server whose data directory is here wrote about itself.

    A directory that others could have prepared stops the command: with what it says, a token would
    be sent to a stranger; without, the command would go to another server than was meant.
    """
    data = os.environ.get("INTERLOCK_DATA") or ".interlock"
    try:
        os.lstat(data)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        # It may be there: going to another server than was meant would be worse than going nowhere.
        raise CommandError(
            f"cannot look at {data}: {error.strerror}", hint=_ELSE, code=BAD_INPUT
        ) from None
    from interlock.private_files import NotPrivateError, check_directory, read_private

    try:
        check_directory(data)
        text = read_private(f"{data}/server.json")
    except FileNotFoundError:
        return {}
    except NotPrivateError as error:
        raise CommandError(error.message, hint=f"{error.hint}; {_ELSE}", code=BAD_INPUT) from None
    except OSError as error:
        raise CommandError(
            f"cannot read {data}/server.json: {error.strerror}", hint=_ELSE, code=BAD_INPUT
        ) from None
    import json

    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _token_of(path: str, tokens: list[tuple[str, bytes]]) -> str:
    """Our own of several tokens, as in the file of a server; never one in the name of another."""
    if not tokens:
        return ""
    chosen = tokens[0][1]
    if len(tokens) > 1:
        from interlock.private_files import user_name

        me = user_name(os.geteuid())
        ours = [secret for wanted in (me, "") for name, secret in tokens if name == wanted]
        if not ours:
            raise CommandError(
                f"none of the tokens in {path} is that of {me}, and all of them have names",
                hint="show one of your own with --token-file or INTERLOCK_TOKEN_FILE,"
                f" or add a line to it: {me}:TOKEN",
                code=BAD_INPUT,
            )
        chosen = ours[0]
    return chosen.decode("utf-8", "replace")


def _read_token(path: str) -> str:
    if not path:
        return ""
    from interlock.private_files import NotPrivateError, read_secret, token_lines

    try:
        return _token_of(path, token_lines(read_secret(path)))
    except NotPrivateError as error:
        raise CommandError(error.message, hint=error.hint, code=BAD_INPUT) from None
    except OSError as error:
        raise CommandError(
            f"cannot read the token in {path}: {error.strerror}", code=BAD_INPUT
        ) from None
