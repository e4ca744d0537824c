"""A day of one object in a few words."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from interlock.forecast.timeline.model import RUNS, Mark, Sign, Sort, Span
from interlock.forecast.timeline.tracks import MOST_DUE, records_of
from interlock.resources.controlled_job import (
    ControlledAction,
    ControlledJob,
    WindowOutcome,
    WindowRecord,
)
from interlock.resources.job import Job
from interlock.resources.schedule import STOPPED_BY_ANNOTATION
from interlock.resources.values.durations import told_length
from interlock.timing.local_time import told_time
from interlock.timing.zones import Zone

_WORDS = {
    Sort.SUCCEEDED: "ok",
    Sort.FAILED: "failed",
    Sort.STOPPED: "stopped",
    Sort.RUNNING: "running",
}
_OUTCOMES = {
    WindowOutcome.NEVER_STARTED: "never started",
    WindowOutcome.STARTED: "running",
    WindowOutcome.FINISHED: "finished",
    WindowOutcome.FAILED: "failed",
    WindowOutcome.STOPPED: "ok",
    WindowOutcome.STOPPED_BY_USER: "stopped by a person",
    WindowOutcome.REMOVED_BY_USER: "removed by a person",
    WindowOutcome.TOO_LATE: "too late to start",
}
#: What happened as it should, and needs no more words.
_FINE = frozenset({WindowOutcome.STARTED, WindowOutcome.FINISHED, WindowOutcome.STOPPED})


def of_controlled(
    controlled: ControlledJob,
    jobs: tuple[Job, ...],
    spans: tuple[Span, ...],
    marks: tuple[Mark, ...],
    begin: datetime,
    end: datetime,
    zone: Zone,
) -> str:
    """What became of the windows of a day, and what is to come."""
    told = []
    for record in records_of(controlled):
        if begin <= record.start < end:
            why = f" ({record.message})" if record.message and record.outcome not in _FINE else ""
            cut_short = record.outcome is WindowOutcome.STOPPED and _is_cut_short(record, spans)
            became = _by_whom(record, jobs) or _OUTCOMES[record.outcome]
            told.append("stopped" if cut_short else f"{became}{why}")
    told.reverse()
    for action in reversed(controlled.status.action_history):
        if action.type is ControlledAction.JOB_RESTARTED and begin <= action.timestamp < end:
            why = f" ({action.message})" if action.message else ""
            told.append(f"restarted {told_time(action.timestamp, zone, named=False)}{why}")
    told += [mark.text for mark in marks if mark.sign is Sign.EXTENDED]
    held = [span for span in spans if span.sort is Sort.HELD]
    told += [span.text for span in held]
    told += [
        _skipped(mark)
        for mark in marks
        if mark.sign is Sign.SKIPPED and not any(span.start <= mark.at < span.end for span in held)
    ]
    if not told:
        planned = [span for span in spans if span.sort is Sort.PLANNED and span.start >= begin]
        told = [
            "-".join(told_time(at, zone, named=False) for at in (span.start, span.end))
            for span in planned
        ]
    return "; ".join(dict.fromkeys(told))


def _by_whom(record: WindowRecord, jobs: tuple[Job, ...]) -> str:
    """Who stopped the Job of a window, as long as the Job is there to say so."""
    if record.outcome is not WindowOutcome.STOPPED_BY_USER or record.job is None:
        return ""
    known = {job.metadata.uid: job.metadata.annotations for job in jobs}
    who = known.get(record.job.uid, {}).get(STOPPED_BY_ANNOTATION, "")
    return f"stopped by {who}" if who else ""


def _is_cut_short(record: WindowRecord, spans: tuple[Span, ...]) -> bool:
    """Whether the last run of a window did not go on until it closed."""
    runs = [span for span in spans if span.sort in RUNS and span.start >= record.start]
    if record.stop is not None:
        runs = [span for span in runs if span.start < record.stop]
    return bool(runs) and runs[-1].sort is Sort.STOPPED


def of_config(
    spans: tuple[Span, ...], marks: tuple[Mark, ...], begin: datetime, end: datetime
) -> str:
    """How many runs of a day ended how, what was skipped, and what is to come."""
    runs = [span for span in spans if span.sort in RUNS and begin <= span.start < end]
    counts = Counter(span.sort for span in runs)
    told = [f"{counts[sort]} {word}" for sort, word in _WORDS.items() if counts[sort]]
    if len(runs) == 1:
        (run,) = runs
        took = told_length((run.end - run.start).total_seconds())
        told = [f"{_WORDS[run.sort]} {took}"]
    skips = [mark for mark in marks if mark.sign is Sign.SKIPPED]
    if len(skips) == 1:
        told.append(_skipped(skips[0]))
    elif skips:
        told.append(f"{len(skips)} skipped")
    due = sum(mark.sign is Sign.DUE for mark in marks)
    if due:
        # Of very many only some are shown.
        told.append(f"{due} to come" if due < MOST_DUE else f"more than {MOST_DUE} to come")
    return ", ".join(told)


def _skipped(mark: Mark) -> str:
    return mark.text if mark.text.startswith("skipped") else f"skipped: {mark.text}"
