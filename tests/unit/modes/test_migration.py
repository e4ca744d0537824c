"""What can be moved to a cluster, what is left, and what moving writes."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.migration import annotations as marks
from interlock.migration.judging import (
    MOVED_KINDS,
    SCHEDULE_KINDS,
    calendars_of,
    in_the_way,
    judge,
    judge_schedule,
    place,
    schedule_in_the_way,
)
from interlock.resources.kinds import JOBS, KINDS, Moves
from interlock.resources.metadata import GROUP

Job = dict[str, Any]
MARK = '{"cluster": "other"}'


def a_job(spec: Job | None = None, status: Job | None = None, **metadata: Any) -> Job:
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": "x",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "7",
            **metadata,
        },
        "spec": {"noop": {}} if spec is None else spec,
        "status": status or {},
    }


def test_every_kind_of_ours_is_moved_or_the_systems_own() -> None:
    """A new kind has to say here how it is moved."""
    moved = {kind.name for kind in MOVED_KINDS}
    written_by_people = {
        kind.name for kind in KINDS.values() if kind.group == GROUP and not kind.made_by_system
    }
    assert moved == written_by_people
    handed_over = {kind.name for kind in KINDS.values() if kind.moves is Moves.HANDED_OVER}
    assert {kind.name for kind in (*SCHEDULE_KINDS, JOBS)} == handed_over


@pytest.mark.parametrize(
    ("job", "outcome", "why"),
    [
        pytest.param(a_job(), "", "", id="never looked at"),
        pytest.param(a_job(status={"admission": {"phase": "Waiting"}}), "", "", id="waiting"),
        pytest.param(
            a_job(status={"phase": "Starting", "admission": {"phase": "Admitted"}}),
            "left", "it has started: Starting", id="let in",
        ),
        pytest.param(
            a_job(status={"phase": "Refused", "admission": {"phase": "Refused"}}),
            "left", "it has ended: Refused", id="refused",
        ),
        pytest.param(a_job(deletionTimestamp="x"), "left", "being deleted", id="going"),
        pytest.param(
            a_job(ownerReferences=[{"kind": "Other", "name": "o"}]),
            "not movable", "it belongs to other/o", id="owned",
        ),
        pytest.param(
            a_job({"process": {"command": ["a"]}}), "not movable", "--image", id="a process"
        ),
        pytest.param(
            a_job(annotations={marks.MOVE: MARK, marks.MOVED_TO: "there"}),
            "conflict", "it is being moved to there", id="on its way elsewhere",
        ),
    ],
)  # fmt: skip
def test_verdicts(job: Job, outcome: str, why: str) -> None:
    verdict = judge(job, "cluster", "")
    assert (verdict.outcome if verdict else "") == outcome
    assert why in (verdict.why if verdict else "")


@pytest.mark.parametrize(
    ("process", "lost"),
    [
        ({"env": {"A": "1"}, "args": ["b"], "workingDir": "/"}, ""),
        ({"stdin": "text", "user": "root", "limits": {"nice": 1}}, "stdin, user, limits"),
        ({"envFrom": [{"file": "x"}], "group": "g"}, "envFrom, group"),
    ],
)
def test_a_process_becomes_a_pod_unless_something_would_be_lost(process: Job, lost: str) -> None:
    verdict = judge(a_job({"process": {"command": ["a"], **process}}), "cluster", "image")
    assert (verdict is None) is (not lost)
    assert lost in (verdict.why if verdict else "")


def test_lines_are_by_priority_then_by_creation() -> None:
    first = a_job({"noop": {}}, {"admission": {"sequence": 3}})
    second = a_job({"noop": {}}, {"admission": {"sequence": 5}})
    urgent = a_job({"noop": {}, "priority": 1}, {"admission": {"sequence": 9}})
    assert sorted([second, first, urgent], key=place) == [urgent, first, second]


@pytest.mark.parametrize(
    ("mine", "other", "expected"),
    [
        pytest.param({"key": "a"}, a_job({"locks": [{"key": "a"}]}), True, id="the same lock"),
        pytest.param({"key": "a"}, a_job({"locks": [{"key": "b"}]}), False, id="another lock"),
        pytest.param(
            {"key": "a", "whenTaken": "Allow"}, a_job({"locks": [{"key": "a"}]}), False,
            id="it would not wait",
        ),
        pytest.param(
            {"key": "a"}, a_job({"locks": [{"key": "a"}]}, {"phase": "Failed"}), False,
            id="it is over",
        ),
        pytest.param(
            {"key": "a"}, a_job({"locks": [{"key": "a"}]}, namespace="n"), False,
            id="another namespace",
        ),
    ],
)  # fmt: skip
def test_a_lock_that_is_needed_on_the_other_side(mine: Job, other: Job, expected: bool) -> None:
    assert bool(in_the_way(a_job({"locks": [mine]}), [other])) is expected


def test_a_held_job_is_put_back_as_it_was() -> None:
    job = a_job({"noop": {}, "suspend": True, "suspendReason": "rest"})
    change = marks.hold(job, "cluster", "there")
    held = a_job({**job["spec"], **change["spec"]}, annotations=change["metadata"]["annotations"])
    assert marks.is_held(held, "cluster")
    assert marks.release(held)["spec"] == {"suspend": True, "suspendReason": "rest"}
    again = marks.hold(held, "cluster", "there")
    assert marks.mark_of(held) == marks.mark_of(a_job(annotations=again["metadata"]["annotations"]))


def test_a_copy_that_a_person_resumed_stays_so() -> None:
    copy = a_job({"noop": {}}, annotations={marks.MOVE: '{"suspend": true}'})
    assert "spec" not in marks.let_go(copy)


# Schedules


def a_config(work: Job | None = None, spec: Job | None = None, **metadata: Any) -> Job:
    body = a_job({"template": {"spec": work or {"noop": {}}}, **(spec or {})}, **metadata)
    return body | {"kind": "JobConfig"}


@pytest.mark.parametrize(
    ("config", "outcome", "why"),
    [
        pytest.param(a_config(), "", "", id="good"),
        pytest.param(a_config(deletionTimestamp="x"), "left", "being deleted", id="going"),
        pytest.param(
            a_config({"process": {"command": ["a"]}}), "not movable", "--image", id="a process"
        ),
        pytest.param(
            a_config(annotations={marks.MOVE: MARK, marks.MOVED_TO: "there"}),
            "conflict", "it was moved to there", id="elsewhere",
        ),
    ],
)  # fmt: skip
def test_verdicts_on_schedules(config: Job, outcome: str, why: str) -> None:
    verdict = judge_schedule(config, "cluster", "")
    assert (verdict.outcome if verdict else "") == outcome
    assert why in (verdict.why if verdict else "")


def test_a_schedule_waits_for_its_own_jobs_and_for_the_locks_of_its_template() -> None:
    own = a_job({"locks": [{"key": "jobconfig/x"}]}, name="own")
    other = a_job({"locks": [{"key": "db"}]}, name="other")
    config = a_config({"noop": {}, "locks": [{"key": "db"}]})
    allowing = a_config(spec={"concurrency": {"policy": "Allow"}})
    assert "job/own" in schedule_in_the_way(config, [own])
    assert "job/other" in schedule_in_the_way(config, [other])
    assert schedule_in_the_way(allowing, [own, other]) == ""


def test_a_schedule_is_held_once_and_put_back_as_it_was() -> None:
    config = a_config()
    change = marks.hold_schedule(config, "cluster", "there")
    held = a_config(spec={"suspend": True}, annotations=change["metadata"]["annotations"])
    assert marks.is_held(held, "cluster")
    assert not marks.was_suspended(held)
    assert not marks.is_finished(held, "cluster")
    assert marks.release_schedule(held)["spec"] == {"suspend": None}
    done = marks.finish(held)["metadata"]["annotations"]
    assert marks.is_finished(a_config(spec={"suspend": True}, annotations=done), "cluster")
    # Whoever resumes it wants it to act again.
    assert not marks.is_finished(a_config(annotations=done), "cluster")


def test_a_copy_is_suspended_has_pods_and_no_marks_of_the_source() -> None:
    config = a_config(
        {"process": {"command": ["a"]}, "locks": [{"key": "db"}]},
        {"schedules": [{"cron": "@daily"}]},
        annotations={marks.MOVED_TO: "there"},
        labels={"team": "a"},
    )
    copy = marks.schedule_copy_of(config, "origin", "image")
    assert copy["spec"]["suspend"] is True
    work = copy["spec"]["template"]["spec"]
    assert (set(work), work["locks"]) == ({"pod", "locks"}, [{"key": "db"}])
    assert copy["metadata"]["labels"] == {"team": "a", marks.MOVING: "origin"}
    assert copy["metadata"]["annotations"] == {marks.MOVED_FROM: "u"}
    assert "process" in config["spec"]["template"]["spec"]


def test_calendars_are_found_wherever_they_are_named() -> None:
    config = a_config(spec={"schedules": [{"exclude": ["a"]}, {"only": ["b", "a"]}]})
    engine = a_job({"events": [{"exclude": ["a"]}], "windows": [{"only": ["c"]}]})
    assert calendars_of(config) == {"a", "b"}
    assert calendars_of(engine) == {"a", "c"}
