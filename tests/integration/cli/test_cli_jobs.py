"""What is told about Jobs, by a real server: who did it, what is to blame, what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_program import Program

from interlock.testing.serving import Server

FAILS_AT = 7
#: One task fails once all others run; these would go on for ever.
WIDE = f"""\
mkdir -p here; touch here/$INTERLOCK_TASK_INDEX
if [ $INTERLOCK_TASK_INDEX = {FAILS_AT} ]; then
  until [ $(ls here | wc -l) = 30 ]; do sleep 0.05; done
  echo it is me; exit 3
fi
exec sleep 1000
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture
def interlock(server: Server, tmp_path: Path) -> Program:
    return Program(server.url, tmp_path)


def row(interlock: Program, name: str) -> dict[str, str]:
    """The line of one Job in a wide list, by its headers."""
    head, line = interlock("get", "job", name, "-o", "wide").splitlines()
    starts = [at for at, letter in enumerate(head) if letter != " " and head[:at][-3:].isspace()]
    starts = [0, *starts]
    ends = [*starts[1:], None]
    return {head[a:b].strip(): line[a:b].strip() for a, b in zip(starts, ends, strict=True)}


def test_of_a_wide_job_the_task_that_failed_is_named(interlock: Program) -> None:
    interlock("run", "--name", "wide", "--count", "30", "--", "sh", "-c", WIDE)
    told = interlock("wait", "wide", code=1).splitlines()[-1]

    cause = "task 7 failed with exit code 3; 29 others were told to stop"
    assert told.endswith(cause)
    summary, *lines = interlock("why", "wide").splitlines()
    assert summary.endswith(cause)
    assert [line.split(maxsplit=1) for line in lines if line] == [
        ["ended", "wide-7-0 Failed exit code 3"],
        ["log", "interlock logs wide --task 7"],
    ]
    assert row(interlock, "wide")["EXIT"] == "3"
    assert "it is me" not in interlock("logs", "wide")
    assert "this is task 0 of 30 (0 to 29)" in interlock.errors
    assert "interlock logs wide --task 7" in interlock.errors
    assert interlock("logs", "wide", "--task", "7") == "it is me\n"
    assert interlock.errors == ""


def test_people_count_attempts_from_one_everywhere(interlock: Program) -> None:
    script = "echo attempt $INTERLOCK_ATTEMPT; exit 4"
    told = interlock("run", "--name", "twice", "--retries", "1", "--wait", "--",
                     "sh", "-c", script, code=4)  # fmt: skip
    assert told.splitlines()[-1].endswith("task 0 (attempt 2) failed with exit code 4")
    ended = [line for line in interlock("why", "twice").splitlines() if "ended" in line]
    assert ended == [
        "  ended     twice-0-1 (attempt 2 of 2) Failed exit code 4",
        "  ended     twice-0-0 (attempt 1 of 2) Failed exit code 4",
    ]
    assert interlock("logs", "twice", "--attempt", "1") == "attempt 0\n"
    assert interlock("logs", "twice", "--attempt", "2") == "attempt 1\n"
    interlock("logs", "twice", "--attempt", "3", code=4)
    assert "task 0 of job/twice had 2 attempts so far" in interlock.errors
    interlock("logs", "twice", "--attempt", "0", code=2)
    assert "from 1 up" in interlock.errors
