"""What of a status is worth a line in the history of a ControlledJob."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.resources.controlled_job import (
    ActionRecord,
    ControlledAction,
    ControlledJobStatus,
    WindowOutcome,
    WindowRecord,
)
from interlock.resources.schedule import Books, ExpectedJob
from interlock.schedules.controlled.news import news_of
from interlock.testing.builders import T0

BEFORE = ControlledJobStatus(window=WindowRecord(start=T0, outcome=WindowOutcome.STARTED))
EXPECTED = ExpectedJob(name="x-1-0", uid="u", scheduled_at=T0)
STARTED = ActionRecord(type=ControlledAction.JOB_STARTED, timestamp=T0, job_name="x-1-0")
FAILED = ActionRecord(type=ControlledAction.FAILED, timestamp=T0, message="no room")

OPEN = (WindowOutcome.NEVER_STARTED, WindowOutcome.STARTED)


def ended(outcome: WindowOutcome) -> WindowRecord:
    return WindowRecord(start=T0, outcome=outcome)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        pytest.param({"next_start": T0, "is_running": True, "last_run_id": 7}, "", id="numbers"),
        pytest.param({"books": Books(accounted_to=T0)}, "", id="how far it is accounted for"),
        pytest.param(
            {"books": Books(expected=(EXPECTED,))}, "lets job/x-1-0 start", id="a Job may start"
        ),
        pytest.param(
            {"books": Books(expected=(EXPECTED,)), "action_history": (STARTED,)},
            "lets job/x-1-0 start",
            id="that is told once",
        ),
        pytest.param({"action_history": (FAILED,)}, "failed: no room", id="something failed"),
        pytest.param({"window": ended(WindowOutcome.NEVER_STARTED)}, "", id="nothing came of it"),
    ],
)
def test_numbers_that_move_on_are_no_news(after: dict[str, object], told: str) -> None:
    status = ControlledJobStatus(**{"window": BEFORE.window, **after})  # type: ignore[arg-type]

    assert news_of(BEFORE, status) == told


@pytest.mark.parametrize("outcome", [one for one in WindowOutcome if one not in OPEN])
def test_what_became_of_a_window_is_told_once(outcome: WindowOutcome) -> None:
    after = ControlledJobStatus(window=ended(outcome))
    later = ControlledJobStatus(
        window=WindowRecord(start=T0 + timedelta(days=1)), past_windows=(ended(outcome),)
    )

    assert news_of(BEFORE, after).startswith(f"the window of {T0:%Y-%m-%dT%H:%M:%SZ} is ")
    assert news_of(after, later) == ""
