"""Which Job is the one that is to run, and whether another has to be made."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from interlock.resources.admission import RefusalReason
from interlock.resources.controlled_job import (
    ControlledJobSpec,
    OverrideAction,
    SpecChangePolicy,
    WindowOutcome,
)
from interlock.resources.schedule import written_moment
from interlock.schedules.controlled.overrides import of_action
from interlock.schedules.controlled.runs import Fate, Rank, Run
from interlock.schedules.controlled.situation import Situation, fate_of_record


class Choice(Struct, frozen=True, kw_only=True):
    """Who may run, or wait to; everybody else who is not over is told to stop."""

    #: The Job that counts; None when there is none.
    chosen: Run | None = None
    #: All that are left alone, the chosen one included.
    kept: tuple[Run, ...] = ()


def choose(situation: Situation) -> Choice:
    """Choose among the Jobs that nobody has told to stop.

    Inside a window it is one: of the template as it is before one of another, and of equals the
    newest by number. Outside, what people started is left alone. While all is on hold it is none.
    If the plan cannot be read nobody is told to stop by it.
    """
    if situation.held:
        return Choice()
    written = [run for run in situation.runs if not run.is_unwritten]
    if len(written) == len(situation.runs):
        return _chosen(situation)
    # What is not in the books is taken if it is needed, and not because it is there: it may have
    # been made from an old view, of a window that is done with.
    without = replace(situation, runs=tuple(written))
    choice = _chosen(without)
    return _chosen(situation) if _is_needed(without, choice) else choice


def _chosen(situation: Situation) -> Choice:
    alive = [r for r in situation.runs if r.is_alive and not situation.is_stray(r)]
    if situation.standing is None:
        return Choice(chosen=_best(alive, situation), kept=tuple(alive))
    current = [run for run in alive if not situation.is_expired(run)]
    if situation.is_inside:
        chosen = _best(current, situation)
        return Choice(chosen=chosen, kept=(chosen,) if chosen is not None else ())
    return _outside([run for run in current if run.is_manual], situation)


def _is_needed(situation: Situation, choice: Choice) -> bool:
    """Whether a Job would have to be made; one that was made in time is not late by now."""
    verdict = judge(situation, choice)
    if verdict is None:
        return replacement(situation, choice) is not None
    return verdict.need is not None or verdict.is_late


def _outside(manual: list[Run], situation: Situation) -> Choice:
    """Leave people's Jobs alone, apart from those whose place another has taken."""
    chosen = _best(manual, situation)
    replaced = {run.takes_over_from for run in manual}
    kept = tuple(run for run in manual if run.name not in replaced)
    return Choice(chosen=chosen, kept=kept)


def _best(runs: list[Run], situation: Situation) -> Run | None:
    def order(run: Run) -> tuple[bool, Rank]:
        is_of_template = run.template_hash == situation.template_hash
        return (is_of_template or (run.is_manual and not run.template_hash), run.rank)

    return max(runs, key=order, default=None)


class Need(Struct, frozen=True, kw_only=True):
    """A Job that has to be made."""

    #: The start of its window.
    start: datetime
    why: str
    is_manual: bool = False
    takes_over_from: str = ""
    #: It is not made before this moment; None is at once.
    not_before: datetime | None = None


class Verdict(Struct, frozen=True, kw_only=True):
    """What becomes of the window that is open."""

    outcome: WindowOutcome
    #: Its newest Job; None when it has none, or it is gone.
    run: Run | None = None
    message: str = ""
    need: Need | None = None
    #: Whether the Job that is needed would be too late: spec.startBy.
    is_late: bool = False


def replacement(situation: Situation, choice: Choice) -> Need | None:
    """The Job that takes the place of the chosen one because the template changed.

    The old one is told to stop once the new one is there: a template of which no Job can be made
    stops nothing.
    """
    chosen = choice.chosen
    if chosen is None or why_out_of_date(situation, chosen) != "":
        return None
    start = chosen.nominal or situation.now
    if not chosen.is_manual and situation.window is not None:
        start = situation.window.start
    return Need(
        start=start,
        why=f"the template changed: it takes the place of job/{chosen.name}",
        is_manual=chosen.is_manual,
        takes_over_from=chosen.name,
    )


def why_out_of_date(situation: Situation, run: Run) -> str | None:
    """Why a Job of another template is left as it is; empty if it is not, None if it is no such."""
    if not run.differs_from(situation.template_hash):
        return None
    if run.is_over or run.is_paused:
        return "JobIsNotRunning"
    if run.job.is_going or not run.is_alive:
        return "JobIsBeingDeleted"
    policy = situation.controlled.spec.restart_strategy.spec_change_policy
    return "" if policy is SpecChangePolicy.RECREATE else "ShouldNotAutoRestart"


def judge(situation: Situation, choice: Choice) -> Verdict | None:
    """Say what becomes of the window that is open; None if none is, or it is on hold."""
    window = situation.window
    if window is None or not situation.is_inside:
        return None
    if choice.chosen is not None:
        return Verdict(
            outcome=WindowOutcome.STARTED,
            run=choice.chosen,
            need=replacement(situation, choice),
        )
    going = [r for r in _of_window(situation) if r.fate is Fate.DELETED and not r.is_over]
    if going:
        told = f"job/{going[-1].name} is being deleted"
        return Verdict(outcome=WindowOutcome.STARTED, run=going[-1], message=told)
    return _in_time(situation, _after(situation, _newest(situation), window.start))


def _of_window(situation: Situation) -> list[Run]:
    """The runs that count for the open window, oldest first: not what was done with before it."""
    window = situation.window
    assert window is not None
    record = situation.record
    uid = record.job.uid if record is not None and record.job is not None else ""

    def counts(run: Run) -> bool:
        if situation.is_expired(run) or run.is_unwritten:
            return False
        left = run.left_at
        is_of_it = run.nominal is not None and window.covers(run.nominal)
        return run.uid == uid or is_of_it or left is None or left >= window.start

    return sorted(filter(counts, situation.runs), key=lambda run: run.rank)


class _Last(Struct, frozen=True):
    """The newest Job of a window, which is over or about to be."""

    fate: Fate
    name: str
    template_hash: str
    run: Run | None = None


def _newest(situation: Situation) -> _Last | None:
    """The newest Job of the open window, seen or remembered.

    One that a person removed counts only if there is no other: who starts a second run by hand
    and removes it leaves the window as it was.
    """
    lasts = [_Last(r.fate, r.name, r.template_hash, r) for r in _of_window(situation)]
    remembered = _remembered(situation)
    if remembered is not None:
        number = situation.record.run_id if situation.record is not None else -1
        before = sum(1 for last in lasts if last.run is not None and last.run.number < number)
        lasts.insert(before, remembered)
    stayed = [last for last in lasts if last.fate is not Fate.DELETED]
    return (stayed or lasts)[-1] if lasts else None


def _remembered(situation: Situation) -> _Last | None:
    """The Job that the window's record names, if it is not there any more."""
    record = situation.record
    if record is None or record.job is None:
        return None
    if any(run.uid == record.job.uid for run in situation.runs):
        return None
    fate = fate_of_record(record, situation)
    return _Last(fate, record.job.name, record.template_hash) if fate is not None else None


def _after(situation: Situation, last: _Last | None, start: datetime) -> Verdict:
    """What becomes of a window whose newest Job is out of the race, or that has had none."""
    if last is None:
        need = Need(start=start, why="its window is open")
        return Verdict(outcome=WindowOutcome.NEVER_STARTED, need=need)
    told = f"job/{last.name}"
    match last.fate:
        case Fate.FINISHED:
            return Verdict(outcome=WindowOutcome.FINISHED, run=last.run)
        case Fate.FAILED:
            return _after_failure(situation, last, start)
        case Fate.STOPPED_BY_USER:
            return Verdict(outcome=WindowOutcome.STOPPED_BY_USER, run=last.run)
        case Fate.STOPPED:
            need = Need(
                start=start,
                why=f"its window is open, and {told} was stopped",
                not_before=_patiently(situation, last),
            )
            return Verdict(outcome=WindowOutcome.STOPPED, run=last.run, need=need)
        case _:
            need = Need(start=start, why=f"a person removed {told}")
            return Verdict(
                outcome=WindowOutcome.REMOVED_BY_USER, message=f"{told} was removed", need=need
            )


def _patiently(situation: Situation, last: _Last) -> datetime | None:
    """When to make another Job of a window in which one after the other is stopped.

    That happens if two who both believe they lead have clocks that differ: each stops what the
    other makes. The more often it does, the longer they leave each other alone.
    """
    runs = situation.record.runs if situation.record is not None else 0
    left = last.run.left_at if last.run is not None else None
    if runs < _STOPPED_OFTEN or left is None:
        return None
    return left + min(timedelta(seconds=1 << min(runs - _STOPPED_OFTEN, 6)), _LONGEST_PATIENCE)


_STOPPED_OFTEN = 5
_LONGEST_PATIENCE = timedelta(minutes=1)


def _after_failure(situation: Situation, last: _Last, start: datetime) -> Verdict:
    """A failed Job stays failed, until the template changes and the policy says to follow."""
    job = last.run.job if last.run is not None else None
    message = ""
    if job is not None:
        message = job.status.execution.message or job.status.admission.message
    changed = last.template_hash and last.template_hash != situation.template_hash
    policy = situation.controlled.spec.restart_strategy.spec_change_policy
    # One that could not be let in has never run: there is nothing to be left alone.
    never_ran = job is not None and job.status.admission.refusal is RefusalReason.INVALID
    need = None
    if changed and (policy is SpecChangePolicy.RECREATE or never_ran):
        need = Need(start=start, why=f"the template changed after job/{last.name} failed")
    return Verdict(outcome=WindowOutcome.FAILED, run=last.run, message=message, need=need)


def _in_time(situation: Situation, verdict: Verdict) -> Verdict:
    """Make no first Job of a window later than spec.startBy; what follows one is never late."""
    if verdict.need is None or verdict.outcome is not WindowOutcome.NEVER_STARTED:
        return verdict
    record, spec = situation.record, situation.controlled.spec
    deadline = start_deadline(spec, verdict.need.start, situation.now)
    if deadline is None or (record is not None and record.runs) or situation.now <= deadline:
        return verdict
    assert spec.start_by is not None
    begin = written_moment(deadline - spec.start_by)
    message = f"{could_have(deadline)}, {spec.start_by} after {begin}"
    return Verdict(outcome=WindowOutcome.TOO_LATE, message=message, is_late=True)


def could_have(deadline: datetime) -> str:
    """How a start is told that did not come in time."""
    return f"it could have started until {written_moment(deadline)}"


def start_deadline(spec: ControlledJobSpec, start: datetime, now: datetime) -> datetime | None:
    """Until when the first Job of a window may be made; None sets no limit.

    It counts from when the window opened, or the hold ended that kept it from being used.
    """
    if not spec.start_by:
        return None
    holds = of_action(spec.overrides, OverrideAction.HOLD)
    ends = (one.until for one in holds if one.begin <= start < one.until <= now)
    return max((start, *ends)) + spec.start_by
