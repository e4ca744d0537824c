"""Tellings: what may differ does not, all else does, and merged changes make no difference."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from interlock.resources.naming import MAX_JOB_NAME
from support.differential.differences import ALLOWED, ALLOWED_FACTS, lines_of
from support.differential.scenario import (
    GONE,
    OVER,
    Condition,
    Create,
    LetGo,
    Object,
    Scenario,
    Step,
    Until,
    ended,
    in_phase,
    running,
    waiting,
)
from support.differential.scenarios import SCENARIOS
from support.differential.telling import Telling, grants_of

NOON, LATER = "2026-01-01T12:00:00.5Z", "2026-01-01T12:00:01.5Z"


def a_job(name: str = "a", phase: str = "Queued", **status: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {}, "status": {"phase": phase, **status}}


def an_attempt(state: str = "", *, task: int = 0, number: int = 0, **more: Any) -> Object:
    told = {"index": task, "attempt": number, "name": f"a-{task}-{number}", **more}
    return {**told, "state": state} if state else told


def a_holder(name: str, token: int, admitted_at: str, ended_at: str = "") -> Object:
    grants = [{"key": "db", "token": token}]
    admission = {"phase": "Admitted", "grants": grants, "admittedAt": admitted_at}
    return a_job(name, admission=admission, execution={"endedAt": ended_at} if ended_at else {})


ADMITTED = {"phase": "Admitted", "admittedAt": NOON}
FIRST_END = an_attempt(result="Failed", exitCode=1, startedAt=NOON, endedAt=NOON)
SECOND_END = an_attempt(number=1, result="Killed", signal=15, stopCause="Killed", startedAt=NOON)
#: A Job that fails, is tried again, and is killed.
LIFE = [
    a_job(),
    a_job(phase="Starting", admission=ADMITTED),
    a_job(
        phase="Running",
        admission=ADMITTED,
        execution={"startedAt": NOON, "active": [an_attempt("Running", startedAt=NOON)]},
    ),
    a_job(
        phase="Running",
        admission=ADMITTED,
        execution={
            "startedAt": NOON,
            "active": [an_attempt("Running", number=1, startedAt=NOON)],
            "ended": [FIRST_END],
        },
    ),
    a_job(
        phase="Killed",
        admission=ADMITTED,
        execution={
            "startedAt": NOON,
            "stoppingFor": "Killed",
            "ended": [FIRST_END, SECOND_END],
            "result": "Killed",
            "reason": "Killed",
        },
    ),
]


def told(states: list[Object]) -> list[str]:
    telling = Telling()
    for state in states:
        telling.saw(state)
    return telling.lines


def test_a_life_is_told_in_its_order() -> None:
    assert told(LIFE) == [
        "a is created",
        "a may start, holding nothing",
        "a starts",
        "a task 0, attempt 0 is ordered",
        "a task 0, attempt 0 runs",
        "a task 0, attempt 0 is over: Failed, code 1",
        "a task 0, attempt 1 is ordered",
        "a task 0, attempt 1 runs",
        "a task 0, attempt 1 is told to stop: Killed",
        "a task 0, attempt 1 is over: Killed, code 143",
        "a stops: Killed",
        "a is over: Killed, Killed",
    ]


@pytest.mark.parametrize("heard", range(len(LIFE)))
def test_a_watch_that_merges_changes_tells_the_same(heard: int) -> None:
    for states in combinations(LIFE[:-1], heard):
        assert told([*states, LIFE[-1]]) == told(LIFE)


def test_a_repeated_change_is_told_once() -> None:
    assert told([*LIFE, *LIFE]) == told(LIFE)


def test_what_a_job_waited_for_is_told_after_it_got_it() -> None:
    waits = [{"reason": "Suspended"}, {"reason": "LockTaken", "key": "db"}]

    lines = told([a_job(admission={"waits": waits}), a_job(admission=ADMITTED)])

    assert lines[1:3] == ["a waits: LockTaken db", "a waits: Suspended"]


def test_a_job_that_went_is_told_with_its_last_state() -> None:
    telling = Telling()

    telling.saw_gone(LIFE[-1])

    assert telling.lines == [*told(LIFE), "a is gone"]


@pytest.mark.parametrize("words", ALLOWED_FACTS)
def test_a_fact_of_one_mode_alone_is_not_told(words: str) -> None:
    refusal = words.removeprefix("is refused: ")

    assert told([a_job(admission={"phase": "Refused", "refusal": refusal})]) == ["a is created"]


def test_holders_are_told_by_the_order_of_their_tokens() -> None:
    jobs = [a_holder("late", 90, LATER), a_holder("early", 7, NOON, LATER)]

    assert list(grants_of(jobs)) == ["lock db: holder 1 is early", "lock db: holder 2 is late"]


def test_a_holder_beside_one_that_is_not_over_is_told() -> None:
    jobs = [a_holder("b", 8, NOON), a_holder("a", 7, NOON, LATER), a_holder("c", 9, LATER)]

    assert list(grants_of(jobs)) == [
        "lock db: holder 1 is a",
        "lock db: holder 2 is b, beside a",
        "lock db: holder 3 is c, beside b",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"uid": "1"}, {"uid": "2"}, id="uids"),
        pytest.param({"managedFields": [{}]}, {}, id="notes of Kubernetes"),
        pytest.param({"creationTimestamp": NOON}, {"creationTimestamp": LATER}, id="time"),
    ],
)
def test_what_may_differ_is_told_alike(one: Object, other: Object) -> None:
    assert list(lines_of({"metadata": one})) == list(lines_of({"metadata": other}))


def test_a_signal_is_the_code_that_a_container_makes_of_it() -> None:
    process = a_job(execution={"ended": [an_attempt(result="Killed", signal=9, endedAt=NOON)]})
    pod = a_job(execution={"ended": [an_attempt(result="Killed", exitCode=137, endedAt=LATER)]})

    assert list(lines_of(process)) == list(lines_of(pod))


def test_tasks_are_told_in_the_order_of_their_numbers() -> None:
    ends = [an_attempt(task=task, result="Succeeded") for task in (2, 0, 1)]

    lines = list(lines_of(a_job(execution={"ended": ends})))

    numbers = [line for line in lines if ".index:" in line]
    assert [line.partition("index: ")[2] for line in numbers] == ["0", "1", "2"]


def test_a_default_is_the_same_written_out() -> None:
    written = {"priority": 0, "gracePeriod": "30s", "retries": {"limit": 1, "delay": "0s"}}

    assert list(lines_of({"spec": written})) == list(lines_of({"spec": {"retries": {"limit": 1}}}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"metadata": {"generation": 1}}, {"metadata": {"generation": 2}}, id="spec"),
        pytest.param({"status": {"phase": "Running"}}, {"status": {"phase": "Queued"}}, id="phase"),
        pytest.param({"status": {"admission": {"epoch": 1}}}, {"status": {}}, id="a grant back"),
        pytest.param({"status": {"execution": {"endedAt": NOON}}}, {"status": {}}, id="an end"),
        pytest.param({"status": {"news": {"of": "later"}}}, {"status": {}}, id="a new field"),
        pytest.param({"spec": {"priority": 1}}, {"spec": {}}, id="more than a default"),
    ],
)
def test_everything_else_is_told(one: Object, other: Object) -> None:
    assert list(lines_of(one)) != list(lines_of(other))


def test_every_difference_has_a_reason() -> None:
    assert all(rule.why for rule in ALLOWED)


@pytest.mark.parametrize(
    ("condition", "so", "not_so"),
    [
        pytest.param(running(), LIFE[2], LIFE[3], id="the first attempt"),
        pytest.param(running((0, 1)), LIFE[3], LIFE[2], id="the second attempt"),
        pytest.param(ended(0), LIFE[3], LIFE[4], id="one ended"),
        pytest.param(in_phase("Killed", "Failed"), LIFE[4], LIFE[3], id="a phase"),
        pytest.param(OVER, LIFE[4], None, id="over"),
        pytest.param(GONE, None, LIFE[4], id="gone"),
        pytest.param(
            waiting("LockTaken db"),
            a_job(admission={"waits": [{"reason": "LockTaken", "key": "db"}]}),
            a_job(admission={"waits": [{"reason": "LockTaken", "key": "other"}]}),
            id="a lock",
        ),
    ],
)
def test_a_condition_holds_when_it_does(
    condition: Condition, so: Object | None, not_so: Object | None
) -> None:
    assert condition.holds(so)
    assert not condition.holds(not_so)


def test_an_attempt_that_is_only_ordered_does_not_run() -> None:
    starting = a_job(execution={"active": [an_attempt("Starting")]})

    assert not running().holds(starting)


def test_scenarios_have_names_of_their_own() -> None:
    names = [scenario.name for scenario in SCENARIOS]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_can_be_played(scenario: Scenario) -> None:
    """Names fit, and only what was seen to run is let go: a pod is not there before."""
    for at, step in enumerate(scenario.steps):
        if isinstance(step, Create):
            assert len(f"{scenario.name}--{step.job}") <= MAX_JOB_NAME
        if isinstance(step, LetGo):
            before = scenario.steps[:at]
            assert any(_sees_run(earlier, step) for earlier in before), f"step {at + 1}"


def _sees_run(step: Step, wanted: LetGo) -> bool:
    number = f"({wanted.task}, {wanted.attempt})"
    if not isinstance(step, Until) or step.job != wanted.job:
        return False
    return step.condition.words.startswith("running") and number in step.condition.words
