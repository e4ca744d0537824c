"""Slots on a real cluster: a real scheduler asks the extender, and ghosts make room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interlock.kube.install.installation import Installation
from interlock.kube.install.manifests import manifests
from interlock.kube.slots import naming
from support.kube import Cluster
from support.kube.access import Document
from support.kube.cluster import NODES
from support.kube.slot_stage import SCHEDULER, Place, Stage, slot_stage


@pytest.fixture(scope="module")
def stage(own_cluster: Cluster) -> Iterator[Stage]:
    with slot_stage(own_cluster) as staged:
        yield staged


@pytest.fixture
def place(stage: Stage) -> Iterator[Place]:
    with stage.access.namespace() as name:
        yield Place(stage, name)
    # What is left of it would take the room of the next test's.
    stage.access.wait_until_gone(f"/api/v1/namespaces/{name}")


class TestJobs:
    def test_pods_of_a_job_run_in_the_slots_that_it_was_granted(self, place: Place) -> None:
        place.has_bed("bed", 2, "500")
        job = {
            "apiVersion": "interlock.dev/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "wide"},
            "spec": {
                "slots": {"testBed": "bed", "ids": ["node-b/1", "node-a/0"]},
                "parallelism": {"count": 2},
                "pod": {
                    "spec": {
                        "containers": [
                            {
                                "name": "main",
                                "image": "none",
                                "resources": {"requests": {"cpu": "500"}},
                            }
                        ]
                    }
                },
            },
        }
        jobs = f"/apis/interlock.dev/v1alpha1/namespaces/{place.namespace}/jobs"
        place.access.create(jobs, job)

        seated = {place.placed(f"wide-{task}-0") for task in range(2)}

        assert seated == {"node-b/1", "node-a/0"}
        told = place.access.read(f"{jobs}/wide")["status"]
        assert {one["slot"] for one in told["execution"]["active"]} == seated
        place.has_no_ghost("bed", "node-b/1")
        place.has_ghost("bed", "node-b/0")
        for task in range(2):
            place.ends(f"wide-{task}-0")
        place.access.wait_for(f"{jobs}/wide", lambda one: one["status"].get("phase") == "Succeeded")
        place.has_ghost("bed", "node-b/1")


def test_what_is_installed_is_taken(stage: Stage) -> None:
    """The API server knows every field of the second scheduler's objects."""
    made = manifests(Installation(slots=True), ["slots"])
    for one in made:
        path = _collection_of(one)
        body = one
        if one["kind"] == "PriorityClass":
            body = {**one, "metadata": {**one["metadata"], "name": "another"}, "value": -11}
        stage.access.create(f"{path}?fieldValidation=Strict&dryRun=All", body)


def _collection_of(one: Document) -> str:
    version, namespace = one["apiVersion"], one["metadata"].get("namespace", "")
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plurals = {"PriorityClass": "priorityclasses", "ConfigMap": "configmaps"}
    plural = plurals.get(one["kind"], f"{one['kind'].lower()}s")
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"


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


def _told_why(pod: Document) -> str:
    conditions = pod.get("status", {}).get("conditions") or ()
    told = [one.get("message", "") for one in conditions if one["type"] == "PodScheduled"]
    return " ".join(told)
