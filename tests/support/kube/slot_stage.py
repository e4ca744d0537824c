"""Slots on a real cluster: two controllers that answer schedulers, one that asks, and beds."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from interlock.kube.install.slot_scheduler import (
    FLAGS,
    ghost_priority,
    scheduler_configuration,
)
from interlock.kube.slots import naming
from interlock.testing.serving import PATIENCE_S
from support.cluster_store import install
from support.kube.access import Access, Document
from support.kube.cluster import NODES, Cluster
from support.kube.controllers import Controller
from support.kube.pods import Play, a_pod

#: The program that asks the first of the controllers.
SCHEDULER = "slot-scheduler"
_BEDS = "/apis/interlock.dev/v1alpha1/namespaces/{}/testbeds"


class Stage:
    """Two controllers, both of which answer schedulers, and a scheduler that asks the first."""

    def __init__(self, cluster: Cluster, controllers: list[Controller], ports: list[int]) -> None:
        self.cluster = cluster
        self.access: Access = cluster.access
        self.controllers = controllers
        self.ports = ports

    def ask(self, verb: str, question: Document, replica: int = 0) -> Document:
        """Ask a replica what a scheduler would."""
        trusted = ssl.create_default_context(cafile=str(self.access.authority))
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.ports[replica], timeout=PATIENCE_S, context=trusted
        )
        try:
            connection.request("POST", f"/extender/{verb}", json.dumps(question))
            answer = connection.getresponse()
            assert answer.status == 200
            told: Document = json.loads(answer.read())
        finally:
            connection.close()
        return told


class Place:
    """A namespace with pods and beds of one test."""

    def __init__(self, stage: Stage, namespace: str) -> None:
        self.stage = stage
        self.access = stage.access
        self.namespace = namespace
        self.pods = f"/api/v1/namespaces/{namespace}/pods"

    def has_bed(self, name: str, per_node: int, cpu: str, nodes: Sequence[str] = NODES) -> None:
        """A bed on these nodes, once every slot of it has a ghost that is placed."""
        self.bed(name, per_node, cpu, nodes)
        for node in nodes:
            for number in range(per_node):
                self.has_ghost(name, f"{node}/{number}")

    def bed(self, name: str, per_node: int, cpu: str, nodes: Sequence[str]) -> None:
        """A bed on these nodes."""
        label = f"{self.namespace}.test/{name}"
        for number, node in enumerate(nodes):
            patch = {"metadata": {"labels": {label: str(number)}}}
            self.access.change(f"/api/v1/nodes/{node}", patch)
        spec = {"slotsPerNode": per_node, "nodeLabel": label, "resourcesPerSlot": {"cpu": cpu}}
        body = {
            "apiVersion": "interlock.dev/v1alpha1",
            "kind": "TestBed",
            "metadata": {"name": name},
            "spec": spec,
        }
        self.access.create(_BEDS.format(self.namespace), body)

    def ghost_path(self, bed: str, slot: str) -> str:
        place = naming.read_slot(slot)
        assert place is not None
        return f"{self.pods}/{naming.ghost_name(bed, place)}"

    def has_ghost(self, bed: str, slot: str) -> Document:
        """The ghost of a slot, once it is placed and reserved for nobody."""
        return self.access.wait_for(self.ghost_path(bed, slot), _is_free_ghost)

    def has_no_ghost(self, bed: str, slot: str) -> None:
        self.access.wait_until_gone(self.ghost_path(bed, slot))

    def tenant(
        self, name: str, bed: str, cpu: str, slots: str = "", *, scheduled: bool = True
    ) -> Document:
        """A pod that asks for a slot."""
        pod = a_pod(name, schedulerName=naming.SCHEDULER if scheduled else "nobody")
        notes = {naming.TEST_BED: bed, **({naming.SLOTS: slots} if slots else {})}
        pod["metadata"]["annotations"] = notes
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
        return self.access.create(self.pods, pod)

    def placed(self, name: str) -> str:
        """The slot of a pod, once it is placed there."""
        pod = self.access.wait_for(f"{self.pods}/{name}", lambda pod: bool(_node_of(pod)))
        slot: str = pod["metadata"]["annotations"][naming.SLOT]
        assert slot.startswith(f"{_node_of(pod)}/")
        return slot

    def ends(self, name: str) -> None:
        """A pod stops by itself."""
        patch = {"metadata": {"annotations": {str(Play.EXIT_CODE): "0"}}}
        self.access.change(f"{self.pods}/{name}", patch)
        self.access.wait_for(
            f"{self.pods}/{name}", lambda pod: pod["status"].get("phase") == "Succeeded"
        )


@contextmanager
def slot_stage(cluster: Cluster) -> Iterator[Stage]:
    """Two controllers, and a scheduler that asks the first of them."""
    access = cluster.access
    install(access)
    access.create("/apis/scheduling.k8s.io/v1/priorityclasses", ghost_priority())
    access.create("/api/v1/namespaces", {"metadata": {"name": "interlock-system"}})
    ports = [cluster.take_port() for _ in range(2)]
    with ExitStack() as stack:
        controllers = [stack.enter_context(_controller(access, cluster, port)) for port in ports]
        configuration = scheduler_configuration(
            f"https://127.0.0.1:{ports[0]}",
            namespace="interlock-system",
            authority=str(access.authority),
            server="127.0.0.1",
            elects=False,
        )
        cluster.add_scheduler(SCHEDULER, configuration, *FLAGS)
        yield Stage(cluster, controllers, ports)


def _controller(access: Access, cluster: Cluster, port: int) -> Controller:
    return Controller(
        access,
        cluster.folder / f"controller-{port}",
        *("--extender-listen", f"127.0.0.1:{port}"),
        *("--tls-cert", f"{access.folder}/server.crt"),
        *("--tls-key", f"{access.folder}/server.key"),
    )


def _node_of(pod: Document) -> str:
    return str(pod.get("spec", {}).get("nodeName") or "")


def _is_free_ghost(pod: Document) -> bool:
    if not _node_of(pod) or "deletionTimestamp" in pod["metadata"]:
        return False
    return naming.RESERVED not in pod["metadata"]["annotations"]
