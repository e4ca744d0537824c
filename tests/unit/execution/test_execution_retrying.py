"""Whether and when a failed attempt is followed by another."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from execution_builders import an_end, seconds

from interlock.execution.retrying import LONGEST_DELAY, delay_before, luck, may_retry
from interlock.resources.job import Backoff, Retries
from interlock.resources.tasks import StopCause, TaskResult


@pytest.mark.parametrize(
    ("backoff", "attempt", "expected_s"),
    [
        (Backoff.CONSTANT, 1, 10),
        (Backoff.CONSTANT, 9, 10),
        (Backoff.LINEAR, 1, 10),
        (Backoff.LINEAR, 3, 30),
        (Backoff.LINEAR, 8, 45),
        (Backoff.EXPONENTIAL, 1, 10),
        (Backoff.EXPONENTIAL, 3, 40),
        (Backoff.EXPONENTIAL, 4, 45),
        (Backoff.EXPONENTIAL, 9_999, 45),
    ],
)
def test_delays_grow_up_to_the_limit(backoff: Backoff, attempt: int, expected_s: int) -> None:
    retries = Retries(limit=9, delay=seconds(10), backoff=backoff, max_delay=seconds(45))

    assert delay_before(retries, "uid", 0, attempt) == timedelta(seconds=expected_s)


def test_a_delay_without_a_limit_stays_in_the_calendar() -> None:
    retries = Retries(limit=9, delay=seconds(10), backoff=Backoff.EXPONENTIAL)

    assert delay_before(retries, "uid", 0, 9_999) == LONGEST_DELAY


def test_no_delay_is_no_delay() -> None:
    retries = Retries(limit=9, backoff=Backoff.EXPONENTIAL, max_delay=seconds(1), jitter=1.0)

    assert delay_before(retries, "uid", 0, 3) == timedelta()


def test_jitter_lengthens_by_its_share_and_is_the_same_at_every_look() -> None:
    retries = Retries(limit=9, delay=seconds(10), jitter=0.5)
    delays = [delay_before(retries, "uid", index, 1) for index in range(100)]

    assert delays == [delay_before(retries, "uid", index, 1) for index in range(100)]
    assert all(timedelta(seconds=10) <= delay < timedelta(seconds=15) for delay in delays)
    assert len(set(delays)) > 90


def test_jitter_stays_below_the_longest_delay() -> None:
    retries = Retries(limit=9, delay=seconds(10), max_delay=seconds(11), jitter=1.0)

    assert max(delay_before(retries, "u", i, 1) for i in range(50)) == timedelta(seconds=11)


def test_luck_differs_by_job_task_and_attempt() -> None:
    assert len({luck("a", 0, 1), luck("b", 0, 1), luck("a", 1, 1), luck("a", 0, 2)}) == 4


@pytest.mark.parametrize(
    ("retries", "end", "expected"),
    [
        pytest.param({}, {"exit_code": 1}, False, id="no retries asked for"),
        pytest.param({"limit": 1}, {"exit_code": 1}, True, id="one left"),
        pytest.param({"limit": 1}, {"exit_code": 1, "attempt": 1}, False, id="out of attempts"),
        pytest.param({"retry_exit_codes": (75,)}, {"exit_code": 75}, True, id="a code to retry"),
        pytest.param({"retry_exit_codes": (75,)}, {"exit_code": 1}, False, id="another code"),
        pytest.param({"fail_exit_codes": (2,)}, {"exit_code": 2}, False, id="a code to fail"),
        pytest.param({"fail_exit_codes": (2,)}, {"exit_code": 1}, True, id="a code not to fail"),
        pytest.param({"fail_exit_codes": (137,)}, {"signal": 9}, False, id="signals count as 128+"),
        pytest.param({"retry_exit_codes": (143,)}, {"signal": 15}, True, id="a signal to retry"),
        pytest.param({"retry_exit_codes": (75,)}, {}, True, id="machine restarted: no code"),
    ],
)
def test_which_ends_are_retried(
    retries: dict[str, Any], end: dict[str, Any], expected: bool
) -> None:
    default = {"limit": 3} if retries else {}

    assert may_retry(Retries(**(default | retries)), an_end(**end)) is expected


@pytest.mark.parametrize(
    ("result", "cause", "expected"),
    [
        (TaskResult.SUCCEEDED, None, False),
        (TaskResult.FAILED, None, True),
        (TaskResult.NOT_STARTED, None, True),
        (TaskResult.WRITTEN_OFF, None, False),
        (TaskResult.KILLED, None, True),
        (TaskResult.KILLED, StopCause.TASK_TIMEOUT, True),
        (TaskResult.KILLED, StopCause.PENDING_TIMEOUT, True),
        (TaskResult.KILLED, StopCause.KILLED, False),
        (TaskResult.KILLED, StopCause.DELETED, False),
        (TaskResult.KILLED, StopCause.REPLACED, False),
        (TaskResult.KILLED, StopCause.JOB_TIMEOUT, False),
        (TaskResult.KILLED, StopCause.NOT_NEEDED, False),
    ],
)
def test_which_results_are_retried(
    result: TaskResult, cause: StopCause | None, expected: bool
) -> None:
    end = an_end(result=result, stop_cause=cause)
    only_codes = Retries(limit=1, retry_exit_codes=(75,), fail_exit_codes=(1,))

    assert may_retry(Retries(limit=1), end) is expected
    # The lists of exit codes say nothing about what has none of its own.
    if result is not TaskResult.FAILED:
        assert may_retry(only_codes, end) is expected
