"""The judge of due times finds what it is there to find."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from support.kube.due_times import DueTimes
from support.kube.verdict import Seen

SECOND = timedelta(seconds=1)


def at(second: int) -> str:
    return f"2026-01-05T12:00:{second:02}Z"


def config(version: int, last: int, *expected: tuple[int, str], **status: Any) -> Seen:
    books = {
        "accountedTo": at(last),
        "expected": [{"scheduledAt": at(due), "uid": uid, "name": uid} for due, uid in expected],
    }
    body = {
        "metadata": {"name": "tick", "creationTimestamp": at(0)},
        "status": {"books": books, "lastScheduled": at(last), **status},
    }
    return Seen(version, "JobConfig", False, body)


def ran(version: int, due: int, uid: str) -> Seen:
    metadata = {
        "name": uid,
        "uid": uid,
        "annotations": {"interlock.dev/scheduled-at": at(due)},
        "ownerReferences": [{"name": "tick"}],
    }
    body = {"metadata": metadata, "status": {"execution": {"startedAt": at(due)}}}
    return Seen(version, "Job", False, body)


def faults(*history: Seen) -> list[str]:
    return [fault.partition(": ")[2] for fault in DueTimes("tick", history).faults(SECOND)]


def test_jobs_and_skips_that_cover_every_second_are_well() -> None:
    skip = {"at": at(2), "until": at(3), "reason": "TooManyMissed"}
    history = (config(1, 1, (1, "a")), ran(2, 1, "a"), config(3, 4, (4, "b"), skips=[skip]))
    assert faults(*history) == []


def test_two_jobs_for_one_due_time_are_found() -> None:
    history = (config(1, 1, (1, "a"), (1, "b")), ran(2, 1, "a"), ran(3, 1, "b"))
    assert faults(*history) == ["2 Jobs ran", "2 Jobs were written down"]


def test_a_due_time_that_became_nothing_is_found() -> None:
    assert faults(config(1, 1, (1, "a")), config(2, 3, (3, "b"))) == [
        "became neither a Job nor a skip"
    ]


def test_a_due_time_that_was_run_and_skipped_is_found() -> None:
    skip = {"at": at(1), "reason": "Concurrency"}
    assert faults(config(1, 1, (1, "a"), skips=[skip])) == [
        "was skipped, and a Job was written down"
    ]


def test_a_job_that_ran_without_being_written_down_is_found() -> None:
    assert "a Job ran that was never written down" in faults(config(1, 1), ran(2, 1, "a"))


def test_books_that_go_back_are_found() -> None:
    found = DueTimes("tick", (config(1, 1, (1, "a")), config(2, 0))).faults(SECOND)
    assert any("the books went back" in fault for fault in found)
