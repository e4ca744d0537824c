"""Manual runs: Jobs of a ControlledJob that a person starts and stops."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from interlock.commands.change import By, Change, Write, named, noted
from interlock.commands.controlled import ControlledView, windows_of
from interlock.commands.errors import conflict
from interlock.commands.jobs import (
    Stopping,
    because,
    created_by,
    stopped_by_person,
    told_to_end,
)
from interlock.resources.controlled_job import Override, OverrideAction
from interlock.resources.job import Job
from interlock.resources.metadata import Noun
from interlock.resources.rules import Line
from interlock.resources.schedule import RESTARTED, TAKES_OVER_BECAUSE_ANNOTATION
from interlock.schedules.controlled.making import make_job


class Starting(Noun):
    """How to start a ControlledJob."""


class Restarting(Noun):
    """How to restart a ControlledJob."""

    #: Why, for people to read.
    reason: Line = ""


def start(view: ControlledView, how: Starting, by: By) -> Change:  # noqa: ARG001
    """Make a Job unless one runs."""
    if view.running:
        job = view.running[0]
        told = f"{view.word} runs already: {named(job)}; nothing was done"
        return Change(told=(told,), shown=job)
    made = _next(view, by)
    return Change(told=_as_made(view, made), writes=(Write(made),))


def restart(view: ControlledView, how: Restarting, by: By) -> Change:
    """Make the Job that comes after the running one, then stop that.

    The new one waits for the lock, so at no moment do two run, and at none is there no Job. It
    says why, for its schedule may stop the old one first: whoever does, the same is told.
    """
    made = _next(view, by)
    if view.running:
        made = noted(made, {TAKES_OVER_BECAUSE_ANNOTATION: because(RESTARTED, how.reason)})
    stops = tuple(Write(told_to_end(old, by, RESTARTED, how.reason), old) for old in view.running)
    stopping = tuple(f"{named(old)} stopping" for old in view.running)
    return Change(told=(*stopping, *_as_made(view, made)), writes=(Write(made), *stops))


def stop_all(view: ControlledView, how: Stopping, by: By) -> Change:
    """Stop the Jobs of a ControlledJob in a person's name: it makes no other in this window."""
    writes = tuple(Write(stopped_by_person(job, by, how.reason), job) for job in view.jobs)
    stopping = tuple(f"{named(job)} stopping" for job in view.jobs)
    told = stopping or (f"{view.word} runs nothing",)
    lines = (f"  {line}" for line in _after_stop(view))
    return Change(told=(*told, *lines), writes=writes, shown=view.noun)


def _after_stop(view: ControlledView) -> Iterator[str]:
    """When it starts again."""
    stopped = bool(view.jobs)
    state = view.plan.state_at(view.now)
    if not stopped and state.is_inside and not view.done_with:
        yield f"to keep it from starting: interlock hold {view.name} --until WHEN"
        return
    window = next(windows_of(view.plan, view.now), None)
    if window is None:
        yield f"it does not start again by itself, only with: interlock start {view.name}"
    else:
        can = stopped or view.done_with
        now = f", or now with: interlock start {view.name}" if can else ""
        yield f"it starts again {view.told(window.start)}{now}"


def _next(view: ControlledView, by: By) -> Job:
    """The next Job: of the window that is open, or a person's own."""
    _check_may_run(view)
    standing = view.plan.state_at(view.now)
    job = make_job(
        view.noun,
        start=standing.start or view.now,
        number=view.next_number,
        stop=standing.next_stop,
        is_manual=True,
        takes_over_from=next((job.metadata.name for job in view.running), ""),
    )
    notes = created_by(job.metadata.annotations, by)
    return replace(job, metadata=replace(job.metadata, annotations=notes))


def _check_may_run(view: ControlledView) -> None:
    """Refuse where a Job would be stopped again at once."""
    word, spec = view.word, view.noun.spec
    if view.noun.is_going:
        raise conflict(f"{word} is being deleted")
    if spec.suspend:
        raise conflict(f"{word} is suspended", f"let it go with: interlock resume {word}")
    for one in spec.overrides:
        if one.action is OverrideAction.HOLD and one.begin <= view.now < one.until:
            raise conflict(
                f"{word} is held until {view.told(one.until)}{whose(one)}",
                f"take that back with: interlock hold {view.name} --cancel",
            )


def whose(one: Override) -> str:
    """Who made an exception and why, as the end of a line."""
    by = f", set by {one.by}" if one.by else ""
    return f"{by} ({one.reason})" if one.reason else by


def _as_made(view: ControlledView, job: Job) -> tuple[str, ...]:
    """What is told of a Job that is made now."""
    stop = view.plan.state_at(view.now).next_stop
    when = f"{view.told(stop)}, or earlier" if stop else "only"
    return (
        f"{named(job)} created",
        *(f"  it waits until {named(old)} is gone, which was told to stop" for old in view.jobs),
        f"  it is stopped {when} with: interlock stop {view.word}",
    )
