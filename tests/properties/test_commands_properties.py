"""Whatever is ordered, in whatever state: no status is touched, and twice is as good as once."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.commands.change import By, Change
from interlock.commands.command import Command
from interlock.commands.controlled import ControlledView
from interlock.commands.errors import OrderRefusedError
from interlock.commands.exceptions import Extending, Holding, Skipping
from interlock.commands.jobs import Releasing, Requeuing, Stopping
from interlock.commands.on_demand import Running, Switching
from interlock.commands.operations import Operating, Resolving
from interlock.commands.suspension import Suspending
from interlock.commands.table import COMMANDS
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.metadata import Noun, Resource
from interlock.resources.values.durations import Duration
from interlock.testing.builders import a_job
from interlock.testing.config_builders import a_job_config, a_schedule
from interlock.testing.controlled_builders import a_controlled, a_run, a_window, moment

NOW = moment("2026-01-05 12:00")
MOMENTS = st.sampled_from([NOW + timedelta(hours=hours) for hours in (-13, -1, 0, 1, 6)])
ENGINE = a_controlled(a_window(), suspend=False)
STATES = ("Running", "Succeeded", "Failed", "Killed")
WAYS: dict[type[Noun], list[Noun]] = {
    Stopping: [Stopping(), Stopping(reason="why")],
    Releasing: [Releasing(reason="sure")],
    Requeuing: [Requeuing(reason="slow")],
    Operating: [Operating(reason="why")],
    Resolving: [Resolving(reason="why")],
    Suspending: [Suspending(), Suspending(reason="why")],
    Running: [Running(), Running(after=Duration(hours=1))],
    Switching: [Switching(), Switching(schedule=0)],
    Skipping: [Skipping(), Skipping(count=2), Skipping(cancel=True)],
    Extending: [Extending(by=Duration(hours=1)), Extending(cancel=True)],
    Holding: [Holding(lasts=Duration(hours=1)), Holding(cancel=True)],
}
#: Ordered again at once, these have nothing left to do.
SETTLING = {"stop", "kill", "suspend", "resume", "enable", "disable", "release"}


def a_subject(draw: st.DrawFn, command: Command) -> Any:
    suspend = draw(st.booleans())
    engine = a_controlled(a_window(), suspend=suspend)
    runs = [
        a_run(engine, "2026-01-05 09:00", number, state)
        for number, state in enumerate(draw(st.lists(st.sampled_from(STATES), max_size=3)))
    ]
    if command.needs_view:
        return ControlledView(engine, (), runs, draw(MOMENTS))
    if command.kind.name == "ControlledJob":
        return engine
    if command.kind.name == "JobConfig":
        return a_job_config("c", a_schedule(disabled=draw(st.booleans())), suspend=suspend)
    plain = a_job("x", suspend=suspend, kill_at=draw(st.none() | MOMENTS))
    return draw(st.sampled_from([plain, *runs]))


@st.composite
def orders(draw: st.DrawFn) -> tuple[Command, Any, Noun, By]:
    command = draw(st.sampled_from(COMMANDS))
    subject = a_subject(draw, command)
    how = draw(st.sampled_from(WAYS.get(command.options) or [command.options()]))
    now = subject.now if isinstance(subject, ControlledView) else draw(MOMENTS)
    return command, subject, how, By(draw(st.sampled_from(["", "ann"])), now)


def ordered(command: Command, subject: Any, how: Noun, by: By) -> Change | None:
    """What comes of an order; None when it is refused."""
    with suppress(OrderRefusedError):
        change: Change = command.order(subject, how, by)
        return change
    return None


@given(orders())
def test_no_order_touches_a_status_or_what_tells_one_object_from_another(
    order: tuple[Command, Any, Noun, By],
) -> None:
    change = ordered(*order)
    for write in change.writes if change is not None else ():
        if write.before is None:
            assert isinstance(write.after, Job)
            assert write.after.status == Job(spec=write.after.spec).status
            continue
        plain = replace(write.after.metadata, annotations=write.before.metadata.annotations)
        assert plain == write.before.metadata
        assert _status(write.after) == _status(write.before)
        assert "status" not in write.patch


def _status(resource: Resource) -> object:
    return getattr(resource, "status", None)


@given(orders())
def test_what_is_ordered_twice_at_once_changes_nothing_more(
    order: tuple[Command, Any, Noun, By],
) -> None:
    command, subject, how, by = order
    change = ordered(*order)
    if change is None or command.name not in SETTLING:
        return
    again = ordered(command, _after(subject, change), how, by)
    assert again is not None
    assert all(write.after == write.before for write in again.writes)


def _after(subject: Any, change: Change) -> Any:
    if isinstance(subject, ControlledView):
        jobs = [write.after for write in change.writes if isinstance(write.after, Job)]
        return ControlledView(subject.noun, (), jobs, subject.now)
    return change.writes[0].after if change.writes else subject


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: f"{one.kind.singular} {one.name}")
def test_every_command_has_words_for_people(command: Command) -> None:
    assert command.says
    assert command.options.__doc__
    assert not command.needs_view or command.kind.type is ControlledJob
