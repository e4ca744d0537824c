"""Our kinds and our store on a real cluster, for tests and benchmarks."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

from interlock.control.clock import SystemClock
from interlock.kube.client.api_client import Client, Patience
from interlock.kube.client.config import load_config
from interlock.kube.install.definitions import definitions
from interlock.kube.store.cluster_store import KubernetesStore, open_store
from interlock.testing.serving import PATIENCE_S
from support.kube import Access, User
from support.kube.access import Document

#: On a busy machine an answer may take long; a test is not about that.
PATIENT = Patience(timeout_s=PATIENCE_S, attempts=20)
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


#: As what our kinds were last seen served, by cluster and name: (applied, uid, resourceVersion).
_served: dict[tuple[str, str], tuple[Document, str, str]] = {}


def install(access: Access, made: list[Document] | None = None) -> None:
    """Make our kinds known to the cluster, and wait until it serves them.

    Doing so twice, or from two places at once, is harmless. What is as this process left it is
    left alone: the API server compiles every rule of a definition again whenever it is applied.
    """
    found = _versions(access)
    for definition in definitions() if made is None else made:
        name = definition["metadata"]["name"]
        if (definition, *found.get(name, ())) == _served.get((access.url, name)):
            continue
        path = f"{_DEFINITIONS}/{name}"
        answer = access.ask(
            "PATCH",
            f"{path}?fieldManager=tests&force=true&fieldValidation=Strict",
            definition,
            media="application/apply-patch+yaml",
        )
        assert answer.status in (200, 201), answer.body["message"]
        metadata = access.wait_for(path, _is_served)["metadata"]
        known = (definition, metadata["uid"], metadata["resourceVersion"])
        _served[access.url, name] = known


def _versions(access: Access) -> dict[str, tuple[str, str]]:
    """Which definitions the cluster has, and as what: without the definitions themselves."""
    asked = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    with access.connected(User.ADMIN) as (connection, headers):
        connection.request("GET", _DEFINITIONS, headers={**headers, "Accept": asked})
        told = json.loads(connection.getresponse().read())
    # A list of nothing is null.
    found = (one["metadata"] for one in told["items"] or ())
    kept = [one for one in found if "deletionTimestamp" not in one]
    return {one["name"]: (one["uid"], one["resourceVersion"]) for one in kept}


def _is_served(definition: Document) -> bool:
    # At first there is a status and null where the conditions will be.
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


@asynccontextmanager
async def store_on(
    access: Access, user: User = User.ADMIN, *, namespace: str = ""
) -> AsyncGenerator[KubernetesStore, None]:
    """A store on the cluster, as somebody."""
    clock, luck = SystemClock(), Random(7)
    config = load_config(access.kubeconfig(user))
    client = Client(config, clock, luck, patience=lambda _: PATIENT)
    try:
        async with open_store(client, clock, luck, namespace=namespace) as store:
            yield store
    finally:
        clock.close()
