"""Client configuration: kubeconfig files, or the service account of the pod we run in."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from interlock.errors import InterlockError
from interlock.findings import did_you_mean

#: Where a pod finds the credentials of its service account.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class KubeConfigError(InterlockError):
    """The configuration of a cluster cannot be used; the message says which part and why."""


class ExecPlugin(Struct, frozen=True, kw_only=True):
    """A program that tells credentials."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    api_version: str
    #: Told with a program that could not be started.
    install_hint: str = ""
    #: Never, IfAvailable or Always: whether the program may talk to a person.
    interactive: str = "IfAvailable"
    #: What the program is told of the cluster; None when it did not ask.
    cluster: dict[str, Any] | None = None


class User(Struct, frozen=True, kw_only=True):
    """Who we are to a cluster; each way that is given is used."""

    token: str = ""
    #: Read again now and then: tokens of service accounts are replaced while we run.
    token_file: Path | None = None
    certificate: bytes = b""
    key: bytes = b""
    username: str = ""
    password: str = ""
    exec: ExecPlugin | None = None
    #: Headers that ask to act as somebody else.
    impersonation: tuple[tuple[str, str], ...] = ()


class ClusterConfig(Struct, frozen=True, kw_only=True):
    """An API server, and who we are there."""

    server: str
    #: Where the configuration came from, for messages.
    source: str
    namespace: str = "default"
    #: The authority that signed the server's certificate, in PEM; empty trusts the system's.
    authority: str = ""
    skip_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    user: User = User()


def load_config(
    path: str | Path | None = None,
    context: str = "",
    *,
    environment: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> ClusterConfig:
    """The cluster that is meant: the file given, KUBECONFIG, the pod's own, ~/.kube/config.

    The pod's own comes before the file in the home directory, so that a controller in a cluster
    never serves another one by accident.

    Raises:
        KubeConfigError: There is none, or it cannot be used.
    """
    env = os.environ if environment is None else environment
    if path is not None:
        return read_kubeconfig((Path(path).expanduser(),), context)
    named = [part for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    if named:
        return read_kubeconfig([Path(part).expanduser() for part in named], context)
    if env.get(_HOST) and not context and is_pod(service_account):
        return in_cluster(environment=env, service_account=service_account)
    home = Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"
    if _is_there(home):
        return read_kubeconfig((home,), context)
    raise KubeConfigError(
        f"no cluster is configured: KUBECONFIG is not set, {home} does not exist, "
        "and this is no pod with a service account"
    )


def is_pod(service_account: Path = SERVICE_ACCOUNT) -> bool:
    """Whether this process has the credentials of a pod.

    Raises:
        KubeConfigError: Nobody can tell.
    """
    return _is_there(service_account / "token")


def in_cluster(
    *, environment: Mapping[str, str] | None = None, service_account: Path = SERVICE_ACCOUNT
) -> ClusterConfig:
    """The cluster this process is a pod of, as its service account.

    Raises:
        KubeConfigError: It is not a pod, or has no service account.
    """
    env = os.environ if environment is None else environment
    host, port = env.get(_HOST, ""), env.get(_PORT, "443")
    if not host:
        raise KubeConfigError(f"not in a cluster: {_HOST} is not set")
    if ":" in host:
        host = f"[{host}]"
    token = service_account / "token"
    _read_text(token, "the service account's token")
    namespace = service_account / "namespace"
    return ClusterConfig(
        server=f"https://{host}:{port}",
        source=f"the service account in {service_account}",
        namespace=_read_text(namespace, "the namespace").strip()
        if _is_there(namespace)
        else "default",
        authority=_read_text(service_account / "ca.crt", "the cluster's authority"),
        user=User(token_file=token),
    )


def read_kubeconfig(files: list[Path] | tuple[Path, ...], context: str = "") -> ClusterConfig:
    """A context of one or several files, the current one when none is named.

    Of several files, the first that says something about a name is believed; files that do not
    exist are passed over.

    Raises:
        KubeConfigError: Something is missing or cannot be read; the message says what.
    """
    merged = _Merged(files)
    name = context or merged.current_context
    if not name:
        raise KubeConfigError(f"{merged.source}: no context was named and none is current")
    chosen, _ = merged.entry("contexts", "context", name)
    cluster, cluster_folder = merged.entry("clusters", "cluster", _text(chosen, "cluster"))
    user, user_folder = (
        merged.entry("users", "user", _text(chosen, "user")) if chosen.get("user") else ({}, Path())
    )
    server = _text(cluster, "server").rstrip("/")
    if not server.startswith(("http://", "https://")):
        raise KubeConfigError(f"{merged.source}: context {name!r} has no server, found {server!r}")
    authority = _content(cluster, "certificate-authority", cluster_folder)
    return ClusterConfig(
        server=server,
        source=f"context {name} of {merged.source}",
        namespace=_text(chosen, "namespace") or "default",
        authority=_as_pem(authority, "certificate-authority"),
        skip_verify=bool(cluster.get("insecure-skip-tls-verify")),
        tls_server_name=_text(cluster, "tls-server-name"),
        proxy_url=_text(cluster, "proxy-url"),
        user=_read_user(user, user_folder, lambda: _cluster_info(cluster, authority)),
    )


class _Merged:
    """Several kubeconfig files as one."""

    def __init__(self, files: list[Path] | tuple[Path, ...]) -> None:
        present = [file for file in files if _is_there(file)]
        if not present:
            told = ", ".join(map(str, files))
            raise KubeConfigError(f"no kubeconfig: {told} does not exist")
        self._documents = [(file, _load(file)) for file in present]
        self.source = ", ".join(map(str, present))

    @property
    def current_context(self) -> str:
        found = (_text(document, "current-context") for _, document in self._documents)
        return next((name for name in found if name), "")

    def entry(self, section: str, field: str, name: str) -> tuple[Mapping[str, Any], Path]:
        """A named entry, and the folder that paths in it are relative to."""
        names = []
        for file, document in self._documents:
            for entry in document.get(section) or ():
                if not isinstance(entry, Mapping):
                    raise KubeConfigError(f"{file}: {section} holds something that has no name")
                if str(entry.get("name")) == name:
                    return _mapping(entry.get(field), f"{file}: {field} {name!r}"), file.parent
                names.append(str(entry.get("name")))
        hint = did_you_mean(name, names) or f"; there are: {', '.join(names) or 'none'}"
        raise KubeConfigError(f"{self.source}: there is no {field} {name!r}{hint}")


def _load(file: Path) -> Mapping[str, Any]:
    import yaml

    text = _read_text(file, "the kubeconfig")
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise KubeConfigError(f"{file} is not YAML: {error}") from error
    return _mapping(document, str(file))


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise KubeConfigError(f"{what} is no kubeconfig entry: expected fields, found {value!r}")
    return value


def _text(entry: Mapping[str, Any], field: str) -> str:
    return str(entry.get(field) or "")


def _is_there(file: Path) -> bool:
    """Whether there is such a file.

    Raises:
        KubeConfigError: A directory above it may not be looked into, so nobody can tell.
    """
    try:
        return file.exists()
    except OSError as error:
        raise KubeConfigError(f"cannot read {file}: {error.strerror}") from error


def _read_text(file: Path, what: str) -> str:
    try:
        return file.read_text()
    except OSError as error:
        raise KubeConfigError(f"cannot read {what} in {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise KubeConfigError(f"{what} in {file} is not UTF-8") from error


def _content(entry: Mapping[str, Any], field: str, folder: Path) -> bytes:
    """What a field holds: in place as `field-data` in base64, or in the file it names."""
    if data := entry.get(f"{field}-data"):
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error as error:
            raise KubeConfigError(f"{field}-data is not base64") from error
    if not entry.get(field):
        return b""
    return _read_text(folder / _text(entry, field), field).encode()


def _as_pem(data: bytes, what: str) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise KubeConfigError(f"{what} is not in PEM") from error


def _read_user(
    user: Mapping[str, Any], folder: Path, cluster_info: Callable[[], dict[str, Any]]
) -> User:
    if user.get("auth-provider"):
        raise KubeConfigError(
            "auth-provider is no longer supported by Kubernetes: use an exec plugin instead"
        )
    token_file = _text(user, "tokenFile")
    plugin = user.get("exec")
    return User(
        token=_text(user, "token"),
        token_file=folder / token_file if token_file else None,
        certificate=_content(user, "client-certificate", folder),
        key=_content(user, "client-key", folder),
        username=_text(user, "username"),
        password=_text(user, "password"),
        exec=_read_plugin(_mapping(plugin, "exec"), folder, cluster_info) if plugin else None,
        impersonation=tuple(_impersonation(user)),
    )


def _impersonation(user: Mapping[str, Any]) -> list[tuple[str, str]]:
    headers = [("Impersonate-User", _text(user, "as")), ("Impersonate-Uid", _text(user, "as-uid"))]
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    return [(name, value) for name, value in headers if value]


def _read_plugin(
    plugin: Mapping[str, Any], folder: Path, cluster_info: Callable[[], dict[str, Any]]
) -> ExecPlugin:
    command, version = _text(plugin, "command"), _text(plugin, "apiVersion")
    if not command:
        raise KubeConfigError("exec: command is missing")
    if version not in _EXEC_VERSIONS:
        expected = " or ".join(_EXEC_VERSIONS)
        raise KubeConfigError(f"exec: apiVersion is {version!r}, expected {expected}")
    env = {_text(one, "name"): _text(one, "value") for one in plugin.get("env") or ()}
    return ExecPlugin(
        # A path is relative to the file that names it; a bare name is looked up as ever.
        command=str(folder / command) if "/" in command else command,
        args=tuple(map(str, plugin.get("args") or ())),
        env=env,
        api_version=version,
        install_hint=_text(plugin, "installHint"),
        interactive=_text(plugin, "interactiveMode") or "IfAvailable",
        cluster=cluster_info() if plugin.get("provideClusterInfo") else None,
    )


def _cluster_info(cluster: Mapping[str, Any], authority: bytes) -> dict[str, Any]:
    told: dict[str, Any] = {
        "server": cluster.get("server"),
        "tls-server-name": cluster.get("tls-server-name"),
        "insecure-skip-tls-verify": cluster.get("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(authority).decode() or None,
        "proxy-url": cluster.get("proxy-url"),
    }
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            told["config"] = extension.get("extension")
    return {name: value for name, value in told.items() if value is not None}
