"""The chart of some objects: their tracks, cut into days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta

from msgspec.structs import replace

from interlock.forecast.timeline.model import Chart, Row
from interlock.forecast.timeline.summaries import of_config, of_controlled
from interlock.forecast.timeline.tracks import Range, Track, track_of, zone_of
from interlock.forecast.upcoming import Definitions
from interlock.reporting.walls import start_of_day
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.metadata import Resource
from interlock.resources.timing.flaws import UnreadableError
from interlock.resources.timing.zones import Zone, find_zone

#: The days to show, in a zone.
Days = Callable[[Zone], tuple[date, date]]
#: The Jobs of each object, by its kind, namespace and name.
JobsOf = Mapping[tuple[str, str, str], Iterable[Job]]


def chart_of(definitions: Definitions, jobs: JobsOf, days: Days, now: datetime) -> Chart:
    """Draw up everything there is; an object that cannot be read gets a row that says so."""
    rows = [
        row
        for resource in _in_order(definitions)
        for row in _rows(definitions, resource, jobs, days, now)
    ]
    return Chart(now=now, rows=tuple(rows))


def _in_order(definitions: Definitions) -> list[Resource]:
    found: list[Resource] = [*definitions.controlled.values(), *definitions.configs.values()]
    return sorted(found, key=lambda one: (one.metadata.namespace, one.metadata.name, one.kind))


def _rows(
    definitions: Definitions, resource: Resource, jobs: JobsOf, days: Days, now: datetime
) -> Iterator[Row]:
    metadata = resource.metadata
    try:
        zone = zone_of(resource)
        first, last = days(zone)
        time = Range(start_of_day(first, zone), start_of_day(_after(last), zone), now)
        its_jobs = tuple(jobs.get((resource.kind, metadata.namespace, metadata.name), ()))
        track = track_of(definitions, resource, its_jobs, time)
    except UnreadableError as error:
        zone = find_zone("UTC")
        yield _row(resource, zone, days(zone)[1], summary=f"cannot be read: {error}")
        return
    day = first
    while day <= last:
        yield _cut(resource, its_jobs, track, day)
        day = _after(day)


def _cut(resource: Resource, jobs: tuple[Job, ...], track: Track, day: date) -> Row:
    row = _row(resource, track.zone, day)
    begin, end = row.begin, row.end
    spans = tuple(
        span
        for span in track.spans
        if span.start < end and (span.end > begin or begin <= span.start)
    )
    marks = tuple(mark for mark in track.marks if begin <= mark.at < end)
    if isinstance(resource, ControlledJob):
        summary = of_controlled(resource, jobs, spans, marks, begin, end, track.zone)
    else:
        summary = of_config(spans, marks, begin, end)
    return _row(resource, track.zone, day, summary=summary, spans=spans, marks=marks)


def _row(resource: Resource, zone: Zone, day: date, **parts: object) -> Row:
    metadata = resource.metadata
    row = Row(
        kind=resource.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        zone=zone,
        day=day,
    )
    return replace(row, **parts)


def _after(day: date) -> date:
    return day + timedelta(days=1)
