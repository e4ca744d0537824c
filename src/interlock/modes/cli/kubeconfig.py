"""Contexts of a kubeconfig: the same command line for a cluster."""

from __future__ import annotations

import base64
import binascii
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from interlock.modes.cli.errors import BAD_INPUT, FORBIDDEN, CommandError, did_you_mean
from interlock.modes.cli.target import Target


def read_context(path: str, context: str) -> Target:
    """The server, certificates and token of a context; the current one when none is named."""
    file = Path(path or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or "~/.kube/config")
    file = file.expanduser()
    config = _load(file)
    name = context or str(config.get("current-context") or "")
    chosen = _named(config, "contexts", "context", name, file)
    cluster = _named(config, "clusters", "cluster", str(chosen.get("cluster") or ""), file)
    user_name = str(chosen.get("user") or "")
    user = _named(config, "users", "user", user_name, file) if user_name else {}
    target = Target(str(cluster.get("server") or ""), hint=f"the context is {name} of {file}")
    target.namespace = str(chosen.get("namespace") or "")
    _trust(target, cluster, file.parent)
    _identify(target, user, file.parent)
    return target


def _load(file: Path) -> dict[str, Any]:
    import yaml

    try:
        config = yaml.safe_load(file.read_text())
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}", code=BAD_INPUT) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} is not YAML: {error}", code=BAD_INPUT) from None
    if not isinstance(config, dict):
        raise CommandError(f"{file} is not a kubeconfig", code=BAD_INPUT)
    return config


def _named(
    config: dict[str, Any], section: str, field: str, name: str, file: Path
) -> dict[str, Any]:
    entries = {str(entry.get("name")): entry.get(field) for entry in config.get(section) or []}
    if name not in entries:
        raise CommandError(
            f"{file} has no {field} {name!r}",
            hint=did_you_mean(name, entries) or f"it has: {', '.join(entries) or 'none'}",
            code=BAD_INPUT,
        )
    found = entries[name]
    return found if isinstance(found, dict) else {}


def _trust(target: Target, cluster: dict[str, Any], folder: Path) -> None:
    target.skip_verify = bool(cluster.get("insecure-skip-tls-verify"))
    target.tls_name = str(cluster.get("tls-server-name") or "")
    target.ca_data = _decoded(cluster, "certificate-authority-data").decode()
    target.ca_file = _path(cluster, "certificate-authority", folder)


def _identify(target: Target, user: dict[str, Any], folder: Path) -> None:
    target.cert_data = _decoded(user, "client-certificate-data")
    target.key_data = _decoded(user, "client-key-data")
    target.cert_file = _path(user, "client-certificate", folder)
    target.key_file = _path(user, "client-key", folder)
    target.token = str(user.get("token") or "")
    if token_file := _path(user, "tokenFile", folder):
        target.token = Path(token_file).read_text().strip()
    if isinstance(user.get("exec"), dict):
        _ask_program(target, user["exec"])


def _ask_program(target: Target, order: dict[str, Any]) -> None:
    """Have the program that the kubeconfig names tell the credentials."""
    command = [str(order.get("command") or ""), *map(str, order.get("args") or [])]
    env = {str(one["name"]): str(one["value"]) for one in order.get("env") or []}
    about: dict[str, Any] = {
        "apiVersion": order.get("apiVersion"),
        "kind": "ExecCredential",
        "spec": {},
    }
    try:
        done = subprocess.run(
            command,
            env=os.environ | env | {"KUBERNETES_EXEC_INFO": json.dumps(about)},
            stdout=subprocess.PIPE,
            check=True,
        )
        status = json.loads(done.stdout).get("status") or {}
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise CommandError(f"no credentials from {command[0]}: {error}", code=FORBIDDEN) from None
    target.token = str(status.get("token") or target.token)
    if status.get("clientCertificateData"):
        target.cert_data = str(status["clientCertificateData"]).encode()
        target.key_data = str(status.get("clientKeyData") or "").encode()


def _decoded(entry: dict[str, Any], field: str) -> bytes:
    try:
        return base64.b64decode(entry.get(field) or "")
    except (binascii.Error, TypeError):
        raise CommandError(f"{field} in the kubeconfig is not base64", code=BAD_INPUT) from None


def _path(entry: dict[str, Any], field: str, folder: Path) -> str:
    value = entry.get(field)
    return str(folder / str(value)) if value else ""
