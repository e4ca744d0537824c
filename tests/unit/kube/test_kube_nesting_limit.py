"""An object that is nested almost without end harms itself only, however it is met."""

from __future__ import annotations

import json

import msgspec
import pytest

from interlock.kube.store.codec import WIRES
from interlock.kube.store.nesting_limit import MAX_DEPTH, cut
from interlock.resources.door.checking import problems_of
from interlock.resources.job import Job

JOBS = WIRES["Job"]
#: Brackets in texts are not nesting.
TRICKY = r'"]}\"[{\\"'


def nested(levels: int, shape: str) -> str:
    start, end = ("[", "]") if shape == "lists" else ('{"a":', "}")
    return start * levels + TRICKY + end * levels


def a_job(name: str, deep: str) -> str:
    """A Job as an API server writes it: who wrote which field is nested as deeply."""
    metadata = f'{{"name":"{name}","namespace":"n","uid":"u","resourceVersion":"5","managedFields":[{deep}]}}'  # noqa: E501
    spec = f'{{"pod":{{"spec":{{"containers":[{{"name":"a","image":"b"}}],"affinity":{deep}}}}}}}'
    return f'{{"metadata":{metadata},"spec":{spec}}}'


@pytest.mark.parametrize("shape", ["lists", "objects"])
@pytest.mark.parametrize("levels", [MAX_DEPTH, 900, 990, 1_100, 9_000])
def test_what_is_too_deep_is_not_read(levels: int, shape: str) -> None:
    bad, good = a_job("bad", nested(levels, shape)), a_job("good", nested(3, shape))

    items = JOBS.list(f'{{"metadata":{{}},"items":[{good},{bad},{good}]}}'.encode())
    happening = JOBS.happening(f'{{"type":"ADDED","object":{bad}}}'.encode())

    assert [one.metadata.name for one in items.items] == ["good", "good"]
    assert [one.key.name for one in items.undecodable] == ["bad"]
    assert happening.resource is None
    assert happening.undecodable is not None
    assert (happening.undecodable.key.name, happening.version) == ("bad", 5)
    assert "nested" in happening.undecodable.problem
    with pytest.raises(msgspec.ValidationError, match="nested"):
        JOBS.one(bad.encode())


@pytest.mark.parametrize("levels", [60, MAX_DEPTH - 1])
def test_what_can_be_carried_is_read_and_refused_by_name(levels: int) -> None:
    job = JOBS.one(a_job("deep", nested(levels, "objects")).encode())

    assert isinstance(job, Job)
    assert "nested deeper" in str(problems_of(job)[0])


def test_a_cut_leaves_good_json_and_what_is_around_it() -> None:
    deep = nested(9_000, "objects")

    found = json.loads(cut(f'{{"a":1,"b":{deep},"c":[{deep},2],"d":{TRICKY}}}'.encode()))

    assert (found["a"], found["c"][1], found["d"]) == (1, 2, json.loads(TRICKY))
    assert cut(b'{"a": [1, {"b": "]"}]}') == b'{"a": [1, {"b": "]"}]}'


@pytest.mark.parametrize(
    ("kind", "template"), [("JobConfig", "template"), ("ControlledJob", "jobTemplate")]
)
@pytest.mark.parametrize(("levels", "is_read"), [(60, True), (MAX_DEPTH, False), (9_000, False)])
def test_templates_are_bounded_as_jobs_are(
    kind: str, template: str, levels: int, is_read: bool
) -> None:
    deep = f'{{"pod":{{"spec":{{"containers":[{{"name":"a","image":"b"}}],"affinity":{nested(levels, "objects")}}}}}}}'  # noqa: E501
    metadata = '{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"}'
    body = f'{{"metadata":{metadata},"spec":{{"{template}":{{"spec":{deep}}}}}}}'

    items = WIRES[kind].list(f'{{"metadata":{{}},"items":[{body}]}}'.encode())

    assert [one.metadata.name for one in items.items] == ["a"] * is_read
    assert [one.key.name for one in items.undecodable] == ["a"] * (not is_read)
