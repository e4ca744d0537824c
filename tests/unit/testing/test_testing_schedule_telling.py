"""The story of schedules has the same words at any time of day."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.resources.naming import MAX_JOB_NAME
from support.differential.scenarios import SCHEDULES
from support.differential.schedule_telling import Names, controlled_told, job_told, skips

#: What a Job's name adds to that of a JobConfig, and to that of a ControlledJob.
ADDED = {"jc": len("-1234567890"), "ctj": len("-1234567890-9999")}


def a_job(name: str, owner: str = "s--c", **more: Any) -> dict[str, Any]:
    reference = {"kind": "JobConfig", "name": owner}
    metadata = {"name": name, "ownerReferences": [reference], **more.pop("metadata", {})}
    return {"metadata": metadata, "spec": {}, **more}


def test_jobs_have_numbers_instead_of_times() -> None:
    names = Names("s--")
    names.add(a_job("s--c-1794854577"))
    names.add(a_job("s--c-1794854578"))
    told = names.plain("s--c-1794854578 of s--c was due at 2026-11-16T18:42:58Z")
    assert told == "c#2 of c was due at TIME"
    assert names.real("c#1") == "s--c-1794854577"
    assert names.find("c#3") is None


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ({"reason": "QueueFull", "message": "7 Jobs wait already"}, ["QueueFull some Jobs wait"]),
        ({"reason": "ScheduleChanged"}, []),
        ({"reason": "Missed"}, ["Missed"]),
    ],
)
def test_why_something_was_skipped_is_told_without_how_often(
    skip: dict[str, str], expected: list[str]
) -> None:
    told = skips({"status": {"skips": [skip, skip]}})
    assert [line[: len(words)] for line, words in zip(told, expected, strict=True)] == expected


def test_a_lock_is_told_alike_however_much_of_it_is_written() -> None:
    short = a_job("x", spec={"locks": [{"key": "a"}]})
    long = a_job("x", spec={"locks": [{"key": "a", "limit": 1, "whenTaken": "Enqueue"}]})
    other = a_job("x", spec={"locks": [{"key": "a", "limit": 2}]})
    assert list(job_told(short)) == list(job_told(long))
    assert list(job_told(short)) != list(job_told(other))


def test_a_difference_is_told() -> None:
    ended = {"phase": "Killed", "execution": {"reason": "Killed"}}
    assert list(job_told(a_job("x", status=ended))) != list(job_told(a_job("x")))
    first = {"status": {"window": {"outcome": "Finished"}, "lastRunId": 0}}
    second = {"status": {"window": {"outcome": "Stopped"}, "lastRunId": 0}}
    assert list(controlled_told(first)) != list(controlled_told(second))


@pytest.mark.parametrize("name", SCHEDULES)
def test_names_leave_room_for_those_of_jobs(name: str) -> None:
    kind = name.partition("-")[0]
    assert len(f"{name}--c") + ADDED[kind] <= MAX_JOB_NAME
