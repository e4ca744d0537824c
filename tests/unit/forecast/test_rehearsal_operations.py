"""Operations in scenarios: what is wrong is told at the door, and traces are told in both forms."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.forecast.rehearsal.front import Front
from interlock.forecast.rehearsal.player import Hands, Played, play
from interlock.forecast.rehearsal.reading import ScenarioError, read_scenario
from interlock.forecast.rehearsal.scenario import HangWorkerSpec, KillWorkerSpec
from interlock.forecast.rehearsal.script import Script
from interlock.forecast.rehearsal.traces import first_difference, in_short, read_trace
from interlock.modes.cli.rehearsal.command_line import CommandHands

STEP: dict[str, Any] = {"name": "a", "run": {"python": {"function": "a"}}}
REQUEST: dict[str, Any] = {
    "kind": "Job",
    "metadata": {"name": "op"},
    "spec": {"target": {"path": "apps/shop"}, "python": {"function": "create"}},
}
OPERATION: dict[str, Any] = {
    **REQUEST,
    "spec": {"target": {"path": "apps/shop"}, "steps": [STEP]},
}
ELABORATE: dict[str, Any] = {"match": {"step": "elaborate"}}
STATES: dict[str, Any] = {"end": None, "object": "job/op"}


def no_file(name: str) -> list[dict[str, Any]]:
    raise ValueError(name)


def read(**more: Any) -> Script:
    good = {"start": "2026-01-05T10:00:00Z", "end": "+1h", "objects": [OPERATION]}
    return read_scenario({**good, **more}, no_file)


def hands(front: Front) -> Hands:
    return CommandHands(front, "default")


def played(**more: Any) -> Played:
    return play(read(**more), hands)


def told(result: Played, *events: str) -> list[str]:
    return [
        f"{line.at:%H:%M:%S} {line.event} {line.reason} {line.detail}".strip()
        for line in result.lines
        if line.event in events
    ]


@pytest.mark.parametrize(
    ("more", "path", "words"),
    [
        pytest.param(
            {"work": [{"match": {"stp": "a"}}]},
            "work[0].match.stp",
            "did you mean work[0].match.step?",
            id="a near miss",
        ),
        pytest.param(
            {"work": [{"match": {"undo": "yes"}}]}, "work[0].match.undo", "true or false", id="undo"
        ),
        pytest.param(
            {"work": [{"match": {"step": ""}}]}, "work[0].match.step", "a pattern", id="no step"
        ),
        pytest.param(
            {"work": [{"match": {"attempt": -1}}]},
            "work[0].match.attempt",
            "a number from 0",
            id="an attempt before the first",
        ),
        pytest.param(
            {"work": [{"fails": "x", "result": 1}]},
            "work[0].result",
            "leave it out, or fails",
            id="failing with a result",
        ),
        pytest.param(
            {"work": [{"result": "x" * 5000}]},
            "work[0].result",
            "at most 4096 bytes",
            id="a result that is too long",
        ),
        pytest.param(
            {"work": [{"killsWorker": True}], "settings": {"workers": 0}},
            "work[0].killsWorker",
            "give settings.workers",
            id="no worker to kill",
        ),
        pytest.param(
            {"settings": {"workers": -1}}, "settings.workers", "from 0 to", id="fewer than none"
        ),
        pytest.param(
            {"work": [{**ELABORATE, "result": ["a"]}]},
            "work[0].result",
            "expected {steps: [...]}",
            id="no steps of a request",
        ),
        pytest.param(
            {"work": [{**ELABORATE, "result": {"steps": [{"name": "a", "runs": {}}]}}]},
            "work[0].result.steps[0].runs",
            "did you mean",
            id="a bad step of a request",
        ),
        pytest.param(
            {"work": [{**ELABORATE, "result": {"steps": [{**STEP, "needs": ["b"]}]}}]},
            "work[0].result.steps[0].needs[0]",
            "there is no such step",
            id="a step of a request that needs what is not there",
        ),
        pytest.param(
            {"objects": [REQUEST]},
            "work",
            "op is a function for a worker, and no rule under `work` says which steps it has",
            id="a request of which nobody says the steps",
        ),
        pytest.param(
            {"events": [{"at": "+1m", "hangWorker": {}}]},
            "events[0].hangWorker.for",
            "is required",
            id="hanging for no time",
        ),
        pytest.param(
            {"events": [{"at": "+1m", "hangWorker": {"for": "0s"}}]},
            "events[0].hangWorker.for",
            "longer than 0s",
            id="hanging for nothing",
        ),
        pytest.param(
            {"events": [{"at": "+1m", "sweep": {"older": "5m"}}]},
            "events[0].sweep.older",
            "did you mean events[0].sweep.olderThan?",
            id="a sweep of what is older",
        ),
        pytest.param(
            {"expect": [{**STATES, "states": "q00 x11"}]},
            "expect[0].states",
            "'x11' is none",
            id="no state",
        ),
        pytest.param(
            {"expect": [{**STATES, "states": []}]},
            "expect[0].states",
            "such as q00",
            id="no states",
        ),
        pytest.param(
            {"expect": [{**STATES, "states": "q00", "path": ".status"}]},
            "expect[0].path",
            "means nothing beside states",
            id="states and a path",
        ),
        pytest.param(
            {"expect": [{"end": None, "object": "lock/op", "states": "q00"}]},
            "expect[0].object",
            "only Jobs have states",
            id="states of a lock",
        ),
        pytest.param(
            {"expect": [{"end": None, "object": "jobs", "states": "q00"}]},
            "expect[0].object",
            "expected kind/name",
            id="states of all Jobs",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(more: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read(**more)

    problems = {problem.path: problem.message for problem in refused.value.problems}
    assert words in problems[path]


@pytest.mark.parametrize("value", [None, True, {}], ids=str)
def test_a_worker_is_killed_without_further_words(value: object) -> None:
    script = read(events=[{"at": "+1m", "killWorker": value}])

    assert script.steps[0].act == KillWorkerSpec()


def test_a_worker_is_named_by_what_it_works_for() -> None:
    events = [{"at": "+1m", "hangWorker": {"for": "2m", "job": "op-*"}}]
    (step,) = read(events=events).steps

    assert isinstance(step.act, HangWorkerSpec)
    assert (step.act.job, step.act.lasts.total_seconds()) == ("op-*", 120)


# Traces


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("q00 e10 r32 c(partial_success)", id="in short"),
        pytest.param(["q00", "e10", "r32", "c(partial_success)"], id="a list"),
        pytest.param(
            "queued(nil)(0)(0) --> executing(nil)(1)(0) --> reverting(nil)(3)(2)"
            " --> complete(partial_success)",
            id="as the seed writes them",
        ),
        pytest.param("q00, executing(nil)(1)(0) > r32\nc(partial_success)", id="mixed"),
    ],
)
def test_a_trace_reads_the_same_in_every_form(given: object) -> None:
    trace = read_trace(given)

    assert trace[1] == "executing(nil)(1)(0)"
    assert in_short(trace) == "q00 e10 r32 c(partial_success)"


def test_a_count_beyond_nine_is_told_in_full() -> None:
    assert in_short(read_trace("e90 executing(nil)(10)(0)")) == "e90 executing(nil)(10)(0)"


@pytest.mark.parametrize("given", ["", "q0", "x00", "q123", "complete", "c(done)", 7, [1], None])
def test_what_is_no_trace_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="expected states such as q00"):
        read_trace(given)


@pytest.mark.parametrize(
    ("expected", "found", "words"),
    [
        pytest.param("q00 e00", "q00 e00", "", id="the same"),
        pytest.param("q00 e00", "q00 r00", "from number 2 on: expected e00, found r00", id="one"),
        pytest.param("q00 e00", "q00", "from number 2 on: expected e00, found no more", id="short"),
        pytest.param("q00", "q00 e00", "number 2 on: expected nothing more, found e00", id="long"),
    ],
)
def test_it_is_told_where_two_traces_part(expected: str, found: str, words: str) -> None:
    parted = first_difference(read_trace(expected), read_trace(found))

    assert parted.endswith(words)
    assert bool(parted) == bool(words)


def test_a_trace_that_differs_is_shown_beside_the_one_that_was_expected() -> None:
    expect = [{**STATES, "states": "q00 e00 e10 c(success)"}]
    (difference,) = played(expect=expect).differences

    assert difference.expected == "q00 e00 e10 c(success)"
    assert difference.found == "q00 e00 c(success)"
    assert difference.detail == "from number 3 on: expected e10, found c(success)"


def test_the_states_in_a_part_of_the_time_are_those_that_began_in_it() -> None:
    expect = [{"between": ["+1s", "+2s"], "object": "job/op", "states": "c(success)"}]

    assert played(expect=expect).differences == ()


# Lines


def test_every_attempt_of_a_step_is_told_with_its_outcome() -> None:
    step = {**STEP, "undo": {"python": {"function": "b"}}, "retries": {"limit": 1}}
    job = {**OPERATION, "spec": {"steps": [step]}}
    work = [{"match": {"undo": True}, "lasts": "5s"}, {"fails": "no answer"}]

    assert told(played(objects=[job], work=work), "Step", "Undo", "Stuck") == [
        "10:00:00 Step Started a",
        "10:00:01 Step Failed a failed: no answer",
        "10:00:01 Step Started a (attempt 1)",
        "10:00:02 Step Failed a (attempt 1) failed: no answer",
        "10:00:02 Undo Started a",
        "10:00:07 Undo Done a",
    ]


def test_what_a_step_returns_is_told_and_kept() -> None:
    result = {"gear": ["x", 1, None]}
    expect = [
        {
            "end": None,
            "object": "job/op",
            "path": ".status.execution.operation.result",
            "value": '{"a":{"gear":["x",1,null]}}',
        }
    ]
    found = played(work=[{"result": result}], expect=expect)

    assert found.differences == ()
    assert told(found, "Step")[1] == '10:00:01 Step Done a returned {"gear":["x",1,null]}'


def test_jobs_without_steps_have_no_lines_of_operations() -> None:
    job = {**OPERATION, "spec": {"process": {"command": ["x"]}}}
    work = [{"match": {"step": "*"}, "lasts": "9m"}, {"match": {"undo": False}, "lasts": "9m"}]
    found = played(objects=[job], work=work)

    assert told(found, "State", "Step", "Undo") == []
    # Rules for steps are not for what is no step.
    assert told(found, "Finished") == ["10:00:01 Finished Succeeded Completed, exit 0"]


def test_an_operation_that_is_applied_has_its_steps_asked_for_when_they_are_made() -> None:
    events = [{"at": "+1m", "apply": REQUEST}]
    lines = told(played(objects=[], events=events), "Step", "Finished")

    assert "no rule under `work` says which steps it has" in lines[1]
    assert lines[-1].startswith("10:01:34 Finished Failed")


# Workers


def test_a_worker_is_told_to_stop_and_its_step_ends() -> None:
    job = {**OPERATION, "spec": {"steps": [{**STEP, "timeout": "10s"}]}}
    work = [{"lasts": "forever", "exitAfter": "5s"}]

    assert told(played(objects=[job], work=work), "Step")[1:] == [
        "10:00:15 Step Stopped a was stopped: it ran longer than its timeout"
    ]


def test_workers_that_learn_of_new_functions_keep_what_they_have() -> None:
    """Every operation has a function of its own, and they all begin at the same moment."""
    jobs = [
        {
            "kind": "Job",
            "metadata": {"name": f"op-{n}"},
            "spec": {
                "steps": [
                    {"name": name, "run": {"python": {"function": f"{name}{n}"}}} for name in "abc"
                ]
            },
        }
        for n in range(20)
    ]
    found = played(objects=jobs, settings={"workers": 4}, work=[{"lasts": "0s"}])

    outcomes = [line.split()[2] for line in told(found, "Step")]
    assert {"Done": outcomes.count("Done"), "CutOff": outcomes.count("CutOff")} == {
        "Done": 60,
        "CutOff": 0,
    }
    assert len(told(found, "Finished")) == 20


def test_what_was_handed_out_right_before_a_crash_is_done_once() -> None:
    events = [{"at": "+0s", "crash": None}, {"at": "+1m", "crash": None}]
    step = {"name": "b", "run": {"python": {"function": "b"}}}
    job = {**OPERATION, "spec": {"steps": [STEP, step]}}
    found = played(objects=[job], work=[{"lasts": "1m"}], events=events)

    assert [line.partition(" ")[2] for line in told(found, "Step")] == [
        "Step Started a",
        "Step Done a",
        "Step Started b",
        "Step Done b",
    ]


def test_who_killed_nobody_is_told_so() -> None:
    events = [
        {"at": "+1s", "killWorker": None},
        # It is back a second later, and there is no other.
        {"at": "+1500ms", "killWorker": None, "fails": True},
        {"at": "+10m", "killWorker": {"job": "op"}},
    ]
    (difference,) = played(events=events).differences

    assert (difference.path, difference.told) == ("events[2].killWorker", "killWorker")
    assert difference.found == "refused: no worker works for op"


def test_a_running_python_step_can_be_ended_by_an_event() -> None:
    events = [{"at": "+5m", "finish": {"job": "op"}}]
    found = played(work=[{"lasts": "forever"}], events=events)

    assert told(found, "Finished") == ["10:05:00 Finished Succeeded Completed"]
