"""A new kind is its noun, its checks, its room and an entry: all else derives from the entry.

Two kinds that the product does not know (`toy_kinds`), one of them outside of namespaces, are seen
in everything that is made of the registry, and reconciled by a room of their own.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from control_world import NotedRuntime, World

from interlock.control.lease import Election
from interlock.control.reconciler import Change
from interlock.control.runtime import Runtime
from interlock.control.write_fence import WriteFence
from interlock.errors import InvalidError
from interlock.kube.events.recorder import Events
from interlock.kube.install.definitions import definition, definitions
from interlock.kube.install.installation import Installation
from interlock.kube.install.rbac import rbac
from interlock.kube.install.rules import VALIDATIONS
from interlock.kube.webhook.configuration import webhook
from interlock.kube.webhook.judging import judge
from interlock.kube.webhook.review import Change as Asked
from interlock.plane import ControlPlane
from interlock.resources.codec import to_builtins
from interlock.resources.door.checking import check_update, problems_of
from interlock.resources.door.validation import read_resource
from interlock.resources.kinds import KINDS, rows
from interlock.resources.marks import MARKS
from interlock.resources.metadata import Key, Metadata, Trouble
from interlock.resources.schedule import MOVED_FROM_ANNOTATION
from interlock.testing.asking import Asker, a_store, asking
from interlock.testing.builders import T0
from support.storm.fuzz import _place, documents
from support.toy_kinds import BELLS, TOWERS, Bell, BellSpec, BellState, Tower, TowerSpec, added

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _toys() -> Iterator[None]:
    with added():
        yield


def a_bell(name: str = "big", tower: str = "west", **spec: Any) -> Bell:
    metadata = Metadata(name=name, namespace="default", uid=f"uid-{name}")
    return Bell(metadata=metadata, spec=BellSpec(tower=tower, tone="c", **spec))


def a_tower(name: str = "west") -> Tower:
    return Tower(metadata=Metadata(name=name), spec=TowerSpec(height=30))


# In a control plane


class Ground:
    """A control plane over a store in memory."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.plane = ControlPlane(
            store=world.store,
            journal=world.journal,
            clock=world.clock,
            luck=world.luck,
            connect=self._connect,
            election=Election(
                world.store, world.clock, world.luck, WriteFence(world.clock), "plane"
            ),
        )
        self.plane.start()

    async def _connect(self, term: int) -> Runtime:
        return NotedRuntime()

    async def bell(self, name: str = "big") -> Bell:
        found = await self.world.store.get(Key("Bell", "default", name))
        assert isinstance(found, Bell)
        return found

    async def bells_in(self, name: str = "west") -> int:
        found = await self.world.store.get(Key("Tower", "", name))
        assert isinstance(found, Tower)
        return found.status.bells


def test_a_room_reconciles_them() -> None:
    world = World()

    async def scene() -> None:
        ground = Ground(world)
        await world.store.create(a_bell(rings=3))
        await world.passes(10)
        assert (await ground.bell()).status.state is BellState.WAITING

        await world.store.create(a_tower())
        await world.passes(10)
        assert (await ground.bell()).status.rung == 3
        assert await ground.bells_in() == 1
        assert ground.plane.cache(Bell).get(Key("Bell", "default", "big")) is not None

        await world.store.delete(Key("Bell", "default", "big"))
        await world.passes(10)
        assert await ground.bells_in() == 0
        told = {(entry.kind, entry.room) for entry in await world.journalled()}
        assert told >= {("Bell", "belfry"), ("Tower", "belfry")}

    world.run(scene())


def test_what_is_in_a_namespace_goes_with_it_and_what_is_in_none_stays() -> None:
    world = World()

    async def scene() -> None:
        ground = Ground(world)
        await world.store.create(a_tower())
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "abbey"}}
        await world.store.create(read_resource(body)[0])
        bell = a_bell()
        there = Metadata(name="big", namespace="abbey")
        await world.store.create(Bell(metadata=there, spec=bell.spec))
        await world.passes(10)
        assert await ground.bells_in() == 1

        await world.store.delete(Key("Namespace", "", "abbey"))
        await world.passes(60)
        assert await ground.bells_in() == 0
        left = (await world.store.list("Namespace")).items
        assert "abbey" not in {one.metadata.name for one in left}

    world.run(scene())


# At the doors


BAD: list[tuple[dict[str, Any], str]] = [
    ({"tower": "west"}, "spec"),
    ({"tower": "west", "tone": "c", "melody": ["d"]}, "spec"),
    ({"tower": "west", "tone": "c", "rings": 13}, "spec.rings"),
    ({"tower": "No Name", "tone": "c"}, "spec.tower"),
    ({"tower": "west", "melody": ["c", "silence"]}, "spec.melody[1]"),
    ({"tower": "west", "ton": "c"}, "spec.ton"),
]


@pytest.mark.parametrize(("spec", "path"), BAD)
def test_bad_ones_are_refused_with_the_path_by_both_doors(spec: dict[str, Any], path: str) -> None:
    metadata = {"name": "big", "namespace": "default"}
    body = {"apiVersion": BELLS.api_version, "kind": "Bell", "metadata": metadata, "spec": spec}
    with pytest.raises(InvalidError) as refused:
        read_resource(body)
    assert refused.value.problems[0].path == path
    if path != "spec.ton":  # The API server itself sees to fields that nobody knows.
        verdict = judge(Asked(uid="1", operation="CREATE", object=body), frozenset(), T0)
        assert [problem.path for problem in verdict.problems] == [path]
        assert (verdict.kind, verdict.name) == ("Bell", "big")


def test_good_ones_are_taken_and_changes_checked() -> None:
    bell = a_bell()
    assert problems_of(bell) == ()
    assert problems_of(a_tower()) == ()
    assert [p.path for p in check_update(bell, a_bell(tower="east"))] == ["spec.tower"]


def test_the_documents_of_the_api_tell_of_them() -> None:
    ask = asking(Asker(store=a_store()))
    group = ask("GET", f"/apis/{BELLS.api_version}").json
    listed = {one["name"]: one for one in group["resources"]}
    assert listed["bells"]["namespaced"] is True
    assert listed["towers"]["namespaced"] is False
    assert {"bells/status", "towers/status"} <= listed.keys()
    paths = ask("GET", "/openapi/v2").json["paths"]
    assert f"/apis/{BELLS.api_version}/namespaces/{{namespace}}/bells/{{name}}" in paths
    assert f"/apis/{TOWERS.api_version}/towers/{{name}}" in paths


# For a cluster


def test_the_definitions_say_what_the_nouns_say() -> None:
    assert [one["spec"]["names"]["kind"] for one in definitions()][-2:] == ["Bell", "Tower"]
    bell, tower = definition(BELLS)["spec"], definition(TOWERS)["spec"]
    assert (bell["scope"], tower["scope"]) == ("Namespaced", "Cluster")
    (version,) = bell["versions"]
    assert version["subresources"] == {"status": {}}
    assert version["selectableFields"] == [{"jsonPath": path} for path in BELLS.selectable]
    assert [one["name"] for one in version["additionalPrinterColumns"]] == ["State", "Age", "Tower"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert "expected exactly one of tone and melody" in spec[VALIDATIONS][0]["message"]
    assert (spec["properties"]["rings"]["minimum"], spec["properties"]["rings"]["maximum"]) == (
        1,
        12,
    )


@pytest.mark.parametrize("everywhere", [True, False])
def test_the_rights_are_given_for_them(everywhere: bool) -> None:
    made = rbac(Installation(everywhere=everywhere))
    granted = {
        (role["kind"], role["metadata"]["name"].rpartition("-")[2], resource, verb)
        for role in made
        for rule in role.get("rules", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    inside = "ClusterRole" if everywhere else "Role"
    for kind, plural in ((inside, "bells"), ("ClusterRole", "towers")):
        assert (kind, "controller", plural, "watch") in granted
        assert (kind, "controller", f"{plural}/status", "update") in granted
        assert (kind, "editor", plural, "create") in granted
        assert (kind, "viewer", plural, "list") in granted
        assert (kind, "viewer", plural, "create") not in granted
        assert (kind, "controller", plural, "patch") not in granted
    if not everywhere:
        assert ("Role", "controller", "towers", "watch") not in granted


def test_the_webhook_is_asked_about_them() -> None:
    made = {one["kind"]: one for one in webhook(Installation())}
    rules = made["ValidatingWebhookConfiguration"]["webhooks"][0]["rules"]
    by_scope = {rule["scope"]: rule["resources"] for rule in rules}
    assert "bells" in by_scope["Namespaced"]
    assert by_scope["Cluster"] == ["queues", "towers"]


def test_their_troubles_are_told_as_events() -> None:
    world = World()
    events = Events(None, world.clock, world.luck, world.fence, "me")  # type: ignore[arg-type]
    before = a_bell()
    trouble = Trouble(room="belfry", message="the rope is torn", since=T0)
    after = Bell(
        metadata=before.metadata, spec=before.spec, status=type(before.status)(trouble=trouble)
    )
    events.observe(Change(before, after))
    (waiting,) = events._waiting.values()
    assert (waiting.told.reason, waiting.told.message) == ("Trouble", "belfry: the rope is torn")


# Elsewhere


def test_the_pages_and_tables_tell_of_them() -> None:
    pages = runpy.run_path(str(ROOT / "tools/write_docs.py"))["pages"]()
    kinds = pages["docs/reference/kinds.md"]
    assert "## Bell\n" in kinds
    assert "outside namespaces" in kinds[kinds.index("## Tower\n") :]
    assert "/towers/{name}" in pages["docs/reference/routes.md"]
    assert ("Bell", "bells", ("bl",), BELLS.api_version, True, "copied") in rows()


def test_a_copy_of_one_may_say_where_it_is_from() -> None:
    mark = next(mark for mark in MARKS if mark.name == MOVED_FROM_ANNOTATION)
    assert {"Bell", "Tower"} <= set(mark.kinds)


def test_the_fuzzer_knows_them_and_where_they_are_made() -> None:
    sketched = {one["kind"]: one["spec"] for one in documents() if one["kind"] in ("Bell", "Tower")}
    assert sketched == {"Bell": {"tower": "one"}, "Tower": {"height": 1}}
    assert _place(KINDS["Bell"]) == f"/apis/{BELLS.api_version}/namespaces/default/bells"
    assert _place(KINDS["Tower"]) == f"/apis/{TOWERS.api_version}/towers"


def test_they_can_be_written_and_read_back() -> None:
    body = to_builtins(a_bell())
    assert body["kind"] == "Bell"
    assert body["spec"] == {"tower": "west", "tone": "c"}
