"""Scripts about schedules: what people write down and change, and trouble around it.

Worlds begin shortly before something happens to the clocks of a zone, or at no special time. All
schedules are dense, so that a few minutes hold many due times and several windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from msgspec.structs import replace

from interlock.resources.controlled_job import (
    ControlledJobSpec,
    EventSpec,
    OverrideAction,
    RestartStrategy,
    SpecChangePolicy,
    TimezoneSpec,
    WindowSpec,
)
from interlock.resources.job import JobSpec, WhenTaken
from interlock.resources.job_config import CatchUp, CatchUpPolicy, Concurrency, JobConfigSpec
from interlock.resources.process import ProcessSpec
from interlock.resources.schedule import HistoryLimits, JobTemplate, ScheduleSpec
from interlock.resources.values.cron_lines import CronLines
from interlock.resources.values.durations import Duration, parse_duration
from interlock.timing.due import seconds_of, wall_of
from interlock.timing.plans import Action
from interlock.timing.ticks import OnGap, OnRepeat
from interlock.timing.zones import find_zone
from support.simulation.script import (
    PLANES,
    Act,
    AddOverride,
    ApplyCalendar,
    ApplyConfig,
    ApplyControlled,
    ChangeTemplate,
    CrashPlane,
    DeleteOneOf,
    JumpClock,
    Outage,
    PauseByHand,
    PausePlane,
    PutOffByHand,
    RemoveObject,
    RunByHand,
    StallStore,
    Step,
    StopByHand,
    SuspendSchedule,
)

#: Where and when: a zone, and a moment some minutes before its clocks change, or before nothing.
GROUNDS: tuple[tuple[str, datetime], ...] = (
    ("UTC", datetime(2026, 1, 5, 12, 0, tzinfo=UTC)),
    ("UTC", datetime(2026, 12, 31, 23, 53, tzinfo=UTC)),
    ("Europe/London", datetime(2026, 3, 29, 0, 54, tzinfo=UTC)),
    ("Europe/London", datetime(2026, 10, 25, 0, 53, tzinfo=UTC)),
    ("Europe/London", datetime(2026, 10, 25, 1, 52, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 6, 54, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 5, 54, tzinfo=UTC)),
    ("America/Santiago", datetime(2026, 9, 6, 3, 54, tzinfo=UTC)),
    ("America/Havana", datetime(2026, 3, 8, 4, 54, tzinfo=UTC)),
    ("Atlantic/Azores", datetime(2026, 3, 29, 0, 54, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 24, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 14, 54, tzinfo=UTC)),
)

_LINES = (
    "*/15 * * * * * *",
    "*/40 * * * * * *",
    "* * * * *",
    "*/2 * * * *",
    "H H(0-5) * * * * *",
    "30 */3 * * * * *",
    "0 0 1 1 *",
)


def write_schedule_script(random: Random, zone: str, epoch: datetime) -> tuple[Step, ...]:
    """Draw a script: schedules first, then people who change them, and trouble."""
    length = random.choice((600.0, 1200.0))
    taste = _Taste(random, zone, epoch, length)
    configs = [f"config-{number}" for number in range(random.choice((1, 1, 2)))]
    controlled = [f"engine-{number}" for number in range(random.choice((0, 1, 2)))]
    steps = [Step(random.uniform(0.0, 60.0), ApplyConfig(n, taste.config())) for n in configs]
    steps += [
        Step(random.uniform(0.0, 90.0), ApplyControlled(n, taste.controlled())) for n in controlled
    ]
    if taste.calendars:
        steps.append(Step(random.choice((0.0, 100.0)), taste.calendar()))
    things = [("JobConfig", name) for name in configs]
    things += [("ControlledJob", name) for name in controlled]
    steps += [
        Step(random.uniform(30.0, length), _meddling(taste, *random.choice(things)))
        for _ in range(random.choice((0, 3, 9)))
    ]
    steps += [
        Step(random.uniform(1.0, length), _trouble(random))
        for _ in range(random.choice((0, 0, 2, 6)))
    ]
    if orders := random.choice((_ordering, _regretting, None)):
        steps += orders(taste, "at-work")
    return tuple(sorted(steps, key=lambda step: step.at))


def with_nights(
    script: tuple[Step, ...], random: Random, zone: str, epoch: datetime
) -> tuple[Step, ...]:
    """The script, and often ControlledJobs whose starts and stops fall into a gap of the clocks."""
    gap = _next_gap(zone, epoch)
    if gap is None or random.random() < 0.3:
        return script
    steps = [
        Step(random.uniform(0.0, 90.0), ApplyControlled(f"night-{number}", _night(random, *gap)))
        for number in range(random.choice((1, 2)))
    ]
    return tuple(sorted((*script, *steps), key=lambda step: step.at))


def _next_gap(zone: str, epoch: datetime) -> tuple[TimezoneSpec, int, int] | None:
    """The first time on the wall that the next change of a zone's clocks skips, and the end."""
    found = find_zone(zone)
    stretch = found.stretch_at(seconds_of(epoch)) + 1
    if stretch >= len(found.starts) or found.starts[stretch] > seconds_of(epoch) + 3600:
        return None
    begin, end = found.reached[stretch], found.starts[stretch] + found.offsets[stretch]
    return (TimezoneSpec(name=zone), begin, end) if begin < end else None


def _night(random: Random, zone: TimezoneSpec, begin: int, end: int) -> ControlledJobSpec:
    """A ControlledJob with a start, a stop or both at times that clocks skip."""
    before = begin - random.choice((60, 120))
    inside = sorted(random.sample(range(begin, end, 60), 2))
    after = end + random.choice((300, 2400))
    start, stop = random.choice(((inside[0], after), (before, inside[0]), (before, after), inside))
    return ControlledJobSpec(
        job_template=JobTemplate(spec=JobSpec(process=ProcessSpec(command=("work", "100000.0")))),
        timezone=zone,
        events=(
            EventSpec(action=Action.START, cron=_line_at(start)),
            EventSpec(action=Action.STOP, cron=_line_at(stop)),
        ),
        on_gap=random.choice((OnGap.SKIP, OnGap.SKIP, OnGap.RUN_AFTER)),
    )


def _line_at(wall: int) -> str:
    """A line that is due every day at a time."""
    return f"0 {wall // 60 % 60} {wall // 3600 % 24} * * * *"


class _Taste:
    """What the schedules of one world have in common."""

    def __init__(self, random: Random, zone: str, epoch: datetime, length: float) -> None:
        self.random = random
        self.zone = zone
        self._epoch = epoch
        self.length = length
        self.calendars = random.random() < 0.3
        self._on_gap = random.choice(tuple(OnGap))
        self._on_repeat = random.choice(tuple(OnRepeat))
        self._seconds = random.choice((1.0, 8.0, 70.0))

    def config(self) -> JobConfigSpec:
        """A JobConfig."""
        random = self.random
        policy = random.choice(tuple(WhenTaken))
        schedule = ScheduleSpec(
            cron=CronLines(*random.sample(_LINES, random.choice((1, 1, 2)))),
            timezone=random.choice((self.zone, self.zone, "UTC")),
            disabled=random.random() < 0.1,
            on_gap=self._on_gap,
            on_repeat=self._on_repeat,
            exclude=("days",) if self.calendars and random.random() < 0.5 else (),
            not_before=self._moment() if random.random() < 0.1 else None,
            not_after=self._moment() if random.random() < 0.1 else None,
        )
        return JobConfigSpec(
            template=self._template(self._seconds, "ok"),
            schedules=(schedule,),
            concurrency=Concurrency(
                policy=policy,
                max_concurrency=1 if policy is WhenTaken.ALLOW else random.choice((1, 1, 2)),
                max_queued=random.choice((1, 3, 20)),
            ),
            catch_up=CatchUp(
                policy=random.choice(tuple(CatchUpPolicy)),
                at_most=random.choice((0, 1, 5, 100)),
                not_older_than=random.choice((_length(45), _length(300), _length(7200))),
                missed_after=random.choice((_length(1), _length(60), _length(60), _length(600))),
            ),
            history=HistoryLimits(succeeded=random.choice((0, 2, 50)), failed=50),
        )

    def controlled(self) -> ControlledJobSpec:
        """A ControlledJob whose windows fall into the world's time."""
        random = self.random
        policy = random.choice(tuple(SpecChangePolicy))
        windows, events = self._hours()
        return ControlledJobSpec(
            job_template=self._template(random.choice((20.0, 100_000.0)), "engine"),
            timezone=TimezoneSpec(name=self.zone, offset=random.choice((0, 0, 0, 60))),
            windows=windows,
            events=events,
            # They are for events alone.
            on_gap=self._on_gap if events else OnGap.RUN_AFTER,
            on_repeat=self._on_repeat if events else OnRepeat.FIRST,
            start_by=random.choice((None, None, _length(30))),
            restart_strategy=RestartStrategy(spec_change_policy=policy),
            drain_limit=_length(60),
        )

    def at_work(self) -> ControlledJobSpec:
        """A ControlledJob that is open all day, and has something to do all the time."""
        return replace(
            self.controlled(),
            job_template=self._template(100_000.0, "engine", least=100_000.0),
            windows=(WindowSpec(begin="00:00", end="24:00"),),
            events=(),
            on_gap=OnGap.RUN_AFTER,
            on_repeat=OnRepeat.FIRST,
            start_by=None,
        )

    def _hours(self) -> tuple[tuple[WindowSpec, ...], tuple[EventSpec, ...]]:
        random = self.random
        if random.random() < 0.5:
            # Some last until after the last trouble, when windows are looked at most closely.
            longer = random.choice((0.0, 2.0 * self.length, 10_000.0))
            begin, end = sorted(self._moment() for _ in range(2))
            exclude = ("days",) if self.calendars and random.random() < 0.5 else ()
            end += timedelta(seconds=longer)
            window = WindowSpec(begin=self._wall(begin), end=self._wall(end), exclude=exclude)
            return (window,), ()
        period = random.choice((3, 4, 5))
        stop = random.choice((f"0 2-59/{period} * * * * *", f"0 */{period} * * * * *"))
        start = EventSpec(action=Action.START, cron=f"0 */{period} * * * * *")
        return (), (start, EventSpec(action=Action.STOP, cron=stop))

    def calendar(self) -> ApplyCalendar:
        """The days that are left out: today, or some other day."""
        day = self._epoch.date() + timedelta(days=self.random.choice((0, 1, 40)))
        return ApplyCalendar("days", (day.isoformat(),))

    def _template(self, seconds: float, word: str, least: float = 0.0) -> JobTemplate:
        random = self.random
        words = ["work", f"{random.choice((least, seconds)):.3f}", "exits=0"]
        if random.random() < (0.5 if word == "engine" else 0.15):
            words.append(random.choice(("deaf", "slow=8.0")))
        return JobTemplate(
            spec=JobSpec(
                process=ProcessSpec(command=tuple(words)),
                title=f"{word} {random.randrange(100)}",
                grace_period=_length(random.choice((0, 5))),
                ttl_after_finished=random.choice((None, None, None, _length(0))),
            )
        )

    def _moment(self) -> datetime:
        seconds = round(self.random.uniform(0, self.length))
        return self._epoch + timedelta(seconds=seconds)

    def _wall(self, moment: datetime) -> str:
        at = seconds_of(moment)
        return f"{wall_of(find_zone(self.zone).wall_at(at)):%H:%M}"


def _length(seconds: int) -> Duration:
    return parse_duration(f"{seconds}s")


def _meddling(taste: _Taste, kind: str, name: str) -> Act:
    random = taste.random
    again: Callable[[], Act] = lambda: ApplyConfig(name, taste.config())  # noqa: E731
    acts: list[Callable[[], Act]] = [
        lambda: SuspendSchedule(kind, name, random.random() < 0.6),
        lambda: SuspendSchedule(kind, name, False),
        lambda: RunByHand(kind, name),
        lambda: DeleteOneOf(kind, name, random.random()),
        lambda: RemoveObject(kind, name),
    ]
    if kind == "ControlledJob":
        again = lambda: ApplyControlled(name, taste.controlled())  # noqa: E731
        acts += [lambda: StopByHand(name), lambda: _override(random, name)] * 2
    acts += [again, again]
    if taste.calendars:
        acts += [taste.calendar, lambda: RemoveObject("Calendar", "days")]
    return random.choice(acts)()


def _ordering(taste: _Taste, name: str) -> Iterator[Step]:
    """People stop, pause and hold what runs, and give reasons to make a new Job of it."""
    random = taste.random
    at = random.uniform(90.0, taste.length)
    pause, stop = PauseByHand(name), StopByHand(name)
    hold = AddOverride(name, OverrideAction.HOLD, 0.0, 20.0)
    change = ChangeTemplate(name, f"after {at:.0f} s")
    yield Step(at - 60.0, ApplyControlled(name, taste.at_work()))
    yield Step(at, random.choice((pause, pause, stop, change)))
    for act in (change, hold):
        at += random.choice((0.5, 10.0, 40.0))
        yield Step(at, act)


def _regretting(taste: _Taste, name: str) -> Iterator[Step]:
    """A stop falls due while nobody is there; then a person would take it back."""
    random = taste.random
    at = random.uniform(90.0, taste.length)
    yield Step(at - 60.0, ApplyControlled(name, taste.at_work()))
    yield Step(at, Outage(random.choice((60.0, 200.0))))
    yield Step(at + 1.0, StopByHand(name))
    yield Step(at + random.choice((5.0, 30.0)), PutOffByHand(name, random.choice((None, 3600.0))))


def _override(random: Random, name: str) -> AddOverride:
    begin = random.choice((-5.0, 0.0, 60.0))
    until = begin + random.choice((30.0, 120.0, 400.0))
    return AddOverride(name, random.choice(tuple(OverrideAction)), begin, until)


def _trouble(random: Random) -> Act:
    plane = random.randrange(PLANES)
    acts: tuple[Callable[[], Act], ...] = (
        lambda: CrashPlane(plane),
        lambda: CrashPlane(plane),
        lambda: PausePlane(plane, random.choice((2.0, 30.0, 150.0))),
        lambda: JumpClock(plane, random.choice((-3600.0, -30.0, 30.0, 3600.0))),
        lambda: StallStore(random.choice((5.0, 30.0))),
        lambda: Outage(random.choice((30.0, 200.0, 500.0))),
        lambda: Outage(random.choice((30.0, 200.0, 500.0))),
    )
    return random.choice(acts)()
