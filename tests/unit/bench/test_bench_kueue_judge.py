"""The judge of `python -m bench kueue`: that it would see a quota that was overdrawn."""

from __future__ import annotations

from bench.kueue_history import Granted, History, JobChange, RecordChange, Run, judge
from bench.kueue_scenarios import BASELINE, Scenario, alone

JOB = "c0-q0-large-{}"


def granted(token: int, queue: str = "c0-q0", epoch: int = 0) -> Granted:
    """The quota of a whole queue."""
    return Granted(token, queue, f"uid-{token}", epoch, 1, 20_000)


def record(version: int, *came: Granted, went: tuple[int, ...] = ()) -> RecordChange:
    return RecordChange(version, "queue.c0-q0", came, went)


def job(version: int, number: int, *, epoch: int = 0, is_over: bool = False) -> JobChange:
    name = JOB.format(number)
    return JobChange(version, f"uid-{number}", name, epoch, is_over, 0.0, None, None)


def faults(scenario: Scenario, *changes: RecordChange | JobChange, runs: list[Run]) -> int:
    history = History(
        records=[one for one in changes if isinstance(one, RecordChange)],
        jobs=[one for one in changes if isinstance(one, JobChange)],
        runs=runs,
    )
    return len(judge(scenario, history).faults)


def test_a_grant_beside_one_that_goes_on_is_a_fault() -> None:
    two = (record(1, granted(1)), record(2, granted(2)))

    assert (
        faults(alone(BASELINE), *two, runs=[]) == 2
    )  # of the queue, and of what it is a cohort of
    assert faults(BASELINE, *two, runs=[]) == 0  # borrowed


def test_a_grant_after_the_end_or_a_new_beginning_of_the_other_is_none() -> None:
    ended = (record(1, granted(1)), job(2, 1, is_over=True), record(3, granted(2), went=(1,)))
    begun_anew = (record(1, granted(1)), job(2, 1, epoch=1), record(3, granted(2), went=(1,)))

    assert faults(alone(BASELINE), *ended, runs=[]) == 0
    assert faults(alone(BASELINE), *begun_anew, runs=[]) == 0


def test_room_that_is_taken_back_from_one_that_goes_on_still_counts() -> None:
    changes = (record(1, granted(1)), record(2, granted(2), went=(1,)), job(3, 1, is_over=True))

    assert faults(alone(BASELINE), *changes, runs=[]) == 3


def test_a_cohort_has_no_more_than_its_queues_together() -> None:
    several = [record(at, granted(at, f"c0-q{at}")) for at in range(7)]

    assert faults(BASELINE, *several[:6], runs=[]) == 0
    assert faults(BASELINE, *several, runs=[]) == 1


def test_what_runs_at_the_same_time_is_counted_on_its_own() -> None:
    beside = [Run(JOB.format(1), 0.0, 1.0), Run(JOB.format(2), 0.5, 2.0)]
    after = [Run(JOB.format(1), 0.0, 1.0), Run(JOB.format(2), 1.0, 2.0)]

    assert faults(alone(BASELINE), runs=beside) == 2
    assert faults(alone(BASELINE), runs=after) == 0
