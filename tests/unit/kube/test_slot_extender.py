"""What a scheduler is answered: by HTTP, from the first question about a pod to its ghost's end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from slot_builders import the_slot

from interlock.errors import UnavailableError
from interlock.kube.slots import naming
from interlock.kube.slots.app import ExtenderApp
from interlock.kube.slots.extender import Extender
from interlock.kube.slots.ghost_manifest import GhostSettings, ghost_manifest
from interlock.kube.slots.naming import ghost_name
from support.simulation.ghost_world import BED, GhostTroubles, Replica, Scheduler, World
from support.simulation.kube_api import Body

Answer = tuple[int, Any]


class Calm(World):
    """Two nodes with two slots each, all of which have ghosts, and nothing that goes wrong."""

    def __init__(self) -> None:
        super().__init__(0)
        self.troubles = GhostTroubles()
        self.calm = True
        self.nodes, self.per_node, self.beside = ["n0", "n1"], 2, 0
        self.wanted = dict.fromkeys(self.nodes, self.per_node)
        self.replicas = [Replica(self, "one", leads=True)]
        self.app = ExtenderApp(self.replicas[0].extender)
        self.loop.spawn(self.loop.start_process("scheduler"), Scheduler(self).run())
        self.loop.run_until(60.0)

    def has(self, name: str, **annotations: str) -> Body:
        """A pod that the scheduler of this world leaves alone, as it would be sent."""
        metadata = {"name": name, "annotations": annotations}
        spec = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
        return self.api.create(
            "Pod",
            BED.namespace,
            {"metadata": metadata, "spec": spec | {"schedulingGates": [{"name": "x"}]}},
        )

    def ask(self, path: str, question: Any, *, method: str = "POST") -> Answer:
        """Ask by HTTP; an object is sent as JSON."""
        body = question if isinstance(question, bytes) else json.dumps(question).encode()
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path}
        self.loop.run(self.app(scope, receive, send))
        told = sent[1]["body"]
        return sent[0]["status"], json.loads(told) if sent[0]["status"] == 200 else told

    def filters(self, pod: Body, *nodes: str) -> Any:
        status, told = self.ask("/extender/filter", {"Pod": pod, "NodeNames": list(nodes)})
        assert status == 200
        return told

    def evicts(self, pod: Body, *nodes: str) -> Any:
        victims = {node: {"Pods": [{"UID": "any"}]} for node in nodes}
        status, told = self.ask("/extender/preempt", {"Pod": pod, "NodeNameToMetaVictims": victims})
        assert status == 200
        return {
            node: [pod["UID"] for pod in one["Pods"]]
            for node, one in told["NodeNameToMetaVictims"].items()
        }

    def ghost(self, slot: str) -> Body:
        """The ghost of a slot, as it is."""
        return self.api.get("Pod", (BED.namespace, ghost_name(BED.name, the_slot(slot))))

    def uid_of(self, slot: str) -> str:
        uid: str = self.ghost(slot)["metadata"]["uid"]
        return uid


@pytest.fixture
def world() -> Calm:
    return Calm()


def asking(world: Calm, name: str = "p", **more: str) -> Body:
    return world.has(name, **{naming.TEST_BED: BED.name}, **more)


def test_a_pod_has_its_slot_from_the_first_question_on(world: Calm) -> None:
    pod = asking(world)
    told = world.filters(pod, "n1")
    assert told["NodeNames"] == ["n1"]
    assert world.filters(pod, "n0", "n1")["NodeNames"] == ["n1"]
    assert world.filters(pod, "n0")["NodeNames"] == []
    assert world.evicts(pod, "n0", "n1") == {"n1": [world.uid_of("n1/0")]}
    assert world.evicts(pod, "n0") == {}


def test_the_pod_says_which_slot_it_has_and_the_ghost_whose_it_is(world: Calm) -> None:
    pod = asking(world, **{naming.SLOTS: "n1/1"})
    world.filters(pod, "n0", "n1")
    told = world.api.get("Pod", (BED.namespace, "p"))
    assert told["metadata"]["annotations"][naming.SLOT] == "n1/1"
    ghost = world.ghost("n1/1")["metadata"]
    assert pod["metadata"]["uid"] in ghost["annotations"][naming.RESERVED]
    assert not ghost["finalizers"]


def test_a_ghost_that_has_gone_is_evicted_no_more(world: Calm) -> None:
    pod = asking(world)
    [(node, [uid])] = world.evicts(pod, "n0", "n1").items()
    world.api.delete("Pod", (BED.namespace, ghost_name(BED.name, the_slot(f"{node}/0"))), uid=uid)
    world.loop.run_until(world.loop.time() + 1.0)
    assert world.evicts(pod, "n0", "n1") == {}
    assert world.filters(pod, "n0", "n1")["NodeNames"] == [node]


def test_a_pod_that_was_deleted_between_two_questions_gets_nothing(world: Calm) -> None:
    pod = asking(world)
    world.filters(pod, "n0")
    world.api.delete("Pod", (BED.namespace, "p"), grace_s=0)
    world.loop.run_until(world.loop.time() + 5.0)
    assert world.filters(pod, "n0", "n1")["NodeNames"] == []
    assert naming.RESERVED not in world.ghost("n0/0")["metadata"]["annotations"]


def test_who_was_just_started_looks_before_it_answers(world: Calm) -> None:
    world.replicas = [Replica(world, "two", leads=False)]
    world.app = ExtenderApp(world.replicas[0].extender)
    assert world.filters(asking(world), "n0")["NodeNames"] == ["n0"]


def test_when_all_is_taken_the_next_one_is_told_so_and_it_is_no_error(world: Calm) -> None:
    pods = [asking(world, f"p{at}") for at in range(5)]
    found = [world.filters(pod, "n0", "n1") for pod in pods]
    assert [len(one["NodeNames"]) for one in found] == [1, 1, 1, 1, 0]
    why = "no slot of TestBed default/bed is free here"
    assert found[4]["FailedAndUnresolvableNodes"] == {"n0": why, "n1": why}
    assert found[4]["Error"] == ""
    assert world.evicts(pods[4], "n0", "n1") == {}


def test_a_pod_that_is_none_of_ours_is_let_be(world: Calm) -> None:
    pod = world.has("other")
    assert world.filters(pod, "n0", "n9")["NodeNames"] == ["n0", "n9"]
    assert world.evicts(pod, "n0") == {"n0": ["any"]}


def test_an_api_server_that_does_not_answer_is_no_error_either(world: Calm) -> None:
    async def lost(*_: object) -> Any:
        raise UnavailableError("it is away")

    pod = asking(world)
    wire = world.replicas[0].pods.objects
    wire.patch = lost  # type: ignore[method-assign, assignment]
    told = world.filters(pod, "n0")
    assert told["FailedAndUnresolvableNodes"] == {"n0": "the API server refused: it is away"}
    assert told["Error"] == ""


def test_an_answer_comes_in_time_whatever_the_api_server_does(world: Calm) -> None:
    async def never(*_: object) -> Any:
        await world.loop.freeze()

    pod = asking(world)
    replica = world.replicas[0]
    replica.pods.objects.patch = never  # type: ignore[method-assign, assignment]
    clock = replica.keeper._clock
    world.app = ExtenderApp(Extender(replica.pods, replica.sight, clock, answer_within_s=2.0))
    told = world.filters(pod, "n0")
    assert told["FailedAndUnresolvableNodes"] == {"n0": "the API server took too long"}


@pytest.mark.parametrize(
    ("path", "method", "body", "status"),
    [
        ("/", "POST", b"{}", 404),
        ("/extender/bind", "POST", b"{}", 404),
        ("/extender/filter", "GET", b"", 405),
        ("/extender/filter", "POST", b"nonsense", 400),
        ("/extender/preempt", "POST", b"{}", 400),
        ("/extender/preempt", "POST", b"[" * 100_000, 400),
    ],
)
def test_what_is_no_question(path: str, method: str, body: bytes, status: int, world: Calm) -> None:
    assert world.ask(path, body, method=method)[0] == status


def test_a_ghost_asks_for_as_much_as_a_slot_and_can_be_anywhere_it_belongs() -> None:
    slot, size = the_slot("n0/3"), {"cpu": 1500, "example.org/card": 2000, "x": 0}
    made = ghost_manifest(BED, "bed-uid", slot, size, GhostSettings(image="pause:1"))
    (container,) = made["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "1500m", "example.org/card": 2},
        "limits": {"example.org/card": 2},
    }
    assert made["spec"]["terminationGracePeriodSeconds"] == 0
    assert made["spec"]["automountServiceAccountToken"] is False
    assert "nodeName" not in made["spec"]
    assert "n0" in json.dumps(made["spec"]["affinity"])
    assert made["metadata"]["ownerReferences"][0]["uid"] == "bed-uid"
