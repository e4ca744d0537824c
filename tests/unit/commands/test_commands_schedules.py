"""Orders to JobConfigs and ControlledJobs: what each makes or changes, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from interlock.commands.change import By, Change
from interlock.commands.controlled import ControlledView
from interlock.commands.errors import OrderRefusedError, Refusal
from interlock.commands.exceptions import Extending, Holding, Skipping, extend, hold, skip
from interlock.commands.jobs import Stopping
from interlock.commands.manual_runs import Restarting, Starting, restart, start, stop_all
from interlock.commands.on_demand import (
    Running,
    Switching,
    disable,
    enable,
    run,
    values_of_texts,
)
from interlock.resources.controlled_job import ControlledJob, OverrideAction
from interlock.resources.door.checking import problems_of
from interlock.resources.job import Job, WhenTaken
from interlock.resources.job_config import JobConfig
from interlock.resources.options import OptionSpec, OptionType
from interlock.resources.values.durations import Duration
from interlock.testing.config_builders import a_job_config, a_schedule, a_template
from interlock.testing.controlled_builders import a_controlled, a_run, a_window, an_override, moment

#: A Monday; the window is open from 9 to 17.
MORNING, NOON = moment("2026-01-05 08:00"), moment("2026-01-05 12:00")
ENGINE = a_controlled(a_window())
ANN = By("ann", NOON)


def a_view(
    engine: ControlledJob = ENGINE, *jobs: Job, at: datetime = NOON, passed_over: int = 0
) -> ControlledView:
    return ControlledView(engine, (), jobs, at, passed_over=passed_over)


def made_by(change: Change) -> Job:
    job = change.writes[0].after
    assert change.writes[0].before is None
    assert isinstance(job, Job)
    return job


# JobConfigs

REGION = OptionSpec(name="region", type=OptionType.SELECT, values=("emea", "apac"), default="emea")
TABLES = OptionSpec(name="tables", type=OptionType.MULTI, values=("a", "b"))
CONFIG = a_job_config(
    "report",
    a_schedule(timezone="Europe/London"),
    options=(REGION, TABLES),
    template=a_template("echo", "${option.region}"),
)


def test_a_run_has_its_values_and_whoever_asked() -> None:
    change = run(CONFIG, Running(options={"region": "apac"}), ANN)

    job = made_by(change)
    assert job.spec.substitutions["option.region"] == "apac"
    assert job.metadata.annotations["interlock.dev/creator"] == "ann"
    assert job.metadata.generate_name == "report-"
    assert (change.made, change.told) == ("created", ())
    assert problems_of(job) == ()


def test_a_run_for_later_waits_in_line_then() -> None:
    change = run(CONFIG, Running(at="tomorrow 06:00", name="mine"), ANN)

    job = made_by(change)
    assert job.metadata.name == "mine"
    assert job.spec.start_after == moment("2026-01-06 06:00")
    assert job.spec.locks[0].when_taken is WhenTaken.ENQUEUE
    assert change.made == "created; it starts tomorrow 06:00 GMT at the earliest"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        pytest.param(Running(options={"regoin": "x"}), 'did you mean "region"?', id="an option"),
        pytest.param(Running(options={"region": "x"}), "option region: expected", id="a value"),
        pytest.param(Running(substitutions={"nope": "x"}), "unknown variable", id="a variable"),
        pytest.param(Running(at="19:00", after=Duration(hours=1)), "not both", id="two moments"),
        pytest.param(Running(at="some day"), "is no moment", id="no moment"),
        pytest.param(Running(after=Duration(days=4000)), "ten years", id="too late"),
    ],
)
def test_what_run_refuses(how: Running, message: str) -> None:
    with pytest.raises(OrderRefusedError) as refused:
        run(CONFIG, how, ANN)

    assert message in refused.value.message
    assert refused.value.refusal is Refusal.INVALID


def test_a_config_that_goes_is_not_run() -> None:
    going = a_job_config(metadata={"deletion_timestamp": NOON})
    with pytest.raises(OrderRefusedError, match="is being deleted") as refused:
        run(going, Running(), ANN)

    assert refused.value.refusal is Refusal.CONFLICT


def test_texts_mean_what_the_option_says() -> None:
    given = (("region", "apac"), ("tables", "a"), ("tables", "b"))
    assert values_of_texts(CONFIG, given) == {"region": "apac", "tables": ["a", "b"]}
    with pytest.raises(OrderRefusedError, match="--option region is given more than once"):
        values_of_texts(CONFIG, (("region", "apac"), ("region", "emea")))


def disabled(config: Any) -> list[bool]:
    assert isinstance(config, JobConfig)
    return [schedule.disabled for schedule in config.spec.schedules]


TWO = a_job_config("two", a_schedule("0 1 * * *"), a_schedule("0 2 * * *"))


def test_schedules_are_switched_one_by_one_or_all() -> None:
    (one,) = disable(TWO, Switching(schedule=1), ANN).writes
    assert disabled(one.after) == [False, True]
    change = disable(TWO, Switching(), ANN)
    (both,) = change.writes
    assert disabled(both.after) == [True, True]
    assert change.told == ("jobconfig/two disabled",)
    (back,) = enable(both.after, Switching(), ANN).writes  # type: ignore[arg-type]
    assert back.after == TWO
    again = enable(TWO, Switching(schedule=0), ANN)
    assert (again.writes, again.told) == ((), ("jobconfig/two schedule 0 already enabled",))


@pytest.mark.parametrize(
    ("config", "wanted", "refusal", "message"),
    [
        pytest.param(a_job_config("c", schedules=()), None, Refusal.CONFLICT, "has no schedule: it",
                     id="none"),
        pytest.param(TWO, 2, Refusal.INVALID, "has no schedule 2", id="not so many"),
    ],
)  # fmt: skip
def test_what_cannot_be_switched(
    config: JobConfig, wanted: int | None, refusal: Refusal, message: str
) -> None:
    with pytest.raises(OrderRefusedError, match=message) as refused:
        enable(config, Switching(schedule=wanted), ANN)

    assert refused.value.refusal is refusal


# ControlledJobs by hand


def test_a_start_in_a_window_is_that_window_s_job() -> None:
    change = start(a_view(), Starting(), ANN)

    job = made_by(change)
    notes = job.metadata.annotations
    assert notes["interlock.dev/scheduled-at"] == "2026-01-05T09:00:00Z"
    assert notes["interlock.dev/is-manually-scheduled"] == "true"
    assert notes["interlock.dev/creator"] == "ann"
    assert job.spec.kill_at == moment("2026-01-05 17:00")
    assert change.told == (
        f"job/{job.metadata.name} created",
        "  it is stopped today 17:00 UTC, or earlier with: interlock stop controlledjob/engine",
    )


def test_numbers_go_on_after_all_that_were_given() -> None:
    old = a_run(ENGINE, "2026-01-04 09:00", 7, "Succeeded")
    plain, later = a_view(ENGINE, old), a_view(ENGINE, old, passed_over=2)

    assert made_by(start(plain, Starting(), ANN)).metadata.name.endswith("-8")
    assert made_by(start(later, Starting(), ANN)).metadata.name.endswith("-10")


def test_nothing_is_started_while_one_runs() -> None:
    running = a_run(ENGINE, "2026-01-05 09:00")
    change = start(a_view(ENGINE, running), Starting(), ANN)

    assert (change.writes, change.shown) == ((), running)
    assert "runs already" in change.told[0]


def test_a_restart_makes_the_next_before_it_stops_the_old() -> None:
    running = a_run(ENGINE, "2026-01-05 09:00")
    change = restart(a_view(ENGINE, running), Restarting(reason="new data"), ANN)

    made, stopped = change.writes
    assert made.before is None
    notes = made.after.metadata.annotations
    assert notes["interlock.dev/takes-over-from"] == running.metadata.name
    assert notes["interlock.dev/takes-over-because"] == "restarted: new data"
    assert stopped.before == running
    assert stopped.patch["metadata"]["annotations"] == {
        "interlock.dev/stopped-because": "restarted: new data",
        "interlock.dev/stopped-by": "ann",
    }


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        pytest.param(a_controlled(a_window(), suspend=True), "is suspended", id="suspended"),
        pytest.param(
            a_controlled(
                a_window(),
                overrides=(an_override("Hold", "2026-01-05 11:00", "2026-01-05 13:00", by="bob"),),
            ),
            "is held until today 13:00 UTC, set by bob",
            id="held",
        ),
    ],
)
def test_what_would_be_stopped_at_once_is_not_started(engine: ControlledJob, message: str) -> None:
    orders: tuple[Callable[[], Change], ...] = (
        lambda: start(a_view(engine), Starting(), ANN),
        lambda: restart(a_view(engine), Restarting(), ANN),
    )
    for order in orders:
        with pytest.raises(OrderRefusedError, match=message) as refused:
            order()
        assert refused.value.refusal is Refusal.CONFLICT


def test_stopping_a_controlled_job_is_a_person_s_word() -> None:
    change = stop_all(a_view(ENGINE, a_run(ENGINE, "2026-01-05 09:00")), Stopping(), ANN)

    (write,) = change.writes
    notes = write.after.metadata.annotations
    assert notes["interlock.dev/suspend-reason"] == "user-stop"
    assert change.told[1] == (
        "  it starts again tomorrow 09:00 UTC, or now with: interlock start engine"
    )
    assert stop_all(a_view(), Stopping(), ANN).told == (
        "controlledjob/engine runs nothing",
        "  to keep it from starting: interlock hold engine --until WHEN",
    )


# Exceptions


def overrides_after(change: Change) -> list[tuple[OverrideAction, str, str, str]]:
    (write,) = change.writes
    assert isinstance(write.after, ControlledJob)
    return [
        (one.action, f"{one.begin:%d %H:%M}", f"{one.until:%d %H:%M}", one.by)
        for one in write.after.spec.overrides
    ]


SKIP, EXTEND, HOLD = OverrideAction.SKIP, OverrideAction.EXTEND, OverrideAction.HOLD


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(skip(a_view(), Skipping(), ANN), (SKIP, "06 09:00", "06 17:00", "ann"),
                     id="the next"),
        pytest.param(skip(a_view(), Skipping(when="wednesday"), ANN),
                     (SKIP, "07 00:00", "08 00:00", "ann"), id="of a day"),
        pytest.param(skip(a_view(), Skipping(count=3), ANN), (SKIP, "06 09:00", "08 17:00", "ann"),
                     id="three"),
        pytest.param(extend(a_view(), Extending(until="19:00"), ANN),
                     (EXTEND, "05 12:00", "05 19:00", "ann"), id="until"),
        pytest.param(extend(a_view(at=MORNING), Extending(by=Duration(hours=2)), ANN),
                     (EXTEND, "05 09:00", "05 19:00", "ann"), id="by, of the window to come"),
        pytest.param(hold(a_view(), Holding(until="tomorrow"), ANN),
                     (HOLD, "05 12:00", "06 00:00", "ann"), id="held until"),
        pytest.param(hold(a_view(), Holding(lasts=Duration(hours=3)), ANN),
                     (HOLD, "05 12:00", "05 15:00", "ann"), id="held for"),
    ],
)  # fmt: skip
def test_what_exceptions_write(
    change: Change, expected: tuple[OverrideAction, str, str, str]
) -> None:
    assert overrides_after(change) == [expected]


@pytest.mark.parametrize("order", [skip, extend, hold])
def test_an_exception_is_taken_back_by_what_made_it(order: Any) -> None:
    how, back = {
        "skip": (Skipping(), Skipping(cancel=True)),
        "extend": (Extending(by=Duration(hours=1)), Extending(cancel=True)),
        "hold": (Holding(lasts=Duration(hours=1)), Holding(cancel=True)),
    }[order.__name__]
    (made,) = order(a_view(), how, ANN).writes
    assert isinstance(made.after, ControlledJob)

    (undone,) = order(a_view(made.after), back, ANN).writes

    assert undone.after == ENGINE
    with pytest.raises(OrderRefusedError, match="to take back") as refused:
        order(a_view(), back, ANN)
    assert refused.value.refusal is Refusal.CONFLICT


@pytest.mark.parametrize(
    ("order", "how", "message"),
    [
        pytest.param(skip, Skipping(when="sometime"), "is no day", id="no day"),
        pytest.param(skip, Skipping(when="today"), "no start to leave out today", id="open now"),
        pytest.param(skip, Skipping(cancel=True, reason="x"), "not for cancel", id="a reason"),
        pytest.param(skip, Skipping(cancel=True, count=1), "not for cancel", id="a count"),
        pytest.param(extend, Extending(), "until when", id="neither"),
        pytest.param(extend, Extending(until="16:00"), "anyway", id="too early"),
        pytest.param(extend, Extending(until="x", by=Duration(hours=1)), "until when", id="both"),
        pytest.param(hold, Holding(until="11:00"), "is past", id="past"),
        pytest.param(hold, Holding(lasts=Duration()), "from a second", id="no time at all"),
    ],
)
def test_what_exceptions_refuse(order: Any, how: Any, message: str) -> None:
    with pytest.raises(OrderRefusedError, match=message) as refused:
        order(a_view(), how, ANN)

    assert refused.value.refusal is Refusal.INVALID
