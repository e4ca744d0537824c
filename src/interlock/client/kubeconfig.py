"""Contexts of a kubeconfig, and the pod one runs in: the same command line for a cluster.

What the files say is read where the controller reads it too; here it becomes a target.
"""

from __future__ import annotations

import base64
import os

from interlock.client.errors import BAD_INPUT, FORBIDDEN, CommandError
from interlock.client.target import Target
from interlock.kube.client.config import (
    ClusterConfig,
    KubeConfigError,
    User,
    in_cluster,
    is_pod,
    load_config,
)


def read_context(path: str, context: str) -> Target:
    """The server and the credentials of a context; the current one when none is named."""
    try:
        return target_of(load_config(path or None, context or ""))
    except KubeConfigError as error:
        raise CommandError(str(error), code=BAD_INPUT) from None


def own_cluster() -> Target | None:
    """The cluster that this process is a pod of, as its service account; None outside of one."""
    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    try:
        return target_of(in_cluster()) if is_pod() else None
    except KubeConfigError as error:
        raise CommandError(str(error), code=BAD_INPUT) from None


def target_of(config: ClusterConfig) -> Target:
    """The target that a configuration means, with credentials as of now."""
    target = Target(config.server, hint=f"it was named by {config.source}")
    target.by_context = True
    target.source = config.source
    target.namespace = config.namespace
    target.ca_data = config.authority
    target.skip_verify = config.skip_verify
    target.tls_name = config.tls_server_name
    target.proxy_url = config.proxy_url
    target.cert_data, target.key_data = config.user.certificate, config.user.key
    target.headers = _headers(config.user)
    target.renew = lambda: _identify(target, config.user)
    target.renew()
    return target


def _headers(user: User) -> list[tuple[str, str]]:
    headers = list(user.impersonation)
    if user.username:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        headers.append(("Authorization", f"Basic {pair}"))
    return headers


def _identify(target: Target, user: User) -> bool:
    """Find out anew what proves who asks; tells whether that can have changed anything."""
    target.token = user.token
    if user.token_file is not None:
        try:
            target.token = user.token_file.read_text().strip()
        except OSError as error:
            told = f"cannot read the token in {user.token_file}: {error.strerror}"
            raise CommandError(told, code=BAD_INPUT) from None
        except UnicodeDecodeError:
            told = f"the token in {user.token_file} is not text"
            raise CommandError(told, code=BAD_INPUT) from None
    if user.exec is None:
        return user.token_file is not None
    # Only who has such a program pays for what is needed to run it.
    from interlock.errors import UnavailableError
    from interlock.kube.client.credentials import ask_plugin

    try:
        told_by = ask_plugin(user.exec)
    except UnavailableError as error:
        raise CommandError(str(error), code=FORBIDDEN) from None
    target.token = told_by.token
    if told_by.client_certificate_data:
        target.cert_data = told_by.client_certificate_data.encode()
        target.key_data = told_by.client_key_data.encode()
    return True
