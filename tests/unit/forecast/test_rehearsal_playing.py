"""What a rehearsal promises whatever the scenario: the same every time, nothing late, all told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.forecast.rehearsal.front import Front
from interlock.forecast.rehearsal.player import Hands, Played, play
from interlock.forecast.rehearsal.reading import read_scenario
from interlock.forecast.rehearsal.world import World
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Metadata
from interlock.testing.builders import T0, a_holder, a_job, a_lock, a_request

CONFIG: dict[str, Any] = {
    "kind": "JobConfig",
    "metadata": {"name": "tick"},
    "spec": {
        "schedules": [{"cron": "*/5 * * * *"}],
        "template": {"spec": {"process": {"command": ["tick"]}}},
    },
}
JOB: dict[str, Any] = {
    "kind": "Job",
    "metadata": {"name": "work"},
    "spec": {"process": {"command": ["work"]}, "gracePeriod": "10s"},
}


class NoHands:
    """Nobody: these scenarios have no verbs."""

    def __init__(self, front: Front) -> None:
        self.front = front

    def apply(self, manifests: Sequence[dict[str, Any]]) -> None:
        raise AssertionError("nothing is applied here")

    def run(self, words: Sequence[str]) -> tuple[int, str]:
        return 7, f"cannot {' '.join(words)}\nmore"


def no_file(name: str) -> list[dict[str, Any]]:
    raise ValueError(name)


def hands(front: Front) -> Hands:
    return NoHands(front)


def played(*objects: dict[str, Any], **more: Any) -> Played:
    data = {"start": "2026-01-05T10:00:00Z", "end": "+1h", "objects": list(objects), **more}
    return play(read_scenario(data, no_file), hands)


def told(result: Played) -> list[str]:
    return [f"{line.at:%H:%M:%S} {line.name} {line.event} {line.reason}".strip() for line in result.lines]  # fmt: skip  # noqa: E501


def test_the_same_scenario_gives_the_same_history() -> None:
    events = [{"at": "+12m", "failover": None}, {"at": "+30m", "outage": {"for": "13m"}}]

    assert played(CONFIG, events=events) == played(CONFIG, events=events)


def test_a_year_is_played_from_one_moment_to_the_next() -> None:
    """Nothing happens between two due times, so nothing costs anything there."""
    yearly = {**CONFIG, "spec": {**CONFIG["spec"], "schedules": [{"cron": "0 12 5 1 *"}]}}
    result = played(yearly, end="2066-01-05T11:00:00Z")

    assert sum(line.event == "Started" for line in result.lines) == 40
    assert result.steps < 40 * 200


def test_history_is_in_the_order_of_time() -> None:
    result = played(CONFIG, JOB, events=[{"at": "+30m", "crash": None}])

    moments = [line.at for line in result.lines]
    assert moments == sorted(moments)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param({}, ["10:00:01 work Finished Succeeded"], id="a second, and well"),
        pytest.param({"lasts": "5m"}, ["10:05:00 work Finished Succeeded"], id="as long as told"),
        pytest.param({"exit": 3}, ["10:00:01 work Finished Failed"], id="with a code"),
        pytest.param(
            {"readyAfter": "20s"}, ["10:00:21 work Finished Succeeded"], id="once it runs"
        ),
        pytest.param({"lasts": "forever"}, [], id="for ever"),
        pytest.param(
            {"match": {"name": "other"}, "exit": 3},
            ["10:00:01 work Finished Succeeded"],
            id="not its rule",
        ),
    ],
)
def test_work_does_what_the_first_rule_says(rule: dict[str, Any], expected: list[str]) -> None:
    result = played(JOB, work=[rule, {"exit": 9, "match": {"name": "never"}}])

    assert [line for line in told(result) if "Finished" in line] == expected


@pytest.mark.parametrize(
    ("rule", "at", "signal"),
    [
        pytest.param({}, "10:01:00", "15", id="ends when told"),
        pytest.param({"exitAfter": "4s"}, "10:01:04", "15", id="ends a while after"),
        pytest.param({"onTerm": "ignore"}, "10:01:10", "9", id="is killed after the grace"),
        pytest.param({"exitAfter": "1m"}, "10:01:10", "9", id="is too slow, and killed"),
    ],
)
def test_work_that_is_stopped_ends_as_its_rule_says(
    rule: dict[str, Any], at: str, signal: str
) -> None:
    result = played(
        JOB,
        work=[{"lasts": "forever", **rule}],
        events=[
            {
                "at": "+1m",
                "patch": {
                    "object": "job/work",
                    "merge": {"spec": {"killAt": "2026-01-05T10:00:00Z"}},
                },
            }
        ],
    )

    (end,) = (line for line in result.lines if line.event == "Finished")
    assert (f"{end.at:%H:%M:%S}", end.reason) == (at, "Killed")
    assert f"signal {signal}" in end.detail


def test_a_crash_without_a_restart_is_over_after_a_second() -> None:
    result = played(CONFIG, events=[{"at": "+1m", "crash": None}])

    assert [line for line in told(result) if line.split()[1] == "interlock"] == [
        "10:01:00 interlock Down crash",
        "10:01:01 interlock Up",
    ]


def test_a_crash_lasts_until_the_restart_that_follows() -> None:
    result = played(CONFIG, events=[{"at": "+1m", "crash": None}, {"at": "+9m", "restart": None}])

    assert [line for line in told(result) if line.split()[1] == "interlock"] == [
        "10:01:00 interlock Down crash",
        "10:09:00 interlock Up",
    ]


def test_every_due_time_of_a_missed_stretch_is_told() -> None:
    result = played(CONFIG, events=[{"at": "+2m", "outage": {"for": "33m"}}])

    skipped = [line.detail.split(",")[0] for line in result.lines if line.event == "Skipped"]
    assert skipped == [f"due 2026-01-05T10:{minute:02}:00Z" for minute in range(5, 30, 5)]


def test_an_event_that_cannot_be_carried_out_is_a_difference_unless_it_is_expected() -> None:
    verb = {"at": "+1m", "verb": ["do", "it"]}
    (difference,) = played(events=[verb]).differences

    assert (difference.path, difference.found) == (
        "events[0].verb",
        "refused: exit 7: cannot do it",
    )
    assert played(events=[{**verb, "fails": True}]).differences == ()
    assert len(played(events=[{"at": "+1m", "crash": None, "fails": True}]).differences) == 1


def test_what_is_expected_of_a_stretch_is_told_when_it_is_first_not_so() -> None:
    expect = {"object": "job/work", "path": ".status.phase", "value": "Running"}
    result = played(
        JOB,
        work=[{"lasts": "10m"}],
        expect=[
            {"between": ["+0s", "+10m"], **expect},
            {"between": ["+0s", "+20m"], **expect},
        ],
    )

    (difference,) = result.differences
    assert difference.path == "expect[1]"
    assert f"{difference.at:%H:%M:%S}" == "10:10:00"
    assert (difference.expected, difference.found) == ("Running", "Succeeded")


@pytest.mark.parametrize(
    ("count", "is_met"),
    [
        (12, True),
        (11, False),
        ({"atLeast": 12}, True),
        ({"atLeast": 13}, False),
        ({"atMost": 12}, True),
        ({"atMost": 11}, False),
        ({"atLeast": 1, "atMost": 12}, True),
    ],
    ids=str,
)
def test_lines_are_counted(count: object, is_met: bool) -> None:
    expect = [{"end": True, "match": {"name": "tick-*", "event": "Started"}, "count": count}]

    assert (played(CONFIG, expect=expect).differences == ()) is is_met


def test_an_object_that_is_not_there_has_no_values() -> None:
    expect = [
        {"at": "+1m", "object": "job/nobody", "path": ".status.phase", "value": None},
        {"at": "+1m", "object": "job/nobody", "exists": False},
        {"at": "+1m", "object": "job/nobody", "path": ".status.phase", "value": "Running"},
    ]
    (difference,) = played(expect=expect).differences

    assert (difference.path, difference.detail) == ("expect[2]", "there is no Job nobody")


def test_tokens_go_on_from_those_that_an_earlier_life_gave_out() -> None:
    """Also for keys whose record it did not leave; and whoever held a lock then can be gone."""
    holder = replace(a_holder(a_job("gone"), token=31_000), job_version=30_999)
    world = World(T0)
    try:
        world.put([a_lock("db", holders=(holder,), last_token=31_000)])
        for name in ("db", "disk"):
            new = a_job(name, locks=(a_request(name),))
            world.put([replace(new, metadata=Metadata(name=name, namespace="default"))])
        world.begin()
        world.play_until(T0 + timedelta(minutes=1))
        jobs = [world.get(Key("Job", "default", name)) for name in ("db", "disk")]
    finally:
        world.close()

    for job in jobs:
        assert isinstance(job, Job)
        assert job.status.phase == "Succeeded"
        assert job.status.admission.grants[0].token > 31_000
