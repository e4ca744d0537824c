"""Retries: whether a failed attempt is followed by another, and when."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b

from interlock.resources.ends import counts_as_failed
from interlock.resources.job import Backoff, Retries
from interlock.resources.tasks import EndedTask, TaskResult, number_in_round

#: No delay is longer than this; without a limit, doubling soon leaves the calendar.
LONGEST_DELAY = timedelta(days=365)


def may_retry(retries: Retries, ended: EndedTask) -> bool:
    """Whether the task gets another attempt.

    The lists of exit codes speak of tasks that ended by themselves. An attempt without an exit
    code of its own (not started, out of time, lost to a restart) is tried again.
    """
    if number_in_round(ended.attempt) >= retries.limit or not counts_as_failed(ended):
        return False
    code = own_exit_code(ended)
    if code is None:
        return True
    if code in retries.fail_exit_codes:
        return False
    return not retries.retry_exit_codes or code in retries.retry_exit_codes


def own_exit_code(ended: EndedTask) -> int | None:
    """What the task itself ended with; a signal n counts as 128 + n, as in a shell."""
    if ended.result is not TaskResult.FAILED:
        return None
    if ended.exit_code is None and ended.signal is not None:
        return 128 + ended.signal
    return ended.exit_code


def delay_before(retries: Retries, job_uid: str, index: int, attempt: int) -> timedelta:
    """How long an attempt waits after the one before it; number 1 of a round is its first retry."""
    delay: timedelta = retries.delay
    if not delay:
        return delay
    longest: timedelta = retries.max_delay if retries.max_delay is not None else LONGEST_DELAY
    delay = min(
        delay * _growth(retries.backoff, number_in_round(attempt), longest / delay), longest
    )
    if retries.jitter > 0:
        delay = min(delay * (1 + retries.jitter * luck(job_uid, index, attempt)), longest)
    return delay


def _growth(backoff: Backoff, attempt: int, most: float) -> float:
    """The factor by which the delay has grown, cut off at `most` so that nothing overflows."""
    if backoff is Backoff.LINEAR:
        return min(attempt, most)
    if backoff is Backoff.EXPONENTIAL:
        return min(2.0 ** min(attempt - 1, 64), most)
    return 1.0


def luck(job_uid: str, index: int, attempt: int) -> float:
    """A number in [0, 1) that spreads tasks, and is the same at every look."""
    seed = f"{job_uid}/{index}/{attempt}".encode()
    return int.from_bytes(blake2b(seed, digest_size=6).digest()) / (1 << 48)
