"""Reading when a config is due, from its spec and the calendars it names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import datetime
from hashlib import sha256

from interlock.resources.codec import encode
from interlock.resources.job_config import JobConfig
from interlock.resources.schedule import ScheduleSpec
from interlock.schedules.calendars import Calendars, FoundCalendar
from interlock.schedules.configs.due_times import Planned, Timing
from interlock.timing.cron import read_cron
from interlock.timing.due import Schedule, seconds_of
from interlock.timing.flaws import UnreadableError
from interlock.timing.ticks import OnGap
from interlock.timing.zones import find_zone

#: So many configs are kept ready, some 3 KB each; others are read again when they are due.
KEPT = 16_384

#: Finds a calendar of the config's namespace by its name.
Finder = Callable[[str], FoundCalendar]


class Timings:
    """Reads configs, and remembers those that were read last."""

    def __init__(self, calendars: Calendars) -> None:
        self._calendars = calendars
        self._read: OrderedDict[tuple[object, ...], Timing] = OrderedDict()

    def of(self, config: JobConfig) -> Timing:
        """When a config is due."""
        metadata = config.metadata
        namespace = metadata.namespace
        versions = (self._calendars.version(namespace, name) for name in calendars_of(config))
        key = (metadata.uid, metadata.generation, *versions)
        timing = self._read.get(key)
        if timing is None:
            timing = read_timing(config, lambda name: self._calendars.find(namespace, name))
            self._read[key] = timing
            if len(self._read) > KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return timing


def calendars_of(config: JobConfig) -> Iterator[str]:
    """The calendars that a config names, in the order it does."""
    for schedule in config.spec.schedules:
        yield from schedule.exclude
        yield from schedule.only


def read_timing(config: JobConfig, find: Finder) -> Timing:
    """Read a config. A schedule that cannot be read is left out and told; the others go on."""
    spec = config.spec
    digest = digest_of(config)
    if spec.suspend:
        return Timing(digest=digest)
    identity = f"{config.metadata.namespace}/{config.metadata.name}"
    planned: list[Planned] = []
    unreadable: list[str] = []
    for at, schedule in enumerate(spec.schedules):
        if schedule.disabled:
            continue
        try:
            planned.append(_read(schedule, identity, find))
        except UnreadableError as error:
            unreadable.append(f"spec.schedules[{at}]: {error}")
    missing = dict.fromkeys(each.missing for each in planned if each.missing)
    return Timing(
        planned=tuple(planned),
        digest=digest,
        unreadable=tuple(unreadable),
        missing=tuple(missing),
    )


def digest_of(config: JobConfig) -> str:
    """What tells the timing of a config from what it was before an edit."""
    spec = config.spec
    return sha256(encode((spec.schedules, spec.suspend))).hexdigest()[:16]


def _read(spec: ScheduleSpec, identity: str, find: Finder) -> Planned:
    """Read one schedule.

    Raises:
        UnreadableError: A cron line or the zone makes no sense.
    """
    exclude, only = [find(name) for name in spec.exclude], [find(name) for name in spec.only]
    problems = [found.problem for found in (*exclude, *only) if found.calendar is None]
    schedule = Schedule(
        # A line without H is the same for everybody, and so is read once for all.
        [
            read_cron(line, identity if "H" in line.upper() else "", spec.format)
            for line in spec.cron
        ],
        find_zone(spec.timezone),
        on_gap=spec.on_gap,
        on_repeat=spec.on_repeat,
        exclude=[found.calendar for found in exclude if found.calendar is not None],
        only=[found.calendar for found in only if found.calendar is not None],
    )
    return Planned(
        schedule=schedule,
        not_before=spec.not_before,
        not_after=spec.not_after,
        missing=problems[0] if problems else "",
    )


def skips_between(config: JobConfig, after: datetime, until: datetime) -> bool:
    """Whether clocks may have swallowed a due time between two moments; cheap to ask."""
    begin, end = seconds_of(after), seconds_of(until)
    try:
        return any(
            one.on_gap is OnGap.SKIP and find_zone(one.timezone).has_gap(begin, end)
            for one in config.spec.schedules
        )
    except UnreadableError:
        return True
