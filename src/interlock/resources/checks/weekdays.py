"""Weekday warnings: cron lines that mean other days to the program they come from.

To Quartz and AWS Sunday is 1, to us and to cron it is 0. A line of six or seven fields with a `?`
is one of theirs, most likely; with numbers for weekdays it would run one day late in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job_config import JobConfig
from interlock.resources.metadata import Resource
from interlock.timing.cron import CronFormat

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NUMBERS = re.compile(r"([0-7])(?:-([0-7]))?(L|#[1-5]|/[0-9]+)?")
#: Where the weekday is, by the number of fields; six are read with a format only.
_SEVEN = 5
_SIX = {CronFormat.SECONDS_FIRST: 5, CronFormat.YEAR_LAST: 4}


def weekday_doubts(resource: Resource) -> tuple[str, ...]:
    """What is to be said about the weekdays of a resource's lines; nothing, nearly always."""
    return tuple(
        f"{path}: {doubt}"
        for path, line, format in _lines(resource)
        if "?" in line and (doubt := _doubt(line, format))
    )


def _lines(resource: Resource) -> Iterator[tuple[str, str, CronFormat | None]]:
    if isinstance(resource, JobConfig):
        for at, schedule in enumerate(resource.spec.schedules):
            for number, line in enumerate(schedule.cron):
                place = f"[{number}]" if schedule.cron.is_list else ""
                yield f"spec.schedules[{at}].cron{place}", line, schedule.format
    elif isinstance(resource, ControlledJob):
        for at, event in enumerate(resource.spec.events):
            yield f"spec.events[{at}].cron", event.cron, event.format


def _doubt(line: str, format: CronFormat | None) -> str:
    words = line.upper().split()
    if len(words) == 7:
        weekday = words[_SEVEN]
    elif len(words) == 6 and format is not None:
        weekday = words[_SIX[format]]
    else:
        return ""
    if "?" not in words:
        return ""
    here, there = _named(weekday, 0), _named(weekday, 1)
    if here == there:
        return ""
    return (
        f'weekday numbers: "{weekday}" is {here} here, and {there} in Quartz and AWS, which call '
        "Sunday 1; write the names of the days that you mean"
    )


def _named(field: str, sunday: int) -> str:
    """A field with names in place of numbers; as it is where it cannot be one of theirs."""
    parts = []
    for part in field.split(","):
        match = _NUMBERS.fullmatch(part)
        if not match:
            parts.append(part)
            continue
        numbers = [int(number) for number in match.groups()[:2] if number is not None]
        if 0 in numbers:
            # No day of theirs has that number: the line is none of theirs.
            return field
        parts.append("-".join(_DAYS[(one - sunday) % 7] for one in numbers) + (match[3] or ""))
    return ",".join(parts)
