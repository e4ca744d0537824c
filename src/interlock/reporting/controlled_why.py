"""Why a ControlledJob is, or is not, running: its window, its exceptions, and who can change it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct

from interlock.reporting.controlled_did import did
from interlock.reporting.schedule_why import (
    Detail,
    ScheduleWhy,
    Times,
    conditions_told,
    job_told,
    jobs_told,
    suspended,
    trouble_told,
)
from interlock.reporting.why import Waiting
from interlock.resources.controlled_job import (
    ControlledJob,
    Override,
    OverrideAction,
    WindowOutcome,
    WindowRecord,
)
from interlock.resources.job import Job, JobPhase
from interlock.resources.schedule import STOPPED_BY_ANNOTATION
from interlock.resources.words import since
from interlock.schedules.controlled.choosing import start_deadline
from interlock.schedules.controlled.plan import Standing, Timetable
from interlock.timing.flaws import UnreadableError

#: Conditions that say, when true, that a person should look.
ALARMS = frozenset(
    {
        "DrainOverdue",
        "Error",
        "FailedToCreateJob",
        "FailedToDeleteJob",
        "FailedToUnsuspendJob",
        "NotRunningUnexpectedly",
        "StartingDeadlineExceeded",
    }
)
#: So many starts and stops to come, and things that were done, are told.
_TOLD = 3
#: So many are looked at for them.
_LOOKED_AT = 4 * _TOLD
_SECOND = timedelta(seconds=1)


class ControlledView(Struct, frozen=True, kw_only=True):
    """A ControlledJob, its plan with its exceptions, and its Jobs that are not over."""

    controlled: ControlledJob
    plan: Timetable
    #: What is wrong with the calendars that it names.
    problems: tuple[str, ...] = ()
    jobs: tuple[Job, ...] = ()
    #: Its Jobs that are over and still there.
    ended: tuple[Job, ...] = ()


def explain_controlled(view: ControlledView, now: datetime) -> ScheduleWhy:
    """Say whether it runs and until when, or why not and from when on."""
    metadata = view.controlled.metadata
    state = view.plan.state_at(now)
    times = Times(view.plan.zone, now)
    waits = tuple(_waits(view, state, times))
    return ScheduleWhy(
        kind="ControlledJob",
        name=metadata.name,
        namespace=metadata.namespace,
        state=_word(view, now),
        summary=_summary(view, state, waits, times),
        waits=waits,
        next_start=state.next_start,
        next_stop=state.next_stop,
        details=tuple(_details(view, times)),
    )


def explain_unreadable(
    controlled: ControlledJob, jobs: tuple[Job, ...], error: UnreadableError, now: datetime
) -> ScheduleWhy:
    """Say that its plan makes no sense, so that nothing can be started by it."""
    metadata = controlled.metadata
    doing = f"runs on (job/{jobs[0].metadata.name})" if jobs else "is not running"
    wait = Waiting(reason="Unreadable", message=f"{error}; correct it and apply it again")
    return ScheduleWhy(
        kind="ControlledJob",
        name=metadata.name,
        namespace=metadata.namespace,
        state="Unreadable",
        summary=f"{metadata.name} {doing}, and its plan cannot be read",
        waits=(wait,),
        details=tuple(jobs_told(jobs, now)),
    )


def is_stopping(job: Job, now: datetime) -> bool:
    """Whether the Job was told to stop, or is being deleted."""
    return job.is_going or (job.spec.kill_at is not None and job.spec.kill_at <= now)


def _wanted(view: ControlledView, now: datetime) -> list[Job]:
    """Its Jobs that were not told to stop, those that run first."""
    wanted = [job for job in view.jobs if not is_stopping(job, now)]
    return sorted(wanted, key=lambda job: job.status.phase is JobPhase.QUEUED)


def _word(view: ControlledView, now: datetime) -> str:
    wanted = _wanted(view, now)
    if wanted:
        return "Waiting" if wanted[0].status.phase is JobPhase.QUEUED else "Running"
    return "Stopping" if view.jobs else "Idle"


def _summary(
    view: ControlledView, state: Standing, waits: tuple[Waiting, ...], times: Times
) -> str:
    name = view.controlled.metadata.name
    for job in _wanted(view, times.now)[:1]:
        verb = "waits to start" if job.status.phase is JobPhase.QUEUED else "is running"
        stops = f"it stops {times(state.next_stop)}" if state.next_stop else "nothing stops it"
        begun = job.status.execution.started_at or job.metadata.creation_timestamp
        return f"{name} {verb}: job/{job.metadata.name} ({since(begun, times.now)}); {stops}"
    starts = _starts(view, times)
    if view.jobs:
        return f"{name} is being stopped: {job_told(view.jobs[0], times.now)}; {starts}"
    because = next((f": {_IN_SHORT[w.reason]}" for w in waits if w.reason in _IN_SHORT), "")
    if because and (who := _stopper(view)):
        because = f": it was stopped by {who}"
    return f"{name} is not running{because}; {starts}"


def _stopper(view: ControlledView) -> str:
    """Who stopped the Job of the window that is open, as long as the Job is there to say so."""
    window = view.controlled.status.window
    if window is None or window.outcome is not WindowOutcome.STOPPED_BY_USER or window.job is None:
        return ""
    known = {job.metadata.uid: job.metadata.annotations for job in (*view.jobs, *view.ended)}
    return known.get(window.job.uid, {}).get(STOPPED_BY_ANNOTATION, "")


#: Why it does not run, on the first line.
_IN_SHORT = {
    "Suspended": "it is suspended",
    "Held": "it is on hold",
    "Skipped": "this window is left out",
    "OutsideItsHours": "it is outside its hours",
    "CalendarMissing": "a calendar is missing",
    WindowOutcome.FINISHED: "it has done its work in this window",
    WindowOutcome.FAILED: "its Job failed",
    WindowOutcome.STOPPED_BY_USER: "a person stopped it",
    WindowOutcome.REMOVED_BY_USER: "a person deleted its Job",
    WindowOutcome.TOO_LATE: "it could not be started in time",
    WindowOutcome.NEVER_STARTED: "its Job is not made yet",
}


def _starts(view: ControlledView, times: Times) -> str:
    """When it starts again by itself, as far as the clock decides."""
    if view.controlled.spec.suspend:
        return "it does not start while it is suspended"
    if view.problems:
        return "nothing starts until it is there"
    standing, window = view.plan.state_at(times.now), view.controlled.status.window
    if standing.is_inside and (window is None or window.outcome in _TO_COME):
        return "it should start now"
    start = standing.next_start
    return f"it starts {times(start)}" if start is not None else "nothing starts it by the clock"


def _waits(view: ControlledView, state: Standing, times: Times) -> Iterator[Waiting]:
    """What keeps it from running, who can change that, and when it changes by itself."""
    if _wanted(view, times.now):
        return
    controlled = view.controlled
    name, now = controlled.metadata.name, times.now
    if controlled.spec.suspend:
        yield suspended("controlledjob", name, controlled.metadata.annotations)
    for one in controlled.spec.overrides:
        if one.begin <= now < one.until and one.action is not OverrideAction.EXTEND:
            yield _overridden(name, one, times)
    for problem in view.problems:
        message = f"{problem}: nothing new is started until it is there"
        yield Waiting(reason="CalendarMissing", message=message)
    if state.is_inside:
        yield from _inside(view, times)
    elif state.window is None and not controlled.spec.suspend:
        yield Waiting(
            reason="OutsideItsHours",
            message=f"none of its windows is open; start it by hand with: interlock start {name}",
            until=state.next_start,
        )
    for job in view.jobs:
        message = f"{job_told(job, now)}; the next one starts only when it is proven gone"
        yield Waiting(reason="Draining", message=message)


def _overridden(name: str, one: Override, times: Times) -> Waiting:
    verb = one.action.value.lower()
    did = "held" if one.action is OverrideAction.HOLD else "left out"
    return Waiting(
        reason="Held" if one.action is OverrideAction.HOLD else "Skipped",
        message=f"it is {did} until {times(one.until)}{_whose(one)}; take that back with:"
        f" interlock {verb} {name} --cancel",
        until=one.until,
    )


def _inside(view: ControlledView, times: Times) -> Iterator[Waiting]:
    """Why there is no Job although a window is open."""
    name, window = view.controlled.metadata.name, view.controlled.status.window
    again = f"start it again with: interlock start {name}"
    outcome = window.outcome if window is not None else WindowOutcome.NEVER_STARTED
    who = _stopper(view)
    said = f"its Job was stopped by {who}" if who else _OUTCOMES[outcome]
    if window is not None and window.message:
        said = f"{said} ({times.in_text(window.message)})"
    if window is not None and window.job is not None:
        said = said.replace("its Job", f"its Job {window.job.name}", 1)
    if outcome in _TO_COME:
        yield Waiting(reason=outcome.value, message=f"{said}{_in_time(view, times)}")
    else:
        yield Waiting(reason=outcome.value, message=f"{said}; {again}")


def _in_time(view: ControlledView, times: Times) -> str:
    """Until when the Job of an open window that has had none may still be made."""
    window, state = view.controlled.status.window, view.plan.state_at(times.now)
    if state.start is None or (window is not None and window.job is not None):
        return ""
    deadline = start_deadline(view.controlled.spec, state.start, times.now)
    return f"; it can start until {times(deadline)}: spec.startBy" if deadline is not None else ""


#: A window of which its Job is yet to come.
_TO_COME = (WindowOutcome.NEVER_STARTED, WindowOutcome.STARTED)
_OUTCOMES = {
    WindowOutcome.NEVER_STARTED: "its window is open, and no Job was made yet",
    WindowOutcome.STARTED: "its Job is not there any more, and that was not looked at yet",
    WindowOutcome.FINISHED: "its Job ended well, and does not run twice in one window",
    WindowOutcome.FAILED: "its Job failed, and is not repeated in the same window",
    WindowOutcome.STOPPED: "its Job was stopped at the end of the window",
    WindowOutcome.STOPPED_BY_USER: "a person stopped its Job",
    WindowOutcome.REMOVED_BY_USER: "a person deleted its Job",
    WindowOutcome.TOO_LATE: "no Job could be made within spec.startBy",
}


def _details(view: ControlledView, times: Times) -> Iterator[Detail]:
    status, now = view.controlled.status, times.now
    yield from jobs_told(view.jobs, now)
    for number, told in enumerate(islice(_coming(view, times), _TOLD)):
        yield "next" if not number else "then", told
    for one in view.controlled.spec.overrides:
        if one.until > now:
            yield "exception", _override_told(one, times)
    for window in [w for w in (status.window, *status.past_windows) if w is not None][:_TOLD]:
        yield "window", _window_told(window, times)
    for line in islice(did(status.action_history, (*view.jobs, *view.ended), times), _TOLD):
        yield "did", line
    yield from conditions_told(status.conditions, ALARMS)
    yield from trouble_told(status.trouble, times)


def _coming(view: ControlledView, times: Times) -> Iterator[str]:
    """Starts and stops to come, without walking through what lies between."""
    after = times.now
    # Nothing is started while a calendar is missing.
    kept = f"  skipped: {view.problems[0]}" if view.problems else ""
    for _ in range(_LOOKED_AT):
        standing, skipped = view.plan.state_at(after), view.plan.next_skipped(after)
        turns = [(standing.next_stop, "stop", ""), (standing.next_start, "start", kept)]
        if skipped is not None:
            why = times.in_text(f"  skipped: {skipped.skipped}")
            turns.append((skipped.at, skipped.action.value, why))
        following = min((at for at, _, _ in turns if at is not None), default=None)
        if following is None or view.controlled.spec.suspend:
            return
        for at, word, why in turns:
            if at == following and (word == "start" or why or _stops_something(view, at, times)):
                yield f"{word} {times(following)}{why}"
        after = following


def _stops_something(view: ControlledView, stop: datetime, times: Times) -> bool:
    """Whether a stop of the plan ends anything: what runs now, or what its window started."""
    if view.jobs and stop == view.plan.state_at(times.now).next_stop:
        return True
    return not view.problems and view.plan.state_at(stop - _SECOND).is_inside


def _override_told(one: Override, times: Times) -> str:
    words = {
        OverrideAction.SKIP: f"no start from {times(one.begin)} to {times(one.until)}",
        OverrideAction.EXTEND: f"it ends {times(one.until)} and not earlier",
        OverrideAction.HOLD: f"nothing runs from {times(one.begin)} to {times(one.until)}",
    }
    return f"{words[one.action]}{_whose(one)}; it goes by itself then"


def _whose(one: Override) -> str:
    by = f", set by {one.by}" if one.by else ""
    return f"{by} ({one.reason})" if one.reason else by


def _window_told(window: WindowRecord, times: Times) -> str:
    lasted = f" to {times(window.stop)}" if window.stop is not None else ""
    job = f", job/{window.job.name}" if window.job is not None else ""
    runs = f", {window.runs} runs" if window.runs > 1 else ""
    said = f": {times.in_text(window.message)}" if window.message else ""
    return f"{times(window.start)}{lasted}: {window.outcome.value}{job}{runs}{said}"
