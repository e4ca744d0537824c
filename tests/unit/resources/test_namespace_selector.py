"""Which namespaces a selector means: by name, by label, and both."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from interlock.resources.door.checking import problems_of
from interlock.resources.metadata import Metadata
from interlock.resources.namespace_selector import NamespaceSelector, is_chosen, told
from interlock.resources.queue import Queue, QueueSpec
from interlock.resources.values.amounts import Amount

LABELS = {"team": "ml", "tier": "gold"}


def read(given: dict[str, Any]) -> NamespaceSelector:
    return convert(given, NamespaceSelector)


def one(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, False, id="nothing given"),
        pytest.param({"matchNames": []}, False, id="no names"),
        pytest.param({"matchNames": ["lab"]}, True, id="its name"),
        pytest.param({"matchNames": ["other"]}, False, id="another name"),
        pytest.param({"matchLabels": {"team": "ml"}}, True, id="a label"),
        pytest.param({"matchLabels": {"team": "ml", "tier": "tin"}}, False, id="one of two"),
        pytest.param({"matchLabels": {"absent": ""}}, False, id="empty is not absent"),
        pytest.param(
            {"matchLabels": {"kubernetes.io/metadata.name": "lab"}}, True, id="every one's label"
        ),
        pytest.param({"matchNames": ["lab"], "matchLabels": {"team": "ml"}}, True, id="both hold"),
        pytest.param({"matchNames": ["no"], "matchLabels": {"team": "ml"}}, False, id="not name"),
        pytest.param({"matchNames": ["lab"], "matchLabels": {"team": "x"}}, False, id="not label"),
        pytest.param({"matchExpressions": [one("team", "In", "a", "ml")]}, True, id="In"),
        pytest.param({"matchExpressions": [one("team", "In", "a")]}, False, id="not In"),
        pytest.param({"matchExpressions": [one("none", "In", "a")]}, False, id="In of nothing"),
        pytest.param({"matchExpressions": [one("team", "NotIn", "ml")]}, False, id="NotIn"),
        pytest.param({"matchExpressions": [one("none", "NotIn", "ml")]}, True, id="absent NotIn"),
        pytest.param({"matchExpressions": [one("team", "Exists")]}, True, id="Exists"),
        pytest.param({"matchExpressions": [one("none", "Exists")]}, False, id="not Exists"),
        pytest.param({"matchExpressions": [one("team", "DoesNotExist")]}, False, id="there"),
        pytest.param({"matchExpressions": [one("none", "DoesNotExist")]}, True, id="not there"),
        pytest.param(
            {"matchLabels": {"team": "ml"}, "matchExpressions": [one("tier", "DoesNotExist")]},
            False,
            id="labels and expressions",
        ),
    ],
)
def test_which_namespaces_are_meant(given: dict[str, Any], expected: bool) -> None:
    assert is_chosen(read(given), "lab", LABELS) is expected


@pytest.mark.parametrize(
    ("given", "path"),
    [
        pytest.param({"matchLabels": {"-a": "x"}}, "matchLabels", id="key"),
        pytest.param({"matchLabels": {"a": "x y"}}, "matchLabels.a", id="value"),
        pytest.param({"matchExpressions": [one("a", "In")]}, "matchExpressions[0].values", id="In"),
        pytest.param(
            {"matchExpressions": [one("a", "Exists", "b")]}, "matchExpressions[0].values", id="one"
        ),
        pytest.param(
            {"matchExpressions": [one("a b", "Exists")]}, "matchExpressions[0].key", id="bad key"
        ),
    ],
)
def test_what_is_refused(given: dict[str, Any], path: str) -> None:
    spec = QueueSpec(resources={"cpu": Amount(1000)}, namespace_selector=read(given))
    queue = Queue(metadata=Metadata(name="team"), spec=spec)

    (problem,) = problems_of(queue)

    assert problem.path.startswith(f"spec.namespaceSelector.{path}")


def test_people_are_told_in_the_words_of_kubectl() -> None:
    selector = read(
        {
            "matchNames": ["a"],
            "matchLabels": {"team": "ml"},
            "matchExpressions": [
                one("t", "In", "x", "y"),
                one("u", "Exists"),
                one("v", "NotIn", "z"),
            ],
        }
    )

    assert told(selector) == ("a", "those with team=ml and t in (x, y) and u and v notin (z)")
    assert told(read({"matchNames": ["a", "b"]})) == ("a", "b")
