"""What JobConfigs and ControlledJobs must keep to: when they are due, and what becomes of it.

Every cron line, zone, time and day is read here as the schedules room reads it, so that nothing
that is stored turns out unreadable at night.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock.resources.calendar_checks import check_calendars, flaws_in_words
from interlock.resources.controlled_job import ControlledJobSpec, EventSpec, Override, WindowSpec
from interlock.resources.job import WhenTaken
from interlock.resources.job_checks import check_line, positive
from interlock.resources.job_config import Concurrency, JobConfigSpec
from interlock.resources.option_checks import check_options, longest_option_values
from interlock.resources.schedule import HistoryLimits, ScheduleSpec
from interlock.resources.schedule_limits import (
    MAX_CATCH_UP,
    MAX_CONCURRENCY,
    MAX_CRON_CHARACTERS,
    MAX_EVENTS,
    MAX_KEPT,
    MAX_LINES,
    MAX_LINES_IN_ALL,
    MAX_OFFSET_S,
    MAX_OVERRIDES,
    MAX_QUEUED,
    MAX_SCHEDULES,
    MAX_WINDOWS,
    MAX_ZONE_LENGTH,
    MIN_MISSED_AFTER,
)
from interlock.resources.suggestions import Findings
from interlock.resources.template_checks import check_template
from interlock.resources.timing.cron import read_cron
from interlock.resources.timing.day_texts import read_weekdays
from interlock.resources.timing.flaws import UnreadableError
from interlock.resources.timing.plans import Action
from interlock.resources.timing.ticks import OnGap, OnRepeat
from interlock.resources.timing.windows import read_time_of_day
from interlock.resources.timing.zones import find_zone
from interlock.resources.variables import CONFIG_NAMES
from interlock.resources.word_checks import within

_START_ONLY = (
    "a start without a stop would run for ever: add an event with action: stop, or a window"
)


def check_job_config(spec: JobConfigSpec, identity: str, to: Findings) -> None:
    """Check a config; `identity` is its namespace/name, which decides where each `H` falls."""
    values = dict.fromkeys(CONFIG_NAMES, 63) | longest_option_values(spec.options)
    check_template("spec.template", spec.template, to, values)
    _check_schedules(spec.schedules, identity, to)
    _check_concurrency(spec.concurrency, to)
    within("spec.catchUp.atMost", spec.catch_up.at_most, 0, MAX_CATCH_UP, to)
    positive("spec.catchUp.notOlderThan", spec.catch_up.not_older_than, to)
    if spec.catch_up.missed_after < MIN_MISSED_AFTER:
        # Nobody looks sooner than that all the time: everything would be missed.
        to.add("spec.catchUp.missedAfter", "expected at least 1s", str(spec.catch_up.missed_after))
    check_options(spec.options, to)
    _check_history(spec.history, to)


def check_controlled_job(spec: ControlledJobSpec, identity: str, to: Findings) -> None:
    """Check a ControlledJob; `identity` is its namespace/name."""
    check_template("spec.jobTemplate", spec.job_template, to)
    _check_zone("spec.timezone.name", spec.timezone.name, to)
    within("spec.timezone.offset", spec.timezone.offset, -MAX_OFFSET_S, MAX_OFFSET_S, to)
    written = sum(len(event.cron) for event in spec.events)
    if _few("spec.events", spec.events, MAX_EVENTS, "events", to) and _brief(
        "spec.events", written, to
    ):
        for at, event in enumerate(spec.events):
            _check_event(f"spec.events[{at}]", event, identity, to)
        actions = {event.action for event in spec.events}
        if actions == {Action.START} and not spec.windows:
            to.add("spec.events", _START_ONLY, "start alone")
    if _few("spec.windows", spec.windows, MAX_WINDOWS, "windows", to):
        for at, window in enumerate(spec.windows):
            _check_window(f"spec.windows[{at}]", window, to)
    if spec.windows and not spec.events:
        _check_only_windows(spec, to)
    if spec.start_by is not None:
        positive("spec.startBy", spec.start_by, to)
    positive("spec.drainLimit", spec.drain_limit, to)
    if _few("spec.overrides", spec.overrides, MAX_OVERRIDES, "overrides", to):
        for at, override in enumerate(spec.overrides):
            _check_override(f"spec.overrides[{at}]", override, to)
    _check_history(spec.history, to)


def _check_only_windows(spec: ControlledJobSpec, to: Findings) -> None:
    """Refuse what would have no effect: windows follow the one rule whenever clocks change."""
    told = "is for events, and there are only windows, which open"
    instead = "leave it out, or write a start and a stop as events"
    if spec.on_gap is not OnGap.RUN_AFTER:
        to.add("spec.onGap", f"{told} right after a gap: {instead}", spec.on_gap.value)
    if spec.on_repeat is not OnRepeat.FIRST:
        to.add("spec.onRepeat", f"{told} the first time: {instead}", spec.on_repeat.value)


def _few(path: str, given: tuple[Any, ...], most: int, of: str, to: Findings) -> bool:
    """Whether there are no more than may be; none of them is looked at otherwise."""
    if len(given) > most:
        to.add(path, f"expected at most {most} {of}", len(given))
    return len(given) <= most


def _brief(path: str, written: int, to: Findings) -> bool:
    """Whether the cron lines of an object can be read in no time."""
    if written > MAX_CRON_CHARACTERS:
        message = f"expected at most {MAX_CRON_CHARACTERS} characters of cron lines in all"
        to.add(path, message, written)
    return written <= MAX_CRON_CHARACTERS


def _check_schedules(schedules: tuple[ScheduleSpec, ...], identity: str, to: Findings) -> None:
    if not _few("spec.schedules", schedules, MAX_SCHEDULES, "schedules", to):
        return
    lines = sum(len(schedule.cron) for schedule in schedules)
    if lines > MAX_LINES_IN_ALL:
        to.add("spec.schedules", f"expected at most {MAX_LINES_IN_ALL} cron lines in all", lines)
        return
    written = sum(len(line) for schedule in schedules for line in schedule.cron)
    if not _brief("spec.schedules", written, to):
        return
    for at, schedule in enumerate(schedules):
        _check_schedule(f"spec.schedules[{at}]", schedule, identity, to)


def _check_schedule(path: str, schedule: ScheduleSpec, identity: str, to: Findings) -> None:
    lines = schedule.cron
    if not len(lines):
        to.add(f"{path}.cron", "expected at least one cron line", [])
    elif len(lines) > MAX_LINES:
        to.add(f"{path}.cron", f"expected at most {MAX_LINES} cron lines", len(lines))
    else:
        for at, line in enumerate(lines):
            place = f"{path}.cron[{at}]" if lines.is_list else f"{path}.cron"
            _readable(place, line, lambda text: read_cron(text, identity, schedule.format), to)
    _check_zone(f"{path}.timezone", schedule.timezone, to)
    first, last = schedule.not_before, schedule.not_after
    if first is not None and last is not None and first > last:
        message = "expected a moment that is not before notBefore"
        to.add(f"{path}.notAfter", message, last.isoformat())
    check_calendars(path, schedule.exclude, schedule.only, to)


def _check_concurrency(concurrency: Concurrency, to: Findings) -> None:
    path, most = "spec.concurrency", concurrency.max_concurrency
    within(f"{path}.maxConcurrency", most, 1, MAX_CONCURRENCY, to)
    if concurrency.policy is WhenTaken.ALLOW and most > 1:
        message = "has no meaning with the policy Allow, which sets no limit"
        to.add(f"{path}.maxConcurrency", message, most)
    within(f"{path}.maxQueued", concurrency.max_queued, 0, MAX_QUEUED, to)


def _check_history(history: HistoryLimits, to: Findings) -> None:
    within("spec.history.succeeded", history.succeeded, 0, MAX_KEPT, to)
    within("spec.history.failed", history.failed, 0, MAX_KEPT, to)


def _check_event(path: str, event: EventSpec, identity: str, to: Findings) -> None:
    if (event.schedule is not None) == bool(event.cron):
        found = "schedule and cron" if event.cron else "none"
        to.add(path, f"expected exactly one of schedule and cron, found {found}")
    if event.schedule is not None:
        place = f"{path}.schedule"
        _readable(f"{place}.timeOfDay", event.schedule.time_of_day, read_time_of_day, to)
        _readable(f"{place}.daysOfWeek", event.schedule.days_of_week, read_weekdays, to)
    if event.cron:
        _readable(
            f"{path}.cron", event.cron, lambda text: read_cron(text, identity, event.format), to
        )
    check_calendars(path, event.exclude, event.only, to)


def _check_window(path: str, window: WindowSpec, to: Findings) -> None:
    _readable(f"{path}.from", window.begin, read_time_of_day, to)
    _readable(f"{path}.to", window.end, lambda text: read_time_of_day(text, is_end=True), to)
    _readable(f"{path}.days", window.days, read_weekdays, to)
    check_calendars(path, window.exclude, window.only, to)


def _check_override(path: str, override: Override, to: Findings) -> None:
    if override.until <= override.begin:
        to.add(f"{path}.until", "expected a moment after from", override.until.isoformat())
    check_line(f"{path}.by", override.by, to)
    check_line(f"{path}.reason", override.reason, to)


def _check_zone(path: str, name: str, to: Findings) -> None:
    if len(name) > MAX_ZONE_LENGTH:
        to.add(path, f"expected at most {MAX_ZONE_LENGTH} characters", name)
    else:
        _readable(path, name, find_zone, to)


def _readable(path: str, text: str, read: Callable[[str], object], to: Findings) -> None:
    if to.is_full:
        return
    try:
        read(text)
    except UnreadableError as error:
        to.add(path, flaws_in_words(error), text)
