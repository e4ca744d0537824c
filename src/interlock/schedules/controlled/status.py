"""The status of a ControlledJob once a decision about it is carried out."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from interlock.resources.controlled_job import ControlledJobStatus, WindowRecord
from interlock.resources.schedule import JobReference
from interlock.schedules.controlled.books import books_after
from interlock.schedules.controlled.choosing import Choice, Verdict
from interlock.schedules.controlled.conditions import Failures, Findings, conditions_after
from interlock.schedules.controlled.draining import overdue
from interlock.schedules.controlled.history import history_after
from interlock.schedules.controlled.records import records_after
from interlock.schedules.controlled.runs import Run
from interlock.schedules.controlled.situation import Situation
from interlock.schedules.controlled.stops import Stop

#: How many Jobs that are not over are listed.
_LISTED = 20


def status_after(
    situation: Situation,
    choice: Choice,
    verdict: Verdict | None,
    failures: Failures,
    stopped: tuple[Stop, ...],
) -> ControlledJobStatus:
    """Everything that is told, as it is after the stops were ordered."""
    held, standing = situation.controlled.status, situation.standing
    is_same_plan = held.books.schedule_hash == situation.view.schedule_hash
    problem = failures.creating or _problem(situation, verdict)
    window, past = records_after(situation, verdict, problem, is_same_plan)
    history = history_after(situation, choice, stopped, window, failures)
    unfinished = sorted((r for r in situation.runs if not r.is_over), key=lambda run: run.rank)
    findings = Findings(
        situation=situation,
        choice=choice,
        verdict=verdict,
        failures=failures,
        overdue=overdue(situation),
        current=_current(situation, choice, window),
    )
    # What was done in this decision is known to the conditions that tell of attempts.
    known = replace(held, action_history=history)
    told = replace(situation.view, controlled=replace(situation.controlled, status=known))
    conditions = conditions_after(replace(findings, situation=replace(situation, view=told)))
    return ControlledJobStatus(
        books=books_after(situation, choice),
        active=tuple(JobReference(name=run.name, uid=run.uid) for run in unfinished[:_LISTED]),
        last_scheduled_start_time=_last_start(window, past, situation.now),
        next_start=standing.next_start if standing is not None else None,
        next_stop=standing.next_stop if standing is not None else None,
        should_be_running=situation.is_inside,
        is_running=any(run.is_admitted for run in unfinished),
        is_suspended=situation.controlled.spec.suspend,
        last_run_id=max((held.last_run_id, *(run.number for run in situation.runs))),
        window=window,
        past_windows=past,
        most_recent_action=history[0] if history else None,
        action_history=history,
        conditions=conditions,
        trouble=held.trouble,
    )


def _problem(situation: Situation, verdict: Verdict | None) -> str:
    if verdict is None or verdict.need is None:
        return ""
    return situation.view.calendar_problem


def _current(situation: Situation, choice: Choice, window: WindowRecord | None) -> Run | None:
    """The Job that is told about: the chosen one, else one that is not over, else the last."""
    if choice.chosen is not None:
        return choice.chosen
    newest = sorted(situation.runs, key=lambda run: run.rank, reverse=True)
    unfinished = [run for run in newest if not run.is_over]
    if unfinished:
        return unfinished[0]
    uid = window.job.uid if window is not None and window.job is not None else ""
    return next((run for run in newest if run.uid == uid), None)


def _last_start(
    window: WindowRecord | None, past: tuple[WindowRecord, ...], now: datetime
) -> datetime | None:
    """The newest start that has come: clocks may have been set back."""
    starts = (each.start for each in (window, *past) if each is not None and each.start <= now)
    return max(starts, default=None)
