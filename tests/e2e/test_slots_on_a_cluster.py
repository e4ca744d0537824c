"""Slots on a real cluster: a real scheduler asks the extender, and ghosts make room."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from interlock.kube.install.slot_scheduler import ghost_priority, scheduler_configuration
from interlock.kube.slots import naming
from interlock.testing.serving import PATIENCE_S
from support.cluster_store import install
from support.kube import Access, Cluster
from support.kube.access import Document
from support.kube.controllers import Controller
from support.kube.pods import Play, a_pod

NODES = ("node-a", "node-b")
SCHEDULER = "slot-scheduler"
BEDS = "/apis/interlock.dev/v1alpha1/namespaces/{}/testbeds"


class Stage:
    """Two controllers, both of which answer schedulers, and a scheduler that asks the first."""

    def __init__(self, cluster: Cluster, controllers: list[Controller], ports: list[int]) -> None:
        self.cluster = cluster
        self.access: Access = cluster.access
        self.controllers = controllers
        self.ports = ports

    def ask(self, verb: str, question: Document, replica: int = 0) -> Document:
        """Ask a replica what a scheduler would."""
        url = f"http://127.0.0.1:{self.ports[replica]}/extender/{verb}"
        request = urllib.request.Request(url, json.dumps(question).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            told: Document = json.loads(answer.read())
        return told


class Place:
    """A namespace with pods and beds of one test."""

    def __init__(self, stage: Stage, namespace: str) -> None:
        self.stage = stage
        self.access = stage.access
        self.namespace = namespace
        self.pods = f"/api/v1/namespaces/{namespace}/pods"

    def has_bed(self, name: str, per_node: int, cpu: str, nodes: tuple[str, ...] = NODES) -> None:
        """A bed on these nodes, once every slot of it has a ghost that is placed."""
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
        self.access.create(BEDS.format(self.namespace), body)
        for node in nodes:
            for number in range(per_node):
                self.has_ghost(name, f"{node}/{number}")

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


@pytest.fixture(scope="module")
def stage(own_cluster: Cluster) -> Iterator[Stage]:
    access = own_cluster.access
    install(access)
    access.create("/apis/scheduling.k8s.io/v1/priorityclasses", ghost_priority())
    access.create("/api/v1/namespaces", {"metadata": {"name": "interlock-system"}})
    ports = [own_cluster.take_port() for _ in range(2)]
    with ExitStack() as stack:
        controllers = [
            stack.enter_context(
                Controller(
                    access,
                    own_cluster.folder / f"controller-{port}",
                    "--extender-listen",
                    f"127.0.0.1:{port}",
                )
            )
            for port in ports
        ]
        configuration = scheduler_configuration(
            f"http://127.0.0.1:{ports[0]}", namespace="interlock-system", elects=False
        )
        own_cluster.add_scheduler(SCHEDULER, configuration)
        yield Stage(own_cluster, controllers, ports)


@pytest.fixture
def place(stage: Stage) -> Iterator[Place]:
    with stage.access.namespace() as name:
        yield Place(stage, name)
    # What is left of it would take the room of the next test's.
    stage.access.wait_until_gone(f"/api/v1/namespaces/{name}")


class TestBothScenarios:
    def test_on_full_nodes_ghosts_make_way_and_come_back(self, place: Place) -> None:
        place.has_bed("bed", 2, "500")
        slots = ",".join(f"{node}/{number}" for node in NODES for number in range(2))
        ghosts = {
            slot: place.has_ghost("bed", slot)["metadata"]["uid"] for slot in slots.split(",")
        }
        for name in ("p0", "p1", "p2", "p3"):
            place.tenant(name, "bed", "500", slots)
        found = {name: place.placed(name) for name in ("p0", "p1", "p2", "p3")}
        assert sorted(found.values()) == sorted(ghosts)
        for slot in ghosts:
            place.has_no_ghost("bed", slot)

        place.tenant("p4", "bed", "500", slots)
        place.ends("p2")
        assert place.placed("p4") == found["p2"]
        place.ends("p0")
        assert place.has_ghost("bed", found["p0"])["metadata"]["uid"] != ghosts[found["p0"]]

    def test_where_there_is_room_pods_come_first_and_ghosts_go_after(self, place: Place) -> None:
        place.has_bed("bed", 2, "300")
        for name in ("p0", "p1"):
            place.tenant(name, "bed", "300")
        found = [place.placed(name) for name in ("p0", "p1")]
        # In order they go round the nodes: each has its room beside the ghosts.
        assert sorted(found) == ["node-a/0", "node-b/0"]
        for slot in found:
            place.has_no_ghost("bed", slot)
        place.ends("p0")
        place.has_ghost("bed", found[0])

    def test_pods_of_one_list_are_dealt_the_slots_of_it(self, place: Place) -> None:
        place.has_bed("bed", 3, "300")
        for name in ("p0", "p1", "p2"):
            place.tenant(name, "bed", "300", "node-a/2,node-b/0,node-b/1")
        found = sorted(place.placed(name) for name in ("p0", "p1", "p2"))
        assert found == ["node-a/2", "node-b/0", "node-b/1"]
        place.has_ghost("bed", "node-a/0")

    def test_two_beds_share_a_node(self, place: Place) -> None:
        place.has_bed("left", 1, "400", NODES[:1])
        place.has_bed("right", 1, "400", NODES[:1])
        place.tenant("l", "left", "400")
        place.tenant("r", "right", "400")
        assert place.placed("l") == place.placed("r") == "node-a/0"
        place.has_no_ghost("left", "node-a/0")
        place.has_no_ghost("right", "node-a/0")

    def test_a_pod_that_is_too_large_waits_and_says_why(self, place: Place) -> None:
        place.has_bed("bed", 1, "300")
        place.tenant("p", "bed", "301")
        pod = place.access.wait_for(f"{place.pods}/p", lambda pod: bool(_told_why(pod)))
        assert "it requests more than a slot" in _told_why(pod)


class TestTrouble:
    def test_a_scheduler_that_is_started_anew_goes_on(self, place: Place) -> None:
        place.has_bed("bed", 2, "500")
        cluster = place.stage.cluster
        cluster.kill(SCHEDULER)
        place.tenant("p", "bed", "500")
        cluster.start_component(SCHEDULER)
        place.placed("p")

    def test_an_extender_that_is_started_anew_goes_on(self, place: Place) -> None:
        place.has_bed("bed", 2, "500")
        [first, _] = place.stage.controllers
        first.kill()
        for name in ("p0", "p1"):
            place.tenant(name, "bed", "500")
        first.start().wait_until_ready()
        assert len({place.placed(name) for name in ("p0", "p1")}) == 2

    def test_a_reservation_goes_with_its_pod(self, place: Place) -> None:
        place.has_bed("bed", 1, "300", NODES[:1])
        pod = place.tenant("p", "bed", "300", scheduled=False)
        question = {"Pod": pod, "NodeNames": list(NODES)}
        assert place.stage.ask("filter", question)["NodeNames"] == ["node-a"]
        ghost = place.access.read(place.ghost_path("bed", "node-a/0"))
        assert pod["metadata"]["uid"] in ghost["metadata"]["annotations"][naming.RESERVED]
        place.access.remove(f"{place.pods}/p", gracePeriodSeconds=0)
        place.has_ghost("bed", "node-a/0")
        assert place.stage.ask("filter", question)["NodeNames"] == []

    def test_a_ghost_that_has_gone_is_evicted_no_more(self, place: Place) -> None:
        place.has_bed("bed", 1, "300", NODES[:1])
        pod = place.tenant("p", "bed", "300", scheduled=False)
        stale = {"Pods": [{"UID": "stale"}], "NumPDBViolations": 0}
        question = {"Pod": pod, "NodeNameToMetaVictims": {"node-a": stale, "node-b": stale}}
        named = place.stage.ask("preempt", question)["NodeNameToMetaVictims"]
        ghost = place.access.read(place.ghost_path("bed", "node-a/0"))["metadata"]["uid"]
        assert named == {"node-a": {"Pods": [{"UID": ghost}], "NumPDBViolations": 0}}
        place.access.remove(place.ghost_path("bed", "node-a/0"), gracePeriodSeconds=0)
        place.has_no_ghost("bed", "node-a/0")
        # By whichever replica: the slot stays the pod's, and nobody has to make way for it.
        for replica in range(2):
            told = _until(
                lambda at=replica: place.stage.ask("preempt", question, at), _names_nobody
            )
            assert told == {"NodeNameToMetaVictims": {}}
            answer = place.stage.ask("filter", {"Pod": pod, "NodeNames": list(NODES)}, replica)
            assert answer["NodeNames"] == ["node-a"]

    def test_two_replicas_give_each_slot_once(self, place: Place) -> None:
        place.has_bed("bed", 20, "20")
        pods = [place.tenant(f"p{at}", "bed", "20", scheduled=False) for at in range(60)]

        def ask(at: int) -> list[str]:
            question = {"Pod": pods[at // 2], "NodeNames": list(NODES)}
            return list(place.stage.ask("filter", question, at % 2)["NodeNames"])

        with ThreadPoolExecutor(16) as threads:
            list(threads.map(ask, range(2 * len(pods))))
        listed = place.access.read(place.pods)["items"]
        told = [pod["metadata"]["annotations"].get(naming.SLOT) for pod in listed]
        slots = Counter(slot for slot in told if slot)
        assert len(slots) == 40
        assert set(slots.values()) == {1}


def _until(ask: Any, holds: Any) -> Document:
    """An answer, once it is as awaited: a replica hears of what others did a little later."""
    for _ in range(600):
        told: Document = ask()
        if holds(told):
            return told
    return told


def _names_nobody(told: Document) -> bool:
    return not told["NodeNameToMetaVictims"]


def _node_of(pod: Document) -> str:
    return str(pod.get("spec", {}).get("nodeName") or "")


def _is_free_ghost(pod: Document) -> bool:
    if not _node_of(pod) or "deletionTimestamp" in pod["metadata"]:
        return False
    return naming.RESERVED not in pod["metadata"]["annotations"]


def _told_why(pod: Document) -> str:
    conditions = pod.get("status", {}).get("conditions") or ()
    told = [one.get("message", "") for one in conditions if one["type"] == "PodScheduled"]
    return " ".join(told)
