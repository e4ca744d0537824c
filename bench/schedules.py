"""Finding the next due time, beside the libraries that people use for it.

The libraries are no dependency of this project. To see them in the table, install them into a
directory and name it: `pip install --target DIR croniter cronsim`, then
`python -m bench schedules DIR`.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from bench.table import medians, show
from interlock.timing.cron import read_cron
from interlock.timing.due import Schedule, next_after, previous_at_or_before
from interlock.timing.plans import Plan
from interlock.timing.windows import read_window
from interlock.timing.zones import find_zone

ROUNDS = 7
#: How many moments are asked about in a round; the libraries are slower and get fewer.
ASKED = 2_000
ASKED_LIBRARY = 200
LEAP_DAY = "0 0 29 2 *"
LINES = ("*/5 * * * *", "30 2 * * *", "0 9 * * MON-FRI", LEAP_DAY)
ZONES = ("UTC", "America/New_York")

_START = datetime(2020, 1, 1, tzinfo=UTC)
#: Spread over ten years, far enough apart that no answer helps with the next.
MOMENTS = [_START + timedelta(seconds=number * 100_003 % 315_360_000) for number in range(ASKED)]


def _per_call(ask: Callable[[datetime], object], moments: Sequence[datetime]) -> float:
    """How many nanoseconds one question takes."""
    began = time.perf_counter()
    for moment in moments:
        ask(moment)
    return (time.perf_counter() - began) / len(moments) * 1e9


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _ways(line: str, zone_name: str) -> dict[str, Callable[[], float]]:
    """Ask for the due time after each of many moments that have nothing to do with each other."""
    schedule = Schedule([read_cron(line, "bench/line")], find_zone(zone_name))
    ways: dict[str, Callable[[], float]] = {
        "next": partial(_per_call, partial(next_after, schedule), MOMENTS),
        "previous": partial(_per_call, partial(previous_at_or_before, schedule), MOMENTS),
    }
    # These want moments in the zone itself; making them is not counted.
    zone = ZoneInfo(zone_name)
    local = [moment.astimezone(zone) for moment in MOMENTS[:ASKED_LIBRARY]]
    if croniter := _library("croniter"):
        reader = croniter.croniter(line, local[0])

        def ask_croniter(moment: datetime) -> object:
            reader.set_current(moment, force=True)
            return reader.get_next(datetime)

        ways["croniter"] = partial(_per_call, ask_croniter, local)
    if cronsim := _library("cronsim"):
        # It cannot be put to another moment; it has to read the line again.
        def ask_cronsim(moment: datetime) -> object:
            return next(cronsim.CronSim(line, moment))

        ways["cronsim"] = partial(_per_call, ask_cronsim, local)
    return ways


def _ways_in_a_row(line: str, zone_name: str) -> dict[str, Callable[[], float]]:
    """Ask for many due times one after the other, which is what the libraries are made for."""
    schedule = Schedule([read_cron(line, "bench/line")], find_zone(zone_name))
    rounds = range(ASKED_LIBRARY)

    def ours() -> float:
        moment: datetime | None = _START
        began = time.perf_counter()
        for _ in rounds:
            moment = next_after(schedule, moment) if moment else None
        return (time.perf_counter() - began) / len(rounds) * 1e9

    def theirs(following: Callable[[], object]) -> float:
        return _per_call(lambda _: following(), MOMENTS[:ASKED_LIBRARY])

    local = _START.astimezone(ZoneInfo(zone_name))
    ways: dict[str, Callable[[], float]] = {"next": ours}
    if croniter := _library("croniter"):
        ways["croniter"] = lambda: theirs(
            partial(croniter.croniter(line, local).get_next, datetime)
        )
    if cronsim := _library("cronsim"):
        ways["cronsim"] = lambda: theirs(partial(next, cronsim.CronSim(line, local)))
    return ways


def _libraries(found: dict[str, float]) -> list[object]:
    return [found.get(name, "not installed") for name in ("croniter", "cronsim")]


def main(argv: Sequence[str]) -> None:
    """Measure the questions that every decision asks."""
    sys.path[:0] = argv
    rows, in_a_row = [], []
    for zone in ZONES:
        for line in LINES:
            found = medians(_ways(line, zone), ROUNDS)
            rows.append((zone, line, found["next"], found["previous"], *_libraries(found)))
            if line != LEAP_DAY:
                found = medians(_ways_in_a_row(line, zone), ROUNDS)
                in_a_row.append((zone, line, found["next"], *_libraries(found)))
    show(
        f"The due time after any moment: nanoseconds, median of {ROUNDS} rounds",
        ("zone", "line", "next", "previous", "croniter", "cronsim"),
        rows,
    )
    show(
        "Due times in a row: nanoseconds each",
        ("zone", "line", "next", "croniter", "cronsim"),
        in_a_row,
    )
    plan = Plan(find_zone("America/New_York"), [read_window("09:00", "17:30", "MON-FRI")])
    ways = {
        "read a line": partial(
            _per_call, lambda _: read_cron.__wrapped__("30 2 * * 1", "x"), MOMENTS
        ),
        "state of a plan": partial(_per_call, plan.state_at, MOMENTS),
    }
    show(
        "Other questions: nanoseconds each",
        ("question", "took"),
        list(medians(ways, ROUNDS).items()),
    )
