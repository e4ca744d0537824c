"""From what is stored, and from the plan, to what a timeline shows of one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from interlock.forecast.timeline.model import Mark, Sign, Sort, Span
from interlock.forecast.upcoming import A_TURN, RUN, SKIP, Definitions
from interlock.resources.controlled_job import (
    ControlledJob,
    Override,
    OverrideAction,
    WindowRecord,
)
from interlock.resources.job import Job
from interlock.resources.job_config import JobConfig, Skip
from interlock.resources.metadata import Resource
from interlock.resources.schedule import (
    CONTROLLED_LABEL,
    STOPPED_BECAUSE_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    USER_STOP,
    WINDOW_CLOSED,
)
from interlock.resources.tasks import JobResult
from interlock.resources.transitions import ended_at
from interlock.timing.local_time import told_time
from interlock.timing.plans import Action
from interlock.timing.zones import Zone, find_zone

#: So many due times of a day are shown one by one; of more, about one in a quarter of an hour.
MOST_DUE = 300
_QUARTER = timedelta(minutes=15)
_INSTANT = timedelta(microseconds=1)
_SORTS = {
    JobResult.SUCCEEDED: Sort.SUCCEEDED,
    JobResult.KILLED: Sort.STOPPED,
    JobResult.FAILED: Sort.FAILED,
    JobResult.FINISHED_UNKNOWN: Sort.FAILED,
}


class Track(Struct, frozen=True, kw_only=True):
    """What there is to show of one object, whatever the day."""

    zone: Zone
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]


class Range(Struct, frozen=True):
    """The time that is asked for, and what time it is."""

    begin: datetime
    end: datetime
    now: datetime


def zone_of(resource: Resource) -> Zone:
    """The zone of an object; a config with several schedules is shown in that of the first.

    Raises:
        UnreadableError: It names none that there is.
    """
    if isinstance(resource, ControlledJob):
        return find_zone(resource.spec.timezone.name, resource.spec.timezone.offset)
    if isinstance(resource, JobConfig) and resource.spec.schedules:
        return find_zone(resource.spec.schedules[0].timezone)
    return find_zone("UTC")


def track_of(
    definitions: Definitions, resource: Resource, jobs: Iterable[Job], time: Range
) -> Track:
    """Everything about one object in some time.

    Raises:
        UnreadableError: Its zone makes no sense.
    """
    runs = [span for job in jobs if (span := _run(job, time.now))]
    if isinstance(resource, ControlledJob):
        spans, marks = _controlled(definitions, resource, time)
    elif isinstance(resource, JobConfig):
        spans, marks = [], _config(definitions, resource, time)
    else:
        spans, marks = [], []
    return Track(
        zone=zone_of(resource),
        spans=tuple(sorted((*spans, *runs), key=lambda span: span.start)),
        marks=tuple(sorted(marks, key=lambda mark: mark.at)),
    )


def _run(job: Job, now: datetime) -> Span | None:
    """The time in which a Job ran; None for one that never did."""
    execution = job.status.execution
    if execution.started_at is None:
        return None
    end = ended_at(job)
    sort = _SORTS[execution.result] if execution.result is not None else Sort.RUNNING
    if sort is Sort.STOPPED and _ends_as_planned(job):
        sort = Sort.SUCCEEDED
    why = f": {execution.message}" if execution.message else ""
    return Span(
        start=execution.started_at,
        end=max(end or now, execution.started_at),
        sort=sort,
        text=f"{job.metadata.name} {sort.lower()}{why}",
    )


def _ends_as_planned(job: Job) -> bool:
    """Whether a Job that was stopped did all it was there for: its window closed."""
    metadata = job.metadata
    if metadata.annotations.get(SUSPEND_REASON_ANNOTATION) == USER_STOP:
        return False
    because = metadata.annotations.get(STOPPED_BECAUSE_ANNOTATION, WINDOW_CLOSED)
    return CONTROLLED_LABEL in metadata.labels and because.startswith(WINDOW_CLOSED)


# A ControlledJob


def _controlled(
    definitions: Definitions, controlled: ControlledJob, time: Range
) -> tuple[list[Span], list[Mark]]:
    table, _ = definitions.timetable(controlled)
    if table is None:
        return list(_recorded(controlled, time.now)), []
    planned, marks = _planned(definitions, controlled, time)
    spans = [*_recorded(controlled, time.now)]
    first = min((span.start for span in spans), default=time.now)
    made = controlled.metadata.creation_timestamp or time.begin
    for start, stop in planned:
        if stop <= time.now:
            # What the records do not reach back to is told by the plan.
            if made <= start < first:
                spans.append(Span(start=start, end=stop, sort=Sort.WINDOW))
            continue
        if start < time.now and not any(span.end > start for span in spans):
            opened = max(start, made)
            spans.append(Span(start=opened, end=time.now, sort=Sort.WINDOW, text="window"))
        begin = max(start, time.now)
        text = f"to run until {told_time(stop, table.zone)}"
        spans.append(Span(start=begin, end=stop, sort=Sort.PLANNED, text=text))
    spans += [
        Span(start=one.begin, end=one.until, sort=Sort.HELD, text=told_override(one, table.zone))
        for one in controlled.spec.overrides
        if one.action is OverrideAction.HOLD
    ]
    marks += [
        Mark(at=one.until, sign=Sign.EXTENDED, text=told_override(one, table.zone))
        for one in controlled.spec.overrides
        if one.action is OverrideAction.EXTEND
    ]
    return spans, marks


def records_of(controlled: ControlledJob) -> Iterator[WindowRecord]:
    """What is known of past windows, the newest first."""
    if controlled.status.window is not None:
        yield controlled.status.window
    yield from controlled.status.past_windows


def _recorded(controlled: ControlledJob, now: datetime) -> Iterator[Span]:
    made = controlled.metadata.creation_timestamp
    for record in records_of(controlled):
        end = now if record.stop is None or record.stop > now else record.stop
        # A window that was open already when the object was made opened for it only then.
        start = max(record.start, made) if made is not None else record.start
        if start < end:
            why = f": {record.message}" if record.message else ""
            text = f"window, {record.outcome}{why}"
            yield Span(start=start, end=end, sort=Sort.WINDOW, text=text)


def _planned(
    definitions: Definitions, controlled: ControlledJob, time: Range
) -> tuple[list[tuple[datetime, datetime]], list[Mark]]:
    """The windows of the plan, and the starts that do not happen."""
    table, missing = definitions.timetable(controlled)
    assert table is not None, "asked before"
    state = table.state_at(time.begin)
    opened = state.start if state.is_inside else None
    windows: list[tuple[datetime, datetime]] = []
    marks: list[Mark] = []
    for turn in table.upcoming(time.begin - _INSTANT):
        definitions.effort.spend(A_TURN)
        if turn.at >= time.end:
            break
        if turn.action is Action.STOP and turn.skipped is not None:
            if opened is not None:
                text = f"it does not stop: {turn.skipped}"
                marks.append(Mark(at=turn.at, sign=Sign.SKIPPED, text=text))
        elif turn.action is Action.STOP:
            if opened is not None and opened < turn.at:
                windows.append((opened, turn.at))
            opened = None
        elif turn.skipped is not None or missing:
            marks.append(Mark(at=turn.at, sign=Sign.SKIPPED, text=turn.skipped or missing))
        elif opened is None:
            opened = turn.at
    if opened is not None:
        windows.append((opened, table.closes_after(time.end - _INSTANT) or time.end))
    return windows, marks


def told_override(override: Override, zone: Zone) -> str:
    """An exception in a few words."""
    words = {
        OverrideAction.HOLD: "on hold until",
        OverrideAction.EXTEND: "extended until",
        OverrideAction.SKIP: "skipped until",
    }
    by = f" by {override.by}" if override.by else ""
    why = f": {override.reason}" if override.reason else ""
    return f"{words[override.action]} {told_time(override.until, zone)}{by}{why}"


# A JobConfig


def _config(definitions: Definitions, config: JobConfig, time: Range) -> list[Mark]:
    marks = [_skip(skip) for skip in config.status.skips]
    begin = max(time.now, time.begin)
    while begin < time.end:
        end = min(begin + timedelta(days=1), time.end)
        marks += _due(definitions, config, begin, end)
        begin = end
    return marks


def _skip(skip: Skip) -> Mark:
    count = f"{skip.count} " if skip.count != 1 else ""
    why = f": {skip.message}" if skip.message else ""
    return Mark(at=skip.at, sign=Sign.SKIPPED, text=f"{count}{skip.reason}{why}")


def _due(
    definitions: Definitions, config: JobConfig, begin: datetime, end: datetime
) -> Iterator[Mark]:
    """The due times of a day to come; a few of them when there are very many."""
    after, count = begin - _INSTANT, 0
    coming = definitions.of_config(config, after)
    while (each := next(coming, None)) is not None and each.at < end:
        if each.action in (RUN, SKIP):
            sign = Sign.DUE if each.action == RUN else Sign.SKIPPED
            yield Mark(at=each.at, sign=sign, text=each.reason)
            count += 1
        if count >= MOST_DUE:
            coming = definitions.of_config(config, each.at + _QUARTER - _INSTANT)
