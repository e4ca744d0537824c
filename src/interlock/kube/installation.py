"""Where and how the controller is installed in a cluster, and what all its objects carry."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

import interlock
from interlock.control.lease import SYSTEM_NAMESPACE

Manifest = dict[str, Any]

#: The name of everything there is one of.
NAME = "interlock"


class Installation(Struct, frozen=True, kw_only=True):
    """What a person chooses about an installation."""

    #: Where the controller runs.
    namespace: str = SYSTEM_NAMESPACE
    #: Serve all namespaces; else only the one in which the controller runs.
    everywhere: bool = True
    image: str = f"interlock:{interlock.__version__}"
    name: str = NAME


def labelled(api_version: str, kind: str, name: str, namespace: str) -> Manifest:
    """An object with the labels by which people and tools find all of ours."""
    metadata: Manifest = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {
        "app.kubernetes.io/name": NAME,
        "app.kubernetes.io/part-of": NAME,
        "app.kubernetes.io/version": interlock.__version__,
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
