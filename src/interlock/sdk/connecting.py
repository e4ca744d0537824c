"""Where a client connects to: as it is told, or found as the command line finds it."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from interlock.client.errors import CommandError
from interlock.client.target import Target, find_target
from interlock.sdk.asking import Site
from interlock.sdk.errors import BadInput, error_of

#: So long an answer may take, and so long a server that is away is looked for.
TIMEOUT_S, PATIENCE_S = 60.0, 5.0


def site_of(
    server: str | None,
    *,
    token: str | None,
    token_file: str | Path | None,
    ca_file: str | Path | None,
    context: str | None,
    kubeconfig: str | Path | None,
    namespace: str | None,
    patience: float,
) -> Site:
    """The server that is meant.

    Raises:
        BadInput: What was given makes no sense, or cannot be read.
    """
    if token is not None and token_file is not None:
        raise BadInput("token and token_file say the same: give one")
    if server and (context or kubeconfig):
        raise BadInput("server names a server, context and kubeconfig name another: give one")
    asked = Namespace(
        server=server or "",
        token_file=os.fspath(token_file or ""),
        ca_file=os.fspath(ca_file or ""),
        context=context or "",
        kubeconfig=os.fspath(kubeconfig or ""),
    )
    try:
        target: Target = find_target(asked)
    except CommandError as error:
        raise error_of(error) from None
    if token is not None:
        target.token = token
    return Site(target, namespace or target.namespace or "default", patience)
