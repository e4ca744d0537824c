"""Orders about operations: when each is taken, and what is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.commands.change import By, Change
from interlock.commands.errors import OrderRefusedError
from interlock.commands.operations import (
    Operating,
    Outcome,
    Resolving,
    go_forward,
    remove,
    resolve,
    roll_back,
)
from interlock.resources.job import (
    OPERATE_ANNOTATION,
    OPERATE_FOR_ANNOTATION,
    OPERATED_BY_ANNOTATION,
    Job,
    JobPhase,
)
from interlock.testing.builders import a_job
from support.operation_play import T0, Play, a_step, an_operation

BY = By("ann", T0)
WHY = Operating(reason="why")
FAILED = Resolving(reason="why", outcome=Outcome.FAILED)


def stuck() -> Job:
    play = Play(an_operation(a_step("a")), {"a": ("fail",), "-a": ("fail",)}).run()
    assert play.job.status.phase is JobPhase.STUCK
    return play.job


def running() -> Job:
    play = Play(an_operation(a_step("a")), {})
    play.look()
    return play.job


def over() -> Job:
    return Play(an_operation(a_step("a")), {}).run().job


def waiting() -> Job:
    return replace(running(), status=a_job().status)


@pytest.mark.parametrize(
    ("order", "how", "verb"),
    [
        (go_forward, WHY, "retry"),
        (roll_back, WHY, "roll-back"),
        (resolve, FAILED, "failed"),
        (resolve, Resolving(reason="why", outcome=Outcome.SUCCEEDED), "succeeded"),
        (remove, WHY, "remove"),
    ],
)
def test_an_order_about_what_is_stuck_is_written_with_who_gave_it(
    order: Callable[[Job, Any, By], Change], how: Any, verb: str
) -> None:
    [write] = order(stuck(), how, BY).writes

    notes = write.after.metadata.annotations
    assert notes[OPERATE_ANNOTATION] == verb
    assert notes[OPERATE_FOR_ANNOTATION] == "0"
    assert notes[OPERATED_BY_ANNOTATION] == "ann"
    assert "status" not in write.patch


@pytest.mark.parametrize(
    ("order", "how", "job", "told"),
    [
        pytest.param(go_forward, WHY, running, "not Stuck", id="it goes on by itself"),
        pytest.param(resolve, FAILED, running, "not Stuck", id="it ends by itself"),
        pytest.param(remove, WHY, running, "not Stuck", id="it is deleted by deleting it"),
        pytest.param(go_forward, WHY, over, "is over", id="over"),
        pytest.param(roll_back, WHY, waiting, "nothing of it was done", id="nothing to undo"),
        pytest.param(roll_back, WHY, a_job, "has no steps", id="a plain Job"),
        pytest.param(roll_back, Operating(reason=" "), stuck, "is empty", id="no reason"),
    ],
)
def test_an_order_that_means_nothing_is_refused_with_a_way_out(
    order: Callable[[Job, Any, By], Change], how: Any, job: Callable[[], Job], told: str
) -> None:
    with pytest.raises(OrderRefusedError, match=told) as refused:
        order(job(), how, BY)

    assert refused.value.hint


def test_what_runs_can_be_rolled_back() -> None:
    assert roll_back(running(), WHY, BY).writes
