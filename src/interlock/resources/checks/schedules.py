"""Validation of JobConfigs and ControlledJobs: when they are due, and what becomes of it.

Every cron line, zone, time and day is read here as the schedules room reads it, so that nothing
that is stored turns out unreadable at night.
"""

from __future__ import annotations

from interlock.findings import Findings
from interlock.resources.checks.options import check_options, longest_option_values
from interlock.resources.checks.templates import check_template
from interlock.resources.checks.validator import check_rules
from interlock.resources.controlled_job import ControlledJobSpec
from interlock.resources.job import WhenTaken
from interlock.resources.job_config import Concurrency, JobConfigSpec
from interlock.resources.rules import flaws_in_words
from interlock.resources.schedule import ScheduleSpec
from interlock.resources.schedule_limits import (
    MAX_CRON_CHARACTERS,
    MAX_EVENTS,
    MAX_LINES,
    MAX_LINES_IN_ALL,
    MAX_SCHEDULES,
)
from interlock.resources.variables import CONFIG_NAMES
from interlock.timing.cron import CronFormat, read_cron
from interlock.timing.flaws import UnreadableError
from interlock.timing.plans import Action
from interlock.timing.ticks import OnGap, OnRepeat

_START_ONLY = (
    "a start without a stop would run for ever: add an event with action: stop, or a window"
)


def check_job_config(spec: JobConfigSpec, identity: str, to: Findings) -> None:
    """Check a config; `identity` is its namespace/name, which decides where each `H` falls."""
    check_rules("spec", spec, to)
    values = dict.fromkeys(CONFIG_NAMES, 63) | longest_option_values(spec.options)
    check_template("spec.template", spec.template, to, values)
    _check_cron_lines(spec.schedules, identity, to)
    _check_concurrency(spec.concurrency, to)
    check_options(spec.options, to)


def check_controlled_job(spec: ControlledJobSpec, identity: str, to: Findings) -> None:
    """Check a ControlledJob; `identity` is its namespace/name."""
    check_rules("spec", spec, to)
    check_template("spec.jobTemplate", spec.job_template, to)
    written = sum(len(event.cron) for event in spec.events)
    if len(spec.events) <= MAX_EVENTS and _brief("spec.events", written, to):
        for at, event in enumerate(spec.events):
            if event.cron:
                _check_cron(f"spec.events[{at}].cron", event.cron, identity, event.format, to)
        actions = {event.action for event in spec.events}
        if actions == {Action.START} and not spec.windows:
            to.add("spec.events", _START_ONLY, "start alone")
    if spec.windows and not spec.events:
        _check_only_windows(spec, to)


def _check_only_windows(spec: ControlledJobSpec, to: Findings) -> None:
    """Refuse what would have no effect: windows follow the one rule whenever clocks change."""
    told = "is for events, and there are only windows, which open"
    instead = "leave it out, or write a start and a stop as events"
    if spec.on_gap is not OnGap.RUN_AFTER:
        to.add("spec.onGap", f"{told} right after a gap: {instead}", spec.on_gap.value)
    if spec.on_repeat is not OnRepeat.FIRST:
        to.add("spec.onRepeat", f"{told} the first time: {instead}", spec.on_repeat.value)


def _brief(path: str, written: int, to: Findings) -> bool:
    """Whether the cron lines of an object can be read in no time."""
    if written > MAX_CRON_CHARACTERS:
        message = f"expected at most {MAX_CRON_CHARACTERS} characters of cron lines in all"
        to.add(path, message, written)
    return written <= MAX_CRON_CHARACTERS


def _check_cron_lines(schedules: tuple[ScheduleSpec, ...], identity: str, to: Findings) -> None:
    if len(schedules) > MAX_SCHEDULES:
        return
    lines = sum(len(schedule.cron) for schedule in schedules)
    if lines > MAX_LINES_IN_ALL:
        to.add("spec.schedules", f"expected at most {MAX_LINES_IN_ALL} cron lines in all", lines)
        return
    written = sum(len(line) for schedule in schedules for line in schedule.cron)
    if not _brief("spec.schedules", written, to):
        return
    for at, schedule in enumerate(schedules):
        _check_lines(f"spec.schedules[{at}].cron", schedule, identity, to)


def _check_lines(path: str, schedule: ScheduleSpec, identity: str, to: Findings) -> None:
    lines = schedule.cron
    if not len(lines):
        to.add(path, "expected at least one cron line", [])
    elif len(lines) > MAX_LINES:
        to.add(path, f"expected at most {MAX_LINES} cron lines", len(lines))
    else:
        for at, line in enumerate(lines):
            place = f"{path}[{at}]" if lines.is_list else path
            _check_cron(place, line, identity, schedule.format, to)


def _check_cron(
    path: str, line: str, identity: str, format: CronFormat | None, to: Findings
) -> None:
    if to.is_full:
        return
    try:
        read_cron(line, identity, format)
    except UnreadableError as error:
        to.add(path, flaws_in_words(error), line)


def _check_concurrency(concurrency: Concurrency, to: Findings) -> None:
    if concurrency.policy is WhenTaken.ALLOW and concurrency.max_concurrency > 1:
        message = "has no meaning with the policy Allow, which sets no limit"
        to.add("spec.concurrency.maxConcurrency", message, concurrency.max_concurrency)
