"""The chart of some objects: their tracks, cut into days."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta

from msgspec.structs import replace

from interlock.forecast.timeline.model import Chart, Row
from interlock.forecast.timeline.summaries import of_config, of_controlled
from interlock.forecast.timeline.tracks import Range, Track, track_of, zone_of
from interlock.forecast.upcoming import Definitions
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.metadata import Resource
from interlock.resources.schedule import CONFIG_LABEL, CONTROLLED_LABEL
from interlock.timing.flaws import UnreadableError
from interlock.timing.local_time import start_of_day
from interlock.timing.zones import Zone, find_zone

#: The days to show, in a zone.
Days = Callable[[Zone], tuple[date, date]]
#: The Jobs of each object, by its kind, namespace and name.
JobsOf = Mapping[tuple[str, str, str], Iterable[Job]]


#: The label that the Jobs of a kind carry, with the name of whom they are for.
LABELS = {"ControlledJob": CONTROLLED_LABEL, "JobConfig": CONFIG_LABEL}


def jobs_by_owner(definitions: Definitions, jobs: Iterable[Job]) -> JobsOf:
    """The Jobs of each object; those of an earlier object of the same name are left out."""
    uids = {
        (one.kind, one.metadata.namespace, one.metadata.name): one.metadata.uid
        for one in in_order(definitions)
    }
    found: dict[tuple[str, str, str], list[Job]] = {}
    for job in jobs:
        for kind, label in LABELS.items():
            key = (kind, job.metadata.namespace, job.metadata.labels.get(label, ""))
            if key in uids and _owner(job) in ("", uids[key]):
                found.setdefault(key, []).append(job)
    return found


def _owner(job: Job) -> str:
    owners = job.metadata.owner_references
    return next((owner.uid for owner in owners if owner.controller), "")


def chart_of(definitions: Definitions, jobs: JobsOf, days: Days, now: datetime) -> Chart:
    """Draw up everything there is; an object that cannot be read gets a row that says so."""
    rows = [
        row
        for resource in in_order(definitions)
        for row in _rows(definitions, resource, jobs, days, now)
    ]
    return Chart(now=now, rows=tuple(rows))


def in_order(definitions: Definitions) -> list[Resource]:
    """What a timeline shows, in the order of namespaces and names."""
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
    marks = track.marks[_first(track, begin) : _first(track, end)]
    if isinstance(resource, ControlledJob):
        summary = of_controlled(resource, jobs, spans, marks, begin, end, track.zone)
    else:
        summary = of_config(spans, marks, begin, end)
    return _row(resource, track.zone, day, summary=summary, spans=spans, marks=marks)


def _first(track: Track, moment: datetime) -> int:
    return bisect_left(track.marks, moment, key=lambda mark: mark.at)


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
