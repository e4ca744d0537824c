"""The checker of storms bites: each promise, broken once, is found, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.testing.clients import Object
from support.storm.checker import DueSeconds, Told, Windows, check_all, missing_output
from support.storm.evidence import Line, parse

LIMITS = {"db": 1, "fan": 1, "desk": 2}


def a_line(
    kind: str, job: str, at: float, detail: str = "{}", *, task: int = 0, attempt: int = 0
) -> str:
    return f"{kind}\tuid-{job}\t{job}\t{task}\t{attempt}\t{100 + at:.0f}\t{at}\t{detail}\n"


def ran(
    job: str, begin: float, end: float, *, fences: str = "{}", code: int = 0, **which: int
) -> list[str]:
    """The evidence of an attempt from its beginning to its end."""
    begun = a_line("B", job, begin, fences, **which)
    return [begun, a_line("E", job, end, str(code), **which)]


def an_end(job: str, *, task: int = 0, attempt: int = 0, **end: Any) -> Object:
    """An attempt on record; it ended with code 0 unless told otherwise."""
    told = end or {"exitCode": 0, "result": "Succeeded"}
    return {"name": f"{job}-{task}-{attempt}", "index": task, "attempt": attempt, **told}


def a_job(name: str, *ended: Object, phase: str = "Succeeded", **metadata: Any) -> Object:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", **metadata},
        "status": {"phase": phase, "execution": {"ended": list(ended or [an_end(name)])}},
    }


def found(lines: list[str], *jobs: Object, **told: Any) -> list[str]:
    """The checks that found something."""
    given: dict[str, Any] = {"limits": LIMITS, "jobs": jobs, **told}
    return [check.name for check in check_all(parse(lines), Told(**given)) if check.faults]


A, B = a_job("a"), a_job("b")
ONE, TWO = '{"db":1}', '{"db":2}'
KILLED: Object = {"result": "Killed", "signal": 15, "stopCause": "Killed"}


@pytest.mark.parametrize(
    ("lines", "jobs"),
    [
        pytest.param(
            [*ran("a", 1, 2, fences=ONE), *ran("b", 3, 4, fences=TWO)], [A, B], id="in turn"
        ),
        pytest.param(
            [*ran("a", 1, 3, fences='{"desk":2}'), *ran("b", 2, 4, fences='{"desk":1}')],
            [A, B],
            id="as many at once as may be",
        ),
        pytest.param(
            [*ran("a", 1, 2, fences=ONE, code=3), *ran("a", 3, 4, fences=ONE, attempt=1)],
            [a_job("a", an_end("a", exitCode=3, result="Failed"), an_end("a", attempt=1))],
            id="tried again under the same token",
        ),
        pytest.param(
            [*ran("a", 1, 3, fences='{"fan":1}'), *ran("a", 2, 4, fences='{"fan":1}', task=1)],
            [a_job("a", an_end("a"), an_end("a", task=1))],
            id="tasks of one Job side by side",
        ),
        pytest.param(
            [a_line("B", "a", 1), a_line("E", "a", 2, "7")],
            [a_job("a", an_end("a", **KILLED | {"signal": 9}), phase="Killed")],
            id="killed between its word and its end",
        ),
        pytest.param(
            [a_line("B", "a", 1)], [a_job("a", an_end("a", **KILLED), phase="Killed")], id="stopped"
        ),
        pytest.param(
            [*ran("a", 1, 2, fences=ONE), a_line("R", "", 0), *ran("a", 3, 4, fences=TWO)],
            [A],
            id="again, with a higher token, after the store was put back",
        ),
        pytest.param([*ran("a", 1, 2), "B\tuid-a"], [A], id="a line that is not whole"),
    ],
)
def test_what_is_promised_is_no_fault(lines: list[str], jobs: list[Object]) -> None:
    assert found(lines, *jobs) == []


@pytest.mark.parametrize(
    ("lines", "jobs", "check"),
    [
        pytest.param(
            [a_line("V", "a", 1, "db"), *ran("a", 1, 2)], [A], "overlaps", id="no free place"
        ),
        pytest.param(
            [*ran("a", 1, 3, fences=ONE), *ran("b", 2, 4, fences=TWO)],
            [A, B],
            "overlaps",
            id="at work at once",
        ),
        pytest.param(
            [
                *ran("a", 1, 2, fences=ONE),
                a_line("L", "a", 4),
                *ran("b", 3, 5, fences=TWO),
            ],
            [A, B],
            "overlaps",
            id="a child outlives the lock",
        ),
        pytest.param(
            [*ran("a", 1, 2), *ran("a", 3, 4)], [A], "attempts run twice", id="an attempt again"
        ),
        pytest.param(
            [*ran("a", 1, 2), *ran("a", 3, 4, attempt=1)],
            [A],
            "attempts off the record",
            id="an attempt that nobody recorded",
        ),
        pytest.param(
            [*ran("a", 1, 2)], [], "attempts off the record", id="an attempt of no Job at all"
        ),
        pytest.param([*ran("a", 1, 2, code=3)], [A], "wrong ends", id="another code"),
        pytest.param([a_line("B", "a", 1)], [A], "wrong ends", id="a code that it never said"),
        pytest.param(
            [a_line("B", "a", 1)],
            [a_job("a", an_end("a", result="Failed", signal=9))],
            "wrong ends",
            id="a signal that nobody sent",
        ),
        pytest.param(
            [*ran("a", 1, 2)],
            [a_job("a", an_end("a", **KILLED), phase="Killed")],
            "wrong ends",
            id="a signal, and it had ended by itself",
        ),
        pytest.param(
            [*ran("a", 1, 2)],
            [a_job("a", an_end("a", result="WrittenOff"), phase="FinishedUnknown")],
            "wrong ends",
            id="written off, and no keeper was killed",
        ),
        pytest.param(
            [*ran("a", 1, 2, fences=TWO), *ran("b", 3, 4, fences=ONE)],
            [A, B],
            "fences that do not rise",
            id="a lower token",
        ),
        pytest.param(
            [*ran("a", 1, 2, fences='{"desk":1}'), *ran("b", 3, 4, fences='{"desk":1}')],
            [A, B],
            "fences that do not rise",
            id="a token for two",
        ),
        pytest.param(
            [*ran("a", 1, 2, fences=TWO), a_line("R", "", 0), *ran("b", 3, 4, fences=ONE)],
            [A, B],
            "fences that do not rise",
            id="a lower token after the store was put back",
        ),
        pytest.param(
            [], [a_job("a", phase="Running") | {"status": {}}], "Jobs without end", id="no end"
        ),
    ],
)
def test_what_breaks_a_promise_is_found(lines: list[str], jobs: list[Object], check: str) -> None:
    assert found(lines, *jobs) == [check]


def test_a_job_that_was_acknowledged_is_lost_unless_somebody_deleted_it() -> None:
    promised = {"a": "uid-a", "b": "uid-b"}
    there = [*ran("a", 1, 2)]

    assert found(there, A, acknowledged=promised) == ["acknowledged Jobs lost"]
    assert found(there, A, acknowledged=promised, deleted=frozenset({"uid-b"})) == []


def test_a_fate_may_be_unknown_once_a_keeper_was_killed() -> None:
    job = a_job("a", an_end("a", result="WrittenOff"), phase="FinishedUnknown")

    assert found([*ran("a", 1, 2)], job, fates_may_be_unknown=True) == []


def test_a_store_that_was_put_back_stops_what_it_does_not_know() -> None:
    """And it need not know what began before, nor whose Job it forgot."""
    lines = [*ran("a", 1, 2), *ran("a", 3, 4, attempt=1), a_line("R", "", 0), a_line("B", "b", 5)]
    stopped = a_job("b", an_end("b", result="Failed", signal=15), phase="Failed")

    assert found(lines, a_job("a"), stopped, is_restored=True) == []
    assert found(lines, a_job("a"), stopped) == ["wrong ends"]


def test_what_was_stopped_before_it_began_has_no_code() -> None:
    stopped = a_job("a", an_end("a", result="Killed", stopCause="Killed"), phase="Killed")
    of_itself = a_job("a", an_end("a", result="Killed"), phase="Killed")

    assert found([], stopped) == []
    assert found([], of_itself) == ["wrong ends"]
    assert found([a_line("B", "a", 1)], stopped) == ["wrong ends"]


def test_how_an_attempt_failed_may_be_forgotten_by_the_time_a_store_is_put_back() -> None:
    failed = a_job("a", an_end("a", result="Failed"), phase="Failed")

    assert found([*ran("a", 1, 2, code=3)], failed, is_restored=True) == []
    assert found([*ran("a", 1, 2, code=3)], failed) == ["wrong ends"]
    assert found([*ran("a", 1, 2, code=0)], failed, is_restored=True) == ["wrong ends"]


# Schedules


def at(second: int) -> str:
    return f"2026-01-05T12:00:{second:02}Z"


def a_config(accounted_to: int, *skips: tuple[int, int], suspend: bool = False) -> Object:
    told = [{"at": at(first), "until": at(last)} for first, last in skips]
    return {
        "metadata": {"name": "tick", "creationTimestamp": "2026-01-05T12:00:00.500000Z"},
        "spec": {"suspend": suspend},
        "status": {"skips": told, "books": {"accountedTo": at(accounted_to)}},
    }


def made_for(second: int, name: str, kind: str, owner: str) -> Object:
    return a_job(
        name,
        ownerReferences=[{"kind": kind, "name": owner}],
        annotations={"interlock.dev/scheduled-at": at(second)},
    )


def of_second(second: int, name: str) -> Object:
    return made_for(second, name, "JobConfig", "tick")


@pytest.mark.parametrize(
    ("skips", "jobs", "faults"),
    [
        pytest.param([(3, 4)], [of_second(1, "a"), of_second(2, "b")], 0, id="all accounted for"),
        pytest.param([(4, 4)], [of_second(1, "a"), of_second(2, "b")], 1, id="a second is missing"),
        pytest.param(
            [(2, 4)], [of_second(1, "a"), of_second(2, "b")], 1, id="one is skipped, and ran"
        ),
        pytest.param([(2, 4)], [of_second(1, "a"), of_second(1, "b")], 1, id="one ran twice"),
        pytest.param([(2, 4)], [of_second(1, "a"), of_second(1, "idle")], 0, id="one of two ran"),
    ],
)
def test_each_due_second_has_a_job_or_a_skip(
    skips: list[tuple[int, int]], jobs: list[Object], faults: int
) -> None:
    due = DueSeconds()
    due.take(a_config(4, *skips))
    # Once somebody has suspended it, nothing is due.
    due.take(a_config(9, *skips, suspend=True))
    evidence: list[Line] = parse([*ran("a", 1, 2), *ran("b", 3, 4)])

    check = due.check("tick", jobs, evidence)

    assert (check.looked_at, len(check.faults)) == (4, faults)


def a_controlled(newest: int, *past: int) -> Object:
    return {
        "metadata": {"name": "engine", "creationTimestamp": at(1)},
        "spec": {},
        "status": {
            "window": {"start": at(newest)},
            "pastWindows": [{"start": at(second)} for second in past],
        },
    }


def of_window(second: int) -> Object:
    return made_for(second, "a", "ControlledJob", "engine")


@pytest.mark.parametrize(
    ("states", "jobs", "faults"),
    [
        pytest.param([a_controlled(5), a_controlled(15, 10)], [of_window(5)], 0, id="all are told"),
        pytest.param([a_controlled(5), a_controlled(15)], [of_window(5)], 1, id="one is not told"),
        pytest.param([a_controlled(15, 10, 5)], [of_window(7)], 1, id="a Job of no window"),
    ],
)
def test_each_window_is_told(states: list[Object], jobs: list[Object], faults: int) -> None:
    windows = Windows(every_s=5)
    for state in states:
        windows.take(state)

    check = windows.check("engine", jobs)

    assert (check.looked_at, len(check.faults)) == (3, faults)


@pytest.mark.parametrize(
    ("told", "looked_at", "faults"),
    [
        pytest.param(range(24, 45, 2), 11, 0, id="before the newest that are kept"),
        pytest.param(range(4, 45, 4), 21, 10, id="among the newest that are kept"),
    ],
)
def test_windows_of_which_none_can_be_kept_are_not_missed(
    told: range, looked_at: int, faults: int
) -> None:
    windows = Windows(every_s=2)
    newest, *past = reversed(told)
    windows.take(a_controlled(newest, *past))

    check = windows.check("engine", [])

    assert (check.looked_at, len(check.faults)) == (looked_at, faults)


def test_a_line_that_was_printed_and_is_not_in_the_log() -> None:
    lines = ran("a", 1, 2, fences=ONE)
    evidence = parse([*lines, *ran("gone", 3, 4)])

    assert not list(missing_output(evidence, [A], lambda _: "".join(lines)))
    (fault,) = missing_output(evidence, [A], lambda _: lines[0])
    assert fault == "a-0-0 (pid 102) printed E '0', which is not in its log"
