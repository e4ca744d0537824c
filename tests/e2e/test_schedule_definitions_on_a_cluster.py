"""A real API server takes the schedules that our own door takes, and refuses most that it refuses.

What it cannot refuse, a webhook does; without one it can still be read, so it is told in the
object's own status and stops nobody else.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from installing import DRY_RUN, collection_of, install_definitions, warnings_of

from interlock.errors import InterlockError
from interlock.resources.door.validation import read_resource
from interlock.resources.kinds import decode
from support.kube.access import Access, Answer

ROOT = Path(__file__).resolve().parents[2]
Body = dict[str, Any]


def table(name: str) -> dict[str, Any]:
    """The rows of the unit tests of a kind: the same are sent to the API server."""
    return runpy.run_path(str(ROOT / f"tests/unit/resources/test_resources_{name}_checks.py"))


TABLES = [table(name) for name in ("job_config", "controlled_job", "calendar")]
GOOD: list[Body] = [one["a_body"](spec) for one in TABLES for spec in one["GOOD"]]
BAD: list[Body] = [one["a_body"](spec) for one in TABLES for _, _, spec in one["BAD"]]
BEYOND: list[Body] = [one["a_body"](spec) for one in TABLES for _, _, spec in one["BEYOND"]]
LONG_NAMES = [
    one["a_body"](one["GOOD"][0], name="x" * length)
    for one, length in zip(TABLES, (53, 37, 64), strict=True)
]


def briefly(body: Body) -> str:
    return f"{body['kind']}-{json.dumps(body['spec'])[:80]}"


@pytest.fixture(scope="module")
def namespace(cluster: Access) -> Iterator[str]:
    install_definitions(cluster)
    with cluster.namespace() as name:
        yield name


def offer(cluster: Access, namespace: str, body: Body, options: str = DRY_RUN) -> Answer:
    """Ask whether an object would be taken, without leaving it there."""
    place = collection_of(body["kind"], "interlock.dev/v1alpha1", namespace)
    return cluster.ask("POST", f"{place}?{options}", body)


def refused_at_our_door(body: Body) -> bool:
    try:
        read_resource(json.dumps(body).encode())
    except InterlockError:
        return True
    return False


def as_stored(answer: Answer) -> bytes:
    """What the API server keeps, without who wrote which field."""
    kept = {k: v for k, v in answer.body["metadata"].items() if k != "managedFields"}
    return json.dumps(answer.body | {"metadata": kept}).encode()


@pytest.mark.parametrize("body", GOOD, ids=briefly)
def test_a_good_one_is_taken_and_reads_as_at_our_door(
    body: Body, cluster: Access, namespace: str
) -> None:
    answer = offer(cluster, namespace, body)

    assert answer.status == 201, answer.body["message"]
    assert warnings_of(answer) == []
    stored: Any = decode(body["kind"], as_stored(answer))
    ours: Any = read_resource(json.dumps(body).encode())[0]
    assert stored.spec == ours.spec
    assert stored.status == ours.status


@pytest.mark.parametrize("body", [*BAD, *LONG_NAMES], ids=briefly)
def test_both_refuse_a_bad_one(body: Body, cluster: Access, namespace: str) -> None:
    assert refused_at_our_door(body)

    answer = offer(cluster, namespace, body)
    assert answer.status in (400, 422), answer.body


@pytest.mark.parametrize("body", BEYOND, ids=briefly)
def test_what_only_our_door_refuses_harms_itself_only(
    body: Body, cluster: Access, namespace: str
) -> None:
    assert refused_at_our_door(body)

    answer = offer(cluster, namespace, body)
    assert answer.status == 201, f"no longer beyond a definition: {answer.body}"
    try:
        decode(body["kind"], as_stored(answer))
    except msgspec.ValidationError:
        # One of several types, which no definition can say: it cannot be read, and is told so.
        assert "cron" in json.dumps(body["spec"]) or "default" in json.dumps(body["spec"])
