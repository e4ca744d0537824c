"""A scenario that cannot be played is refused with the place, what was found and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.forecast.rehearsal.reading import ScenarioError, read_scenario
from interlock.forecast.rehearsal.script import Crash, Outage, Script, Verb

JOB: dict[str, Any] = {
    "kind": "Job",
    "metadata": {"name": "work"},
    "spec": {"process": {"command": ["work"]}},
}
GOOD: dict[str, Any] = {"start": "2026-01-05T10:00:00Z", "end": "+1h", "objects": [JOB]}


def no_file(name: str) -> list[dict[str, Any]]:
    raise ValueError(f"cannot read {name}")


def read(**more: Any) -> Script:
    return read_scenario({**GOOD, **more}, no_file)


@pytest.mark.parametrize(
    ("more", "path", "words"),
    [
        pytest.param({"start": None}, "start", "is required", id="no start"),
        pytest.param({"begin": 1}, "begin", "unknown field", id="an unknown field"),
        pytest.param({"expects": []}, "expects", "did you mean expect?", id="a near miss"),
        pytest.param({"start": "noon"}, "start", 'such as "2026-03-29T09:00:00Z"', id="no moment"),
        pytest.param({"end": "2026-01-05T09:00:00Z"}, "end", "after the start", id="end too early"),
        pytest.param(
            {"settings": {"mode": "kube"}}, "settings.mode", "embedded, cluster", id="a mode"
        ),
        pytest.param(
            {"settings": {"timezone": "Europe/Londn"}},
            "settings.timezone",
            'did you mean "Europe/London"?',
            id="a zone",
        ),
        pytest.param({"objects": ["x"]}, "objects[0]", "{file: PATH}", id="no manifest"),
        pytest.param(
            {"objects": [{"file": "x.yaml"}]}, "objects[0].file", "cannot read x.yaml", id="a file"
        ),
        pytest.param(
            {"objects": [{**JOB, "spec": {"proces": {"command": ["x"]}}}]},
            "objects[0].spec.proces",
            "did you mean spec.process?",
            id="a bad object",
        ),
        pytest.param(
            {"work": [{"lasts": "long"}]}, "work[0].lasts", "or forever", id="how long work lasts"
        ),
        pytest.param(
            {"work": [{"probeAfter": "late"}]}, "work[0].probeAfter", "or never", id="when ready"
        ),
        pytest.param({"work": [{"exit": 300}]}, "work[0].exit", "0 to 255", id="an exit code"),
        pytest.param(
            {"work": [{"onTerm": "die"}]}, "work[0].onTerm", "exit, ignore", id="what it does"
        ),
        pytest.param(
            {
                "objects": [
                    {"kind": "Job", "metadata": {"name": "a"}, "spec": {"noop": {}}},
                    {"kind": "Job", "metadata": {"name": "a"}, "spec": {"noop": {}}},
                ]
            },
            "objects[1].metadata.name",
            "is defined twice, and first at objects[0]",
            id="one name twice",
        ),
        pytest.param({"events": [{"at": "+1m"}]}, "events[0]", "exactly one of", id="no order"),
        pytest.param(
            {"events": [{"at": "+1m", "crash": None, "restart": None}]},
            "events[0]",
            "found crash and restart",
            id="two orders",
        ),
        pytest.param(
            {"events": [{"at": "+2h", "crash": None}]}, "events[0].at", "up to the end", id="late"
        ),
        pytest.param(
            {"events": [{"at": "+1m", "delete": "jb/x"}]},
            "events[0].delete",
            'did you mean "job"?',
            id="an unknown kind",
        ),
        pytest.param(
            {"events": [{"at": "+1m", "delete": "jobs"}]},
            "events[0].delete",
            "expected kind/name",
            id="no name",
        ),
        pytest.param(
            {"events": [{"at": "+1m", "verb": []}]}, "events[0].verb", "words after", id="no verb"
        ),
        pytest.param(
            {"events": [{"at": "+1m", "outage": {}}]},
            "events[0].outage.for",
            "is required",
            id="no length",
        ),
        pytest.param(
            {"expect": [{"object": "jobs", "path": ".", "value": 1}]},
            "expect[0]",
            "exactly one of at, between, end",
            id="no moment of an expectation",
        ),
        pytest.param(
            {"expect": [{"at": "+1m"}]}, "expect[0]", "an object with a path", id="nothing expected"
        ),
        pytest.param(
            {"expect": [{"at": "+1m", "object": "jobs", "path": ".x"}]},
            "expect[0].value",
            "is required",
            id="no value",
        ),
        pytest.param(
            {"expect": [{"at": "+1m", "object": "jobs", "path": "x", "value": 1}]},
            "expect[0].path",
            "expected a path such as",
            id="a bad path",
        ),
        pytest.param(
            {"expect": [{"between": ["+2m", "+1m"], "count": 1}]},
            "expect[0].between[1]",
            "after the first one",
            id="backwards",
        ),
        pytest.param(
            {"expect": [{"end": None, "match": {"event": "X"}, "count": "many"}]},
            "expect[0].count",
            "atLeast",
            id="no count",
        ),
        pytest.param(
            {"expect": [{"end": None, "match": {"evnt": "X"}, "count": 1}]},
            "expect[0].match.evnt",
            "did you mean expect[0].match.event?",
            id="a bad match",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(more: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read(**more)

    problems = {problem.path: problem.message for problem in refused.value.problems}
    assert words in problems[path]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ScenarioError) as refused:
        read(
            work=[{"lasts": "x"}, {"exit": -1}],
            events=[{"at": "never", "crash": None}],
            expect=[{"at": "+9h", "count": 1}],
        )

    paths = [problem.path for problem in refused.value.problems]
    assert paths == ["work[0].lasts", "work[1].exit", "events[0].at", "expect[0].at"]


@pytest.mark.parametrize("value", [None, True, {}], ids=str)
def test_orders_that_need_no_words_stand_alone(value: object) -> None:
    script = read(events=[{"at": "+1m", "crash": value}])

    assert script.steps[0].act == Crash()


def test_events_are_played_in_the_order_of_their_moments() -> None:
    events = [
        {"at": "+5m", "outage": {"for": "1m"}},
        {"at": "+1m", "verb": ["get", "jobs"]},
    ]
    script = read(events=events)

    assert [step.act for step in script.steps] == [Verb(("get", "jobs")), Outage(60.0)]


@pytest.mark.parametrize("data", [None, [], "text", 7], ids=str)
def test_a_file_that_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(ScenarioError):
        read_scenario(data, no_file)
