"""How a scheduler's questions are read and answered, in every form they have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from slot_builders import a_ghost, the_slot

from interlock.errors import BadRequestError
from interlock.kube.slots.protocol import (
    NOBODY,
    FilterArgs,
    as_offered,
    encode,
    evict,
    none_of,
    offered_nodes,
    offered_victims,
    only,
    read_filter,
    read_preemption,
    unchanged,
)

POD = {"metadata": {"name": "j-exec-1", "uid": "u1", "labels": {}}, "spec": {}}
SLOT = the_slot("n1/0")


def names(*nodes: str) -> dict[str, Any]:
    return {"Pod": POD, "Nodes": None, "NodeNames": list(nodes)}


def in_full(*nodes: str) -> dict[str, Any]:
    items = [{"metadata": {"name": node}, "status": {"x": 1.5}} for node in nodes]
    return {"Pod": POD, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}


def filter_of(question: Any) -> FilterArgs:
    return read_filter(json.dumps(question).encode())


def answered(answer: Any) -> Any:
    return json.loads(encode(answer))


def test_only_the_node_of_the_slot_is_left_by_name() -> None:
    assert answered(only(filter_of(names("n0", "n1")), SLOT)) == {
        "Nodes": None,
        "NodeNames": ["n1"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"n0": "its slot is n1/0"},
        "Error": "",
    }


def test_only_the_node_of_the_slot_is_left_as_it_was_sent() -> None:
    question = in_full("n0", "n1")
    answer = answered(only(filter_of(question), SLOT))
    assert answer["Nodes"] == {"metadata": {}, "items": [question["Nodes"]["items"][1]]}
    assert answer["NodeNames"] is None
    assert set(answer["FailedAndUnresolvableNodes"]) == {"n0"}


def test_a_slot_elsewhere_leaves_no_node() -> None:
    why = "its slot is n1/0, where there is no room yet"
    answer = answered(only(filter_of(names("n0", "n2")), SLOT))
    assert answer["NodeNames"] == []
    assert answer["FailedAndUnresolvableNodes"] == {"n0": why, "n2": why}


@pytest.mark.parametrize(
    "question", [names("n0", "n1"), in_full("n0", "n1")], ids=["names", "full"]
)
def test_no_slot_leaves_no_node_and_is_no_error(question: Any) -> None:
    answer = answered(none_of(filter_of(question), "no slot"))
    assert not answer["NodeNames"]
    assert answer["Nodes"] is None or answer["Nodes"]["items"] == []
    assert answer["FailedAndUnresolvableNodes"] == {"n0": "no slot", "n1": "no slot"}
    assert answer["FailedNodes"] == {}
    assert answer["Error"] == ""


@pytest.mark.parametrize(
    "question",
    [
        names(),
        names("n0"),
        in_full(),
        in_full("n0", "n1"),
        {"Pod": POD, "Nodes": None, "NodeNames": None},
        {"Pod": POD},
    ],
    ids=["no names", "names", "no nodes", "nodes", "nothing", "nothing said"],
)
def test_a_pod_that_is_none_of_ours_keeps_every_node(question: dict[str, Any]) -> None:
    answer = answered(unchanged(filter_of(question)))
    assert answer["Nodes"] == question.get("Nodes")
    assert answer["NodeNames"] == question.get("NodeNames")
    assert not answer["FailedNodes"]
    assert not answer["FailedAndUnresolvableNodes"]


@pytest.mark.parametrize(
    ("question", "offered"),
    [
        (names("n0", "n1"), ("n0", "n1")),
        (in_full("n0", "n1"), ("n0", "n1")),
        (names(), ()),
        (in_full(), ()),
        ({"Pod": POD, "Nodes": {"items": []}}, ()),
    ],
)
def test_nodes_that_are_asked_about(question: Any, offered: tuple[str, ...]) -> None:
    assert offered_nodes(filter_of(question)) == offered


FULL = {"metadata": {"name": "g", "uid": "g7"}, "spec": {"containers": [{"name": "c"}]}}
VICTIMS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "by uid",
        {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "g7"}], "NumPDBViolations": 2}}},
        {"n1": {"Pods": [{"UID": "g7"}], "NumPDBViolations": 2}},
    ),
    (
        "in full",
        {"NodeNameToVictims": {"n1": {"Pods": [FULL], "NumPDBViolations": 1}}},
        {"n1": {"Pods": [{"UID": "g7"}], "NumPDBViolations": 1}},
    ),
    (
        "nobody by uid",
        {"NodeNameToMetaVictims": {"n1": {"Pods": [], "NumPDBViolations": 0}}},
        {"n1": {"Pods": [], "NumPDBViolations": 0}},
    ),
    (
        "nobody in full",
        {"NodeNameToVictims": {"n1": {"Pods": None, "NumPDBViolations": 0}}},
        {"n1": {"Pods": [], "NumPDBViolations": 0}},
    ),
    (
        "nothing at a node",
        {"NodeNameToVictims": {"n1": None}},
        {"n1": {"Pods": [], "NumPDBViolations": 0}},
    ),
    ("no node", {"NodeNameToMetaVictims": {}}, {}),
    ("nothing", {"NodeNameToVictims": None, "NodeNameToMetaVictims": None}, {}),
]


@pytest.mark.parametrize(
    ("question", "expected"), [row[1:] for row in VICTIMS], ids=[row[0] for row in VICTIMS]
)
def test_a_pod_that_is_none_of_ours_evicts_whom_it_would(
    question: dict[str, Any], expected: dict[str, Any]
) -> None:
    args = read_preemption(json.dumps({"Pod": POD, **question}).encode())
    answer = answered(as_offered(offered_victims(args)))
    assert answer == {"NodeNameToMetaVictims": expected}


def test_a_ghost_is_named_by_its_uid() -> None:
    answer = {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "g5"}], "NumPDBViolations": 0}}}
    assert answered(evict(SLOT, a_ghost("n1/0", uid="g5"))) == answer
    assert answered(NOBODY) == {"NodeNameToMetaVictims": {}}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"Pod": null}',
        b'{"Pod": {}}',
        b'{"Pod": {"metadata": {"name": 3}}}',
        b'{"Pod": {"metadata": {}}, "NodeNames": "n0", "NodeNameToMetaVictims": []}',
        b"\xff\xfe",
        b'{"Pod":' + b"[" * 100_000,
    ],
)
def test_what_is_no_question_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        read_filter(body)
    with pytest.raises(BadRequestError):
        read_preemption(body)


def test_a_node_without_a_shape_is_refused() -> None:
    with pytest.raises(BadRequestError):
        offered_nodes(filter_of({"Pod": POD, "Nodes": {"items": [3]}}))
