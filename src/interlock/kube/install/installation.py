"""Installation settings: where the controller is installed, and what its objects carry."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

import interlock
from interlock.control.lease import SYSTEM_NAMESPACE

Manifest = dict[str, Any]

#: The name of everything there is one of.
NAME = "interlock"
#: Where the API server finds the webhook, at the service.
WEBHOOK_PORT = 443


class Installation(Struct, frozen=True, kw_only=True):
    """What a person chooses about an installation."""

    #: Where the controller runs.
    namespace: str = SYSTEM_NAMESPACE
    #: Serve all namespaces; else only the one in which the controller runs.
    everywhere: bool = True
    image: str = f"interlock:{interlock.__version__}"
    #: How many controllers there are; one leads, the others stand by.
    replicas: int = 2
    name: str = NAME
    #: What holds for all Queues that do not say otherwise, as JSON; nothing where it is empty.
    wait_for_pods_ready: str = ""
    #: Whether batch Jobs and pods of others that are labelled with a Queue wait in it.
    adopts: bool = True
    #: Whether TestBeds have slots for pods: ghosts, and a scheduler that asks us. Slots are on
    #: nodes, so this is for all namespaces.
    slots: bool = False
    #: The image of that scheduler; of the version of the cluster, or one below.
    scheduler_image: str = "registry.k8s.io/kube-scheduler:v1.36.3"
    #: The application of the workers, as MODULE:APP; without one there are none.
    worker_app: str = ""
    #: The image that has it; empty takes that of the controller.
    worker_image: str = ""
    worker_replicas: int = 1
    #: How many steps each of them does at a time.
    worker_concurrency: int = 4

    @property
    def account(self) -> str:
        """Who the controller is to the API server."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def secret(self) -> str:
        """The Secret in which the controller keeps its certificate."""
        return f"{self.name}-webhook"

    @property
    def cluster_name(self) -> str:
        """The name of what belongs to no namespace; several namespaces may have a controller."""
        return self.name if self.everywhere else f"{self.name}-{self.namespace}"


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
