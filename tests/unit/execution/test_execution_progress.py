"""What an attempt says of how far it is: state that others read, and no line of a history."""

from __future__ import annotations

import pytest
from execution_builders import a_report, an_admitted_job, carried_out, look

from interlock.resources.actions import Decision, RecordExecution
from interlock.resources.job import Job
from interlock.resources.tasks import Progress
from interlock.testing.builders import T0
from support.operation_play import a_step, an_operation, by_workers

PLAIN = an_admitted_job()
OPERATION = an_admitted_job(steps=(a_step("a"), a_step("b")))
FUNCTIONS = an_admitted_job(steps=by_workers(an_operation(a_step("a"), a_step("b"))).steps)
EVERY = pytest.mark.parametrize(
    "job", [PLAIN, OPERATION, FUNCTIONS], ids=["a task", "a step", "a function"]
)


class Attempt:
    """A first attempt that runs, and what is written of what it says."""

    def __init__(self, job: Job) -> None:
        self.job = carried_out(job, look(job))
        self.hears()

    def hears(self, percent: int | None = None, message: str = "") -> Decision:
        told = None if percent is None else Progress(percent=percent, text=f"{percent} done")
        report = a_report(started_at=T0, progress=told, message=message)
        decision = look(self.job, report)
        self.job = carried_out(self.job, decision)
        return decision


def is_written(decision: Decision) -> bool:
    return any(isinstance(action, RecordExecution) for action in decision.actions)


@EVERY
def test_it_is_written_and_no_line_tells_of_it(job: Job) -> None:
    attempt = Attempt(job)
    decision = attempt.hears(40)

    assert is_written(decision)
    assert not decision.is_notable
    [task] = attempt.job.status.execution.active
    assert task.progress == Progress(percent=40, text="40 done")


@EVERY
def test_with_other_news_a_line_tells_of_that(job: Job) -> None:
    assert Attempt(job).hears(40, message="waits for a disk").is_notable


@EVERY
def test_a_thousand_words_cost_eleven_writes(job: Job) -> None:
    attempt = Attempt(job)
    decisions = [attempt.hears(count // 10) for count in range(1_001)]

    assert sum(map(is_written, decisions)) == 11
    assert not any(decision.is_notable for decision in decisions if decision.actions)
